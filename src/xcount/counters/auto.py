"""The default: exact counting and sampling side by side, whichever is done first.

How they take turns is in :mod:`xcount.counters.side_by_side`; here is what is instant, and what is
sampled at once.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from xcount.counters.bounds import Bounds
from xcount.counters.exact import FREE_PAIR_SCAN_SECONDS, ExactRun, pair_scan_seconds, within
from xcount.counters.settings import Settings
from xcount.counters.side_by_side import (
    CORNER_SECONDS,
    FREE_SECONDS,
    INSTANT_SECONDS,
    SideBySide,
    with_grace_period,
)
from xcount.counters.tally import StopReason, Tally
from xcount.counters.visit import corner_seconds, visited
from xcount.problem.problem import Problem

if TYPE_CHECKING:
    from xcount.counters.sampling.rest_estimate import RestEstimate


def count_automatically(problem: Problem, settings: Settings) -> Tally:
    """Count exactly and estimate, until one of the two has the answer."""
    form, corner = problem.form, corner_seconds(problem, settings)
    looking = pair_scan_seconds(problem)
    is_quick = corner <= max(INSTANT_SECONDS, looking)
    # A profile tells pairs apart, too, where that takes no time to speak of.
    wants_pairs = settings.want_profile and looking < FREE_PAIR_SCAN_SECONDS
    # Pairs only bound a gap in probability.
    wants_pairs = wants_pairs and form.corner_question.probability is None
    if is_quick and not wants_pairs and (tally := visited(problem, settings, "auto")) is not None:
        return tally
    if form.n_terms > form.max_auto_terms or _is_cheap_to_sample(problem, settings):
        tally = visited(problem, settings, "auto") if corner <= CORNER_SECONDS else None
        return _estimate_everything(problem, settings) if tally is None else tally
    return _Count(problem, settings, corner).run()


def _is_cheap_to_sample(problem: Problem, settings: Settings) -> bool:
    """Tell whether looking at the pairs of masks would cost more than an estimate of everything."""
    if pair_scan_seconds(problem) < FREE_PAIR_SCAN_SECONDS:
        return False
    from xcount.counters.sampling.counter import is_cheap

    return is_cheap(problem, settings)


def _estimate_everything(problem: Problem, settings: Settings) -> Tally:
    from xcount.counters.sampling.estimation import estimate
    from xcount.counters.sampling.rest import Rest

    return estimate(problem, with_grace_period(settings), Rest.everything(problem), method="auto")


class _Count(SideBySide[Tally]):
    """Exact counting, and estimates of what it leaves open, in turns."""

    def __init__(self, problem: Problem, settings: Settings, corner: float) -> None:
        run = ExactRun(problem, settings.within(0.5))
        worked = pair_scan_seconds(problem)
        super().__init__(run, settings, whole=problem.n_regions, corner=corner, worked=worked)
        self._problem, self._counted = problem, run

    def _run(self) -> Tally:
        began = time.monotonic()
        self._counted.solve(())
        self._exact_seconds = time.monotonic() - began
        if self._counted.stop_reason is StopReason.INTERRUPTED:
            return self._found()
        if self._counted.decomposition is None:
            return _estimate_everything(self._problem, self._settings)
        return super()._run()

    @property
    def _free_seconds(self) -> float:
        return FREE_SECONDS if self._settings.want_profile else super()._free_seconds

    def _made_estimate(self) -> RestEstimate:
        from xcount.counters.sampling.rest_estimate import RestEstimate

        return RestEstimate.of_run(self._counted, self._settings)

    def _visited(self) -> Tally | None:
        tally = visited(self._problem, self._settings, "auto")
        return None if tally is None else within(tally, self._counted)

    def _found(self) -> Tally:
        """Return what was found: by exact counting alone, or with the bounds of estimates."""
        reason, details = self._reason(), self._details()
        if self._is_sampled:
            assert self._estimate is not None
            return self._estimate.tally("auto", reason, details)
        tally = replace(self._counted.tally("auto"), stop_reason=reason, details=details)
        bounds = Bounds(*self._counted.bounds())
        if reason is StopReason.INTERRUPTED or self._answer(bounds) is None:
            return tally
        return replace(tally, count=bounds.settled(self._settings.epsilon))

    def _details(self) -> dict[str, Any]:
        run, n_masks = self._counted, self._problem.n_masks
        is_open = set(run.unsolved_masks())
        bounds = zip(run.masks, run.all_mask_bounds(), strict=True)
        return {
            "n_steps": run.n_steps,
            "n_masks": n_masks,
            "masks_solved": n_masks - len(is_open),
            "count_solved": sum(low for mask, (low, _) in bounds if mask not in is_open),
        }
