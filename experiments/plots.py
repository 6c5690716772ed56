"""Pictures of runs: cactus plots, time by trees and depth, completion by guards, growth."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.datasets import BY_KEY
from benchmarks.harness.plots import INK, MUTED, figure, legend_beside
from benchmarks.harness.records import Run
from benchmarks.harness.tables import is_solved, open_share
from experiments import paper

Record = Mapping[str, Any]
METHOD_STYLES = {
    "auto": ("#0b6e99", "-", "o"),
    "exact": ("#d1495b", "-", "s"),
    "sample": ("#edae49", "-", "D"),
    "xcount": ("#3a7d44", "-", "^"),
    "xcount-exact-union": ("#7a5195", "-", "v"),
    "xcount-sum-first": ("#8c6d46", "-", "<"),
    "add-baseline": ("#4d4d4d", "-", "P"),
    "add-baseline-plain": ("#4d4d4d", "-.", "X"),
    "cnf-ganak": ("#4aa8c0", "--", ">"),
    "cnf-approxmc": ("#c65b9b", "--", "p"),
    "subproblems-cnf": ("#d97a1c", "--", "h"),
}
"""The colour, line and marker that a method has in every picture; dotted lines are the paper's."""
OTHER_METHOD = (MUTED, (0, (6, 2)), ".")
FASTEST_SHOWN = 1e-4
GUARD_BINS = (0, 50, 100, 200, 400, 800, 1600, 3200, 6400)
HALF_SOLVED_GUARDS = paper.PAPER["half_solved_guards"]
FEW = 5
"""Shares of fewer instances than this are hollow marks that no line joins."""


def solved_seconds(records: Sequence[Record]) -> list[float]:
    """Return the seconds of the solved instances, fastest first."""
    seconds = sorted(float(record["seconds"]) for record in records if is_solved(record))
    return [max(value, FASTEST_SHOWN) for value in seconds]


def cactus(
    runs: Sequence[Run],
    path: Path,
    title: str = "Instances solved within a time",
    shares: Mapping[str, float] | None = None,
) -> None:
    """Draw how many instances each run solved within how much time each.

    ``shares`` are what the paper says its methods solved.
    """
    with figure(path) as axes:
        for run in runs:
            draw_cactus(axes, run.records, _label(run), method_style(run.settings.method))
        _draw_paper(axes, shares or {}, max(len(run.records) for run in runs))
        axes.set_title(f"{title} ({_suite_name(runs)})")
        axes.set_xlabel("instances solved")
        axes.set_ylabel("seconds an instance")
        draw_limits(axes, runs)
        legend_beside(axes)


def _draw_paper(axes: Any, shares: Mapping[str, float], n_instances: int) -> None:
    """Mark the shares that the paper's methods solved, in their own colours.

    They are of its own instances, with 1800 s, on its own machine.
    """
    for method, share in shares.items():
        name = paper.TOOLS.get(method, method)
        label = f"{name} in the paper: {100 * share:.0f} %, {paper.LIMIT_SECONDS:g} s"
        style = {"color": method_style(method)["color"], "linewidth": 1.2, "linestyle": ":"}
        axes.axvline(share * n_instances, label=label, **style)


def cactus_of_paper(runs: Sequence[Run], path: Path) -> None:
    """Draw the paper's tools as a cactus plot, with what the paper says that each solved."""
    cactus(runs, path, "The paper's four tools", paper.SHARES)


def draw_limits(axes: Any, runs: Sequence[Run]) -> None:
    """Mark how long an instance might take; where limits differ, with the methods that had them."""
    limits: dict[float, list[str]] = defaultdict(list)
    for run in runs:
        limits[run.settings.limit_seconds].append(_label(run))
    for limit, methods in sorted(limits.items()):
        axes.axhline(limit, color=MUTED, linewidth=1, linestyle="--")
        whose = f" of {', '.join(methods)}" if len(limits) > 1 else ""
        style = {"ha": "right", "va": "bottom", "fontsize": 7.5, "color": MUTED}
        place: Any = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points"}
        axes.annotate(f"limit {limit:g} s{whose}", (1, limit), (-2, 3), **place, **style)


def method_style(method: str) -> dict[str, Any]:
    """Return the colour and the line that a method has in every picture."""
    colour, line, _ = METHOD_STYLES.get(method, OTHER_METHOD)
    return {"color": colour, "linestyle": line}


def method_marker(method: str) -> str:
    """Return the marker that a method has in every picture."""
    return METHOD_STYLES.get(method, OTHER_METHOD)[2]


def draw_cactus(
    axes: Any,
    records: Sequence[Record],
    label: str,
    style: Mapping[str, Any],
    in_percent: bool = False,
) -> None:
    """Draw one line of a cactus plot, labelled with what was solved.

    ``in_percent`` gives lines of different numbers of instances one length.
    """
    seconds = solved_seconds(records)
    text = f"{label}: {len(seconds)} of {len(records)}"
    marker = "o" if len(seconds) == 1 else None
    unit = 100 / max(1, len(records)) if in_percent else 1
    places = [unit * (n + 1) for n in range(len(seconds))]
    axes.plot(places, seconds, label=text, marker=marker, **style)
    axes.set_yscale("log")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlim(0, max(axes.get_xlim()[1], 1.02 * unit * len(records)))


def cactus_by_dataset(runs: Sequence[Run], path: Path) -> None:
    """Draw a small cactus plot for every data set, in per cent of its instances."""
    present = [
        key for key in BY_KEY if any(r["dataset"] == key for run in runs for r in run.records)
    ]
    n_columns = min(5, len(present))
    n_rows = math.ceil(len(present) / n_columns)
    size = (2.6 * n_columns + 0.4, 2.3 * n_rows + 0.6)
    with figure(path, n_rows, n_columns, size) as grid:
        cells = list(getattr(grid, "flat", [grid]))
        for axes, key in zip(cells, present, strict=False):
            for run in runs:
                records = [r for r in run.records if r["dataset"] == key]
                style = method_style(run.settings.method)
                draw_cactus(axes, records, _label(run), style, in_percent=True)
            draw_limits(axes, runs)
            axes.set_title(BY_KEY[key].title)
        for axes in cells[len(present) :]:
            axes.set_visible(False)
        _share_seconds(cells[: len(present)])
        styles = [method_style(run.settings.method) for run in runs]
        handles = [cells[0].plot([], [], **style)[0] for style in styles]
        cells[0].figure.legend(
            handles, [_label(run) for run in runs], loc="outside upper right", ncols=len(runs)
        )
        cells[0].figure.supxlabel("% of the instances solved")
        cells[0].figure.supylabel("seconds an instance")


def _share_seconds(cells: Sequence[Any]) -> None:
    """Give all panels the same seconds."""
    low = min(axes.get_ylim()[0] for axes in cells)
    high = 2 * max(axes.get_ylim()[1] for axes in cells)  # room for the words at the limit
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
        axes.set_xlabel(f"trees\n{_heat_note(run, groups, len(depths) * len(trees))}")
        axes.set_ylabel("depth")


def _heat_note(run: Run, groups: Mapping[Any, Sequence[float]], n_cells: int) -> str:
    """Say what the cells of a heat map are about."""
    numbers = [len(group) for group in groups.values()]
    notes = [f"{_least_most(numbers)} instance{'s' * (max(numbers) > 1)} a cell"]
    notes += [f"unsolved counts as the limit of {run.settings.limit_seconds:g} s"]
    notes += ["blank: none asked"] if len(groups) < n_cells else []
    return "; ".join(notes)


def completion_by_guards(
    runs: Sequence[Run], path: Path, title: str = "Completion by number of guards"
) -> None:
    """Draw the share of solved instances for each range of the number of guards."""
    used = sorted({_guard_bin(record) for run in runs for record in run.records})
    numbers: dict[int, list[int]] = defaultdict(list)
    with figure(path, size=(9, 3.8)) as axes:
        for i, run in enumerate(runs):
            groups: dict[int, list[bool]] = defaultdict(list)
            for record in run.records:
                groups[_guard_bin(record)].append(is_solved(record))
            shift = 0.06 * (i - (len(runs) - 1) / 2)  # equal shares stand side by side
            _draw_shares(axes, [groups[b] for b in used], run, shift)
            for b in used:
                numbers[b].append(len(groups[b]))
        _draw_paper_guards(axes, used)
        labels = [f"{_guard_name(b)}\n{_least_most(numbers[b])}" for b in used]
        axes.set_xticks(range(len(used)), labels, fontsize=8)
        axes.set_ylim(-3, 104)
        axes.set_title(f"{title} ({_suite_name(runs)})")
        axes.set_xlabel(
            f"guards of the model, and instances of a method (hollow: fewer than {FEW})"
        )
        axes.set_ylabel("% solved")
        legend_beside(axes)


def _draw_shares(axes: Any, groups: Sequence[Sequence[bool]], run: Run, shift: float) -> None:
    """Draw the share of each group that is solved: a line, and hollow marks for small groups."""
    style, marker = method_style(run.settings.method), method_marker(run.settings.method)
    places = [place + shift for place in range(len(groups))]
    large = [100 * _mean(group) if len(group) >= FEW else math.nan for group in groups]
    axes.plot(places, large, marker=marker, label=_label(run), **style)
    small = [100 * _mean(group) if len(group) < FEW else math.nan for group in groups]
    hollow = {"color": style["color"], "markerfacecolor": "none", "linestyle": "none"}
    axes.plot(places, small, marker=marker, **hollow)


def _guard_name(guard_bin: int) -> str:
    low, high = GUARD_BINS[guard_bin : guard_bin + 2]
    return f"{low + 1}-{high}"


def _least_most(numbers: Sequence[int]) -> str:
    least, most = min(numbers), max(numbers)
    return str(most) if least == most else f"{least} to {most}"


def _draw_paper_guards(axes: Any, used: Sequence[int]) -> None:
    """Mark what the paper says of its XCount: below a half beyond 400 guards."""
    beyond = [place for place, b in enumerate(used) if GUARD_BINS[b] >= HALF_SOLVED_GUARDS]
    if beyond:
        span = (beyond[0] - 0.4, beyond[-1] + 0.4)
        label = f"the paper's XCount: below 50 %\nbeyond {HALF_SOLVED_GUARDS} guards"
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
            for run in runs:
                groups = [[r for r in run.records if key(r) == value] for value in values]
                _draw_growth(column, groups, run)
            for axes in column:
                axes.set_xticks(range(len(values)), [str(value) for value in values])
            column[0].set_ylim(0, 104)
            column[1].set_yscale("log")
            draw_limits(column[1], runs)
            column[2].set_ylim(0, 104)
            column[2].set_xlabel(name)
        grid[0, 0].set_ylabel("% solved")
        _share_seconds(grid[1])
        grid[1, 0].set_ylabel("median seconds\n(unsolved: the limit)")
        grid[2, 0].set_ylabel("% of regions left open")
        labels = [_label(run) for run in runs]
        grid[0, 0].figure.legend(
            grid[0, 0].get_lines(), labels, loc="outside upper right", ncols=len(runs)
        )


def _draw_growth(column: Any, groups: Sequence[Sequence[Record]], run: Run) -> None:
    style = method_style(run.settings.method) | {"marker": method_marker(run.settings.method)}
    solved = [100 * _mean([float(is_solved(r)) for r in group]) for group in groups]
    left_open = [100 * _mean([open_share(r) for r in group]) for group in groups]
    medians = [_median_seconds(group, run) for group in groups]
    for axes, values in zip(column, (solved, medians, left_open), strict=True):
        axes.plot(range(len(values)), values, **style)


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
