"""`auto`: exact where that is cheap, an estimate for the rest, and their sum is right."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from enumeration import count_by_enumeration
from oracle import known
from strategies import random_ensemble, random_tree, wide_ensemble

import xcount
from xcount.counters import auto, costs, visit
from xcount.counters.auto import count_automatically
from xcount.counters.costs import Thresholds
from xcount.counters.exact import ExactRun, count_exactly
from xcount.counters.sampling.policy import Scheduler, SuccessiveEstimates
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason, Tally
from xcount.counters.visit import corner_seconds, visited, visiting_seconds
from xcount.model.ensemble import Ensemble, Feature
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query
from xcount.question.share import Limit


@pytest.mark.parametrize("seed", range(60))
def test_small_ensembles_are_counted_exactly(seed: int) -> None:
    """Whatever enumeration finds, auto finds, and says that it is exact."""
    ensemble = random_ensemble(seed)
    distance = (1, 2, "any")[seed % 3]
    counts = [
        xcount.count(ensemble, sensitive="f0", gap="0.3", distance=distance, method=method)
        for method in ("brute", "auto")
    ]
    assert counts[0].count == counts[1].count
    assert counts[1].exact


TINY = Thresholds(step_budgets=(200, 2_400), free_exact_seconds=0.0)
"""The exact rounds give up early, so that sampling gets its part."""


def problem_of(ensemble: Ensemble, **question: Any) -> Problem:
    """Return the question about f0, one step of it unless said otherwise."""
    asked = {"distance": 1, **question}
    return Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, "f0", **asked))


def counted(thresholds: Thresholds, question: dict[str, Any], **how: Any) -> Tally:
    """Count by ``auto`` with these thresholds, without a visit of all regions."""
    settings = Settings(thresholds=thresholds, may_visit=False, **how)
    tally = count_automatically(problem_of(wide_ensemble(), **question), settings)
    return settings.cuts.told_by(tally)


@pytest.mark.parametrize("distance", [1, 3, "any"])
@pytest.mark.parametrize("gap", ["0.4", "1.5"])
def test_exact_part_and_estimate_add_up(distance: int | str, gap: str) -> None:
    """With part of the masks solved and part estimated, the total is within epsilon."""
    exact = xcount.count(
        wide_ensemble(), sensitive="f0", gap=gap, distance=distance, method="brute"
    )
    misses = 0
    for seed in range(10):
        question = {"gap": gap, "distance": distance}
        result = counted(TINY, question, seed=seed, delta=0.01)
        assert result.stop_reason is StopReason.COMPLETE
        misses += not result.low <= known(exact.count) <= result.high
        misses += abs(known(result.count) - known(exact.count)) > 0.1 * known(exact.count)
    assert misses <= 2  # of 20 chances with probability 0.01 each, more has probability 0.001


def test_the_result_says_which_part_is_exact() -> None:
    """Details name the masks that were solved and what they count."""
    result = counted(TINY, {"gap": "0.4", "distance": 3})
    details = result.details
    assert 0 <= details["masks_solved"] < details["n_masks"]
    assert int(details["count_solved"]) <= result.low
    assert result.confidence == pytest.approx(0.9)


def test_an_estimate_in_the_place_of_an_exact_count_says_so() -> None:
    """If the limit of time cut exact work short, and only then."""
    question, patient = {"gap": "0.4", "distance": 3}, replace(TINY, alone_seconds=math.inf)
    late = mock.patch.object(Scheduler, "_is_late", return_value=True)
    with late, mock.patch.object(SuccessiveEstimates, "price", return_value=math.inf):
        hurried = counted(patient, question, timeout_seconds=60)
    assert hurried.details["exact_cut_short"]
    assert "exact_cut_short" not in counted(TINY, question, timeout_seconds=60).details


def test_bounds_in_the_place_of_an_exact_count_say_so() -> None:
    """If the limit of time ends exact work with bounds that are close enough for an answer."""
    question, calm = {"gap": "0.4", "distance": 3}, replace(TINY, free_exact_seconds=math.inf)
    assert "exact_cut_short" not in counted(calm, question, timeout_seconds=60, epsilon=0.9).details

    def over_after_one_slice(settings: Settings) -> bool:
        return bool(settings.timeout_seconds is not None and settings.timeout_seconds < 40)

    with mock.patch.object(Settings, "expired", over_after_one_slice):
        hurried = counted(calm, question, timeout_seconds=60, epsilon=0.9)
    assert hurried.low < hurried.high
    assert hurried.details["exact_cut_short"]


def test_a_visit_that_lacks_time_says_so() -> None:
    """A cheap visit that is left out, or ended, for lack of time; not one that costs too much."""
    problem = problem_of(wide_ensemble(), gap="0.4", distance=3)
    price = visiting_seconds(problem.form.corner_question)
    for left, is_cut in ((price * 3, False), (price * 1.5, True)):
        settings = Settings(timeout_seconds=60, jobs=1)
        with mock.patch.object(Settings, "seconds_left", return_value=left):
            assert (corner_seconds(problem, settings) == math.inf) == is_cut
        assert settings.cuts.exact == is_cut
    frugal = Settings(timeout_seconds=60, jobs=1, thresholds=replace(TINY, visit_seconds=price / 2))
    with (
        mock.patch.object(Settings, "seconds_left", return_value=price * 1.5),
        mock.patch.object(visit, "pair_scan_seconds", return_value=0.0),
    ):
        assert corner_seconds(problem, frugal) == math.inf
    assert not frugal.cuts.exact
    hurried = Settings(timeout_seconds=60)
    with mock.patch.object(Settings, "expired", return_value=True):
        assert visited(problem, hurried, "auto") is None
    assert hurried.cuts.exact


def test_a_pilot_that_lacks_time_says_so() -> None:
    """It chooses what is drawn, so the estimate is another one."""
    question = {"gap": "0.4", "distance": 3}
    assert "samples_cut_short" not in counted(TINY, question, timeout_seconds=60).details
    with mock.patch.object(costs, "PILOT_TIME_PART", 0.0):
        hurried = counted(TINY, question, timeout_seconds=60)
    assert hurried.details["samples_cut_short"]


def test_same_seed_same_answer_on_any_number_of_threads() -> None:
    """Neither the rounds nor the samples depend on the number of threads."""
    results = [counted(TINY, {"gap": "0.4"}, seed=3, jobs=jobs) for jobs in (1, 2, 3)]
    assert len({(r.count, r.low, r.high) for r in results}) == 1


def test_a_decided_share_needs_no_accuracy() -> None:
    """The run ends as soon as the interval is on one side of the share."""
    limit = Limit.of("1%")
    result = counted(TINY, {"gap": "0.4"}, epsilon=1e-3, max_share=limit, timeout_seconds=60)
    assert result.stop_reason is StopReason.DECIDED
    assert not limit.allows(result.low, problem_of(wide_ensemble(), gap="0.4").n_regions)


@pytest.mark.usefixtures("no_corner_sums")
def test_many_masks_go_straight_to_sampling() -> None:
    """With too many pairs of masks for exact counting, the answer is an estimate."""
    rng = np.random.default_rng(9)
    features = tuple(Feature(f"f{i}") for i in range(4))
    trees = tuple(
        random_tree(rng, features, 5, rng.normal(size=64), np.arange(30.0)) for _ in range(20)
    )
    ensemble = Ensemble(features, trees)
    result = xcount.count(ensemble, sensitive="f0,f1", gap="2", distance="any")
    assert result.stop_reason is StopReason.COMPLETE
    assert result.details["samples"] > 0


# ---- exact work and samples in turns ----


@pytest.mark.parametrize("seed", range(40))
def test_slices_find_what_rounds_find(seed: int) -> None:
    """One subproblem a slice: the counts are those of enumeration, and each slice has its cost."""
    ensemble = random_ensemble(seed)
    questions: list[dict[str, Any]] = [{"gap": "0.3"}, {"flip": True, "cutoff": 0.1}]
    problem = problem_of(ensemble, distance=(1, 2, "any")[seed % 3], **questions[seed % 2])
    thresholds = Thresholds(least_slice_seconds=0.0, slice_part=0.0)
    run = ExactRun(problem, Settings(jobs=1, thresholds=thresholds))
    run.solve(())
    costs = list(run.slices((50, 500, 2**62)))
    run.end()
    assert run.bounds() == (count_by_enumeration(problem, Settings()).count,) * 2
    assert run.stop_reason is StopReason.COMPLETE
    assert all(cost >= 0 for cost in costs)


MANY_ESTIMATES = Thresholds(
    step_budgets=(200, 400, 800, 1_600, 3_200),
    free_exact_seconds=0.0,
    alone_seconds=0.0,
    least_slice_seconds=0.0,
    slice_part=0.0,
    shrunk_part=1.0,
    cheaper_part=math.inf,
)
"""A new estimate starts at every chance."""


@pytest.fixture
def deltas(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the deltas of all estimates that start from now on."""
    found: list[float] = []
    start = SuccessiveEstimates._start

    def noted(self: SuccessiveEstimates, estimate: Any) -> None:
        found.append(estimate._settings.delta)
        start(self, estimate)

    monkeypatch.setattr(SuccessiveEstimates, "_start", noted)
    return found


def test_estimates_that_begin_anew_share_delta(deltas: list[float]) -> None:
    """Together they have no more than delta, and the interval misses as rarely as that says."""
    ensemble = wide_ensemble()
    asked: dict[str, Any] = {"gap": "1.5", "distance": 3}
    truth = known(count_by_enumeration(problem_of(ensemble, **asked), Settings()).count)
    misses, most_begun = 0, 0
    for seed in range(20):
        deltas.clear()
        result = counted(MANY_ESTIMATES, asked, seed=seed, jobs=1)
        assert sum(deltas) <= 0.1
        most_begun = max(most_begun, len(deltas))
        misses += not result.low <= truth <= result.high
    assert most_begun > 1
    assert misses <= 7  # of 20 with probability 0.1 each, more has probability 0.0004


def test_exact_counting_goes_on_where_samples_lead_nowhere() -> None:
    """Sampling gives up without a hit; the count comes out exactly all the same."""
    thresholds = Thresholds(
        free_exact_seconds=0.0,
        alone_seconds=0.0,
        least_barren_samples=256,
        most_barren_samples=256,
    )
    problem = problem_of(wide_ensemble(), gap="1.55")
    truth = known(count_exactly(problem, Settings()).count)
    assert 0 < truth < 1e-3 * problem.n_regions
    result = counted(thresholds, {"gap": "1.55"})
    assert (result.low, result.count, result.high) == (truth, truth, truth)


def test_exact_slices_end_with_the_time_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the time is exact counting's, but none that is over: 99 of 100 seconds are."""
    seen = []

    def remember(self: ExactRun, settings: Settings) -> None:
        seen.append(settings)

    monkeypatch.setattr(ExactRun, "limit", remember)
    model = wide_ensemble()
    problem = Problem(model, Grid.of(model), Query.of(model, "f0", "0.4"))
    started = time.monotonic() - 99
    auto._Count(problem, Settings(timeout_seconds=100, started=started), 0.0)._work_until(0.0)
    (limited,) = seen
    assert limited.timeout_seconds is not None
    assert limited.started + limited.timeout_seconds <= started + 100
