"""Counting by enumeration: the oracle of all other counters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.counters.base import Progress, Settings
from xcount.counters.tally import MaskCount, Profile, StopReason, Tally
from xcount.errors import BudgetError
from xcount.problem.problem import Problem
from xcount.support.numerals import scientific_text

MAX_EVALUATIONS = 20_000_000_000
"""Tree evaluations that enumeration accepts: minutes, not hours, on one core."""
MAX_PAIRS = 20_000_000
"""Pairs of masks that enumeration lists."""

_SLICE_EVALUATIONS = 4_000_000


def count_by_enumeration(problem: Problem, settings: Settings) -> Tally:
    """Visit every region and compare it with all its neighbours."""
    n_trees, n_pairs = max(1, len(problem.trees)), problem.n_pairs_about
    if problem.n_regions * n_trees > MAX_EVALUATIONS:
        raise BudgetError(
            f"enumeration would evaluate {scientific_text(problem.n_regions)} regions "
            f"x {n_trees} trees, more than {MAX_EVALUATIONS:.0e}; use --method auto or exact"
        )
    if n_pairs > MAX_PAIRS or problem.n_combinations * n_pairs > MAX_EVALUATIONS:
        raise BudgetError(
            f"enumeration would compare {scientific_text(n_pairs)} pairs of masks, each "
            f"{scientific_text(problem.n_combinations)} times; use --method auto or exact"
        )
    brute = _core.BruteForce(problem.forest, problem.masks, problem.threshold_limbs)
    counts: NDArray[np.uint64] = np.zeros(problem.n_masks, dtype=np.uint64)
    work = problem.n_masks * n_trees + n_pairs
    step = max(1, _SLICE_EVALUATIONS * settings.n_threads // work)
    done, stop_reason = 0, StopReason.COMPLETE
    try:
        while done < brute.n_combinations:
            if settings.expired():
                stop_reason = StopReason.TIMEOUT
                break
            counts += brute.count(done, done + step, settings.n_threads)
            done = min(done + step, brute.n_combinations)
            _report(problem, settings, counts, done)
    except KeyboardInterrupt:
        stop_reason = StopReason.INTERRUPTED
    low = int(counts.sum(dtype=object))
    unvisited = problem.n_combinations - done
    high = low + unvisited * problem.n_masks
    profile = _profile(problem, counts, unvisited) if settings.want_profile else None
    return Tally((low + high) // 2, low, high, "brute", stop_reason, profile=profile)


def _report(problem: Problem, settings: Settings, counts: NDArray[np.uint64], done: int) -> None:
    low = int(counts.sum(dtype=object))
    high = low + (problem.n_combinations - done) * problem.n_masks
    settings.report(Progress(done / problem.n_combinations, low, high, "regions visited"))


def _profile(problem: Problem, counts: NDArray[np.uint64], unvisited: int) -> Profile:
    rows = []
    for mask in range(problem.n_masks):
        cells = tuple(problem.masks.cells(mask))
        low = int(counts[mask])
        rows.append(
            MaskCount(cells, problem.describe(cells), low, low + unvisited, problem.n_combinations)
        )
    return Profile(tuple(rows))
