"""treelite's checkpoints and live models predict as treelite does."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
import xgboost
from edge_rows import edge_rows
from numpy.typing import NDArray
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)

import xcount
from xcount.errors import ModelFormatError, UnsupportedModelError
from xcount.model.loaders import parse_model

treelite = pytest.importorskip("treelite", reason="treelite is not installed")

_RNG = np.random.default_rng(8)
X = _RNG.normal(size=(240, 3)).round(2)
X[:, 2] = _RNG.integers(0, 5, 240)
TWO = (X[:, 0] + X[:, 2] % 2 > 0).astype(int)
THREE = TWO + (X[:, 1] > 0.3)
MISSING = np.where(_RNG.random(X.shape) < 0.1, np.nan, X)
_OPTIONS = {"max_depth": 3, "max_cat_to_onehot": 1}


def _xgboost(labels: NDArray[np.int64], **options: Any) -> Any:
    data = xgboost.DMatrix(X, labels, feature_types=["q", "q", "c"], enable_categorical=True)
    return treelite.frontend.from_xgboost(xgboost.train(_OPTIONS | options, data, 3))


def _lightgbm() -> Any:
    options = {"objective": "binary", "num_leaves": 6, "verbose": -1, "max_cat_to_onehot": 1}
    options |= {"min_data_per_group": 5, "cat_smooth": 1, "num_threads": 1}
    data = lightgbm.Dataset(MISSING, TWO, categorical_feature=[2], params=options)
    return treelite.frontend.from_lightgbm(lightgbm.train(options, data, 4))


def _sklearn(model: Any, labels: Any, rows: NDArray[np.float64] = X) -> Any:
    return treelite.sklearn.import_model(model.fit(rows, labels))


MODELS: dict[str, Any] = {
    "xgboost": lambda: _xgboost(TWO, objective="binary:logistic"),
    "xgboost classes": lambda: _xgboost(THREE, objective="multi:softprob", num_class=3),
    "lightgbm": _lightgbm,
    "votes": lambda: _sklearn(RandomForestClassifier(5, max_depth=3, random_state=0), TWO),
    "votes of three": lambda: _sklearn(RandomForestClassifier(5, max_depth=3), THREE),
    "regression": lambda: _sklearn(RandomForestRegressor(5, max_depth=3, random_state=0), TWO),
    "boosting": lambda: _sklearn(GradientBoostingClassifier(n_estimators=4), THREE),
    "histograms": lambda: _sklearn(
        HistGradientBoostingClassifier(max_iter=4, categorical_features=[2]), TWO
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_margins_are_treelite_s(name: str, tmp_path: Path) -> None:
    """At thresholds, their neighbours, missing values and all categories; live and from a file."""
    model = MODELS[name]()
    ensemble = xcount.load(model)
    rows = edge_rows(ensemble, infinities=False).astype(ensemble.input_dtype)
    raw = np.asarray(treelite.gtil.predict(model, rows, nthread=1, pred_margin=True))
    expected = raw.reshape(len(rows), -1)
    if ensemble.probability == "margin" and ensemble.n_outputs == 1:
        expected = expected[:, 1:]
    rtol = 1e-5 if ensemble.input_dtype == "float32" else 1e-12
    np.testing.assert_allclose(ensemble.predict(rows), expected, rtol=rtol, atol=rtol)
    model.serialize(str(tmp_path / "model.tl"))
    read = xcount.load(tmp_path / "model.tl")
    assert read.format == "treelite-checkpoint"
    assert (read.features, read.base, read.task) == (
        ensemble.features,
        ensemble.base,
        ensemble.task,
    )
    np.testing.assert_array_equal(read.predict(rows), ensemble.predict(rows))


@pytest.mark.parametrize(
    ("name", "decision", "probability"),
    [
        ("xgboost", "cutoff", "sigmoid"),
        ("xgboost classes", "argmax", "softmax"),
        ("votes", "cutoff", "margin"),
        ("votes of three", "argmax", "margin"),
        ("regression", "none", "none"),
    ],
)
def test_the_postprocessor_says_what_sums_mean(name: str, decision: str, probability: str) -> None:
    """As the library that the model came from."""
    ensemble = xcount.load(MODELS[name]())
    assert (ensemble.decision, ensemble.probability) == (decision, probability)


def test_counts_are_those_of_the_model_it_came_from() -> None:
    """XGBoost's own file, read by our own reader of it."""
    data = xgboost.DMatrix(X, TWO)
    booster = xgboost.train({"max_depth": 3, "objective": "binary:logistic"}, data, 5)
    theirs = xcount.load(treelite.frontend.from_xgboost(booster))
    ours = xcount.load(booster)
    for name in ours.feature_names:
        for change in ({"gap": "0.3"}, {"flip": True}):
            asked: dict[str, Any] = {"sensitive": name, **change}
            assert xcount.count(theirs, **asked).count == xcount.count(ours, **asked).count


def test_what_is_not_supported_is_refused() -> None:
    """By what it is."""
    with pytest.raises(UnsupportedModelError, match="isolation forest"):
        xcount.load(treelite.sklearn.import_model(IsolationForest(n_estimators=2).fit(X)))
    data = bytearray(MODELS["boosting"]().serialize_bytes())
    data[0] = 5
    with pytest.raises(UnsupportedModelError, match="treelite's format 5"):
        parse_model(bytes(data), "model.tl")


def test_no_cut_and_no_changed_byte_ends_in_a_traceback() -> None:
    """A file that ends early is refused with the place; any other damage is refused, or a model."""
    whole = MODELS["lightgbm"]().serialize_bytes()
    for end in range(14, len(whole), 37):
        with pytest.raises(ModelFormatError, match="ends at byte"):
            parse_model(whole[:end], "model.tl")
    with pytest.raises(ModelFormatError, match="1 bytes after the last tree"):
        parse_model(whole + b"x", "model.tl")
    for at in range(14, len(whole), 11):
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        with suppress(ModelFormatError, UnsupportedModelError):
            parse_model(bytes(damaged), "model.tl")


def _array(dtype: str, values: Sequence[Any] = ()) -> bytes:
    return struct.pack("<Q", len(values)) + np.array(values, dtype).tobytes()


def _written(
    n_classes: int,
    postprocessor: str,
    classes: Sequence[int],
    *,
    kind: int = 1,
    codes: Sequence[int] = (),
    ends: Sequence[int] = (0, 0, 0),
    alpha: float = 1.0,
) -> bytes:
    """Return a checkpoint of stumps, one for each of the classes."""
    n = len(classes)
    head = struct.pack("<iii", 4, 4, 0) + bytes([2, 2]) + struct.pack("<Qi", n, 1)
    head += bytes([2, 0]) + struct.pack("<i", 1) + _array("<i4", [n_classes])
    head += _array("<i4", [1, 1]) + _array("<i4", [0] * n) + _array("<i4", classes)
    head += _array("u1", [*postprocessor.encode()]) + struct.pack("<ff", alpha, 0)
    head += _array("<f8", [0] * n_classes) + _array("u1") + struct.pack("<i", 0)
    nothing = _array("<u8", [0, 0, 0])
    tree = struct.pack("<iB", 3, 0) + _array("i1", [kind, 0, 0]) + _array("<i4", [1, -1, -1])
    tree += _array("<i4", [2, -1, -1]) + _array("<i4", [0, -1, -1]) + _array("u1", [0, 0, 0])
    tree += _array("<f4", [0, 1, 2]) + _array("<f4", [0.5, 0, 0]) + _array("i1", [2, 0, 0])
    tree += _array("u1", [0, 0, 0]) + _array("<f4") + nothing + nothing
    tree += _array("<u4", codes) + nothing + _array("<u8", ends)
    tree += b"".join(map(_array, ("u8", "u1", "f8", "u1", "f8", "u1")))
    return head + (tree + struct.pack("<ii", 0, 0)) * n


def test_trees_of_single_classes_add_to_their_own_class() -> None:
    """Also if there are two of them, and the sums are predicted as they are."""
    ensemble = parse_model(_written(2, "identity_multiclass", [0, 1]), "model.tl")
    assert [tree.output for tree in ensemble.trees] == [0, 1]


def test_leaves_without_a_number_for_each_class_are_refused() -> None:
    """They are not zeros; and a short file must not ask for all memory."""
    for n_classes in (3, 50_000):
        with pytest.raises(ModelFormatError, match="numbers for each leaf"):
            parse_model(_written(n_classes, "softmax", [-1]), "model.tl")


def test_lists_that_overlap_are_refused() -> None:
    """A list that every node has again is far more than the file holds."""
    alone = _written(1, "identity", [0], kind=2, codes=[1, 2], ends=[2, 0, 0])
    assert parse_model(alone, "model.tl").trees[0].left_categories == {0: frozenset({1, 2})}
    shared = _written(1, "identity", [0], kind=2, codes=[1, 2], ends=[2, 2, 0])
    with pytest.raises(ModelFormatError, match="the lists of its nodes overlap"):
        parse_model(shared, "model.tl")


@pytest.mark.parametrize("alpha", [0.0, -1.0])
def test_probabilities_that_fall_are_refused(alpha: float) -> None:
    """The decision for class 1 would be at low sums, or nowhere."""
    with pytest.raises(UnsupportedModelError, match="probabilities fall as sums grow"):
        parse_model(_written(1, "sigmoid", [0], alpha=alpha), "model.tl")
