"""Parse numbers, shares, durations and sizes as people write them, the same in all interfaces.

The command line and the Python functions read values with these, so that ``5%``, ``0.05`` and
``1/20`` are one share in both, and ``60s`` and ``60`` one time.
"""

from __future__ import annotations

import math
import operator
import re
from typing import TYPE_CHECKING

from xcount.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal
    from fractions import Fraction

    Number = int | float | str | Fraction | Decimal
    """A number as people write it: ``0.05``, ``"5%"``, ``"1/20"``, a Fraction, a Decimal."""
    Duration = float | str
    """Seconds, or text with a unit: ``"60s"``, ``"5m"``, ``"1h"``."""
    Size = int | str
    """Bytes, or text with a unit: ``"4GB"``, ``"500MB"``, ``"1GiB"``."""

MOST_DIGITS = 400
"""Numbers beyond ten to this power are refused: as fractions they would fill the memory."""

_SECONDS = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"": 1, "b": 1} | {
    f"{letter}{ending}": base**power
    for power, letter in enumerate("kmgt", start=1)
    for ending, base in (("", 1000), ("b", 1000), ("ib", 1024))
}
_NUMBER_AND_UNIT = r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-zA-Z]*)\s*"


def exact_number(value: object) -> Fraction:
    """Return the exact value of ``0.05``, ``"5%"``, ``"1/20"``, a Fraction or a Decimal.

    A float stands for the decimal that Python prints for it.

    Raises:
        ValueError: the value is not a finite number, or is beyond ten to the power of 400.

    Example:
        >>> len({exact_number(value) for value in (0.05, "0.05", "5%", "1/20")})
        1
    """
    from fractions import Fraction

    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool):
        raise ValueError(f"{value} is not a number")
    text = str(value).strip()
    number = text.removesuffix("%")
    top, slash, bottom = number.partition("/")
    found = _decimal(top) / _decimal(bottom if slash else "1")
    return found if number == text else found / 100


def _decimal(text: str) -> Fraction:
    """Return a decimal's exact value; reject one that would fill the memory, e.g. 1e999999999."""
    from decimal import Decimal, InvalidOperation
    from fractions import Fraction

    try:
        decimal = Decimal(_ascii(text))
    except InvalidOperation:
        raise ValueError(f"{text!r} is not a number") from None
    if not decimal.is_finite() or (decimal and abs(decimal.adjusted()) > MOST_DIGITS):
        raise ValueError(f"{text!r} is not a number of a usual size")
    return Fraction(decimal)


def plain_float(value: object) -> float:
    """Return a float, from a text or a number.

    Raises:
        ValueError: the text is no number, or only one to Python, as ``1_2`` is.

    Example:
        >>> plain_float(" 2.5e1 ")
        25.0
    """
    return float(_ascii(value) if isinstance(value, str) else value)  # type: ignore[arg-type]


def _ascii(text: str) -> str:
    """Strip a text; reject ``1_2`` and digits of other scripts, which Python takes for numbers."""
    stripped = text.strip()
    if "_" in stripped or not stripped.isascii():
        raise ValueError(f"{text!r} is not a number")
    return stripped


def open_share(value: object, what: str) -> float:
    """Return a number strictly between 0 and 1, in whichever notation it is given.

    Example:
        >>> open_share("5%", "epsilon"), open_share(0.05, "epsilon")
        (0.05, 0.05)
    """
    try:
        share = float(exact_number(value))
    except (ValueError, ZeroDivisionError):
        share = math.nan
    if not 0 < share < 1:
        raise QueryError(f"{what} must lie strictly between 0 and 1, not {value!r}")
    return share


def whole_number(value: object, what: str, most: int | None = None) -> int:
    """Return a non-negative whole number, given as a Python or numpy integer.

    Example:
        >>> whole_number(3, "seed")
        3
    """
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # anything else is rejected
    except TypeError:
        number = -1
    if number < 0 or isinstance(value, bool):
        raise QueryError(f"the {what} must be a whole number, 0 or more, not {value!r}")
    if most is not None and number > most:
        raise QueryError(f"the {what} must be at most {most:,}, not {number:,}")
    return number


def seconds(value: object, option: str = "") -> float:
    """Return a duration in seconds, e.g. 300.0 for ``5m``; a bare number is seconds.

    A refusal names the option, where one is given.

    Example:
        >>> seconds("1.5h"), seconds(60)
        (5400.0, 60.0)
    """
    return _scaled(value, _SECONDS, "a duration such as 60s, 5m or 1h", option)


def n_bytes(value: object, option: str = "") -> int:
    """Return bytes: ``4GB`` is 4 * 1000**3, ``1GiB`` is 1024**3, a bare number is bytes.

    A refusal names the option, where one is given.

    Example:
        >>> n_bytes("500MB"), n_bytes(2**20)
        (500000000, 1048576)
    """
    return math.floor(_scaled(value, _BYTES, "a size such as 4GB, 500MB or 1GiB", option))


def _scaled(value: object, units: Mapping[str, float], expected: str, option: str) -> float:
    """Return a number times its unit; zero must be a bare number."""
    refused = f"{f'{option} ' if option else ''}{str(value)!r} is not {expected}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        if 0 <= value < math.inf:
            return float(value)
        raise QueryError(refused)
    match = re.fullmatch(_NUMBER_AND_UNIT, str(value))
    unit = match[2].lower() if match else ""
    found = float(match[1]) * units[unit] if match and unit in units else 0.0
    if not 0 < found < math.inf:
        raise QueryError(refused)
    return found
