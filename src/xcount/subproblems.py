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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.arithmetic import ScaledLeaves, limbs_for, scale_leaves, to_limbs
from xcount.ensemble import ZERO_RANGE, Ensemble, Tree
from xcount.grid import Axis, Grid, rounded_up, zero_range_matters
from xcount.query import Query


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
    def trees(self) -> tuple[Tree, ...]:
        """The trees of the output that the query is about."""
        return tuple(tree for tree in self.ensemble.trees if tree.output == self.query.output)

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
    def leaves(self) -> ScaledLeaves:
        """The node values of all trees of this output as integers, concatenated."""
        values = [tree.value for tree in self.trees]
        flat = np.concatenate(values) if values else np.empty(0)
        return scale_leaves(flat, self.ensemble.divisor, self.query.precision)

    @cached_property
    def _bound(self) -> int:
        """A bound of |V| without the base, in the leaves' integers."""
        total, start = 0, 0
        for tree in self.trees:
            values = self.leaves.values[start : start + tree.n_nodes]
            total += max(abs(value) for value in values)
            start += tree.n_nodes
        return total

    @cached_property
    def threshold(self) -> int:
        """The gap in the leaves' integers; beyond every difference when the gap is."""
        return min(self.leaves.threshold(self.query.gap), 2 * self._bound + 1)

    @cached_property
    def n_limbs(self) -> int:
        return limbs_for(self._bound + 1)

    @cached_property
    def threshold_limbs(self) -> NDArray[np.uint64]:
        limbs: NDArray[np.uint64] = to_limbs([self.threshold], self.n_limbs)[0]
        return limbs

    @cached_property
    def forest(self) -> _core.Forest:
        """The trees of this output on the grid, in native form."""
        return _ForestBuilder(self).build()

    @cached_property
    def masks(self) -> _core.MaskSpace:
        """The masks and who is near whom, in native form."""
        return _core.MaskSpace(self.forest, list(self.query.sensitive), self.query.distance)

    def asking(self, query: Query) -> Problem:
        """Return another question about the same model and grid; both share the native trees."""
        other = Problem(self.ensemble, self.grid, query)
        if (query.output, query.precision) == (self.query.output, self.query.precision):
            for name in ("trees", "leaves", "_bound", "n_limbs", "forest"):
                other.__dict__[name] = getattr(self, name)
        return other

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

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._membership: list[NDArray[np.uint8]] = []
        self._membership_size = 0

    def build(self) -> _core.Forest:
        grid, trees = self._problem.grid, self._problem.trees
        sizes = [tree.n_nodes for tree in trees]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        cuts = [self._cuts(tree) for tree in trees]
        lefts = [np.where(t.left >= 0, t.left + s, -1) for t, s in zip(trees, starts, strict=False)]
        rights = [
            np.where(t.right >= 0, t.right + s, -1) for t, s in zip(trees, starts, strict=False)
        ]
        axes = grid.axes
        return _core.Forest(
            n_cells=np.array([axis.n_cells for axis in axes], dtype=np.int32),
            missing_cell=np.array(
                [-1 if axis.missing_cell is None else axis.missing_cell for axis in axes],
                dtype=np.int32,
            ),
            ordered=np.array([not axis.feature.is_categorical for axis in axes], dtype=np.uint8),
            roots=starts[:-1],
            feature=_joined([tree.feature for tree in trees], np.int32),
            cut=_joined(cuts, np.int32),
            missing_left=_joined([tree.missing_left for tree in trees], np.uint8),
            left=_joined(lefts, np.int32),
            right=_joined(rights, np.int32),
            limbs=to_limbs(self._problem.leaves.values, self._problem.n_limbs),
            membership=_joined(self._membership, np.uint8),
        )

    def _cuts(self, tree: Tree) -> NDArray[np.int32]:
        cuts = np.zeros(tree.n_nodes, dtype=np.int32)
        for feature in {*tree.feature.tolist()} - {-1}:
            axis = self._problem.grid.axes[feature]
            nodes = np.flatnonzero(tree.feature == feature)
            # x < thresholds[j] holds in the cells 0..j, that is in the first j + 1; an infinite
            # threshold is no guard: x < -inf holds in no cell, x < inf in all of them.
            thresholds = rounded_up(tree.threshold[nodes], self._problem.grid.input_dtype)
            cuts[nodes] = np.searchsorted(axis.thresholds, thresholds, side="right")
            cuts[nodes] += thresholds == np.inf
        for node in np.flatnonzero(tree.zero_side):
            if zero_range_matters(float(tree.threshold[node]), int(tree.zero_side[node])):
                cuts[node] = self._set_test(tree, int(node))
        for categorical_node in tree.left_categories:
            cuts[categorical_node] = self._set_test(tree, categorical_node)
        return cuts

    def _set_test(self, tree: Tree, node: int) -> int:
        axis = self._problem.grid.axes[int(tree.feature[node])]
        row = np.zeros(axis.n_cells, dtype=np.uint8)
        if node in tree.left_categories:
            left = tree.left_categories[node]
            row[: len(axis.classes)] = [codes[0] in left for codes in axis.classes]
        else:
            row[: len(axis.thresholds) + 1] = _left_cells_beside_zero(tree, node, axis)
        if axis.missing_cell is not None:
            row[axis.missing_cell] = tree.missing_left[node]
        start = self._membership_size
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
