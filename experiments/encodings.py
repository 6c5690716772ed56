"""Compare formulas that name the pairs of neighbouring masks with those that have a counterpart b'.

Both are made from the published models and a sample of the paper's suite, and given to Ganak and
ApproxMC under the same limits; the seconds include making the formula.

    python -m experiments.encodings --sample 10 --limit-seconds 60
"""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.instances import Instance, Sources, paper_instances, stratified_sample
from benchmarks.harness.options import parser_of
from benchmarks.harness.records import RESULTS, RUNS, Runs, runs_by_suite, surroundings
from benchmarks.harness.tables import joined, made_on, markdown
from experiments.methods import zero_names
from xcount import Grid, load
from xcount.baselines.cnf import encode as encoding
from xcount.counters import counter
from xcount.counters.settings import Settings
from xcount.problem.problem import Problem
from xcount.question.query import Query

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
    ensemble = load(xgboost.train(parameters, xgboost.DMatrix(train, train_target), n_trees))
    query = Query.of(ensemble, [2], "2", distance=1, precision=3)
    return Problem(ensemble, Grid.of(ensemble), query)


def problems(instances: Iterable[Instance]) -> Iterator[tuple[str, Problem]]:
    """Yield the published models' questions, and those of a suite, by name."""
    for n_trees in PUBLISHED_TREES:
        yield f"published, {n_trees} trees", published_problem(n_trees)
    for instance in instances:
        yield instance.name, instance.problem()


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
    chosen = stratified_sample(paper_instances(Sources.of(options)), options.sample)
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
    others = [row for row in found["rows"] if row["name"] not in zeros]
    solved = f"{_solved(found['rows'])}; of the {len(others)} that are not 0: {_solved(others)}."
    return joined(
        markdown(header, rows),
        f"Solved of all {len(rows)}, with a counterpart and by pairs: {solved} "
        f"At most {found['limit_seconds']:g} s each, one thread; {made_on(found)}",
    )


def _solved(rows: Sequence[Row]) -> str:
    """Say how many are solved with each kind."""
    parts = []
    for title, method in zip(TITLES, COUNTERS, strict=True):
        solved = (sum(row[kind][method] is not None for row in rows) for kind in KINDS)
        parts.append(f"{title} {' and '.join(map(str, solved))}")
    return ", ".join(parts)


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def section(runs: Runs, folder: Path) -> str:
    """Return the comparison that a folder holds."""
    zeros = zero_names(runs.get("paper", ()))
    return report(json.loads((folder / FILE).read_text()), zeros)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("experiments.encodings", __doc__, RUNS / FILE, limit_seconds=60)
    parser.add_argument("--sample", type=int, default=10, metavar="N")
    options = parser.parse_args(arguments)
    found = run(options)
    options.output.write_text(json.dumps(found, indent=1) + "\n")
    print(report(found, zero_names(runs_by_suite(RESULTS)["paper"])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
