"""Links from margins to probabilities, with exact comparisons.

::

    Votes        p = V[k]                              (a forest's mean vote)
    Sigmoid(s)   p = 1 / (1 + exp(-s * V[k]))
    Softmax      p = exp(V[k]) / sum over j of exp(V[j])

A sigmoid is the softmax of 0 and s * V[k]. With S and S' the sums of the exponentials before and
after, ``p' - p > P`` is ``exp(V'[k]) S - exp(V[k]) S' - P S S' > 0``: multiplied out, a sum of
exponentials of rational numbers with rational coefficients. Terms with equal exponents are added
first. If nothing is left, it is a tie. Otherwise the sum is not 0, because by the theorem of
Lindemann and Weierstrass exponentials of different rational numbers are linearly independent over
the rationals; so its sign is found from bounds of the exponentials, with more digits until they
decide. (If P is not 0, there are no ties: the coefficients of the largest and of the smallest
exponent are 0 only if all margins are equal on one side and p is 0 on the other, which it never
is.)
"""

from __future__ import annotations

import decimal
import functools
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Margins = Sequence[Fraction]
"""The margins of one point, one per output, base included."""

_FIRST_DIGITS = 25


class Link(ABC):
    """Computes a probability from margins."""

    __slots__ = ()

    name: ClassVar[str]

    @property
    @abstractmethod
    def steepness(self) -> float:
        """The largest rate of change of the probability if no margin changes faster than 1."""

    @abstractmethod
    def rises(self, before: Margins, after: Margins, output: int, gap: Fraction) -> bool:
        """Return whether the probability after exceeds the one before by more than ``gap``."""

    @abstractmethod
    def compared(self, margins: Margins, output: int, share: Fraction) -> int:
        """Return 1, 0 or -1 if the probability is above, equal to or below a share."""

    def margin_at(self, share: Fraction, digits: int) -> Fraction | None:
        """Return roughly the margin with this probability, if one margin determines it."""
        return None

    @abstractmethod
    def value(self, margins: Margins, output: int) -> float:
        """Return the probability, rounded to a float."""

    @abstractmethod
    def of_floats(self, scaled: NDArray[np.float64], output: int) -> NDArray[np.float64]:
        """Return probabilities as floats, from margins (last axis) in units of exponents."""

    def of_classes(self, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the same for all outputs, along the last axis."""
        return np.stack([self.of_floats(scaled, k) for k in range(scaled.shape[-1])], axis=-1)

    @abstractmethod
    def concerns(self, output: int, asked: int) -> bool:
        """Tell whether an output takes part in the probability of the one asked about."""

    def scaled_unit(self, scale: Fraction) -> Fraction:
        """Return how much an exponent grows if the margin grows by ``1 / scale``."""
        return 1 / scale

    def unit_as_float(self, scale: Fraction) -> tuple[float, int]:
        """Return that unit as a number between 1/2 and 2 and an exponent of two."""
        unit = self.scaled_unit(scale)
        exponent = unit.numerator.bit_length() - unit.denominator.bit_length()
        return float(unit / Fraction(2) ** exponent), exponent

    @abstractmethod
    def least_margin_gap(self, gap: Fraction) -> Fraction:
        """Return a gap in margin that every change of probability by more than ``gap`` exceeds."""

    @abstractmethod
    def same_margin_gap(self, gap: Fraction) -> Fraction | None:
        """Return the equivalent gap in margin; None if there is none."""


@dataclass(frozen=True, slots=True)
class Votes(Link):
    """The margin is already a probability."""

    name: ClassVar[str] = "margin"

    @property
    def steepness(self) -> float:
        return 1.0

    def rises(self, before: Margins, after: Margins, output: int, gap: Fraction) -> bool:
        return after[output] - before[output] > gap

    def compared(self, margins: Margins, output: int, share: Fraction) -> int:
        return (margins[output] > share) - (margins[output] < share)

    def margin_at(self, share: Fraction, digits: int) -> Fraction:
        return share

    def value(self, margins: Margins, output: int) -> float:
        return float(margins[output])

    def of_floats(self, scaled: NDArray[np.float64], output: int) -> NDArray[np.float64]:
        return scaled[..., output]

    def concerns(self, output: int, asked: int) -> bool:
        return output == asked

    def least_margin_gap(self, gap: Fraction) -> Fraction:
        return gap

    def same_margin_gap(self, gap: Fraction) -> Fraction:
        return gap


class _Exponential(Link):
    """A probability computed from exponentials."""

    __slots__ = ()

    @abstractmethod
    def exponents(self, margins: Margins, output: int) -> tuple[Fraction, list[Fraction]]:
        """Return the exponent of the output asked about, and all of them."""

    def rises(self, before: Margins, after: Margins, output: int, gap: Fraction) -> bool:
        own, every = self.exponents(before, output)
        own_after, every_after = self.exponents(after, output)
        low, high = _share_bounds(own, every)
        low_after, high_after = _share_bounds(own_after, every_after)
        if low_after - high > gap or high_after - low <= gap:
            return low_after - high > gap
        # Too close to call, or exactly the gap: the sign of a sum over pairs of classes decides.
        terms: defaultdict[Fraction, Fraction] = defaultdict(Fraction)
        for a in every:
            terms[own_after + a] += 1
            for b in every_after:
                terms[a + b] -= gap
        for b in every_after:
            terms[own + b] -= 1
        return _sign(terms) > 0

    def compared(self, margins: Margins, output: int, share: Fraction) -> int:
        own, every = self.exponents(margins, output)
        terms = {exponent: -share * n for exponent, n in Counter(every).items()}
        terms[own] += 1
        return _sign(terms)

    def value(self, margins: Margins, output: int) -> float:
        own, every = self.exponents(margins, output)
        parts = [_exp_bounds(x - max(every), _FIRST_DIGITS)[1] for x in (own, *every)]
        return float(parts[0] / sum(parts[1:]))


@dataclass(frozen=True, slots=True)
class Sigmoid(_Exponential):
    """``1 / (1 + exp(-slope * V))``, with a slope above 0."""

    slope: Fraction = Fraction(1)

    name: ClassVar[str] = "sigmoid"

    @property
    def steepness(self) -> float:
        return float(self.slope) / 4

    def exponents(self, margins: Margins, output: int) -> tuple[Fraction, list[Fraction]]:
        own = margins[output] * self.slope
        return own, [Fraction(0), own]

    def margin_at(self, share: Fraction, digits: int) -> Fraction | None:
        if not 0 < share < 1:
            return None
        with decimal.localcontext(prec=digits):
            odds = _quotient(share / (1 - share), decimal.ROUND_HALF_EVEN)
            return Fraction(odds.ln()) / self.slope

    def of_floats(self, scaled: NDArray[np.float64], output: int) -> NDArray[np.float64]:
        probabilities: NDArray[np.float64] = 1 / (1 + np.exp(-scaled[..., output]))
        return probabilities

    def concerns(self, output: int, asked: int) -> bool:
        return output == asked

    def scaled_unit(self, scale: Fraction) -> Fraction:
        return self.slope / scale

    def least_margin_gap(self, gap: Fraction) -> Fraction:
        return _logit_gap(gap) / self.slope

    def same_margin_gap(self, gap: Fraction) -> Fraction | None:
        return gap if gap == 0 else None


@dataclass(frozen=True, slots=True)
class Softmax(_Exponential):
    """``exp(V[k])`` divided by the sum of all exponentials."""

    name: ClassVar[str] = "softmax"

    @property
    def steepness(self) -> float:
        return 0.5  # all other margins may move in the opposite direction

    def exponents(self, margins: Margins, output: int) -> tuple[Fraction, list[Fraction]]:
        return margins[output], list(margins)

    def of_floats(self, scaled: NDArray[np.float64], output: int) -> NDArray[np.float64]:
        others = np.exp(scaled - scaled[..., output : output + 1])
        probabilities: NDArray[np.float64] = 1 / others.sum(axis=-1)
        return probabilities

    def of_classes(self, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
        # There are few outputs and many masks: add whole arrays, not short rows.
        outputs = [scaled[..., k] for k in range(scaled.shape[-1])]
        largest = functools.reduce(np.maximum, outputs)
        powers = [np.exp(output - largest) for output in outputs]
        total = functools.reduce(np.add, powers)
        return np.stack([power / total for power in powers], axis=-1)

    def concerns(self, output: int, asked: int) -> bool:
        return True

    def least_margin_gap(self, gap: Fraction) -> Fraction:
        # V[k] may stay the same while the others move.
        return Fraction(0)

    def least_lead_gap(self, gap: Fraction) -> Fraction:
        """Return a gap that ``V[k] - V[j]`` exceeds, for some class j, in every such change.

        The probability is the sigmoid of u = -log(sum over j != k of exp(V[j] - V[k])), and u moves
        no further than the lead V[k] - V[j] that moves most.
        """
        return _logit_gap(gap)

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


def _sign(terms: Mapping[Fraction, Fraction]) -> int:
    """Return the sign of the sum of ``coefficient * exp(exponent)``."""
    left = {exponent: factor for exponent, factor in terms.items() if factor != 0}
    if not left:
        return 0
    top, digits = max(left), _FIRST_DIGITS
    while True:
        low = high = Fraction(0)
        for exponent, factor in left.items():
            ends = [factor * bound for bound in _exp_bounds(exponent - top, digits)]
            low, high = low + min(ends), high + max(ends)
        if low > 0 or high < 0:
            return 1 if low > 0 else -1
        digits *= 2


def _share_bounds(own: Fraction, every: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
    """Return bounds of ``exp(own) / (sum of exp of every)``; ``every`` includes ``own``."""
    top = max(every)
    low, high = _exp_bounds(own - top, _FIRST_DIGITS)
    ends = [_exp_bounds(exponent - top, _FIRST_DIGITS) for exponent in every]
    least_others = sum(end[0] for end in ends) - low
    most_others = sum(end[1] for end in ends) - high
    return low / (low + most_others), high / (high + least_others)


def _logit_gap(gap: Fraction) -> Fraction:
    """Return a number that is at most ``2 logit((1 + P) / 2) = 2 ln((1 + P) / (1 - P))``.

    A sigmoid is steepest at 0: two log-odds that are no further apart than that have
    probabilities that are no further apart than P.
    """
    if gap >= 1:
        return Fraction(10**6)  # any number: no change is that large
    with decimal.localcontext(prec=40):
        odds = _quotient((1 + gap) / (1 - gap), decimal.ROUND_FLOOR)
        return max(Fraction(0), Fraction(2 * odds.ln()) * Fraction(10**30 - 1, 10**30))


def _exp_bounds(x: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Return bounds of exp(x), for x <= 0, to about that many digits."""
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
    # The integers stay exact: a division does not round its operands.
    return context.divide(decimal.Decimal(x.numerator), decimal.Decimal(x.denominator))
