"""The affected rows of a table as a file: CSV, or Parquet by its ending."""

from __future__ import annotations

import math
import os
from typing import Any

from numpy.typing import NDArray

from xcount.answers.people.affected_table import AffectedTable
from xcount.errors import MissingExtraError
from xcount.report.spreadsheet import cell
from xcount.support.files import write_atomically

PARQUET_ENDINGS = (".parquet", ".pq")


def check_rows_file(path: str | os.PathLike[str]) -> None:
    """Reject a Parquet file that cannot be written, before anything is counted."""
    if not is_parquet(path):
        return
    try:
        import pyarrow  # type: ignore[import-untyped]  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            f"writing {os.fspath(path)} needs pyarrow; install it with: pip install "
            "'xcount[parquet]', or name a .csv file"
        ) from None


def write_rows(table: AffectedTable, path: str | os.PathLike[str]) -> None:
    """Write affected rows, whole or not at all."""
    write_atomically(path, parquet_of(table) if is_parquet(path) else csv_of(table))


def is_parquet(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file is to be Parquet."""
    return os.fspath(path).lower().endswith(PARQUET_ENDINGS)


def csv_of(table: AffectedTable) -> str:
    """Return a line per row; what is not known is empty.

    A text that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    columns = [_fields(column) for column in table.columns.values()]
    lines = map(",".join, zip(*columns, strict=True))
    return "\n".join([",".join(table.columns), *lines, ""])


def parquet_of(table: AffectedTable) -> bytes:
    """Return the bytes of a Parquet file."""
    import io

    import pyarrow
    from pyarrow import parquet

    buffer = io.BytesIO()
    kinds = {"i": pyarrow.int64(), "f": pyarrow.float64(), "O": pyarrow.string()}
    columns = {
        name: pyarrow.array(column, kinds[column.dtype.kind], from_pandas=True)
        for name, column in table.columns.items()
    }
    parquet.write_table(pyarrow.table(columns), buffer)
    return buffer.getvalue()


def _fields(column: NDArray[Any]) -> list[str]:
    """Return a column as fields of a CSV file."""
    if column.dtype.kind == "f":
        return ["" if math.isnan(number) else repr(number) for number in column.tolist()]
    if column.dtype.kind == "i":
        return list(map(str, column.tolist()))
    values = column.tolist()
    known = {value: _quoted(value) for value in set(values)}
    return [known[value] for value in values]


def _quoted(value: str | None) -> str:
    text = "" if value is None else str(cell(value))
    if any(sign in text for sign in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text
