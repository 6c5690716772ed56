"""Trees as gates: for every difference that a tree can make, a literal iff it makes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcount.baselines.cnf.formula import Formula
from xcount.model.ensemble import ZERO_RANGE, Tree, in_ranges
from xcount.problem.problem import Problem

Leaf = tuple[int, int]
"""(literal, value): the literal is true iff the tree makes this difference."""

Cells = Sequence[int] | int
"""The bits of a feature's cell, ``bits[i]`` iff cell <= i; or the cell itself if it is fixed."""


@dataclass(frozen=True, slots=True)
class _Walk:
    """A tree that is walked for b and b' together."""

    tree: Tree
    values: list[int]
    here: Mapping[int, Cells]
    there: Mapping[int, Cells]
    differs_below: list[bool]


def _tests_below(tree: Tree, features: set[int]) -> list[bool]:
    """Return for each node whether it or a node below it tests one of the features."""
    tests = [int(feature) in features for feature in tree.feature]
    for node in reversed(range(tree.n_nodes)):  # children have larger indices
        if tree.feature[node] >= 0:
            tests[node] |= tests[tree.left[node]] or tests[tree.right[node]]
    return tests


class TreeEncoder:
    """Encodes the trees of a problem over given bits."""

    def __init__(self, formula: Formula, problem: Problem) -> None:
        self._formula = formula
        self._problem = problem
        dtype = problem.grid.input_dtype
        self._points = [
            np.array([axis.point(cell, dtype) for cell in range(axis.n_cells)])
            for axis in problem.grid.axes
        ]
        starts = np.cumsum([0] + [tree.n_nodes for tree in problem.trees])
        self._values = [
            list(problem.space.trees.values[start : start + tree.n_nodes])
            for start, tree in zip(starts, problem.trees, strict=False)
        ]

    def left_cells(self, tree: Tree, node: int) -> tuple[bool, ...]:
        """Return for each cell of the tested feature whether the node sends it left."""
        points = self._points[tree.feature[node]]
        missing = np.isnan(points)
        if node in tree.left_categories:
            left: NDArray[np.bool_] = np.isin(points, list(tree.left_categories[node]))
        elif node in tree.left_ranges:
            left = in_ranges(tree.left_ranges[node], points)
        else:
            left = points < tree.threshold[node]
            if tree.zero_side[node]:
                is_zero = np.abs(points) <= ZERO_RANGE
                left = np.where(is_zero, tree.zero_side[node] < 0, left)
        return tuple(np.where(missing, tree.missing_left[node], left).tolist())

    def difference(
        self, index: int, here: Mapping[int, Cells], there: Mapping[int, Cells]
    ) -> list[Leaf]:
        """Return the values of "tree at b - tree at b'"; exactly one of their literals is true.

        The tree is walked for b and b' together: a test with the same outcome for both is encoded
        once, and a subtree that both reach and that tests nothing they differ in contributes 0.
        """
        tree = self._problem.trees[index]
        differing = {f for f in here if here[f] != there[f]}
        walk = _Walk(tree, self._values[index], here, there, _tests_below(tree, differing))
        by_value: dict[int, list[int]] = {}
        for path, value in self._pairs_of_leaves(walk, 0, 0, ()):
            by_value.setdefault(value, []).append(self._formula.conjunction(path))
        return [(self._formula.disjunction(found), value) for value, found in by_value.items()]

    def _pairs_of_leaves(
        self, walk: _Walk, a: int, b: int, path: tuple[int, ...]
    ) -> Iterator[tuple[tuple[int, ...], int]]:
        """Yield (path, difference) for the pairs of leaves below node a of b and node b of b'."""
        tree = walk.tree
        if a == b and not walk.differs_below[a]:
            yield path, 0
            return
        if tree.feature[a] < 0 and tree.feature[b] < 0:
            yield path, walk.values[a] - walk.values[b]
            return
        moves_here = bool(tree.feature[a] >= 0)
        node, cells = (a, walk.here) if moves_here else (b, walk.there)
        feature = int(tree.feature[node])
        together = a == b and walk.here[feature] == walk.there[feature]
        test = self._in_cells(cells[feature], self.left_cells(tree, node))
        for literal, next_node in ((test, tree.left[node]), (-test, tree.right[node])):
            if -literal in path or literal == -self._formula.true:
                continue
            child = int(next_node)
            next_a = child if moves_here else a
            next_b = child if together or not moves_here else b
            yield from self._pairs_of_leaves(walk, next_a, next_b, (*path, literal))

    def _in_cells(self, where: Cells, chosen: Sequence[bool]) -> int:
        """Return a literal for "the cell is one of the chosen"."""
        true = self._formula.true
        if isinstance(where, int):
            return true if chosen[where] else -true
        runs = []
        for cell, is_chosen in enumerate(chosen):
            if not is_chosen:
                continue
            if cell == 0 or not chosen[cell - 1]:
                runs.append([-where[cell - 1] if cell > 0 else true])
            if cell + 1 == len(chosen) or not chosen[cell + 1]:
                runs[-1].append(where[cell] if cell < len(where) else true)
        return self._formula.disjunction(self._formula.conjunction(run) for run in runs)
