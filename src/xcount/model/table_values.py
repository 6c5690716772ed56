"""What the values of a table mean to a model: numbers, or codes of categories.

A column is its different values, and for each row which of them it has; a value is looked at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.model.ensemble import Feature
from xcount.model.inputs import Codes, Column
from xcount.model.loaders.catboost_hash import category_hash
from xcount.support.parse import plain_float

MISSING_WORDS = frozenset({"", "na", "n/a", "nan", "null", "none", "<na>"})
_TRUTH_WORDS = {"true": 1.0, "false": 0.0}
_LISTED = 5


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """The values of a column as a table has them.

    Attributes:
        values: one for each row; with codes, the different ones.
        codes: for each row the place of its value in ``values``.
    """

    values: Sequence[Any] | NDArray[Any]
    codes: Codes | None = None

    def __len__(self) -> int:
        return len(self.values if self.codes is None else self.codes)

    @classmethod
    def different(cls, array: NDArray[Any]) -> Values:
        """Return the different values of an array, and the codes of its rows."""
        values, codes = np.unique(array, return_inverse=True)
        return cls(values, codes.astype(np.min_scalar_type(len(values))))


@dataclass(frozen=True, slots=True, eq=False)
class Meaning:
    """A column as the model takes it, and its values without a meaning.

    Attributes:
        column: the numbers or codes; NaN for values without a meaning.
        strange_rows: the rows with values that have none, ascending.
        first: the first of these values.
    """

    column: Column
    strange_rows: NDArray[np.int64]
    first: Any = None


def meaning_of(feature: Feature, values: Values | _core.CsvColumn) -> Meaning:
    """Return what the values of a column mean to a feature."""
    if isinstance(values, Values):
        return _meaning(feature, values)
    if feature.is_categorical:
        return _meaning(feature, Values(values.texts, values.take_codes()))
    return _dense_meaning(values) if values.is_dense else _coded_meaning(values)


def what_is_wrong(feature: Feature, value: Any) -> str:
    """Return an explanation of why a feature cannot hold a value."""
    if not feature.is_categorical:
        kind = "text" if isinstance(value, str) else f"of type {type(value).__name__}"
        return f"{kind}, the model takes numbers; encode it as for the training"
    known = list(feature.labels or ()) or [str(code) for code in feature.categories or ()]
    return f"no category of the model; it knows {listed(known)}"


def listed(names: Sequence[str]) -> str:
    """Return the first few of some names."""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(repr(name) for name in names[:_LISTED]) + more


def _meaning(feature: Feature, given: Values) -> Meaning:
    """Return the meaning of values in Python."""
    values = given.values
    is_array = isinstance(values, np.ndarray) and values.dtype.kind in "fiub"
    if is_array and not feature.is_categorical:
        return Meaning(Column(np.asarray(values, np.float64), given.codes), np.empty(0, np.int64))
    if feature.is_categorical:
        labels: dict[str, float] = dict.fromkeys(feature.missing_labels, math.nan)
        labels |= zip(feature.labels or (), feature.categories or (), strict=False)
        found = _of_each(values, lambda value: _code(value, labels, feature))
    else:
        found = _of_each(values, number_of)
    numbers = np.array([math.nan if number is None else number for number in found], np.float64)
    column = Column(numbers, given.codes)
    if None not in found:
        return Meaning(column, np.empty(0, np.int64))
    is_strange = np.array([number is None for number in found])
    rows = np.flatnonzero(is_strange if given.codes is None else is_strange[given.codes])
    if not len(rows):
        return Meaning(column, rows)
    return Meaning(column, rows, values[rows[0] if given.codes is None else given.codes[rows[0]]])


def _of_each(values: Iterable[Any], meaning: Callable[[Any], float | None]) -> list[float | None]:
    """Return the meaning of each value; the same text is looked at once."""
    known: dict[str, float | None] = {}
    found = []
    for value in values:
        if not isinstance(value, str):
            found.append(meaning(value))
            continue
        if value not in known:
            known[value] = meaning(value)
        found.append(known[value])
    return found


def _coded_meaning(given: _core.CsvColumn) -> Meaning:
    """Return the numbers of a column of a file that is texts and codes."""
    numbers, codes = given.numbers_of_texts, given.take_codes()
    strange: dict[int, str] = {}
    for code, text in given.odd_texts:
        number = number_of(text)
        numbers[code] = math.nan if number is None else number
        if number is None:
            strange[code] = text
    rows = np.flatnonzero(np.isin(codes, list(strange))) if strange else np.empty(0, np.int64)
    first = strange[int(codes[rows[0]])] if len(rows) else None
    return Meaning(Column(numbers, codes), rows, first)


def _dense_meaning(given: _core.CsvColumn) -> Meaning:
    """Return the numbers of a column of a file that is numbers, but for some texts."""
    numbers, odd_rows, odd_codes = given.take_numbers(), given.odd_rows, given.odd_codes
    texts = [text for _, text in given.odd_texts]
    found = [number_of(text) for text in texts]
    of_texts = np.array([math.nan if number is None else number for number in found], np.float64)
    numbers[odd_rows] = of_texts[odd_codes]
    is_strange = np.array([number is None for number in found], np.bool_)[odd_codes]
    rows = odd_rows[is_strange]
    first = texts[odd_codes[is_strange][0]] if len(rows) else None
    return Meaning(Column(numbers), rows, first)


def _code(value: Any, labels: Mapping[str, float], feature: Feature) -> float | None:
    """Return the code of one value; NaN if it is missing, None if it is unknown."""
    if feature.hashes is not None:
        return _hashed(value, feature, feature.hashes)
    text = str(value)
    truth = text.strip().capitalize() if text.strip().lower() in _TRUTH_WORDS else text
    for word in (text, text.strip(), truth):
        if word in labels:
            return float(labels[word])
    number = number_of(value)
    if number is None or math.isnan(number):
        return _other(feature, number) if number is None else number
    # A label such as "3" may come back from a table as the number 3.0.
    whole = f"{number:.0f}" if number.is_integer() else text
    if whole in labels:
        return float(labels[whole])
    # Where any text may come, a text is no code; and where labels are numbers, no number is.
    takes_text = feature.other is not None and feature.labels is not None
    is_code = not takes_text or not (isinstance(value, str) or _are_numbers(labels))
    is_known = is_code and number in (feature.categories or ())
    return number if is_known else _other(feature, number)


def _other(feature: Feature, number: float | None) -> float | None:
    """Return the code of a value that has none of its own; without labels, only codes have one."""
    is_code = number is not None and number >= 0 and number.is_integer()
    if not is_code and feature.labels is None:
        return None
    return math.nan if feature.unknown_is_missing else feature.other


def _are_numbers(labels: Mapping[str, float]) -> bool:
    """Tell whether some label is a number, so that a number is a label and no code."""
    return any(number_of(label) is not None for label in labels)


def _hashed(value: Any, feature: Feature, hashes: tuple[int, ...]) -> float | None:
    """Return the code of a text by its hash; whole numbers are texts, as they are to CatBoost."""
    text = value
    if not isinstance(value, str):
        number = number_of(value)
        if number is None or not number.is_integer():
            return None
        text = f"{number:.0f}"
    for word in (text, text.strip()):
        if (found := category_hash(word)) in hashes:
            return hashes.index(found)
    return dict(zip(feature.labels or (), feature.categories or (), strict=False)).get(
        text, feature.other
    )


def number_of(value: Any) -> float | None:
    """Return the number a value stands for; NaN for a missing one, None for what is no number."""
    if isinstance(value, int | float | np.number | np.bool_ | Decimal):
        try:
            return float(value)
        except OverflowError:  # of an integer: as far as any threshold goes, it is infinite
            return math.inf if value > 0 else -math.inf
    text = str(value).strip().lower()
    if text in MISSING_WORDS:
        return math.nan
    if text in _TRUTH_WORDS:
        return _TRUTH_WORDS[text]
    try:
        return plain_float(text) if isinstance(value, str) else None
    except ValueError:
        return None
