"""A count spread over helpers: whoever does the work, in whatever order, same answer."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from oracle import known
from strategies import random_ensemble, random_tree, wide_ensemble

from xcount.cluster import spread as spreading
from xcount.cluster.spread import (
    Crew,
    SpreadEngine,
    Unit,
    VisitingUnit,
    max_under_way,
    spans_between,
)
from xcount.counters import costs, counter, exact
from xcount.counters.costs import Thresholds
from xcount.counters.engine import Tuning
from xcount.counters.sampling import count as sampling_count
from xcount.counters.sampling.count import rest_to_sample
from xcount.counters.sampling.draws import CoverDraws
from xcount.counters.sampling.estimator import next_look
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress, StopReason, Tally
from xcount.errors import ClusterError
from xcount.measures import exact_shares
from xcount.measures.shares import measure
from xcount.measures.weighting import Weighing
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.examples import tree_of
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query


class ScrambledCrew:
    """Does units here, but through pickles and out of order."""

    def __init__(self, helpers: ScrambledHelpers, tool: Any) -> None:
        self._helpers = helpers
        self._tool = pickle.loads(pickle.dumps(tool))
        self._under_way: list[tuple[Any, Unit]] = []
        self._random = np.random.default_rng(helpers.seed)

    @property
    def n_workers(self) -> int:
        return 3

    def submit(self, label: Any, unit: Unit) -> None:
        self._under_way.append((label, pickle.loads(pickle.dumps(unit))))

    def collect(self, seconds: float) -> list[tuple[Any, Any]]:
        if not self._under_way or self._random.random() < 0.2:
            return []
        at = int(self._random.integers(len(self._under_way)))
        label, unit = self._under_way.pop(at)
        self._helpers.units.append(unit)
        return [(label, unit(self._tool, lambda: None))]

    def cancel(self) -> None:
        self._under_way.clear()


class ScrambledHelpers:
    """Helpers who become free when they were asked a few times."""

    def __init__(self, seed: int, patience: int) -> None:
        self.seed, self._patience = seed, patience
        self.units: list[Unit] = []

    def are_free(self) -> bool:
        self._patience -= 1
        return self._patience < 0

    def crew(self, tool: Any) -> Crew:
        return ScrambledCrew(self, tool)


def problem_of(ensemble: Ensemble, gap: object = None, **question: Any) -> Problem:
    """Return a question about the first feature."""
    query = Query.of(ensemble, "f0", gap, **question)
    return Problem(ensemble, Grid.of(ensemble), query)


def spread(
    problem: Problem, method: str, patience: int, settings: Settings
) -> tuple[Tally, Tally, list[Unit]]:
    """Count alone and with helpers."""
    count = counter(method)
    alone = count(problem, settings)
    helpers = ScrambledHelpers(patience, patience)
    return alone, count(problem, replace(settings, engine=SpreadEngine(helpers))), helpers.units


@pytest.fixture
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let even small counts have many units."""
    monkeypatch.setattr(spreading, "UNIT_SECONDS", 1e-3)


@pytest.mark.usefixtures("small_units")
@pytest.mark.parametrize("patience", [0, 1, 5])
@pytest.mark.parametrize("distance", [1, 3, "any"])
@pytest.mark.parametrize("method", ["exact", "auto", "sample"])
def test_helpers_do_not_change_the_answer(method: str, distance: int | str, patience: int) -> None:
    """Called at once or in the middle, they leave no trace: not even in the number of steps."""
    problem = problem_of(wide_ensemble(), "0.4", distance=distance)
    wants_profile = method == "exact"
    settings = Settings(epsilon=0.03, jobs=1, may_visit=False, want_profile=wants_profile)
    alone, together, units = spread(problem, method, patience, settings)
    assert together == alone
    assert units or patience or method == "auto"


@pytest.mark.usefixtures("small_units")
@pytest.mark.parametrize("seed", range(20))
def test_small_ensembles_are_counted_by_helpers_too(seed: int) -> None:
    """Categories, missing values, ties, huge leaves: all of it travels."""
    ensemble = random_ensemble(seed)
    problem = problem_of(ensemble, "0.3", distance=(1, 2, "any")[seed % 3])
    alone, together, _ = spread(problem, "exact", 0, Settings(jobs=1, may_visit=False))
    assert together == alone


@pytest.mark.usefixtures("small_units")
def test_what_budgets_leave_open_is_drawn_by_helpers() -> None:
    """Both parts of auto are spread: exact tasks, and batches of samples."""
    thresholds = Thresholds(step_budgets=(200, 2_400))
    problem = problem_of(wide_ensemble(), "0.4", distance=3)
    settings = Settings(epsilon=0.03, jobs=1, may_visit=False, thresholds=thresholds)
    alone, together, units = spread(problem, "auto", 0, settings)
    assert together == alone
    assert {type(unit) for unit in units} == {spreading.SolvingUnit, spreading.DrawingUnit}


@pytest.mark.usefixtures("small_units")
@pytest.mark.parametrize("method", ["exact", "auto", "sample"])
def test_flips_are_spread(method: str) -> None:
    """Their exact part travels as the question, which is encoded again."""
    ensemble = replace(wide_ensemble(), trees=wide_ensemble().trees[:8])
    problem = problem_of(ensemble, flip=True)
    settings = Settings(epsilon=0.05, jobs=1, may_visit=False)
    alone, together, units = spread(problem, method, 0, settings)
    assert together == alone
    assert units


def test_measures_are_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A share under weights is drawn by helpers as by this process."""
    monkeypatch.setattr(exact_shares, "MAX_TERMS", 0)
    ensemble = wide_ensemble()
    problem = problem_of(ensemble, flip=True, distance=2)
    weighing = Weighing.of(ensemble, "volume", None, dict.fromkeys(ensemble.feature_names, (0, 8)))
    helpers = ScrambledHelpers(0, 0)
    settings = Settings(epsilon=0.02, jobs=1, may_visit=False)
    alone = measure(problem, weighing, settings)
    assert measure(problem, weighing, replace(settings, engine=SpreadEngine(helpers))) == alone
    assert helpers.units


def test_a_cover_is_the_same_elsewhere() -> None:
    """It is made again by the same steps, and refused where it is another one."""
    problem = problem_of(wide_ensemble(), "0.4")
    rest = rest_to_sample(problem, Settings(jobs=1))
    cover = CoverDraws(problem.space, rest.cover_tasks())
    for target in (300, 500):
        cover.refine(target, math.inf, 1, lambda: None)
    again = pickle.loads(pickle.dumps(cover))
    drawn, repeated = (c.draw(7, 1, 3, 2, 1) for c in (cover, again))
    assert drawn[0].tolist() == repeated[0].tolist()
    assert drawn[1].tolist() == repeated[1].tolist()
    other = pickle.loads(pickle.dumps(cover))
    other._refinement.work += 1
    with pytest.raises(ClusterError, match="its build of xcount differs"):
        other.draw(7, 1, 3, 2, 1)


@pytest.mark.usefixtures("small_units")
def test_a_cover_is_drawn_from_by_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where drawing is the larger part, helpers make the cover, too."""
    # Enumeration would leave nothing to draw from.
    split = partial(CoverDraws, tuning=Tuning(max_paths=0))
    monkeypatch.setattr(sampling_count, "CoverDraws", split)
    monkeypatch.setattr(costs, "SECONDS_PER_COVER_WORK", 1e-12)
    monkeypatch.setattr(sampling_count, "DEFAULT_MEMORY_BYTES", 1)
    problem = problem_of(wide_ensemble(), "1")
    thresholds = Thresholds(plain_seconds=0.0, first_cover_work=2_000)
    settings = Settings(epsilon=0.03, jobs=1, thresholds=thresholds)
    alone, together, units = spread(problem, "sample", 0, settings)
    assert together == alone
    assert "cover_states" in alone.details
    assert units


def test_an_interrupt_keeps_what_is_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    """What helpers solved before counts; the rest is bounded."""
    monkeypatch.setattr(spreading, "UNIT_SECONDS", 1e-3)
    monkeypatch.setattr(costs, "POLL_SECONDS", 0.0)

    def interrupt(progress: object) -> None:
        if len(helpers.units) > 5:
            raise KeyboardInterrupt

    helpers = ScrambledHelpers(0, 0)
    settings = Settings(jobs=1, engine=SpreadEngine(helpers), on_progress=interrupt)
    tally = exact.count_exactly(problem_of(wide_ensemble(), "0.4"), settings)
    assert tally.stop_reason is StopReason.INTERRUPTED
    true = exact.count_exactly(problem_of(wide_ensemble(), "0.4"), Settings(jobs=1))
    assert tally.low <= known(true.count) <= tally.high
    assert tally.high < problem_of(wide_ensemble(), "0.4").n_regions


def long_grid() -> Ensemble:
    """Return an ensemble with 16 million regions, which is many blocks."""
    rng = np.random.default_rng(6)
    features = tuple(Feature(f"f{i}") for i in range(8))
    trees = [random_tree(rng, features, 3, rng.normal(size=64), np.arange(7.0)) for _ in range(60)]
    stumps = [tree_of((f, float(t), 0.0, 1e-3)) for f in range(8) for t in range(7)]
    return Ensemble(features, (*trees, *stumps))


SHORT_SLICES = Thresholds(visit_slice_seconds=1e-3)
"""Visits stop for helpers after a millisecond."""


@pytest.mark.parametrize("patience", [0, 3])
def test_blocks_are_visited_by_helpers(patience: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A visit that takes long is spread; counts of all masks are the same."""
    monkeypatch.setattr(spreading, "UNIT_SECONDS", 1e-3)
    problem = problem_of(long_grid(), flip=True, cutoff="0.1")
    settings = Settings(jobs=1, want_profile=True, thresholds=SHORT_SLICES)
    alone, together, units = spread(problem, "brute", patience, settings)
    assert together == alone
    assert 0 < alone.low == alone.high < problem.n_regions == 8**8
    assert {type(unit) for unit in units} == {VisitingUnit}


def test_a_weighed_visit_is_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights are added up as integers: who adds them leaves no trace in the last digit."""
    monkeypatch.setattr(spreading, "UNIT_SECONDS", 1e-3)
    problem = problem_of(long_grid(), flip=True, cutoff="0.1")
    bounds = {f"f{i}": (-1.0, 6.3 + i) for i in range(8)}
    weighing = Weighing.of(problem.ensemble, "volume", bounds=bounds)
    alone = measure(problem, weighing, Settings(jobs=2, thresholds=SHORT_SLICES))["volume"]
    helpers = ScrambledHelpers(1, 1)
    settings = Settings(jobs=1, engine=SpreadEngine(helpers), thresholds=SHORT_SLICES)
    assert measure(problem, weighing, settings)["volume"] == alone
    assert VisitingUnit in {type(unit) for unit in helpers.units}
    assert alone.interval.is_settled


def test_an_interrupted_visit_keeps_what_helpers_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was taken is counted, the rest is open."""
    monkeypatch.setattr(spreading, "UNIT_SECONDS", 1e-3)
    problem = problem_of(long_grid(), flip=True, cutoff="0.1")
    helpers = ScrambledHelpers(1, 0)

    def interrupt(progress: Progress) -> None:
        if len(helpers.units) > 3:
            raise KeyboardInterrupt

    engine = SpreadEngine(helpers)
    settings = Settings(jobs=1, engine=engine, on_progress=interrupt, thresholds=SHORT_SLICES)
    tally = counter("brute")(problem, settings)
    assert tally.stop_reason is StopReason.INTERRUPTED
    full = counter("brute")(problem, Settings())
    assert 0 < tally.low <= full.low <= full.high <= tally.high < problem.n_regions


def test_no_span_of_batches_hides_a_look() -> None:
    """Every look's number of batches is the end of a span, and spans follow each other."""
    first, end = 42, next_look(40)
    looks, spans = {end}, spans_between(first, end, next_look, 5)
    for _ in range(60):
        looks.add(end := next_look(end))
    at = first
    ends = set()
    for start, n in (next(spans) for _ in range(2_000)):
        assert start == at
        assert 1 <= n <= 5
        ends.add(at := start + n)
    assert {look for look in looks if look <= at} <= ends


def test_a_crew_is_kept_busy() -> None:
    """More units are under way than there are workers."""
    assert max_under_way(ScrambledCrew(ScrambledHelpers(0, 0), None)) == 8
