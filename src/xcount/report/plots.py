"""Plots with matplotlib (the extra ``plots``), as PNG, SVG or PDF."""

from __future__ import annotations

import io
import math
import os
from typing import TYPE_CHECKING, Any

from xcount.answers.result import CountResult
from xcount.errors import MissingExtraError, QueryError
from xcount.report.files import write_atomically
from xcount.report.sentences import label_of, panel_label
from xcount.runs.audit import AuditResult, Panel
from xcount.runs.compare import CompareResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TOP_BARS = 15
ENDINGS = (".png", ".svg", ".pdf")
_MAX_COLUMNS = 4
_COLOUR = "#1f4e8c"


def check_plot(path: str | os.PathLike[str]) -> None:
    """Refuse a plot that cannot be drawn, before the work that it is to show."""
    _figure_class()
    ending = os.path.splitext(path)[1].lower()
    if ending not in ENDINGS:
        raise QueryError(
            f"cannot plot to {os.fspath(path)!r}: the ending must be one of {', '.join(ENDINGS)}"
        )


def plot_audit(audit: AuditResult, path: str | os.PathLike[str] | None = None) -> Any:
    """Draw the most sensitive groups, a panel per gap and distance; return the figure."""
    figure_class = _figure_class()
    panels = audit.panels
    n_columns = min(_MAX_COLUMNS, max(1, len({gap for _, gap in panels})))
    n_rows = max(1, math.ceil(len(panels) / n_columns))
    bars = max((len(audit.panel(panel)[:TOP_BARS]) for panel in panels), default=1)
    size = (5.0 * n_columns, n_rows * (1.3 + 0.3 * bars))
    figure: Figure = figure_class(figsize=size, layout="constrained")
    for index, panel in enumerate(panels):
        _draw_panel(figure.add_subplot(n_rows, n_columns, index + 1), audit, panel)
    _save(figure, path)
    return figure


def plot_count(result: CountResult, path: str | os.PathLike[str] | None = None) -> Any:
    """Draw the profile of a count: the sensitive share of every mask."""
    if result.profile is None:
        raise QueryError("this result has no profile to plot; count with profile=True")
    masks = result.profile.masks
    figure: Figure = _figure_class()(figsize=(7.0, 1.2 + 0.28 * len(masks)), layout="constrained")
    axes = figure.add_subplot()
    places = list(range(len(masks)))
    axes.barh(places, [100 * m.low / m.n_combinations for m in masks], color=_COLOUR)
    open_parts = [100 * (m.high - m.low) / m.n_combinations for m in masks]
    starts = [100 * m.low / m.n_combinations for m in masks]
    axes.barh(places, open_parts, left=starts, color=_COLOUR, alpha=0.35)
    axes.set_yticks(places, [m.description.replace("$", r"\$") for m in masks])
    axes.invert_yaxis()
    axes.set_xlabel("sensitive combinations of the other features (%)")
    axes.set_title(panel_label(result.distance, result.change))
    axes.spines[["top", "right"]].set_visible(False)
    _save(figure, path)
    return figure


def plot_comparison(comparison: CompareResult, path: str | os.PathLike[str] | None = None) -> Any:
    """Draw the relative sensitivity C/C0 of every model but the first as boxes over questions."""
    figure_class = _figure_class()
    figure: Figure = figure_class(
        figsize=(2.5 + 1.3 * comparison.n_models, 4.2), layout="constrained"
    )
    axes = figure.add_subplot()
    names, ratios = [], []
    for index in range(1, comparison.n_models):
        found = comparison.known_ratios(index)
        names.append(comparison.names[index].replace("$", r"\$"))
        ratios.append(found)
    if ratios:
        axes.boxplot(ratios)
        axes.set_xticks(range(1, len(names) + 1), names)
    axes.axhline(1.0, color="grey", linewidth=1, linestyle="--")
    first = comparison.names[0].replace("$", r"\$")
    axes.set_ylabel(f"sensitive regions relative to {first}")
    axes.spines[["top", "right"]].set_visible(False)
    _save(figure, path)
    return figure


def _draw_panel(axes: Axes, audit: AuditResult, panel: Panel) -> None:
    results = audit.panel(panel)[:TOP_BARS]
    places = list(range(len(results)))
    for place, result in zip(places, results, strict=True):
        low, high = 100 * result.share_low, 100 * result.share_high
        share = low if result.share is None else 100 * result.share
        axes.barh(place, share, color=_COLOUR, height=0.7)
        if result.share is None:  # bounds alone: pale between them
            axes.barh(place, high - low, left=low, color=_COLOUR, alpha=0.35, height=0.7)
        if low != high:
            ends = [[share - low], [high - share]]
            axes.errorbar(share, place, xerr=ends, ecolor="black", capsize=3, fmt="none")
    # A dollar sign would start a formula in matplotlib.
    axes.set_yticks(places, [label_of(r).replace("$", r"\$") for r in results])
    axes.invert_yaxis()
    axes.set_xlabel("share of regions (%)")
    axes.set_title(panel_label(*panel))
    axes.spines[["top", "right"]].set_visible(False)


def _save(figure: Figure, path: str | os.PathLike[str] | None) -> None:
    """Write the picture whole or not at all, in the format of its ending."""
    if path is None:
        return
    content = io.BytesIO()
    figure.savefig(content, format=os.path.splitext(path)[1].removeprefix(".").lower() or None)
    write_atomically(path, content.getvalue())


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError(
            "plots need matplotlib; install it with: pip install 'xcount[plots]'"
        ) from None
    return Figure
