"""The exact counter: every mask's union over its neighbours, by eliminating features.

``C = sum over masks m of |A_m|`` (see :mod:`xcount.problem.problem`), and ``A_m`` is the union of the
solutions of m's pairs. Pairs whose trees cannot add up to more than the gap drop out at once. Of
the rest, m may have

- none: ``|A_m| = 0``;
- one: ``|A_m| = |P|``, and the pair is counted once for both of its masks;
- two: ``|A_m| = |P| + |Q| - |P and Q|``, where P and Q are shared with other masks, and the last
  term is needed only if neither is empty nor everything;
- more: one count of "any of these pairs differs".

What a limit leaves open is bounded by what is known of its pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import compress, islice

from xcount.cluster.spread import Tuning, make_solver
from xcount.counters.base import Progress, Settings
from xcount.counters.known_counts import KnownCounts
from xcount.counters.tally import MaskCount, PairCount, Profile, StopReason, Tally
from xcount.problem.problem import Pair, Problem, Subproblem

MAX_PAIRS = 5_000_000
STEP_BUDGETS = (200_000, 3_000_000, 40_000_000, 500_000_000, 2**62)
_PAIRS_PER_SLICE = 2_000


def count_exactly(problem: Problem, settings: Settings) -> Tally:
    """Count every mask exactly, or bound what a limit leaves open."""
    run = ExactRun(problem, settings)
    run.solve(STEP_BUDGETS)
    return run.tally("exact")


@dataclass(eq=False)
class ExactRun:
    """The state of an exact count: which pairs and masks are solved, and to what."""

    problem: Problem
    settings: Settings
    tuning: Tuning = field(default_factory=Tuning)
    stop_reason: StopReason = StopReason.COMPLETE
    pairs_of: list[tuple[Pair, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        problem = self.problem
        self._solver = make_solver(problem, self.settings)
        self._whole = problem.n_combinations
        # A pair's own count; under a mask, the overlap of its two pairs or the union of its more.
        self._counts: KnownCounts[Pair | int] = KnownCounts(
            self._solver, problem.n_masks, self._whole, self.settings, self.tuning
        )

    @property
    def n_steps(self) -> int:
        return self._counts.n_steps

    def solve(self, budgets: Iterable[int]) -> None:
        """Run rounds with these budgets of steps a task, until done or stopped.

        May be called again with larger budgets: only what is still open is tried.
        """
        if self.stop_reason in (StopReason.STEPS, StopReason.MEMORY):
            self.stop_reason = StopReason.COMPLETE
        try:
            if not self.pairs_of:
                self._find_live_pairs()
            for budget in budgets:
                if not self._stopped():
                    self._solve_round(budget)
        except KeyboardInterrupt:
            self._solver.cancel()
            self.stop_reason = StopReason.INTERRUPTED
        if self.stop_reason in (StopReason.COMPLETE, StopReason.TIMEOUT):
            self.stop_reason = self._why_it_ended()

    def _why_it_ended(self) -> StopReason:
        """Return what kept the run from an exact count, if anything did."""
        if self.is_exact():
            return StopReason.COMPLETE
        if self.settings.expired():
            return StopReason.TIMEOUT
        return StopReason.MEMORY if self._counts.lacked_memory else StopReason.STEPS

    def is_exact(self) -> bool:
        return not self.unsolved_masks()

    def unsolved_masks(self) -> list[int]:
        """Return the masks whose count is still open."""
        bounds = [self.mask_bounds(mask) for mask in range(self.problem.n_masks)]
        return [mask for mask, (low, high) in enumerate(bounds) if low != high]

    def mask_bounds(self, mask: int) -> tuple[int, int]:
        """Return bounds of ``|A_m|``: equal when it is known."""
        if not self.pairs_of:
            return 0, self._whole
        pairs = self.pairs_of[mask]
        fewest, most = self._counts[mask]
        if len(pairs) > 2 and fewest == most:
            return fewest, most
        bounds = [self._counts[pair] for pair in pairs]
        low, high = max((low for low, _ in bounds), default=0), sum(high for _, high in bounds)
        if len(pairs) == 2:
            low, high = max(low, sum(low for low, _ in bounds) - most), high - fewest
        elif len(pairs) > 2:
            low, high = max(low, fewest), min(high, most)
        return low, min(high, self._whole)

    def bounds(self) -> tuple[int, int]:
        """Return bounds of the whole count."""
        if not self.pairs_of:
            return 0, self.problem.n_regions
        bounds = [self.mask_bounds(mask) for mask in range(self.problem.n_masks)]
        return sum(low for low, _ in bounds), sum(high for _, high in bounds)

    def tally(self, method: str) -> Tally:
        """Return what is known now."""
        low, high = self.bounds()
        profile = None
        if self.settings.want_profile and self.pairs_of:
            profile = self._profile()
        details = {"n_steps": self.n_steps, "n_masks": self.problem.n_masks}
        return Tally(
            (low + high) // 2, low, high, method, self.stop_reason, details=details, profile=profile
        )

    def _find_live_pairs(self) -> None:
        """List the pairs, without those that can never exceed the gap; as far as time allows."""
        n_masks = self.problem.n_masks
        if n_masks > MAX_PAIRS or n_masks * len(self.problem.masks.neighbours(0)) > 4 * MAX_PAIRS:
            self.stop_reason = StopReason.STEPS
            return
        pairs_of: list[list[Pair]] = [[] for _ in range(n_masks)]
        pairs = self.problem.pairs()
        while chunk := list(islice(pairs, _PAIRS_PER_SLICE)):
            if self._stopped():
                return
            left = self.settings.seconds_left()
            seconds = math.inf if left is None else left
            live = self._solver.live(chunk, self.settings.n_threads, seconds, self._pause)
            for pair in compress(chunk, live):
                pairs_of[pair[0]].append(pair)
                pairs_of[pair[1]].append(pair)
        self.pairs_of = [tuple(pairs) for pairs in pairs_of]

    def _solve_round(self, budget: int) -> None:
        wanted = {pair for pairs in self.pairs_of if len(pairs) <= 2 for pair in pairs}
        if self.settings.want_profile:
            wanted = {pair for pairs in self.pairs_of for pair in pairs}
        open_pairs = sorted(pair for pair in wanted if not self._is_known(pair))
        self._counts.solve({pair: Subproblem((pair,)) for pair in open_pairs}, budget, self.bounds)
        masks = [mask for mask in range(self.problem.n_masks) if self._needs_joint_count(mask)]
        tasks: dict[Pair | int, Subproblem] = {
            mask: Subproblem(self.pairs_of[mask], all_pairs=len(self.pairs_of[mask]) == 2)
            for mask in sorted(masks, key=lambda mask: len(self.pairs_of[mask]))
        }
        self._counts.solve(tasks, budget, self.bounds)

    def _is_known(self, pair: Pair) -> bool:
        low, high = self._counts[pair]
        return low == high

    def _needs_joint_count(self, mask: int) -> bool:
        """Tell whether the mask's pairs must be looked at together, and can be."""
        pairs = self.pairs_of[mask]
        if len(pairs) < 2 or (len(pairs) == 2 and not all(map(self._is_known, pairs))):
            return False
        low, high = self.mask_bounds(mask)
        return low != high

    def _stopped(self) -> bool:
        if self.stop_reason is not StopReason.COMPLETE:
            return True
        if self.settings.expired():
            self.stop_reason = StopReason.TIMEOUT
            return True
        return False

    def _pause(self) -> None:
        """Tell that the run goes on, before there are pairs to count."""
        self.settings.report(Progress(0.0, 0, self.problem.n_regions, "looking at pairs"))

    def _profile(self) -> Profile:
        problem = self.problem
        masks = []
        for mask in range(problem.n_masks):
            cells = tuple(problem.masks.cells(mask))
            low, high = self.mask_bounds(mask)
            masks.append(MaskCount(cells, problem.describe(cells), low, high, self._whole))
        pairs = []
        for a, b in sorted({pair for pairs in self.pairs_of for pair in pairs}):
            cells, other = tuple(problem.masks.cells(a)), tuple(problem.masks.cells(b))
            low, high = self._counts[a, b]
            text = f"{problem.describe(cells)} | {problem.describe(other)}"
            pairs.append(PairCount(cells, other, text, low, high, self._whole))
        return Profile(tuple(masks), tuple(pairs))
