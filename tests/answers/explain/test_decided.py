"""Which regions get a decision: the question with a switch against the definition."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import oracle
import pytest
from strategies import random_classifier

from xcount.answers.explain.decided import OFF, Decision, problem_of_not_deciding
from xcount.counters.decisions import RegionDecider
from xcount.problem.problem import Problem
from xcount.question.flip import Flip
from xcount.question.grid import Grid
from xcount.question.query import Query


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("tie_is_above", [False, True])
def test_the_switch_flips_where_the_decision_is_another(seed: int, tie_is_above: bool) -> None:
    """One sum at any cut-off, several classes, bases, divisors, ties, missing cells."""
    ensemble = random_classifier(seed)
    cutoff = Fraction(seed % 5 - 2, 2) if ensemble.n_outputs == 1 else None
    flip = Flip(cutoff, tie_is_above=tie_is_above and cutoff is not None)
    grid = Grid.of(ensemble, missing="cell")
    problem = Problem(ensemble, grid, Query((0,), flip))
    regions = oracle.all_regions(problem)
    sums = [oracle.margins(ensemble, grid.point(region).tolist(), None) for region in regions]
    taken = np.array([flip.decision(each) for each in sums])
    off = np.concatenate([regions, np.full((len(regions), 1), OFF)], axis=1)
    for value in range(max(2, ensemble.n_outputs)):
        decider = RegionDecider(problem_of_not_deciding(problem, Decision(flip, value, "")))
        assert (decider.decide_regions(off) == (taken != value)).all()


def test_how_a_flip_starts_does_not_matter() -> None:
    """Direction and sureness are about changes, not about decisions."""
    ensemble = random_classifier(1)
    flip = Flip(Fraction(0), direction="up")
    problem = Problem(ensemble, Grid.of(ensemble), Query((0,), flip))
    found = problem_of_not_deciding(problem, Decision(flip, 1, ""))
    assert found.query.change == replace(flip, direction="any")
