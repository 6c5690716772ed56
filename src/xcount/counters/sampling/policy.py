"""Decide what to do next: exact work or samples, and which estimate.

Exact work starts, since it answers most questions before a first sample would be drawn. Then a
pilot predicts the cost of an estimate of the open part. Exact work continues alone until it has
cost as much; then the estimate starts and both take turns, always the one that has cost less, until
one of them has the answer. So the answer costs at most about twice the work of the cheaper one.
Cost is counted in steps and samples, not in seconds, so the answer does not depend on the machine
(unless a time limit cuts it short: exact work leaves half of the time to sampling).

An estimate covers the part that was open when it started: later exact work narrows the bounds of
the whole, but does not change the estimate. If the open part has shrunk so much that
a new estimate costs far less than finishing the old one, a new one starts, from new samples. Delta
is split between the estimates beforehand: 0.9 of it for the first, then half of what is left for
each. Once exact work has ended, no other estimate can follow, and all that is left of delta goes to
the one that starts. So the chance that any of them is ever wrong is at most delta, and the bounds
of all of them hold together.

Counts (:mod:`xcount.counters.auto`) and weights (:mod:`xcount.measures.weigh`) are found this way.
The thresholds are in :class:`xcount.counters.costs.Thresholds`; a map is in ``docs/auto.md``.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace
from typing import Any, Generic, Protocol, TypeVar

from xcount.counters.settings import Settings
from xcount.counters.tally import Bounds, StopReason, Tally

_FIRST_PART, _LATER_PART = 0.9, 0.5
"""Fractions of the remaining delta: for the first estimate, and for each later one."""

Found = TypeVar("Found")


class Work(Protocol):
    """Work in slices towards a number: of regions, or of units of weight.

    Attributes:
        stop_reason: why the work ended, once it has.
    """

    stop_reason: StopReason

    def limit(self, settings: Settings) -> None:
        """Continue within these limits."""
        ...

    def slices(self) -> Iterator[float]:
        """Do the work slice by slice; yield the cost of each, in seconds of one core."""
        ...

    def bounds(self) -> Bounds:
        """Return the bounds on the number so far."""
        ...


class ExactWork(Work, Protocol):
    """Work that ends with the number itself: bounds are certain."""

    @property
    def open_size(self) -> int:
        """The size of the open part, in whatever unit; 0 if the number is known."""
        ...

    def end(self, reason: StopReason | None = None) -> None:
        """Record why the work ended after its last slice."""
        ...


class Estimate(Work, Protocol):
    """Sampling that ends with an interval, which is wrong with probability at most delta."""

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to estimate."""
        ...

    @property
    def pilot_seconds(self) -> float:
        """What pilots have cost, in seconds of one core."""
        ...

    def slices(self) -> Generator[float, None, None]: ...

    def spend(self, delta: float) -> None:
        """Use this chance of being wrong; called before the first slice."""
        ...

    def price(self, worth: float) -> float:
        """Predict the cost of the estimate by a pilot that costs a small part of ``worth``."""
        ...

    def seconds_left(self) -> float:
        """Predict what the rest of the estimate costs, in seconds of one core."""
        ...

    def narrow(self, known: Bounds) -> None:
        """Adopt bounds that are certain."""
        ...

    def tally(self, method: str, details: Mapping[str, Any]) -> Tally:
        """Return what was found so far."""
        ...


EstimateMaker = Callable[[Settings, Bounds, int], Estimate]
"""Makes an estimate of the open part: within settings and certain bounds, from a series of samples
of its own."""


def with_grace_period(settings: Settings) -> Settings:
    """Return settings that leave time for a few samples even if the time limit has passed."""
    limit, thresholds = settings.timeout_seconds, settings.thresholds
    if limit is None:
        return settings
    least = min(thresholds.grace_seconds, thresholds.grace_part * limit)
    return settings.within(1.0, least=least)


class SuccessiveEstimates:
    """Estimates, one after the other, of the part that exact work leaves open.

    Args:
        exact: the exact work.
        settings: accuracy and limits of all estimates together.
        make: makes an estimate of the part that is open now.

    Attributes:
        work: the cost of sampling so far, in seconds of one core.
        is_over: whether the current estimate has ended, for whatever reason.
        is_last: whether the estimate that starts next is the last one.
    """

    def __init__(self, exact: ExactWork, settings: Settings, make: EstimateMaker) -> None:
        self._exact, self._settings, self._make = exact, settings, make
        self._delta_left = settings.delta
        self._n_started = 0
        self._next: Estimate | None = None
        self._next_size = self._current_size = 0  # of the open part
        self._current: Estimate | None = None
        self._slices: Generator[float, None, None] | None = None
        self._earlier: Bounds | None = None  # found by abandoned estimates
        self.work = 0.0
        self.is_over = self.is_last = False

    @property
    def has_started(self) -> bool:
        return self._current is not None

    @property
    def stop_reason(self) -> StopReason:
        """Why the current estimate ended."""
        assert self._current is not None
        return self._current.stop_reason

    @property
    def has_answer(self) -> bool:
        """Whether the current estimate has ended with the accuracy or verdict asked for."""
        return self.is_over and self.stop_reason in (StopReason.COMPLETE, StopReason.DECIDED)

    def limit(self, settings: Settings) -> None:
        """Continue within these limits."""
        self._settings = settings
        for estimate in (self._next, self._current):
            if estimate is not None:
                estimate.limit(settings)

    def price(self, worth: float) -> float:
        """Predict the cost of an estimate of the open part; the pilot may cost a part of worth."""
        candidate = self._candidate()
        if not candidate.is_needed:
            return 0.0
        before = candidate.pilot_seconds
        price = candidate.price(worth)
        self.work += candidate.pilot_seconds - before
        return price

    def advance(self) -> None:
        """Do the next slice; start an estimate if there is none."""
        if self._slices is None:
            self._start(self._candidate())
        assert self._slices is not None
        try:
            self.work += next(self._slices)
        except StopIteration:
            self.is_over = True

    def renew(self) -> None:
        """Adopt the bounds of exact work; start a new estimate if that is far cheaper."""
        if self._current is None or self.is_over:
            return
        self._current.narrow(self._exact.bounds())
        thresholds = self._settings.thresholds
        if not 0 < self._exact.open_size <= thresholds.shrunk_part * self._current_size:
            return
        if self.price(worth=self.work) < thresholds.cheaper_part * self._current.seconds_left():
            self._earlier = self.bounds()
            self.close()
            self._start(self._candidate())

    def bounds(self) -> Bounds:
        """Return the bounds on the number from exact work and all estimates."""
        known = self._exact.bounds()
        for found in (self._earlier, None if self._current is None else self._current.bounds()):
            known = known if found is None else known.meet(found)
        return known

    def tally(self, method: str, reason: StopReason, details: Mapping[str, Any]) -> Tally:
        """Return the tally of the last estimate, within the bounds of all."""
        assert self._current is not None
        self._current.narrow(self.bounds())
        self._current.stop_reason = reason
        tally = self._current.tally(method, details)
        is_sampled = self._earlier is not None or tally.confidence < 1
        return replace(tally, confidence=1 - self._settings.delta if is_sampled else 1.0)

    def close(self) -> None:
        """Discard samples that others draw ahead."""
        if self._slices is not None:
            self._slices.close()

    def _candidate(self) -> Estimate:
        """Return an estimate of the part that is open now."""
        size = self._exact.open_size
        if self._next is None or self._next_size != size:
            settings = replace(self._settings, delta=self._delta_left * self._part)
            self._next = self._make(settings, self.bounds(), self._n_started)
            self._next_size = size
        return self._next

    @property
    def _part(self) -> float:
        """The fraction of the remaining delta that the next estimate gets."""
        if self.is_last:
            return 1.0
        return _LATER_PART if self._n_started else _FIRST_PART

    def _start(self, estimate: Estimate) -> None:
        estimate.spend(self._delta_left * self._part)
        self._delta_left *= 1 - self._part
        self._n_started += 1
        self._current, self._next = estimate, None
        self._current_size = self._next_size
        self._slices = estimate.slices()


class Scheduler(ABC, Generic[Found]):
    """Exact work and estimates of the part it leaves open, in turns.

    Args:
        exact: the exact work.
        settings: accuracy and limits.
        whole: the number that a share is a share of: all regions, or the units of all weight.
        visit_seconds: what a visit of all regions costs, in seconds of one core.
        spent: what exact work costs before its first slice.
        only_bounds: whether exact work is likely to end with bounds, not with the answer: then it
            only goes on if an estimate costs much.
    """

    def __init__(
        self,
        exact: ExactWork,
        settings: Settings,
        *,
        whole: int,
        visit_seconds: float = math.inf,
        spent: float = 0.0,
        only_bounds: bool = False,
    ) -> None:
        self._exact, self._settings, self._whole = exact, settings, whole
        self._thresholds = settings.thresholds
        self._visit_seconds, self._only_bounds = visit_seconds, only_bounds
        self._slices = exact.slices()
        self._exact_work = spent
        self._exact_seconds = 0.0  # by the clock, for the time limit
        self._can_count = True  # exact work may still find the answer
        self._estimates: SuccessiveEstimates | None = None  # made on first use

    @abstractmethod
    def _make_estimates(self) -> SuccessiveEstimates:
        """Return estimates of the part that exact work leaves open."""

    @abstractmethod
    def _visited(self) -> Found | None:
        """Visit all regions; None if that turns out to cost too much."""

    @abstractmethod
    def _found(self) -> Found:
        """Return the result so far, exact or sampled."""

    def run(self) -> Found:
        """Run to the end, however it ends."""
        try:
            return self._run()
        except KeyboardInterrupt:
            self._exact.end(StopReason.INTERRUPTED)
            return self._found()
        finally:
            if self._estimates is not None:
                self._estimates.close()

    def _run(self) -> Found:
        found = self._work_alone()
        if found is not None:
            return found
        self._take_turns()
        return self._found()

    @property
    def _free_seconds(self) -> float:
        """The cost of exact work allowed before anything else is tried."""
        return min(self._thresholds.free_exact_seconds, self._visit_seconds)

    def _work_alone(self) -> Found | None:
        """Work exactly until the cost equals that of an estimate; visit if that is cheaper.

        None if it is time for an estimate.
        """
        self._work_until(self._free_seconds)
        # Cheap slices run even if the limit of a verdict is decided: a number says more.
        if self._is_over(judge=False):
            return self._found()
        while not self._is_over():
            worth = self._exact_work
            if self._visit_seconds <= worth and (found := self._visit()) is not None:
                return found
            price = self._sampling().price(worth)
            if self._only_bounds and price <= self._thresholds.alone_seconds:
                self._can_count = False
            is_turn = price <= worth or worth >= self._thresholds.alone_seconds
            if is_turn or not self._can_count or self._is_late():
                self._settings.cuts.exact |= not is_turn and self._can_count
                is_short = self._visit_seconds <= self._thresholds.visit_seconds
                return self._visit() if is_short else None
            self._work_until(min(price, 2 * worth))
        return self._found()

    def _visit(self) -> Found | None:
        """Visit all regions, at most once; None if that turns out to cost too much."""
        self._visit_seconds = math.inf
        return self._visited()

    def _sampling(self) -> SuccessiveEstimates:
        """Return the estimates; they are made on first use."""
        if self._estimates is None:
            self._estimates = self._make_estimates()
        return self._estimates

    def _is_turn_of_estimate(self) -> bool:
        """Return whether sampling has cost less than exact work, or exact work is over."""
        sampling = self._sampling()
        return not sampling.is_over and (
            not sampling.has_started or not self._can_count or sampling.work <= self._exact_work
        )

    def _take_turns(self) -> None:
        """Continue with whichever has cost less, until one of them has the answer."""
        sampling = self._sampling()
        if self._settings.expired() and not sampling.has_started:
            self._settings, self._can_count = with_grace_period(self._settings), False
            sampling.limit(self._settings)
        sampling.is_last = not self._can_count
        while not self._settings.expired():
            if self._is_turn_of_estimate():
                sampling.advance()
                if sampling.has_answer:
                    return
            elif self._can_count and self._exact_work < self._most_work:
                self._work_until(
                    max(sampling.work, 2 * self._exact_work if sampling.is_over else 0)
                )
                sampling.renew()
                if self._is_over():
                    return
            else:
                return

    @property
    def _most_work(self) -> float:
        """The most that exact work may cost: it is finite even without a time limit."""
        is_endless = self._sampling().is_over and self._settings.timeout_seconds is None
        return self._thresholds.last_seconds if is_endless else math.inf

    def _work_until(self, work: float) -> None:
        """Work exactly up to a given cost, or until half of the total time is over."""
        started, settings = time.monotonic(), self._settings
        if settings.timeout_seconds is not None:
            allowed = max(0.0, settings.timeout_seconds / 2 - self._exact_seconds)
            allowed = min(allowed, settings.search_seconds())
            settings = replace(settings, timeout_seconds=allowed, started=started)
        self._exact.limit(settings)
        while self._can_count and self._exact_work < work:
            cost = next(self._slices, None)
            self._exact_work += cost or 0.0
            is_late = cost is not None and settings.expired()
            settings.cuts.exact |= is_late
            self._can_count = cost is not None and not is_late
        self._exact_seconds += time.monotonic() - started
        self._exact.end()

    def _is_late(self) -> bool:
        """Return whether half of the time is over."""
        left, limit = self._settings.seconds_left(), self._settings.timeout_seconds
        return left is not None and limit is not None and left < limit / 2

    def _is_over(self, *, judge: bool = True) -> bool:
        """Return whether there is an answer. With ``judge``, a verdict is one, too."""
        return self._answer(self._bounds(), judge=judge) is not None

    def _bounds(self) -> Bounds:
        return self._exact.bounds() if self._estimates is None else self._estimates.bounds()

    def _answer(self, bounds: Bounds, *, judge: bool = True) -> StopReason | None:
        """Return why there is no need to continue; None if there is."""
        settings = self._settings
        if bounds.settled(settings.epsilon, bounds.low) is not None:
            return StopReason.COMPLETE
        limit = settings.max_share if judge else None
        if limit is not None and bounds.decides(limit, self._whole):
            return StopReason.DECIDED
        return None

    def _sampled(self) -> SuccessiveEstimates | None:
        """Return the estimates that the answer rests on; None if it is only exact work's."""
        estimates = self._estimates
        is_sampled = estimates is not None and estimates.has_started and self._exact.open_size > 0
        return estimates if is_sampled else None

    def _reason(self) -> StopReason:
        """Return why the run ended."""
        exact, sampled = self._exact, self._sampled()
        if exact.stop_reason is StopReason.INTERRUPTED:
            return StopReason.INTERRUPTED
        answer = self._answer(exact.bounds() if sampled is None else self._bounds())
        if answer is not None or sampled is None:
            return answer or exact.stop_reason
        if self._settings.expired():
            return StopReason.TIMEOUT
        return sampled.stop_reason if sampled.is_over else exact.stop_reason
