"""Trees with integer leaves, laid on a grid: every test asks for a cell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.model.ensemble import ZERO_RANGE, Ensemble, FlaggedCodes, Tree, in_ranges
from xcount.problem.integers import Integers, limbs_for, scale_leaves
from xcount.question.grid import Axis, Grid
from xcount.question.guards import by_feature, rounded_up, zero_range_matters
from xcount.support.workspace import Slot


@dataclass(frozen=True, eq=False)
class LaidTrees:
    """Trees whose leaves are the given integers, on a grid.

    Attributes:
        trees: the trees; their own ``value`` is ignored.
        values: the integers of all nodes of all trees, one tree after the other.
        grid: the cells that their tests ask about.
        scale: one unit of margin in these integers.
        known_bound: a bound of the sum, if a better one than the sum of the largest leaves is
            known.
    """

    trees: tuple[Tree, ...]
    values: Integers
    grid: Grid
    scale: Fraction = Fraction(1)
    known_bound: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to send to another process; native trees are made again there."""
        return {name: value for name, value in self.__dict__.items() if name != "forest"}

    @classmethod
    def of_output(
        cls, ensemble: Ensemble, grid: Grid, output: int, precision: int | None
    ) -> LaidTrees:
        """Return the trees of one output with scaled leaves, cached on the grid."""

        def lay() -> LaidTrees:
            trees = tuple(tree for tree in ensemble.trees if tree.output == output)
            scaled = scale_leaves(_flat_leaves(trees), ensemble.divisor, precision)
            return cls(trees, scaled.values, grid, scaled.scale)

        return grid.workspace.once(_LAID, (ensemble, output, precision), lay)

    @classmethod
    def axes_of(cls, grid: Grid) -> LaidTrees:
        """Return a grid without trees, its axes in native form; cached."""
        return grid.workspace.once(_AXES, None, lambda: cls((), Integers.of(()), grid))

    @cached_property
    def bound(self) -> int:
        """A bound of |sum of leaves| everywhere."""
        if self.known_bound is not None:
            return self.known_bound
        total, start = 0, 0
        for tree in self.trees:
            total += self.values[start : start + tree.n_nodes].largest()
            start += tree.n_nodes
        return total

    def threshold(self, gap: Fraction) -> int:
        """Return the integer ``g`` for which ``|d| > gap * scale`` iff ``|d| > g``.

        It lies beyond every difference when the gap does.
        """
        return min(math.floor(gap * self.scale), 2 * self.bound + 1)

    @cached_property
    def n_limbs(self) -> int:
        return limbs_for(self.bound + 1)

    def left_cells(self) -> Iterator[list[NDArray[np.bool_]]]:
        """Yield for each tree the cells that go left, at each of its nodes; none at a leaf."""
        return _ForestBuilder(self).left_cells()

    @cached_property
    def forest(self) -> _core.Forest:
        """The trees in native form."""
        forest = _ForestBuilder(self).build()
        for feature, axis in enumerate(self.grid.axes):
            if axis.joined is not None:
                coordinates = [_native_axis(each) for each in axis.joined.axes]
                forest.join(feature, coordinates, axis.joined.cells.T.tolist())
        return forest


def _flat_leaves(trees: Sequence[Tree]) -> NDArray[np.float64]:
    values = [tree.value for tree in trees]
    return np.concatenate(values) if values else np.empty(0)


class _ForestBuilder:
    """Lays trees on the grid: every test becomes a question about a cell.

    A numeric test becomes ``cell < cut``; a test that is not a prefix of the axis (a categorical
    one, ranges of numbers, or one that treats zero separately) becomes a row of the membership
    table.
    """

    def __init__(self, laid: LaidTrees) -> None:
        self._laid = laid
        self._membership: list[NDArray[np.uint8]] = []
        self._set_tests: dict[bytes, int] = {}
        self._known: dict[tuple[int, int, bool], int] = {}
        self._membership_size = 0

        trees = laid.trees
        sizes = [tree.n_nodes for tree in trees]
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        self._feature = _joined([tree.feature for tree in trees], np.int32)

    def build(self) -> _core.Forest:
        trees, axes = self._laid.trees, self._laid.grid.axes
        feature, starts = self._feature, self._starts
        cuts = self._cuts(feature, starts)
        return _core.Forest(
            n_cells=np.array([axis.n_cells for axis in axes], dtype=np.int32),
            missing_cell=np.array(
                [-1 if axis.missing_cell is None else axis.missing_cell for axis in axes],
                dtype=np.int32,
            ),
            ordered=np.array([not axis.feature.is_categorical for axis in axes], dtype=np.uint8),
            roots=starts[:-1],
            feature=feature,
            cut=cuts,
            missing_left=_joined([tree.missing_left for tree in trees], np.uint8),
            left=_moved([tree.left for tree in trees], starts),
            right=_moved([tree.right for tree in trees], starts),
            limbs=self._laid.values.limbs(self._laid.n_limbs),
            membership=_joined(self._membership, np.uint8),
            positions=_positions(axes),
        )

    def left_cells(self) -> Iterator[list[NDArray[np.bool_]]]:
        cuts = self._cuts(self._feature, self._starts)
        members = _joined(self._membership, np.uint8).astype(np.bool_)
        for tree, start in zip(self._laid.trees, self._starts.tolist(), strict=False):
            own = cuts[start : start + tree.n_nodes].tolist()
            yield [self._row(tree, node, cut, members) for node, cut in enumerate(own)]

    def _row(
        self, tree: Tree, node: int, cut: int, members: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Return the cells that go left at one node."""
        if tree.feature[node] < 0:
            return np.zeros(0, dtype=np.bool_)
        axis = self._laid.grid.axes[int(tree.feature[node])]
        if cut < 0:
            return members[-1 - cut : -1 - cut + axis.n_cells]
        row: NDArray[np.bool_] = np.arange(axis.n_cells) < cut
        if axis.missing_cell is not None:
            row[axis.missing_cell] = tree.missing_left[node]
        return row

    def _cuts(self, feature: NDArray[np.int32], starts: NDArray[np.int32]) -> NDArray[np.int32]:
        trees, grid = self._laid.trees, self._laid.grid
        threshold = _joined([tree.threshold for tree in trees], np.float64)
        cuts = np.zeros(len(feature), dtype=np.int32)
        inner = np.flatnonzero(feature >= 0)
        inner = inner[by_feature(feature[inner], len(grid.axes))]
        ends = np.searchsorted(feature[inner], np.arange(len(grid.axes) + 1))
        for f, axis in enumerate(grid.axes):
            nodes = inner[ends[f] : ends[f + 1]]
            if nodes.size and not axis.feature.is_categorical:
                guards = rounded_up(threshold[nodes], grid.input_dtype)
                cuts[nodes] = axis.cells_below(guards)
        for tree, start in zip(trees, starts, strict=False):
            for node in np.flatnonzero(tree.zero_side):
                if zero_range_matters(float(tree.threshold[node]), int(tree.zero_side[node])):
                    cuts[start + node] = self._set_test(tree, int(node))
            for set_node in tree.left_ranges:
                cuts[start + set_node] = self._set_test(tree, set_node)
            for set_node, left in tree.left_categories.items():
                cuts[start + set_node] = self._shared_set_test(tree, set_node, left)
        return cuts

    def _shared_set_test(self, tree: Tree, node: int, left: Set[int]) -> int:
        """Return the test of a set of categories; nodes may share the set itself."""
        key = (int(tree.feature[node]), id(left), bool(tree.missing_left[node]))
        if key not in self._known:
            self._known[key] = self._set_test(tree, node)
        return self._known[key]

    def _set_test(self, tree: Tree, node: int) -> int:
        axis = self._laid.grid.axes[int(tree.feature[node])]
        row = np.zeros(axis.n_cells, dtype=np.uint8)
        if node in tree.left_categories:
            row[: len(axis.classes)] = _left_classes(tree.left_categories[node], axis)
        else:
            row[: axis.numbers.n_cells] = self._left_cells(tree, node, axis)
        if axis.missing_cell is not None:
            row[axis.missing_cell] = tree.missing_left[node]
        start = self._set_tests.setdefault(row.tobytes(), self._membership_size)
        if start == self._membership_size:
            self._membership.append(row)
            self._membership_size += len(row)
        return -1 - start

    def _left_cells(self, tree: Tree, node: int, axis: Axis) -> NDArray[np.bool_]:
        """Return which numeric cells go left at a test that is not a prefix of the axis."""
        if node not in tree.left_ranges:
            return _left_cells_beside_zero(tree, node, axis)
        ends = rounded_up(np.array(tree.left_ranges[node]), self._laid.grid.input_dtype)
        return in_ranges(ends, _lower_ends(axis))


def _positions(axes: Sequence[Axis]) -> NDArray[np.int32] | None:
    """Return the positions of the cells of all axes; None if all axes are regular."""
    if all(axis.is_regular for axis in axes):
        return None
    rows = [np.arange(axis.n_cells) for axis in axes]
    for row, axis in zip(rows, axes, strict=True):
        if not axis.feature.is_categorical:
            row[: axis.numbers.n_cells] = axis.numbers.positions
    return _joined(rows, np.int32)


def _native_axis(axis: Axis) -> _core.Axis:
    rows = _positions([axis])
    missing = -1 if axis.missing_cell is None else axis.missing_cell
    ordered = not axis.feature.is_categorical
    return _core.Axis(axis.n_cells, missing, ordered, [] if rows is None else rows.tolist())


def _lower_ends(axis: Axis) -> NDArray[np.float64]:
    """Return the guard below each numeric cell: all tests decide there as in the cell."""
    guards: NDArray[np.float64] = np.concatenate([[-np.inf], axis.thresholds])
    return guards[axis.numbers.positions]


def _left_classes(left: Set[int], axis: Axis) -> Sequence[bool] | NDArray[np.bool_]:
    """Return which cells of a categorical axis are in a set of codes."""
    codes = [own[0] for own in axis.classes]
    if isinstance(left, FlaggedCodes):
        return left.flags[codes]
    return [code in left for code in codes]


def _left_cells_beside_zero(tree: Tree, node: int, axis: Axis) -> NDArray[np.bool_]:
    """Return which numeric cells go left if the zero range has its own side."""
    lower_ends = _lower_ends(axis)
    in_zero = (lower_ends >= -ZERO_RANGE) & (lower_ends <= ZERO_RANGE)
    below: NDArray[np.bool_] = lower_ends < tree.threshold[node]
    return np.where(in_zero, tree.zero_side[node] < 0, below)


def _moved(parts: Sequence[NDArray[np.int32]], starts: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the children of all trees, numbered among the nodes of all trees; -1 stays -1."""
    moved = [
        np.where(part >= 0, part + start, -1) for part, start in zip(parts, starts, strict=False)
    ]
    return _joined(moved, np.int32)


def _joined(parts: Sequence[NDArray[Any]], dtype: type[np.generic]) -> NDArray[Any]:
    if not parts:
        return np.empty(0, dtype=dtype)
    return np.ascontiguousarray(np.concatenate(parts), dtype=dtype)


_LAID: Slot[tuple[Ensemble, int, int | None], LaidTrees] = Slot("trees by output and precision")
_AXES: Slot[None, LaidTrees] = Slot("axes without trees")
