"""Covers: the exact counter's search for several subproblems at once, stopped early.

States are cut in two, the large ones first, until bounds decide them, or until limits end it. What
is decided is certain: ``solved <= count <= solved + open``, in whole numbers, at every moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from xcount import _core
from xcount.counters.engine import Tuning
from xcount.counters.settings import Settings
from xcount.problem.form import PairSpace
from xcount.problem.problem import Problem
from xcount.problem.subproblem import Subproblem

MAX_COVERED_PAIRS = 2_000
"""Pairs of masks that a cover is made for, of all its subproblems together."""
WORK_PER_SLICE = 2_000_000
"""About a twentieth of a second; between slices, limits and interrupts are looked at."""
_PART = 0.25
"""Part of the time and memory left that the difference trees of a cover may take."""
_SECONDS_PER_DIFFERENCE = 1e-7
_BYTES_PER_DIFFERENCE = 16
_TINY_SECONDS = 1e-9


def is_affordable(problem: Problem, settings: Settings, n_pairs: int) -> bool:
    """Tell whether a cover of so many pairs fits the limits: it begins with all their trees."""
    return n_pairs <= affordable_pairs(problem, settings)


def affordable_pairs(problem: Problem, settings: Settings) -> int:
    """Return how many pairs a cover may have within the limits."""
    by_time = _PART * settings.search_seconds() / max(_TINY_SECONDS, seconds_of_trees(problem, 1))
    n_bytes = max(1, _n_nodes(problem, 1)) * _BYTES_PER_DIFFERENCE
    return int(min(MAX_COVERED_PAIRS, by_time, _PART * settings.free_bytes() // n_bytes))


def seconds_of_trees(problem: Problem, n_pairs: int) -> float:
    """Guess how long it takes to make the difference trees that a cover begins with."""
    return _n_nodes(problem, n_pairs) * _SECONDS_PER_DIFFERENCE


def _n_nodes(problem: Problem, n_pairs: int) -> int:
    """Return the most nodes that the difference trees of so many pairs may have."""
    return n_pairs * sum(tree.n_nodes for tree in problem.trees)


def native_cover(space: PairSpace, tasks: Iterable[tuple[Subproblem, int]]) -> _core.Cover:
    """Return the cover of subproblems, each with the number of times it counts.

    Raises:
        BudgetError: trees are too deep or too large to make differences of.
    """
    native = [(list(task.pairs), task.all_pairs, n_times) for task, n_times in tasks]
    return _core.Cover(space.forest, space.masks, space.threshold_limbs, native)


def counts(cover: _core.Cover, whole: int) -> list[tuple[int, int]]:
    """Return for each subproblem how many of all combinations surely solve it, and are open."""
    # Features that no tree of a subproblem tests multiply its counts.
    return [
        (solved * (whole // total), undecided * (whole // total))
        for solved, undecided, total in cover.counts()
    ]


class Refinement:
    """How far a cover was refined, so that the same can be done again elsewhere.

    Args:
        tuning: how small states must be to be enumerated.

    Attributes:
        slices: for each slice, the work asked for and the bytes that the cover might hold.
        work: what all of them took.
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
        """Refine until so much work is done, nothing is left that fits, or the time is up."""
        while (before := cover.work) < target and time.monotonic() < deadline:
            piece = (min(WORK_PER_SLICE, target - before), max_bytes)
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


def fewest_pairs_first(tasks: Sequence[Subproblem], most: int = MAX_COVERED_PAIRS) -> list[int]:
    """Return which subproblems have so many pairs together at most, those with few pairs first."""
    chosen: list[int] = []
    n_pairs = 0
    for number in sorted(range(len(tasks)), key=lambda i: (len(tasks[i].pairs), i)):
        n_pairs += len(tasks[number].pairs)
        if n_pairs > most:
            break
        chosen.append(number)
    return chosen
