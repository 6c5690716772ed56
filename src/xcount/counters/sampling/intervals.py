"""Confidence intervals from independent samples.

From a fixed number of samples:

- A share by Clopper and Pearson ("The use of confidence or fiducial limits", Biometrika 1934): each
  end is the share at which as many hits, or as few, have probability delta/2.
- A quantile by order statistics: how many samples lie below it is binomial.
- The mean of numbers in a range by Maurer and Pontil ("Empirical Bernstein bounds", COLT 2009,
  Theorem 4), once for each side.

Intervals that stay true however and whenever a run stops, for outcomes ``0 <= Y <= 1`` with unknown
mean p:

- :class:`BettingSequence`: an interval at every moment. It is a confidence sequence by betting
  (Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", JRSS-B 2024,
  Theorem 1): for a candidate mean m, a bettor on ``Y > m`` at fair odds has the wealth
  ``W(m) = prod(1 + bet * (Y - m))``, with ``bet >= 0`` chosen before Y is seen and small enough
  that W stays positive. At ``m = p`` W is a martingale that starts at 1, so by Ville's inequality
  it ever reaches 1/alpha with probability at most alpha; all m with ``W(m) >= 1/alpha`` are
  rejected. Averages of such W, with weights fixed beforehand, are such W again.
- :class:`GammaBernoulli`: one estimate with a relative error known beforehand (Huber, "A Bernoulli
  mean estimate with known relative error distribution", Random Structures & Algorithms 2017): let N
  be the number of draws up to the k-th success, and R the sum of N independent Exp(1) variables;
  then ``p * R`` is Gamma(k, 1), whatever p is.

A third, for counts with a certain part, is in :mod:`xcount.counters.sampling.stopping`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

# ---- a fixed number of samples ----

_STEPS = 40
"""Most steps of Newton's method; a handful is nearly always enough."""
_CLOSE = 1e-7
"""Relative error of an interval's end, in the outward direction."""
_SMALL_STEP = 1e-4
_MAX_TERMS = 20_000
_ROUNDING = 1e-9
"""Relative error allowed for in tail probabilities."""


def share_intervals(hits: ArrayLike, n: int, delta: float) -> tuple[Floats, Floats]:
    """Return the intervals of shares, given the hits in n samples; each may be wrong by delta.

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

    By Newton's method for the logarithm of the tail, which is concave in p. Its result is moved
    down a little and checked; if the check fails, Chernoff's bound is used.
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
    """Return an approximate p with P(Bin(n, p) >= k) = alpha (Abramowitz and Stegun, 26.5.22)."""
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
    """Return the ranks, from 1, of samples that bound the quantile; 0 and n + 1 if none does.

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
    """Return an interval of the mean of numbers from 0 to ``most``, wrong with probability delta.

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


# ---- sequences: an interval at every moment ----

_CAUTION = 0.95
"""Bets stay below this fraction of what could ruin the bettor."""

_FIXED_BETS = 2.0 ** np.arange(-9, 7, 1.0)
_WEIGHT_OF_TUNED_BET = 0.5
_BETS_PER_OCTAVE = 4
_ROUNDING_MARGIN = 1e-7
"""Added to the threshold of log W: far beyond the rounding error of summing log1p's."""


class _Bettor:
    """Log wealth of one side: against all means below the true one, or against all above it.

    Every factor is monotone in m, hence the wealth is too, and the rejected means are a ray: for
    ``Y > m`` (side 1) the bet is ``min(b, 0.95 / m)``, and ``1 + bet * (Y - m)`` falls as m grows;
    for ``Y < m`` (side -1) the bet is ``min(b, 0.95 / (1 - m))``, and ``1 + bet * (m - Y)`` grows.
    """

    def __init__(self, values: NDArray[np.float64], side: int) -> None:
        self._values = values
        self._side = side
        self._total = np.zeros(len(values))
        self._tuned: dict[float, NDArray[np.float64]] = {}

    def update(self, histogram: NDArray[np.float64], bet: float) -> None:
        self._total += histogram
        seen = self._tuned.setdefault(bet, np.zeros_like(self._total))
        seen += histogram

    def log_wealth(self, mean: float) -> float:
        fixed = self._log_products(_FIXED_BETS, mean) @ self._total
        tuned_bets = np.array(list(self._tuned))
        products = self._log_products(tuned_bets, mean)
        tuned = float(np.sum(products * np.array(list(self._tuned.values()))))
        weight = (1 - _WEIGHT_OF_TUNED_BET) / len(_FIXED_BETS)
        terms = np.append(fixed + math.log(weight), tuned + math.log(_WEIGHT_OF_TUNED_BET))
        top = float(terms.max())
        return top + math.log(float(np.exp(terms - top).sum()))

    def _log_products(self, bets: NDArray[np.float64], mean: float) -> NDArray[np.float64]:
        """Return log(1 + bet * (y - mean)) for every bet and value, shape (bets, values)."""
        room = mean if self._side > 0 else 1 - mean
        limit = _CAUTION / room if room > 0 else math.inf
        capped = np.minimum(bets, limit)[:, np.newaxis]
        logs: NDArray[np.float64] = np.log1p(capped * (self._side * (self._values - mean)))
        return logs

    def bound(self, log_threshold: float, start: float, estimate: float) -> float:
        """Return the rejected mean closest to the sample mean; ``start`` if none is rejected.

        Bisection on a logarithmic scale: a small mean is bounded as sharply as a large one.
        """
        if self._side * (estimate - start) <= 0 or self.log_wealth(start) < log_threshold:
            return start
        rejected, kept = start, estimate  # the wealth at the sample mean is below the threshold
        for _ in range(60):
            if abs(rejected - kept) <= 1e-4 * max(rejected, kept):
                break
            low, high = min(rejected, kept), max(rejected, kept)
            middle = math.sqrt(low * high) if low > 0 else high * 0.25
            if not low < middle < high:
                break
            if self.log_wealth(middle) >= log_threshold:
                rejected = middle
            else:
                kept = middle
        return rejected


class BettingSequence:
    """A confidence sequence for the mean of outcomes in [0, 1].

    ``low < p < high`` for the values of all :meth:`interval` calls together, with probability at
    least ``1 - delta``. The bets are tuned to reject means that are off by the factor
    ``1 +- epsilon``; a mixture of fixed bets keeps the interval sensible long before and after.

    Example:
        >>> sequence = BettingSequence(np.array([0.0, 1.0]), delta=0.1, epsilon=0.1)
        >>> sequence.update(np.array([50, 50]))
        >>> low, high = sequence.interval()
        >>> 0.3 < low < 0.5 < high < 0.7
        True
    """

    def __init__(self, values: NDArray[np.float64], delta: float, epsilon: float) -> None:
        self._values = values
        self._epsilon = epsilon
        self._log_threshold = math.log(2 / delta) + _ROUNDING_MARGIN
        self._histogram = np.zeros(len(values))
        self._above = _Bettor(values, 1)
        self._below = _Bettor(values, -1)
        self._low, self._high = 0.0, 1.0

    @property
    def n(self) -> int:
        """Number of outcomes seen."""
        return int(self._histogram.sum())

    @property
    def mean(self) -> float:
        return float(self._values @ self._histogram) / max(1, self.n)

    @property
    def variance(self) -> float:
        return float((self._values - self.mean) ** 2 @ self._histogram) / max(1, self.n)

    def update(self, histogram: NDArray[Any], certain: float = 0.0) -> None:
        """Take new outcomes: how often each value occurred.

        Args:
            histogram: one number per value.
            certain: what is added to p in the quantity of interest, ``certain + p``; the target
                accuracy is relative to that sum. Chosen before the outcomes were seen.
        """
        counts = np.asarray(histogram, dtype=np.float64)
        bet = self._tuned_bet(certain)
        self._above.update(counts, bet)
        self._below.update(counts, bet)
        self._histogram += counts

    def _tuned_bet(self, certain: float) -> float:
        """Return the growth-optimal bet against a mean at the target distance, as far as known.

        Against the candidate m = p - t it is about ``t / (variance + t**2)`` (the paper's section
        B.3); only outcomes of earlier updates are used, as the theorem demands. Rounded to a
        geometric grid, so that a few histograms are all that needs to be kept.
        """
        n = self.n
        if n == 0:
            return self._epsilon
        mean = (self.mean * n + 0.5) / (n + 1)
        spread = (self.variance * n + 0.5) / (n + 1)
        shift = self._epsilon * (mean + certain)
        bet = shift / (spread + shift**2)
        steps = round(math.log2(min(max(bet, 1e-6), 1e6)) * _BETS_PER_OCTAVE)
        return float(2.0 ** (steps / _BETS_PER_OCTAVE))

    def is_worth_computing(self, certain: float = 0.0) -> bool:
        """Guess, by the normal approximation, whether the target accuracy is near."""
        if self.n == 0 or self.mean == 0:
            return False
        width = math.sqrt(2 * self._log_threshold * (self.variance + 1 / self.n) / self.n)
        return width < 1.3 * self._epsilon * (self.mean + certain)

    def interval(self, *, keep: bool = True) -> tuple[float, float]:
        """Return the interval so far, cut with all intervals that were kept before."""
        if self.n == 0:
            return self._low, self._high
        mean = self.mean
        low = max(self._low, self._above.bound(self._log_threshold, self._low, mean))
        high = min(self._high, self._below.bound(self._log_threshold, self._high, mean))
        if keep:
            self._low, self._high = low, high
        return low, high


# ---- Huber's estimate ----


@dataclass(frozen=True, slots=True)
class GammaPlan:
    """How many successes GBAS waits for, and the constant of its estimate ``constant / R``."""

    successes: int
    constant: float


def plan_gamma_bernoulli(epsilon: float, delta: float) -> GammaPlan:
    """Return the smallest plan for which ``|estimate / p - 1| > epsilon`` has probability <= delta.

    ``estimate / p = c / A`` with A a Gamma(k, 1) variable; the constant c that minimises the
    probability of leaving ``1 +- epsilon`` balances the density at both ends.

    Example:
        >>> plan_gamma_bernoulli(0.1, 0.1).successes
        270
    """
    factor = (1 - epsilon**2) / (2 * epsilon) * math.log((1 + epsilon) / (1 - epsilon))

    def failure(k: int) -> float:
        c = k * factor
        return gamma_below(k, c / (1 + epsilon)) + gamma_above(k, c / (1 - epsilon))

    high = 2
    while failure(high) > delta:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if failure(middle) <= delta else (middle, high)
    return GammaPlan(high, high * factor)


def gamma_below(k: int, x: float) -> float:
    """Return P(A <= x) for A a Gamma(k, 1) variable, that is P(Poisson(x) >= k)."""
    return _upwards(k, x) if x < k else 1 - _downwards(k, x)


def gamma_above(k: int, x: float) -> float:
    """Return P(A > x) for A a Gamma(k, 1) variable, that is P(Poisson(x) < k)."""
    return 1 - _upwards(k, x) if x < k else _downwards(k, x)


def _upwards(k: int, x: float) -> float:
    """Sum the Poisson probabilities from k on: terms shrink by x / (j + 1)."""
    if x <= 0:
        return 0.0
    return _tail(k * math.log(x) - x - math.lgamma(k + 1), lambda j: x / (k + j + 1))


def _downwards(k: int, x: float) -> float:
    """Sum the Poisson probabilities from k - 1 down."""
    log_term = (k - 1) * math.log(x) - x - math.lgamma(k)
    return _tail(log_term, lambda j: (k - 1 - j) / x)


def _tail(log_first: float, ratio: Any) -> float:
    term = total = math.exp(log_first)
    j = 0
    while term > total * 1e-17 and term > 0:
        term *= ratio(j)
        total += term
        j += 1
    return total


class GammaBernoulli:
    """Huber's estimate: fed with 0/1 outcomes in order until it has seen enough successes."""

    def __init__(self, epsilon: float, delta: float, random: np.random.Generator) -> None:
        self.epsilon = epsilon
        self.plan = plan_gamma_bernoulli(epsilon, delta)
        self._random = random
        self._draws = 0
        self._successes = 0
        self.interval: tuple[float, float] | None = None
        """Once done: p lies in it with probability at least 1 - delta."""

    @property
    def is_done(self) -> bool:
        return self.interval is not None

    @property
    def fraction_done(self) -> float:
        return min(1.0, self._successes / self.plan.successes)

    def update(self, hits: NDArray[np.uint8]) -> None:
        """Take the next outcomes in order; those after the last needed success do not matter."""
        if self.interval is not None:
            return
        found = np.flatnonzero(hits)
        missing = self.plan.successes - self._successes
        if len(found) < missing:
            self._draws += len(hits)
            self._successes += len(found)
            return
        self._draws += int(found[missing - 1]) + 1
        self._successes = self.plan.successes
        estimate = self.plan.constant / float(self._random.gamma(self._draws))
        self.interval = (estimate / (1 + self.epsilon), estimate / (1 - self.epsilon))
