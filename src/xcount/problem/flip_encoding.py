"""The decision of every mask as pairs of masks: an added feature switches trees on and off.

Every decision is a conjunction of *functions* ``D > 0``, each an integer sum of leaves: of one sum
with the cut-off T, ``V - T > 0`` is one decision and ``T - V + 1 > 0`` the other (all are integers,
see :mod:`xcount.problem.integers`); of several sums, class k wins iff ``V_k - V_j > 0`` for all
j < k and ``V_k - V_j + 1 > 0`` for all j > k. The base of a sum counts as one more leaf.

A feature is added, the *switch*, with one cell that turns all trees off and one per function::

    W(x, m, off) = 0,   W(x, m, function) = D(x, m) + K,   K >= |D| everywhere

so that ``D > 0`` iff ``|W(x, m, function) - W(x, m, off)| > K``: a pair of masks of the new space,
with K as its threshold.

If a flip must start from a sure decision, two more functions say which margins are sure enough on
either side: ``V - S1 > 0`` with S1 >= T, and ``S0 - V + 1 > 0`` with S0 <= T. With several classes,
``V_k - S > 0`` says it if V_k alone determines the probability of class k. With a softmax no sum
does, but a sure class leads every other one by more than some L: ``V_k - V_j - L > 0`` for all j is
a superset.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from xcount.problem.form import PairSpace
from xcount.problem.margins import Cutoffs, IntegerMargins, SureClasses
from xcount.problem.subproblem import Pair
from xcount.problem.switch import OFF, Function, Switch

OFF_CELL = 0
"""The switch's cell that turns all trees off."""


@dataclass(frozen=True, eq=False)
class FlipEncoding:
    """A question about flips as a space with one more feature, the switch.

    Attributes:
        space: the masks with the switch, numbered ``mask * n_switch + cell``.
        decisions: for each decision, the switch's cells of its functions: the decision is made
            where all of them hold.
        starts: for each decision, the cells whose functions all hold where it is made and is (or
            may be) sure enough.
    """

    space: PairSpace
    decisions: tuple[tuple[int, ...], ...]
    starts: tuple[tuple[int, ...], ...]

    @classmethod
    def of(
        cls, margins: IntegerMargins, cutoffs: Cutoffs | None, sure: SureClasses | None = None
    ) -> FlipEncoding:
        """Encode a question about flips: of one margin at a cut-off, or of several classes."""
        if cutoffs is None:
            functions, decisions = _of_classes(margins.n_outputs)
            starts = decisions if sure is None else _sure_classes(functions, decisions, sure)
            return cls(_space(margins, functions), decisions, starts)
        functions, starts = _of_one_margin(cutoffs)
        return cls(_space(margins, functions), ((2,), (1,)), starts)

    @property
    def n_switch(self) -> int:
        return self.space.trees.grid.axes[-1].n_cells

    def pairs(self, decision: int, masks: Iterable[int]) -> tuple[Pair, ...]:
        """Return the pairs that all differ where this decision is made at all these masks."""
        return tuple(self.pair(m, cell) for m in masks for cell in self.decisions[decision])

    def start(self, decision: int, mask: int) -> tuple[Pair, ...]:
        """Return the pairs that all differ where a flip from this decision may start."""
        return tuple(self.pair(mask, cell) for cell in self.starts[decision])

    def pair(self, mask: int, cell: int) -> Pair:
        """Return the pair that differs where the function of this cell holds at a mask."""
        return mask * self.n_switch + OFF_CELL, mask * self.n_switch + cell

    @cached_property
    def duels(self) -> tuple[tuple[int, int, int], ...]:
        """Cells that determine the decision: (cell, decision if it holds, decision if not)."""
        if len(self.decisions) == 2:
            return ((self.decisions[1][0], 1, 0),)
        n = len(self.decisions)
        return tuple((self.decisions[k][j - 1], k, j) for k in range(n) for j in range(k + 1, n))

    @cached_property
    def told(self) -> tuple[int, ...]:
        """The cells that determine the decision and whether it is sure, ascending."""
        return tuple(sorted({*(cell for cell, _, _ in self.duels), *self._sure}))

    @property
    def _sure(self) -> set[int]:
        """The cells that determine whether a decision is sure, if not all are."""
        return set[int]().union(*self.starts).difference(*self.decisions)

    def decide(self, holds: NDArray[np.bool_]) -> NDArray[np.int16]:
        """Return the decisions, given for each told cell (last axis) whether its function holds."""
        columns = [self.told.index(cell) for cell, _, _ in self.duels]
        if len(columns) == 1:
            return holds[..., columns[0]].astype(np.int16)
        won = np.zeros((*holds.shape[:-1], len(self.decisions)), dtype=np.int16)
        for column, (_, winner, loser) in zip(columns, self.duels, strict=True):
            won[..., winner] += holds[..., column]
            won[..., loser] += ~holds[..., column]
        decisions: NDArray[np.int16] = won.argmax(axis=-1).astype(np.int16)
        return decisions

    def starting(self, holds: NDArray[np.bool_], decision: int) -> NDArray[np.bool_]:
        """Return where the decision is made and sure enough, given the told cells."""
        taken: NDArray[np.bool_] = self.decide(holds) == decision
        for cell in self._sure.intersection(self.starts[decision]):
            taken &= holds[..., self.told.index(cell)]
        return taken


def _of_one_margin(cutoffs: Cutoffs) -> tuple[list[Function], tuple[tuple[int, ...], ...]]:
    """Return the functions of cells 1, 2, ..., and the cells for the start of a flip."""
    at, sure_below, sure_above = cutoffs
    functions = [Function(0, None, -at), Function(None, 0, at + 1)]
    if sure_below == sure_above == at:
        return functions, ((2,), (1,))
    functions += [Function(0, None, -sure_above), Function(None, 0, sure_below + 1)]
    return functions, ((4,), (3,))


def _of_classes(n: int) -> tuple[list[Function], tuple[tuple[int, ...], ...]]:
    """Return all functions, and the cells of each decision; function i has cell i + 1."""
    functions = [Function(k, j, int(k < j)) for k in range(n) for j in range(n) if j != k]
    cells = range(1, len(functions) + 1)
    return functions, tuple(tuple(cells[k * (n - 1) : (k + 1) * (n - 1)]) for k in range(n))


def _sure_classes(
    functions: list[Function], decisions: tuple[tuple[int, ...], ...], sure: SureClasses
) -> tuple[tuple[int, ...], ...]:
    """Add the functions of sure decisions; return the cells for the start of a flip."""
    n, first = len(decisions), len(functions) + 1
    if sure.above is not None:
        functions += [Function(k, None, -sure.above) for k in range(n)]
        return tuple((*own, first + k) for k, own in enumerate(decisions))
    if sure.lead is None or sure.lead <= 0:
        return decisions  # any winning class may be sure enough
    leads = [replace(f, constant=-sure.lead) for f in functions]
    functions += leads
    return tuple(tuple(first + cell - 1 for cell in own) for own in decisions)


def _space(margins: IntegerMargins, functions: Sequence[Function]) -> PairSpace:
    """Return the space of the masks with the switch, in which D > 0 is a pair that differs."""
    based = [replace(f, constant=f.constant + _base(margins, f)) for f in functions]
    total = sum(leaves.largest() for leaves in margins.leaves)
    shift = 2 * total + max(abs(f.constant) for f in based) + 1
    shifted = [replace(f, constant=f.constant + shift) for f in based]
    asked = margins.asked
    switch = Switch(asked.grid, (OFF, *shifted))
    laid = switch.laid(asked.ensemble.trees, margins.leaves, margins.scale, 2 * shift)
    return PairSpace(laid, (*asked.query.sensitive, switch.feature), None, shift)


def _base(margins: IntegerMargins, function: Function) -> int:
    plus = 0 if function.plus is None else margins.bases[function.plus]
    return plus - (0 if function.minus is None else margins.bases[function.minus])
