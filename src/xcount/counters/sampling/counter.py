"""Counting by sampling alone."""

from __future__ import annotations

from dataclasses import replace

from xcount.counters.exact import FREE_PAIR_SCAN_SECONDS, ExactRun, pair_scan_seconds
from xcount.counters.sampling.estimation import Estimation, estimate
from xcount.counters.sampling.rest import Rest
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason, Tally
from xcount.counters.visit import visited
from xcount.problem.problem import Problem

MAX_VISITED = 50_000_000
"""Regions up to which all are visited where samples alone find nothing."""
_PAIR_SCAN_PART = 0.2
"""Part of the time that looking at pairs may take."""
MAX_CHECKED_TERMS = 5_000
"""Terms up to which bounds are asked before sampling which masks can be sensitive at all."""


def count_by_sampling(problem: Problem, settings: Settings) -> Tally:
    """Estimate the count from random regions alone."""
    tally = estimate(problem, settings, whole(problem, settings), method="sample")
    if tally.stop_reason is StopReason.STEPS and problem.n_regions <= MAX_VISITED:
        # Nothing was hit in more samples than there are regions: visiting them is cheaper.
        return visited(problem, settings, "sample") or tally
    return tally


def whole(problem: Problem, settings: Settings) -> Rest:
    """Return everything as the rest, but for masks that bounds show to be never sensitive."""
    if problem.form.n_terms > MAX_CHECKED_TERMS or is_cheap(problem, settings):
        return Rest.everything(problem)
    run = ExactRun(problem, settings.within(_PAIR_SCAN_PART))
    run.solve(())
    if run.stop_reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    return replace(Rest.of(run), known=Rest.everything(problem).known)


def is_cheap(problem: Problem, settings: Settings) -> bool:
    """Tell whether to sample at once, since looking at the pairs of masks would cost more."""
    looking = pair_scan_seconds(problem)
    if looking < FREE_PAIR_SCAN_SECONDS:
        return False
    estimation = Estimation(problem, settings, Rest.everything(problem))
    return estimation.is_needed and estimation.price(worth=looking) < looking
