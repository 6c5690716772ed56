"""Data tables -> inputs in the order of a model's features.

A table is a CSV, Parquet or Arrow file, a pandas, polars or pyarrow table, a mapping of columns, or
a numpy array. Columns are matched by name; a table without names (an array, a CSV file whose first
line is numbers, unless these are the model's names) is matched by position. Columns that the model
does not know are left out and listed. Text of a categorical feature is mapped through the labels
that the model stores; a text that is none of them is its category of all others, or missing, if the
model takes it for that. Values that have no meaning to the model are an error, or leave out their
rows. So does a lack of time.

The native core reads CSV block by block (gzip, too, and both within the limits of model files):
different texts, and for each row which of them it has; what a text means is decided in Python, once
for each text. Parquet and Arrow need pyarrow.
"""

from __future__ import annotations

import codecs
import hashlib
import io
import itertools
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.errors import MissingExtraError, ModelFormatError, TableError
from xcount.model.ensemble import Encoding, Ensemble, Feature, row_from_0
from xcount.model.group_columns import GroupColumn, named
from xcount.model.inputs import Column, Inputs
from xcount.model.loaders import files, kinds
from xcount.model.table_values import Values, listed, meaning_of, number_of, what_is_wrong
from xcount.support.nearest import nearest
from xcount.support.process import ended_by_signals

_SHOWN = 60
_ARROW_KINDS = {b"PAR1": "Parquet", b"ARROW1": "Arrow", b"FEA1": "Feather"}
"""How the files begin that pyarrow reads."""
NOT_READ = "no time was left to read it"


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of inputs for one model.

    Attributes:
        inputs: one row per line of the table, one column per feature of the model.
        source: where the table comes from, for messages and reports.
        other_columns: columns that the model does not know.
        sha256: hash of the file's bytes; None without a file.
        left_out: rows without meaning to the model, by the reason; NaN stands for their values.
        row_name: how messages name a row.
        groups: the columns that were asked for as groups.
    """

    inputs: Inputs
    source: str
    other_columns: tuple[str, ...] = ()
    sha256: str | None = None
    left_out: Mapping[str, Sequence[int]] = field(default_factory=dict)
    row_name: Callable[[int], str] = row_from_0
    groups: tuple[GroupColumn, ...] = ()

    @property
    def n_rows(self) -> int:
        return len(self.inputs)

    @property
    def rows(self) -> NDArray[np.float64]:
        """The inputs as a matrix; NaN is missing."""
        return self.inputs.matrix()

    @property
    def left_out_rows(self) -> list[int]:
        """The numbers of the rows that are left out."""
        return [row for rows in self.left_out.values() for row in rows]

    def missing_in(self, ensemble: Ensemble) -> frozenset[str]:
        """Return the names of the features that some row lacks, of those that are not left out."""
        kept = self.inputs.without(self.left_out_rows)
        both = zip(ensemble.feature_names, kept.columns, strict=True)
        return frozenset(name for name, column in both if np.isnan(column.distinct()).any())


@dataclass(frozen=True, eq=False)
class _Columns:
    """A table before it is matched: its columns, with names or without.

    Attributes:
        names: of the columns.
        values: the columns; None for those of a file that the model does not know.
        source: where the table comes from.
        row_name: how messages name a row.
        sha256: hash of the file's bytes.
        n_read: how many rows were read, of a file.
        n_unread: how many rows there was no time to read, behind the others.
    """

    names: tuple[str, ...] | None
    values: tuple[Any, ...]
    source: str
    row_name: Callable[[int], str] = row_from_0
    sha256: str | None = None
    n_read: int | None = None
    n_unread: int = 0

    @property
    def n_rows(self) -> int:
        """How many rows there are values of."""
        if self.n_read is not None:
            return self.n_read
        sizes = {len(column) for column in self.values}
        if len(sizes) > 1:
            raise TableError(f"the columns of {self.source} differ in length: {sorted(sizes)}")
        return sizes.pop() if sizes else 0


def read_table(
    data: Any,
    ensemble: Ensemble,
    *,
    leave_out: bool = False,
    is_over: Callable[[], bool] | None = None,
    n_threads: int = 0,
    groups: str | Iterable[str] = (),
) -> Table:
    """Return the rows of a table as the model takes them.

    Args:
        data: a path, a pandas/polars/pyarrow table, a mapping of columns, or a numpy array.
        ensemble: the model.
        leave_out: whether to leave out rows with values that their features cannot hold, unless a
            column has no others.
        is_over: tells whether to stop; rows of a CSV file that are not read by then are left out.
        n_threads: to read a CSV file with; 0 for all cores.
        groups: columns that put rows into groups, which the model need not have.

    Raises:
        TableError: a column is missing, or holds what its feature cannot; the message names it.

    Example:
        >>> from xcount.model.examples import figure_1
        >>> read_table({"f1": [1, 2], "f0": [3, 4], "y": [0, 1]}, figure_1()).rows.tolist()
        [[3.0, 1.0], [4.0, 2.0]]
    """
    if ensemble.encoding is not None:  # tables have the columns that the model itself takes
        encoding = ensemble.encoding
        features = {feature.name: feature for feature in ensemble.features}
        chosen = named(groups, features.__contains__)
        table = read_table(
            data,
            encoding.source,
            leave_out=leave_out,
            is_over=is_over,
            n_threads=n_threads,
            groups=[name for name in chosen if name not in features],
        )
        table = _by_feature(table, encoding, leave_out)
        return replace(table, groups=_with_features(chosen, table, ensemble))
    with ended_by_signals():
        n_workers = n_threads or os.cpu_count() or 1
        reading = _Reading(ensemble, is_over or (lambda: False), n_workers, groups)
        columns = _columns_of(data, reading)
        positions, others = _matched(columns, ensemble)
        n_rows, strange = columns.n_rows, _Strange(columns, leave_out)
        if not n_rows:
            raise TableError(f"{columns.source} has no rows")
        found = [
            strange.known(feature, columns.values[position])
            for feature, position in zip(ensemble.features, positions, strict=True)
        ]
    n_all = n_rows + columns.n_unread
    inputs = Inputs(tuple(column.padded(n_all) for column in found), n_all)
    left_out = strange.by_reason()
    if columns.n_unread:
        left_out[NOT_READ] = range(n_rows, n_all)
    chosen = _chosen_groups(columns, ensemble, groups)
    own = _group_columns(columns, [name for name in chosen if name in others], n_all)
    table = Table(inputs, columns.source, others, columns.sha256, left_out, columns.row_name, own)
    return replace(table, groups=_with_features(chosen, table, ensemble))


def _group_columns(columns: _Columns, names: Sequence[str], n_rows: int) -> tuple[GroupColumn, ...]:
    """Return the groups by columns that are no features."""
    at = {name: place for place, name in enumerate(columns.names or ())}
    return tuple(
        GroupColumn.of_texts(name, columns.values[at[name]], columns.source).padded(n_rows)
        for name in names
    )


def _with_features(
    chosen: Sequence[str], table: Table, ensemble: Ensemble
) -> tuple[GroupColumn, ...]:
    """Return the groups in the order asked for: those of the table, and those by a feature."""
    known = {column.name: column for column in table.groups}
    for feature, column in zip(ensemble.features, table.inputs.columns, strict=True):
        if feature.name in chosen and feature.name not in known:
            known[feature.name] = GroupColumn.of_feature(feature, column, table.source)
    return tuple(known[name] for name in chosen)


def _chosen_groups(
    columns: _Columns, ensemble: Ensemble, groups: str | Iterable[str]
) -> tuple[str, ...]:
    """Return the names of the columns that are groups; reject unknown ones."""
    known, source = columns.names or ensemble.feature_names, columns.source
    chosen = named(groups, known.__contains__)
    for name in chosen:
        if name not in known:
            near = nearest(name, known, cutoff=0.6)
            hint = f"did you mean {near!r}?" if near else f"it has {listed(known)}"
            raise TableError(f"{source} has no column {name!r} to group by; {hint}")
        if known.count(name) > 1:
            raise TableError(f"{source} has column {name!r} more than once")
    return chosen


def column_names(data: Any) -> tuple[str, ...]:
    """Return the names of a table's columns; none if it has no names, or cannot be read."""
    nothing = _Reading(Ensemble((), ()), lambda: True, 1)
    try:
        return _columns_of(data, nothing).names or ()
    except (TableError, MissingExtraError):
        return ()


def _by_feature(table: Table, encoding: Encoding, leave_out: bool) -> Table:
    """Return a table of a model's own columns by feature.

    Raises:
        TableError: rows have no value of a feature, and are not to be left out; or all of them.
    """
    broken = encoding.broken_groups(table.inputs, table.left_out_rows)
    reason_of: dict[int, str] = {}
    for group in broken:
        if not leave_out or len(group.rows) == group.n_asked:
            raise TableError(group.message(table.source, table.row_name(group.rows[0])))
        for row in group.rows:
            reason_of.setdefault(row, group.reason)
    left_out = {**table.left_out, **_by_reason(reason_of)}
    return replace(table, inputs=encoding.features_of(table.inputs), left_out=left_out)


def _by_reason(reason_of: Mapping[int, str]) -> dict[str, Sequence[int]]:
    """Return the rows of each reason."""
    found: dict[str, list[int]] = {}
    for row, reason in sorted(reason_of.items()):
        found.setdefault(reason, []).append(row)
    return {reason: tuple(rows) for reason, rows in found.items()}


@dataclass(frozen=True, slots=True)
class _Reading:
    """For which model a file is read, until when, on how many threads, and by which groups."""

    ensemble: Ensemble
    is_over: Callable[[], bool]
    n_threads: int
    groups: str | Iterable[str] = ()


class _Strange:
    """The values of a table that have no meaning to the model: an error, or rows left out."""

    def __init__(self, columns: _Columns, leave_out: bool) -> None:
        self._columns, self._leave_out = columns, leave_out
        self._reason_of: dict[int, str] = {}

    def known(self, feature: Feature, column: Any) -> Column:
        """Return the numbers of a column; raise if rows have none, or leave these rows out.

        If no row of the column has a meaning, it only raises.
        """
        is_read = isinstance(column, _core.CsvColumn)
        found = meaning_of(feature, column if is_read else _values(feature, column))
        rows = found.strange_rows
        if not len(rows):
            return found.column
        if not self._leave_out or len(rows) == len(found.column):
            raise TableError(
                f"{self._columns.source}, column {feature.name!r}, "
                f"{self._columns.row_name(int(rows[0]))}: {found.first!r} is "
                f"{what_is_wrong(feature, found.first)}"
            )
        reason = "an unknown category" if feature.is_categorical else "no number"
        for row in rows.tolist():
            self._reason_of.setdefault(row, f"{feature.name} is {reason}")
        return found.column

    def by_reason(self) -> dict[str, Sequence[int]]:
        """Return the rows left out, by the first reason of each."""
        return _by_reason(self._reason_of)


def _columns_of(data: Any, reading: _Reading) -> _Columns:
    if isinstance(data, str | os.PathLike):
        return _file_columns(Path(data), reading)
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
        f"cannot read a table from {type(data).__module__}.{type(data).__qualname__}; give a CSV, "
        "Parquet or Arrow file, a pandas, polars or pyarrow table, a mapping of columns or a numpy "
        "array"
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


def _file_columns(path: Path, reading: _Reading) -> _Columns:
    try:
        if not _is_stream(path) and (kind := _arrow_kind(_start_of(path))):  # of any size
            with path.open("rb") as file:
                return _arrow_columns(file, str(path), kind)
        reader = files.BlockReader(path, expected=kinds.TABLE.expected)
        blocks = reader.blocks()  # once: a pipe gives them once
        first = next(blocks, b"")
        if kind := _arrow_kind(first):
            return _arrow_columns(io.BytesIO(first + b"".join(blocks)), str(path), kind)
        other = kinds.mistaken(path, first, kinds.TABLE)
        if other is not None:
            raise TableError(other)
        columns = _csv_columns(_text_blocks(first, blocks), str(path), reading)
        return replace(columns, sha256=reader.sha256)
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


def _start_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(max(map(len, _ARROW_KINDS)))


def _arrow_kind(start: bytes) -> str | None:
    """Return which of pyarrow's formats a file begins with, if any."""
    return next((kind for mark, kind in _ARROW_KINDS.items() if start.startswith(mark)), None)


def _arrow_columns(file: io.BufferedReader | io.BytesIO, source: str, kind: str) -> _Columns:
    try:
        from pyarrow import ArrowException, feather, parquet  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtraError(
            f"reading {source} needs pyarrow; install it with: pip install 'xcount[parquet]'"
        ) from None
    sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    try:
        table = (parquet if kind == "Parquet" else feather).read_table(file)
    except (ArrowException, OSError) as error:
        raise TableError(f"{source} is no readable {kind} file: {error}") from None
    return _Columns(tuple(table.column_names), tuple(table.columns), source, sha256=sha256)


def _text_blocks(first: bytes, others: Iterator[bytes]) -> Iterator[bytes]:
    """Yield blocks of text in UTF-8, without the mark that some editors begin a file with."""
    decoder, n_before = codecs.getincrementaldecoder("utf-8")(), 0
    for block in chain([first.removeprefix(codecs.BOM_UTF8)], others, [b""]):
        n_held = len(decoder.getstate()[0])
        try:
            if n_held or not block.isascii():
                decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            error.start += n_before - n_held
            raise
        n_before += len(block)
        if block:
            yield block


def _csv_columns(blocks: Iterator[bytes], source: str, reading: _Reading) -> _Columns:
    """Return the columns; the first line is names if it has a word, or is the model's names."""
    feature_names = reading.ensemble.feature_names
    start, head = _first_record(blocks, source)
    words = _head(head.fields, feature_names)
    _check_separator(words, source, feature_names)
    has_names = any(number_of(word) is None for word in words) or words == [*feature_names]
    if not has_names and {*feature_names} <= {*words}:
        raise TableError(
            f"{source}: its first line may be the model's names in another order, or a row of "
            "values; put the columns in the model's order, or the line "
            f"{','.join(feature_names)[:_SHOWN]} in front of the values"
        )
    columns = _Columns(tuple(words) if has_names else None, (None,) * len(words), source)
    positions, _ = _matched(columns, reading.ensemble)
    roles = [_core.ColumnRole.IGNORED] * len(words)
    for position, feature in zip(positions, reading.ensemble.features, strict=True):
        is_text = feature.is_categorical
        roles[position] = _core.ColumnRole.TEXTS if is_text else _core.ColumnRole.NUMBERS
    for name in _chosen_groups(columns, reading.ensemble, reading.groups):
        if roles[words.index(name)] is _core.ColumnRole.IGNORED:
            roles[words.index(name)] = _core.ColumnRole.TEXTS
    reader = _core.TableReader(roles)
    row_name = partial(_row_of_csv, reader, head.n_lines if has_names else 0)
    body = chain([start[head.end :] if has_names else start], blocks)
    n_read = _read_rows(reader, body, reading)
    if reader.fault is not None:
        raise TableError(_fault_text(*reader.fault, source, row_name, len(words)))
    places = itertools.count()
    values = [
        None if role is _core.ColumnRole.IGNORED else reader.column(next(places)) for role in roles
    ]
    n_unread = reader.n_rows - n_read
    return replace(
        columns, values=tuple(values), row_name=row_name, n_read=n_read, n_unread=n_unread
    )


def _first_record(blocks: Iterator[bytes], source: str) -> tuple[bytes, _core.CsvHead]:
    """Return the first record that is no blank line, and the text that was read to its end."""
    start = b""
    for block in chain(blocks, [b""]):
        start += block
        head = _core.csv_head(start, is_last=not block)
        if head.fault:
            line = f"line {head.n_lines}"
            raise TableError(f"{source} is no readable CSV file: {line}: {head.fault}")
        if head.fields:
            return start, head
    raise TableError(f"{source}: the file is empty, expected {kinds.TABLE.expected}")


def _read_rows(reader: _core.TableReader, blocks: Iterator[bytes], reading: _Reading) -> int:
    """Read the records of a file; return how many there was time for. The rest is counted."""
    n_read, is_over = 0, False
    for block in chain(blocks, [b""]):
        reader.feed(block, not block, reading.n_threads, is_over)
        if not is_over:
            n_read, is_over = reader.n_rows, reading.is_over()
    return n_read


def _fault_text(
    fault: str,
    row: int,
    n_fields: int,
    source: str,
    row_name: Callable[[int], str],
    n_expected: int,
) -> str:
    """Say what is wrong with a record."""
    if fault:
        return f"{source} is no readable CSV file: {row_name(row)}: {fault}"
    return f"{source}, {row_name(row)}: {n_fields} fields, where the first line has {n_expected}"


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


def _row_of_csv(reader: _core.TableReader, n_head_lines: int, index: int) -> str:
    """Return how messages name a row of a CSV file: with the line on which it ends."""
    line = n_head_lines + index + 1 + reader.extra_lines(index)
    return f"row {index} (counted from 0; line {line} of the file)"


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
    return f"column {listed(names)}" if len(names) == 1 else f"columns {listed(names)}"


def _values(feature: Feature, column: Any) -> Values:
    """Return a column of a table in memory as an array of numbers, or Python's values."""
    if isinstance(column, list | tuple):
        return Values(column)
    package = type(column).__module__.partition(".")[0]
    if package == "pandas" and hasattr(column, "cat") and not feature.labels:
        # Libraries that keep no labels were trained on the codes themselves; -1 is missing.
        codes = column.cat.codes.to_numpy().astype(np.float64)
        return Values(np.where(codes < 0, np.nan, codes))
    array = column.to_numpy() if hasattr(column, "to_numpy") else column
    if isinstance(array, np.ndarray) and array.dtype.kind in "fiub":
        return Values.different(array) if feature.is_categorical else Values(array)
    for method in ("to_list", "to_pylist", "tolist"):
        if hasattr(column, method):
            return Values(cast("list[Any]", getattr(column, method)()))
    return Values(list(column))
