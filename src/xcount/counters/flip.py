"""Counting flips: exactly through the switch (see :mod:`xcount.flips`), or from random regions.

All trees take part in a decision, where a gap's pairs cancel most of them: exact counting reaches
less far. What its budget leaves open is estimated, with the same certificate as any estimate.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from xcount.counters.base import Counter, Progress, Settings, Tally
from xcount.counters.drawing import RegionDraws, region_draws
from xcount.counters.estimation import Bounds, Estimator, Ground
from xcount.counters.spreading import make_solver
from xcount.deciding import RegionDecider
from xcount.errors import BudgetError, QueryError
from xcount.flips import FlipEncoding
from xcount.result import MaskCount, Profile, StopReason, scientific_text
from xcount.subproblems import Problem, Subproblem

Neighbourhood = tuple[int, ...]
"""A mask and its neighbours, ascending."""

MAX_TERMS = 200_000
"""Functions of all neighbourhoods together beyond which exact counting is not tried."""
BUDGETS = (100_000, 2_000_000, 30_000_000, 500_000_000, 2**62)
AUTO_BUDGETS = BUDGETS[:3]
MAX_REGIONS = 50_000_000
"""Regions that enumeration accepts."""
_POLL_SECONDS = 0.1


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
    steady: dict[tuple[Neighbourhood, int], int] = field(default_factory=dict)
    n_steps: int = 0

    def __post_init__(self) -> None:
        self._whole = self.problem.n_combinations
        self._encoding = FlipEncoding.of(self.problem)
        again = partial(_encoded, self.problem)
        self._counter = make_solver(self._encoding.problem, self.settings, again)
        self._decider: RegionDecider | None = None
        self._around: list[Neighbourhood] = []

    @property
    def n_terms(self) -> int:
        """How many functions the subproblems have together, about."""
        n_masks, n_functions = self.problem.n_masks, self._encoding.n_switch - 1
        if self.problem.query.distance is None:
            return n_masks * n_functions
        if n_masks > MAX_TERMS:
            return n_masks
        return n_masks * (len(self.problem.masks.neighbours(n_masks // 2)) + 1) * n_functions

    def solve(self, budget: int) -> bool:
        """Try what is open with that many steps each; return whether nothing is left open."""
        if self.stop_reason is not StopReason.COMPLETE:
            return False
        try:
            self._solve(budget)
        except KeyboardInterrupt:
            self._counter.cancel()
            self.stop_reason = StopReason.INTERRUPTED
        return self.is_exact()

    def _solve(self, budget: int) -> None:
        n_decisions = len(self._encoding.decisions)
        keys = [
            (around, decision)
            for around in dict.fromkeys(self._neighbourhoods())
            for decision in range(n_decisions)
            if (around, decision) not in self.steady
        ]
        if not keys:
            return
        tasks = [
            Subproblem(self._encoding.pairs(decision, around), all_pairs=True)
            for around, decision in keys
        ]
        n_masks, free = self._encoding.problem.n_masks, self.settings.free_bytes()
        self._counter.start(tasks, n_masks, budget, free, self.settings.n_threads)
        while not self._counter.wait(_POLL_SECONDS):
            if self.settings.expired():
                self._counter.cancel()
                self.stop_reason = StopReason.TIMEOUT
                break
            fraction = self._counter.n_done / len(tasks)
            bounds = self.bounds()
            message = f"{self.n_steps:,} steps"
            self.settings.report(Progress(fraction, bounds.low, bounds.high, message))
        for key, (status, count, total, _, steps) in zip(
            keys, self._counter.results(), strict=True
        ):
            self.n_steps += steps
            if status == "solved":
                self.steady[key] = count * (self._whole // total)

    def _neighbourhoods(self) -> list[Neighbourhood]:
        """Return each mask's neighbourhood."""
        if not self._around:
            n_masks = self.problem.n_masks
            if self.problem.query.distance is None:
                self._around = [tuple(range(n_masks))] * n_masks
            else:
                near = self.problem.masks.neighbours
                self._around = [tuple(sorted([m, *near(m)])) for m in range(n_masks)]
        return self._around

    def mask_bounds(self, mask: int) -> tuple[int, int]:
        """Return bounds of the flips of one mask: equal when they are known."""
        around = self._neighbourhoods()[mask]
        n_decisions = len(self._encoding.decisions)
        keys = [(around, decision) for decision in range(n_decisions)]
        known = [self.steady[key] for key in keys if key in self.steady]
        high = self._whole - sum(known)
        return (high if len(known) == n_decisions else 0), high

    def bounds(self) -> Bounds:
        """Return bounds of the whole count."""
        if not self.steady:
            return Bounds(0, self.problem.n_regions)
        each = [self.mask_bounds(mask) for mask in range(self.problem.n_masks)]
        return Bounds(sum(low for low, _ in each), sum(high for _, high in each))

    def is_exact(self) -> bool:
        bounds = self.bounds()
        return bounds.low == bounds.high

    def estimator(self) -> Estimator:
        """Return an estimation of the masks that are still open."""
        problem, bounds = self.problem, self.bounds()
        if self._decider is None:
            self._decider = RegionDecider(problem)
        masks, certain = list(range(problem.n_masks)), 0
        if self.steady:
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
            reason = StopReason.STEPS
        details = {"n_steps": self.n_steps, "n_masks": self.problem.n_masks}
        profile = None
        if self.settings.want_profile and self.steady:
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
