"""Draws runs: cactus plots, time by trees and depth, completion by guards, growth.

python -m benchmarks.plots benchmarks/runs/paper-*.jsonl --output pictures
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.datasets import BY_KEY
from benchmarks.records import Run, read_run
from benchmarks.summary import is_solved, open_share

Record = Mapping[str, Any]
INK, MUTED, RULE = "#1f2430", "#6b7280", "#e3e6eb"
COLOURS = ("#0b6e99", "#d1495b", "#edae49", "#3a7d44", "#7a5195", "#8c6d46", "#4d4d4d")
MARKERS = "osD^vPX"
LINES = ("-", "--", ":")
UNDATED = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
FASTEST_SHOWN = 1e-4
GUARD_BINS = (0, 50, 100, 200, 400, 800, 1600, 3200, 6400)
PAPER_SOLVED = {"XCount": 1552, "Ganak": 721, "ApproxMC": 579, "ADD baseline": 153}
PAPER_TOOLS = {
    "xcount": "XCount",
    "cnf-ganak": "Ganak",
    "cnf-approxmc": "ApproxMC",
    "add-baseline": "ADD baseline",
}
"""The methods here that are the paper's tools, and their names there."""
PAPER_LIMIT_SECONDS = 1800.0
PAPER_HALF_GUARDS = 400
PAPER_INSTANCES = 3194

STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "lines.linewidth": 2.0,
    "figure.dpi": 100,
    "savefig.bbox": "tight",
    "svg.hashsalt": "xcount",
    "pdf.fonttype": 42,
}


@contextmanager
def figure(
    path: Path, n_rows: int = 1, n_columns: int = 1, size: tuple[float, float] = (7, 4.2)
) -> Iterator[Any]:
    """Give axes to draw on, and save them; the same drawing gives the same bytes.

    An SVG for pages goes with a PDF of the same name, for print.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        drawing = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(drawing)
        yield drawing.subplots(n_rows, n_columns)
        path.parent.mkdir(parents=True, exist_ok=True)
        for made in (path, path.with_suffix(".pdf")) if path.suffix == ".svg" else (path,):
            drawing.savefig(made, metadata=UNDATED.get(made.suffix), dpi=160)


def legend_beside(axes: Any) -> None:
    """Put the legend to the right of the axes, where it hides no data."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)


def solved_seconds(records: Sequence[Record]) -> list[float]:
    """Return the seconds of the solved instances, fastest first."""
    seconds = sorted(float(record["seconds"]) for record in records if is_solved(record))
    return [max(value, FASTEST_SHOWN) for value in seconds]


def cactus(runs: Sequence[Run], path: Path, reference: bool = True) -> None:
    """Draw how many instances each run solved within how much time each."""
    with figure(path) as axes:
        for i, run in enumerate(runs):
            draw_cactus(axes, run.records, _label(run), i)
        axes.set_title(f"Instances solved within a time ({_suite_name(runs)})")
        axes.set_xlabel("instances solved")
        axes.set_ylabel("seconds an instance")
        draw_limits(axes, runs)
        if reference and max(len(run.records) for run in runs) > 0.9 * PAPER_INSTANCES:
            _draw_paper(axes)
        legend_beside(axes)


def draw_limits(axes: Any, runs: Sequence[Run]) -> None:
    """Mark how long an instance might take."""
    for limit in sorted({run.settings.limit_seconds for run in runs}):
        axes.axhline(limit, color=MUTED, linewidth=1, linestyle="--")
        where = (1, limit)
        style = {"ha": "right", "va": "bottom", "fontsize": 7.5, "color": MUTED}
        axes.text(*where, f"limit {limit:g} s ", transform=axes.get_yaxis_transform(), **style)


def line_style(number: int) -> dict[str, Any]:
    """Return what tells a line from the others; more of them than colours differ in dashes."""
    turn, colour = divmod(number, len(COLOURS))
    return {"color": COLOURS[colour], "linestyle": LINES[turn % len(LINES)]}


def draw_cactus(axes: Any, records: Sequence[Record], label: str, colour: int) -> None:
    """Draw one line of a cactus plot, labelled with what was solved."""
    seconds = solved_seconds(records)
    text = f"{label}: {len(seconds)} of {len(records)}"
    style = line_style(colour)
    if len(seconds) == 1:
        style["marker"] = "o"
    axes.plot(range(1, len(seconds) + 1), seconds, label=text, **style)
    axes.set_yscale("log")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlim(0, max(axes.get_xlim()[1], 1.02 * len(records)))


def _draw_paper(axes: Any) -> None:
    """Mark what the paper's methods solved in its own runs, on its own machine, with 1800 s."""
    for i, (name, solved) in enumerate(PAPER_SOLVED.items(), 2):
        label = f"{name} in the paper: {solved}"
        axes.axvline(solved, color=COLOURS[i], linewidth=1.2, linestyle=":", label=label)


def cactus_of_paper(runs: Sequence[Run], path: Path) -> None:
    """Draw the paper's tools as a cactus plot, with what the paper says that each solved.

    Its numbers are of 3194 instances and 1800 s, on its own machine: as a share of the sample they
    are vertical lines in the tools' own colours.
    """
    with figure(path) as axes:
        for i, run in enumerate(runs):
            tool = PAPER_TOOLS[run.settings.method]
            draw_cactus(axes, run.records, run.settings.method, i)
            share = PAPER_SOLVED[tool] / PAPER_INSTANCES
            place = share * len(run.records)
            label = f"{tool} in the paper: {100 * share:.0f} %, 1800 s"
            colour = line_style(i)["color"]
            axes.axvline(place, color=colour, linewidth=1, linestyle=":", label=label)
        axes.set_title(f"The paper's four tools ({_suite_name(runs)})")
        axes.set_xlabel("instances solved")
        axes.set_ylabel("seconds an instance")
        draw_limits(axes, runs)
        legend_beside(axes)


def cactus_by_dataset(runs: Sequence[Run], path: Path) -> None:
    """Draw a small cactus plot for every data set."""
    present = [
        key for key in BY_KEY if any(r["dataset"] == key for run in runs for r in run.records)
    ]
    n_columns = min(5, len(present))
    n_rows = math.ceil(len(present) / n_columns)
    size = (2.6 * n_columns + 0.4, 2.3 * n_rows + 0.6)
    with figure(path, n_rows, n_columns, size) as grid:
        cells = list(getattr(grid, "flat", [grid]))
        for axes, key in zip(cells, present, strict=False):
            for i, run in enumerate(runs):
                records = [r for r in run.records if r["dataset"] == key]
                draw_cactus(axes, records, _label(run), i)
            axes.set_title(BY_KEY[key].title)
        for axes in cells[len(present) :]:
            axes.set_visible(False)
        _share_limits(cells[: len(present)])
        handles = cells[0].get_lines()
        cells[0].figure.legend(
            handles, [_label(run) for run in runs], loc="outside upper right", ncols=len(runs)
        )
        cells[0].figure.supxlabel("instances solved")
        cells[0].figure.supylabel("seconds an instance")


def _share_limits(cells: Sequence[Any]) -> None:
    low = min(axes.get_ylim()[0] for axes in cells)
    high = max(axes.get_ylim()[1] for axes in cells)
    for axes in cells:
        axes.set_ylim(low, high)


def heat_map(run: Run, path: Path) -> None:
    """Draw the mean seconds by trees and depth; what was not solved counts as the limit."""
    from matplotlib.colors import LogNorm

    depths = sorted({record["depth"] for record in run.records})
    trees = sorted({record["n_trees"] for record in run.records})
    groups: dict[tuple[int, int], list[float]] = defaultdict(list)
    for record in run.records:
        spent = record["seconds"] if is_solved(record) else run.settings.limit_seconds
        groups[record["depth"], record["n_trees"]].append(max(spent, FASTEST_SHOWN))
    means = [[_mean(groups.get((depth, n))) for n in trees] for depth in depths]
    size = (max(4.5, 0.72 * len(trees) + 2.4), max(2.4, 0.6 * len(depths) + 1.5))
    with figure(path, size=size) as axes:
        image = axes.imshow(means, norm=LogNorm(), cmap="YlGnBu", aspect="auto", origin="lower")
        middle = math.sqrt(image.norm.vmin * image.norm.vmax)
        for row, line in enumerate(means):
            for column, value in enumerate(line):
                colour = "white" if value > middle else INK
                axes.text(
                    column, row, _short(value), ha="center", va="center", color=colour, fontsize=8
                )
        axes.set_xticks(range(len(trees)), [str(n) for n in trees])
        axes.set_yticks(range(len(depths)), [str(depth) for depth in depths])
        axes.grid(visible=False)
        axes.tick_params(length=0)
        axes.figure.colorbar(image, ax=axes, label="seconds", pad=0.02)
        axes.set_title(f"Mean seconds an instance ({_label(run)}, {_suite_name([run])})")
        axes.set_xlabel("trees")
        axes.set_ylabel("depth")


def completion_by_guards(runs: Sequence[Run], path: Path) -> None:
    """Draw the share of solved instances for each range of the number of guards."""
    with figure(path, size=(9, 3.8)) as axes:
        names = [f"{low + 1}-{high}" for low, high in pairwise(GUARD_BINS)]
        used = sorted({_guard_bin(record) for run in runs for record in run.records})
        for i, run in enumerate(runs):
            groups: dict[int, list[bool]] = defaultdict(list)
            for record in run.records:
                groups[_guard_bin(record)].append(is_solved(record))
            shares = [100 * statistics.fmean(groups[b]) if groups[b] else math.nan for b in used]
            marker = MARKERS[(i + i // len(COLOURS)) % len(MARKERS)]
            axes.plot(range(len(used)), shares, **line_style(i), marker=marker, label=_label(run))
        _draw_paper_guards(axes, used)
        largest = max(runs, key=lambda run: len(run.records))
        numbers = [sum(_guard_bin(r) == b for r in largest.records) for b in used]
        labels = [f"{names[b]}\n{n} inst." for b, n in zip(used, numbers, strict=True)]
        axes.set_xticks(range(len(used)), labels, fontsize=8)
        axes.set_ylim(0, 104)
        axes.set_title(f"Completion by number of guards ({_suite_name(runs)})")
        axes.set_xlabel("guards of the model")
        axes.set_ylabel("% solved")
        legend_beside(axes)


def _draw_paper_guards(axes: Any, used: Sequence[int]) -> None:
    """Mark what the paper says of its XCount: below a half beyond 400 guards."""
    beyond = [place for place, b in enumerate(used) if GUARD_BINS[b] >= PAPER_HALF_GUARDS]
    if beyond:
        span = (beyond[0] - 0.4, beyond[-1] + 0.4)
        label = f"the paper's XCount: below 50 %\nbeyond {PAPER_HALF_GUARDS} guards"
        axes.plot(span, (50, 50), color=INK, linewidth=1, linestyle=":", label=label)


def _guard_bin(record: Record) -> int:
    above = [i for i, low in enumerate(GUARD_BINS[:-1]) if record["n_guards"] > low]
    return above[-1] if above else 0


GROWTH: dict[str, Callable[[Record], Any]] = {
    "trees": lambda record: record["n_trees"],
    "depth": lambda record: record["depth"],
    "distance": lambda record: record["distance"],
    "sensitive features": lambda record: len(record["sensitive"]),
}


def growth(runs: Sequence[Run], path: Path) -> None:
    """Draw what is solved, the time, and what is left open, against each way of growing."""
    with figure(path, 3, len(GROWTH), (10.5, 6.6)) as grid:
        for column, (name, key) in zip(grid.T, GROWTH.items(), strict=True):
            values = sorted({key(r) for run in runs for r in run.records}, key=_any_last)
            for i, run in enumerate(runs):
                groups = [[r for r in run.records if key(r) == value] for value in values]
                _draw_growth(column, groups, run, i)
            for axes in column:
                axes.set_xticks(range(len(values)), [str(value) for value in values])
            column[0].set_ylim(0, 104)
            column[1].set_yscale("log")
            column[2].set_ylim(0, 104)
            column[2].set_xlabel(name)
        grid[0, 0].set_ylabel("% solved")
        grid[1, 0].set_ylabel("median seconds")
        grid[2, 0].set_ylabel("% of regions left open")
        labels = [_label(run) for run in runs]
        grid[0, 0].figure.legend(
            grid[0, 0].get_lines(), labels, loc="outside upper right", ncols=len(runs)
        )


def _draw_growth(column: Any, groups: Sequence[Sequence[Record]], run: Run, colour: int) -> None:
    style = {"color": COLOURS[colour % 7], "marker": MARKERS[colour % 7]}
    solved = [100 * _mean([float(is_solved(r)) for r in group]) for group in groups]
    left_open = [100 * _mean([open_share(r) for r in group]) for group in groups]
    medians = [_median_seconds(group, run) for group in groups]
    for axes, values in zip(column, (solved, medians, left_open), strict=True):
        axes.plot(range(len(values)), values, **style)
    column[1].axhline(run.settings.limit_seconds, color=MUTED, linewidth=1, linestyle="--")


def _median_seconds(records: Sequence[Record], run: Run) -> float:
    if not records:
        return math.nan
    limit = run.settings.limit_seconds
    return statistics.median(
        max(FASTEST_SHOWN, record["seconds"] if is_solved(record) else limit) for record in records
    )


def _any_last(value: Any) -> tuple[bool, Any]:
    return (isinstance(value, str), value)


def _mean(values: Sequence[float] | None) -> float:
    return statistics.fmean(values) if values else math.nan


def _short(value: float) -> str:
    if math.isnan(value):
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.2g}"


def _label(run: Run) -> str:
    return run.settings.method


def _suite_name(runs: Sequence[Run]) -> str:
    limits = sorted({f"{run.settings.limit_seconds:g} s" for run in runs})
    return f"{runs[0].settings.suite} suite, limit {' or '.join(limits)}"


def draw_all(runs: Sequence[Run], folder: Path, kind: str = "svg") -> list[Path]:
    """Draw every picture that these runs of one suite allow; return the files."""
    prefix = runs[0].settings.suite
    made = {
        name: folder / f"{prefix}-{name}.{kind}" for name in ("cactus", "cactus-by-set", "guards")
    }
    cactus(runs, made["cactus"])
    cactus_by_dataset(runs, made["cactus-by-set"])
    completion_by_guards(runs, made["guards"])
    for run in runs:
        name = f"heat-{run.settings.method}"
        made[name] = folder / f"{prefix}-{name}.{kind}"
        heat_map(run, made[name])
    if prefix == "frontier":
        made["growth"] = folder / f"{prefix}-growth.{kind}"
        growth(runs, made["growth"])
    return list(made.values())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plots", description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, help="files that runs have written")
    parser.add_argument("--output", type=Path, default=Path("pictures"), help="folder")
    parser.add_argument("--kind", choices=("svg", "png", "pdf"), default="svg")
    options = parser.parse_args(arguments)
    by_suite: dict[str, list[Run]] = defaultdict(list)
    for path in options.runs:
        run = read_run(path)
        by_suite[run.settings.suite].append(run)
    for runs in by_suite.values():
        for path in draw_all(runs, options.output, options.kind):
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
