"""MLflow models: folders are read without mlflow, addresses with it."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

import xcount
from xcount.errors import MissingExtraError, ModelFormatError, UnsupportedModelError
from xcount.model.loaders.check import check

_RNG = np.random.default_rng(0)
X = _RNG.normal(size=(120, 3)).round(1)
Y = (X[:, 0] + X[:, 1] > 0).astype(int)
MLMODEL = """artifact_path: model
flavors:
  python_function:
    env:
      conda: conda.yaml
    loader_module: mlflow.{flavor}
    python_version: 3.11.7
  {flavor}:
    code: null
    {entry}: {name}
    serialization_format: cloudpickle
mlflow_version: 3.1.0
signature:
  inputs: '[{{"type": "double", "name": "flavors"}}]'
"""


def folder_of(path: Path, flavor: str, name: str, data: bytes, entry: str = "data") -> Path:
    """Write an MLflow model by hand."""
    path.mkdir()
    (path / "MLmodel").write_text(MLMODEL.format(flavor=flavor, entry=entry, name=name))
    (path / Path(name).name).write_bytes(data)
    return path


def test_a_folder_of_xgboost(tmp_path: Path) -> None:
    """The answer names the folder; the library predicts with the file in it."""
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBClassifier(n_estimators=3, max_depth=3, n_jobs=1).fit(X, Y)
    data = bytes(model.get_booster().save_raw("ubj"))
    folder = folder_of(tmp_path / "m", "xgboost", "model.ubj", data)
    ensemble = xcount.load(folder, check=X)
    assert ensemble.path == str(folder)
    np.testing.assert_array_equal(ensemble.predict(X), xcount.load(model).predict(X))
    assert xcount.count(folder, sensitive="f0", gap="0.1").count


def test_a_folder_of_lightgbm(tmp_path: Path) -> None:
    """Saved as LightGBM's text."""
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=3, num_leaves=4, verbose=-1, n_jobs=1).fit(X, Y)
    data = model.booster_.model_to_string().encode()
    folder = folder_of(tmp_path / "m", "lightgbm", "model.lgb", data)
    check(xcount.load(folder), folder, X)


def test_a_folder_of_catboost_as_json(tmp_path: Path) -> None:
    """CatBoost predicts with the file in the folder, too."""
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostClassifier(iterations=3, depth=2, verbose=0, allow_writing_files=False)
    model.fit(X, Y).save_model(str(tmp_path / "c.json"), format="json")
    data = (tmp_path / "c.json").read_bytes()
    folder = folder_of(tmp_path / "m", "catboost", "model.cb", data)
    check(xcount.load(folder), folder, X)


def test_a_pickle_in_a_folder_needs_trust(tmp_path: Path) -> None:
    """scikit-learn's flavor is a pickle, which runs code."""
    model = RandomForestClassifier(3, max_depth=3, random_state=0, n_jobs=1).fit(X, Y)
    folder = folder_of(tmp_path / "m", "sklearn", "model.pkl", pickle.dumps(model), "pickled_model")
    with pytest.raises(UnsupportedModelError, match="--trust-pickle"):
        xcount.load(folder)
    ensemble = xcount.load(folder, trust_pickle=True, check=X)
    np.testing.assert_array_equal(ensemble.predict(X), xcount.load(model).predict(X))


@pytest.mark.parametrize(
    ("flavor", "name", "message"),
    [
        ("pytorch", "model.pth", "MLflow model of the flavors python_function, pytorch; read are"),
        ("onnx", "../secret", "expected one in the folder"),
        ("onnx", "", "expected one in the folder"),
        ("xgboost", "other.ubj", "which is not there"),
    ],
)
def test_what_a_folder_cannot_give_is_said(
    flavor: str, name: str, message: str, tmp_path: Path
) -> None:
    """One line, never that this is no model."""
    folder = folder_of(tmp_path / "m", flavor, name or "x", b"?")
    (folder / "MLmodel").write_text(MLMODEL.format(flavor=flavor, entry="data", name=name))
    (folder / "other.ubj").unlink(missing_ok=True)
    with pytest.raises((UnsupportedModelError, ModelFormatError), match=message) as caught:
        xcount.load(folder)
    assert "\n" not in str(caught.value)
    assert "not a model file" not in str(caught.value)


def test_an_address_needs_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says that folders do not."""
    monkeypatch.setitem(sys.modules, "mlflow", None)
    monkeypatch.setitem(sys.modules, "mlflow.artifacts", None)
    with pytest.raises(MissingExtraError, match=r"models:/credit/3: fetching .* needs mlflow"):
        xcount.load("models:/credit/3")


def test_an_address_is_fetched_by_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it fetches is read like a folder; what it cannot fetch is said in a line."""
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=3, num_leaves=4, verbose=-1, n_jobs=1).fit(X, Y)
    data = model.booster_.model_to_string().encode()
    folder = folder_of(tmp_path / "m", "lightgbm", "model.lgb", data)

    class Artifacts:
        @staticmethod
        def download_artifacts(*, artifact_uri: str) -> str:
            if artifact_uri != "models:/credit/3":
                raise RuntimeError(f"no model {artifact_uri}\nsecond line")
            return str(folder)

    artifacts: Any = Artifacts
    monkeypatch.setitem(sys.modules, "mlflow", artifacts)
    monkeypatch.setitem(sys.modules, "mlflow.artifacts", artifacts)
    ensemble = xcount.load("models:/credit/3", check=X)
    assert ensemble.path == "models:/credit/3"
    with pytest.raises(ModelFormatError, match=r"runs:/0/m: MLflow cannot fetch it: no model"):
        xcount.load("runs:/0/m")
