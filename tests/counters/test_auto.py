"""`auto`: exact where that is cheap, an estimate for the rest, and their sum is right."""

from __future__ import annotations

import numpy as np
import pytest
from oracle import known
from strategies import random_ensemble, random_tree

import xcount
from xcount.counters import auto
from xcount.counters.tally import StopReason
from xcount.model.ensemble import Ensemble, Feature


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


def wide_ensemble() -> Ensemble:
    """Return an ensemble that tiny budgets of steps do not solve: 40 trees on 6 features."""
    rng = np.random.default_rng(5)
    features = tuple(Feature(f"f{i}") for i in range(6))
    leaves = rng.normal(size=64) * 0.2
    trees = tuple(random_tree(rng, features, 4, leaves, np.arange(8.0)) for _ in range(40))
    return Ensemble(features, trees)


@pytest.fixture
def tiny_budgets(monkeypatch: pytest.MonkeyPatch, no_corner_sums: None) -> None:
    """Let the exact rounds give up early, so that sampling gets its part."""
    monkeypatch.setattr(auto, "BUDGETS", (200, 2_400))


@pytest.mark.usefixtures("tiny_budgets")
@pytest.mark.parametrize("distance", [1, 3, "any"])
@pytest.mark.parametrize("gap", ["0.4", "1.5"])
def test_exact_part_and_estimate_add_up(distance: int | str, gap: str) -> None:
    """With part of the masks solved and part estimated, the total is within epsilon."""
    exact = xcount.count(
        wide_ensemble(), sensitive="f0", gap=gap, distance=distance, method="brute"
    )
    misses = 0
    for seed in range(10):
        result = xcount.count(
            wide_ensemble(), sensitive="f0", gap=gap, distance=distance, seed=seed, delta=0.01
        )
        assert result.stop_reason is StopReason.COMPLETE
        misses += not result.low <= known(exact.count) <= result.high
        misses += abs(known(result.count) - known(exact.count)) > 0.1 * known(exact.count)
    assert misses <= 2  # of 20 chances with probability 0.01 each, more has probability 0.001


@pytest.mark.usefixtures("tiny_budgets")
def test_the_result_says_which_part_is_exact() -> None:
    """Details name the masks that were solved and what they count."""
    result = xcount.count(wide_ensemble(), sensitive="f0", gap="0.4", distance=3)
    details = result.details
    assert 0 <= details["masks_solved"] < details["n_masks"]
    assert int(details["count_solved"]) <= result.low
    assert result.confidence == pytest.approx(0.9)


@pytest.mark.usefixtures("tiny_budgets")
def test_same_seed_same_answer_on_any_number_of_threads() -> None:
    """Neither the rounds nor the samples depend on the number of threads."""
    results = [
        xcount.count(wide_ensemble(), sensitive="f0", gap="0.4", seed=3, jobs=jobs)
        for jobs in (1, 2, 3)
    ]
    assert len({(r.count, r.low, r.high) for r in results}) == 1


@pytest.mark.usefixtures("tiny_budgets")
def test_a_decided_share_needs_no_accuracy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict comes as soon as the interval is on one side of the share."""
    monkeypatch.setattr(auto, "FREE_BUDGET", 100)
    result = xcount.count(
        wide_ensemble(), sensitive="f0", gap="0.4", epsilon=1e-3, max_share=0.01, timeout_seconds=60
    )
    assert result.stop_reason is StopReason.DECIDED
    assert result.verdict == "FAIL"


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
