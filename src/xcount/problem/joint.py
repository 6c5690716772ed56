"""Sensitive features joined into one, if not all combinations of their cells exist.

Features that move along with them are joined, too. The joint feature is categorical, with a
category for each mask that exists; tests of the features become tests of a set of masks, and the
distance of two masks stays the same
(:attr:`~xcount.question.grid.Axis.joined`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from xcount.model.ensemble import Ensemble, Feature, Tree
from xcount.question.grid import Axis, Grid, JoinedAxes


def joined(
    ensemble: Ensemble,
    grid: Grid,
    features: Sequence[int],
    masks: NDArray[np.int64],
    n_sensitive: int,
) -> tuple[Ensemble, Grid, int]:
    """Return the ensemble and grid with the features joined, and the number of the joint feature.

    Args:
        ensemble: the trees.
        grid: their cells.
        features: the features to join; the joint one stands in the place of the first.
        masks: a row of their cells for each mask that exists.
        n_sensitive: how many of the features count for distances: the first ones.
    """
    first, others = features[0], set(features[1:])
    codes = tuple(range(len(masks)))
    feature = Feature(" x ".join(grid.axes[f].feature.name for f in features), codes)
    counted = tuple(grid.axes[f] for f in features[:n_sensitive])
    parts = JoinedAxes(counted, masks[:, :n_sensitive])
    axis = Axis(feature, np.empty(0), tuple((code,) for code in codes), joined=parts)
    kept = [f for f in range(len(grid.axes)) if f not in others]
    number = np.full(len(grid.axes) + 1, -1, dtype=np.int32)
    number[kept] = np.arange(len(kept))
    number[list(features)] = number[first]
    axes = [axis if f == first else grid.axes[f] for f in kept]
    sets = _MaskSets(grid, features, masks)
    trees = tuple(_rewritten(tree, features, sets, number) for tree in ensemble.trees)
    own = tuple(feature if f == first else ensemble.features[f] for f in kept)
    return (
        replace(ensemble, features=own, trees=trees, encoding=None),
        Grid(tuple(axes), grid.input_dtype, grid.domain),
        int(number[first]),
    )


class _MaskSets:
    """Sets of masks by tests of the features to join: equal tests share one set.

    A model has far more nodes than different tests, and a set may have many thousands of masks.

    Args:
        grid: the cells.
        features: the features to join.
        masks: a row of their cells for each mask that exists.
    """

    def __init__(self, grid: Grid, features: Sequence[int], masks: NDArray[np.int64]) -> None:
        axes = [grid.axes[f] for f in features]
        self._points = [
            np.array([axis.point(c, grid.input_dtype) for c in range(axis.n_cells)])
            for axis in axes
        ]
        self._masks = masks
        self._codes = list(range(len(masks)))  # one object for each number
        self._known: dict[tuple[int, bytes], frozenset[int]] = {}

    def left_of(self, tree: Tree, node: int, place: int) -> frozenset[int]:
        """Return the masks that a node sends left, which tests the feature at that place."""
        points = self._points[place]
        left = tree.goes_left(np.full(len(points), node, dtype=np.int32), points)
        key = (place, left.tobytes())
        if key not in self._known:
            chosen = np.flatnonzero(left[self._masks[:, place]]).tolist()
            self._known[key] = frozenset(map(self._codes.__getitem__, chosen))
        return self._known[key]


def _rewritten(
    tree: Tree, features: Sequence[int], mask_sets: _MaskSets, number: NDArray[np.int32]
) -> Tree:
    """Return the tree with tests of the joint feature."""
    is_joined = np.isin(tree.feature, features)
    sets = {node: codes for node, codes in tree.left_categories.items() if not is_joined[node]}
    for node in np.flatnonzero(is_joined).tolist():
        sets[node] = mask_sets.left_of(tree, node, list(features).index(int(tree.feature[node])))
    return replace(
        tree,
        feature=number[tree.feature],
        threshold=np.where(is_joined, np.nan, tree.threshold),
        missing_left=tree.missing_left & ~is_joined,
        zero_side=np.where(is_joined, 0, tree.zero_side).astype(np.int8),
        left_categories=sets,
    )
