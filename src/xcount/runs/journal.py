"""An append-only journal of results: one JSON object per line, safe against a crash at any moment.

Each line is flushed to disk (``fsync``) as soon as its count is finished, so a killed run loses at
most the counts that were still running. A crash can leave one unfinished last line; opening the
journal again cuts it off. There are two kinds of lines::

    {"kind": "run", ...}                          the command and the plan of the following lines
    {"kind": "result", "key": "...", ...}         one finished count

One process at a time writes to a journal (an advisory lock on the file); anyone may read it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from xcount.errors import JournalError
from xcount.model.loaders import kinds
from xcount.support.numerals import from_json, to_json

Record = Mapping[str, Any]

Read = Callable[[Record], Any]
"""Turns a record into an object, or raises a :class:`LineError`."""


class LineError(ValueError):
    """A record that no run wrote; the message continues ``line 3``."""


class Journal:
    """A journal that is open for appending, locked against other writers.

    Example:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "results.jsonl"
        >>> with Journal(path) as journal:
        ...     journal.append({"kind": "run"})
        >>> read_journal(path)
        ({'kind': 'run'},)
    """

    def __init__(
        self, path: str | os.PathLike[str], *, resume: bool = False, read: Read = dict
    ) -> None:
        """Open or create the journal.

        Args:
            path: the file, by convention ``*.jsonl``.
            resume: whether to continue a journal that already has lines.
            read: turns each of those lines into an object.
        """
        self.path = Path(path)
        self._descriptor = _open(self.path)
        try:
            _lock(self._descriptor, self.path)
            lines, end = _parse(self._read(), self.path, read)
            if lines and not resume:
                raise JournalError(
                    f"{self.path} already holds {len(lines)} lines; "
                    "continue it with --resume, or name another file"
                )
            self.lines = lines
            self._end = self._repair(end)
        except BaseException:
            os.close(self._descriptor)
            raise

    def append(self, *records: Record) -> None:
        """Write records and wait until they are on the disk."""
        if not records:
            return
        lines = b"".join(to_json(record).encode() + b"\n" for record in records)
        try:
            _write_all(self._descriptor, lines)
            os.fsync(self._descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._end)
            raise JournalError(
                f"cannot write to {self.path}: {error.strerror}; all earlier results are safe in "
                "it: make room or change its permissions, then continue with --resume"
            ) from error
        self._end += len(lines)

    def close(self) -> None:
        """Release the file and its lock."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _read(self) -> bytes:
        with os.fdopen(os.dup(self._descriptor), "rb") as file:
            file.seek(0)
            return file.read()

    def _repair(self, end: int) -> int:
        """Cut off an unfinished line after ``end``, and terminate the last whole line."""
        try:
            os.ftruncate(self._descriptor, end)
            if end and os.pread(self._descriptor, 1, end - 1) != b"\n":
                _write_all(self._descriptor, b"\n")
                end += 1
            os.fsync(self._descriptor)
        except OSError as error:
            raise JournalError(f"cannot write to {self.path}: {error.strerror}") from error
        return end


def read_journal(path: str | os.PathLike[str], read: Read = dict) -> tuple[Any, ...]:
    """Return the content of a journal's whole lines, without locking or repairing it."""
    _refuse_devices(Path(path))
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise JournalError(f"cannot read {path}: {error.strerror}") from error
    return _parse(data, Path(path), read)[0]


def _refuse_devices(path: Path) -> None:
    """Reject a path that is not a regular file: a device may never end."""
    if path.is_dir():
        expected = kinds.JOURNAL.expected
        raise JournalError(f"{path}: is a directory, expected {expected}; name a file in it")
    if path.exists() and not path.is_file():
        raise JournalError(f"{path} is not a regular file; name one for the journal")


def _open(path: Path) -> int:
    _refuse_devices(path)
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise JournalError(
            f"cannot open the journal {path} for writing: {error.strerror}; "
            "name a file in a folder that exists and that you may write to"
        ) from error


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise JournalError(
            f"{path} is in use by another run; wait for it to end, or name another file"
        ) from None
    except OSError as error:
        raise JournalError(f"cannot lock {path}: {error.strerror}; name a local file") from error


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _parse(data: bytes, path: Path, read: Read) -> tuple[tuple[Any, ...], int]:
    """Return the content of the lines, and where the last whole one ends.

    Only the last line may be unfinished: a crash cut short its append. Damage anywhere else is an
    error, and is not repaired.
    """
    other = kinds.mistaken(path, data, kinds.JOURNAL) if data.strip() else None
    if other is not None:
        raise JournalError(other)
    found: list[Any] = []
    end = 0
    lines = data.split(b"\n")
    last = len(lines) - 1 if lines[-1] else len(lines) - 2
    for number, line in enumerate(lines[: last + 1]):
        record = _record(line)
        if record is not None:
            found.append(_line(record, read, f"line {number + 1} of {path}"))
            end = min(end + len(line) + 1, len(data))
        elif line.strip() == b"" and number != last:
            end += len(line) + 1
        elif number != last or not _looks_torn(line, data.endswith(b"\n"), bool(found)):
            if not any(map(_record, lines)):
                raise JournalError(f"{path} is not {kinds.JOURNAL.expected}; name one of those")
            raise JournalError(
                f"line {number + 1} of {path} is not a journal record; "
                "restore the file from a copy, or remove that line"
            )
    return tuple(found), end


def _line(record: Record, read: Read, where: str) -> Any:
    try:
        return read(record)
    except LineError as error:
        raise JournalError(
            f"{where} {error}; restore the file from a copy, or remove that line"
        ) from error


def _record(line: bytes) -> Record | None:
    try:
        record = from_json(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and "kind" in record else None


def _looks_torn(line: bytes, is_ended: bool, is_journal: bool) -> bool:
    """Return whether a line is an unfinished record, rather than damage or another kind of file."""
    if not line.strip(b"\0 \r"):
        return True
    start = b'{"kind"'
    return not is_ended and (is_journal or line[: len(start)] == start[: len(line)])
