"""Confidence sequences and Huber's estimate keep their promises."""

from __future__ import annotations

import math

import numpy as np
import pytest

from xcount.counters.sampling.intervals import (
    BettingSequence,
    GammaBernoulli,
    gamma_below,
    plan_gamma_bernoulli,
)

BERNOULLI = np.array([0.0, 1.0])
DELTA = 0.1


def most_failures(runs: int, probability: float) -> int:
    """Return the k that a Binomial(runs, probability) exceeds with probability below 1e-4."""
    term = (1 - probability) ** runs
    total, k = term, 0
    while 1 - total > 1e-4:
        term *= (runs - k) / (k + 1) * probability / (1 - probability)
        total += term
        k += 1
    return k


def ever_misses(seed: int, mean: float, looks: int) -> bool:
    """Tell whether any of many looks at one run has the mean outside the interval."""
    rng = np.random.default_rng(seed)
    sequence = BettingSequence(BERNOULLI, DELTA, 0.1)
    for look in range(looks):
        n = 4 * 2**look
        hits = int(rng.binomial(n, mean))
        sequence.update(np.array([n - hits, hits]))
        low, high = sequence.interval()
        if not low <= mean <= high:
            return True
    return False


@pytest.mark.parametrize("mean", [1e-4, 0.02, 0.3, 0.5, 0.97])
def test_the_interval_holds_at_all_looks_together(mean: float) -> None:
    """The chance that any look misses the mean is at most delta."""
    runs = 200
    misses = sum(ever_misses(seed, mean, looks=12) for seed in range(runs))
    assert misses <= most_failures(runs, DELTA)


def test_fractions_make_narrower_intervals_than_coin_flips() -> None:
    """Outcomes of small variance are worth more than Bernoulli outcomes of the same mean."""
    values = np.arange(11) / 10
    smooth = BettingSequence(values, DELTA, 0.1)
    coins = BettingSequence(values, DELTA, 0.1)
    for _ in range(10):
        smooth.update(np.array([0, 0, 0, 0, 50, 100, 50, 0, 0, 0, 0]))
        coins.update(np.array([100, 0, 0, 0, 0, 0, 0, 0, 0, 0, 100]))
    widths = [high - low for low, high in (smooth.interval(), coins.interval())]
    assert widths[0] < widths[1] / 2


def test_no_success_bounds_the_mean_from_above_only() -> None:
    """After n failures the interval is [0, about log(2/delta) / n]."""
    sequence = BettingSequence(BERNOULLI, DELTA, 0.1)
    sequence.update(np.array([10_000, 0]))
    low, high = sequence.interval()
    assert low == 0
    assert math.log(2 / DELTA) / 10_000 < high < 3 * math.log(2 / DELTA) / 10_000


def test_a_small_mean_is_bounded_as_sharply_as_a_large_one() -> None:
    """After 300 hits both ends are near, be it in a thousand samples or in ten million.

    The upper end of a small mean was once no sharper than 1e-4.
    """
    for n in (1_000, 10_000_000):
        sequence = BettingSequence(BERNOULLI, DELTA, 0.1)
        for _ in range(100):
            sequence.update(np.array([n // 100 - 3, 3]))
        low, high = sequence.interval()
        assert 0.8 * 300 / n < low < 300 / n < high < 1.25 * 300 / n


def test_constant_outcomes_pin_the_mean_down() -> None:
    """Outcomes that are always 1 leave only means near 1."""
    sequence = BettingSequence(BERNOULLI, DELTA, 0.1)
    sequence.update(np.array([0, 1000]))
    low, high = sequence.interval()
    assert low > 0.99
    assert high == 1


def test_before_any_outcome_everything_is_possible() -> None:
    """No outcome, no statement."""
    assert BettingSequence(BERNOULLI, DELTA, 0.1).interval() == (0.0, 1.0)


def test_looking_without_keeping_changes_nothing() -> None:
    """A look for a progress bar leaves later intervals as they would have been."""
    watched, alone = (BettingSequence(BERNOULLI, DELTA, 0.1) for _ in range(2))
    for hits in (5, 0, 40, 1):
        for sequence in (watched, alone):
            sequence.update(np.array([100 - hits, hits]))
        watched.interval(keep=False)
    assert watched.interval() == alone.interval()


@pytest.mark.parametrize(
    ("k", "x"), [(1, 0.5), (1, 3.0), (5, 4.0), (5, 5.0), (40, 30.0), (3, 50.0)]
)
def test_gamma_distribution_agrees_with_its_finite_sum(k: int, x: float) -> None:
    """P(Gamma(k) <= x) = 1 - exp(-x) * sum of x^j / j! over j < k."""
    expected = 1 - math.exp(-x) * sum(x**j / math.factorial(j) for j in range(k))
    assert gamma_below(k, x) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.1), (0.3, 0.05), (0.5, 0.3), (0.05, 0.1)])
def test_the_plan_is_the_smallest_that_keeps_its_promise(epsilon: float, delta: float) -> None:
    """K successes fail with probability at most delta, k - 1 with more, at the best constant."""
    plan = plan_gamma_bernoulli(epsilon, delta)

    def failure(k: int, c: float) -> float:
        return gamma_below(k, c / (1 + epsilon)) + 1 - gamma_below(k, c / (1 - epsilon))

    assert failure(plan.successes, plan.constant) <= delta
    assert (
        plan_gamma_bernoulli(epsilon, 1e-20).successes
        > plan_gamma_bernoulli(epsilon, 1e-17).successes
    )
    fewer = plan.successes - 1
    nearby = plan.constant * fewer / plan.successes * np.linspace(0.9, 1.1, 101)
    assert min(failure(fewer, c) for c in nearby) > delta


@pytest.mark.parametrize("mean", [0.003, 0.4, 1.0])
def test_hubers_estimate_is_as_close_as_promised(mean: float) -> None:
    """The mean is outside the interval in at most a share delta of the runs."""
    runs, misses = 400, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        gamma = GammaBernoulli(0.3, DELTA, rng)
        while gamma.interval is None:
            gamma.update((rng.random(500) < mean).astype(np.uint8))
        misses += not gamma.interval[0] <= mean <= gamma.interval[1]
    assert misses <= most_failures(runs, DELTA)
    assert misses > 0  # the bound is nearly tight, so a run without misses would be suspicious


def test_hubers_estimate_does_not_depend_on_how_outcomes_are_grouped() -> None:
    """One array or many small ones: the same estimate."""
    hits = (np.random.default_rng(3).random(2000) < 0.2).astype(np.uint8)
    whole = GammaBernoulli(0.3, DELTA, np.random.default_rng(0))
    parts = GammaBernoulli(0.3, DELTA, np.random.default_rng(0))
    whole.update(hits)
    for part in np.split(hits, 40):
        parts.update(part)
    assert whole.interval == parts.interval is not None
