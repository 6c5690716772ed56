"""The section that shows the share against the gap, with a slider over the curve."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from xcount.answers.explanation import CurvePoint
from xcount.report.explanation_words import explanation_of, unit_text
from xcount.report.markup import Markup, element, name
from xcount.report.page.axis import nice_ceiling
from xcount.report.page.charts import Line, bar, curve_chart, legend
from xcount.report.page.tables import Cell, number_cell, row, table, text_cell
from xcount.report.page.view import View
from xcount.report.words.numbers import (
    distance_text,
    share_and_interval,
    short_share,
)
from xcount.runs.ranked import Ranked
from xcount.support.interval import Interval

MAX_LINES = 6
_MAX_COLUMNS = 6


@dataclass(frozen=True, slots=True)
class _Curve:
    """The shares of a group against the gap."""

    ranked: Ranked
    points: tuple[CurvePoint, ...]
    unit: str = ""

    def has(self, gap: float) -> bool:
        """Tell whether the share was computed at a gap."""
        return any(point.gap == gap for point in self.points)

    def at(self, gap: float, text: str) -> CurvePoint:
        """Return the point at a gap; between those that were computed, what they prove.

        A share can only fall as the gap grows: it is at most what it is at any smaller gap, and at
        least what it is at any larger one.
        """
        for point in self.points:
            if point.gap == gap:
                return point
        low = max((point.share.low for point in self.points if point.gap > gap), default=0.0)
        high = min((point.share.high for point in self.points if point.gap < gap), default=1.0)
        high = max(low, high)
        share = Interval(low if low == high else None, low, high)
        return CurvePoint(gap, text, share)


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
        Line(c.ranked.label, tuple((p.gap, p.share) for p in c.points)) for c in curves[:MAX_LINES]
    ]
    unit = curves[0].unit
    chart, places = curve_chart(lines, f"{title}: {', '.join(labels)}", f"gap{unit}")
    stops = {p.gap: p.gap_text for c in curves for p in c.points if p.gap in places}
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
        element("ol", _rows(curves, stops, start), class_="bars"),
        _values(curves, stops),
        data_stops=json.dumps(stations),
    )


def _curve(view: View, ranked: Ranked, distance: int | None) -> _Curve | None:
    """Return the curve of an explanation, or one made of the gaps that were counted."""
    results = [r for r in ranked.results if r.distance == distance]
    for result in results:
        for curve in explanation_of(result).curves:
            if curve.measure != view.measure:
                continue
            if len(curve.points) > 1:
                return _Curve(ranked, curve.points, f" in {unit_text(curve.unit)}")
    counted = []
    for result in results:
        if result.change.size is not None:
            share = view.share(result).interval
            counted.append(CurvePoint(result.change.size, result.change.brief, share))
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


def _rows(curves: Sequence[_Curve], stops: Mapping[float, str], start: int) -> list[Markup]:
    """Return a bar per feature at the slider's gap; it carries what it is at every other gap."""
    gaps = sorted(stops)
    highest = max(float(point.share.high) for curve in curves for point in curve.points)
    axis = nice_ceiling(highest)
    rows = []
    for curve in curves:
        at = [_state(curve, curve.at(gap, stops[gap]), axis) for gap in gaps]
        shown = Interval.exactly(curve.at(gaps[start], stops[gaps[start]]).share.least)
        rows.append(
            element(
                "li",
                element("span", name(curve.ranked.label), class_="name"),
                bar(shown, at[start][2], axis),
                element("span", element("b", at[start][0]), class_="value"),
                data_sensitive=curve.ranked.label,
                data_at=json.dumps(at),
            )
        )
    return rows


def _state(curve: _Curve, point: CurvePoint, axis: float) -> tuple[str, float, str]:
    """Return a bar's text, length in per cent and exact numbers at a gap."""
    share = point.share
    length = round(100 * min(1.0, float(share.least) / axis), 3)
    tip = f"{curve.ranked.label}, gap {point.gap_text}: {share_and_interval(share)}"
    return short_share(share), max(length, 0.6) if share.least > 0 else 0.0, tip


def _columns(curves: Sequence[_Curve], gaps: Sequence[float]) -> list[float]:
    """Return a few gaps, spread evenly; of neighbours, the first that most curves were computed at.

    Args:
        curves: of all features.
        gaps: all gaps that any of them was computed at, ascending.
    """
    n = min(_MAX_COLUMNS, len(gaps))
    ends = [len(gaps) * k // n for k in range(n + 1)]
    runs = (gaps[first:end] for first, end in itertools.pairwise(ends))
    return [max(run, key=lambda gap: sum(curve.has(gap) for curve in curves)) for run in runs]


def _values(curves: Sequence[_Curve], stops: Mapping[float, str]) -> Markup:
    """Return the curves as a table, at a few gaps."""
    chosen = _columns(curves, sorted(stops))
    head = ["Features", *(f"gap {stops[gap]}" for gap in chosen)]
    rows = [
        row(
            text_cell(name(curve.ranked.label)),
            *(_cell(curve.at(gap, stops[gap])) for gap in chosen),
            data_sensitive=curve.ranked.label,
        )
        for curve in curves
    ]
    caption = "Share by gap"
    if not all(curve.has(gap) for curve in curves for gap in chosen):
        caption += (
            ". Between the gaps at which a feature was counted, an interval is given: the share "
            "can only fall as the gap grows."
        )
    return element("details", element("summary", "The same as a table"), table(head, rows, caption))


def _cell(point: CurvePoint) -> Cell:
    return number_cell(short_share(point.share), Fraction(point.share.least))
