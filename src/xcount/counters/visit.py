"""Counting by corner sums: every region of the grid is visited, whatever the number of trees.

The cost is known beforehand: about ``n_regions * n_axes`` additions. Blocks are counted in slices
of time, so that limits, interrupts and progress are heard; what is not visited bounds the count.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.counters.engine import BlockCounts, Blocks, Visit, Weights
from xcount.counters.profile import profile_of
from xcount.counters.settings import Settings
from xcount.counters.tally import Method, Progress, StopReason, Tally
from xcount.errors import BudgetError
from xcount.problem.corner_question import CornerQuestion
from xcount.problem.problem import Problem
from xcount.support.numerals import scientific_text

MAX_REGIONS = 10**12
"""Regions that are visited without a limit of time: about an hour on one core."""
MAX_CORNERS = 1e10
"""Corners that are listed without a limit of time."""
_SLICE_SECONDS = 0.2

# Rough, and the same everywhere on purpose: they only weigh one kind of work against another
# (python -m benchmarks.corner_sums --estimates compares them with the clock).
_SECONDS_PER_REGION = {32: 6e-10, 64: 1e-9, 128: 6e-9, 2304: 1e-6}
"""Of one output, by the width of the sums."""
_SECONDS_PER_ROW = {16: 9e-11, 64: 2.5e-10, 128: 3e-9, 2304: 3e-7}
"""Of the extremes around a mask, by the width of what is compared."""
_SECONDS_PER_CHANGE = {32: 1.5e-10, 64: 3e-10, 128: 6e-9, 2304: 6e-7}
"""Of each but the first."""
_SECONDS_PER_WEIGHT = 1.5e-9
"""Of each change, where what is sensitive is weighed."""
_SECONDS_PER_CORNER = {1: 7e-8, 2: 1.4e-7, 36: 1.5e-6}
"""By the limbs of the leaves."""
_SECONDS_PER_LISTED = 4e-9
_SECONDS_PER_EXPONENTIAL = {64: 8e-9, 128: 3.5e-8, 2304: 1e-7}
_SECONDS_PER_BYTE = 1e-9
"""Of what a column needs, once: memory that is touched for the first time."""
_BYTES_PER_CORNER = 64
_VECTOR_BYTES = 64
_CACHE_BYTES = ((1e6, 1.0), (8e6, 3.0), (math.inf, 12.0))
"""How much longer it takes where a column needs up to so many bytes."""
_NARROW_CACHE_BYTES = ((1e6, 1.0), (8e6, 1.2), (math.inf, 6.0))
"""The same where 16 bits are compared: of the sums, each is read once."""


def corner_seconds(problem: Problem, settings: Settings, *, is_weighed: bool = False) -> float:
    """Guess how long corner sums take on one core, with the weights of a measure or without.

    Infinite if they are out of the question: the settings forbid them, or they are beyond their
    range or beyond half of the limits.
    """
    if not settings.may_visit or problem.n_regions > 2**62:
        return math.inf
    question = problem.form.corner_question
    cost = question.cost
    needed = cost.n_corners * _BYTES_PER_CORNER
    if cost.n_regions > MAX_REGIONS or needed > settings.free_bytes() / 2:
        return math.inf
    seconds = visiting_seconds(question, is_weighed=is_weighed)
    left = settings.seconds_left()
    is_late = left is not None and seconds > left / 2 * settings.n_threads
    return math.inf if is_late else seconds


def visiting_seconds(question: CornerQuestion, *, is_weighed: bool = False) -> float:
    """Guess how long it takes to list the corners and to visit all regions, on one core."""
    cost = question.cost
    n_bits = 64 if question.is_rounded else question.n_bits
    n_asked = len(question.changes) * (2 if question.is_rounded else 1)
    is_narrow = n_bits <= 64 and question.probability is None and not is_weighed
    compared = 16 if is_narrow else max(64, n_bits)
    per_region = len(question.outputs) * _SECONDS_PER_REGION[n_bits]
    per_region += (cost.n_rows - 1) * _SECONDS_PER_ROW[compared]
    per_region += (n_asked - 1) * _SECONDS_PER_CHANGE[n_bits]
    per_region += n_asked * _SECONDS_PER_WEIGHT * is_weighed
    if question.probability is not None:
        per_region += len(question.outputs) * _SECONDS_PER_EXPONENTIAL[n_bits]
    sums = _VECTOR_BYTES * len(question.masks) * len(question.outputs)
    held, factors = (sums, _NARROW_CACHE_BYTES) if is_narrow else (cost.column_bytes, _CACHE_BYTES)
    slower = next(factor for most, factor in factors if held <= most)
    n_regions = cost.n_lanes if n_bits <= 64 else cost.n_regions
    corners = cost.n_corners * _SECONDS_PER_CORNER[question.outputs[0].n_limbs]
    setup = corners + cost.column_bytes * _SECONDS_PER_BYTE
    return n_regions * per_region * slower + setup + cost.n_listed * _SECONDS_PER_LISTED


def visited(problem: Problem, settings: Settings, method: str) -> Tally | None:
    """Visit all regions in half of the time; None if that is forbidden or too much."""
    if not settings.may_visit:
        return None
    try:
        tally = count_by_visiting(problem, settings.within(0.5), method)
    except BudgetError:
        return None
    return None if tally.stop_reason is StopReason.TIMEOUT else tally


def count_by_visiting(problem: Problem, settings: Settings, method: str = Method.VISIT) -> Tally:
    """Visit every region, or as many as the limits allow."""
    n_regions = problem.n_regions
    if n_regions > 2**62 or (n_regions > MAX_REGIONS and settings.timeout_seconds is None):
        raise BudgetError(
            f"enumeration would visit {scientific_text(n_regions)} regions, more than "
            f"{MAX_REGIONS:.0e}; use --method auto or exact, or give --timeout"
        )
    n_corners = problem.form.corner_question.cost.n_corners
    if n_corners > MAX_CORNERS and settings.timeout_seconds is None:
        raise BudgetError(
            f"enumeration would list about {n_corners:.0e} corners of leaves, more than "
            f"{MAX_CORNERS:.0e}; use --method auto or exact, or give --timeout"
        )
    run = CornerRun(problem, settings, along=_companions(problem, settings))
    run.visit()
    return run.tally(method)


def completed_visit(
    problem: Problem,
    settings: Settings,
    weights: Weights | None = None,
    along: Sequence[CornerQuestion] = (),
) -> CornerRun | None:
    """Visit all regions, as :class:`CornerRun` does; None if the limits do not allow it.

    Raises:
        KeyboardInterrupt: the visit was interrupted.
    """
    try:
        run = CornerRun(problem, settings, weights, along)
    except BudgetError:
        return None
    run.visit()
    if run.stop_reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    return run if run.is_complete else None


def _companions(problem: Problem, settings: Settings) -> list[CornerQuestion]:
    """Return what else to ask on the same visit: what is counted later, where time allows it."""
    if settings.companions is None:
        return []
    queries = list(settings.companions.queries)
    later = [
        Problem(problem.ensemble, problem.grid, query).form.corner_question
        for query in queries[queries.index(problem.query) + 1 :]
    ]
    joined = problem.form.corner_question.joined(later)
    left = settings.seconds_left()
    is_late = left is not None and visiting_seconds(joined) > left / 2 * settings.n_threads
    return [] if is_late else later


class CornerRun:
    """The state of a visit of all regions.

    Args:
        problem: the question.
        settings: limits, threads, and who listens.
        weights: of all features' cells, to find the share of each mask, too.
        along: questions that differ in their changes alone; a complete visit answers them for
            the companions in the settings.
    """

    def __init__(
        self,
        problem: Problem,
        settings: Settings,
        weights: Weights | None = None,
        along: Sequence[CornerQuestion] = (),
    ) -> None:
        self._problem, self._settings = problem, settings
        own = problem.form.corner_question
        self._question = own.joined(along)
        self._visit = Visit(self._question, weights, settings.memory_bytes)
        self._done, self._seconds = 0, 0.0
        self._counts: NDArray[np.object_] = np.zeros(
            (len(self._question.changes), problem.n_masks), dtype=object
        )
        self._shares = np.zeros_like(self._counts)
        self.stop_reason = StopReason.COMPLETE
        self._sums: _core.CornerSums | None = None
        if not self._find_known(own):
            self._sums = self._made()
        self._n_threads = self._affordable_threads()

    def _find_known(self, own: CornerQuestion) -> bool:
        """Take the counts of an earlier visit, if one has them."""
        companions = self._settings.companions
        known = None if companions is None else companions.counts.get((own.key, own.changes[0]))
        if known is None or self._visit.weights is not None:
            return False
        self._counts[0] = known
        self._done = 1
        return True

    def _made(self) -> _core.CornerSums | None:
        """List the corners; None if the time or an interrupt ended that."""
        n_regions = self._problem.n_regions
        left = self._settings.seconds_left()

        def on_pause() -> None:
            self._settings.report(Progress(0.0, 0, n_regions, "corners listed"))

        try:
            return self._question.sums(
                self._visit.weights,
                on_pause,
                seconds=math.inf if left is None else left,
                max_bytes=self._settings.free_bytes(),
            )
        except TimeoutError:
            self.stop_reason = StopReason.TIMEOUT
        except KeyboardInterrupt:
            self.stop_reason = StopReason.INTERRUPTED
        return None

    def _affordable_threads(self) -> int:
        """Return how many threads fit the memory."""
        if self._sums is None:
            return 1
        n_threads, free = self._settings.n_threads, self._settings.free_bytes()
        while n_threads > 1 and self._sums.bytes(n_threads) > free:
            n_threads //= 2
        if self._sums.bytes(n_threads) > free:
            needed = self._sums.bytes(n_threads) / 1e6
            raise BudgetError(f"corner sums would take {needed:.0f} MB; raise --memory")
        return n_threads if self._sums.n_blocks > 1 else 1

    @property
    def _n_blocks(self) -> int:
        return 1 if self._sums is None else self._sums.n_blocks

    @property
    def is_complete(self) -> bool:
        return self._done == self._n_blocks

    @property
    def shares(self) -> NDArray[np.float64]:
        """For each mask the weight of the combinations that make it sensitive, once complete."""
        unit = 1.0 if self._sums is None else self._sums.share_unit
        return np.array([int(share) * unit for share in self._shares[0]])

    def visit(self) -> None:
        """Count block by block until all are done or something ends it."""
        if self.stop_reason is not StopReason.COMPLETE:
            return
        try:
            self._visit_blocks()
        except KeyboardInterrupt:
            self.stop_reason = StopReason.INTERRUPTED
        companions = self._settings.companions
        if self._sums is not None and self.is_complete and companions is not None:
            key, found = self._question.key, companions.counts
            for change, counts in zip(self._question.changes, self._counts, strict=True):
                found[key, change] = counts

    def _visit_blocks(self) -> None:
        others: Blocks | None = None
        try:
            while not self.is_complete:
                if self._settings.expired():
                    self.stop_reason = StopReason.TIMEOUT
                    return
                others = others or self._helped()
                self._slice(others)
                self._settings.report(Progress(self.fraction, *self.bounds(), "regions visited"))
        finally:
            if others is not None:
                others.close()

    def _helped(self) -> Blocks | None:
        """Return who else counts from now on, once it is known how long a block takes."""
        if not self._done or self._sums is None:
            return None
        span = (self._done, self._n_blocks, self._done / self._seconds)
        return self._settings.engine.blocks(self._visit, self._sums, span, self._n_threads)

    def _slice(self, others: Blocks | None) -> None:
        left = self._settings.seconds_left()
        seconds = _SLICE_SECONDS if left is None else min(_SLICE_SECONDS, left)
        if others is None:
            assert self._sums is not None
            started = time.perf_counter()
            found = self._sums.count(self._done, self._n_blocks, self._n_threads, seconds)
            self._seconds += time.perf_counter() - started
            self._add(found)
        elif (taken := others.take(seconds)) is not None:
            self._add(taken)

    def _add(self, found: BlockCounts) -> None:
        counts, limbs, n = found
        together, shares = self._counts + counts.astype(object), self._shares
        if limbs is not None:
            shares = shares + limbs[:, ::2].astype(object) + (limbs[:, 1::2].astype(object) << 64)
        # At once: an interrupt in between would count blocks that are not said to be visited.
        self._counts, self._shares, self._done = together, shares, self._done + n

    @property
    def fraction(self) -> float:
        return self._done / self._n_blocks

    @property
    def _unvisited(self) -> int:
        """Combinations of non-sensitive cells that were not visited."""
        n_left = self._n_blocks - self._done
        return self._problem.n_combinations // self._n_blocks * n_left

    def bounds(self) -> tuple[int, int]:
        """Return bounds of the whole count."""
        low = int(self._counts[0].sum())
        return low, low + self._unvisited * self._problem.n_masks

    def tally(self, method: str) -> Tally:
        """Return what is known now."""
        low, high = self.bounds()
        profile = None
        if self._settings.want_profile:
            left = self._unvisited
            profile = profile_of(self._problem, [(int(c), int(c) + left) for c in self._counts[0]])
        details = {"n_masks": self._problem.n_masks, "regions_visited": self._visited()}
        reason = self.stop_reason
        return Tally.of_bounds(low, high, method, reason, details=details, profile=profile)

    def _visited(self) -> int:
        return self._problem.n_regions - self._unvisited * self._problem.n_masks
