"""A cut-off that is given as a probability."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import effort
import oracle
import pytest
from strategies import random_ensemble, with_moderate_leaves

import xcount
from xcount.errors import QueryError
from xcount.model.ensemble import Ensemble
from xcount.model.examples import figure_1
from xcount.question.query import Query


def flips_by_probability(ensemble: Ensemble, feature: int, cutoff: Fraction) -> int:
    """Count the regions from which the sign of "probability - cutoff" changes, by the oracle."""
    axes = [oracle.cells(ensemble, f) for f in range(len(ensemble.features))]
    found = 0
    others = [axis for f, axis in enumerate(axes) if f != feature]
    for rest in itertools.product(*others):
        above = []
        for value in axes[feature]:
            point = [*rest[:feature], value, *rest[feature:]]
            sums = oracle.margins(ensemble, point, None)
            above.append(oracle.probability(ensemble, sums, 0) > cutoff)
        found += len(above) if len(set(above)) == 2 else 0
    return found


@pytest.mark.parametrize("seed", range(effort.n_examples(12)))
def test_flips_at_a_probability_are_those_of_the_definition(seed: int) -> None:
    """The decision is whether the probability, computed in fractions, is above the cut-off."""
    drawn = with_moderate_leaves(random_ensemble(seed, max_features=3, max_trees=5))
    ensemble = replace(drawn, task="binary", probability="sigmoid")
    for cutoff in ("0.3", "0.5", "0.9"):
        found = xcount.count(ensemble, sensitive=0, flip=True, cutoff_probability=cutoff)
        assert found.exact
        assert found.count == flips_by_probability(ensemble, 0, Fraction(cutoff)), cutoff


def test_votes_are_probabilities() -> None:
    """A forest's mean vote is its probability: the cut-off is taken as it is written."""
    votes = replace(figure_1(), task="binary", probability="margin")
    by_margin = Query.of(votes, "f0", flip=True, cutoff="0.3").change
    options: dict[str, Any] = {"flip": True, "sensitive": "f0"}
    found = xcount.count(votes, cutoff_probability="0.3", **options)
    assert found.change == by_margin


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"flip": True, "cutoff_probability": 2}, "must be between 0 and 1, not 2"),
        ({"flip": True, "cutoff_probability": 1}, "no margin has 1"),
        ({"flip": True, "cutoff_probability": 0.5, "cutoff": 0}, "not both"),
        ({"gap": 1, "cutoff_probability": 0.5}, "a cut-off only applies to flips"),
    ],
)
def test_a_mistaken_cut_off_is_refused(options: dict[str, Any], message: str) -> None:
    """What is no probability, given twice, or given without a flip."""
    model = replace(figure_1(), task="binary", probability="sigmoid")
    with pytest.raises(QueryError, match=message):
        xcount.count(model, sensitive="f0", **options)


def test_a_regressor_has_no_probability() -> None:
    """The message says so."""
    model = replace(figure_1(), task="regression", probability="none")
    with pytest.raises(QueryError, match="predicts no probability"):
        xcount.count(model, sensitive="f0", flip=True, cutoff_probability=0.5)
