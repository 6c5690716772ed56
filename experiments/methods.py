"""All methods side by side on one sample of the paper's suite: the paper's table, made again.

Every method answers the same instances, each in its own process under the same limits. Afterwards
the answers are compared with each other: two exact counts that differ, or an interval that misses
an exact count, are listed by name.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness.records import Run, Runs, Status
from benchmarks.harness.tables import (
    conditions,
    dataset_table,
    is_solved,
    joined,
    loads,
    markdown,
    par2,
    picture,
    solved_share,
    unsolved_table,
)
from experiments import paper, plots

REFERENCE = "auto"
PAPER_METHOD = "xcount"
NOT_ZERO = "where the count is not 0"
MANY = 40
"""Instances that a run needs to be drawn by number of guards: fewer make ranges of one or two."""

PAIRED = (*paper.TOOLS, "subproblems-cnf")
"""What is compared in pairs: the paper's tools, and its ablation with a model counter."""

Record = Mapping[str, Any]


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


def paired_table(runs: Sequence[Run]) -> str:
    """Return how every two tools of the paper compare on the instances that both were asked."""
    shown = [run for run in runs if run.settings.method in PAIRED]
    rows = []
    for first, second in itertools.combinations(shown, 2):
        one, other = (
            {record["name"]: is_solved(record) for record in run.records} for run in (first, second)
        )
        both = [(one[name], other[name]) for name in one if name in other]
        only_one, only_other = both.count((True, False)), both.count((False, True))
        names = [f"`{run.settings.method}`" for run in (first, second)]
        numbers = [len(both), both.count((True, True)), only_one, only_other]
        rows.append([*names, *numbers, f"{mcnemar(only_one, only_other):.2g}"])
    header = ["one", "other", "asked both", "both solve", "only the one", "only the other"]
    return markdown([*header, "p (McNemar)"], rows)


def mcnemar(only_one: int, only_other: int) -> float:
    """Return the p-value of McNemar's exact test: of a fair coin as far from even, both sides."""
    n, least = only_one + only_other, min(only_one, only_other)
    return float(min(1.0, 2 * sum(math.comb(n, k) for k in range(least + 1)) / 2**n))


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


def in_order(runs: Sequence[Run], order: Sequence[str]) -> list[Run]:
    """Return runs in the order of their methods."""
    return sorted(runs, key=lambda run: order.index(run.settings.method))


def section(runs: Runs, folder: Path) -> str:
    """Return all methods side by side on one sample, and each on all that it was asked."""
    ordered = in_order(runs["methods"], tuple(plots.METHOD_STYLES))
    shared = common(ordered)
    many = [run for run in ordered if len(run.records) >= MANY] or ordered
    four = [run for run in shared if run.settings.method in paper.TOOLS]
    parts = [report(shared)]
    if any(len(run.records) > len(shared[0].records) for run in ordered):
        parts += ["Each method on all that it was asked:"]
        parts += [method_table(ordered, runs.get("paper", ()))]
    parts += ["The paper's tools in pairs, each on all that both were asked:"]
    parts += [paired_table(ordered)]
    others = partial(without, names=zero_names([*ordered, *runs.get("paper", ())]))
    tools_not_zero = partial(plots.cactus, title=f"The paper's four tools {NOT_ZERO}")
    guards_not_zero = partial(plots.completion_by_guards, title=f"Completion {NOT_ZERO}")
    tools, guards = "the paper's four tools", "completion by number of guards"
    for name, title, draw, drawn in (
        ("cactus", "all methods on one sample", plots.cactus, shared),
        ("cactus-paper", tools, plots.cactus_of_paper, four),
        ("cactus-by-set", "by data set, on one sample", plots.cactus_by_dataset, shared),
        ("guards", guards, plots.completion_by_guards, many),
        ("cactus-paper-not-zero", f"{tools} {NOT_ZERO}", tools_not_zero, others(four)),
        ("guards-not-zero", f"{guards} {NOT_ZERO}", guards_not_zero, others(many)),
    ):
        if drawn:
            path = folder / f"methods-{name}.svg"
            draw(drawn, path)
            parts.append(picture(path, title))
    for run in ordered:
        if run.settings.method == PAPER_METHOD:
            parts += [f"`{PAPER_METHOD}` by data set:", dataset_table(run), unsolved_table(run)]
            path = folder / f"methods-heat-{PAPER_METHOD}.svg"
            plots.heat_map(run, path)
            parts.append(picture(path, f"mean seconds by trees and depth, {PAPER_METHOD}"))
    return joined(*parts)
