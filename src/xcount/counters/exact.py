"""The exact counter: every mask's union over its neighbours, by eliminating features.

``C = sum over masks m of |A_m|`` (see :mod:`xcount.subproblems`), and ``A_m`` is the union of the
solutions of m's pairs. Pairs whose trees cannot add up to more than the gap drop out at once. Of
the rest, m may have

- none: ``|A_m| = 0``;
- one: ``|A_m| = |P|``, and the pair is counted once for both of its masks;
- two: ``|A_m| = |P| + |Q| - |P and Q|``, where P and Q are shared with other masks, and the last
  term is needed only if neither is empty nor everything;
- more: one count of "any of these pairs differs".

Subproblems are tried in rounds with growing budgets of steps, so that a hard one never keeps easy
ones from being counted. The hard ones are cut into parts: a single one keeps all threads busy, too.
What a limit leaves open is bounded by what is known of its pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import compress, islice
from typing import NamedTuple, TypeVar

from xcount.counters.base import Progress, Settings, Tally
from xcount.counters.spreading import Tuning, make_solver
from xcount.result import MaskCount, PairCount, Profile, StopReason
from xcount.subproblems import Pair, Problem, Subproblem

Key = TypeVar("Key")

MAX_PAIRS = 5_000_000
STEP_BUDGETS = (200_000, 3_000_000, 40_000_000, 500_000_000, 2**62)
PART_BITS = 5
"""Hard subproblems are cut into two to the power of this many parts."""
HARD_STEPS = 10_000_000
"""Hard is what such a budget of steps does not suffice for; parts share the larger ones."""
_POLL_SECONDS = 0.1
_PAIRS_PER_SLICE = 2_000


class Counted(NamedTuple):
    """A part of a subproblem: how many x solve it there, and how many there are."""

    n_solved: int
    n_all: int


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
    pair_counts: dict[Pair, int] = field(default_factory=dict)
    part_counts: dict[Subproblem, Counted] = field(default_factory=dict)
    task_bounds: dict[Subproblem, tuple[int, int]] = field(default_factory=dict)
    overlap_counts: dict[int, int] = field(default_factory=dict)
    union_counts: dict[int, int] = field(default_factory=dict)
    hopeless: set[Subproblem] = field(default_factory=set)
    n_steps: int = 0

    def __post_init__(self) -> None:
        self._counter = make_solver(self.problem, self.settings)
        self._whole = self.problem.n_combinations

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
            self._counter.cancel()
            self.stop_reason = StopReason.INTERRUPTED
        if self.stop_reason in (StopReason.COMPLETE, StopReason.TIMEOUT):
            self.stop_reason = self._why_it_ended()

    def _why_it_ended(self) -> StopReason:
        """Return what kept the run from an exact count, if anything did."""
        if self.is_exact():
            return StopReason.COMPLETE
        if self.settings.expired():
            return StopReason.TIMEOUT
        return StopReason.MEMORY if self.hopeless else StopReason.STEPS

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
        if mask in self.union_counts:
            return self.union_counts[mask], self.union_counts[mask]
        pairs = self.pairs_of[mask]
        bounds = [self._pair_bounds(pair) for pair in pairs]
        total = sum(high for _, high in bounds)
        if mask in self.overlap_counts:
            union = total - self.overlap_counts[mask]
            return union, union
        low, high = max((low for low, _ in bounds), default=0), min(self._whole, total)
        if self.task_bounds and len(pairs) == 2 and all(low == high for low, high in bounds):
            less, more = self._task_bounds(Subproblem(pairs, all_pairs=True))
            return max(low, total - more), min(high, total - less)
        if self.task_bounds and len(pairs) > 2:
            less, more = self._task_bounds(Subproblem(pairs))
            return max(low, less), min(high, more)
        return low, high

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

    def _pair_bounds(self, pair: Pair) -> tuple[int, int]:
        known = self.pair_counts.get(pair)
        return self._task_bounds(Subproblem((pair,))) if known is None else (known, known)

    def _task_bounds(self, task: Subproblem) -> tuple[int, int]:
        """Return what the solved parts of an open task tell of its count."""
        return self.task_bounds.get(task, (0, self._whole))

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
            live = self._counter.live(chunk, self.settings.n_threads, seconds, self._pause)
            for pair in compress(chunk, live):
                pairs_of[pair[0]].append(pair)
                pairs_of[pair[1]].append(pair)
        self.pairs_of = [tuple(pairs) for pairs in pairs_of]

    def _solve_round(self, budget: int) -> None:
        wanted = {pair for pairs in self.pairs_of if len(pairs) <= 2 for pair in pairs}
        if self.settings.want_profile:
            wanted = {pair for pairs in self.pairs_of for pair in pairs}
        open_pairs = sorted(pair for pair in wanted if pair not in self.pair_counts)
        self._run([Subproblem((p,)) for p in open_pairs], budget, open_pairs, self.pair_counts)
        overlaps = [m for m in range(self.problem.n_masks) if self._needs_overlap(m)]
        tasks = [Subproblem(self.pairs_of[m], all_pairs=True) for m in overlaps]
        self._run(tasks, budget, overlaps, self.overlap_counts)
        unions = [m for m, pairs in enumerate(self.pairs_of) if len(pairs) > 2 and self._is_open(m)]
        tasks = [Subproblem(self.pairs_of[m]) for m in unions]
        self._run(tasks, budget, unions, self.union_counts)

    def _is_open(self, mask: int) -> bool:
        low, high = self.mask_bounds(mask)
        return low != high

    def _needs_overlap(self, mask: int) -> bool:
        pairs = self.pairs_of[mask]
        if len(pairs) != 2 or mask in self.overlap_counts:
            return False
        counts = [self.pair_counts.get(pair) for pair in pairs]
        if None in counts:
            return False
        return all(count not in (0, self._whole) for count in counts)

    def _run(
        self, tasks: list[Subproblem], budget: int, keys: list[Key], out: dict[Key, int]
    ) -> None:
        """Solve tasks within the budget; write the counts of those solved under their keys."""
        if not tasks or self._stopped():
            return
        bits = PART_BITS if budget > HARD_STEPS else 0
        parts_of = {task: task.parts(bits) for task in tasks}
        found: dict[Subproblem, Counted] = self.part_counts if bits else {}
        open_parts = [
            part
            for task in tasks
            if task not in self.hopeless
            for part in parts_of[task]
            if part not in found
        ]
        try:
            self._count(open_parts, budget >> bits, found)
        finally:  # also when interrupted: what was solved is solved
            for task, key in zip(tasks, keys, strict=True):
                known = [found[part] for part in parts_of[task] if part in found]
                count = sum(counted.n_solved for counted in known)
                if len(known) == 2**bits:
                    out[key] = count
                elif known:
                    others = sum(counted.n_all for counted in known) - count
                    self.task_bounds[task] = (count, self._whole - others)

    def _count(self, parts: list[Subproblem], budget: int, out: dict[Subproblem, Counted]) -> None:
        """Count each of these within the budget, if it suffices."""
        if not parts:
            return
        self._counter.start(
            parts,
            self.problem.n_masks,
            budget,
            self.settings.free_bytes(),
            self.settings.n_threads,
            *self.tuning,
        )
        try:
            self._wait(len(parts))
        finally:
            self._counter.cancel()
            for part, (status, count, total, size, n_steps) in zip(
                parts, self._counter.results(), strict=True
            ):
                self.n_steps += n_steps
                if status == "solved":
                    scale = self._whole // total
                    out[part] = Counted(count * scale, size * scale)
                elif status == "memory":
                    self.hopeless.add(Subproblem(*part[:2]))

    def _wait(self, n_tasks: int) -> None:
        """Wait for the tasks, or until the time is up."""
        while not self._counter.wait(self._poll_seconds()):
            if self.settings.expired():
                return
            self._report(self._counter.n_done / n_tasks)

    def _stopped(self) -> bool:
        if self.stop_reason is not StopReason.COMPLETE:
            return True
        if self.settings.expired():
            self.stop_reason = StopReason.TIMEOUT
            return True
        return False

    def _poll_seconds(self) -> float:
        left = self.settings.seconds_left()
        return _POLL_SECONDS if left is None else min(_POLL_SECONDS, left)

    def _pause(self) -> None:
        """Tell that the run goes on, before there are pairs to count."""
        self.settings.report(Progress(0.0, 0, self.problem.n_regions, "looking at pairs"))

    def _report(self, fraction: float) -> None:
        if self.settings.on_progress is not None:
            low, high = self.bounds()
            self.settings.report(Progress(fraction, low, high, f"{self.n_steps:,} steps"))

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
            low, high = self._pair_bounds((a, b))
            text = f"{problem.describe(cells)} | {problem.describe(other)}"
            pairs.append(PairCount(cells, other, text, low, high, self._whole))
        return Profile(tuple(masks), tuple(pairs))
