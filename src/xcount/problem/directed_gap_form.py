"""A gap with a direction as pairs of masks: only higher (or only lower) neighbours count.

Pairs of masks are compared only by the size of their difference. A switch with two cells, the
second of which adds a constant c to the sum, gives the difference a known sign::

    W(x, m, 0) = V(x, m),   W(x, m, 1) = V(x, m) + c,   c > |V(x, m') - V(x, m)| everywhere
    |W(x, m', 1) - W(x, m, 0)| > G + c   iff   V(x, m') - V(x, m) > G

The trees themselves do not test the switch: trees that cancel in a pair of masks still do. No pair
is shared by two masks; ``|A_m|`` is one count of "any of these pairs differs".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from xcount.problem.asked import Asked
from xcount.problem.form import LivePairs, PairSpace
from xcount.problem.gap_form import GapForm
from xcount.problem.subproblem import Decomposition, Expression, Pair, Subproblem
from xcount.problem.switch import Function, Switch

_N_SWITCH = 2


def gap_form(asked: Asked) -> GapForm:
    """Return the form of a gap, with a direction or without."""
    has_direction = asked.query.change.direction != "any"
    return DirectedGapForm(asked) if has_direction else GapForm(asked)


class DirectedGapForm(GapForm):
    """A question about a gap in one direction."""

    @cached_property
    def space(self) -> PairSpace:
        own = self.own_space
        laid, output = own.trees, self.change.output
        constant = 2 * laid.bound + 1
        switch = Switch(
            self.problem.grid, (Function(output, None, 0), Function(output, None, constant))
        )
        ends = np.cumsum([tree.n_nodes for tree in laid.trees]).tolist()
        leaves = [laid.values[e - t.n_nodes : e] for e, t in zip(ends, laid.trees, strict=True)]
        trees = switch.laid(laid.trees, leaves, laid.scale, laid.bound + constant)
        sensitive = (*own.sensitive, switch.feature)
        return PairSpace(trees, sensitive, None, own.threshold + constant)

    @property
    def n_terms(self) -> int:
        return 2 * self.problem.n_pairs_about

    def decompose(self, live: LivePairs, masks: Sequence[int]) -> Decomposition:
        pairs_of: dict[int, list[Pair]] = {mask: [] for mask in masks}
        for pair in live(pair for mask in masks for pair in self._pairs(mask)):
            pairs_of[self._mask_of(pair)].append(pair)
        joint: list[Subproblem] = []
        expressions = [Expression()]
        expression_of = [0] * self.problem.n_masks
        for mask, pairs in pairs_of.items():
            if pairs:
                expression_of[mask] = len(expressions)
                expressions.append(Expression(((1, len(joint)),)))
                joint.append(Subproblem(tuple(pairs)))
        return Decomposition((), joint, expressions, expression_of)

    def _pairs(self, mask: int) -> Iterator[Pair]:
        """Yield the pairs of the switched masks that make a mask sensitive."""
        for other in self.problem.masks.neighbours(mask):
            yield self.pair(mask, other)

    def pair(self, mask: int, other: int) -> Pair:
        """Return the pair of switched masks that differs if ``other`` makes ``mask`` sensitive."""
        low, high = (mask, other) if self._is_up else (other, mask)
        return low * _N_SWITCH, high * _N_SWITCH + 1

    def _mask_of(self, pair: Pair) -> int:
        """Return the mask that a pair makes sensitive."""
        return pair[0 if self._is_up else 1] // _N_SWITCH

    @property
    def _is_up(self) -> bool:
        return self.change.direction == "up"

    def supersets(self, decomposition: Decomposition, mask: int) -> list[Subproblem]:
        return [decomposition.subproblem(n) for _, n in decomposition.of_mask(mask).terms]

    def cell_weights(self, weights: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        return [*weights, np.full(_N_SWITCH, 1 / _N_SWITCH)]
