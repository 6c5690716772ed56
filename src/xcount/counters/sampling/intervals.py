"""Intervals of what a fixed number of independent samples tells: shares, quantiles, means.

- A share by Clopper and Pearson ("The use of confidence or fiducial limits", Biometrika 1934): each
  end is the share at which as many hits, or as few, have probability delta/2.
- A quantile by order statistics: how many samples lie below it is binomial.
- The mean of numbers in a range by Maurer and Pontil ("Empirical Bernstein bounds", COLT 2009,
  Theorem 4), once for each side.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_STEPS = 40
"""Of Newton's method, at most; a handful is enough nearly always."""
_CLOSE = 1e-7
"""Relative error of an interval's end, to the outside."""
_SMALL_STEP = 1e-4
_MAX_TERMS = 20_000
_ROUNDING = 1e-9
"""Relative error of tail probabilities, allowed for."""


def share_intervals(hits: ArrayLike, n: int, delta: float) -> tuple[Floats, Floats]:
    """Return the intervals of shares of which so many of n samples are hits, each wrong by delta.

    Example:
        >>> low, high = share_intervals([0, 5, 10], 10, 0.05)
        >>> low.round(4).tolist(), high.round(4).tolist()
        ([0.0, 0.1871, 0.6915], [0.3085, 0.8129, 1.0])
    """
    counts = np.asarray(hits, dtype=np.float64)
    found, back = np.unique(counts, return_inverse=True)
    low = _low_ends(found, n, delta / 2)
    high = 1 - _low_ends(n - found, n, delta / 2)
    return low[back].reshape(counts.shape), high[back].reshape(counts.shape)


def _low_ends(hits: Floats, n: int, alpha: float) -> Floats:
    """Return a p close to the largest with P(Bin(n, p) >= hits) <= alpha; 0 without hits.

    By Newton's method for the logarithm of the tail, which is concave in p. What it finds is moved
    down a little and checked; where that fails, Chernoff's bound stands.
    """
    found = np.where(hits == n, alpha ** (1 / n) * (1 - _CLOSE), 0.0)
    some = np.flatnonzero((hits > 0) & (hits < n))
    if not len(some):
        return found
    k, share = hits[some], hits[some] / n
    spread = np.sqrt(2 * math.log(1 / alpha) * share / n)
    least = np.maximum(0.0, share - 1.01 * spread)  # KL(share, p) >= (share - p)^2 / (2 share)
    p = np.clip(_guess(k, n, alpha), np.maximum(least, share * alpha ** (1 / k) / 3), share)
    for _ in range(_STEPS):
        tail = np.maximum(binomial_tail(k, n, p), 1e-300)
        step = (math.log(alpha) - np.log(tail)) * tail / _beta_density(k, n, p)
        p = np.clip(p + step, np.maximum(least, p / 4), share)
        # The next step would be about the square of this one, in standard deviations.
        if (np.abs(step) <= _SMALL_STEP * np.minimum(p, np.sqrt(p / n))).all():
            break
    p = p * (1 - 2 * _CLOSE)
    is_rare = binomial_tail(k, n, p) * (1 + _ROUNDING) <= alpha
    found[some] = np.where(is_rare, p, least)
    return found


def _guess(k: Floats, n: int, alpha: float) -> Floats:
    """Return about the p with P(Bin(n, p) >= k) = alpha (Abramowitz and Stegun, 26.5.22)."""
    y = NormalDist().inv_cdf(1 - alpha)
    a, b = 1 / (2 * k - 1), 1 / (2 * (n - k) + 1)
    rest, h = (y * y - 3) / 6, 2 / (a + b)
    w = y * np.sqrt(np.maximum(0.0, h + rest)) / h - (b - a) * (rest + 5 / 6 - 2 / (3 * h))
    guess: Floats = k / (k + (n - k + 1) * np.exp(2 * w))
    return guess


def _beta_density(k: Floats, n: int, p: Floats) -> Floats:
    """Return the derivative of P(Bin(n, p) >= k) by p."""
    logs = (k - 1) * np.log(p) + (n - k) * np.log1p(-p) - _log_beta(k, n - k + 1)
    return np.maximum(np.exp(logs), 1e-300)


def binomial_tail(k: Floats, n: int, p: Floats) -> Floats:
    """Return P(Bin(n, p) >= k) for 1 <= k <= n: the incomplete beta function I_p(k, n - k + 1).

    By its continued fraction, evaluated as Lentz does (Thompson and Barnett, 1986).
    """
    a, b = k, n - k + 1
    is_far = p > (a + 1) / (a + b + 2)
    x = np.where(is_far, 1 - p, p)
    a, b = np.where(is_far, b, a), np.where(is_far, a, b)
    with np.errstate(divide="ignore"):
        front = np.exp(a * np.log(x) + b * np.log1p(-x) - np.log(a) - _log_beta(a, b))
    part = front * _fraction(a, b, x)
    return np.clip(np.where(is_far, 1 - part, part), 0.0, 1.0)


def _log_beta(a: Floats, b: Floats) -> Floats:
    values = [
        math.lgamma(x) + math.lgamma(y) - math.lgamma(x + y)
        for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    return np.array(values)


def _fraction(a: Floats, b: Floats, x: Floats) -> Floats:
    """Return the continued fraction of the incomplete beta function, for x below its mean."""
    c = np.ones_like(x)
    d = 1 / (1 - (a + b) * x / (a + 1))
    total = d.copy()
    for m in range(1, _MAX_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1 / (1 + even * d), 1 + even / c
        total = total * c * d
        d, c = 1 / (1 + odd * d), 1 + odd / c
        total = total * c * d
        if (np.abs(c * d - 1) < 1e-14).all():
            break
    return total


def quantile_ranks(level: float, n: int, delta: float) -> tuple[int, int]:
    """Return ranks, from 1, between whose samples the quantile lies; 0 and n + 1 if beyond them.

    The quantile q is the least number with P(X <= q) >= level. Of n samples, at most Bin(n, level)
    lie below q, and at least so many are at most q.

    Example:
        >>> quantile_ranks(0.5, 100, 0.05)
        (40, 61)
    """
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    k = np.arange(n + 1)
    log_pmf = logs[n] - logs - logs[::-1] + k * math.log(level) + (n - k) * math.log1p(-level)
    below = np.cumsum(np.exp(log_pmf)) * (1 + _ROUNDING)
    above = np.cumsum(np.exp(log_pmf)[::-1])[::-1] * (1 + _ROUNDING)
    # X_(l) <= q unless fewer than l samples are <= q; q <= X_(u) unless u or more are < q.
    low = int(np.searchsorted(below, delta / 2, side="right"))
    high = n + 1 - int(np.searchsorted(above[::-1], delta / 2, side="right"))
    return low, high


def mean_interval(values: Floats, most: float, delta: float) -> tuple[float, float]:
    """Return the interval of the mean of numbers between 0 and ``most``, wrong by delta.

    Example:
        >>> low, high = mean_interval(np.arange(1000) % 2 * 1.0, 1.0, 0.05)
        >>> round(low, 2), round(high, 2)
        (0.44, 0.56)
    """
    n = len(values)
    if n < 2 or most == 0:
        return 0.0, most
    parts = values / most
    mean, variance = float(parts.mean()), float(parts.var(ddof=1))
    log_term = math.log(4 / delta)
    width = math.sqrt(2 * variance * log_term / n) + 7 * log_term / (3 * (n - 1))
    return max(0.0, mean - width) * most, min(1.0, mean + width) * most
