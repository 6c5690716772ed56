"""Estimate a number from samples: plan, draw, look, stop.

A part of the number is known, ``C = certain + p * undecided``, and samples estimate the share p of
the rest. For a count, the regions not counted yet are ``undecided = (combinations of other cells) x
(masks)`` many; one sample is one combination of the non-sensitive cells, and its outcome is the
fraction of the masks that are sensitive there, so its mean is p. Weights are estimated likewise, in
whole units. Outcomes feed a confidence sequence and, if they vary much, Huber's estimate or one
stopped by a curve (see :mod:`xcount.counters.sampling.intervals` and
:mod:`xcount.counters.sampling.stopping`); delta is split between the two.

The same seed gives the same answer: samples are numbered, the interval is updated after numbers of
samples that do not depend on time, and the slicing of the work has no influence.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.counters import costs
from xcount.counters.engine import Batches, Draws, Outcomes
from xcount.counters.sampling.draws import BATCH
from xcount.counters.sampling.intervals import BettingSequence
from xcount.counters.sampling.pilot import FINAL_DELTA, FinalInterval, Pilot
from xcount.counters.settings import Settings
from xcount.counters.tally import Bounds, Progress, StopReason, Tally

PILOT, MAIN = 0, 1
"""Random streams; each later series of samples has its own streams."""
WAITING = (0, 0, 1)
"""Separates the generator of waiting times from those of batches, whose keys end in a number: numpy
treats a shorter key like one that ends in zeros."""

_GROWTH = 0.1
"""The interval is updated whenever the number of samples has grown by this fraction."""
FLOAT_MARGIN = Fraction(1, 2**40)
"""Relative widening of sampled shares: beyond the rounding of floats, of volumes, and of chances
with which a cover's states are drawn (docs/approximate.md)."""


@dataclass(frozen=True, slots=True)
class KnownPart:
    """The part of a count that is known before sampling, and the size of the part to sample.

    ``certain <= C <= certain + slack + undecided``.

    Attributes:
        certain: sensitive regions that are counted already.
        undecided: regions that samples are drawn from.
        known: bounds of C that are certain.
        n_regions: all regions.
        slack: rounding of what is certain.
    """

    certain: int
    undecided: int
    known: Bounds
    n_regions: int
    slack: int = 0

    def bounds(self) -> Bounds:
        """Return the bounds of C before any sample."""
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
        """The certain part, in units of the undecided regions."""
        return float(min(Fraction(self.certain, self.undecided), Fraction(10**9)))


class OutOfTimeError(Exception):
    """Time ran out before all samples were drawn."""


@dataclass
class Evidence:
    """Evidence about the mean outcome: a confidence sequence, perhaps a final interval."""

    sequence: BettingSequence
    final: FinalInterval | None
    _pending: NDArray[Any] | None = None

    def add(self, histogram: NDArray[Any], hits: NDArray[Any]) -> None:
        """Add outcomes, to be used at the next look."""
        self._pending = histogram if self._pending is None else self._pending + histogram
        if self.final is not None:
            self.final.update(hits)

    def take_in(self, certain_share: float) -> None:
        """Pass the outcomes since the last look to the sequence, all at once.

        They are removed from here first: an interrupt in between may lose outcomes, which only
        widens the interval, but none is used twice.
        """
        pending, self._pending = self._pending, None
        if pending is not None:
            self.sequence.update(pending, certain_share)

    @property
    def estimated(self) -> tuple[float, float] | None:
        """The interval of Huber's estimate, or of one stopped by a curve, once available."""
        return None if self.final is None else self.final.interval


def next_look(n_batches: int) -> int:
    """Return the number of batches after which the interval is updated again."""
    return n_batches + max(1, int(n_batches * _GROWTH))


class Estimator:
    """An estimate from one kind of draws (see :class:`xcount.counters.sampling.policy.Estimate`).

    If samples are left open, the mean p lies between that of the outcomes with nothing open
    sensitive and that with everything open sensitive: the low end of the interval comes from the
    former, the high end from the latter. Each end fails with its half of delta, as for one mean.

    Args:
        draws: draws the outcomes.
        known_part: what is known before.
        settings: accuracy, limits, and the engine.
        is_long: whether letting other processes draw may be worthwhile.
        series: number of the series of samples, if several are drawn one after the other.

    Attributes:
        stop_reason: why the estimate ended, once it has.
    """

    is_needed = True

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
        self._known = self._bounds = known_part.bounds()
        self._shown = self._bounds  # only for progress reports: narrowed more often
        self._draws = draws
        self._settings = settings
        self._lower: Evidence | None = None
        self._upper: Evidence | None = None  # the same object while no sample was left open
        self._ahead: Batches | None = None
        self._batches = 0
        self._n_samples = 0
        self._n_expected = math.inf
        self._seconds_per_batch = BATCH * draws.seconds_per_sample
        self._reported = 0.0
        self._piloted = np.zeros(0)
        self._pilot_batches = self._pilot_hits = 0
        self.stop_reason = StopReason.COMPLETE

    def pilot(self, max_batches: int = costs.MAX_PILOT_BATCHES) -> Pilot:
        """Draw a pilot: until it has enough hits, or as many batches as given.

        Batches of earlier calls count. Under a time limit, the pilot takes at most a small part of
        the time left.
        """
        if not self._pilot_batches:
            self._piloted = np.zeros(len(self._values()))
        end = time.monotonic() + costs.PILOT_TIME_PART * self._settings.search_seconds()
        while self._pilot_batches < max(1, max_batches):
            if self._pilot_so_far().is_enough(self._pilot_hits, *self._asked):
                break
            batches, left = self._pilot_batches, end - time.monotonic()
            if left <= 0:
                self._settings.cuts.samples = True
                break
            chunk = max(1, min(batches // costs.PILOT_GROWTH, max_batches - batches))
            try:
                drawn, hits, *_ = self._draw(self._pilot_stream, batches, chunk, left)
            except OutOfTimeError:
                self._settings.cuts.samples = True
                break
            self._piloted += drawn
            self._pilot_batches += chunk
            self._pilot_hits += int(hits.sum())
        return self._pilot_so_far()

    def _pilot_so_far(self) -> Pilot:
        values, n = self._values(), float(self._piloted.sum())
        if not n:
            return Pilot(1, 0.0, 0.0)  # without any knowledge, any plan will do
        mean = float(values @ self._piloted) / n
        return Pilot(int(n), mean, float((values - mean) ** 2 @ self._piloted) / n)

    @property
    def _asked(self) -> tuple[float, float, float]:
        """The requested accuracy, and the certain part in units of the undecided regions."""
        return self._settings.epsilon, self._settings.delta, self.known_part.certain_share

    def price(self, worth: float) -> float:
        """Predict the cost of the estimate by a pilot that costs a small part of ``worth``."""
        samples = worth / self.seconds_per_sample / costs.PILOT_WORK_PART
        return self.price_by(self.pilot(math.ceil(samples / BATCH)))

    def price_by(self, pilot: Pilot) -> float:
        """Predict the cost of the estimate by a pilot, in seconds of one core."""
        if self._is_clear(pilot):
            return 0.0
        return self.seconds_per_sample * self.samples_needed(pilot)

    def samples_needed(self, pilot: Pilot) -> float:
        """Predict how many samples the estimate takes."""
        return pilot.samples_needed(*self._asked)

    def _is_clear(self, pilot: Pilot) -> bool:
        """Return whether the limit is so far from the pilot's share that few samples decide it."""
        max_share, known = self._settings.max_share, self.known_part
        if max_share is None:
            return False
        asked = max_share.value * known.n_regions - known.certain
        share = max(0.0, float(asked / known.undecided))
        few = 30 / pilot.n  # a share that a pilot of this size can distinguish from zero
        return abs(pilot.mean - share) > max(few, 0.3 * share)

    def run(self, method: str, details: Mapping[str, Any], pilot: Pilot | None = None) -> Tally:
        """Run to the end, however it ends, and return the tally."""
        try:
            for _ in self.slices(pilot):
                pass
        except KeyboardInterrupt:
            self.stop_reason = StopReason.INTERRUPTED
        return self.tally(method, details)

    def slices(self, pilot: Pilot | None = None) -> Generator[float, None, None]:
        """Draw from look to look, after a pilot if none is given; yield the cost of each slice."""
        if pilot is None:
            before = self.pilot_seconds
            pilot = self.pilot()
            yield self.pilot_seconds - before
        self._plan(pilot)
        try:
            self.stop_reason = yield from self._sample()
        finally:
            if self._ahead is not None:
                self._ahead.close()

    def limit(self, settings: Settings) -> None:
        """Continue within these limits; delta stays the same."""
        self._settings = replace(settings, delta=self._settings.delta)

    def spend(self, delta: float) -> None:
        """Use this chance of being wrong; called before the first slice."""
        self._settings = replace(self._settings, delta=delta)

    def bounds(self) -> Bounds:
        """Return the bounds of C as of the last look."""
        return self._bounds

    def narrow(self, known: Bounds) -> None:
        """Adopt bounds that are certain."""
        self._known = self._known.meet(known)
        self._bounds = self._known.meet(self._bounds)

    def tally(self, method: str, details: Mapping[str, Any]) -> Tally:
        """Return the tally so far."""
        self._take_in()
        self._look()
        confidence = 1 - self._settings.delta if self._n_samples else 1.0
        found, details = self._estimate(), self._details(details)
        return Tally(found, *self._bounds, method, self.stop_reason, confidence, details)

    @property
    def pilot_seconds(self) -> float:
        """The cost of the pilot so far, in seconds of one core."""
        return self._pilot_batches * BATCH * self.seconds_per_sample

    @property
    def seconds_per_sample(self) -> float:
        """The price of a sample."""
        return self._draws.seconds_per_sample

    def seconds_left(self) -> float:
        """Predict the remaining cost of the estimate, in seconds of one core."""
        sequence = None if self._lower is None else self._lower.sequence
        if sequence is None or sequence.n == 0:
            return math.inf
        seen = Pilot(sequence.n, sequence.mean, sequence.variance)
        needed = self.samples_needed(seen) - sequence.n
        return max(0.0, needed) * self.seconds_per_sample

    def _values(self) -> NDArray[np.float64]:
        return np.arange(self._draws.levels + 1) / self._draws.levels

    def _plan(self, pilot: Pilot) -> None:
        """Choose the tools: a final interval only if it is likely to finish first."""
        epsilon, delta, share = self._asked
        self._n_expected = self.samples_needed(pilot)
        random = np.random.default_rng([self._seed, self._main_stream, *WAITING])
        final = pilot.final_interval(epsilon, delta, share, random)
        if final is not None:
            delta *= 1 - FINAL_DELTA
        self._lower = Evidence(BettingSequence(self._values(), delta, epsilon), final)
        self._upper = self._lower

    @property
    def _seed(self) -> int:
        return self._settings.seed & (2**64 - 1)

    def _sample(self) -> Generator[float, None, StopReason]:
        """Draw from look to look; return why that ended."""
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
        """Return whether no end is in sight: no time limit, and no hit in many samples."""
        assert self._upper is not None
        thresholds = self._settings.thresholds
        least, most = thresholds.least_barren_samples, thresholds.most_barren_samples
        return (
            self._settings.timeout_seconds is None
            and self._n_samples >= min(most, max(least, 4 * self.known_part.undecided))
            and self._upper.sequence.mean == 0
        )

    def _slice(self, end: int) -> None:
        """Draw as many batches as fit into a slice of time, up to the next look."""
        if self._ahead is None:
            self._ahead = self._others(end)
        if self._ahead is None:
            n = min(end - self._batches, self._affordable(costs.SAMPLING_SLICE_SECONDS))
            outcomes = self._draw(
                self._main_stream, self._batches, n, self._settings.search_seconds()
            )
        else:
            left = self._settings.search_seconds()
            taken = self._ahead.take(costs.SAMPLING_SLICE_SECONDS, left)
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
        """Return the batches that others draw from here on, if anyone does."""
        if not self.is_long:
            return None
        span = (self._batches, end, self._affordable(1.0))
        settings = self._settings
        key = (self._seed, self._main_stream)
        return settings.engine.batches(self._draws, key, span, settings.n_threads)

    def _draw(self, stream: int, first: int, n: int, seconds: float) -> Outcomes:
        """Draw batches, or the first of their samples if time runs out.

        Raises:
            OutOfTimeError: not a single one was drawn.
        """
        started = time.perf_counter()
        is_long = n * self._seconds_per_batch > costs.THREADS_FROM_SECONDS
        n_threads = self._settings.n_threads if is_long else 1
        outcomes = self._draws.draw(self._seed, stream, first, n, n_threads, seconds, self._pause)
        if not len(outcomes[0]):
            raise OutOfTimeError
        n_drawn = len(outcomes[1]) / BATCH
        self._seconds_per_batch = (time.perf_counter() - started) * n_threads / n_drawn
        return outcomes

    def _take_in(self) -> None:
        """Pass the outcomes since the last look to the sequences."""
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
        if self._bounds.settled(self._settings.epsilon, self._point()) is not None:
            return StopReason.COMPLETE
        if max_share is not None and self._bounds.decides(max_share, self.known_part.n_regions):
            return StopReason.DECIDED
        return None

    def _look(self) -> None:
        """Bring the bounds up to date.

        If the sequence and the final interval exclude each other, one is wrong, which may happen
        with probability delta. Then the sequence counts: with more samples it still converges.
        """
        if self._lower is None or self._upper is None:
            return
        self._bounds = self._known.meet(self._sequence_bounds())
        lower, upper = self._lower.estimated, self._upper.estimated
        if lower is not None and upper is not None:
            self._bounds = self._bounds.meet(self.known_part.scaled((lower[0], upper[1])))

    def _sequence_bounds(self, *, keep: bool = True) -> Bounds:
        assert self._lower is not None
        assert self._upper is not None
        low, high = self._lower.sequence.interval(keep=keep)
        if self._upper is not self._lower:
            high = self._upper.sequence.interval(keep=keep)[1]
        return self.known_part.scaled((low, high))

    def _mean(self) -> float:
        """Return the mean outcome; halfway between both ends if some are open."""
        if self._lower is None or self._upper is None:
            return 0.0
        return (self._lower.sequence.mean + self._upper.sequence.mean) / 2

    def _point(self) -> int | None:
        """Return the count that corresponds to the mean outcome; None before the first sample."""
        if self._lower is None or self._lower.sequence.n == 0:
            return None
        return round(self.known_part.count_of(Fraction(self._mean())))

    def _estimate(self) -> int | None:
        """Return a count within epsilon of both bounds; else that of the mean outcome, if any.

        Zero is no estimate: it is only ever proved. Nor is a mean that open outcomes could change
        by more than epsilon.
        """
        settled = self._bounds.settled(self._settings.epsilon, self._point())
        if settled is not None or self._lower is None or self._upper is None:
            return settled
        if self._lower.sequence.n == 0:
            return None
        ends = (e.sequence.mean for e in (self._lower, self._upper))
        means = Bounds(*(round(self.known_part.count_of(Fraction(mean))) for mean in ends))
        point = means.settled(self._settings.epsilon, self._point())
        if point is None:
            return None
        return min(max(point, self._bounds.low), self._bounds.high) or None

    def _report(self) -> None:
        """Report progress now and then, without influence on the answer."""
        now = time.monotonic()
        if (
            self._settings.on_progress is None
            or now - self._reported < costs.SAMPLING_SLICE_SECONDS
        ):
            return
        self._reported = now
        self._shown = self._shown.meet(self._bounds).meet(self._sequence_bounds(keep=False))
        self._pause()

    @property
    def _fraction_done(self) -> float:
        drawn = min(1.0, self._n_samples / self._n_expected)
        final = None if self._lower is None else self._lower.final
        return drawn if final is None else max(drawn, final.fraction_done)

    def _pause(self) -> None:
        """Report progress within a long draw; the listener may end the run by raising."""
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
        if self._bounds.low == 0 < self._bounds.high:
            known["may_be_zero"] = True  # no sensitive region was proved to exist
        return known
