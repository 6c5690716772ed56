"""Neighbour lists of masks within a distance."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from xcount.errors import BudgetError
from xcount.problem.asked import Asked

MAX_PAIRS = 2_000_000
"""The most pairs of masks for deciding at a limited distance."""
MAX_NEAR = 1 << 19
"""The most entries of a table of all neighbours that is quick to make."""


class NearMasks:
    """The neighbours of masks within a limited distance, for all masks or only some.

    Args:
        problem: the question.

    Example:
        >>> from xcount.model.examples import figure_1
        >>> from xcount.question.grid import Grid
        >>> from xcount.question.query import Query
        >>> model = figure_1()
        >>> near = NearMasks(Asked(model, Grid.of(model), Query.of(model, "f0", 80, distance=1)))
        >>> near.table.tolist()
        [[0, 1, 0], [0, 1, 2], [1, 2, 1]]
    """

    def __init__(self, problem: Asked) -> None:
        self._problem = problem

    @classmethod
    def of_question(cls, problem: Asked) -> NearMasks | None:
        """Return the neighbours of a question's masks; None if all masks are neighbours."""
        return None if problem.distance is None else cls(problem)

    @property
    def width(self) -> int:
        """About how many neighbours a mask has, itself included; seldom more."""
        return 1 + 2 * self._problem.n_pairs_about // self._problem.n_masks

    @property
    def is_soon_listed(self) -> bool:
        """Whether the table of the neighbours of all masks is quick to make."""
        return self.width * self._problem.n_masks <= MAX_NEAR

    def of(self, masks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return each mask and its neighbours; one is repeated to fill a row."""
        each, which = np.unique(masks, return_inverse=True)
        return self._listed(each.tolist())[which]

    @cached_property
    def table(self) -> NDArray[np.int64]:
        """The same for all masks.

        Raises:
            BudgetError: there are too many pairs of neighbours.
        """
        return self._listed(range(self._problem.n_masks))

    def _listed(self, masks: Iterable[int]) -> NDArray[np.int64]:
        listed: list[tuple[int, ...]] = []
        n_entries = width = 0
        for mask in masks:
            listed.append(self._problem.around(mask))
            n_entries += len(listed[-1])
            width = max(width, len(listed[-1]))
            if n_entries - len(listed) > 2 * MAX_PAIRS:
                raise BudgetError(
                    f"more than {MAX_PAIRS:,} pairs of masks; ask about fewer sensitive features, "
                    "or about any distance"
                )
        found = np.empty((len(listed), width), dtype=np.int64)
        for row, near in zip(found, listed, strict=True):
            row[: len(near)] = near
            row[len(near) :] = near[0]
        return found

    def differ(self, values: NDArray[np.int16]) -> NDArray[np.bool_]:
        """Return which masks have a neighbour with another value; (n_rows, n_masks) each."""
        by_mask = np.ascontiguousarray(values.T)
        flags = np.zeros(by_mask.shape, dtype=np.bool_)
        for near in self.table.T:
            flags |= by_mask[near] != by_mask
        return flags.T

    def extremes(
        self, values: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the smallest and the largest value around each mask, itself included.

        The values are those of all masks, row by row; NaN makes the extremes around it NaN.
        """
        by_mask = np.ascontiguousarray(values.T)
        low, high = by_mask.copy(), by_mask.copy()
        for near in self.table.T:
            np.minimum(low, by_mask[near], out=low)
            np.maximum(high, by_mask[near], out=high)
        return low.T, high.T
