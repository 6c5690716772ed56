"""Rates of decisions, turned into questions about flips.

An extra feature, the *switch*, has two cells: *on* leaves the model as it is, *off* makes the
favourable decision everywhere. Changing only the switch flips the decision of a region iff the
model's own decision there is a different one::

    (region, off) is sensitive to the switch  iff  the decision there is not the favourable one

so the code that counts, weighs or samples flips also finds rates of decisions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from xcount.model.ensemble import Ensemble, Feature
from xcount.model.grafts import step, zero_under
from xcount.problem.problem import Problem
from xcount.question.flip import Flip
from xcount.question.grid import Axis, Grid
from xcount.question.query import Query

OFF, ON = 0, 1
_SWITCH = Feature("decision", (OFF, ON))


@dataclass(frozen=True, slots=True)
class Decision:
    """One of the possible decisions of a model.

    Attributes:
        flip: how the model decides.
        value: the decision: 1 above the cut-off and 0 below it, or the class that wins.
        label: its name.
        is_assumed: whether nobody named it as the favourable one.
    """

    flip: Flip
    value: int
    label: str
    is_assumed: bool = False


def problem_of_not_deciding(problem: Problem, decision: Decision) -> Problem:
    """Return the question of which regions do *not* get the decision.

    Its last feature is the switch, and it covers only regions with the switch off.
    """
    grid, ensemble = problem.grid, problem.ensemble
    switch = Axis(_SWITCH, np.empty(0), ((OFF,), (ON,)), dtype=grid.input_dtype)
    flip = replace(decision.flip, direction="any", sureness=None)
    query = Query((len(grid.axes),), flip, None, problem.query.precision)
    cells = Grid((*grid.axes, switch), grid.input_dtype, grid.domain, grid.rules, grid.allowed)
    return Problem(_switched(ensemble, decision), cells, query)


def _switched(ensemble: Ensemble, decision: Decision) -> Ensemble:
    """Return the ensemble with the switch as its last feature."""
    feature = ensemble.n_features
    trees = [zero_under(tree, feature, OFF) for tree in ensemble.trees]
    cutoff = decision.flip.cutoff
    # Beyond all bases and the cut-off; a power of two, so that no sum of leaves is rounded.
    least = sum(map(abs, ensemble.base)) + abs(float(cutoff or 0)) + 1
    constant = 2.0 ** math.ceil(math.log2(least)) * ensemble.divisor
    is_below = cutoff is not None and decision.value == 0
    output = 0 if cutoff is not None else decision.value
    trees.append(step(feature, -constant if is_below else constant, 0.0, output))
    return replace(
        ensemble, features=(*ensemble.features, _SWITCH), trees=tuple(trees), encoding=None
    )
