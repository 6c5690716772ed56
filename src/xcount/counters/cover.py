"""Covers: the exact counter's search for several subproblems at once, stopped early.

States are cut in two, the large ones first, until bounds decide them or a limit stops the search.
Decided states are certain: ``solved <= count <= solved + open``, in whole numbers, at any time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from xcount import _core
from xcount.counters import costs
from xcount.counters.engine import Tuning
from xcount.counters.settings import Settings
from xcount.problem.form import PairSpace
from xcount.problem.problem import Problem
from xcount.problem.subproblem import Subproblem

_TINY_SECONDS = 1e-9
"""Stands for a price of 0 in divisions."""


def is_affordable(problem: Problem, settings: Settings, n_pairs: int) -> bool:
    """Return whether a cover of so many pairs fits the limits: it starts with all their trees."""
    is_in_time = n_pairs <= _pairs_in_time(problem, settings)
    is_small = n_pairs <= _pairs_in_memory(problem, settings)
    settings.cuts.samples |= is_small and not is_in_time
    return is_small and is_in_time


def affordable_pairs(problem: Problem, settings: Settings) -> int:
    """Return how many pairs a cover may have within the limits."""
    return int(min(_pairs_in_time(problem, settings), _pairs_in_memory(problem, settings)))


def _pairs_in_time(problem: Problem, settings: Settings) -> float:
    price = seconds_of_trees(problem, 1)
    return costs.DIFFERENCES_PART * settings.search_seconds() / max(_TINY_SECONDS, price)


def _pairs_in_memory(problem: Problem, settings: Settings) -> float:
    n_bytes = max(1, _n_nodes(problem, 1)) * costs.BYTES_PER_DIFFERENCE
    return min(costs.MAX_COVERED_PAIRS, costs.DIFFERENCES_PART * settings.free_bytes() // n_bytes)


def seconds_of_trees(problem: Problem, n_pairs: int) -> float:
    """Predict how long it takes to make the difference trees that a cover starts with."""
    return _n_nodes(problem, n_pairs) * costs.SECONDS_PER_DIFFERENCE


def _n_nodes(problem: Problem, n_pairs: int) -> int:
    """Return the most nodes that the difference trees of so many pairs may have."""
    return n_pairs * sum(tree.n_nodes for tree in problem.trees)


def can_cover_pairs(problem: Problem, settings: Settings) -> bool:
    """Return whether boxes of pairs may cover the question, and their trees fit the limits.

    Distances between few masks, or with a limit, have few pairs: they are covered pair by pair.
    """
    if problem.distance is not None or problem.n_masks < costs.LEAST_PAIR_MASKS:
        return False
    most = costs.MAX_PAIR_LEAVES // max(1, len(problem.trees))
    n_leaves = sum(min(most, tree.n_nodes**2 // 4) for tree in problem.trees)
    part = costs.DIFFERENCES_PART
    is_in_time = n_leaves * costs.SECONDS_PER_PAIR_LEAF <= part * settings.search_seconds()
    is_small = n_leaves * costs.BYTES_PER_PAIR_LEAF <= part * settings.free_bytes()
    settings.cuts.samples |= is_small and not is_in_time
    return is_small and is_in_time


def native_cover(space: PairSpace, tasks: Iterable[tuple[Subproblem, int]]) -> _core.Cover:
    """Return the cover of subproblems, each with the number of times it counts.

    Raises:
        BudgetError: trees are too deep or too large to make differences of.
    """
    native = [(list(task.pairs), task.all_pairs, n_times) for task, n_times in tasks]
    return _core.Cover(space.forest, space.masks, space.threshold_limbs, native)


def counts(cover: _core.Cover, whole: int) -> list[tuple[int, int]]:
    """Return for each subproblem how many combinations surely solve it, and how many are open."""
    # Features that no tree of a subproblem tests multiply its counts.
    return [
        (solved * (whole // total), undecided * (whole // total))
        for solved, undecided, total in cover.counts()
    ]


class Refinement:
    """The steps by which a cover was refined, recorded so that another process can repeat them.

    Args:
        tuning: how small states must be to be enumerated.

    Attributes:
        slices: for each slice, the requested work and the bytes that the cover might hold.
        work: the work of all slices.
    """

    def __init__(self, tuning: Tuning | None = None) -> None:
        self.slices: list[tuple[int, int]] = []
        self.work = 0
        self._max_paths = (tuning or Tuning()).max_paths

    def run(
        self,
        cover: _core.Cover,
        target: int,
        max_bytes: int,
        deadline: float,
        n_threads: int,
        on_pause: Callable[[], None],
    ) -> None:
        """Refine until so much work is done, nothing more fits, or time runs out."""
        while (before := cover.work) < target and time.monotonic() < deadline:
            piece = (min(costs.COVER_WORK_PER_SLICE, target - before), max_bytes)
            cover.refine(*piece, n_threads, self._max_paths)
            self.slices.append(piece)
            self.work = cover.work
            on_pause()
            if cover.work == before:
                break

    def repeat(self, cover: _core.Cover) -> None:
        """Refine a new cover in the same way."""
        for piece in self.slices:
            cover.refine(*piece, 1, self._max_paths)


def fewest_pairs_first(
    tasks: Sequence[Subproblem], most: int = costs.MAX_COVERED_PAIRS
) -> list[int]:
    """Return subproblems with at most so many pairs in total, those with few pairs first."""
    chosen: list[int] = []
    n_pairs = 0
    for number in sorted(range(len(tasks)), key=lambda i: (len(tasks[i].pairs), i)):
        n_pairs += len(tasks[number].pairs)
        if n_pairs > most:
            break
        chosen.append(number)
    return chosen
