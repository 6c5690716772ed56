"""Bounds on the counts of subproblems, solved in rounds with growing budgets of steps.

A hard subproblem never delays easy ones. Hard ones are cut into parts, so that even a single one
keeps all threads busy, and solved parts bound the whole. Counts are whole numbers, or shares of a
product measure if the solver has weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any

from xcount.counters import costs
from xcount.counters.engine import Solver, Tuning
from xcount.counters.settings import Settings
from xcount.counters.tally import Bounds, Progress
from xcount.problem.subproblem import Subproblem

PartKey = tuple[int, int]
"""The number of a subproblem, and that of one of its parts."""
Bounded = tuple[Any, Any]
"""Lower and upper bound on a count; equal if it is known."""


class KnownCounts:
    """Bounds on subproblem counts, by the subproblem's number.

    Args:
        solver: solves subproblems in the background.
        n_masks: of the space whose pairs of masks the subproblems name.
        whole: the count of everything.
        settings: limits, and the listener of progress.
        tuning: of the solver.
    """

    def __init__(
        self, solver: Solver, n_masks: int, whole: Any, settings: Settings, tuning: Tuning
    ) -> None:
        self._solver, self._n_masks, self._whole = solver, n_masks, whole
        self._settings, self._tuning = settings, tuning
        self._bounds: dict[int, Bounded] = {}
        self._proved: dict[int, Bounded] = {}
        self._solved_parts: dict[int, set[int]] = {}
        self._given_up: set[int] = set()
        self._failed_steps: dict[int, int] = {}
        self.n_steps = self.n_slices = 0

    def __getitem__(self, number: int) -> Bounded:
        """Return bounds of the subproblem's count: equal when it is known."""
        low, high = self._by_parts(number)
        if number not in self._proved:
            return low, high
        least, most = self._proved[number]
        return max(low, least), min(high, most)

    def narrow(self, number: int, bounds: Bounded) -> None:
        """Adopt bounds of a subproblem's count that were proved in another way."""
        low, high = self[number]
        self._proved[number] = max(low, bounds[0]), min(high, bounds[1])

    def _by_parts(self, number: int) -> Bounded:
        """Return the bounds of the subproblem's count that its solved parts prove."""
        return self._bounds.get(number, (self._whole - self._whole, self._whole))

    def is_known(self, number: int) -> bool:
        """Return whether the count of the subproblem is known."""
        low, high = self[number]
        return bool(low == high)

    @property
    def lacked_memory(self) -> bool:
        """Whether a subproblem was given up because its tables did not fit."""
        return bool(self._given_up)

    def limit(self, settings: Settings) -> None:
        """Continue within these limits."""
        self._settings = settings

    def solve(
        self,
        tasks: Mapping[int, Subproblem],
        budget: int,
        total: Callable[[], Bounds],
        most: Callable[[], float] = lambda: math.inf,
    ) -> Iterator[float]:
        """Try each subproblem within the budget of steps, until time runs out.

        Yields the cost of each slice, in seconds of one core.

        Args:
            tasks: the open subproblems, by number.
            budget: steps for each.
            total: returns bounds of the whole count, for reports of progress.
            most: returns what the next slice may cost; a slice has at least one part.
        """
        thresholds = self._settings.thresholds
        bits = thresholds.part_bits if budget > thresholds.hard_steps else 0
        waiting = {
            (number, part): Subproblem(*task[:2], part, bits)
            for number, task in tasks.items()
            for part in range(2**bits)
            if self._is_worth(number, part, budget, bits)
        }
        while not self._settings.expired():
            waiting = {key: part for key, part in waiting.items() if key[0] not in self._given_up}
            if not waiting:
                return
            chosen = _affordable(waiting, budget >> bits, most())
            for key in chosen:
                del waiting[key]
            yield self._try(chosen, budget >> bits, bits, total)

    def _is_worth(self, number: int, part: int, budget: int, bits: int) -> bool:
        """Return whether to try a part: it is unsolved, and no budget as large has failed."""
        if bits:
            return part not in self._solved_parts.get(number, ())
        return budget > self._failed_steps.get(number, 0)

    def _try(
        self,
        parts: Mapping[PartKey, Subproblem],
        max_steps: int,
        bits: int,
        total: Callable[[], Bounds],
    ) -> float:
        """Try these parts; return the cost."""
        memory = self._settings.free_bytes()
        limits = (self._n_masks, max_steps, memory, self._settings.n_threads)
        self._solver.start(list(parts.values()), *limits, *self._tuning)
        work = 0.0
        try:
            self._wait(len(parts), cache(total))
        finally:  # even if interrupted: solved parts stay solved
            self._solver.cancel()
            work = self._take(parts, bits)
        return work

    def _wait(self, n_parts: int, total: Callable[[], Bounds]) -> None:
        """Wait for all parts, or until time runs out."""
        while not self._solver.wait(self._poll_seconds()):
            if self._settings.expired():
                return
            if self._settings.on_progress is not None:
                message = f"{self.n_steps:,} steps"
                self._settings.report(Progress(self._solver.n_done / n_parts, *total(), message))

    def _poll_seconds(self) -> float:
        left = self._settings.seconds_left()
        return costs.POLL_SECONDS if left is None else min(costs.POLL_SECONDS, left)

    def _take(self, parts: Mapping[PartKey, Subproblem], bits: int) -> float:
        """Adopt the solved parts, and the bounds that follow for subproblems; return the cost."""
        work = 0.0
        self.n_slices += 1
        for (number, part), result in zip(parts, self._solver.results(), strict=True):
            status, count, total, size, n_steps = result
            self.n_steps += n_steps
            work += n_steps * costs.SECONDS_PER_STEP
            if status == "steps" and not bits:
                self._failed_steps[number] = n_steps
            if status == "memory":
                self._given_up.add(number)
            elif status == "solved":
                scale = self._whole // total  # by the features that no tree of the task tests
                self._take_part(number, part, bits, count * scale, size * scale)
        return work

    def _take_part(self, number: int, part: int, bits: int, count: Any, size: Any) -> None:
        solved = self._solved_parts.setdefault(number, set())
        low, high = self._by_parts(number) if bits else (count - count, self._whole)
        solved.update([part] if bits else [])
        low, high = low + count, high - (size - count)
        # With weights, sums of parts are rounded: the last part ends the interval.
        is_last = not bits or len(solved) == 2**bits
        self._bounds[number] = (low, low) if is_last else (low, high)


def _affordable(
    waiting: Mapping[PartKey, Subproblem], max_steps: int, most: float
) -> dict[PartKey, Subproblem]:
    """Return the first parts that together cost at most about ``most``, at least one."""
    n = min(len(waiting), max(1, most / (max_steps * costs.SECONDS_PER_STEP)))
    return dict(islice(waiting.items(), int(n)))
