"""The neutral form of a tree ensemble: immutable arrays, and a slow, obvious predictor.

Every loader produces an :class:`Ensemble`; nothing behind the loaders knows which library trained
the model. All splits have one form (see :class:`Tree`), so a threshold means the same everywhere::

    numeric split:      left  iff  x < threshold
    ranges of numbers:  left  iff  r[0] <= x < r[1], or r[2] <= x < r[3], ..., of left_ranges[node]
    categorical split:  left  iff  int(x) in left_categories[node]
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xcount.model.inputs import Inputs
from xcount.support.display import DisplayMixin
from xcount.support.visible import visible

ZERO_RANGE = float(np.float32(1e-35))
"""LightGBM calls x zero when -ZERO_RANGE <= x <= ZERO_RANGE."""

_WALKS = 2**20
"""Rows times trees that are walked down together."""

Task = Literal[
    "regression", "multitarget", "ranking", "binary", "multiclass", "multilabel", "unknown"
]
"""What the sums are to the library. Several sums are the classes of one decision (*multiclass*),
a yes or no each (*multilabel*), or several numbers, e.g. quantiles (*multitarget*)."""

Decision = Literal["cutoff", "argmax", "none", "unknown"]
Probability = Literal["margin", "sigmoid", "softmax", "none", "unknown"]


def output_word(task: str) -> str:
    """Return what the sums of a task are called where there are several."""
    return "classes" if task in ("multiclass", "multilabel") else "outputs"


@dataclass(frozen=True, slots=True)
class Feature:
    """One input column.

    A categorical feature lists the category codes an input can hold; ``labels`` names them.
    ``like_missing`` are numbers that the library cannot tell from a missing value, because it uses
    the end of its number range for that; they count as missing.
    ``missing_as`` is the number that the library takes for a missing value, if it does so at every
    test; a missing value has no cell of its own then.
    ``other`` is the code of every value (without labels: every code) that has none of its own,
    where the model takes such values; ``missing_labels`` are texts that it cannot tell from a
    missing value. With ``unknown_is_missing`` it cannot tell any unknown category from one.
    ``other_labels`` are names of such values that the file has, but not for which feature. With
    ``other_is_unknown``, no category that the model learnt from is among them.
    ``hashes`` are what CatBoost knows categories by, in the order of the codes; ``other`` is last.
    """

    name: str
    categories: tuple[int, ...] | None = None
    labels: tuple[str, ...] | None = None
    can_be_missing: bool = False
    like_missing: tuple[float, ...] = ()
    missing_as: float | None = None
    unknown_is_missing: bool = False
    other: int | None = None
    missing_labels: tuple[str, ...] = ()
    hashes: tuple[int, ...] | None = None
    other_labels: tuple[str, ...] = ()
    other_is_unknown: bool = False

    @property
    def is_categorical(self) -> bool:
        return self.categories is not None

    @property
    def unknown_codes(self) -> frozenset[int]:
        """The codes that stand only for categories that the model did not learn from."""
        is_unknown = self.other is not None and self.other_is_unknown
        return frozenset({self.other} if is_unknown else ())  # type: ignore[arg-type]  # not None

    @property
    def takes_missing(self) -> bool:
        """Whether the library predicts for a missing value."""
        return self.can_be_missing or self.missing_as is not None


class FlaggedCodes(Set[int]):
    """Category codes from 0 on, with a flag for each: a set of many thousands is small."""

    def __init__(self, flags: NDArray[np.bool_]) -> None:
        self.flags = flags

    def __contains__(self, code: object) -> bool:
        return isinstance(code, int) and 0 <= code < len(self.flags) and bool(self.flags[code])

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self.flags).tolist())

    def __len__(self) -> int:
        return int(self.flags.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """One tree as parallel arrays; node 0 is the root and children have larger indices.

    Attributes:
        feature: index of the tested feature, -1 at a leaf.
        threshold: numeric split: left iff ``x < threshold``. NaN elsewhere. -inf tells only
            missing values from numbers: no number goes left.
        left: child taken when the test holds, -1 at a leaf.
        right: child taken otherwise, -1 at a leaf.
        missing_left: whether a missing value (NaN) goes left.
        zero_side: where ``|x| <= ZERO_RANGE`` goes when the library treats zero as missing:
            -1 left, +1 right, 0 like any other value.
        value: what a leaf adds to the sum; 0 at inner nodes.
        left_categories: categorical node -> the category codes that go left.
        left_ranges: node -> the ends of the ranges of numbers that go left, ascending; the last
            range has no upper end if their number is odd. Its threshold is NaN.
        output: index of the sum (the class) this tree adds to.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    zero_side: NDArray[np.int8]
    value: NDArray[np.float64]
    left_categories: Mapping[int, Set[int]] = field(default_factory=dict)
    output: int = 0
    left_ranges: Mapping[int, tuple[float, ...]] = field(default_factory=dict)

    @property
    def n_nodes(self) -> int:
        return len(self.feature)

    def depth(self) -> int:
        """Return the number of tests on the longest path."""
        depth, level = 0, np.zeros(1, dtype=np.int32)
        while (inner := level[self.feature[level] >= 0]).size:
            depth, level = depth + 1, np.concatenate([self.left[inner], self.right[inner]])
        return depth

    def leaves_of(self, rows: NDArray[np.float64]) -> NDArray[np.int32]:
        """Return the leaf that each row (already in the library's number type) ends in."""
        at = np.zeros(len(rows), dtype=np.int32)
        active = np.flatnonzero(self.feature[at] >= 0)
        while active.size:
            nodes = at[active]
            goes_left = self.goes_left(nodes, rows[active, self.feature[nodes]])
            at[active] = np.where(goes_left, self.left[nodes], self.right[nodes])
            active = active[self.feature[at[active]] >= 0]
        return at

    def goes_left(self, nodes: NDArray[np.int32], values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return whether each value (in the library's number type) goes left at its node."""
        with np.errstate(invalid="ignore"):
            goes_left = values < self.threshold[nodes]
        zero = (np.abs(values) <= ZERO_RANGE) & (self.zero_side[nodes] != 0)
        goes_left = np.where(zero, self.zero_side[nodes] < 0, goes_left)
        if self.left_categories:
            for i, node in enumerate(nodes):
                if int(node) in self.left_categories and not np.isnan(values[i]):
                    goes_left[i] = _category(values[i]) in self.left_categories[int(node)]
        for ranged, ends in self.left_ranges.items():
            here = nodes == ranged
            goes_left[here] = in_ranges(ends, values[here])
        return np.where(np.isnan(values), self.missing_left[nodes], goes_left)


def in_ranges(ends: ArrayLike, values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which numbers lie in one of the ranges (see :attr:`Tree.left_ranges`)."""
    inside: NDArray[np.bool_] = np.searchsorted(np.asarray(ends), values, side="right") % 2 == 1
    return inside


def _category(value: float) -> int:
    """Return the category code of an input value; -1 for what no category can be."""
    return int(value) if np.isfinite(value) else -1


def row_from_0(index: int) -> str:
    """Return how messages name a row of a table in memory."""
    return f"row {index} (counted from 0)"


class Broken(Protocol):
    """Rows of a table that have no value of a feature made of several columns."""

    @property
    def rows(self) -> tuple[int, ...]:
        """Their numbers."""

    @property
    def n_asked(self) -> int:
        """How many rows were looked at."""

    @property
    def reason(self) -> str:
        """Why they are left out."""

    def message(self, table: str, first_row: str) -> str:
        """Return the error if they are not left out."""


class Encoding(Protocol):
    """How the columns that a model takes are made of an ensemble's features."""

    @property
    def source(self) -> Ensemble:
        """The ensemble on the model's own columns."""

    def columns_of(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return inputs as the model takes them, of inputs by feature."""

    def broken_groups(self, inputs: Inputs, left_out: Sequence[int] = ()) -> Sequence[Broken]:
        """Return what keeps rows of a table from being inputs by feature."""

    def features_of(self, inputs: Inputs) -> Inputs:
        """Return inputs by feature; those that have none are missing."""

    def feature_of(self, column: int) -> int:
        """Return the feature that a column of the model is part of."""


@dataclass(frozen=True, eq=False, repr=False)
class Ensemble(DisplayMixin):
    """An additive tree model: ``V(x)[k] = base[k] + (sum of leaves of output k) / divisor``.

    V is the *margin*, what gaps and cut-offs are about: what the library puts through its link
    function (sigmoid, softmax, none) to predict. It is the mean of the trees where the library
    predicts from the mean, even where it calls the sum a raw score (LightGBM's random forests).

    Attributes:
        features: the input columns, in the order the model expects them.
        trees: the trees; ``trees[i].output`` says which sum a tree belongs to.
        base: what each sum starts from (never matters to a count, matters to a prediction).
        divisor: 1, or the number of trees that an averaging forest divides by.
        input_dtype: the number type that the library rounds inputs to before it compares.
        category_rounding: how the library makes a category code of a number: -0.5 is code 0 when
            it truncates, and no code at all when it rounds down.
        task: what the sums mean to the library.
        decides_at: the margin at which the library's own decision changes, where there is one sum
            (see :attr:`decision`); None if it takes no decision, or the file does not tell it.
        tie_is_above: which side a margin of exactly ``decides_at`` is on.
        probability: what makes a probability of a margin: nothing (it is one), ``sigmoid(slope *
            V[k])``, or the softmax of all sums; *none* if there is no probability.
        slope: see ``probability``.
        format: where the ensemble came from, e.g. ``"xgboost-json"``.
        class_labels: names of the outputs of a classifier, when the model stores them; with one
            output, of both sides of its cut-off.
        path: the file it was read from, if any.
        sha256: hash of that file's bytes, if any.
        encoding: where the model's own columns are others than the features: what they are made
            of (see :mod:`xcount.model.one_hot`).

    Example:
        >>> import xcount
        >>> from xcount.model.examples import adult_model_path
        >>> model = xcount.load(adult_model_path())
        >>> model.n_trees, model.task, model.feature_names[:2]
        (50, 'binary', ('age', 'workclass'))
    """

    features: tuple[Feature, ...]
    trees: tuple[Tree, ...]
    base: tuple[float, ...] = (0.0,)
    divisor: int = 1
    input_dtype: Literal["float32", "float64"] = "float64"
    category_rounding: Literal["down", "truncate"] = "down"
    task: Task = "unknown"
    decides_at: float | None = 0.0
    tie_is_above: bool = False
    probability: Probability = "unknown"
    slope: float = 1.0
    format: str = "ensemble"
    class_labels: tuple[str, ...] | None = None
    path: str | None = None
    sha256: str | None = None
    encoding: Encoding | None = None

    @property
    def source(self) -> Ensemble:
        """The ensemble on the columns that the model itself takes."""
        return self if self.encoding is None else self.encoding.source.source

    def columns_of(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return inputs by feature as the model itself takes them."""
        if self.encoding is None:
            return rows
        return self.encoding.source.columns_of(self.encoding.columns_of(rows))

    @property
    def n_outputs(self) -> int:
        return len(self.base)

    @property
    def n_features(self) -> int:
        return len(self.features)

    @property
    def n_trees(self) -> int:
        return len(self.trees)

    def __repr__(self) -> str:
        trees = "1 tree" if self.n_trees == 1 else f"{self.n_trees:,} trees"
        where = f"{visible(os.path.basename(self.path))}: " if self.path else ""
        return f"Ensemble({where}{self.format}, {self.task}, {trees}, {self.n_features:,} features)"

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.features)

    @cached_property
    def max_depth(self) -> int:
        """The number of tests on the longest path of any tree."""
        return max((tree.depth() for tree in self.trees), default=0)

    @property
    def output_word(self) -> str:
        """What the sums are called where there are several."""
        return "classes" if self.class_labels else output_word(self.task)

    @property
    def decision(self) -> Decision:
        """How the library itself decides between classes, from the margins alone.

        - *cutoff*: above iff ``V > decides_at`` (``>=`` if ``tie_is_above``);
        - *argmax*: the class with the largest sum, the first one of equals;
        - *none*: it predicts numbers, an order, or labels that do not exclude each other;
        - *unknown*: the file does not tell.

        Where V is closer to a tie than the library's rounding, its decision may be the other one.
        """
        if self.task == "multiclass":
            return "argmax"
        if self.n_outputs == 1 and self.decides_at is not None:
            return "cutoff"
        numbers = ("regression", "multitarget", "ranking", "multilabel")
        return "none" if self.task in numbers else "unknown"

    def decide(self, rows: ArrayLike) -> NDArray[np.int64]:
        """Return the class of every row, as its index: the library's own decision.

        Raises:
            ValueError: the model takes no decision, or the file does not tell.
        """
        margins = self.predict(rows)
        if self.decision == "argmax":
            largest: NDArray[np.int64] = np.argmax(margins, axis=1)
            return largest
        if self.decision != "cutoff" or self.decides_at is None:
            raise ValueError(f"the decision of this model is {self.decision}")
        at = self.decides_at
        above = margins[:, 0] >= at if self.tie_is_above else margins[:, 0] > at
        return above.astype(np.int64)

    def leaf_indices(self, rows: ArrayLike) -> NDArray[np.int32]:
        """Return the leaf node of every row in every tree, shape ``(n_rows, n_trees)``."""
        matrix = self._as_inputs(rows)
        if any(tree.left_categories or tree.left_ranges for tree in self.trees):
            return np.stack([tree.leaves_of(matrix) for tree in self.trees], axis=1)
        found = np.zeros((len(matrix), self.n_trees), dtype=np.int32)
        step = max(1, _WALKS // max(1, self.n_trees))
        for first in range(0, len(matrix) if self.trees else 0, step):
            found[first : first + step] = self._leaves_of(matrix[first : first + step])
        return found

    @cached_property
    def _all_nodes(self) -> tuple[Tree, NDArray[np.int32]]:
        """All trees as one, a node of a tree so far behind its own number as the tree starts."""
        sizes = [tree.n_nodes for tree in self.trees]
        starts = np.cumsum([0, *sizes], dtype=np.int32)[:-1]
        shifts = np.repeat(starts, sizes)
        nodes = Tree(
            feature=np.concatenate([tree.feature for tree in self.trees]),
            threshold=np.concatenate([tree.threshold for tree in self.trees]),
            left=np.concatenate([tree.left for tree in self.trees]) + shifts,
            right=np.concatenate([tree.right for tree in self.trees]) + shifts,
            missing_left=np.concatenate([tree.missing_left for tree in self.trees]),
            zero_side=np.concatenate([tree.zero_side for tree in self.trees]),
            value=np.empty(0),
        )
        return nodes, starts

    def _leaves_of(self, inputs: NDArray[np.float64]) -> NDArray[np.int32]:
        """Walk all rows down all trees at once."""
        nodes, starts = self._all_nodes
        at = np.tile(starts, len(inputs))
        rows = np.repeat(np.arange(len(inputs)), len(starts))
        active = np.flatnonzero(nodes.feature[at] >= 0)
        while active.size:
            here = at[active]
            goes_left = nodes.goes_left(here, inputs[rows[active], nodes.feature[here]])
            at[active] = np.where(goes_left, nodes.left[here], nodes.right[here])
            active = active[nodes.feature[at[active]] >= 0]
        return at.reshape(len(inputs), -1) - starts

    def predict(self, rows: ArrayLike) -> NDArray[np.float64]:
        """Return the raw margins, shape ``(n_rows, n_outputs)``: the reference predictor."""
        matrix = self._as_inputs(rows)
        sums = np.zeros((len(matrix), self.n_outputs))
        for tree in self.trees:
            sums[:, tree.output] += tree.value[tree.leaves_of(matrix)]
        margins: NDArray[np.float64] = sums / self.divisor + np.asarray(self.base)
        return margins

    def _as_inputs(self, rows: ArrayLike) -> NDArray[np.float64]:
        matrix = np.asarray(rows, dtype=np.float64)
        if matrix.ndim == 1:
            matrix = matrix[np.newaxis]
        inputs = np.empty(matrix.shape)
        for column in range(matrix.shape[1]):
            inputs[:, column] = self.as_input(column, matrix[:, column])
        return inputs

    def as_input(self, column: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values of a column as the library sees them before it compares."""
        inputs = self.rounded(column, values)
        for number in self.features[column].like_missing:
            inputs[inputs == number] = np.nan
        return inputs

    def rounded(self, column: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values of a column in the library's number type; categories as codes."""
        with np.errstate(over="ignore"):
            inputs = values.astype(self.input_dtype).astype(np.float64)
        if self.features[column].is_categorical and self.category_rounding == "down":
            inputs = np.floor(inputs)
        return inputs
