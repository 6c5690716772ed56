"""Trained LightGBM models of every kind, live and from text files."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from oracle import known
from probes import assert_same_leaves, probe_rows, rows_and_their_points

import xcount
from xcount.errors import UnsupportedModelError
from xcount.model.ensemble import Ensemble
from xcount.model.loaders.check import rounding_bound
from xcount.question.grid import Grid

lgb = pytest.importorskip("lightgbm")

N = 300
RNG = np.random.default_rng(11)
FULL = RNG.normal(size=(N, 4))
FULL[:, 2] = RNG.integers(0, 6, N)
FULL[RNG.random(N) < 0.4, 1] = 0.0
HOLEY = np.where(RNG.random(FULL.shape) < 0.2, np.nan, FULL)
BINARY = (FULL[:, 0] > 0) ^ (FULL[:, 2] == 2) ^ (FULL[:, 1] == 0)
THREE = (FULL[:, 0] > 0).astype(int) + (FULL[:, 3] > 0)
COMMON = {
    "verbosity": -1,
    "num_leaves": 8,
    "min_data_in_leaf": 3,
    "num_threads": 1,
    "cat_smooth": 1.0,
    "min_data_per_group": 3,
    "bagging_freq": 1,
    "bagging_fraction": 0.6,
    "seed": 5,
}


def train(
    parameters: dict[str, Any],
    rows: NDArray[Any],
    labels: NDArray[Any],
    categorical: tuple[int, ...] = (),
) -> Any:
    """Train six rounds."""
    data = lgb.Dataset(rows, labels, categorical_feature=list(categorical))
    return lgb.train({**COMMON, "objective": "binary", **parameters}, data, 6)


BOOSTINGS = ["gbdt", "rf", "dart"]
MISSING: dict[str, dict[str, Any]] = {
    "nan-or-none": {},
    "zero": {"zero_as_missing": True},
    "none": {"use_missing": False},
}
KINDS: dict[str, Callable[[], Any]] = {
    f"{boosting}-{missing}-{name}-{'categorical' if categorical else 'numeric'}": (
        lambda boosting=boosting, missing=missing, rows=rows, categorical=categorical: train(
            {"boosting": boosting, **MISSING[missing]}, rows, BINARY, categorical
        )
    )
    for boosting, missing, (name, rows), categorical in itertools.product(
        BOOSTINGS, MISSING, (("full", FULL), ("holes", HOLEY)), ((), (2,))
    )
} | {
    "one-hot": lambda: train({"max_cat_to_onehot": 20}, HOLEY, BINARY, (2,)),
    "partition": lambda: train({"max_cat_to_onehot": 1}, HOLEY, BINARY, (2,)),
    "regression": lambda: train({"objective": "regression"}, HOLEY, FULL[:, 0]),
    "poisson": lambda: train({"objective": "poisson"}, HOLEY, np.abs(FULL[:, 0])),
    "multiclass": lambda: train({"objective": "multiclass", "num_class": 3}, HOLEY, THREE, (2,)),
    "one-vs-all": lambda: train({"objective": "multiclassova", "num_class": 3}, HOLEY, THREE),
    "multiclass-forest": lambda: train(
        {"objective": "multiclass", "num_class": 3, "boosting": "rf"}, HOLEY, THREE
    ),
    "single-leaves": lambda: train({"min_data_in_leaf": 1000}, HOLEY, BINARY),
    "tiny-thresholds": lambda: train(
        {"min_data_in_bin": 1}, FULL * np.array([1e-35, 1, 1, 1e-36]), BINARY
    ),
}


def assert_like_lightgbm(ensemble: Ensemble, booster: Any, rows: NDArray[np.float64]) -> None:
    """Assert that LightGBM gives the same leaves and margins."""
    raw = np.asarray(booster.predict(rows, raw_score=True)).reshape(len(rows), -1)
    expected = raw / ensemble.divisor
    assert (np.abs(ensemble.predict(rows) - expected) <= rounding_bound(ensemble, rows)).all()
    assert_same_leaves(ensemble, rows, booster.predict(rows, pred_leaf=True))


@pytest.mark.parametrize("name", KINDS)
def test_a_booster_predicts_the_same_live_and_from_its_file(name: str, tmp_path: Path) -> None:
    """Thresholds, neighbours, zeros, NaN, infinities, odd categories: same leaf, same margin.

    And LightGBM gives a region's point what it gives the rows of that region.
    """
    booster = KINDS[name]()
    live = xcount.load(booster)
    rows = probe_rows(live, infinities=True)
    assert_like_lightgbm(live, booster, rows)
    held, points = rows_and_their_points(live, infinities=True)
    assert (booster.predict(held, raw_score=True) == booster.predict(points, raw_score=True)).all()
    path = tmp_path / "model.txt"
    booster.save_model(path)
    from_file = xcount.load(path, check=rows)
    assert from_file.features == live.features
    assert (from_file.predict(rows) == live.predict(rows)).all()


def test_an_averaging_forest_predicts_the_average() -> None:
    """LightGBM adds raw scores up but predicts from their mean; the divisor is that mean's."""
    booster = KINDS["rf-none-full-numeric"]()
    ensemble = xcount.load(booster)
    assert ensemble.divisor == ensemble.n_trees == 6
    probability = 1 / (1 + np.exp(-ensemble.predict(FULL)[:, 0]))
    assert np.allclose(booster.predict(FULL), probability, rtol=1e-12)


def test_zero_as_missing_has_guards_beside_zero() -> None:
    """The cell of zero goes its own way, and NaN is no value of its own."""
    ensemble = xcount.load(KINDS["gbdt-zero-full-numeric"]())
    assert any((tree.zero_side != 0).any() for tree in ensemble.trees)
    assert not any(feature.can_be_missing for feature in ensemble.features)


def test_nan_is_a_value_of_its_own_only_where_lightgbm_says_so() -> None:
    """Missing type NaN: a missing cell. Missing type none: NaN is zero."""
    holes, full = KINDS["gbdt-nan-or-none-holes-numeric"](), KINDS["gbdt-none-holes-numeric"]()
    assert all(feature.can_be_missing for feature in xcount.load(holes).features)
    ensemble = xcount.load(full)
    assert not any(feature.can_be_missing for feature in ensemble.features)
    zeros, nans = np.zeros((1, 4)), np.full((1, 4), np.nan)
    assert (ensemble.leaf_indices(zeros) == ensemble.leaf_indices(nans)).all()


WRAPPERS: dict[str, Callable[[], Any]] = {
    "classifier": lambda: lgb.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1).fit(
        HOLEY, BINARY
    ),
    "multiclass": lambda: lgb.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1).fit(
        HOLEY, THREE
    ),
    "regressor": lambda: lgb.LGBMRegressor(n_estimators=5, verbose=-1, n_jobs=1).fit(
        HOLEY, FULL[:, 0]
    ),
    "ranker": lambda: lgb.LGBMRanker(n_estimators=5, verbose=-1, n_jobs=1).fit(
        HOLEY, THREE, group=[N // 2, N // 2]
    ),
    "early-stopping": lambda: lgb.LGBMClassifier(
        n_estimators=60, learning_rate=1.0, verbose=-1
    ).fit(
        HOLEY[:200],
        BINARY[:200],
        eval_set=[(HOLEY[200:], BINARY[200:])],
        callbacks=[lgb.early_stopping(3, verbose=False)],
    ),
}


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.filterwarnings("ignore:.*eval_set.*")
@pytest.mark.parametrize("name", WRAPPERS)
def test_a_wrapper_is_loaded_as_its_predict_uses_it(name: str) -> None:
    """Early stopping, class labels and all."""
    model = WRAPPERS[name]()
    ensemble = xcount.load(model)
    rows = probe_rows(ensemble, n_rows=400, infinities=True)
    expected = np.asarray(model.booster_.predict(rows, raw_score=True)).reshape(len(rows), -1)
    assert np.allclose(ensemble.predict(rows), expected, rtol=1e-12, atol=1e-12)
    if name == "early-stopping":
        assert ensemble.n_trees == model.best_iteration_ < 60
    if name == "multiclass":
        assert ensemble.class_labels == ("0", "1", "2")
    assert xcount.load(model, check=rows) is not None


def test_a_booster_is_used_up_to_its_best_iteration() -> None:
    """LightGBM predicts with the best iteration when it knows one, even if it holds more trees."""
    booster = lgb.train(
        {**COMMON, "objective": "binary", "learning_rate": 1.0},
        lgb.Dataset(HOLEY[:200], BINARY[:200]),
        60,
        valid_sets=[lgb.Dataset(HOLEY[200:], BINARY[200:])],
        callbacks=[lgb.early_stopping(3, verbose=False)],
        keep_training_booster=True,
    )
    ensemble = xcount.load(booster)
    assert ensemble.n_trees == booster.best_iteration < booster.num_trees()
    assert_like_lightgbm(ensemble, booster, probe_rows(ensemble, n_rows=300, infinities=True))


def test_pandas_columns_keep_their_names_and_category_labels(tmp_path: Path) -> None:
    """Labels come from the pandas line at the end, for the features it belongs to."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "age": FULL[:, 0],
            "town": pd.Categorical(rng.choice(["Bonn", "Trier", "Ulm"], N)),
            "same": pd.Categorical(["one"] * N),
            "size": pd.Categorical(rng.choice([10, 20, 30], N)),
        }
    )
    labels = (frame["age"] > 0).to_numpy() ^ (frame["town"] == "Bonn").to_numpy()
    model = lgb.LGBMClassifier(
        n_estimators=5, min_child_samples=3, cat_smooth=1, min_data_per_group=3, verbose=-1
    ).fit(frame, labels)
    path = tmp_path / "model.txt"
    model.booster_.save_model(path)
    for ensemble in (xcount.load(model), xcount.load(path)):
        assert ensemble.feature_names == ("age", "town", "same", "size")
        assert ensemble.features[0].categories is None
        assert ensemble.features[1].labels == ("Bonn", "Trier", "Ulm")
        assert ensemble.features[2].labels == ("one",)
        assert ensemble.features[3].labels == ("10", "20", "30")
        codes = frame.assign(**{c: frame[c].cat.codes for c in ("town", "same", "size")})
        expected = model.predict(frame, raw_score=True)
        found = ensemble.predict(codes.to_numpy(dtype=np.float64))[:, 0]
        assert np.allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_odd_names_survive(tmp_path: Path) -> None:
    """Spaces and line ends that only Unicode knows are part of a name."""
    names = ["a\u00a0b", "c\u2028d", "e\x85f", "größe"]
    data = lgb.Dataset(FULL, BINARY, feature_name=names)
    booster = lgb.train({**COMMON, "objective": "binary"}, data, 2)
    path = tmp_path / "model.txt"
    booster.save_model(path)
    assert xcount.load(path).feature_names == tuple(names)


def test_linear_trees_are_refused_by_name() -> None:
    """A leaf that holds a linear model is no constant."""
    booster = train({"objective": "regression", "linear_tree": True}, FULL, FULL[:, 0])
    with pytest.raises(UnsupportedModelError, match="linear trees"):
        xcount.load(booster)


def test_an_unfitted_wrapper_is_refused() -> None:
    """There is nothing to load yet."""
    with pytest.raises(UnsupportedModelError, match="not fitted"):
        xcount.load(lgb.LGBMClassifier())


@pytest.mark.parametrize("infinity", ["inf", "1.0000000000000001e+300"])
def test_a_test_that_tells_missing_values_from_numbers_is_no_guard(
    infinity: str, tmp_path: Path
) -> None:
    """Its threshold is infinity, for which LightGBM before 2.3 wrote 1e300."""
    rng = np.random.default_rng(5)
    data = rng.normal(size=(300, 2)).round(1)
    data[rng.random(data.shape) < 0.2] = np.nan
    target = 5.0 * np.isnan(data[:, 0]) + np.nan_to_num(data[:, 1])
    settings = {"objective": "regression", "num_leaves": 5, "verbose": -1, "num_threads": 1}
    booster = lgb.train(settings, lgb.Dataset(data, target), 4)
    text = booster.model_to_string()
    assert "threshold=inf " in text
    path = tmp_path / "model.txt"
    lines = [line for line in text.split("\n") if not line.startswith("tree_sizes=")]
    path.write_text("\n".join(lines).replace("threshold=inf ", f"threshold={infinity} "))
    ensemble = xcount.load(path, check=data)
    assert Grid.of(ensemble, missing="none").axes[0].n_cells == 1
    assert Grid.of(ensemble, missing="cell").axes[0].n_cells == 2
    np.testing.assert_allclose(ensemble.predict(data).ravel(), booster.predict(data), atol=1e-13)
    question: dict[str, Any] = {"sensitive": "Column_0", "gap": "0", "method": "exact"}
    assert xcount.count(ensemble, missing="none", **question).count == 0
    assert known(xcount.count(ensemble, missing="cell", **question).count) > 0
