"""Write Universal Binary JSON (ubjson.org, draft 12) as XGBoost reads it."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

_KINDS = {
    "i1": (b"i", ">i1"),
    "u1": (b"U", ">u1"),
    "i2": (b"I", ">i2"),
    "i4": (b"l", ">i4"),
    "i8": (b"L", ">i8"),
    "f4": (b"d", ">f4"),
    "f8": (b"D", ">f8"),
}
"""Types of numpy -> marker of a typed array, and the type in a file."""


def encoded(document: Any) -> bytes:
    """Return a document that :func:`xcount.model.loaders.ubjson.parse` has read, in bytes."""
    pieces: list[bytes] = []
    _write(document, pieces)
    return b"".join(pieces)


def _write(value: Any, pieces: list[bytes]) -> None:
    if isinstance(value, dict):
        pieces.append(b"{")
        for key, member in value.items():
            pieces.append(_text(key))
            _write(member, pieces)
        pieces.append(b"}")
    elif isinstance(value, np.ndarray):
        pieces.append(_array(value))
    elif isinstance(value, list | tuple):
        pieces.append(b"[")
        for member in value:
            _write(member, pieces)
        pieces.append(b"]")
    else:
        pieces.append(_scalar(value))


def _text(value: str) -> bytes:
    content = value.encode()
    return b"L" + struct.pack(">q", len(content)) + content


def _array(values: NDArray[Any]) -> bytes:
    marker, kind = _KINDS[values.dtype.str[1:]]
    return b"[$" + marker + b"#L" + struct.pack(">q", len(values)) + values.astype(kind).tobytes()


def _scalar(value: Any) -> bytes:
    if value is None:
        return b"Z"
    if isinstance(value, bool):
        return b"T" if value else b"F"
    if isinstance(value, str):
        return b"S" + _text(value)
    if isinstance(value, int):
        return b"L" + struct.pack(">q", value)
    return b"D" + struct.pack(">d", value)
