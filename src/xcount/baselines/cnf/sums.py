"""Weighted sums of literals as binary numbers, and their comparison with constants.

The adder network of Eén and Sörensson, "Translating pseudo-Boolean constraints into SAT" (JSAT
2006), section 5.3 (after Warners 1998): bits of equal weight are added by full and half adders
until each weight has one bit left. Its size is linear in the number of input bits, whatever the
weights; weights are Python ints, so nothing overflows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from xcount.baselines.cnf.formula import Formula

WeightedBit = tuple[int, int]
"""(k, literal): the literal is worth ``2**k``."""


def binary_sum(formula: Formula, bits: Iterable[WeightedBit]) -> list[int]:
    """Return literals z with ``sum of z[k] * 2**k`` equal to the sum of the weighted bits."""
    buckets: list[deque[int]] = []

    def put(k: int, literal: int) -> None:
        while len(buckets) <= k:
            buckets.append(deque())
        buckets[k].append(literal)

    for k, literal in bits:
        put(k, literal)
    total: list[int] = []
    for k in _growing(buckets):
        bucket = buckets[k]
        while len(bucket) > 1:
            a, b = bucket.popleft(), bucket.popleft()
            bit, carry = (
                formula.full_adder(a, b, bucket.popleft()) if bucket else formula.half_adder(a, b)
            )
            bucket.append(bit)
            put(k + 1, carry)
        total.append(bucket[0] if bucket else -formula.true)
    return total


def _growing(buckets: Sequence[object]) -> Iterable[int]:
    """Yield the indices of the buckets, including those that carries add on the way."""
    k = 0
    while k < len(buckets):
        yield k
        k += 1


def require_at_least(formula: Formula, number: Sequence[int], bound: int, condition: int) -> None:
    """Require: if ``condition`` then ``number >= bound``."""
    if bound <= 0:
        return
    if bound >= 1 << len(number):
        formula.add(-condition)
        return
    above: list[int] = []  # higher bits that are 0 in the bound: one set bit decides
    for k in reversed(range(len(number))):
        if bound >> k & 1:
            formula.add(-condition, number[k], *above)
        else:
            above.append(number[k])


def require_at_most(formula: Formula, number: Sequence[int], bound: int, condition: int) -> None:
    """Require: if ``condition`` then ``number <= bound``."""
    complement = [-literal for literal in number]
    require_at_least(formula, complement, (1 << len(number)) - 1 - bound, condition)
