"""Counting flips: exactly through the switch (see :mod:`xcount.problem.flip_encoding`), or from random regions.

All trees take part in a decision, where a gap's pairs cancel most of them: exact counting reaches
less far. What its budget leaves open is estimated, with the same certificate as any estimate.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from xcount.cluster.spread import Tuning, make_solver
from xcount.counters.base import Counter, Progress, Settings
from xcount.counters.known_counts import KnownCounts
from xcount.counters.sampling.decisions import RegionDecider
from xcount.counters.sampling.draws import RegionDraws, region_draws
from xcount.counters.sampling.estimator import Bounds, Estimator, Ground
from xcount.counters.tally import MaskCount, Profile, StopReason, Tally
from xcount.errors import BudgetError, QueryError
from xcount.problem.flip_encoding import FlipEncoding
from xcount.problem.problem import Problem, Subproblem
from xcount.support.numerals import scientific_text

Neighbourhood = tuple[int, ...]
"""A mask and its neighbours, ascending."""

MAX_TERMS = 200_000
"""Functions of all neighbourhoods together beyond which exact counting is not tried."""
BUDGETS = (100_000, 2_000_000, 30_000_000, 500_000_000, 2**62)
AUTO_BUDGETS = BUDGETS[:3]
MAX_REGIONS = 50_000_000
"""Regions that enumeration accepts."""


def flip_counter(method: str) -> Counter:
    """Return the counter of flips of that name."""
    known: dict[str, Counter] = {
        "auto": count_flips,
        "exact": count_flips_exactly,
        "sample": sample_flips,
        "brute": enumerate_flips,
    }
    if method not in known:
        raise QueryError(f"method {method!r} counts no flips; methods are {', '.join(known)}")
    return known[method]


def count_flips(problem: Problem, settings: Settings) -> Tally:
    """Count what is cheap to count exactly, estimate the rest."""
    run = FlipRun(problem, settings)
    if run.n_terms > MAX_TERMS:
        return sample_flips(problem, settings, method="auto")
    for budget in AUTO_BUDGETS:
        if run.solve(budget) or run.stop_reason is not StopReason.COMPLETE:
            break
        if run.estimator().pilot().mean > 0:
            break
    if run.is_exact() or run.stop_reason is StopReason.INTERRUPTED:
        return run.tally("auto")
    estimator = run.estimator()
    return estimator.run(estimator.pilot(), "auto", {"n_steps": run.n_steps})


def count_flips_exactly(problem: Problem, settings: Settings) -> Tally:
    """Count every mask exactly, or bound what a limit leaves open."""
    run = FlipRun(problem, settings)
    if run.n_terms > MAX_TERMS:
        raise BudgetError(
            f"exact counting of flips would take {run.n_terms:,} terms, more than {MAX_TERMS:,}; "
            "use --method auto or sample"
        )
    for budget in BUDGETS:
        if run.solve(budget) or run.stop_reason is not StopReason.COMPLETE:
            break
    return run.tally("exact")


def sample_flips(problem: Problem, settings: Settings, method: str = "sample") -> Tally:
    """Estimate from random regions alone."""
    estimator = FlipRun(problem, settings).estimator()
    return estimator.run(estimator.pilot(), method, {})


def enumerate_flips(problem: Problem, settings: Settings) -> Tally:
    """Decide every region."""
    if problem.n_regions > MAX_REGIONS:
        raise BudgetError(
            f"enumeration would decide {scientific_text(problem.n_regions)} regions, more than "
            f"{MAX_REGIONS:,}; use --method auto or exact"
        )
    decider = RegionDecider(problem)
    counts: NDArray[np.int64] = np.zeros(problem.n_masks, dtype=np.int64)
    done, reason = 0, StopReason.COMPLETE
    try:
        for block in combinations(problem, min(decider.block, 65_536)):
            if settings.expired():
                reason = StopReason.TIMEOUT
                break
            counts += decider.decide(block).sum(axis=0)
            done += len(block)
            low, high = _enumerated(problem, counts, done)
            fraction = done / problem.n_combinations
            settings.report(Progress(fraction, low, high, "regions visited"))
    except KeyboardInterrupt:
        reason = StopReason.INTERRUPTED
    low, high = _enumerated(problem, counts, done)
    left = problem.n_combinations - done
    bounds = [(int(count), int(count) + left) for count in counts]
    profile = _profile(problem, bounds) if settings.want_profile else None
    return Tally((low + high) // 2, low, high, "brute", reason, profile=profile)


def combinations(problem: Problem, size: int) -> Iterator[NDArray[np.int32]]:
    """Yield all combinations of non-sensitive cells in blocks; sensitive cells are 0."""
    sensitive = set(problem.query.sensitive)
    counts = [1 if f in sensitive else n for f, n in enumerate(problem.grid.cell_counts)]
    every = itertools.product(*(range(n) for n in counts))
    while block := list(itertools.islice(every, size)):
        yield np.array(block, dtype=np.int32).reshape(len(block), len(counts))


def _enumerated(problem: Problem, counts: NDArray[np.int64], done: int) -> tuple[int, int]:
    low = int(counts.sum())
    return low, low + (problem.n_combinations - done) * problem.n_masks


@dataclass(eq=False)
class FlipRun:
    """The state of an exact count of flips: per neighbourhood and decision, what is known."""

    problem: Problem
    settings: Settings
    stop_reason: StopReason = StopReason.COMPLETE

    def __post_init__(self) -> None:
        self._whole = self.problem.n_combinations
        self._encoding = FlipEncoding.of(self.problem)
        problem, again = self._encoding.problem, partial(_encoded, self.problem)
        self._solver = make_solver(problem, self.settings, again)
        # By neighbourhood and decision: for how many x it is taken all over the neighbourhood.
        self._steady: KnownCounts[tuple[int, int]] = KnownCounts(
            self._solver, problem.n_masks, self._whole, self.settings, Tuning()
        )
        self._decider: RegionDecider | None = None
        self._neighbourhoods: list[Neighbourhood] = []
        self._neighbourhood_of: list[int] = []  # of each mask; empty until something was tried

    @property
    def n_steps(self) -> int:
        return self._steady.n_steps

    @property
    def n_terms(self) -> int:
        """How many functions the subproblems have together, about."""
        n_masks, n_functions = self.problem.n_masks, self._encoding.n_switch - 1
        if self.problem.distance is None:
            return n_masks * n_functions
        if n_masks > MAX_TERMS:
            return n_masks
        return n_masks * (len(self.problem.masks.neighbours(n_masks // 2)) + 1) * n_functions

    def solve(self, budget: int) -> bool:
        """Try what is open with that many steps each; return whether nothing is left open."""
        if self.stop_reason is not StopReason.COMPLETE:
            return False
        try:
            self._steady.solve(self._open_tasks(), budget, self._total)
        except KeyboardInterrupt:
            self._solver.cancel()
            self.stop_reason = StopReason.INTERRUPTED
        is_exact = self.is_exact()
        if not is_exact and self.stop_reason is StopReason.COMPLETE and self.settings.expired():
            self.stop_reason = StopReason.TIMEOUT
        return is_exact

    def _open_tasks(self) -> dict[tuple[int, int], Subproblem]:
        if not self._neighbourhood_of:
            self._find_neighbourhoods()
        tasks = {}
        for number, around in enumerate(self._neighbourhoods):
            low, high = self._bounds_around(number)
            for decision in range(len(self._encoding.decisions)) if low != high else ():
                least, most = self._steady[number, decision]
                if least != most:
                    pairs = self._encoding.pairs(decision, around)
                    tasks[number, decision] = Subproblem(pairs, all_pairs=True)
        return tasks

    def _find_neighbourhoods(self) -> None:
        """List the neighbourhoods, each once, and which is whose."""
        masks = range(self.problem.n_masks)
        if self.problem.distance is None:
            self._neighbourhoods, self._neighbourhood_of = [tuple(masks)], [0] * len(masks)
            return
        near = self.problem.masks.neighbours
        numbers: dict[Neighbourhood, int] = {}
        each = (tuple(sorted([mask, *near(mask)])) for mask in masks)
        self._neighbourhood_of = [numbers.setdefault(around, len(numbers)) for around in each]
        self._neighbourhoods = list(numbers)

    def mask_bounds(self, mask: int) -> tuple[int, int]:
        """Return bounds of the flips of one mask: equal when they are known."""
        if not self._neighbourhood_of:
            return 0, self._whole
        return self._bounds_around(self._neighbourhood_of[mask])

    def _bounds_around(self, number: int) -> tuple[int, int]:
        """Return bounds of how many x have no decision that is taken all over a neighbourhood."""
        each = [self._steady[number, d] for d in range(len(self._encoding.decisions))]
        low = self._whole - sum(high for _, high in each)
        return max(0, low), self._whole - sum(low for low, _ in each)

    def bounds(self) -> Bounds:
        """Return bounds of the whole count."""
        if not self._neighbourhood_of:
            return Bounds(0, self.problem.n_regions)
        each = [self.mask_bounds(mask) for mask in range(self.problem.n_masks)]
        return Bounds(sum(low for low, _ in each), sum(high for _, high in each))

    def _total(self) -> tuple[int, int]:
        bounds = self.bounds()
        return bounds.low, bounds.high

    def is_exact(self) -> bool:
        bounds = self.bounds()
        return bounds.low == bounds.high

    def estimator(self) -> Estimator:
        """Return an estimation of the masks that are still open."""
        problem, bounds = self.problem, self.bounds()
        if self._decider is None:
            self._decider = RegionDecider(problem)
        masks, certain = list(range(problem.n_masks)), 0
        if self._neighbourhood_of:
            each = [self.mask_bounds(mask) for mask in masks]
            masks = [mask for mask, (low, high) in enumerate(each) if low != high]
            certain = sum(low for low, high in each if low == high)
        ground = Ground(certain, self._whole * len(masks), bounds, problem.n_regions)
        draws = RegionDraws(self._decider, masks)
        return Estimator(draws, ground, self.settings, partial(region_draws, problem, masks))

    def tally(self, method: str) -> Tally:
        """Return what is known now."""
        bounds = self.bounds()
        reason = self.stop_reason
        if reason is StopReason.COMPLETE and bounds.low != bounds.high:
            reason = StopReason.MEMORY if self._steady.lacked_memory else StopReason.STEPS
        details = {"n_steps": self.n_steps, "n_masks": self.problem.n_masks}
        profile = None
        if self.settings.want_profile and self._neighbourhood_of:
            each = [self.mask_bounds(mask) for mask in range(self.problem.n_masks)]
            profile = _profile(self.problem, each)
        middle = (bounds.low + bounds.high) // 2
        return Tally(
            middle, bounds.low, bounds.high, method, reason, details=details, profile=profile
        )


def _encoded(problem: Problem) -> Problem:
    return FlipEncoding.of(problem).problem


def _profile(problem: Problem, bounds: list[tuple[int, int]]) -> Profile:
    rows = []
    for mask, (low, high) in enumerate(bounds):
        cells = tuple(problem.masks.cells(mask))
        text = problem.describe(cells)
        rows.append(MaskCount(cells, text, low, high, problem.n_combinations))
    return Profile(tuple(rows))
