"""What rows get as they are, and in every mask that they may change to.

Margins are sums of integers, and so are their order and the decisions; floats are for display. Only
probabilities of one of several classes are ordered as floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.answers.explain.decided import Decision
from xcount.answers.explain.rates import decision_names
from xcount.counters.swings import MAX_NUMBERS, own_link, refuse_many
from xcount.errors import QueryError
from xcount.problem.integers import exceeds
from xcount.problem.margin_rows import Limbs, MarginRows, first_largest
from xcount.problem.margins import IntegerMargins
from xcount.problem.problem import Problem
from xcount.question.flip import Flip
from xcount.question.gap import ProbabilityGap
from xcount.question.probability import Link, Votes
from xcount.question.query import resolve_flip

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
_FAR = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The outcomes of some rows, one entry for each.

    Attributes:
        masks: the masks that they are in.
        margins: of the output that is shown.
        probabilities: of the same output; None if the model has none.
        decisions: the side of the cut-off, or the class that wins; None if the model makes none.
    """

    masks: Whole
    margins: Floats
    probabilities: Floats | None
    decisions: Whole | None

    def at(self, places: Whole) -> Outcomes:
        """Return the outcomes of only some rows."""
        return Outcomes(
            self.masks[places],
            self.margins[places],
            None if self.probabilities is None else self.probabilities[places],
            None if self.decisions is None else self.decisions[places],
        )


@dataclass(frozen=True, eq=False)
class Outlook:
    """What some rows get as they are, at their best and at their worst.

    Attributes:
        now: the outcomes of the rows as they are.
        best: the most favourable outcomes that a change can bring; of equal ones the nearest.
        worst: the least favourable ones.
        outputs: the output that is shown for each row.
    """

    now: Outcomes
    best: Outcomes
    worst: Outcomes
    outputs: Whole


class OutcomeFinder:
    """Finds the outcomes of rows in all masks that they may change to.

    The output that is shown is the one in question. For a flip between several classes it is the
    favourable class, or else the class that wins as the row is: then a change that flips the
    decision is worse than one that does not.

    Args:
        problem: the question.
        favourable: the favourable decision; None for the highest output.

    Raises:
        BudgetError: there are too many masks.
    """

    def __init__(self, problem: Problem, favourable: Decision | None = None) -> None:
        refuse_many(problem)
        self.problem = problem
        self._favourable = favourable

    @cached_property
    def link(self) -> Link | None:
        """The link to the probability in question, or to the model's own; None without one."""
        change = self.problem.query.change
        return change.link if isinstance(change, ProbabilityGap) else own_link(self.problem)

    @cached_property
    def flip(self) -> Flip | None:
        """How the model decides; None if it makes no decision."""
        change = self.problem.query.change
        if isinstance(change, Flip):
            return change
        if self._favourable is not None:
            return self._favourable.flip
        try:
            return resolve_flip(self.problem.ensemble)
        except QueryError:
            return None

    @cached_property
    def decision_names(self) -> list[str]:
        """The names of the decisions, if there are any."""
        return [] if self.flip is None else decision_names(self.problem.ensemble, self.flip)

    @cached_property
    def _margins(self) -> IntegerMargins:
        return IntegerMargins.of(self.problem)

    @cached_property
    def _rows(self) -> MarginRows:
        return MarginRows(self._margins, range(self._margins.n_outputs))

    @cached_property
    def _output(self) -> int | None:
        """The output that is shown; None if it is the class that wins as the row is."""
        change = self.problem.query.change
        if not (isinstance(change, Flip) and change.cutoff is None):
            return change.output_index
        return None if self._favourable is None else self._favourable.value

    @cached_property
    def _lowest_is_best(self) -> bool:
        chosen = self._favourable
        return chosen is not None and chosen.flip.cutoff is not None and chosen.value == 0

    @property
    def block(self) -> int:
        """How many rows to look at together."""
        limbs = 1 + self._margins.outputs[0].n_limbs
        return max(1, MAX_NUMBERS // (self.problem.n_masks * self._margins.n_outputs * limbs))

    @cached_property
    def mask_cells(self) -> Whole:
        """The cell of each sensitive feature in every mask, shape (n_masks, n_sensitive)."""
        sizes = [self.problem.grid.axes[f].n_cells for f in self.problem.query.sensitive]
        numbers = np.unravel_index(np.arange(self.problem.n_masks), sizes)
        return np.stack(numbers, axis=1).astype(np.int64)

    def own_masks(self, regions: NDArray[np.integer]) -> Whole:
        """Return the mask of each region."""
        masks = np.zeros(len(regions), dtype=np.int64)
        for feature in self.problem.query.sensitive:
            masks = masks * self.problem.grid.axes[feature].n_cells + regions[:, feature]
        return masks

    def distances(self, regions: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return how far each mask is from each region's own, shape (n_regions, n_masks)."""
        found = np.zeros((len(regions), self.problem.n_masks), dtype=np.int32)
        for place, feature in enumerate(self.problem.query.sensitive):
            own = self.problem.grid.axes[feature].distances_from(regions[:, feature])
            found += own[:, self.mask_cells[:, place]]
        return found

    def allowed(self, regions: NDArray[np.integer], distances: NDArray[np.int32]) -> Flags:
        """Return which masks each region may change to, its own included."""
        found = np.ones(distances.shape, dtype=np.bool_)
        if self.problem.distance is not None:
            found = distances <= self.problem.distance
        if self.problem.is_split:
            sensitive = self.problem.query.sensitive
            for box in self.problem.grid.boxes(sensitive):
                if box.masks is not None:
                    found[box.holds(regions, sensitive)] &= box.masks.ravel()
        return found

    def margins(self, regions: NDArray[np.integer], own: Whole) -> tuple[Floats, Limbs]:
        """Return the margins in all masks, shape (n_regions, n_masks, n_outputs), and in limbs.

        In all masks but a region's own, features that move along are exchanged.
        """
        floats, limbs = self._margins_at(regions)
        allowed = self.problem.grid.allowed
        if allowed.along:
            moved = allowed.moved(regions)
            exists = np.flatnonzero(moved.min(axis=1, initial=0) >= 0)
            rows = np.arange(len(regions))
            now = floats[rows, own].copy(), limbs[rows, own].copy()
            floats[exists], limbs[exists] = self._margins_at(moved[exists])
            floats[rows, own], limbs[rows, own] = now
        return floats, limbs

    def _margins_at(self, regions: NDArray[np.integer]) -> tuple[Floats, Limbs]:
        cells = np.array(regions, dtype=np.int32, ndmin=2)
        cells[:, list(self.problem.query.sensitive)] = 0
        return self._rows.at(cells, Votes())

    def decisions(self, limbs: Limbs) -> Whole | None:
        """Return the decisions at margins given by their limbs, shape (..., n_outputs, n_limbs)."""
        if self.flip is None:
            return None
        cutoffs = self._margins.cutoffs(self.flip)
        if cutoffs is None:
            return first_largest(limbs)
        return exceeds(limbs[..., 0, :], cutoffs.at).astype(np.int64)

    def probabilities(self, margins: Floats, outputs: Whole) -> Floats | None:
        """Return the probabilities of the given outputs at margins, shape (n, n_outputs)."""
        if self.link is None:
            return None
        found = np.empty(len(margins))
        with np.errstate(over="ignore"):
            scaled = margins * float(self.link.scaled_unit(Fraction(1)))
            for output in np.unique(outputs).tolist():
                own = outputs == output
                found[own] = self.link.of_floats(scaled[own], output)
        return found

    def look(self, regions: NDArray[np.integer]) -> Outlook:
        """Return the outlook of the given regions."""
        own = self.own_masks(regions)
        rows = np.arange(len(regions))
        distances = self.distances(regions)
        allowed = self.allowed(regions, distances)
        floats, limbs = self.margins(regions, own)
        outputs = self._shown(limbs[rows, own])
        keys = self._keys(floats, limbs, outputs, own)

        def outcomes(masks: Whole) -> Outcomes:
            margins = floats[rows, masks]
            return Outcomes(
                masks,
                margins[rows, outputs],
                self.probabilities(margins, outputs),
                self.decisions(limbs[rows, masks]),
            )

        distances[rows, own] = -1  # of equal ones, the row as it is; else the nearest
        best, worst = (
            np.where(_extreme(keys, allowed, is_highest), distances, _FAR).argmin(axis=1)
            for is_highest in (not self._lowest_is_best, self._lowest_is_best)
        )
        return Outlook(outcomes(own), outcomes(best), outcomes(worst), outputs)

    def _shown(self, limbs: Limbs) -> Whole:
        """Return the output that is shown for each row, given its own margins."""
        if self._output is not None:
            return np.full(len(limbs), self._output, dtype=np.int64)
        return first_largest(limbs)

    def _keys(self, floats: Floats, limbs: Limbs, outputs: Whole, own: Whole) -> list[NDArray[Any]]:
        """Return numbers that order the masks of each row, the most significant ones first."""
        change, rows = self.problem.query.change, np.arange(len(own))
        is_between_classes = isinstance(change, Flip) and change.cutoff is None
        if limbs.shape[2] == 1 or not (is_between_classes or isinstance(change, ProbabilityGap)):
            shown = limbs[rows, :, outputs]
            top = np.ascontiguousarray(shown[..., -1]).view(np.int64)
            return [top, *(shown[..., place] for place in range(shown.shape[-1] - 2, -1, -1))]
        values = floats[rows, :, outputs]
        if self.link is not None:
            n, n_masks, n_outputs = floats.shape
            each = np.repeat(outputs, n_masks)
            found = self.probabilities(floats.reshape(n * n_masks, n_outputs), each)
            assert found is not None
            values = found.reshape(n, n_masks)
        if self._output is not None:
            return [values]
        decided = first_largest(limbs)
        return [(decided == decided[rows, own][:, np.newaxis]).astype(np.int64), values]


def _extreme(keys: Sequence[NDArray[Any]], allowed: Flags, is_highest: bool) -> Flags:
    """Return which allowed masks of each row are the highest, or the lowest, by several keys."""
    found = allowed.copy()
    for key in keys:
        of_kind: Any = np.finfo if key.dtype.kind == "f" else np.iinfo
        limits = of_kind(key.dtype)
        if is_highest:
            top = np.where(found, key, limits.min).max(axis=1, keepdims=True)
        else:
            top = np.where(found, key, limits.max).min(axis=1, keepdims=True)
        found &= key == top
    return found
