"""The default: exact as far as that is cheap, an estimate with a certificate for the rest.

Exact counting runs in rounds with growing budgets. Before a round that may be dear, a few samples
tell what an estimate of the open masks would cost; the round runs only if it cannot cost more.
Cost is counted in steps and samples, not in seconds, so the answer does not depend on the machine
(unless a time limit cuts it short: exact counting leaves half of the time to sampling).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from xcount.counters.bounds import Bounds
from xcount.counters.corners import corner_seconds, visited
from xcount.counters.exact import FREE_LOOKING_SECONDS, ExactRun, looking_seconds, within
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason, Tally
from xcount.problem.problem import Problem

if TYPE_CHECKING:
    from xcount.counters.sampling.estimation import Estimation

BUDGETS = (200_000, 3_000_000, 30_000_000, 200_000_000, 2_000_000_000)
"""Steps a task, round by round."""

FREE_BUDGET, FREE_SECONDS = 3_000_000, 3.0
"""Rounds up to this budget run without asking what sampling costs, if they cannot take longer than
this in the worst case; most take a small part of it."""

INSTANT_SECONDS = 0.02
"""Up to here, all regions are visited without a look at anything else."""
CORNER_SECONDS = 2.0
"""Up to here, all regions are visited rather than sampled; a second on two cores."""


def count_automatically(problem: Problem, settings: Settings) -> Tally:
    """Count what is cheap to count exactly, estimate the rest."""
    form, corner = problem.form, corner_seconds(problem, settings)
    looking = looking_seconds(problem)
    is_quick = corner <= max(INSTANT_SECONDS, looking)
    # A profile tells pairs apart, too, where that takes no time to speak of.
    wants_pairs = settings.want_profile and looking < FREE_LOOKING_SECONDS
    if is_quick and not wants_pairs and (tally := visited(problem, settings, "auto")) is not None:
        return tally
    if form.n_terms > form.max_auto_terms or _is_cheap_to_sample(problem, settings):
        tally = visited(problem, settings, "auto") if corner <= CORNER_SECONDS else None
        return _estimate_everything(problem, settings) if tally is None else tally
    return _Auto(problem, settings, corner).run()


def _is_cheap_to_sample(problem: Problem, settings: Settings) -> bool:
    """Tell whether looking at the pairs of masks would cost more than an estimate of everything."""
    if looking_seconds(problem) < FREE_LOOKING_SECONDS:
        return False
    from xcount.counters.sampling.counter import is_cheap

    return is_cheap(problem, settings)


def _estimate_everything(problem: Problem, settings: Settings) -> Tally:
    from xcount.counters.sampling.estimation import estimate
    from xcount.counters.sampling.rest import Rest

    return estimate(problem, settings, Rest.everything(problem), method="auto")


class _Auto:
    """Exact rounds, then an estimate of what they left open."""

    def __init__(self, problem: Problem, settings: Settings, corner: float) -> None:
        self._problem = problem
        self._settings = settings
        self._corner = corner
        self._exact = ExactRun(problem, settings.within(0.5))

    def run(self) -> Tally:
        """Run to the end, whatever ends it."""
        try:
            return self._run()
        except KeyboardInterrupt:  # between the exact rounds, which answer it themselves
            self._exact.stop_reason = StopReason.INTERRUPTED
            return self._tally()

    def _run(self) -> Tally:
        self._exact.solve(())
        is_open = self._exact.decomposition is None
        if is_open and self._exact.stop_reason is not StopReason.INTERRUPTED:
            return _estimate_everything(self._problem, self._settings)
        for budget in BUDGETS:
            # Cheap rounds run even where the limit of a verdict is decided: a number says more.
            if self._is_over(judge=budget > FREE_BUDGET):
                break
            # Only the first rounds tell a profile's pairs apart.
            needs_pairs = self._settings.want_profile and budget <= FREE_BUDGET
            is_cheaper = self._corner <= self._exact.cost_of(budget) and not needs_pairs
            if is_cheaper and (tally := self._visit()) is not None:
                return tally
            if not self._is_worth(budget):
                break
            self._exact.solve((budget,))
        if self._is_over():
            return self._tally()
        if self._corner <= CORNER_SECONDS and (tally := self._visit()) is not None:
            return tally
        estimation = self._estimation()
        if not estimation.is_needed:
            return self._tally()
        return estimation.run("auto", self._details())

    def _estimation(self) -> Estimation:
        """Return an estimation of what the exact rounds left open."""
        from xcount.counters.sampling.estimation import Estimation
        from xcount.counters.sampling.rest import Rest

        return Estimation(self._problem, self._settings, Rest.of(self._exact))

    def _is_over(self, *, judge: bool = True) -> bool:
        """Tell whether the exact part has answered, or must not go on.

        With ``judge``, a verdict is an answer, too.
        """
        exact, settings = self._exact, self._settings
        if exact.stop_reason in (StopReason.COMPLETE, StopReason.INTERRUPTED):
            return True
        bounds = Bounds(*exact.bounds())
        limit = settings.max_share if judge else None
        if limit is not None and bounds.decides(limit, self._problem.n_regions):
            return True
        return bounds.settled(settings.epsilon, bounds.low) is not None

    def _visit(self) -> Tally | None:
        """Visit all regions: that is cheaper than to go on; None where it is not, and never is."""
        tally = visited(self._problem, self._settings, "auto")
        self._corner = math.inf
        return None if tally is None else within(tally, self._exact)

    def _is_worth(self, budget: int) -> bool:
        """Tell whether a round with this budget cannot cost more than sampling."""
        if self._exact.stop_reason is StopReason.TIMEOUT:
            return False
        cost = self._exact.cost_of(budget)
        if budget <= FREE_BUDGET and cost <= FREE_SECONDS:
            return True
        estimation = self._estimation()
        return not estimation.is_needed or cost <= estimation.price(worth=cost)

    def _tally(self) -> Tally:
        """Return what the exact rounds found: exact, or bounds that are close enough."""
        tally = self._exact.tally("auto")
        tally = replace(tally, details=self._details())
        bounds = Bounds(tally.low, tally.high)
        count = bounds.settled(self._settings.epsilon, tally.count)
        if count is None or tally.stop_reason is StopReason.INTERRUPTED:
            return tally
        return replace(tally, count=count, stop_reason=StopReason.COMPLETE)

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
