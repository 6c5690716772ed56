"""What makes a probability of margins, compared exactly.

::

    Votes        p = V[k]                              (a forest's mean vote)
    Sigmoid(s)   p = 1 / (1 + exp(-s * V[k]))
    Softmax      p = exp(V[k]) / sum over j of exp(V[j])

Margins are rational, so ``p(after) - p(before) > P`` is decided by bounds of both probabilities,
with more digits until they tell. That ends, because a tie of a sigmoid or a softmax has P = 0,
where it is known without any digits: by the theorem of Lindemann and Weierstrass, exponentials of
different rational numbers are linearly independent over the rational ones.

- Sigmoid: with x = exp(a) and y = exp(b), a tie is ``x (1 - P) - y (1 + P) - P x y - P = 0``. If
  0, a, b and a + b differ, the coefficient of x y must be 0: P = 0. If two of them are the same,
  the equation that is left has P = 0 and a = b, or no solution.
- Softmax of K classes: multiply out. The coefficients of the largest and of the smallest exponent
  are those of V[k] among the largest (smallest) margins before and after; both are 0 only if
  P = 0, or if all margins are the same on one side and p is 0 on the other, which it never is.
  With P = 0, a tie is the same list of differences V[j] - V[k] on both sides, in any order.
"""

from __future__ import annotations

import decimal
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

Margins = Sequence[Fraction]
"""The margins of one point, one per output, base included."""

_FIRST_DIGITS = 25
_SHOWN_DIGITS = 25


class Link(ABC):
    """What makes a probability of margins."""

    __slots__ = ()

    name: ClassVar[str]
    never_certain: ClassVar[bool] = True
    """Whether 0 < p < 1 for all margins."""

    @property
    @abstractmethod
    def steepness(self) -> float:
        """How fast the probability moves, at most, where no margin moves faster than 1."""

    @abstractmethod
    def bounds(self, margins: Margins, output: int, digits: int) -> tuple[Fraction, Fraction]:
        """Return bounds of the probability, closer to each other with more digits."""

    @abstractmethod
    def are_equal(self, before: Margins, after: Margins, output: int) -> bool:
        """Tell whether two probabilities are just the same."""

    @abstractmethod
    def concerns(self, output: int, asked: int) -> bool:
        """Tell whether an output takes part in the probability of the one asked about."""

    @abstractmethod
    def least_margin_gap(self, gap: Fraction) -> Fraction:
        """Return a gap of the margin that every change of probability by more than ``gap`` has."""

    @abstractmethod
    def same_margin_gap(self, gap: Fraction) -> Fraction | None:
        """Return the gap of the margin that is the same change; None if there is none."""

    def rises(self, before: Margins, after: Margins, output: int, gap: Fraction) -> bool:
        """Tell whether the probability after is more than ``gap`` above the one before."""
        if self.never_certain and gap >= 1:
            return False
        if gap == 0 and self.are_equal(before, after, output):
            return False
        digits = _FIRST_DIGITS
        while True:
            low, high = self.bounds(before, output, digits)
            least, most = self.bounds(after, output, digits)
            if least - high > gap:
                return True
            if most - low <= gap:
                return False
            digits *= 2

    def is_at_least(self, margins: Margins, output: int, share: Fraction) -> bool:
        """Tell whether the probability is at least so large."""
        if self.never_certain and not 0 < share < 1:
            return share <= 0
        digits = _FIRST_DIGITS
        while True:
            low, high = self.bounds(margins, output, digits)
            if low >= share:
                return True
            if high < share:
                return False
            digits *= 2

    def is_at_most(self, margins: Margins, output: int, share: Fraction) -> bool:
        """Tell whether the probability is at most so large."""
        if self.never_certain and not 0 < share < 1:
            return share >= 1
        digits = _FIRST_DIGITS
        while True:
            low, high = self.bounds(margins, output, digits)
            if high <= share:
                return True
            if low > share:
                return False
            digits *= 2

    def value(self, margins: Margins, output: int) -> float:
        """Return the probability, rounded to a float."""
        low, high = self.bounds(margins, output, _SHOWN_DIGITS)
        return float((low + high) / 2)


@dataclass(frozen=True, slots=True)
class Votes(Link):
    """The margin is a probability already."""

    name: ClassVar[str] = "margin"
    never_certain: ClassVar[bool] = False

    @property
    def steepness(self) -> float:
        return 1.0

    def bounds(self, margins: Margins, output: int, digits: int) -> tuple[Fraction, Fraction]:
        return margins[output], margins[output]

    def are_equal(self, before: Margins, after: Margins, output: int) -> bool:
        return before[output] == after[output]

    def concerns(self, output: int, asked: int) -> bool:
        return output == asked

    def least_margin_gap(self, gap: Fraction) -> Fraction:
        return gap

    def same_margin_gap(self, gap: Fraction) -> Fraction:
        return gap


@dataclass(frozen=True, slots=True)
class Sigmoid(Link):
    """``1 / (1 + exp(-slope * V))``, with a slope above 0."""

    slope: Fraction = Fraction(1)

    name: ClassVar[str] = "sigmoid"

    @property
    def steepness(self) -> float:
        return float(self.slope) / 4

    def bounds(self, margins: Margins, output: int, digits: int) -> tuple[Fraction, Fraction]:
        x = margins[output] * self.slope
        if x == 0:
            return Fraction(1, 2), Fraction(1, 2)
        low, high = _exp_bounds(-abs(x), digits)
        if x > 0:
            return 1 / (1 + high), 1 / (1 + low)
        return low / (1 + low), high / (1 + high)

    def are_equal(self, before: Margins, after: Margins, output: int) -> bool:
        return before[output] == after[output]

    def concerns(self, output: int, asked: int) -> bool:
        return output == asked

    def least_margin_gap(self, gap: Fraction) -> Fraction:
        return _logit_gap(gap) / self.slope

    def same_margin_gap(self, gap: Fraction) -> Fraction | None:
        return gap if gap == 0 else None


@dataclass(frozen=True, slots=True)
class Softmax(Link):
    """``exp(V[k])`` divided by the sum of all exponentials."""

    name: ClassVar[str] = "softmax"

    @property
    def steepness(self) -> float:
        return 0.5  # all other margins may move the other way

    def bounds(self, margins: Margins, output: int, digits: int) -> tuple[Fraction, Fraction]:
        if len(set(margins)) == 1:
            return Fraction(1, len(margins)), Fraction(1, len(margins))
        top = max(margins)
        parts = [_exp_bounds(margin - top, digits) for margin in margins]
        low, high = parts[output]
        others_low = sum((part[0] for part in parts), Fraction(0)) - low
        others_high = sum((part[1] for part in parts), Fraction(0)) - high
        least = low / (low + others_high) if low + others_high else Fraction(0)
        most = high / (high + others_low) if high + others_low else Fraction(1)
        return least, most

    def are_equal(self, before: Margins, after: Margins, output: int) -> bool:
        lists = [sorted(m - margins[output] for m in margins) for margins in (before, after)]
        return lists[0] == lists[1]

    def concerns(self, output: int, asked: int) -> bool:
        return True

    def least_margin_gap(self, gap: Fraction) -> Fraction:
        # V[k] may stay where it is, and the others move.
        return Fraction(0)

    def same_margin_gap(self, gap: Fraction) -> None:
        return None


def link_named(name: str, slope: Fraction = Fraction(1)) -> Link:
    """Return the link of that name."""
    makers: dict[str, Callable[[], Link]] = {
        Votes.name: Votes,
        Sigmoid.name: lambda: Sigmoid(slope),
        Softmax.name: Softmax,
    }
    return makers[name]()


def link_fields(link: Link) -> dict[str, Any]:
    """Return a link's fields in JSON."""
    slope = getattr(link, "slope", Fraction(1))
    return {"link": link.name} | ({"slope": float(slope)} if slope != 1 else {})


def _logit_gap(gap: Fraction) -> Fraction:
    """Return a number that is at most ``2 logit((1 + P) / 2) = 2 ln((1 + P) / (1 - P))``.

    A sigmoid moves fastest around 0: two log-odds that are no further apart than that have
    probabilities that are no further apart than P.
    """
    if gap >= 1:
        return Fraction(10**6)
    with decimal.localcontext(prec=40, rounding=decimal.ROUND_FLOOR):
        odds = _quotient((1 + gap) / (1 - gap), decimal.ROUND_FLOOR)
        return max(Fraction(0), Fraction(2 * odds.ln()) * Fraction(10**30 - 1, 10**30))


def _exp_bounds(x: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Return bounds of exp(x), for x <= 0, about that many digits apart."""
    if x == 0:
        return Fraction(1), Fraction(1)
    if x < -3 * digits:  # exp(-3) < 1 / 10
        return Fraction(0), Fraction(1, 10**digits)
    with decimal.localcontext(prec=digits):
        low = _quotient(x, decimal.ROUND_FLOOR).exp().next_minus()
        high = _quotient(x, decimal.ROUND_CEILING).exp().next_plus()
    return Fraction(low), min(Fraction(1), Fraction(high))


def _quotient(x: Fraction, rounding: str) -> decimal.Decimal:
    """Return a fraction as a decimal of the current precision, rounded in one direction."""
    context = decimal.getcontext().copy()
    context.rounding = rounding
    # Exact integers: the operands of a division are not rounded.
    return context.divide(decimal.Decimal(x.numerator), decimal.Decimal(x.denominator))
