"""How far the output of given regions can move when only the sensitive features change.

All parts of an explanation use this one interface:

- :meth:`Evaluator.evaluate` compares the outputs of all masks, and finds how far regions move up
  and down and where the output is highest.
- :meth:`Evaluator.exceeds` searches, for questions with too many masks to compare, and finds
  whether regions move by more than a gap.
- :meth:`Evaluator.is_sensitive` finds whether regions move by more than the question's own gap, in
  whichever way is faster.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.counters.class_swings import ClassSwingRows, swing_rows
from xcount.counters.decisions import RegionDecider
from xcount.counters.moves import Moves, kept_moves
from xcount.counters.region_search import Doubt, RegionSearch
from xcount.counters.settings import Settings
from xcount.counters.swings import MAX_MASKS, Flags, SwingRows, Swings, own_link
from xcount.counters.tally import Progress
from xcount.errors import OutOfLimitsError
from xcount.problem.corner_question import CornerChange, CornerQuestion
from xcount.problem.problem import Problem
from xcount.question.change import Direction
from xcount.question.flip import Flip
from xcount.question.gap import Gap, ProbabilityGap

BLOCK = 4096
"""Regions decided at a time."""

# Rough, and the same everywhere on purpose: answers must not depend on the clock.
_SECONDS_PER_ROW = 1e-6
_SECONDS_PER_TREE = 15e-9
SECONDS_PER_NUMBER = 20e-9
_BLOCK_SECONDS = 0.1
"""Estimated time between two checks for interrupts."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Unit, range and accuracy of the numbers of an evaluation.

    Attributes:
        unit: what 1 stands for.
        most: upper bound on every change, in units.
        doubt: bound on the error of numbers other than 0, in units.
        dtype: type of the numbers.
    """

    unit: Fraction
    most: float
    doubt: float
    dtype: type[np.int64] | type[np.float64]


class Evaluator:
    """Evaluates how far regions of one question can move.

    Args:
        problem: the question, without rules unless only :meth:`is_sensitive` is called.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._search = cache(self._new_search)

    @cached_property
    def unit_name(self) -> str:
        """The output that moves: a margin, or a probability."""
        change = self.problem.query.change
        if isinstance(change, Flip):
            return "margin" if own_link(self.problem) is None else "probability"
        return "probability" if isinstance(change, ProbabilityGap) else "margin"

    # ---- by comparing the outputs of all masks ----

    @cached_property
    def _rows(self) -> SwingRows | ClassSwingRows:
        return swing_rows(self.problem)

    @cached_property
    def scale(self) -> Scale:
        """Unit, range and accuracy of the numbers of :meth:`evaluate`.

        Raises:
            BudgetError: there are too many masks, or sums are too large for floats.
        """
        rows = self._rows
        return Scale(rows.unit, rows.most, rows.doubt, rows.dtype)

    @property
    def highest_shape(self) -> tuple[int, ...]:
        """The number of masks; for a flip between classes also that of the classes."""
        rows = self._rows
        classes = (rows.n_classes,) if isinstance(rows, ClassSwingRows) else ()
        return (self.problem.n_masks, *classes)

    @property
    def n_near(self) -> int:
        """The number of outputs compared for a region."""
        return self._rows.n_near

    @property
    def is_soon_listed(self) -> bool:
        """Whether listing all neighbours of all masks is fast."""
        near = self._rows.near
        return near is None or near.is_soon_listed

    @property
    def seconds_per_row(self) -> float:
        """Estimated time to evaluate a row of cells."""
        rows = self._rows
        trees, numbers = rows.n_trees * _SECONDS_PER_TREE, rows.n_numbers * SECONDS_PER_NUMBER
        return _SECONDS_PER_ROW + trees + numbers

    @property
    def block(self) -> int:
        """How many rows to evaluate at a time."""
        soon = int(_BLOCK_SECONDS / self.seconds_per_row)
        return max(1, min(self._rows.block, soon))

    def evaluate(
        self, cells: NDArray[np.int32], masks: NDArray[np.int64]
    ) -> tuple[Swings, NDArray[np.int64]]:
        """Return how far regions can move, and for how many of them each mask is highest.

        Args:
            cells: rows of cells, whose sensitive ones do not matter.
            masks: one mask for each row.
        """
        return self._rows.evaluated(cells, masks)

    def evaluate_all(self, cells: NDArray[np.int32]) -> tuple[Swings, Flags]:
        """Return how far all masks of rows of cells can move, and where the output is highest."""
        return self._rows.evaluated_all(cells)

    def moves(self, regions: NDArray[np.integer]) -> Moves:
        """Return how far regions can move; their sensitive cells are their masks."""
        cells, masks = regions.astype(np.int32), self._decider.masks_of(regions)
        parts = [
            self.evaluate(cells[i : i + self.block], masks[i : i + self.block])[0]
            for i in range(0, len(cells), self.block)
        ]
        up, down = ([getattr(part, side) for part in parts] for side in ("up", "down"))
        both = Swings(np.concatenate(up), np.concatenate(down))
        return Moves(both, self.scale.unit, self.scale.doubt)

    # ---- by searches ----

    @cached_property
    def can_search(self) -> bool:
        """Whether searches can find sizes: not with rules, for a softmax, or between classes."""
        change = self.problem.query.change
        is_between_classes = isinstance(change, Flip) and change.cutoff is None
        if self.problem.is_split or is_between_classes:
            return False
        return Doubt.of(self._question).always_ends

    @property
    def _question(self) -> CornerQuestion:
        return self.problem.form.corner_question

    @cached_property
    def largest_searched(self) -> Fraction:
        """Upper bound on every change."""
        laid = self._question.outputs[0]
        if self._question.probability is not None:
            return Fraction(1)
        return 2 * laid.bound / laid.scale

    def exceeds(
        self, regions: NDArray[np.int32], direction: Direction, gap: Fraction, seconds: float
    ) -> Flags:
        """Return whether regions can move by more than a gap, or, for a flip, whether they flip.

        Raises:
            OutOfLimitsError: the time ran out.
        """
        return self._search(direction, gap).decide(np.ascontiguousarray(regions), seconds)

    def _new_search(self, direction: Direction, gap: Fraction) -> RegionSearch:
        question = self._question
        (change,) = question.changes
        if question.kind == "flip":
            asked = replace(question, changes=(replace(change, direction=direction),))
        elif isinstance(question.probability, ProbabilityGap):
            threshold = math.floor(gap * _core.ProbabilityLink.one)
            asked = replace(
                question,
                changes=(CornerChange("probability", threshold, direction),),
                probability=replace(question.probability, gap=gap, direction=direction),
            )
        else:
            threshold = question.outputs[0].threshold(gap)
            asked = replace(question, changes=(CornerChange("gap", threshold, direction),))
        return RegionSearch(asked)

    # ---- in the fastest way that answers the question itself ----

    @cached_property
    def _decider(self) -> RegionDecider:
        return RegionDecider(self.problem)

    def is_sensitive(
        self, regions: NDArray[np.integer], seconds: float = math.inf
    ) -> NDArray[np.bool_]:
        """Return whether regions are sensitive by the question's own criterion.

        Raises:
            OutOfLimitsError: the time ran out.
        """
        return self._decider.decide_regions(regions, seconds)

    def are_drawn_sensitive(
        self, regions: NDArray[np.integer], drawn: Hashable, seconds: float
    ) -> NDArray[np.bool_]:
        """Return the same of drawn regions, which all gaps of a question have in common.

        Args:
            regions: the regions.
            drawn: what tells them from others of the same grid.
            seconds: the time after which to give up.

        Raises:
            OutOfLimitsError: the time ran out.
        """
        problem = self.problem
        is_native = isinstance(problem.query.change, Gap) and problem.distance is None
        if is_native and not problem.is_split and problem.n_masks <= MAX_MASKS:
            moves = kept_moves(problem, drawn, lambda: self.moves(regions))
            return moves.exceed(problem, regions)
        return self.is_sensitive(regions, seconds)

    def are_rows_sensitive(
        self, regions: NDArray[np.integer], settings: Settings, what: str
    ) -> NDArray[np.bool_]:
        """Return whether the regions of rows are sensitive, block by block.

        ``what`` names the explanation in messages.

        Raises:
            OutOfLimitsError: the time ran out.
        """
        flags = [np.empty(0, dtype=np.bool_)]
        for start in range(0, len(regions), BLOCK):
            settings.report(Progress(1.0, 0, self.problem.n_regions, f"explaining: {what}"))
            if start and settings.expired():
                raise OutOfLimitsError("the time was over before all rows were looked at")
            some = regions[start : start + BLOCK]
            flags.append(self.is_sensitive(some, settings.search_seconds()))
        return np.concatenate(flags)
