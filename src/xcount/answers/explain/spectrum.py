"""The distribution of the size of changes, computed from evaluated regions.

All regions of a domain, or all rows of a table, give exact numbers. Samples give intervals, which
share the allowed probability of an error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from xcount.answers.explanation import CellShare, Quantile
from xcount.counters.sampling.intervals import mean_interval, quantile_ranks, share_intervals
from xcount.counters.swings import Numbers, Swings
from xcount.problem.problem import Problem
from xcount.question.change import Direction
from xcount.support.interval import Interval

LEVELS = (0.5, 0.75, 0.9, 0.99, 1.0)
"""Levels of the quantiles; the last quantile is the largest size."""
MAX_CELLS = 12
"""Cells listed: those with the largest shares."""

SIDES: tuple[Direction, ...] = ("up", "down")


def _batched(shares: Sequence[Interval], n: int) -> list[tuple[Interval, ...]]:
    """Split items into batches of n."""
    return [tuple(shares[i : i + n]) for i in range(0, len(shares), n)]


@dataclass(frozen=True, eq=False)
class Observed:
    """Evaluated regions.

    Attributes:
        swings: how far each can move.
        weights: of the regions, with sum 1; None if all weigh the same.
        highest: for each mask, the number (or weight) of the regions at whose other cells this mask
            has the highest output; with classes, for each mask and class, of those where the class
            wins.
        is_sample: whether these are random regions rather than all of them.
        unit: what 1 stands for in the swings.
        most: upper bound on every change, in the same unit as the swings.
        doubt: bound on the error of swings other than 0.
        lower: lower bounds on the swings, if only bounds are known.
    """

    swings: Swings
    weights: NDArray[np.float64] | None
    highest: NDArray[np.float64]
    is_sample: bool
    unit: Fraction
    most: float
    doubt: float = 0.0
    lower: Swings | None = None

    def __len__(self) -> int:
        return len(self.swings.up)

    @property
    def largest(self) -> float:
        """The largest change."""
        if not len(self):
            return 0.0
        return float(max(self.swings.up.max(), self.swings.down.max())) * float(self.unit)

    def threshold(self, gap: Fraction) -> float | int:
        """Return the threshold on swings that corresponds to the gap."""
        if self.swings.up.dtype == np.float64:
            return float(gap)
        return min(math.floor(gap / self.unit), 2**63 - 1)

    @cached_property
    def _ordered(self) -> dict[Direction, tuple[Numbers, NDArray[np.float64] | None]]:
        return {}

    def ordered(self, direction: Direction) -> tuple[Numbers, NDArray[np.float64] | None]:
        """Return the sizes in ascending order, and their weights."""
        if direction not in self._ordered:
            size, weights = self.swings.size(direction), self.weights
            if weights is None:
                self._ordered[direction] = np.sort(size), None
            else:
                order = np.argsort(size)
                self._ordered[direction] = size[order], weights[order]
        return self._ordered[direction]


@dataclass(frozen=True, slots=True)
class Spectrum:
    """The distribution of the size under one measure.

    Attributes:
        curve: for each gap, the share that changes by more in the question's direction.
        asked: the same for each requested gap, with the shares that rise and that fall by more.
        mean: of the size; None if there are no regions.
        quantiles: of the size.
        cells: where the output is highest.
        n_samples: None if nothing was sampled.
    """

    curve: Mapping[Fraction, Interval]
    asked: Mapping[Fraction, tuple[Interval, ...]]
    mean: Interval | None
    quantiles: tuple[Quantile, ...]
    cells: tuple[CellShare, ...]
    n_samples: int | None


def spectrum_of(
    observed: Observed,
    problem: Problem,
    gaps: Sequence[Fraction],
    asked: Sequence[Fraction],
    *,
    of_sensitive: bool,
    delta: float,
) -> Spectrum:
    """Return the distribution of the observed sizes.

    Args:
        observed: the regions.
        problem: the question, for its direction and masks.
        gaps: of the curve; chosen independently of the samples.
        asked: the requested gaps, each of a separate question.
        of_sensitive: whether mean and quantiles cover only regions that change at all.
        delta: allowed probability that any interval of one question is wrong.
    """
    direction: Direction = problem.query.change.direction
    sides = (direction, *SIDES)
    places = [(direction, gap) for gap in gaps] + [(side, gap) for gap in asked for side in sides]
    shares = _shares(observed, places, delta / 2 / (len(gaps) + len(sides)))
    curve = dict(zip(gaps, shares, strict=False))
    at_asked = _batched(shares[len(gaps) :], len(sides))
    mean, quantiles = _sizes(observed, direction, of_sensitive, delta / 3)
    return Spectrum(
        curve,
        dict(zip(asked, at_asked, strict=True)),
        mean,
        quantiles,
        _cells(observed, problem, delta / 6),
        len(observed) if observed.is_sample else None,
    )


def _shares(
    observed: Observed, places: Sequence[tuple[Direction, Fraction]], delta: float
) -> list[Interval]:
    """Return the share that changes by more than each gap; ties within float error count."""
    weights, n = observed.weights, len(observed)
    sure, maybe = np.empty(len(places)), np.empty(len(places))
    for direction in dict.fromkeys(direction for direction, _ in places):
        own = [i for i, (each, _) in enumerate(places) if each == direction]
        thresholds = np.array([observed.threshold(places[i][1]) for i in own])
        sizes = observed.ordered(direction)
        sure[own] = maybe[own] = _above(*sizes, thresholds)
        if observed.doubt:
            sure[own] = _above(*sizes, thresholds + observed.doubt)
            maybe[own] = _above(*sizes, np.maximum(0, thresholds - observed.doubt))
    if not observed.is_sample:
        whole = n if weights is None else 1.0
        return [_share(s / whole, s / whole, m / whole) for s, m in zip(sure, maybe, strict=True)]
    lows, highs = share_intervals(np.concatenate([sure, maybe]), n, delta)
    ends = zip((sure + maybe) / 2 / n, lows[: len(sure)], highs[len(sure) :], strict=True)
    return [_share(*each) for each in ends]


def _share(share: float, low: float, high: float) -> Interval:
    share, low, high = (min(1.0, max(0.0, float(end))) for end in (share, low, high))
    return Interval(share, low, high)


def _above(
    sizes: Numbers, weights: NDArray[np.float64] | None, thresholds: Numbers
) -> NDArray[np.float64]:
    """Return the number (or weight) of the sizes above each threshold; sizes ascend."""
    first = np.searchsorted(sizes, thresholds.astype(sizes.dtype), side="right")
    if weights is None:
        return (len(sizes) - first).astype(np.float64)
    above = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
    found: NDArray[np.float64] = above[first]
    return found


def _sizes(
    observed: Observed, direction: Direction, of_sensitive: bool, delta: float
) -> tuple[Interval | None, tuple[Quantile, ...]]:
    """Return the mean and the quantiles of the size."""
    if observed.lower is not None:
        ends = (replace(observed, swings=s, lower=None) for s in (observed.lower, observed.swings))
        return _between(*(_sizes(each, direction, of_sensitive, delta) for each in ends))
    numbers, weights = observed.ordered(direction)
    if of_sensitive:
        first = int(np.searchsorted(numbers, 0, side="right"))
        numbers = numbers[first:]
        weights = None if weights is None else weights[first:]
    if not len(numbers) or (weights is not None and not weights.sum() > 0):
        return None, ()
    unit = float(observed.unit)
    sizes = numbers.astype(np.float64) * unit
    most = observed.most * unit
    if not observed.is_sample:
        own = None if weights is None else weights / weights.sum()
        mean = float(sizes.mean() if own is None else own @ sizes)
        return Interval(mean, mean, mean), _exact_quantiles(sizes, own)
    low, high = mean_interval(sizes, most, delta / 2)
    quantiles = _sampled_quantiles(sizes, most, delta / 2)
    return Interval(float(sizes.mean()), low, high), quantiles


Sizes = tuple[Interval | None, tuple[Quantile, ...]]


def _between(lower: Sizes, upper: Sizes) -> Sizes:
    """Return the mean and the quantiles of sizes known by lower and upper bounds."""
    if lower[0] is None or upper[0] is None:
        return None, ()
    low, high = lower[0], upper[0]
    mean = Interval((low.least + high.least) / 2, low.low, high.high)
    quantiles = [
        Quantile(b.level, _size_between(b.level, a.size, b.size))
        for a, b in zip(lower[1], upper[1], strict=True)
    ]
    return mean, tuple(quantiles)


def _size_between(level: float, low: Interval, high: Interval) -> Interval:
    """Return a quantile of sizes known by bounds; for the largest size, its lower bound."""
    return Interval(low.value if level == 1 else high.value, low.low, high.high)


def _exact_quantiles(
    sizes: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> tuple[Quantile, ...]:
    if weights is None:
        places = [max(0, math.ceil(Fraction(str(level)) * len(sizes)) - 1) for level in LEVELS]
    else:
        reached = np.cumsum(weights)
        last = int(np.flatnonzero(weights)[-1])
        slack = 1e-12  # for the rounding of sums
        places = [min(last, int(np.searchsorted(reached, level - slack))) for level in LEVELS]
    values = sizes[places].tolist()
    return tuple(Quantile(q, Interval(v, v, v)) for q, v in zip(LEVELS, values, strict=True))


def _sampled_quantiles(
    sizes: NDArray[np.float64], most: float, delta: float
) -> tuple[Quantile, ...]:
    n, found = len(sizes), []
    for level in LEVELS[:-1]:
        low, high = quantile_ranks(level, n, delta / (len(LEVELS) - 1))
        value = float(sizes[math.ceil(Fraction(str(level)) * n) - 1])
        least = float(sizes[low - 1]) if low > 0 else 0.0
        largest = float(sizes[high - 1]) if high <= n else most
        found.append(Quantile(level, Interval(value, least, largest)))
    top = float(sizes[-1])
    return (*found, Quantile(LEVELS[-1], Interval(top, top, max(top, most))))


def _cells(observed: Observed, problem: Problem, delta: float) -> tuple[CellShare, ...]:
    """Return where the output is highest, the largest shares first."""
    counts, n = observed.highest.ravel(), len(observed)
    if not len(counts):
        return ()
    if observed.is_sample:
        shares = counts / n
        lows, highs = share_intervals(counts, n, delta / len(counts))
    else:
        shares = lows = highs = counts if observed.weights is not None else counts / n
    n_classes = math.prod(observed.highest.shape[1:])
    found = []
    for place in np.argsort(-shares, kind="stable")[:MAX_CELLS].tolist():
        cells = problem.masks.cells(place // n_classes)
        label = None
        if observed.highest.ndim > 1:
            labels = problem.ensemble.class_labels
            label = labels[place % n_classes] if labels else str(place % n_classes)
        share, low, high = (min(1.0, float(each[place])) for each in (shares, lows, highs))
        words = problem.describe(cells)
        found.append(CellShare(tuple(cells), words, Interval(share, low, high), label))
    return tuple(found)
