"""Sensitive features joined into one, if not all combinations of their cells exist.

Features that move along with them are joined, too. The joint feature is categorical, with a
category for each mask that exists; tests of the features become tests of a set of masks, and the
distance of two masks stays the same
(:attr:`~xcount.question.grid.Axis.joined`).

A model has far more nodes than different tests, and a domain may have many sets of masks: trees and
tests are found once (:class:`JointTests`), and a set of masks adds only a flag for each test and
mask.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from xcount.model.ensemble import Ensemble, Feature, FlaggedCodes, Tree
from xcount.question.grid import Axis, Grid, JoinedAxes


class JointTests:
    """Trees with some features joined, without the sets of masks that their tests send left.

    Args:
        ensemble: the trees.
        grid: their cells.
        features: the features to join; the joint one stands in the place of the first.
    """

    def __init__(self, ensemble: Ensemble, grid: Grid, features: Sequence[int]) -> None:
        first, others = features[0], set(features[1:])
        self.features = tuple(features)
        self.kept = [f for f in range(len(grid.axes)) if f not in others]
        number = np.full(len(grid.axes) + 1, -1, dtype=np.int32)
        number[self.kept] = np.arange(len(self.kept))
        number[list(features)] = number[first]
        self.number_of_joint = int(number[first])
        self._ensemble = ensemble
        self._points = [
            np.array([grid.axes[f].point(c, grid.input_dtype) for c in range(grid.axes[f].n_cells)])
            for f in features
        ]
        self._lefts: list[tuple[int, NDArray[np.bool_]]] = []
        self._known: dict[tuple[object, ...], int] = {}
        self._tests = [self._tests_of(tree) for tree in ensemble.trees]
        self._trees = [
            _without_sets(tree, tests, number)
            for tree, tests in zip(ensemble.trees, self._tests, strict=True)
        ]

    def _tests_of(self, tree: Tree) -> dict[int, int]:
        """Return the number of the test at each node that asks about a feature to join."""
        nodes = np.flatnonzero(np.isin(tree.feature, self.features))
        columns = (tree.feature, tree.threshold, tree.zero_side, tree.missing_left)
        rows = zip(*(column[nodes].tolist() for column in columns), strict=True)
        return {
            node: self._test(tree, node, row)
            for node, row in zip(nodes.tolist(), rows, strict=True)
        }

    def _test(self, tree: Tree, node: int, row: tuple[object, ...]) -> int:
        """Return the number of a node's test; equal tests have one number."""
        key = (*row, tree.left_categories.get(node), tree.left_ranges.get(node))
        if key not in self._known:
            place = self.features.index(int(tree.feature[node]))
            points = self._points[place]
            left = tree.goes_left(np.full(len(points), node, dtype=np.int32), points)
            self._known[key] = len(self._lefts)
            self._lefts.append((place, left))
        return self._known[key]

    def with_masks(self, masks: NDArray[np.int64]) -> tuple[Tree, ...]:
        """Return the trees for the masks that exist: a row of cells for each."""
        sets = [FlaggedCodes(left[masks[:, place]]) for place, left in self._lefts]
        return tuple(
            replace(tree, left_categories=_Sets(tree.left_categories, tests, sets))
            for tree, tests in zip(self._trees, self._tests, strict=True)
        )

    def joined(
        self, grid: Grid, axes: Sequence[Axis], cells: NDArray[np.int64], masks: NDArray[np.int64]
    ) -> tuple[Ensemble, Grid]:
        """Return the ensemble and the grid for the masks that exist.

        Args:
            grid: the cells of the other features.
            axes: the sensitive features, the first of those to join: they count for distances.
            cells: a row for each mask: its cells on those axes.
            masks: a row for each mask: its cells, in the whole grid, of all features to join.
        """
        first = self.features[0]
        codes = tuple(range(len(masks)))
        name = " x ".join(grid.axes[f].feature.name for f in self.features)
        feature = Feature(name, codes)
        parts = JoinedAxes(tuple(axes), cells)
        axis = Axis(feature, np.empty(0), tuple((code,) for code in codes), joined=parts)
        features = self._ensemble.features
        own = tuple(feature if f == first else features[f] for f in self.kept)
        trees = self.with_masks(masks)
        return (
            replace(self._ensemble, features=own, trees=trees, encoding=None),
            Grid(
                tuple(axis if f == first else grid.axes[f] for f in self.kept),
                grid.input_dtype,
                grid.domain,
            ),
        )


class _Sets(Mapping[int, Set[int]]):
    """The categories that go left at the nodes of a tree, those of the joint feature included.

    Args:
        own: those of the other features.
        tests: the number of the test at each node of the joint feature.
        sets: the masks that each test sends left.
    """

    def __init__(
        self, own: Mapping[int, Set[int]], tests: Mapping[int, int], sets: Sequence[FlaggedCodes]
    ) -> None:
        self._own, self._tests, self._sets = own, tests, sets

    def __getitem__(self, node: int) -> Set[int]:
        test = self._tests.get(node)
        return self._own[node] if test is None else self._sets[test]

    def __contains__(self, node: object) -> bool:
        return node in self._tests or node in self._own

    def __iter__(self) -> Iterator[int]:
        yield from self._own
        yield from self._tests

    def __len__(self) -> int:
        return len(self._own) + len(self._tests)


def _without_sets(tree: Tree, tests: Mapping[int, int], number: NDArray[np.int32]) -> Tree:
    """Return a tree whose tests of the joint feature have no sets yet."""
    is_joined = np.zeros(tree.n_nodes, dtype=np.bool_)
    is_joined[list(tests)] = True
    return replace(
        tree,
        feature=number[tree.feature],
        threshold=np.where(is_joined, np.nan, tree.threshold),
        missing_left=tree.missing_left & ~is_joined,
        zero_side=np.where(is_joined, 0, tree.zero_side).astype(np.int8),
        left_categories={n: s for n, s in tree.left_categories.items() if n not in tests},
        left_ranges={n: ends for n, ends in tree.left_ranges.items() if n not in tests},
    )
