"""Direction and size under every measure, from all regions, all rows or samples.

If the domain is small, all its regions are evaluated; so are all rows of a table: the results are
exact. Otherwise as many random regions are evaluated as a small budget allows. That number depends
only on the question, and so does the answer unless the time limit ends the work early.

Separate samples choose the gaps of a curve: intervals are valid only for gaps that do not depend on
the samples the intervals are computed from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.answers.explain.evaluate import SECONDS_PER_NUMBER, Evaluator, Scale
from xcount.answers.explain.exact_curve import with_exact_shares
from xcount.answers.explain.spectrum import Observed, Spectrum, spectrum_of
from xcount.counters.moves import Moves, kept_moves
from xcount.counters.sampling.draws import CellDraws
from xcount.counters.settings import Settings
from xcount.counters.swings import Swings
from xcount.counters.tally import Progress
from xcount.measures.draws import MixtureDraws
from xcount.measures.mixture import Mixture
from xcount.measures.products import (
    WeighedPart,
    refuse_without_room,
    uniform_parts,
    weighed_parts,
)
from xcount.measures.rows import Rows
from xcount.measures.shares import measure_of
from xcount.measures.weighting import Weighing
from xcount.problem.problem import Problem
from xcount.question.flip import Flip

MAX_SECONDS = 0.5
"""Estimated time for all samples of an explanation, or all regions, on one core."""
MAX_SAMPLES, LEAST_SAMPLES = 2**16, 2**12
MAX_REGIONS = 2**21
"""Largest number of regions of which all are evaluated."""
PILOT_SAMPLES = 2**11
FEW_SAMPLES, FEW_PILOT_SAMPLES = 2**7, 2**5
"""The least numbers of both if the usual ones would take too long."""
LONG_SECONDS = 1.0
MAX_ROWS_SECONDS = 5.0
"""If all rows would take longer than this, only some of them are drawn."""
ENOUGH_HITS = 500
"""Samples wanted beyond each requested gap, within the largest number of samples."""
_BATCH = 2**12
"""Samples drawn at a time."""
_STREAM = 16
"""Seed offset that separates the samples of explanations from those of counts."""

_N_STEPS = 25


@dataclass(frozen=True, eq=False)
class Spectra:
    """The distributions of the size by measure, found once for all gaps of a question."""

    unit: str
    by_measure: Mapping[str, Spectrum] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Explorer:
    """Evaluates regions of one question under several measures."""

    def __init__(
        self,
        problem: Problem,
        settings: Settings,
        weighing: Weighing | None,
        names: Sequence[str],
    ) -> None:
        self._problem, self._settings = problem, settings
        self._weighing, self._names = weighing, names
        self._evaluators: dict[int, Evaluator] = {}
        refuse_without_room(problem, settings)
        self._evaluator(self._parts[0].problem)  # refuses too many masks

    def spectra(self, asked: Sequence[Fraction]) -> Spectra:
        """Evaluate regions and return the spectra under all measures."""
        others = [name for name in self._names if name not in ("regions", "rows")]
        pieces = {"regions": self._parts, **{name: self._weighed_parts(name) for name in others}}
        found = self._all_regions(pieces)
        sampled = [] if found else list(pieces)
        if "rows" in self._names:
            if self._rows_take_long:
                sampled.append("rows")
            else:
                found["rows"] = self._all_rows()
        largest = [observed.largest for observed in found.values()]
        n_pilot = FEW_PILOT_SAMPLES if self._takes_long else PILOT_SAMPLES
        pilots = {
            name: self._sampled(name, pieces.get(name, ()), n_pilot, pilot=True) for name in sampled
        }
        largest += [observed.largest for observed in pilots.values()]
        gaps = ladder(max(largest))
        most = self._affordable(max(1, len(sampled)))
        for name, pilot in pilots.items():
            n = min(most, self._wanted(pilot, asked))
            found[name] = self._sampled(name, pieces.get(name, ()), n)
        delta = self._settings.delta / max(1, len(sampled))
        is_flip = isinstance(self._problem.query.change, Flip)
        spectra = {
            name: spectrum_of(
                found[name], self._problem, gaps, asked, of_sensitive=is_flip, delta=delta
            )
            for name in self._names
            if len(found[name])
        }
        if "regions" in sampled and "regions" in spectra:
            spectra["regions"] = with_exact_shares(
                spectra["regions"], self._problem, replace(self._settings, max_share=None)
            )
        missing = [name for name in self._names if name not in spectra]
        notes = [f"no time was left to explain {', '.join(missing)}"] if missing else []
        return Spectra(Evaluator(self._problem).unit_name, spectra, tuple(notes))

    @cached_property
    def _parts(self) -> list[WeighedPart]:
        """The parts of the domain; a single part without rules."""
        return uniform_parts(self._problem)

    def _weighed_parts(self, name: str) -> list[WeighedPart]:
        """Return the parts that have any weight under a mixture."""
        mixture = measure_of(name, self._problem.grid, self._weighing)
        assert isinstance(mixture, Mixture)
        return weighed_parts(self._problem, mixture.products(self._problem))

    def _evaluator(self, problem: Problem) -> Evaluator:
        if id(problem) not in self._evaluators:
            made = Evaluator(problem)
            made.scale  # noqa: B018  # refuses too many masks before anything is drawn
            self._evaluators[id(problem)] = made
        return self._evaluators[id(problem)]

    def _collected(self) -> _Collected:
        own = next(iter(self._evaluators.values()))
        return _Collected((self._problem.n_masks, *own.highest_shape[1:]))

    @cached_property
    def _seconds(self) -> float:
        """Estimated time to evaluate a region."""
        return max(self._evaluator(part.problem).seconds_per_row for part in self._parts)

    @property
    def _takes_long(self) -> bool:
        """Whether many masks or classes make the usual number of samples slow."""
        return LEAST_SAMPLES * self._seconds > LONG_SECONDS

    @property
    def _least(self) -> int:
        """The least number of samples, and the number drawn at a time."""
        return FEW_SAMPLES if self._takes_long else _BATCH

    def _affordable(self, n_measures: int) -> int:
        """Return how many samples fit the budget."""
        budget = LONG_SECONDS if self._takes_long else MAX_SECONDS
        affordable = int(budget / n_measures / self._seconds)
        return min(MAX_SAMPLES, max(self._least, affordable)) // self._least * self._least

    def _wanted(self, pilot: Observed, asked: Sequence[Fraction]) -> int:
        """Return how many samples find enough regions beyond each gap."""
        sizes, _ = pilot.ordered(self._problem.query.change.direction)
        thresholds = [pilot.threshold(gap) for gap in asked]
        above = [len(sizes) - np.searchsorted(sizes, t, side="right") for t in thresholds]
        rarest = min((int(n) for n in above if n), default=1)
        n = ENOUGH_HITS * len(sizes) // max(1, rarest)
        return max(LEAST_SAMPLES, -(-n // _BATCH) * _BATCH)

    # ---- samples ----

    def _sampled(
        self, name: str, pieces: Sequence[WeighedPart], n: int, pilot: bool = False
    ) -> Observed:
        """Evaluate n random regions or rows, or fewer if time runs out."""
        draws = [_draws(piece) for piece in pieces]
        ends = np.cumsum([piece.weight for piece in pieces])
        number = self._names.index(name)
        collected = self._collected()
        size = min(n, self._least)
        for batch in range(n // size):
            if batch and self._settings.expired():
                break
            self._note("samples")
            random = np.random.default_rng(
                [self._settings.seed, _STREAM, number, int(pilot), batch]
            )
            if name == "rows":
                rows = self._placed_rows
                self._evaluate_rows(rows[random.integers(len(rows), size=size)], collected)
                continue
            chosen = np.searchsorted(ends[:-1] / ends[-1], random.random(size), side="right")
            counts = np.bincount(chosen, minlength=len(pieces))
            for piece, drawn, count in zip(pieces, draws, counts.tolist(), strict=True):
                if count:
                    cells, masks = drawn.single_regions(random, count)
                    self._evaluate(piece, cells, masks, collected)
        return self._observed(collected, is_sample=True)

    def _evaluate(
        self,
        piece: WeighedPart,
        cells: NDArray[np.int32],
        masks: NDArray[np.int64],
        collected: _Collected,
    ) -> None:
        """Evaluate one mask at each row of cells."""
        evaluator = self._evaluator(piece.problem)
        block = evaluator.block
        for start in range(0, len(cells), block):
            self._note("samples")
            part = slice(start, start + block)
            swings, highest = evaluator.evaluate(cells[part], masks[part])
            collected.add(swings)
            collected.highest[piece.part.masks] += highest

    # ---- rows ----

    @cached_property
    def _rows(self) -> Rows:
        assert self._weighing is not None
        return Rows.of(self._problem.grid, self._weighing)

    @property
    def _placed_rows(self) -> NDArray[np.int32]:
        """The regions of those data rows that lie in one."""
        return self._rows.regions

    @property
    def _rows_take_long(self) -> bool:
        """Whether evaluating all rows would take too long, so that only some are drawn."""
        return len(self._placed_rows) * self._seconds > MAX_ROWS_SECONDS

    def _all_rows(self) -> Observed:
        """Evaluate the regions of all rows of the data."""
        collected = self._collected()
        if not self._evaluate_rows(self._placed_rows, collected, until_expired=True):
            collected = self._collected()  # some of the rows say nothing about all of them
        observed = self._observed(collected, is_sample=False)
        if len(observed) and not self._problem.is_split:  # parts have their own order
            found = Moves(observed.swings, observed.unit, observed.doubt)
            kept_moves(self._problem, self._rows, lambda: found)
        return observed

    def _evaluate_rows(
        self, regions: NDArray[np.integer], collected: _Collected, until_expired: bool = False
    ) -> bool:
        """Evaluate the regions of rows; return whether all were evaluated in time."""
        masks = _masks_of(self._problem, regions)
        for piece in self._parts:
            own, cells = np.arange(len(regions)), regions.astype(np.int32)
            numbers = masks
            if self._problem.is_split:
                own = piece.part.rows_of(regions)
                own = own[np.isin(masks[own], piece.part.starts)]
                cells = piece.part.to_part(regions[own])
                numbers = np.searchsorted(piece.part.masks, masks[own])
            for start in range(0, len(own), _BATCH):
                if until_expired and start and self._settings.expired():
                    return False
                self._note("rows")
                some = slice(start, start + _BATCH)
                self._evaluate(piece, cells[some], numbers[some], collected)
        return True

    # ---- all regions ----

    def _all_regions(self, pieces: Mapping[str, Sequence[WeighedPart]]) -> dict[str, Observed]:
        """Evaluate all regions for all measures at once; return nothing if there are too many."""
        problem = self._problem
        parts = self._parts
        n_rows = sum(math.prod(_other_counts(p.problem)) for p in parts)
        evaluators = [self._evaluator(p.problem) for p in parts]
        near = max(each.n_near for each in evaluators)
        work = n_rows * self._seconds + problem.n_regions * near * SECONDS_PER_NUMBER
        if not all(each.is_soon_listed for each in evaluators):
            return {}
        if problem.n_regions > MAX_REGIONS or work > MAX_SECONDS:
            return {}
        names = list(pieces)
        collected = {name: self._collected() for name in names}
        for part in parts:
            own = {name: self._same_part(part, pieces[name]) for name in names}
            for cells in self._blocks(part.problem):
                if self._settings.expired():
                    return {}
                self._note("regions")
                self._evaluate_all(part, cells, own, collected)
        return {name: self._observed(collected[name], is_sample=False) for name in names}

    def _same_part(self, part: WeighedPart, others: Sequence[WeighedPart]) -> WeighedPart | None:
        """Return the same part under another measure; None if it has no weight there."""
        if not self._problem.is_split:
            return others[0]
        return next((other for other in others if other.part is part.part), None)

    def _blocks(self, problem: Problem) -> Iterator[NDArray[np.int32]]:
        """Yield all combinations of the cells that are not sensitive, some at a time."""
        counts = _other_counts(problem)
        total, step = math.prod(counts), self._evaluator(problem).block
        for start in range(0, total, step):
            numbers = np.arange(start, min(total, start + step))
            yield np.stack(np.unravel_index(numbers, counts), axis=1).astype(np.int32)

    def _evaluate_all(
        self,
        part: WeighedPart,
        cells: NDArray[np.int32],
        pieces: Mapping[str, WeighedPart | None],
        collected: Mapping[str, _Collected],
    ) -> None:
        """Evaluate all masks at each row of cells."""
        n_masks, counted = part.problem.n_masks, list(part.problem.counted_masks)
        found, highest = self._evaluator(part.problem).evaluate_all(cells)
        weights = {
            name: _weights(piece, cells, n_masks)[:, counted]
            for name, piece in pieces.items()
            if name != "regions"
        }
        swings = Swings(found.up[:, counted], found.down[:, counted]).raveled()
        for name, own in collected.items():
            own.add(swings, weights[name].ravel() if name in weights else None)
        n_counted = len(counted)
        for name, own in collected.items():
            each = weights[name].sum(axis=1) if name in weights else np.full(len(cells), n_counted)
            own.highest[part.part.masks] += np.tensordot(each, highest, axes=1)

    def _observed(self, collected: _Collected, is_sample: bool) -> Observed:
        return collected.observed([each.scale for each in self._evaluators.values()], is_sample)

    def _note(self, what: str) -> None:
        self._settings.report(Progress(1.0, 0, self._problem.n_regions, f"explaining: {what}"))


class _Collected:
    """Collects evaluations."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._swings: list[Swings] = []
        self._weights: list[NDArray[np.float64]] = []
        self.highest = np.zeros(shape)

    def add(self, swings: Swings, weights: NDArray[np.float64] | None = None) -> None:
        self._swings.append(swings)
        if weights is not None:
            self._weights.append(weights)

    def observed(self, scales: Sequence[Scale], is_sample: bool) -> Observed:
        none = np.empty(0, scales[0].dtype)
        up, down = (
            np.concatenate([none, *(getattr(each, side) for each in self._swings)])
            for side in ("up", "down")
        )
        weights = None
        highest = self.highest
        if self._weights:
            weights = np.concatenate(self._weights)
            total = weights.sum()
            weights, highest = weights / total, highest / total
        most, doubt = max(each.most for each in scales), max(each.doubt for each in scales)
        swings, unit = Swings(up, down), scales[0].unit
        return Observed(swings, weights, highest, is_sample, unit, most, doubt)


def _other_counts(problem: Problem) -> tuple[int, ...]:
    """Return the number of cells of each feature, 1 for sensitive ones."""
    counts = problem.grid.cell_counts
    return tuple(1 if f in problem.query.sensitive else n for f, n in enumerate(counts))


def _masks_of(problem: Problem, regions: NDArray[Any]) -> NDArray[np.int64]:
    masks = np.zeros(len(regions), dtype=np.int64)
    for feature in problem.query.sensitive:
        masks = masks * problem.grid.axes[feature].n_cells + regions[:, feature]
    return masks


def _draws(part: WeighedPart) -> CellDraws:
    """Return a source of random regions of a part, drawn by their weight."""
    if part.products:
        return MixtureDraws(part.problem, part.products)
    return CellDraws(part.problem, part.problem.counted_masks)


def _weights(
    piece: WeighedPart | None, cells: NDArray[np.int32], n_masks: int
) -> NDArray[np.float64]:
    """Return the weights of all masks at rows of cells, shape (n_rows, n_masks)."""
    total = np.zeros((len(cells), n_masks))
    if piece is None:
        return total
    sensitive = piece.problem.query.sensitive
    others = [f for f in range(cells.shape[1]) if f not in sensitive]
    for product in piece.products:
        own = np.full(len(cells), piece.weight * product.weight)
        for feature in others:
            own = own * product.cell_weights[feature][cells[:, feature]]
        total += np.outer(own, product.mask_weights)
    return total


# ---- gaps ----


def ladder(largest: float) -> tuple[Fraction, ...]:
    """Return the gaps of a curve: round numbers up to the largest change.

    Example:
        >>> [float(gap) for gap in ladder(2.0)][:8]
        [0.0, 0.002, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3]
    """
    if not (largest > 0 and math.isfinite(largest)):
        return (Fraction(0),)
    step = _round_step(largest / _N_STEPS)
    small = (step / 50, step / 10, step / 5, step / 2)
    n_steps = math.ceil(Fraction(largest) / step)
    return (Fraction(0), *small, *(step * n for n in range(1, n_steps + 1)))


def _round_step(least: float) -> Fraction:
    """Return the next of 1, 2 and 5 times a power of ten."""
    power = Fraction(10) ** math.floor(math.log10(least))
    return next(power * n for n in (1, 2, 5, 10) if power * n >= Fraction(least))
