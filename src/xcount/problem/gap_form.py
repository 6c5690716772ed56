"""A gap as pairs of masks: m is sensitive at x iff some neighbour m' has |V(x, m) - V(x, m')| > G.

Only the trees with a guard that separates m from m' contribute to the difference of a pair; pairs
whose trees cannot add up to more than the gap drop out at once. Of the rest, m may have

- none: ``|A_m| = 0``;
- one: ``|A_m| = |P|``, and the pair is counted once for both of its masks;
- two: ``|A_m| = |P| + |Q| - |P and Q|``, where P and Q are shared with other masks;
- more: one count of "any of these pairs differs".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.problem.corner_question import CornerChange, CornerQuestion
from xcount.problem.form import Form, LivePairs, PairSpace
from xcount.problem.laid_trees import LaidTrees
from xcount.problem.subproblem import Decomposition, Expression, Pair, Subproblem
from xcount.question.gap import Gap, ProbabilityGap


class GapForm(Form):
    """A question about a gap."""

    max_exact_terms = 10_000_000
    max_auto_terms = 20_000

    @property
    def change(self) -> Gap | ProbabilityGap:
        change = self.problem.query.change
        assert isinstance(change, Gap | ProbabilityGap)
        return change

    @cached_property
    def own_space(self) -> PairSpace:
        """The masks of the question itself, for samplers, with its direction."""
        problem, change = self.problem, self.change
        assert change.margin_gap is not None
        trees = LaidTrees.of_output(
            problem.ensemble, problem.grid, change.output, problem.query.precision
        )
        threshold = trees.threshold(change.margin_gap)
        return PairSpace(
            trees, problem.query.sensitive, problem.distance, threshold, change.direction
        )

    @property
    def space(self) -> PairSpace:
        return self.own_space

    @property
    def n_terms(self) -> int:
        return self.problem.n_pairs_about

    @property
    def n_trees(self) -> int:
        return len(self.own_space.trees.trees)

    def native_draws(self) -> PairSpace:
        return self.own_space

    def decompose(self, live: LivePairs, masks: Sequence[int]) -> Decomposition:
        pairs = live(self.problem.pairs_of(masks))
        pairs_of: list[list[int]] = [[] for _ in range(self.problem.n_masks)]
        for number, (a, b) in enumerate(pairs):
            pairs_of[a].append(number)
            pairs_of[b].append(number)
        joint: list[Subproblem] = []
        numbers: dict[tuple[int, ...], int] = {}
        expressions: list[Expression] = []
        for own in map(tuple, pairs_of):
            if numbers.setdefault(own, len(expressions)) == len(expressions):
                expressions.append(_union(own, pairs, joint))
        expression_of = [numbers[tuple(own)] for own in pairs_of]
        return Decomposition(pairs, joint, expressions, expression_of)

    @cached_property
    def corner_question(self) -> CornerQuestion:
        space = self.own_space
        asked = CornerChange("gap", space.threshold, space.direction)
        return CornerQuestion((space.trees,), (0,), space.sensitive, space.distance, (asked,))

    @cached_property
    def _sampler(self) -> _core.Sampler:
        return self.own_space.sampler(np.arange(self.problem.n_masks, dtype=np.int64))

    def decide(self, cells: NDArray[np.int32]) -> NDArray[np.bool_]:
        flags = self._sampler.decide(cells.ravel())
        return flags.reshape(len(cells), self.problem.n_masks).astype(np.bool_)

    def supersets(self, decomposition: Decomposition, mask: int) -> list[Subproblem]:
        own = decomposition.of_mask(mask).union_of
        return [Subproblem(tuple(decomposition.pairs[number] for number in own))]

    def influences(self) -> set[int]:
        sensitive, used = set(self.problem.query.sensitive), set[int]()
        for tree in self.own_space.trees.trees:
            tested = set(tree.feature.tolist()) - {-1}
            if tested & sensitive:
                used |= tested
        return used


def _union(own: tuple[int, ...], pairs: Sequence[Pair], joint: list[Subproblem]) -> Expression:
    """Return the count of "any of these pairs differs"; add the joint subproblem it may need."""
    if len(own) < 2:
        return Expression(tuple((1, number) for number in own), union_of=own)
    number = len(pairs) + len(joint)
    joint.append(Subproblem(tuple(pairs[i] for i in own), all_pairs=len(own) == 2))
    if len(own) == 2:
        return Expression(((1, own[0]), (1, own[1]), (-1, number)), union_of=own)
    return Expression(((1, number),), union_of=own)
