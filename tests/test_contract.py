"""What every counter promises, asked of every one that this machine can run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from strategies import random_ensemble

import xcount
from xcount.answers.result import CountResult
from xcount.counters import METHODS
from xcount.counters.tally import StopReason
from xcount.errors import XCountError
from xcount.model.ensemble import Ensemble
from xcount.model.examples import ensemble_of, figure_1

PROGRAMS = ("cnf-ganak", "cnf-approxmc", "subproblems-cnf")
"""Methods that start other programs, and are tested where those are."""

HERE = tuple(method for method in METHODS if method not in PROGRAMS)
CERTAIN = tuple(m for m in HERE if m not in ("sample", "xcount", "xcount-sum-first"))
"""Methods whose answer is exact on small ensembles."""


def asked(ensemble: Ensemble, method: str, **question: Any) -> CountResult:
    """Count, or skip a question that the method says it does not answer."""
    try:
        return xcount.count(ensemble, method=method, jobs=1, **question)
    except XCountError as error:
        pytest.skip(f"{method}: {error}")


def questions() -> Iterator[dict[str, Any]]:
    """Yield a few questions, from near to far."""
    for distance in (1, 2, "any"):
        for precision in ("exact", 1):
            yield {"sensitive": 0, "gap": "0.5", "distance": distance, "precision": precision}


@pytest.mark.parametrize("method", CERTAIN)
def test_small_counts_are_those_of_enumeration(method: str) -> None:
    """On twenty random ensembles, at every distance, exact and rounded."""
    for seed in range(20):
        ensemble = random_ensemble(90_000 + seed, categorical=False, scale="decimals")
        for question in questions():
            expected = xcount.count(ensemble, method="brute", jobs=1, **question)
            result = asked(ensemble, method, **question)
            assert (result.low, result.count, result.high) == (expected.count,) * 3
            assert result.n_regions == expected.n_regions
            assert result.exact


@pytest.mark.parametrize("method", HERE)
def test_a_result_is_in_order(method: str) -> None:
    """0 <= low <= count <= high <= regions, a confidence, and why it stopped."""
    for seed in range(10):
        ensemble = random_ensemble(91_000 + seed, categorical=False, scale="ties")
        result = asked(ensemble, method, sensitive=0, gap="0.5")
        assert 0 <= result.low <= result.count <= result.high <= result.n_regions
        assert 0.9 <= result.confidence <= 1
        assert result.stop_reason is StopReason.COMPLETE
        assert CountResult.from_dict(result.to_dict()) == result


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


@pytest.mark.parametrize("method", HERE)
def test_the_same_seed_gives_the_same_answer(method: str) -> None:
    """Run twice, told the same."""
    ensemble = random_ensemble(92_000, categorical=False, scale="decimals")
    results = [asked(ensemble, method, sensitive=0, gap="0.3", seed=7) for _ in range(2)]
    assert len({(r.low, r.count, r.high) for r in results}) == 1


@pytest.mark.parametrize("method", ["exact", "auto"])
def test_profiles_are_the_same(method: str) -> None:
    """Mask by mask, and they add up to the count."""
    for seed in range(20):
        ensemble = random_ensemble(93_000 + seed)
        expected = xcount.count(ensemble, sensitive=0, gap="0.5", profile=True, method="brute")
        result = xcount.count(ensemble, sensitive=0, gap="0.5", profile=True, method=method)
        assert result.profile is not None
        assert expected.profile is not None
        assert result.profile.masks == expected.profile.masks
        assert sum(row.low for row in result.profile.masks) == result.count
