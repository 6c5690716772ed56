"""Decide single regions, each by a search among the masks near it, without a list of masks.

The margins that a neighbour may have without making a difference are an interval, whatever the
change is (see ``cpp/include/xcount/sampling/tolerance.hpp``); the native search looks for a
neighbour outside. For a gap in probability it knows the ends of that interval only in floating
point: cases within rounding of an end are decided here, by the exact interval.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.errors import BudgetError, OutOfLimitsError
from xcount.problem.corner_question import CornerChange, CornerQuestion
from xcount.problem.integers import last_integer, to_limbs
from xcount.question.flip import Sureness
from xcount.question.gap import ProbabilityGap

_OPEN, _SENSITIVE = 0, 1  # answers of the native search
_ANY_BUDGET = 2**62
_MAX_REMEMBERED = 2**12


def region_sampler(question: CornerQuestion, budget: int | None = None) -> _core.RegionSampler:
    """Return a sampler that draws and decides single regions, with a budget of nodes for each."""
    return _core.RegionSampler(
        [laid.forest for laid in question.outputs],
        question.native_bases(),
        list(question.sensitive),
        question.distance,
        question.native_changes()[0],
        budget,
        question.native_link(),
    )


class RegionSearch:
    """Decides given regions exactly, however many masks there are.

    Args:
        question: the question about regions.
    """

    def __init__(self, question: CornerQuestion) -> None:
        self._question = question
        self._doubt = Doubt.of(question)

    @cached_property
    def _native(self) -> _core.RegionSampler:
        return region_sampler(self._question, _ANY_BUDGET)

    def decide(self, cells: NDArray[np.int32], seconds: float = math.inf) -> NDArray[np.bool_]:
        """Return whether each region is sensitive.

        Args:
            cells: a row for each region.
            seconds: the time after which to give up.

        Raises:
            OutOfLimitsError: the time was over.
            BudgetError: with several classes, a probability is too close to the gap to decide.
        """
        flags, doubtful = self.tried(cells, seconds)
        if len(doubtful):
            raise BudgetError(
                "among so many masks, floats cannot tell whether the probability changes by more "
                "than the gap; ask about fewer sensitive features",
                code="too_many_masks",
            )
        return flags

    def tried(
        self, cells: NDArray[np.int32], seconds: float = math.inf
    ) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
        """Return the same, and which regions floats cannot decide (with several classes).

        Raises:
            OutOfLimitsError: the time was over.
        """
        end = time.monotonic() + seconds
        answers = _decided(self._native, cells, end)
        doubtful = np.flatnonzero(answers == _OPEN)
        flags: NDArray[np.bool_] = answers == _SENSITIVE
        if len(doubtful) and self._doubt.always_ends:
            regions = np.ascontiguousarray(cells[doubtful])
            flags[doubtful] = self._doubt.decide(self._native, regions, end)
            doubtful = doubtful[:0]
        return flags, doubtful

    def partner(self, region: NDArray[np.int32], seconds: float = math.inf) -> list[int]:
        """Return the nearest mask that differs from a sensitive region's own.

        If time runs out, it is a mask that differs, but not proved to be the nearest.

        Raises:
            OutOfLimitsError: the time was over before any was found.
        """
        found = self._doubt.partner(self._native, region, seconds)
        if not found:
            raise OutOfLimitsError("the time limit came before the other side was found")
        return found


def _decided(
    native: _core.RegionSampler,
    cells: NDArray[np.int32],
    end: float,
    low: NDArray[np.uint64] | None = None,
    high: NDArray[np.uint64] | None = None,
) -> NDArray[np.uint8]:
    """Return the native answers; raise if time runs out before all are decided."""
    left = max(0.0, end - time.monotonic())
    answers: NDArray[np.uint8] = native.decide(cells.ravel(), low, high, left)
    if len(answers) < len(cells):
        raise OutOfLimitsError("the time limit came before all regions were decided")
    return answers


class Doubt:
    """Decides the regions that the native search leaves open, except for a gap of a softmax.

    Sums are integers and leave nothing open. For probabilities, floats know the ends of a
    neighbour's allowed interval only up to rounding.

    Args:
        question: the question about regions.

    Attributes:
        always_ends: whether no region is ever left in doubt.
    """

    always_ends = False

    def __init__(self, question: CornerQuestion) -> None:
        self._question = question

    @staticmethod
    def of(question: CornerQuestion) -> Doubt:
        """Return the object that decides the regions left open for a question."""
        if isinstance(question.probability, Sureness) and question.kind == "sure largest":
            return _SureDoubt(question)
        if question.probability is None:
            return _NoDoubt(question)
        return _IntervalDoubt(question) if len(question.outputs) == 1 else Doubt(question)

    def decide(
        self, native: _core.RegionSampler, regions: NDArray[np.int32], end: float
    ) -> NDArray[np.bool_]:
        """Return whether each of these regions is sensitive; called only if ``always_ends``.

        Raises:
            OutOfLimitsError: the time was over.
        """
        raise NotImplementedError

    def partner(
        self, native: _core.RegionSampler, region: NDArray[np.int32], seconds: float
    ) -> list[int]:
        """Return the nearest mask found that differs; none if time ran out."""
        return native.partner(region, None, None, seconds)


class _NoDoubt(Doubt):
    """No doubt: sums are compared as integers."""

    always_ends = True


class _IntervalDoubt(Doubt):
    """For one margin: the interval of margins within the gap, found exactly for each region."""

    always_ends = True

    def __init__(self, question: CornerQuestion) -> None:
        super().__init__(question)
        self._tolerance = lru_cache(_MAX_REMEMBERED)(self._find_tolerance)

    def decide(
        self, native: _core.RegionSampler, regions: NDArray[np.int32], end: float
    ) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = (
            _decided(native, regions, end, *self._tolerances(native, regions)) == _SENSITIVE
        )
        return found

    def partner(
        self, native: _core.RegionSampler, region: NDArray[np.int32], seconds: float
    ) -> list[int]:
        return native.partner(region, *self._tolerances(native, region), seconds)

    def _tolerances(
        self, native: _core.RegionSampler, regions: NDArray[np.int32]
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the ends of the regions' intervals, in limbs."""
        ends = [self._tolerance(start) for (start,) in _sums(self._question, native, regions)]
        n_limbs = self._question.outputs[0].n_limbs
        low, high = (to_limbs(side, n_limbs) for side in zip(*ends, strict=True))
        return low, high

    def _find_tolerance(self, start: int) -> tuple[int, int]:
        """Return the least and the largest margin whose probability is within the gap."""
        asked, laid = self._question.probability, self._question.outputs[0]
        assert isinstance(asked, ProbabilityGap)
        link, output, gap, scale = asked.link, asked.output, asked.gap, laid.scale

        def rises(before: int, after: int) -> bool:
            return link.rises([before / scale], [after / scale], output, gap)

        low, high = -laid.bound - 1, laid.bound + 1
        first = last_integer(lambda value: rises(value, start), low - 1, start)
        last = last_integer(lambda value: not rises(start, value), start, high)
        return (
            low if asked.direction == "up" else first + 1,
            high if asked.direction == "down" else last,
        )


class _SureDoubt(Doubt):
    """For sure flips: whether the decision is sure enough is in doubt; the flip is exact."""

    always_ends = True

    @cached_property
    def _any_flip(self) -> _core.RegionSampler:
        """The search for flips, however sure the decision is."""
        flips = replace(self._question, changes=(CornerChange("largest"),), probability=None)
        return region_sampler(flips, _ANY_BUDGET)

    def decide(
        self, native: _core.RegionSampler, regions: NDArray[np.int32], end: float
    ) -> NDArray[np.bool_]:
        sureness, scale = self._question.probability, self._question.outputs[0].scale
        assert isinstance(sureness, Sureness)
        flags: NDArray[np.bool_] = _decided(self._any_flip, regions, end) == _SENSITIVE
        for row, sums in enumerate(_sums(self._question, native, regions)):
            margins = [value / scale for value in sums]
            flags[row] &= sureness.holds(margins, sums.index(max(sums)))
        return flags

    def partner(
        self, native: _core.RegionSampler, region: NDArray[np.int32], seconds: float
    ) -> list[int]:
        return self._any_flip.partner(region, None, None, seconds)


def _sums(
    question: CornerQuestion, native: _core.RegionSampler, regions: NDArray[np.int32]
) -> list[list[int]]:
    """Return the sums of each region, one per output."""
    data, size = native.sums(regions.ravel()), 8 * question.outputs[0].n_limbs
    numbers = [
        int.from_bytes(data[i : i + size], "little", signed=True) for i in range(0, len(data), size)
    ]
    n = len(question.outputs)
    return [numbers[i : i + n] for i in range(0, len(numbers), n)]
