"""The *switch*, an added feature whose cells turn trees on or off, or negate them.

Pairs of masks are compared by ``|W - W'| > threshold``, whatever the sign. A switch allows other
comparisons: with a sum of trees for each of its cells, pairs of masks with different cells of the
switch compare different sums, and adding a constant that is larger than all of them gives the
difference a known sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from xcount.model.ensemble import Feature, Tree
from xcount.problem.integers import Integers
from xcount.problem.laid_trees import LaidTrees
from xcount.question.grid import Axis, Grid


@dataclass(frozen=True, slots=True)
class Function:
    """``(sum of trees of output plus) - (that of output minus) + constant``; None is no sum."""

    plus: int | None
    minus: int | None
    constant: int


OFF = Function(None, None, 0)
"""The function that turns all trees off."""


@dataclass(frozen=True, slots=True)
class Switch:
    """The trees of an ensemble below a switch; its cell i stands for the i-th function.

    Attributes:
        grid: the cells of the features; the switch becomes its last axis.
        functions: the function that each cell of the switch selects.
    """

    grid: Grid
    functions: Sequence[Function]

    @property
    def feature(self) -> int:
        return len(self.grid.axes)

    def laid(
        self, trees: Sequence[Tree], leaves: Sequence[Integers], scale: Fraction, bound: int
    ) -> LaidTrees:
        """Return the trees, with these integers as leaves, and the constants as one forest.

        The leaves are integers from the start: no float could hold leaves plus constants.
        """
        values: list[Integers] = []
        switched = [
            self._switched(tree, own, values) for tree, own in zip(trees, leaves, strict=True)
        ]
        for cell, function in enumerate(self.functions):
            if function.constant:
                switched.append(self._constant(cell, function.constant, values))
        return LaidTrees(tuple(switched), Integers.joined(values), self._grid(), scale, bound)

    def _switched(self, tree: Tree, leaves: Integers, values: list[Integers]) -> Tree:
        """Return the tree with tests of the switch above it: added, subtracted, or turned off."""
        cells = list(enumerate(self.functions))
        plus = frozenset(cell for cell, f in cells if f.plus == tree.output)
        minus = frozenset(cell for cell, f in cells if f.minus == tree.output)
        if len(plus) == len(cells):
            values.append(leaves)
            return tree
        # 0: in plus? -> 3; else 1: in minus? -> 3 + n; else 2: a leaf of 0
        n, switch = tree.n_nodes, self.feature
        values += [Integers.of((0, 0, 0)), leaves, -leaves]
        copies = (3, 3 + n)
        categories = {i + by: codes for i, codes in tree.left_categories.items() for by in copies}
        head = np.array([3, 3 + n, -1])
        return Tree(
            feature=_stacked([switch, switch, -1], tree.feature, tree.feature),
            threshold=np.concatenate([np.full(3, np.nan), tree.threshold, tree.threshold]),
            left=_stacked(head, _moved(tree.left, 3), _moved(tree.left, 3 + n)),
            right=_stacked([1, 2, -1], _moved(tree.right, 3), _moved(tree.right, 3 + n)),
            missing_left=_stacked([0, 0, 0], tree.missing_left, tree.missing_left).astype(np.bool_),
            zero_side=_stacked([0, 0, 0], tree.zero_side, tree.zero_side).astype(np.int8),
            value=np.zeros(2 * n + 3),
            left_categories={**categories, 0: plus, 1: minus},
            left_ranges={i + by: ends for i, ends in tree.left_ranges.items() for by in copies},
        )

    def _constant(self, cell: int, value: int, values: list[Integers]) -> Tree:
        """Return a tree that adds a constant if the switch is at one cell."""
        values.append(Integers.of((0, value, 0)))
        return Tree(
            feature=np.array([self.feature, -1, -1], dtype=np.int32),
            threshold=np.full(3, np.nan),
            left=np.array([1, -1, -1], dtype=np.int32),
            right=np.array([2, -1, -1], dtype=np.int32),
            missing_left=np.zeros(3, dtype=np.bool_),
            zero_side=np.zeros(3, dtype=np.int8),
            value=np.zeros(3),
            left_categories={0: frozenset({cell})},
        )

    def _grid(self) -> Grid:
        """Return the grid with the switch as its last axis."""
        cells = range(len(self.functions))
        axis = Axis(Feature("switch", tuple(cells)), np.empty(0), tuple((cell,) for cell in cells))
        return Grid((*self.grid.axes, axis), self.grid.input_dtype)


def _moved(children: NDArray[np.int32], by: int) -> NDArray[np.int32]:
    return np.where(children >= 0, children + by, -1)


def _stacked(*parts: object) -> NDArray[np.int32]:
    return np.concatenate([np.asarray(part, dtype=np.int32) for part in parts])
