"""The default: exact counting and sampling side by side, whichever is done first.

Exact counting begins, since most questions are answered before a first sample would be drawn. From
then on a few samples tell what an estimate of the open masks costs. Exact counting goes on alone
until it has cost as much; then the estimate begins and both go on in turns, always the one that has
cost less, until one of them has the answer. So the answer costs about twice the cheaper one's work
at most. Cost is counted in steps and samples, not in seconds, hence the answer does not depend on
the machine (unless a time limit cuts it short: exact counting leaves half of the time to sampling).
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from xcount.counters.bounds import Bounds
from xcount.counters.corners import corner_seconds, visited
from xcount.counters.exact import FREE_LOOKING_SECONDS, ExactRun, looking_seconds, within
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason, Tally
from xcount.problem.problem import Problem

if TYPE_CHECKING:
    from xcount.counters.sampling.rest_estimate import RestEstimate

BUDGETS = (10_000, 200_000, 3_000_000, 40_000_000, 500_000_000, 5_000_000_000, 2**62)
"""Steps a subproblem, round by round."""

FREE_SECONDS = 0.1
"""What exact counting may cost before anybody asks what sampling costs: an exact answer is worth
that much."""
ALONE_SECONDS = 0.5
"""What exact counting may cost before an estimate begins that seems to cost more."""
LAST_SECONDS = 60.0
"""What exact counting may cost where samples lead nowhere and there is no limit of time."""

INSTANT_SECONDS = 0.02
"""Up to here, all regions are visited without a look at anything else."""
LATE_PART, LATE_SECONDS = 0.2, 0.2
"""Samples get this part of the limit, and no longer than that, even where the limit came before the
first: some bounds are worth more than none in time."""
CORNER_SECONDS = 2.0
"""Up to here, all regions are visited rather than sampled: a second on two cores."""


def count_automatically(problem: Problem, settings: Settings) -> Tally:
    """Count exactly and estimate, until one of the two has the answer."""
    form, corner = problem.form, corner_seconds(problem, settings)
    looking = looking_seconds(problem)
    is_quick = corner <= max(INSTANT_SECONDS, looking)
    # A profile tells pairs apart, too, where that takes no time to speak of.
    wants_pairs = settings.want_profile and looking < FREE_LOOKING_SECONDS
    # Pairs only bound a gap in probability.
    wants_pairs = wants_pairs and form.corner_question.probability is None
    if is_quick and not wants_pairs and (tally := visited(problem, settings, "auto")) is not None:
        return tally
    if form.n_terms > form.max_auto_terms or _is_cheap_to_sample(problem, settings):
        tally = visited(problem, settings, "auto") if corner <= CORNER_SECONDS else None
        return _estimate_everything(problem, settings) if tally is None else tally
    return _SideBySide(problem, settings, corner).run()


def _is_cheap_to_sample(problem: Problem, settings: Settings) -> bool:
    """Tell whether looking at the pairs of masks would cost more than an estimate of everything."""
    if looking_seconds(problem) < FREE_LOOKING_SECONDS:
        return False
    from xcount.counters.sampling.counter import is_cheap

    return is_cheap(problem, settings)


def _estimate_everything(problem: Problem, settings: Settings) -> Tally:
    from xcount.counters.sampling.estimation import estimate
    from xcount.counters.sampling.rest import Rest

    return estimate(problem, _not_late(settings), Rest.everything(problem), method="auto")


def _not_late(settings: Settings) -> Settings:
    """Return settings with time for a few samples."""
    limit = settings.timeout_seconds
    if limit is None:
        return settings
    return settings.within(1.0, least=min(LATE_SECONDS, LATE_PART * limit))


class _SideBySide:
    """Exact counting, and estimates of what it leaves open, in turns."""

    def __init__(self, problem: Problem, settings: Settings, corner: float) -> None:
        self._problem = problem
        self._settings = settings
        self._corner = corner
        self._exact = ExactRun(problem, settings.within(0.5))
        self._slices = self._exact.slices(BUDGETS)
        self._exact_work = looking_seconds(problem)
        self._exact_seconds = 0.0  # on the clock: only a limit of time asks for it
        self._can_count = True  # exactly, as far as is known
        self._estimate: RestEstimate | None = None

    def run(self) -> Tally:
        """Run to the end, whatever ends it."""
        try:
            return self._run()
        except KeyboardInterrupt:
            self._exact.end(StopReason.INTERRUPTED)
            return self._tally()
        finally:
            if self._estimate is not None:
                self._estimate.close()

    def _run(self) -> Tally:
        began = time.monotonic()
        self._exact.solve(())
        self._exact_seconds = time.monotonic() - began
        if self._exact.stop_reason is StopReason.INTERRUPTED:
            return self._tally()
        if self._exact.decomposition is None:
            return _estimate_everything(self._problem, self._settings)
        tally = self._count_alone()
        if tally is not None:
            return tally
        self._take_turns()
        return self._tally()

    def _count_alone(self) -> Tally | None:
        """Count exactly until that has cost as much as an estimate would; visit where cheaper."""
        enough = FREE_SECONDS if self._settings.want_profile else min(FREE_SECONDS, self._corner)
        self._count_until(enough)
        # Cheap slices run even where the limit of a verdict is decided: a number says more.
        if self._is_over(judge=False):
            return self._tally()
        while not self._is_over():
            worth = self._exact_work
            if self._corner <= worth and (tally := self._visit()) is not None:
                return tally
            price = self._sampling.price(worth)
            if price <= worth or worth >= ALONE_SECONDS or not self._can_count or self._is_late():
                return self._visit() if self._corner <= CORNER_SECONDS else None
            self._count_until(min(price, 2 * worth))
        return self._tally()

    @property
    def _sampling(self) -> RestEstimate:
        if self._estimate is None:
            from xcount.counters.sampling.rest_estimate import RestEstimate

            self._estimate = RestEstimate(self._exact, self._settings)
        return self._estimate

    def _is_turn_of_estimate(self) -> bool:
        """Tell whether sampling has cost less than exact counting, or is alone."""
        sampling = self._sampling
        return not sampling.is_over and (
            not sampling.has_begun or not self._can_count or sampling.work <= self._exact_work
        )

    def _take_turns(self) -> None:
        """Go on with whichever has cost less, until one of them has the answer."""
        sampling = self._sampling
        if self._settings.expired() and not sampling.has_begun:
            self._settings, self._can_count = _not_late(self._settings), False
            sampling.limit(self._settings)
        while not self._settings.expired():
            if self._is_turn_of_estimate():
                sampling.advance()
                if sampling.has_answer:
                    return
            elif self._can_count and self._exact_work < self._most_work:
                self._count_until(
                    max(sampling.work, 2 * self._exact_work if sampling.is_over else 0)
                )
                sampling.renew()
                if self._is_over():
                    return
            else:
                return

    @property
    def _most_work(self) -> float:
        """What exact counting may cost: there is an end, even without a limit of time."""
        endless = self._sampling.is_over and self._settings.timeout_seconds is None
        return LAST_SECONDS if endless else math.inf

    def _count_until(self, work: float) -> None:
        """Count exactly until that has cost so much, or taken half of the time altogether."""
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
        if limit is not None and bounds.decides(limit, self._problem.n_regions):
            return StopReason.DECIDED
        return None

    def _visit(self) -> Tally | None:
        """Visit all regions: that is cheaper than to go on; None where it is not, and never is."""
        tally = visited(self._problem, self._settings, "auto")
        self._corner = math.inf
        return None if tally is None else within(tally, self._exact)

    def _tally(self) -> Tally:
        """Return what was found: by exact counting alone, or with the bounds of estimates."""
        exact, estimate = self._exact, self._estimate
        was_interrupted = exact.stop_reason is StopReason.INTERRUPTED
        if estimate is None or not estimate.has_begun or exact.is_exact():
            bounds = Bounds(*exact.bounds())
            tally = replace(exact.tally("auto"), details=self._details())
            answer = self._answer(bounds)
            if answer is None or was_interrupted:
                return tally
            count = bounds.settled(self._settings.epsilon)
            return replace(tally, count=count, stop_reason=answer)
        reason = self._answer(estimate.bounds())
        if was_interrupted:
            reason = StopReason.INTERRUPTED
        elif reason is None and self._settings.expired():
            reason = StopReason.TIMEOUT
        elif reason is None:
            reason = estimate.reason if estimate.is_over else exact.stop_reason
        return estimate.tally("auto", reason, self._details())

    def _details(self) -> dict[str, Any]:
        is_open = set(self._exact.unsolved_masks())
        bounds = zip(self._exact.masks, self._exact.all_mask_bounds(), strict=True)
        n_masks = self._problem.n_masks
        return {
            "n_steps": self._exact.n_steps,
            "n_masks": n_masks,
            "masks_solved": n_masks - len(is_open),
            "count_solved": sum(low for mask, (low, _) in bounds if mask not in is_open),
        }
