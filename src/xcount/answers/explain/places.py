"""Places: a few boxes that hold most of the sensitive regions, each described and counted.

Boxes are found in random regions (:mod:`xcount.answers.explain.place_search`). To avoid selection
bias, their numbers come from elsewhere: from counting the box exactly if that is fast, or from
fresh random regions, with Clopper-Pearson intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xcount.answers.explain.evaluate import BLOCK, Evaluator
from xcount.answers.explain.place_search import PlaceSearch
from xcount.answers.explanation import Place
from xcount.answers.witness.search import RegionFinder
from xcount.counters.costs import FREE_PAIR_SCAN_SECONDS
from xcount.counters.moves import known_moves
from xcount.counters.sampling.intervals import share_intervals
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress
from xcount.counters.visit import pair_scan_seconds
from xcount.errors import BudgetError, OutOfLimitsError
from xcount.measures.exact_shares import Budget
from xcount.measures.measure import Box, Measure, inside
from xcount.measures.mixture import Mixture
from xcount.measures.rows import Rows
from xcount.problem.problem import Problem
from xcount.question.cell_words import cells_text, condition_text
from xcount.support.interval import Interval

MAX_DRAWS = 100_000
"""Most regions drawn to look for boxes, and again to count them."""
MAX_FLAGS = 1 << 24
"""Most decisions about masks made for either."""
ENOUGH_HITS = 400
"""Sensitive regions wanted for the search, and expected in the count."""
LEAST_DRAWS, LEAST_FRESH_DRAWS, LEAST_HITS = 8_192, 16_384, 20
FEW_DRAWS = 512
"""Least number of draws if there are so many masks that deciding a region is slow."""
LEAST_PART = 0.02
"""A place that turns out to hold less of the sensitive weight than this is left out."""
VISIT_SECONDS, MAX_STEPS = 0.2, 100_000
"""Budget of exact weighing for all places of a measure: a box is either easy or hopeless."""
_STEPS = (200_000, 2_000_000)
"""Steps of exact counting if sensitive regions are too rare to be found by chance."""
_STREAMS = (8, 9)
"""Random streams: separate the search, the count, and other parts of a run."""


class _Draws(NamedTuple):
    regions: NDArray[np.integer]
    flags: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PlaceFinder:
    """Finds the places of one question under one measure.

    Attributes:
        problem: the question.
        measure: the weights.
        settings: limits, confidence and seed.
        share: the sensitive share, if it is known exactly.
    """

    problem: Problem
    measure: Measure
    settings: Settings
    share: float | None = None

    def places(self) -> tuple[Place, ...]:
        """Return the places, most sensitive weight first; none if nothing stands out."""
        if self.share == 0:
            return ()
        looked_at = self._looked_at()
        n, hits = len(looked_at.flags), looked_at.regions[looked_at.flags]
        rare = self._rare() if len(hits) < LEAST_HITS else hits
        if len(rare) < LEAST_HITS or len(hits) == n:
            return ()
        boxes = PlaceSearch(self.problem.grid.axes, rare, looked_at.regions).boxes()
        if not boxes:
            return ()
        if isinstance(self.measure, Rows):
            found = self._counted_rows(boxes, looked_at)
        else:
            found = self._counted(boxes, math.ceil(ENOUGH_HITS * n / max(1, len(hits))))
        kept = [place for place in found if place.part.least >= LEAST_PART]
        return tuple(sorted(kept, key=lambda place: -place.part.least))

    def _looked_at(self) -> _Draws:
        """Return all rows, or for other measures enough regions to include many sensitive ones."""
        if isinstance(self.measure, Rows):
            rows = self.measure.regions
            known = known_moves(self.problem, self.measure)
            if known is not None:
                return _Draws(rows, known.exceed(self.problem, rows))
            return _Draws(
                rows, Evaluator(self.problem).are_rows_sensitive(rows, self.settings, "places")
            )
        return self._drawn(_STREAMS[0], self._most, ENOUGH_HITS)

    def _rare(self) -> NDArray[np.int64]:
        """Return sensitive regions too rare to be found by chance, by exact counting."""
        none = np.empty((0, len(self.problem.grid.axes)), dtype=np.int64)
        if (
            self.measure.name != "regions"
            or pair_scan_seconds(self.problem) > FREE_PAIR_SCAN_SECONDS
        ):
            return none
        try:
            found = RegionFinder(self.problem, self.settings).draw_solutions(ENOUGH_HITS, _STEPS)
        except (BudgetError, OutOfLimitsError):
            return none
        return np.array(found) if found else none

    @property
    def _most(self) -> int:
        return min(MAX_DRAWS, max(FEW_DRAWS, MAX_FLAGS // self.problem.form.flags_per_row))

    def _drawn(self, stream: int, most: int, enough: int | None = None) -> _Draws:
        """Draw regions and decide them, until there are enough or time runs out.

        Args:
            stream: the random stream.
            most: the most regions to draw.
            enough: how many sensitive regions are enough; None if the number drawn must not
                depend on them.
        """
        evaluator, weights = Evaluator(self.problem), self.measure.fingerprint
        random = np.random.default_rng([self.settings.seed, stream])
        regions: list[NDArray[np.int64]] = []
        flags: list[NDArray[np.bool_]] = []
        n = n_hits = 0
        while n < most and not (n and self.settings.expired()):
            if enough is not None and n >= LEAST_DRAWS and n_hits >= enough:
                break
            regions.append(self.measure.draw(random, min(BLOCK, most - n)))
            drawn = (weights, self.settings.seed, stream, n, len(regions[-1]))
            seconds = self.settings.search_seconds()
            flags.append(evaluator.are_drawn_sensitive(regions[-1], drawn, seconds))
            n += len(flags[-1])
            n_hits += int(np.count_nonzero(flags[-1]))
            self.settings.report(Progress(1.0, 0, self.problem.n_regions, "explaining: places"))
        return _Draws(np.concatenate(regions), np.concatenate(flags))

    def _counted_rows(self, boxes: Sequence[Box], rows: _Draws) -> list[Place]:
        found = []
        for box in boxes:
            here = inside(rows.regions, box)
            n_hits = int(np.count_nonzero(rows.flags & here))
            shares = (
                n_hits / len(here),
                n_hits / int(np.count_nonzero(here)),
                n_hits / int(np.count_nonzero(rows.flags)),
            )
            found.append(self._place(box, [_known(share) for share in shares], 1.0))
        return found

    def _counted(self, boxes: Sequence[Box], n_draws: int) -> list[Place]:
        """Count the boxes exactly, or in fresh draws if that would take too long."""
        seconds = min(VISIT_SECONDS, self.settings.search_seconds())
        budget = Budget(seconds / len(boxes), MAX_STEPS // len(boxes))
        assert isinstance(self.measure, Mixture)
        shares = [
            self.measure.exact_share(self.problem, box, self.settings, budget) for box in boxes
        ]
        total, fresh = self.share, None
        if total is None or None in shares:
            fresh = self._drawn(_STREAMS[1], min(self._most, max(LEAST_FRESH_DRAWS, n_draws)))
        found = []
        for box, within in zip(boxes, shares, strict=True):
            weight = None if within is None else self.measure.mass(box) * within
            part = None if weight is None or not total else min(1.0, weight / total)
            known = [None if share is None else _known(share) for share in (weight, within, part)]
            if part is None:
                assert fresh is not None
                drawn = self._drawn_intervals(box, fresh, 3 * len(boxes))
                known = [a or b for a, b in zip(known, drawn, strict=True)]
            confidence = 1.0 if part is not None else 1 - self.settings.delta
            found.append(self._place(box, [each for each in known if each], confidence))
        return found

    def _drawn_intervals(self, box: Box, fresh: _Draws, n_intervals: int) -> list[Interval]:
        """Estimate from draws each box's weight, its sensitive share, and its part of all of it."""
        here = inside(fresh.regions, box)
        n_hits = int(np.count_nonzero(fresh.flags & here))
        delta = self.settings.delta / n_intervals
        wholes = (len(here), np.count_nonzero(here), np.count_nonzero(fresh.flags))
        return [_estimate(n_hits, int(n), delta) for n in wholes]

    def _place(self, box: Box, intervals: Sequence[Interval], confidence: float) -> Place:
        axes = self.problem.grid.axes
        weight, within, part = intervals
        return Place(
            measure=self.measure.name,
            text=" and ".join(cells_text(axes[f], flags, None) for f, flags in sorted(box.items())),
            conditions=tuple(condition_text(axes[f], flags) for f, flags in sorted(box.items())),
            size=self.measure.mass(box),
            weight=weight,
            within=within,
            part=part,
            exact=confidence == 1.0,
            confidence=confidence,
        )


def _estimate(n_hits: int, n: int, delta: float) -> Interval:
    if not n:
        return Interval(0.0, 0.0, 1.0)
    low, high = share_intervals(n_hits, n, delta)
    return Interval(n_hits / n, float(low), float(high))


def _known(share: float) -> Interval:
    return Interval(share, share, share)
