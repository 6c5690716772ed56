"""Limits of shares and ratios, compared without rounding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from xcount.errors import QueryError

FLOAT_ROUNDING = Fraction(1, 10**12)
"""Relative rounding of sums of floats, with room to spare."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The largest share, or ratio, that passes.

    Text means what it says: ``"2/9"`` is two ninths, ``"0.3"`` three tenths. A float means every
    number that rounds to it, so that a share read off a result passes as a limit of that result.

    Example:
        >>> [Limit.of(limit).allows(2, 9) for limit in ("2/9", 2 / 9, "22.2%")]
        [True, True, False]
    """

    value: Fraction
    is_rounded: bool = False

    @classmethod
    def of(cls, value: object, *, most: int | None = None, what: str = "ratio") -> Limit:
        """Read a number, a fraction or a percentage between 0 and ``most``."""
        if isinstance(value, Limit):
            return value
        text = str(value).strip()
        try:
            number = value if isinstance(value, Fraction) else _fraction(text)
        except (InvalidOperation, ValueError, ZeroDivisionError):
            raise QueryError(f"{text!r} is not a {what} such as 0.01 or 1%") from None
        if number < 0 or (most is not None and number > most):
            between = (
                "must not be negative" if most is None else f"does not lie between 0 and {most}"
            )
            percent = "" if most is None else f" (0% and {most}00%)"
            raise QueryError(f"{text!r} {between}{percent}")
        return cls(number, isinstance(value, float))

    @classmethod
    def share(cls, value: object) -> Limit:
        """Read the limit of a share: between 0 and 1."""
        return cls.of(value, most=1, what="share")

    def loosened(self) -> Limit:
        """Return the limit for shares that are sums of floats: above it by their rounding."""
        return replace(self, value=self.value * (1 + FLOAT_ROUNDING))

    def allows(self, part: int | Fraction, whole: int | Fraction) -> bool:
        """Tell whether ``part / whole`` is at most the limit; of nothing, only nothing is."""
        if whole == 0:
            return part == 0
        if not self.is_rounded:
            return part * self.value.denominator <= whole * self.value.numerator
        try:
            # Whole numbers divide to the nearest float.
            return float(part / whole) <= float(self.value)
        except OverflowError:
            return False

    def __float__(self) -> float:
        return float(self.value)

    @property
    def text(self) -> str | None:
        """The fraction that was given; None for a float, which is its own text."""
        return None if self.is_rounded else str(self.value)


def _fraction(text: str) -> Fraction:
    """Return what ``0.01``, ``1%``, ``1/3`` or ``5/2%`` says, in exact arithmetic."""
    number = text.removesuffix("%")
    top, slash, bottom = number.partition("/")
    share = _decimal(top) / _decimal(bottom if slash else "1")
    return share if number == text else share / 100


def _decimal(text: str) -> Fraction:
    """Return a decimal's exact value; refuse one that would fill the memory, as 1e999999999."""
    decimal = Decimal(text)
    if not decimal.is_finite() or abs(decimal.adjusted()) > 400:
        raise ValueError(text)
    return Fraction(decimal)
