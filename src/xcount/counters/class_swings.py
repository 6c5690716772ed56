"""Flips between several classes: which class replaces which, and the change of its lead.

A decision flips *up* to a later class and *down* to an earlier one. With p the outputs of the
classes (their probabilities, or their margins), c the class before and c' the one after::

    size = ((p'[c'] - p'[c]) - (p[c'] - p[c])) / 2

half of the change of the lead of c' over c, which is never below 0. For two classes whose
probabilities add up to 1, it is the change of the probability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from xcount.counters.swings import (
    MAX_NUMBERS,
    TINY,
    Flags,
    SwingRows,
    Swings,
    own_link,
    refuse_many,
)
from xcount.problem.margin_rows import DOUBT, Classes, MarginRows, first_largest
from xcount.problem.margins import IntegerMargins
from xcount.problem.neighbours import NearMasks
from xcount.problem.problem import Problem
from xcount.question.flip import Flip
from xcount.question.probability import Link, Votes


@dataclass(frozen=True, eq=False)
class ClassOutputs:
    """The outputs of the classes at all masks, for some combinations of the other cells.

    Attributes:
        scaled: the margins, shape (n_rows, n_masks, n_classes), as the link takes them.
        link: turns margins into outputs.
        decided: the classes that win, decided exactly, shape (n_rows, n_masks).
        starts: which decisions are sure enough for a flip from them to count; None for all.
    """

    scaled: NDArray[np.float64]
    link: Link
    decided: Classes
    starts: Flags | None = None

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The outputs, of the same shape."""
        return _outputs_of(self.link, self.scaled)

    def values_at(self, masks: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the outputs of some masks of each row, shape (n_rows, n, n_classes)."""
        chosen = np.take_along_axis(self.scaled, masks[..., np.newaxis], axis=1)
        return _outputs_of(self.link, chosen)

    @cached_property
    def highest(self) -> Flags:
        """Which class wins in which mask; none if the same class wins in all masks."""
        is_same = (self.decided == self.decided[:, :1]).all(axis=1)
        wins: Flags = self.decided[..., np.newaxis] == np.arange(self.scaled.shape[2])
        wins &= ~is_same[:, np.newaxis, np.newaxis]
        return wins


class ClassSwingRows:
    """Evaluates all classes along all masks, and how far a flip moves them.

    Args:
        problem: a question about flips between several classes.

    Raises:
        BudgetError: there are too many masks.
    """

    dtype = np.float64
    unit = Fraction(1)

    def __init__(self, problem: Problem) -> None:
        refuse_many(problem)
        self.problem = problem
        self._margins = IntegerMargins.of(problem)
        self._link = own_link(problem) or Votes()
        self.near = NearMasks.of_question(problem)
        self.n_classes = self._margins.n_outputs

    @cached_property
    def most(self) -> float:
        """Upper bound on every change."""
        if not isinstance(self._link, Votes):
            return 1.0
        return float(2 * self._margins.bound / self._margins.scale)

    @property
    def doubt(self) -> float:
        """Bound on the error of numbers other than 0."""
        return math.ldexp(self.most, -48) if isinstance(self._link, Votes) else 2 * DOUBT

    @property
    def n_trees(self) -> int:
        """The number of trees walked for a row."""
        return len(self.problem.ensemble.trees)

    @property
    def n_near(self) -> int:
        """The number of outputs compared for a region."""
        return 4 * (self.problem.n_masks if self.near is None else self.near.width)

    @property
    def n_numbers(self) -> int:
        """The number of values computed for a row."""
        return 4 * self.n_classes * self.problem.n_masks + self.n_near

    @property
    def block(self) -> int:
        """How many rows to evaluate at a time."""
        return max(1, MAX_NUMBERS // self.n_numbers)

    @cached_property
    def _rows(self) -> MarginRows:
        return MarginRows(self._margins, range(self.n_classes))

    def outputs(self, cells: NDArray[np.int32]) -> ClassOutputs:
        """Return the outputs of all masks at rows of cells; sensitive cells are ignored."""
        own = np.array(cells, dtype=np.int32, ndmin=2)
        own[:, list(self.problem.query.sensitive)] = 0
        scaled, limbs = self._rows.at(own, self._link)
        found = ClassOutputs(scaled, self._link, first_largest(limbs))
        change = self.problem.query.change
        assert isinstance(change, Flip)
        if change.sureness is None:
            return found
        sure = self._rows.sure_of(found.values, limbs, found.decided, change.sureness)
        return replace(found, starts=sure)

    def evaluated(
        self, cells: NDArray[np.int32], masks: NDArray[np.int64]
    ) -> tuple[Swings, NDArray[np.int64]]:
        """Return how far one mask of each row can move, and for how many rows each class wins."""
        outputs = self.outputs(cells)
        return self.swings(outputs, masks), outputs.highest.sum(axis=0)

    def evaluated_all(self, cells: NDArray[np.int32]) -> tuple[Swings, Flags]:
        """Return how far all masks of each row can move, and where the output is highest."""
        outputs = self.outputs(cells)
        return self.swings(outputs), outputs.highest

    def swings(self, outputs: ClassOutputs, masks: NDArray[np.int64] | None = None) -> Swings:
        """Return how far regions can move: one mask of each row, or all of them."""
        if masks is not None:
            return self._swings_near(outputs, masks)
        n_rows = len(outputs.scaled)
        each = [self._swings(outputs, np.full(n_rows, m)) for m in range(self.problem.n_masks)]
        return Swings(*(np.stack([getattr(s, side) for s in each], 1) for side in ("up", "down")))

    def _swings_near(self, outputs: ClassOutputs, masks: NDArray[np.int64]) -> Swings:
        """Return how far one mask of each row can move; evaluate only its neighbours."""
        if self.near is None:
            return self._swings(outputs, masks)
        columns = np.concatenate([masks[:, np.newaxis], self.near.of(masks)], axis=1)
        values = outputs.values_at(columns)
        decided = np.take_along_axis(outputs.decided, columns, axis=1)
        starts = outputs.starts
        own = None if starts is None else np.take_along_axis(starts, columns[:, :1], axis=1)
        return _moved(values[:, 0], decided[:, 0], values[:, 1:], decided[:, 1:], own)

    def _swings(self, outputs: ClassOutputs, masks: NDArray[np.int64]) -> Swings:
        values, decided = outputs.values, outputs.decided
        rows = np.arange(len(masks))
        starts = None if outputs.starts is None else outputs.starts[rows, masks][:, np.newaxis]
        own_values, own = values[rows, masks], decided[rows, masks]
        if self.near is not None:
            near = self.near.table[masks]
            values, decided = values[rows[:, np.newaxis], near], decided[rows[:, np.newaxis], near]
        return _moved(own_values, own, values, decided, starts)


def _moved(
    own_values: NDArray[np.float64],
    own: Classes,
    values: NDArray[np.float64],
    decided: Classes,
    starts: Flags | None,
) -> Swings:
    """Return how far regions can move, given their outputs and those of their neighbours."""
    before = own[:, np.newaxis]
    lead_before = np.take_along_axis(own_values, decided, axis=1)
    lead_before = lead_before - np.take_along_axis(own_values, before, axis=1)
    after = np.take_along_axis(values, decided[..., np.newaxis], axis=2)[..., 0]
    rows = np.arange(len(own))
    lead_after = after - values[rows, :, own]
    size = np.maximum((lead_after - lead_before) / 2, TINY)
    if starts is not None:
        size = np.where(starts, size, 0.0)
    return Swings(
        np.where(decided > before, size, 0.0).max(axis=1),
        np.where(decided < before, size, 0.0).max(axis=1),
    )


def _outputs_of(link: Link, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        return link.of_classes(scaled)


def swing_rows(problem: Problem) -> SwingRows | ClassSwingRows:
    """Return the evaluator for the outputs of a question."""
    change = problem.query.change
    if isinstance(change, Flip) and change.cutoff is None:
        return ClassSwingRows(problem)
    return SwingRows(problem)
