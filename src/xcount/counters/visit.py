"""Counting by corner sums: every region of the grid is visited, whatever the number of trees.

The cost is known beforehand: about ``n_regions * n_axes`` additions. Blocks are counted in slices
of time, between which Python checks limits, interrupts and progress; regions that are not visited
widen the bounds of the count.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.counters import costs
from xcount.counters.engine import BlockCounts, Blocks, Visit, Weights
from xcount.counters.profile import profile_of
from xcount.counters.settings import Settings
from xcount.counters.tally import Bounds, Method, Progress, StopReason, Tally
from xcount.errors import BudgetError
from xcount.problem.corner_question import CornerQuestion
from xcount.problem.problem import Problem
from xcount.support.numerals import scientific_text


def corner_seconds(problem: Problem, settings: Settings, *, is_weighed: bool = False) -> float:
    """Predict how long corner sums take on one core, with the weights of a measure or without.

    Infinite if they are out of the question: the settings forbid them, numbers are out of range, or
    they would take more than half of the time or memory. If only the time is lacking for a visit
    that is cheap enough to be tried, the settings record that.
    """
    if not settings.may_visit or problem.n_regions > 2**62:
        return math.inf
    question = problem.form.corner_question
    cost = question.cost
    needed = cost.n_corners * costs.BYTES_PER_CORNER
    if cost.n_regions > costs.MAX_VISITED_REGIONS or needed > settings.free_bytes() / 2:
        return math.inf
    seconds = visiting_seconds(question, is_weighed=is_weighed)
    left = settings.seconds_left()
    if left is None or seconds <= left / 2 * settings.n_threads:
        return seconds
    settings.cuts.exact |= seconds <= max(
        settings.thresholds.visit_seconds, pair_scan_seconds(problem)
    )
    return math.inf


def pair_scan_seconds(problem: Problem) -> float:
    """Predict how long it takes to find the pairs of masks that can differ at all."""
    return problem.form.n_terms * problem.form.n_trees * costs.SECONDS_PER_TREE_OF_PAIR


def visiting_seconds(question: CornerQuestion, *, is_weighed: bool = False) -> float:
    """Predict how long it takes to list the corners and to visit all regions, on one core."""
    cost = question.cost
    n_bits = 64 if question.is_rounded else question.n_bits
    n_asked = len(question.changes) * (2 if question.is_rounded else 1)
    is_narrow = n_bits <= 64 and question.probability is None and not is_weighed
    compared = 16 if is_narrow else max(64, n_bits)
    per_region = len(question.outputs) * costs.SECONDS_PER_REGION[n_bits]
    per_region += (cost.n_rows - 1) * costs.SECONDS_PER_ROW[compared]
    per_region += (n_asked - 1) * costs.SECONDS_PER_CHANGE[n_bits]
    per_region += n_asked * costs.SECONDS_PER_WEIGHT * is_weighed
    if question.probability is not None:
        per_region += len(question.outputs) * costs.SECONDS_PER_EXPONENTIAL[n_bits]
    sums = costs.VECTOR_BYTES * len(question.masks) * len(question.outputs)
    held = sums if is_narrow else cost.column_bytes
    factors = costs.NARROW_CACHE_FACTORS if is_narrow else costs.CACHE_FACTORS
    slower = next(factor for most, factor in factors if held <= most)
    n_regions = cost.n_lanes if n_bits <= 64 else cost.n_regions
    corners = cost.n_corners * costs.SECONDS_PER_CORNER[question.outputs[0].n_limbs]
    setup = corners + cost.column_bytes * costs.SECONDS_PER_BYTE
    return n_regions * per_region * slower + setup + cost.n_listed * costs.SECONDS_PER_LISTED


def visited(problem: Problem, settings: Settings, method: str) -> Tally | None:
    """Visit all regions in half of the time; None if that is forbidden or too much."""
    if not settings.may_visit:
        return None
    try:
        tally = count_by_visiting(problem, settings.within(0.5), method)
    except BudgetError:
        return None
    if tally.stop_reason is not StopReason.TIMEOUT:
        return tally
    settings.cuts.exact = True
    return None


def count_by_visiting(problem: Problem, settings: Settings, method: str = Method.VISIT) -> Tally:
    """Visit every region, or as many as the limits allow."""
    n_regions, is_endless = problem.n_regions, settings.timeout_seconds is None
    if n_regions > 2**62 or (n_regions > costs.MAX_VISITED_REGIONS and is_endless):
        raise BudgetError(
            f"enumeration would visit {scientific_text(n_regions)} regions, more than "
            f"{costs.MAX_VISITED_REGIONS:.0e}; use --method auto or exact, or give --timeout"
        )
    n_corners = problem.form.corner_question.cost.n_corners
    if n_corners > costs.MAX_LISTED_CORNERS and is_endless:
        raise BudgetError(
            f"enumeration would list about {n_corners:.0e} corners of leaves, more than "
            f"{costs.MAX_LISTED_CORNERS:.0e}; use --method auto or exact, or give --timeout"
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
    if run.is_complete:
        return run
    settings.cuts.exact |= run.stop_reason is StopReason.TIMEOUT
    return None


def _companions(problem: Problem, settings: Settings) -> list[CornerQuestion]:
    """Return the later questions that the same visit can answer, if time allows."""
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
        settings: limits, threads, and the listener of progress.
        weights: of all features' cells, to find the share of each mask, too.
        along: questions that differ only in their changes; a complete visit answers these
            companions, too.
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
        """Use the counts of an earlier visit, if there was one."""
        companions = self._settings.companions
        known = None if companions is None else companions.counts.get((own.key, own.changes[0]))
        if known is None or self._visit.weights is not None:
            return False
        self._counts[0] = known
        self._done = 1
        return True

    def _made(self) -> _core.CornerSums | None:
        """List the corners; None if time ran out or an interrupt came."""
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
    def counts(self) -> NDArray[np.object_]:
        """For each mask the number of combinations that make it sensitive, once complete."""
        found: NDArray[np.object_] = self._counts[0]
        return found

    @property
    def shares(self) -> NDArray[np.float64]:
        """For each mask the weight of the combinations that make it sensitive, once complete."""
        return np.array([int(share) * self._share_unit for share in self._shares[0]])

    @property
    def share_error(self) -> float:
        """The most that a share is off by, because every block rounds it to units."""
        return self._n_blocks * self._share_unit

    @property
    def _share_unit(self) -> float:
        return 1.0 if self._sums is None else self._sums.share_unit

    def visit(self) -> None:
        """Count block by block until all are done or a limit ends it."""
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
        """Return the blocks that others count, once it is known how long a block takes."""
        if not self._done or self._sums is None:
            return None
        span = (self._done, self._n_blocks, self._done / self._seconds)
        return self._settings.engine.blocks(self._visit, self._sums, span, self._n_threads)

    def _slice(self, others: Blocks | None) -> None:
        left = self._settings.seconds_left()
        slice_seconds = self._settings.thresholds.visit_slice_seconds
        seconds = slice_seconds if left is None else min(slice_seconds, left)
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
        # In one statement: an interrupt in between would count blocks not marked as visited.
        self._counts, self._shares, self._done = together, shares, self._done + n

    @property
    def fraction(self) -> float:
        return self._done / self._n_blocks

    @property
    def _unvisited(self) -> int:
        """The number of combinations of non-sensitive cells not visited."""
        n_left = self._n_blocks - self._done
        return self._problem.n_combinations // self._n_blocks * n_left

    def bounds(self) -> Bounds:
        """Return bounds of the whole count."""
        low = int(self._counted.sum())
        return Bounds(low, low + self._unvisited * len(self._counted))

    @property
    def _counted(self) -> NDArray[np.object_]:
        """The counts so far of the masks that are counted."""
        counted: NDArray[np.object_] = self._counts[0, list(self._problem.counted_masks)]
        return counted

    def tally(self, method: str) -> Tally:
        """Return what is known now."""
        low, high = self.bounds()
        profile = None
        if self._settings.want_profile:
            left = self._unvisited
            profile = profile_of(self._problem, [(int(c), int(c) + left) for c in self._counted])
        details = {"n_masks": self._problem.n_masks, "regions_visited": self._visited()}
        reason = self.stop_reason
        return Tally.of_bounds(low, high, method, reason, details=details, profile=profile)

    def _visited(self) -> int:
        return (self._problem.n_combinations - self._unvisited) * self._problem.n_masks
