"""Numbers as text: integers of any size, floats with enough digits to differ, JSON."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import groupby
from typing import Any

DIGITS = 6
"""Significant digits of a float, unless more are needed."""


def digits(count: int) -> str:
    """Return an integer in all its digits, however many.

    Example:
        >>> len(digits(10**5000))
        5001
    """
    return f"{Decimal(count):f}"


def scientific_text(count: int) -> str:
    """Return a number of any size to four digits, e.g. ``1.235e+57``.

    Example:
        >>> scientific_text(10**5000)
        '1.000e+5000'
    """
    return f"{Decimal(count):.3e}"


def digits_apart(values: Sequence[float]) -> tuple[int, ...]:
    """Return how many digits distinguish each of some ascending numbers from its neighbours.

    Example:
        >>> digits_apart([0.5, 1000000.25, 1000000.5])
        (6, 8, 8)
    """
    alike = [list(run) for _, run in groupby(values, key=f"{{:.{DIGITS}g}}".format)]
    return tuple(digits for run in alike for digits in [_digits_of(run)] * len(run))


def _digits_of(values: list[float]) -> int:
    """Return the least number of digits with which different numbers have different texts."""
    for digits in range(DIGITS, 17):
        if len({f"{value:.{digits}g}" for value in values}) == len(values):
            return digits
    return 17  # enough for any two floats


def to_json(value: Any, indent: int | None = None) -> str:
    """Return JSON text of plain data, with integers of any size."""
    with _any_number_of_digits():
        return json.dumps(value, indent=indent, allow_nan=False)


def from_json(text: str | bytes) -> Any:
    """Read JSON text, with integers of any size."""
    with _any_number_of_digits():
        return json.loads(text)


_digits_lock = threading.Lock()


@contextlib.contextmanager
def _any_number_of_digits() -> Iterator[None]:
    """Lift Python's limit on the digits of an int: counts may have any number of them."""
    with _digits_lock:
        limit = sys.get_int_max_str_digits()
        sys.set_int_max_str_digits(0)
        try:
            yield
        finally:
            sys.set_int_max_str_digits(limit)
