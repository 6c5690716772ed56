"""Limits on shares and ratios, compared without rounding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from xcount.errors import QueryError
from xcount.support.parse import exact_number

FLOAT_ROUNDING = Fraction(1, 10**12)
"""A generous bound of the relative rounding error of sums of floats."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The largest share, or ratio, that passes.

    Text is exact: ``"2/9"`` is two ninths, ``"0.3"`` three tenths. A float stands for every number
    that rounds to it, so that a share copied from a result passes as a limit for that result.

    Example:
        >>> [Limit.of(limit).allows(2, 9) for limit in ("2/9", 2 / 9, "22.2%")]
        [True, True, False]
    """

    value: Fraction
    is_rounded: bool = False

    @classmethod
    def of(
        cls, value: object, option: str = "", *, most: int | None = None, what: str = "ratio"
    ) -> Limit:
        """Read a number, a fraction or a percentage between 0 and ``most``.

        An error names the option, if one is given.
        """
        if isinstance(value, Limit):
            return value
        given = f"{f'{option} ' if option else ''}{str(value).strip()!r}"
        is_named = isinstance(value, Mapping) or (isinstance(value, str) and "=" in value)
        if is_named and what == "share":
            raise QueryError(
                f"{given} names features; one count has one limit, such as 5%: limits by feature "
                "are for an audit"
            )
        try:
            number = exact_number(value)
        except (ValueError, ZeroDivisionError):
            raise QueryError(f"{given} is not a {what} such as 0.01, 1% or 1/100") from None
        if number < 0 or (most is not None and number > most):
            between = (
                "must not be negative" if most is None else f"does not lie between 0 and {most}"
            )
            percent = "" if most is None else f" (0% and {most}00%)"
            raise QueryError(f"{given} {between}{percent}")
        return cls(number, isinstance(value, float))

    @classmethod
    def share(cls, value: object, option: str = "") -> Limit:
        """Read the limit on a share: between 0 and 1."""
        return cls.of(value, option, most=1, what="share")

    def loosened(self) -> Limit:
        """Return the limit for shares that are sums of floats, raised by their rounding error."""
        return replace(self, value=self.value * (1 + FLOAT_ROUNDING))

    def allows(self, part: int | Fraction, whole: int | Fraction) -> bool:
        """Return whether ``part / whole`` is at most the limit; 0 / 0 always is."""
        if whole == 0:
            return part == 0
        if not self.is_rounded:
            return part * self.value.denominator <= whole * self.value.numerator
        try:
            # A division of integers gives the nearest float.
            return float(part / whole) <= float(self.value)
        except OverflowError:
            return False

    def __float__(self) -> float:
        return float(self.value)

    @property
    def text(self) -> str | None:
        """The limit as a fraction; None for a float, which needs no other text."""
        return None if self.is_rounded else str(self.value)
