"""The scales of charts: where a value lies, and which round values are written beside an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_MOST_STEPS = 6


def nice_ceiling(share: float) -> float:
    """Return the round share (1, 2, 5 x a power of ten, at most 1) that is not below ``share``."""
    if share <= 0:
        return 0.01
    tens = 10.0 ** math.floor(math.log10(share))
    for step in (1, 2, 5, 10):
        if share <= step * tens * (1 + 1e-12):
            return min(1.0, step * tens)
    return 1.0


def round_values(low: float, high: float) -> list[float]:
    """Return round values from ``low`` to ``high``, four to seven of them where there is room.

    Example:
        >>> round_values(0, 0.75)
        [0.0, 0.2, 0.4, 0.6]
    """
    least = (high - low) / _MOST_STEPS
    tens = 10.0 ** math.floor(math.log10(least))
    step = next(tens * k for k in (1, 2, 5, 10) if tens * k >= least * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear or logarithmic scale onto ``ends``."""

    span: tuple[float, float]
    ends: tuple[float, float]
    is_log: bool

    @classmethod
    def of(
        cls,
        values: Sequence[float],
        start: float,
        end: float,
        *,
        zero: bool = False,
        spread: float = 100,
    ) -> Axis:
        """Choose the scale: logarithmic when the values differ by more than ``spread``."""
        low, high = min(values), max(values)
        positive = [value for value in values if value > 0]
        if low > 0 and high / low >= spread:
            if zero:
                decades = (math.floor(math.log10(low)), math.ceil(math.log10(high)))
                return cls((10.0 ** decades[0], min(1.0, 10.0 ** decades[1])), (start, end), True)
            return cls((low, high), (start, end), True)
        if zero:
            return cls((0.0, nice_ceiling(max(positive, default=0.0))), (start, end), False)
        return cls((low, high) if low < high else (low - 1, high + 1), (start, end), False)

    def place(self, value: float) -> float:
        low, high = self.span
        if self.is_log:
            low, high, value = math.log(low), math.log(high), math.log(max(value, low))
        start, end = self.ends
        return start + (end - start) * (value - low) / (high - low)

    def ticks(self) -> list[float]:
        low, high = self.span
        if not self.is_log:
            return [high * k / 4 for k in range(5)]
        first, last = round(math.log10(low)), round(math.log10(high))
        stride = max(1, math.ceil((last - first) / 5))
        return [10.0**power for power in range(first, last + 1, stride)]
