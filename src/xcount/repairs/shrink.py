"""Shrunk differences: every change of the sum becomes smaller by the same factor.

Scaling the differences of leaves inside every component by a factor scales all changes of the sum
by it, whatever the input. So the share of the shrunk model at a gap G is the share of the model at
G / factor. Afterwards, components as a whole and the slots that no bound is about may move, to make
up for the change of predictions: that changes no difference.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.repairs.objective import Objective
from xcount.repairs.writers.writer import Values


def scaled(
    values: Values, component_of: NDArray[np.int64], objective: Objective, factor: float
) -> Values:
    """Return the values with all differences inside components multiplied by a factor.

    The centre of a component is its mean over the rows; with the factor 0 all of its slots get the
    same number.
    """
    own = component_of >= 0
    if factor == 1.0 or not own.any():
        return values
    weights = np.zeros(len(values))
    weights[objective.kept] = objective.gram.diagonal()
    weights = np.where(own & (weights <= 0), 1e-12, weights)
    total = np.bincount(component_of[own], weights[own])
    centre = np.bincount(component_of[own], (weights * values)[own]) / total
    found = values.copy()
    middle = centre[component_of[own]]
    found[own] = middle + factor * (values[own] - middle)
    return found


def compensated(
    before: Values, after: Values, component_of: NDArray[np.int64], objective: Objective
) -> Values:
    """Return values whose components and free slots are moved to cost least."""
    from scipy.linalg import cho_factor, cho_solve
    from scipy.sparse import csr_array

    kept, gram = objective.kept, objective.gram
    if not len(kept):
        return after
    group = component_of[kept].copy()
    n_components = int(group.max(initial=-1)) + 1
    free = np.flatnonzero(group < 0)
    group[free] = n_components + np.arange(len(free))
    used, group = np.unique(group, return_inverse=True)
    table: Any = csr_array(
        (np.ones(len(kept)), (np.arange(len(kept)), group.ravel())), shape=(len(kept), len(used))
    )
    change = (after - before)[kept]
    inner = table.T @ (table.T @ gram).T
    moves = cho_solve(cho_factor(inner), -(table.T @ (gram @ change)))
    found = after.copy()
    found[kept] += table @ moves
    return found
