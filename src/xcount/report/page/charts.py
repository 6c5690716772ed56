"""Charts as inline SVG that keep their letter size on a phone: x in per cent, y in pixels."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from xcount.report.markup import Child, Markup, element, joined
from xcount.report.page.axis import Axis, nice_ceiling, round_values
from xcount.report.words.numbers import axis_words, interval_words, share_words, short_interval
from xcount.support.interval import Interval

PLOT_LEFT, PLOT_RIGHT = 12.0, 97.0
"""The plot's left and right edge, in per cent of the width."""

LEAST_LENGTH = 0.6
"""What is not zero can be seen: the shortest bar, in per cent of the axis."""

_LINE_HEIGHT, _PLOT_TOP, _PLOT_BOTTOM = 270, 16, 232
_PROFILE_HEIGHT, _PROFILE_BOTTOM = 210, 168
_RATIO_TICKS = {"0": 0.0, "¼": 0.25, "½": 0.5, "1": 1.0, "2": 2.0, "4": 4.0, "16": 16.0}
_LEAST_BETWEEN_TICKS = 12.0
_MOST_OWN_TICKS = 8
_MOST_MARKS = 12
"""Lines with more points are drawn without marks."""
_MARKS = ("circle", "square", "diamond", "triangle", "ring", "cross")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart: its label, and shares at places x."""

    label: str
    points: tuple[tuple[float, Interval], ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of a profile: per cell the low and high share, 0..1; None if nothing is known."""

    label: str
    bounds: tuple[tuple[float, float] | None, ...]


@dataclass(frozen=True, slots=True)
class Box:
    """A distribution: label, values, and each of them in words."""

    label: str
    values: tuple[float, ...]
    texts: tuple[str, ...]


def bar(
    share: Interval, text: str, axis: float, kind: str = "none", limit: float | None = None
) -> Markup:
    """Draw one bar on an axis from 0 to ``axis``, with its interval and its limit.

    Without an estimate it is full up to the low end of the interval, and pale up to the high end.

    Args:
        share: its length, between 0 and 1.
        text: what a pointer over it shows.
        axis: where the axis ends.
        kind: the class of its style.
        limit: the largest share allowed, a dashed line.
    """
    ends = (share.least, share.low, share.high)
    width, low, high = (100 * min(1.0, float(end) / axis) for end in ends)
    if share.least > 0:
        width = max(width, LEAST_LENGTH)
    shapes: list[Child] = [
        element("rect", x="0", y="0", width="100%", height="22", class_="rail"),
        element("rect", x="0", y="3", width=f"{width:.3f}%", height="16", class_="fill"),
    ]
    if share.value is None:
        place = {"x": f"{low:.3f}%", "width": f"{high - low:.3f}%"}
        shapes.append(element("rect", y="3", height="16", class_="fill open", **place))
    if not share.is_settled:
        shapes.append(_segment(low, 11, high, 11, "whisker"))
        shapes.extend(_segment(x, 6, x, 16, "whisker") for x in (low, high))
    if limit is not None and limit <= axis:
        x = 100 * limit / axis
        shapes.append(_segment(x, 0, x, 22, "limit"))
    return element(
        "svg",
        element("title", text),
        shapes,
        class_=f"bar {kind}",
        role="img",
        height="22",
        width="100%",
        aria_label=text,
    )


def curve_chart(
    lines: Sequence[Line], title: str, x_label: str
) -> tuple[Markup, dict[float, float]]:
    """Draw shares against gaps, with a cursor that a script may move; return where the gaps lie."""
    points = [point for line in lines for point in line.points]
    x_axis = Axis.of([p[0] for p in points], PLOT_LEFT + 3, PLOT_RIGHT - 2, spread=4)
    ends = [float(end) for _, share in points for end in (share.low, share.high)]
    y_axis = Axis.of(ends, _PLOT_BOTTOM, _PLOT_TOP, zero=True)
    shapes: list[Child] = [_share_grid(y_axis, _PLOT_BOTTOM)]
    places = {x: x_axis.place(x) for x in sorted({p[0] for p in points})}
    last = -_LEAST_BETWEEN_TICKS
    for x in _ticks_of(list(places), x_axis):
        at = x_axis.place(x)
        if at - last >= _LEAST_BETWEEN_TICKS:
            last = at
            shapes.append(_segment(at, _PLOT_BOTTOM, at, _PLOT_BOTTOM + 4, "tick"))
            shapes.append(_label(f"{x:.4g}", at, _PLOT_BOTTOM + 18, "middle"))
    shapes.append(_label(x_label, (PLOT_LEFT + PLOT_RIGHT) / 2, _LINE_HEIGHT - 4, "middle"))
    for index, line in enumerate(lines):
        shapes.append(_drawn_line(line, index, x_axis, y_axis))
    at = next(iter(places.values()))
    shapes.append(_segment(at, _PLOT_TOP - 6, at, _PLOT_BOTTOM, "cursor", visibility="hidden"))
    return _figure(shapes, title, _LINE_HEIGHT), places


def _ticks_of(gaps: Sequence[float], axis: Axis) -> Sequence[float]:
    """Return which gaps are written: few that were asked about as they are, else round ones."""
    if axis.is_log or len(gaps) <= _MOST_OWN_TICKS:
        return gaps
    return round_values(gaps[0], gaps[-1])


def legend(labels: Sequence[str]) -> Markup:
    """Return the legend of a line chart."""
    items = []
    for index, label in enumerate(labels):
        key = element(
            "svg",
            element("line", x1="0", y1="7", x2="26", y2="7", class_="stroke"),
            _mark(index, "13px", 7),
            width="26",
            height="14",
            class_=f"series s{index % 6}",
            aria_hidden="true",
        )
        items.append(element("li", key, element("bdi", label)))
    return element("ul", items, class_="legend")


def profile_chart(
    layers: Sequence[Layer], edges: Sequence[str], texts: Sequence[str], title: str
) -> Markup:
    """Draw one bar per cell up to its low end, and a line to its high end.

    Larger gaps lie inside smaller ones; a cell of which nothing is known stays blank.

    Args:
        layers: widest first.
        edges: labels at the boundaries between cells, or of the cells (one more than boundaries).
        texts: the cells in words.
        title: what the chart shows, in words.
    """
    n_cells = len(layers[0].bounds)
    known = [ends for layer in layers for ends in layer.bounds if ends is not None]
    top = nice_ceiling(max((high for _, high in known), default=0.0))
    y_axis = Axis((0.0, top), (_PROFILE_BOTTOM, _PLOT_TOP), False)
    shapes: list[Child] = [_share_grid(y_axis, _PROFILE_BOTTOM)]
    step = (PLOT_RIGHT - PLOT_LEFT) / n_cells
    for index, layer in enumerate(layers):
        for cell, ends in enumerate(layer.bounds):
            if ends is not None and ends[0] > 0:
                shapes.append(_cell_bar(cell, step, y_axis.place(ends[0]), index, len(layers)))
    for layer in layers:
        for cell, ends in enumerate(layer.bounds):
            if ends is not None and ends[0] != ends[1]:
                x, (low, high) = PLOT_LEFT + (cell + 0.5) * step, map(y_axis.place, ends)
                shapes.append(_segment(x, low, x, high, "unsure"))
    shapes.extend(_edge_labels(edges, n_cells, step))
    shapes.extend(_cell_tip(layers, cell, step, text) for cell, text in enumerate(texts))
    return _figure(shapes, title, _PROFILE_HEIGHT)


def box_chart(boxes: Sequence[Box], title: str) -> Markup:
    """Draw distributions of ratios, one below the other, around a line at 1.

    A ratio r lies at r / (1 + r): 0 at the left end, 1 in the middle, 1/r as far left as r right.
    """
    height = 44 * len(boxes) + 40
    bottom = height - 24
    shapes: list[Child] = []
    for text, ratio in _RATIO_TICKS.items():
        at = _ratio_place(ratio)
        shapes.append(_segment(at, 4, at, bottom, "one" if ratio == 1 else "grid"))
        shapes.append(_label(text, at, height - 8, "middle"))
    for index, box in enumerate(boxes):
        shapes.append(_drawn_box(box, 44 * index + 30, index))
    return _figure(shapes, title, height)


def _ratio_place(ratio: float) -> float:
    return 3.0 + 94.0 * ratio / (1.0 + ratio)


def _drawn_box(box: Box, y: float, index: int) -> Markup:
    if len(box.values) > 1:
        low, middle, high = statistics.quantiles(box.values, n=4, method="inclusive")
    else:
        low = middle = high = box.values[0]
    x1, x2, x3 = (_ratio_place(value) for value in (low, middle, high))
    dots = [
        element(
            "circle",
            element("title", text),
            cx=f"{_ratio_place(value):.3f}%",
            cy=f"{y:.1f}",
            r="4",
            class_="dot",
        )
        for value, text in zip(box.values, box.texts, strict=True)
    ]
    return element(
        "g",
        element("text", box.label, x="3%", y=f"{y - 14:.1f}", class_="boxlabel"),
        element(
            "rect",
            x=f"{x1:.3f}%",
            y=f"{y - 9:.1f}",
            width=f"{x3 - x1:.3f}%",
            height="18",
            class_="box",
        ),
        _segment(x2, y - 9, x2, y + 9, "median"),
        dots,
        class_=f"series s{index % 6}",
    )


def _cell_tip(layers: Sequence[Layer], cell: int, step: float, text: str) -> Markup:
    """Return an invisible column over a cell that says its exact numbers under the pointer."""
    said = [
        f"{layer.label}: {_bounds_text(*ends)}"
        for layer in layers
        if (ends := layer.bounds[cell]) is not None
    ]
    return element(
        "rect",
        element("title", f"{text}: {'; '.join(said) or 'nothing is known'}"),
        x=f"{PLOT_LEFT + cell * step:.3f}%",
        y=_PLOT_TOP,
        width=f"{step:.3f}%",
        height=_PROFILE_BOTTOM - _PLOT_TOP,
        class_="hit",
    )


def _bounds_text(low: float, high: float) -> str:
    return share_words(low) if low == high else interval_words(Interval(None, low, high))


def both_ways(shares: Sequence[Interval], texts: Sequence[str]) -> Markup:
    """Draw how much goes down, to the left, and how much goes up, to the right.

    Args:
        shares: what goes down, and what goes up.
        texts: the same in words.
    """
    axis = nice_ceiling(max(float(share.high) for share in shares))
    shapes: list[Child] = [_segment(50, 0, 50, 44, "axis")]
    for share, text, sign in zip(shares, texts, (-1, 1), strict=True):
        ends = (share.least, share.low, share.high)
        length, first, last = (50 * float(end) / axis for end in ends)
        length = max(length, LEAST_LENGTH) if share.least > 0 else 0.0
        start = 50 - length if sign < 0 else 50.0
        kind = "down" if sign < 0 else "up"
        parts: list[Child] = [
            element("title", text),
            element("rect", x=f"{25 + 25 * sign}%", y=4, width="50%", height=18, class_="rail"),
            element("rect", x=f"{start:.3f}%", y=6, width=f"{length:.3f}%", height=14, class_=kind),
        ]
        if not share.is_settled:
            parts.append(_segment(50 + sign * first, 13, 50 + sign * last, 13, "whisker"))
        shapes.append(element("g", parts))
        anchor = "end" if sign < 0 else "start"
        arrow = f"\u2190 {text}" if sign < 0 else f"{text} \u2192"
        shapes.append(_label(arrow, 50 + sign * 1.5, 40, anchor))
    return _figure(shapes, "; ".join(texts), 48)


def shades(labels: Sequence[str]) -> Markup:
    """Return the legend of a profile."""
    last = max(1, len(labels) - 1)
    items = [
        element(
            "li",
            element(
                "svg",
                element(
                    "rect",
                    width="14",
                    height="14",
                    rx="3",
                    class_=f"layer l{3 if len(labels) == 1 else round(3 * index / last)}",
                ),
                width="14",
                height="14",
                aria_hidden="true",
            ),
            label,
        )
        for index, label in enumerate(labels)
    ]
    return element("ul", items, class_="legend")


def _cell_bar(cell: int, step: float, y: float, layer: int, n_layers: int) -> Markup:
    gap = step * (0.08 if step > 1.2 else 0.0)
    shade = 0 if n_layers == 1 else round(3 * layer / (n_layers - 1))
    return element(
        "rect",
        x=f"{PLOT_LEFT + cell * step + gap:.3f}%",
        y=f"{min(y, _PROFILE_BOTTOM - 1.5):.1f}",
        width=f"{step - 2 * gap:.3f}%",
        height=f"{max(_PROFILE_BOTTOM - y, 1.5):.1f}",
        class_=f"layer l{3 if n_layers == 1 else shade}",
    )


def _edge_labels(edges: Sequence[str], n_cells: int, step: float) -> list[Markup]:
    """Label some boundaries (or cells), few enough to be read on a phone."""
    on_cells = len(edges) == n_cells
    first = PLOT_LEFT + (step / 2 if on_cells else step)
    stride = max(1, math.ceil(len(edges) / 7))
    labels = []
    for index in range(0, len(edges), stride):
        x = first + index * step
        labels.append(_segment(x, _PROFILE_BOTTOM, x, _PROFILE_BOTTOM + 4, "tick"))
        text = _shortened(edges[index], max(9, 63 // math.ceil(len(edges) / stride)))
        labels.append(_label(text, x, _PROFILE_BOTTOM + 18, "middle"))
    return labels


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _share_grid(axis: Axis, bottom: float) -> Markup:
    parts = []
    for tick in axis.ticks():
        y = axis.place(tick)
        parts.append(_segment(PLOT_LEFT, y, PLOT_RIGHT, y, "grid"))
        parts.append(_label(axis_words(tick), PLOT_LEFT - 1.5, y + 4, "end"))
    parts.append(_segment(PLOT_LEFT, bottom, PLOT_RIGHT, bottom, "axis"))
    return joined(parts)


def _drawn_line(line: Line, index: int, x_axis: Axis, y_axis: Axis) -> Markup:
    shapes: list[Child] = []
    places = [
        (x_axis.place(x), None if share.value is None else y_axis.place(float(share.value)))
        for x, share in line.points
    ]
    for (x1, y1), (x2, y2) in itertools.pairwise(places):
        if y1 is not None and y2 is not None:
            shapes.append(_segment(x1, y1, x2, y2, "stroke"))
    is_dense = len(places) > _MOST_MARKS
    for (x, y), (gap, share) in zip(places, line.points, strict=True):
        ends = (y_axis.place(float(share.low)), y_axis.place(float(share.high)))
        parts: list[Child] = []
        if not share.is_settled and not is_dense:
            parts.append(_segment(x, ends[0], x, ends[1], "whisker"))
        if y is None:
            parts.extend(_segment(x - 0.8, end, x + 0.8, end, "whisker") for end in ends)
        elif not is_dense:
            parts.append(_mark(index, f"{x:.3f}%", y))
        if parts:
            known = "" if share.value is None else f"{share_words(share.value)}, "
            between = short_interval(share) or "exact"
            title = element("title", f"{line.label}, gap {gap:g}: {known}{between}")
            shapes.append(element("g", title, parts))
    if is_dense:
        shapes += _edges_of(line, x_axis, y_axis)
    return element("g", shapes, class_=f"series s{index % 6}", data_sensitive=line.label)


def _edges_of(line: Line, x_axis: Axis, y_axis: Axis) -> list[Markup]:
    """Draw the ends of the intervals along a line of many points, where they are not the line."""
    drawn = []
    for a, b in itertools.pairwise(line.points):
        x1, x2 = x_axis.place(a[0]), x_axis.place(b[0])
        if not (a[1].is_settled and b[1].is_settled):
            for first, last in ((a[1].low, b[1].low), (a[1].high, b[1].high)):
                y1, y2 = y_axis.place(float(first)), y_axis.place(float(last))
                drawn.append(_segment(x1, y1, x2, y2, "edge"))
    return drawn


def _mark(index: int, x: str, y: float) -> Markup:
    """Draw a point; its shape tells series apart without their colour."""
    shape = _MARKS[index % len(_MARKS)]
    if shape in ("circle", "ring"):
        return element("circle", cx=x, cy=f"{y:.1f}", r="4", class_=f"mark {shape}")
    paths = {
        "square": "M-3.6-3.6h7.2v7.2h-7.2z",
        "diamond": "M0-5L5 0L0 5L-5 0z",
        "triangle": "M0-5L4.6 3.6H-4.6z",
        "cross": "M-4-4L4 4M4-4L-4 4",
    }
    drawn = element("path", d=paths[shape], class_=f"mark {shape}")
    return element("svg", drawn, x=x, y=f"{y:.1f}", overflow="visible", width="1", height="1")


def _segment(
    x1: float, y1: float, x2: float, y2: float, kind: str, visibility: str | None = None
) -> Markup:
    return element(
        "line",
        x1=f"{x1:.3f}%",
        y1=f"{y1:.1f}",
        x2=f"{x2:.3f}%",
        y2=f"{y2:.1f}",
        class_=kind,
        visibility=visibility,
    )


def _label(text: str, x: float, y: float, anchor: str) -> Markup:
    return element("text", text, x=f"{x:.3f}%", y=f"{y:.1f}", text_anchor=anchor)


def _figure(shapes: Sequence[Child], title: str, height: int) -> Markup:
    return element(
        "svg",
        shapes,
        class_="chart",
        role="img",
        width="100%",
        height=height,
        aria_label=title,
    )
