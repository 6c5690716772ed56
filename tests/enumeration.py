"""Counting by visiting every region and comparing it with all its neighbours: the oracle.

The obvious way, kept for the tests: the package's own enumeration is by corner sums.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.counters.decisions import RegionDecider
from xcount.counters.profile import profile_of
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress, StopReason, Tally
from xcount.errors import BudgetError
from xcount.problem.problem import Problem
from xcount.support.numerals import scientific_text

MAX_EVALUATIONS = 20_000_000_000
"""Tree evaluations that enumeration accepts: minutes, not hours, on one core."""
MAX_PAIRS = 20_000_000
"""Pairs of masks that enumeration lists."""
MAX_REGIONS = 50_000_000
"""Regions that enumeration accepts where they are decided by evaluation."""

_SLICE_EVALUATIONS = 4_000_000
_BLOCK = 65_536

Counts = NDArray[np.uint64]


def count_by_enumeration(problem: Problem, settings: Settings) -> Tally:
    """Visit every region and compare it with all its neighbours."""
    counts: Counts = np.zeros(problem.n_masks, dtype=np.uint64)
    done, reason = 0, StopReason.COMPLETE
    try:
        visits = _visits(problem, settings)
        while done < problem.n_combinations:
            if settings.expired():
                reason = StopReason.TIMEOUT
                break
            n, found = next(visits)
            counts += found
            done += n
            low, high = _bounds(problem, counts, done)
            fraction = done / problem.n_combinations
            settings.report(Progress(fraction, low, high, "regions visited"))
    except KeyboardInterrupt:
        reason = StopReason.INTERRUPTED
    low, high = _bounds(problem, counts, done)
    profile = None
    if settings.want_profile:
        left = problem.n_combinations - done
        profile = profile_of(problem, [(int(count), int(count) + left) for count in counts])
    return Tally.of_bounds(low, high, "brute", reason, profile=profile)


def _bounds(problem: Problem, counts: Counts, done: int) -> tuple[int, int]:
    low = int(counts.sum(dtype=object))
    return low, low + (problem.n_combinations - done) * problem.n_masks


def _visits(problem: Problem, settings: Settings) -> Iterator[tuple[int, Counts]]:
    """Yield how many combinations were visited, and how many of them make each mask sensitive."""
    if problem.form.native_draws() is None:
        return _visits_by_decision(problem)
    return _visits_by_brute_force(problem, settings)


def _visits_by_decision(problem: Problem) -> Iterator[tuple[int, Counts]]:
    if problem.n_regions > MAX_REGIONS:
        raise BudgetError(
            f"enumeration would decide {scientific_text(problem.n_regions)} regions, more than "
            f"{MAX_REGIONS:,}; use --method auto or exact"
        )
    decider = RegionDecider(problem)
    for block in combinations(problem, min(decider.block, _BLOCK)):
        yield len(block), decider.decide(block).sum(axis=0, dtype=np.uint64)


def _visits_by_brute_force(problem: Problem, settings: Settings) -> Iterator[tuple[int, Counts]]:
    n_trees, n_pairs = max(1, problem.form.n_trees), problem.n_pairs_about
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
    space = problem.space
    brute = _core.BruteForce(space.forest, space.masks, space.threshold_limbs)
    step = max(1, _SLICE_EVALUATIONS * settings.n_threads // (problem.n_masks * n_trees + n_pairs))
    for first in range(0, brute.n_combinations, step):
        end = min(first + step, brute.n_combinations)
        yield end - first, brute.count(first, end, settings.n_threads)


def combinations(problem: Problem, size: int) -> Iterator[NDArray[np.int32]]:
    """Yield all combinations of non-sensitive cells in blocks; sensitive cells are 0."""
    sensitive = set(problem.query.sensitive)
    counts = [1 if f in sensitive else n for f, n in enumerate(problem.grid.cell_counts)]
    every = itertools.product(*(range(n) for n in counts))
    while block := list(itertools.islice(every, size)):
        yield np.array(block, dtype=np.int32).reshape(len(block), len(counts))
