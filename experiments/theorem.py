"""Theorem 1, tried out: how often the answer of the paper's algorithm is further off than epsilon.

``xcount`` answers the questions whose counts the authors publish, with many seeds. The theorem
allows a share delta of the answers to miss; the counts are those of ``exact``.

    python -m experiments.theorem --seeds 400
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.coverage import most_failures
from benchmarks.harness.options import parser_of
from benchmarks.harness.records import RUNS, Runs, surroundings
from benchmarks.harness.tables import joined, made_on, markdown
from xcount.counters import counter
from xcount.counters.settings import Settings
from xcount.model.loaders import load
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query

FILE = "theorem.json"
TREES = range(1, 11)
"""Sizes of the models; up to 3 trees the sample holds every region."""
EPSILON = DELTA = 0.1


def problems() -> Iterator[tuple[int, Problem]]:
    """Yield the questions that the authors' program is tested with, by the number of trees."""
    import xgboost
    from sklearn.datasets import load_diabetes
    from sklearn.model_selection import train_test_split

    rows, target = load_diabetes(return_X_y=True)
    rows, _, target, _ = train_test_split(rows, target, test_size=0.2, random_state=42)
    settings = {"tree_method": "hist", "max_depth": 3, "eta": 0.1, "nthread": 1}
    booster = xgboost.train(settings, xgboost.DMatrix(rows, target), max(TREES))
    for n_trees in TREES:
        ensemble = load(booster[:n_trees])
        query = Query.of(ensemble, 2, 2, precision=3, distance=1)
        yield n_trees, Problem(ensemble, Grid.of(ensemble), query)


def run(n_seeds: int) -> dict[str, Any]:
    """Count every question with every seed."""
    found: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA, **surroundings(), "rows": []}
    for n_trees, problem in problems():
        known = counter("exact")(problem, Settings(jobs=1)).count
        answers = [
            counter("xcount")(problem, Settings(epsilon=EPSILON, delta=DELTA, seed=seed, jobs=1))
            for seed in range(n_seeds)
        ]
        found["rows"].append(
            {
                "n_trees": n_trees,
                "count": known,
                "halvings": [answer.details["halvings"] for answer in answers],
                "answers": [answer.count for answer in answers],
                "held": sum(answer.low <= (known or 0) <= answer.high for answer in answers),
            }
        )
        print(f"{n_trees} trees: {n_seeds} seeds", file=sys.stderr)
    return found


def outside(found: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many sampled answers are further off than epsilon, and how many there are."""
    errors = [error for row in found["rows"] if any(row["halvings"]) for error in _errors(row)]
    return sum(error > found["epsilon"] for error in errors), len(errors)


def _errors(row: Mapping[str, Any]) -> list[float]:
    """Return the relative error of each answer."""
    return [abs(answer / row["count"] - 1) for answer in row["answers"]]


def report(found: Mapping[str, Any]) -> str:
    """Return the errors as Markdown."""
    rows = []
    for row in found["rows"]:
        errors = _errors(row)
        n_sampled, n_missed = sum(map(bool, row["halvings"])), len(errors) - row["held"]
        n_far = sum(error > found["epsilon"] for error in errors)
        spread = math.sqrt(statistics.fmean(error**2 for error in errors))
        numbers = [f"{row['count']:,}", len(errors), n_sampled, n_far, n_missed]
        rows.append([row["n_trees"], *numbers, f"{max(errors):.4f}", f"{spread:.4f}"])
    n_outside, n_all = outside(found)
    header = ["trees", "count", "runs", "sampled", "further than epsilon", "interval missed"]
    table = markdown([*header, "largest error", "root mean square"], rows)
    allowed = most_failures(n_all, found["delta"])
    return joined(
        table,
        f"Epsilon {found['epsilon']:g}, delta {found['delta']:g}: {n_outside} of {n_all} sampled "
        f"answers are further off than epsilon; by chance up to {allowed} might be, if each were "
        f"with probability delta. {made_on(found)}",
    )


def section(runs: Runs, folder: Path) -> str:
    """Return the table of a folder of results."""
    return report(json.loads((folder / FILE).read_text()))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("experiments.theorem", __doc__, RUNS / FILE)
    parser.add_argument("--seeds", type=int, default=400)
    options = parser.parse_args(arguments)
    found = run(options.seeds)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(found) + "\n")
    print(report(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
