"""Exact counts of subproblems as far as they are known, whatever the subproblems stand for.

They are tried in rounds with growing budgets of steps, so that a hard one never keeps easy ones
from being counted. The hard ones are cut into parts: a single one keeps all threads busy, too, and
what is known of some parts bounds the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import cache
from typing import Generic, TypeVar

from xcount.cluster.spread import Solver, Tuning
from xcount.counters.base import Progress, Settings
from xcount.problem.problem import Subproblem

Key = TypeVar("Key", bound=Hashable)

PART_BITS = 5
"""Hard subproblems are cut into two to the power of this many parts."""
HARD_STEPS = 10_000_000
"""Hard is what such a budget of steps does not suffice for; parts share the larger ones."""
_POLL_SECONDS = 0.1


class KnownCounts(Generic[Key]):
    """What is known of the counts of subproblems, under the keys of who asked for them.

    Args:
        solver: solves tasks in the background.
        n_masks: of the problem whose pairs of masks the subproblems name.
        whole: how many x there are.
        settings: limits, and who wants to hear of progress.
        tuning: of the solver.
    """

    def __init__(
        self, solver: Solver, n_masks: int, whole: int, settings: Settings, tuning: Tuning
    ) -> None:
        self._solver, self._n_masks, self._whole = solver, n_masks, whole
        self._settings, self._tuning = settings, tuning
        self._bounds: dict[Key, tuple[int, int]] = {}
        self._solved_parts: set[tuple[Key, int]] = set()
        self._given_up: set[Key] = set()
        self.n_steps = 0

    def __getitem__(self, key: Key) -> tuple[int, int]:
        """Return bounds of the count of the subproblem with that key: equal when it is known."""
        return self._bounds.get(key, (0, self._whole))

    @property
    def lacked_memory(self) -> bool:
        """Whether a subproblem was given up because its tables did not fit."""
        return bool(self._given_up)

    def solve(
        self, tasks: Mapping[Key, Subproblem], budget: int, total: Callable[[], tuple[int, int]]
    ) -> None:
        """Try each task within the budget of steps, until the time is up.

        Args:
            tasks: what is still open, by key.
            budget: steps for each.
            total: returns bounds of what these are for, to be told along with the progress.
        """
        bits = PART_BITS if budget > HARD_STEPS else 0
        open_parts = {
            (key, part): Subproblem(*task[:2], part, bits)
            for key, task in tasks.items()
            if key not in self._given_up
            for part in range(2**bits)
            if not bits or (key, part) not in self._solved_parts
        }
        if not open_parts or self._settings.expired():
            return
        memory = self._settings.free_bytes()
        limits = (self._n_masks, budget >> bits, memory, self._settings.n_threads)
        self._solver.start(list(open_parts.values()), *limits, *self._tuning)
        try:
            self._wait(len(open_parts), cache(total))
        finally:  # also when interrupted: what was solved is solved
            self._solver.cancel()
            self._take(open_parts, bits)

    def _wait(self, n_parts: int, total: Callable[[], tuple[int, int]]) -> None:
        """Wait for all parts, or until the time is up."""
        while not self._solver.wait(self._poll_seconds()):
            if self._settings.expired():
                return
            if self._settings.on_progress is not None:
                message = f"{self.n_steps:,} steps"
                self._settings.report(Progress(self._solver.n_done / n_parts, *total(), message))

    def _poll_seconds(self) -> float:
        left = self._settings.seconds_left()
        return _POLL_SECONDS if left is None else min(_POLL_SECONDS, left)

    def _take(self, parts: Mapping[tuple[Key, int], Subproblem], bits: int) -> None:
        """Take over what was solved, and what follows for the whole subproblems."""
        for (key, part), result in zip(parts, self._solver.results(), strict=True):
            status, count, total, size, n_steps = result
            self.n_steps += n_steps
            if status == "memory":
                self._given_up.add(key)
            elif status == "solved":
                scale = self._whole // total  # by the features that no tree of the task tests
                low, high = self[key] if bits else (0, self._whole)
                self._bounds[key] = (low + count * scale, high - (size - count) * scale)
                self._solved_parts.update([(key, part)] if bits else [])
