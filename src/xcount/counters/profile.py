"""The count taken apart, for people: a row for each mask, and for each pair of neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from xcount.counters.tally import MaskCount, PairCount, Profile
from xcount.problem.problem import Problem
from xcount.problem.subproblem import Pair


class Bounds(Protocol):
    """Bounds by number."""

    def __getitem__(self, number: int) -> tuple[Any, Any]: ...


def profile_of(
    problem: Problem, bounds: Sequence[tuple[int, int]], pairs: tuple[PairCount, ...] = ()
) -> Profile:
    """Return the profile of all masks, whose bounds are given in their order."""
    rows = []
    for mask, (low, high) in enumerate(bounds):
        cells = tuple(problem.masks.cells(mask))
        rows.append(MaskCount(cells, problem.describe(cells), low, high, problem.n_combinations))
    return Profile(tuple(rows), pairs)


def pair_rows(problem: Problem, pairs: Sequence[Pair], bounds: Bounds) -> tuple[PairCount, ...]:
    """Return a row for each pair of masks; ``bounds[i]`` is what is known of pair i."""
    rows = []
    for number, (a, b) in sorted(enumerate(pairs), key=lambda item: item[1]):
        cells, other = tuple(problem.masks.cells(a)), tuple(problem.masks.cells(b))
        low, high = bounds[number]
        text = f"{problem.describe(cells)} | {problem.describe(other)}"
        rows.append(PairCount(cells, other, text, low, high, problem.n_combinations))
    return tuple(rows)
