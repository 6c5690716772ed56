"""The profile of a count: a row for each mask, and for each pair of neighbouring masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from xcount.counters.tally import MaskCount, PairCount, Profile
from xcount.problem.problem import Problem
from xcount.problem.subproblem import Pair
from xcount.question.cell import CellRange


class BoundsByNumber(Protocol):
    """Bounds of pairs, by the number of the pair."""

    def __getitem__(self, number: int) -> tuple[Any, Any]: ...


def profile_of(
    problem: Problem, bounds: Sequence[tuple[int, int]], pairs: tuple[PairCount, ...] = ()
) -> Profile:
    """Return the profile of the masks that are counted, whose bounds are given in their order."""
    ranges = _Ranges(problem)
    rows = []
    for mask, (low, high) in zip(problem.counted_masks, bounds, strict=True):
        cells = tuple(problem.masks.cells(mask))
        rows.append(MaskCount(cells, ranges.of(cells), low, high, problem.n_combinations))
    return Profile(tuple(rows), pairs)


def pair_rows(
    problem: Problem, pairs: Sequence[Pair], bounds: BoundsByNumber
) -> tuple[PairCount, ...]:
    """Return a row for each pair of masks; ``bounds[i]`` are the bounds of pair i."""
    ranges = _Ranges(problem)
    whole = problem.n_combinations
    rows = []
    for number, (a, b) in sorted(enumerate(pairs), key=lambda item: item[1]):
        cells, other = tuple(problem.masks.cells(a)), tuple(problem.masks.cells(b))
        low, high = bounds[number]
        rows.append(PairCount(cells, other, ranges.of(cells), ranges.of(other), low, high, whole))
    return tuple(rows)


class _Ranges:
    """The ranges of the sensitive features' cells; each is made once."""

    def __init__(self, problem: Problem) -> None:
        axes = (problem.grid.axes[f] for f in problem.query.sensitive)
        self._of_axes = [[axis.cell_range(c) for c in range(axis.n_cells)] for axis in axes]

    def of(self, cells: Sequence[int]) -> tuple[CellRange, ...]:
        return tuple(of_axis[c] for of_axis, c in zip(self._of_axes, cells, strict=True))
