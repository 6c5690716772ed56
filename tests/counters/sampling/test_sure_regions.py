"""Sure decisions between several classes, region by region, however many masks there are."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import oracle
from numpy.typing import NDArray
from oracle import all_regions
from strategies import random_classifier
from sums_of_cells import STUMPS, check_many_masks

import xcount
from xcount.counters.decisions import RegionDecider
from xcount.counters.region_search import RegionSearch
from xcount.model.ensemble import Ensemble
from xcount.model.examples import ensemble_of
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query


def sure_question(distance: int) -> Problem:
    """Ask where a sure decision between two classes flips: 8 million masks, the sum against 4."""
    model = replace(ensemble_of(*STUMPS), base=(0.0, 4.0), task="multiclass", probability="softmax")
    words: dict[str, Any] = {"flip": True, "from_probability": "0.6"}
    query = Query.of(model, range(3), distance=distance, **words)
    return Problem(model, Grid.of(model), query)


def test_sure_decisions_of_classes_are_answered_with_any_number_of_masks() -> None:
    """A count within its accuracy, given regions, and witnesses."""
    problem = sure_question(60)
    check_many_masks(problem, Fraction(4))
    found = xcount.witnesses(
        problem.ensemble, sensitive=range(3), flip=True, from_probability="0.6", distance=60, n=3
    )
    assert len(found) == 3
    assert all(witness.decision != witness.other_decision for witness in found)


def test_partners_of_sure_decisions_decide_otherwise() -> None:
    """The other side of every sensitive region is within the distance, and has another class."""
    n_sensitive = 0
    for seed in range(40):
        model = replace(random_classifier(seed), task="multiclass", probability="softmax")
        if model.n_outputs == 1:
            continue
        query = Query.of(model, [0], flip=True, from_probability="0.4", distance=2)
        problem = Problem(model, Grid.of(model), query)
        search, regions = RegionSearch(problem.form.corner_question), all_regions(problem)
        flags = search.decide(regions)
        assert flags.tolist() == RegionDecider(problem).decide_regions(regions).tolist()
        for region in regions[flags]:
            (cell,) = search.partner(region)
            other = np.array([cell, *region[1:]])
            decided = {
                _decision(model, problem.grid.point(each.tolist())) for each in (region, other)
            }
            assert len(decided) == 2
            assert problem.grid.axes[0].distance(int(region[0]), cell) <= 2
        n_sensitive += int(flags.sum())
    assert n_sensitive > 50


def _decision(model: Ensemble, point: NDArray[np.float64]) -> int:
    sums = oracle.margins(model, point.tolist(), None)
    return sums.index(max(sums))
