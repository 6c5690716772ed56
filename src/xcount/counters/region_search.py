"""Single regions, each decided by a search among the masks near it: no list of masks is made.

The margins that a neighbour may have without making a difference are an interval, whatever the
change is (see ``cpp/include/xcount/sampling/tolerance.hpp``); the native search looks for a
neighbour outside. Of a gap in probability it knows the ends of that interval in floating point
alone: what lies between is decided here, by the interval itself.
"""

from __future__ import annotations

import math
import time
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.errors import BudgetError, OutOfLimitsError
from xcount.problem.corner_question import CornerQuestion
from xcount.problem.integers import last_integer, to_limbs
from xcount.question.gap import ProbabilityGap

_OPEN, _SENSITIVE = 0, 1  # answers of the native search
_ANY_BUDGET = 2**62
_MAX_REMEMBERED = 2**12


def is_searchable(question: CornerQuestion) -> bool:
    """Tell whether a region's neighbours alone decide: of several classes, it must not be sure."""
    return question.kind != "sure largest"


def is_always_decided(question: CornerQuestion) -> bool:
    """Tell whether no region is ever left in doubt: one margin without a difference is an interval.

    Of a softmax all margins take part, and only floats tell its probabilities apart.
    """
    return question.probability is None or len(question.outputs) == 1


def region_sampler(question: CornerQuestion, budget: int | None = None) -> _core.RegionSampler:
    """Return what draws and decides single regions, with a budget of nodes for each."""
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
        question: what is asked of them.
    """

    def __init__(self, question: CornerQuestion) -> None:
        self._question = question
        self._tolerance = lru_cache(_MAX_REMEMBERED)(self._find_tolerance)

    @cached_property
    def _native(self) -> _core.RegionSampler:
        return region_sampler(self._question, _ANY_BUDGET)

    def decide(self, cells: NDArray[np.int32], seconds: float = math.inf) -> NDArray[np.bool_]:
        """Return whether each region is sensitive.

        Args:
            cells: a row for each region.
            seconds: when to give up.

        Raises:
            OutOfLimitsError: the time was over.
            BudgetError: of several classes, a probability is too close to the gap to tell.
        """
        end = time.monotonic() + seconds
        answers = self._decided(cells, end)
        doubtful = np.flatnonzero(answers == _OPEN)
        if len(doubtful):
            regions = np.ascontiguousarray(cells[doubtful])
            answers[doubtful] = self._decided(regions, end, *self._tolerances(regions.ravel()))
        flags: NDArray[np.bool_] = answers == _SENSITIVE
        return flags

    def _decided(
        self,
        cells: NDArray[np.int32],
        end: float,
        low: NDArray[np.uint64] | None = None,
        high: NDArray[np.uint64] | None = None,
    ) -> NDArray[np.uint8]:
        """Return the native answers; they are decided before the end, or not at all."""
        left = max(0.0, end - time.monotonic())
        answers: NDArray[np.uint8] = self._native.decide(cells.ravel(), low, high, left)
        if len(answers) < len(cells):
            raise OutOfLimitsError("the time limit came before all regions were decided")
        return answers

    def partner(self, region: NDArray[np.int32], seconds: float = math.inf) -> list[int]:
        """Return the nearest mask that differs from a sensitive region's own.

        At the end of the time it is one that differs, not proved to be the nearest.

        Raises:
            OutOfLimitsError: the time was over before any was found.
        """
        low: NDArray[np.uint64] | None = None
        high: NDArray[np.uint64] | None = None
        if self._question.probability is not None and is_always_decided(self._question):
            low, high = self._tolerances(region)
        found = self._native.partner(region, low, high, seconds)
        if not found:
            raise OutOfLimitsError("the time limit came before the other side was found")
        return found

    def _tolerances(
        self, regions: NDArray[np.int32]
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the ends of the regions' intervals, in limbs.

        Raises:
            BudgetError: there is no interval.
        """
        if not is_always_decided(self._question):
            raise BudgetError(
                "among so many masks, floats cannot tell whether the probability changes by more "
                "than the gap; ask about fewer sensitive features",
                code="too_many_masks",
            )
        n_limbs = self._question.outputs[0].n_limbs
        sums, size = self._native.sums(regions), 8 * n_limbs
        starts = (sums[i : i + size] for i in range(0, len(sums), size))
        ends = [self._tolerance(int.from_bytes(start, "little", signed=True)) for start in starts]
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
