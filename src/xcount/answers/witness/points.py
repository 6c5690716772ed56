"""Readable inputs for cells: the shortest decimals that lie in them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from xcount.question.grid import Axis, Grid

_MAX_DECIMALS = 20


def friendly_point(
    grid: Grid, cells: Sequence[int], keep: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return an input in the region with simple numbers; values of ``keep`` stay if they can.

    Example:
        >>> from xcount.model.examples import figure_1
        >>> friendly_point(Grid.of(figure_1()), [1, 0]).tolist()
        [3.0, 1.0]
    """
    values = []
    for index, (axis, cell) in enumerate(zip(grid.axes, cells, strict=True)):
        if keep is not None and _holds(axis, int(cell), float(keep[index]), grid.input_dtype):
            values.append(float(keep[index]))
        else:
            values.append(friendly_value(axis, int(cell), grid.input_dtype))
    return np.array(values, dtype=np.float64)


def friendly_value(axis: Axis, cell: int, dtype: str) -> float:
    """Return a value of the cell: the decimal with the fewest digits, near the cell's middle."""
    fallback = axis.point(cell, dtype)
    if cell == axis.missing_cell or axis.feature.is_categorical:
        return fallback
    low, high = axis.numbers.pieces(cell)[0]
    if low == -math.inf and high == math.inf:
        return fallback
    low, high = _closed(axis, low, high)
    middle = low + (high - low) / 2
    for decimals in range(_MAX_DECIMALS):
        nearest = round(middle, decimals)
        step = 10.0**-decimals
        for value in (nearest, nearest + step, nearest - step):
            if low <= value < high and _holds(axis, cell, value, dtype):
                return value + 0.0  # no -0.0
    return fallback


def _closed(axis: Axis, low: float, high: float) -> tuple[float, float]:
    """Return the ends of a piece; an infinite end is put at zero, or about a cell's width away."""
    thresholds = axis.thresholds
    span = (
        float(thresholds[-1] - thresholds[0]) / (len(thresholds) - 1)
        if len(thresholds) > 1
        else 0.0
    )
    first = thresholds[0] if len(thresholds) else low if math.isfinite(low) else high
    width = span if math.isfinite(span) and span > 0 else max(1.0, abs(float(first)))
    if low == -math.inf:
        return (0.0 if 0 < high <= 4 * width else high - width), high
    return low, high if high < math.inf else low + width


def _holds(axis: Axis, cell: int, value: float, dtype: str) -> bool:
    """Return whether the library, which rounds to ``dtype``, puts the value in the cell."""
    with np.errstate(over="ignore"):
        rounded = np.array([value], dtype=dtype).astype(np.float64)
    return int(axis.cells_of(rounded)[0]) == cell
