"""Plain trees and forests are read without skops, and come out as skops would have them."""

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
from xcount.model.loaders import files, sklearn_models, skops_trees

_RNG = np.random.default_rng(8)
X = _RNG.normal(size=(120, 3)).round(1)
X[::7, 1] = np.nan
Y = np.nan_to_num(X).sum(axis=1).round()
FRAME = pd.DataFrame(X, columns=["age", "größe", "sex"])
LABELS = np.array(["no", "yes"])[(Y > 0).astype(int)]

PLAIN = {
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
}
OTHERS = {
    "boosting": GradientBoostingRegressor(n_estimators=3).fit(np.nan_to_num(X), Y),
    "several outputs": DecisionTreeRegressor(max_depth=2).fit(X, np.stack([Y, -Y], axis=1)),
    "monotone": DecisionTreeRegressor(max_depth=2, monotonic_cst=[1, 0, 0]).fit(
        np.nan_to_num(X), Y
    ),
    "a splitter that is not the usual one": DecisionTreeRegressor(splitter="random").fit(X, Y),
    "a generator": RandomForestRegressor(2, random_state=np.random.RandomState(1)).fit(X, Y),
    "not fitted": RandomForestRegressor(2),
}
MAX_BYTES = files.MAX_FILE_BYTES


def _arrays(ensemble: Ensemble) -> list[list[Any]]:
    names = ("feature", "threshold", "left", "right", "missing_left", "zero_side", "value")
    return [[getattr(tree, name) for name in names] for tree in ensemble.trees]


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("model", PLAIN.values(), ids=PLAIN)
def test_a_plain_model_is_what_skops_makes_of_it(
    model: Any, packing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every array, every name and what the sums mean; and neither skops nor sklearn is asked."""
    data = skops.io.dumps(model, compression=packing)
    assert skops_trees.opened(data, MAX_BYTES) is not None
    expected = sklearn_models.from_live(skops.io.loads(data, trusted=["sklearn.tree._tree.Tree"]))
    with monkeypatch.context() as without:
        without.delattr(sklearn_models, "open_skops")
        without.delattr(sklearn_models, "_family_of")
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


@pytest.mark.parametrize("model", OTHERS.values(), ids=OTHERS)
def test_other_models_are_left_to_skops(model: Any) -> None:
    """What is not plain, or not known to behave alike in all versions, is no business of ours."""
    assert skops_trees.opened(skops.io.dumps(model), MAX_BYTES) is None


def test_archives_beyond_the_limit_are_left_alone() -> None:
    """Nothing is unpacked from an archive that would be too large."""
    assert skops_trees.opened(skops.io.dumps(PLAIN["tree"]), 100) is None


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
    source = zipfile.ZipFile(io.BytesIO(skops.io.dumps(PLAIN["regression forest"])))
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
        __class__="system", __module__="os"
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
def test_an_unexpected_schema_is_left_to_skops(change: Change) -> None:
    """Whatever the schema says, the quick reader takes it as it should be, or not at all."""
    assert skops_trees.opened(_changed(lambda schema: None), MAX_BYTES) is not None
    assert skops_trees.opened(_changed(change), MAX_BYTES) is None


def test_arrays_of_objects_are_never_read() -> None:
    """An array of objects is a pickle."""
    stream = io.BytesIO()
    np.save(stream, np.array([{}, 1], dtype=object), allow_pickle=True)
    damaged = _repacked(lambda name, data: stream.getvalue() if name.endswith("npy") else data)
    assert skops_trees.opened(damaged, MAX_BYTES) is None
    with pytest.raises(ModelFormatError, match=r"^m\.skops: not a skops file: "):
        sklearn_models.from_skops(damaged, "m.skops")


def test_no_damage_goes_unnoticed() -> None:
    """Wherever a byte is flipped: the same model, or an error in one line; never a crash."""
    data = bytearray(skops.io.dumps(PLAIN["tree"]))
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
        fields["n_features_in_"]["content"] = "1000000000000"
        del fields["feature_names_in_"]

    with pytest.raises(XCountError, match="1000000000000 features; at most"):
        sklearn_models.from_skops(_changed(claim), "m.skops")
