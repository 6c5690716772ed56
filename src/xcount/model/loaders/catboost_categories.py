"""CatBoost's tests of categories, each as the set of categories for which it does not hold.

A category is known by its hash (:mod:`~xcount.model.loaders.catboost_hash`); its code is its place
among those that the model knows.
A model tests a categorical feature in two ways, and holds all that decides either::

    one-hot       hash == value
    statistics    float32(((count in class + prior) / (count + prior's weight) + shift) * scale)
                      > border, with the counts of the category in a table of the model

A category that a table does not have counts 0 there: all categories that no table and no test
knows are one, the last. Statistics of several features together are no test of one feature.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from xcount.errors import ModelFormatError, UnsupportedModelError
from xcount.model.ensemble import Feature
from xcount.model.loaders import fields, splits
from xcount.model.loaders.catboost_hash import hash_of_key

OTHER_LABEL = "(other)"
"""Stands for all categories that the model does not know."""
_OTHER = -1
"""In the place of their hash."""
_NO_KEY = 2**64 - 1
_MEANS = ("BinarizedTargetMeanValue", "FloatTargetMeanValue")
_COUNTERS = ("Counter", "FeatureFreq")

Test = tuple[int, frozenset[int]]
"""A column, and the categories for which the test does not hold."""


@dataclass(frozen=True, eq=False)
class _CtrTable:
    """Counts of categories: a row for each, and the denominator of counters."""

    rows: Mapping[int, list[float]]
    denominator: int


@dataclass(frozen=True, eq=False)
class _Ctr:
    """A statistic of one feature."""

    feature: int
    kind: str
    prior: tuple[float, float]
    shift: float
    scale: float
    border_index: int
    table: _CtrTable

    def value(self, category: int) -> np.float32:
        """Return the statistic of a category, in the floats of the library."""
        good, total = self._counts(self.table.rows.get(category))
        prior, weight = np.float32(self.prior[0]), np.float32(self.prior[1])
        with np.errstate(all="ignore"):
            ratio = (np.float32(good) + prior) / (np.float32(total) + weight)
            return np.float32((ratio + np.float32(self.shift)) * np.float32(self.scale))

    def _counts(self, row: list[float] | None) -> tuple[float, float]:
        if self.kind in _COUNTERS:
            return (0.0 if row is None else row[0]), float(self.table.denominator)
        if row is None:
            return 0.0, 0.0
        if self.kind in _MEANS:
            return row[0], row[1]
        if self.kind == "Buckets":
            return row[self.border_index], sum(row)
        return sum(row[self.border_index + 1 :]), sum(row)


class Categories:
    """The categorical features of a model, and its tests of them.

    Args:
        info: the model's ``features_info``.
        tables: the model's ``ctr_data``.
        where: the place for error messages.
        one_hot_max_size: the most categories that a feature without statistics had in training, if
            the file has this parameter.
    """

    def __init__(
        self, info: dict[str, Any], tables: object, where: str, one_hot_max_size: object = None
    ) -> None:
        self._info, self._where = info, where
        self._one_hot_max_size = one_hot_max_size
        self._tables = fields.as_object({} if tables is None else tables, f"{where}: ctr_data")
        self._place = f"{where}: features_info.categorical_features"
        self._listed = fields.optional_list(info, "categorical_features", self._place)
        self._ctrs: dict[int, _Ctr] = {}
        self._one_hot: dict[tuple[int, int], int] = {}
        self._ctr_tests: dict[tuple[int, float], int] = {}

    def __len__(self) -> int:
        return len(self._listed)

    @cached_property
    def columns(self) -> dict[int, int]:
        """The number of each categorical feature -> its column of the input."""
        found: dict[int, int] = {}
        for i, feature in enumerate(self._listed):
            at = f"{self._place}[{i}]"
            number = fields.as_int(fields.member(feature, "feature_index", at), at)
            column = fields.as_int(fields.member(feature, "flat_feature_index", at), at)
            if number in found or column in found.values():
                raise ModelFormatError(f"{at}: a categorical feature occurs twice")
            found[number] = column
        return found

    def names(self) -> dict[int, str]:
        """Return what the columns are called."""
        return {
            column: name_of(feature, column, self._place)
            for feature, column in zip(self._listed, self.columns.values(), strict=True)
        }

    @cached_property
    def _values(self) -> dict[int, list[int]]:
        """The hashes that each feature is compared with, in the order of the splits' numbers."""
        found = {}
        for i, (feature, number) in enumerate(zip(self._listed, self.columns, strict=True)):
            at = f"{self._place}[{i}].values"
            listed = fields.optional_list(feature, "values", at)
            found[number] = [_hash(value, at) for value in listed]
        return found

    @cached_property
    def _first_one_hot_split(self) -> int:
        """The number of the first split that compares categories: those of numbers go first."""
        place = f"{self._where}: features_info.float_features"
        floats = fields.optional_list(self._info, "float_features", place)
        return sum(len(_borders(feature, place)) for feature in floats)

    @cached_property
    def _first_ctr_split(self) -> int:
        """The number of the first split that is about statistics: those of other kinds go first."""
        return self._first_one_hot_split + sum(map(len, self._values.values()))

    def test_number(self, split: dict[str, Any], kind: str, where: str) -> int:
        """Return the number of a split's test in :meth:`tests`."""
        n_tests = len(self._one_hot) + len(self._ctr_tests)
        index = fields.as_int(fields.member(split, "split_index", where), where)
        if kind == "OneHotFeature":
            feature = fields.as_int(fields.member(split, "cat_feature_index", where), where)
            if feature not in self.columns:
                raise ModelFormatError(f"{where}: no categorical feature has the number {feature}")
            value = _hash(fields.member(split, "value", where), where)
            listed = [(own, v) for own, values in self._values.items() for v in values]
            at = index - self._first_one_hot_split
            # CatBoost itself goes by the number alone.
            if not 0 <= at < len(listed) or listed[at] != (feature, value):
                raise ModelFormatError(
                    f"{where}: the category {value} of categorical feature {feature} is not the "
                    f"test with the split_index {index}; the file contradicts itself"
                )
            return self._one_hot.setdefault((feature, value), n_tests)
        border = fields.as_float(fields.member(split, "border", where), where)
        return self._ctr_tests.setdefault((self._ctr_of(index, border, where), border), n_tests)

    def _ctr_of(self, split_index: int, border: float, where: str) -> int:
        """Return which statistic a split is about: they are numbered border by border."""
        place = f"{self._where}: features_info.ctrs"
        left = split_index - self._first_ctr_split
        for i, ctr in enumerate(fields.optional_list(self._info, "ctrs", place)):
            borders = _borders(ctr, f"{place}[{i}]")
            if 0 <= left < len(borders):
                if fields.as_float(borders[left], place) != border:
                    raise ModelFormatError(f"{where}: split {split_index} has another border")
                if i not in self._ctrs:
                    self._ctrs[i] = self._read_ctr(ctr, f"{place}[{i}]")
                return i
            left -= len(borders)
        raise ModelFormatError(f"{where}: no statistic has the split {split_index}")

    def _read_ctr(self, ctr: dict[str, Any], where: str) -> _Ctr:
        elements = fields.as_list(fields.member(ctr, "elements", where), where)
        kinds = [fields.member(element, "combination_element", where) for element in elements]
        if kinds != ["cat_feature_value"]:
            raise UnsupportedModelError(
                f"{where}: a statistic of {len(elements)} features together; train the model with "
                "max_ctr_complexity=1, and every categorical feature stands on its own"
            )
        at = f"{where}.elements"
        number = fields.as_int(fields.member(elements[0], "cat_feature_index", at), at)
        if number not in self.columns:
            raise ModelFormatError(f"{at}: no categorical feature has the number {number}")
        kind = fields.as_text(fields.member(ctr, "ctr_type", where), where)
        if kind not in ("Borders", "Buckets", *_COUNTERS, *_MEANS):
            raise UnsupportedModelError(f"{where}: statistics of the type {kind} are not supported")

        def number_of(name: str) -> float:
            return splits.finite(fields.as_float(fields.member(ctr, name, where), where), at, name)

        name = fields.as_text(fields.member(ctr, "identifier", where), where)
        index = fields.as_int(ctr.get("target_border_idx", 0), where)
        table = self._read_table(name, 2 if kind in _MEANS else 1, where)
        n_counts = min(map(len, table.rows.values()), default=index + 2)
        if not 0 <= index < n_counts:
            raise ModelFormatError(f"{where}: target_border_idx {index} of {n_counts} classes")
        prior = number_of("prior_numerator"), number_of("prior_denomerator")
        shift, scale = number_of("shift"), number_of("scale")
        return _Ctr(number, kind, prior, shift, scale, index, table)

    def _read_table(self, name: str, at_least: int, where: str) -> _CtrTable:
        if name not in self._tables:
            raise UnsupportedModelError(
                f"{where}: the file has no table of this statistic; save the model with its tables"
            )
        place = f"{self._where}: ctr_data"
        table = fields.as_object(self._tables[name], place)
        stride = fields.as_int(fields.member(table, "hash_stride", place), place)
        listed = fields.as_list(fields.member(table, "hash_map", place), place)
        if stride <= at_least or len(listed) % stride:
            raise ModelFormatError(f"{place}: {len(listed)} entries in rows of {stride}")
        rows: dict[int, list[float]] = {}
        for i in range(0, len(listed), stride):
            key = fields.as_int(listed[i], place, high=_NO_KEY)
            row = listed[i + 1 : i + stride]
            counts = [self._as_count(value, at_least, place) for value in row]
            if key != _NO_KEY:
                rows[hash_of_key(key)] = counts
        return _CtrTable(rows, fields.as_int(table.get("counter_denominator", 0), place))

    def _as_count(self, value: object, n_numbers: int, place: str) -> float:
        """Return a number of a table: of means a sum or a number of rows, else a number of rows."""
        if n_numbers > 1:
            return splits.finite(fields.as_float(value, place), self._where, "a sum of targets")
        return float(fields.as_int(value, place))

    def tests(self) -> list[Test]:
        """Return all tests by number, once every split has been read and all codes are known."""
        found: dict[int, Test] = {}
        for (feature, value), number in self._one_hot.items():
            codes = (i for i, known in enumerate(self._known[feature]) if known != value)
            found[number] = self.columns[feature], frozenset(codes)
        for (index, border), number in self._ctr_tests.items():
            ctr, least = self._ctrs[index], np.float32(border)
            known = enumerate(self._known[ctr.feature])
            codes = (i for i, category in known if not ctr.value(category) > least)
            found[number] = self.columns[ctr.feature], frozenset(codes)
        return [found[number] for number in range(len(found))]

    @cached_property
    def _named(self) -> dict[int, str]:
        """The names of categories that the file has, by hash."""
        place = f"{self._where}: features_info.cat_features_hash"
        return {
            _hash(fields.member(entry, "hash", place), place): fields.as_text(
                fields.member(entry, "value", place), place
            )
            for entry in fields.optional_list(self._info, "cat_features_hash", place)
        }

    @cached_property
    def _asked(self) -> dict[int, set[int]]:
        """The hashes that tests and statistics of each feature know."""
        found = {number: set(values) for number, values in self._values.items()}
        for ctr in self._ctrs.values():
            found[ctr.feature].update(ctr.table.rows)
        return found

    @cached_property
    def _without_statistics(self) -> set[int]:
        """Features of which the file need not list all categories: statistics have all of them."""
        return set(self.columns) - {ctr.feature for ctr in self._ctrs.values()}

    @cached_property
    def _nobodys(self) -> set[int]:
        """Categories that the file names, but that no feature is asked about."""
        return set(self._named).difference(*self._asked.values())

    @cached_property
    def _known(self) -> dict[int, tuple[int, ...]]:
        """The hashes of each feature's categories, in the order of their codes."""
        found = {number: set(known) for number, known in self._asked.items()}
        if len(self._without_statistics) == 1:  # nobody else can have them
            (number,) = self._without_statistics
            found[number] |= self._nobodys
        return {number: (*sorted(known), _OTHER) for number, known in found.items()}

    def features(self) -> dict[int, Feature]:
        """Return the categorical features, by column; unnamed categories are ``#hash``."""
        named = self._named | {_OTHER: OTHER_LABEL}
        names = self.names()
        found = {}
        for number, column in self.columns.items():
            known = self._known[number]
            others = set(self._named).difference(known)
            if number not in self._without_statistics:
                others.clear()
            found[column] = Feature(
                names[column],
                tuple(range(len(known))),
                tuple(named.get(category, f"#{category}") for category in known),
                other=len(known) - 1,
                hashes=known[:-1],
                other_labels=tuple(sorted(named[category] for category in others)),
                other_is_unknown=self._has_all_categories(number, others),
            )
        return found

    def _has_all_categories(self, number: int, others: Collection[int]) -> bool:
        """Return whether every category that a feature had in training has a code of its own."""
        if number not in self._without_statistics:
            return True
        is_full = isinstance(self._one_hot_max_size, int) and (
            len(self._known[number]) > self._one_hot_max_size  # one of them is the unknown one
        )
        return is_full or (bool(self._named) and not others)


def _hash(value: object, where: str) -> int:
    """Return a hash, which may be written as a signed number."""
    return fields.as_int(value, where, low=-(2**31), high=2**32 - 1) % 2**32


def _borders(feature: object, where: str) -> list[Any]:
    return fields.optional_list(fields.as_object(feature, where), "borders", f"{where}.borders")


def name_of(feature: dict[str, Any], column: int, where: str) -> str:
    """Return what a column is called."""
    given = feature.get("feature_id") or feature.get("feature_name") or ""
    return fields.as_text(given, where) or f"f{column}"
