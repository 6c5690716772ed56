"""Rounded values whose bounds are within their limits.

A solver's digits and the library's floats move every leaf a little, and with it every bound. The
differences inside components are scaled down until the rounded values keep the limits: by a hair in
practice, and in the end to 0, where all slots of a component hold the same float and every change
of the sum is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from xcount.repairs.objective import Objective
from xcount.repairs.program import Limit
from xcount.repairs.shrink import scaled
from xcount.repairs.writers.writer import Values

_ROUNDS = 16
_GROWTH = 8
"""How much faster the factor falls in each round: from the last digit to a thousandth in time."""
_UNIT = 2.0**-51
"""Rounding of a difference of two leaves and of one addition in float64, with some room."""


def within_limits(
    values: Values,
    limits: Sequence[Limit],
    component_of: NDArray[np.int64],
    objective: Objective,
    rounded: Callable[[Values], Values],
) -> Values:
    """Return rounded values that keep all limits, as close to the given ones as scaling allows."""
    factor, step = 1.0, 0.0
    for _ in range(_ROUNDS):
        found = rounded(scaled(values, component_of, objective, factor))
        excess = max((_relative_excess(found, each) for each in limits), default=0.0)
        if excess <= 0:
            return found
        step = _GROWTH * step + excess
        factor = max(0.0, factor * (1 - step))
    return rounded(scaled(values, component_of, objective, 0.0))


def _relative_excess(values: Values, limit: Limit) -> float:
    """Return which part of the largest bound is above the limit."""
    largest = limit.bounds.largest_sum(values)
    return _excess(values, limit) / largest if largest > 0 else 0.0


def _excess(values: Values, limit: Limit) -> float:
    """Return how far the bounds may be above the limit, in real numbers."""
    largest = limit.bounds.largest_sum(values)
    return largest + (_slack(values, limit) if largest > 0 else 0.0) - limit.limit


def _slack(values: Values, limit: Limit) -> float:
    """Return how far a sum of differences in float64 can be from the real one.

    Adding n numbers one by one is off by at most about ``n * u * sum of |number|`` with u the unit
    roundoff (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2).
    """
    slots = np.unique(limit.bounds.linked)
    largest = float(np.abs(values[slots]).max(initial=0.0))
    n_trees = len(limit.bounds.trees)
    return _UNIT * largest * n_trees * (n_trees + 2)
