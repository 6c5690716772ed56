"""Counting by corner sums: every region of the grid is visited, whatever the number of trees.

The cost is known beforehand: about ``n_regions * n_axes`` additions. Blocks are counted in slices
of time, so that limits, interrupts and progress are heard; what is not visited bounds the count.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from xcount.counters.engine import Weights
from xcount.counters.profile import profile_of
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress, StopReason, Tally
from xcount.errors import BudgetError
from xcount.problem.problem import Problem
from xcount.support.numerals import scientific_text

MAX_REGIONS = 10**12
"""Regions that are visited without a limit of time: about an hour on one core."""
MAX_MASKS = 10**6
_SLICE_SECONDS = 0.2

# Rough, and the same everywhere on purpose: they only weigh one kind of work against another.
_SECONDS_PER_REGION = {1: 1.2e-9, 2: 6e-9, 36: 1e-6}
"""By the width of the leaves in 64-bit limbs (benchmarks/corner_sums.py)."""
_SECONDS_PER_CORNER = 5e-8
_BYTES_PER_CORNER = 64


def corner_seconds(problem: Problem, settings: Settings) -> float:
    """Guess how long corner sums take on one core.

    Infinite where they are out of the question: beyond their range, or beyond the limits.
    """
    if problem.n_regions > MAX_REGIONS or problem.n_masks > MAX_MASKS:
        return math.inf
    question = problem.form.corner_question
    cost, n_outputs = question.cost, len(question.outputs)
    seconds = cost.n_regions * n_outputs * _SECONDS_PER_REGION[question.outputs[0].n_limbs]
    seconds += cost.n_corners * _SECONDS_PER_CORNER
    left = settings.seconds_left()
    needed = cost.n_corners * _BYTES_PER_CORNER
    if needed > settings.free_bytes() or (left is not None and seconds > left * settings.n_threads):
        return math.inf
    return seconds


def count_by_corner_sums(problem: Problem, settings: Settings, method: str = "brute") -> Tally:
    """Visit every region, or as many as the limits allow."""
    n_regions = problem.n_regions
    if n_regions > 2**62 or (n_regions > MAX_REGIONS and settings.timeout_seconds is None):
        raise BudgetError(
            f"enumeration would visit {scientific_text(n_regions)} regions, more than "
            f"{MAX_REGIONS:.0e}; use --method auto or exact, or give --timeout"
        )
    run = CornerRun(problem, settings)
    run.visit()
    return run.tally(method)


class CornerRun:
    """The state of a visit of all regions.

    Args:
        problem: the question.
        settings: limits, threads, and who listens.
        weights: of all features' cells, to find the share of each mask, too.
    """

    def __init__(
        self, problem: Problem, settings: Settings, weights: Weights | None = None
    ) -> None:
        self._problem, self._settings = problem, settings
        self._sums = problem.form.corner_question.sums(weights)
        self._check_memory()
        self._done = 0
        self._counts: NDArray[np.object_] = np.zeros(problem.n_masks, dtype=object)
        self._shares = np.zeros(problem.n_masks)
        self.stop_reason = StopReason.COMPLETE

    def _check_memory(self) -> None:
        needed = self._sums.bytes(self._settings.n_threads)
        if needed > self._settings.free_bytes():
            raise BudgetError(
                f"corner sums would take {needed / 1e6:.0f} MB; raise --memory, or use auto"
            )

    @property
    def is_complete(self) -> bool:
        return self._done == self._sums.n_blocks

    @property
    def shares(self) -> NDArray[np.float64]:
        """For each mask the weight of the combinations that make it sensitive, once complete."""
        return self._shares

    def visit(self) -> None:
        """Count block by block until all are done or something ends it."""
        try:
            while not self.is_complete:
                if self._settings.expired():
                    self.stop_reason = StopReason.TIMEOUT
                    return
                self._slice()
                self._settings.report(Progress(self.fraction, *self.bounds(), "regions visited"))
        except KeyboardInterrupt:
            self.stop_reason = StopReason.INTERRUPTED

    def _slice(self) -> None:
        left = self._settings.seconds_left()
        seconds = _SLICE_SECONDS if left is None else min(_SLICE_SECONDS, left)
        n_threads = self._settings.n_threads if self._sums.n_blocks > 1 else 1
        counts, shares, n = self._sums.count(self._done, self._sums.n_blocks, n_threads, seconds)
        self._counts += counts[0].astype(object)
        if shares is not None:
            self._shares += shares[0]
        self._done += n

    @property
    def fraction(self) -> float:
        return self._done / self._sums.n_blocks

    @property
    def _unvisited(self) -> int:
        """Combinations of non-sensitive cells that were not visited."""
        n_blocks = self._sums.n_blocks
        return self._problem.n_combinations // n_blocks * (n_blocks - self._done)

    def bounds(self) -> tuple[int, int]:
        """Return bounds of the whole count."""
        low = int(self._counts.sum())
        return low, low + self._unvisited * self._problem.n_masks

    def tally(self, method: str) -> Tally:
        """Return what is known now."""
        low, high = self.bounds()
        profile = None
        if self._settings.want_profile:
            left = self._unvisited
            profile = profile_of(self._problem, [(int(c), int(c) + left) for c in self._counts])
        details = {"n_masks": self._problem.n_masks, "regions_visited": self._visited()}
        reason = self.stop_reason
        return Tally((low + high) // 2, low, high, method, reason, details=details, profile=profile)

    def _visited(self) -> int:
        return self._problem.n_regions - self._unvisited * self._problem.n_masks
