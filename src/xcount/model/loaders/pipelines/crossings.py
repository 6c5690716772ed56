"""Where a function of one number crosses given values, exactly on the floats.

The function is known by calling it, and monotone between given *turns*. A crossing is found by
bisection on the numbers that a float64 can hold, so it is the very number at which the function's
own arithmetic, rounding included, changes sides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]
Function = Callable[[Numbers], Numbers]

LARGEST = float(np.finfo(np.float64).max)
_SIGN = np.uint64(2**63)
_NUMBERS_A_CALL = 1024


def crossings(function: Function, turns: Sequence[float], cuts: ArrayLike) -> Numbers:
    """Return the numbers at which ``function(x) >= cut`` changes, for any of the cuts; ascending.

    Each is the first number, coming from below, of the new side. The turns themselves are left out,
    unless the function crosses a cut just there.

    Args:
        function: monotone, up or down, between neighbouring turns; NaN is on no side of a cut.
        turns: where a new piece of the function begins, ascending.
        cuts: the values to cross.

    Example:
        >>> crossings(lambda x: 2.0 - x / 3.0, [], [1.0, 0.0]).tolist()
        [3.0000000000000004, 6.000000000000001]
    """
    wanted = np.unique(np.asarray(cuts, dtype=np.float64))
    starts = np.array([-LARGEST, *turns])
    ends = np.array([*np.nextafter(np.asarray(turns, dtype=np.float64), -np.inf), LARGEST])
    at_starts = function(starts)[:, np.newaxis] >= wanted
    at_ends = function(ends)[:, np.newaxis] >= wanted
    jumps = starts[1:][(at_starts[1:] != at_ends[:-1]).any(axis=1)]
    pieces, crossed = np.nonzero(at_starts != at_ends)
    between = _bisect(
        function, starts[pieces], ends[pieces], wanted[crossed], at_ends[pieces, crossed]
    )
    return np.unique(np.concatenate([jumps, between])) + 0.0


def _bisect(
    function: Function, starts: Numbers, ends: Numbers, cuts: Numbers, at_ends: NDArray[np.bool_]
) -> Numbers:
    """Return the first number on the end's side of each cut; the start is on the other side.

    Each round asks the function at several numbers between, since a call costs more than a number.
    """
    low, high = _keys(starts), _keys(ends)
    n_steps = np.uint64(max(2, _NUMBERS_A_CALL // max(1, len(cuts))))
    while len(cuts) and (high - low > 1).any():
        width = (high - low + n_steps - np.uint64(1)) // n_steps
        steps = np.arange(1, int(n_steps), dtype=np.uint64)[:, np.newaxis] * width
        between = low + np.minimum(steps, high - low)
        values = function(_numbers(between.ravel())).reshape(between.shape)
        is_at_end = (values >= cuts) == at_ends
        first = np.where(is_at_end.any(axis=0), is_at_end.argmax(axis=0), len(between))
        tried = np.vstack([low, between, high])
        low, high = (tried[first + i, np.arange(len(cuts))] for i in (0, 1))
    return _numbers(high)


def _keys(numbers: Numbers) -> NDArray[np.uint64]:
    """Return integers that are ordered like the numbers, neighbours next to each other."""
    bits = numbers.view(np.uint64)
    return np.where(bits >= _SIGN, ~bits, bits | _SIGN)


def _numbers(keys: NDArray[np.uint64]) -> Numbers:
    bits = np.where(keys >= _SIGN, keys ^ _SIGN, ~keys)
    return bits.view(np.float64)
