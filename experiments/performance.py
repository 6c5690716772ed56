"""Tables and pictures of whole suites: the paper's, and the larger models."""

from __future__ import annotations

import statistics
from collections.abc import Container
from dataclasses import replace
from pathlib import Path

from benchmarks.harness.datasets import BY_KEY
from benchmarks.harness.records import Run, Runs
from benchmarks.harness.tables import (
    TITLES,
    conditions,
    dataset_table,
    growth_tables,
    is_solved,
    joined,
    limits_table,
    markdown,
    method_table,
    par2,
    picture,
    unsolved_table,
    without_zeros_table,
)
from experiments import paper, plots
from experiments.methods import zero_names
from xcount.counters.costs import COVER_PART


def guards_section(runs: Runs, folder: Path) -> str:
    """Return table 1: instances and guards of each data set, beside the paper's."""
    rows = []
    for key, spec in BY_KEY.items():
        found = {r["name"]: r for run in runs["paper"] for r in run.records if r["dataset"] == key}
        if found:
            guards = [record["n_guards"] for record in found.values()]
            theirs = [spec.paper_instances, *spec.paper_guards]
            rows.append([spec.title, len(found), min(guards), max(guards), *theirs, spec.note])
    header = ["data set", "instances", "guards, fewest", "most"]
    header += ["paper: instances", "fewest", "most", "our copy of the data"]
    return markdown(header, rows)


def solved_table(runs: Runs) -> str:
    """Return table 2: how much of the suite is solved, beside the paper's numbers."""
    zeros = zero_names(runs["paper"])
    rows = [[f"`{run.settings.method}`", "here", *_solved(run, zeros)] for run in runs["paper"]]
    for run in runs.get("hard", ()):
        method = run.settings.method
        for first in (each for each in runs["paper"] if each.settings.method == method):
            numbers = _solved(_asked_again(first, run), zeros)
            rows.append([f"`{method}`, what it gave up again", "here", *numbers])
    for name, (solved, score) in paper.SOLVED.items():
        percent = f"{100 * solved / paper.N_INSTANCES:.2f}"
        theirs = [paper.N_INSTANCES, "-", f"{paper.LIMIT_SECONDS:g}", solved, percent, "-", score]
        rows.append([name, "paper", *map(str, theirs)])
    header = ["method", "where", "instances", "zero", "limit s", "solved", "%"]
    return markdown([*header, "% where not 0", "PAR-2 s at 1800 s"], rows)


def solved_section(runs: Runs, folder: Path) -> str:
    """Return table 2 and the cactus plot."""
    cactus = folder / "paper-cactus.svg"
    plots.cactus(runs["paper"], cactus, shares=paper.SHARES)
    return joined(solved_table(runs), picture(cactus, "instances solved within a time"))


def suite_tables(runs: Runs) -> str:
    """Return the suite in detail: without zeros, with shorter limits, by data set."""
    zeros = zero_names(runs["paper"])
    parts = ["Without the counts that are 0, each method with its own limit:"]
    parts += [without_zeros_table(runs["paper"], zeros, "data set", "dataset", TITLES)]
    parts += ["All instances:", method_table(runs["paper"])]
    parts += ["What shorter limits would have solved, judging by the seconds of these runs:"]
    parts += [limits_table(runs["paper"], zeros)]
    for run in runs["paper"]:
        parts += [conditions(run), dataset_table(run), unsolved_table(run, 20)]
    for run in runs.get("hard", ()):
        parts += ["What was given up, once more with a longer limit:", conditions(run)]
        parts += [method_table([run]), _ending_early(run), unsolved_table(run, 20)]
    return joined(*parts)


def section(runs: Runs, folder: Path) -> str:
    """Return the suite in detail, and a cactus plot for each data set."""
    by_set = folder / "paper-cactus-by-set.svg"
    plots.cactus_by_dataset(runs["paper"], by_set)
    return joined(suite_tables(runs), picture(by_set, "the same by data set"))


def _asked_again(run: Run, again: Run) -> Run:
    """Return a run with the answers of another in place of its own, where there are any."""
    found = {record["name"]: record for record in again.records}
    records = tuple(found.get(record["name"], record) for record in run.records)
    return replace(run, records=records, settings=again.settings)


def _solved(run: Run, zeros: Container[str]) -> list[str]:
    """Return what a run solved, and its PAR-2 with the paper's penalty for the rest.

    A run with a shorter limit than the paper's would score no worse with the paper's: whatever it
    solved in more time would cost less than the penalty.
    """
    score = par2(run.records, replace(run.settings, limit_seconds=paper.LIMIT_SECONDS))
    others = [record for record in run.records if record["name"] not in zeros]
    percent, of_others = (
        f"{100 * statistics.fmean(map(is_solved, records)):.2f}" if records else "-"
        for records in (run.records, others)
    )
    n, n_solved = len(run.records), sum(map(is_solved, run.records))
    limit = f"{run.settings.limit_seconds:g}"
    numbers = [str(n), str(n - len(others)), limit, str(n_solved), percent]
    return [*numbers, of_others, f"{score:.3f}"]


def _ending_early(run: Run) -> str:
    """Say when ``exact`` gave up, and why that may be before its limit."""
    limit = run.settings.limit_seconds
    ends = [100 * float(r["seconds"]) / limit for r in run.records if not is_solved(r)]
    if not ends:
        return ""
    return (
        f"`exact` counts for {1 - COVER_PART:.0%} of its time and keeps the rest for a cover of "
        f"the undecided part, which may need less: it gave up after {min(ends):.0f} to "
        f"{max(ends):.0f} % of its limit."
    )


def scalability_section(runs: Runs, folder: Path) -> str:
    """Return completion by number of guards, and the heat maps of trees and depth."""
    path = folder / "paper-guards.svg"
    plots.completion_by_guards(runs["paper"], path)
    parts = [picture(path, "completion by number of guards")]
    for run in runs["paper"]:
        path = folder / f"paper-heat-{run.settings.method}.svg"
        plots.heat_map(run, path)
        parts.append(picture(path, f"mean seconds by trees and depth, {run.settings.method}"))
    return joined(*parts)


def frontier_section(runs: Runs, folder: Path) -> str:
    """Return the models of 200 to 1000 trees."""
    path = folder / "frontier-growth.svg"
    plots.growth(runs["frontier"], path)
    parts = [method_table(runs["frontier"])]
    for run in runs["frontier"]:
        parts += [conditions(run), growth_tables(run), unsolved_table(run, 10)]
    return joined(*parts, picture(path, "how time grows"))
