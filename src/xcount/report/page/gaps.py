"""The section that shows the share against the gap, with a slider over the curve."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction

from xcount.report.explanation_words import explanation_of, unit_text
from xcount.report.markup import Markup, element, name
from xcount.report.numbers import (
    NONE,
    distance_text,
    estimate_words,
    interval_words,
    share_and_interval,
)
from xcount.report.page.axis import nice_ceiling
from xcount.report.page.charts import Bar, Line, bar, curve_chart, legend
from xcount.report.page.tables import Cell, number_cell, row, table, text_cell
from xcount.report.page.view import View
from xcount.runs.ranked import Ranked
from xcount.support.dataclass import dataclass

MAX_LINES = 6
_MAX_COLUMNS = 6


@dataclass(frozen=True, slots=True)
class _Point:
    """A share at a gap; ``value`` is None where only bounds are known."""

    gap: float
    text: str
    value: float | None
    low: float
    high: float

    @property
    def words(self) -> str:
        if self.value is None:
            return interval_words(self.low, self.high)
        return estimate_words(self.value, self.low, self.high, self.low == self.high)

    @property
    def sort_key(self) -> float:
        return self.low if self.value is None else self.value


@dataclass(frozen=True, slots=True)
class _Curve:
    """The shares of a group against the gap."""

    ranked: Ranked
    points: tuple[_Point, ...]
    unit: str = ""

    def at(self, gap: float) -> _Point | None:
        """Return the point at a gap; beyond the last one, the share is not larger than there."""
        return next((point for point in self.points if point.gap == gap), None)


def share_against_gap(view: View) -> Markup | None:
    """Return a chart per distance, where the share is known at several gaps."""
    distances = list(dict.fromkeys(distance for distance, _ in view.panels))
    charts = [chart for d in distances if (chart := _chart(view, d)) is not None]
    if not charts:
        return None
    return element(
        "section",
        element("h2", "How large the changes are"),
        element(
            "p",
            "The share that changes by more than a gap, against the gap: the higher a line and "
            "the farther right it reaches, the more the model depends on the feature.",
        ),
        charts,
        id="gaps",
    )


def _chart(view: View, distance: int | None) -> Markup | None:
    found = [
        curve for ranked in view.ranking if (curve := _curve(view, ranked, distance)) is not None
    ]
    n_first = sum(view.comes_first(curve.ranked.sensitive) for curve in found)
    curves = found[: max(MAX_LINES, n_first)]
    if not curves:
        return None
    title = f"Share against the gap, {distance_text(distance)}"
    more = "" if len(found) <= MAX_LINES else f" ({MAX_LINES} of {len(found)} features)"
    labels = [curve.ranked.label for curve in curves[:MAX_LINES]]
    lines = [
        Line(c.ranked.label, tuple((p.gap, p.low, p.value, p.high) for p in c.points))
        for c in curves[:MAX_LINES]
    ]
    unit = curves[0].unit
    chart, places = curve_chart(lines, f"{title}: {', '.join(labels)}", f"gap{unit}")
    stops = {p.gap: p.text for c in curves for p in c.points if p.gap in places}
    gaps = sorted(stops)
    start = _start(view, gaps)
    stations = [(round(places[gap], 3), stops[gap]) for gap in gaps]
    return element(
        "figure",
        element("figcaption", title + more),
        chart,
        _slider(stations[0][0], stations[-1][0], stations[start][0]),
        legend(labels),
        element("h3", "At gap ", element("output", stops[gaps[start]], class_="at")),
        element("ol", _rows(curves, gaps, start), class_="bars"),
        _values(curves, gaps, stops),
        data_stops=json.dumps(stations),
    )


def _curve(view: View, ranked: Ranked, distance: int | None) -> _Curve | None:
    """Return the curve of an explanation, or one made of the gaps that were counted."""
    results = [r for r in ranked.results if r.distance == distance]
    for result in results:
        for curve in explanation_of(result).curves:
            if curve.measure != view.measure:
                continue
            points = tuple(_Point(p.gap, p.gap_text, p.share, p.low, p.high) for p in curve.points)
            if len(points) > 1:
                return _Curve(ranked, points, f" in {unit_text(curve.unit)}")
    counted = []
    for result in results:
        if result.change.size is not None:
            share = view.share(result)
            value = None if share.value is None else float(share.value)
            ends = (float(share.low), float(share.high))
            counted.append(_Point(result.change.size, result.change.text, value, *ends))
    return _Curve(ranked, tuple(counted)) if len(counted) > 1 else None


def _start(view: View, gaps: Sequence[float]) -> int:
    """Return where the slider begins: at the leading question's gap."""
    size = view.lead.result.change.size if view.lead is not None else None
    if size is None:
        return 0
    return min(range(len(gaps)), key=lambda index: abs(gaps[index] - size))


def _slider(first: float, last: float, start: float) -> Markup:
    """Return the slider, whose thumb stands below its place on the curve; it needs the script."""
    return element(
        "input",
        type="range",
        min=first,
        max=last,
        step="any",
        value=start,
        class_="slider",
        data_script=True,
        hidden=True,
        aria_label="Gap",
    )


def _rows(curves: Sequence[_Curve], gaps: Sequence[float], start: int) -> list[Markup]:
    """Return a bar per feature at the slider's gap; it carries what it is at every other gap."""
    highest = max(point.high for curve in curves for point in curve.points)
    axis = nice_ceiling(highest)
    rows = []
    for curve in curves:
        at = [_state(curve, gap, axis) for gap in gaps]
        point = curve.at(gaps[start])
        value = 0.0 if point is None else point.sort_key
        drawn = Bar(value, value, value, None, "none", at[start][2])
        rows.append(
            element(
                "li",
                element("span", name(curve.ranked.label), class_="name"),
                bar(drawn, axis),
                element("span", element("b", at[start][0]), class_="value"),
                data_sensitive=curve.ranked.label,
                data_at=json.dumps(at),
            )
        )
    return rows


def _state(curve: _Curve, gap: float, axis: float) -> tuple[str, float, str]:
    """Return a bar's text, length in per cent and exact numbers at a gap."""
    point = curve.at(gap)
    if point is None:
        return NONE, 0.0, f"{curve.ranked.label}: not known at this gap"
    length = round(100 * min(1.0, point.sort_key / axis), 3)
    ends = (point.low, point.high)
    value = interval_words(*ends) if point.value is None else share_and_interval(point.value, *ends)
    tip = f"{curve.ranked.label}, gap {point.text}: {value}"
    return point.words, max(length, 0.6) if point.sort_key > 0 else 0.0, tip


def _values(curves: Sequence[_Curve], gaps: Sequence[float], stops: dict[float, str]) -> Markup:
    """Return the curves as a table, at a few gaps."""
    step = max(1, -(-len(gaps) // _MAX_COLUMNS))
    chosen = gaps[::step]
    head = ["Features", *(f"gap {stops[gap]}" for gap in chosen)]
    rows = [
        row(
            text_cell(name(curve.ranked.label)),
            *(_cell(curve.at(gap)) for gap in chosen),
            data_sensitive=curve.ranked.label,
        )
        for curve in curves
    ]
    is_gappy = any(curve.at(gap) is None for curve in curves for gap in chosen)
    caption = f"Share by gap{f' ({NONE}: not computed at this gap)' if is_gappy else ''}"
    return element("details", element("summary", "The same as a table"), table(head, rows, caption))


def _cell(point: _Point | None) -> Cell:
    if point is None:
        return number_cell(NONE)
    return number_cell(point.words, Fraction(point.sort_key))
