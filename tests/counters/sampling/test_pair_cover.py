"""Boxes of pairs hold all sensitive regions, and estimates from them miss as rarely as said."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import oracle
import pytest
from strategies import random_tree

from benchmarks.coverage import StopEarly, most_failures
from xcount.counters.costs import Thresholds
from xcount.counters.sampling.count import count_by_sampling
from xcount.counters.sampling.draws import PairCoverDraws, RowDraws
from xcount.counters.sampling.estimator import Estimator, KnownPart
from xcount.counters.settings import Settings
from xcount.counters.tally import Bounds, StopReason
from xcount.model.ensemble import Ensemble, Feature
from xcount.problem.problem import Problem
from xcount.question.change import Direction
from xcount.question.grid import Grid
from xcount.question.query import Query

EPSILON, DELTA, SEEDS = 0.3, 0.1, 80
AT_ONCE = Thresholds(plain_seconds=0.0, first_cover_work=500)
"""Refine a cover whatever plain samples cost."""


@lru_cache
def ensemble() -> Ensemble:
    """Return 20 trees over three features of nine cells."""
    rng = np.random.default_rng(21)
    features = tuple(Feature(f"f{i}") for i in range(3))
    leaves = rng.normal(size=64) * 0.2
    guards = np.arange(8.0)
    return Ensemble(
        features, tuple(random_tree(rng, features, 4, leaves, guards) for _ in range(20))
    )


def problem_of(gap: str, sensitive: str = "f0", direction: Direction = "any") -> Problem:
    """Return a question about any change."""
    query = Query.of(ensemble(), sensitive, gap, distance="any", direction=direction)
    return Problem(ensemble(), Grid.of(ensemble()), query)


@lru_cache
def true_count(gap: str, direction: Direction = "any") -> int:
    """Return what the oracle counts, in fractions, by its own walk of the trees."""
    if direction == "any":
        return oracle.count(ensemble(), [0], Fraction(gap), None)[0]
    found = oracle.changing_regions(ensemble(), [0], None, gap=Fraction(gap), direction=direction)
    return sum(found.values())


def cover_of(problem: Problem, work: int) -> PairCoverDraws:
    """Return the cover after about so much work."""
    space = problem.form.native_draws()
    assert space is not None
    rows = RowDraws(space, range(problem.n_masks), None)
    cover = PairCoverDraws(space, rows, 2**28)
    cover.refine(work, math.inf, 1, lambda: None)
    return cover


def mean_count(problem: Problem, cover: PairCoverDraws) -> tuple[float, float]:
    """Return the count that many samples suggest, and its standard deviation."""
    n = 400
    histogram, hits = cover.draw(5, 1, 0, n, 2)
    values = np.arange(cover.levels + 1) / cover.levels
    size = cover.counts(problem.n_combinations)[1]
    share = float(values @ histogram) / histogram.sum()
    variance = float((values - share) ** 2 @ histogram) / histogram.sum()
    assert abs(hits.mean() - share) <= 5 * (share * (1 - share) / len(hits)) ** 0.5 + 1e-9
    return share * size, size * (variance / histogram.sum()) ** 0.5


@pytest.mark.parametrize("work", [0, 2_000, 20_000, 10**9])
@pytest.mark.parametrize("direction", ["any", "up", "down"])
def test_samples_have_the_mean_of_the_true_count(work: int, direction: Direction) -> None:
    """Whenever the refinement stops, samples are right on average, and the boxes hold all."""
    problem, exact = problem_of("1.9", direction=direction), true_count("1.9", direction)
    assert 0 < exact < 30
    cover = cover_of(problem, work)
    assert exact <= cover.counts(problem.n_combinations)[1]
    found, deviation = mean_count(problem, cover)
    assert abs(found - exact) <= 5 * deviation + 1e-6


def test_several_sensitive_features_are_covered() -> None:
    """Masks of two features: the boxes count their products."""
    problem = problem_of("2.8", "f0,f2")
    exact = oracle.count(ensemble(), [0, 2], Fraction("2.8"), None)[0]
    for work in (0, 30_000):
        found, deviation = mean_count(problem, cover_of(problem, work))
        assert abs(found - exact) <= 5 * deviation + 1e-6
    assert exact > 0


@pytest.mark.parametrize(("work", "looks"), [(2_000, 3), (2_000, 10_000), (60_000, 10_000)])
def test_intervals_miss_as_rarely_as_promised(work: int, looks: int) -> None:
    """Over many seeds, stopped early or not, the interval misses in at most delta of the runs."""
    problem, exact = problem_of("1.9"), true_count("1.9")
    cover = cover_of(problem, work)
    n = problem.n_regions
    known = KnownPart(0, cover.counts(problem.n_combinations)[1], Bounds(0, n), n)
    misses = complete = 0
    for seed in range(SEEDS):
        settings = StopEarly(seed=seed, epsilon=EPSILON, delta=DELTA, looks=looks)
        tally = Estimator(cover, known, settings, is_long=False).run("sample", {})
        misses += not tally.low <= exact <= tally.high
        complete += tally.stop_reason is StopReason.COMPLETE
    assert misses <= most_failures(SEEDS, DELTA)
    assert complete == SEEDS or looks < 10_000


@pytest.mark.parametrize("seed", range(10))
def test_rare_shares_are_counted_from_boxes(seed: int) -> None:
    """The counter refines the cover, and its answer is as good as asked for, most of the time."""
    settings = Settings(seed=seed, epsilon=0.2, delta=1e-6, thresholds=AT_ONCE)
    tally = count_by_sampling(problem_of("1.9"), settings)
    assert tally.details["cover_states"] > 0
    assert tally.low <= true_count("1.9") <= tally.high
    assert tally.stop_reason is StopReason.COMPLETE


def test_answers_do_not_depend_on_threads() -> None:
    """The same boxes, samples and answer on one thread and on three."""
    tallies = [
        count_by_sampling(problem_of("1.9"), Settings(seed=3, jobs=n, thresholds=AT_ONCE))
        for n in (1, 3)
    ]
    assert tallies[0] == tallies[1]


def test_a_cover_that_shrinks_to_nothing_proves_a_zero() -> None:
    """No change is larger than the gap: 0, certain, without a sample."""
    problem = problem_of("2.5")
    assert true_count("2.5") == 0
    tally = count_by_sampling(problem, Settings(thresholds=AT_ONCE))
    assert (tally.low, tally.count, tally.high, tally.confidence) == (0, 0, 0, 1.0)
