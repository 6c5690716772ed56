"""Models that round inputs to float32, on float64 inputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from xcount.model.ensemble import Ensemble


def with_float64_inputs(ensemble: Ensemble) -> Ensemble:
    """Return the same model with tests of float64 inputs in place of rounded ones.

    Rounding to float32 is monotone: ``float32(x) < t`` iff ``x`` is below the least float64 that
    rounds to at least ``t``.
    """
    if ensemble.input_dtype == "float64":
        return ensemble
    trees = tuple(
        replace(
            tree,
            threshold=_least_rounded_to(tree.threshold),
            left_ranges={
                node: tuple(_least_rounded_to(np.array(ends)).tolist())
                for node, ends in tree.left_ranges.items()
            },
        )
        for tree in ensemble.trees
    )
    return replace(ensemble, trees=trees, input_dtype="float64")


def _least_rounded_to(thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each threshold the least float64 that rounds to a float32 of at least that.

    Example:
        >>> float(_least_rounded_to(np.array([1.0]))[0]) == 1 - 2.0**-25
        True
    """
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        nearest = thresholds.astype(np.float32)
        above = np.where(nearest < thresholds, np.nextafter(nearest, np.float32(np.inf)), nearest)
        below = np.nextafter(above, np.float32(-np.inf)).astype(np.float64)
        middle = below + (above.astype(np.float64) - below) / 2  # a tie: which of the two is even?
        is_enough = middle.astype(np.float32) >= above
        found = np.where(is_enough, middle, np.nextafter(middle, np.inf))
    # Infinite thresholds only tell missing values from numbers.
    return np.where(np.isfinite(above), found, above.astype(np.float64))
