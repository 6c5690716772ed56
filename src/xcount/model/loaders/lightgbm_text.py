"""LightGBM's text model, and live LightGBM models.

LightGBM compares in float64 and goes left iff ``x <= threshold``. Three more rules matter:

- It takes every ``|x| <= ZERO_RANGE`` for 0.0 before it compares.
- A node's missing type says what NaN is: 0.0 (*none*), like zero and sent the default way
  (*zero*), or sent the default way (*NaN*).
- In a categorical split the codes of a bitset go left; anything else, NaN too, goes right.

So a missing number is 0.0 (``Feature.missing_as``) unless some test has the type *NaN*, and a
missing or unknown category is a value of its own, whatever the type.

A random forest (``boosting=rf``) predicts from the mean of its trees, and the mean is the margin
here: what goes into the sigmoid or softmax. LightGBM's ``raw_score=True`` is their sum instead, the
margin times the number of iterations.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.errors import ModelFormatError, UnsupportedModelError
from xcount.model.ensemble import ZERO_RANGE, Ensemble, Feature, Tree
from xcount.model.loaders import fields, meaning, splits
from xcount.model.loaders.meaning import Meaning

_CATEGORICAL, _DEFAULT_LEFT = 1, 2
_MISSING_NONE, _MISSING_ZERO, _MISSING_NAN = 0, 1, 2
_MISSING_TYPES = {"None": _MISSING_NONE, "Zero": _MISSING_ZERO, "NaN": _MISSING_NAN}
_WORD_BITS = 32
_OLD_INFINITY = 1e300
"""What LightGBM before 2.3 wrote for infinity, where a test tells missing values from numbers."""
Block = dict[str, str]

_NUMBERS = (
    *("regression", "regression_l1", "huber", "fair", "poisson", "quantile", "mape", "gamma"),
    *("tweedie", "cross_entropy_lambda", "xentlambda"),
)
_MEANINGS = {
    **dict.fromkeys(_NUMBERS, meaning.numbers(1)),
    **dict.fromkeys(("binary", "cross_entropy", "xentropy"), meaning.LOG_ODDS),
    "multiclass": meaning.SOFTMAX,
    "multiclassova": meaning.ONE_VERSUS_ALL,
    "lambdarank": meaning.RANKING,
    "rank_xendcg": meaning.RANKING,
}
"""Objective -> meaning. A text model names no objective if that was the user's own function."""


def from_bytes(data: bytes, where: str) -> Ensemble:
    """Read a model that ``Booster.save_model`` wrote."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelFormatError(f"{where}: byte {error.start} is not UTF-8 text") from None
    return _from_text(text, where, "lightgbm-text")


def from_live(model: Any) -> Ensemble:
    """Read a live Booster or scikit-learn wrapper as its ``predict`` uses it."""
    where = f"live {type(model).__name__}"
    booster = model
    if not hasattr(model, "model_to_string"):
        try:
            booster = model.booster_
        except Exception as error:  # LightGBM's own NotFittedError, without importing it
            raise UnsupportedModelError(f"{where}: the model is not fitted: {error}") from None
    ensemble = _from_text(booster.model_to_string(), where, "lightgbm")
    if hasattr(model, "predict_proba"):
        ensemble = _as_classifier(ensemble)
    classes = getattr(model, "classes_", None)
    n_classes = {"binary": 2, "multiclass": ensemble.n_outputs}.get(ensemble.task)
    if classes is None or len(classes) != n_classes:
        return ensemble
    return replace(ensemble, class_labels=tuple(str(label) for label in classes))


@dataclass(frozen=True)
class _Document:
    """A text model, cut into its parts: the header, one block per tree, and what follows."""

    header: Block
    trees: list[Block]
    categorical_features: list[int]
    pandas_categories: list[list[object]]


def _from_text(text: str, where: str, format_name: str) -> Ensemble:
    document = _cut(text, where)
    header = document.header
    n_features = splits.check_feature_count(
        where, _header_int(header, "max_feature_idx", where, low=-1) + 1
    )
    n_outputs = _header_int(header, "num_tree_per_iteration", where, low=1)
    n_classes = _header_int(header, "num_class", where, low=1)
    if n_classes != n_outputs:
        raise ModelFormatError(
            f"{where}: num_class is {n_classes}, but num_tree_per_iteration is {n_outputs}"
        )
    if n_outputs > max(len(document.trees), 1) or len(document.trees) % n_outputs:
        raise ModelFormatError(
            f"{where}: {len(document.trees)} trees for {n_outputs} trees per iteration"
        )
    built = [
        _read_tree(block, f"{where}: tree {i}", n_features, i % n_outputs)
        for i, block in enumerate(document.trees)
    ]
    trees = tuple(tree for tree, _ in built)
    can_be_missing = np.zeros(n_features, dtype=np.bool_)
    for _, missing_features in built:
        can_be_missing[missing_features] = True
    averages = "average_output" in header and trees
    ensemble = Ensemble(
        features=_read_features(document, trees, can_be_missing, where),
        trees=trees,
        base=(0.0,) * n_outputs,
        divisor=len(trees) // n_outputs if averages else 1,
        input_dtype="float64",
        category_rounding="truncate",
        format=format_name,
    )
    return _read_meaning(header.get("objective", ""), where).put_on(ensemble)


def _cut(text: str, where: str) -> _Document:
    header: Block = {}
    trees: list[Block] = []
    block, ended, is_over = header, False, False
    categorical: list[int] = []
    pandas: list[list[object]] = []
    # Not splitlines() and split(): names may hold any of Unicode's other line ends and spaces.
    for raw_line in text.split("\n"):
        line = raw_line.strip(" \t\r")
        if line.startswith("pandas_categorical:"):
            pandas = _pandas_categories(line.partition(":")[2], where)
        elif line.startswith("[categorical_feature:"):
            numbers = line.partition(":")[2].strip(" ]").split(",")
            categorical = [int(n) for n in numbers if n.isascii() and n.isdigit() and len(n) < 9]
        elif line.startswith(("end of trees", "feature importances:", "feature_importances:")):
            ended = True
        elif not ended and line:
            key, _, value = line.partition("=")
            if key == "Tree":
                block = {}
                trees.append(block)
            elif is_over or key in block:
                # LightGBM stops reading a tree at an empty line, and of two words takes one.
                what = "after an empty line" if is_over else "twice"
                raise ModelFormatError(
                    f"{where}: {f'tree {len(trees) - 1}' if trees else 'the header'} has "
                    f"{fields.shown(key)} {what}"
                )
            block[key] = value
        is_over = bool(trees) and not line
    sizes = header.get("tree_sizes")
    n_expected = len(trees) if sizes is None else len(sizes.split())
    if n_expected != len(trees) or not ended:
        raise ModelFormatError(
            f"{where}: truncated: {len(trees)} of {n_expected} trees, "
            f"{'' if ended else 'no '}end of trees"
        )
    return _Document(header, trees, categorical, pandas)


def _pandas_categories(text: str, where: str) -> list[list[object]]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise ModelFormatError(f"{where}: pandas_categorical: broken JSON") from None
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(labels, list) for labels in found):
        raise ModelFormatError(f"{where}: pandas_categorical: expected a list of lists")
    return found


def _header_int(header: Block, key: str, where: str, *, low: int) -> int:
    if key not in header:
        raise ModelFormatError(f"{where}: the header has no {key!r}")
    return fields.as_int(header[key], f"{where}: {key}", low=low)


def _read_meaning(objective: str, where: str) -> Meaning:
    """Return what the sums mean: ``"binary sigmoid:1"`` is a name and parameters."""
    name, *parameters = objective.split() or [""]
    slope = 1.0
    for key, _, value in (parameter.partition(":") for parameter in parameters):
        if key == "sigmoid":
            slope = fields.as_float(value, f"{where}: objective {name}, sigmoid")
    if not 0.0 < slope < np.inf:
        raise ModelFormatError(f"{where}: objective {name}: sigmoid is {slope}")
    meant = _MEANINGS.get(name, meaning.UNKNOWN)
    return replace(meant, slope=slope) if meant.probability == "sigmoid" else meant


def _as_classifier(ensemble: Ensemble) -> Ensemble:
    """Return the ensemble of an LGBMClassifier, which decides with any objective.

    It takes the class of the larger of 1 - p and p for what it predicts, p; class 0 if equal.
    """
    if ensemble.n_outputs > 1 or ensemble.decision == "cutoff":
        return ensemble
    if ensemble.probability == "sigmoid":
        return meaning.LOG_ODDS.put_on(ensemble)
    return meaning.UNKNOWN.put_on(ensemble)


def _read_tree(
    block: Block, place: str, n_features: int, output: int
) -> tuple[Tree, NDArray[np.int64]]:
    """Return the tree, and the features whose missing values it treats as such."""
    n_leaves = fields.as_int(block.get("num_leaves", ""), f"{place}, num_leaves", low=1)
    if block.get("is_linear", "0").strip() not in ("", "0"):
        raise UnsupportedModelError(f"{place}: linear trees (linear_tree=true) are not supported")
    n_inner = n_leaves - 1
    if n_inner > len(block.get("split_feature", "")):  # every number takes a character
        raise ModelFormatError(f"{place}: num_leaves is {n_leaves}, the arrays are shorter")

    def column(key: str, size: int) -> NDArray[np.float64]:
        return _numbers(block, key, size, place)

    values = column("leaf_value", n_leaves)
    thresholds = column("threshold", n_inner)
    thresholds[thresholds == _OLD_INFINITY] = np.inf
    kinds = fields.int_array(column("decision_type", n_inner), f"{place}, decision_type")
    features = fields.int_array(column("split_feature", n_inner), f"{place}, split_feature")
    numeric = (kinds & _CATEGORICAL) == 0
    moved, missing_left, zero_side = directions(thresholds, kinds)
    tree = splits.tree_from_arrays(
        place,
        n_features=n_features,
        feature=_padded(features, n_leaves, -1),
        threshold=_padded(moved, n_leaves, 0),
        left=_padded(_child(column("left_child", n_inner), n_leaves, place), n_leaves, -1),
        right=_padded(_child(column("right_child", n_inner), n_leaves, place), n_leaves, -1),
        value=np.concatenate([np.zeros(n_inner), values]),
        missing_left=_padded(missing_left & numeric, n_leaves, False),
        operator="<=",
        dtype="float64",
        zero_side=_padded(zero_side, n_leaves, 0),
        left_categories=_read_bitsets(block, np.flatnonzero(~numeric), thresholds, place),
        output=output,
    )
    return tree, features[_missing_type(kinds) == _MISSING_NAN]


def _missing_type(kinds: NDArray[np.int64]) -> NDArray[np.int64]:
    return (kinds >> 2) & 3


def kind_of(missing_type: str, goes_left: bool, place: str) -> int:
    """Return a test's bits of direction and missing type, of the words in a table of nodes."""
    if missing_type not in _MISSING_TYPES:
        raise ModelFormatError(f"{place}: unknown missing type {fields.shown(missing_type)}")
    return (_MISSING_TYPES[missing_type] << 2) | (_DEFAULT_LEFT * goes_left)


def asks_for_missing(kinds: NDArray[np.int64]) -> bool:
    """Tell whether some test sends a missing number its own way."""
    return bool((_missing_type(kinds) == _MISSING_NAN).any())


def directions(
    thresholds: NDArray[np.float64], kinds: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64]]:
    """Return the thresholds beside the zero range, where NaN goes, and where zero goes."""
    missing = _missing_type(kinds)
    defaults = (kinds & _DEFAULT_LEFT) != 0
    missing_left = np.where(missing == _MISSING_NONE, thresholds >= 0, defaults)
    zero_left = np.where(missing == _MISSING_ZERO, defaults, thresholds >= 0)
    in_zero_range = np.abs(thresholds) <= ZERO_RANGE
    # All of -ZERO_RANGE <= x <= ZERO_RANGE goes one way, so the test falls beside that interval.
    below = float(np.nextafter(-ZERO_RANGE, -np.inf))
    moved = np.where(in_zero_range, np.where(zero_left, ZERO_RANGE, below), thresholds)
    zero_side = np.where(zero_left, -1, 1) * ((missing == _MISSING_ZERO) & ~in_zero_range)
    return moved, missing_left, zero_side


def _numbers(block: Block, key: str, size: int, place: str) -> NDArray[np.float64]:
    words = block.get(key, "").split()
    if len(words) != size:
        raise ModelFormatError(f"{place}, {key}: expected {size} numbers, found {len(words)}")
    try:
        return np.array([float(word) for word in words], dtype=np.float64)
    except ValueError as error:
        raise ModelFormatError(f"{place}, {key}: {error}") from None


def _padded(inner: NDArray[Any], n_leaves: int, filler: float) -> NDArray[Any]:
    """Append the leaves' entries to those of the inner nodes."""
    return np.concatenate([inner, np.full(n_leaves, filler, dtype=inner.dtype)])


def _child(children: NDArray[np.float64], n_leaves: int, place: str) -> NDArray[np.int64]:
    """Turn LightGBM's ``~leaf`` into the index of that leaf behind the inner nodes."""
    found = fields.int_array(children, f"{place}, child")
    for bad in np.flatnonzero((found < -n_leaves) | (found >= n_leaves - 1)):
        raise ModelFormatError(f"{place}, node {bad}: child {found[bad]} does not exist")
    return np.where(found < 0, n_leaves - 1 + ~found, found)


def _read_bitsets(
    block: Block, nodes: Iterable[int], thresholds: NDArray[np.float64], place: str
) -> dict[int, frozenset[int]]:
    """Return the codes that go left at each categorical node."""
    sets: dict[int, frozenset[int]] = {}
    words: NDArray[np.int64] | None = None
    for node in nodes:
        if words is None:
            bounds, words = _read_bitset_arrays(block, place)
        row = thresholds[node]
        if not 0 <= row < len(bounds) - 1 or row != int(row):
            raise ModelFormatError(f"{place}, node {node}: there is no category set {row}")
        start, end = int(bounds[int(row)]), int(bounds[int(row) + 1])
        if not 0 <= start <= end <= len(words) or (end - start) * _WORD_BITS > splits.MAX_CATEGORY:
            raise ModelFormatError(f"{place}, node {node}: its categories are out of range")
        bits = np.unpackbits(words[start:end].astype("<u4").view(np.uint8), bitorder="little")
        sets[int(node)] = frozenset(np.flatnonzero(bits).tolist())
    return sets


def _read_bitset_arrays(block: Block, place: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    arrays = []
    for key in ("cat_boundaries", "cat_threshold"):
        size = len(block.get(key, "").split())
        arrays.append(fields.int_array(_numbers(block, key, size, place), f"{place}, {key}"))
    bounds, words = arrays
    if ((words < 0) | (words >= 2**_WORD_BITS)).any():
        raise ModelFormatError(f"{place}, cat_threshold: expected unsigned 32-bit words")
    return bounds, words


def _read_features(
    document: _Document, trees: Sequence[Tree], can_be_missing: NDArray[np.bool_], where: str
) -> tuple[Feature, ...]:
    n_features = len(can_be_missing)
    names = [name for name in document.header.get("feature_names", "").split(" ") if name]
    if len(names) != n_features:
        raise ModelFormatError(f"{where}: {len(names)} feature names for {n_features} features")
    infos = document.header.get("feature_infos", "").split()
    split_sets = splits.category_sets(where, trees, names)
    labels = _read_labels(document, n_features)
    categories: dict[int, Sequence[int]] = {}
    for feature in range(n_features):
        found = split_sets.get(feature, set())
        codes = _codes_of(infos[feature] if feature < len(infos) else "", where)
        if not codes and found:
            codes = set(splits.codes_of(found, where))
        codes = codes.union(range(len(labels.get(feature, ()))), *found)
        if codes:
            categories[feature] = sorted(codes)
        if feature in labels and len(codes) != len(labels[feature]):
            del labels[feature]
    return splits.make_features(
        where,
        names,
        categories=categories,
        labels=labels,
        can_be_missing=[bool(can_be_missing[f]) or f in categories for f in range(n_features)],
        missing_as=0.0,
        unknown_is_missing=True,
    )


def _codes_of(info: str, where: str) -> set[int]:
    """Return the category codes of ``"2:0:1"``; nothing for ``"[0:1.5]"`` and ``"none"``."""
    if not info or info.startswith("[") or info == "none":
        return set()
    place = f"{where}: feature_infos"
    codes = {fields.as_int(code, place, low=-(2**31)) for code in info.split(":")}
    return {code for code in codes if code >= 0}


def _read_labels(document: _Document, n_features: int) -> dict[int, Sequence[str]]:
    """Return the pandas categories, where it is certain which features they belong to."""
    features = [f for f in document.categorical_features if f < n_features]
    if len(features) != len(document.pandas_categories):
        return {}
    return {
        feature: [str(label) for label in labels]
        for feature, labels in zip(sorted(features), document.pandas_categories, strict=True)
        if labels
    }
