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
MAX_CHOSEN_ROWS = 150_000
"""Rows of masks near all masks, up to which visiting is chosen without being asked for."""
_SLICE_SECONDS = 0.2

# Rough, and the same everywhere on purpose: they only weigh one kind of work against another.
_SECONDS_PER_REGION = {1: 1.2e-9, 2: 6e-9, 36: 1e-6}
"""By the width of the leaves in 64-bit limbs (benchmarks/corner_sums.py)."""
_SECONDS_PER_EXPONENTIAL = 1.2e-8
_SECONDS_PER_CORNER = 5e-8
_SECONDS_PER_ROW = 3.5e-9
_SECONDS_PER_MASK = 3.5e-6
_BYTES_PER_CORNER = 64


def corner_seconds(problem: Problem, settings: Settings) -> float:
    """Guess how long corner sums take on one core.

    Infinite where they are out of the question: beyond their range, or beyond half of the limits.
    """
    near = _rows_near(problem)
    if problem.n_regions > MAX_REGIONS or problem.n_masks * near > MAX_CHOSEN_ROWS:
        return math.inf
    question = problem.form.corner_question
    cost, n_outputs = question.cost, len(question.outputs)
    per_region = n_outputs * _SECONDS_PER_REGION[question.outputs[0].n_limbs]
    if question.probability is not None:
        per_region += n_outputs * _SECONDS_PER_EXPONENTIAL
    seconds = cost.n_regions * (per_region + (near - 1) * _SECONDS_PER_ROW)
    seconds += cost.n_corners * _SECONDS_PER_CORNER + problem.n_masks * near * _SECONDS_PER_MASK
    left = settings.seconds_left()
    needed = cost.n_corners * _BYTES_PER_CORNER
    is_late = left is not None and seconds > left / 2 * settings.n_threads
    return math.inf if is_late or needed > settings.free_bytes() / 2 else seconds


def _rows_near(problem: Problem) -> int:
    """Return how many rows of sums decide a mask: windows on one axis, else all neighbours."""
    if problem.distance is None:
        return 1
    if len(problem.query.sensitive) == 1:
        return 4
    return 1 + 2 * problem.n_pairs_about // max(1, problem.n_masks)


def visited(problem: Problem, settings: Settings, method: str) -> Tally | None:
    """Visit all regions in half of the time; None where that turns out to be too much."""
    try:
        tally = count_by_corner_sums(problem, settings.within(0.5), method)
    except BudgetError:
        return None
    return None if tally.stop_reason is StopReason.TIMEOUT else tally


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
        self._n_threads = self._affordable_threads()
        self._done = 0
        self._counts: NDArray[np.object_] = np.zeros(problem.n_masks, dtype=object)
        self._shares = np.zeros(problem.n_masks)
        self.stop_reason = StopReason.COMPLETE

    def _affordable_threads(self) -> int:
        """Return how many threads fit the memory."""
        n_threads, free = self._settings.n_threads, self._settings.free_bytes()
        while n_threads > 1 and self._sums.bytes(n_threads) > free:
            n_threads //= 2
        if self._sums.bytes(n_threads) > free:
            needed = self._sums.bytes(n_threads) / 1e6
            raise BudgetError(f"corner sums would take {needed:.0f} MB; raise --memory")
        return n_threads

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
        n_threads = self._n_threads if self._sums.n_blocks > 1 else 1
        counts, shares, n = self._sums.count(self._done, self._sums.n_blocks, n_threads, seconds)
        together = self._counts + counts[0].astype(object)
        if shares is not None:
            self._shares = self._shares + shares[0]
        # At once: an interrupt in between would count blocks that are not said to be visited.
        self._counts, self._done = together, self._done + n

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
