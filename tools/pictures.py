"""Draws the pictures of docs/algorithm.md from a small ensemble that is really counted.

    python -m tools.pictures

writes ``docs/pictures/*.svg``, including the picture of docs/architecture.md
(:mod:`tools.rooms_picture`).
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from tools.canvas import Canvas
from tools.rooms_picture import rooms_picture
from xcount import Grid, count
from xcount.answers.result import CountResult
from xcount.counters.sampling.intervals import BettingSequence
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.examples import ensemble_of

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"

AGE, INCOME, TENURE = range(3)
NAMES = ("age", "income", "tenure")
GAP = "1"
TREES: tuple[Any, ...] = (
    (AGE, 30.0, (INCOME, 40.0, -1.0, 0.2), (INCOME, 40.0, -0.7, 0.3)),
    (AGE, 50.0, (TENURE, 5.0, -0.6, 0.1), 0.3),
    (INCOME, 60.0, (AGE, 50.0, -0.2, 0.3), 0.4),
    (TENURE, 5.0, -0.3, (INCOME, 40.0, 0.0, 0.5)),
)
"""Nested: a leaf, or (feature, threshold, left, right) with left iff x < threshold."""


def example() -> Ensemble:
    """Return the ensemble of the pictures."""
    ensemble = ensemble_of(*TREES, n_features=len(NAMES))
    return replace(ensemble, features=tuple(map(Feature, NAMES)))


def answer() -> CountResult:
    """Return the count that the pictures explain."""
    return count(example(), sensitive="age", gap=GAP, distance=1, method="exact", profile=True)


def guards(feature: int) -> list[float]:
    """Return the thresholds of a feature."""
    return [float(t) for t in Grid.of(example()).axes[feature].thresholds]


def inside(feature: int, cell: int) -> float:
    """Return a value in a cell."""
    cuts = guards(feature)
    return cuts[cell] - 1 if cell < len(cuts) else cuts[-1] + 1


def value(node: Any, point: tuple[float, ...]) -> float:
    """Return the leaf that a point reaches."""
    while isinstance(node, tuple):
        node = node[2] if point[node[0]] < node[1] else node[3]
    return float(node)


def margin(cells: tuple[int, ...]) -> float:
    """Return the sum of all trees in a region."""
    point = tuple(inside(feature, cell) for feature, cell in enumerate(cells))
    return round(sum(value(tree, point) for tree in TREES), 6)


def restricted(node: Any, age: float) -> Any:
    """Return a tree for a fixed age."""
    if not isinstance(node, tuple):
        return node
    feature, threshold, left, right = node
    if feature == AGE:
        return restricted(left if age < threshold else right, age)
    return (feature, threshold, restricted(left, age), restricted(right, age))


def minus(a: Any, b: Any) -> Any:
    """Return the difference of two trees; equal branches are one leaf."""
    if isinstance(a, tuple) or isinstance(b, tuple):
        feature, threshold = (a if isinstance(a, tuple) else b)[:2]
        sides = [_side(tree, feature, threshold) for tree in (a, b)]
        left, right = (minus(sides[0][i], sides[1][i]) for i in (0, 1))
        return left if left == right else (feature, threshold, left, right)
    return round(a - b, 6)


def _side(tree: Any, feature: int, threshold: float) -> tuple[Any, Any]:
    """Return what a tree becomes below and above a threshold (of one test per path)."""
    if isinstance(tree, tuple) and tree[:2] == (feature, threshold):
        return tree[2], tree[3]
    return tree, tree


def differences(low: int, high: int) -> list[Any]:
    """Return the difference trees of two cells of age, one per tree."""
    ages = inside(AGE, high), inside(AGE, low)
    return [minus(restricted(tree, ages[0]), restricted(tree, ages[1])) for tree in TREES]


def bounds(node: Any) -> tuple[float, float]:
    """Return the least and the largest leaf."""
    leaves = list(_leaves(node))
    return min(leaves), max(leaves)


def _leaves(node: Any) -> Iterator[float]:
    if isinstance(node, tuple):
        yield from _leaves(node[2])
        yield from _leaves(node[3])
    else:
        yield node


def number(x: float, sign: bool = False) -> str:
    """Return a number with a typographic minus sign."""
    return f"{x:+g}".replace("-", "\u2212") if sign and x else f"{x:g}".replace("-", "\u2212")


def draw_tree(
    canvas: Canvas, node: Any, x: float, y: float, width: float, sign: bool = False
) -> None:
    """Draw a tree around x; the left branch is taken if the test holds."""
    if not isinstance(node, tuple):
        low = f"{number(node, sign)}"
        canvas.rect(x - 24, y - 14, 48, 26, "a")
        canvas.text(x, y + 4, low)
        return
    feature, threshold, left, right = node
    for child, side in ((left, -1), (right, 1)):
        at = x + side * width / 2
        canvas.path(f"M{x:g} {y + 12:g}L{at:g} {y + 46:g}")
        draw_tree(canvas, child, at, y + 60, width / 2, sign)
    canvas.rect(x - 52, y - 14, 104, 26)
    canvas.text(x, y + 4, f"{NAMES[feature]} < {threshold:g}", "bold" if feature == AGE else "")


def trees_picture() -> Canvas:
    """The four trees."""
    canvas = Canvas(960, 190)
    for index, (tree, x) in enumerate(zip(TREES, (135, 385, 610, 820), strict=True)):
        canvas.text(x, 22, f"tree {index + 1}", "faint small")
        draw_tree(canvas, tree, x, 48, 124)
    return canvas


def regions_picture() -> Canvas:
    """All regions with their margins, in one panel per cell of tenure."""
    canvas = Canvas(900, 330)
    sensitive = sensitive_regions()
    for panel, left in enumerate((90, 520)):
        sign = "<" if panel == 0 else "\u2265"
        canvas.text(left + 165, 24, f"tenure {sign} {guards(TENURE)[0]:g}", "bold")
        _draw_panel(canvas, panel, left, sensitive)
    canvas.text(30, 170, "income", "small")
    return canvas


def _draw_panel(canvas: Canvas, tenure: int, left: float, sensitive: set[tuple[int, ...]]) -> None:
    top, width, height = 40, 110, 75
    for age, income in product(range(3), range(3)):
        cells = (age, income, tenure)
        x, y = left + age * width, top + (2 - income) * height
        canvas.rect(x + 2, y + 2, width - 4, height - 4, "b" if cells in sensitive else "")
        canvas.text(x + width / 2, y + height / 2 + 5, number(margin(cells)))
    for index, cut in enumerate(guards(AGE), start=1):
        canvas.text(left + index * width, top + 3 * height + 18, f"{cut:g}", "small")
    for index, cut in enumerate(guards(INCOME), start=1):
        canvas.text(left - 16, top + (3 - index) * height + 5, f"{cut:g}", "small")
    canvas.text(left + 1.5 * width, top + 3 * height + 44, "age", "small")


def sensitive_regions() -> set[tuple[int, ...]]:
    """Return the sensitive regions, by the definition."""
    sizes = [len(guards(feature)) + 1 for feature in range(3)]
    return {
        cells
        for cells in product(*map(range, sizes))
        for other in (cells[AGE] - 1, cells[AGE] + 1)
        if 0 <= other < sizes[AGE] and abs(margin(cells) - margin((other, *cells[1:]))) > float(GAP)
    }


def masks_picture() -> Canvas:
    """The cells of age, and by how much neighbours can differ."""
    canvas = Canvas(900, 215)
    cuts = guards(AGE)
    words = [
        f"age < {cuts[0]:g}",
        f"{cuts[0]:g} \u2264 age < {cuts[1]:g}",
        f"{cuts[1]:g} \u2264 age",
    ]
    for index, text in enumerate(words):
        canvas.rect(60 + index * 270, 140, 240, 60, "a")
        canvas.text(180 + index * 270, 166, f"mask {index}", "bold")
        canvas.text(180 + index * 270, 188, text, "small")
    for index in (0, 1):
        middle = 315 + index * 270
        found = differences(index, index + 1)
        live = [f"tree {i + 1}" for i, tree in enumerate(found) if bounds(tree) != (0, 0)]
        low, high = (round(sum(bounds(tree)[side] for tree in found), 6) for side in (0, 1))
        decided = high <= float(GAP)
        canvas.path(f"M{middle - 110} 136Q{middle} 80 {middle + 110} 136", "" if decided else "hot")
        verb = "differs" if len(live) == 1 else "differ"
        canvas.text(middle, 24, f"only {' and '.join(live)} {verb},", "small")
        canvas.text(middle, 46, f"by {number(low)} to {number(high)}", "bold")
        canvas.text(middle, 68, "never beyond the gap" if decided else "undecided", "small")
    return canvas


def difference_picture() -> Canvas:
    """Difference trees of the pair that is undecided."""
    canvas = Canvas(900, 330)
    low, high = inside(AGE, 1), inside(AGE, 2)
    for row, index in enumerate((1, 2)):
        top, tree = 62 + 160 * row, TREES[index]
        canvas.text(14, top + 4, f"tree {index + 1}", "left bold")
        draw_tree(canvas, restricted(tree, high), 190, top, 110)
        canvas.text(310, top + 25, "\u2212")
        draw_tree(canvas, restricted(tree, low), 430, top, 110)
        canvas.text(560, top + 25, "=")
        draw_tree(canvas, differences(1, 2)[index], 720, top, 150, sign=True)
    for x, words in ((190, "in mask 2"), (430, "in mask 1"), (720, "difference tree")):
        canvas.text(x, 22, words, "faint small")
    return canvas


@dataclass(frozen=True)
class State:
    """A state of the elimination: difference trees and the remaining parts of the axes."""

    trees: tuple[Any, ...]
    cells: int

    @property
    def range(self) -> tuple[float, float]:
        low, high = (sum(bounds(tree)[side] for tree in self.trees) for side in (0, 1))
        return round(low, 6), round(high, 6)

    @property
    def verdict(self) -> str:
        low, high = self.range
        if low > float(GAP):
            return "all count"
        return "none counts" if high <= float(GAP) else "cut again"


def elimination_picture() -> Canvas:
    """How the undecided pair is counted."""
    canvas = Canvas(900, 400)
    start = State(tuple(tree for tree in differences(1, 2) if tree != 0), 6)

    def draw(state: State, x: float, y: float, label: str) -> None:
        low, high = state.range
        done = state.verdict != "cut again"
        kind = "b" if "all" in state.verdict else "" if done else "a"
        canvas.rect(x - 110, y, 220, 66, kind)
        if label:
            canvas.text(x, y - 10, label, "small")
        words = number(low) if low == high else f"{number(low)} to {number(high)}"
        canvas.text(x, y + 26, f"difference {words}", "bold")
        canvas.text(
            x,
            y + 50,
            f"{state.cells} combination{'s' * (state.cells > 1)}: {state.verdict}",
            "small",
        )

    draw(start, 450, 16, "")
    feature, threshold = start.trees[0][:2]
    parts = _cut(start, feature, threshold)
    for part, x, sign in zip(parts, (270, 650), ("<", "\u2265"), strict=True):
        canvas.path(f"M450 82L{x} 124")
        draw(part, x, 150, f"{NAMES[feature]} {sign} {threshold:g}")
    open_part, x = next(
        (p, x) for p, x in zip(parts, (270, 650), strict=True) if "cut" in p.verdict
    )
    rest = next(tree for tree in open_part.trees if isinstance(tree, tuple))
    for part, at, sign in zip(
        _cut(open_part, *rest[:2]), (x - 130, x + 150), ("<", "\u2265"), strict=True
    ):
        canvas.path(f"M{x} 216L{at} 260")
        draw(part, at, 286, f"{NAMES[rest[0]]} {sign} {rest[1]:g}")
    pair = answer().profile
    assert pair is not None
    total = next(p.low for p in pair.pairs if p.cells == (1,))
    canvas.text(450, 386, f"{total} combinations, at both masks: {answer().count} regions", "bold")
    return canvas


def intervals(n_steps: int, seed: int = 0) -> list[tuple[int, float, float]]:
    """Return the interval of the share after 2, 4, 8, ... random regions: n, low, high."""
    cells = sorted(product(range(3), range(3), range(2)))
    generator, hits = random.Random(seed), sensitive_regions()
    sequence = BettingSequence(np.array([0.0, 1.0]), delta=0.1, epsilon=0.1)
    found = []
    for step in range(1, n_steps + 1):
        n_new = 2**step - sequence.n
        n_hits = sum(generator.choice(cells) in hits for _ in range(n_new))
        sequence.update(np.array([n_new - n_hits, n_hits]))
        found.append((2**step, *sequence.interval()))
    return found


def estimate_picture() -> Canvas:
    """How an interval closes in on the share."""
    canvas = Canvas(900, 330)
    steps = intervals(14)

    def x(n: int) -> float:
        return 40 + 60 * (n.bit_length() - 1)

    def y(share: float) -> float:
        return round(270 - 240 * share, 1)

    upper = "L".join(f"{x(n)} {y(high)}" for n, _, high in steps)
    lower = "L".join(f"{x(n)} {y(low)}" for n, low, _ in reversed(steps))
    canvas.path(f"M{upper}L{lower}Z", "band")
    share = answer().share_low  # exact
    canvas.path(f"M100 {y(share)}L880 {y(share)}", "hot dashed")
    canvas.text(880, y(share) - 10, "4 of 18", "hot right")
    for n, _, _ in steps[::2]:
        canvas.text(x(n), 294, f"{n:,}", "small")
    canvas.text(490, 320, "regions drawn at random", "small")
    for percent in (0, 50, 100):
        canvas.path(f"M92 {y(percent / 100)}L100 {y(percent / 100)}")
        canvas.text(62, y(percent / 100) + 5, f"{percent} %", "small")
    return canvas


def _cut(state: State, feature: int, threshold: float) -> tuple[State, State]:
    """Cut the axis of a feature, and restrict the trees to each side."""
    cuts = guards(feature)
    below = cuts.index(threshold) + 1
    n_cells = len(cuts) + 1
    sides = [tuple(_side(tree, feature, threshold)[i] for tree in state.trees) for i in (0, 1)]
    share = state.cells // n_cells
    return State(sides[0], share * below), State(sides[1], share * (n_cells - below))


def drawings() -> dict[str, str]:
    """Return all pictures by name."""
    assert answer().count == len(sensitive_regions())
    pictures = {
        "trees": trees_picture,
        "regions": regions_picture,
        "masks": masks_picture,
        "difference": difference_picture,
        "elimination": elimination_picture,
        "estimate": estimate_picture,
        "rooms": rooms_picture,
    }
    return {name: draw().svg() for name, draw in pictures.items()}


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    for name, svg in drawings().items():
        (FOLDER / f"{name}.svg").write_text(svg)
    print(f"{answer().count} of {answer().n_regions}: {FOLDER}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
