"""scikit-learn's HistGradientBoostingClassifier and -Regressor, live.

The library compares in float64: left iff ``x <= num_threshold``. A threshold of +inf tells missing
values from numbers. Missing values have a direction of their own at every node.

Categorical features go through an encoder inside the model: it puts them in front of the numeric
ones and numbers each one's categories 0, 1, ... in sorted order. The ensemble keeps the order of
the user's columns. Its category codes are the user's own values where these are small integers;
other values (text, negative or broken numbers) are numbered in sorted order and named by labels.
A category that training never saw is routed like a missing value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.errors import UnsupportedModelError
from xcount.model.ensemble import Ensemble, Tree
from xcount.model.loaders import splits

_BITS_PER_WORD = 32


@dataclass(frozen=True, eq=False)
class Coding:
    """The categories of one feature: ``values[i]``, encoded as i by the model, has ``codes[i]``."""

    values: Sequence[Any]
    codes: tuple[int, ...]
    labels: tuple[str, ...] | None


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns that the trees test, in terms of the user's columns.

    Attributes:
        original: column of the trees -> column of the user.
        codings: column of the user -> its categories, for the categorical ones.
    """

    original: NDArray[np.int64]
    codings: dict[int, Coding]


def read(model: Any, names: Sequence[str], where: str) -> Ensemble:
    """Return the ensemble of a fitted model; the sums are its raw margins."""
    columns = columns_of(model, where)
    trees = [
        _read_tree(predictor, columns, output, f"{where}: iteration {i}, tree {output}")
        for i, iteration in enumerate(model._predictors)
        for output, predictor in enumerate(iteration)
    ]
    base = tuple(float(value) for value in np.ravel(model._baseline_prediction))
    return Ensemble(
        features=splits.make_features(
            where,
            names,
            categories={column: coding.codes for column, coding in columns.codings.items()},
            labels={
                column: coding.labels
                for column, coding in columns.codings.items()
                if coding.labels is not None
            },
            can_be_missing=True,
            unknown_is_missing=True,
        ),
        trees=tuple(trees),
        base=base,
        input_dtype="float64",
    )


def raw_predictions(model: Any, rows: NDArray[np.float64], where: str) -> NDArray[np.float64]:
    """Return the model's own raw margins of rows that hold the ensemble's category codes."""
    margins: NDArray[np.float64] = model._raw_predict(as_user_input(model, rows, where))
    return margins


def columns_of(model: Any, where: str) -> Columns:
    """Return how the columns of the trees and of the user belong together."""
    categorical = model.is_categorical_
    if categorical is None:
        return Columns(np.arange(model.n_features_in_), {})
    preprocessor = getattr(model, "_preprocessor", None)
    if preprocessor is None:
        raise UnsupportedModelError(
            f"{where}: categorical features of a model that scikit-learn before 1.4 fitted"
        )
    first, last = np.flatnonzero(categorical), np.flatnonzero(~categorical)
    encoder = preprocessor.named_transformers_["encoder"]
    codings = {
        int(column): _coding(list(categories))
        for column, categories in zip(first, encoder.categories_, strict=True)
    }
    return Columns(np.concatenate([first, last]), codings)


def _coding(categories: list[Any]) -> Coding:
    # The encoder lists NaN last if training had missing values; it is no category.
    if categories and isinstance(categories[-1], float) and np.isnan(categories[-1]):
        categories = categories[:-1]
    if all(is_code(value) for value in categories):
        return Coding(categories, tuple(int(value) for value in categories), None)
    labels = tuple(str(value) for value in categories)
    return Coding(categories, tuple(range(len(categories))), labels)


def is_code(value: Any) -> bool:
    """Tell whether a category is a small integer, which can be its own code."""
    number = isinstance(value, int | float | np.integer | np.floating)
    return (
        number
        and not isinstance(value, bool)
        and float(value).is_integer()
        and 0 <= value < splits.MAX_CATEGORY
    )


def _read_tree(predictor: Any, columns: Columns, output: int, where: str) -> Tree:
    nodes = predictor.nodes
    inner = nodes["is_leaf"] == 0
    categorical = inner & (nodes["is_categorical"] != 0)
    left = np.where(inner, nodes["left"].astype(np.int64), -1)
    right = np.where(inner, nodes["right"].astype(np.int64), -1)
    missing_left = nodes["missing_go_to_left"] != 0
    feature = np.full(len(nodes), -1, dtype=np.int64)
    feature[inner] = columns.original[nodes["feature_idx"][inner]]
    left_categories = {
        int(node): _left_codes(
            predictor.raw_left_cat_bitsets[nodes["bitset_idx"][node]],
            columns.codings[int(feature[node])],
        )
        for node in np.flatnonzero(categorical)
    }
    return splits.tree_from_arrays(
        where,
        n_features=len(columns.original),
        feature=feature,
        threshold=nodes["num_threshold"],
        left=left,
        right=right,
        value=nodes["value"],
        missing_left=missing_left,
        operator="<=",
        dtype="float64",
        left_categories=left_categories,
        output=output,
    )


def _left_codes(bitset: NDArray[np.uint32], coding: Coding) -> list[int]:
    """Return the codes of the categories whose encoded numbers are in the bitset."""
    return [
        code
        for encoded, code in enumerate(coding.codes)
        if int(bitset[encoded // _BITS_PER_WORD]) >> (encoded % _BITS_PER_WORD) & 1
    ]


def as_user_input(model: Any, rows: NDArray[np.float64], where: str) -> NDArray[Any]:
    """Return the rows with the user's own category values; unknown codes become missing."""
    codings = columns_of(model, where).codings
    if all(coding.labels is None for coding in codings.values()):
        return rows
    values = rows.astype(object)
    for column, coding in codings.items():
        known = dict(zip(coding.codes, coding.values, strict=True))
        values[:, column] = [known.get(code, np.nan) for code in rows[:, column]]
    return values
