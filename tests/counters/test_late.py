"""Limits of time that come early: some bounds are there all the same, and a note says why few."""

from __future__ import annotations

import time
from typing import Any

import pytest
from strategies import random_ensemble

import xcount
from xcount.counters import settings
from xcount.counters.auto import count_automatically
from xcount.counters.decisions import count_hits_in_probe
from xcount.counters.exact import count_exactly
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason
from xcount.errors import QueryWarning
from xcount.model.examples import adult_model_path
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query


def _adult(**asked: Any) -> Problem:
    model = xcount.load(adult_model_path())
    return Problem(model, Grid.of(model), Query.of(model, "age", distance="any", **asked))


def _over() -> Settings:
    """Return settings whose time was over before anything began."""
    return Settings(timeout_seconds=1.0, started=time.monotonic() - 2.0, jobs=1, delta=1e-4)


@pytest.mark.parametrize("asked", [{"gap": "0.5"}, {"probability_gap": "0.1"}, {"flip": True}])
def test_auto_has_samples_to_show_when_the_time_is_over_at_once(asked: dict[str, Any]) -> None:
    """A few samples bound the share, where the model took all of the time to read."""
    problem = _adult(**asked)
    found = count_automatically(problem, _over())
    assert found.stop_reason in (StopReason.TIMEOUT, StopReason.COMPLETE)
    assert found.high - found.low < problem.n_regions / 2
    truth = count_automatically(problem, Settings(epsilon=0.04, delta=1e-6))
    assert found.low <= truth.high
    assert truth.low <= found.high


@pytest.mark.parametrize("asked", [{"gap": "0.5"}, {"probability_gap": "0.1"}, {"flip": True}])
def test_exact_knows_that_there_is_something(asked: dict[str, Any]) -> None:
    """Regions that were seen to be sensitive are a bound that holds for certain."""
    problem = _adult(**asked)
    found = count_exactly(problem, _over())
    assert found.confidence == 1.0
    assert 0 < found.low < found.high <= problem.n_regions
    assert found.count is None


@pytest.mark.parametrize("seed", range(20))
def test_what_is_seen_is_there(seed: int) -> None:
    """No region is counted twice: of a small grid, never more are seen than there are."""
    ensemble = random_ensemble(seed)
    problem = Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, [0], "0.3", distance=2))
    truth = count_exactly(problem, Settings())
    assert truth.count == truth.low == truth.high
    assert count_hits_in_probe(problem, Settings(seed=seed)) <= truth.low


def test_a_limit_that_reading_has_used_up_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever gives too little time is told what took it."""
    monkeypatch.setattr(settings, "LEAST_READING_SECONDS", 0.0)
    with pytest.warns(QueryWarning, match="reading the model took .* all of the time limit"):
        xcount.count(adult_model_path(), sensitive="age", flip=True, timeout=0.001)
