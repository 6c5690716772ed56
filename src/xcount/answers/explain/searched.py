"""Direction and size by searches from random regions, for questions with too many masks to compare.

A search decides whether any neighbour of a region differs by more than a gap, however many
neighbours there are. For each random region, bisection over a ladder of gaps finds the two gaps
between which its size lies. Shares at these gaps get the usual intervals of samples; so do means
and quantiles, from the lower ends to the upper ones. The mask with the highest output is not found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from xcount.answers.explain.evaluate import Evaluator
from xcount.answers.explain.explorer import Spectra, ladder
from xcount.answers.explain.spectrum import SIDES, Observed, spectrum_of
from xcount.counters.sampling.draws import uniform_cells
from xcount.counters.settings import Settings
from xcount.counters.swings import Swings
from xcount.counters.tally import Progress
from xcount.errors import OutOfLimitsError
from xcount.measures.draws import SearchedDraws
from xcount.measures.mixture import Mixture
from xcount.measures.products import refuse_without_room
from xcount.measures.shares import measure_of
from xcount.measures.weighting import Weighing
from xcount.problem.problem import Problem
from xcount.question.change import Direction
from xcount.question.flip import Flip
from xcount.question.gap import ProbabilityGap

MAX_SECONDS = 1.0
"""Estimated time that all searches of an explanation may take."""
MAX_SAMPLES, LEAST_SAMPLES, PILOT_SAMPLES = 2048, 256, 128
_SECONDS_PER_TREE, _SEARCHES = 400e-9, 12
"""Estimated time of one search (ten times that for probabilities), and searches per region."""
_HALVINGS = 16
_BATCH, _STREAM = 64, 17

Regions = NDArray[np.int32]


def searched_spectra(
    problem: Problem,
    settings: Settings,
    weighing: Weighing | None,
    names: Sequence[str],
    asked: Sequence[Fraction],
) -> Spectra:
    """Estimate direction and size by bisection searches from random regions."""
    change = problem.query.change
    refuse_without_room(problem, settings)
    is_probability = isinstance(change, ProbabilityGap)
    evaluator = Evaluator(problem)
    unit, searcher = evaluator.unit_name, _Searcher(evaluator, settings)
    seconds = _SEARCHES * problem.form.n_trees * _SECONDS_PER_TREE * (1 + 9 * is_probability)
    n = max(LEAST_SAMPLES, min(MAX_SAMPLES, int(MAX_SECONDS / len(names) / seconds)))
    found, missing = {}, []
    drawn = {name: _regions(name, problem, settings, weighing, n) for name in names}
    try:
        gaps = searcher.gaps([pilot for _, pilot in drawn.values()])
    except OutOfLimitsError:
        return Spectra(unit, notes=("no time was left to search for direction and size",))
    for name, (regions, _) in drawn.items():
        try:
            observed = searcher.observed(regions, sorted({*gaps, *asked}))
        except OutOfLimitsError:
            missing.append(name)
            continue
        is_flip, delta = isinstance(change, Flip), settings.delta / len(names)
        spectrum = spectrum_of(observed, problem, gaps, asked, of_sensitive=is_flip, delta=delta)
        found[name] = replace(spectrum, mean=None, quantiles=()) if is_flip else spectrum
    notes = [f"no time was left to explain {', '.join(missing)}"] if missing else []
    return Spectra(unit, found, tuple(notes))


def _regions(
    name: str, problem: Problem, settings: Settings, weighing: Weighing | None, n: int
) -> tuple[Regions, Regions]:
    """Draw regions by their weight, sensitive cells included, plus some for a pilot."""
    random = np.random.default_rng([settings.seed, _STREAM, *name.encode()])
    if name == "regions":
        counts = problem.grid.cell_counts
        features = [feature for feature, n_cells in enumerate(counts) if n_cells > 1]
        both = [uniform_cells(random, counts, features, size) for size in (n, PILOT_SAMPLES)]
        return both[0], both[1]
    measure = measure_of(name, problem.grid, weighing)
    if isinstance(measure, Mixture):
        draws = SearchedDraws(problem, measure.components)
        return draws.regions(random, n), draws.regions(random, PILOT_SAMPLES)
    regions = measure.draw(random, n + PILOT_SAMPLES).astype(np.int32)
    return regions[:n], regions[n:]


class _Searcher:
    """Finds the two gaps between which the size of each region lies."""

    def __init__(self, evaluator: Evaluator, settings: Settings) -> None:
        self._evaluator, self._settings = evaluator, settings
        self._problem, self._most = evaluator.problem, evaluator.largest_searched

    def gaps(self, pilots: Sequence[Regions]) -> tuple[Fraction, ...]:
        """Return the gaps of a curve that ends near the largest change."""
        if isinstance(self._problem.query.change, Flip):
            return (Fraction(0),)
        direction, regions = self._problem.query.change.direction, np.concatenate(pilots)
        largest = self._most
        for _ in range(_HALVINGS):
            if self._exceeds(regions, direction, largest / 2).any():
                return ladder(float(largest))
            largest /= 2
        return ladder(float(largest))

    def observed(self, regions: Regions, gaps: Sequence[Fraction]) -> Observed:
        """Return the gaps between which the sizes lie; ``gaps`` ascend from 0."""
        ends = np.array([0.0, *map(float, gaps[1:]), float(self._most)])
        starts = np.array([0.0, *map(float, gaps)])
        upper, lower = [], []
        for side in SIDES:
            place = self._places(regions, side, gaps)
            upper.append(np.maximum(ends[place], starts[place]))
            lower.append(starts[place])
        none, most = np.zeros(0), float(self._most)
        return Observed(Swings(*upper), None, none, True, Fraction(1), most, lower=Swings(*lower))

    def _places(
        self, regions: Regions, side: Direction, gaps: Sequence[Fraction]
    ) -> NDArray[np.int64]:
        """Return how many of the gaps each region's change exceeds."""
        low, high = np.zeros(len(regions), dtype=np.int64), np.full(len(regions), len(gaps))
        while (low < high).any():
            middle = (low + high) // 2
            for number in np.unique(middle[low < high]).tolist():
                rows = np.flatnonzero((middle == number) & (low < high))
                beyond = self._exceeds(regions[rows], side, gaps[number])
                low[rows[beyond]] = number + 1
                high[rows[~beyond]] = number
        return low

    def _exceeds(self, regions: Regions, direction: Direction, gap: Fraction) -> NDArray[np.bool_]:
        flags = []
        for start in range(0, len(regions), _BATCH):
            n_regions, seconds = self._problem.n_regions, self._settings.search_seconds()
            self._settings.report(Progress(1.0, 0, n_regions, "explaining: searches"))
            some = regions[start : start + _BATCH]
            flags.append(self._evaluator.exceeds(some, direction, gap, seconds))
        return np.concatenate(flags)
