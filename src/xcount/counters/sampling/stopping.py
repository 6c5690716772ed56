"""A self-stopping estimate for counts of which a part is certain.

The count is ``certain + p * undecided``; in units of the certain part it is ``1 + rate``. How many
samples it takes depends on the rate, which is not known beforehand. So sampling is stopped by a
curve that is fixed beforehand and depends only on epsilon and delta.

With an Exp(1) variable for each draw as its waiting time, hits are a Poisson process of rate p,
whatever p is (the idea of Huber's estimate); time is counted in units in which the rate is
p / (certain / undecided). Let N(t) be the hits up to time t. The process stops

* at an early look (t, k), if ``N(t) <= k``: the rest is small;
* at the corner (t, k) of a staircase, at the first moment not before t with ``N >= k``. Corners are
  earlier in time the more hits they need; the first one is (T, 0), the last one (0, most).

Where it stops is a point of a curve; take the points in the order in which the rate grows: early
looks by time, their hits upwards, then the staircase from its last moment to its first. For the
point y = (t, n), with A_i the event that ``N(t_i) <= k_i`` at the i-th early look,

* it stops at y or beyond only if ``N(t) >= n``, and ``N(t_i) > k_i`` at early looks before t;
* it stops at y or before only if ``N(t) <= n`` (``< n`` where it was a hit that stopped it), or A_i
  for an early look before t. Such an event has probability at most
  ``P(N(t) <= n) + sum of P(A_i and not A_i+1)``, with ``N(t) <= n`` as the last of these events.

An end of the interval is a rate at which the one or the other has probability delta / 2: a test of
every rate, turned around as by Clopper and Pearson. So each end is wrong with probability at most
delta / 2, for every p (docs/approximate.md, "Why the interval holds"). The curve is laid so that
the interval is narrow enough wherever it is met; that it is valid does not depend on that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.counters.sampling.intervals import gamma_above, gamma_below

_EARLY_GROWTH, _CORNER_GROWTH = 1.3, 1.03
"""Hits grow by these factors from one early look, or corner, to the next; by 1 at least."""
_LAST_EARLY = 0.8
"""Early looks have fewer hits than this part of those where time is longest."""
_APART = 1.03
"""Early looks are at least this factor of time apart."""
_HELD_BACK, _HELD_BACK_LESS = 0.5, 0.6
"""The first early look leaves this part of delta / 2 to later ones, each further one less."""
_ROOM = 0.03
"""The staircase is laid for this much less of delta / 2: room for early looks before it."""
_NEGLIGIBLE = 1e-12
"""Probabilities below this are not computed; Chernoff's bound is used instead."""
_SOLVED = 1e-9
"""Relative widening of ends: beyond the error of what they solve."""
_FEW = 20
"""Up to so many hits quantiles of a plan are exact; beyond, Wilson and Hilferty's approximation."""

Point = tuple[float, int]
"""A time and a number of hits."""


# ---- quantiles ----


def falling_root(f: Callable[[float], float], low: float, high: float) -> float:
    """Return an x with ``f(x) <= 0``, close to where f falls to 0; ``f(high) <= 0`` is given.

    The method of false position: an end that stays twice counts half (the Illinois rule).
    """
    at_low, at_high = f(low), f(high)
    if at_low <= 0:
        return low
    was_high = was_low = False
    for _ in range(60):
        if high - low <= 1e-11 * abs(high) or at_high > -1e-10:
            break
        middle = low + (high - low) * at_low / (at_low - at_high)
        if not low < middle < high:
            middle = (low + high) / 2
        found = f(middle)
        if found > 0:
            low, at_low, at_high = middle, found, at_high / 2 if was_low else at_high
        else:
            high, at_high, at_low = middle, found, at_low / 2 if was_high else at_low
        was_low, was_high = found > 0, found <= 0
    return high


def least_mean(n: int, tail: float) -> float:
    """Return the mean at which n hits or more have probability ``tail``, from below; 0 for n = 0.

    Example:
        >>> round(least_mean(10, 0.05), 4)
        5.4254
    """
    if n == 0:
        return 0.0
    low = n * (n * tail) ** (1 / n) / math.e**2  # P(N >= n) <= mean^n / n!
    below = falling_root(lambda x: _log_ratio(gamma_below(n, -x), tail), -float(n) - 1, -low)
    return -below * (1 - _SOLVED)


def largest_mean(n: int, tail: float) -> float:
    """Return the mean at which n hits or fewer have probability ``tail``, from above.

    Example:
        >>> round(largest_mean(10, 0.05), 4)
        16.9622
    """
    log_tail = math.log(1 / tail)
    high = n + math.sqrt(2 * n * log_tail) + 2 * log_tail + 2
    above = falling_root(lambda x: _log_ratio(few_hits(n, x), tail), float(n), high)
    return above * (1 + _SOLVED)


def _log_ratio(chance: float, tail: float) -> float:
    return math.log(max(chance, 1e-300) / tail)


def few_hits(n: int, mean: float) -> float:
    """Return the probability of at most n hits; none is fewer than 0."""
    return 0.0 if n < 0 else gamma_above(n + 1, mean)


def _about(n: float, z: float) -> float:
    """Return about the quantile of a Gamma(n) variable, z standard deviations from the middle."""
    return n * max(0.0, 1 - 1 / (9 * n) + z / (3 * math.sqrt(n))) ** 3


# ---- the curve ----


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a process stopped: how many hits when, and whether it was a hit that stopped it."""

    time: float
    hits: int
    is_hit: bool


@dataclass(frozen=True, slots=True)
class StoppingCurve:
    """Where to stop, and the interval of the rate for each stop.

    Attributes:
        epsilon: relative error of 1 + rate that intervals allow.
        delta: probability with which an interval may be wrong.
        looks: the early looks: stop at a time with so many hits or fewer. Both grow.
        corners: the staircase: stop from a time on with so many hits or more. Times fall from the
            largest to 0, hits grow from 0.
        floors: lower ends of the rate once the process has passed so many early looks.
    """

    epsilon: float
    delta: float
    looks: tuple[Point, ...]
    corners: tuple[Point, ...]
    floors: tuple[float, ...]

    def interval(self, stop: Stop) -> tuple[float, float]:
        """Return an interval of the rate, wrong with probability at most delta."""
        n_before = sum(time < stop.time for time, _ in self.looks)
        low = max(self.floors[n_before], least_mean(stop.hits, self.delta / 2) / stop.time)
        fewest = stop.hits - stop.is_hit
        plain = largest_mean(fewest, self.delta / 2) / stop.time

        def excess(rate: float) -> float:
            return _log_ratio(self.chance_before(rate, (stop.time, fewest)), self.delta / 2)

        high = plain
        while excess(high) > 0:
            high *= 1.5
        return low, falling_root(excess, plain, high) * (1 + _SOLVED)

    def chance_before(self, rate: float, point: Point) -> float:
        """Bound the probability to stop at a point or before, in the order of the curve."""
        time, hits = point
        chain = [look for look in self.looks if look[0] < time]
        lost = sum(_lost(rate, *both) for both in pairwise([*chain, point]))
        return few_hits(hits, rate * time) + lost

    def settled_rate(self, low: float) -> float:
        """Return the largest upper end that is near enough to a lower one."""
        return (1 + self.epsilon) / (1 - self.epsilon) * (1 + low) - 1


def _lost(rate: float, early: Point, late: Point) -> float:
    """Bound the probability of ``N(t) <= k`` at one time, but not at a later one."""
    (time, k), (later, hits) = early, late
    mean, more = rate * time, rate * (later - time)
    chernoff = math.exp(k - mean + (k * math.log(mean / k) if k else 0.0)) if mean > k else 1.0
    first = hits - k + 1  # so many more are too many
    if chernoff < _NEGLIGIBLE or first < max(1.0, more - 10 * math.sqrt(more)):
        return min(chernoff, few_hits(k, mean))
    width = min(k, int(40 + 12 * math.sqrt(k)))
    falls = np.cumprod(np.arange(k, k - width, -1.0) / mean)
    few = _poisson(k, mean) * np.concatenate([[1.0], falls])  # P(N = k), P(N = k - 1), ...
    last = int(first + width + more + 12 * math.sqrt(more) + 60)
    rises = np.cumprod(more / np.arange(first + 1, last + 1))
    many = _poisson(first, more) * np.concatenate([[1.0], rises])
    tails = np.cumsum(many[::-1])[::-1][: width + 1]  # P(M >= first), P(M >= first + 1), ...
    beyond = 0.0 if width == k else float(few[-1]) * mean / (mean - k)
    return min(chernoff, (float(few @ tails) + beyond) * (1 + _SOLVED))


def _poisson(n: int, mean: float) -> float:
    return math.exp(n * math.log(mean) - mean - math.lgamma(n + 1))


# ---- laying the curve ----


@lru_cache(maxsize=32)
def lay_curve(epsilon: float, delta: float) -> StoppingCurve:
    """Return a curve with intervals near enough for epsilon wherever it is met.

    Example:
        >>> curve = lay_curve(0.1, 0.08)
        >>> curve.corners[0][1], curve.corners[-1], curve.looks[0][1]
        (0, (0.0, 308), 0)
    """
    corners = tuple(_corners(epsilon, delta))
    floors, looks = [0.0], []
    curve = StoppingCurve(epsilon, delta, (), corners, (0.0,))
    kept = _HELD_BACK
    hits, longest = 0, corners[0][0]
    while hits < _LAST_EARLY * corners[1][1]:
        time = _early_time(curve, hits, longest / _APART, (1 - kept) * delta / 2)
        if time is not None:
            looks.append((time, hits))
            floors.append(max(floors[-1], least_mean(hits + 1, delta / 2) / time))
            curve = StoppingCurve(epsilon, delta, tuple(looks), corners, tuple(floors))
            kept *= _HELD_BACK_LESS
        hits = max(hits + 1, int(hits * _EARLY_GROWTH))
    return curve


def _early_time(curve: StoppingCurve, hits: int, latest: float, part: float) -> float | None:
    """Return about the first time at which so few hits settle the count; None if it is too late."""
    last_time, last_hits = curve.looks[-1] if curve.looks else (0.0, -1)
    floor, half = curve.floors[-1], curve.delta / 2
    lows = {n: least_mean(n, half) for n in {last_hits + 1, hits}}

    def is_open(time: float) -> bool:
        rates = {n: curve.settled_rate(max(floor, low / time)) for n, low in lows.items()}
        return any(curve.chance_before(rate, (time, n)) > part for n, rate in rates.items())

    least = max(_least_time(hits, curve.epsilon, half, half), _APART * last_time)
    if not is_open(least):
        return least if least < latest else None
    most = 1.02 * least
    while most < latest and is_open(most):
        least, most = most, most * most / least * 1.02
    if most >= latest:
        return None
    while most > 1.01 * least:
        middle = math.sqrt(least * most)
        least, most = (middle, most) if is_open(middle) else (least, middle)
    return most


def _corners(epsilon: float, delta: float) -> Iterator[Point]:
    """Yield the staircase: between its corners, the interval is narrower than at them."""
    low, high = delta / 2, (1 - _ROOM) * delta / 2

    def time(hits: int) -> float:
        return _least_time(hits, epsilon, low, high)

    most = _first(lambda hits: _width(hits, hits, epsilon, low, high) <= 0, 1)
    peak = min(most - 1, _first(lambda hits: time(hits + 1) <= time(hits), 0))
    yield time(peak), 0
    hits = peak + 1
    while hits < most:
        if (at := time(hits)) > 0:
            yield at, hits
        hits = max(hits + 1, int(hits * _CORNER_GROWTH))
    yield 0.0, most


def _least_time(hits: int, epsilon: float, low: float, high: float) -> float:
    """Return the time from which so many hits, seen at a time fixed beforehand, settle a count."""
    return _width(hits, hits + 1, epsilon, low, high) / (2 * epsilon)


def _width(hits: int, more: int, epsilon: float, low: float, high: float) -> float:
    """Return the excess width of an interval of the mean, if nothing else is certain.

    With ends a and b of the mean, ``(1 - epsilon) * (t + b) <= (1 + epsilon) * (t + a)`` from the
    time ``t = width / (2 * epsilon)`` on.
    """
    if more <= _FEW:
        ends = least_mean(hits, low), largest_mean(more - 1, high)
    else:
        z = NormalDist().inv_cdf
        ends = _about(hits, z(low)), _about(more, -z(high))
    return (1 - epsilon) * ends[1] - (1 + epsilon) * ends[0]


def _first(holds: Callable[[int], bool], least: int) -> int:
    """Return the least number from which on a condition holds."""
    high = max(1, least)
    while not holds(high):
        high *= 2
    low = least - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def hits_needed(ratio: float, epsilon: float, delta: float) -> float:
    """Guess after how many hits a count with a certain part is settled.

    By Wilson and Hilferty's approximation, for an interval at a time fixed beforehand.

    Args:
        ratio: what is certain, in units of what is not.
        epsilon: relative error of the whole.
        delta: of the interval.

    Example:
        >>> [round(hits_needed(ratio, 0.1, 0.1)) for ratio in (0.0, 1.0, 3.0)]
        [279, 72, 19]
    """
    z = NormalDist().inv_cdf(1 - delta / 2)

    def is_settled(hits: float) -> bool:
        low, high = _about(hits, -z), _about(hits + 1, z)
        certain = ratio * hits
        return (1 - epsilon) * (certain + high) <= (1 + epsilon) * (certain + low)

    most = 1.0
    while not is_settled(most):
        most *= 2
    least = most / 2
    for _ in range(12):
        middle = math.sqrt(least * most)
        least, most = (least, middle) if is_settled(middle) else (middle, most)
    return most


# ---- the process ----


class StoppedEstimate:
    """Hits as a Poisson process, fed with 0/1 outcomes in order until the curve stops it.

    Args:
        epsilon: relative error of certain + p.
        delta: probability with which the interval may be wrong.
        certain: what is certain, in units of the regions that samples are drawn from; above 0.
        random: waiting times.
        block: outcomes come in multiples of so many, but for the last ones.
    """

    def __init__(
        self, epsilon: float, delta: float, certain: float, random: np.random.Generator, block: int
    ) -> None:
        self._curve = lay_curve(epsilon, delta)
        self._certain, self._random, self._block = certain, random, block
        self._time, self._hits = 0.0, 0
        self._waited = np.longdouble(0)  # billions of waiting times are added up
        self._reached = np.full(len(self._curve.corners), math.inf)  # when corners had their hits
        self._reached[0] = 0.0
        self.interval: tuple[float, float] | None = None
        """Once done: p lies in it with probability at least 1 - delta."""

    @property
    def fraction_done(self) -> float:
        longest, most = self._curve.corners[0][0], self._curve.corners[-1][1]
        return min(1.0, max(self._time / longest, self._hits / most))

    def update(self, hits: NDArray[Any]) -> None:
        """Take the next outcomes in order; those after the stop do not matter.

        Time passes from mark to mark: hits, and ends of blocks. So it does not depend on how
        blocks are handed over.
        """
        if self.interval is not None or not len(hits):
            return
        is_mark = np.asarray(hits) != 0
        is_mark[self._block - 1 :: self._block] = True
        is_mark[-1] = True
        marks = np.flatnonzero(is_mark)
        waits = self._random.standard_gamma(np.diff(marks, prepend=-1)).astype(np.longdouble)
        waits[0] += self._waited
        waited = np.cumsum(waits)
        self._waited = waited[-1]
        times = (waited * self._certain).astype(np.float64)
        stop = self._stop(times[hits[marks] != 0], float(times[-1]))
        if stop is not None:
            low, high = self._curve.interval(stop)
            self.interval = (low * self._certain, min(1.0, high * self._certain))

    def _stop(self, hit_times: NDArray[np.float64], end: float) -> Stop | None:
        """Go on to a time, past some hits; return the first stop before it, if any."""
        before, start = self._hits, self._time
        self._hits, self._time = before + len(hit_times), end

        def hits_at(time: float) -> int:
            return before + int(np.searchsorted(hit_times, time, side="right"))

        for time, most in self._curve.looks:
            if start < time <= end and hits_at(time) <= most:
                early = Stop(time, hits_at(time), is_hit=False)
                break
        else:
            early = Stop(math.inf, 0, is_hit=False)
        for i, (_, needed) in enumerate(self._curve.corners):
            if before < needed <= self._hits:
                self._reached[i] = hit_times[needed - before - 1]
        moments = np.maximum(self._reached, [time for time, _ in self._curve.corners])
        first = int(moments.argmin())
        moment = float(moments[first])
        if min(moment, early.time) > end:
            return None
        if early.time < moment:
            return early
        is_hit = bool(self._reached[first] == moment)
        return Stop(moment, hits_at(moment), is_hit=is_hit)
