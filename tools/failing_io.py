"""Makes the n-th call of a kind (open, read, write, fsync, rename) in Python fail.

``install`` replaces Python's functions in this process, for good: call it in a process that runs
one command. Every file that is opened afterwards, and standard output, is watched; standard error
is not, since it has to say what went wrong.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

KINDS = ("open", "read", "write", "fsync", "rename")
_CODES = {
    "open": errno.EMFILE,
    "read": errno.EIO,
    "write": errno.ENOSPC,
    "fsync": errno.EIO,
    "rename": errno.EIO,
}


@dataclass
class Fault:
    """One fault, and the calls seen so far.

    Attributes:
        kind: which calls fail.
        number: the call that fails, counted from 1; 0 for none.
        is_lasting: whether all later calls of this kind fail, too. Then the first write that fails
            writes half of its bytes, as on a disk that is full.
        n_calls: calls of each kind so far.
    """

    kind: str = ""
    number: int = 0
    is_lasting: bool = False
    n_calls: Counter[str] = field(default_factory=Counter)

    def hits(self, kind: str) -> bool:
        """Note a call, and return whether it fails."""
        self.n_calls[kind] += 1
        if kind != self.kind or not self.number:
            return False
        number = self.n_calls[kind]
        return number == self.number or (self.is_lasting and number > self.number)

    def check(self, kind: str) -> None:
        """Note a call; raise an OSError if it fails."""
        if self.hits(kind):
            raise _error(kind)

    def written(self, data: Any) -> Any:
        """Note a write, and return the data that fit; raise an OSError if none do."""
        if not self.hits("write"):
            return data
        part = memoryview(data)[: len(data) // 2]
        if self.is_lasting and part and self.n_calls["write"] == self.number:
            return part
        raise _error("write")


def _error(kind: str) -> OSError:
    return OSError(_CODES[kind], os.strerror(_CODES[kind]))


def install(fault: Fault) -> None:
    """Let a fault hit the calls of this process from now on."""

    class Watched(io.FileIO):
        """A file whose reads and writes may fail."""

        def readinto(self, buffer: Any, /) -> int | None:
            fault.check("read")
            return super().readinto(buffer)

        def readall(self) -> bytes:
            fault.check("read")
            return super().readall()

        def read(self, size: int | None = -1, /) -> bytes:
            fault.check("read")
            return super().read(size)

        def write(self, data: Any, /) -> int:
            return super().write(fault.written(data)) or 0

    def watched_open(
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Any = None,
    ) -> Any:
        fault.check("open")
        raw = Watched(file, mode.replace("b", "").replace("t", ""), closefd, opener)
        if buffering == 0:
            return raw
        buffered = io.BufferedReader(raw) if raw.readable() else io.BufferedWriter(raw)
        if "b" in mode:
            return buffered
        return io.TextIOWrapper(buffered, encoding, errors, newline)

    real_write, real_fsync, real_open = os.write, os.fsync, os.open
    real_replace, real_pread = os.replace, os.pread

    def write(descriptor: int, data: Any, /) -> int:
        return real_write(descriptor, fault.written(data))

    def fsync(descriptor: Any) -> None:
        fault.check("fsync")
        real_fsync(descriptor)

    def open_descriptor(*arguments: Any, **options: Any) -> int:
        fault.check("open")
        return real_open(*arguments, **options)

    def replace(*arguments: Any, **options: Any) -> None:
        fault.check("rename")
        real_replace(*arguments, **options)

    def pread(*arguments: Any) -> bytes:
        fault.check("read")
        return real_pread(*arguments)

    functions = {
        "write": write,
        "fsync": fsync,
        "open": open_descriptor,
        "replace": replace,
        "rename": replace,
        "pread": pread,
    }
    for name, function in functions.items():
        setattr(os, name, function)
    for home in (io, builtins):
        setattr(home, "open", watched_open)  # noqa: B010  # mypy knows that functions are constant
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(Watched(1, "w", closefd=False)), "utf-8")
