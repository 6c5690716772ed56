"""ONNX models, against ONNX Runtime: at thresholds and neighbours, NaN, unknown categories."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from edge_rows import edge_rows
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier

import xcount
from xcount.errors import ModelFormatError, UnsupportedModelError
from xcount.model.loaders.check import check
from xcount.model.loaders.predictions import library_predictions

onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'xcount[onnx]'")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
helper = onnx.helper
FLOAT, DOUBLE, INT64 = 1, 11, 7

_RNG = np.random.default_rng(4)
X = _RNG.normal(size=(150, 3)).round(1).astype(np.float32)
TWO = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
THREE = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
NUMBER = X[:, 0] * 3 + np.abs(X[:, 1])
FRAME = pd.DataFrame(
    {"a": X[:, 0], "b": X[:, 1], "job": _RNG.choice(["cook", "smith", "nurse"], 150)}
)


def by_skl2onnx(model: Any) -> Any:
    """Return a model of one table of floats as skl2onnx converts it."""
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    return skl2onnx.to_onnx(model, X[:1])


def frame_by_skl2onnx(model: Any) -> Any:
    """Return a model of a data frame as skl2onnx converts it: one input for each column."""
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    types = pytest.importorskip("skl2onnx.common.data_types")
    inputs = [(name, types.FloatTensorType([None, 1])) for name in ("a", "b")]
    return skl2onnx.convert_sklearn(
        model, initial_types=[*inputs, ("job", types.StringTensorType([None, 1]))]
    )


def by_onnxmltools(model: Any, library: str) -> Any:
    """Return a model of XGBoost or LightGBM as onnxmltools converts it."""
    tools = pytest.importorskip("onnxmltools", reason="onnxmltools is not installed")
    types = pytest.importorskip("onnxmltools.convert.common.data_types")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(tools, f"convert_{library}")(
            model, initial_types=[("x", types.FloatTensorType([None, 3]))]
        )


def mixed(*numbers: Any, encoder: Any) -> Any:
    """Return a pipeline of a data frame."""
    steps = [("n", make_pipeline(*numbers), ["a", "b"]), ("c", encoder, ["job"])]
    model = make_pipeline(
        ColumnTransformer(steps), RandomForestClassifier(3, max_depth=3, random_state=0)
    )
    return model.fit(FRAME, TWO)


def boosted(library: str, kind: str, target: NDArray[Any]) -> Any:
    """Return a fitted model of XGBoost or LightGBM."""
    home = pytest.importorskip(library)
    options: dict[str, Any] = {"n_estimators": 4, "n_jobs": 1}
    options |= {"max_depth": 3} if library == "xgboost" else {"num_leaves": 5, "verbose": -1}
    return getattr(home, kind)(**options).fit(X, target)


def catboost_file(folder: Path, kind: str, target: NDArray[Any]) -> Any:
    """Return a model as CatBoost itself writes ONNX."""
    catboost = pytest.importorskip("catboost")
    model = getattr(catboost, kind)(iterations=4, depth=3, verbose=0, allow_writing_files=False)
    model.fit(X, target).save_model(str(folder / "c.onnx"), format="onnx")
    return onnx.load(folder / "c.onnx")


MODELS: dict[str, Callable[[Path], Any]] = {
    "tree": lambda _: by_skl2onnx(DecisionTreeClassifier(max_depth=4).fit(X, TWO)),
    "forest": lambda _: by_skl2onnx(
        RandomForestClassifier(4, max_depth=4, random_state=0).fit(X, TWO)
    ),
    "forest of three classes": lambda _: by_skl2onnx(
        RandomForestClassifier(4, max_depth=4, random_state=0).fit(X, THREE)
    ),
    "forest of numbers": lambda _: by_skl2onnx(
        RandomForestRegressor(4, max_depth=4, random_state=0).fit(X, NUMBER)
    ),
    "boosting": lambda _: by_skl2onnx(GradientBoostingClassifier(n_estimators=4).fit(X, TWO)),
    "boosting of three classes": lambda _: by_skl2onnx(
        GradientBoostingClassifier(n_estimators=4).fit(X, THREE)
    ),
    "boosted numbers": lambda _: by_skl2onnx(
        GradientBoostingRegressor(n_estimators=4).fit(X, NUMBER)
    ),
    "scaled": lambda _: by_skl2onnx(
        make_pipeline(StandardScaler(), GradientBoostingClassifier(n_estimators=4)).fit(X, TWO)
    ),
    "to a range": lambda _: by_skl2onnx(
        make_pipeline(MinMaxScaler(), GradientBoostingClassifier(n_estimators=4)).fit(X, TWO)
    ),
    "imputed and binarized": lambda _: by_skl2onnx(
        make_pipeline(
            SimpleImputer(), Binarizer(threshold=0.3), RandomForestClassifier(3, random_state=0)
        ).fit(X, TWO)
    ),
    "one-hot": lambda _: frame_by_skl2onnx(
        mixed(SimpleImputer(), StandardScaler(), encoder=OneHotEncoder(handle_unknown="ignore"))
    ),
    "ordinal": lambda _: frame_by_skl2onnx(mixed(MinMaxScaler(), encoder=OrdinalEncoder())),
    "XGBoost": lambda _: by_onnxmltools(boosted("xgboost", "XGBClassifier", TWO), "xgboost"),
    "XGBoost of three classes": lambda _: by_onnxmltools(
        boosted("xgboost", "XGBClassifier", THREE), "xgboost"
    ),
    "XGBoost of numbers": lambda _: by_onnxmltools(
        boosted("xgboost", "XGBRegressor", NUMBER), "xgboost"
    ),
    "LightGBM": lambda _: by_onnxmltools(boosted("lightgbm", "LGBMClassifier", TWO), "lightgbm"),
    "LightGBM of numbers": lambda _: by_onnxmltools(
        boosted("lightgbm", "LGBMRegressor", NUMBER), "lightgbm"
    ),
    "CatBoost": lambda folder: catboost_file(folder, "CatBoostClassifier", TWO),
    "CatBoost of numbers": lambda folder: catboost_file(folder, "CatBoostRegressor", NUMBER),
}


def _assert_like_the_runtime(ensemble: xcount.Ensemble, model: Any) -> None:
    rows = edge_rows(ensemble, infinities=False)
    rows = rows[~(np.abs(rows) > 1e30).any(axis=1)]
    check(ensemble, model, rows)
    found = library_predictions(ensemble, model, rows)
    if ensemble.decision == "none":
        return
    margins = ensemble.predict(rows)
    if ensemble.decision == "cutoff":
        assert ensemble.decides_at is not None
        is_clear = np.abs(margins[:, 0] - ensemble.decides_at) > 1e-5
    else:
        largest = np.sort(margins, axis=1)
        is_clear = largest[:, -1] - largest[:, -2] > 1e-5
    assert found.decisions is not None
    assert is_clear.mean() > 0.5
    np.testing.assert_array_equal(ensemble.decide(rows)[is_clear], found.decisions[is_clear])
    if ensemble.probability == "sigmoid":
        assert found.probabilities is not None
        expected = 1.0 / (1.0 + np.exp(-margins))
        np.testing.assert_allclose(found.probabilities, expected, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", MODELS)
def test_sums_and_decisions_are_those_of_the_runtime(case: str, tmp_path: Path) -> None:
    """Live and from a file."""
    model = MODELS[case](tmp_path)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    ensemble = xcount.load(path)
    assert ensemble.format == "onnx"
    _assert_like_the_runtime(ensemble, path)
    np.testing.assert_array_equal(
        xcount.load(model).predict(_rows(ensemble)), ensemble.predict(_rows(ensemble))
    )


def _rows(ensemble: xcount.Ensemble) -> NDArray[np.float64]:
    return edge_rows(ensemble, infinities=False, n_random=5)


def by_hand(
    mode: str,
    *,
    tracks: int = 0,
    weights: tuple[float, float] = (-1.0, 1.0),
    transform: str = "NONE",
    aggregate: str = "SUM",
    dtype: int = FLOAT,
) -> Any:
    """Return a stump and a tree of two tests, as TreeEnsembleRegressor or -Classifier."""
    values = [0.1, 0.0, 0.0, 0.7, -0.3, 0.0, 0.0, 0.0]
    nodes: dict[str, Any] = {
        "nodes_treeids": [0, 0, 0, 1, 1, 1, 1, 1],
        "nodes_nodeids": [0, 1, 2, 0, 1, 2, 3, 4],
        "nodes_featureids": [0, 0, 0, 1, 0, 0, 0, 0],
        "nodes_modes": [mode, "LEAF", "LEAF", mode, mode, "LEAF", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0, 1, 3, 0, 0, 0],
        "nodes_falsenodeids": [2, 0, 0, 2, 4, 0, 0, 0],
        "nodes_missing_value_tracks_true": [tracks] * 8,
    }
    leaves = {"treeids": [0, 0, 1, 1, 1], "nodeids": [1, 2, 2, 3, 4], "ids": [0] * 5}
    amounts = [weights[0], weights[1], weights[1] / 2, weights[0] / 4, weights[1] / 8]
    if dtype == DOUBLE:
        tensor = helper.make_tensor("v", DOUBLE, [8], values)
        nodes |= {"nodes_values_as_tensor": tensor}
        added = {"target_weights_as_tensor": helper.make_tensor("w", DOUBLE, [5], amounts)}
    else:
        nodes |= {"nodes_values": values}
        added = {"target_weights": amounts}
    if transform == "NONE":
        nodes |= {f"target_{name}": ids for name, ids in leaves.items()} | added
        nodes |= {"n_targets": 1, "aggregate_function": aggregate}
    else:
        nodes |= {f"class_{name}": ids for name, ids in leaves.items()}
        nodes |= {"class_weights": amounts, "classlabels_strings": ["no", "yes"]}
    kind, outputs = ("Regressor", ["y"]) if transform == "NONE" else ("Classifier", ["l", "y"])
    node = helper.make_node(
        f"TreeEnsemble{kind}",
        ["x"],
        outputs,
        domain="ai.onnx.ml",
        post_transform=transform,
        **nodes,
    )
    return graph_of(node, dtype)


def graph_of(node: Any, dtype: int) -> Any:
    """Return a model of one operator."""
    types = {"y": dtype if node.op_type == "TreeEnsemble" else FLOAT, "l": 8}
    outputs = [helper.make_tensor_value_info(name, types[name], None) for name in node.output]
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", dtype, [None, 2])], outputs
    )
    version = 5 if node.op_type == "TreeEnsemble" else 3
    opsets = [helper.make_opsetid("ai.onnx.ml", version), helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def tree_ensemble(mode: int, tracks: int = 0, dtype: int = FLOAT) -> Any:
    """Return the trees of :func:`by_hand` as TreeEnsemble, of version 5."""
    kind = {FLOAT: np.float32, DOUBLE: np.float64}[dtype]
    node = helper.make_node(
        "TreeEnsemble",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        tree_roots=[0, 1],
        nodes_featureids=[0, 1, 0],
        nodes_modes=helper.make_tensor("m", 2, [3], [mode] * 3),
        nodes_splits=onnx.numpy_helper.from_array(np.array([0.1, 0.7, -0.3], kind), "s"),
        nodes_truenodeids=[0, 2, 3],
        nodes_trueleafs=[1, 0, 1],
        nodes_falsenodeids=[1, 2, 4],
        nodes_falseleafs=[1, 1, 1],
        nodes_missing_value_tracks_true=[tracks] * 3,
        leaf_targetids=[0] * 5,
        leaf_weights=onnx.numpy_helper.from_array(np.array([-1, 1, 0.5, -0.25, 0.125], kind), "w"),
        n_targets=1,
        aggregate_function=1,
        post_transform=0,
    )
    return graph_of(node, dtype)


@pytest.mark.parametrize("tracks", [0, 1])
@pytest.mark.parametrize("mode", ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"])
def test_every_mode_sends_rows_where_the_runtime_does(mode: str, tracks: int) -> None:
    """Missing values fail the test, unless they go with it; floats and doubles."""
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"]
    for dtype in (FLOAT, DOUBLE):
        models = (
            by_hand(mode, tracks=tracks, dtype=dtype),
            tree_ensemble(modes.index(mode), tracks, dtype),
        )
        for model in models:
            ensemble = xcount.load(model)
            assert ensemble.input_dtype == ("float32" if dtype == FLOAT else "float64")
            rows = edge_rows(ensemble, infinities=True)
            check(ensemble, model, rows)


def test_averages_are_divided() -> None:
    """AVERAGE divides by the number of trees."""
    model = by_hand("BRANCH_LEQ", aggregate="AVERAGE")
    ensemble = xcount.load(model)
    assert ensemble.divisor == 2
    check(ensemble, model, edge_rows(ensemble, infinities=False))


@pytest.mark.parametrize("weights", [(-1.0, 1.0), (0.2, 0.9)])
def test_two_classes_decide_like_the_runtime(weights: tuple[float, float]) -> None:
    """At 0; at a half if no leaf is negative, even if the sum is no probability."""
    model = by_hand("BRANCH_LEQ", weights=weights, transform="LOGISTIC")
    ensemble = xcount.load(model)
    assert ensemble.decides_at == (0.0 if weights[0] < 0 else 0.5)
    assert ensemble.class_labels == ("no", "yes")
    _assert_like_the_runtime(ensemble, model)


def test_a_category_that_the_encoder_does_not_know_is_another() -> None:
    """With zeros, it is a category of its own; the runtime predicts the same for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MODELS["one-hot"](Path())
    ensemble = xcount.load(model)
    job = ensemble.features[2]
    assert job.labels == ("cook", "nurse", "smith", "(other)")
    assert job.other is not None
    assert not job.can_be_missing
    assert ensemble.features[0].can_be_missing


def test_a_diff_finds_where_a_conversion_to_float32_decides_otherwise(tmp_path: Path) -> None:
    """LightGBM compares doubles, its conversion floats: only numbers between the two differ."""
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 3))
    model = lightgbm.LGBMRegressor(n_estimators=5, num_leaves=4, verbose=-1, n_jobs=1)
    model.fit(rows, rows[:, 0] + rows[:, 1])
    converted = by_onnxmltools(model, "lightgbm")
    result = xcount.diff(model.booster_, converted, gap="0.01")
    assert result.exact
    assert result.count
    assert result.witnesses


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a linear model": (
        lambda: by_skl2onnx(LogisticRegression().fit(X, TWO)),
        "0 tree operators (it has: ",
    ),
    "rows that are normalised": (
        lambda: by_skl2onnx(
            make_pipeline(Normalizer(), RandomForestClassifier(2, random_state=0)).fit(X, TWO)
        ),
        "operator Normalizer cannot be pulled back",
    ),
    "categorical tests": (lambda: by_hand("BRANCH_EQ"), "tests of the mode BRANCH_EQ"),
    "a minimum": (lambda: by_hand("BRANCH_LT", aggregate="MIN"), "the MIN of its trees"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_sum_of_trees_is_refused(case: str, tmp_path: Path) -> None:
    """The line names the operator, and never says that this is no model."""
    make, message = REFUSED[case]
    path = tmp_path / "model.onnx"
    path.write_bytes(make().SerializeToString())
    with pytest.raises(UnsupportedModelError) as caught:
        xcount.load(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "not a model file" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("nodes_truenodeids", [7, 0, 0, 1, 3, 0, 0, 0]),
        ("nodes_truenodeids", [0, 0, 0, 1, 3, 0, 0, 0]),
        ("nodes_featureids", [9, 0, 0, 1, 0, 0, 0, 0]),
        ("target_ids", [5, 0, 0, 0, 0]),
        ("target_nodeids", [77, 2, 2, 3, 4]),
        ("nodes_nodeids", [0, 0, 2, 0, 1, 2, 3, 4]),
        ("nodes_values", [0.1]),
        ("target_weights", [1.0]),
    ],
)
def test_a_damaged_model_is_refused(name: str, value: list[Any]) -> None:
    """Whatever is wrong in it, one line says so."""
    model = by_hand("BRANCH_LEQ")
    for attribute in model.graph.node[0].attribute:
        if attribute.name == name:
            attribute.CopyFrom(helper.make_attribute(name, value))
    with pytest.raises(ModelFormatError) as caught:
        xcount.load(model)
    assert "\n" not in str(caught.value)


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    """Not a traceback of the parser."""
    data = by_hand("BRANCH_LEQ").SerializeToString()
    for end in range(12, len(data), 40):
        (tmp_path / "model.onnx").write_bytes(data[:end])
        with pytest.raises((ModelFormatError, UnsupportedModelError)) as caught:
            xcount.load(tmp_path / "model.onnx")
        assert "\n" not in str(caught.value)


def _in_front(
    nodes: list[Any], inputs: Any = FLOAT, constants: dict[str, Any] | None = None, width: int = 1
) -> Any:
    """Return a stump, x <= 1.5 ? 1 : 2, behind operators that make ``d`` of ``x``."""
    stump = helper.make_node(
        "TreeEnsembleRegressor",
        ["d"],
        ["y"],
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_treeids=[0, 0, 0],
        nodes_nodeids=[0, 1, 2],
        nodes_featureids=[0, 0, 0],
        nodes_values=[1.5, 0.0, 0.0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_truenodeids=[1, 0, 0],
        nodes_falsenodeids=[2, 0, 0],
        target_treeids=[0, 0],
        target_nodeids=[1, 2],
        target_ids=[0, 0],
        target_weights=[1.0, 2.0],
    )
    tensors = [
        value if isinstance(value, onnx.TensorProto) else onnx.numpy_helper.from_array(value, name)
        for name, value in (constants or {}).items()
    ]
    graph = helper.make_graph(
        [*nodes, stump],
        "graph",
        [helper.make_tensor_value_info("x", inputs, [None, width])],
        [helper.make_tensor_value_info("y", FLOAT, None)],
        tensors,
    )
    domains = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=domains, ir_version=8)


def _label_encoder(**keys: Any) -> Any:
    named = {"values_floats": [1.0, 2.0, 1.0], "default_float": 9.0, **keys}
    return helper.make_node("LabelEncoder", ["x"], ["d"], domain="ai.onnx.ml", **named)


@pytest.mark.parametrize(
    ("keys", "inputs"),
    [
        ({"keys_int64s": [0, 1, 2]}, INT64),
        ({"keys_floats": [0.0, 1.0, 2.0]}, FLOAT),
        ({"keys_floats": [0.25, 1.5, 1.75]}, FLOAT),
    ],
)
def test_encoders_of_numbers_are_categories(keys: dict[str, Any], inputs: int) -> None:
    """Their function of the number is not monotone: each number stands on its own."""
    model = _in_front([_label_encoder(**keys)], inputs)
    ensemble = xcount.load(model)
    (feature,) = ensemble.features
    assert feature.categories == (0, 1, 2, 3)
    rows = np.array([[0.0], [1.0], [2.0], [3.0]])
    assert ensemble.predict(rows)[:, 0].tolist() == [1.0, 2.0, 1.0, 2.0]
    check(ensemble, model, rows)
    assert xcount.count(model, sensitive="f0", gap="0.5").count == 2


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("encoder", [OneHotEncoder(handle_unknown="ignore"), OrdinalEncoder()])
def test_encoded_numbers_of_skl2onnx_are_categories(encoder: Any) -> None:
    """As scikit-learn itself says of them."""
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    codes = _RNG.integers(0, 5, (200, 2)).astype(np.int64)
    wanted = (codes[:, 0] % 2 + (codes[:, 1] == 3)).astype(float)
    model = make_pipeline(encoder, RandomForestRegressor(5, random_state=0)).fit(codes, wanted)
    converted = skl2onnx.to_onnx(model, codes[:1])
    ensemble = xcount.load(converted)
    rows = np.array([[a, b] for a in range(5) for b in range(5)], dtype=float)
    assert np.allclose(ensemble.predict(rows)[:, 0], model.predict(rows.astype(np.int64)))
    assert xcount.count(converted, sensitive="f0", gap="0.3").count != 0


def _elsewhere() -> Any:
    tensor = onnx.TensorProto(name="c", data_type=FLOAT, dims=[1])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="numbers.bin")
    return tensor


UNREAD: dict[str, tuple[Callable[[], Any], str]] = {
    "an encoder of what was computed": (
        lambda: _in_front(
            [
                helper.make_node("Mul", ["x", "c"], ["m"]),
                _renamed(_label_encoder(keys_floats=[0.0, 2.0, 4.0])),
            ],
            constants={"c": np.array([2], np.float32)},
        ),
        "takes numbers that other operators compute",
    ),
    "a choice of rows": (
        lambda: _in_front(
            [helper.make_node("Gather", ["x", "i"], ["d"])],
            constants={"i": np.array([1])},
            width=3,
        ),
        "Gather along the rows",
    ),
    "a table of values": (
        lambda: _in_front(
            [helper.make_node("Gather", ["t", "x"], ["d"], axis=1)],
            INT64,
            {"t": np.array([[0, 2, 1]], np.float32)},
        ),
        "looks values up in a table",
    ),
    "a division of integers": (
        lambda: _in_front(
            [helper.make_node("Div", ["x", "c"], ["d"])], INT64, {"c": np.array([2])}
        ),
        "Div of integers",
    ),
    "numbers in another file": (
        lambda: _in_front(
            [helper.make_node("Add", ["x", "c"], ["d"])], constants={"c": _elsewhere()}
        ),
        "the numbers of 'c' are in another file",
    ),
    "too many categories": (
        lambda: _in_front(
            [
                helper.make_node(
                    "OneHotEncoder", ["x"], ["d"], domain="ai.onnx.ml", cats_int64s=range(100_000)
                )
            ],
            INT64,
        ),
        "100000 categories; at most 10000",
    ),
}


def _renamed(node: Any) -> Any:
    node.input[0] = "m"
    return node


@pytest.mark.parametrize("case", UNREAD)
def test_operators_that_are_not_understood_are_refused(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never read as something else, and no other file is opened."""
    make, message = UNREAD[case]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "numbers.bin").write_bytes(np.float32(7).tobytes())
    with pytest.raises(UnsupportedModelError) as caught:
        xcount.load(make())
    assert message in str(caught.value)


def test_sums_that_are_rounded_are_refused() -> None:
    """A cast to integers changes what the trees predict."""
    model = _in_front([helper.make_node("Identity", ["x"], ["d"])])
    model.graph.node[-1].output[0] = "sum"
    model.graph.node.append(helper.make_node("Cast", ["sum"], ["y"], to=INT64))
    with pytest.raises(UnsupportedModelError, match="Cast behind the trees"):
        xcount.load(model)


def test_votes_for_one_of_two_classes_alone_are_refused() -> None:
    """ONNX Runtime decides by class 0's sum where no leaf adds to class 1's."""
    node = helper.make_node(
        "TreeEnsembleClassifier",
        ["x"],
        ["label", "scores"],
        domain="ai.onnx.ml",
        classlabels_int64s=[0, 1],
        nodes_treeids=[0, 0, 0],
        nodes_nodeids=[0, 1, 2],
        nodes_featureids=[0, 0, 0],
        nodes_values=[1.5, 0.0, 0.0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_truenodeids=[1, 0, 0],
        nodes_falsenodeids=[2, 0, 0],
        class_treeids=[0, 0],
        class_nodeids=[1, 2],
        class_ids=[0, 1],
        class_weights=[0.7, 0.3],
    )
    graph = helper.make_graph(
        [node],
        "graph",
        [helper.make_tensor_value_info("x", FLOAT, [None, 1])],
        [helper.make_tensor_value_info("label", INT64, None)],
    )
    with pytest.raises(UnsupportedModelError, match="adds nothing to the second one"):
        xcount.load(helper.make_model(graph))


def test_numbers_of_nodes_do_not_overflow() -> None:
    """Nor does a child below 0 name a node of the tree before."""
    for name, value in (("nodes_treeids", 2**62), ("nodes_truenodeids", -1)):
        model = by_hand("BRANCH_LEQ")
        for attribute in model.graph.node[0].attribute:
            if attribute.name == name:
                ints = list(attribute.ints)
                attribute.CopyFrom(helper.make_attribute(name, [*ints[:3], value, *ints[4:]]))
        with pytest.raises(ModelFormatError):
            xcount.load(model)
