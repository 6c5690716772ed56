"""Searches, frozen and calibrated models, pipelines in files, and what is done with them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import lightgbm
import numpy as np
import pytest
import skops.io
import xgboost
from random_pipelines import edge_frame, people
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

import xcount
from xcount.cli import main
from xcount.errors import ModelFormatError, QueryError, QueryWarning, UnsupportedModelError
from xcount.model.tables import read_table

FRAME, DECISIONS = people()
COLUMNS = ["sex", "job", "age", "gain"]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with threadpool_limits(1):
        yield


def prepared(model: Any) -> Any:
    """Return a pipeline around a model, not fitted."""
    choice = ColumnTransformer(
        [
            ("words", OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["sex", "job"]),
            ("log", make_pipeline(FunctionTransformer(np.exp), StandardScaler()), ["gain"]),
        ],
        remainder="passthrough",
    )
    return make_pipeline(choice, SimpleImputer(), SelectKBest(k=6), model)


TREE = DecisionTreeClassifier(max_depth=4, random_state=0)


@pytest.mark.parametrize(
    "search",
    [
        GridSearchCV(prepared(TREE), {"decisiontreeclassifier__max_depth": [2, 3]}, cv=2),
        RandomizedSearchCV(
            prepared(TREE), {"decisiontreeclassifier__max_depth": [2, 3]}, n_iter=1, cv=2
        ),
        make_pipeline("passthrough", prepared(TREE)),
    ],
    ids=["grid", "random", "nested"],
)
def test_a_search_is_its_best_model(search: Any) -> None:
    """Of searches the refitted model counts; pipelines may stand in each other."""
    search.fit(FRAME[COLUMNS], DECISIONS)
    ensemble = xcount.load(search)
    frame = edge_frame(ensemble, 300)
    found = ensemble.predict(read_table(frame, ensemble).rows)[:, 0]
    np.testing.assert_allclose(found, search.predict_proba(frame)[:, 1])
    xcount.load(search, check=read_table(frame, ensemble).rows)


def test_a_search_of_a_plain_model_is_that_model() -> None:
    """Nothing has to be pulled back."""
    rows = np.random.default_rng(0).normal(size=(80, 2))
    search = GridSearchCV(xgboost.XGBClassifier(n_estimators=3, n_jobs=1), {"max_depth": [2]}, cv=2)
    search.fit(rows, (rows[:, 0] > 0).astype(int))
    ensemble = xcount.load(search)
    assert (ensemble.format, ensemble.input_dtype) == ("xgboost-pipeline", "float32")
    xcount.load(search, check=rows)
    with pytest.raises(UnsupportedModelError, match="no best_estimator_"):
        xcount.load(GridSearchCV(TREE, {}, refit=False).fit(rows, rows[:, 0] > 0))


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(5, max_depth=4, random_state=0),
        GradientBoostingClassifier(n_estimators=8, random_state=0),
        xgboost.XGBClassifier(n_estimators=6, max_depth=3, n_jobs=1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_calibrated_model_decides_as_it_does(model: Any, method: str) -> None:
    """Margins are those of the model inside; the decision is the calibrated one."""
    inner = prepared(model).fit(FRAME[COLUMNS], DECISIONS)
    skewed = DECISIONS * (np.random.default_rng(0).random(len(DECISIONS)) < 0.7)
    calibrated = CalibratedClassifierCV(FrozenEstimator(inner), method=method, cv=2)
    calibrated.fit(FRAME[COLUMNS], skewed)
    if len(calibrated.calibrated_classifiers_) > 1:
        pytest.skip("this scikit-learn calibrates a frozen model fold by fold")
    with pytest.warns(QueryWarning, match="before calibration"):
        ensemble = xcount.load(calibrated)
    assert ensemble.probability == "unknown"
    rows = read_table(frame := edge_frame(ensemble, 400), ensemble).rows
    np.testing.assert_array_equal(ensemble.decide(rows), calibrated.predict(frame))
    plain = xcount.load(inner)
    np.testing.assert_array_equal(ensemble.predict(rows), plain.predict(rows))
    assert (ensemble.decide(rows) != plain.decide(rows)).any()


def test_calibrated_probabilities_are_refused_in_so_many_words() -> None:
    """They are not those of the model inside."""
    calibrated = CalibratedClassifierCV(prepared(TREE), cv=2, ensemble=False)
    calibrated.fit(FRAME[COLUMNS], DECISIONS)
    with pytest.warns(QueryWarning, match="calibration"):
        ensemble = xcount.load(calibrated)
    changes: list[dict[str, Any]] = [
        {"probability_gap": 0.1},
        {"flip": True, "from_probability": 0.7},
    ]
    for change in changes:
        with pytest.raises(QueryError, match=r"calibrated.*load the model inside"):
            xcount.count(ensemble, sensitive="sex", **change)


def test_calibration_of_several_models_is_refused() -> None:
    """One model per fold is no sum of trees; the message says what to do."""
    with pytest.raises(UnsupportedModelError, match=r"2 models, one per fold; .*ensemble=False"):
        xcount.load(CalibratedClassifierCV(prepared(TREE), cv=2).fit(FRAME[COLUMNS], DECISIONS))
    classes = np.arange(len(FRAME)) % 3
    several = CalibratedClassifierCV(prepared(TREE), cv=2, ensemble=False)
    with pytest.raises(UnsupportedModelError, match="CalibratedClassifierCV of 3 classes"):
        xcount.load(several.fit(FRAME[COLUMNS], classes))


@pytest.mark.parametrize(
    "model",
    [
        TREE,
        HistGradientBoostingClassifier(max_iter=5),
        xgboost.XGBClassifier(n_estimators=3, max_depth=3, n_jobs=1),
        lightgbm.LGBMClassifier(n_estimators=3, min_child_samples=4, n_jobs=1, verbose=-1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_files_hold_the_same_pipeline(model: Any, tmp_path: Path) -> None:
    """Nothing is unpickled, and no booster built, unless the user says so."""
    pipeline = prepared(model).fit(FRAME[COLUMNS], DECISIONS)
    live = xcount.load(pipeline)
    rows = read_table(edge_frame(live, 100), live).rows
    skops.io.dump(pipeline, tmp_path / "model.skops")
    joblib.dump(pipeline, tmp_path / "model.joblib")
    with pytest.raises(UnsupportedModelError, match="trust_pickle"):
        xcount.load(tmp_path / "model.joblib")
    is_foreign = isinstance(model, xgboost.XGBClassifier | lightgbm.LGBMClassifier)
    if is_foreign:
        with pytest.raises(UnsupportedModelError, match=r"another library .*trust_pickle"):
            xcount.load(tmp_path / "model.skops")
    for name, trust in (("model.skops", is_foreign), ("model.joblib", True)):
        ensemble = xcount.load(tmp_path / name, trust_pickle=trust, check=rows)
        np.testing.assert_array_equal(ensemble.predict(rows), live.predict(rows))
        assert ensemble.format.partition("-")[2] in ("pipeline-skops", "pipeline-pickle")


def test_a_damaged_pipeline_in_a_file_is_one_line(tmp_path: Path) -> None:
    """Whatever is broken in it is the file's fault."""
    pipeline = prepared(TREE).fit(FRAME[COLUMNS], DECISIONS)
    del pipeline[0].named_transformers_["words"].categories_
    skops.io.dump(pipeline, tmp_path / "model.skops")
    with pytest.raises((ModelFormatError, UnsupportedModelError)) as caught:
        xcount.load(tmp_path / "model.skops")
    assert str(caught.value).startswith(str(tmp_path))
    assert "\n" not in str(caught.value)


def test_the_command_line_speaks_of_original_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--sensitive takes the original name; witnesses and their CSV name the categories."""
    pipeline = prepared(TREE).fit(FRAME[COLUMNS], DECISIONS)
    model, table = tmp_path / "model.skops", tmp_path / "people.csv"
    skops.io.dump(pipeline, model)
    FRAME[COLUMNS].to_csv(table, index=False)
    asked = [str(model), "--sensitive", "sex", "--flip", "--distance", "any"]
    assert main(["count", *asked, "--measure", "rows", "--data", str(table)]) == 0
    assert main(["witness", *asked, "-n", "3", "--verify"]) == 0
    shown = capsys.readouterr().out
    assert "Female -> Male" in shown or "Male -> Female" in shown
    assert main(["witness", *asked, "-n", "5", "--near", str(table), "--csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(",Male," in line for line in lines)
    # The CSV is a table for the model again.
    table.write_text("\n".join(lines))
    assert len(read_table(table, xcount.load(model)).rows) == len(lines) - 1


def test_warnings_of_transformers_stay_inside() -> None:
    """Trying values that nobody would give a transformer is no reason to warn the user."""
    pipeline = prepared(TREE).fit(FRAME[COLUMNS], DECISIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        xcount.load(pipeline)
