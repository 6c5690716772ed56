"""A flip as pairs of masks: where does one decision hold all around a mask?

The region (x, m) does *not* flip iff one decision holds at m and at all neighbours of m. At most
one does, hence, over the non-sensitive cells x::

    |{x : (x, m) flips}| = n_combinations - sum over decisions of |{x : it holds at all of them}|

and each term is one subproblem "all of these pairs differ" (see
:mod:`xcount.problem.flip_encoding`). If only some flips count (those up or down, or from a sure
decision), the possible starts are counted instead of all combinations, for each side::

    |{x : (x, m) flips}| = sum over the sides of |{x : a flip may start at m}|
                           - |{x : a flip may start at m, and all neighbours decide alike}|

All trees take part in a decision, while most of them cancel in a gap's pairs: exact counting does
not get as far.

A softmax, not a sum of trees, says how sure a decision between several classes is. A superset of
its starts is counted, which gives an upper bound; corner sums and samples compare probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.problem.asked import Asked
from xcount.problem.corner_question import CornerChange, CornerQuestion
from xcount.problem.flip_encoding import OFF_CELL, FlipEncoding
from xcount.problem.form import Form, LivePairs, PairSpace
from xcount.problem.margin_rows import MarginRows
from xcount.problem.margins import Cutoffs, IntegerMargins, SureClasses
from xcount.problem.neighbours import NearMasks
from xcount.problem.subproblem import Decomposition, Expression, Subproblem
from xcount.question.flip import Flip


def flip_form(asked: Asked) -> FlipForm:
    """Return the form of a flip, with or without a required softmax probability."""
    form = FlipForm(asked)
    return SureFlipForm(asked) if form.sure is not None and form.sure.above is None else form


class FlipForm(Form):
    """A question about a flip."""

    max_exact_terms = 200_000
    max_auto_terms = 200_000

    @property
    def change(self) -> Flip:
        change = self.problem.query.change
        assert isinstance(change, Flip)
        return change

    @cached_property
    def encoding(self) -> FlipEncoding:
        return FlipEncoding.of(self.margins, self.cutoffs, self.sure)

    @cached_property
    def cutoffs(self) -> Cutoffs | None:
        return self.margins.cutoffs(self.change)

    @cached_property
    def sure(self) -> SureClasses | None:
        """Which of several classes are sure enough; None for one margin, or if all are."""
        sureness = self.change.sureness
        if sureness is None or self.change.cutoff is not None:
            return None
        return self.margins.sure_classes(sureness)

    @cached_property
    def margins(self) -> IntegerMargins:
        return IntegerMargins.of(self.problem)

    @property
    def _sides(self) -> tuple[int, ...]:
        """The decisions from which flips count, if not all flips count; else empty."""
        if self.change.direction == "any" and self.change.sureness is None:
            return ()
        if self.change.cutoff is None:
            return tuple(range(self.margins.n_outputs))
        return {"any": (0, 1), "up": (0,), "down": (1,)}[self.change.direction]

    @property
    def space(self) -> PairSpace:
        return self.encoding.space

    @property
    def n_terms(self) -> int:
        """About how many functions all subproblems have together."""
        problem = self.problem
        n_masks, n_outputs = problem.n_masks, problem.ensemble.n_outputs
        n_functions = 2 if n_outputs == 1 else n_outputs * (n_outputs - 1)
        if problem.distance is None:
            return n_masks * n_functions
        if n_masks > self.max_exact_terms:
            return n_masks
        return n_masks * (len(problem.masks.neighbours(n_masks // 2)) + 1) * n_functions

    @property
    def n_trees(self) -> int:
        return len(self.problem.ensemble.trees)

    def decompose(self, live: LivePairs, masks: Sequence[int]) -> Decomposition:
        wanted = set(masks)
        near = self.problem.around
        around = {m: near(m) for m in range(self.problem.n_masks) if m in wanted}
        possible = self._possible(live, {m for masks_near in around.values() for m in masks_near})
        if self._sides:
            return self._decompose_by_sides(live, around, possible)
        joint: list[Subproblem] = []
        numbers: dict[tuple[int, ...], int] = {(): 0}
        expressions = [Expression()]
        for neighbourhood in around.values():
            if neighbourhood not in numbers:
                numbers[neighbourhood] = len(expressions)
                expressions.append(self._expression(neighbourhood, possible, joint))
        expression_of = [numbers[around.get(m, ())] for m in range(self.problem.n_masks)]
        return Decomposition((), joint, expressions, expression_of)

    def _decompose_by_sides(
        self,
        live: LivePairs,
        around: dict[int, tuple[int, ...]],
        possible: dict[int, set[int]],
    ) -> Decomposition:
        """Count the starts of flips, minus those whose neighbours all decide alike."""
        encoding, numbers = self.encoding, dict[Subproblem, int]()
        starts = {(m, side): encoding.start(side, m) for m in around for side in self._sides}
        alive = set(live(pair for pairs in starts.values() for pair in pairs))
        expressions = [Expression()]
        expression_of = [0] * self.problem.n_masks
        for mask, neighbourhood in around.items():
            terms: list[tuple[int, int]] = []
            for side in self._sides:
                others = [possible[m] for m in neighbourhood if m != mask]
                start = starts[mask, side]
                if not alive.issuperset(start) or not any(d - {side} for d in others):
                    continue  # it starts nowhere, or meets no other decision
                terms.append((1, _number(Subproblem(start, all_pairs=len(start) > 1), numbers)))
                if all(side in decisions for decisions in others):
                    near = tuple(m for m in neighbourhood if m != mask)
                    steady = (*start, *encoding.pairs(side, near))
                    terms.append((-1, _number(Subproblem(steady, all_pairs=True), numbers)))
            if terms:
                expression_of[mask] = len(expressions)
                expressions.append(Expression(tuple(terms)))
        return Decomposition((), list(numbers), expressions, expression_of)

    def _possible(self, live: LivePairs, masks: set[int]) -> dict[int, set[int]]:
        """Return for each mask the decisions that bounds do not exclude there."""
        encoding = self.encoding
        decisions = range(len(encoding.decisions))
        pairs = {(m, d): encoding.pairs(d, (m,)) for m in sorted(masks) for d in decisions}
        alive = set(live(pair for each in pairs.values() for pair in each))
        found: dict[int, set[int]] = {m: set() for m in masks}
        for (mask, decision), each in pairs.items():
            if alive.issuperset(each):
                found[mask].add(decision)
        return found

    def _expression(
        self, around: tuple[int, ...], possible: dict[int, set[int]], joint: list[Subproblem]
    ) -> Expression:
        """Return the flips of a mask with this neighbourhood; add the subproblems they need."""
        if len(set[int]().union(*(possible[m] for m in around))) == 1:
            return Expression()  # one decision holds everywhere: nothing flips
        steady = set.intersection(*(possible[m] for m in around))
        terms = tuple((-1, len(joint) + i) for i in range(len(steady)))
        for decision in sorted(steady):
            joint.append(Subproblem(self.encoding.pairs(decision, around), all_pairs=True))
        return Expression(terms, is_complement=True)

    @cached_property
    def corner_question(self) -> CornerQuestion:
        problem, margins, cutoffs = self.problem, self.margins, self.cutoffs
        asked, sureness = CornerChange("largest"), None
        if cutoffs is not None:
            sure = (cutoffs.sure_below, cutoffs.sure_above)
            asked = CornerChange("flip", cutoffs.at, self.change.direction, sure)
        elif self.sure is not None:
            sureness = self.change.sureness
            asked = CornerChange("sure largest", sure=(0, self.sure.above or 0))
        return CornerQuestion(
            margins.outputs,
            margins.bases,
            problem.query.sensitive,
            problem.distance,
            (asked,),
            sureness,
        )

    @cached_property
    def _sampler(self) -> _core.Sampler:
        masks = np.arange(self.problem.n_masks, dtype=np.int64)[:, np.newaxis]
        first = masks * self.encoding.n_switch
        cells = np.array(self.encoding.told, dtype=np.int64)
        both = np.broadcast_arrays(first + OFF_CELL, first + cells)
        pairs = np.stack([side.ravel() for side in both], axis=1)
        return self.space.sampler(pairs[:, 1].copy(), pairs)

    @cached_property
    def _near(self) -> NearMasks | None:
        return NearMasks.of_question(self.problem)

    @property
    def flags_per_row(self) -> int:
        return self.problem.n_masks * (1 + len(self.encoding.told))

    def decide(self, cells: NDArray[np.int32]) -> NDArray[np.bool_]:
        holds = self._holds(cells)
        decisions = self.encoding.decide(holds)
        flags = self._flips(decisions)
        if self._sides:
            sides = [self.encoding.starting(holds, side) for side in self._sides]
            flags &= np.logical_or.reduce(sides)
        return flags

    def _flips(self, decisions: NDArray[np.int16]) -> NDArray[np.bool_]:
        """Return where a neighbour decides differently."""
        if self._near is not None:
            return self._near.differ(decisions)
        changes = (decisions != decisions[:, :1]).any(axis=1)
        return np.repeat(changes[:, np.newaxis], self.problem.n_masks, axis=1)

    def _holds(self, cells: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return which of the told functions hold, shape (n_rows, n_masks, n_told)."""
        switched = np.concatenate([cells, np.zeros((len(cells), 1), dtype=np.int32)], axis=1)
        flags = self._sampler.decide(np.ascontiguousarray(switched).ravel())
        # The scope holds the off cell and the told cells, in the order of the cells.
        shape = (len(cells), self.problem.n_masks, 1 + len(self.encoding.told))
        return flags.reshape(shape)[:, :, 1:].astype(np.bool_)

    def supersets(self, decomposition: Decomposition, mask: int) -> list[Subproblem]:
        """Return, for one margin, the subproblems that either decision is made nearby.

        With several classes a decision is a conjunction, not "any of these pairs differs".
        """
        if len(self.encoding.decisions) > 2:
            return []
        around = self.problem.around(mask)
        found = [Subproblem(self.encoding.pairs(decision, around)) for decision in (0, 1)]
        if len(self._sides) == 1:
            found.append(Subproblem(self.encoding.start(self._sides[0], mask)))
        return found

    def influences(self) -> set[int]:
        return {f for tree in self.problem.ensemble.trees for f in tree.feature.tolist()} - {-1}

    def cell_weights(self, weights: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        return [*weights, np.full(self.encoding.n_switch, 1 / self.encoding.n_switch)]


class SureFlipForm(FlipForm):
    """A flip from a decision that is sure enough according to a softmax."""

    only_bounds = True

    def decompose(self, live: LivePairs, masks: Sequence[int]) -> Decomposition:
        found = super().decompose(live, masks)
        bounds = [expression._replace(is_upper_bound=True) for expression in found.expressions]
        return replace(found, expressions=bounds)

    @property
    def flags_per_row(self) -> int:
        return super().flags_per_row + self.problem.n_masks * (4 + 2 * self.margins.n_outputs)

    @cached_property
    def _rows(self) -> MarginRows:
        return MarginRows(self.margins, range(self.margins.n_outputs))

    def decide(self, cells: NDArray[np.int32]) -> NDArray[np.bool_]:
        sureness = self.change.sureness
        assert sureness is not None
        decisions = self.encoding.decide(self._holds(cells))
        flags = self._flips(decisions)
        rows = np.flatnonzero(flags.any(axis=1))
        if len(rows):
            flags[rows] &= self._rows.sure(np.ascontiguousarray(cells[rows]), sureness)
        return flags


def _number(subproblem: Subproblem, numbers: dict[Subproblem, int]) -> int:
    """Return the number of a subproblem, a new one if it is not known yet."""
    return numbers.setdefault(subproblem, len(numbers))
