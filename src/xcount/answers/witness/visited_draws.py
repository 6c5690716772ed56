"""Uniform draws of rare sensitive regions, by rank, from a grid small enough to visit.

A visit (:mod:`xcount.counters.visit`) counts the sensitive regions of a box of the grid without
listing them. So the box is cut in two, one half is visited, and each drawn rank goes to the half
that holds it; all visits together cover the grid about twice.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from xcount.counters.costs import MAX_LISTED
from xcount.counters.decisions import RegionDecider
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason
from xcount.counters.visit import visited
from xcount.errors import BudgetError
from xcount.problem.parts import Part
from xcount.problem.problem import Problem
from xcount.question.rules import Box


@dataclass(frozen=True, eq=False)
class _Part:
    """A box of the grid: the cells ``first <= c < end`` of each non-sensitive feature."""

    whole: Problem
    ranges: tuple[tuple[int, int], ...]

    @cached_property
    def part(self) -> Part:
        cells = {f: tuple(range(*ends)) for f, ends in enumerate(self.ranges)}
        return Part.of_box(self.whole, Box(cells))

    @property
    def _widths(self) -> list[int]:
        sensitive = self.whole.query.sensitive
        return [0 if f in sensitive else b - a for f, (a, b) in enumerate(self.ranges)]

    def halves(self) -> tuple[_Part, _Part]:
        widths = self._widths
        feature = widths.index(max(widths))
        first, end = self.ranges[feature]
        middle = (first + end) // 2
        low, high = list(self.ranges), list(self.ranges)
        low[feature], high[feature] = (first, middle), (middle, end)
        return _Part(self.whole, tuple(low)), _Part(self.whole, tuple(high))

    @property
    def is_small(self) -> bool:
        return self.part.n_regions <= MAX_LISTED or max(self._widths) <= 1

    def sensitive_regions(self) -> list[NDArray[np.int64]]:
        """Return the sensitive regions of the box, in the cells of the whole grid."""
        rows, flags = RegionDecider(self.part.problem).decide_all()
        return [self.part.to_whole(rows[row], int(mask)) for row, mask in np.argwhere(flags)]


class VisitedDraws:
    """Draws sensitive regions by their ranks.

    Args:
        problem: the question, on a grid without rules.
        settings: the limits.
    """

    def __init__(self, problem: Problem, settings: Settings) -> None:
        self._settings = settings
        self._all = _Part(problem, tuple((0, n) for n in problem.grid.cell_counts))

    def draw(self, n: int) -> list[NDArray[np.int64]]:
        """Return n sensitive regions, uniform and independent; none if there are none.

        Raises:
            BudgetError: visits turn out to be too expensive.
        """
        total = self._count(self._all)
        chance = random.Random(self._settings.seed)
        ranks = sorted(chance.randrange(total) for _ in range(n if total else 0))
        return list(self._ranked(self._all, ranks, total))

    def _count(self, box: _Part) -> int:
        tally = visited(box.part.problem, self._settings, "auto")
        if tally is not None and tally.stop_reason is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        if tally is None or tally.low != tally.high:
            raise BudgetError("a visit of all regions takes too long")
        return tally.low

    def _ranked(self, box: _Part, ranks: Sequence[int], n: int) -> Iterator[NDArray[np.int64]]:
        """Yield the sensitive regions with these ranks, of the n that the box has."""
        if not ranks:
            return
        if box.is_small:
            regions = box.sensitive_regions()
            yield from (regions[rank] for rank in ranks)
            return
        low, high = box.halves()
        n_low = self._count(low)
        yield from self._ranked(low, [rank for rank in ranks if rank < n_low], n_low)
        beyond = [rank - n_low for rank in ranks if rank >= n_low]
        yield from self._ranked(high, beyond, n - n_low)
