"""scikit-learn models from disk: skops files, and pickles that the user trusts."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import catboost
import joblib
import lightgbm
import numpy as np
import pandas as pd
import pytest
import skops.io
import xgboost
from edge_rows import edge_rows
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from threadpoolctl import threadpool_limits

import xcount
from xcount.errors import ModelFormatError, UnsupportedModelError
from xcount.model.loaders import sklearn_models

_RNG = np.random.default_rng(5)
X = _RNG.normal(size=(240, 4)).round(1)
Y_BINARY = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
Y_NUMBER = X[:, 0] * 3 + np.abs(X[:, 1])

TREE = DecisionTreeClassifier(max_depth=6, random_state=0)
FOREST = RandomForestClassifier(5, max_depth=4, random_state=0)
BOOSTING = GradientBoostingClassifier(n_estimators=6, random_state=0)
HISTOGRAM = HistGradientBoostingClassifier(max_iter=6)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Waiting threads of tiny models cost more than the models do."""
    with threadpool_limits(1):
        yield


@pytest.mark.parametrize(
    "model", [TREE, FOREST, BOOSTING, HISTOGRAM], ids=lambda model: type(model).__name__
)
def test_load_checks_against_the_library(model: Any, tmp_path: Path) -> None:
    """A check passes on the live model and on its files."""
    ensemble = xcount.load(model.fit(X, Y_BINARY))
    rows = edge_rows(ensemble, infinities=False)
    xcount.load(model, check=rows)
    skops.io.dump(model, tmp_path / "model.skops")
    xcount.load(tmp_path / "model.skops", check=rows)
    joblib.dump(model, tmp_path / "model.joblib")
    xcount.load(tmp_path / "model.joblib", check=rows, trust_pickle=True)


@pytest.mark.parametrize(
    "model", [TREE, FOREST, BOOSTING, HISTOGRAM], ids=lambda model: type(model).__name__
)
def test_a_skops_file_holds_the_same_model(model: Any, tmp_path: Path) -> None:
    """What skops wrote comes back, and the file can be checked against the library."""
    live = xcount.load(model.fit(X, Y_BINARY))
    path = tmp_path / "model.skops"
    skops.io.dump(model, path)
    ensemble = xcount.load(path)
    rows = edge_rows(live, infinities=False)
    np.testing.assert_array_equal(ensemble.predict(rows), live.predict(rows))
    assert (ensemble.format, ensemble.path) == ("sklearn-skops", str(path))
    np.testing.assert_array_equal(
        sklearn_models.raw_predictions(path, rows), sklearn_models.raw_predictions(model, rows)
    )


def test_a_skops_file_with_categories_is_read(tmp_path: Path) -> None:
    """The encoder inside a histogram boosting model needs no further trust."""
    frame = pd.DataFrame({"age": X[:, 0], "job": ["cook", "clerk", "smith"] * 80})
    model = HistGradientBoostingClassifier(max_iter=3, categorical_features=["job"])
    path = tmp_path / "model.skops"
    skops.io.dump(model.fit(frame, Y_BINARY), path)
    assert xcount.load(path).features[1].labels == ("clerk", "cook", "smith")


class Stowaway:
    """A type that no tree model needs."""


def test_a_skops_file_with_other_types_is_refused_by_name(tmp_path: Path) -> None:
    """Nothing of an untrusted type is ever built."""
    model = DecisionTreeRegressor(max_depth=1).fit(X, Y_NUMBER)
    model.extra = Stowaway()
    path = tmp_path / "model.skops"
    skops.io.dump(model, path)
    with pytest.raises(UnsupportedModelError, match="Stowaway"):
        xcount.load(path)


def _zip_of(name: str, content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, content)
    return stream.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        b"PK\x03\x04",
        _zip_of("readme.txt", b"hello"),
        _zip_of("schema.json", b"{"),
        _zip_of("schema.json", b"[1, 2]"),
        skops.io.dumps(DecisionTreeRegressor().fit(X, Y_NUMBER))[:-100],
    ],
    ids=["only the magic", "another zip", "broken schema", "no schema", "truncated"],
)
def test_a_broken_skops_file_is_refused(data: bytes) -> None:
    """One line that names the file, whatever is broken."""
    with pytest.raises(ModelFormatError, match=r"^m\.skops: not a skops file: ") as caught:
        sklearn_models.from_skops(data, "m.skops")
    assert "\n" not in str(caught.value)


def test_a_skops_file_that_holds_no_tree_model_is_refused() -> None:
    """The error names the file and the type."""
    data = skops.io.dumps(LinearRegression().fit(X, Y_NUMBER))
    with pytest.raises(UnsupportedModelError, match=r"^m\.skops: .*LinearRegression"):
        sklearn_models.from_skops(data, "m.skops")


def test_a_damaged_model_is_a_format_error() -> None:
    """A model that lacks what its class promises is the file's fault."""
    model = RandomForestRegressor(2).fit(X, Y_NUMBER)
    model.estimators_ = [None]
    with pytest.raises(ModelFormatError, match=r"^m\.pkl: a damaged RandomForestRegressor"):
        sklearn_models.from_pickle(pickle.dumps(model), "m.pkl")


@pytest.mark.parametrize("packing", ["pickle", "joblib", "zlib", "gzip", "bz2", "xz"])
def test_a_pickle_is_read_only_when_trusted(packing: str, tmp_path: Path) -> None:
    """Without trust nothing is unpickled; with it the model is the live one."""
    model = RandomForestClassifier(3, random_state=0).fit(X, Y_BINARY)
    path = tmp_path / "model.bin"
    if packing == "pickle":
        path.write_bytes(pickle.dumps(model))
    else:
        joblib.dump(model, path, compress=0 if packing == "joblib" else (packing, 3))
    with pytest.raises(UnsupportedModelError, match="trust"):
        xcount.load(path)
    ensemble = xcount.load(path, trust_pickle=True)
    rows = edge_rows(ensemble, infinities=False)
    np.testing.assert_array_equal(ensemble.predict(rows), xcount.load(model).predict(rows))
    xcount.load(path, check=rows, trust_pickle=True)


@pytest.mark.parametrize(
    "model",
    [
        catboost.CatBoostClassifier(iterations=3, verbose=False, allow_writing_files=False),
        lightgbm.LGBMClassifier(n_estimators=3, n_jobs=1, verbosity=-1),
        xgboost.XGBClassifier(n_estimators=3, n_jobs=1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_pickle_may_hold_a_model_of_another_library(model: Any, tmp_path: Path) -> None:
    """Whatever is in a trusted pickle loads as it does live, and can be checked."""
    path = tmp_path / "model.pickle"
    path.write_bytes(pickle.dumps(model.fit(X, Y_BINARY)))
    ensemble = xcount.load(path, check=X, trust_pickle=True)
    np.testing.assert_array_equal(ensemble.predict(X), xcount.load(model).predict(X))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pickle.dumps(X)[:-50], "cannot be opened"),
        (pickle.dumps("model.json"), "not a model"),
        (pickle.dumps({"a": 1}), "cannot load a builtins.dict"),
    ],
    ids=["truncated", "a text", "a dict"],
)
def test_a_pickle_without_a_model_is_refused(data: bytes, message: str) -> None:
    """A trusted pickle still has to hold a model."""
    with pytest.raises((ModelFormatError, UnsupportedModelError), match=message) as caught:
        sklearn_models.from_pickle(data, "m.pkl")
    assert "\n" not in str(caught.value)
