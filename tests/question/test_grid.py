"""Cells: how many there are, which values they hold, and the way back to a point."""

from __future__ import annotations

import itertools
import pickle
from typing import Any, Literal

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import random_ensemble

import xcount
from xcount.answers.count import solve
from xcount.counters.settings import Settings
from xcount.errors import QueryError
from xcount.model.ensemble import ZERO_RANGE, Ensemble, Feature
from xcount.model.examples import ensemble_of, figure_1, tree_of
from xcount.problem.problem import Problem
from xcount.question.grid import Axis, Grid
from xcount.question.query import Query
from xcount.support.numerals import digits_apart

Dtype = Literal["float32", "float64"]


def numeric_axis(*thresholds: float, name: str = "age") -> Axis:
    """Return an axis with these guards."""
    return Axis(Feature(name), np.array(thresholds))


def test_a_feature_with_m_guards_has_m_plus_1_cells() -> None:
    """Equal guards of different trees are one guard."""
    grid = Grid.of(ensemble_of((0, 1.0, 0.0, 1.0), (0, 1.0, 2.0, 3.0), (0, 2.0, 0.0, 1.0)))
    assert (grid.cell_counts, grid.n_guards, grid.n_regions) == ((3,), 2, 3)


def test_the_number_of_regions_is_an_exact_integer() -> None:
    """3 cells in each of 1000 features."""
    trees = [(f, float(t), 0.0, 1.0) for f, t in itertools.product(range(1000), range(2))]
    assert Grid.of(ensemble_of(*trees)).n_regions == 3**1000


def test_a_threshold_belongs_to_the_cell_above_it() -> None:
    """Cell i is ``t[i-1] <= x < t[i]``."""
    values = np.array([-np.inf, 0.999, 1.0, 1.5, np.nextafter(2.0, 0), 2.0, np.inf, np.nan])
    assert numeric_axis(1.0, 2.0).cells_of(values).tolist() == [0, 0, 1, 1, 1, 2, 2, -1]


@pytest.mark.parametrize("seed", range(150))
@pytest.mark.parametrize("missing", ["none", "cell"])
def test_every_region_has_a_point_that_lies_in_it(
    seed: int, missing: Literal["none", "cell"]
) -> None:
    """Region -> point -> region, with categories and missing cells."""
    grid = Grid.of(random_ensemble(seed), missing=missing)
    regions = list(itertools.product(*(range(n) for n in grid.cell_counts)))[:200]
    points = np.array([grid.point(region) for region in regions])
    assert grid.cells_of(points).tolist() == [list(region) for region in regions]


@pytest.mark.parametrize("seed", range(100))
def test_the_cells_are_those_of_the_definition(seed: int) -> None:
    """As many as the oracle finds, in the same order."""
    ensemble = random_ensemble(seed)
    grid = Grid.of(ensemble, missing="cell")
    for feature, axis in enumerate(grid.axes):
        values = np.array(oracle.cells(ensemble, feature, missing=True))
        assert axis.cells_of(values).tolist() == list(range(axis.n_cells))


@pytest.mark.parametrize("seed", range(50))
def test_all_points_of_a_region_get_the_same_answer(seed: int) -> None:
    """Random inputs predict what their region's own point predicts."""
    ensemble = random_ensemble(seed, scale="ties")
    grid = Grid.of(ensemble)
    rng = np.random.default_rng(seed)
    rows = np.column_stack(
        [
            rng.normal(scale=3, size=50) if f.categories is None else rng.choice(f.categories, 50)
            for f in ensemble.features
        ]
    )
    points = np.array([grid.point(region) for region in grid.cells_of(rows)])
    np.testing.assert_array_equal(ensemble.predict(rows), ensemble.predict(points))


@given(
    st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, unique=True),
    st.sampled_from(["float32", "float64"]),
)
def test_a_point_is_exact_in_the_librarys_number_type(
    thresholds: list[float], dtype: Dtype
) -> None:
    """Also between neighbouring floats, and at the ends of the range."""
    axis = numeric_axis(*sorted({t + 0.0 for t in thresholds}))
    for cell in range(axis.n_cells):
        point = axis.point(cell, dtype)
        assert float(np.dtype(dtype).type(point)) == point
        assert axis.cells_of(np.array([point])).tolist() == [cell]


def test_categories_that_no_split_tells_apart_share_a_cell() -> None:
    """{0, 2} against {1, 3}, then {3} alone."""
    feature = Feature("colour", (0, 1, 2, 3), ("red", "green", "blue", "grey"))
    tree = tree_of((0, np.nan, 1.0, 0.0))
    trees = tuple(_with_categories(tree, codes) for codes in ({0, 2}, {3}))
    axis = Grid.of(Ensemble((feature,), trees)).axes[0]
    assert axis.classes == ((0, 2), (1,), (3,))
    assert axis.describe(0) == "colour in {red, blue}"
    assert axis.cells_of(np.array([0.0, 1.0, 2.0, 3.0, 7.0, np.nan])).tolist() == [
        0, 1, 0, 2, -1, -1,
    ]  # fmt: skip
    assert [axis.distance(0, other) for other in range(3)] == [0, 1, 1]


def _with_categories(tree: Any, codes: set[int]) -> Any:
    from dataclasses import replace

    return replace(tree, left_categories={0: frozenset(codes)})


def test_a_missing_cell_is_the_last_and_one_step_from_all() -> None:
    """Only features that can be missing get one, and only when asked for."""
    features = (Feature("a", can_be_missing=True), Feature("b"))
    ensemble = Ensemble(features, figure_1().trees)
    assert Grid.of(ensemble).cell_counts == (3, 3)
    grid = Grid.of(ensemble, missing="cell")
    assert grid.cell_counts == (4, 3)
    assert grid.n_guards == 4
    axis = grid.axes[0]
    assert axis.describe(3) == "a is missing"
    assert [axis.distance(cell, 3) for cell in range(4)] == [1, 1, 1, 0]
    assert [axis.distance(0, cell) for cell in range(3)] == [0, 1, 2]
    assert np.isnan(grid.point([3, 0])[0])


def test_neighbouring_guards_are_told_apart() -> None:
    """Six digits where they suffice, else as many as are needed, whatever the distance."""
    close = [1000000.25, 1000000.5, 1000000.75, 2000000.5]
    axis = numeric_axis(*close)
    assert [axis.describe(cell) for cell in (0, 1, 4)] == [
        "age < 1000000.2",
        "1000000.2 <= age < 1000000.5",
        "2e+06 <= age",
    ]
    tiny = [0.1, float(np.nextafter(0.1, 1)), 0.25]
    assert numeric_axis(*tiny).describe(1) == "0.10000000000000001 <= age < 0.10000000000000002"
    assert digits_apart([*tiny, 0.5]) == (17, 17, 6, 6)
    assert numeric_axis(1000000.25).describe(0) == "age < 1e+06"


def test_cells_are_described_in_words() -> None:
    """As inequalities that say which end is included."""
    axis = numeric_axis(30.5, 42.0)
    assert [axis.describe(cell) for cell in range(3)] == [
        "age < 30.5",
        "30.5 <= age < 42",
        "42 <= age",
    ]
    assert numeric_axis().describe(0) == "any age"


def test_models_on_a_shared_grid_need_the_same_features() -> None:
    """Names in order, and the same kind of each feature."""
    with pytest.raises(QueryError, match="same features in order"):
        Grid.of(figure_1(), ensemble_of((0, 0.0, 1.0, 2.0)))
    categorical = Ensemble((Feature("f0", (0, 1)), Feature("f1")), ())
    with pytest.raises(QueryError, match="'f0' is categorical in one model, numeric in another"):
        Grid.of(figure_1(), categorical)


def test_a_shared_grid_of_float32_and_float64_models_has_no_empty_cell() -> None:
    """A float64 guard between two float32 numbers cuts where the next float32 number begins."""
    guards = [0.1, 0.1 + 1e-12, 0.1 + 2e-12]  # no float32 lies between them
    coarse = Ensemble((Feature("f0"),), (tree_of((0, 0.5, 0.0, 1.0)),), input_dtype="float32")
    fine = ensemble_of(*((0, guard, 0.0, 1.0) for guard in guards))
    grid = Grid.of(coarse, fine)
    assert grid.input_dtype == "float32"
    points = np.array([grid.point([cell]) for cell in range(grid.n_regions)])
    assert grid.cells_of(points).ravel().tolist() == list(range(grid.n_regions))
    assert grid.n_regions == 3
    assert fine.predict(points).ravel().tolist() == [0.0, 3.0, 3.0]
    result = xcount.count(fine, sensitive=0, gap=1, distance=1, grid=grid, method="brute")
    assert (result.count, result.n_regions) == (2, 3)


def test_the_zero_range_of_lightgbm_is_a_cell_of_its_own() -> None:
    """Where zero goes to a side of its own, its cell is ``-ZERO_RANGE <= x <= ZERO_RANGE``."""
    from dataclasses import replace

    tree = tree_of((0, 5.0, 1.0, 2.0))
    zero_goes_right = np.array([1, 0, 0], dtype=np.int8)
    ensemble = Ensemble((Feature("f0"),), (replace(tree, zero_side=zero_goes_right),))
    grid = Grid.of(ensemble)
    assert grid.cell_counts == (4,)
    rows = np.array([[-1.0], [-ZERO_RANGE], [0.0], [ZERO_RANGE], [1.0], [5.0]])
    assert grid.cells_of(rows).ravel().tolist() == [0, 1, 1, 1, 2, 3]
    assert ensemble.predict(rows).ravel().tolist() == [1.0, 2.0, 2.0, 2.0, 1.0, 2.0]


def test_a_grid_travels_without_what_was_made_of_it() -> None:
    """A problem that was counted can still be sent to another process, and counted there."""
    model = figure_1()
    problem = Problem(model, Grid.of(model), Query.of(model, "f0", 80))
    assert solve(problem, Settings()).count == 2
    assert problem.grid.workspace
    sent = pickle.loads(pickle.dumps(problem))
    assert not sent.grid.workspace
    assert solve(sent, Settings()).count == 2
