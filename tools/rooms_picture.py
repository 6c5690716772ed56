"""Draws the picture of docs/architecture.md: the rooms, and what passes between them."""

from __future__ import annotations

import math
from typing import NamedTuple

from tools.canvas import Canvas

WIDTH, HEIGHT = 1116, 572
_LEFT, _BOX, _STEP = 22, 136, 156
"""Left edge of the first column, width of a box, and distance between columns."""


class Room(NamedTuple):
    """A folder of ``src/xcount``: what it holds, and the type that leaves it."""

    name: str
    holds: tuple[str, ...]
    gives: str = ""


PIPELINE = (
    Room("model", ("loaders,", "tables of rows"), "Ensemble"),
    Room("question", ("grid, change,", "query, domain"), "Grid, Query"),
    Room("problem", ("the question in", "integers: forms"), "Problem"),
    Room("counters", ("exact, sampling,", "auto"), "Tally"),
    Room("measures", ("volume, rows,", "population"), "Measured"),
    Room("answers", ("count, explain,", "witnesses"), "CountResult"),
    Room("report", ("text, HTML, CSV,", "Markdown, plots"), "pages"),
)
"""The rooms that one count passes through, in this order."""

BASELINES = Room("baselines", ("paper's methods,", "CNF counters"), "Tally")
VERIFIED = Room("verified", ("the proved", "counter"), "count")
REPAIRS = Room("repairs", ("bounds, smallest", "change, writers"), "RepairResult")
RUNS = Room("runs", ("audit, compare,", "journal"), "AuditResult")
CLUSTER = Room("cluster", ("the same work", "on Dask workers"), "Engine")
CLI = Room("cli", ("options in, report and exit status out; the only room that prints",))
SUPPORT = Room("support", ("small things that every room may use: numerals, memory, visible text",))

ROOMS = (*PIPELINE, BASELINES, VERIFIED, REPAIRS, RUNS, CLUSTER, CLI, SUPPORT)

NATIVE = ("support", "trees", "exact", "sampling", "diagrams", "population", "tables", "worst")
"""The folders of the C++ core."""


def rooms_picture() -> Canvas:
    """The rooms, with the path of one count from left to right."""
    canvas = Canvas(WIDTH, HEIGHT)
    _bar(canvas, CLI, 14)
    for column, room in enumerate(PIPELINE):
        _box(canvas, room, column, 90, "a")
        if column:
            _arrow(canvas, (_right(column - 1), 145), (_left(column), 145))
    for column, room in ((3, BASELINES), (4, VERIFIED), (5, RUNS), (6, CLUSTER)):
        _box(canvas, room, column, 250)
    for column in (2, 3, 5):
        canvas.path(f"M{_middle(column):g} 200L{_middle(column):g} 250")
    canvas.path(f"M{_left(3) + 20} 200L{_middle(2):g} 250")
    _arrow(canvas, (_right(5) - 20, 250), (_left(6) + 12, 200))
    canvas.path(f"M{_right(5)} 305L{_left(6)} 305")
    _box(canvas, REPAIRS, 5, 374)
    beside = _left(5) - 10
    start = _left(5) + 12
    canvas.path(f"M{start} 200L{start} 226L{beside} 226L{beside} 429L{_left(5)} 429")
    _native(canvas, 250)
    _bar(canvas, SUPPORT, 510)
    return canvas


def _left(column: int) -> int:
    return _LEFT + column * _STEP


def _right(column: int) -> int:
    return _left(column) + _BOX


def _middle(column: int) -> float:
    return _left(column) + _BOX / 2


def _bar(canvas: Canvas, room: Room, top: float) -> None:
    canvas.rect(_LEFT, top, WIDTH - 2 * _LEFT, 48)
    canvas.text(_LEFT + 18, top + 30, room.name, "left bold")
    canvas.text(_LEFT + 100, top + 30, room.holds[0], "left small")


def _box(canvas: Canvas, room: Room, column: int, top: float, kind: str = "") -> None:
    middle = _middle(column)
    canvas.rect(_left(column), top, _BOX, 110, kind)
    canvas.text(middle, top + 26, room.name, "bold")
    for line, words in enumerate(room.holds):
        canvas.text(middle, top + 50 + 18 * line, words, "small")
    canvas.text(middle, top + 96, f"\u2192 {room.gives}", "small bold")


def _arrow(canvas: Canvas, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Draw an arrow."""
    length = math.dist(start, end)
    x, y = ((b - a) / length for a, b in zip(start, end, strict=True))
    tip = (end[0] - 2 * x, end[1] - 2 * y)
    heads = ((tip[0] - 7 * x - s * y, tip[1] - 7 * y + s * x) for s in (5, -5))
    first, second = (f"{hx:.1f} {hy:.1f}" for hx, hy in heads)
    point = f"{tip[0]:.1f} {tip[1]:.1f}"
    canvas.path(f"M{start[0]} {start[1]}L{point}M{first}L{point}L{second}")


def _native(canvas: Canvas, top: float) -> None:
    """Draw the C++ core: it counts in bounded slices, and knows nothing of Python."""
    width = 2 * _STEP + _BOX
    canvas.rect(_LEFT, top, width, 110)
    canvas.text(_LEFT + width / 2, top + 26, "cpp: the native core, behind _core", "bold")
    size = (width - 24) / len(NATIVE)
    for index, name in enumerate(NATIVE):
        left = _LEFT + 12 + index * size
        canvas.rect(left + 3, top + 44, size - 6, 48, "a")
        canvas.text(left + size / 2, top + 73, name, "small")
