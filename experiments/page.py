"""Turns the runs in a folder into tables and pictures, and puts them into the pages in docs.

A folder of results holds runs (``SUITE-METHOD.jsonl``, or the same packed as ``.jsonl.gz``). For
each section one Markdown file and its pictures are written beside them; docs/experiments.md,
docs/cluster.md and docs/reproducibility.md have places for sections, between
``<!-- begin NAME -->`` and ``<!-- end NAME -->``, and are filled from them.

    python -m experiments.page                     # benchmarks/results -> the pages in docs
    python -m experiments.page --pack              # pack the runs first
    python -m experiments.page benchmarks/runs/short --no-page
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks import cluster, limits, weights, wild
from benchmarks.harness import plots
from benchmarks.harness.datasets import BY_KEY, PROJECT
from benchmarks.harness.records import Run, read_run
from benchmarks.harness.tables import (
    TITLES,
    conditions,
    dataset_table,
    growth_tables,
    is_solved,
    limits_table,
    markdown,
    method_table,
    par2,
    unsolved_table,
    without_zeros_table,
)
from experiments import (
    ablations,
    accuracy,
    archive,
    beyond,
    durations,
    encodings,
    gaps,
    methods,
    recovery,
    regularisation,
    regularisation_report,
    sampling,
)
from experiments.archive import RESULTS
from xcount.counters.exact import COVER_PART

PAGES = tuple(
    PROJECT / "docs" / name for name in ("experiments.md", "cluster.md", "reproducibility.md")
)
PAPER_PAR2 = {
    "XCount": "1937.474",
    "Ganak": "2901.421",
    "ApproxMC": "3005.374",
    "ADD baseline": "3428.461",
}
PAPER_METHOD = "xcount"
NOT_ZERO = "where the count is not 0"
MANY = 40
"""Instances that a run needs to be drawn by number of guards: fewer make ranges of one or two."""
APPROXIMATE = ("auto", "sample", "xcount", "xcount-sum-first", "cnf-approxmc")

Runs = Mapping[str, Sequence[Run]]
"""The runs of each suite, by its name."""


def run_files(folder: Path) -> list[Path]:
    """Return the files of runs in a folder; a packed run yields to one that is not packed."""
    plain = list(folder.glob("*-*.jsonl"))
    packed = [path for path in folder.glob("*-*.jsonl.gz") if path.with_suffix("") not in plain]
    return sorted([*plain, *packed])


def read_runs(folder: Path) -> list[Run]:
    """Return the runs in a folder that have any records."""
    return [run for run in map(read_run, run_files(folder)) if run.records]


def runs_by_suite(folder: Path) -> Runs:
    """Return the runs in a folder by their suites."""
    by_suite: dict[str, list[Run]] = defaultdict(list)
    for run in read_runs(folder):
        by_suite[run.settings.suite].append(run)
    return by_suite


def pack(folder: Path) -> None:
    """Replace each run by its packed form; the same run gives the same bytes."""
    for path in folder.glob("*-*.jsonl"):
        path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
        path.unlink()


def picture(path: Path, title: str) -> str:
    """Return the Markdown of a picture beside the text."""
    return f"![{title}]({path.name})"


def guards_section(runs: Runs, folder: Path) -> str:
    """Table 1: instances and guards of each data set, beside the paper's."""
    rows = []
    for key, spec in BY_KEY.items():
        found = {r["name"]: r for run in runs["paper"] for r in run.records if r["dataset"] == key}
        if found:
            guards = [record["n_guards"] for record in found.values()]
            numbers = [len(found), min(guards), max(guards)]
            theirs = [spec.paper_instances, *spec.paper_guards]
            rows.append([spec.title, *map(str, numbers), *map(str, theirs), spec.note])
    header = ["data set", "instances", "guards, fewest", "most"]
    header += ["paper: instances", "fewest", "most", "our copy of the data"]
    return markdown(header, rows)


def paper_section(runs: Runs, folder: Path) -> str:
    """Table 2 and the cactus plots: the whole suite."""
    zeros = methods.zero_names(runs["paper"])
    rows = [[f"`{run.settings.method}`", "here", *_solved(run, zeros)] for run in runs["paper"]]
    for run in runs.get("hard", ()):
        method = run.settings.method
        for first in (each for each in runs["paper"] if each.settings.method == method):
            numbers = _solved(_asked_again(first, run), zeros)
            rows.append([f"`{method}`, what it gave up again", "here", *numbers])
    limit = f"{plots.PAPER_LIMIT_SECONDS:g}"
    for name, solved in plots.PAPER_SOLVED.items():
        percent = f"{100 * solved / plots.PAPER_INSTANCES:.2f}"
        numbers = [str(plots.PAPER_INSTANCES), "-", limit, str(solved), percent]
        numbers += ["-", PAPER_PAR2[name]]
        rows.append([name, "paper", *numbers])
    header = ["method", "where", "instances", "zero", "limit s", "solved", "%"]
    table = markdown([*header, "% where not 0", "PAR-2 s at 1800 s"], rows)
    parts = [table, "The same without the counts that are 0, each method with its own limit:"]
    parts += [_without_zeros(runs["paper"], "data set", "dataset", TITLES)]
    parts += [
        "All instances:",
        method_table(runs["paper"]),
        "What shorter limits would have solved, going by the seconds of these runs:",
        limits_table(runs["paper"], zeros),
    ]
    for run in runs["paper"]:
        parts += [conditions(run), dataset_table(run), unsolved_table(run, 20)]
    for run in runs.get("hard", ()):
        parts += ["What was given up, once more with a longer limit:", conditions(run)]
        parts += [method_table([run]), _ending_early(run), unsolved_table(run, 20)]
    cactus, by_set = folder / "paper-cactus.svg", folder / "paper-cactus-by-set.svg"
    plots.cactus(runs["paper"], cactus, paper=plots.PAPER_SHARES)
    plots.cactus_by_dataset(runs["paper"], by_set)
    parts += [picture(cactus, "instances solved within a time")]
    parts += [picture(by_set, "the same by data set")]
    return "\n\n".join(part for part in parts if part)


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
    n_solved, limit = sum(map(is_solved, run.records)), run.settings.limit_seconds
    score = par2(run.records, replace(run.settings, limit_seconds=plots.PAPER_LIMIT_SECONDS))
    others = [record for record in run.records if record["name"] not in zeros]
    percent, of_others = (
        f"{100 * statistics.fmean(map(is_solved, records)):.2f}" if records else "-"
        for records in (run.records, others)
    )
    n, n_zero = len(run.records), len(run.records) - len(others)
    numbers = [str(n), str(n_zero), f"{limit:g}", str(n_solved), percent]
    return [*numbers, of_others, f"{score:.3f}"]


def _ending_early(run: Run) -> str:
    """Say when ``exact`` gave up, and why that may be before its limit."""
    limit = run.settings.limit_seconds
    ends = [100 * float(r["seconds"]) / limit for r in run.records if not is_solved(r)]
    if not ends:
        return ""
    return (
        f"`exact` counts for {1 - COVER_PART:.0%} of its time and keeps the rest for a cover of "
        f"what it leaves open, which may need less: it gave up after {min(ends):.0f} to "
        f"{max(ends):.0f} % of its limit."
    )


def _without_zeros(
    runs: Sequence[Run], title: str, trait: str, names: Mapping[str, str] | None = None
) -> str:
    """Return what is left of the runs of a suite without the zeros that any of them proves."""
    zeros = methods.zero_names(runs)
    return without_zeros_table(runs, zeros, title, lambda record: record[trait], names)


def methods_section(runs: Runs, folder: Path) -> str:
    """All methods side by side on one sample, and each on all that it was asked."""
    ordered = _in_order(runs["methods"], methods.METHODS)
    shared = methods.common(ordered)
    many = [run for run in ordered if len(run.records) >= MANY] or ordered
    four = [run for run in shared if run.settings.method in plots.PAPER_TOOLS]
    parts = [methods.report(shared)]
    if any(len(run.records) > len(shared[0].records) for run in ordered):
        parts += [
            "Each method on all that it was asked:",
            methods.method_table(ordered, runs.get("paper", ())),
        ]
    others = partial(methods.without, names=methods.zero_names([*ordered, *runs.get("paper", ())]))
    tools_not_zero = partial(plots.cactus, title=f"The paper's four tools {NOT_ZERO}")
    guards_not_zero = partial(plots.completion_by_guards, title=f"Completion {NOT_ZERO}")
    tools, guards = "the paper's four tools", "completion by number of guards"
    for name, title, draw, drawn in (
        ("cactus", "all methods on one sample", plots.cactus, shared),
        ("cactus-paper", tools, plots.cactus_of_paper, four),
        ("cactus-by-set", "by data set, all that was asked", plots.cactus_by_dataset, ordered),
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
    return "\n\n".join(part for part in parts if part)


def accuracy_section(runs: Runs, folder: Path) -> str:
    """Relative errors of the approximate methods against exact counts."""
    asked = [*runs.get("paper", ()), *runs.get("methods", ())]
    exact = accuracy.exact_counts([*asked, *runs.get("hard", ())])
    judged = [run for run in asked if run.settings.method in APPROXIMATE]
    errors = [accuracy.errors_of(run, exact) for run in judged]
    table = accuracy.error_table(errors)
    shown = [found for found in errors if found.relative]
    path = folder / "accuracy.svg"
    if not shown:
        return table
    accuracy.spread(shown, path)
    return "\n\n".join([table, picture(path, "relative errors")])


def scalability_section(runs: Runs, folder: Path) -> str:
    """The heat map of trees and depth, and completion by number of guards."""
    path = folder / "paper-guards.svg"
    plots.completion_by_guards(runs["paper"], path)
    parts = [picture(path, "completion by number of guards")]
    for run in runs["paper"]:
        path = folder / f"paper-heat-{run.settings.method}.svg"
        plots.heat_map(run, path)
        parts.append(picture(path, f"mean seconds by trees and depth, {run.settings.method}"))
    return "\n\n".join(parts)


def ablations_section(runs: Runs, folder: Path) -> str:
    """The paper's ablations, and ours."""
    ordered = _in_order(runs["ablations"], tuple(ablations.LABELS))
    path = folder / "ablations-cactus.svg"
    paper = {
        name: solved / ablations.PAPER_INSTANCES for name, (solved, _) in ablations.PAPER.items()
    }
    plots.cactus(ordered, path, "Ablations on Adult", paper)
    return "\n\n".join([ablations.report(ordered), picture(path, "ablations on Adult")])


def gaps_section(runs: Runs, folder: Path) -> str:
    """The gap sweep."""
    parts = []
    for run in runs["gaps"]:
        path = folder / f"gaps-{run.settings.method}.svg"
        gaps.draw(run, path)
        parts += [gaps.report(run), picture(path, f"gap sweep, {run.settings.method}")]
    parts += ["Without the counts that are 0:", _without_zeros(runs["gaps"], "gap", "gap")]
    return "\n\n".join(parts)


def regularisation_section(runs: Runs, folder: Path) -> str:
    """The regularisation study."""
    lines = regularisation.read(folder / regularisation.FILE)
    one_split = folder / "regularisation-configurations.svg"
    regularisation_report.draw_configurations(lines, one_split)
    all_splits = folder / "regularisation.svg"
    regularisation_report.draw(lines, all_splits)
    parts = [regularisation_report.report(lines)]
    parts += [picture(one_split, "relative sensitivity of the configurations of one split")]
    parts += [picture(all_splits, "relative sensitivity of each split")]
    return "\n\n".join(parts)


def recovery_section(runs: Runs, folder: Path) -> str:
    """The settings that come nearest to the paper's models."""
    return recovery.table(recovery.read_notes(folder / recovery.FILE))


def frontier_section(runs: Runs, folder: Path) -> str:
    """Models of 200 to 1000 trees."""
    path = folder / "frontier-growth.svg"
    plots.growth(runs["frontier"], path)
    parts = [method_table(runs["frontier"])]
    for run in runs["frontier"]:
        parts += [conditions(run), growth_tables(run), unsolved_table(run, 10)]
    parts += [picture(path, "how time grows")]
    return "\n\n".join(part for part in parts if part)


def beyond_section(runs: Runs, folder: Path) -> str:
    """Other libraries."""
    path = folder / "beyond.svg"
    beyond.draw(runs["beyond"][0], path)
    text = beyond.report(runs["beyond"][0])
    return "\n\n".join([text, picture(path, "sensitivity of four libraries' models")])


def weights_section(runs: Runs, folder: Path) -> str:
    """Regions beside volume, marginals and rows."""
    found = json.loads((folder / weights.FILE).read_text())
    path = folder / "weights.svg"
    weights.draw(found, path)
    return "\n\n".join([weights.report(found), picture(path, "four measures of sensitivity")])


def sampling_section(runs: Runs, folder: Path) -> str:
    """How fast samples are, intervals against time, share against trees."""
    found = json.loads((folder / sampling.FILE).read_text())
    tables = sampling.report(found)
    parts = [tables["speed"]] if "speed" in tables else []
    if "intervals" in tables:
        path = folder / "sampling-intervals.svg"
        sampling.draw_intervals(found["intervals"], path)
        parts += [tables["intervals"], picture(path, "intervals against time")]
    if "rarity" in tables:
        path = folder / "sampling-rarity.svg"
        sampling.draw_rarity(found["rarity"], path)
        parts += [tables["rarity"], picture(path, "share against trees")]
    return "\n\n".join(parts)


def encodings_section(runs: Runs, folder: Path) -> str:
    """What the kind of formula is worth to the CNF counters."""
    zeros = methods.zero_names(runs.get("paper", ()))
    return encodings.report(json.loads((folder / encodings.FILE).read_text()), zeros)


def wild_section(runs: Runs, folder: Path) -> str:
    """Models as people have them: an earlier state and this one."""
    return wild.report(read_run(folder / wild.FILE))


def wild_all_section(runs: Runs, folder: Path) -> str:
    """Models as people have them: all questions."""
    return wild.report(read_run(folder / wild.FILE_OF_ALL))


def limits_section(runs: Runs, folder: Path) -> str:
    """Whether limits hold."""
    return limits.report(read_run(folder / limits.FILE))


def durations_section(runs: Runs, folder: Path) -> str:
    """How long both versions take."""
    return durations.report(runs, folder)


def cluster_section(runs: Runs, folder: Path) -> str:
    """A cluster of this machine, and simulated ones."""
    return cluster.report(cluster.read_lines(folder))


def _in_order(runs: Sequence[Run], order: Sequence[str]) -> list[Run]:
    return sorted(runs, key=lambda run: order.index(run.settings.method))


SECTIONS: dict[str, tuple[str, Callable[[Runs, Path], str]]] = {
    "recovery": (recovery.FILE, recovery_section),
    "guards": ("paper", guards_section),
    "paper": ("paper", paper_section),
    "methods": ("methods", methods_section),
    "accuracy": ("methods", accuracy_section),
    "scalability": ("paper", scalability_section),
    "encodings": (encodings.FILE, encodings_section),
    "ablations": ("ablations", ablations_section),
    "gaps": ("gaps", gaps_section),
    "regularisation": (regularisation.FILE, regularisation_section),
    "frontier": ("frontier", frontier_section),
    "wild": (wild.FILE, wild_section),
    "wild_all": (wild.FILE_OF_ALL, wild_all_section),
    "limits": (limits.FILE, limits_section),
    "beyond": ("beyond", beyond_section),
    "weights": (weights.FILE, weights_section),
    "sampling": (sampling.FILE, sampling_section),
    "cluster": (cluster.FILE, cluster_section),
    "durations": ("hard", durations_section),
}
"""Each section: the suite or the file that it cannot do without, and what writes it.

Durations go by whole runs: only those have the suite ``hard``.
"""


def write_results(folder: Path) -> list[Path]:
    """Write the sections that the runs in a folder allow; return their files."""
    by_suite = runs_by_suite(folder)
    written = []
    for name, (needed, write) in SECTIONS.items():
        if needed in by_suite or (folder / needed).is_file():
            path = folder / f"{name}.md"
            path.write_text(write(by_suite, folder) + "\n")
            written.append(path)
    return written


def fill(page: str, folder: Path, link: str) -> str:
    """Return a page with each marked place filled from a folder of results.

    ``link`` leads from the page to the folder; it is put before the names of pictures.
    """

    def place(match: re.Match[str]) -> str:
        path = folder / f"{match[1]}.md"
        text = path.read_text() if path.exists() else "*Not run.*\n"
        text = re.sub(r"(!\[[^]]*\]\()", rf"\1{link}/", text)
        return f"<!-- begin {match[1]} -->\n\n{text}\n<!-- end {match[1]} -->"

    return re.sub(r"<!-- begin (\w+) -->.*?<!-- end \1 -->", place, page, flags=re.DOTALL)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments.page", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=RESULTS)
    parser.add_argument("--pack", action="store_true", help="pack the runs in the folder")
    parser.add_argument("--no-page", action="store_true", help="leave the pages in docs alone")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        parser.error(f"{options.folder} is no folder")
    if options.pack:
        pack(options.folder)
    for path in write_results(options.folder):
        print(path)
    if not options.no_page:
        for page in PAGES:
            page.write_text(fill(page.read_text(), options.folder, "../benchmarks/results"))
            print(page)
        print(archive.write_sums(options.folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
