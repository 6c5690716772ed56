"""CatBoost's tests of categories, each as the set of categories for which it does not hold.

A category is known by its hash (:mod:`~xcount.model.loaders.catboost_hash`); its code is its place
among those that the model knows.
A model tests a categorical feature in two ways, and holds all that decides either::

    one-hot       hash == value
    statistics    float32(((count in class + prior) / (count + prior's weight) + shift) * scale)
                      > border, with the counts of the category in a table of the model

A category that a table does not have counts 0 there: all categories that no table and no test
knows are one, the last. Statistics of several features together
(:mod:`~xcount.model.loaders.catboost_joint`) have tables of tuples; their categories are those of
the features' other tests and tables, or those that the file names.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from xcount.errors import ModelFormatError, UnsupportedModelError
from xcount.model.ensemble import Feature
from xcount.model.loaders import fields, splits
from xcount.model.loaders.catboost_hash import hash_of_key
from xcount.model.loaders.catboost_joint import ADVICE, JointTest, SetTest, joint_keys

OTHER_LABEL = "(other)"
"""Stands for all categories that the model does not know."""
_OTHER = -1
"""In the place of their hash."""
_NO_KEY = 2**64 - 1
_MEANS = ("BinarizedTargetMeanValue", "FloatTargetMeanValue")
_COUNTERS = ("Counter", "FeatureFreq")

Bit = tuple[int, float]
"""The test of a number: its position, and a border."""
MAX_TUPLES = 2_000_000
_MOST_BITS = 21
"""Tests of other features in a statistic: with these alone, there are more tuples."""


@dataclass(frozen=True, eq=False)
class _CtrTable:
    """Counts of categories: a row for each, and the denominator of counters."""

    rows: Mapping[int, list[float]]
    denominator: int


@dataclass(frozen=True, eq=False)
class _Ctr:
    """A statistic of one feature, or of several together.

    Attributes:
        features: the categorical features whose categories it is about.
        bits: the tests of other features whose answers it is about, too: of a number, or the
            number of a one-hot test.
        table: its counts, by category or, if it is of several, by the number of a tuple.
    """

    features: tuple[int, ...]
    bits: tuple[Bit | int, ...]
    kind: str
    prior: tuple[float, float]
    shift: float
    scale: float
    border_index: int
    table: _CtrTable

    @property
    def is_joint(self) -> bool:
        return len(self.features) + len(self.bits) > 1

    def value(self, known_as: int) -> np.float32:
        """Return the statistic of a category or a tuple, in the floats of the library."""
        good, total = self._counts(self.table.rows.get(known_as))
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
            return self._one_hot.setdefault((feature, value), self._n_tests)
        border = fields.as_float(fields.member(split, "border", where), where)
        ctr = self._ctr_of(index, border, where)
        return self._ctr_tests.setdefault((ctr, border), self._n_tests)

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
        features, bits = self._read_elements(ctr, f"{where}.elements")
        kind = fields.as_text(fields.member(ctr, "ctr_type", where), where)
        if kind not in ("Borders", "Buckets", *_COUNTERS, *_MEANS):
            raise UnsupportedModelError(f"{where}: statistics of the type {kind} are not supported")

        def number_of(name: str) -> float:
            number = fields.as_float(fields.member(ctr, name, where), where)
            return splits.finite(number, where, name)

        name = fields.as_text(fields.member(ctr, "identifier", where), where)
        index = fields.as_int(ctr.get("target_border_idx", 0), where)
        is_joint = len(features) + len(bits) > 1
        table = self._read_table(name, 2 if kind in _MEANS else 1, is_joint, where)
        n_counts = min(map(len, table.rows.values()), default=index + 2)
        if not 0 <= index < n_counts:
            raise ModelFormatError(f"{where}: target_border_idx {index} of {n_counts} classes")
        prior = number_of("prior_numerator"), number_of("prior_denomerator")
        shift, scale = number_of("shift"), number_of("scale")
        return _Ctr(features, bits, kind, prior, shift, scale, index, table)

    def _read_elements(
        self, ctr: dict[str, Any], where: str
    ) -> tuple[tuple[int, ...], tuple[Bit | int, ...]]:
        """Return the categorical features of a statistic, and its tests of other features."""
        features: list[int] = []
        bits: list[Bit | int] = []
        for element in fields.as_list(fields.member(ctr, "elements", where), where):
            kind = fields.member(element, "combination_element", where)
            if kind == "float_feature":
                place = fields.as_int(fields.member(element, "float_feature_index", where), where)
                if place >= self._n_floats:
                    raise ModelFormatError(f"{where}: no float feature has the number {place}")
                border = fields.as_float(fields.member(element, "border", where), where)
                bits.append((place, float(np.float32(border))))
                continue
            number = fields.as_int(fields.member(element, "cat_feature_index", where), where)
            if number not in self.columns:
                raise ModelFormatError(f"{where}: no categorical feature has the number {number}")
            if kind == "cat_feature_exact_value":
                value = _hash(fields.member(element, "value", where), where)
                bits.append(self._one_hot.setdefault((number, value), self._n_tests))
            elif kind == "cat_feature_value" and number not in features and not bits:
                features.append(number)
            else:
                raise UnsupportedModelError(
                    f"{where}: {fields.shown(kind)} in a statistic; {ADVICE}"
                )
        if not features:
            raise ModelFormatError(f"{where}: a statistic of no categorical feature")
        return tuple(features), tuple(bits)

    @property
    def _n_tests(self) -> int:
        return len(self._one_hot) + len(self._ctr_tests)

    @cached_property
    def _n_floats(self) -> int:
        place = f"{self._where}: features_info.float_features"
        return len(fields.optional_list(self._info, "float_features", place))

    def _read_table(self, name: str, at_least: int, is_joint: bool, where: str) -> _CtrTable:
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
                rows[key if is_joint else hash_of_key(key)] = counts
        return _CtrTable(rows, fields.as_int(table.get("counter_denominator", 0), place))

    def _as_count(self, value: object, n_numbers: int, place: str) -> float:
        """Return a number of a table: of means a sum or a number of rows, else a number of rows."""
        if n_numbers > 1:
            return splits.finite(fields.as_float(value, place), self._where, "a sum of targets")
        return float(fields.as_int(value, place))

    def tests(self) -> list[SetTest | JointTest]:
        """Return all tests by number, once every split has been read and all codes are known."""
        found: dict[int, SetTest | JointTest] = {}
        for (feature, value), number in self._one_hot.items():
            codes = (i for i, known in enumerate(self._known[feature]) if known != value)
            found[number] = self.columns[feature], frozenset(codes)
        for (index, border), number in self._ctr_tests.items():
            ctr, least = self._ctrs[index], np.float32(border)
            if ctr.is_joint:
                found[number] = self._joint_test(ctr, least)
                continue
            (feature,) = ctr.features
            known = enumerate(self._known[feature])
            codes = (i for i, category in known if not ctr.value(category) > least)
            found[number] = self.columns[feature], frozenset(codes)
        return [found[number] for number in range(len(found))]

    def _joint_test(self, ctr: _Ctr, least: np.float32) -> JointTest:
        """Return a statistic's test as a table over the tuples; unknown ones have no row."""
        known = [self._known[feature] for feature in ctr.features]
        keys = joint_keys([categories[:-1] for categories in known], len(ctr.bits))
        rows = [*ctr.table.rows, _NO_KEY]  # the last one stands for every tuple without a row
        values = np.array([ctr.value(key) for key in rows], dtype=np.float32)
        listed = np.array(rows, dtype=np.uint64)
        order = np.argsort(listed)
        places = np.minimum(np.searchsorted(listed, keys, sorter=order), len(listed) - 1)
        is_known = listed[order][places] == keys
        holds = np.where(is_known, values[order][places] > least, ctr.value(_NO_KEY) > least)
        others = [(0, 1)] * len(known) + [(0, 0)] * len(ctr.bits)
        whole = np.pad(holds, others, constant_values=bool(ctr.value(_NO_KEY) > least))
        bits = [(self._n_floats + bit, 0.5) if isinstance(bit, int) else bit for bit in ctr.bits]
        return JointTest(tuple(self.columns[f] for f in ctr.features), tuple(bits), whole)

    def n_codes(self) -> dict[int, int]:
        """Return how many categories each column has."""
        return {column: len(self._known[number]) for number, column in self.columns.items()}

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
        for feature, value in self._one_hot:
            found[feature].add(value)
        joint = [ctr for ctr in self._ctrs.values() if ctr.is_joint]
        for ctr in self._ctrs.values():
            if not ctr.is_joint:
                found[ctr.features[0]].update(ctr.table.rows)
        own = {ctr.features[0] for ctr in self._ctrs.values() if not ctr.is_joint}
        may_be = {f: known if f in own else known | set(self._named) for f, known in found.items()}
        for ctr in joint:
            for feature, members in self._members(ctr, may_be).items():
                found[feature] = found[feature] | members
        return found

    def _members(self, ctr: _Ctr, may_be: Mapping[int, set[int]]) -> dict[int, set[int]]:
        """Return the categories in a table of tuples; reject one that has others."""
        hashes = [sorted(may_be[feature]) for feature in ctr.features]
        n_bits = len(ctr.bits)
        n_tuples = math.prod(max(1, len(own)) for own in hashes) << min(n_bits, _MOST_BITS)
        names = " and ".join(self.names()[self.columns[feature]] for feature in ctr.features)
        if n_tuples > MAX_TUPLES:
            raise UnsupportedModelError(
                f"{self._where}: a statistic of {names} together, with {n_tuples:,} tuples of "
                f"categories{' or more' * (n_bits > _MOST_BITS)}; {ADVICE}"
            )
        keys = joint_keys(hashes, len(ctr.bits))
        has_row = np.isin(keys, np.array([*ctr.table.rows], dtype=np.uint64))
        if np.count_nonzero(has_row) != len(ctr.table.rows):
            raise UnsupportedModelError(
                f"{self._where}: a statistic of {names} together knows categories that the model "
                "does not name; save it with its names (save_model(..., format='json', "
                f"pool=pool)), or {ADVICE}"
            )
        found = {}
        for axis, feature in enumerate(ctr.features):
            others = tuple(i for i in range(has_row.ndim) if i != axis)
            found[feature] = {hashes[axis][i] for i in np.flatnonzero(has_row.any(axis=others))}
        return found

    @cached_property
    def _without_statistics(self) -> set[int]:
        """Features of which the file need not list all categories: statistics have all of them."""
        return set(self.columns) - {f for ctr in self._ctrs.values() for f in ctr.features}

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
