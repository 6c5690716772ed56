"""What the library itself predicts: classes and probabilities, as its own ``predict`` has them."""

from __future__ import annotations

from typing import Any

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import xcount
from xcount.errors import QueryWarning
from xcount.model.loaders.predictions import library_predictions

_RNG = np.random.default_rng(5)
X = _RNG.normal(size=(120, 3)).round(1)
TWO = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
THREE = TWO + (X[:, 2] > 0)
_QUIET = {"verbose": False, "allow_writing_files": False, "thread_count": 1, "iterations": 4}
MODELS: dict[str, Any] = {
    "forest": lambda: RandomForestClassifier(5, max_depth=3, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=4, random_state=0),
    "histograms": lambda: HistGradientBoostingClassifier(max_iter=4),
    "pipeline": lambda: make_pipeline(StandardScaler(), RandomForestClassifier(5, max_depth=3)),
    "xgboost": lambda: xgboost.XGBClassifier(n_estimators=4, max_depth=3, n_jobs=1),
    "lightgbm": lambda: lightgbm.LGBMClassifier(n_estimators=4, verbose=-1, n_jobs=1),
    "catboost": lambda: catboost.CatBoostClassifier(**_QUIET),
}


@pytest.mark.parametrize("target", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("name", MODELS)
def test_classes_and_probabilities_are_those_of_predict(name: str, target: Any) -> None:
    """For two classes and for three, whose labels are not their numbers."""
    labels = np.array([2, 5, 9]) if "boost" not in name[1:] else np.arange(3)
    model = MODELS[name]().fit(X, labels[target])
    found = library_predictions(xcount.load(model), model, X)
    expected = model.predict_proba(X)
    assert found.decisions is not None
    assert found.probabilities is not None
    predicted = np.asarray(model.predict(X)).ravel()
    np.testing.assert_array_equal(labels[found.decisions], predicted)
    own = expected[:, 1:] if expected.shape[1] == 2 else expected
    np.testing.assert_array_equal(found.probabilities, own.astype(np.float64))


def test_files_of_boosters_say_the_same(tmp_path: Any) -> None:
    """A file is opened with its library."""
    model = xgboost.XGBClassifier(n_estimators=4, n_jobs=1, objective="multi:softmax")
    model.fit(X, THREE).save_model(tmp_path / "model.json")
    found = library_predictions(xcount.load(tmp_path / "model.json"), tmp_path / "model.json", X)
    np.testing.assert_array_equal(found.decisions, model.predict(X))


def test_of_a_calibrated_model_only_margins_are_known() -> None:
    """Its decisions are those of the calibration, at a cut-off of the margin."""
    model = CalibratedClassifierCV(RandomForestClassifier(5, max_depth=3), ensemble=False)
    model.fit(X, TWO)
    with pytest.warns(QueryWarning, match="before calibration"):
        ensemble = xcount.load(model)
    found = library_predictions(ensemble, model, X)
    assert (found.decisions, found.probabilities) == (None, None)
    assert found.margins.shape == (len(X), 1)


def test_of_a_regressor_only_margins_are_known() -> None:
    """It takes no decisions."""
    model = xgboost.XGBRegressor(n_estimators=3, n_jobs=1).fit(X, X[:, 0])
    found = library_predictions(xcount.load(model), model, X)
    assert (found.decisions, found.probabilities) == (None, None)
