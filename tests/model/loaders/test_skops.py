"""Models in skops files are read as live ones are, and damaged files are refused in one line."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

from xcount.errors import ModelFormatError, XCountError
from xcount.model.ensemble import Ensemble
from xcount.model.loaders import files, sklearn_models

_RNG = np.random.default_rng(8)
X = _RNG.normal(size=(120, 3)).round(1)
X[::7, 1] = np.nan
Y = np.nan_to_num(X).sum(axis=1).round()
FRAME = pd.DataFrame(X, columns=["age", "größe", "sex"])
LABELS = np.array(["no", "yes"])[(Y > 0).astype(int)]

MODELS = {
    "tree": DecisionTreeClassifier(max_depth=4).fit(X, Y > 0),
    "regression tree": DecisionTreeRegressor(max_depth=4).fit(X, Y),
    "extra tree": ExtraTreeClassifier(max_depth=4).fit(X, Y > 0),
    "forest with names and labels": RandomForestClassifier(4, max_depth=5).fit(FRAME, LABELS),
    "forest with labels as objects": RandomForestClassifier(2).fit(X, LABELS.astype(object)),
    "forest of several classes": RandomForestClassifier(3, max_depth=3).fit(X, Y),
    "regression forest": RandomForestRegressor(3, max_depth=3).fit(FRAME, Y),
    "extra trees": ExtraTreesClassifier(3, max_depth=3, class_weight={0: 1, 1: 3}).fit(X, Y > 0),
    "extra trees for regression": ExtraTreesRegressor(3, max_depth=3).fit(X, Y),
    "a single leaf": DecisionTreeRegressor().fit(X, np.ones(len(X))),
    "boosting": GradientBoostingRegressor(n_estimators=3).fit(np.nan_to_num(X), Y),
    "monotone": DecisionTreeRegressor(max_depth=2, monotonic_cst=[1, 0, 0]).fit(
        np.nan_to_num(X), Y
    ),
    "a random splitter": DecisionTreeRegressor(splitter="random").fit(X, Y),
}


def _arrays(ensemble: Ensemble) -> list[list[Any]]:
    names = ("feature", "threshold", "left", "right", "missing_left", "zero_side", "value")
    return [[getattr(tree, name) for name in names] for tree in ensemble.trees]


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_file_is_read_as_the_live_model(model: Any, packing: int) -> None:
    """Every array, every name and what the sums mean."""
    expected = sklearn_models.from_live(model)
    data = skops.io.dumps(model, compression=packing)
    found = sklearn_models.from_skops(data, "m.skops")
    assert found.format == "sklearn-skops"
    same = ("features", "base", "divisor", "input_dtype", "task", "decides_at", "tie_is_above")
    for name in (*same, "probability", "slope", "class_labels"):
        assert getattr(found, name) == getattr(expected, name)
    assert len(found.trees) == len(expected.trees)
    for own, other in zip(_arrays(found), _arrays(expected), strict=True):
        for array, wanted in zip(own, other, strict=True):
            assert array.dtype == wanted.dtype
            np.testing.assert_array_equal(array, wanted)


def test_what_cannot_be_read_is_refused() -> None:
    """The message says what the file holds."""
    with pytest.raises(XCountError, match="not fitted"):
        sklearn_models.from_skops(skops.io.dumps(RandomForestRegressor(2)), "m.skops")


def test_an_archive_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is unpacked from an archive that would be too large."""
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 100)
    with pytest.raises(ModelFormatError, match="unpacks to"):
        sklearn_models.from_skops(skops.io.dumps(MODELS["tree"]), "m.skops")


Change = Callable[[dict[str, Any]], object]


def _changed(change: Change) -> bytes:
    """Return the file of a small forest with a change of its schema."""
    return _repacked(
        lambda name, content: (
            content if name != "schema.json" else _edited(json.loads(content), change)
        )
    )


def _edited(schema: dict[str, Any], change: Change) -> bytes:
    change(schema)
    return json.dumps(schema).encode()


def _repacked(of: Callable[[str, bytes], bytes]) -> bytes:
    source = zipfile.ZipFile(io.BytesIO(skops.io.dumps(MODELS["regression forest"])))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in source.namelist():
            archive.writestr(name, of(name, source.read(name)))
    return stream.getvalue()


def _fields(schema: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = schema["content"]["content"]
    return found


def _tree(schema: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = _fields(schema)["estimators_"]["content"][1]["content"]["content"]
    return found


CHANGES: dict[str, Change] = {
    "a type of its own": lambda s: _fields(s)["verbose"].update(
        __class__="system", __module__="os", __loader__="TypeNode", __id__=1
    ),
    "another module": lambda s: s.update(__module__="sklearn.tree._classes"),
    "another loader": lambda s: _fields(s)["verbose"].update(__loader__="MethodNode"),
    "another protocol": lambda s: s.update(protocol=1),
    "another version": lambda s: _fields(s)["_sklearn_version"].update(content='"1.2.0"'),
    "no trees": lambda s: _fields(s)["estimators_"].update(content=[]),
    "a tree that is none": lambda s: _fields(s)["estimators_"].update(
        content=[_fields(s)["verbose"]]
    ),
    "a forest of forests": lambda s: _fields(s)["estimators_"].update(content=[deepcopy(s)]),
    "no file": lambda s: _tree(s)["tree_"]["content"]["content"]["nodes"].update(file="../x.npy"),
    "another array": lambda s: _tree(s)["tree_"]["content"]["content"].update(
        nodes=_tree(s)["tree_"]["content"]["content"]["values"]
    ),
    "nodes and values of two trees": lambda s: _tree(s)["tree_"]["content"]["content"].update(
        values=_fields(s)["estimators_"]["content"][0]["content"]["content"]["tree_"]["content"][
            "content"
        ]["nodes"]
    ),
    "a number of columns that is none": lambda s: _fields(s)["n_features_in_"].update(
        content="3.5"
    ),
    "a content that is none": lambda s: s.update(content=7),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_unexpected_schema_is_read_or_refused(change: Change) -> None:
    """Whatever the schema says: a model, or an error in one line."""
    sklearn_models.from_skops(_changed(lambda schema: None), "m.skops")
    try:
        said = repr(sklearn_models.from_skops(_changed(change), "m.skops"))
    except XCountError as error:
        said = str(error)
    assert "\n" not in said


def test_a_type_that_no_model_needs_is_refused() -> None:
    """The message names it."""
    with pytest.raises(XCountError, match=r"os\.system"):
        sklearn_models.from_skops(_changed(CHANGES["a type of its own"]), "m.skops")


def test_arrays_of_objects_are_never_read() -> None:
    """An array of objects is a pickle."""
    stream = io.BytesIO()
    np.save(stream, np.array([{}, 1], dtype=object), allow_pickle=True)
    damaged = _repacked(lambda name, data: stream.getvalue() if name.endswith("npy") else data)
    with pytest.raises(ModelFormatError, match=r"^m\.skops: not a skops file: "):
        sklearn_models.from_skops(damaged, "m.skops")


def test_no_damage_goes_unnoticed() -> None:
    """Wherever a byte is flipped: the same model, or an error in one line; never a crash."""
    data = bytearray(skops.io.dumps(MODELS["tree"]))
    for place in _RNG.choice(len(data), 300, replace=False):
        damaged = bytes(data[:place] + bytes([data[place] ^ 0x21]) + data[place + 1 :])
        try:
            said = repr(sklearn_models.from_skops(damaged, "m.skops"))
        except XCountError as error:
            said = str(error)
        assert "\n" not in said


def test_a_wild_number_of_columns_is_refused() -> None:
    """A file of a few bytes must not ask for all memory."""

    def claim(schema: dict[str, Any]) -> None:
        fields = _fields(schema)
        # A number of its own: skops reads values with the same number only once.
        fields["n_features_in_"].update(content="1000000000000", __id__=1)
        del fields["feature_names_in_"]

    with pytest.raises(XCountError, match="1000000000000 features; at most"):
        sklearn_models.from_skops(_changed(claim), "m.skops")
