"""Exact work and sampling side by side, whichever is done first.

Exact work begins, since most questions are answered before a first sample would be drawn. From
then on a few samples tell what an estimate of what is open costs. Exact work goes on alone until it
has cost as much; then the estimate begins and both go on in turns, always the one that has cost
less, until one of them has the answer. So the answer costs about twice the cheaper one's work at
most. Cost is counted in steps and samples, not in seconds, hence the answer does not depend on the
machine (unless a time limit cuts it short: exact work leaves half of the time to sampling).

Counts (:mod:`xcount.counters.auto`) and weights (:mod:`xcount.measures.weigh`) are found that way.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from xcount.counters.bounds import Bounds
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason

if TYPE_CHECKING:
    from xcount.counters.sampling.rest_estimate import RestEstimate

BUDGETS = (10_000, 200_000, 3_000_000, 40_000_000, 500_000_000, 5_000_000_000, 2**62)
"""Steps a subproblem, round by round."""

FREE_SECONDS = 0.1
"""What exact work may cost before anybody asks what sampling costs: an exact answer is worth
that much."""
ALONE_SECONDS = 0.5
"""What exact work may cost before an estimate begins that seems to cost more."""
LAST_SECONDS = 60.0
"""What exact work may cost where samples lead nowhere and there is no limit of time."""

INSTANT_SECONDS = 0.02
"""Up to here, all regions are visited without a look at anything else."""
CORNER_SECONDS = 2.0
"""Up to here, all regions are visited rather than sampled: a second on two cores."""
GRACE_PART, GRACE_SECONDS = 0.2, 0.2
"""If the time limit comes before the first sample, sampling still gets this part of it, and at most
so many seconds: some bounds, a little late, are worth more than none."""

Found = TypeVar("Found")


class ExactWork(Protocol):
    """What can be found exactly, in slices: a count, or a weight in whole units."""

    stop_reason: StopReason

    @property
    def open_size(self) -> int:
        """How much is open, in whatever unit; 0 where there is an exact answer."""
        ...

    def bounds(self) -> tuple[int, int]:
        """Return bounds that are certain."""
        ...

    def slices(self, budgets: Iterable[int]) -> Iterator[float]:
        """Go on slice by slice; yield the work of each, in seconds of one core."""
        ...

    def limit(self, settings: Settings) -> None:
        """Go on within these limits."""
        ...

    def end(self, reason: StopReason | None = None) -> None:
        """Note why the work ended, as far as its slices have come."""
        ...


def with_grace_period(settings: Settings) -> Settings:
    """Return settings that leave time for a few samples even if the time limit has passed."""
    limit = settings.timeout_seconds
    if limit is None:
        return settings
    return settings.within(1.0, least=min(GRACE_SECONDS, GRACE_PART * limit))


class SideBySide(ABC, Generic[Found]):
    """Exact work, and estimates of what it leaves open, in turns.

    Args:
        exact: the exact work.
        settings: accuracy and limits.
        whole: what a share is a share of: all regions, or the units of the whole weight.
        corner: what a visit of all regions costs, in seconds of one core.
        worked: what exact work costs before its first slice.
        only_bounds: whether exact work is likely to end with bounds, not with the answer: then it
            only begins where an estimate costs much.
    """

    def __init__(
        self,
        exact: ExactWork,
        settings: Settings,
        *,
        whole: int,
        corner: float = math.inf,
        worked: float = 0.0,
        only_bounds: bool = False,
    ) -> None:
        self._exact, self._settings, self._whole = exact, settings, whole
        self._corner, self._only_bounds = corner, only_bounds
        self._slices = exact.slices(BUDGETS)
        self._exact_work = worked
        self._exact_seconds = 0.0  # on the clock: only a limit of time asks for it
        self._can_count = True  # exactly, as far as is known

    @abstractmethod
    def _made_estimate(self) -> RestEstimate:
        """Return what estimates what exact work leaves open."""

    @abstractmethod
    def _visited(self) -> Found | None:
        """Visit all regions; None where that turns out to be too much."""

    @abstractmethod
    def _found(self) -> Found:
        """Return what was found so far, by whom ever."""

    def run(self) -> Found:
        """Run to the end, whatever ends it."""
        try:
            return self._run()
        except KeyboardInterrupt:
            self._exact.end(StopReason.INTERRUPTED)
            return self._found()
        finally:
            if self._estimate is not None:
                self._estimate.close()

    def _run(self) -> Found:
        found = self._work_alone()
        if found is not None:
            return found
        self._take_turns()
        return self._found()

    @property
    def _free_seconds(self) -> float:
        """What exact work may cost before anything else is tried."""
        return min(FREE_SECONDS, self._corner)

    def _work_alone(self) -> Found | None:
        """Work exactly until that has cost as much as an estimate would; visit where cheaper."""
        self._work_until(self._free_seconds)
        # Cheap slices run even where the limit of a verdict is decided: a number says more.
        if self._is_over(judge=False):
            return self._found()
        while not self._is_over():
            worth = self._exact_work
            if self._corner <= worth and (found := self._visit()) is not None:
                return found
            price = self._sampling.price(worth)
            if self._only_bounds and price <= ALONE_SECONDS:
                self._can_count = False
            if price <= worth or worth >= ALONE_SECONDS or not self._can_count or self._is_late():
                return self._visit() if self._corner <= CORNER_SECONDS else None
            self._work_until(min(price, 2 * worth))
        return self._found()

    def _visit(self) -> Found | None:
        """Visit all regions: that is cheaper than to go on; None where it is not, and never is."""
        self._corner = math.inf
        return self._visited()

    @property
    def _estimate(self) -> RestEstimate | None:
        """The estimates, if anybody has asked for one."""
        return self.__dict__.get("_sampling")

    @cached_property
    def _sampling(self) -> RestEstimate:
        return self._made_estimate()

    def _is_turn_of_estimate(self) -> bool:
        """Tell whether sampling has cost less than exact work, or is alone."""
        sampling = self._sampling
        return not sampling.is_over and (
            not sampling.has_begun or not self._can_count or sampling.work <= self._exact_work
        )

    def _take_turns(self) -> None:
        """Go on with whichever has cost less, until one of them has the answer."""
        sampling = self._sampling
        if self._settings.expired() and not sampling.has_begun:
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
        """What exact work may cost: there is an end, even without a limit of time."""
        endless = self._sampling.is_over and self._settings.timeout_seconds is None
        return LAST_SECONDS if endless else math.inf

    def _work_until(self, work: float) -> None:
        """Work exactly until that has cost so much, or taken half of the time altogether."""
        began, settings = time.monotonic(), self._settings
        if settings.timeout_seconds is not None:
            allowed = max(0.0, settings.timeout_seconds / 2 - self._exact_seconds)
            allowed = min(allowed, settings.search_seconds())
            settings = replace(settings, timeout_seconds=allowed, started=began)
        self._exact.limit(settings)
        while self._can_count and self._exact_work < work:
            cost = next(self._slices, None)
            self._exact_work += cost or 0.0
            self._can_count = cost is not None and not settings.expired()
        self._exact_seconds += time.monotonic() - began
        self._exact.end()

    def _is_late(self) -> bool:
        """Tell whether half of the time is over."""
        left, limit = self._settings.seconds_left(), self._settings.timeout_seconds
        return left is not None and limit is not None and left < limit / 2

    def _is_over(self, *, judge: bool = True) -> bool:
        """Tell whether there is an answer. With ``judge``, a verdict is one, too."""
        return self._answer(self._bounds(), judge=judge) is not None

    def _bounds(self) -> Bounds:
        if self._estimate is None:
            return Bounds(*self._exact.bounds())
        return self._estimate.bounds()

    def _answer(self, bounds: Bounds, *, judge: bool = True) -> StopReason | None:
        """Return why there is no need to go on, if there is none."""
        settings = self._settings
        if bounds.settled(settings.epsilon, bounds.low) is not None:
            return StopReason.COMPLETE
        limit = settings.max_share if judge else None
        if limit is not None and bounds.decides(limit, self._whole):
            return StopReason.DECIDED
        return None

    @property
    def _is_sampled(self) -> bool:
        """Whether what was found rests on samples."""
        estimate = self._estimate
        return estimate is not None and estimate.has_begun and self._exact.open_size > 0

    def _reason(self) -> StopReason:
        """Return why the run ended."""
        exact, estimate = self._exact, self._estimate
        if exact.stop_reason is StopReason.INTERRUPTED:
            return StopReason.INTERRUPTED
        answer = self._answer(self._bounds() if self._is_sampled else Bounds(*exact.bounds()))
        if answer is not None or not self._is_sampled:
            return answer or exact.stop_reason
        assert estimate is not None
        if self._settings.expired():
            return StopReason.TIMEOUT
        return estimate.reason if estimate.is_over else exact.stop_reason
