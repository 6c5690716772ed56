"""scikit-learn models: the ensemble decides like the library, leaf by leaf."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from edge_rows import all_region_points, edge_rows
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)
from threadpoolctl import threadpool_limits

import xcount
from xcount.errors import ModelFormatError, UnsupportedModelError
from xcount.model.ensemble import Ensemble
from xcount.model.loaders import sklearn_models
from xcount.question.grid import Grid

_RNG = np.random.default_rng(7)
X = _RNG.normal(size=(240, 4)).round(1)
X_MISSING = np.where(_RNG.random(X.shape) < 0.2, np.nan, X)
Y_BINARY = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int) ^ np.isnan(X_MISSING[:, 1])
Y_THREE = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
Y_NUMBER = X[:, 0] * 3 + np.abs(X[:, 1]) + np.isnan(X_MISSING[:, 2]) + 9.0

SINGLE_TREES = [
    (DecisionTreeClassifier(max_depth=6, random_state=0), Y_BINARY),
    (DecisionTreeClassifier(max_leaf_nodes=12, class_weight="balanced"), Y_THREE),
    (DecisionTreeClassifier(ccp_alpha=0.01, criterion="entropy", random_state=0), Y_BINARY),
    (DecisionTreeRegressor(max_depth=5, random_state=0), Y_NUMBER),
    (ExtraTreeClassifier(max_depth=6, random_state=0), Y_THREE),
    (ExtraTreeRegressor(max_depth=6, random_state=0), Y_NUMBER),
]
FORESTS = [
    (RandomForestClassifier(9, random_state=0), Y_BINARY),
    (RandomForestClassifier(5, max_depth=4, random_state=0), Y_THREE),
    (RandomForestRegressor(7, random_state=0), Y_NUMBER),
    (ExtraTreesClassifier(5, random_state=0), Y_BINARY),
    (ExtraTreesRegressor(5, random_state=0), Y_NUMBER),
]
BOOSTED = [
    (GradientBoostingClassifier(n_estimators=12, random_state=0), Y_BINARY),
    (GradientBoostingClassifier(n_estimators=6, loss="exponential"), Y_BINARY),
    (GradientBoostingClassifier(n_estimators=6, random_state=0), Y_THREE),
    (GradientBoostingRegressor(n_estimators=12, learning_rate=0.37), Y_NUMBER),
    (GradientBoostingRegressor(n_estimators=6, loss="huber"), Y_NUMBER),
    (GradientBoostingRegressor(n_estimators=6, loss="quantile", alpha=0.3), Y_NUMBER),
    (GradientBoostingRegressor(n_estimators=6, init="zero"), Y_NUMBER),
    (GradientBoostingRegressor(n_estimators=6, init=DummyRegressor(strategy="median")), Y_NUMBER),
    (GradientBoostingClassifier(n_estimators=6, init=DummyClassifier(strategy="uniform")), Y_THREE),
]
HISTOGRAM = [
    (HistGradientBoostingClassifier(max_iter=8), Y_BINARY),
    (HistGradientBoostingClassifier(max_iter=5, max_leaf_nodes=6), Y_THREE),
    (HistGradientBoostingRegressor(max_iter=8), Y_NUMBER),
    (HistGradientBoostingRegressor(max_iter=5, loss="poisson"), Y_NUMBER),
    (HistGradientBoostingRegressor(max_iter=5, loss="absolute_error"), Y_NUMBER),
]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Waiting threads of tiny models cost more than the models do."""
    with threadpool_limits(1):
        yield


def _name(value: object) -> str | None:
    return type(value).__name__ if hasattr(value, "fit") else None


def _assert_same_margins(model: Any, ensemble: Ensemble, rows: NDArray[np.float64]) -> None:
    expected = sklearn_models.raw_predictions(model, rows)
    np.testing.assert_allclose(ensemble.predict(rows), expected, rtol=1e-13, atol=1e-13)


def _assert_same_leaves(model: Any, ensemble: Ensemble, rows: NDArray[np.float64]) -> None:
    """Compare with ``apply``; the trees of several outputs share the library's one."""
    leaves = ensemble.leaf_indices(rows)
    with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn sums huge inputs up
        applied = np.asarray(model.apply(rows)).reshape(len(rows), -1)
    copies = leaves.shape[1] // applied.shape[1]
    np.testing.assert_array_equal(leaves, np.repeat(applied, copies, axis=1))


@pytest.mark.parametrize("data", [X, X_MISSING], ids=["complete", "missing"])
@pytest.mark.parametrize(("model", "target"), SINGLE_TREES + FORESTS, ids=_name)
def test_trees_and_forests_end_in_the_same_leaves(
    model: Any, target: NDArray[Any], data: NDArray[np.float64]
) -> None:
    """Every row, missing values included, ends in the library's leaf and gets its sum."""
    model.fit(data, target)
    ensemble = xcount.load(model)
    rows = edge_rows(ensemble, infinities=False)
    assert all(feature.can_be_missing for feature in ensemble.features)
    _assert_same_leaves(model, ensemble, rows)
    _assert_same_margins(model, ensemble, rows)


@pytest.mark.parametrize(("model", "target"), BOOSTED, ids=_name)
def test_gradient_boosting_ends_in_the_same_leaves(model: Any, target: NDArray[Any]) -> None:
    """Leaves are scaled by the learning rate, and the base is what the init model says."""
    model.fit(X, target)
    ensemble = xcount.load(model)
    rows = edge_rows(ensemble, infinities=False)
    assert not any(feature.can_be_missing for feature in ensemble.features)
    _assert_same_leaves(model, ensemble, rows)
    _assert_same_margins(model, ensemble, rows)


@pytest.mark.parametrize("data", [X, X_MISSING], ids=["complete", "missing"])
@pytest.mark.parametrize(("model", "target"), HISTOGRAM, ids=_name)
def test_histogram_boosting_adds_the_same_leaves(
    model: Any, target: NDArray[Any], data: NDArray[np.float64]
) -> None:
    """Tree by tree, bit for bit, on infinities too; inputs are compared in float64."""
    model.fit(data, target)
    ensemble = xcount.load(model)
    rows = edge_rows(ensemble, infinities=True)
    leaves = ensemble.leaf_indices(rows)
    predictors = [predictor for iteration in model._predictors for predictor in iteration]
    known, index = model._bin_mapper.make_known_categories_bitsets()
    assert len(predictors) == ensemble.n_trees
    for i, (tree, predictor) in enumerate(zip(ensemble.trees, predictors, strict=True)):
        np.testing.assert_array_equal(
            tree.value[leaves[:, i]], predictor.predict(rows, known, index, 1)
        )
    _assert_same_margins(model, ensemble, rows)


def test_infinities_follow_the_library_where_it_lets_them_in() -> None:
    """The tree itself routes infinities, though ``predict`` refuses them."""
    model = DecisionTreeClassifier(max_depth=6, random_state=0).fit(X_MISSING, Y_BINARY)
    ensemble = xcount.load(model)
    rows = edge_rows(ensemble, infinities=True)
    with np.errstate(over="ignore"):
        expected = model.tree_.apply(rows.astype(np.float32))
    np.testing.assert_array_equal(ensemble.leaf_indices(rows)[:, 0], expected)


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_depth=6, random_state=0),
        HistGradientBoostingClassifier(max_iter=4, max_leaf_nodes=16),
    ],
    ids=_name,
)
def test_a_split_on_missing_values_is_no_guard(model: Any) -> None:
    """A test that only missing values fail makes no cell, and still routes missing values."""
    target = np.isnan(X_MISSING[:, 1]) ^ (X[:, 0] > 0.3)
    ensemble = xcount.load(model.fit(X_MISSING, target))
    infinite = sum(int(np.isinf(tree.threshold).sum()) for tree in ensemble.trees)
    assert infinite > 0
    for axis in Grid.of(ensemble).axes:
        assert np.isfinite(axis.thresholds).all()
    _assert_same_margins(model, ensemble, all_region_points(ensemble))


def test_a_gap_between_neighbouring_floats_is_kept() -> None:
    """A float64 threshold between two neighbouring float32 values separates just these."""
    low = np.float32(4.0)
    high = np.nextafter(low, np.float32(5.0))
    model = DecisionTreeRegressor().fit([[low], [high]], [0.0, 1.0])
    ensemble = xcount.load(model)
    assert ensemble.predict([[low], [high]]).ravel().tolist() == [0.0, 1.0]
    assert ensemble.trees[0].threshold[0] == high


def test_a_forest_keeps_undivided_leaves() -> None:
    """A forest's leaves stay what the trees say; the divisor is the number of trees."""
    ensemble = xcount.load(RandomForestRegressor(3, random_state=0).fit(X, Y_NUMBER))
    assert (ensemble.divisor, ensemble.n_outputs, ensemble.task) == (3, 1, "regression")
    binary = xcount.load(RandomForestClassifier(3, random_state=0).fit(X, Y_BINARY))
    assert (binary.divisor, binary.n_outputs, binary.task) == (3, 1, "binary")
    assert (ensemble.decides_at, binary.decides_at) == (None, 0.5)
    three = xcount.load(RandomForestClassifier(3, random_state=0).fit(X, Y_THREE))
    assert (three.n_outputs, three.n_trees, three.task) == (3, 9, "multiclass")


def test_names_and_labels_are_kept() -> None:
    """Feature names come from the data frame, class labels from the classes."""
    frame = pd.DataFrame(X, columns=["age", "sex", "income", "debt"])
    labels = np.array(["no", "yes"])[Y_BINARY.astype(int)]
    ensemble = xcount.load(DecisionTreeClassifier(max_depth=2).fit(frame, labels))
    assert ensemble.feature_names == ("age", "sex", "income", "debt")
    assert ensemble.class_labels == ("no", "yes")
    unnamed = xcount.load(DecisionTreeClassifier(max_depth=2).fit(X, labels))
    assert unnamed.feature_names == ("f0", "f1", "f2", "f3")


@pytest.mark.parametrize("wrong", [np.inf, np.nan, -0.5, 3.0])
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestClassifier])
def test_leaves_that_are_no_shares_are_refused(kind: Any, wrong: float) -> None:
    """scikit-learn returns them as they are; it has stored shares since version 1.3."""
    model = kind(max_depth=3, random_state=0).fit(X, Y_THREE)
    tree = model.tree_ if kind is DecisionTreeClassifier else model.estimators_[1].tree_
    tree.value[-1, 0, 0] = wrong
    with pytest.raises(ModelFormatError, match="which are not the shares of classes"):
        xcount.load(model)


def test_a_classifier_of_one_class_is_constant() -> None:
    """A model that saw a single class has one sum, and it is one everywhere."""
    ensemble = xcount.load(RandomForestClassifier(2).fit(X, np.zeros(len(X))))
    assert ensemble.n_outputs == 1
    assert ensemble.predict(X[:3]).ravel().tolist() == [1.0, 1.0, 1.0]


def _mixed_frame() -> tuple[pd.DataFrame, NDArray[np.int64]]:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "age": rng.normal(size=400),
            "job": pd.Categorical(rng.choice(["cook", "clerk", "nurse", "smith"], 400)),
            "debt": rng.normal(size=400),
            "region": rng.choice([3, 5, 8, 40], 400),
            "score": rng.choice([-0.5, 1.5, 2.0], 400),
        }
    )
    frame.loc[::9, "job"] = np.nan
    points = frame["job"].isin(["cook", "nurse"]).astype(int) + (frame["region"] % 5 == 3)
    points += (frame["age"] > 0).astype(int) + (frame["score"] == 1.5)
    return frame, (points >= 2).to_numpy().astype(np.int64)


def _coded(frame: pd.DataFrame, ensemble: Ensemble) -> NDArray[np.float64]:
    """Return the rows of a frame in the ensemble's category codes."""
    columns = []
    for feature in ensemble.features:
        values = frame[feature.name]
        if feature.labels is not None and feature.categories is not None:
            code = dict(zip(feature.labels, feature.categories, strict=True))
            values = values.map(lambda v, code=code: code.get(str(v), np.nan)).astype(float)
        columns.append(values.to_numpy(dtype=np.float64))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize(
    "categorical", ["from_dtype", ["job", "region"], ["region", "score", "job"]], ids=str
)
def test_categorical_features_of_a_frame(categorical: Any) -> None:
    """Whatever the encoder does inside, columns, codes and labels are the user's."""
    frame, target = _mixed_frame()
    model = HistGradientBoostingClassifier(
        max_iter=10, max_leaf_nodes=8, categorical_features=categorical
    ).fit(frame, target)
    ensemble = xcount.load(model)
    assert ensemble.feature_names == ("age", "job", "debt", "region", "score")
    assert ensemble.features[1].labels == ("clerk", "cook", "nurse", "smith")
    if categorical != "from_dtype":
        assert ensemble.features[3].categories == (3, 5, 8, 40)
        assert ensemble.features[3].labels is None
    np.testing.assert_allclose(
        ensemble.predict(_coded(frame, ensemble)).ravel(),
        model.decision_function(frame),
        rtol=1e-13,
        atol=1e-13,
    )
    _assert_same_margins(model, ensemble, edge_rows(ensemble, infinities=True))
    _assert_same_margins(model, ensemble, all_region_points(ensemble))


def test_categorical_features_of_an_array() -> None:
    """Integer codes that are no 0, 1, 2, ... stay what they are."""
    data = X.copy()
    data[:, 2] = _RNG.choice([2.0, 7.0, 11.0, 13.0], len(data))
    target = np.isin(data[:, 2], [2.0, 13.0]) ^ (data[:, 0] > 0)
    model = HistGradientBoostingClassifier(max_iter=6, categorical_features=[2]).fit(data, target)
    ensemble = xcount.load(model)
    assert ensemble.features[2].categories == (2, 7, 11, 13)
    _assert_same_margins(model, ensemble, data)
    _assert_same_margins(model, ensemble, edge_rows(ensemble, infinities=True))


@pytest.mark.parametrize("missing", ["none", "cell"])
def test_a_count_agrees_with_the_library_itself(missing: Literal["none", "cell"]) -> None:
    """Counting on the ensemble finds what asking the library about all regions finds."""
    model = RandomForestClassifier(3, max_depth=3, random_state=1)
    model.fit(X_MISSING[:, :3], np.isnan(X_MISSING[:, 0]) ^ (X[:, 1] > 0))
    ensemble = xcount.load(model)
    assert any(np.isinf(tree.threshold).any() for tree in ensemble.trees)
    grid = Grid.of(ensemble, missing=missing)
    regions = np.stack(np.meshgrid(*map(np.arange, grid.cell_counts), indexing="ij"), axis=-1)
    points = np.stack([grid.point(region) for region in regions.reshape(-1, 3).tolist()])
    values = model.predict_proba(points)[:, 1].reshape(grid.cell_counts)
    sensitive = np.zeros(values.shape, dtype=bool)
    for cell, other in permutations(range(grid.cell_counts[0]), 2):
        if grid.axes[0].distance(cell, other) == 1:
            sensitive[cell] |= np.abs(values[cell] - values[other]) > 0.1
    result = xcount.count(model, sensitive="f0", gap="0.1", method="brute", missing=missing)
    assert result.count == int(sensitive.sum()) > 0


def test_where_the_library_refuses_nan_nothing_can_be_missing() -> None:
    """Not every kind of tree takes missing values."""
    model = ExtraTreeRegressor(max_depth=4, splitter="best", random_state=0).fit(X, Y_NUMBER)
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.full((1, 4), np.nan))
    ensemble = xcount.load(model)
    assert not any(feature.can_be_missing for feature in ensemble.features)
    _assert_same_margins(model, ensemble, edge_rows(ensemble, infinities=False))


def test_a_pipeline_that_changes_nothing_is_its_model() -> None:
    """Steps that pass the input through are no obstacle."""
    model = make_pipeline("passthrough", DecisionTreeClassifier(max_depth=3))
    ensemble = xcount.load(model.fit(X, Y_BINARY))
    _assert_same_margins(model, ensemble, edge_rows(ensemble, infinities=False))


class _Shouting(RandomForestRegressor):  # type: ignore[misc]  # scikit-learn ships no types
    def predict(self, X: Any) -> Any:  # noqa: N803  # scikit-learn's own name
        return 2 * super().predict(X)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: RandomForestClassifier(2).fit(X, np.stack([Y_THREE] * 2, 1)), "multi-output"),
        (lambda: LinearRegression().fit(X, Y_NUMBER), "LinearRegression"),
        (RandomForestRegressor, "RandomForestRegressor: the model is not fitted"),
        (GradientBoostingClassifier, "not fitted"),
        (HistGradientBoostingClassifier, "not fitted"),
        (
            lambda: GradientBoostingRegressor(n_estimators=2, init=LinearRegression()).fit(
                X, Y_NUMBER
            ),
            "init=LinearRegression",
        ),
        (
            lambda: GradientBoostingClassifier(
                n_estimators=2, init=DummyClassifier(strategy="stratified", random_state=0)
            ).fit(X, Y_THREE),
            "stratified",
        ),
        (lambda: _Shouting(2).fit(X, Y_NUMBER), r"predict\(\) of its own"),
    ],
)
def test_what_cannot_be_represented_is_refused_by_name(make: Any, named: str) -> None:
    """The message is one line and says what stands in the way."""
    with pytest.raises(UnsupportedModelError, match=named) as caught:
        xcount.load(make())
    assert "\n" not in str(caught.value)
