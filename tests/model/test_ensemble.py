"""The reference predictor against a walk down the tree, one row at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracle
import pytest
from numpy.typing import NDArray
from strategies import random_ensemble

from xcount.model.ensemble import ZERO_RANGE, Ensemble, Feature
from xcount.model.examples import ensemble_of, figure_1, tree_of


def random_rows(ensemble: Ensemble, seed: int) -> NDArray[np.float64]:
    """Return rows with guards, their float neighbours, NaN where allowed, and random values."""
    rng = np.random.default_rng(seed)
    columns = []
    for feature in ensemble.features:
        if feature.categories is not None:
            column = rng.choice(feature.categories, 60).astype(np.float64)
        else:
            guards = np.arange(-3.0, 4.0)
            near = [guards, np.nextafter(guards, -np.inf), np.nextafter(guards, np.inf)]
            column = rng.choice(np.concatenate([*near, rng.normal(size=9)]), 60)
        column[rng.random(60) < 0.2] = np.nan
        columns.append(column)
    return np.column_stack(columns)


@pytest.mark.parametrize("seed", range(100))
def test_predictions_are_sums_of_leaves(seed: int) -> None:
    """Row by row, tree by tree, as the definition says."""
    ensemble = random_ensemble(seed, scale="ties")
    rows = random_rows(ensemble, seed)
    expected = [[oracle.leaf_value(tree, row) for tree in ensemble.trees] for row in rows]
    leaves = ensemble.leaf_indices(rows)
    found = [[t.value[leaf] for t, leaf in zip(ensemble.trees, row, strict=True)] for row in leaves]
    assert found == expected
    np.testing.assert_allclose(ensemble.predict(rows)[:, 0], np.sum(expected, axis=1))


def test_a_threshold_goes_right() -> None:
    """Left iff ``x < threshold``."""
    ensemble = ensemble_of((0, 1.0, -1.0, 1.0))
    rows = np.array([[np.nextafter(1.0, 0)], [1.0], [np.inf], [-np.inf]])
    assert ensemble.predict(rows).ravel().tolist() == [-1.0, 1.0, 1.0, -1.0]


def test_inputs_are_rounded_as_the_library_rounds_them() -> None:
    """To float32 a number just below the threshold is the threshold."""
    just_below = [[1.0 - 1e-12]]
    exact = ensemble_of((0, 1.0, -1.0, 1.0))
    assert exact.predict(just_below).item() == -1.0
    assert replace(exact, input_dtype="float32").predict(just_below).item() == 1.0


def test_a_missing_value_goes_where_the_node_says() -> None:
    """Node by node."""
    tree = replace(tree_of((0, 0.0, 1.0, 2.0)), missing_left=np.array([True, False, False]))
    assert Ensemble((Feature("a"),), (tree,)).predict([[np.nan]]).item() == 1.0
    assert ensemble_of((0, 0.0, 1.0, 2.0)).predict([[np.nan]]).item() == 2.0


def test_zero_may_have_a_side_of_its_own() -> None:
    """LightGBM calls small numbers zero, and may treat zero as missing."""
    tree = replace(tree_of((0, 5.0, 1.0, 2.0)), zero_side=np.array([1, 0, 0], dtype=np.int8))
    rows = [[-1.0], [-ZERO_RANGE], [0.0], [ZERO_RANGE], [2 * ZERO_RANGE], [7.0]]
    found = Ensemble((Feature("a"),), (tree,)).predict(rows).ravel().tolist()
    assert found == [1.0, 2.0, 2.0, 2.0, 1.0, 2.0]


def test_outputs_bases_and_divisors() -> None:
    """Each tree adds to its own sum; an average divides, and the base comes on top."""
    trees = (tree_of(3.0, output=0), tree_of(5.0, output=1), tree_of(1.0, output=1))
    ensemble = Ensemble((Feature("a"),), trees, base=(10.0, 20.0), divisor=2)
    assert ensemble.predict([[0.0], [1.0]]).tolist() == [[11.5, 23.0], [11.5, 23.0]]
    assert ensemble.n_outputs == 2


def test_one_row_may_be_a_plain_list() -> None:
    """As many callers write it."""
    assert figure_1().predict([0.0, 0.0]).tolist() == [[70.0]]


def test_depth_counts_tests() -> None:
    """A leaf has depth 0."""
    assert tree_of(1.0).depth() == 0
    assert figure_1().max_depth == 2
    assert ensemble_of(n_features=1).max_depth == 0


def test_no_trees_predict_the_base() -> None:
    """For as many rows as are given."""
    ensemble = Ensemble((Feature("a"),), (), base=(0.25,))
    assert ensemble.predict([[1.0], [2.0]]).tolist() == [[0.25], [0.25]]
    assert ensemble.leaf_indices([[1.0], [2.0]]).shape == (2, 0)


@pytest.mark.parametrize("seed", range(10))
def test_all_trees_are_walked_down_at_once(seed: int) -> None:
    """The leaves are those that each tree finds by itself, for few rows and for many."""
    ensemble = random_ensemble(seed)
    rows = np.random.default_rng(seed).normal(0, 3, (50, ensemble.n_features))
    rows[::7] = np.nan
    found = ensemble.leaf_indices(rows)
    inputs = np.stack([ensemble.as_input(f, rows[:, f]) for f in range(rows.shape[1])], axis=1)
    alone = [tree.leaves_of(inputs) for tree in ensemble.trees]
    assert (found == np.stack(alone, axis=1)).all()
    assert (ensemble.leaf_indices(rows[3]) == found[3:4]).all()
