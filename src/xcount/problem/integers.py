"""Leaves -> integers, so that no float comparison ever decides a count.

``precision=None``: every leaf is a float, ``m * 2**e``; scaled by one power of two they are all
integers, and their sums are the real-number sums. ``precision=N``: every leaf is rounded to the
nearest multiple of ``10**-N`` and scaled by ``10**N``. Either way the question
``|V(b) - V(b')| > G`` becomes ``|integer| > threshold`` with an integer threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from xcount.support.dataclass import dataclass

LIMB_BITS = 64
_LIMB = 2**LIMB_BITS - 1
LIMB_CHOICES = (1, 2, 36)
"""64-bit, 128-bit, and wide enough for any sum of 64-bit floats (2**1024 down to 2**-1074)."""


@dataclass(frozen=True, slots=True)
class ScaledLeaves:
    """Leaf values as integers.

    Attributes:
        values: one integer per given leaf, ``leaf / divisor * scale`` exactly or rounded.
        scale: what one unit of margin is in these integers.
    """

    values: list[int]
    scale: Fraction


def scale_leaves(leaves: NDArray[np.float64], divisor: int, precision: int | None) -> ScaledLeaves:
    """Turn the leaves of an ensemble into integers that keep every comparison."""
    if precision is None:
        return _scale_by_power_of_two(leaves, divisor)
    return ScaledLeaves(_rounded(leaves, divisor, precision), Fraction(10) ** precision)


def _scale_by_power_of_two(leaves: NDArray[np.float64], divisor: int) -> ScaledLeaves:
    mantissas, exponents = np.frexp(leaves)
    integers = (mantissas * 2.0**53).astype(np.int64)
    shifts = exponents.astype(np.int64) - 53
    nonzero = integers != 0
    trailing = _trailing_zeros(integers[nonzero])
    integers[nonzero] >>= trailing
    shifts[nonzero] += trailing
    lowest = int(shifts[nonzero].min()) if nonzero.any() else 0
    values = [
        m << (s - lowest) if m else 0
        for m, s in zip(integers.tolist(), shifts.tolist(), strict=True)
    ]
    return ScaledLeaves(values, divisor * Fraction(2) ** -lowest)


def _trailing_zeros(integers: NDArray[np.int64]) -> NDArray[np.int64]:
    lowest_bit = (integers & -integers).astype(np.float64)
    return np.log2(lowest_bit).astype(np.int64)


def _rounded(leaves: NDArray[np.float64], divisor: int, precision: int) -> list[int]:
    """Round to nearest, ties to even, deciding near-ties with exact fractions."""
    power = 10**precision
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = leaves * float(power) / divisor
        near_tie = np.abs(scaled - np.floor(scaled) - 0.5) < 1e-6 + np.abs(scaled) * 1e-12
        unsure = near_tie | ~(np.abs(scaled) < 2**40)
    values = np.where(unsure, 0.0, np.rint(scaled)).astype(np.int64).tolist()
    for i in np.flatnonzero(unsure):
        values[i] = round(Fraction(float(leaves[i])) * power / divisor)
    return [int(value) for value in values]


def last_integer(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the last integer up to which something holds; it ends once, not before ``low``."""
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


def is_above(limbs: NDArray[np.uint64], others: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which integers are above others, all given by their limbs along the last axis."""
    top, other = limbs[..., -1:].view(np.int64)[..., 0], others[..., -1:].view(np.int64)[..., 0]
    above: NDArray[np.bool_] = top > other
    ties: NDArray[np.bool_] = top == other
    for place in range(limbs.shape[-1] - 2, -1, -1):
        above |= ties & (limbs[..., place] > others[..., place])
        ties &= limbs[..., place] == others[..., place]
    return above
