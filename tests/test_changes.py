"""Every kind of change, of every kind of model: all counters against the definition."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import oracle
import pytest
from strategies import random_classifier, random_ensemble

import xcount
from xcount.answers.result import CountResult
from xcount.counters.decisions import RegionDecider
from xcount.model.ensemble import Ensemble
from xcount.problem.problem import Problem
from xcount.question.grid import Grid, Missing
from xcount.question.query import Query

# Cut-offs between 0 and 1 are margins here, as they should be.
pytestmark = pytest.mark.filterwarnings(
    "ignore:the cut-off .* is a margin:xcount.errors.QueryWarning"
)

DIRECTIONS = ("any", "up", "down")
GAPS = ("0", "0.1", "0.3", "0.5", "1")
METHODS = ("brute", "exact", "auto")


def random_words(seed: int, ensemble: Ensemble) -> dict[str, Any]:
    """Return where and how far a random question looks."""
    rng = np.random.default_rng([seed, 11])
    size = int(rng.integers(1, ensemble.n_features + 1))
    return {
        "sensitive": sorted(rng.choice(ensemble.n_features, size, replace=False).tolist()),
        "distance": [1, 2, None][int(rng.integers(3))],
        "precision": [None, None, None, 0, 1][int(rng.integers(5))],
    }


def gap_question(seed: int) -> tuple[Ensemble, dict[str, Any], dict[str, Any]]:
    """Return a model, where to look, and a gap with a direction; the gap is often a tie."""
    ensemble = random_classifier(seed)
    rng = np.random.default_rng([seed, 12])
    change = {
        "gap": Fraction(str(rng.choice(GAPS))),
        "output": int(rng.integers(ensemble.n_outputs)),
        "direction": str(rng.choice(DIRECTIONS)),
    }
    return ensemble, random_words(seed, ensemble), change


def flip_question(seed: int) -> tuple[Ensemble, dict[str, Any], dict[str, Any]]:
    """Return a model of one margin, where to look, and a flip with a direction."""
    numbers = (seed * 1000 + i for i in range(1000))
    ensemble = next(m for m in map(random_classifier, numbers) if m.n_outputs == 1)
    rng = np.random.default_rng([seed, 13])
    cutoff = Fraction(int(rng.integers(-3, 4)), int(rng.choice([1, 2, 10])))
    change = {"flip": True, "cutoff": cutoff, "direction": str(rng.choice(DIRECTIONS))}
    return ensemble, random_words(seed, ensemble), change


def with_probability(seed: int, ensemble: Ensemble) -> Ensemble:
    """Return the model with one of the ways to make probabilities of its margins."""
    rng = np.random.default_rng([seed, 14])
    kinds = ("sigmoid", "softmax", "softmax") if ensemble.n_outputs > 1 else ("sigmoid",)
    slope = float(rng.choice([1.0, 2.0, 0.3]))
    kind = str(rng.choice(kinds))
    if kind == "softmax":  # exp(-1e30) and exp(5e-324) are beyond the oracle
        leaves = (np.clip(t.value, -30, 30).round(20).astype(float) for t in ensemble.trees)
        pairs = zip(ensemble.trees, leaves, strict=True)
        trees = tuple(replace(tree, value=value) for tree, value in pairs)
        ensemble = replace(ensemble, trees=trees)
    return replace(ensemble, probability=kind, slope=slope)  # type: ignore[arg-type]


def probability_question(seed: int) -> tuple[Ensemble, dict[str, Any], dict[str, Any]]:
    """Return a gap in probability; often it is just the difference of two regions, rounded."""
    ensemble = with_probability(seed, random_classifier(seed))
    rng = np.random.default_rng([seed, 15])
    output, words = int(rng.integers(ensemble.n_outputs)), random_words(seed, ensemble)
    gap = Fraction(str(rng.choice(["0", "0.01", "0.1", "0.3", "0.7", "1"])))
    if rng.random() < 0.6:
        points = [
            [float(rng.choice(oracle.cells(ensemble, f))) for f in range(ensemble.n_features)]
            for _ in range(2)
        ]
        a, b = (
            oracle.probability(ensemble, oracle.margins(ensemble, p, words["precision"]), output)
            for p in points
        )
        # In its 17th digit, more or less, as a float is: no float can tell on which side.
        gap = Fraction(Decimal(repr(float(abs(a - b)))))
    return (
        ensemble,
        words,
        {
            "probability_gap": gap,
            "output": output,
            "direction": str(rng.choice(DIRECTIONS)),
        },
    )


def sure_flip_question(seed: int) -> tuple[Ensemble, dict[str, Any], dict[str, Any]]:
    """Return a flip from a sure decision of a boosted model or of votes."""
    ensemble, words, change = flip_question(seed)
    rng = np.random.default_rng([seed, 16])
    kind = str(rng.choice(["sigmoid", "margin"]))
    least = Fraction(str(rng.choice(["0", "0.2", "0.5", "0.6", "0.7", "0.9", "1"])))
    ensemble = replace(ensemble, probability=kind, slope=1.0)  # type: ignore[arg-type]
    return ensemble, words, {**change, "from_probability": least}


QUESTIONS = {
    "gap": gap_question,
    "flip": flip_question,
    "probability": probability_question,
    "sure flip": sure_flip_question,
}


def check(
    ensemble: Ensemble, words: dict[str, Any], change: dict[str, Any], missing: bool, what: object
) -> None:
    """Count by all methods, and decide region by region, as the definition does."""
    expected = oracle.changing_regions(ensemble, **words, missing=missing, **change)
    cells: Missing = "cell" if missing else "none"
    for method in METHODS:
        found = xcount.count(ensemble, **words, **change, missing=cells, method=method, jobs=1)
        known = (found.low, found.count, found.high)
        assert (what, method, known) == (what, method, (sum(expected.values()),) * 3)
    assert CountResult.from_dict(found.to_dict()) == found
    problem = Problem(
        ensemble, Grid.of(ensemble, missing=cells), Query.of(ensemble, **words, **change)
    )
    decided = RegionDecider(problem).decide_regions(np.array(list(expected)))
    assert (what, decided.tolist()) == (what, list(expected.values()))


@pytest.mark.parametrize("block", range(4))
@pytest.mark.parametrize("kind", QUESTIONS)
def test_counters_agree_with_the_definition(kind: str, block: int) -> None:
    """Ties, bases, averages, categories, missing cells, huge and tiny leaves, any distance."""
    for seed in range(block * 50, (block + 1) * 50):
        ensemble, words, change = QUESTIONS[kind](seed)
        check(ensemble, words, change, seed % 2 == 1, (kind, seed))


def shares(ensemble: Ensemble, words: dict[str, Any], **change: Any) -> dict[str, int]:
    """Return the exact count in each direction."""
    found: dict[str, int] = {}
    for direction in DIRECTIONS:
        result = xcount.count(
            ensemble, **words, **change, direction=direction, method="exact", jobs=1
        )
        assert result.count is not None
        found[direction] = result.count
    return found


def negated(ensemble: Ensemble) -> Ensemble:
    """Return the model whose margins have the other sign."""
    trees = tuple(replace(tree, value=-tree.value) for tree in ensemble.trees)
    return replace(ensemble, trees=trees, base=tuple(-base for base in ensemble.base))


@pytest.mark.parametrize("seed", range(60))
def test_up_of_a_model_is_down_of_its_negative(seed: int) -> None:
    """And a region that changes in any direction changes up or down, or both."""
    ensemble, words, change = gap_question(5000 + seed)
    words.update(precision=None)
    asked = {"gap": change["gap"], "output": change["output"]}
    found, mirrored = shares(ensemble, words, **asked), shares(negated(ensemble), words, **asked)
    assert (found["any"], found["up"], found["down"]) == (
        mirrored["any"],
        mirrored["down"],
        mirrored["up"],
    )
    assert max(found["up"], found["down"]) <= found["any"] <= found["up"] + found["down"]


@pytest.mark.parametrize("seed", range(60))
def test_flips_up_and_down_are_all_flips(seed: int) -> None:
    """A region decides one way or the other, so it flips in one direction alone."""
    ensemble, words, change = flip_question(6000 + seed)
    found = shares(ensemble, words, flip=True, cutoff=change["cutoff"])
    assert found["up"] + found["down"] == found["any"]


@pytest.mark.parametrize("change", [{"gap": "0.3"}, {"flip": True, "cutoff": 0}])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_estimates_and_measures_know_the_direction(change: dict[str, Any], direction: str) -> None:
    """Samples of rows, of regions and under weights are those of the question asked."""
    held = total = 0
    for seed in range(30):
        ensemble = random_ensemble(7000 + seed, max_features=4, categorical=False, scale="decimals")
        question = {"sensitive": 0, "distance": "any", "direction": direction, **change}
        exact = xcount.count(ensemble, method="brute", **question)
        assert exact.share is not None
        assert exact.count is not None
        if exact.share < 0.02:
            continue
        found = xcount.count(ensemble, method="sample", epsilon=0.2, seed=seed, jobs=1, **question)
        held += found.low <= exact.count <= found.high
        total += 1
    assert total >= 8
    assert held >= total * 0.75
