"""A gap in probability: m is sensitive at x iff some neighbour has |p(x, m') - p(x, m)| > P.

A sum of trees is not a probability, so pairs of masks cannot count such a change. They bound it:
with a sigmoid, log-odds that are no further apart than ``2 logit((1 + P) / 2)`` never have
probabilities that differ by more than P. So the regions with a gap of that size in the margin are a
superset, found by difference trees as usual; both margins decide which of them change. With a
softmax, the lead over some other class must move that far: if none can, nothing changes. Corner
sums visit every region and compare probabilities themselves; samples are decided by evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.problem.asked import Asked
from xcount.problem.corner_question import CornerChange, CornerQuestion
from xcount.problem.directed_gap_form import gap_form
from xcount.problem.form import Form, LivePairs, PairSpace
from xcount.problem.margin_rows import DOUBT, Limbs, MarginRows
from xcount.problem.margins import IntegerMargins
from xcount.problem.neighbours import NearMasks
from xcount.problem.subproblem import Decomposition, Expression, Subproblem
from xcount.question.gap import Gap, ProbabilityGap
from xcount.question.probability import Softmax

MAX_LEADS = 200_000
"""The most pairs of masks, per class, for which bounds exclude masks that cannot change."""

_LEADS_PER_SLICE = 64


def probability_form(asked: Asked) -> Form:
    """Return the form of a gap in probability: that of a gap in margin if they are equivalent."""
    change = asked.query.change
    assert isinstance(change, ProbabilityGap)
    return gap_form(asked) if change.margin_gap is not None else ProbabilityForm(asked)


class ProbabilityForm(Form):
    """A question about a gap in probability that is not equivalent to a gap in margin."""

    only_bounds = True

    def __init__(self, problem: Asked) -> None:
        super().__init__(problem)
        change = problem.query.change
        assert isinstance(change, ProbabilityGap)
        self.change = change
        least = change.link.least_margin_gap(change.gap)
        wider = replace(problem.query, change=Gap(least, change.output, change.direction))
        self._wider = gap_form(replace(problem, query=wider))
        self.max_exact_terms = self._wider.max_exact_terms
        self.max_auto_terms = self._wider.max_auto_terms

    @cached_property
    def margins(self) -> IntegerMargins:
        return IntegerMargins.of(self.problem)

    @cached_property
    def outputs(self) -> tuple[int, ...]:
        """The outputs that take part in the probability."""
        every = range(self.problem.ensemble.n_outputs)
        return tuple(k for k in every if self.change.concerns(k))

    @property
    def space(self) -> PairSpace:
        return self._wider.space

    @property
    def n_terms(self) -> int:
        return self._wider.n_terms if self._is_bounded else self.problem.n_masks

    @property
    def n_trees(self) -> int:
        return sum(tree.output in self.outputs for tree in self.problem.ensemble.trees)

    @property
    def flags_per_row(self) -> int:
        return self.problem.n_masks * (4 + 2 * len(self.outputs))

    @property
    def _is_bounded(self) -> bool:
        """Whether a gap in the margin of the output asked about bounds the change."""
        return len(self.outputs) == 1

    def decompose(self, live: LivePairs, masks: Sequence[int]) -> Decomposition:
        if not self._is_bounded:
            everything = Expression(is_complement=True, is_upper_bound=True)
            may_change = self._masks_with_live_leads(live, masks)
            numbers = [int(m in may_change) for m in range(self.problem.n_masks)]
            return Decomposition((), (), [Expression(), everything], numbers)
        found = self._wider.decompose(live, masks)
        # Samples must not use these pairs: they only bound the change.
        joint = [Subproblem((pair,)) for pair in found.pairs]
        bounds = [expression._replace(is_upper_bound=True) for expression in found.expressions]
        return Decomposition((), [*joint, *found.joint], bounds, found.expression_of)

    def _masks_with_live_leads(self, live: LivePairs, masks: Sequence[int]) -> set[int]:
        """Return the masks whose lead over some other class may move far enough."""
        if self.problem.n_pairs_about * len(self.outputs) > MAX_LEADS:
            return set(masks)
        pairs, found = list(self.problem.pairs_of(masks)), set[int]()
        for form in self._leads:
            counter, first = form.space.counter(), 0
            while first < len(pairs):
                live(())  # checks the limits even if there are no pairs
                # One pair is enough for a mask, and most masks have one among the first pairs.
                chunk = pairs[first : first + _LEADS_PER_SLICE]
                chunk = [pair for pair in chunk if not found.issuperset(pair)]
                flags = counter.live(chunk, 1, math.inf, None) if chunk else ()
                found.update(mask for pair in compress(chunk, flags) for mask in pair)
                first += _LEADS_PER_SLICE
            pairs = [pair for pair in pairs if not found.issuperset(pair)]
        return found

    @cached_property
    def _leads(self) -> list[Form]:
        """Gaps in V[k] - V[j], one for each other class j; every change exceeds one of them."""
        link, own, ensemble = self.change.link, self.change.output, self.problem.ensemble
        assert isinstance(link, Softmax)
        gap = Gap(link.least_lead_gap(self.change.gap), 0, "any")
        query = replace(self.problem.query, change=gap)
        forms: list[Form] = []
        for other in (k for k in self.outputs if k != own):
            signs = {own: 1.0, other: -1.0}
            trees = tuple(
                replace(tree, value=tree.value * signs[tree.output], output=0)
                for tree in ensemble.trees
                if tree.output in signs
            )
            lead = replace(ensemble, trees=trees, base=ensemble.base[:1])
            forms.append(gap_form(replace(self.problem, ensemble=lead, query=query)))
        return forms

    @cached_property
    def corner_question(self) -> CornerQuestion:
        problem, margins, change = self.problem, self.margins, self.change
        threshold = math.floor(change.gap * _core.ProbabilityLink.one)
        asked = CornerChange("probability", threshold, change.direction)
        return CornerQuestion(
            tuple(margins.outputs[k] for k in self.outputs),
            tuple(margins.bases[k] for k in self.outputs),
            problem.query.sensitive,
            problem.distance,
            (asked,),
            replace(change, output=self.outputs.index(change.output)),
        )

    @cached_property
    def _rows(self) -> MarginRows:
        return MarginRows(self.margins, self.outputs)

    def decide(self, cells: NDArray[np.int32]) -> NDArray[np.bool_]:
        scaled, limbs = self._rows.at(cells, self.change.link)
        gap, chances = float(self.change.gap), self._probabilities(scaled)
        low, high = self._extremes(chances)
        rise = np.where(self.change.direction == "down", 0.0, high - chances)
        fall = np.where(self.change.direction == "up", 0.0, chances - low)
        size = np.maximum(rise, fall)
        flags: NDArray[np.bool_] = size > gap + DOUBT
        for row, mask in np.argwhere(~flags & ~(size < gap - DOUBT)).tolist():
            flags[row, mask] = self._changes(limbs[row], mask)
        return flags

    @cached_property
    def _near(self) -> NearMasks | None:
        return NearMasks.of_question(self.problem)

    def _extremes(
        self, chances: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the smallest and the largest probability around each mask."""
        if self._near is not None:
            return self._near.extremes(chances)
        return chances.min(axis=1, keepdims=True), chances.max(axis=1, keepdims=True)

    def _probabilities(self, floats: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities of the output asked about; NaN if floats fail."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.change.link.of_floats(floats, self.outputs.index(self.change.output))

    def _changes(self, limbs: Limbs, mask: int) -> bool:
        """Decide exactly whether a mask changes, given the limbs of all masks."""
        change = replace(self.change, output=self.outputs.index(self.change.output))
        here = self._rows.exactly(limbs[mask])
        return any(
            change.differs(here, self._rows.exactly(limbs[other]))
            for other in self.problem.around(mask)
            if (limbs[other] != limbs[mask]).any()
        )

    def supersets(self, decomposition: Decomposition, mask: int) -> list[Subproblem]:
        return self._wider.supersets(decomposition, mask) if self._is_bounded else []

    def influences(self) -> set[int]:
        trees = (t for t in self.problem.ensemble.trees if t.output in self.outputs)
        return {f for tree in trees for f in tree.feature.tolist()} - {-1}

    def cell_weights(self, weights: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        return self._wider.cell_weights(weights)
