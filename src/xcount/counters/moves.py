"""How far regions can move, kept for all questions that differ only in their gaps and directions.

One evaluation of the rows of a table answers every gap of an audit: a row is sensitive iff its size
exceeds the gap. Sizes that floats cannot tell from the gap are decided by the question's own sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from xcount.counters.decisions import RegionDecider
from xcount.counters.swings import Flags, Swings
from xcount.problem.problem import Problem
from xcount.question.flip import Flip
from xcount.question.gap import Gap, ProbabilityGap
from xcount.support.workspace import Slot


@dataclass(frozen=True, eq=False)
class Moves:
    """How far some regions can move.

    Attributes:
        swings: how far each can rise and fall.
        unit: what 1 stands for in the swings.
        doubt: bound on the error of swings other than 0, in units; 0 for integers.
    """

    swings: Swings
    unit: Fraction
    doubt: float

    def exceed(self, problem: Problem, regions: NDArray[np.integer]) -> Flags:
        """Return which of the regions, the same as those of the swings, are sensitive."""
        change = problem.query.change
        size = self.swings.size(change.direction)
        if isinstance(change, Flip):
            return size > 0
        if size.dtype == np.int64:
            return size > min(math.floor(change.order / self.unit), 2**63 - 1)
        gap, doubt = float(change.order / self.unit), 2 * self.doubt
        flags: Flags = size > gap + doubt
        near = np.flatnonzero(~flags & (size >= gap - doubt) & (size > 0))
        if len(near):
            flags[near] = RegionDecider(problem).decide_regions(regions[near])
        return flags


_MOVES: Slot[tuple[object, ...], Moves] = Slot("how far regions can move")


def kept_moves(problem: Problem, regions: Hashable, find: Callable[[], Moves]) -> Moves:
    """Return how far regions can move: as found before for another gap, or now.

    Args:
        problem: the question, not split into parts.
        regions: what tells these regions from others of the same grid.
        find: finds how far they can move.
    """
    return problem.grid.workspace.once(_MOVES, _key(problem, regions), find)


def known_moves(problem: Problem, regions: Hashable) -> Moves | None:
    """Return how far regions can move if that was found before."""
    return problem.grid.workspace.known(_MOVES, _key(problem, regions))


def _key(problem: Problem, regions: Hashable) -> tuple[object, ...]:
    query, change = problem.query, problem.query.change
    if isinstance(change, Gap | ProbabilityGap):
        change = replace(change, gap=Fraction(0), direction="any")
    return problem.ensemble, query.sensitive, query.distance, query.precision, change, regions
