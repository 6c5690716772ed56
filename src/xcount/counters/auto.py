"""The default method: exact counting, a visit or sampling, whichever has the answer first.

This module makes the decisions before any work: whether to visit at once, and whether to sample at
once. :mod:`xcount.counters.sampling.policy` lets exact counting and sampling take turns.
``docs/auto.md`` has a map of all decisions.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from xcount.counters.exact import ExactRun, within
from xcount.counters.sampling.count import estimate_everything, estimates_of, is_cheap_to_sample
from xcount.counters.sampling.policy import Scheduler, SuccessiveEstimates, with_grace_period
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason, Tally
from xcount.counters.visit import corner_seconds, pair_scan_seconds, visited
from xcount.counters.worst import no_change_exceeds_gap
from xcount.problem.problem import Problem


def count_automatically(problem: Problem, settings: Settings) -> Tally:
    """Count exactly and estimate, until one of the two has the answer."""
    form, visit_seconds = problem.form, corner_seconds(problem, settings)
    scan, thresholds = pair_scan_seconds(problem), settings.thresholds
    is_quick = visit_seconds <= max(thresholds.instant_seconds, scan)
    # A profile counts pairs, too, if their scan is free. For a gap in probability, pairs only give
    # bounds.
    is_free = scan < thresholds.free_pair_scan_seconds
    wants_pairs = settings.want_profile and is_free and form.corner_question.probability is None
    if is_quick and not wants_pairs and (tally := visited(problem, settings, "auto")) is not None:
        return tally
    if not settings.want_profile and no_change_exceeds_gap(problem, settings):
        return Tally.of_bounds(0, 0, "auto", details={"n_masks": problem.n_masks})
    if form.n_terms > form.max_auto_terms or is_cheap_to_sample(problem, settings):
        is_short = visit_seconds <= thresholds.visit_seconds
        tally = visited(problem, settings, "auto") if is_short else None
        return _sampled(problem, settings) if tally is None else tally
    return _Count(problem, settings, visit_seconds).run()


def _sampled(problem: Problem, settings: Settings) -> Tally:
    return estimate_everything(problem, with_grace_period(settings), "auto")


class _Count(Scheduler[Tally]):
    """Exact counting and estimates of the undecided part, in turns."""

    def __init__(self, problem: Problem, settings: Settings, visit_seconds: float) -> None:
        run, spent = ExactRun(problem, settings.within(0.5)), pair_scan_seconds(problem)
        super().__init__(
            run, settings, whole=problem.n_regions, visit_seconds=visit_seconds, spent=spent
        )
        self._problem, self._counted = problem, run

    def _run(self) -> Tally:
        started = time.monotonic()
        self._counted.solve(())
        self._exact_seconds = time.monotonic() - started
        if self._counted.stop_reason is StopReason.INTERRUPTED:
            return self._found()
        if self._counted.decomposition is None:
            self._settings.cuts.exact |= self._counted.stop_reason is StopReason.TIMEOUT
            return _sampled(self._problem, self._settings)
        return super()._run()

    @property
    def _free_seconds(self) -> float:
        is_wanted = self._settings.want_profile  # which only exact counting completes
        return self._thresholds.free_exact_seconds if is_wanted else super()._free_seconds

    def _make_estimates(self) -> SuccessiveEstimates:
        return estimates_of(self._counted, self._settings)

    def _visited(self) -> Tally | None:
        tally = visited(self._problem, self._settings, "auto")
        return None if tally is None else within(tally, self._counted)

    def _found(self) -> Tally:
        """Return the tally of exact counting, narrowed by the bounds of estimates, if any."""
        reason, details = self._reason(), self._details()
        if (sampled := self._sampled()) is not None:
            return sampled.tally("auto", reason, details)
        tally = replace(self._counted.tally("auto"), stop_reason=reason, details=details)
        bounds = self._counted.bounds()
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
