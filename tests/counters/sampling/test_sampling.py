"""Counting by sampling: samples are decided right, and intervals hold as often as they say."""

from __future__ import annotations

import itertools
import math
import os
import re
import signal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from oracle import known
from strategies import random_ensemble

import xcount
from xcount import _core
from xcount.counters.costs import Thresholds
from xcount.counters.sampling.count import CountEstimate, Rest, count_by_sampling
from xcount.counters.sampling.draws import RowDraws
from xcount.counters.sampling.estimator import Evidence, KnownPart
from xcount.counters.sampling.intervals import BettingSequence
from xcount.counters.settings import Settings
from xcount.counters.tally import Bounds, Progress, StopReason, Tally
from xcount.model.examples import ensemble_of, figure_1
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query
from xcount.question.share import Limit


def random_problem(seed: int) -> Problem:
    """Return a small random problem: one to three sensitive features, any distance."""
    rng = np.random.default_rng([seed, 5])
    ensemble = random_ensemble(seed)
    size = int(rng.integers(1, min(3, ensemble.n_features) + 1))
    sensitive = [int(f) for f in rng.choice(ensemble.n_features, size, replace=False)]
    gap = ("0", "0.5", "0.3", "1")[int(rng.integers(4))]
    distance = (1, 2, 3, "any")[int(rng.integers(4))]
    query = Query.of(ensemble, sensitive, gap, distance=distance)
    return Problem(ensemble, Grid.of(ensemble, missing="cell" if seed % 2 else "none"), query)


def all_combinations(problem: Problem) -> np.ndarray:
    """Return every combination of non-sensitive cells, with 0 in the sensitive columns."""
    sensitive = problem.query.sensitive
    cells = [range(1 if f in sensitive else a.n_cells) for f, a in enumerate(problem.grid.axes)]
    return np.array(list(itertools.product(*cells)), dtype=np.int32)


@pytest.mark.parametrize("seed", range(300))
def test_every_combination_is_decided_as_by_enumeration(seed: int) -> None:
    """Deciding all combinations, mask by mask, gives the counts of enumeration."""
    problem = random_problem(seed)
    brute = _core.BruteForce(problem.forest, problem.masks, problem.threshold_limbs)
    expected = brute.count(0, brute.n_combinations, 1)
    masks = np.arange(problem.n_masks, dtype=np.int64)
    sampler = _core.Sampler(problem.forest, problem.masks, problem.threshold_limbs, masks)
    flags = sampler.decide(all_combinations(problem).ravel()).reshape(-1, problem.n_masks)
    assert flags.sum(axis=0).tolist() == expected.tolist()


def test_the_answer_does_not_depend_on_threads_or_listeners() -> None:
    """Same seed, same answer: with one thread or three, watched or not."""
    seen: list[Progress] = []
    alone = xcount.count(random_ensemble(7), sensitive="f0", gap=0, method="sample", jobs=1)
    for seed in (0, 1):
        results = [
            xcount.count(
                random_ensemble(7),
                sensitive="f0",
                gap=0,
                method="sample",
                seed=seed,
                epsilon=0.01,
                jobs=jobs,
                on_progress=listener,
            )
            for jobs, listener in ((1, None), (3, None), (2, seen.append))
        ]
        assert len({(r.count, r.low, r.high, r.details["samples"]) for r in results}) == 1
    assert alone.low <= known(alone.count) <= alone.high


def test_no_sensitive_test_is_an_exact_zero() -> None:
    """Where no tree tests the sensitive feature the count is 0, proved without a sample."""
    ensemble = ensemble_of((0, 1.0, -1.0, 1.0), n_features=2)
    result = xcount.count(ensemble, sensitive="f1", gap=0, method="sample")
    assert (result.count, result.exact, result.details.get("samples", 0)) == (0, True, 0)


def test_a_timeout_leaves_a_valid_interval_that_starts_at_zero() -> None:
    """Sampling never proves a zero: it says "at most"."""
    result = xcount.count(figure_1(), sensitive="f0", gap=85, method="sample", timeout=0.2)
    assert result.low == 0
    assert not result.exact or result.high == 0
    assert result.stop_reason in (StopReason.TIMEOUT, StopReason.COMPLETE)


def plainly_sampled(**how: Any) -> Tally:
    """Return the tally of samples from the whole space, however long it takes."""
    ensemble = random_ensemble(7)
    problem = Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, "f0", 0, distance=1))
    plain = Thresholds(plain_seconds=math.inf)
    return count_by_sampling(problem, Settings(thresholds=plain, **how))


def test_an_interrupt_leaves_the_interval_so_far() -> None:
    """Ctrl-C is a reason to stop, not an error."""

    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    result = plainly_sampled(epsilon=1e-5, on_progress=interrupt)
    assert result.stop_reason is StopReason.INTERRUPTED
    assert result.low <= 48 <= result.high


def test_the_interval_that_is_shown_only_shrinks() -> None:
    """It was once forgotten in long draws, and everything was possible again."""
    seen: list[Progress] = []

    def listen(progress: Progress) -> None:
        seen.append(progress)
        if len(seen) == 6:
            raise KeyboardInterrupt

    plainly_sampled(epsilon=1e-9, on_progress=listen)
    assert [p.low for p in seen] == sorted(p.low for p in seen)
    assert [p.high for p in seen] == sorted((p.high for p in seen), reverse=True)
    assert seen[0].high < 90  # of all regions: something is known when the first is shown


@pytest.mark.parametrize("epsilon", [1e-3, 1e-5])
def test_progress_is_samples_of_expected_ones(epsilon: float) -> None:
    """Whichever tool will finish first; it was once 0 % to the end."""
    seen: list[Progress] = []

    def listen(progress: Progress) -> None:
        seen.append(progress)
        raise KeyboardInterrupt

    plainly_sampled(epsilon=epsilon, on_progress=listen)
    assert 0 < seen[0].fraction < 1
    assert re.fullmatch(r"[\d,]+ of about [\d,]+ samples", seen[0].message)


@pytest.mark.parametrize(("max_share", "is_allowed"), [("1%", False), ("90%", True)])
def test_a_decided_share_stops_the_run(max_share: str, is_allowed: bool) -> None:
    """The run stops as soon as the interval lies on one side of the asked share."""
    limit = Limit.of(max_share)
    result = plainly_sampled(epsilon=1e-4, max_share=limit)
    assert result.stop_reason is StopReason.DECIDED
    n_regions = Grid.of(random_ensemble(7)).n_regions
    assert {limit.allows(end, n_regions) for end in (result.low, result.high)} == {is_allowed}


@pytest.mark.parametrize(("low", "high"), [(9, 11), (10, 12), (0, 0), (0, 1), (90, 110), (3, 3)])
def test_a_settled_count_is_within_epsilon_of_every_possible_value(low: int, high: int) -> None:
    """A count is settled only if it is close to both ends; otherwise there is none."""
    epsilon = Fraction(0.1)
    allowed = [
        n for n in range(200) if (1 - epsilon) * high <= n <= (1 + epsilon) * low
    ]  # fmt: skip
    settled = Bounds(low, high).settled(0.1, near=(low + high) // 2)
    assert settled in allowed if allowed else settled is None


def test_solved_masks_are_added_to_the_estimate() -> None:
    """Only unresolved masks are sampled; the others' counts go in as they are."""
    problem = random_problem(7)
    brute = _core.BruteForce(problem.forest, problem.masks, problem.threshold_limbs)
    counts = brute.count(0, brute.n_combinations, 1).tolist()
    unresolved = [m for m in range(problem.n_masks) if m % 2]
    solved = sum(counts) - sum(counts[m] for m in unresolved)
    rest = Rest(solved, unresolved, None, Bounds(0, problem.n_regions))
    tally = CountEstimate(problem, Settings(epsilon=0.05), rest).run("sample", {})
    assert tally.low <= sum(counts) <= tally.high
    assert tally.low >= solved


def test_bounds_stay_in_order_where_no_whole_number_lies_between() -> None:
    """A wrong statement about a tiny count once gave low > high, and a run without an end."""
    known_part = KnownPart(0, 48, Bounds(0, 48), 48)
    assert known_part.scaled((0.0247, 0.0371)) == Bounds(1, 2)
    assert known_part.scaled((0.02, 0.05)) == Bounds(1, 2)


class StopError(Exception):
    """What a listener raises."""


def test_a_long_draw_can_be_ended() -> None:
    """What a listener raises, and Ctrl-C, end a draw that would take minutes, at once."""
    problem = Problem(figure_1(), Grid.of(figure_1()), Query.of(figure_1(), "f0", 80))
    sampler = RowDraws(problem.space, range(problem.n_masks), None)
    calls = []

    def listen() -> None:
        calls.append(1)
        if len(calls) == 2:
            raise StopError

    with pytest.raises(StopError):
        sampler.draw(0, 0, 0, 3_000_000, 2, on_pause=listen)
    assert len(calls) == 2
    with pytest.raises(KeyboardInterrupt):
        sampler.draw(0, 0, 0, 3_000_000, 2, on_pause=lambda: os.kill(os.getpid(), signal.SIGINT))


def test_a_sampler_without_time_draws_nothing() -> None:
    """Outcomes are whole or empty."""
    problem = Problem(figure_1(), Grid.of(figure_1()), Query.of(figure_1(), "f0", 80))
    sampler = RowDraws(problem.space, range(problem.n_masks), None)
    assert [len(part) for part in sampler.draw(0, 0, 0, 3, 2, 0.0)] == [0, 0]
    in_time, unlimited = sampler.draw(0, 0, 0, 3, 2, 60.0), sampler.draw(0, 0, 0, 3, 2)
    for part, expected in zip(in_time, unlimited, strict=True):
        np.testing.assert_array_equal(part, expected)


def test_no_outcome_is_taken_in_twice() -> None:
    """An interrupt right after a block was handed over does not hand it over again."""
    values = np.array([0.0, 1.0])
    evidence = Evidence(BettingSequence(values, delta=0.1, epsilon=0.1), None)
    update = evidence.sequence.update

    def update_and_be_interrupted(histogram: np.ndarray, certain: float = 0.0) -> None:
        update(histogram, certain)
        raise KeyboardInterrupt

    evidence.add(np.array([60, 40]), np.zeros(100, dtype=np.uint8))
    evidence.sequence.update = update_and_be_interrupted  # type: ignore[method-assign]  # once
    with pytest.raises(KeyboardInterrupt):
        evidence.take_in(0.0)
    evidence.sequence.update = update  # type: ignore[method-assign]  # as it was
    evidence.take_in(0.0)
    assert evidence.sequence.n == 100
