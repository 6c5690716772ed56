"""Models made of other models: their sums are the weighted sums of the members' sums."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edge_rows import edge_rows
from numpy.typing import NDArray
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from threadpoolctl import threadpool_limits

import xcount
from xcount.errors import UnsupportedModelError
from xcount.model.loaders.check import check
from xcount.model.loaders.predictions import library_predictions

_RNG = np.random.default_rng(11)
X = _RNG.normal(size=(200, 4)).round(1)
X_MISSING = np.where(_RNG.random(X.shape) < 0.2, np.nan, X)
TWO = np.array(["no", "yes"])[(X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)]
THREE = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5) + 5
NUMBER = X[:, 0] * 3 + np.abs(X[:, 1])
NUMBERS = np.stack([NUMBER, X[:, 2] - NUMBER], axis=1)

TREE = DecisionTreeClassifier(max_depth=3, random_state=0)
NUMBER_TREE = DecisionTreeRegressor(max_depth=3, random_state=0)
FOREST = RandomForestClassifier(3, max_depth=3, random_state=0)
NUMBER_FOREST = RandomForestRegressor(3, max_depth=3, random_state=0)
BOOSTED = GradientBoostingClassifier(n_estimators=4, random_state=0)
NUMBER_BOOSTED = GradientBoostingRegressor(n_estimators=4, random_state=0)
HISTOGRAM = HistGradientBoostingRegressor(max_iter=4)

COMMITTEES: dict[str, tuple[Any, NDArray[Any]]] = {
    "bagged trees": (BaggingClassifier(TREE, 5, random_state=0), TWO),
    "bagged trees of three classes": (BaggingClassifier(TREE, 5, random_state=0), THREE),
    "bags that miss classes": (
        BaggingClassifier(TREE, 9, max_samples=4, max_features=2, random_state=3),
        THREE,
    ),
    "bags that miss one of two": (
        BaggingClassifier(TREE, 9, max_samples=2, random_state=1),
        TWO,
    ),
    "bagged features, some twice": (
        BaggingClassifier(TREE, 5, max_features=3, bootstrap_features=True, random_state=0),
        TWO,
    ),
    "bagged forests": (BaggingClassifier(FOREST, 3, random_state=0), TWO),
    "bagged numbers": (
        BaggingRegressor(NUMBER_TREE, 5, max_features=2, random_state=0),
        NUMBER,
    ),
    "bagged boosting": (BaggingRegressor(NUMBER_BOOSTED, 3, random_state=0), NUMBER),
    "AdaBoost": (AdaBoostClassifier(TREE, n_estimators=6, random_state=0), TWO),
    "AdaBoost of three classes": (AdaBoostClassifier(TREE, n_estimators=6, random_state=0), THREE),
    "AdaBoost of stumps": (AdaBoostClassifier(n_estimators=9, random_state=0), TWO),
    "soft votes": (
        VotingClassifier(
            [("a", TREE), ("b", FOREST), ("c", ExtraTreesClassifier(5, random_state=0))],
            voting="soft",
            weights=[1, 2, 0.3],
        ),
        TWO,
    ),
    "soft votes of three classes": (
        VotingClassifier([("a", TREE), ("b", FOREST)], voting="soft"),
        THREE,
    ),
    "one soft vote": (VotingClassifier([("a", BOOSTED), ("b", "drop")], voting="soft"), TWO),
    "hard votes": (
        VotingClassifier([("a", TREE), ("b", DecisionTreeClassifier(max_depth=1))], weights=[2, 1]),
        TWO,
    ),
    "hard votes of three classes": (
        VotingClassifier(
            [(str(d), DecisionTreeClassifier(max_depth=d, random_state=0)) for d in (1, 2, 3)]
        ),
        THREE,
    ),
    "voting numbers": (
        VotingRegressor(
            [("a", NUMBER_TREE), ("b", NUMBER_FOREST), ("c", NUMBER_BOOSTED), ("d", HISTOGRAM)],
            weights=[1, 2, 3, 0.1],
        ),
        NUMBER,
    ),
    "voting pipelines": (
        VotingRegressor([("a", make_pipeline(StandardScaler(), NUMBER_TREE)), ("b", HISTOGRAM)]),
        NUMBER,
    ),
    "a stack": (
        StackingClassifier([("a", TREE), ("b", FOREST)], LogisticRegression(), cv=2),
        TWO,
    ),
    "a stack without probabilities": (
        StackingClassifier([("a", TREE), ("b", FOREST)], RidgeClassifier(), cv=2),
        TWO,
    ),
    "a stack of margins": (
        StackingClassifier(
            [("a", BOOSTED), ("b", HistGradientBoostingClassifier(max_iter=3))],
            cv=2,
            stack_method="decision_function",
        ),
        TWO,
    ),
    "a stack of numbers": (
        StackingRegressor([("a", NUMBER_TREE), ("b", NUMBER_BOOSTED), ("c", HISTOGRAM)], cv=2),
        NUMBER,
    ),
    "several numbers": (MultiOutputRegressor(NUMBER_BOOSTED), NUMBERS),
    "a forest of several numbers": (RandomForestRegressor(3, random_state=0), NUMBERS),
    "several yes or no": (MultiOutputClassifier(BOOSTED), np.stack([TWO, THREE > 5], axis=1)),
    "isolation": (IsolationForest(n_estimators=7, random_state=0), TWO),
    "isolation of few features": (
        IsolationForest(
            n_estimators=7, max_samples=20, max_features=2, contamination=0.1, random_state=0
        ),
        TWO,
    ),
}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with threadpool_limits(1):
        yield


def _fitted(case: str, rows: NDArray[np.float64] = X) -> Any:
    model, target = COMMITTEES[case]
    return model.fit(rows, target)


@pytest.mark.parametrize("case", COMMITTEES)
def test_sums_and_decisions_are_the_library_s(case: str) -> None:
    """At every threshold and its neighbours; decisions differ only within rounding of a tie."""
    model = _fitted(case)
    ensemble = xcount.load(model)
    rows = edge_rows(ensemble, infinities=False)
    rows = rows[(np.abs(rows) < 1e30).all(axis=1)]  # scaled, larger ones are no float32 any more
    check(ensemble, model, rows)
    found = library_predictions(ensemble, model, rows)
    if ensemble.decision not in ("cutoff", "argmax"):
        return
    assert found.decisions is not None
    own = ensemble.decide(rows)
    if ensemble.decision == "cutoff":
        assert ensemble.decides_at is not None
        distance = np.abs(ensemble.predict(rows)[:, 0] - ensemble.decides_at)
    else:
        first_two = np.sort(ensemble.predict(rows), axis=1)[:, -2:]
        distance = first_two[:, 1] - first_two[:, 0]
    is_clear = distance > 1e-12
    assert is_clear.mean() > 0.5
    np.testing.assert_array_equal(own[is_clear], found.decisions[is_clear])
    if found.probabilities is not None and ensemble.probability == "sigmoid":
        margins = ensemble.predict(rows)[:, 0]
        expected = 1.0 / (1.0 + np.exp(-ensemble.slope * margins))
        np.testing.assert_allclose(found.probabilities[:, 0], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "case", ["bagged trees", "voting numbers", "isolation", "isolation of few features"]
)
def test_missing_values_go_where_the_library_sends_them(case: str) -> None:
    """Where all members take them."""
    model, target = COMMITTEES[case]
    if case == "voting numbers":
        model = VotingRegressor([("a", NUMBER_TREE), ("b", NUMBER_FOREST), ("d", HISTOGRAM)])
    model.fit(X_MISSING, target)
    ensemble = xcount.load(model)
    assert all(feature.can_be_missing for feature in ensemble.features)
    check(ensemble, model, edge_rows(ensemble, infinities=False))


def test_what_refuses_missing_values_has_no_missing_cell() -> None:
    """AdaBoost refuses them, though its trees would not."""
    model = _fitted("AdaBoost")
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.full((1, 4), np.nan))
    assert not any(feature.can_be_missing for feature in xcount.load(model).features)


@pytest.mark.parametrize("contamination", ["auto", 0.05, 0.1, 0.5])
@pytest.mark.parametrize("n_rows", [101, 120])
def test_an_isolation_forest_decides_like_predict(contamination: Any, n_rows: int) -> None:
    """Also for the training rows that lie just at its cut-off."""
    model = IsolationForest(n_estimators=20, contamination=contamination, random_state=0).fit(
        X[:n_rows]
    )
    ensemble = xcount.load(model)
    rows = np.concatenate([X[:n_rows], edge_rows(ensemble, infinities=False)])
    decided = np.array([-1, 1])[ensemble.decide(rows)]
    np.testing.assert_array_equal(decided, model.predict(rows))
    assert len(set(decided.tolist())) == 2
    assert ensemble.class_labels == ("-1", "1")


def test_a_count_of_outliers_agrees_with_predict() -> None:
    """Every region of the grid is asked of the library itself."""
    model = IsolationForest(n_estimators=2, max_samples=8, random_state=1, contamination=0.2).fit(
        X[:, :2]
    )
    result = xcount.count(model, sensitive="f0", flip=True, method="exact")
    ensemble = xcount.load(model)
    grid = xcount.Grid.of(ensemble)
    cells = np.stack(np.meshgrid(*map(np.arange, grid.cell_counts), indexing="ij"), axis=-1)
    points = np.stack([grid.point(region) for region in cells.reshape(-1, 2).tolist()])
    decided = model.predict(points).reshape(grid.cell_counts)
    mixed = (decided.min(axis=0) != decided.max(axis=0)).sum() * grid.cell_counts[0]
    assert result.count == int(mixed) > 0


def test_boosters_of_other_libraries_vote_too() -> None:
    """XGBoost rounds inputs to float32, LightGBM does not: their sum knows both."""
    lightgbm = pytest.importorskip("lightgbm")
    xgboost = pytest.importorskip("xgboost")
    members = [
        ("x", xgboost.XGBRegressor(n_estimators=4, max_depth=3, n_jobs=1)),
        ("l", lightgbm.LGBMRegressor(n_estimators=4, num_leaves=5, verbose=-1, n_jobs=1)),
        ("f", NUMBER_FOREST),
    ]
    model = VotingRegressor(members).fit(X, NUMBER)
    ensemble = xcount.load(model)
    assert ensemble.input_dtype == "float64"
    check(ensemble, model, edge_rows(ensemble, infinities=False))


@pytest.mark.parametrize("case", ["bagged trees", "AdaBoost", "isolation", "a stack"])
def test_files_hold_the_same_models(case: str, tmp_path: Path) -> None:
    """A skops file needs no trust; a pickle does."""
    skops_io = pytest.importorskip("skops.io")
    model = _fitted(case)
    expected = xcount.load(model).predict(X)
    skops_io.dump(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(xcount.load(tmp_path / "model.skops").predict(X), expected)
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(model))
    with pytest.raises(UnsupportedModelError, match="trust"):
        xcount.load(tmp_path / "model.pkl")
    opened = xcount.load(tmp_path / "model.pkl", trust_pickle=True, check=X)
    np.testing.assert_array_equal(opened.predict(X), expected)


def _vote(*members: Any, **options: Any) -> Any:
    named = [(str(i), member) for i, member in enumerate(members)]
    return VotingClassifier(named, **options).fit(X, TWO)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "weighted median": (
        lambda: AdaBoostRegressor(n_estimators=2).fit(X, NUMBER),
        "AdaBoostRegressor predicts the weighted median",
    ),
    "embedding": (lambda: RandomTreesEmbedding(2).fit(X), "RandomTreesEmbedding predicts nothing"),
    "chain": (
        lambda: ClassifierChain(TREE).fit(X, np.stack([X[:, 0] > 0, X[:, 1] > 0], 1)),
        "ClassifierChain hands",
    ),
    "bagged probabilities": (
        lambda: BaggingClassifier(BOOSTED, 2).fit(X, TWO),
        "probabilities of several GradientBoostingClassifier",
    ),
    "soft votes of boosting": (
        lambda: _vote(BOOSTED, TREE, voting="soft"),
        "which are no sums of leaves",
    ),
    "hard votes of forests": (lambda: _vote(FOREST, TREE), "RandomForestClassifier, which is no"),
    "AdaBoost of forests": (
        lambda: AdaBoostClassifier(FOREST, n_estimators=2).fit(X, TWO),
        "votes of its member RandomForestClassifier",
    ),
    "bagged lines": (
        lambda: BaggingRegressor(LinearRegression(), 2).fit(X, NUMBER),
        "LinearRegression is not supported",
    ),
    "poisson": (
        lambda: VotingRegressor(
            [("a", HistGradientBoostingRegressor(loss="poisson", max_iter=2))]
        ).fit(X, np.abs(NUMBER)),
        "does not predict a sum",
    ),
    "a stack of trees on trees": (
        lambda: StackingClassifier([("a", TREE)], TREE, cv=2).fit(X, TWO),
        "final_estimator DecisionTreeClassifier is no linear model",
    ),
    "a stack with the inputs": (
        lambda: StackingRegressor([("a", NUMBER_TREE)], cv=2, passthrough=True).fit(X, NUMBER),
        "passthrough=True",
    ),
    "a stack of boosted probabilities": (
        lambda: StackingClassifier([("a", BOOSTED)], cv=2).fit(X, TWO),
        "stack_method='decision_function' is",
    ),
    "a stack of three classes": (
        lambda: StackingClassifier([("a", TREE)], cv=2).fit(X, THREE),
        "a stack of 3 classes",
    ),
    "outputs of three classes": (
        lambda: MultiOutputClassifier(BOOSTED).fit(X, np.stack([THREE, THREE], 1)),
        "ask about one of",
    ),
    "not fitted": (IsolationForest, "not fitted"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_sum_is_refused_by_name(case: str) -> None:
    """One line that says why, and never a wrong count."""
    make, message = REFUSED[case]
    with pytest.raises(UnsupportedModelError) as caught:
        xcount.load(make())
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("n_half", "weights"), [(5, None), (7, None), (5, [1, 2, 3, 4, 5] * 2)])
def test_ties_of_hard_votes_stay_ties(n_half: int, weights: list[int] | None) -> None:
    """Ten shares of 0.1 as floats are more than a whole; scikit-learn adds the votes themselves."""
    trees = [(f"t{i}", DecisionTreeClassifier(max_depth=1)) for i in range(2 * n_half)]
    model = VotingClassifier(trees, voting="hard", weights=weights).fit(X, X[:, 0] > 0)
    for tree in model.estimators_[:n_half]:
        tree.fit(X, (X[:, 1] > 0).astype(int))
    split = X[(X[:, 0] > 0) != (X[:, 1] > 0)]
    assert not model.predict(split).any()
    assert (xcount.load(model).predict(split) == 0.5).all()
    # Both halves have to agree: one of four regions is above.
    assert xcount.count(model, sensitive="f0,f1", flip=True).count == 4
    assert xcount.count(model, sensitive="f0", flip=True).count == 2
