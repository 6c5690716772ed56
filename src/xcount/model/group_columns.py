"""Columns that put the rows of a table into groups; the model need not have them.

A group is a value as the table has it, or of a feature by its name for it. Empty cells, and texts
that stand for missing values, are unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.errors import TableError
from xcount.model.ensemble import Feature
from xcount.model.inputs import Column
from xcount.model.table_values import MISSING_WORDS

MAX_VALUES = 100
"""Most groups of one column."""
UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class GroupColumn:
    """The group of each row.

    Attributes:
        name: of the column.
        values: the groups.
        codes: for each row the place of its group in ``values``, or ``UNKNOWN``.
    """

    name: str
    values: tuple[str, ...]
    codes: NDArray[np.int64]

    @classmethod
    def of_texts(cls, name: str, column: Any, source: str) -> GroupColumn:
        """Return the groups of a column that the model does not have.

        Raises:
            TableError: it has too many different values.
        """
        if isinstance(column, _core.CsvColumn):
            words = [_word(text) for text in column.texts]
            return cls._of_codes(name, words, column.take_codes().astype(np.int64), source)
        known: dict[str | None, int] = {}
        codes = [known.setdefault(_word(value), len(known)) for value in _listed(column)]
        return cls._of_codes(name, list(known), np.array(codes, np.int64), source)

    @classmethod
    def of_feature(cls, feature: Feature, column: Column, source: str) -> GroupColumn:
        """Return the groups by the values of a feature of the model.

        Raises:
            TableError: it has too many different values.
        """
        numbers, codes = np.unique(column.numbers(), return_inverse=True, equal_nan=True)
        words = [_feature_word(feature, number) for number in numbers.tolist()]
        return cls._of_codes(feature.name, words, codes.astype(np.int64), source)

    @classmethod
    def _of_codes(
        cls, name: str, words: Sequence[str | None], codes: NDArray[np.int64], source: str
    ) -> GroupColumn:
        """Return the groups in the order of their names: numbers by size, then texts."""
        used = {words[code] for code in np.unique(codes).tolist()}
        values = sorted((word for word in used if word is not None), key=_order)
        if len(values) > MAX_VALUES:
            raise TableError(
                f"{source}, column {name!r}: {len(values)} different values are too many groups "
                f"(at most {MAX_VALUES}); add a column with a few ranges or categories"
            )
        place = {word: number for number, word in enumerate(values)}
        places = np.array([*(place.get(word or "", UNKNOWN) for word in words), UNKNOWN])
        return cls(name, tuple(values), places[codes].astype(np.int64))

    def padded(self, n_rows: int) -> GroupColumn:
        """Return the column with more rows, whose groups are unknown."""
        more = np.full(n_rows - len(self.codes), UNKNOWN, dtype=np.int64)
        return GroupColumn(self.name, self.values, np.concatenate([self.codes, more]))


def _listed(column: Any) -> Iterable[Any]:
    """Return the values of a column of a table in memory."""
    for method in ("to_list", "to_pylist", "tolist"):
        if hasattr(column, method):
            found: Iterable[Any] = getattr(column, method)()
            return found
    return list(column)


def _word(value: Any) -> str | None:
    """Return the name of a group; None if it is unknown."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # tables with gaps hold whole numbers as floats
    text = str(value).strip()
    return None if text.lower() in MISSING_WORDS else text


def _feature_word(feature: Feature, value: float) -> str | None:
    if math.isnan(value):
        return None
    if feature.categories is None or feature.labels is None or value not in feature.categories:
        return str(int(value)) if value.is_integer() else repr(value)
    return feature.labels[feature.categories.index(int(value))]


def _order(word: str) -> tuple[float, str]:
    try:
        return float(word), word
    except ValueError:
        return math.inf, word


def named(given: str | Iterable[str], is_known: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the names of columns; text lists several with commas, unless it is itself a name."""
    words = [given] if isinstance(given, str) else list(given)
    found = []
    for word in words:
        parts = [word] if is_known(word) else [part.strip() for part in word.split(",")]
        found += [part for part in parts if part]
    return tuple(dict.fromkeys(found))
