"""CatBoost's JSON model format, and live CatBoost models.

CatBoost rounds inputs to float32 and asks ``x > border``; *right* is where that holds, so the
library's test in our words is: left iff ``x <= border``. A missing value answers every test of its
feature alike: false (treatments ``AsIs`` and ``AsFalse``) or true (``AsTrue``), as -inf or +inf
would. Every feature can be missing: CatBoost predicts on NaN even where it never saw one.

A binary model decides for class 1 iff its margin exceeds the log-odds of its probability threshold
(``set_probability_threshold``, 1/2 unless set); of several classes the largest sum wins.

A feature with missing training values has a border that tells them from numbers: the lowest float32
(``nan_mode`` Min) or the highest one (Max). It makes no guard, but decides where a missing value
goes. The lowest number and -inf, or +inf, are all that CatBoost cannot tell from a missing value;
they count as missing (``Feature.like_missing``).

Categorical features are the matter of :mod:`~xcount.model.loaders.catboost_categories`.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xcount.errors import MissingExtraError, ModelFormatError, UnsupportedModelError
from xcount.model.ensemble import Ensemble, Feature, Tree
from xcount.model.loaders import fields, files, meaning, splits
from xcount.model.loaders.catboost_categories import OTHER_LABEL, Categories, name_of
from xcount.model.loaders.catboost_hash import category_hash
from xcount.model.loaders.catboost_joint import SetTest
from xcount.model.loaders.catboost_trees import (
    Nodes,
    SplitReader,
    as_border,
    read_nested,
    read_oblivious,
)
from xcount.model.loaders.catboost_unfold import Unfolding
from xcount.model.loaders.meaning import Meaning
from xcount.model.loaders.xgboost_json import parse_json

_BINARY = frozenset({"Logloss", "CrossEntropy", "Focal"})
_MULTICLASS = {"MultiClass": meaning.SOFTMAX, "MultiClassOneVsAll": meaning.ONE_VERSUS_ALL}
_RANKING = ("YetiRank", "PairLogit", "Query", "StochasticRank", "LambdaMart", "StochasticFilter")
_MISSING_LEFT = {"AsIs": True, "AsFalse": True, "AsTrue": False}
_LOWEST, _HIGHEST = float(np.finfo(np.float32).min), float(np.finfo(np.float32).max)
_REFUSED_FEATURES = {"text_features": "text", "embedding_features": "embedding"}


def from_live(model: Any) -> Ensemble:
    """Return the ensemble of a fitted CatBoost, CatBoostClassifier, -Regressor or -Ranker."""
    name = type(model).__name__
    if not model.is_fitted():
        raise UnsupportedModelError(f"{name}: the model is not fitted; call fit() first")
    for indices, kind in (
        (model._get_text_feature_indices(), "text"),
        (model._get_embedding_feature_indices(), "embedding"),
    ):
        if len(indices):
            raise _refused_feature(name, kind, str(model.feature_names_[indices[0]]))
    return from_document(live_document(model), name, "catboost")


def live_document(model: Any) -> Any:
    """Return a live model as a parsed document in CatBoost's JSON format."""
    catboost, name = _catboost(), type(model).__name__
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        try:
            model.save_model(str(path), format="json")
        except catboost.CatBoostError as error:
            raise UnsupportedModelError(
                f"{name}: CatBoost cannot write the model as JSON: {error}"
            ) from None
        return parse_json(path.read_bytes(), name)


def raw_predictions(
    model_or_path: Any, rows: ArrayLike, features: Sequence[Feature] = ()
) -> NDArray[np.float64]:
    """Return what CatBoost itself calls ``RawFormulaVal``, shape ``(n_rows, n_outputs)``.

    Args:
        model_or_path: a live model, or a file.
        rows: inputs; a category is its code.
        features: the columns; none where all are numbers.
    """
    raw = predictions(model_or_path, rows, features, "RawFormulaVal")
    margins: NDArray[np.float64] = np.asarray(raw, dtype=np.float64).reshape(len(raw), -1)
    return margins


def predictions(
    model_or_path: Any, rows: ArrayLike, features: Sequence[Feature], kind: str
) -> NDArray[Any]:
    """Return predictions of one of CatBoost's kinds, such as ``Class``."""
    model = model_or_path
    if isinstance(model_or_path, str | os.PathLike):
        catboost = _catboost()
        model = catboost.CatBoost()
        try:
            model.load_model(files.located(os.fspath(model_or_path)), format="json")
        except catboost.CatBoostError as error:
            reason = str(error).splitlines()[0]
            raise ModelFormatError(f"{model_or_path}: CatBoost cannot read it: {reason}") from None
    matrix: NDArray[Any] = np.atleast_2d(np.asarray(rows, dtype=np.float64))
    if any(feature.is_categorical for feature in features):
        matrix = matrix.astype(object)
        for column, feature in enumerate(features):
            if feature.is_categorical:
                matrix[:, column] = [_text_of(feature, code) for code in matrix[:, column]]
    return np.asarray(model.predict(matrix, prediction_type=kind, thread_count=1))


def _text_of(feature: Feature, code: float) -> str:
    """Return a text that CatBoost takes for the category."""
    hashes = feature.hashes or ()
    if code == feature.other:
        texts = (f"{OTHER_LABEL}{'.' * n}" for n in itertools.count())
        return next(text for text in texts if category_hash(text) not in hashes)
    text = (feature.labels or ())[int(code)]
    if category_hash(text) != hashes[int(code)]:
        raise UnsupportedModelError(
            f"feature {feature.name!r}: the file does not name its categories, so CatBoost cannot "
            "be asked about them; save it with save_model(..., format='json', pool=pool)"
        )
    return text


def _catboost() -> Any:
    try:
        import catboost
    except ImportError:
        raise MissingExtraError(
            "predicting with CatBoost needs the catboost package: pip install 'xcount[catboost]'"
        ) from None
    return catboost


@dataclass(frozen=True, eq=False)
class _Columns:
    """The float features of a model.

    Attributes:
        flat: position in ``float_features`` -> column of the input.
        missing_left: position in ``float_features`` -> whether a missing value goes left.
        names: what all columns of the input are called.
    """

    flat: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    names: tuple[str, ...]

    def asks_if_missing(self, nodes: Nodes) -> NDArray[np.bool_]:
        """Return which tests only tell missing values, and those like them, from numbers."""
        found = (nodes.position >= 0) & (nodes.position < len(self.flat))
        missing_left = self.missing_left[nodes.position[found]]
        border = nodes.border[found]
        found[found] = np.where(missing_left, border <= _LOWEST, border >= _HIGHEST)
        return found

    def features(
        self, categorical: Mapping[int, Feature], nodes: Sequence[Nodes], where: str
    ) -> tuple[Feature, ...]:
        """Return the columns of the input, with the numbers that tests take for missing."""
        features = list(splits.make_features(where, self.names, can_be_missing=True))
        for column, feature in categorical.items():
            features[column] = feature
        for tree in nodes:
            for position in {*tree.position[self.asks_if_missing(tree)].tolist()}:
                numbers = (-np.inf, _LOWEST) if self.missing_left[position] else (np.inf,)
                column = self.flat[position]
                features[column] = replace(features[column], like_missing=numbers)
        return tuple(features)


def from_document(document: object, where: str, format_name: str) -> Ensemble:
    """Turn a parsed model document into an ensemble."""
    model = fields.as_object(document, where)
    info = fields.as_object(fields.member(model, "features_info", where), f"{where}: features_info")
    trained_with = _nested(_nested(model.get("model_info")).get("params"))
    of_categories = _nested(trained_with.get("cat_feature_params"))
    one_hot_max_size = of_categories.get("one_hot_max_size")
    categories = Categories(info, model.get("ctr_data"), where, one_hot_max_size)
    columns = _read_columns(info, categories, where)
    reader = SplitReader(_read_borders(info, where), categories)
    if "oblivious_trees" in model:
        key, read = "oblivious_trees", read_oblivious
    else:
        key, read = "trees", read_nested
    listed = fields.as_list(fields.member(model, key, where), f"{where}: {key}")
    nodes = [read(tree, reader, f"{where}: {key}[{i}]") for i, tree in enumerate(listed)]
    scale, base = _read_scale_and_bias(model, nodes, where)
    meant, labels = _read_meaning(model, len(base), where)
    unfolding = Unfolding(categories.tests(), reader.n_floats, categories.n_codes(), where)
    nodes = [unfolding.unfolded(tree) for tree in nodes]
    tests = unfolding.set_tests()
    trees = [
        tree
        for i, tree_nodes in enumerate(nodes)
        for tree in _build(tree_nodes, columns, tests, scale, len(base), f"{where}: {key}[{i}]")
    ]
    ensemble = Ensemble(
        features=columns.features(categories.features(), nodes, where),
        trees=tuple(trees),
        base=base,
        input_dtype="float32",
        format=format_name,
        class_labels=labels,
    )
    return meant.put_on(ensemble)


def _read_columns(info: dict[str, Any], categories: Categories, where: str) -> _Columns:
    for key, kind in _REFUSED_FEATURES.items():
        for feature in fields.optional_list(info, key, f"{where}: features_info.{key}"):
            name = feature.get("feature_id") if isinstance(feature, dict) else None
            raise _refused_feature(where, kind, str(name or ""))
    place = f"{where}: features_info.float_features"
    if "float_features" not in info and not len(categories):
        raise ModelFormatError(f"{place}: 'float_features' is missing")
    listed = fields.optional_list(info, "float_features", place)
    flat, missing_left, named = [], [], categories.names()
    for i, feature in enumerate(listed):
        at = f"{place}[{i}]"
        column = fields.as_int(fields.member(feature, "flat_feature_index", at), at)
        if column in named:
            raise ModelFormatError(f"{at}: column {column} occurs twice")
        treatment = feature.get("nan_value_treatment", "AsIs")
        if not isinstance(treatment, str) or treatment not in _MISSING_LEFT:
            raise ModelFormatError(f"{at}: unknown nan_value_treatment {fields.shown(treatment)}")
        named[column] = name_of(feature, column, at)
        flat.append(column)
        missing_left.append(_MISSING_LEFT[treatment])
    n_features = splits.check_feature_count(where, max(named, default=-1) + 1)
    names = tuple(named.get(column, f"f{column}") for column in range(n_features))
    return _Columns(
        np.array(flat, dtype=np.int64),
        np.array(missing_left, dtype=np.bool_),
        names,
    )


def _read_borders(info: dict[str, Any], where: str) -> list[list[float]]:
    """Return the borders of each float feature."""
    place = f"{where}: features_info.float_features"
    found = []
    for i, feature in enumerate(fields.optional_list(info, "float_features", place)):
        at = f"{place}[{i}].borders"
        found.append([as_border(x, at) for x in fields.optional_list(feature, "borders", at)])
    return found


def _refused_feature(where: str, kind: str, name: str) -> UnsupportedModelError:
    called = f" {name!r}" if name else ""
    return UnsupportedModelError(
        f"{where}: {kind} feature{called}: of CatBoost models, those with numeric and categorical "
        "features only are supported"
    )


def _read_scale_and_bias(
    model: dict[str, Any], nodes: Sequence[Nodes], where: str
) -> tuple[float, tuple[float, ...]]:
    """Return the factor of all leaves, and what each sum starts from."""
    place = f"{where}: scale_and_bias"
    pair = fields.as_list(model.get("scale_and_bias", [1.0, 0.0]), place)
    if len(pair) != 2:
        raise ModelFormatError(f"{place}: expected a scale and a bias, found {len(pair)} entries")
    scale = splits.finite(fields.as_float(pair[0], place), where, "the scale")
    biases = pair[1] if isinstance(pair[1], list) else [pair[1]]
    base = [splits.finite(fields.as_float(b, place), where, "a bias") for b in biases]
    n_outputs = nodes[0].values.shape[1] if nodes else max(1, len(base))
    if len(base) <= 1:
        base = (base or [0.0]) * n_outputs
    if len(base) != n_outputs:
        raise ModelFormatError(f"{place}: {len(base)} biases, but leaves hold {n_outputs} values")
    return scale, tuple(base)


def _read_meaning(
    model: dict[str, Any], n_outputs: int, where: str
) -> tuple[Meaning, tuple[str, ...] | None]:
    """Return what the sums mean, and the names of the classes if the model has them."""
    info = _nested(model.get("model_info"))
    params = _nested(info.get("params"))
    described = _nested(info.get("loss_function") or params.get("loss_function"))
    loss = fields.as_text(described.get("type") or "", f"{where}: loss_function.type")
    listed = _nested(info.get("class_params")).get("class_names")
    labels = tuple(str(name) for name in listed) if isinstance(listed, list) and listed else None
    if loss in _BINARY and n_outputs == 1:
        return replace(meaning.LOG_ODDS, decides_at=_cutoff(info, where)), labels
    if loss in _MULTICLASS:
        return _MULTICLASS[loss], labels if labels and len(labels) == n_outputs else None
    if n_outputs > 1:
        raise UnsupportedModelError(
            f"{where}: loss function {loss or 'unknown'} with {n_outputs} outputs: "
            "multi-output models are not supported, but for MultiClass and MultiClassOneVsAll"
        )
    if not loss or loss.startswith("PythonUserDefined"):
        return meaning.UNKNOWN, None
    return meaning.RANKING if loss.startswith(_RANKING) else meaning.numbers(1), None


def _cutoff(info: dict[str, Any], where: str) -> float | None:
    """Return the log-odds of ``set_probability_threshold``; None if all rows get one class."""
    place = f"{where}: binclass_probability_threshold"
    threshold = fields.as_float(info.get("binclass_probability_threshold", 0.5), place)
    if not 0.0 <= threshold <= 1.0:
        raise ModelFormatError(f"{place}: {threshold} is no probability")
    if threshold in (0.0, 1.0):
        return None
    return math.log(threshold / (1.0 - threshold))


def _nested(value: object) -> dict[str, Any]:
    """Return an object that may be written as a string of JSON; what is neither is empty."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def _build(
    nodes: Nodes,
    columns: _Columns,
    tests: Sequence[SetTest],
    scale: float,
    n_outputs: int,
    where: str,
) -> list[Tree]:
    """Return one tree per output: the same tests, each output's part of the leaves."""
    if nodes.values.shape[1] != n_outputs:
        raise ModelFormatError(
            f"{where}: leaves of {nodes.values.shape[1]} values, expected {n_outputs}"
        )
    inner = nodes.position >= 0
    # A leaf's position, -1, picks the last entry; leaves have neither.
    flat = np.array([*columns.flat.tolist(), *(column for column, _ in tests), -1], dtype=np.int64)
    lefts = np.array([*columns.missing_left.tolist(), *(False for _ in tests), False])
    missing_left = lefts[nodes.position]
    sets = {
        int(node): tests[nodes.position[node] - len(columns.flat)][1]
        for node in np.flatnonzero(nodes.position >= len(columns.flat))
    }
    # "Is it missing?" is x <= inf for tree_from_arrays, with the numbers on the left.
    only_missing = columns.asks_if_missing(nodes)
    turned = only_missing & missing_left
    with np.errstate(over="ignore"):
        leaves = np.where(inner[:, np.newaxis], 0.0, nodes.values[nodes.leaf] * scale)
    return splits.trees_from_arrays(
        where,
        values=leaves,
        n_features=len(columns.names),
        feature=flat[nodes.position],
        threshold=np.where(only_missing, np.inf, nodes.border),
        left=np.where(turned, nodes.right, nodes.left),
        right=np.where(turned, nodes.left, nodes.right),
        missing_left=missing_left & ~turned,
        operator="<=",
        dtype="float32",
        left_categories=sets,
    )
