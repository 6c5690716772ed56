"""An unknown number with its bounds, their confidence, and an estimate."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from xcount.support.records import Schema, Spread

Number = int | Fraction | float

_ROUNDING = 2.0**-30
"""Bounds that differ by less than this part of the number agree in every digit that is shown."""


@dataclass(frozen=True, slots=True)
class Interval:
    """``low <= x <= high`` for an unknown number x, and an estimate of it.

    Numbers that were counted are ints or fractions, so that comparing them is exact; sums of
    weights are floats, and rounded.

    Attributes:
        value: x, or an estimate of it; None if only the bounds are known.
        low: the smallest number that x can be.
        high: the largest number that x can be; infinite without an upper bound.
        confidence: the bounds hold with at least this probability, 1 if they are guaranteed; None
            if the enclosing record states it for several intervals together.
        left_out: how many items were left out of all these numbers because they have no place.

    Example:
        >>> Interval(0.25, 0.2, 0.3, 0.9).exact, Interval.exactly(Fraction(2, 9)).exact
        (False, True)
    """

    value: Number | None
    low: Number
    high: Number
    confidence: float | None = None
    left_out: int = 0

    @classmethod
    def exactly(cls, value: Number, left_out: int = 0) -> Interval:
        """Return the interval of a number that is known."""
        return cls(value, value, value, 1.0, left_out)

    @classmethod
    def rounded(cls, value: float, error: float) -> Interval:
        """Return the interval of a share that was summed in floats, with a bound of its error.

        Example:
            >>> Interval.rounded(0.25, 0.0).exact, Interval.rounded(0.25, 2.0**-40).exact
            (True, False)
        """
        return cls(value, max(0.0, value - error), min(1.0, value + error), 1.0)

    @classmethod
    def unknown_share(cls) -> Interval:
        """Return the interval of an unknown share: from 0 to 1."""
        return cls(None, 0, 1, 1.0)

    @property
    def exact(self) -> bool:
        """Whether the number is proved."""
        return self.low == self.high and self.confidence in (1.0, None)

    @property
    def is_settled(self) -> bool:
        """Whether the number is proved, but for the rounding of floats."""
        low, high = float(self.low), float(self.high)
        is_narrow = math.isfinite(high) and high - low <= _ROUNDING * abs(high)
        return self.exact or (is_narrow and not self.is_sampled)

    @property
    def sureness(self) -> float:
        """The confidence of the bounds if the interval has its own; else 1."""
        return 1.0 if self.confidence is None else self.confidence

    @property
    def is_sampled(self) -> bool:
        """Whether the bounds come from samples, and so may be wrong."""
        return self.sureness < 1

    @property
    def is_counted(self) -> bool:
        """Whether the bounds are exact numbers rather than rounded floats."""
        return not (isinstance(self.low, float) or isinstance(self.high, float))

    @property
    def least(self) -> Number:
        """The estimate; without one, the low bound."""
        return self.low if self.value is None else self.value

    @property
    def most(self) -> Number:
        """The estimate; without one, the high bound."""
        return self.high if self.value is None else self.value


def mean_of(intervals: Iterable[Interval]) -> Interval:
    """Return the mean of shares: of the estimates if all have one, and of the bounds.

    The mean of no shares is unknown.

    Example:
        >>> mean_of([Interval.exactly(0.5), Interval(None, 0, 1)])
        Interval(value=None, low=0.25, high=0.75, confidence=None, left_out=0)
    """
    found = tuple(intervals)
    if not found:
        return Interval.unknown_share()
    values = [each.value for each in found if each.value is not None]
    return Interval(
        mean(values) if len(values) == len(found) else None,
        mean(each.low for each in found),
        mean(each.high for each in found),
    )


def mean(values: Iterable[Number]) -> float:
    """Return the mean of at least one number."""
    listed = tuple(values)
    return math.fsum(listed) / len(listed)


def interval_fields(
    value: str, description: str, limits: Schema, *, may_be_none: bool = False
) -> Spread:
    """Return the JSON form of an interval whose fields stand among those of its record.

    Args:
        value: the JSON name of the estimate; the bounds are ``low`` and ``high``.
        description: what the estimate is.
        limits: keywords of JSON Schema for all three numbers.
        may_be_none: whether there may be no estimate.
    """
    kind = ["number", "null"] if may_be_none else "number"
    return Spread(
        {
            value: {"type": kind, "description": description, **limits},
            "low": {"type": "number", "description": "At least this.", **limits},
            "high": {"type": "number", "description": "At most this.", **limits},
        },
        lambda interval: {
            value: _plain(interval.value),
            "low": _plain(interval.low),
            "high": _plain(interval.high),
        },
        lambda data: Interval(data[value], data["low"], data["high"]),
        required=(value, "low", "high"),
    )


def mean_fields(name: str, whose: str) -> Spread:
    """Return the JSON form of a mean share: ``name``, ``name_low`` and ``name_high``."""
    low, high = f"{name}_low", f"{name}_high"
    limits = {"minimum": 0, "maximum": 1}
    said = {
        name: f"Mean of {whose} shares; null if a share has no estimate.",
        low: f"Mean of the low bounds of {whose} shares.",
        high: f"Mean of the high bounds of {whose} shares.",
    }
    kinds = {name: ["number", "null"], low: "number", high: "number"}
    return Spread(
        {key: {"type": kinds[key], "description": said[key], **limits} for key in said},
        lambda mean: {name: mean.value, low: mean.low, high: mean.high},
        lambda data: Interval(data[name], data[low], data[high]),
        required=tuple(said),
    )


def _plain(number: Number | None) -> int | float | None:
    """Return a number as it is written in JSON."""
    return float(number) if isinstance(number, Fraction) else number
