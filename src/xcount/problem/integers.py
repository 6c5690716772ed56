"""Leaves -> integers, so that no float comparison ever decides a count.

``precision=None``: every leaf is a float, ``m * 2**e``; scaled by one power of two they are all
integers, and their sums are the real-number sums. ``precision=N``: every leaf is rounded to the
nearest multiple of ``10**-N`` and scaled by ``10**N``. Either way the question
``|V(b) - V(b')| > G`` becomes ``|integer| > threshold`` with an integer threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

LIMB_BITS = 64
_LIMB = 2**LIMB_BITS - 1
_WIDE = 2 ** (2 * LIMB_BITS - 1)
LIMB_CHOICES = (1, 2, 36)
"""64-bit, 128-bit, and wide enough for any sum of 64-bit floats (2**1024 down to 2**-1074)."""


class Integers(Sequence[int]):
    """Integers of any size, ``high * 2**64 + low`` in two arrays.

    A large forest has millions of leaves: creating them as Python objects would take longer than
    reading the forest. If 128 bits do not hold all of them, they are Python objects after all, in
    ``high``, and there is no ``low``.

    Example:
        >>> numbers = Integers.of([3, -(2**70)])
        >>> numbers[1] == -(2**70), numbers.largest() == 2**70, list(numbers[:1])
        (True, True, [3])
    """

    def __init__(self, high: NDArray[Any], low: NDArray[np.uint64] | None) -> None:
        self._high, self._low = high, low

    @classmethod
    def of(cls, values: Sequence[int]) -> Integers:
        """Return Python integers in this form."""
        if any(not -_WIDE < value < _WIDE for value in values):
            objects = np.empty(len(values), dtype=object)
            objects[:] = values
            return cls(objects, None)
        low = np.fromiter((value & _LIMB for value in values), np.uint64, len(values))
        high = np.fromiter((value >> LIMB_BITS for value in values), np.int64, len(values))
        return cls(high, low)

    @classmethod
    def shifted(cls, mantissas: NDArray[np.int64], shifts: NDArray[np.integer]) -> Integers:
        """Return ``mantissas << shifts``; no mantissa has more than 53 bits, no shift is negative.

        Example:
            >>> list(Integers.shifted(np.array([-3, 5]), np.array([0, 64]))) == [-3, 5 * 2**64]
            True
        """
        if (shifts > 2 * LIMB_BITS - 55).any():
            pairs = zip(mantissas.tolist(), shifts.tolist(), strict=True)
            return cls.of([mantissa << shift for mantissa, shift in pairs])
        small = np.minimum(shifts, LIMB_BITS - 1)
        # In two steps: a shift by all 64 bits of a limb is undefined.
        carried = (mantissas >> (LIMB_BITS - 1 - small)) >> 1
        beyond = mantissas << np.maximum(shifts - LIMB_BITS, 0)
        is_small = shifts < LIMB_BITS
        low = np.where(is_small, mantissas << small, 0).view(np.uint64)
        return cls(np.where(is_small, carried, beyond), low)

    @classmethod
    def joined(cls, parts: Sequence[Integers]) -> Integers:
        """Return integers one after the other."""
        if not parts:
            return cls.of(())
        if any(part._low is None for part in parts):
            return cls.of([value for part in parts for value in part])
        lows = [part._low for part in parts if part._low is not None]
        return cls(np.concatenate([part._high for part in parts]), np.concatenate(lows))

    def spread(self, places: NDArray[np.intp], size: int) -> Integers:
        """Return ``size`` integers: these at the given places, 0 elsewhere."""
        high = np.zeros(size, dtype=self._high.dtype)
        high[places] = self._high
        if self._low is None:
            return Integers(high, None)
        low = np.zeros(size, dtype=np.uint64)
        low[places] = self._low
        return Integers(high, low)

    def __len__(self) -> int:
        return len(self._high)

    @overload
    def __getitem__(self, place: int) -> int: ...

    @overload
    def __getitem__(self, place: slice) -> Integers: ...

    def __getitem__(self, place: int | slice) -> int | Integers:
        if isinstance(place, slice):
            return Integers(self._high[place], None if self._low is None else self._low[place])
        high = int(self._high[place])
        return high if self._low is None else (high << LIMB_BITS) + int(self._low[place])

    def __iter__(self) -> Iterator[int]:
        if self._low is None:
            return iter(self._high.tolist())
        pairs = zip(self._high.tolist(), self._low.tolist(), strict=True)
        return ((high << LIMB_BITS) + low for high, low in pairs)

    def at(self, places: NDArray[np.bool_]) -> Integers:
        """Return the integers at the marked places."""
        return Integers(self._high[places], None if self._low is None else self._low[places])

    def times(self, factor: int) -> Integers:
        """Return all integers multiplied by a number."""
        return self if factor == 1 else Integers.of([value * factor for value in self])

    def __neg__(self) -> Integers:
        if self._low is None:
            return Integers(-self._high, None)
        # -x is the complement of x, plus 1.
        low = ~self._low + np.uint64(1)
        return Integers(~self._high + (low == 0), low)

    def largest(self) -> int:
        """Return the largest absolute value."""
        return max(abs(self.highest()), abs(self.lowest()))

    def highest(self) -> int:
        """Return the largest integer."""
        high = int(self._high.max())
        if self._low is None:
            return high
        return (high << LIMB_BITS) + int(self._low[self._high == high].max())

    def lowest(self) -> int:
        """Return the smallest integer."""
        high = int(self._high.min())
        if self._low is None:
            return high
        return (high << LIMB_BITS) + int(self._low[self._high == high].min())

    def limbs(self, n_limbs: int) -> NDArray[np.uint64]:
        """Return two's complement little-endian limbs, as :func:`to_limbs` does."""
        if self._low is None or n_limbs > 2:
            return to_limbs(list(self), n_limbs)
        if n_limbs == 1:
            return self._low.reshape(-1, 1)
        return np.stack([self._low, self._high.view(np.uint64)], axis=1)


@dataclass(frozen=True, slots=True)
class ScaledLeaves:
    """Leaf values as integers.

    Attributes:
        values: one integer per given leaf, ``leaf / divisor * scale`` exactly or rounded.
        scale: one unit of margin in these integers.
    """

    values: Integers
    scale: Fraction


def scale_leaves(leaves: NDArray[np.float64], divisor: int, precision: int | None) -> ScaledLeaves:
    """Turn the leaves of an ensemble into integers that keep every comparison."""
    if precision is None:
        return _scale_by_power_of_two(leaves, divisor)
    return ScaledLeaves(_rounded(leaves, divisor, precision), Fraction(10) ** precision)


def _scale_by_power_of_two(leaves: NDArray[np.float64], divisor: int) -> ScaledLeaves:
    places = np.flatnonzero(leaves)  # inner nodes hold 0
    mantissas, exponents = np.frexp(leaves[places])
    integers = (mantissas * 2.0**53).astype(np.int64)
    trailing = _trailing_zeros(integers)
    shifts = exponents + (trailing - 53)
    lowest = int(shifts.min()) if places.size else 0
    found = Integers.shifted(integers >> trailing, shifts - lowest)
    return ScaledLeaves(found.spread(places, len(leaves)), divisor * Fraction(2) ** -lowest)


def _trailing_zeros(integers: NDArray[np.int64]) -> NDArray[np.int32]:
    lowest_bit = (integers & -integers).astype(np.float64)
    return np.frexp(lowest_bit)[1] - 1


def _rounded(leaves: NDArray[np.float64], divisor: int, precision: int) -> Integers:
    """Round to nearest, ties to even, deciding near-ties with exact fractions."""
    power = 10**precision
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = leaves * float(power) / divisor
        near_tie = np.abs(scaled - np.floor(scaled) - 0.5) < 1e-6 + np.abs(scaled) * 1e-12
        unsure = near_tie | ~(np.abs(scaled) < 2**40)
    values = np.where(unsure, 0.0, np.rint(scaled)).astype(np.int64)
    if not unsure.any():
        return Integers.shifted(values, np.zeros_like(values))
    integers = values.tolist()
    for i in np.flatnonzero(unsure):
        integers[i] = round(Fraction(float(leaves[i])) * power / divisor)
    return Integers.of(integers)


def last_integer(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the last integer for which a monotone condition holds; it holds at ``low``."""
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def limbs_for(bound: int) -> int:
    """Return the smallest native width, in 64-bit limbs, whose integers hold ``4 * bound``."""
    bits = (4 * abs(bound)).bit_length() + 1
    return next(limbs for limbs in LIMB_CHOICES if bits <= limbs * LIMB_BITS)


def to_limbs(values: Sequence[int], limbs: int) -> NDArray[np.uint64]:
    """Return two's complement little-endian limbs, shape ``(len(values), limbs)``."""
    if limbs == 1:
        return np.array(values, dtype=np.int64).view(np.uint64).reshape(-1, 1)
    if limbs == 2:  # most sums of more than 64 bits, in half of the time
        low = np.fromiter((value & _LIMB for value in values), np.uint64, len(values))
        high = np.fromiter((value >> LIMB_BITS for value in values), np.int64, len(values))
        return np.stack([low, high.view(np.uint64)], axis=1)
    data = b"".join(value.to_bytes(limbs * 8, "little", signed=True) for value in values)
    return np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(-1, limbs)


def from_limbs(limbs: NDArray[np.uint64]) -> int:
    """Return the unsigned integer of little-endian limbs."""
    return int.from_bytes(np.ascontiguousarray(limbs, dtype="<u8").tobytes(), "little")


def exceeds(limbs: NDArray[np.uint64], value: int) -> NDArray[np.bool_]:
    """Return which integers, given by their limbs along the last axis, are above a value.

    Example:
        >>> exceeds(to_limbs([-1, 0, 2**70], 2), 0).tolist()
        [False, False, True]
    """
    return is_above(limbs, to_limbs([value], limbs.shape[-1])[0])


def below_largest(limbs: NDArray[np.uint64], exponent: int) -> NDArray[np.float64]:
    """Return how far integers are from the largest of them, times 2 ** exponent, as floats <= 0.

    The integers are given by their limbs along the last axis, and compared along the one before.
    They are subtracted before they are rounded, so that a common part of any size does not matter.

    Example:
        >>> below_largest(to_limbs([2**100 + 1, 2**100, 2**100 + 3], 2), 0).tolist()
        [-2.0, -3.0, -0.0]
    """
    largest = limbs[..., 0, :]
    for place in range(1, limbs.shape[-2]):
        own = limbs[..., place, :]
        largest = np.where(is_above(own, largest)[..., np.newaxis], own, largest)
    total = np.zeros(limbs.shape[:-1])
    borrow = np.zeros(limbs.shape[:-1], dtype=np.uint64)
    for place in range(limbs.shape[-1]):
        top, own = largest[..., np.newaxis, place], limbs[..., place]
        digit = top - own - borrow
        borrow = ((top < own) | ((top == own) & (borrow > 0))).astype(np.uint64)
        with np.errstate(over="ignore"):
            total += np.ldexp(digit.astype(np.float64), LIMB_BITS * place + exponent)
    return -total


def is_above(limbs: NDArray[np.uint64], others: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which integers are above others, all given by their limbs along the last axis."""
    top, other = limbs[..., -1:].view(np.int64)[..., 0], others[..., -1:].view(np.int64)[..., 0]
    above: NDArray[np.bool_] = top > other
    ties: NDArray[np.bool_] = top == other
    for place in range(limbs.shape[-1] - 2, -1, -1):
        above |= ties & (limbs[..., place] > others[..., place])
        ties &= limbs[..., place] == others[..., place]
    return above
