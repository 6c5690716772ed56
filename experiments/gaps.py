"""The gap sweep: every used feature of the 40 Adult models, gaps 0.02, 0.2, 2 and 20.

The paper shows that small gaps slow its algorithm down. The tables say by gap what is solved, how
long it takes, and how much of the input space is sensitive.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from pathlib import Path

from benchmarks.harness.plots import figure, legend_beside, line_style
from benchmarks.harness.records import Run, Runs
from benchmarks.harness.tables import (
    conditions,
    grouped_table,
    is_solved,
    joined,
    markdown,
    picture,
    without_zeros_table,
)
from experiments.methods import zero_names
from experiments.plots import draw_cactus, draw_limits
from experiments.suites import GAPS


def share_table(run: Run) -> str:
    """Return how much of the input space is sensitive at each gap."""
    rows = []
    for gap in GAPS:
        shares = [float(r["share"]) for r in run.records if r["gap"] == gap and is_solved(r)]
        if shares:
            numbers = (statistics.median(shares), statistics.fmean(shares), max(shares))
            zeros = sum(share == 0 for share in shares)
            rows.append([gap, len(shares), zeros, *(f"{n:.3g}" for n in numbers)])
    header = ["gap", "solved", "share 0", "median share", "mean share", "largest share"]
    return markdown(header, rows)


def pace_table(run: Run) -> str:
    """Return how long each gap takes in units of the largest, on questions solved with all gaps."""
    asked: dict[tuple[str, ...], dict[str, float]] = defaultdict(dict)
    for record in filter(is_solved, run.records):
        question = (record["model"], *map(str, record["sensitive"]))
        asked[question][record["gap"]] = record["seconds"]
    complete = [seconds for seconds in asked.values() if len(seconds) == len(GAPS)]
    rows = []
    for gap in GAPS if complete else ():
        ratios = [seconds[gap] / seconds[GAPS[-1]] for seconds in complete]
        part = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else []
        quartiles = f"{part[0]:.2f} to {part[2]:.2f}" if part else ""
        rows.append([gap, len(ratios), f"{statistics.median(ratios):.2f}", quartiles])
    header = [
        "gap",
        "questions solved with every gap",
        f"time / that of gap {GAPS[-1]}",
        "quartiles",
    ]
    return markdown(header, rows)


def draw(run: Run, path: Path) -> None:
    """Draw a cactus plot with one line for each gap."""
    with figure(path) as axes:
        for i, gap in enumerate(GAPS):
            records = [r for r in run.records if r["gap"] == gap]
            draw_cactus(axes, records, f"gap {gap}", line_style(i))
        axes.set_title(f"Adult, all used features, by gap ({run.settings.method})")
        axes.set_xlabel("instances solved")
        axes.set_ylabel("seconds an instance")
        draw_limits(axes, [run])
        legend_beside(axes)


def section(runs: Runs, folder: Path) -> str:
    """Return every run of the sweep."""
    parts = []
    for run in runs["gaps"]:
        path = folder / f"gaps-{run.settings.method}.svg"
        draw(run, path)
        parts += [conditions(run), grouped_table(run, "gap", lambda record: record["gap"])]
        parts += [pace_table(run), share_table(run)]
        parts += [picture(path, f"gap sweep, {run.settings.method}")]
    zeros = zero_names(runs["gaps"])
    parts += ["Without the counts that are 0:"]
    return joined(*parts, without_zeros_table(runs["gaps"], zeros, "gap", "gap"))
