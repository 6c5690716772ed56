"""Typed access to untrusted nested data: the value, or a ModelFormatError that says where."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.errors import ModelFormatError

_SHOWN = 40
_LONGEST_INTEGER = 20


def shown(value: object) -> str:
    """Return a short, one-line rendering of a value for an error message."""
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    text = repr(value if not isinstance(value, str) else value[: 2 * _SHOWN])
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def member(parent: object, key: str, where: str) -> Any:
    """Return ``parent[key]`` of a JSON object."""
    if not isinstance(parent, dict):
        raise ModelFormatError(f"{where}: expected an object with {key!r}, found {shown(parent)}")
    if key not in parent:
        raise ModelFormatError(f"{where}: {key!r} is missing")
    return parent[key]


def as_object(value: object, where: str) -> dict[str, Any]:
    """Return the value if it is a JSON object."""
    if not isinstance(value, dict):
        raise ModelFormatError(f"{where}: expected an object, found {shown(value)}")
    return value


def as_list(value: object, where: str) -> list[Any]:
    """Return the value as a list if it is one (a UBJSON array is one too)."""
    if isinstance(value, np.ndarray):
        listed: list[Any] = value.tolist()
        return listed
    if not isinstance(value, list):
        raise ModelFormatError(f"{where}: expected a list, found {shown(value)}")
    return value


def optional_list(parent: dict[str, Any], key: str, where: str) -> list[Any]:
    """Return a list that may be absent or null, which is empty then."""
    value = parent.get(key)
    return [] if value is None else as_list(value, where)


def as_text(value: object, where: str) -> str:
    """Return the value if it is a string."""
    if not isinstance(value, str):
        raise ModelFormatError(f"{where}: expected a string, found {shown(value)}")
    return value


def as_int(value: object, where: str, *, low: int = 0, high: int = 2**31 - 1) -> int:
    """Return an integer, written as a number or as a string, that lies in ``low .. high``."""
    try:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise ValueError
        if isinstance(value, str) and len(value) > _LONGEST_INTEGER:
            raise ValueError
        number = int(value)
    except ValueError:
        raise ModelFormatError(f"{where}: expected an integer, found {shown(value)}") from None
    if not low <= number <= high:
        raise ModelFormatError(f"{where}: {shown(number)} is not in {low} .. {high}")
    return number


def as_float(value: object, where: str) -> float:
    """Return a number, written as one or as a string; NaN and infinities pass."""
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError
        return float(value)
    except (ValueError, OverflowError):
        raise ModelFormatError(f"{where}: expected a number, found {shown(value)}") from None


def int_array(value: object, where: str, size: int | None = None) -> NDArray[np.int64]:
    """Return a list of integers (or booleans) as an array, of the given size if one is given."""
    array = _array(value, where, size)
    if array.dtype.kind == "f" and array.size:
        for bad in np.flatnonzero(~(np.abs(array) < 2**53) | (array != np.trunc(array))):
            raise ModelFormatError(f"{where}[{bad}]: expected an integer, found {array[bad]}")
    if array.dtype.kind == "u" and array.size and int(array.max()) >= 2**63:
        raise ModelFormatError(f"{where}: an integer is too large")
    return array.astype(np.int64)


def float_array(value: object, where: str, size: int | None = None) -> NDArray[np.float64]:
    """Return a list of numbers as an array, of the given size if one is given."""
    if isinstance(value, list) and bool in {*map(type, value)}:
        raise ModelFormatError(f"{where}: expected numbers, found true or false")
    return _array(value, where, size).astype(np.float64)


def float32_array(value: object, where: str, size: int | None = None) -> NDArray[np.float64]:
    """Return a list of numbers, each rounded to float32 as the library holds it."""
    with np.errstate(over="ignore", under="ignore"):
        return float_array(value, where, size).astype(np.float32).astype(np.float64)


def _array(value: object, where: str, size: int | None) -> NDArray[Any]:
    if not isinstance(value, list | np.ndarray):
        raise ModelFormatError(f"{where}: expected a list of numbers, found {shown(value)}")
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError):
        raise ModelFormatError(f"{where}: expected a flat list of numbers") from None
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        found = next((v for v in value if not isinstance(v, int | float)), "a number too large")
        raise ModelFormatError(f"{where}: expected numbers, found {shown(found)}")
    if size is not None and len(array) != size:
        raise ModelFormatError(f"{where}: expected {size} entries, found {len(array)}")
    return array
