"""Guards as variables of decision diagrams.

A feature with n cells has n - 1 Boolean variables, one group of neighbouring levels::

    bit i is 1  iff  cell <= i  (for a numeric feature: iff x < thresholds[i])

so the bits of a region are monotone, b[i] => b[i+1]. The cells of a categorical feature, and the
cell of missing values, are numbered like any others: a test of a set of cells is a function of the
same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.problem.integers import from_limbs, to_limbs
from xcount.problem.problem import Problem

OPEN = -1
"""Marks a feature in a row of cells whose cell is not fixed."""


@dataclass(frozen=True, slots=True)
class Group:
    """The variables of one feature: levels ``first .. first + size - 1``."""

    feature: int
    first: int
    size: int
    primed: bool = False

    @property
    def levels(self) -> range:
        return range(self.first, self.first + self.size)


class GuardSpace:
    """The variables of one problem, and a table of diagrams over them.

    Args:
        problem: the counting problem.
        features: the features whose guards are variables.
        primed: the features that get a second copy of their guards, right below the first.
        max_bytes: the memory the diagrams may use; None for no limit.
    """

    def __init__(
        self,
        problem: Problem,
        features: Sequence[int],
        primed: Sequence[int] = (),
        max_bytes: int | None = None,
    ) -> None:
        self.problem = problem
        self.groups: list[Group] = []
        level = 0
        for feature in features:
            size = problem.grid.axes[feature].n_cells - 1
            for copy in (False, True) if feature in primed else (False,):
                self.groups.append(Group(feature, level, size, copy))
                level += size
        self.table = _core.DiagramTable(
            [group.size for group in self.groups], problem.space.trees.n_limbs, max_bytes=max_bytes
        )
        self._first = np.zeros(len(problem.grid.axes), dtype=np.uint32)
        for group in self.groups:
            if not group.primed:
                self._first[group.feature] = group.first

    def levels(self, *, primed: bool = False) -> list[int]:
        """Return the variables of all primed groups, or of all others."""
        return [level for g in self.groups if g.primed == primed for level in g.levels]

    def group_numbers(self) -> list[int]:
        return list(range(len(self.groups)))

    def number(self, value: int) -> _core.Diagram:
        """Return the constant diagram of an integer in the leaves' scale."""
        return self.table.terminal(self.limbs(value))

    def limbs(self, value: int) -> NDArray[np.uint64]:
        limbs: NDArray[np.uint64] = to_limbs([value], self.problem.space.trees.n_limbs)[0]
        return limbs

    def open_cells(self) -> NDArray[np.int32]:
        """Return a row of cells in which nothing is fixed."""
        return np.full(len(self.problem.grid.axes), OPEN, dtype=np.int32)

    def mask_cells(self, mask: int) -> NDArray[np.int32]:
        """Return a row of cells in which the sensitive features are fixed to the mask's cells."""
        cells = self.open_cells()
        cells[list(self.problem.query.sensitive)] = self.problem.masks.cells(mask)
        return cells

    def encode(
        self, tree: int, cells: NDArray[np.int32], *, only_fixed: bool = False
    ) -> _core.Diagram:
        """PruneTree and EncodeADD: the ADD of one tree with the given cells fixed.

        With ``only_fixed``, it is 0 in branches that test no feature whose cell is fixed.
        """
        return self.table.encode(self.problem.forest, tree, cells, self._first, only_fixed)

    def above_gap(self, difference: _core.Diagram) -> _core.Diagram:
        """ToBDD, and the monotonicity of all counted guards: ``|difference| > G`` on regions."""
        bdd = self.table.exceeds(difference, self.problem.threshold_limbs)
        return self.conjoin(bdd, self.table.monotone(self.group_numbers()))

    def conjoin(self, f: _core.Diagram, g: _core.Diagram) -> _core.Diagram:
        return self.table.apply(_core.BoolOp.AND, f, g)

    def solutions(self, bdd: _core.Diagram) -> RankedSolutions:
        """Count the solutions of a BDD over all unprimed guards."""
        return RankedSolutions(_core.Solutions(self.table, bdd, self.levels()))


class RankedSolutions:
    """The solutions of a BDD: their number, ranking, and membership."""

    def __init__(self, native: _core.Solutions) -> None:
        self._native = native
        limbs = native.count()
        self.count = from_limbs(limbs)
        self.n_bits = native.n_variables
        self._width = len(limbs)

    def unrank(self, ranks: Sequence[int]) -> NDArray[np.uint8]:
        """Return the solutions of these ranks (0 .. count - 1), one row of bits each."""
        data = b"".join(rank.to_bytes(self._width * 8, "little") for rank in ranks)
        limbs = np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(-1, self._width)
        rows: NDArray[np.uint8] = self._native.unrank(limbs)
        return rows

    def contains(self, rows: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Tell for each row of bits whether it is a solution."""
        found: NDArray[np.bool_] = self._native.contains(np.ascontiguousarray(rows)).astype(bool)
        return found
