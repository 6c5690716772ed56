"""Confidence statements that stay true however and whenever a run stops.

Two tools for independent outcomes ``0 <= Y <= 1`` with unknown mean p:

* :class:`BettingSequence`: an interval at every moment. It is a confidence sequence by betting
  (Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", JRSS-B 2024,
  Theorem 1): for a candidate mean m, whoever bets on ``Y > m`` at fair odds owns
  ``W(m) = prod(1 + bet * (Y - m))``, with ``bet >= 0`` chosen before Y is seen and small enough
  that W stays positive. At ``m = p`` W is a martingale that starts at 1, so by Ville's inequality
  it ever reaches 1/alpha with probability at most alpha; all m with ``W(m) >= 1/alpha`` are
  rejected. Averages of such W, with weights fixed beforehand, are such W again.
* :class:`GammaBernoulli`: one estimate with a relative error known beforehand (Huber, "A Bernoulli
  mean estimate with known relative error distribution", Random Structures & Algorithms 2017): let N
  be the number of draws up to the k-th success, and R the sum of N independent Exp(1) variables;
  then ``p * R`` is Gamma(k, 1), whatever p is.

A third one, for counts of which a part is certain, is in :mod:`xcount.counters.sampling.stopping`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        """Return a rejected mean as near to the sample mean as is known; ``start`` if none is.

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
