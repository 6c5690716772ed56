"""(ensemble, grid, query) -> the masks, their neighbours, and the trees laid on the grid.

A *mask* fixes one cell per sensitive feature. Regions with different masks are different regions,
so the count is a plain sum over the masks::

    C = sum over masks m of |A_m|
    A_m = {x : some neighbour m' of m has |V(x, m) - V(x, m')| > G}

with x ranging over the cells of the non-sensitive features. A *pair* of masks {m, m'} within the
distance is one subproblem: its solutions make both (x, m) and (x, m') sensitive, and only the trees
with a guard that separates m from m' contribute to its difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.model.ensemble import ZERO_RANGE, Ensemble, Tree
from xcount.problem.integers import ScaledLeaves, limbs_for, scale_leaves, to_limbs
from xcount.question.grid import Axis, Grid, rounded_up, zero_range_matters
from xcount.question.query import Query

Pair = tuple[int, int]
"""Two masks, by number."""


class Subproblem(NamedTuple):
    """Count the x for which these pairs differ by more than the gap, or those in a part of them.

    The count is the sum of the counts of its ``2 ** part_bits`` parts, which several threads or
    machines can find.
    """

    pairs: Sequence[Pair]
    all_pairs: bool = False
    """Whether all of the pairs must differ, rather than any."""
    part: int = 0
    part_bits: int = 0


@dataclass(frozen=True, eq=False)
class LaidTrees:
    """The trees of one output laid on a grid, with integer leaves: the same for many queries."""

    ensemble: Ensemble
    grid: Grid
    output: int
    precision: int | None

    @classmethod
    def of(cls, ensemble: Ensemble, grid: Grid, query: Query) -> LaidTrees:
        """Return the laid trees that the query is about, made only once for a grid."""
        key = (id(ensemble), query.output, query.precision)  # the value keeps the ensemble alive
        if key not in grid.derived:
            grid.derived[key] = cls(ensemble, grid, query.output, query.precision)
        laid: LaidTrees = grid.derived[key]
        return laid

    @cached_property
    def trees(self) -> tuple[Tree, ...]:
        return tuple(tree for tree in self.ensemble.trees if tree.output == self.output)

    @cached_property
    def leaves(self) -> ScaledLeaves:
        """The node values of all trees of this output as integers, concatenated."""
        values = [tree.value for tree in self.trees]
        flat = np.concatenate(values) if values else np.empty(0)
        return scale_leaves(flat, self.ensemble.divisor, self.precision)

    @cached_property
    def bound(self) -> int:
        """A bound of |V| without the base, in the leaves' integers."""
        total, start = 0, 0
        for tree in self.trees:
            values = self.leaves.values[start : start + tree.n_nodes]
            total += max(map(abs, values))
            start += tree.n_nodes
        return total

    @cached_property
    def n_limbs(self) -> int:
        return limbs_for(self.bound + 1)

    @cached_property
    def forest(self) -> _core.Forest:
        """The trees in native form."""
        return _ForestBuilder(self).build()


@dataclass(frozen=True, eq=False)
class Problem:
    """One query on one ensemble and grid, in the form that counters work on."""

    ensemble: Ensemble
    grid: Grid
    query: Query

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs; what can be computed again stays here."""
        return {"ensemble": self.ensemble, "grid": self.grid, "query": self.query}

    @cached_property
    def laid(self) -> LaidTrees:
        """The trees of the output that the query is about, laid on the grid."""
        return LaidTrees.of(self.ensemble, self.grid, self.query)

    @property
    def trees(self) -> tuple[Tree, ...]:
        return self.laid.trees

    @property
    def leaves(self) -> ScaledLeaves:
        return self.laid.leaves

    @property
    def n_limbs(self) -> int:
        return self.laid.n_limbs

    @property
    def forest(self) -> _core.Forest:
        return self.laid.forest

    @cached_property
    def n_regions(self) -> int:
        return self.grid.n_regions

    @cached_property
    def n_masks(self) -> int:
        return math.prod(self.grid.axes[f].n_cells for f in self.query.sensitive)

    @cached_property
    def n_combinations(self) -> int:
        """The number of combinations of the non-sensitive cells."""
        return self.n_regions // self.n_masks

    @cached_property
    def threshold(self) -> int:
        """The gap in the leaves' integers; beyond every difference when the gap is."""
        return min(self.leaves.threshold(self.query.gap), 2 * self.laid.bound + 1)

    @cached_property
    def threshold_limbs(self) -> NDArray[np.uint64]:
        limbs: NDArray[np.uint64] = to_limbs([self.threshold], self.n_limbs)[0]
        return limbs

    @cached_property
    def masks(self) -> _core.MaskSpace:
        """The masks and who is near whom, in native form."""
        return _core.MaskSpace(self.forest, list(self.query.sensitive), self.distance)

    @cached_property
    def distance(self) -> int | None:
        """The distance asked about; None where no two masks are further apart."""
        asked = self.query.distance
        furthest = sum(self.grid.axes[f].n_cells - 1 for f in self.query.sensitive)
        return None if asked is None or asked >= furthest else asked

    @cached_property
    def n_pairs_about(self) -> int:
        """About how many pairs of masks there are (at most: axes end), without listing them."""
        n_masks, distance = self.n_masks, self.distance
        if distance is None:
            return n_masks * (n_masks - 1) // 2
        # Steps of 1..d along the axes, in either direction: lattice points of a ball, by axis.
        ball = [1] + [0] * distance
        for n_cells in (self.grid.axes[f].n_cells for f in self.query.sensitive):
            steps = [1] + [2 if step < n_cells else 0 for step in range(1, distance + 1)]
            ball = [sum(ball[i] * steps[r - i] for i in range(r + 1)) for r in range(distance + 1)]
        return n_masks * min(sum(ball) - 1, n_masks - 1) // 2

    def describe(self, mask_cells: Sequence[int]) -> str:
        """Return a mask in words, e.g. ``30.5 <= age < 42, sex in {1}``."""
        axes = (self.grid.axes[f] for f in self.query.sensitive)
        return ", ".join(a.describe(c) for a, c in zip(axes, mask_cells, strict=True))

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield the unordered pairs of masks within the distance."""
        for mask in range(self.n_masks):
            for other in self.masks.neighbours(mask):
                if other > mask:
                    yield mask, other


class _ForestBuilder:
    """Lays trees on the grid: every test becomes a question about a cell.

    A numeric test becomes ``cell < cut``; a test that is no prefix of the axis (a categorical one,
    or one with a zero range of its own) becomes a row of the membership table.
    """

    def __init__(self, laid: LaidTrees) -> None:
        self._laid = laid
        self._membership: list[NDArray[np.uint8]] = []
        self._set_tests: dict[bytes, int] = {}
        self._membership_size = 0

    def build(self) -> _core.Forest:
        trees, axes = self._laid.trees, self._laid.grid.axes
        sizes = [tree.n_nodes for tree in trees]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        shifts = np.repeat(starts[:-1], sizes)
        left = _joined([tree.left for tree in trees], np.int32)
        right = _joined([tree.right for tree in trees], np.int32)
        cuts = self._cuts(starts)
        return _core.Forest(
            n_cells=np.array([axis.n_cells for axis in axes], dtype=np.int32),
            missing_cell=np.array(
                [-1 if axis.missing_cell is None else axis.missing_cell for axis in axes],
                dtype=np.int32,
            ),
            ordered=np.array([not axis.feature.is_categorical for axis in axes], dtype=np.uint8),
            roots=starts[:-1],
            feature=_joined([tree.feature for tree in trees], np.int32),
            cut=cuts,
            missing_left=_joined([tree.missing_left for tree in trees], np.uint8),
            left=np.where(left >= 0, left + shifts, -1).astype(np.int32),
            right=np.where(right >= 0, right + shifts, -1).astype(np.int32),
            limbs=to_limbs(self._laid.leaves.values, self._laid.n_limbs),
            membership=_joined(self._membership, np.uint8),
        )

    def _cuts(self, starts: NDArray[np.int32]) -> NDArray[np.int32]:
        trees, grid = self._laid.trees, self._laid.grid
        feature = _joined([tree.feature for tree in trees], np.int32)
        threshold = _joined([tree.threshold for tree in trees], np.float64)
        threshold = rounded_up(threshold, grid.input_dtype)
        cuts = np.zeros(len(feature), dtype=np.int32)
        order = np.argsort(feature, kind="stable")
        ends = np.searchsorted(feature[order], np.arange(len(grid.axes) + 1))
        for f, axis in enumerate(grid.axes):
            nodes = order[ends[f] : ends[f + 1]]
            # x < thresholds[j] holds in the cells 0..j, that is in the first j + 1; an infinite
            # threshold is no guard: x < -inf holds in no cell, x < inf in all of them.
            if nodes.size:
                cuts[nodes] = np.searchsorted(axis.thresholds, threshold[nodes], side="right")
        cuts += threshold == np.inf
        for tree, start in zip(trees, starts, strict=False):
            for node in np.flatnonzero(tree.zero_side):
                if zero_range_matters(float(tree.threshold[node]), int(tree.zero_side[node])):
                    cuts[start + node] = self._set_test(tree, int(node))
            for categorical_node in tree.left_categories:
                cuts[start + categorical_node] = self._set_test(tree, categorical_node)
        return cuts

    def _set_test(self, tree: Tree, node: int) -> int:
        axis = self._laid.grid.axes[int(tree.feature[node])]
        row = np.zeros(axis.n_cells, dtype=np.uint8)
        if node in tree.left_categories:
            left = tree.left_categories[node]
            row[: len(axis.classes)] = [codes[0] in left for codes in axis.classes]
        else:
            row[: len(axis.thresholds) + 1] = _left_cells_beside_zero(tree, node, axis)
        if axis.missing_cell is not None:
            row[axis.missing_cell] = tree.missing_left[node]
        start = self._set_tests.setdefault(row.tobytes(), self._membership_size)
        if start == self._membership_size:
            self._membership.append(row)
            self._membership_size += len(row)
        return -1 - start


def _left_cells_beside_zero(tree: Tree, node: int, axis: Axis) -> NDArray[np.bool_]:
    """Return which numeric cells go left when the zero range goes to a side of its own."""
    lower_ends = np.concatenate([[-np.inf], axis.thresholds])
    in_zero = (lower_ends >= -ZERO_RANGE) & (lower_ends <= ZERO_RANGE)
    below: NDArray[np.bool_] = lower_ends < tree.threshold[node]
    return np.where(in_zero, tree.zero_side[node] < 0, below)


def _joined(parts: Sequence[NDArray[Any]], dtype: type[np.generic]) -> NDArray[Any]:
    if not parts:
        return np.empty(0, dtype=dtype)
    return np.ascontiguousarray(np.concatenate(parts), dtype=dtype)
