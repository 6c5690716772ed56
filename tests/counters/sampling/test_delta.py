"""No answer spends more than its delta: what its tools may be wrong with adds up to it at most.

That the tools keep what they are given is tested where they are (``test_certificates.py``,
``test_stopping.py``). Together they notice a delta that is twice as large anywhere on the way.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from strategies import random_tree

from benchmarks.certain_part import CoinFlips
from xcount.counters import parts as counting_parts
from xcount.counters.costs import Thresholds
from xcount.counters.exact import ExactRun
from xcount.counters.parts import count_parts
from xcount.counters.sampling import estimator as estimating
from xcount.counters.sampling import pilot as planning
from xcount.counters.sampling.count import CountEstimate, Rest, estimates_of
from xcount.counters.sampling.estimator import Estimator, KnownPart
from xcount.counters.sampling.intervals import BettingSequence, GammaBernoulli
from xcount.counters.sampling.stopping import StoppedEstimate
from xcount.counters.settings import Settings
from xcount.counters.tally import Bounds, StopReason, Tally
from xcount.measures import exact_shares
from xcount.measures.shares import measure
from xcount.measures.weighting import Weighing
from xcount.model.ensemble import Ensemble, Feature
from xcount.problem.parts import parts_of
from xcount.problem.problem import Problem
from xcount.question.domain import Domain
from xcount.question.grid import Grid
from xcount.question.query import Query
from xcount.question.share import Limit

DELTA = 0.12


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float]]:
    """Return the list of tools that are made from now on, each with the delta it is given."""
    found: list[tuple[str, float]] = []

    class Sequence(BettingSequence):
        def __init__(self, values: np.ndarray, delta: float, epsilon: float) -> None:
            found.append(("sequence", delta))
            super().__init__(values, delta, epsilon)

    class Huber(GammaBernoulli):
        def __init__(self, epsilon: float, delta: float, *more: Any) -> None:
            found.append(("huber", delta))
            super().__init__(epsilon, delta, *more)

    class Stopped(StoppedEstimate):
        def __init__(self, epsilon: float, delta: float, *more: Any) -> None:
            found.append(("stopped", delta))
            super().__init__(epsilon, delta, *more)

    monkeypatch.setattr(estimating, "BettingSequence", Sequence)
    monkeypatch.setattr(planning, "GammaBernoulli", Huber)
    monkeypatch.setattr(planning, "StoppedEstimate", Stopped)
    return found


def check(spent: list[tuple[str, float]], *tools: str, delta: float = DELTA) -> None:
    """Check that just these tools were made, and that all of delta went to them, no more."""
    assert [name for name, _ in spent] == list(tools)
    assert sum(part for _, part in spent) == pytest.approx(delta, rel=1e-9)


def a_problem(**change: Any) -> Problem:
    """Return a question about a few trees; a sixth of the regions or so is sensitive."""
    rng = np.random.default_rng(11)
    features = tuple(Feature(f"f{i}") for i in range(5))
    leaves = rng.normal(size=32) * 0.3
    trees = tuple(random_tree(rng, features, 4, leaves, np.arange(8.0)) for _ in range(6))
    ensemble = Ensemble(features, trees)
    query = Query.of(ensemble, "f0", **(change or {"gap": "0.9"}), distance="any")
    return Problem(ensemble, Grid.of(ensemble), query)


# ---- one estimate ----


@pytest.mark.parametrize(
    ("certain", "p", "final"), [(0, 0.02, "huber"), (20, 0.02, "stopped"), (100, 0.02, "stopped")]
)
def test_a_rare_rest_has_two_tools(
    spent: list[tuple[str, float]], certain: int, p: float, final: str
) -> None:
    """Huber's estimate, or one stopped by a curve where a part is certain; and the sequence."""
    known_part = KnownPart(certain, 1_000, Bounds(0, 2_000), 2_000)
    estimator = Estimator(CoinFlips(p), known_part, Settings(delta=DELTA, jobs=1))
    estimator.run("sample", {})
    check(spent, final, "sequence")


def test_a_frequent_rest_has_the_sequence_alone(spent: list[tuple[str, float]]) -> None:
    """It is done first where outcomes vary little."""
    known_part = KnownPart(0, 1_000, Bounds(0, 2_000), 2_000)
    estimator = Estimator(CoinFlips(0.95), known_part, Settings(delta=DELTA, jobs=1))
    estimator.run("sample", {})
    check(spent, "sequence")


@pytest.mark.parametrize("change", [{"gap": "0.9"}, {"flip": True, "cutoff": 0.9}])
def test_an_estimate_of_a_question_spends_delta(
    spent: list[tuple[str, float]], change: dict[str, Any]
) -> None:
    """Of gaps and of flips."""
    problem = a_problem(**change)
    settings = Settings(epsilon=0.3, delta=DELTA, jobs=1)
    tally = CountEstimate(problem, settings, Rest.everything(problem)).run("sample", {})
    assert tally.confidence == 1 - DELTA
    assert sum(part for _, part in spent) == pytest.approx(DELTA)


# ---- several estimates ----


def test_estimates_of_a_shrinking_rest_share_delta() -> None:
    """However often a new one begins, their parts add up to less than delta."""
    problem = a_problem()
    series = estimates_of(ExactRun(problem, Settings()), Settings(delta=DELTA))
    deltas = []
    for _ in range(12):
        estimate = series._candidate()
        assert isinstance(estimate, CountEstimate)
        deltas.append(estimate._settings.delta)
        series._start(estimate)
    assert len(set(deltas)) == 12
    assert 0.999 * DELTA < sum(deltas) < DELTA


def in_domain(*rules: str) -> Problem:
    """Return the same question where some regions do not exist."""
    ensemble = a_problem().ensemble
    query = Query.of(ensemble, "f0", gap="0.9", distance="any")
    return Problem(ensemble, Grid.of(ensemble, domain=Domain.of(rule=rules)), query)


def test_parts_that_are_counted_one_by_one_share_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one estimate of all of them together is too much."""
    monkeypatch.setattr(counting_parts, "_estimate", lambda *_: None)
    problem = in_domain("f1 < 3 -> f2 < 5")
    deltas = []

    def count(problem: Problem, settings: Settings) -> Tally:
        deltas.append(settings.delta)
        return Tally.of_bounds(0, problem.n_regions, "sample", StopReason.STEPS)

    count_parts(problem, parts_of(problem), Settings(delta=DELTA), count, "sample")
    assert len(deltas) > 1
    assert sum(deltas) == pytest.approx(DELTA)


WEIGHED = Settings(epsilon=0.3, delta=DELTA, jobs=1, judge="volume", timeout_seconds=20)


def by_volume(problem: Problem) -> Weighing:
    """Return a uniform measure."""
    bounds = ",".join(f"f{i}=0:8" for i in range(5))
    return Weighing.of(problem.ensemble, "volume", bounds=bounds)


@pytest.mark.usefixtures("no_corner_sums")
@pytest.mark.parametrize("rules", [(), ("f1 < 3 -> f2 < 5",)])
def test_weights_spend_delta(
    spent: list[tuple[str, float]], rules: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under a measure, with pieces of a domain or without, with a limit or without.

    Nothing can be weighed exactly: there is one estimate, and it spends all of delta.
    """
    monkeypatch.setattr(exact_shares, "MAX_TERMS", -1)
    problem = in_domain(*rules)
    found = measure(problem, by_volume(problem), WEIGHED.restarted())["volume"]
    assert sum(part for _, part in spent) == pytest.approx(DELTA)
    spent.clear()
    limited = replace(WEIGHED.restarted(), max_share=Limit.of(str(found.share)), epsilon=0.5)
    assert measure(problem, by_volume(problem), limited)["volume"].confidence == 1 - DELTA
    assert sum(part for _, part in spent) == pytest.approx(DELTA)


@pytest.mark.usefixtures("no_corner_sums")
@pytest.mark.parametrize("rules", [(), ("f1 < 3 -> f2 < 5",)])
@pytest.mark.parametrize("limit", [None, "1/2"])
@pytest.mark.parametrize("begins_anew", [False, True])
def test_estimates_of_a_shrinking_weight_share_delta(
    spent: list[tuple[str, float]],
    rules: tuple[str, ...],
    limit: str | None,
    begins_anew: bool,
) -> None:
    """If exact weighing goes on, another estimate may follow: the first has 0.9 of delta."""
    thresholds = Thresholds(
        step_budgets=(20, 40, 80, 160),
        free_exact_seconds=0.0,
        alone_seconds=0.0,
        least_slice_seconds=0.0,
        slice_part=0.0,
        shrunk_part=1.0 if begins_anew else 0.0,
        cheaper_part=math.inf,
    )
    problem = in_domain(*rules)
    share = None if limit is None else Limit.of(limit)
    settings = replace(WEIGHED.restarted(), epsilon=0.02, max_share=share, thresholds=thresholds)
    found = measure(problem, by_volume(problem), settings)["volume"]
    assert found.confidence == 1 - DELTA
    total = sum(part for _, part in spent)
    assert total < DELTA
    if not begins_anew:  # else exact weighing may be done before the last one's first look
        assert total == pytest.approx(0.9 * DELTA)
