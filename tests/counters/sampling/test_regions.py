"""Samples that are single regions: decided right by a search, for any number of masks."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from oracle import all_regions
from strategies import random_classifier, random_ensemble
from sums_of_cells import STUMPS, check_many_masks

import xcount
from benchmarks.coverage import StopEarly
from benchmarks.known_counts import HASTY_BUDGET, region_instances
from xcount import _core
from xcount.answers.count import solve
from xcount.counters import decisions
from xcount.counters.decisions import RegionDecider
from xcount.counters.region_search import RegionSearch, _IntervalDoubt, region_sampler
from xcount.counters.sampling.count import CountEstimate, Rest
from xcount.counters.sampling.draws import BATCH, RegionDraws
from xcount.counters.sampling.estimator import Estimator, KnownPart
from xcount.counters.settings import Settings
from xcount.counters.tally import Bounds, StopReason
from xcount.errors import BudgetError, OutOfLimitsError
from xcount.model.ensemble import Ensemble
from xcount.model.examples import ensemble_of, figure_1
from xcount.problem.corner_question import CornerChange
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query

OPEN, SENSITIVE = 0, 1


def random_problem(seed: int) -> Problem:
    """Return a small random problem: one to three sensitive features, any distance."""
    rng = np.random.default_rng([seed, 8])
    ensemble = random_ensemble(seed)
    size = int(rng.integers(1, min(3, ensemble.n_features) + 1))
    sensitive = [int(f) for f in rng.choice(ensemble.n_features, size, replace=False)]
    gap = ("0", "0.5", "0.3", "1")[int(rng.integers(4))]
    distance = (1, 2, 3, "any")[int(rng.integers(4))]
    query = Query.of(ensemble, sensitive, gap, distance=distance)
    return Problem(ensemble, Grid.of(ensemble, missing="cell" if seed % 2 else "none"), query)


@pytest.mark.parametrize("seed", range(300))
def test_every_region_is_decided_as_by_enumeration(seed: int) -> None:
    """Missing cells, categories, huge and tiny leaves, any distance: the counts of enumeration."""
    problem = random_problem(seed)
    brute = _core.BruteForce(problem.forest, problem.masks, problem.threshold_limbs)
    sampler = RegionDraws(problem.form.corner_question)
    answers = sampler.decide(all_regions(problem).ravel())
    assert OPEN not in answers
    expected = int(brute.count(0, brute.n_combinations, 1).sum())
    assert int((answers == SENSITIVE).sum()) == expected


@pytest.mark.parametrize("seed", range(60))
def test_a_direction_is_searched_for(seed: int) -> None:
    """Of a gap up or down, the search finds just the regions that a row of all masks finds."""
    problem = random_problem(seed)
    for direction in ("up", "down"):
        change = replace(problem.query.change, direction=direction)  # type: ignore[type-var]
        directed = replace(problem, query=replace(problem.query, change=change))
        regions = all_regions(problem)
        answers = RegionDraws(directed.form.corner_question).decide(regions.ravel())
        expected = RegionDecider(directed).decide_regions(regions)
        assert (answers == SENSITIVE).tolist() == expected.tolist()


@pytest.mark.parametrize("seed", range(40))
def test_a_search_that_ends_early_is_never_wrong(seed: int) -> None:
    """With a small budget regions may stay open; those decided are decided right."""
    problem = random_problem(seed)
    regions = all_regions(problem).ravel()
    right = RegionDraws(problem.form.corner_question).decide(regions)
    hasty = RegionDraws(problem.form.corner_question, 4).decide(regions)
    assert np.all((hasty == OPEN) | (hasty == right))


@pytest.mark.parametrize("budget", [None, HASTY_BUDGET])
def test_draws_do_not_depend_on_threads_or_slices(budget: int | None) -> None:
    """Batches are numbered: one by one or all at once, on one thread or three, they are the same.

    With open samples, they come once more with what is open counted as sensitive.
    """
    problem = region_instances(3)[2].problem
    sampler = RegionDraws(problem.form.corner_question, budget)
    whole = sampler.draw(5, 1, 0, 6, 3)
    parts = [sampler.draw(5, 1, i, 1, 1) for i in range(6)]
    np.testing.assert_array_equal(whole[0], sum(part[0] for part in parts))
    np.testing.assert_array_equal(whole[1], np.concatenate([part[1] for part in parts]))
    assert len(whole) == (2 if budget is None else 4)
    if budget is not None:
        np.testing.assert_array_equal(whole[3], np.concatenate([part[-1] for part in parts]))
        assert np.all(whole[1] <= whole[3])
        assert whole[0].sum() == whole[2].sum() == len(whole[3])


@pytest.mark.parametrize("seed", [3, 7, 11, 21])
def test_the_mean_of_the_draws_is_the_share(seed: int) -> None:
    """Sixty thousand samples come within five standard deviations."""
    problem = random_problem(seed)
    brute = _core.BruteForce(problem.forest, problem.masks, problem.threshold_limbs)
    share = int(brute.count(0, brute.n_combinations, 1).sum()) / problem.n_regions
    sampler = RegionDraws(problem.form.corner_question)
    histogram, hits = sampler.draw(0, 0, 0, 240, 2)
    values = np.arange(sampler.levels + 1) / sampler.levels
    room = 5 * np.sqrt(share * (1 - share) / len(hits)) + 1e-12
    assert abs(values @ histogram / histogram.sum() - share) <= room
    assert abs(hits.mean() - share) <= room


def question_of_many_masks(distance: object, n_features: int = 3) -> Problem:
    """Return a question with 201 cells on every sensitive feature.

    A step on any of them changes V by 1, up or down as the last feature says.
    """
    last = n_features
    stumps = [
        (f, float(t), 0.0, (last, 0.5, 1.0, -1.0)) for f in range(last) for t in range(200)
    ]  # fmt: skip
    ensemble = ensemble_of(*stumps)
    query = Query.of(ensemble, range(last), 1, distance=distance)
    return Problem(ensemble, Grid.of(ensemble), query)


@pytest.mark.parametrize("method", ["auto", "sample"])
@pytest.mark.parametrize("distance", [2, 3, "any"])
@pytest.mark.parametrize("n_features", [3, 9])
def test_any_number_of_masks_is_answered(method: str, distance: object, n_features: int) -> None:
    """Two steps change V by 2, which is more than the gap: every region is sensitive.

    Three features have 8 million masks, nine have more than 64 bits can number.
    """
    problem = question_of_many_masks(distance, n_features)
    result = solve(problem, Settings(memory_bytes=10**9), method)
    assert result.stop_reason is StopReason.COMPLETE
    assert result.high == problem.n_regions
    assert result.low >= 0.8 * result.high


def test_a_limit_of_time_leaves_a_valid_interval() -> None:
    """One step never changes V by more than the gap: a zero, which sampling does not prove."""
    result = solve(question_of_many_masks(1), Settings(timeout_seconds=1.0), "auto")
    assert result.stop_reason is StopReason.TIMEOUT
    assert result.low == 0 < result.high < result.n_regions
    assert result.details["may_be_zero"] is True


def test_less_memory_than_the_trees_take_is_a_limit() -> None:
    """Nothing is sampled; the bounds hold all the same."""
    problem = question_of_many_masks("any")
    result = solve(problem, Settings(memory_bytes=1_000_000), "sample")
    assert result.stop_reason is StopReason.MEMORY
    assert (result.low, result.high, result.confidence) == (0, problem.n_regions, 1)


def test_the_answer_does_not_depend_on_threads() -> None:
    """Same seed, same answer: with one thread or three."""
    problem = question_of_many_masks(3)
    tallies = [solve(problem, Settings(jobs=jobs, seed=4, epsilon=0.02), "auto") for jobs in (1, 3)]
    assert len({(t.count, t.low, t.high, t.details["samples"]) for t in tallies}) == 1


def test_open_samples_widen_the_interval() -> None:
    """The low end counts what is open as not sensitive, the high end as sensitive."""
    instance = region_instances(6)[5]
    estimator = instance.estimator(StopEarly(seed=1, jobs=1, looks=20))
    tally = estimator.run("sample", {})
    n_open = tally.details["open_share"] * instance.problem.n_regions
    assert tally.stop_reason is StopReason.TIMEOUT
    assert tally.low <= instance.count <= tally.high
    assert tally.high - tally.low > n_open > 0.1 * instance.count


class _CutShort:
    """Draws of which the time is over after a number of samples."""

    def __init__(self, draws: RegionDraws, n_left: int) -> None:
        self._draws, self._n_left = draws, n_left
        self.levels, self.n_trees = draws.levels, draws.n_trees
        self.seconds_per_sample = draws.seconds_per_sample

    def draw(self, seed: int, stream: int, first: int, n: int, *_: Any) -> Any:
        assert n == 1
        histogram, hits = self._draws.draw(seed, stream, first, n, 1)
        hits, self._n_left = hits[: self._n_left], max(0, self._n_left - len(hits))
        if not len(hits):
            return np.empty(0), hits
        return np.bincount(hits, minlength=len(histogram)), hits


def test_the_samples_before_the_end_of_the_time_count() -> None:
    """One whole batch and a part of the next; the pilot takes another one."""
    problem = question_of_many_masks(3)
    cut_short = _CutShort(RegionDraws(problem.form.corner_question), 2 * BATCH + 100)
    n = problem.n_regions
    known_part = KnownPart(0, n, Bounds(0, n), n)
    estimator = Estimator(cut_short, known_part, Settings(epsilon=0.001, jobs=1))
    tally = estimator.run("sample", {}, estimator.pilot(1))
    assert tally.stop_reason is StopReason.TIMEOUT
    assert tally.details["samples"] == BATCH + 100
    assert 0.9 * n < tally.low <= tally.high == n


def test_without_time_for_a_pilot_sampling_begins_all_the_same() -> None:
    """The first samples are few; none of them is lost to a plan."""
    problem = question_of_many_masks(3)
    n = problem.n_regions
    nothing = _CutShort(RegionDraws(problem.form.corner_question), 0)
    estimator = Estimator(nothing, KnownPart(0, n, Bounds(0, n), n), Settings(jobs=1))
    pilot = estimator.pilot()
    assert (pilot.n, pilot.mean) == (1, 0.0)
    tally = estimator.run("sample", {}, pilot)
    assert tally.stop_reason is StopReason.TIMEOUT
    assert (tally.count, tally.low, tally.high) == (None, 0, n)


@pytest.mark.parametrize(("budgets", "chosen"), [((0, 10**6), 1), ((10**6, 10**7), 0), ((0, 1), 0)])
def test_searches_that_end_too_early_get_a_larger_budget(
    budgets: tuple[int, int], chosen: int
) -> None:
    """If it decides what the usual one leaves open; else the usual one stays."""
    question = question_of_many_masks(3).form.corner_question
    sampler, again = RegionDraws(question), RegionDraws(question)
    sampler.tune(1, 2, budgets=budgets)
    assert sampler._native.budget == budgets[chosen]
    again.tune(1, 2, seconds=0.0, budgets=budgets)  # what is known of a question is not tried again
    assert again._native.budget == budgets[chosen]
    assert len(sampler.draw(1, 0, 0, 1, 1)) == (4 if budgets[chosen] < 2 else 2)


def test_trials_of_a_budget_do_not_depend_on_threads() -> None:
    """Nor does what they leave open; without time there is none."""
    native = RegionDraws(region_instances(3)[2].problem.form.corner_question)._native
    trials = [native.try_budget(HASTY_BUDGET, 1, 2, 20, n_threads) for n_threads in (1, 3)]
    assert trials[0] == trials[1]
    n, n_open, n_nodes = trials[0]
    assert (n, n_open > 0, 0 < n_nodes <= 20 * HASTY_BUDGET) == (20, True, True)
    assert native.try_budget(HASTY_BUDGET, 1, 2, 20, 2, 0.0)[0] == 0


def test_a_distance_beyond_all_cells_is_any_distance() -> None:
    """However large the number."""
    problem = Problem(figure_1(), Grid.of(figure_1()), Query.of(figure_1(), "f0", 80, distance=9))
    far = Query.of(figure_1(), "f0", 80, distance=10**30)
    unlimited = Problem(figure_1(), Grid.of(figure_1()), far)
    regions = all_regions(problem).ravel()
    np.testing.assert_array_equal(
        RegionDraws(problem.form.corner_question).decide(regions),
        RegionDraws(unlimited.form.corner_question).decide(regions),
    )


def test_nonsense_is_refused() -> None:
    """No such feature, no such distance."""
    problem = Problem(figure_1(), Grid.of(figure_1()), Query.of(figure_1(), "f0", 80))
    question = problem.form.corner_question
    with pytest.raises(ValueError, match="out of range"):
        region_sampler(replace(question, sensitive=(2,)))
    with pytest.raises(ValueError, match="at least 1"):
        region_sampler(replace(question, distance=0))
    with pytest.raises(ValueError, match="another number of sums"):
        region_sampler(replace(question, changes=(CornerChange("largest"),)))


def test_more_masks_than_a_row_holds_are_sampled_region_by_region(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The answer of the two ways of sampling is the same but for chance."""
    ensemble: Ensemble = random_ensemble(7)
    problem = Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, "f0", 0, distance=1))
    settings, everything = Settings(epsilon=0.05), Rest.everything(problem)
    by_row = CountEstimate(problem, settings, everything).run("sample", {})
    monkeypatch.setattr(decisions, "MAX_ROW", 0)  # which choices without settings use
    by_region = CountEstimate(problem, settings, everything).run("sample", {})
    assert by_region.low <= by_row.high
    assert by_row.low <= by_region.high
    assert by_region.details["samples"] > by_row.details["samples"]


def question_about_sums(**words: Any) -> Problem:
    """Ask about three features of 201 cells each, 8 million masks (:mod:`sums_of_cells`)."""
    ensemble = replace(ensemble_of(*STUMPS), probability="sigmoid")
    query = Query.of(ensemble, range(3), **words)
    return Problem(ensemble, Grid.of(ensemble), query)


MANY_MASKS: dict[str, dict[str, Any]] = {
    "flip": {"flip": True, "cutoff": 4, "distance": 20},
    "flip up": {"flip": True, "cutoff": 4, "direction": "up", "distance": "any"},
    "sure flip": {"flip": True, "cutoff": 4, "from_probability": "0.985", "distance": 40},
    "probability": {"probability_gap": "0.1", "distance": 150},
    "probability down": {"probability_gap": "0.01", "direction": "down", "distance": "any"},
}


@pytest.mark.filterwarnings("ignore:the cut-off .* is a margin:xcount.errors.QueryWarning")
@pytest.mark.parametrize("what", MANY_MASKS)
def test_every_change_is_answered_with_any_number_of_masks(what: str) -> None:
    """A count within its accuracy, and given regions."""
    problem = question_about_sums(**MANY_MASKS[what])
    check_many_masks(problem)


@pytest.mark.filterwarnings("ignore:the cut-off .* is a margin:xcount.errors.QueryWarning")
@pytest.mark.parametrize("what", MANY_MASKS)
def test_witnesses_of_many_masks_have_the_nearest_other_side(what: str) -> None:
    """No neighbour nearer than the other side differs."""
    problem = question_about_sums(**MANY_MASKS[what])
    found = xcount.witnesses(
        problem.ensemble, sensitive=range(3), n=3, verify=False, **MANY_MASKS[what]
    )
    differs = problem.query.change.differs
    for witness in found:
        here, there = ([Fraction(v)] for v in (witness.margin, witness.other_margin))
        step = Fraction(1, 64) * (1 if there > here else -1)
        assert witness.distance == abs(there[0] - here[0]) / Fraction(1, 64)
        assert differs(here, there)
        assert not differs(here, [there[0] - step])
    assert len(found) == 3


def test_the_witness_nearest_to_a_row_is_found_among_many_masks() -> None:
    """A row that is sensitive is its own; of another one, a sensitive region near it."""
    words = MANY_MASKS["flip"]
    problem = question_about_sums(**words)
    rows = pd.DataFrame([[100.5, 100.5, 55.5, 0], [1.5, 1.5, 1.5, 0]], columns=list("abcd"))
    rows.columns = list(problem.ensemble.feature_names)
    found = xcount.witnesses(
        problem.ensemble, sensitive=range(3), near=rows, n=2, verify=False, **words
    )
    assert [(w.row, w.moved, w.proved) for w in found[:1]] == [(0, (), True)]
    assert found[1].proved is False
    assert found[1].moved


@pytest.mark.parametrize("exponent", [-40, -58, -59])
def test_probabilities_of_sums_that_just_fit_are_compared(exponent: int) -> None:
    """The unit is 2^exponent: at -58, the margin 6 is next to the end of 64 bits."""
    trees = ensemble_of((0, 0.0, 2.0, 6.0), (1, 0.0, 0.0, 2.0**exponent))
    model = replace(trees, probability="sigmoid")
    query = Query.of(model, "f0", probability_gap="0.11", distance="any")
    problem = Problem(model, Grid.of(model), query)
    regions = all_regions(problem)
    assert RegionSearch(problem.form.corner_question).decide(regions).all()


def test_what_is_in_doubt_is_decided_within_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Margins 0 and 1 differ by the gap up to its 17th digit: floats cannot tell."""
    model = replace(ensemble_of((0, 0.0, 0.0, 1.0)), probability="sigmoid")
    query = Query.of(model, "f0", probability_gap="0.23105857863000487", distance="any")
    problem = Problem(model, Grid.of(model), query)
    search, find = RegionSearch(problem.form.corner_question), _IntervalDoubt._tolerances
    assert search.decide(all_regions(problem)).all()

    def slowly(self: _IntervalDoubt, native: Any, regions: Any) -> Any:
        time.sleep(0.3)
        return find(self, native, regions)

    monkeypatch.setattr(_IntervalDoubt, "_tolerances", slowly)
    with pytest.raises(OutOfLimitsError, match="time limit"):
        search.decide(all_regions(problem), seconds=0.2)


@pytest.mark.parametrize("seed", range(80))
def test_searches_decide_a_softmax_as_rows_do(seed: int) -> None:
    """Every region that is not left open, which hardly any is, in every direction."""
    model = random_classifier(seed)
    leaves = (np.clip(t.value, -30, 30).round(20).astype(float) for t in model.trees)
    trees = tuple(replace(t, value=v) for t, v in zip(model.trees, leaves, strict=True))
    if model.n_outputs == 1:
        trees = tuple(replace(t, output=i % 3) for i, t in enumerate(trees))
    base = model.base if model.n_outputs > 1 else (0.5, 0.0, -0.25)
    model = replace(model, trees=trees, base=base, task="multiclass", probability="softmax")
    rng = np.random.default_rng([seed, 9])
    size = int(rng.integers(1, min(3, model.n_features) + 1))
    query = Query.of(
        model,
        [int(f) for f in rng.choice(model.n_features, size, replace=False)],
        probability_gap=str(rng.choice(["0.01", "0.1", "0.3"])),
        class_=int(rng.integers(model.n_outputs)),
        direction=str(rng.choice(["up", "down", "any"])),
        distance=(1, 2, "any")[int(rng.integers(3))],
    )
    problem = Problem(model, Grid.of(model, missing="cell" if seed % 2 else "none"), query)
    regions = all_regions(problem)
    answers = RegionDraws(problem.form.corner_question).decide(regions.ravel())
    assert OPEN not in answers
    expected = RegionDecider(problem).decide_regions(regions)
    assert (answers == SENSITIVE).tolist() == expected.tolist()


def test_a_softmax_too_close_to_tell_is_open_and_refused() -> None:
    """Margins 0 and 1 differ by the gap up to its 17th digit: samples stay open."""
    trees = ensemble_of((0, 0.0, 0.0, 1.0))
    model = replace(trees, base=(0.0, 0.0), task="multiclass", probability="softmax")
    query = Query.of(
        model, "f0", probability_gap="0.23105857863000487", distance="any", class_=0
    )  # fmt: skip
    problem = Problem(model, Grid.of(model), query)
    question = problem.form.corner_question
    assert RegionDraws(question).decide(all_regions(problem).ravel()).tolist() == [OPEN, OPEN]
    with pytest.raises(BudgetError, match="fewer sensitive features"):
        RegionSearch(question).decide(all_regions(problem))
