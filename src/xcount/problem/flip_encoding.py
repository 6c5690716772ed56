"""The decision of every mask as pairs of masks: an added feature switches trees on and off.

Every decision is a conjunction of *functions* ``D > 0``, each an integer sum of leaves: of one sum
with the cut-off T, ``V - T > 0`` is one decision and ``T - V + 1 > 0`` the other (all are integers,
see :mod:`xcount.problem.integers`); of several sums, class k wins iff ``V_k - V_j > 0`` for all
j < k and ``V_k - V_j + 1 > 0`` for all j > k. The base of a sum counts as a leaf more.

A feature is added, the *switch*, with one cell that turns all trees off and one per function::

    W(x, m, off) = 0,   W(x, m, function) = D(x, m) + K,   K >= |D| everywhere

so that ``D > 0`` iff ``|W(x, m, function) - W(x, m, off)| > K``: a pair of masks of the new space,
with K as its threshold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from xcount.model.ensemble import Feature, Tree
from xcount.problem.form import PairSpace
from xcount.problem.laid_trees import LaidTrees
from xcount.problem.margins import IntegerMargins
from xcount.problem.subproblem import Pair
from xcount.question.change import Flip
from xcount.question.grid import Axis, Grid

OFF = 0
"""The switch's cell in which no tree counts."""


@dataclass(frozen=True, slots=True)
class Function:
    """``D = (plus's sum) - (minus's sum) + constant``; None is no sum."""

    plus: int | None
    minus: int | None
    constant: int


@dataclass(frozen=True, eq=False)
class FlipEncoding:
    """A question about flips as a space with one feature more, the switch.

    Attributes:
        space: the masks with the switch, numbered ``mask * n_switch + cell``.
        decisions: for each decision, the switch's cells of its functions: it is taken where all
            of them hold.
    """

    space: PairSpace
    decisions: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, margins: IntegerMargins) -> FlipEncoding:
        """Encode a question about flips."""
        return _Encoder(margins).encode()

    @property
    def n_switch(self) -> int:
        return self.space.trees.grid.axes[-1].n_cells

    def pairs(self, decision: int, masks: Iterable[int]) -> tuple[Pair, ...]:
        """Return the pairs that all differ where this decision is taken at all these masks."""
        size, cells = self.n_switch, self.decisions[decision]
        return tuple((m * size + OFF, m * size + cell) for m in masks for cell in cells)

    @cached_property
    def duels(self) -> tuple[tuple[int, int, int], ...]:
        """Cells that tell the decision: (cell, decision if it holds, decision if not)."""
        if len(self.decisions) == 2:
            return ((self.decisions[1][0], 1, 0),)
        n = len(self.decisions)
        return tuple((self.decisions[k][j - 1], k, j) for k in range(n) for j in range(k + 1, n))

    def decide(self, holds: NDArray[np.bool_]) -> NDArray[np.int16]:
        """Return the decisions, given for each duel (last axis, in order) whether it holds."""
        if len(self.duels) == 1:
            return holds[..., 0].astype(np.int16)
        won = np.zeros((*holds.shape[:-1], len(self.decisions)), dtype=np.int16)
        for index, (_, winner, loser) in enumerate(self.duels):
            won[..., winner] += holds[..., index]
            won[..., loser] += ~holds[..., index]
        decisions: NDArray[np.int16] = won.argmax(axis=-1).astype(np.int16)
        return decisions


class _Encoder:
    """Builds the trees, integer leaves and grid of the space with the switch."""

    def __init__(self, margins: IntegerMargins) -> None:
        self._margins, self._problem = margins, margins.asked
        self._ensemble = margins.asked.ensemble
        self._switch = self._ensemble.n_features
        self._values: list[int] = []

    def encode(self) -> FlipEncoding:
        functions, decisions = self._functions()
        offsets = [self._offset(function) for function in functions]
        total = sum(max(map(abs, leaves)) for leaves in self._margins.leaves)
        shift = 2 * total + max(map(abs, offsets)) + 1
        trees = [
            self._switched(tree, leaves, functions)
            for tree, leaves in zip(self._ensemble.trees, self._margins.leaves, strict=True)
        ]
        trees += [self._constant(i + 1, offset + shift) for i, offset in enumerate(offsets)]
        grid = self._grid(len(functions) + 1)
        # Integers from the start: no float could hold the leaves, the bases and the shift.
        laid = LaidTrees(tuple(trees), self._values, grid, self._margins.scale, 2 * shift)
        sensitive = (*self._problem.query.sensitive, self._switch)
        return FlipEncoding(PairSpace(laid, sensitive, None, shift), decisions)

    def _functions(self) -> tuple[list[Function], tuple[tuple[int, ...], ...]]:
        """Return all functions, and the cells of each decision's; the cell of the i-th is i + 1."""
        n = self._ensemble.n_outputs
        if n == 1:
            cutoff = self._cutoff()
            return [Function(0, None, -cutoff), Function(None, 0, cutoff + 1)], ((2,), (1,))
        functions = [Function(k, j, int(k < j)) for k in range(n) for j in range(n) if j != k]
        cells = range(1, len(functions) + 1)
        decisions = tuple(tuple(cells[k * (n - 1) : (k + 1) * (n - 1)]) for k in range(n))
        return functions, decisions

    def _cutoff(self) -> int:
        change = self._problem.query.change
        assert isinstance(change, Flip)
        return self._margins.cutoff(change.cutoff or Fraction(0), tie_is_above=change.tie_is_above)

    def _offset(self, function: Function) -> int:
        offset = function.constant
        offset += 0 if function.plus is None else self._margins.bases[function.plus]
        return offset - (0 if function.minus is None else self._margins.bases[function.minus])

    def _switched(self, tree: Tree, leaves: Sequence[int], functions: list[Function]) -> Tree:
        """Return the tree with tests of the switch above it: added, subtracted, or turned off."""
        cells = range(1, len(functions) + 1)
        plus = frozenset(c for c, f in zip(cells, functions, strict=True) if f.plus == tree.output)
        minus = frozenset(
            c for c, f in zip(cells, functions, strict=True) if f.minus == tree.output
        )
        # 0: in plus? -> 3; else 1: in minus? -> 3 + n; else 2: a leaf of 0
        n = tree.n_nodes
        self._values += [0, 0, 0, *leaves, *(-leaf for leaf in leaves)]
        copies = (3, 3 + n)
        categories = {i + by: codes for i, codes in tree.left_categories.items() for by in copies}
        head = np.array([3, 3 + n, -1])
        return Tree(
            feature=_stacked([self._switch, self._switch, -1], tree.feature, tree.feature),
            threshold=np.concatenate([np.full(3, np.nan), tree.threshold, tree.threshold]),
            left=_stacked(head, _moved(tree.left, 3), _moved(tree.left, 3 + n)),
            right=_stacked([1, 2, -1], _moved(tree.right, 3), _moved(tree.right, 3 + n)),
            missing_left=_stacked([0, 0, 0], tree.missing_left, tree.missing_left).astype(np.bool_),
            zero_side=_stacked([0, 0, 0], tree.zero_side, tree.zero_side).astype(np.int8),
            value=np.zeros(2 * n + 3),
            left_categories={**categories, 0: plus, 1: minus},
            left_ranges={i + by: ends for i, ends in tree.left_ranges.items() for by in copies},
        )

    def _constant(self, cell: int, value: int) -> Tree:
        """Return a tree that adds a constant where the switch is at one cell."""
        self._values += [0, value, 0]
        return Tree(
            feature=np.array([self._switch, -1, -1], dtype=np.int32),
            threshold=np.full(3, np.nan),
            left=np.array([1, -1, -1], dtype=np.int32),
            right=np.array([2, -1, -1], dtype=np.int32),
            missing_left=np.zeros(3, dtype=np.bool_),
            zero_side=np.zeros(3, dtype=np.int8),
            value=np.zeros(3),
            left_categories={0: frozenset({cell})},
        )

    def _grid(self, n_switch: int) -> Grid:
        """Return the grid with the switch as its last axis."""
        grid = self._problem.grid
        switch = Feature("decision", tuple(range(n_switch)))
        axis = Axis(switch, np.empty(0), tuple((cell,) for cell in range(n_switch)))
        return Grid((*grid.axes, axis), grid.input_dtype)


def _moved(children: NDArray[np.int32], by: int) -> NDArray[np.int32]:
    return np.where(children >= 0, children + by, -1)


def _stacked(*parts: object) -> NDArray[np.int32]:
    return np.concatenate([np.asarray(part, dtype=np.int32) for part in parts])
