"""All methods side by side on one sample of the paper's suite: the paper's table, made again.

Every method answers the same instances in the same run, each instance in its own process under the
same limits. Afterwards the answers are held against each other: two exact counts that differ, or an
interval that misses an exact count, are listed by name.

    python -m experiments.methods --sample 100 --limit-seconds 60 --memory 4G
    python -m experiments.methods --methods exact cnf-ganak --max-trees 20 --sample 100
"""

from __future__ import annotations

import statistics
import sys
from argparse import Namespace
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.harness.datasets import DataError
from benchmarks.harness.instances import Instance, paper_instances, stratified_order
from benchmarks.harness.options import Suite, default_output, run_into, settings_of, suite_parser
from benchmarks.harness.records import RecordFile, ResumeError, Run, Status, read_run
from benchmarks.harness.tables import conditions, is_solved, loads, markdown, par2, solved_share

METHODS = (
    "auto",
    "exact",
    "sample",
    "xcount",
    "xcount-exact-union",
    "xcount-sum-first",
    "add-baseline",
    "add-baseline-plain",
    "cnf-ganak",
    "cnf-approxmc",
    "subproblems-cnf",
)
REFERENCE = "auto"

Record = Mapping[str, Any]
Order = Callable[[Sequence[Instance]], list[Instance]]
"""What puts instances into an order whose every beginning is a fair sample."""


def method_table(runs: Sequence[Run], known: Sequence[Run] = ()) -> str:
    """Return one row for each method: solved, PAR-2, and how its time compares with auto's.

    The numbers of the instances whose count is 0 stand in brackets; ``known`` are further runs
    that tell which those are.
    """
    reference = next((run for run in runs if run.settings.method == REFERENCE), None)
    zeros = zero_names([*runs, *known])
    rows = []
    for run in runs:
        solved = [record for record in run.records if is_solved(record)]
        exact = [record for record in solved if record["status"] == Status.EXACT]
        others = [record for record in run.records if record["name"] not in zeros]
        rows.append(
            [
                run.settings.method,
                *(_with_zeros(records, zeros) for records in (run.records, solved, exact)),
                *(solved_share(records) for records in (run.records, others)),
                *(f"{par2(records, run.settings):.3f}" for records in (run.records, others)),
                "-" if reference is None else _ratio(run, reference),
            ]
        )
    header = ["method", "instances (zeros)", "solved", "exact", "% solved (95 %)", "without zeros"]
    header += ["PAR-2 s", "without zeros"]
    return markdown([*header, f"median time / {REFERENCE}"], rows)


def common(runs: Sequence[Run]) -> list[Run]:
    """Return the runs with the instances that all of them were asked, and no others."""
    asked = [{record["name"] for record in run.records} for run in runs]
    shared = set.intersection(*asked) if asked else set()
    return [
        replace(run, records=tuple(r for r in run.records if r["name"] in shared)) for run in runs
    ]


def without(runs: Sequence[Run], names: Container[str]) -> list[Run]:
    """Return what is left of runs without some instances; runs of nothing else are left out."""
    left = [
        replace(run, records=tuple(r for r in run.records if r["name"] not in names))
        for run in runs
    ]
    return [run for run in left if run.records]


def zero_names(runs: Sequence[Run]) -> set[str]:
    """Return the names of the instances that some method has counted to be 0."""
    return {
        record["name"]
        for run in runs
        for record in run.records
        if record["status"] == Status.EXACT and record["count"] == 0
    }


def _with_zeros(records: Sequence[Record], zeros: set[str]) -> str:
    n_zero = sum(record["name"] in zeros for record in records)
    return f"{len(records)} ({n_zero})"


def _ratio(run: Run, reference: Run) -> str:
    """Return the median of the ratios of the times where both solved the instance."""
    times = {r["name"]: float(r["seconds"]) for r in reference.records if is_solved(r)}
    ratios = [
        float(record["seconds"]) / times[record["name"]]
        for record in run.records
        if is_solved(record) and times.get(record["name"], 0.0) > 0
    ]
    return f"{statistics.median(ratios):.1f}" if ratios else "-"


def comparison(runs: Sequence[Run]) -> tuple[dict[str, int], list[str]]:
    """Hold the answers of different methods against each other.

    Returns:
        How many exact counts of each method another method's exact count confirms, and a line for
        each contradiction. An interval with a confidence below 1 may miss now and then.
    """
    exact: dict[str, list[tuple[str, int]]] = {}
    for run in runs:
        for record in run.records:
            if record["status"] == Status.EXACT:
                exact.setdefault(record["name"], []).append((run.settings.method, record["count"]))
    confirmed = {run.settings.method: 0 for run in runs}
    lines = []
    for name, answers in exact.items():
        if len({count for _, count in answers}) > 1:
            lines.append(f"{name}: {', '.join(f'{m} {c}' for m, c in answers)}")
        elif len(answers) > 1:
            for method, _ in answers:
                confirmed[method] += 1
    for run in runs:
        for record in run.records:
            known = exact.get(record["name"])
            if known and "low" in record and not record["low"] <= known[0][1] <= record["high"]:
                lines.append(
                    f"{record['name']}: {run.settings.method} says {record['low']} to "
                    f"{record['high']}, {known[0][0]} {known[0][1]}"
                )
    return confirmed, lines


def report(runs: Sequence[Run]) -> str:
    """Return the tables of all methods as Markdown."""
    confirmed, contradictions = comparison(runs)
    agreement = markdown(
        ["method", "exact counts that another method confirms"],
        [[method, str(n)] for method, n in confirmed.items()],
    )
    found = "\n".join(f"- {line}" for line in contradictions) or "No contradictions."
    about = [conditions(runs[0]), loads(runs)]
    return "\n\n".join([*about, method_table(runs), agreement, found])


def run_method(method: str, instances: Sequence[Instance], options: Namespace) -> Path:
    """Run one method on all instances; return the file of its records."""
    options.method = method
    settings = settings_of(options)
    path = default_output(options)
    if options.output is not None:
        path = options.output / path.name
    records = RecordFile(path, settings, options.restart)
    print(f"{method}:", file=sys.stderr)
    run_into(records, instances, settings)
    return path


def suite(options: Namespace) -> list[Instance]:
    instances = paper_instances(options.only, options.cache, options.data)
    most = getattr(options, "max_trees", None)
    return instances if most is None else [i for i in instances if i.n_trees <= most]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = suite_parser("methods", __doc__, limit_seconds=60, isolated=True)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), metavar="METHOD")
    parser.add_argument("--max-trees", type=int, metavar="N", help="only models of that many trees")
    parser.set_defaults(sample=100)
    return run_methods(parser.parse_args(arguments), suite, report)


def run_methods(
    options: Namespace,
    suite: Suite,
    describe: Callable[[Sequence[Run]], str],
    order: Order = stratified_order,
) -> int:
    """Run every asked method on the same sample, and print what comes out."""
    try:
        instances = order(suite(options))[: options.sample]
        if options.list:
            print("\n".join(instance.name for instance in instances))
            return 0
        paths = [run_method(method, instances, options) for method in options.methods]
    except (DataError, ResumeError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on", file=sys.stderr)
        return 130
    print(describe([read_run(path) for path in paths]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
