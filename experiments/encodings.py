"""Formulas that name the pairs of neighbouring masks, beside those with a counterpart b'.

Both are made of the published models and of a sample of the paper's suite, and given to Ganak and
to ApproxMC, each with the same limits; the seconds include making the formula.

    python -m experiments.encodings --sample 10 --limit-seconds 60
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from argparse import Namespace
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.datasets import PROJECT
from benchmarks.harness.instances import Instance, paper_instances, stratified_sample
from benchmarks.harness.records import read_run, surroundings
from benchmarks.harness.tables import markdown
from experiments.methods import zero_names
from xcount import Ensemble, Grid, load
from xcount.baselines.cnf import encode as encoding
from xcount.counters import counter
from xcount.counters.settings import Settings
from xcount.problem.problem import Problem
from xcount.question.query import Query

RESULTS = PROJECT / "benchmarks" / "results"
FILE = "encodings.json"
KINDS = {"counterpart": 0, "pairs": encoding.MAX_PAIRS}
"""The kinds of formulas, and how many pairs of masks each may name."""
COUNTERS = ("cnf-ganak", "cnf-approxmc")
TITLES = ("Ganak", "ApproxMC")
PUBLISHED_TREES = (3, 5)
MEMORY_BYTES = 4 << 30

Row = Mapping[str, Any]


def published_problem(n_trees: int) -> Problem:
    """Return the question that the paper's authors publish a count of, about their model."""
    import xgboost
    from sklearn.datasets import load_diabetes
    from sklearn.model_selection import train_test_split

    rows, target = load_diabetes(return_X_y=True)
    train, _, train_target, _ = train_test_split(rows, target, test_size=0.2, random_state=42)
    parameters = {"tree_method": "hist", "max_depth": 3, "eta": 0.1, "nthread": 1}
    matrix = xgboost.DMatrix(train, train_target)
    return _problem(load(xgboost.train(parameters, matrix, n_trees)), (2,), "2", 1, 3)


def _problem(
    ensemble: Ensemble,
    sensitive: Sequence[int],
    gap: str,
    distance: int | None,
    precision: int | None,
) -> Problem:
    query = Query.of(
        ensemble,
        list(sensitive),
        gap,
        distance="any" if distance is None else distance,
        precision="exact" if precision is None else precision,
    )
    return Problem(ensemble, Grid.of(ensemble), query)


def problems(instances: Iterable[Instance]) -> Iterator[tuple[str, Problem]]:
    """Yield the published models' questions, and those of a suite, by name."""
    for n_trees in PUBLISHED_TREES:
        yield f"published, {n_trees} trees", published_problem(n_trees)
    for i in instances:
        yield i.name, _problem(load(i.model), i.sensitive, i.gap, i.distance, i.precision)


def measure(problem: Problem, kind: str, limit_seconds: float) -> Row:
    """Make one kind of formula of a question; return its size and how the counters fare."""
    encoding.MAX_PAIRS = KINDS[kind]
    formula = encoding.encode(problem)
    row: dict[str, Any] = {"variables": formula.n_variables, "clauses": formula.n_clauses}
    for method in COUNTERS:
        settings = Settings(timeout_seconds=limit_seconds, memory_bytes=MEMORY_BYTES, jobs=1)
        started = time.perf_counter()
        tally = counter(method)(problem, settings)
        seconds = time.perf_counter() - started
        row[method] = round(seconds, 2) if tally.stop_reason == "complete" else None
    return row


def run(options: Namespace) -> dict[str, Any]:
    """Measure the sample with both kinds of formulas."""
    chosen = stratified_sample(paper_instances(None, options.cache, options.data), options.sample)
    found: dict[str, Any] = {"limit_seconds": options.limit_seconds, **surroundings()}
    found["rows"] = []
    for name, problem in problems(chosen):
        kinds = {kind: measure(problem, kind, options.limit_seconds) for kind in KINDS}
        found["rows"].append({"name": name, "masks": problem.n_masks, **kinds})
        print(found["rows"][-1], file=sys.stderr)
    return found


def report(found: Mapping[str, Any], zeros: Container[str]) -> str:
    """Return the sizes and the seconds as Markdown; ``zeros`` names what has the count 0."""
    rows = [
        [
            row["name"],
            "0" if row["name"] in zeros else "not 0",
            str(row["masks"]),
            *(f"{row[kind]['clauses']:,}" for kind in KINDS),
            *(_seconds(row[kind][method]) for method in COUNTERS for kind in KINDS),
        ]
        for row in found["rows"]
    ]
    header = ["instance", "count", "masks", "clauses: counterpart", "pairs"]
    for title in TITLES:
        header += [f"{title} s: counterpart", "pairs"]
    machine = found["machine"]
    others = [row for row in found["rows"] if row["name"] not in zeros]
    solved = f"{_solved(found['rows'])}; of the {len(others)} that are not 0: {_solved(others)}."
    return "\n\n".join(
        [
            markdown(header, rows),
            f"Solved of all {len(rows)}, with a counterpart and by pairs: {solved} "
            f"At most {found['limit_seconds']:g} s each, one thread; {machine['processor']}, "
            f"{machine['cores']} cores; revision {found['revision']}; {found['date']}, load "
            f"{found['load']:g} at the start.",
        ]
    )


def _solved(rows: Sequence[Row]) -> str:
    """Say how many are solved with each kind."""
    parts = []
    for title, method in zip(TITLES, COUNTERS, strict=True):
        solved = (sum(row[kind][method] is not None for row in rows) for kind in KINDS)
        parts.append(f"{title} {' and '.join(map(str, solved))}")
    return ", ".join(parts)


def known_zeros() -> set[str]:
    """Return the names of the instances of the suite whose count is 0, going by the kept run."""
    path = RESULTS / "paper-exact.jsonl.gz"
    return zero_names([read_run(path)]) if path.exists() else set()


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments.encodings", description=__doc__)
    parser.add_argument("--data", help="folder of the data sets (default: XCOUNT_DATA)")
    parser.add_argument("--cache", help="folder of the models (default: XCOUNT_CACHE)")
    parser.add_argument("--sample", type=int, default=10, metavar="N")
    parser.add_argument("--limit-seconds", type=float, default=60, metavar="S")
    parser.add_argument("--output", type=Path, default=RESULTS / FILE)
    options = parser.parse_args(arguments)
    found = run(options)
    options.output.write_text(json.dumps(found, indent=1) + "\n")
    print(report(found, known_zeros()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
