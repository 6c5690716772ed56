"""Bounds of a count, and what follows from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from xcount.question.share import Limit


@dataclass(frozen=True, slots=True)
class Bounds:
    """``low <= C <= high``."""

    low: int
    high: int

    def settled(self, epsilon: float, near: int | None = None) -> int | None:
        """Return a count within (1 +- epsilon) of all values from low to high, if there is one.

        The nearest one to ``near``, or to the middle.
        """
        fraction = Fraction(epsilon)
        near = (self.low + self.high) // 2 if near is None else near
        least = max(self.low, math.ceil((1 - fraction) * self.high))
        most = min(self.high, math.floor((1 + fraction) * self.low))
        return min(max(near, least), most) if least <= most else None

    def decides(self, max_share: Limit, n_regions: int) -> bool:
        """Tell whether all counts from low to high are on one side of the share."""
        return max_share.allows(self.high, n_regions) or not max_share.allows(self.low, n_regions)

    def meet(self, other: Bounds) -> Bounds:
        """Return the common part; of two that exclude each other, the first."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Bounds(low, high) if low <= high else self
