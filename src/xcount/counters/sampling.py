"""Counting by sampling alone, and what other counters hand over to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xcount import _core
from xcount.counters.base import Settings, Tally
from xcount.counters.estimation import Bounds, Estimator, Ground
from xcount.errors import BudgetError
from xcount.subproblems import Problem

MAX_CHECKED_PAIRS = 5_000
"""Pairs of masks that are checked one by one before sampling."""


@dataclass(frozen=True, slots=True)
class Rest:
    """What is left to estimate.

    Attributes:
        solved: the sensitive regions of all other masks.
        unresolved: the masks to estimate.
        pairs: the pairs of masks that may differ by more than the gap and touch an unresolved
            mask; None for all neighbours.
        known: bounds of the whole count that hold in any case.
    """

    solved: int
    unresolved: Sequence[int]
    pairs: Sequence[tuple[int, int]] | None
    known: Bounds


def count_by_sampling(problem: Problem, settings: Settings) -> Tally:
    """Estimate the count from random regions alone."""
    return estimate(problem, settings, whole(problem, settings), method="sample")


def whole(problem: Problem, settings: Settings) -> Rest:
    """Return everything as the rest, but for masks that no pair can make sensitive."""
    everything = Bounds(0, problem.n_regions)
    if n_pairs_about(problem) > MAX_CHECKED_PAIRS:
        return Rest(0, range(problem.n_masks), None, everything)
    pairs = list(problem.pairs())
    counter = _core.ExactCounter(problem.forest, problem.masks, problem.threshold_limbs)
    live = counter.live(pairs, settings.n_threads)
    kept = [pair for pair, is_live in zip(pairs, live, strict=True) if is_live]
    return Rest(0, sorted({mask for pair in kept for mask in pair}), kept, everything)


def n_pairs_about(problem: Problem) -> int:
    """Return about how many pairs of masks there are, without listing them."""
    n_masks = problem.n_masks
    if problem.query.distance is None:
        return n_masks * (n_masks - 1) // 2
    if n_masks > MAX_CHECKED_PAIRS:
        return n_masks
    return n_masks * len(problem.masks.neighbours(n_masks // 2)) // 2


def make_sampler(problem: Problem, rest: Rest) -> _core.Sampler:
    """Compile the trees that matter to the rest."""
    masks = np.array(rest.unresolved, dtype=np.int64)
    pairs = None
    # Where pairs abound, windows and extremes decide all masks faster than pair by pair.
    if rest.pairs is not None and len(rest.pairs) <= 4 * len(masks):
        pairs = np.array(rest.pairs, dtype=np.int64).reshape(-1, 2)
    try:
        return _core.Sampler(problem.forest, problem.masks, problem.threshold_limbs, masks, pairs)
    except IndexError as error:  # std::length_error
        raise BudgetError(f"{error}; ask about fewer sensitive features") from None


def make_estimator(problem: Problem, settings: Settings, rest: Rest) -> Estimator | None:
    """Return the estimation of the rest; None when there is nothing to estimate."""
    if len(rest.unresolved) == 0:
        return None
    sampler = make_sampler(problem, rest)
    if sampler.n_trees == 0:
        return None
    undecided = problem.n_combinations * len(rest.unresolved)
    ground = Ground(rest.solved, undecided, rest.known, problem.n_regions)
    return Estimator(sampler, ground, settings)


def estimate(
    problem: Problem,
    settings: Settings,
    rest: Rest,
    *,
    method: str,
    details: Mapping[str, Any] | None = None,
) -> Tally:
    """Estimate the sensitive regions of the unresolved masks and add them to the solved ones."""
    estimator = make_estimator(problem, settings, rest)
    if estimator is None:
        exact = rest.solved
        return Tally(exact, exact, exact, method, details={**(details or {}), "samples": 0})
    return estimator.run(estimator.pilot(), method, details or {})
