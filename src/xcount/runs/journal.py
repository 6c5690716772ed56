"""An append-only journal of results: one JSON object per line, safe against a crash at any moment.

Each line is flushed to disk (``fsync``) as soon as its count is finished, so a killed run loses at
most the counts that were still running. A crash can leave one unfinished last line; opening the
journal again cuts it off. There are two kinds of lines::

    {"kind": "run", ..., "after": A, "check": C}             the command and its planned counts
    {"kind": "result", "key": K, ..., "after": A, "check": C}            one finished count

``check`` is the SHA-256 of the bytes of the line before it, and ``after`` is the ``check`` of the
previous line (null in the first). So a line that was edited does not match its own checksum, and a
line in front of which another one was removed, inserted or exchanged does not match its
predecessor's. Both are a :class:`DamagedLine`, which is never used; the lines after it are. A line
removed from the end leaves no trace: the journal is that of a run that was stopped earlier.

One process at a time writes to a journal (an advisory lock on the file); anyone may read it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from xcount.errors import JournalError
from xcount.model.loaders import kinds
from xcount.support.files import lock_file
from xcount.support.numerals import from_json, to_json

Record = Mapping[str, Any]

Read = Callable[[Record], Any]
"""Turns a record into an object, or raises a :class:`LineError`."""


_CHECK = re.compile(rb', "check": "([0-9a-f]{64})"\}\Z')
_CHECK_LENGTH = len(', "check": ""}') + 64
_BINARY = getattr(os, "O_BINARY", 0)  # Windows would translate line ends
_RESULT_START = b'{"kind": "result", '


class LineError(ValueError):
    """A record that no run wrote; the message continues ``line 3``."""


@dataclass(frozen=True, slots=True)
class DamagedLine:
    """A line that is not used, because it is not as a run wrote it.

    Attributes:
        number: its number, counted from 1.
        fault: what is wrong with it; continues ``line 3``.
        may_hide_run: whether it, or a line missing in front of it, may have been a run line.
    """

    number: int
    fault: str
    may_hide_run: bool


def damage(lines: Sequence[Any], path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return a note about the damaged lines of the journal at a path; none if there are none."""
    found = [line for line in lines if isinstance(line, DamagedLine)]
    if not found:
        return ()
    listed = [f"line {line.number} {line.fault}" for line in found[:_MOST_LISTED]]
    if len(found) > _MOST_LISTED:
        listed.append(f"{len(found) - _MOST_LISTED} more are damaged")
    used = "it is not used" if len(found) == 1 else "they are not used"
    return (f"{os.fspath(path)}: {', '.join(listed)}; {used}",)


_MOST_LISTED = 3


def sealed(record: Record, after: str | None) -> tuple[bytes, str]:
    """Return a record as a line that follows the line with a given checksum, and its checksum."""
    start = to_json({**record, "after": after})[:-1].encode()
    check = hashlib.sha256(start).hexdigest()
    return start + b', "check": "' + check.encode() + b'"}\n', check


def _stated_check(line: bytes) -> str | None:
    """Return the checksum that a line states; None if it states none."""
    found = _CHECK.search(line)
    return None if found is None else found[1].decode()


def _is_intact(line: bytes, check: str | None) -> bool:
    """Return whether a line matches the checksum that it states."""
    return check is not None and hashlib.sha256(line[:-_CHECK_LENGTH]).hexdigest() == check


class Journal:
    """A journal that is open for appending, locked against other writers.

    Example:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "results.jsonl"
        >>> with Journal(path) as journal:
        ...     journal.append({"kind": "run"})
        >>> read_journal(path)
        ({'kind': 'run'},)

    Attributes:
        lines: the lines that were there when it was opened; damaged ones are a
            :class:`DamagedLine`.
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
            found = _parse(self._read(), self.path, read)
            if found.lines and not resume:
                raise JournalError(
                    f"{self.path} already holds {len(found.lines)} lines; "
                    "continue it with --resume, or name another file"
                )
            self.lines = found.lines
            self._check = found.check
            self._end = self._repair(found.end)
        except BaseException:
            os.close(self._descriptor)
            raise

    def append(self, *records: Record) -> None:
        """Write records and wait until they are on the disk."""
        if not records:
            return
        lines, check = b"", self._check
        for record in records:
            line, check = sealed(record, check)
            lines += line
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
        self._check = check

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
    return _parse(data, Path(path), read).lines


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
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | _BINARY, 0o666)
    except OSError as error:
        raise JournalError(
            f"cannot open the journal {path} for writing: {error.strerror}; "
            "name a file in a folder that exists and that you may write to"
        ) from error


def _lock(descriptor: int, path: Path) -> None:
    try:
        lock_file(descriptor)
    except (BlockingIOError, PermissionError):  # the latter on Windows
        raise JournalError(
            f"{path} is in use by another run; wait for it to end, or name another file"
        ) from None
    except OSError as error:
        raise JournalError(f"cannot lock {path}: {error.strerror}; name a local file") from error


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


@dataclass(frozen=True, slots=True)
class _Parsed:
    """The content of a journal.

    Attributes:
        lines: what is in it; a :class:`DamagedLine` for each line that is not used.
        check: the checksum that the last line states; None if it states none.
        end: where the last whole line ends.
    """

    lines: tuple[Any, ...]
    check: str | None
    end: int


def _parse(data: bytes, path: Path, read: Read) -> _Parsed:
    """Read the lines of a journal.

    Only the last line may be unfinished: a crash cut short its append.
    """
    found: list[Any] = []
    last_check, end, is_journal = None, 0, False
    lines = data.split(b"\n")
    last = len(lines) - 1 if lines[-1] else len(lines) - 2
    for number, line in enumerate(lines[: last + 1]):
        check = _stated_check(line)
        if _is_intact(line, check):
            found.append(_line(line, number + 1, last_check, path, read))
            is_journal = True
        elif number == last and _looks_torn(line, data.endswith(b"\n"), is_journal):
            break
        elif line.strip():
            fault = "does not match its checksum"
            found.append(DamagedLine(number + 1, fault, not line.startswith(_RESULT_START)))
        last_check = check if line.strip() else last_check
        end = min(end + len(line) + 1, len(data))
    if data.strip() and not is_journal:
        _refuse_other_files(data, path)
    return _Parsed(tuple(found), last_check, end)


def _line(line: bytes, number: int, after: str | None, path: Path, read: Read) -> Any:
    """Return the content of a line that matches its own checksum."""
    where = f"line {number} of {path}"
    advice = "restore the file from a copy, or remove that line"
    try:
        record = from_json(line)
        if record.pop("after") != after:
            fault = "does not follow the line in front of it: lines were removed or moved"
            return DamagedLine(number, fault, may_hide_run=True)
        del record["check"]
        return read(record)
    except LineError as error:
        raise JournalError(f"{where} {error}; {advice}") from error
    except RecursionError as error:
        raise JournalError(f"{where} is nested too deeply; {advice}") from error
    except (ValueError, KeyError, AttributeError) as error:
        raise JournalError(f"{where} is not a journal record; {advice}") from error


def _refuse_other_files(data: bytes, path: Path) -> None:
    """Reject a file that never was a journal."""
    other = kinds.mistaken(path, data, kinds.JOURNAL)
    if other is not None:
        raise JournalError(other)
    if not any(_looks_torn(line, False, False) for line in data.splitlines()):
        raise JournalError(f"{path} is not {kinds.JOURNAL.expected}; name one of those")


def _looks_torn(line: bytes, is_ended: bool, is_journal: bool) -> bool:
    """Return whether a line is an unfinished record, rather than damage or another kind of file."""
    if not line.strip(b"\0 \r"):
        return True
    start = b'{"kind"'
    return not is_ended and (is_journal or line[: len(start)] == start[: len(line)])
