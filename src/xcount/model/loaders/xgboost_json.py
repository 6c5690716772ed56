"""XGBoost's own model format (JSON or UBJSON), and live XGBoost models.

XGBoost rounds inputs to float32 and goes left iff ``x < threshold``. In a categorical split the
listed categories go *right*, and everything else (also a category never seen) goes left; the
neutral form lists what goes left, so such a node's children change places here.

A file does not say that an objective was the user's own function: it names another one, for
``xgboost.train`` reg:squarederror and for XGBClassifier binary:logistic.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.errors import ModelFormatError, UnsupportedModelError
from xcount.model.ensemble import Ensemble, Feature, Tree
from xcount.model.loaders import fields, meaning, splits
from xcount.model.loaders.meaning import Meaning

_LOGIT = frozenset({"binary:logistic", "reg:logistic"})
_HINGE = "binary:hinge"
_LOG = frozenset({"count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft"})


def parse_json(data: bytes, where: str) -> Any:
    """Parse JSON; every way in which that can fail becomes a ModelFormatError."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ModelFormatError(f"{where}: the JSON is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ModelFormatError(
            f"{where}: broken or truncated JSON at line {error.lineno}, column {error.colno}: "
            f"{error.msg}"
        ) from None
    except ValueError as error:  # bytes that are no text, or an integer of thousands of digits
        raise ModelFormatError(f"{where}: not valid JSON: {error}") from None


def from_document(document: object, where: str, format_name: str) -> Ensemble:
    """Turn a parsed model document into an ensemble."""
    learner = fields.member(document, "learner", where)
    booster = _read_booster(learner, where)
    header = _read_header(learner, where)
    kept = _kept_trees(learner, booster, header, where)
    trees = [tree for i in range(kept) for tree in _read_tree(booster, i, header, where)]
    ensemble = Ensemble(
        features=_read_features(learner, booster.model, header, trees, where),
        trees=tuple(trees),
        base=header.base,
        input_dtype="float32",
        format=format_name,
    )
    return header.meant.put_on(ensemble)


@dataclass(frozen=True)
class _Booster:
    """The trees as the file stores them.

    Attributes:
        model: the object that holds ``trees`` and ``tree_info``.
        trees: one object per tree.
        outputs: which sum each tree adds to.
        weights: what DART multiplies each tree by; None for a plain booster.
    """

    model: dict[str, Any]
    trees: list[Any]
    outputs: NDArray[np.int64]
    weights: NDArray[np.float64] | None


@dataclass(frozen=True)
class _Header:
    n_features: int
    base: tuple[float, ...]
    meant: Meaning


def _read_booster(learner: object, where: str) -> _Booster:
    booster = fields.member(learner, "gradient_booster", f"{where}: learner")
    place = f"{where}: gradient_booster"
    name = fields.as_text(fields.member(booster, "name", place), f"{place}.name")
    weights = None
    if name == "dart":
        weights = fields.float32_array(
            fields.member(booster, "weight_drop", place), f"{place}.weight_drop"
        )
        booster = fields.member(booster, "gbtree", place)
    elif name == "gblinear":
        raise UnsupportedModelError(f"{where}: a gblinear booster is a linear model, not trees")
    elif name != "gbtree":
        raise UnsupportedModelError(f"{where}: booster {fields.shown(name)} is not supported")
    model = fields.as_object(fields.member(booster, "model", place), f"{place}.model")
    trees = fields.as_list(fields.member(model, "trees", place), f"{place}.model.trees")
    outputs = fields.int_array(
        fields.member(model, "tree_info", place), f"{place}.model.tree_info", len(trees)
    )
    if weights is not None and len(weights) != len(trees):
        raise ModelFormatError(
            f"{place}.weight_drop: {len(weights)} weights for {len(trees)} trees"
        )
    return _Booster(model, trees, outputs, weights)


def _read_header(learner: object, where: str) -> _Header:
    place = f"{where}: learner_model_param"
    param = fields.member(learner, "learner_model_param", f"{where}: learner")

    def number(key: str, default: str) -> int:
        return fields.as_int(fields.as_object(param, place).get(key, default), f"{place}.{key}")

    n_features = splits.check_feature_count(place, number("num_feature", "0"))
    n_outputs = max(1, number("num_class", "0"), number("num_target", "1"))
    if n_outputs > splits.MAX_FEATURES:
        raise ModelFormatError(f"{place}: {n_outputs} outputs are too many")
    objective = fields.member(learner, "objective", f"{where}: learner")
    name = fields.as_text(fields.member(objective, "name", f"{where}: objective"), where)
    scores = _read_base_score(fields.member(param, "base_score", place), f"{place}.base_score")
    if len(scores) not in (1, n_outputs):
        raise ModelFormatError(f"{place}.base_score: {len(scores)} values for {n_outputs} outputs")
    base = [_to_margin(score, name, f"{place}.base_score") for score in scores]
    if len(base) != n_outputs:
        base = base * n_outputs
    return _Header(n_features, tuple(base), _read_meaning(name, n_outputs, learner, where))


def _read_base_score(value: object, where: str) -> list[float]:
    """Read ``"5E-1"``, ``"[6.27E-1]"``, ``"[1E0,2E0]"``, a number, or a list of numbers."""
    if isinstance(value, str):
        text = value.strip()
        inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
        return [fields.as_float(part.strip(), where) for part in inner.split(",")]
    if isinstance(value, list | np.ndarray):
        return [float(score) for score in fields.float_array(value, where)]
    return [fields.as_float(value, where)]


def _to_margin(score: float, objective: str, where: str) -> float:
    """Return the base score in margin space, as the objective's ProbToMargin does in float32."""
    one = np.float32(1)
    with np.errstate(all="ignore"):
        number = np.float32(splits.finite(score, where, "the base score"))
        if objective in _LOGIT and 0 <= number <= one:
            inside = np.clip(number, np.float32(1e-6), one - np.float32(1e-6))
            margin = -np.log(one / inside - one)
        elif objective in _LOGIT:
            margin = np.float32(np.nan)
        else:
            margin = np.log(number) if objective in _LOG else number
    if not np.isfinite(margin):
        raise ModelFormatError(f"{where}: a base score of {score} is impossible for {objective}")
    return float(margin) + 0.0


def _read_meaning(objective: str, n_outputs: int, learner: object, where: str) -> Meaning:
    """Return what the sums mean.

    XGBClassifier decides for class 1 iff what it predicts exceeds 1/2, whatever the objective: with
    binary:logitraw, say, that is the margin itself. A Booster's log-odds change sign at 0.
    """
    meant = _meaning_of(objective, n_outputs)
    if n_outputs == 1 and objective != _HINGE and _is_classifier(learner):
        return replace(meant, decides_at=_to_margin(0.5, objective, where))
    return meant


def _meaning_of(objective: str, n_outputs: int) -> Meaning:
    kind = objective.partition(":")[0]
    if kind in ("reg", "count", "survival"):
        meant = meaning.numbers(n_outputs)
        return replace(meant, probability="sigmoid") if objective in _LOGIT else meant
    if kind == "binary":
        meant = meaning.LOG_ODDS if n_outputs == 1 else meaning.MULTILABEL
        return replace(meant, probability="none") if objective == _HINGE else meant
    return {"multi": meaning.SOFTMAX, "rank": meaning.RANKING}.get(kind, meaning.UNKNOWN)


def _is_classifier(learner: object) -> bool:
    """Tell whether a scikit-learn wrapper wrote the model, and says that it classifies."""
    attributes = fields.as_object(learner, "learner").get("attributes")
    note = attributes.get("scikit_learn") if isinstance(attributes, dict) else None
    return isinstance(note, str) and '"classifier"' in note


def _kept_trees(learner: Any, booster: _Booster, header: _Header, where: str) -> int:
    """Return how many trees predict: a scikit-learn wrapper stops at its best iteration.

    A plain Booster predicts with all trees; the wrapper marks its files with an attribute.
    """
    _check_iterations(booster, where)
    attributes = learner.get("attributes")
    if not isinstance(attributes, dict) or "scikit_learn" not in attributes:
        return len(booster.trees)
    if "best_iteration" not in attributes:
        return len(booster.trees)
    best = fields.as_int(attributes["best_iteration"], f"{where}: attributes.best_iteration")
    return _trees_of_iterations(booster, best + 1, header, where)


def _check_iterations(booster: _Booster, where: str) -> None:
    """Refuse ``iteration_indptr`` unless it divides all trees: XGBoost predicts with those."""
    bounds = booster.model.get("iteration_indptr")
    place = f"{where}: gradient_booster.model.iteration_indptr"
    ends = [] if bounds is None else fields.int_array(bounds, place).tolist()
    if ends and (ends[0] != 0 or ends[-1] != len(booster.trees) or ends != sorted(ends)):
        raise ModelFormatError(
            f"{place}: {fields.shown(ends)} does not divide {len(booster.trees)} trees"
        )


def _trees_of_iterations(booster: _Booster, n_iterations: int, header: _Header, where: str) -> int:
    bounds = booster.model.get("iteration_indptr")
    if bounds is not None:
        place = f"{where}: gradient_booster.model.iteration_indptr"
        ends = fields.int_array(bounds, place)
        return int(ends[min(n_iterations, len(ends) - 1)]) if len(ends) else len(booster.trees)
    param = fields.as_object(booster.model.get("gbtree_model_param", {}), where)
    parallel = fields.as_int(param.get("num_parallel_tree", "1"), f"{where}: num_parallel_tree")
    return min(len(booster.trees), n_iterations * max(1, parallel) * len(header.base))


def _read_tree(booster: _Booster, index: int, header: _Header, where: str) -> list[Tree]:
    """Return the tree; a tree with vector leaves becomes one tree per output."""
    place = f"{where}: tree {index}"
    node_data = fields.as_object(booster.trees[index], place)

    def numbers(key: str, size: int | None = None) -> NDArray[np.float64]:
        return fields.float32_array(fields.member(node_data, key, place), f"{place}, {key}", size)

    def integers(key: str, size: int | None = None) -> NDArray[np.int64]:
        return fields.int_array(fields.member(node_data, key, place), f"{place}, {key}", size)

    left = integers("left_children")
    n_nodes = len(left)
    right = integers("right_children", n_nodes)
    missing_left = integers("default_left", n_nodes) != 0
    thresholds = numbers("split_conditions", n_nodes)
    categories = _read_categories(node_data, place, left)
    for node in categories:
        left[node], right[node] = right[node], left[node]
        missing_left[node] = not missing_left[node]
    weight = 1.0 if booster.weights is None else float(booster.weights[index])
    vectors = _leaf_vectors(node_data, left, right, header, place)
    outputs = {int(booster.outputs[index]): thresholds} if vectors is None else vectors
    if not all(0 <= output < len(header.base) for output in outputs):
        raise ModelFormatError(f"{place}: no such output: {min(outputs)}")
    return [
        splits.tree_from_arrays(
            place,
            n_features=header.n_features,
            feature=integers("split_indices", n_nodes),
            threshold=thresholds,
            left=left,
            right=right,
            value=values * weight,
            missing_left=missing_left,
            operator="<",
            dtype="float32",
            left_categories=categories,
            output=output,
        )
        for output, values in outputs.items()
    ]


def _leaf_vectors(
    node_data: dict[str, Any],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    header: _Header,
    place: str,
) -> dict[int, NDArray[np.float64]] | None:
    """Return the values per output of a tree with vector leaves; None for a plain tree.

    Newer files keep the row of a leaf's vector in its right child, which is reset to -1 here.
    """
    param = fields.as_object(node_data.get("tree_param", {}), f"{place}, tree_param")
    size = fields.as_int(param.get("size_leaf_vector", "1"), f"{place}, size_leaf_vector")
    if size <= 1:
        return None
    if size != len(header.base):
        raise ModelFormatError(f"{place}: leaves of {size} values for {len(header.base)} outputs")
    n_nodes = len(left)
    key = "leaf_weights" if "leaf_weights" in node_data else "base_weights"
    flat = fields.float32_array(fields.member(node_data, key, place), f"{place}, {key}")
    table = np.zeros((n_nodes, size))
    leaves = np.flatnonzero(left < 0)
    rows = right[leaves] if key == "leaf_weights" else leaves
    if len(flat) % size or (rows < 0).any() or (rows >= len(flat) // size).any():
        raise ModelFormatError(f"{place}, {key}: does not hold the leaves' values")
    table[leaves] = flat.reshape(-1, size)[rows]
    right[leaves] = -1
    return dict(enumerate(table.T))


def _read_categories(
    node_data: dict[str, Any], place: str, left: NDArray[np.int64]
) -> dict[int, frozenset[int]]:
    """Return, for each categorical node, the categories that XGBoost sends right."""
    if "split_type" not in node_data:
        return {}
    n_nodes = len(left)
    kinds = fields.int_array(node_data["split_type"], f"{place}, split_type", n_nodes)
    wanted = np.flatnonzero((kinds == 1) & (left >= 0))
    if not wanted.size:
        return {}

    def integers(key: str, size: int | None = None) -> NDArray[np.int64]:
        return fields.int_array(fields.member(node_data, key, place), f"{place}, {key}", size)

    nodes = integers("categories_nodes")
    starts = integers("categories_segments", len(nodes))
    sizes = integers("categories_sizes", len(nodes))
    codes = integers("categories")
    row_of = {int(node): row for row, node in enumerate(nodes)}
    found = {}
    for node in wanted.tolist():
        if node not in row_of:
            raise ModelFormatError(f"{place}, node {node}: a categorical split without categories")
        start, size = int(starts[row_of[node]]), int(sizes[row_of[node]])
        if start < 0 or size < 0 or start + size > len(codes):
            raise ModelFormatError(f"{place}, node {node}: its categories are out of range")
        found[node] = frozenset(codes[start : start + size].tolist())
    return found


def _read_features(
    learner: Any, model: dict[str, Any], header: _Header, trees: Sequence[Tree], where: str
) -> tuple[Feature, ...]:
    place = f"{where}: feature_names"
    names = [
        fields.as_text(name, place)
        for name in fields.optional_list(learner, "feature_names", place)
    ] or splits.default_names(header.n_features)
    if len(names) != header.n_features:
        raise ModelFormatError(f"{place}: {len(names)} names for {header.n_features} features")
    kinds = fields.optional_list(learner, "feature_types", f"{where}: feature_types")
    split_sets = splits.category_sets(where, trees, names)
    labels = _read_labels(model, header.n_features, where)
    categories: dict[int, Sequence[int]] = {}
    others: dict[int, int | None] = {}
    for feature in {*split_sets, *labels, *(i for i, kind in enumerate(kinds) if kind == "c")}:
        if feature >= header.n_features:
            raise ModelFormatError(f"{where}: feature_types: more types than features")
        own = split_sets.get(feature, set())
        codes = splits.codes_of(own, where)
        if feature not in labels or len(labels[feature]) <= codes[-1]:
            labels.pop(feature, None)
            categories[feature], others[feature] = codes, splits.other_code(codes, own)
        else:
            categories[feature] = range(len(labels[feature]))
    return splits.make_features(where, names, categories=categories, labels=labels, others=others)


def _read_labels(model: dict[str, Any], n_features: int, where: str) -> dict[int, Sequence[str]]:
    """Return the names of the categories that XGBoost 3 stores for data frames."""
    place = f"{where}: gradient_booster.model.cats"
    if model.get("cats") is None:
        return {}
    encodings = fields.optional_list(fields.as_object(model["cats"], place), "enc", place)
    labels: dict[int, Sequence[str]] = {}
    for feature, encoding in enumerate(encodings[:n_features]):
        values = fields.member(encoding, "values", place)
        if "offsets" not in encoding:
            names = [str(value) for value in fields.as_list(values, place)]
        else:
            names = _cut_text(fields.int_array(values, place), encoding["offsets"], place)
        if names:
            labels[feature] = names
    return labels


def _cut_text(data: NDArray[np.int64], offsets: object, place: str) -> list[str]:
    """Cut the joined names of categories apart.

    XGBoost 3.2 stores UTF-8 bytes, but for a pandas frame it cuts them at counts of characters.
    Both are the same in ASCII; other names cannot be told apart and get numbers.
    """
    ends = fields.int_array(offsets, place)
    if not len(ends) or ends[0] != 0 or (np.diff(ends) < 0).any() or ends[-1] != len(data):
        if not len(ends) and not len(data):
            return []
        raise ModelFormatError(f"{place}: the names of categories are cut in impossible places")
    if ((data < 0) | (data >= 128)).any():
        return [f"category {i}" for i in range(len(ends) - 1)]
    text = data.astype(np.uint8).tobytes().decode("ascii")
    return [text[start:end] for start, end in pairwise(ends.tolist())]


def from_live(model: Any) -> Ensemble:
    """Read a live Booster, or a scikit-learn wrapper as its ``predict`` uses it."""
    where = f"live {type(model).__name__}"
    booster = model
    attributes: dict[str, str] = {}
    if hasattr(model, "get_booster"):
        try:
            booster = model.get_booster()
        except Exception as error:  # scikit-learn's NotFittedError, without importing it
            raise UnsupportedModelError(f"{where}: the model is not fitted: {error}") from None
        kind = "classifier" if hasattr(model, "predict_proba") else "other"
        attributes["scikit_learn"] = f'{{"_estimator_type": "{kind}"}}'
        _refuse_other_missing(model, where)
    if not hasattr(booster, "save_raw"):
        raise UnsupportedModelError(f"{where}: expected a Booster or a fitted XGBoost model")
    document = parse_json(bytes(booster.save_raw("json")), where)
    learner = fields.as_object(fields.member(document, "learner", where), where)
    learner["attributes"] = {**(learner.get("attributes") or {}), **attributes}
    ensemble = from_document(document, where, "xgboost")
    return replace(ensemble, class_labels=_class_labels(model, ensemble))


def _refuse_other_missing(model: Any, where: str) -> None:
    """Refuse a wrapper that takes a number for missing: the trees know only NaN."""
    missing = getattr(model, "missing", np.nan)
    if missing is not None and not np.isnan(missing):
        raise UnsupportedModelError(
            f"{where}: missing={missing} makes a number mean missing; "
            "load model.get_booster() to let only NaN mean that"
        )


def _class_labels(model: Any, ensemble: Ensemble) -> tuple[str, ...] | None:
    classes = getattr(model, "classes_", None)
    n_classes = {"binary": 2, "multiclass": ensemble.n_outputs}.get(ensemble.task)
    if classes is None or len(classes) != n_classes:
        return None
    return tuple(str(label) for label in classes)
