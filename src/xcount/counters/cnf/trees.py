"""Trees as gates: for every leaf a literal that says "the region ends here"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from xcount.counters.cnf.formula import Formula
from xcount.ensemble import ZERO_RANGE, Tree
from xcount.subproblems import Problem

Leaf = tuple[int, int]
"""(literal, value): the literal is true iff the region ends in a leaf of this value."""

Cells = Sequence[int] | int
"""The bits of a feature's cell, ``bits[i]`` iff cell <= i; or the cell itself where it is fixed."""


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
            problem.leaves.values[start : start + tree.n_nodes]
            for start, tree in zip(starts, problem.trees, strict=False)
        ]

    def left_cells(self, tree: Tree, node: int) -> tuple[bool, ...]:
        """Return for each cell of the tested feature whether the node sends it left."""
        points = self._points[tree.feature[node]]
        missing = np.isnan(points)
        if node in tree.left_categories:
            left: NDArray[np.bool_] = np.isin(points, list(tree.left_categories[node]))
        else:
            left = points < tree.threshold[node]
            if tree.zero_side[node]:
                is_zero = np.abs(points) <= ZERO_RANGE
                left = np.where(is_zero, tree.zero_side[node] < 0, left)
        return tuple(np.where(missing, tree.missing_left[node], left).tolist())

    def leaves(self, index: int, cells: Mapping[int, Cells]) -> list[Leaf]:
        """Return the leaves of a tree that a region can reach, with equal values joined."""
        by_value: dict[int, list[int]] = {}
        for literal, value in self._walk(index, 0, self._formula.true, cells):
            by_value.setdefault(value, []).append(literal)
        return [(self._formula.disjunction(found), value) for value, found in by_value.items()]

    def _walk(
        self, index: int, node: int, reached: int, cells: Mapping[int, Cells]
    ) -> Iterator[Leaf]:
        tree = self._problem.trees[index]
        if tree.feature[node] < 0:
            yield reached, self._values[index][node]
            return
        left = self.left_cells(tree, node)
        where = cells[int(tree.feature[node])]
        test = self._in_cells(where, left)
        for literal, child in ((test, tree.left[node]), (-test, tree.right[node])):
            below = self._formula.conjunction((reached, literal))
            if below != -self._formula.true:
                yield from self._walk(index, int(child), below, cells)

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
