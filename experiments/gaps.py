"""Runs the gap sweep: every used feature of the 40 Adult models, gaps 0.02, 0.2, 2 and 20.

The paper shows that small gaps slow its algorithm down; the summary tells by gap what is solved,
how long it takes, and how much of the input space is sensitive.

    python -m experiments.gaps --method auto
"""

from __future__ import annotations

import statistics
import sys
from argparse import Namespace
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.instances import Instance, paper_instances
from benchmarks.harness.options import run_command, suite_parser
from benchmarks.harness.plots import draw_cactus, draw_limits, figure, legend_beside, line_style
from benchmarks.harness.records import Run
from benchmarks.harness.tables import conditions, grouped_table, is_solved, markdown

GAPS = ("0.02", "0.2", "2", "20")
DATASET = "adult"


def instances(options: Namespace) -> list[Instance]:
    return [
        instance
        for gap in GAPS
        for instance in paper_instances([DATASET], options.cache, options.data, True, gap)
    ]


def share_table(run: Run) -> str:
    """Return how much of the input space is sensitive at each gap."""
    rows = []
    for gap in GAPS:
        shares = [float(r["share"]) for r in run.records if r["gap"] == gap and is_solved(r)]
        if shares:
            numbers = (statistics.median(shares), statistics.fmean(shares), max(shares))
            zeros = sum(share == 0 for share in shares)
            rows.append([gap, str(len(shares)), str(zeros), *(f"{n:.3g}" for n in numbers)])
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
        rows.append([gap, str(len(ratios)), f"{statistics.median(ratios):.2f}", quartiles])
    header = [
        "gap",
        "questions solved with every gap",
        f"time / that of gap {GAPS[-1]}",
        "quartiles",
    ]
    return markdown(header, rows)


def report(run: Run) -> str:
    """Return everything about a sweep as Markdown."""
    by_gap = grouped_table(run, "gap", lambda record: record["gap"])
    return "\n\n".join([conditions(run), by_gap, pace_table(run), share_table(run)])


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


def main(arguments: Sequence[str] | None = None) -> int:
    parser = suite_parser("gaps", __doc__, limit_seconds=1800, isolated=False)
    return run_command(parser.parse_args(arguments), instances, report)


if __name__ == "__main__":
    sys.exit(main())
