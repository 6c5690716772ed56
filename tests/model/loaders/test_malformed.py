"""Damaged model files: one line that says where, or an ensemble; never anything else."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import mutations
import numpy as np
import pytest
from effort import n_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from xcount.errors import ModelFormatError, UnsupportedModelError, XCountError
from xcount.model.ensemble import Ensemble
from xcount.model.loaders import lightgbm_text, ubjson, xgboost_dump, xgboost_json
from xcount.question.grid import Grid

TREE: dict[str, Any] = {
    "left_children": [1, -1, -1],
    "right_children": [2, -1, -1],
    "default_left": [1, 0, 0],
    "split_conditions": [0.5, -1.0, 2.0],
    "split_indices": [1, 0, 0],
    "split_type": [0, 0, 0],
    "categories": [],
    "categories_nodes": [],
    "categories_segments": [],
    "categories_sizes": [],
    "tree_param": {"num_nodes": "3", "size_leaf_vector": "1"},
}


def from_json(data: bytes, where: str) -> Ensemble:
    """Read the JSON of a model."""
    return xgboost_json.from_document(xgboost_json.parse_json(data, where), where, "xgboost-json")


def from_dump(data: bytes, where: str) -> Ensemble:
    """Read a JSON dump."""
    return xgboost_dump.from_document(xgboost_json.parse_json(data, where), where)


def document(**changes: Any) -> dict[str, Any]:
    """Return an XGBoost model of one stump, with changes to its tree."""
    return {
        "learner": {
            "feature_names": [],
            "feature_types": [],
            "attributes": {},
            "gradient_booster": {
                "name": "gbtree",
                "model": {"trees": [TREE | changes], "tree_info": [0]},
            },
            "learner_model_param": {"base_score": "0", "num_class": "0", "num_feature": "2"},
            "objective": {"name": "reg:squarederror"},
        },
        "version": [3, 2, 0],
    }


def at(path: str, value: Any) -> Callable[[], dict[str, Any]]:
    """Return a document in which the value at the path is another one; Ellipsis removes it."""

    def make() -> dict[str, Any]:
        changed = json.loads(json.dumps(document()))
        *parents, last = ["learner", *path.split(".")]
        place = changed
        for key in parents:
            place = place[key]
        if value is ...:
            del place[last]
        else:
            place[last] = value
        return changed  # type: ignore[no-any-return]  # JSON

    return make


BOOSTER = "gradient_booster"
CASES: list[tuple[Callable[[], Any], str]] = [
    (lambda: {}, "'learner' is missing"),
    (lambda: {"learner": 3}, "expected an object with 'gradient_booster', found 3"),
    (at(BOOSTER, ...), "learner: 'gradient_booster' is missing"),
    (at(f"{BOOSTER}.name", "gbforest"), "booster 'gbforest' is not supported"),
    (at(f"{BOOSTER}.name", 7), "expected a string, found 7"),
    (at(f"{BOOSTER}.name", "dart"), "'weight_drop' is missing"),
    (at(f"{BOOSTER}.model", []), "expected an object, found a list of 0"),
    (at(f"{BOOSTER}.model.trees", {}), "expected a list, found an object of 0"),
    (at(f"{BOOSTER}.model.trees", [5]), "tree 0: expected an object, found 5"),
    (at(f"{BOOSTER}.model.tree_info", []), "expected 1 entries, found 0"),
    (at(f"{BOOSTER}.model.tree_info", [1]), "tree 0: no such output: 1"),
    (at(f"{BOOSTER}.model.tree_info", [-1]), "tree 0: no such output: -1"),
    (at("objective", ...), "'objective' is missing"),
    (at("learner_model_param.base_score", ...), "'base_score' is missing"),
    (at("learner_model_param.base_score", "[1,2]"), "2 values for 1 outputs"),
    (at("learner_model_param.base_score", "nan"), "the base score is nan"),
    (at("learner_model_param.base_score", 1e308), "a base score of 1e+308 is impossible"),
    (at("learner_model_param.num_feature", "two"), "expected an integer, found 'two'"),
    (at("learner_model_param.num_feature", "-2"), "-2 is not in 0"),
    (at("learner_model_param.num_feature", "999999999"), "999999999 features; at most"),
    (at("learner_model_param.num_feature", "9" * 5000), "expected an integer"),
    (at("learner_model_param.num_class", "2000000000"), "outputs are too many"),
    (at("learner_model_param.num_feature", "1"), "tree 0, node 0: no such feature: index 1"),
    (at("feature_names", ["a"]), "1 names for 2 features"),
    (at("feature_names", ["a", "a"]), "two features are called 'a'"),
    (at("feature_names", ["a", 5]), "expected a string, found 5"),
    (at("feature_names", 5), "expected a list, found 5"),
    (at("feature_types", ["q", "q", "c"]), "more types than features"),
    (lambda: document(left_children=[1, -1]), "expected 2 entries, found 3"),
    (lambda: document(left_children=["a", -1, -1]), "left_children: expected numbers, found"),
    (lambda: document(left_children=[[1], -1, -1]), "left_children: expected"),
    (lambda: document(left_children=[1.5, -1, -1]), "expected an integer, found 1.5"),
    (lambda: document(left_children=[10**30, -1, -1]), "left_children"),
    (lambda: document(left_children=[2**63, -1, -1]), "left_children"),
    (lambda: document(left_children=None), "expected a list of numbers, found None"),
    (lambda: document(left_children=[9, -1, -1]), "node 0: left child 9 does not exist"),
    (lambda: document(left_children=[0, -1, -1]), "node 0: child 0 was reached before"),
    (lambda: document(left_children=[-1, -1, -1]), "node 0: one child is missing"),
    (lambda: document(split_conditions=[float("nan"), 0, 0]), "node 0: the threshold is nan"),
    (lambda: document(split_conditions=[1e39, 0, 0]), "node 0: the threshold is inf"),
    (lambda: document(split_conditions=[0, 1e39, 0]), "node 1: the leaf value is inf"),
    (lambda: document(split_conditions=[0, 0, -1e39]), "node 2: the leaf value is -inf"),
    (lambda: document(split_type=[1, 0, 0]), "node 0: a categorical split without categories"),
    (
        lambda: document(
            split_type=[1, 0, 0],
            categories_nodes=[0],
            categories_segments=[0],
            categories_sizes=[3],
            categories=[1],
        ),
        "node 0: its categories are out of range",
    ),
    (
        lambda: document(
            split_type=[1, 0, 0],
            categories_nodes=[0],
            categories_segments=[0],
            categories_sizes=[1],
            categories=[-4],
        ),
        "category code",
    ),
    (lambda: document(tree_param={"size_leaf_vector": "3"}), "leaves of 3 values for 1 outputs"),
    (lambda: document(tree_param=[]), "expected an object"),
]


@pytest.mark.parametrize(("make", "message"), CASES, ids=[message for _, message in CASES])
def test_a_damaged_xgboost_model_is_refused(make: Callable[[], Any], message: str) -> None:
    """One line that begins with the file and says where."""
    with pytest.raises((ModelFormatError, UnsupportedModelError)) as caught:
        from_json(json.dumps(make()).encode(), "m.json")
    text = str(caught.value)
    assert message in text
    assert text.startswith("m.json: ")
    assert "\n" not in text


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("feature_names", "feature_names: expected a string"),
        ("feature_types", ""),
        ("attributes", ""),
        ("gradient_booster.model.cats", "cats: expected an object"),
    ],
)
@pytest.mark.parametrize("size", [0, 1, 2])
def test_typed_arrays_of_ubjson_stand_where_others_are_expected(
    path: str, message: str, size: int
) -> None:
    """An array of numbers is read as a list, or refused; its truth is never asked for."""
    changed = at(path, np.zeros(size, dtype=np.uint8))()
    if message and (size or path.endswith("cats")):
        with pytest.raises(ModelFormatError, match=message):
            xgboost_json.from_document(changed, "m.ubj", "xgboost-ubjson")
    else:
        assert xgboost_json.from_document(changed, "m.ubj", "xgboost-ubjson").n_trees


def test_the_undamaged_model_is_fine() -> None:
    """The table above damages a model that loads."""
    ensemble = from_json(json.dumps(document()).encode(), "m.json")
    assert ensemble.predict([[0, 0], [0, 1]])[:, 0].tolist() == [-1, 2]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a":' * 200_000, "nested too deeply"),
        (b'{"learner": {', "line 1, column 14"),
        (b'{"learner": 1\xff}', "not valid JSON"),
        (b'{"learner": ' + b"1" * 5000 + b"}", "not valid JSON"),
    ],
)
def test_text_that_is_no_json_is_refused(data: bytes, message: str) -> None:
    """Truncation, deep nesting, other encodings and endless numbers."""
    with pytest.raises(ModelFormatError, match=message):
        from_json(data, "m.json")


LENGTH = b"L" + struct.pack(">q", 2**60)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "byte 1: truncated"),
        (b"{L\x00", "truncated: 8 bytes expected"),
        (b"{" + LENGTH, "truncated"),
        (b"{i\xff", "negative length"),
        (b"{Z", "expected a length, found marker"),
        (b"{i\x01a[$d#" + LENGTH, "truncated"),
        (b"{i\x01a[#" + LENGTH, "elements expected"),
        (b"{i\x01a[$Z#" + LENGTH, "without a size"),
        (b"{i\x01a[$d]", "without a size"),
        (b"{i\x01a?", "unknown marker"),
        (b"{i\x01aSi\x01\xff}", "not UTF-8"),
        (b"{i\x01a" + b"[" * 10_000, "nested too deeply"),
        (b"{}{}", "data after the end"),
        (b"{}", "'learner' is missing"),
    ],
)
def test_broken_ubjson_is_refused(data: bytes, message: str) -> None:
    """No length is believed before the bytes are there."""
    with pytest.raises(ModelFormatError, match=message):
        ubjson.from_bytes(data, "m.ubj")


def test_ubjson_is_read_in_all_its_spellings() -> None:
    """Sized, typed and open containers, no-ops, and every kind of number."""
    data = (
        b"{i\x01a[$U#i\x02\x01\x02i\x01b[#i\x02TFi\x01c[NZi\xffI\x01\x00l\x00\x00\x00\x07]"
        b"i\x01dd\x3f\x80\x00\x00i\x01eD\x3f\xf0\x00\x00\x00\x00\x00\x00i\x01fSi\x01x"
        b"i\x01gCyi\x01h{#i\x01i\x01kU\xff}"
    )
    found = ubjson.parse(data, "m")
    assert found.pop("a").tolist() == [1, 2]
    expected = {"b": [True, False], "c": [None, -1, 256, 7], "d": 1.0, "e": 1.0}
    assert found == expected | {"f": "x", "g": "y", "h": {"k": 255}}


STUMP: dict[str, Any] = {
    "nodeid": 0,
    "split": "f0",
    "split_condition": 0.5,
    "yes": 1,
    "no": 2,
    "missing": 1,
    "children": [{"nodeid": 1, "leaf": 1.0}, {"nodeid": 2, "leaf": 2.0}],
}


@pytest.mark.parametrize(
    ("trees", "message"),
    [
        ([5], "tree 0: expected an object, found 5"),
        ([STUMP, {}], "tree 1, node 0: 'split' is missing"),
        ([STUMP | {"split": 1.5}], "'split' must be a name or an index"),
        ([STUMP | {"split": -3}], "node 0: split: -3 is not in 0"),
        ([STUMP | {"split": "f999999999"}], "features; at most"),
        ([STUMP | {"split": 0}, STUMP | {"split": "age"}], "given by index, others by name"),
        ([STUMP | {"split_condition": "x"}], "expected a number, found 'x'"),
        ([STUMP | {"split_condition": 1e39}], "tree 0, node 0: the threshold is inf"),
        ([STUMP | {"split_condition": [0.5]}], "expected an integer"),
        ([STUMP | {"yes": 7}], "'yes' 7 and 'no' 2 are not its two children"),
        ([STUMP | {"no": 1}], "are not its two children"),
        ([STUMP | {"missing": 9}], "'missing' 9 is none of its children"),
        ([STUMP | {"children": []}], "are not its two children"),
        ([STUMP | {"children": 3}], "expected a list, found 3"),
        ([{"nodeid": 0, "leaf": float("nan")}], "tree 0, node 0: the leaf value is nan"),
        ([{"nodeid": 0, "leaf": [1.0, 2.0]}], "vector leaves"),
        (['{"nodeid"'], "tree 0: broken or truncated JSON"),
        (
            [{k: v for k, v in STUMP.items() if k != "split_condition"}],
            "an indicator split",
        ),
    ],
)
def test_a_damaged_dump_is_refused(trees: list[Any], message: str) -> None:
    """The line names the tree and the node."""
    with pytest.raises((ModelFormatError, UnsupportedModelError)) as caught:
        from_dump(json.dumps(trees).encode(), "m.json")
    assert message in str(caught.value)


LIGHTGBM = """tree
version=v4
num_class=1
num_tree_per_iteration=1
max_feature_idx=1
objective=regression
feature_names=a b
feature_infos=[0:1] 0:1:2
tree_sizes=100

Tree=0
num_leaves=3
num_cat=1
split_feature=0 1
threshold=0.5 0
decision_type=2 1
left_child=1 -1
right_child=-2 -3
leaf_value=1 2 3
cat_boundaries=0 1
cat_threshold=5
is_linear=0

end of trees

pandas_categorical:null
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("max_feature_idx=1\n", "", "no 'max_feature_idx'"),
        ("max_feature_idx=1", "max_feature_idx=x", "expected an integer, found 'x'"),
        ("max_feature_idx=1", "max_feature_idx=99999999", "features; at most"),
        ("max_feature_idx=1", "max_feature_idx=2", "2 feature names for 3 features"),
        ("max_feature_idx=1", "max_feature_idx=0", "node 1: no such feature: index 1"),
        ("feature_names=a b", "feature_names=a a", "two features are called 'a'"),
        ("num_tree_per_iteration=1", "num_tree_per_iteration=0", "0 is not in 1"),
        (
            "num_tree_per_iteration=1",
            "num_tree_per_iteration=7",
            "num_class is 1, but num_tree_per",
        ),
        ("num_class=1", "num_class=2", "num_class is 2, but num_tree_per_iteration is 1"),
        ("num_class=1", "", "the header has no 'num_class'"),
        ("num_leaves=3", "num_leaves=3\n", "' after an empty line"),
        ("num_leaves=3", "num_leaves=3\nnum_leaves=2", "tree 0 has 'num_leaves' twice"),
        ("num_class=1", "num_class=1\nnum_class=2", "the header has 'num_class' twice"),
        ("tree_sizes=100", "tree_sizes=100 100", "truncated: 1 of 2 trees"),
        ("end of trees", "", "no end of trees"),
        ("num_leaves=3", "num_leaves=0", "tree 0, num_leaves: 0 is not in 1"),
        ("num_leaves=3", "num_leaves=2000000000", "the arrays are shorter"),
        ("num_leaves=3", "num_leaves=2", "expected 2 numbers, found 3"),
        ("leaf_value=1 2 3", "leaf_value=1 2", "tree 0, leaf_value: expected 3 numbers"),
        ("leaf_value=1 2 3", "leaf_value=1 2 x", "could not convert string to float: 'x'"),
        ("leaf_value=1 2 3", "leaf_value=1 2 inf", "node 4: the leaf value is inf"),
        ("threshold=0.5 0", "threshold=nan 0", "node 0: the threshold is nan"),
        ("threshold=0.5 0", "threshold=-inf 0", "node 0: the threshold is -inf"),
        ("threshold=0.5 0", "threshold=0.5 3", "node 1: there is no category set 3"),
        ("split_feature=0 1", "split_feature=0 0", "both numeric and categorical splits"),
        ("split_feature=0 1", "split_feature=0.5 1", "expected an integer, found 0.5"),
        ("left_child=1 -1", "left_child=0 -1", "node 0: child 0 was reached before"),
        ("left_child=1 -1", "left_child=2 -1", "node 0: child 2 does not exist"),
        ("left_child=1 -1", "left_child=1 -4", "node 1: child -4 does not exist"),
        ("cat_boundaries=0 1", "cat_boundaries=0 9", "its categories are out of range"),
        ("cat_threshold=5", "cat_threshold=-5", "expected unsigned 32-bit words"),
        ("feature_infos=[0:1] 0:1:2", "feature_infos=[0:1] 0:x", "expected an integer, found 'x'"),
        ("pandas_categorical:null", "pandas_categorical:[", "pandas_categorical: broken JSON"),
        ("pandas_categorical:null", "pandas_categorical:3", "expected a list of lists"),
        ("is_linear=0", "is_linear=1", "linear trees"),
        ("feature_names=a b", "feature_names=a \udcff", "not UTF-8"),
    ],
)
def test_a_damaged_lightgbm_model_is_refused(old: str, new: str, message: str) -> None:
    """The line names the file, the tree and the field."""
    assert old in LIGHTGBM
    data = LIGHTGBM.replace(old, new).encode("utf-8", "surrogateescape")
    with pytest.raises((ModelFormatError, UnsupportedModelError)) as caught:
        lightgbm_text.from_bytes(data, "m.txt")
    assert message in str(caught.value)
    assert str(caught.value).startswith("m.txt")


def test_the_undamaged_lightgbm_model_is_fine() -> None:
    """The table above damages a model that loads; bits 0 and 2 of 5 are the left categories."""
    ensemble = lightgbm_text.from_bytes(LIGHTGBM.encode(), "m.txt")
    rows = [[0.5, 0], [0.5, 1], [0.5, 2], [0.6, 0]]
    assert ensemble.predict(rows)[:, 0].tolist() == [1, 3, 1, 2]
    assert ensemble.features[1].categories == (0, 1, 2)


@cache
def trained() -> dict[str, tuple[Callable[[bytes, str], Ensemble], bytes]]:
    """Return real files: name -> (its reader, its bytes)."""
    lgb, xgb = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
    rng = np.random.default_rng(5)
    rows: NDArray[np.float64] = rng.normal(size=(150, 3))
    rows[:, 2] = rng.integers(0, 6, 150)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    labels = (rows[:, 0] > 0).astype(int) + (rows[:, 2] == 3)
    parameters = {"objective": "multi:softprob", "num_class": 3, "max_depth": 3, "nthread": 1}
    matrix = xgb.DMatrix(rows, labels, feature_types=["q", "q", "c"])
    booster = xgb.train(parameters | {"booster": "dart", "rate_drop": 0.5}, matrix, 2)
    dump = "[" + ",".join(booster.get_dump(dump_format="json")) + "]"
    lightgbm = lgb.train(
        {"objective": "multiclass", "num_class": 3, "verbosity": -1, "num_threads": 1},
        lgb.Dataset(rows, labels, categorical_feature=[2]),
        2,
    )
    return {
        "json": (from_json, bytes(booster.save_raw("json"))),
        "ubjson": (ubjson.from_bytes, bytes(booster.save_raw("ubj"))),
        "dump": (from_dump, dump.encode()),
        "lightgbm": (lightgbm_text.from_bytes, lightgbm.model_to_string().encode()),
    }


def ensemble_or_message(read: Callable[[bytes, str], Ensemble], data: bytes) -> Ensemble | str:
    """Return what the reader makes of the data, or what it says about it."""
    try:
        return read(data, "m")
    except XCountError as error:
        return str(error)


@pytest.mark.parametrize("name", ["json", "ubjson", "dump", "lightgbm"])
@settings(max_examples=n_examples(150))
@given(seed=st.integers(0, 2**32 - 1), coarse=st.booleans())
def test_random_damage_never_escapes_as_another_exception(
    name: str, seed: int, coarse: bool
) -> None:
    """Every damaged file is refused in one line, or is a model that predicts and has a grid."""
    read, data = trained()[name]
    rng = np.random.default_rng(seed)
    if coarse or name == "ubjson":
        damaged = mutations.damaged_bytes(data, rng)
    elif name == "lightgbm":
        damaged = mutations.damaged_lines(data, rng)
    else:
        damaged = mutations.damaged_json(json.loads(data), rng)
    outcome = ensemble_or_message(read, damaged)
    if isinstance(outcome, str):
        assert outcome.startswith("m")
        assert "\n" not in outcome
        assert len(outcome) < 300
    else:
        outcome.predict(np.zeros((2, outcome.n_features)))
        assert Grid.of(outcome).n_regions >= 1
