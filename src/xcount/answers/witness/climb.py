"""Hill climbing to sensitive regions: cell by cell to where the output can move the most.

For questions whose sensitive regions are too rare to find by chance and too hard to count. Each
region found is sensitive, decided exactly; but it is not a uniform draw from all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from xcount.counters.decisions import RegionDecider
from xcount.counters.swings import SwingRows
from xcount.problem.problem import Problem
from xcount.question.gap import Gap, ProbabilityGap

_POOL = 128
"""Random starts that are compared; climbs start at the best."""
_CLIMBS = 4
"""Climbs from each pool."""
_MAX_CELLS = 128
"""Cells of one feature tried at a time."""
_CHUNK = 32
"""Rows evaluated between two checks of the time."""


def can_climb(problem: Problem) -> bool:
    """Return whether the question can be climbed: not for flips, and not with rules."""
    return isinstance(problem.query.change, Gap | ProbabilityGap) and not problem.is_split


class Climber:
    """Climbs to cells at which the output moves as far as possible.

    Args:
        problem: the question, see :func:`can_climb`.
        decider: decides whether regions are sensitive.
        go_on: called between evaluations; an exception ends the climb.
        seed: seed of all random choices.

    Raises:
        BudgetError: there are too many masks.
    """

    def __init__(
        self, problem: Problem, decider: RegionDecider, go_on: Callable[[], None], seed: int
    ) -> None:
        self._problem, self._decider, self._go_on = problem, decider, go_on
        self._rows = SwingRows(problem)
        self._generator = np.random.default_rng([seed, 3])
        self._sizes = np.array(problem.grid.cell_counts)
        sensitive = set(problem.query.sensitive)
        self._features = np.array(sorted(problem.form.influences() - sensitive), dtype=np.int64)

    def found(self) -> Iterator[tuple[NDArray[np.int64], int]]:
        """Yield sensitive regions: their cells, and the number of their mask."""
        while True:
            starts = self._generator.integers(0, self._sizes, (_POOL, len(self._sizes)))
            heights = self._heights(starts)
            for place in np.argsort(-heights, kind="stable")[:_CLIMBS]:
                top = self._climbed(starts[place], float(heights[place]))
                masks = np.flatnonzero(self._decider.decide(top[np.newaxis])[0])
                if len(masks):
                    yield top, int(self._generator.choice(masks))

    def _climbed(self, row: NDArray[np.int64], height: float) -> NDArray[np.int64]:
        """Return the first sensitive cells on the way up, or the top."""
        is_higher = True
        while is_higher and not self._decider.decide(row[np.newaxis]).any():
            is_higher = False
            for feature in self._generator.permutation(self._features):
                tried = self._beside(row, int(feature))
                heights = self._heights(tried)
                best = int(np.argmax(heights))
                if heights[best] > height:
                    row, height, is_higher = tried[best], float(heights[best]), True
        return row

    def _beside(self, row: NDArray[np.int64], feature: int) -> NDArray[np.int64]:
        """Return the row with other cells of one feature: all of them, or a limited number."""
        n_cells = int(self._sizes[feature])
        cells = np.arange(n_cells)
        if n_cells > _MAX_CELLS:
            cells = self._generator.choice(n_cells, _MAX_CELLS, replace=False)
        tried = np.repeat(row[np.newaxis], len(cells), axis=0)
        tried[:, feature] = cells
        return tried

    def _heights(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how far the output of each row can move."""
        found = []
        step = max(1, min(_CHUNK, self._rows.block))
        for first in range(0, len(rows), step):
            self._go_on()
            outputs = self._rows.outputs(rows[first : first + step].astype(np.int32))
            sizes = self._rows.swings(outputs).size(self._problem.query.change.direction)
            found.append(sizes.max(axis=1).astype(np.float64))
        return np.concatenate(found)
