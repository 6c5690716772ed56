"""Who is near whom among the masks, for what is decided mask by mask in arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcount.errors import BudgetError
from xcount.problem.asked import Asked

MAX_PAIRS = 2_000_000
"""Pairs of masks that deciding at a limited distance accepts."""


def neighbour_pairs(problem: Asked) -> NDArray[np.int64]:
    """Return the unordered pairs of neighbours, shape (n_pairs, 2)."""
    pairs: list[tuple[int, int]] = []
    for pair in problem.pairs():
        pairs.append(pair)
        if len(pairs) > MAX_PAIRS:
            raise BudgetError(
                f"more than {MAX_PAIRS:,} pairs of masks; ask about fewer sensitive features, "
                "or about any distance"
            )
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def extremes_near(
    problem: Asked, values: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and the largest value around each mask, itself included.

    The values are those of all masks, row by row; what is not a number makes the extremes around it
    no numbers, either.
    """
    if problem.distance is None:
        return values.min(axis=1, keepdims=True), values.max(axis=1, keepdims=True)
    low, high = values.copy(), values.copy()
    for first, second in neighbour_pairs(problem):
        for a, b in ((first, second), (second, first)):
            np.minimum(low[:, a], values[:, b], out=low[:, a])
            np.maximum(high[:, a], values[:, b], out=high[:, a])
    return low, high
