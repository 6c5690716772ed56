"""Counting by sampling: an interval that holds at every moment, and an answer within epsilon.

The regions not counted yet are ``undecided = (combinations of other cells) x (masks)`` many; a
share p of them is sensitive, and ``C = certain + p * undecided``. One sample is one combination of
the non-sensitive cells; its outcome is the fraction of the masks that are sensitive there, so its
mean is p. Outcomes feed a confidence sequence and, where the outcomes vary much, Huber's estimate
(see :mod:`xcount.confidence`); delta is split between the two.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.confidence import BettingSequence, GammaBernoulli
from xcount.counters.base import Progress, Settings, Tally
from xcount.errors import BudgetError
from xcount.result import StopReason, is_at_most
from xcount.subproblems import Problem

PILOT, MAIN = 0, 1
"""Streams of random numbers."""

_PILOT_BATCHES = 2
_GROWTH = 0.1
"""The interval is looked at whenever the number of samples has grown by this fraction."""
_SLICE_SECONDS = 0.1
_GAMMA_DELTA = 0.8
"""Part of delta that goes to Huber's estimate where it is used."""
_GAMMA_VARIANCE = 0.45
"""Huber's estimate finishes first where variance / mean is above this (measured)."""
_GAMMA_MARGIN = 1e-9
_FLOAT_MARGIN = Fraction(1, 2**40)
"""Relative widening of sampled shares: beyond all rounding of box weights and floats."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What is known before sampling: ``certain <= C <= certain + undecided``."""

    certain: int
    undecided: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """``low <= C <= high``."""

    low: int
    high: int

    def settled(self, epsilon: float, near: int) -> int | None:
        """Return a count within (1 +- epsilon) of all values from low to high, if there is one."""
        fraction = Fraction(epsilon)
        least = math.ceil((1 - fraction) * self.high)
        most = math.floor((1 + fraction) * self.low)
        return min(max(near, least), most) if least <= most else None

    def meet(self, other: Bounds) -> Bounds:
        """Return the common part; of two that exclude each other, the first."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Bounds(low, high) if low <= high else self


def count_by_sampling(problem: Problem, settings: Settings) -> Tally:
    """Estimate the count from random regions alone."""
    unresolved = np.arange(problem.n_masks, dtype=np.int64)
    return estimate(problem, settings, 0, unresolved, method="sample")


def estimate(
    problem: Problem,
    settings: Settings,
    solved: int,
    unresolved: Sequence[int] | NDArray[np.int64],
    *,
    method: str,
    details: Mapping[str, Any] | None = None,
) -> Tally:
    """Estimate the sensitive regions of the unresolved masks and add them to the solved ones."""
    masks = np.ascontiguousarray(unresolved, dtype=np.int64)
    try:
        sampler = _core.Sampler(problem.forest, problem.masks, problem.threshold_limbs, masks)
    except IndexError as error:  # std::length_error
        raise BudgetError(f"{error}; ask about fewer sensitive features") from None
    undecided = problem.n_combinations * len(masks) if sampler.n_trees else 0
    run = _Run(problem, settings, sampler, Ground(solved, undecided))
    return run.tally(method, details or {})


@dataclass
class _Run:
    """One estimation: draws, looks, stops."""

    problem: Problem
    settings: Settings
    sampler: _core.Sampler
    ground: Ground
    sequence: BettingSequence | None = None
    gamma: GammaBernoulli | None = None
    bounds: Bounds = field(init=False)
    batches: int = 0
    seconds_per_batch: float = 0.0
    pending: NDArray[np.uint64] | None = None
    reported: float = 0.0

    def __post_init__(self) -> None:
        self.bounds = Bounds(self.ground.certain, self.ground.certain + self.ground.undecided)

    def tally(self, method: str, details: Mapping[str, Any]) -> Tally:
        """Run to the end, whatever ends it, and say what was found."""
        if self.ground.undecided == 0:
            exact = self.ground.certain
            return Tally(exact, exact, exact, method, details=self._details(details))
        try:
            reason = self._sample()
        except KeyboardInterrupt:
            reason = StopReason.INTERRUPTED
        self._take_in()
        self._look()
        count = self.bounds.settled(self.settings.epsilon, self._point())
        if count is None:
            count = min(max(self._point(), self.bounds.low), self.bounds.high)
        return Tally(
            count,
            self.bounds.low,
            self.bounds.high,
            method,
            reason,
            confidence=1 - self.settings.delta,
            details=self._details(details),
        )

    def _sample(self) -> StopReason:
        self._plan(self._draw(PILOT, 0, _PILOT_BATCHES))
        while True:
            chunk = max(1, int(self.batches * _GROWTH))
            end = self.batches + chunk
            while self.batches < end:
                if self.settings.expired():
                    return StopReason.TIMEOUT
                self._slice(end - self.batches)
            self._take_in()
            if (reason := self._finished()) is not None:
                return reason
            self._report()

    def _plan(self, pilot: tuple[NDArray[np.uint64], NDArray[np.uint8]]) -> None:
        """Choose the tools by a pilot whose outcomes are not used again."""
        values = np.arange(self.sampler.levels + 1) / self.sampler.levels
        delta, epsilon = self.settings.delta, self.settings.epsilon
        histogram = pilot[0].astype(np.float64)
        mean = float(values @ histogram / histogram.sum())
        variance = float((values - mean) ** 2 @ histogram / histogram.sum())
        if self.ground.certain == 0 and (mean == 0 or variance > _GAMMA_VARIANCE * mean):
            random = np.random.default_rng([self.settings.seed & (2**63 - 1), 1])
            epsilon_inside = epsilon * (1 - _GAMMA_MARGIN)
            self.gamma = GammaBernoulli(epsilon_inside, delta * _GAMMA_DELTA, random)
            delta *= 1 - _GAMMA_DELTA
        self.sequence = BettingSequence(values, delta, epsilon)

    def _draw(
        self, stream: int, first: int, n: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
        started = time.perf_counter()
        n_threads = self.settings.n_threads if n * self.seconds_per_batch > 0.002 else 1
        seed = self.settings.seed & (2**64 - 1)
        histogram, hits = self.sampler.draw(seed, stream, first, n, n_threads)
        self.seconds_per_batch = (time.perf_counter() - started) * n_threads / n
        return histogram, hits

    def _slice(self, n_batches: int) -> None:
        """Draw as many batches as fit into a slice of time, at most those given."""
        affordable = _SLICE_SECONDS * self.settings.n_threads / max(1e-9, self.seconds_per_batch)
        n = min(n_batches, max(1, int(affordable)))
        histogram, hits = self._draw(MAIN, self.batches, n)
        self.batches += n
        self.pending = histogram if self.pending is None else self.pending + histogram
        if self.gamma is not None:
            self.gamma.update(hits)

    def _take_in(self) -> None:
        """Hand a whole chunk to the sequence: how it was sliced leaves no trace."""
        if self.sequence is not None and self.pending is not None:
            self.sequence.update(self.pending, self._certain_share())
            self.pending = None

    def _certain_share(self) -> float:
        """What is certain, in the unit of the sampled share."""
        return float(Fraction(self.ground.certain, self.ground.undecided))

    def _finished(self) -> StopReason | None:
        assert self.sequence is not None
        gamma_done = self.gamma is not None and self.gamma.interval is not None
        max_share = self.settings.max_share
        near = self.sequence.is_worth_computing(self._certain_share())
        if not (gamma_done or near or max_share is not None):
            return None
        self._look()
        if self.bounds.settled(self.settings.epsilon, self._point()) is not None:
            return StopReason.COMPLETE
        if max_share is not None:
            n_regions = self.problem.n_regions
            if is_at_most(self.bounds.high, n_regions, max_share):
                return StopReason.DECIDED
            if not is_at_most(self.bounds.low, n_regions, max_share):
                return StopReason.DECIDED
        return None

    def _look(self) -> None:
        """Bring the bounds up to date."""
        if self.sequence is None:
            return
        self.bounds = self.bounds.meet(self._scaled(self.sequence.interval()))
        if self.gamma is not None and self.gamma.interval is not None:
            self.bounds = self._scaled(self.gamma.interval, margin=Fraction(0)).meet(self.bounds)

    def _scaled(self, shares: tuple[float, float], margin: Fraction = _FLOAT_MARGIN) -> Bounds:
        """Turn bounds of the share into bounds of the count; C is whole, so round inwards."""
        certain, undecided = self.ground.certain, self.ground.undecided
        low = math.ceil(Fraction(shares[0]) * (1 - margin) * undecided)
        high = math.floor(Fraction(min(1.0, shares[1])) * (1 + margin) * undecided)
        return Bounds(certain + low, certain + min(high, undecided))

    def _point(self) -> int:
        if self.sequence is None:
            return (self.bounds.low + self.bounds.high) // 2
        share = Fraction(self.sequence.mean)
        return self.ground.certain + round(share * self.ground.undecided)

    def _report(self) -> None:
        """Tell how far the run is, now and then; listening does not change the answer."""
        now = time.monotonic()
        if self.settings.on_progress is None or now - self.reported < _SLICE_SECONDS:
            return
        assert self.sequence is not None
        self.reported = now
        bounds = self.bounds.meet(self._scaled(self.sequence.interval(keep=False)))
        low, high = bounds.low, bounds.high
        done = self.gamma.fraction_done if self.gamma is not None else 0.0
        n_samples = self.batches * self.sampler.batch
        self.settings.report(Progress(done, low, high, f"{n_samples:,} samples"))

    def _details(self, details: Mapping[str, Any]) -> dict[str, Any]:
        known = dict(details)
        known["contributing_trees"] = self.sampler.n_trees
        known["samples"] = self.batches * self.sampler.batch
        known["sampled_share"] = self.sequence.mean if self.sequence is not None else 0.0
        known["certain"] = str(self.ground.certain)
        known["undecided"] = str(self.ground.undecided)
        if self.bounds.low == 0 < self.bounds.high:
            known["note"] = "no sensitive region was proved to exist: the count may be 0"
        return known
