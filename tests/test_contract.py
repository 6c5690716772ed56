"""What every counter promises, asked of every one that this machine can run."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace
from typing import Any

import pytest
from oracle import known
from strategies import random_classifier, random_ensemble

import xcount
from xcount.answers.result import CountResult
from xcount.counters import GAPS_ONLY, METHODS, counter
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason
from xcount.errors import QueryError, XCountError
from xcount.model.ensemble import Ensemble
from xcount.model.examples import ensemble_of, figure_1
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query

PROGRAMS = ("cnf-ganak", "cnf-approxmc", "subproblems-cnf")
"""Methods that start other programs, and are tested where those are."""

HERE = tuple(method for method in METHODS if method not in PROGRAMS)
CERTAIN = tuple(m for m in HERE if m not in ("sample", "xcount", "xcount-sum-first"))
"""Methods whose answer is exact on small ensembles."""


CHANGES: dict[str, dict[str, Any]] = {
    "gap": {"gap": "0.5"},
    "gap of a class": {"gap": "0.5", "output": 0},
    "flip": {"flip": True},
    "flip at a cut-off": {"flip": True, "cutoff": "-0.25"},
    "flip of classes": {"flip": True},
    "gap up": {"gap": "0.5", "direction": "up"},
    "flip down": {"flip": True, "direction": "down"},
    "sure flip": {"flip": True, "from_probability": "0.6"},
    "sure flip of classes": {"flip": True, "from_probability": "0.6"},
    "probability gap": {"probability_gap": "0.1"},
    "probability gap of a class": {"probability_gap": "0.1", "output": 0, "direction": "down"},
}
"""One question of each kind of change."""


def model_for(change: str, seed: int) -> Ensemble:
    """Return a small random model that the change can be asked of."""
    if change == "gap":
        return random_ensemble(seed, categorical=False, scale="decimals")
    several = "class" in change
    numbers = (seed * 100 + i for i in range(100))
    models = (random_classifier(number) for number in numbers)
    model = next(model for model in models if (model.n_outputs > 1) == several)
    return replace(model, probability="softmax" if several else "sigmoid")


def asked(ensemble: Ensemble, method: str, **question: Any) -> CountResult:
    """Count, or skip a question that the method says it does not answer."""
    try:
        return xcount.count(ensemble, method=method, jobs=1, **question)
    except XCountError as error:
        pytest.skip(f"{method}: {error}")


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("method", CERTAIN)
def test_small_counts_are_those_of_enumeration(method: str, change: str) -> None:
    """On twenty random ensembles, at every distance, exact and rounded."""
    for seed in range(20):
        ensemble = model_for(change, 90_000 + seed)
        for distance, precision in itertools.product((1, 2, "any"), ("exact", 1)):
            question: dict[str, Any] = {"sensitive": 0, "distance": distance}
            question["precision"] = precision
            expected = xcount.count(ensemble, method="brute", jobs=1, **question, **CHANGES[change])
            result = asked(ensemble, method, **question, **CHANGES[change])
            assert (result.low, result.count, result.high) == (expected.count,) * 3
            assert result.n_regions == expected.n_regions
            assert result.exact


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("method", HERE)
def test_a_result_is_in_order(method: str, change: str) -> None:
    """0 <= low <= count <= high <= regions, a confidence, and why it stopped."""
    for seed in range(10):
        ensemble = model_for(change, 91_000 + seed)
        result = asked(ensemble, method, sensitive=0, **CHANGES[change])
        assert 0 <= result.low <= known(result.count) <= result.high <= result.n_regions
        assert 0.9 <= result.confidence <= 1
        assert result.stop_reason is StopReason.COMPLETE
        assert result.exact or result.high > 0  # zero is only ever proved
        assert CountResult.from_dict(result.to_dict()) == result


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("method", HERE)
def test_a_change_is_counted_or_refused(method: str, change: str) -> None:
    """The paper's methods know gaps without a direction; all others know every change."""
    ensemble = model_for(change, 94_000)
    if method in GAPS_ONLY and ({*CHANGES[change]} - {"gap", "output"}):
        with pytest.raises(QueryError, match="counts gaps alone"):
            xcount.count(ensemble, sensitive=0, method=method, **CHANGES[change])
    elif method not in GAPS_ONLY:
        xcount.count(ensemble, sensitive=0, method=method, **CHANGES[change])


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("method", ["exact", "auto", "brute", "sample"])
def test_an_interrupt_leaves_valid_bounds(method: str, change: str) -> None:
    """Whoever listens may end the count at any moment."""

    def interrupt(progress: object) -> None:
        raise KeyboardInterrupt

    for seed in range(5):
        ensemble = model_for(change, 95_000 + seed)
        question: dict[str, Any] = {"sensitive": 0, "distance": "any", **CHANGES[change]}
        expected = xcount.count(ensemble, method="brute", **question)
        result = xcount.count(ensemble, method=method, on_progress=interrupt, **question)
        assert result.low <= known(expected.count) <= result.high


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("method", ["exact", "auto", "brute", "sample"])
def test_no_time_leaves_valid_bounds(method: str, change: str) -> None:
    """A limit that is over before the count begins is a result."""
    ensemble = model_for(change, 96_000)
    question: dict[str, Any] = {"sensitive": 0, "distance": "any", **CHANGES[change]}
    expected = xcount.count(ensemble, method="brute", **question)
    result = xcount.count(ensemble, method=method, timeout_seconds=0, **question)
    assert result.low <= known(expected.count) <= result.high


@pytest.mark.parametrize("change", CHANGES)
def test_a_problem_travels(change: str) -> None:
    """Pickled and unpickled, it has the same integers and the same answer."""
    ensemble = model_for(change, 97_000)
    query = Query.of(ensemble, 0, **CHANGES[change])
    problem = Problem(ensemble, Grid.of(ensemble), query)
    space = pickle.loads(pickle.dumps(problem.space))
    assert space.threshold == problem.space.threshold
    assert list(space.trees.values) == list(problem.space.trees.values)
    travelled = pickle.loads(pickle.dumps(problem))
    tallies = [counter("exact")(p, Settings(jobs=1)) for p in (problem, travelled)]
    assert tallies[0] == tallies[1]


@pytest.mark.parametrize("method", HERE)
def test_a_difference_of_just_the_gap_does_not_count(method: str) -> None:
    """The comparison is strict for everyone."""
    assert asked(figure_1(), method, sensitive="f0", gap=85).count == 0
    assert asked(figure_1(), method, sensitive="f0", gap="84.9").count == 2


@pytest.mark.parametrize("method", HERE)
def test_nothing_moves_a_constant(method: str) -> None:
    """A feature without a guard has nowhere to go."""
    result = asked(ensemble_of((0, 0.0, 5.0, 0.0), n_features=2), method, sensitive=1, gap=0)
    assert (result.count, result.n_regions) == (0, 2)


@pytest.mark.parametrize("method", ["exact", "auto", "brute", "sample"])
def test_where_nothing_can_flip_zero_is_proved(method: str) -> None:
    """Above the cut-off everywhere, by bounds; and where bounds do not tell, by visiting."""
    above = ensemble_of((0, 0.0, 5.0, 1.0), n_features=2)
    result = xcount.count(above, sensitive=0, flip=True, method=method)
    assert (result.count, result.high, result.exact) == (0, 0, True)
    # f0 moves the margin by 2, but only where f1 holds it far from the cut-off.
    guarded = ensemble_of((1, 0.0, (0, 0.0, 5.0, 7.0), -3.0), n_features=2)
    result = xcount.count(guarded, sensitive=0, flip=True, method=method)
    assert (result.count, result.high, result.exact) == (0, 0, True)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("method", HERE)
def test_the_same_seed_gives_the_same_answer(method: str, change: str) -> None:
    """Run twice, told the same."""
    ensemble = model_for(change, 92_000)
    results = [asked(ensemble, method, sensitive=0, seed=7, **CHANGES[change]) for _ in range(2)]
    assert len({(r.low, r.count, r.high) for r in results}) == 1


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("method", ["exact", "auto"])
def test_profiles_are_the_same(method: str, change: str) -> None:
    """Mask by mask, and they add up to the count."""
    for seed in range(20):
        question: dict[str, Any] = {"sensitive": 0, "profile": True, **CHANGES[change]}
        ensemble = model_for(change, 93_000 + seed)
        expected = xcount.count(ensemble, method="brute", **question)
        result = xcount.count(ensemble, method=method, **question)
        assert result.profile is not None
        assert expected.profile is not None
        assert result.profile.masks == expected.profile.masks
        assert sum(row.low for row in result.profile.masks) == result.count
