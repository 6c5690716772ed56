"""Single regions, each decided by a search among the masks near it: no list of masks is made.

The margins that a neighbour may have without making a difference are an interval, whatever the
change is (see ``cpp/include/xcount/sampling/tolerance.hpp``); the native search looks for a
neighbour outside. Of a gap in probability it knows the ends of that interval in floating point
alone: what lies between is decided here, by the interval itself.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.problem.corner_question import CornerQuestion
from xcount.problem.integers import last_integer, to_limbs

_OPEN, _SENSITIVE = 0, 1  # answers of the native search
_ANY_BUDGET = 2**62
_MAX_REMEMBERED = 2**12


def is_searchable(question: CornerQuestion) -> bool:
    """Tell whether margins without a difference are an interval: not those of a softmax."""
    return question.probability is None or len(question.outputs) == 1


def region_sampler(question: CornerQuestion, budget: int | None = None) -> _core.RegionSampler:
    """Return what draws and decides single regions, with a budget of nodes for each."""
    assert is_searchable(question)
    return _core.RegionSampler(
        [laid.forest for laid in question.outputs],
        question.native_bases(),
        list(question.sensitive),
        question.distance,
        question.native_changes()[0],
        budget,
        question.native_link(),
    )


def decide_regions(question: CornerQuestion, cells: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return whether each region is sensitive, exactly."""
    search = region_sampler(question, _ANY_BUDGET)
    answers = search.decide(cells.ravel())
    doubtful = np.flatnonzero(answers == _OPEN)
    if len(doubtful):
        regions = np.ascontiguousarray(cells[doubtful]).ravel()
        sums, size = search.sums(regions), 8 * question.outputs[0].n_limbs
        find = lru_cache(_MAX_REMEMBERED)(lambda start: _tolerance(question, start))
        ends = [
            find(int.from_bytes(sums[i : i + size], "little", signed=True))
            for i in range(0, len(sums), size)
        ]
        low, high = (
            to_limbs(side, question.outputs[0].n_limbs) for side in zip(*ends, strict=True)
        )
        answers[doubtful] = search.decide(regions, low, high)
    flags: NDArray[np.bool_] = answers == _SENSITIVE
    return flags


def _tolerance(question: CornerQuestion, start: int) -> tuple[int, int]:
    """Return the least and the largest margin whose probability is no further off than the gap."""
    asked, laid = question.probability, question.outputs[0]
    assert asked is not None
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
