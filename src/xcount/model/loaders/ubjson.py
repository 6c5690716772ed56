"""Universal Binary JSON (ubjson.org, draft 12), as XGBoost writes it.

The reader trusts nothing: every length is compared with the bytes that are left, nesting is
bounded, and types without a payload may not be the element type of a container (a dozen bytes
would unfold into gigabytes).
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from xcount.errors import ModelFormatError
from xcount.model.ensemble import Ensemble

MAX_DEPTH = 64
"""XGBoost's documents are less than ten levels deep."""

_NUMBERS = {
    b"i": (">i1", ">b"),
    b"U": (">u1", ">B"),
    b"I": (">i2", ">h"),
    b"l": (">i4", ">i"),
    b"L": (">i8", ">q"),
    b"d": (">f4", ">f"),
    b"D": (">f8", ">d"),
}
_CONSTANTS = {b"Z": None, b"T": True, b"F": False}


def from_bytes(data: bytes, where: str) -> Ensemble:
    """Read a model that ``Booster.save_model`` wrote as UBJSON."""
    from xcount.model.loaders import xgboost_json

    return xgboost_json.from_document(parse(data, where), where, "xgboost-ubjson")


def parse(data: bytes, where: str) -> Any:
    """Return the document; arrays of numbers come as numpy arrays."""
    reader = _Reader(data, where)
    document = reader.value(reader.marker(), 0)
    if data[reader.at :].strip(b"N\n"):
        raise reader.error("data after the end of the document")
    return document


class _Reader:
    def __init__(self, data: bytes, where: str) -> None:
        self.data = data
        self.where = where
        self.at = 0

    def error(self, problem: str) -> ModelFormatError:
        return ModelFormatError(f"{self.where}: UBJSON, byte {self.at}: {problem}")

    def take(self, n_bytes: int) -> bytes:
        if n_bytes < 0 or n_bytes > len(self.data) - self.at:
            raise self.error(f"truncated: {n_bytes} bytes expected")
        piece = self.data[self.at : self.at + n_bytes]
        self.at += n_bytes
        return piece

    def marker(self) -> bytes:
        """Return the next type marker; no-ops are skipped."""
        found = self.take(1)
        while found == b"N":
            found = self.take(1)
        return found

    def length(self) -> int:
        kind = self.marker()
        if kind not in (b"i", b"U", b"I", b"l", b"L"):
            raise self.error(f"expected a length, found marker {kind!r}")
        size: int = self.number(kind)
        if size < 0:
            raise self.error(f"negative length {size}")
        return size

    def number(self, kind: bytes) -> Any:
        code = _NUMBERS[kind][1]
        return struct.unpack(code, self.take(struct.calcsize(code)))[0]

    def text(self) -> str:
        try:
            return self.take(self.length()).decode()
        except UnicodeDecodeError:
            raise self.error("a string is not UTF-8") from None

    def value(self, kind: bytes, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise self.error("nested too deeply")
        if kind in _NUMBERS:
            return self.number(kind)
        if kind in (b"S", b"H"):
            return self.text()
        if kind == b"C":
            return self.take(1).decode("latin-1")
        if kind in _CONSTANTS:
            return _CONSTANTS[kind]
        if kind == b"[":
            return self.array(depth)
        if kind == b"{":
            return self.mapping(depth)
        raise self.error(f"unknown marker {kind!r}")

    def header(self) -> tuple[bytes | None, int | None]:
        """Read ``$type`` and ``#count`` of a container, where they are given."""
        kind = None
        if self.data[self.at : self.at + 1] == b"$":
            self.at += 1
            kind = self.take(1)
            if kind in (*_CONSTANTS, b"N") or self.data[self.at : self.at + 1] != b"#":
                raise self.error(f"a container of type {kind!r} without a size")
        if self.data[self.at : self.at + 1] != b"#":
            return kind, None
        self.at += 1
        size = self.length()
        if size > len(self.data) - self.at:
            raise self.error(f"truncated: {size} elements expected")
        return kind, size

    def array(self, depth: int) -> Any:
        kind, size = self.header()
        if kind in _NUMBERS and size is not None:
            dtype = np.dtype(_NUMBERS[kind][0])
            numbers = np.frombuffer(self.take(size * dtype.itemsize), dtype=dtype)
            return numbers.astype(dtype.newbyteorder("="))
        items: list[Any] = []
        while size is None or len(items) < size:
            marker = kind or self.marker()
            if size is None and marker == b"]":
                break
            items.append(self.value(marker, depth + 1))
        return items

    def mapping(self, depth: int) -> dict[str, Any]:
        kind, size = self.header()
        members: dict[str, Any] = {}
        n_read = 0
        while size is None or n_read < size:
            if size is None and self.data[self.at : self.at + 1] == b"}":
                self.at += 1
                break
            key = self.text()
            members[key] = self.value(kind or self.marker(), depth + 1)
            n_read += 1
        return members
