"""Data tables -> rows in the order of a model's features.

A table is a CSV or Parquet file, a pandas, polars or pyarrow table, a mapping of columns, or a
numpy array. Columns are matched by name; a table without names (an array, a CSV file whose first
line is numbers, unless these are the model's names) is matched by position. Columns that the model
does not know are left out and listed. Text of a categorical feature is mapped through the labels
that the model stores; a text that is none of them is its category of all others, or missing, if the
model takes it for that. Values that have no meaning to the model are an error, or leave out their
rows.

CSV needs nothing but Python; gzip is read, too. Both are read within the limits of model files.
Parquet needs pyarrow.
"""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import math
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from xcount.errors import MissingExtraError, ModelFormatError, TableError
from xcount.model.ensemble import Encoding, Ensemble, Feature, row_from_0
from xcount.model.loaders import files, kinds
from xcount.model.loaders.catboost_hash import category_hash
from xcount.support.nearest import nearest
from xcount.support.parse import plain_float
from xcount.support.process import ended_by_signals

MISSING_WORDS = frozenset({"", "na", "n/a", "nan", "null", "none", "<na>"})
_TRUTH_WORDS = {"true": 1.0, "false": 0.0}
_LISTED = 5
_SHOWN = 60
_PARQUET = b"PAR1"


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of inputs for one model.

    Attributes:
        rows: one row per line of the table, one column per feature of the model; NaN is missing.
        source: where the table comes from, for messages and reports.
        other_columns: columns that the model does not know.
        sha256: hash of the file's bytes; None without a file.
        left_out: rows without meaning to the model, by the reason; NaN stands for their values.
    """

    rows: NDArray[np.float64]
    source: str
    other_columns: tuple[str, ...] = ()
    sha256: str | None = None
    left_out: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    row_name: Callable[[int], str] = row_from_0
    """How messages name a row."""

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    @property
    def left_out_rows(self) -> list[int]:
        """The numbers of the rows that are left out."""
        return [row for rows in self.left_out.values() for row in rows]

    def missing_in(self, ensemble: Ensemble) -> frozenset[str]:
        """Return the names of the features that some row lacks, of those that are not left out."""
        kept = np.delete(self.rows, self.left_out_rows, axis=0)
        features = np.flatnonzero(np.isnan(kept).any(axis=0))
        return frozenset(ensemble.feature_names[feature] for feature in features)


@dataclass(frozen=True, eq=False)
class _Columns:
    """A table before it is matched: its columns, with names or without."""

    names: tuple[str, ...] | None
    values: tuple[Any, ...]
    source: str
    row_name: Callable[[int], str] = row_from_0
    """How messages name a row."""
    sha256: str | None = None


def read_table(data: Any, ensemble: Ensemble, *, leave_out: bool = False) -> Table:
    """Return the rows of a table as the model takes them.

    Args:
        data: a path, a pandas/polars/pyarrow table, a mapping of columns, or a numpy array.
        ensemble: the model.
        leave_out: whether to leave out rows with values that their features cannot hold, unless a
            column has no others.

    Raises:
        TableError: a column is missing, or holds what its feature cannot; the message names it.

    Example:
        >>> from xcount.model.examples import figure_1
        >>> read_table({"f1": [1, 2], "f0": [3, 4], "y": [0, 1]}, figure_1()).rows.tolist()
        [[3.0, 1.0], [4.0, 2.0]]
    """
    if ensemble.encoding is not None:  # tables have the columns that the model itself takes
        table = read_table(data, ensemble.encoding.source, leave_out=leave_out)
        return replace(table, rows=_encoded(table, ensemble.encoding, ensemble.n_features))
    with ended_by_signals():
        columns = _columns_of(data, ensemble.feature_names)
        positions, others = _matched(columns, ensemble)
        rows = np.empty((_n_rows(columns), ensemble.n_features))
        strange = _Strange(columns, leave_out)
        for index, feature in enumerate(ensemble.features):
            rows[:, index] = _numbers(feature, columns.values[positions[index]], strange)
    if not len(rows):
        raise TableError(f"{columns.source} has no rows")
    left_out = strange.by_reason()
    return Table(rows, columns.source, others, columns.sha256, left_out, columns.row_name)


def _encoded(table: Table, encoding: Encoding, n_features: int) -> NDArray[np.float64]:
    """Return a table's rows by feature; NaN for rows that are left out."""
    kept = np.delete(np.arange(table.n_rows), table.left_out_rows)
    rows = np.full((table.n_rows, n_features), np.nan)
    rows[kept] = encoding.features_of(
        table.rows[kept], table.source, lambda index: table.row_name(int(kept[index]))
    )
    return rows


class _Strange:
    """The values of a table that have no meaning to the model: an error, or rows left out."""

    def __init__(self, columns: _Columns, leave_out: bool) -> None:
        self._columns, self._leave_out = columns, leave_out
        self._reason_of: dict[int, str] = {}

    def note(self, feature: Feature, found: Mapping[int, Any], n_values: int, what: str) -> None:
        """Raise, or leave out the rows; only raise if no row of the column has a meaning.

        Args:
            feature: of the column.
            found: row -> value.
            n_values: how many values the column has.
            what: what is wrong, after the value itself.
        """
        if not found:
            return
        index, value = next(iter(found.items()))
        if not self._leave_out or len(found) == n_values:
            raise TableError(
                f"{self._columns.source}, column {feature.name!r}, "
                f"{self._columns.row_name(index)}: {value!r} is {what}"
            )
        reason = "an unknown category" if feature.is_categorical else "no number"
        for row in found:
            self._reason_of.setdefault(row, f"{feature.name} is {reason}")

    def by_reason(self) -> dict[str, tuple[int, ...]]:
        """Return the rows left out, by the first reason of each."""
        found: dict[str, list[int]] = {}
        for row, reason in sorted(self._reason_of.items()):
            found.setdefault(reason, []).append(row)
        return {reason: tuple(rows) for reason, rows in found.items()}


def _columns_of(data: Any, feature_names: Sequence[str]) -> _Columns:
    if isinstance(data, str | os.PathLike):
        return _file_columns(Path(data), feature_names)
    package = type(data).__module__.partition(".")[0]
    if package in ("pandas", "polars", "pyarrow") and hasattr(type(data), "columns"):
        return _frame_columns(data, package)
    if isinstance(data, Mapping):
        for name, column in data.items():
            if isinstance(column, str) or not hasattr(column, "__len__"):
                raise TableError(f"column {name!r} is {column!r}, not a list of values")
        names = tuple(str(name) for name in data)
        return _Columns(names, tuple(data.values()), "the table")
    if isinstance(data, np.ndarray):
        return _array_columns(data)
    raise TableError(
        f"cannot read a table from {type(data).__module__}.{type(data).__qualname__}; give a CSV "
        "or Parquet file, a pandas, polars or pyarrow table, a mapping of columns or a numpy array"
    )


def _array_columns(data: NDArray[Any]) -> _Columns:
    if data.dtype.names is not None:
        values = tuple(data[name] for name in data.dtype.names)
        return _Columns(tuple(data.dtype.names), values, "the array")
    if data.ndim != 2:
        raise TableError(f"an array of rows has two dimensions, this one has {data.ndim}")
    return _Columns(None, tuple(data.T), "the array")


def _frame_columns(frame: Any, package: str) -> _Columns:
    if package == "pyarrow":
        return _Columns(tuple(frame.column_names), tuple(frame.columns), "the pyarrow table")
    if package == "polars" and not hasattr(frame, "get_columns"):
        frame = frame.collect()
    names = tuple(str(name) for name in frame.columns)
    if package == "polars":
        return _Columns(names, tuple(frame.get_columns()), "the polars table")
    values = tuple(frame.iloc[:, i] for i in range(len(names)))
    return _Columns(names, values, "the pandas table")


def _file_columns(path: Path, feature_names: Sequence[str]) -> _Columns:
    try:
        if not _is_stream(path) and _starts_as_parquet(path):  # of any size
            with path.open("rb") as file:
                return _parquet_columns(file, str(path))
        whole = files.read(path, expected=kinds.TABLE.expected)  # once: a pipe gives it once
        if whole.data.startswith(_PARQUET):
            return _parquet_columns(io.BytesIO(whole.data), str(path))
        other = kinds.mistaken(path, whole.data, kinds.TABLE)
        if other is not None:
            raise TableError(other)
        columns = _csv_columns(whole.data.decode("utf-8-sig"), str(path), feature_names)
        return replace(columns, sha256=whole.sha256)
    except OSError as error:
        raise TableError(kinds.unreadable(path, error, kinds.TABLE)) from error
    except ModelFormatError as error:
        raise TableError(str(error)) from None
    except UnicodeDecodeError as error:
        raise TableError(
            f"{path} is neither Parquet nor CSV text in UTF-8 (byte {error.start}: {error.reason})"
        ) from None


def _is_stream(path: Path) -> bool:
    """Tell whether a file is a pipe or a device, which can be read once."""
    mode = path.stat().st_mode
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _starts_as_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_PARQUET)) == _PARQUET


def _parquet_columns(file: io.BufferedReader | io.BytesIO, source: str) -> _Columns:
    try:
        from pyarrow import ArrowException, parquet  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtraError(
            f"reading {source} needs pyarrow; install it with: pip install 'xcount[parquet]'"
        ) from None
    sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    try:
        table = parquet.read_table(file)
    except ArrowException as error:
        raise TableError(f"{source} is no readable Parquet file: {error}") from None
    return _Columns(tuple(table.column_names), tuple(table.columns), source, sha256=sha256)


def _csv_columns(text: str, source: str, feature_names: Sequence[str]) -> _Columns:
    """Return the columns; the first line is names if it has a word, or is the model's names."""
    try:
        lines = [line for line in csv.reader(io.StringIO(text, newline=""), strict=True) if line]
    except csv.Error as error:
        raise TableError(f"{source} is no readable CSV file: {error}") from None
    if not lines:
        raise TableError(f"{source} is empty")
    head = _head(lines[0], feature_names)
    _check_separator(head, source, feature_names)
    has_names = any(_number(word) is None for word in head) or head == [*feature_names]
    if not has_names and {*feature_names} <= {*head}:
        raise TableError(
            f"{source}: its first line may be the model's names in another order, or a row of "
            "values; put the columns in the model's order, or the line "
            f"{','.join(feature_names)[:_SHOWN]} in front of the values"
        )
    body = lines[1:] if has_names else lines
    row_name = partial(_row_of_csv, text, int(has_names))
    for number, line in enumerate(body):
        if len(line) != len(head):
            raise TableError(
                f"{source}, {row_name(number)}: {len(line)} fields, where the first line has "
                f"{len(head)}"
            )
    values = tuple(list(column) for column in zip(*body, strict=True)) or ([],) * len(head)
    return _Columns(tuple(head) if has_names else None, values, source, row_name=row_name)


def _head(words: Sequence[str], feature_names: Sequence[str]) -> list[str]:
    """Return the first line without spaces around its words, but for those of the model's names."""
    known = {*feature_names}
    return [word if word in known else word.strip() for word in words]


def _check_separator(head: Sequence[str], source: str, feature_names: Sequence[str]) -> None:
    """Refuse a file whose values are separated by something else than commas."""
    if len(head) > 1 or len(feature_names) < 2:
        return
    for separator, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars")):
        if separator in head[0]:
            raise TableError(
                f"{source}: the values of its first line are separated by {name}; XCount reads "
                "values separated by commas: save it with commas (pandas: to_csv(..., sep=','))"
            )


def _row_of_csv(text: str, n_heads: int, index: int) -> str:
    """Return how messages name a row of a CSV file: with the line on which it ends."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows = (reader.line_num for fields in reader if fields)
    line = next(itertools.islice(rows, index + n_heads, None))
    return f"row {index} (counted from 0; line {line} of the file)"


def _n_rows(columns: _Columns) -> int:
    sizes = {len(column) for column in columns.values}
    if len(sizes) > 1:
        raise TableError(f"the columns of {columns.source} differ in length: {sorted(sizes)}")
    return sizes.pop() if sizes else 0


def _matched(columns: _Columns, ensemble: Ensemble) -> tuple[list[int], tuple[str, ...]]:
    """Return for each feature the position of its column, and the names nobody asked for."""
    wanted = ensemble.feature_names
    if columns.names is None:
        if len(columns.values) != len(wanted):
            raise TableError(
                f"{columns.source} has {len(columns.values)} columns without names, "
                f"the model has {len(wanted)} features"
            )
        return list(range(len(wanted))), ()
    names = columns.names
    doubled = sorted({name for name in names if names.count(name) > 1} & set(wanted))
    if doubled:
        raise TableError(f"{columns.source} has {_some(doubled)} more than once")
    at = {name: position for position, name in enumerate(names)}
    absent = [name for name in wanted if name not in at]
    unknown = tuple(name for name in names if name not in set(wanted))
    if absent:
        raise TableError(_absence(columns.source, absent, unknown))
    return [at[name] for name in wanted], unknown


def _absence(source: str, absent: Sequence[str], unknown: Sequence[str]) -> str:
    message = f"{source} lacks {_some(absent)}, which the model needs"
    if unknown:
        message += f"; it has the unknown {_some(unknown)}"
    for name in absent:
        near = nearest(name, unknown, cutoff=0.7)
        if near is not None:
            return f"{message} (is {near!r} meant to be {name!r}?)"
    return message


def _some(names: Sequence[str]) -> str:
    listed = ", ".join(repr(name) for name in names[:_LISTED])
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"column {listed}" if len(names) == 1 else f"columns {listed}{more}"


def _numbers(feature: Feature, column: Any, strange: _Strange) -> NDArray[np.float64]:
    """Return a column as numbers; of a categorical feature, as category codes."""
    values = _plain(feature, column)
    if feature.is_categorical:
        return _codes(feature, values, strange)
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        return values.astype(np.float64)
    try:
        # Not by numpy's own reading of text, which loses an interrupt that comes in its middle.
        return np.fromiter(map(float, values), np.float64, len(values))
    except (ValueError, TypeError, OverflowError):
        return _numbers_one_by_one(feature, values, strange)


def _numbers_one_by_one(
    feature: Feature, values: Sequence[Any] | NDArray[Any], strange: _Strange
) -> NDArray[np.float64]:
    numbers, found = np.full(len(values), np.nan), dict[int, Any]()
    for index, value in enumerate(values):
        number = _number(value)
        if number is None:
            found[index] = value
        else:
            numbers[index] = number
    kind = next((_kind(value) for value in found.values()), "")
    what = f"{kind}, the model takes numbers; encode it as for the training"
    strange.note(feature, found, len(values), what)
    return numbers


def _plain(feature: Feature, column: Any) -> Sequence[Any] | NDArray[Any]:
    """Return the column as an array of numbers, or a list of Python values."""
    if isinstance(column, list | tuple):
        return column
    package = type(column).__module__.partition(".")[0]
    if package == "pandas" and hasattr(column, "cat") and not feature.labels:
        # Libraries that keep no labels were trained on the codes themselves; -1 is missing.
        codes = column.cat.codes.to_numpy().astype(np.float64)
        return np.where(codes < 0, np.nan, codes)
    array = column.to_numpy() if hasattr(column, "to_numpy") else column
    if isinstance(array, np.ndarray) and array.dtype.kind in "fiub":
        return array
    for method in ("to_list", "to_pylist", "tolist"):
        if hasattr(column, method):
            return cast("list[Any]", getattr(column, method)())
    return list(column)


def _codes(
    feature: Feature, values: Sequence[Any] | NDArray[Any], strange: _Strange
) -> NDArray[np.float64]:
    """Map labels to category codes; numbers are codes already, unless they are labels."""
    categories = feature.categories or ()
    labels: dict[str, float] = dict.fromkeys(feature.missing_labels, math.nan)
    labels |= zip(feature.labels or (), categories, strict=False)
    codes, found = np.full(len(values), np.nan), dict[int, Any]()
    for index, value in enumerate(values):
        code = _code(value, labels, feature)
        if code is None:
            found[index] = value
        else:
            codes[index] = code
    known = list(feature.labels or ()) or [str(code) for code in categories]
    what = f"no category of the model; it knows {_some(known).partition(' ')[2]}"
    strange.note(feature, found, len(values), what)
    return codes


def _code(value: Any, labels: Mapping[str, float], feature: Feature) -> float | None:
    """Return the code of one value; NaN where it is missing, None where it is unknown."""
    if feature.hashes is not None:
        return _hashed(value, feature, feature.hashes)
    text = str(value)
    truth = text.strip().capitalize() if text.strip().lower() in _TRUTH_WORDS else text
    for word in (text, text.strip(), truth):
        if word in labels:
            return float(labels[word])
    number = _number(value)
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
    return any(_number(label) is not None for label in labels)


def _hashed(value: Any, feature: Feature, hashes: tuple[int, ...]) -> float | None:
    """Return the code of a text by its hash; whole numbers are texts, as they are to CatBoost."""
    text = value
    if not isinstance(value, str):
        number = _number(value)
        if number is None or not number.is_integer():
            return None
        text = f"{number:.0f}"
    for word in (text, text.strip()):
        if (found := category_hash(word)) in hashes:
            return hashes.index(found)
    return dict(zip(feature.labels or (), feature.categories or (), strict=False)).get(
        text, feature.other
    )


def _number(value: Any) -> float | None:
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


def _kind(value: Any) -> str:
    return "text" if isinstance(value, str) else f"of type {type(value).__name__}"
