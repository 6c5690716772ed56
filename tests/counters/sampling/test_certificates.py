"""Certificates have teeth: each check here notices a delta that is twice as large as it says.

A confidence sequence promises a miss with probability delta at most, and misses less often than
that, so counting misses would only notice gross errors. What the promise rests on is checked
instead: the wealth is a fair game (its mean is 1, over all outcomes), and a mean is rejected only
by a wealth of 2 / delta. By Ville's inequality either side then fails with probability delta / 2.
Huber's estimate misses nearly as often as it may: there misses are counted. So are those of
estimates that are stopped by a curve, in ``test_stopping.py``; ``test_delta.py`` checks that what
an answer's tools are given adds up to its delta.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from oracle import known
from strategies import random_tree

from benchmarks.certain_part import CoinFlips, mean_ratios, samples_taken
from benchmarks.coverage import most_failures
from xcount.counters.sampling.count import CountEstimate, Rest
from xcount.counters.sampling.estimator import MAIN, Estimator, KnownPart
from xcount.counters.sampling.intervals import (
    BettingSequence,
    GammaBernoulli,
)
from xcount.counters.settings import Settings
from xcount.counters.tally import Bounds
from xcount.counters.visit import count_by_visiting
from xcount.model.ensemble import Ensemble, Feature
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query

COIN = np.array([0.0, 1.0])
THIRDS = np.array([0.0, 0.5, 1.0])
DELTA = 0.1


# ---- the wealth is a fair game ----


def mean_wealth(
    values: np.ndarray, chances: list[float], batches: tuple[int, ...]
) -> tuple[float, float]:
    """Return the mean wealth of both sides at the true mean, over all outcomes of some batches."""
    mean = float(values @ np.array(chances))
    total = [0.0, 0.0]
    for outcome in itertools.product(range(len(values)), repeat=sum(batches)):
        sequence = BettingSequence(values, DELTA, 0.1)
        ends = np.cumsum([0, *batches])
        for first, last in itertools.pairwise(ends):
            counts = np.bincount(outcome[first:last], minlength=len(values))
            sequence.update(counts)
        chance = math.prod(chances[i] for i in outcome)
        for side, bettor in enumerate((sequence._above, sequence._below)):
            total[side] += chance * math.exp(bettor.log_wealth(mean))
    return total[0], total[1]


@pytest.mark.parametrize(
    ("values", "chances", "batches"),
    [
        (COIN, [0.7, 0.3], (1, 1, 2, 1, 2, 1)),
        (COIN, [0.98, 0.02], (3, 1, 1, 3)),
        (COIN, [0.1, 0.9], (2, 2, 2, 2)),
        (THIRDS, [0.5, 0.3, 0.2], (1, 2, 1, 1)),
    ],
)
def test_the_wealth_at_the_true_mean_is_a_fair_game(
    values: np.ndarray, chances: list[float], batches: tuple[int, ...]
) -> None:
    """Its mean is 1, whatever was learnt from earlier batches: nobody peeks at the next one."""
    assert mean_wealth(values, chances, batches) == pytest.approx((1, 1), abs=1e-9)


def test_a_bettor_who_peeks_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bet that depends on the outcome it is placed on has a mean wealth above 1."""

    class Peeking(BettingSequence):
        def update(self, histogram: np.ndarray, certain: float = 0.0) -> None:
            bet = 1.0 if histogram[1] else 2.0**-9
            self._above.update(histogram, bet)
            self._below.update(histogram, bet)
            self._histogram += histogram

    monkeypatch.setitem(globals(), "BettingSequence", Peeking)
    assert mean_wealth(COIN, [0.7, 0.3], (1, 1, 1, 1))[0] > 1.01


# ---- a mean is rejected only by a wealth of 2 / delta ----


def rejects_too_early(made: Callable[[], BettingSequence], delta: float) -> bool:
    """Tell whether any end of an interval has a wealth below 2 / delta against it."""
    for seed, mean in itertools.product(range(6), (1e-3, 0.05, 0.3, 0.9)):
        rng = np.random.default_rng([seed, int(1e6 * mean)])
        sequence = made()
        low, high = 0.0, 1.0
        for look in range(10):
            hits = int(rng.binomial(4 * 2**look, mean))
            sequence.update(np.array([4 * 2**look - hits, hits]))
            before, (low, high) = (low, high), sequence.interval()
            needed = math.log(2 / delta)
            if low > before[0] and sequence._above.log_wealth(low) < needed:
                return True
            if high < before[1] and sequence._below.log_wealth(high) < needed:
                return True
    return False


def test_a_mean_is_rejected_only_by_enough_wealth() -> None:
    """The ends of all intervals have a wealth of at least 2 / delta against them."""
    assert not rejects_too_early(lambda: BettingSequence(COIN, DELTA, 0.1), DELTA)


@pytest.mark.parametrize("factor", [1.1, 2.0])
def test_a_sequence_with_a_larger_delta_is_noticed(factor: float) -> None:
    """Twice the delta is found out; so is a tenth more."""
    assert rejects_too_early(lambda: BettingSequence(COIN, factor * DELTA, 0.1), DELTA)


# ---- Huber's estimate misses as rarely as it says ----


def huber_misses(delta: float, runs: int, mean: float) -> int:
    """Return how many of so many estimates miss the mean."""
    misses = 0
    for seed in range(runs):
        rng = np.random.default_rng([7, seed])
        gamma = GammaBernoulli(0.3, delta, rng)
        while gamma.interval is None:
            gamma.update((rng.random(120) < mean).astype(np.uint8))
        misses += not gamma.interval[0] <= mean <= gamma.interval[1]
    return misses


@pytest.mark.parametrize("mean", [0.2, 0.6, 1.0])
def test_hubers_estimate_misses_as_rarely_as_promised(mean: float) -> None:
    """In 2,000 runs; with twice the delta it would be noticed."""
    runs = 2_000
    most = most_failures(runs, DELTA)
    assert huber_misses(DELTA, runs, mean) <= most < huber_misses(2 * DELTA, runs, mean)


# ---- flips ----


@pytest.fixture(scope="module")
def flip() -> tuple[Problem, int]:
    """Return a question about a flip, and its count."""
    rng = np.random.default_rng(11)
    features = tuple(Feature(f"f{i}") for i in range(5))
    leaves = rng.normal(size=32) * 0.3
    trees = tuple(random_tree(rng, features, 4, leaves, np.arange(8.0)) for _ in range(6))
    ensemble = Ensemble(features, trees)
    query = Query.of(ensemble, "f0", flip=True, cutoff=0.9, distance="any")
    problem = Problem(ensemble, Grid.of(ensemble), query)
    return problem, count_by_visiting(problem, Settings()).low


def flip_misses(flip: tuple[Problem, int], delta: float, runs: int) -> int:
    """Return how many of so many estimates of a flip miss its count."""
    problem, count = flip
    misses = 0
    for seed in range(runs):
        settings = Settings(epsilon=0.4, delta=delta, seed=seed, jobs=1)
        tally = CountEstimate(problem, settings, Rest.everything(problem)).run("sample", {})
        misses += not tally.low <= count <= tally.high
    return misses


def test_estimates_of_flips_miss_as_rarely_as_promised(flip: tuple[Problem, int]) -> None:
    """In 500 runs; with twice the delta it would be noticed."""
    problem, count = flip
    assert 0.05 < count / problem.n_regions < 0.2
    runs, delta = 500, 0.2
    most = most_failures(runs, delta, level=1e-3)
    assert flip_misses(flip, delta, runs) <= most < flip_misses(flip, 2 * delta, runs)


def test_intervals_that_exclude_each_other_do_not_keep_a_run_from_its_end() -> None:
    """Where Huber's interval is ruled out by the sequence, the sequence counts.

    Such runs never ended, and where the interval was beyond 1, low was above high.
    """
    for wrong in ((0.3, 0.45), (1.01, 1.4)):
        known_part = KnownPart(0, 300, Bounds(0, 300), 300)
        settings = Settings(epsilon=0.1, delta=0.4, jobs=1, timeout_seconds=60)
        estimator = Estimator(CoinFlips(0.1), known_part, settings)
        slices = estimator.slices(estimator.pilot())
        next(slices)
        final = GammaBernoulli(0.001, 0.1, np.random.default_rng(0))
        final.interval = wrong
        assert estimator._lower is not None
        estimator._lower.final = final
        for _ in slices:
            pass
        tally = estimator.tally("sample", {})
        assert tally.stop_reason == "complete"
        assert tally.low <= known(tally.count) <= tally.high < 0.2 * 300


# ---- a certain part ----


@pytest.mark.parametrize("ratio", [0.0, 0.1, 1.0, 3.0, 10.0])
def test_a_certain_part_costs_few_samples_more_than_the_optimum(ratio: float) -> None:
    """Less than 1.5 times the samples of whoever knew the share beforehand, pilot included."""
    assert mean_ratios(ratio, range(50))[1] < 1.5


def certain_misses(delta: float, ratio: float, runs: int) -> int:
    """Return how many of so many estimates with a certain part miss the count."""
    return sum(not samples_taken(ratio, seed, 0.1, delta)[2] for seed in range(runs))


@pytest.mark.slow
def test_estimates_with_a_certain_part_miss_as_rarely_as_promised() -> None:
    """In 400 runs; with twice the delta it would be noticed."""
    runs, delta, ratio = 400, 0.2, 0.3
    most = most_failures(runs, delta, level=1e-3)
    assert certain_misses(delta, ratio, runs) <= most < certain_misses(2 * delta, ratio, runs)


def test_waiting_times_have_a_generator_of_their_own() -> None:
    """Not that of the first batch: numpy takes the key [1, 2] for [1, 2, 0]."""
    estimator = Estimator(CoinFlips(0.1), KnownPart(0, 300, Bounds(0, 300), 300), Settings(seed=5))
    estimator._plan(estimator.pilot())
    assert estimator._lower is not None
    final = estimator._lower.final
    assert final is not None
    batches = [np.random.default_rng([5, MAIN, batch]).random() for batch in range(1_000)]
    assert final._random.random() not in batches
