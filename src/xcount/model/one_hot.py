"""One-hot columns -> one categorical feature: tests of the columns become tests of a set.

Of the columns of a group exactly one is 1 and the others are 0 (or none is 1, where that is
allowed). The group is one feature with a category per column, and::

    column j < t  holds in category c   iff   1 < t (c = j),   0 < t (c != j)

so an ensemble on columns is an ensemble on groups with the same margins at the same inputs; nothing
behind this module knows of columns. Columns that no test tells apart share a cell, as categories
do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from xcount.errors import QueryError
from xcount.model.ensemble import Ensemble, Feature, Tree
from xcount.model.inputs import Column, Inputs

NONE = "none"
"""The category in which no column of a group is 1."""
_ZERO_OR_ONE = {"0", "1", "0.0", "1.0", "False", "True", "false", "true", "(other)"}
"""Names of the categories of a column that says yes or no."""
_PREFIX = r".*[^0-9A-Za-z]"


@dataclass(frozen=True, slots=True)
class OneHotGroup:
    """Columns of which one is 1.

    Attributes:
        name: what the group is called.
        columns: indices of its columns, in the order of its categories.
        allows_none: whether all of them may be 0, in a category more.
    """

    name: str
    columns: tuple[int, ...]
    allows_none: bool = False

    def feature(self, names: Sequence[str]) -> Feature:
        """Return the group as a categorical feature; ``names`` are those of all columns."""
        labels = category_labels([names[column] for column in self.columns])
        if self.allows_none:
            labels = (*labels, NONE if NONE not in labels else f"+{NONE}")
        return Feature(self.name, tuple(range(len(labels))), labels)


def category_labels(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of columns without what all of them begin with, up to a separator.

    Example:
        >>> category_labels(["purpose_A40", "purpose_A41"])
        ('A40', 'A41')
    """
    first, last = min(names), max(names)
    n_shared = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    match = re.match(_PREFIX, first[:n_shared])
    start = 0 if match is None else match.end()
    labels = tuple(name[start:] for name in names)
    return labels if all(labels) else tuple(names)


def pulled_back(ensemble: Ensemble, groups: Sequence[OneHotGroup]) -> Ensemble:
    """Return the ensemble with every group of columns as one feature, where its first column was.

    Example:
        >>> from xcount.model.examples import figure_1
        >>> pulled_back(figure_1(), [OneHotGroup("which", (0, 1))]).features[0].labels
        ('f0', 'f1')
    """
    if not groups:
        return ensemble
    _check(ensemble, groups)
    encoding = OneHotEncoding(ensemble, tuple(groups))
    trees = tuple(encoding.pulled_back(tree) for tree in ensemble.trees)
    return replace(ensemble, features=encoding.features, trees=trees, encoding=encoding)


def _check(ensemble: Ensemble, groups: Sequence[OneHotGroup]) -> None:
    names = ensemble.feature_names
    owner: dict[int, str] = {}
    for group in groups:
        if len(group.columns) + group.allows_none < 2:
            raise QueryError(
                f"the one-hot group {group.name!r} has one column; name at least two, or +none"
            )
        for column in group.columns:
            if column in owner:
                both = f"the groups {owner[column]!r} and {group.name!r}"
                where = both if owner[column] != group.name else f"the group {group.name!r} twice"
                raise QueryError(
                    f"the one-hot column {names[column]!r} is in {where}; it belongs in one, once"
                )
            owner[column] = group.name
            _check_column(ensemble.features[column], group)
    kept = [name for column, name in enumerate(names) if column not in owner]
    called = [group.name for group in groups]
    for name in called:
        if name in kept or called.count(name) > 1:
            raise QueryError(f"there are two features called {name!r}; give the group another name")


def _check_column(feature: Feature, group: OneHotGroup) -> None:
    """Refuse a column whose categories have names other than 0 and 1, or no and yes."""
    if feature.labels is not None and not _ZERO_OR_ONE.issuperset(feature.labels):
        listed = ", ".join(feature.labels[:3]) + (", ..." if len(feature.labels) > 3 else "")
        raise QueryError(
            f"{feature.name!r} is no one-hot column, and cannot be in the group {group.name!r}: it "
            f"has the categories {listed}"
        )


@dataclass(frozen=True, slots=True)
class BrokenGroup:
    """Rows of a table that belong to no category of a one-hot group.

    Attributes:
        name: of the group.
        rows: their numbers.
        n_asked: how many rows were looked at.
        is_empty: whether all columns of the group are 0 in each of these rows.
    """

    name: str
    rows: tuple[int, ...]
    n_asked: int
    is_empty: bool

    @property
    def what(self) -> str:
        """What is wrong with these rows."""
        what = "none" if self.is_empty else "not exactly one"
        return f"{what} of its columns is 1"

    @property
    def reason(self) -> str:
        """Why these rows are left out."""
        remedy = " (+none allows that)" if self.is_empty else ""
        return f"the one-hot group {self.name} is broken: {self.what}{remedy}"

    def message(self, table: str, first_row: str) -> str:
        """Return the error if the rows are not left out."""
        remedy = "add ,+none to the group" if self.is_empty else "fix the data or drop the group"
        return (
            f"{len(self.rows):,} of {self.n_asked:,} rows of {table} break the one-hot group "
            f"{self.name!r}: {self.what}, first in {first_row}; {remedy}"
        )


@dataclass(frozen=True, eq=False)
class OneHotEncoding:
    """The way between the columns of a model and features that are groups of them."""

    source: Ensemble
    groups: tuple[OneHotGroup, ...]

    @cached_property
    def _places(self) -> list[int | OneHotGroup]:
        """For each feature the column that it is, or its group."""
        owner = {column: group for group in self.groups for column in group.columns}
        firsts = {min(group.columns) for group in self.groups}
        return [
            owner.get(column, column)
            for column in range(self.source.n_features)
            if column not in owner or column in firsts
        ]

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The features, groups in the place of their first columns."""
        names = self.source.feature_names
        return tuple(
            place.feature(names) if isinstance(place, OneHotGroup) else self.source.features[place]
            for place in self._places
        )

    @cached_property
    def _feature_of(self) -> NDArray[np.int32]:
        """For each column its feature; -1 behind the last one, which stands for leaves."""
        found = np.full(self.source.n_features + 1, -1, dtype=np.int32)
        for feature, place in enumerate(self._places):
            found[list(place.columns) if isinstance(place, OneHotGroup) else place] = feature
        return found

    def feature_of(self, column: int) -> int:
        """Return the feature that a column of the model is part of."""
        return int(self._feature_of[column])

    def group_of(self, feature: int) -> OneHotGroup | None:
        """Return the group that a feature is; None if it is a column."""
        place = self._places[feature]
        return place if isinstance(place, OneHotGroup) else None

    def pulled_back(self, tree: Tree) -> Tree:
        """Return the tree with tests of the features."""
        code_of = {c: code for group in self.groups for code, c in enumerate(group.columns)}
        is_grouped = np.isin(tree.feature, list(code_of))
        nodes = np.flatnonzero(is_grouped).astype(np.int32)
        at_0, at_1 = (tree.goes_left(nodes, np.full(len(nodes), x)) for x in (0.0, 1.0))
        feature = self._feature_of[tree.feature]
        sets = {n: s for n, s in tree.left_categories.items() if not is_grouped[n]}
        for node, left_of_0, left_of_1 in zip(nodes.tolist(), at_0, at_1, strict=True):
            own = code_of[int(tree.feature[node])]
            codes = self.features[int(feature[node])].categories or ()
            sets[node] = frozenset(c for c in codes if (left_of_1 if c == own else left_of_0))
        return replace(
            tree,
            feature=feature,
            threshold=np.where(is_grouped, np.nan, tree.threshold),
            missing_left=tree.missing_left & ~is_grouped,
            zero_side=np.where(is_grouped, 0, tree.zero_side).astype(np.int8),
            left_categories=sets,
        )

    def columns_of(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return inputs as the model takes them, of inputs by feature."""
        columns = np.zeros((len(rows), self.source.n_features))
        for place, values in zip(self._places, rows.T, strict=True):
            if isinstance(place, OneHotGroup):
                columns[:, place.columns] = values[:, np.newaxis] == np.arange(len(place.columns))
            else:
                columns[:, place] = values
        return columns

    def broken_groups(self, inputs: Inputs, left_out: Sequence[int] = ()) -> list[BrokenGroup]:
        """Return the groups that some rows break, of the rows that are not left out."""
        kept = np.delete(np.arange(len(inputs)), left_out)
        found = []
        for group in self.groups:
            is_whole, is_empty = _kinds_of_rows(group, inputs.at(kept).matrix(group.columns))
            if not is_whole.all():
                rows = tuple(kept[~is_whole].tolist())
                all_empty = bool(is_empty[~is_whole].all())
                found.append(BrokenGroup(group.name, rows, len(kept), all_empty))
        return found

    def features_of(self, inputs: Inputs) -> Inputs:
        """Return inputs by feature; the category of a row that breaks a group is missing."""
        columns = []
        for place in self._places:
            if isinstance(place, OneHotGroup):
                columns.append(Column(_codes(place, inputs.matrix(place.columns))))
            else:
                columns.append(inputs.columns[place])
        return Inputs(tuple(columns), len(inputs))


def _kinds_of_rows(
    group: OneHotGroup, columns: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which rows belong to a category of the group, and which have a 0 in all columns."""
    n_ones = (columns == 1).sum(axis=1)
    is_binary = ((columns == 0) | (columns == 1)).all(axis=1)
    is_empty = is_binary & (n_ones == 0)
    is_whole = is_binary & (n_ones == 1) | (is_empty if group.allows_none else False)
    return is_whole, is_empty


def _codes(group: OneHotGroup, columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the category of each row; NaN if it has none."""
    is_whole, is_empty = _kinds_of_rows(group, columns)
    codes = np.where(is_empty, len(group.columns), columns.argmax(axis=1)).astype(np.float64)
    return np.where(is_whole, codes, np.nan)
