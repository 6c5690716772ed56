"""Two models as one ensemble: at each of the chooser's categories it answers like that model."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import oracle
import pytest
from strategies import random_ensemble

from xcount.errors import QueryError
from xcount.model.align import aligned, own_columns
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.examples import ensemble_of
from xcount.model.rounding import _least_rounded_to, with_float64_inputs
from xcount.model.two_models import (
    Terms,
    TwoModels,
    merged_trees,
)
from xcount.problem.exact_sums import ExactSums
from xcount.question.grid import Grid


def some_points(ensembles: list[Ensemble], seed: int) -> np.ndarray:
    """Return points of random regions of the shared grid."""
    grid, rng = Grid.of(*ensembles, missing="cell"), np.random.default_rng(seed)
    cells = [rng.integers(n, size=20) for n in grid.cell_counts]
    return np.array([grid.point(region) for region in np.stack(cells, axis=1)])


def two_random(seed: int) -> list[Ensemble]:
    """Return two models on some common features; mostly numbers, leaves with ties."""
    first = random_ensemble(seed, scale="ties")
    second = random_ensemble(seed + 10_000, scale="ties")
    for place, feature in enumerate(second.features):
        known = {other.name: other for other in first.features}.get(feature.name)
        if known is not None and known.is_categorical != feature.is_categorical:
            names = [*second.features]
            names[place] = replace(feature, name=f"other {feature.name}")
            second = replace(second, features=tuple(names))
    if not set(first.feature_names) & set(second.feature_names):
        return [random_ensemble(seed + k, scale="ties", categorical=False) for k in (0, 10_000)]
    return [first, second]


@pytest.mark.parametrize("seed", range(60))
def test_the_joint_ensemble_answers_like_each_model(seed: int) -> None:
    """Exactly, with other divisors, bases, factors and shifts, too."""
    rng = np.random.default_rng(seed)
    first, second = aligned(two_random(seed))
    if rng.random() < 0.5:
        first = replace(first, divisor=int(rng.integers(1, 8)), base=(0.1,))
        second = replace(second, divisor=int(rng.integers(1, 8)), base=(0.3,))
    factors = (Fraction(1), Fraction(1))
    if rng.random() < 0.3:
        factors = (Fraction(0.7), Fraction(1.3))
    shift = (Fraction(0.45),) if rng.random() < 0.5 else ()
    two = TwoModels((first, second), ("a", "b"), Terms(factors, shift))
    points = some_points([first, second], seed)
    sums = ExactSums(two.ensemble, None)
    for point in points:
        own = [oracle.margins(model, point, None)[0] for model in (first, second)]
        expected = [own[0] * factors[0], own[1] * factors[1] + sum(shift)]
        rows = np.array([[*point, 0.0], [*point, 1.0]])
        assert [found[0] for found in sums.at(rows)] == expected


def test_equal_trees_never_test_the_chooser() -> None:
    """So a model and its copy cannot differ, and changed leaves are tested where they are."""
    ensemble = random_ensemble(5)
    two = TwoModels((ensemble, ensemble), ("a", "b"))
    assert all(two.chooser not in tree.feature for tree in two.ensemble.trees)
    tree = max(ensemble.trees, key=lambda each: each.n_nodes)
    values = tree.value.copy()
    values[-1] += 1.0
    merged = merged_trees(tree, replace(tree, value=values), 99)
    assert merged is not None
    assert merged.n_nodes == tree.n_nodes + 2
    assert int((merged.feature == 99).sum()) == 1


@pytest.mark.parametrize("seed", range(20))
def test_rounding_to_float32_becomes_a_test_of_float64(seed: int) -> None:
    """A model that rounds its inputs decides the same without rounding, next to each threshold."""
    rng = np.random.default_rng(seed)
    thresholds = np.concatenate([rng.normal(size=50), [0.0, 1e-45, -1e-40, 3e38, 1.0, -(2.0**24)]])
    found = _least_rounded_to(thresholds)
    for threshold, least in zip(thresholds.tolist(), found.tolist(), strict=True):
        near = [least]
        for _ in range(3):
            near = [math.nextafter(near[0], -math.inf), *near, math.nextafter(near[-1], math.inf)]
        for x in near:
            assert (float(np.float32(x)) >= threshold) == (x >= least)


def test_infinite_thresholds_stay() -> None:
    """They only tell missing values from numbers."""
    assert _least_rounded_to(np.array([np.inf, -np.inf])).tolist() == [np.inf, -np.inf]
    plain = ensemble_of((0, 1.0, 0.0, 1.0))
    rounding = replace(plain, input_dtype="float32")
    assert with_float64_inputs(plain) is plain
    assert with_float64_inputs(rounding).input_dtype == "float64"


def test_features_are_those_of_both_models() -> None:
    """By name; by position if a model has no names; never silently by neither."""
    first, second = aligned(
        [ensemble_of((0, 1.0, 0.0, 3.0), n_features=2), ensemble_of((2, 1.0, 0.0, 1.0))]
    )
    assert first.feature_names == second.feature_names == ("f0", "f1", "f2")
    assert second.trees[0].feature.tolist() == [2, -1, -1]
    named = replace(first, features=(Feature("b"), Feature("a"), Feature("c")))
    by_place = aligned([named, second])
    assert by_place[1].feature_names == ("b", "a", "c")
    rows = own_columns([named, second], 1, by_place[1], np.array([[1.0, 2.0, 3.0]]))
    assert rows.tolist() == [[1.0, 2.0, 3.0]]
    other = replace(second, features=(Feature("x"), Feature("y"), Feature("z")))
    with pytest.raises(QueryError, match=r"no feature in common .* matched by name"):
        aligned([named, other])
    twice = replace(second, features=(Feature("a"), Feature("a"), Feature("z")))
    with pytest.raises(QueryError, match="more than once"):
        aligned([named, twice])


def test_columns_go_back_to_their_model() -> None:
    """Rows by joint features become rows as each library takes them."""
    first = replace(
        ensemble_of((0, 1.0, 0.0, 3.0), n_features=2), features=(Feature("a"), Feature("b"))
    )
    second = replace(
        ensemble_of((0, 1.0, 0.0, 3.0), n_features=2), features=(Feature("c"), Feature("a"))
    )
    both = aligned([first, second])
    rows = np.array([[1.0, 2.0, 3.0]])  # a, b, c
    assert own_columns([first, second], 0, both[0], rows).tolist() == [[1.0, 2.0]]
    assert own_columns([first, second], 1, both[1], rows).tolist() == [[3.0, 1.0]]
