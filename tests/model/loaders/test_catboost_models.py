"""CatBoost models: the ensemble decides like the library, leaf by leaf."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import catboost
import numpy as np
import pandas as pd
import pytest
from edge_rows import all_region_points, edge_rows
from numpy.typing import NDArray

import xcount
from xcount.errors import ModelFormatError, UnsupportedModelError, XCountError
from xcount.model.ensemble import Ensemble
from xcount.model.loaders import catboost_models
from xcount.model.loaders.xgboost_json import parse_json


def from_json(data: bytes, where: str) -> Ensemble:
    """Read the JSON of a model."""
    return catboost_models.from_document(parse_json(data, where), where, "catboost-json")


_RNG = np.random.default_rng(11)
X = _RNG.normal(size=(240, 4)).round(1)
X_MISSING = np.where(_RNG.random(X.shape) < 0.15, np.nan, X)
Y_BINARY = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int) ^ np.isnan(X_MISSING[:, 1])
Y_THREE = np.array(["low", "mid", "top"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)]
Y_NUMBER = X[:, 0] * 3 + np.abs(X[:, 1]) + np.isnan(X_MISSING[:, 2])

POLICIES = ("SymmetricTree", "Depthwise", "Lossguide")
LOSSES = {
    "Logloss": Y_BINARY,
    "RMSE": Y_NUMBER,
    "MultiClass": Y_THREE,
    "MultiClassOneVsAll": Y_THREE,
}


def _trained(
    loss: str = "RMSE",
    data: Any = X,
    target: Any = None,
    **options: Any,
) -> Any:
    settings: dict[str, Any] = {"iterations": 8, "depth": 5, "thread_count": 1}
    settings |= {
        "random_seed": 0,
        "verbose": False,
        "allow_writing_files": False,
        "loss_function": loss,
    }
    model = catboost.CatBoost(settings | options)
    return model.fit(data, LOSSES[loss] if target is None else target)


def _document(model: Any, folder: Path) -> Any:
    path = folder / "document.json"
    model.save_model(str(path), format="json")
    return json.loads(path.read_bytes())


def _assert_same_margins(model: Any, ensemble: Ensemble, rows: NDArray[np.float64]) -> None:
    expected = catboost_models.raw_predictions(model, rows)
    np.testing.assert_allclose(ensemble.predict(rows), expected, rtol=1e-13, atol=1e-13)


def _assert_same_leaves(
    model: Any, ensemble: Ensemble, rows: NDArray[np.float64], folder: Path
) -> None:
    """Compare with CatBoost's leaf indices: by value, or one to one where numbers differ."""
    oblivious = _document(model, folder).get("oblivious_trees")
    indices = model.calc_leaf_indexes(rows.astype(np.float32))
    leaves = ensemble.leaf_indices(rows)
    n_outputs = ensemble.n_outputs
    for at, tree in enumerate(ensemble.trees):
        index, leaf = indices[:, at // n_outputs], leaves[:, at]
        if oblivious is not None:
            values = np.array(oblivious[at // n_outputs]["leaf_values"], dtype=np.float64)
            expected = values.reshape(-1, n_outputs)[index, at % n_outputs]
            np.testing.assert_array_equal(tree.value[leaf], expected)
        else:
            pairs = np.unique(np.stack([index, leaf]), axis=1)
            assert len(np.unique(pairs[0])) == len(np.unique(pairs[1])) == pairs.shape[1]


@pytest.mark.parametrize("nan_mode", ["Min", "Max"])
@pytest.mark.parametrize("data", [X, X_MISSING], ids=["complete", "missing"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("policy", POLICIES)
def test_every_row_ends_in_the_same_leaves(
    policy: str, loss: str, data: NDArray[np.float64], nan_mode: str, tmp_path: Path
) -> None:
    """Thresholds, neighbours, NaN and infinities get the library's leaf, bit for bit."""
    model = _trained(loss, data, grow_policy=policy, nan_mode=nan_mode)
    ensemble = xcount.load(model)
    rows = edge_rows(ensemble, infinities=True)
    with np.errstate(over="ignore"):
        _assert_same_leaves(model, ensemble, rows, tmp_path)
    _assert_same_margins(model, ensemble, rows)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_file_is_as_good_as_the_live_model(policy: str, tmp_path: Path) -> None:
    """The JSON file gives the same ensemble, and checks against the library too."""
    model = _trained("Logloss", X_MISSING, grow_policy=policy)
    path = tmp_path / "model.json"
    model.save_model(str(path), format="json")
    ensemble, live = xcount.load(path), xcount.load(model)
    rows = edge_rows(ensemble, infinities=True)
    np.testing.assert_array_equal(ensemble.predict(rows), live.predict(rows))
    _assert_same_margins(path, ensemble, rows)
    _assert_same_margins(model, live, rows)
    assert (ensemble.format, ensemble.path, live.format) == ("catboost-json", str(path), "catboost")


def test_load_checks_against_the_library(tmp_path: Path) -> None:
    """A check passes on the live model and on its file."""
    model = _trained("MultiClass", X_MISSING)
    path = tmp_path / "model.json"
    model.save_model(str(path), format="json")
    rows = edge_rows(xcount.load(model), infinities=True)
    xcount.load(model, check=rows)
    xcount.load(path, check=rows)


def test_wrappers_names_and_labels() -> None:
    """The scikit-learn style classes load alike; names and classes are kept."""
    frame = pd.DataFrame(X, columns=["age", "sex", "income", "debt"])
    quiet: dict[str, Any] = {"iterations": 3, "verbose": False, "allow_writing_files": False}
    three = xcount.load(catboost.CatBoostClassifier(**quiet).fit(frame, Y_THREE))
    assert three.feature_names == ("age", "sex", "income", "debt")
    assert (three.task, three.class_labels) == ("multiclass", ("low", "mid", "top"))
    number = xcount.load(catboost.CatBoostRegressor(**quiet).fit(X, Y_NUMBER))
    assert number.feature_names == ("f0", "f1", "f2", "f3")
    assert (number.task, number.class_labels, number.n_outputs) == ("regression", None, 1)
    binary = xcount.load(catboost.CatBoostClassifier(**quiet).fit(X, Y_BINARY))
    assert (binary.task, binary.n_outputs) == ("binary", 1)
    groups = np.arange(len(X)) // 10
    ranker = catboost.CatBoostRanker(**quiet).fit(X, Y_BINARY, group_id=groups)
    assert xcount.load(ranker).task == "ranking"


def test_scale_and_bias_are_applied() -> None:
    """A model with a scale and a bias of its own, and a sum of models, predict as CatBoost says."""
    model = _trained()
    both = catboost.sum_models([model, _trained(random_seed=1)], weights=[0.5, 2.0])
    model.set_scale_and_bias(2.5, -1.25)
    for each in (model, both):
        ensemble = xcount.load(each)
        assert ensemble.task == "regression"
        _assert_same_margins(each, ensemble, edge_rows(ensemble, infinities=True))
    assert xcount.load(model).base == (-1.25,)


def test_tests_that_the_path_decides_are_dropped() -> None:
    """An oblivious tree about one feature becomes a ladder: as many leaves as cells."""
    model = _trained(data=X[:, :1], depth=6, iterations=4)
    ensemble = xcount.load(model)
    for tree in ensemble.trees:
        tests = tree.feature >= 0
        assert int((~tests).sum()) == len(np.unique(tree.threshold[tests])) + 1
    _assert_same_margins(model, ensemble, edge_rows(ensemble, infinities=True))


@pytest.mark.parametrize("policy", POLICIES)
def test_region_points_go_where_the_grid_says(policy: str) -> None:
    """CatBoost itself gives every region's point the ensemble's answer."""
    model = _trained("Logloss", X_MISSING, grow_policy=policy, iterations=3, depth=3)
    ensemble = xcount.load(model)
    _assert_same_margins(model, ensemble, all_region_points(ensemble))


def test_a_single_leaf() -> None:
    """Trees that ask nothing are constants."""
    model = _trained(grow_policy="Lossguide", min_data_in_leaf=10_000, iterations=2)
    ensemble = xcount.load(model)
    assert ensemble.max_depth == 0
    _assert_same_margins(model, ensemble, X)


def _frame_with(column: list[Any]) -> pd.DataFrame:
    return pd.DataFrame({"odd": column, "age": X[:, 0]})


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (catboost.CatBoostRegressor, "not fitted"),
        (
            lambda: _trained(
                "Logloss", _frame_with(["a b", "b c", "c"] * 80), text_features=["odd"]
            ),
            "text feature 'odd'",
        ),
        (
            lambda: _trained("Logloss", _frame_with(X[:, 1:].tolist()), embedding_features=["odd"]),
            "embedding feature 'odd'",
        ),
        (
            lambda: _trained("MultiRMSE", target=np.stack([Y_NUMBER, X[:, 3]], axis=1)),
            "MultiRMSE with 2 outputs",
        ),
        (lambda: _trained("RMSEWithUncertainty", target=Y_NUMBER), "RMSEWithUncertainty"),
    ],
)
def test_what_cannot_be_represented_is_refused_by_name(make: Any, named: str) -> None:
    """The message is one line and says what stands in the way."""
    with pytest.raises(UnsupportedModelError, match=named) as caught:
        xcount.load(make())
    assert "\n" not in str(caught.value)


def test_the_binary_format_is_refused_with_advice(tmp_path: Path) -> None:
    """CatBoost's own default format is not read; the message says what to do."""
    path = tmp_path / "model.cbm"
    _trained().save_model(str(path))
    with pytest.raises(UnsupportedModelError, match=r"format=.json"):
        xcount.load(path)


SEEDS = Path(__file__).parents[2] / "corpus" / "seeds"
_SPLIT = {"border": 0.5, "float_feature_index": 0, "split_index": 0, "split_type": "FloatFeature"}
_SECOND = {**_SPLIT, "border": -1.0, "float_feature_index": 1, "split_index": 1}
_OBLIVIOUS: dict[str, Any] = {
    "features_info": {
        "float_features": [
            {
                "flat_feature_index": 0,
                "feature_id": "a",
                "nan_value_treatment": "AsIs",
                "borders": [0.5],
            },
            {
                "flat_feature_index": 2,
                "feature_id": "c",
                "nan_value_treatment": "AsTrue",
                "borders": [-1.0],
            },
        ]
    },
    "oblivious_trees": [
        {
            "leaf_values": [1.0, 2.0, 3.0, 4.0],
            "splits": [_SPLIT, _SECOND],
        }
    ],
    "scale_and_bias": [2.0, [0.25]],
}
_NESTED: dict[str, Any] = {
    "features_info": _OBLIVIOUS["features_info"],
    "trees": [{"split": _SPLIT, "left": {"value": 1.0}, "right": {"value": [2.0]}}],
}


def test_hand_written_files_mean_what_they_say() -> None:
    """Bit i of the leaf index answers split i; columns without an entry are plain numbers."""
    ensemble = from_json(json.dumps(_OBLIVIOUS).encode(), "m.json")
    assert ensemble.feature_names == ("a", "f1", "c")
    rows = [[0.5, 9, -1.0], [0.6, 9, -1.0], [0.5, 9, -0.9], [0.6, 9, -0.9], [np.nan, 9, np.nan]]
    assert ensemble.predict(rows).ravel().tolist() == [2.25, 4.25, 6.25, 8.25, 6.25]
    document = copy.deepcopy(_OBLIVIOUS)
    document["oblivious_trees"][0]["splits"] = [_SPLIT, _SPLIT]
    twice = from_json(json.dumps(document).encode(), "m.json")
    assert twice.trees[0].n_nodes == 3
    assert twice.predict([[0.5, 0, 0], [0.6, 0, 0]]).ravel().tolist() == [2.25, 8.25]
    nested = from_json(json.dumps(_NESTED).encode(), "m.json")
    assert nested.predict([[0.5, 0, 0], [0.6, 0, 0]]).ravel().tolist() == [1.0, 2.0]
    assert nested.task == "unknown"


def _drop(*path: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        for key in path[:-1]:
            document = document[key]
        del document[path[-1]]

    return change


def _put(*path_and_value: Any) -> Callable[[Any], None]:
    *path, last, value = path_and_value

    def change(document: Any) -> None:
        for key in path:
            document = document[key]
        document[last] = value

    return change


_FLOATS = ("features_info", "float_features")
_TREE = ("oblivious_trees", 0)
_BROKEN: list[tuple[dict[str, Any], Callable[[Any], None], str]] = [
    (_OBLIVIOUS, _drop("features_info"), "'features_info' is missing"),
    (_OBLIVIOUS, _drop(*_FLOATS), "'float_features' is missing"),
    (_OBLIVIOUS, _put(*_FLOATS, {}), "expected a list"),
    (_OBLIVIOUS, _drop(*_FLOATS, 0, "flat_feature_index"), r"float_features\[0\]"),
    (_OBLIVIOUS, _put(*_FLOATS, 0, "flat_feature_index", -1), "-1 is not in"),
    (_OBLIVIOUS, _put(*_FLOATS, 0, "flat_feature_index", 2), "column 2 occurs twice"),
    (_OBLIVIOUS, _put(*_FLOATS, 0, "feature_id", 7), "expected a string"),
    (_OBLIVIOUS, _put(*_FLOATS, 0, "feature_id", "c"), "two features are called 'c'"),
    (_OBLIVIOUS, _put(*_FLOATS, 0, "nan_value_treatment", "Odd"), "unknown nan_value_treatment"),
    (
        _OBLIVIOUS,
        _put("features_info", "categorical_features", 5),
        "categorical_features: expected",
    ),
    (_OBLIVIOUS, _put("model_info", {"loss_function": {"type": [1]}}), "expected a string"),
    (_OBLIVIOUS, _put("oblivious_trees", 7), "expected a list"),
    (_OBLIVIOUS, _put(*_TREE, 7), r"oblivious_trees\[0\]: expected an object"),
    (_OBLIVIOUS, _drop(*_TREE, "leaf_values"), "'leaf_values' is missing"),
    (_OBLIVIOUS, _put(*_TREE, "leaf_values", [1.0, 2.0, 3.0]), "3 values for 4 leaves"),
    (_OBLIVIOUS, _put(*_TREE, "leaf_values", []), "0 values for 4 leaves"),
    (_OBLIVIOUS, _put(*_TREE, "leaf_values", [1.0, "x", 3.0, 4.0]), "found 'x'"),
    (_OBLIVIOUS, _put(*_TREE, "leaf_values", 0, float("nan")), "leaf value is nan"),
    (_OBLIVIOUS, _put(*_TREE, "leaf_values", 3, float("inf")), "leaf value is inf"),
    (
        _OBLIVIOUS,
        _put(*_TREE, "splits", 0, "border", float("nan")),
        "the border is nan, not a finite",
    ),
    (_OBLIVIOUS, _put(*_TREE, "splits", 0, "border", 1e39), "the border is inf, not a finite"),
    (_OBLIVIOUS, _put(*_TREE, "splits", 0, "border", None), r"splits\[0\]: expected a number"),
    (_OBLIVIOUS, _put(*_TREE, "splits", 1, "float_feature_index", 2), "2 float features"),
    (_OBLIVIOUS, _drop(*_TREE, "splits", 1, "float_feature_index"), r"splits\[1\]"),
    (_OBLIVIOUS, _put("scale_and_bias", [1.0]), "a scale and a bias"),
    (_OBLIVIOUS, _put("scale_and_bias", [1.0, [0.0, 0.0]]), "2 biases"),
    (_OBLIVIOUS, _put("scale_and_bias", [1.0, [float("inf")]]), "not a finite number"),
    (_NESTED, _drop("trees", 0, "left"), "'left' is missing"),
    (_NESTED, _drop("trees", 0, "left", "value"), r"node 1: 'value' is missing"),
    (_NESTED, _put("trees", 0, "left", "value", [1.0, 2.0]), "differ in their number"),
    (_NESTED, _put("trees", 0, "left", None), "node 1: expected an object"),
    (_NESTED, _drop("trees"), "'trees' is missing"),
]


@pytest.mark.parametrize(("good", "change", "message"), _BROKEN, ids=lambda v: str(v)[:30])
def test_a_malformed_file_is_refused_in_one_line(
    good: dict[str, Any], change: Callable[[Any], None], message: str
) -> None:
    """Each defect is named, with its place."""
    document = copy.deepcopy(good)
    change(document)
    with pytest.raises(ModelFormatError, match=message) as caught:
        from_json(json.dumps(document).encode(), "m.json")
    assert str(caught.value).startswith("m.json: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [b'{"features_info": {', b"\xff\xfe", b'{"features_info": ' * 100_000, b"[]", b"3"],
    ids=["truncated", "no text", "deep", "a list", "a number"],
)
def test_what_is_no_document_is_refused(data: bytes) -> None:
    """Whatever the bytes are, it is one error of ours."""
    with pytest.raises(ModelFormatError, match=r"^m\.json: "):
        from_json(data, "m.json")


def test_constructs_of_other_splits_are_named() -> None:
    """A split on a text is refused by its type, a huge depth by its number."""
    document = copy.deepcopy(_OBLIVIOUS)
    document["oblivious_trees"][0]["splits"][0]["split_type"] = "EstimatedFeature"
    with pytest.raises(UnsupportedModelError, match="EstimatedFeature"):
        from_json(json.dumps(document).encode(), "m.json")
    document["oblivious_trees"][0]["splits"] = [_SPLIT] * 60
    with pytest.raises(UnsupportedModelError, match="depth 60"):
        from_json(json.dumps(document).encode(), "m.json")
    document["features_info"]["float_features"][0]["flat_feature_index"] = 2**31 - 1
    with pytest.raises(UnsupportedModelError, match="2147483648 features"):
        from_json(json.dumps(document).encode(), "m.json")


_JUNK: list[Any] = [
    None,
    True,
    -1,
    2**70,
    1e308,
    float("nan"),
    float("-inf"),
    "",
    "x",
    [],
    {},
    [[]],
    [None],
]


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return every (container, key) of a document."""
    keys: list[Any] = list(value) if isinstance(value, dict) else []
    if isinstance(value, list):
        keys = list(range(len(value)))
    inside = [(value, key) for key in keys]
    return inside + [place for parent, key in inside for place in _places(parent[key])]


@pytest.mark.parametrize("good", [_OBLIVIOUS, _NESTED], ids=["oblivious", "nested"])
def test_junk_anywhere_is_read_or_refused(good: dict[str, Any]) -> None:
    """With any value replaced by any junk, there is an ensemble or an error of ours."""
    n_read, messages = 0, []
    for i in range(len(_places(copy.deepcopy(good)))):
        for junk in _JUNK:
            document = copy.deepcopy(good)
            container, key = _places(document)[i]
            container[key] = junk
            try:
                ensemble = from_json(json.dumps(document).encode(), "m.json")
                assert np.isfinite(ensemble.predict(np.zeros((1, ensemble.n_features)))).all()
                n_read += 1
            except XCountError as error:
                messages.append(str(error))
    assert n_read
    assert messages
    assert not any("\n" in message for message in messages)


def test_reading_a_file_imports_no_library() -> None:
    """A CatBoost file is read by itself: neither CatBoost nor another heavy library is loaded."""
    code = (
        "import sys\n"
        "from xcount import load\n"
        "load('/dev/stdin')\n"
        "print(sorted({'catboost', 'pandas', 'sklearn', 'xgboost'} & set(sys.modules)))\n"
    )
    document = json.dumps(_OBLIVIOUS).encode()
    done = subprocess.run(
        [sys.executable, "-c", code], input=document, capture_output=True, check=True
    )
    assert done.stdout.strip() == b"[]"


@pytest.mark.parametrize("kind", ["symmetrictree", "depthwise", "categories"])
@pytest.mark.parametrize(
    ("key", "value"), [("border", 5.0), ("split_index", 0), ("split_index", 99), ("value", 7)]
)
def test_a_split_that_contradicts_its_number_is_refused(kind: str, key: str, value: float) -> None:
    """CatBoost goes by ``split_index`` alone, so other words about it must say the same."""
    text = (SEEDS / f"catboost-{kind}.json").read_text(encoding="utf-8")
    document = json.loads(text)
    splits = [
        split
        for tree in document.get("oblivious_trees", ())
        for split in tree["splits"]
        if key in split and split[key] != value
    ]
    if "trees" in document and key in document["trees"][0]["split"]:
        splits.append(document["trees"][0]["split"])
        value = 1 if splits[0][key] == value else value
    if not splits:
        pytest.skip("no split has that word")
    splits[0][key] = value
    with pytest.raises(ModelFormatError, match=r"contradicts itself|another border|no statistic"):
        catboost_models.from_document(document, "m.json", "catboost-json")
