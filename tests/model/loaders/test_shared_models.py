"""Models that other people trained: their published predictions, and treelite as second oracle."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from probes import probe_rows, shared_models

import xcount
from xcount.errors import UnsupportedModelError
from xcount.model.ensemble import Ensemble

XGBOOST = [
    "leaves/xgagaricus.converted.json",
    "leaves/xg_dart_agaricus.converted.json",
    "leaves/xgdermatology.converted.json",
    "treelite/mushroom.converted.json",
    "treelite/dermatology.converted.json",
    "treelite/mq2008.converted.json.gz",
]
LIGHTGBM = [
    "leaves/lg_breast_cancer.txt",
    "leaves/lg_dart_breast_cancer.model",
    "leaves/lg_rf_iris.model",
    "leaves/lgmulticlass.model.gz",
    "leaves/lg_kddcup99.model.gz",
    "treelite/toy_categorical_model.txt",
]


def read_libsvm(path: Path, n_features: int, absent: float) -> NDArray[np.float64]:
    """Read rows of ``label index:value ...``; what is not listed is ``absent``."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    rows = np.full((len(text.splitlines()), n_features), absent)
    for row, line in enumerate(text.splitlines()):
        for entry in line.split()[1:]:
            index, value = entry.split(":")
            rows[row, int(index)] = float(value)
    return rows


def sigmoid(margins: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability of a margin."""
    return 1 / (1 + np.exp(-margins))


def load(name: str) -> Ensemble:
    """Load one of the shared models."""
    return xcount.load(shared_models() / name)


@pytest.mark.parametrize(
    ("model", "rows", "predictions", "is_probability", "n_trees"),
    [
        ("xgagaricus.converted.json", "agaricus_test.libsvm.gz", "xgagaricus", True, 3),
        # These were published for the first ten of the twenty trees.
        (
            "xg_dart_agaricus.converted.json",
            "agaricus_test.libsvm.gz",
            "xg_dart_agaricus",
            False,
            10,
        ),
        ("xgdermatology.converted.json", "dermatology_test.libsvm", "xgdermatology", False, 30),
        ("lg_rf_iris.model", "iris_test.libsvm", "lg_rf_iris", False, 30),
        (
            "lg_dart_breast_cancer.model",
            "breast_cancer_test.tsv",
            "lg_dart_breast_cancer",
            True,
            10,
        ),
    ],
)
def test_published_predictions_come_out(
    model: str, rows: str, predictions: str, is_probability: bool, n_trees: int
) -> None:
    """The predictions that the models were published with."""
    folder = shared_models() / "leaves"
    ensemble = load(f"leaves/{model}")
    ensemble = replace(ensemble, trees=ensemble.trees[:n_trees])
    if rows.endswith(".tsv"):
        inputs = np.loadtxt(folder / rows)
    else:
        absent = np.nan if ensemble.format.startswith("xgboost") else 0.0
        inputs = read_libsvm(folder / rows, ensemble.n_features, absent)
    expected = np.loadtxt(folder / f"{predictions}_true_predictions.txt", ndmin=2)
    found = ensemble.predict(inputs)
    found = sigmoid(found) if is_probability else found
    assert found.shape == expected.shape
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-6)


def treelite_margins(name: str, rows: NDArray[np.float64], tmp_path: Path) -> NDArray[np.float64]:
    """Return treelite's margins of a shared model."""
    treelite: Any = pytest.importorskip("treelite")
    path = shared_models() / name
    if path.suffix == ".gz":
        unpacked = tmp_path / path.stem
        unpacked.write_bytes(gzip.decompress(path.read_bytes()))
        path = unpacked
    if name in XGBOOST:
        model = treelite.frontend.load_xgboost_model(path)
        margins = treelite.gtil.predict(model, rows.astype(np.float32), nthread=1, pred_margin=True)
    else:
        model = treelite.frontend.load_lightgbm_model(path)
        margins = treelite.gtil.predict(model, rows, nthread=1, pred_margin=True)
    return np.asarray(margins, dtype=np.float64).reshape(len(rows), -1)


@pytest.mark.parametrize("name", XGBOOST + LIGHTGBM)
def test_treelite_gives_the_same_sums(name: str, tmp_path: Path) -> None:
    """An independent reader of the same files agrees, at thresholds and beside them."""
    ensemble = load(name)
    rows = probe_rows(ensemble, n_rows=300, infinities=True)
    # Between -1 and 0 LightGBM sees category 0, and so do we; treelite sees none.
    codes = [i for i, feature in enumerate(ensemble.features) if feature.is_categorical]
    rows[:, codes] = np.floor(rows[:, codes])
    expected = treelite_margins(name, rows, tmp_path)
    assert np.allclose(ensemble.predict(rows), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", XGBOOST)
def test_xgboost_gives_the_same_leaves(name: str) -> None:
    """The library itself, on the files of others."""
    pytest.importorskip("xgboost")
    ensemble = load(name)
    rows = probe_rows(ensemble, n_rows=300)
    assert xcount.load(shared_models() / name, check=rows).sha256 == ensemble.sha256


@pytest.mark.parametrize("name", LIGHTGBM)
def test_lightgbm_gives_the_same_leaves(name: str) -> None:
    """The library itself, on the files of others."""
    pytest.importorskip("lightgbm")
    ensemble = load(name)
    rows = probe_rows(ensemble, n_rows=300, infinities=True)
    assert xcount.load(shared_models() / name, check=rows).sha256 == ensemble.sha256


def test_the_papers_input_form_is_read() -> None:
    """A dump with integer features: names f0..f10, no base score, counts come out."""
    path = shared_models() / "treeverification_breast_cancer_8trees_dump.json"
    ensemble = xcount.load(path)
    assert ensemble.format == "xgboost-dump"
    assert ensemble.n_trees == 8
    assert ensemble.feature_names == tuple(f"f{i}" for i in range(11))
    assert ensemble.base == (0.0,)


@pytest.mark.parametrize("name", ["lg_1tree", "lg_1tree_1leaf", "lg_dart_breast_cancer"])
def test_lightgbm_json_dumps_are_refused_by_name(name: str) -> None:
    """The message says what to save instead."""
    with pytest.raises(UnsupportedModelError, match=r"LightGBM's JSON dump.*Booster.save_model"):
        load(f"leaves/{name}.json")
