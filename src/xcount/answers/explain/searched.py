"""Direction and size where the masks are too many to compare: by searches from random regions.

A search tells whether a neighbour of a region differs by more than a gap, however many there are.
For each random region the gaps of a ladder are halved until its size lies between two of them:
shares at these gaps have the intervals of samples, and so have means and quantiles, between the
lower ends and the upper ones. Where the output is highest is not known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.answers.explain.explorer import Spectra, ladder
from xcount.answers.explain.spectrum import SIDES, Observed, spectrum_of
from xcount.counters.region_search import Doubt, RegionSearch
from xcount.counters.sampling.draws import uniform_cells
from xcount.counters.settings import Settings
from xcount.counters.swings import Swings, own_link
from xcount.counters.tally import Progress
from xcount.errors import OutOfLimitsError
from xcount.measures.draws import SearchedDraws
from xcount.measures.mixture import Mixture
from xcount.measures.products import refuse_without_room
from xcount.measures.shares import measure_of
from xcount.measures.weighting import Weighing
from xcount.problem.corner_question import CornerChange, CornerQuestion
from xcount.problem.problem import Problem
from xcount.question.change import Direction
from xcount.question.flip import Flip
from xcount.question.gap import ProbabilityGap

MAX_SECONDS = 1.0
"""What all searches of an explanation may take, as estimated."""
MAX_SAMPLES, LEAST_SAMPLES, PILOT_SAMPLES = 2048, 256, 128
_SECONDS_PER_TREE, _SEARCHES = 400e-9, 12
"""Of one search, ten times that for probabilities; and how many find a size up and down."""
_HALVINGS = 16
_BATCH, _STREAM = 64, 17

Regions = NDArray[np.int32]


def has_searches(problem: Problem) -> bool:
    """Tell whether sizes can be searched for: not within rules, of a softmax, between classes."""
    change = problem.query.change
    is_between_classes = isinstance(change, Flip) and change.cutoff is None
    if problem.grid.rules or is_between_classes:
        return False
    return Doubt.of(problem.form.corner_question).always_ends


def searched_spectra(
    problem: Problem,
    settings: Settings,
    weighing: Weighing | None,
    names: Sequence[str],
    asked: Sequence[Fraction],
) -> Spectra:
    """Return what searches from random regions tell; of a question that has some."""
    change = problem.query.change
    refuse_without_room(problem, settings)
    question = problem.form.corner_question
    has_link = isinstance(change, Flip) and own_link(problem) is not None
    is_probability = isinstance(change, ProbabilityGap)
    unit = "probability" if has_link or is_probability else "margin"
    searcher = _Searcher(problem, settings, question)
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
    """Draw regions by their weight, sensitive cells included, and some more for a pilot."""
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
    """Finds between which gaps the sizes of regions lie."""

    def __init__(self, problem: Problem, settings: Settings, question: CornerQuestion) -> None:
        self._problem, self._settings, self._question = problem, settings, question
        self._search = cache(self._new_search)
        laid = question.outputs[0]
        self._most = (
            Fraction(1) if question.probability is not None else 2 * laid.bound / laid.scale
        )

    def gaps(self, pilots: Sequence[Regions]) -> tuple[Fraction, ...]:
        """Return the gaps of a curve that ends with about the largest change."""
        if self._question.kind == "flip":
            return (Fraction(0),)
        direction, regions = self._problem.query.change.direction, np.concatenate(pilots)
        largest = self._most
        for _ in range(_HALVINGS):
            if self._exceeds(regions, direction, largest / 2).any():
                return ladder(float(largest))
            largest /= 2
        return ladder(float(largest))

    def observed(self, regions: Regions, gaps: Sequence[Fraction]) -> Observed:
        """Return between which gaps the sizes lie, which ascend from 0."""
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
        search, flags = self._search(direction, gap), []
        for start in range(0, len(regions), _BATCH):
            n_regions = self._problem.n_regions
            self._settings.report(Progress(1.0, 0, n_regions, "explaining: searches"))
            some = np.ascontiguousarray(regions[start : start + _BATCH])
            flags.append(search.decide(some, self._settings.search_seconds()))
        return np.concatenate(flags)

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
