"""Intervals of shares, quantiles and means: their definitions, and how often they hold."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from xcount.counters.sampling.intervals import mean_interval, quantile_ranks, share_intervals


def tail(k: int, n: int, p: Fraction) -> Fraction:
    """Return P(Bin(n, p) >= k), exactly."""
    return sum(
        (math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k, n + 1)), start=Fraction(0)
    )


@pytest.mark.parametrize("n", [1, 2, 7, 40])
@pytest.mark.parametrize("delta", [0.2, 1e-3, 1e-6])
def test_shares_are_those_of_clopper_and_pearson(n: int, delta: float) -> None:
    """At each end, as many hits, or as few, have probability delta/2: not more, hardly less."""
    lows, highs = share_intervals(np.arange(n + 1), n, delta)
    for hits in range(n + 1):
        if hits:
            chance = float(tail(hits, n, Fraction(lows[hits])))
            assert delta / 2 * (1 - 1e-4) <= chance <= delta / 2
        chance = float(tail(n - hits, n, 1 - Fraction(highs[hits]))) if hits < n else delta / 2
        assert delta / 2 * (1 - 1e-4) <= chance <= delta / 2 * (1 + 1e-9)
    assert (lows[0], highs[n]) == (0, 1)


def test_many_samples_are_as_quick_and_as_sharp() -> None:
    """The normal approximation agrees where it is good."""
    n = 100_000
    (low,), (high,) = share_intervals([30_000], n, 0.05)
    width = 1.96 * math.sqrt(0.3 * 0.7 / n)
    assert 0.3 - low == pytest.approx(width, rel=0.02)
    assert high - 0.3 == pytest.approx(width, rel=0.02)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_quantiles_lie_between_their_ranks(level: float) -> None:
    """The binomial tails beyond the ranks are at most delta/2, and no rank closer would do."""
    n, delta, p = 60, 0.1, Fraction(str(level))
    low, high = quantile_ranks(level, n, delta)
    if low > 0:
        assert 1 - tail(low, n, p) <= delta / 2
    assert 1 - tail(low + 1, n, p) > delta / 2
    if high <= n:
        assert tail(high, n, p) <= delta / 2
    assert tail(high - 1, n, p) > delta / 2


def test_means_hold() -> None:
    """The interval misses the mean no more often than allowed."""
    random, wrong = np.random.default_rng(0), 0
    for _ in range(300):
        low, high = mean_interval(random.exponential(0.2, 500).clip(0, 3), 3.0, 0.2)
        wrong += not low <= 0.2 * (1 - math.exp(-15)) <= high
    assert wrong <= 60
    assert mean_interval(np.zeros(1), 3.0, 0.2) == (0.0, 3.0)
    assert mean_interval(np.full(5, 1e300), 1e300, 0.2)[1] == 1e300
