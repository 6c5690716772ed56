"""Estimating what is left of a count from random regions: plan, draw, look, stop.

The regions not counted yet are ``undecided = (combinations of other cells) x (masks)`` many; a
share p of them is sensitive, and ``C = certain + p * undecided``. One sample is one combination of
the non-sensitive cells; its outcome is the fraction of the masks that are sensitive there, so its
mean is p. Outcomes feed a confidence sequence and, where the outcomes vary much, Huber's estimate
or one stopped by a curve (see :mod:`xcount.counters.sampling.confidence` and
:mod:`xcount.counters.sampling.stopping`); delta is split between the two.

Same seed, same answer: samples are numbered, the interval is looked at after numbers of samples
that do not depend on time, and how the work was sliced leaves no trace.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.counters.bounds import Bounds
from xcount.counters.engine import Batches, Draws, Outcomes
from xcount.counters.sampling.confidence import BettingSequence
from xcount.counters.sampling.draws import BATCH
from xcount.counters.sampling.pilot import FINAL_DELTA, FinalInterval, Pilot
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress, StopReason, Tally

PILOT, MAIN = 0, 1
"""Streams of random numbers; later series of samples have streams of their own."""
WAITING = (0, 0, 1)
"""Tells the generator of waiting times from those of batches, whose keys end in a number: numpy
takes a key that is shorter for one that ends in zeros."""

_MAX_PILOT_BATCHES = 64
_PILOT_CHUNK = 4
"""A pilot grows by one part in so many at a time."""
_PILOT_PART = 0.1
_GROWTH = 0.1
"""The interval is looked at whenever the number of samples has grown by this fraction."""
_SLICE_SECONDS = 0.1
LEAST_BARREN_SAMPLES, MOST_BARREN_SAMPLES = 100_000, 10_000_000
"""Samples without a hit after which sampling gives up, where there is no limit of time: from four
times as many as there are regions on, and at the latest at the second number."""
FLOAT_MARGIN = Fraction(1, 2**40)
"""Relative widening of sampled shares: beyond the rounding of floats, of volumes, and of chances
with which a cover's states are drawn (docs/approximate.md)."""


@dataclass(frozen=True, slots=True)
class KnownPart:
    """The part of a count that is known before sampling, and the size of the part to sample.

    ``certain <= C <= certain + slack + undecided``.

    Attributes:
        certain: sensitive regions that are counted already.
        undecided: regions that the sampler draws from.
        known: bounds of C that hold in any case.
        n_regions: all regions.
        slack: rounding of what is certain.
    """

    certain: int
    undecided: int
    known: Bounds
    n_regions: int
    slack: int = 0

    def bounds(self) -> Bounds:
        """Return what is known of C before any sample."""
        high = self.certain + self.slack + self.undecided
        return self.known.meet(Bounds(self.certain, high))

    def count_of(self, share: Fraction) -> Fraction:
        """Return the count if this share of the undecided regions is sensitive."""
        return self.certain + share * self.undecided

    def scaled(self, shares: tuple[float, float]) -> Bounds:
        """Turn bounds of the share into bounds of the count; C is whole, so round inwards.

        Bounds with no whole number between them are wrong; rounding outwards keeps them in order.
        Zero is only ever proved: samples alone leave room for one region.
        """
        low = self.count_of(min(Fraction(1), Fraction(shares[0]) * (1 - 4 * FLOAT_MARGIN)))
        high = self.count_of(min(Fraction(1), Fraction(shares[1]) * (1 + FLOAT_MARGIN)))
        if math.ceil(low) > math.floor(high) + self.slack:
            return Bounds(math.floor(low), max(1, math.ceil(high) + self.slack))
        return Bounds(math.ceil(low), max(1, math.floor(high) + self.slack))

    @property
    def certain_share(self) -> float:
        """What is certain, in units of the undecided regions."""
        return float(min(Fraction(self.certain, self.undecided), Fraction(10**9)))


Slices = Generator[float, None, StopReason]
"""Work in slices: yields what each cost, in seconds of one core, and returns why it ended."""


def run_through(slices: Slices) -> StopReason:
    """Run all slices without a pause."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            reason: StopReason = end.value
            return reason


class OutOfTimeError(Exception):
    """The time was over before all samples were drawn."""


@dataclass
class Evidence:
    """What outcomes say about their mean: a confidence sequence, and maybe a final interval."""

    sequence: BettingSequence
    final: FinalInterval | None
    _pending: NDArray[Any] | None = None

    def add(self, histogram: NDArray[Any], hits: NDArray[Any]) -> None:
        """Take outcomes that nobody has looked at yet."""
        self._pending = histogram if self._pending is None else self._pending + histogram
        if self.final is not None:
            self.final.update(hits)

    def take_in(self, certain_share: float) -> None:
        """Hand what came since the last look to the sequence, all at once.

        What is pending is let go first: an interrupt in between may lose outcomes, which only
        widens the interval, but none is taken in twice.
        """
        pending, self._pending = self._pending, None
        if pending is not None:
            self.sequence.update(pending, certain_share)

    @property
    def estimated(self) -> tuple[float, float] | None:
        """The interval of Huber's estimate, or of one stopped by a curve, once it is there."""
        return None if self.final is None else self.final.interval


def next_look(n_batches: int) -> int:
    """Return after how many batches the interval is looked at again."""
    return n_batches + max(1, int(n_batches * _GROWTH))


class Estimator:
    """One estimation: draws, looks, stops.

    Where samples are left open, the mean p lies between that of the outcomes with nothing open
    sensitive and that with everything open sensitive: the low end of the interval comes from the
    former, the high end from the latter. Each end fails with its half of delta, as for one mean.

    Args:
        draws: draws the outcomes.
        known_part: what is known before.
        settings: accuracy, limits, and who does the work.
        is_long: whether it may be worth while to let others draw.
        series: number of the series of samples, where one after the other is drawn.
    """

    def __init__(
        self,
        draws: Draws,
        known_part: KnownPart,
        settings: Settings,
        *,
        is_long: bool = True,
        series: int = 0,
    ) -> None:
        self._pilot_stream, self._main_stream = PILOT + 2 * series, MAIN + 2 * series
        self.known_part = known_part
        self.is_long = is_long
        self._known = self.bounds = known_part.bounds()
        self._shown = self.bounds  # to whoever listens: looked at more often, of no consequence
        self._draws = draws
        self._settings = settings
        self._lower: Evidence | None = None
        self._upper: Evidence | None = None  # the same while nothing was left open
        self._ahead: Batches | None = None
        self._batches = 0
        self._n_samples = 0
        self._n_expected = math.inf
        self._seconds_per_batch = BATCH * draws.seconds_per_sample
        self._reported = 0.0
        self._piloted = np.zeros(0)
        self._pilot_batches = self._pilot_hits = 0

    def pilot(self, max_batches: int = _MAX_PILOT_BATCHES) -> Pilot:
        """Draw a few samples to plan by: until enough are hits, or as many batches as given.

        What was drawn by earlier calls counts.
        Under a time limit they take no more than a small part of what is left of it.
        """
        if not self._pilot_batches:
            self._piloted = np.zeros(len(self._values()))
        end = time.monotonic() + _PILOT_PART * self._settings.search_seconds()
        asked = (self._settings.epsilon, self._settings.delta, self.known_part.certain_share)
        while self._pilot_batches < max(1, max_batches):
            if self._pilot_so_far().is_enough(self._pilot_hits, *asked):
                break
            batches, left = self._pilot_batches, end - time.monotonic()
            if left <= 0:
                break
            chunk = max(1, min(batches // _PILOT_CHUNK, max_batches - batches))
            try:
                drawn, hits, *_ = self._draw(self._pilot_stream, batches, chunk, left)
            except OutOfTimeError:
                break
            self._piloted += drawn
            self._pilot_batches += chunk
            self._pilot_hits += int(hits.sum())
        return self._pilot_so_far()

    def _pilot_so_far(self) -> Pilot:
        values, n = self._values(), float(self._piloted.sum())
        if not n:
            return Pilot(1, 0.0, 0.0)  # nobody knows: any plan is as good
        mean = float(values @ self._piloted) / n
        return Pilot(int(n), mean, float((values - mean) ** 2 @ self._piloted) / n)

    def run(self, pilot: Pilot, method: str, details: Mapping[str, Any]) -> Tally:
        """Run to the end, whatever ends it, and say what was found."""
        try:
            reason = run_through(self.slices(pilot))
        except KeyboardInterrupt:
            reason = StopReason.INTERRUPTED
        return self.tally(method, reason, details)

    def slices(self, pilot: Pilot) -> Slices:
        """Draw from look to look; yield the work of each, in seconds of one core."""
        self._plan(pilot)
        try:
            return (yield from self._sample())
        finally:
            if self._ahead is not None:
                self._ahead.close()

    def limit(self, settings: Settings) -> None:
        """Go on within these limits."""
        self._settings = settings

    def narrow(self, known: Bounds) -> None:
        """Take over bounds that hold in any case."""
        self._known = self._known.meet(known)
        self.bounds = self._known.meet(self.bounds)

    def tally(self, method: str, reason: StopReason, details: Mapping[str, Any]) -> Tally:
        """Say what was found so far."""
        self._take_in()
        self._look()
        count = self._estimate()
        low, high = self.bounds.low, self.bounds.high
        confidence = 1 - self._settings.delta if self._n_samples else 1.0
        details = self._details(details)
        return Tally(count, low, high, method, reason, confidence=confidence, details=details)

    @property
    def pilot_seconds(self) -> float:
        """What the pilot cost."""
        return self._pilot_batches * BATCH * self.seconds_per_sample

    @property
    def seconds_per_sample(self) -> float:
        """What a sample costs, about."""
        return self._draws.seconds_per_sample

    def seconds_left(self) -> float:
        """Guess what the rest of the estimate costs, in seconds of one core."""
        asked = (self._settings.epsilon, self._settings.delta, self.known_part.certain_share)
        sequence = None if self._lower is None else self._lower.sequence
        if sequence is None or sequence.n == 0:
            return math.inf
        seen = Pilot(sequence.n, sequence.mean, sequence.variance)
        needed = seen.samples_needed(*asked) - sequence.n
        return max(0.0, needed) * self.seconds_per_sample

    def _values(self) -> NDArray[np.float64]:
        return np.arange(self._draws.levels + 1) / self._draws.levels

    def _plan(self, pilot: Pilot) -> None:
        """Choose the tools: Huber's estimate only where it is likely to finish first."""
        delta, epsilon = self._settings.delta, self._settings.epsilon
        share = self.known_part.certain_share
        self._n_expected = pilot.samples_needed(epsilon, delta, share)
        random = np.random.default_rng([self._seed, self._main_stream, *WAITING])
        final = pilot.final_interval(epsilon, delta, share, random)
        if final is not None:
            delta *= 1 - FINAL_DELTA
        self._lower = Evidence(BettingSequence(self._values(), delta, epsilon), final)
        self._upper = self._lower

    @property
    def _seed(self) -> int:
        return self._settings.seed & (2**64 - 1)

    def _sample(self) -> Slices:
        while True:
            before, end = self._batches, next_look(self._batches)
            while self._batches < end:
                if self._settings.expired():
                    return StopReason.TIMEOUT
                try:
                    self._slice(end)
                except OutOfTimeError:
                    return StopReason.TIMEOUT
            self._take_in()
            if (reason := self._finished()) is not None:
                return reason
            if self._is_barren():
                return StopReason.STEPS
            self._report()
            yield (end - before) * BATCH * self.seconds_per_sample

    def _is_barren(self) -> bool:
        """Tell whether there is no end in sight: no time limit, and no hit in many samples."""
        assert self._upper is not None
        n_samples = self._n_samples
        most = min(MOST_BARREN_SAMPLES, max(LEAST_BARREN_SAMPLES, 4 * self.known_part.undecided))
        return (
            self._settings.timeout_seconds is None
            and n_samples >= most
            and self._upper.sequence.mean == 0
        )

    def _slice(self, end: int) -> None:
        """Draw as many batches as fit into a slice of time, none beyond the end."""
        if self._ahead is None:
            self._ahead = self._others(end)
        if self._ahead is None:
            n = min(end - self._batches, self._affordable(_SLICE_SECONDS))
            outcomes = self._draw(
                self._main_stream, self._batches, n, self._settings.search_seconds()
            )
        else:
            taken = self._ahead.take(_SLICE_SECONDS, self._settings.search_seconds())
            if taken is None:
                return self._pause()
            n, outcomes = taken
            if not len(outcomes[0]):
                raise OutOfTimeError
        self._add(*outcomes)
        self._n_samples += len(outcomes[1])
        if len(outcomes[1]) < n * BATCH:
            raise OutOfTimeError
        self._batches += n

    def _add(self, histogram: NDArray[Any], hits: NDArray[Any], *upper: NDArray[Any]) -> None:
        assert self._lower is not None
        assert self._upper is not None
        if upper and self._upper is self._lower:  # what was drawn before is the same for both
            self._upper = copy.deepcopy(self._lower)
        if self._upper is not self._lower:
            self._upper.add(*(upper or (histogram, hits)))
        self._lower.add(histogram, hits)

    def _affordable(self, seconds: float) -> int:
        """Return how many batches all threads draw in that time."""
        return max(1, int(seconds * self._settings.n_threads / max(1e-9, self._seconds_per_batch)))

    def _others(self, end: int) -> Batches | None:
        """Return who else draws from here on, if anyone does."""
        if not self.is_long:
            return None
        span = (self._batches, end, self._affordable(1.0))
        settings = self._settings
        key = (self._seed, self._main_stream)
        return settings.engine.batches(self._draws, key, span, settings.n_threads)

    def _draw(self, stream: int, first: int, n: int, seconds: float) -> Outcomes:
        """Draw batches, or the first samples of them that fit the time.

        Raises:
            OutOfTimeError: there is none.
        """
        started = time.perf_counter()
        # Threads are worth starting for more than a few milliseconds of work.
        n_threads = self._settings.n_threads if n * self._seconds_per_batch > 0.003 else 1
        outcomes = self._draws.draw(self._seed, stream, first, n, n_threads, seconds, self._pause)
        if not len(outcomes[0]):
            raise OutOfTimeError
        n_drawn = len(outcomes[1]) / BATCH
        self._seconds_per_batch = (time.perf_counter() - started) * n_threads / n_drawn
        return outcomes

    def _take_in(self) -> None:
        """Hand what was drawn since the last look to the sequences."""
        for evidence in (self._lower, self._upper):
            if evidence is not None:
                evidence.take_in(self.known_part.certain_share)

    def _finished(self) -> StopReason | None:
        assert self._lower is not None
        assert self._upper is not None
        final_done = self._lower.estimated is not None and self._upper.estimated is not None
        max_share = self._settings.max_share
        near = self._lower.sequence.is_worth_computing(self.known_part.certain_share)
        if not (final_done or near or max_share is not None):
            return None
        self._look()
        if self.bounds.settled(self._settings.epsilon, self._point()) is not None:
            return StopReason.COMPLETE
        if max_share is not None and self.bounds.decides(max_share, self.known_part.n_regions):
            return StopReason.DECIDED
        return None

    def _look(self) -> None:
        """Bring the bounds up to date.

        Where the sequence and the final interval exclude each other, one is wrong, as one may be
        with probability delta. Then the sequence counts: with more samples it comes to an end.
        """
        if self._lower is None or self._upper is None:
            return
        self.bounds = self._known.meet(self._sequence_bounds())
        lower, upper = self._lower.estimated, self._upper.estimated
        if lower is not None and upper is not None:
            self.bounds = self.bounds.meet(self.known_part.scaled((lower[0], upper[1])))

    def _sequence_bounds(self, *, keep: bool = True) -> Bounds:
        assert self._lower is not None
        assert self._upper is not None
        low, high = self._lower.sequence.interval(keep=keep)
        if self._upper is not self._lower:
            high = self._upper.sequence.interval(keep=keep)[1]
        return self.known_part.scaled((low, high))

    def _mean(self) -> float:
        """Return the mean outcome; halfway where some are open."""
        if self._lower is None or self._upper is None:
            return 0.0
        return (self._lower.sequence.mean + self._upper.sequence.mean) / 2

    def _point(self) -> int | None:
        """Return the count that the mean outcome stands for; None before the first sample."""
        if self._lower is None or self._lower.sequence.n == 0:
            return None
        return round(self.known_part.count_of(Fraction(self._mean())))

    def _estimate(self) -> int | None:
        """Return a count within epsilon of both bounds; else that of the mean outcome, if any.

        Zero is no estimate: it is only ever proved. Nor is a mean that the outcomes left open
        could change by more than epsilon.
        """
        settled = self.bounds.settled(self._settings.epsilon, self._point())
        if settled is not None or self._lower is None or self._upper is None:
            return settled
        if self._lower.sequence.n == 0:
            return None
        ends = (e.sequence.mean for e in (self._lower, self._upper))
        means = Bounds(*(round(self.known_part.count_of(Fraction(mean))) for mean in ends))
        point = means.settled(self._settings.epsilon, self._point())
        if point is None:
            return None
        return min(max(point, self.bounds.low), self.bounds.high) or None

    def _report(self) -> None:
        """Tell how far the run is, now and then; listening does not change the answer."""
        now = time.monotonic()
        if self._settings.on_progress is None or now - self._reported < _SLICE_SECONDS:
            return
        self._reported = now
        self._shown = self._shown.meet(self.bounds).meet(self._sequence_bounds(keep=False))
        self._pause()

    @property
    def _fraction_done(self) -> float:
        drawn = min(1.0, self._n_samples / self._n_expected)
        final = None if self._lower is None else self._lower.final
        return drawn if final is None else max(drawn, final.fraction_done)

    def _pause(self) -> None:
        """Tell that the run goes on, in a long draw; whoever listens may end it by raising."""
        n, expected = self._n_samples, self._n_expected
        of = f" of about {float(f'{expected:.2g}'):,.0f}" if n < expected < math.inf else ""
        message = f"{n:,}{of} samples"
        low, high = self._shown.low, self._shown.high
        self._settings.report(Progress(self._fraction_done, low, high, message))

    def _details(self, details: Mapping[str, Any]) -> dict[str, Any]:
        known = dict(details)
        known["trees_per_sample"] = round(self._draws.n_trees, 1)
        known["samples"] = self._n_samples
        known["sampled_share"] = self._mean()
        if self._lower is not None and self._upper is not None and self._upper is not self._lower:
            known["open_share"] = self._upper.sequence.mean - self._lower.sequence.mean
        known["certain"] = self.known_part.certain
        known["undecided"] = self.known_part.undecided
        if self.bounds.low == 0 < self.bounds.high:
            known["may_be_zero"] = True  # no sensitive region was proved to exist
        return known
