"""Plots with matplotlib (the extra ``plots``), as PNG, SVG or PDF."""

from __future__ import annotations

import io
import math
import os
from functools import partial
from typing import TYPE_CHECKING, Any

from xcount.answers.result import CountResult
from xcount.errors import MissingExtraError, QueryError
from xcount.measures.measured import REGIONS
from xcount.report.bars import SHARE, TOP_OF_A_PLOT, Bars, bars_of
from xcount.report.lead import first_groups, in_order, measure_of, share_shown
from xcount.report.sentences import label_of, panel_label
from xcount.report.words.numbers import OF_MEASURE
from xcount.runs.audit import AuditResult, Panel
from xcount.runs.compare import CompareResult
from xcount.support.files import write_atomically
from xcount.support.interval import Interval
from xcount.support.visible import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TOP_BARS = 15
ENDINGS = (".png", ".svg", ".pdf")
_MAX_COLUMNS = 4
_LABEL = 60
"""Letters of a label: a longer one would leave no room for bars."""
_COLOUR = "#1f4e8c"


def check_plot(path: str | os.PathLike[str]) -> None:
    """Refuse a plot that cannot be drawn, before the work that it is to show."""
    _figure_class()
    ending = os.path.splitext(path)[1].lower()
    if ending not in ENDINGS:
        raise QueryError(
            f"cannot plot to {os.fspath(path)!r}: the ending must be one of {', '.join(ENDINGS)}"
        )


def plot_of(result: object, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw a result, with a path into a file as well; return the figure, which a notebook shows."""
    if path is not None:
        check_plot(path)
    if isinstance(result, AuditResult) and result.panels:
        figure = plot_audit(result)
    elif isinstance(result, CompareResult) and _has_ratios(result):
        figure = plot_comparison(result)
    elif isinstance(result, CountResult) and result.profile is not None:
        figure = plot_profile(result)
    else:
        figure = plot_bars(bars_of(result, TOP_OF_A_PLOT))
    # Notebooks draw figures of pyplot by themselves; this one is shown as a picture, too.
    figure._repr_png_ = partial(_png, figure)  # type: ignore[attr-defined]
    _save(figure, path)
    return figure


def plot_audit(audit: AuditResult) -> Figure:
    """Draw the most sensitive groups, a panel per gap and distance; return the figure."""
    figure_class = _figure_class()
    panels = audit.panels
    n_columns = min(_MAX_COLUMNS, max(1, len({gap for _, gap in panels})))
    n_rows = max(1, math.ceil(len(panels) / n_columns))
    bars = max((len(_shown(audit, panel)) for panel in panels), default=1)
    size = (5.0 * n_columns, n_rows * (1.3 + 0.3 * bars))
    figure: Figure = figure_class(figsize=size, layout="constrained")
    for index, panel in enumerate(panels):
        _draw_panel(figure.add_subplot(n_rows, n_columns, index + 1), audit, panel)
    return figure


def plot_bars(bars: Bars) -> Figure:
    """Draw bars with their bounds, and a limit if there is one."""
    size = (7.0, 1.3 + 0.3 * max(1, len(bars.bars)))
    figure: Figure = _figure_class()(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    scale = 100.0 if bars.unit == SHARE else 1.0
    for place, bar in enumerate(bars.bars):
        _draw_bar(axes, place, bar.span, scale, bar.start)
    if bars.limit is not None:
        axes.axvline(scale * bars.limit, color="black", linestyle="--", label=bars.limit_text)
        axes.legend(frameon=False)
    axes.set_yticks(range(len(bars.bars)), [_plain(bar.label) for bar in bars.bars])
    axes.invert_yaxis()
    axes.set_xlabel("share (%)" if bars.unit == SHARE else bars.unit)
    axes.set_title(_plain(bars.title))
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_bar(
    axes: Axes, place: int, span: Interval, scale: float = 100.0, first: float = 0.0
) -> None:
    """Draw what is certain in full colour, what is open in a pale one, and the bounds."""
    low, end, high = (scale * float(each) for each in (span.low, span.least, span.high))
    start = scale * first
    axes.barh(place, end - start, left=start, color=_COLOUR, height=0.7)
    if start:  # a change: a dot where it ends
        axes.plot(end, place, "o", color=_COLOUR)
    if low == end < high:  # bounds alone: pale between them
        axes.barh(place, high - low, left=low, color=_COLOUR, alpha=0.35, height=0.7)
    if not span.is_settled:
        ends = [[end - low], [high - end]]
        axes.errorbar(end, place, xerr=ends, ecolor="black", capsize=3, fmt="none")


def _has_ratios(comparison: CompareResult) -> bool:
    return any(comparison.known_ratios(index) for index in range(1, comparison.n_models))


def _plain(text: str) -> str:
    """Return text without what matplotlib takes for a formula, and of a bearable length."""
    shown = visible(text)
    return (shown if len(shown) <= _LABEL else f"{shown[: _LABEL - 1]}…").replace("$", r"\$")


def plot_profile(result: CountResult) -> Figure:
    """Draw the profile of a count: the sensitive share of every mask."""
    assert result.profile is not None
    masks = result.profile.masks
    figure: Figure = _figure_class()(figsize=(7.0, 1.2 + 0.28 * len(masks)), layout="constrained")
    axes = figure.add_subplot()
    places = list(range(len(masks)))
    axes.barh(places, [100 * m.low / m.n_combinations for m in masks], color=_COLOUR)
    open_parts = [100 * (m.high - m.low) / m.n_combinations for m in masks]
    starts = [100 * m.low / m.n_combinations for m in masks]
    axes.barh(places, open_parts, left=starts, color=_COLOUR, alpha=0.35)
    axes.set_yticks(places, [_plain(m.description) for m in masks])
    axes.invert_yaxis()
    axes.set_xlabel("sensitive combinations of the other features (%)")
    axes.set_title(panel_label(result.distance, result.change))
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def plot_comparison(comparison: CompareResult) -> Figure:
    """Draw the relative sensitivity C/C0 of every model but the first as boxes over questions."""
    figure_class = _figure_class()
    figure: Figure = figure_class(
        figsize=(2.5 + 1.3 * comparison.n_models, 4.2), layout="constrained"
    )
    axes = figure.add_subplot()
    names, ratios = [], []
    for index in range(1, comparison.n_models):
        found = comparison.known_ratios(index)
        names.append(_plain(comparison.names[index]))
        ratios.append(found)
    if ratios:
        axes.boxplot(ratios)
        axes.set_xticks(range(1, len(names) + 1), names)
    axes.axhline(1.0, color="grey", linewidth=1, linestyle="--")
    first = _plain(comparison.names[0])
    what = "sensitive regions" if comparison.judge == REGIONS else f"shares by {comparison.judge}"
    axes.set_ylabel(f"{what} relative to {first}")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _shown(audit: AuditResult, panel: Panel) -> list[CountResult]:
    """Return the groups with the largest shares; those that come first do, and are never cut."""
    found = in_order(audit, audit.panel(panel), measure_of(audit))
    n_first = sum(result.sensitive in first_groups(audit) for result in found)
    return found[: max(TOP_BARS, n_first)]


def _draw_panel(axes: Axes, audit: AuditResult, panel: Panel) -> None:
    results, measure = _shown(audit, panel), measure_of(audit)
    places = list(range(len(results)))
    for place, result in zip(places, results, strict=True):
        _draw_bar(axes, place, share_shown(result, measure).interval)
    axes.set_yticks(places, [_plain(label_of(r)) for r in results])
    axes.invert_yaxis()
    axes.set_xlabel(f"share {OF_MEASURE[measure]} (%)")
    axes.set_title(panel_label(*panel))
    axes.spines[["top", "right"]].set_visible(False)


def _save(figure: Figure, path: str | os.PathLike[str] | None) -> None:
    """Write the picture whole or not at all, in the format of its ending."""
    if path is None:
        return
    content = io.BytesIO()
    figure.savefig(content, format=os.path.splitext(path)[1].removeprefix(".").lower() or None)
    write_atomically(path, content.getvalue())


def _png(figure: Figure) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format="png")
    return content.getvalue()


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError(
            "plots need matplotlib; install it with: pip install 'xcount[plots]'"
        ) from None
    return Figure
