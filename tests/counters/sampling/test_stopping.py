"""Estimates stopped by a curve miss as rarely as they promise, and stop near enough."""

from __future__ import annotations

import doctest
import math
from itertools import pairwise

import numpy as np
import pytest

from benchmarks.coverage import most_failures
from xcount.counters.sampling import intervals, stopping
from xcount.counters.sampling.stopping import (
    Stop,
    StoppedEstimate,
    StoppingCurve,
    falling_root,
    few_hits,
    largest_mean,
    lay_curve,
    least_mean,
)

EPSILON, DELTA = 0.3, 0.1


def poisson(n: int, mean: float) -> float:
    """Return the probability of n hits."""
    return math.exp(n * math.log(mean) - mean - math.lgamma(n + 1)) if mean else float(n == 0)


# ---- ends of means ----


@pytest.mark.parametrize("n", [0, 1, 2, 7, 40, 300])
@pytest.mark.parametrize("tail", [0.4, 0.05, 1e-6, 1e-14])
def test_ends_of_means_have_their_tails(n: int, tail: float) -> None:
    """From outside, and closely."""
    high = largest_mean(n, tail)
    assert (1 - 1e-5) * tail <= sum(poisson(k, high) for k in range(n + 1)) <= tail
    low = least_mean(n, tail)
    if n == 0:
        assert low == 0
    else:
        more = math.fsum(poisson(k, low) for k in range(n, n + 400))
        assert (1 - 1e-5) * tail <= more <= tail


def test_a_root_is_found_from_the_side_where_the_function_has_fallen() -> None:
    """Also where it is steep, flat, or fallen from the start."""
    for f in (lambda x: 2 - x, lambda x: 8 - x**3, lambda x: math.exp(-x) - math.exp(-2)):
        found = falling_root(f, 0.0, 50.0)
        assert f(found) <= 0
        assert found == pytest.approx(2, abs=1e-6)
    assert falling_root(lambda x: -1.0, 3.0, 4.0) == 3


# ---- the chance to stop at a point or before ----


def exact_chance_before(curve: StoppingCurve, rate: float, time: float, hits: int) -> float:
    """Return the probability of too few hits at any early look, or at a time, step by step."""
    chances, now, stopped = {0: 1.0}, 0.0, 0.0
    for at, most in [*(look for look in curve.looks if look[0] < time), (time, hits)]:
        later: dict[int, float] = {}
        more = [poisson(m, rate * (at - now)) for m in range(120)]
        for n, chance in chances.items():
            for m, part in enumerate(more[: 121 - n]):
                later[n + m] = later.get(n + m, 0.0) + chance * part
        stopped += sum(chance for n, chance in later.items() if n <= most)
        chances = {n: chance for n, chance in later.items() if n > most}
        now = at
    return stopped


@pytest.mark.parametrize("rate", [0.15, 0.4, 0.8, 1.5])
def test_the_bound_on_early_stops_is_a_close_one(rate: float) -> None:
    """It is never below the probability, and above it by little where it matters."""
    curve = lay_curve(EPSILON, DELTA)
    assert len(curve.looks) >= 3
    ends = [*((t, k) for t, k in curve.looks), (curve.corners[0][0], 6), (curve.corners[0][0], 9)]
    for time, hits in ends:
        exact = exact_chance_before(curve, rate, time, hits)
        bound = curve.chance_before(rate, (time, hits))
        assert exact * (1 - 1e-9) <= bound
        if exact < 0.1:
            assert bound < 1.1 * exact


def test_far_looks_cost_no_overflow() -> None:
    """Thousands of hits between two looks are a probability of 1, and so many before one of 0."""
    curve = StoppingCurve(0.1, 0.1, ((1.0, 3), (1e5, 10)), ((2e5, 0), (0.0, 9**9)), (0.0,) * 3)
    assert curve.chance_before(2.0, (1.5e5, 20)) == pytest.approx(few_hits(3, 2.0), rel=1e-6)
    assert curve.chance_before(1e4, (1.5e5, 20)) < 1e-100


# ---- the curve ----


def stops_of(curve: StoppingCurve) -> list[Stop]:
    """Return where a curve may stop: all of its early looks, and both kinds of stairs."""
    stops, least = [], 0
    for time, most in curve.looks:
        stops += [Stop(time, n, is_hit=False) for n in {least, (least + most) // 2, most}]
        least = most + 1
    for (time, hits), (_, more) in pairwise(curve.corners):
        first = max(least, hits)
        stops += [Stop(time, n, is_hit=False) for n in {first, (first + more) // 2, more - 1}]
        if hits:
            stops.append(Stop(time, hits, is_hit=True))
    last, most = curve.corners[-2][0], curve.corners[-1][1]
    return [*stops, *(Stop(part * last, most, is_hit=True) for part in (0.01, 1.0))]


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0.05, 0.04), (0.1, 0.08), (0.1, 1e-6), (0.3, 0.3), (0.5, 0.1), (0.95, 0.5)],
)
def test_wherever_a_curve_is_met_the_interval_is_near_enough(epsilon: float, delta: float) -> None:
    """(1 - epsilon) times the high end is at most (1 + epsilon) times the low one."""
    curve = lay_curve(epsilon, delta)
    stops = stops_of(curve)
    for stop in stops[:: max(1, len(stops) // 40)]:
        low, high = curve.interval(stop)
        assert low < high
        assert (1 - epsilon) * (1 + high) <= (1 + epsilon) * (1 + low)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.05, 0.04), (0.1, 0.1), (0.3, 0.1), (0.95, 0.5)])
def test_a_curve_is_a_curve(epsilon: float, delta: float) -> None:
    """What the proof asks for: looks and stairs in order, early looks below the stairs."""
    curve = lay_curve(epsilon, delta)
    looks, corners = curve.looks, curve.corners
    assert all(t < u and j < k for (t, j), (u, k) in pairwise(looks))
    assert all(t > u and j < k for (t, j), (u, k) in pairwise(corners))
    assert corners[0][1] == 0
    assert corners[-1][0] == 0
    assert all(t < corners[0][0] and k < corners[1][1] for t, k in looks)
    assert list(curve.floors) == sorted(curve.floors)


# ---- how often it misses ----


def first_stop(curve: StoppingCurve, hit_times: np.ndarray) -> Stop:
    """Return where a process with these hits stops, moment by moment."""
    moments = sorted(
        [(t, "look", k) for t, k in curve.looks]
        + [(t, "corner", 0) for t, _ in curve.corners]
        + [(float(t), "hit", 0) for t in hit_times]
    )
    hits = 0
    for time, kind, most in moments:
        hits += kind == "hit"
        if kind == "look" and hits <= most:
            return Stop(time, hits, is_hit=False)
        if any(time >= t and hits >= k for t, k in curve.corners):
            return Stop(time, hits, is_hit=kind == "hit")
    raise AssertionError("every process stops")


def misses(curve: StoppingCurve, rate: float, runs: int) -> tuple[int, int]:
    """Return how many of so many intervals are above the rate, and how many below it."""
    rng = np.random.default_rng([4, runs])
    known: dict[Stop, tuple[float, float]] = {}
    above = below = 0
    for _ in range(runs):
        hit_times = np.cumsum(rng.exponential(size=curve.corners[-1][1])) / rate
        stop = first_stop(curve, hit_times)
        if stop not in known:
            known[stop] = curve.interval(stop)
        low, high = known[stop]
        above += rate < low
        below += high < rate
    return above, below


@pytest.mark.parametrize("rate", [0.02, 0.25, 0.6, 1.0, 2.0, 20.0])
def test_each_end_misses_as_rarely_as_promised(rate: float) -> None:
    """With probability delta / 2 at most, also where a handful of hits is enough."""
    for curve in (lay_curve(EPSILON, DELTA), lay_curve(0.6, DELTA)):
        assert max(misses(curve, rate, 800)) <= most_failures(800, DELTA / 2)


@pytest.mark.parametrize("rate", [1.0, 5.0])
def test_ends_for_twice_the_delta_are_noticed(rate: float) -> None:
    """Each of the two; those for the right delta pass the same test."""
    runs, delta = 1_000, 0.2
    most = most_failures(runs, delta / 2)
    assert max(misses(lay_curve(0.12, delta), rate, runs)) <= most
    assert min(misses(lay_curve(0.12, 2 * delta), rate, runs)) > most


def test_early_looks_for_twice_the_delta_are_noticed() -> None:
    """Low ends are cautious there; both ends together are noticed."""
    runs, delta = 1_000, 0.2
    most = most_failures(runs, delta)
    assert sum(misses(lay_curve(0.12, delta), 0.5, runs)) <= most
    assert sum(misses(lay_curve(0.12, 2 * delta), 0.5, runs)) > most


def estimate_of(hits: np.ndarray, certain: float, delta: float, seed: int) -> StoppedEstimate:
    """Return an estimate that was given all hits at once."""
    estimate = StoppedEstimate(EPSILON, delta, certain, np.random.default_rng([1, seed]), 16)
    estimate.update(hits)
    return estimate


@pytest.mark.parametrize("p", [0.05, 0.4, 1.0])
def test_samples_miss_as_rarely_as_promised(p: float) -> None:
    """Coin flips are made a Poisson process, however likely hits are."""
    runs, certain = 800, 0.5 * p
    most = most_failures(runs, DELTA, level=1e-3)
    flips = np.random.default_rng(8).random((runs, 1024)) < p

    def n_misses(delta: float) -> int:
        found = [estimate_of(hits, certain, delta, i).interval for i, hits in enumerate(flips)]
        return sum(ends is None or not ends[0] <= p <= ends[1] for ends in found)

    assert n_misses(DELTA) <= most < n_misses(2 * DELTA)


def test_an_estimate_does_not_depend_on_how_blocks_are_handed_over() -> None:
    """One array or many, and whatever comes after the stop: the same interval."""
    hits = (np.random.default_rng(3).random(4_096) < 0.02).astype(np.uint8)
    for certain in (0.002, 0.02, 0.2):
        whole = estimate_of(hits, certain, DELTA, 0)
        parts = StoppedEstimate(EPSILON, DELTA, certain, np.random.default_rng([1, 0]), 16)
        for part in np.split(hits, 128):
            assert parts.interval is None or parts.interval == whole.interval
            parts.update(part)
        assert parts.interval == whole.interval is not None


def test_outcomes_are_not_changed() -> None:
    """Others read the same array."""
    hits = np.zeros(64, dtype=np.uint8)
    estimate_of(hits, 0.1, DELTA, 0)
    assert not hits.any()


def test_the_examples_hold() -> None:
    """Docstrings of both modules of confidence statements."""
    for module in (intervals, stopping):
        assert doctest.testmod(module).failed == 0
