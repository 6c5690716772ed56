"""interpret's explainable boosting machines (EBMs): live, or the JSON that ``to_json`` writes.

The margin of an EBM is an intercept plus one *term* for each feature or group of features. A term
is a table of scores over the bins of its features::

    number:    bin 0 is a missing value, bin i + 1 holds cuts[i-1] <= x < cuts[i] (float64)
    category:  bin 0 is a missing value, bin i the i-th category
    last bin:  a category that training did not see, or a text in a column of numbers

Each table becomes a small tree, one feature below another. A cut between bins with equal scores
decides nothing, so the tree has no test for it. The bins of a feature are finer for the term of the
feature by itself than for pairs: ``bins[level]``, the last level for all larger terms.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.errors import ModelFormatError, UnsupportedModelError
from xcount.model.ensemble import Ensemble, Feature, Tree
from xcount.model.loaders import fields, meaning, splits
from xcount.model.loaders.catboost_categories import OTHER_LABEL
from xcount.model.loaders.meaning import Meaning

_LINKS: dict[str, Meaning] = {
    "logit": meaning.LOG_ODDS,
    "mlogit": meaning.SOFTMAX,
    "vlogit": meaning.ONE_VERSUS_ALL,
    "identity": meaning.numbers(1),
    "log": meaning.numbers(1),
}
"""What the sums mean, by the function that makes predictions of them."""
_SEVERAL = ("mlogit", "vlogit")
_MAX_DIMENSIONS = 16

Numbers = NDArray[np.float64]


def from_live(model: Any) -> Ensemble:
    """Return the ensemble of a fitted ExplainableBoostingClassifier or -Regressor."""
    name = type(model).__name__
    if not hasattr(model, "to_jsonable"):
        raise UnsupportedModelError(
            f"interpret's {name} is not supported (supported: ExplainableBoostingClassifier and "
            "ExplainableBoostingRegressor)"
        )
    if not getattr(model, "has_fitted_", False):
        raise UnsupportedModelError(f"{name}: the model is not fitted; call fit() first")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns that its JSON may change
        document = model.to_jsonable("minimal")
    return from_document(document, name, "interpret-ebm")


def raw_predictions(model: Any, rows: Numbers, features: Sequence[Feature] = ()) -> Numbers:
    """Return interpret's own scores, shape ``(n_rows, n_outputs)``.

    Args:
        model: a live model; interpret does not read its own JSON.
        rows: inputs; a category is its code.
        features: the columns; none where all are numbers.
    """
    if isinstance(model, str | os.PathLike):
        raise UnsupportedModelError(
            f"{model}: interpret does not read its own JSON, so nothing can be checked; pass the "
            "live model, or a pickle with --trust-pickle (trust_pickle)"
        )
    n_outputs = np.size(model.intercept_)
    of_terms = np.asarray(model.eval_terms(as_user_input(rows, features)), dtype=np.float64)
    margins: Numbers = of_terms.reshape(len(rows), -1, n_outputs).sum(axis=1) + model.intercept_
    return margins


def classified(
    model: Any, rows: Numbers, features: Sequence[Feature] = ()
) -> tuple[NDArray[Any], Numbers]:
    """Return the classes that a classifier predicts, and their probabilities.

    Of two classes, the probability is that of the second.
    """
    inputs = as_user_input(rows, features)
    probabilities = np.asarray(model.predict_proba(inputs), dtype=np.float64)
    predicted = np.asarray(model.predict(inputs))
    return predicted, probabilities[:, 1:] if probabilities.shape[1] == 2 else probabilities


def as_user_input(rows: Numbers, features: Sequence[Feature]) -> NDArray[Any]:
    """Return rows with the names of categories instead of their codes."""
    if not any(feature.is_categorical for feature in features):
        return rows
    values = rows.astype(object)
    for column, feature in enumerate(features):
        if feature.is_categorical:
            names = dict(zip(feature.categories or (), feature.labels or (), strict=True))
            values[:, column] = [
                None if np.isnan(code) else names.get(int(code), OTHER_LABEL)
                for code in rows[:, column]
            ]
    return values


def from_document(document: object, where: str, format_name: str) -> Ensemble:
    """Turn a parsed document into an ensemble."""
    model = fields.as_object(fields.member(document, "ebm", where), f"{where}: ebm")
    output = _output(model, where)
    meant, labels, n_outputs = _read_meaning(output, where)
    axes = _read_axes(model, where)
    base = _floats(fields.member(model, "intercept", where), f"{where}: intercept", (n_outputs,))
    listed = fields.as_list(fields.member(model, "terms", where), f"{where}: terms")
    trees = [
        tree
        for i, term in enumerate(listed)
        for tree in _read_term(term, axes, n_outputs, f"{where}: terms[{i}]")
    ]
    ensemble = Ensemble(
        features=tuple(axis.feature for axis in axes),
        trees=tuple(trees),
        base=tuple(base.tolist()),
        input_dtype="float64",
        format=format_name,
        class_labels=labels,
    )
    return meant.put_on(ensemble)


def _output(model: dict[str, Any], where: str) -> dict[str, Any]:
    """Return what the file says of its only output."""
    place = f"{where}: outputs"
    outputs = fields.as_list(fields.member(model, "outputs", where), place)
    if len(outputs) != 1:
        raise ModelFormatError(f"{place}: expected one output, found {len(outputs)}")
    return fields.as_object(outputs[0], f"{place}[0]")


def _read_meaning(
    output: dict[str, Any], where: str
) -> tuple[Meaning, tuple[str, ...] | None, int]:
    """Return what the sums mean, the names of the classes, and how many sums there are."""
    place = f"{where}: outputs[0]"
    link = fields.as_text(fields.member(output, "link", place), f"{place}.link")
    if link == "monoclassification":
        raise UnsupportedModelError(f"{where}: an EBM that knows only one class; it always says it")
    if link not in _LINKS:
        raise UnsupportedModelError(
            f"{where}: link function {fields.shown(link)}; supported: {', '.join(_LINKS)}"
        )
    if "classes" not in output:
        return _LINKS[link], None, 1
    classes = fields.as_list(output["classes"], f"{place}.classes")
    labels = tuple(str(label) for label in classes)
    expected = len(labels) > 1 if link in _SEVERAL else len(labels) == 2
    if not expected:
        raise ModelFormatError(f"{place}: {len(labels)} classes with the link function {link}")
    return _LINKS[link], labels, len(labels) if link in _SEVERAL else 1


@dataclass(frozen=True, eq=False)
class _Axis:
    """A feature and its bins: cut points or categories -> bins, for each level."""

    feature: Feature
    cuts: tuple[Numbers, ...] = ()
    codes: tuple[Mapping[int, int], ...] = ()

    def level(self, n_features: int) -> int:
        """Return which bins a term of so many features uses."""
        return min(len(self.cuts) + len(self.codes), n_features) - 1

    def n_bins(self, level: int) -> int:
        """Return how many bins there are, those of missing and unknown values included."""
        if self.feature.is_categorical:
            return max(self.codes[level].values(), default=0) + 2
        return len(self.cuts[level]) + 3


def _read_axes(model: dict[str, Any], where: str) -> list[_Axis]:
    listed = fields.as_list(fields.member(model, "features", where), f"{where}: features")
    splits.check_feature_count(where, len(listed))
    axes = [_read_axis(feature, f"{where}: features[{i}]") for i, feature in enumerate(listed)]
    splits.make_features(where, [axis.feature.name for axis in axes])  # refuses equal names
    return axes


def _read_axis(feature: object, where: str) -> _Axis:
    name = fields.as_text(fields.member(feature, "name", where), f"{where}.name")
    kind = fields.as_text(fields.member(feature, "type", where), f"{where}.type")
    if kind not in ("continuous", "nominal", "ordinal"):
        raise UnsupportedModelError(f"{where}: feature {name!r} of the type {fields.shown(kind)}")
    key = "cuts" if kind == "continuous" else "categories"
    levels = fields.as_list(fields.member(feature, key, where), f"{where}.{key}")
    if not levels:
        raise ModelFormatError(f"{where}.{key}: the list is empty")
    if kind == "continuous":
        cuts = tuple(_read_cuts(level, f"{where}.cuts[{i}]") for i, level in enumerate(levels))
        return _Axis(Feature(name, can_be_missing=True), cuts=cuts)
    bins = [_read_bins(level, f"{where}.categories[{i}]") for i, level in enumerate(levels)]
    labels = tuple(dict.fromkeys(label for level in bins for label in level))
    other = len(labels)
    code_of = {label: code for code, label in enumerate(labels)}
    codes = tuple({code_of[label]: at for label, at in level.items()} for level in bins)
    return _Axis(
        Feature(
            name,
            categories=tuple(range(other + 1)),
            labels=(*labels, _other_label(labels)),
            can_be_missing=True,
            other=other,
            other_is_unknown=True,
        ),
        codes=codes,
    )


def _other_label(labels: Sequence[str]) -> str:
    """Return a name for all other categories that none of the known ones has."""
    label = OTHER_LABEL
    while label in labels:
        label += "."
    return label


def _read_cuts(level: object, where: str) -> Numbers:
    cuts = fields.float_array(level, where)
    if not np.isfinite(cuts).all() or (np.diff(cuts) <= 0).any():
        raise ModelFormatError(f"{where}: the cuts are not finite numbers in ascending order")
    return cuts


def _read_bins(level: object, where: str) -> dict[str, int]:
    """Return the bin of each category; one bin can have several."""
    found: dict[str, int] = {}
    for i, entry in enumerate(fields.as_list(level, where)):
        for label in entry if isinstance(entry, list) else [entry]:
            text = fields.as_text(label, f"{where}[{i}]")
            if text in found:
                raise ModelFormatError(f"{where}[{i}]: category {fields.shown(text)} occurs twice")
            found[text] = i + 1
    return found


def _read_term(term: object, axes: Sequence[_Axis], n_outputs: int, where: str) -> list[Tree]:
    """Return the trees of a term, one for each output."""
    places = {axis.feature.name: place for place, axis in enumerate(axes)}
    names = fields.as_list(fields.member(term, "term_features", where), f"{where}.term_features")
    if not 1 <= len(names) <= _MAX_DIMENSIONS or len({*map(str, names)}) != len(names):
        raise ModelFormatError(f"{where}.term_features: expected different features")
    columns = []
    for name in names:
        if not isinstance(name, str) or name not in places:
            raise ModelFormatError(f"{where}: {fields.shown(name)} is no feature of the model")
        columns.append(places[name])
    levels = [axes[column].level(len(columns)) for column in columns]
    shape = [axes[column].n_bins(level) for column, level in zip(columns, levels, strict=True)]
    if n_outputs > 1:
        shape.append(n_outputs)
    scores = _floats(fields.member(term, "scores", where), f"{where}.scores", tuple(shape))
    shaped = scores.reshape(*shape[: len(columns)], n_outputs)
    growth = _Growth([(axes[c], c, at) for c, at in zip(columns, levels, strict=True)], n_outputs)
    growth.grow(shaped, 0)
    return growth.trees(where, len(axes))


def _floats(value: object, where: str, shape: tuple[int, ...]) -> Numbers:
    """Return a nested list of finite numbers of a given shape."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise ModelFormatError(f"{where}: the lists differ in length") from None
    if array.shape != shape:
        raise ModelFormatError(f"{where}: of shape {array.shape}, the bins have {shape}")
    if array.dtype.kind in "US":  # "+inf" and "nan" stand for numbers that JSON lacks
        raise UnsupportedModelError(f"{where}: not all scores are finite numbers")
    if array.dtype.kind not in "if":
        raise ModelFormatError(f"{where}: expected numbers")
    numbers: Numbers = array.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise UnsupportedModelError(f"{where}: not all scores are finite numbers")
    return numbers


@dataclass(eq=False)
class _Group:
    """Values of a feature with the same scores: codes (of categories), maybe a missing value."""

    scores: Numbers
    codes: list[int] = field(default_factory=list)
    has_missing: bool = False


@dataclass(eq=False)
class _Growth:
    """The nodes of a term's tree, parents first."""

    axes: Sequence[tuple[_Axis, int, int]]
    n_outputs: int
    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    missing_left: list[bool] = field(default_factory=list)
    values: list[Numbers] = field(default_factory=list)
    left_categories: dict[int, list[int]] = field(default_factory=dict)

    def trees(self, where: str, n_features: int) -> list[Tree]:
        """Return one tree for each output."""
        return splits.trees_from_arrays(
            where,
            values=np.array(self.values),
            n_features=n_features,
            feature=self.feature,
            threshold=self.threshold,
            left=self.left,
            right=self.right,
            missing_left=self.missing_left,
            operator="<",
            dtype="float64",
            left_categories=self.left_categories,
        )

    def grow(self, scores: Numbers, depth: int) -> int:
        """Add the tree of scores over the features from ``depth`` on; return its root."""
        if depth == len(self.axes):
            return self._node(-1, values=scores)
        axis, _, level = self.axes[depth]
        if axis.feature.is_categorical:
            groups = _category_groups(scores, axis.codes[level], axis.feature)
            return self._categories(groups, depth)
        return self._numbers(scores, axis.cuts[level], depth)

    def _numbers(self, scores: Numbers, cuts: Numbers, depth: int) -> int:
        """Add a tree that looks for the bin of a number."""
        runs, borders = [scores[1]], []
        for cut, following in zip(cuts.tolist(), scores[2:-1], strict=True):
            if not np.array_equal(following, runs[-1]):
                runs.append(following)
                borders.append(cut)
        missing = next((i for i, run in enumerate(runs) if np.array_equal(run, scores[0])), None)
        if missing is not None:
            return self._bisect(runs, borders, missing, depth)
        root = self._node(self.axes[depth][1], -np.inf, missing_left=True)
        self.left[root] = self.grow(scores[0], depth + 1)
        self.right[root] = self._bisect(runs, borders, 0, depth)
        return root

    def _bisect(self, runs: list[Numbers], borders: list[float], missing: int, depth: int) -> int:
        """Add a balanced tree of runs of bins; a missing value goes to one of them."""
        if len(runs) == 1:
            return self.grow(runs[0], depth + 1)
        half = len(runs) // 2
        root = self._node(self.axes[depth][1], borders[half - 1], missing_left=missing < half)
        self.left[root] = self._bisect(runs[:half], borders[: half - 1], missing, depth)
        self.right[root] = self._bisect(runs[half:], borders[half:], missing - half, depth)
        return root

    def _categories(self, groups: Sequence[_Group], depth: int) -> int:
        """Add a balanced tree of groups of categories; the last one has all unknown codes."""
        if len(groups) == 1:
            return self.grow(groups[0].scores, depth + 1)
        half = len(groups) // 2
        low = groups[:half]
        root = self._node(self.axes[depth][1], missing_left=any(group.has_missing for group in low))
        self.left_categories[root] = [code for group in low for code in group.codes]
        self.left[root] = self._categories(low, depth)
        self.right[root] = self._categories(groups[half:], depth)
        return root

    def _node(
        self,
        feature: int,
        threshold: float = np.nan,
        *,
        missing_left: bool = False,
        values: Numbers | None = None,
    ) -> int:
        self.feature.append(feature)
        self.threshold.append(threshold)
        self.left.append(-1)
        self.right.append(-1)
        self.missing_left.append(missing_left)
        self.values.append(np.zeros(self.n_outputs) if values is None else values)
        return len(self.feature) - 1


def _category_groups(scores: Numbers, bin_of: Mapping[int, int], feature: Feature) -> list[_Group]:
    """Return the categories by their scores; those that training did not see come last."""
    other = int(feature.other or 0)
    found: dict[bytes, _Group] = {}
    for code in feature.categories or ():
        own = scores[bin_of.get(code, -1)]
        found.setdefault((own + 0.0).tobytes(), _Group(own)).codes.append(code)
    found.setdefault((scores[0] + 0.0).tobytes(), _Group(scores[0])).has_missing = True
    return sorted(found.values(), key=lambda group: other in group.codes)
