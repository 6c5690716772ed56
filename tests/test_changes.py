"""Every kind of change, of every kind of model: all counters against the definition."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import oracle
import pytest
from strategies import random_classifier, random_ensemble, with_moderate_leaves

import xcount
from xcount.answers.count import solve
from xcount.answers.result import CountResult
from xcount.counters import decisions
from xcount.counters.costs import MAX_CELL_ROW
from xcount.counters.decisions import RegionDecider
from xcount.counters.region_search import Doubt, RegionSearch
from xcount.counters.settings import Settings
from xcount.counters.tally import Method, StopReason
from xcount.errors import QueryError
from xcount.model.ensemble import Ensemble
from xcount.model.examples import adult_model_path, ensemble_of
from xcount.problem.problem import Problem
from xcount.question.grid import Grid, Missing
from xcount.question.probability import Sigmoid, Softmax, _sign
from xcount.question.query import Query

# Cut-offs between 0 and 1 are margins here, as they should be.
pytestmark = pytest.mark.filterwarnings(
    "ignore:the cut-off .* is a margin:xcount.errors.QueryWarning"
)

DIRECTIONS = ("any", "up", "down")
GAPS = ("0", "0.1", "0.3", "0.5", "1")
WAYS = ((Method.VISIT, True), *itertools.product((Method.EXACT, Method.AUTO), (True, False)))
"""Methods, and whether they may visit all regions."""


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
        "class_": int(rng.integers(ensemble.n_outputs)),
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
    if kind == "softmax":
        ensemble = with_moderate_leaves(ensemble)
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
            "class_": output,
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


def sure_class_question(seed: int) -> tuple[Ensemble, dict[str, Any], dict[str, Any]]:
    """Return a flip between several classes from one that is probable enough, often just so."""
    numbers = (seed * 1000 + i for i in range(1000))
    ensemble = next(m for m in map(random_classifier, numbers) if m.n_outputs > 1)
    ensemble = with_probability(seed, ensemble)
    rng = np.random.default_rng([seed, 17])
    if rng.random() < 0.3:
        ensemble = replace(ensemble, probability="margin")
    words = random_words(seed, ensemble)
    least = Fraction(str(rng.choice(["0", "0.2", "0.4", "0.5", "0.6", "0.9", "1"])))
    if rng.random() < 0.5 and ensemble.probability == "softmax":
        point = [float(rng.choice(oracle.cells(ensemble, f))) for f in range(ensemble.n_features)]
        sums = oracle.margins(ensemble, point, words["precision"])
        own = oracle.probability(ensemble, sums, sums.index(max(sums)))
        least = Fraction(Decimal(repr(float(own))))  # no float can tell on which side
    return ensemble, words, {"flip": True, "from_probability": least}


QUESTIONS = {
    "gap": gap_question,
    "flip": flip_question,
    "probability": probability_question,
    "sure flip": sure_flip_question,
    "sure flip of classes": sure_class_question,
}


def check(
    ensemble: Ensemble, words: dict[str, Any], change: dict[str, Any], missing: bool, what: object
) -> None:
    """Count by all methods, and decide region by region, as the definition does."""
    expected = oracle.changing_regions(ensemble, **words, missing=missing, **change)
    cells: Missing = "cell" if missing else "none"
    problem = Problem(
        ensemble, Grid.of(ensemble, missing=cells), Query.of(ensemble, **words, **change)
    )
    truth = sum(expected.values())
    for method, may_visit in WAYS:
        # Samples of a tiny share would go on for minutes: what they know by then must hold, too.
        seconds = None if may_visit else 2.0
        settings = Settings(jobs=1, delta=1e-6, may_visit=may_visit, timeout_seconds=seconds)
        found = solve(problem, settings, method)
        assert (what, found.low <= truth <= found.high) == (what, True)
        if may_visit:
            assert (what, method, found.count, found.exact) == (what, method, truth, True)
    assert CountResult.from_dict(found.to_dict()) == found
    for most in (MAX_CELL_ROW, 0):  # by rows of all masks, and by searches near by
        with mock.patch.object(decisions, "MAX_CELL_ROW", most):
            decided = RegionDecider(problem).decide_regions(np.array(list(expected)))
        assert (what, most, decided.tolist()) == (what, most, list(expected.values()))
    question = problem.form.corner_question
    if Doubt.of(question).always_ends:
        search = RegionSearch(question)
        searched = search.decide(np.array(list(expected), dtype=np.int32))
        assert (what, searched.tolist()) == (what, list(expected.values()))


@pytest.mark.parametrize("block", range(4))
@pytest.mark.parametrize("kind", QUESTIONS)
def test_counters_agree_with_the_definition(kind: str, block: int) -> None:
    """Ties, bases, averages, categories, missing cells, huge and tiny leaves, any distance."""
    for seed in range(block * 20, (block + 1) * 20):
        ensemble, words, change = QUESTIONS[kind](seed)
        check(ensemble, words, change, seed % 2 == 1, (kind, seed))


@pytest.mark.parametrize("kind", ["probability", "sure flip of classes"])
@pytest.mark.parametrize("common", [2.0**20, 2.0**45, -(2.0**100), 1e299])
def test_a_common_part_of_all_margins_does_not_matter(kind: str, common: float) -> None:
    """A softmax depends on differences alone, however large the margins are."""
    n_asked = 0
    for seed in range(40):
        ensemble, words, change = QUESTIONS[kind](seed)
        if ensemble.probability != "softmax":
            continue
        base = tuple(own + common for own in ensemble.base)
        check(replace(ensemble, base=base), words, change, seed % 2 == 1, (kind, common, seed))
        n_asked += 1
    assert n_asked >= 4


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


@pytest.mark.parametrize("seed", range(30))
def test_up_of_a_model_is_down_of_its_negative(seed: int) -> None:
    """And a region that changes in any direction changes up or down, or both."""
    ensemble, words, change = gap_question(5000 + seed)
    words.update(precision=None)
    asked = {"gap": change["gap"], "class_": change["class_"]}
    found, mirrored = shares(ensemble, words, **asked), shares(negated(ensemble), words, **asked)
    assert (found["any"], found["up"], found["down"]) == (
        mirrored["any"],
        mirrored["down"],
        mirrored["up"],
    )
    assert max(found["up"], found["down"]) <= found["any"] <= found["up"] + found["down"]


@pytest.mark.parametrize("seed", range(30))
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


def test_a_gap_in_votes_is_a_gap() -> None:
    """A forest's mean vote is its probability: one question in other words."""
    for seed in range(20):
        ensemble = replace(random_classifier(8000 + seed), probability="margin")
        for direction in DIRECTIONS:
            question: dict[str, Any] = {"sensitive": 0, "class_": 0, "direction": direction}
            by_margin = xcount.count(ensemble, gap="0.3", method="exact", **question)
            by_votes = xcount.count(ensemble, probability_gap="0.3", method="exact", **question)
            assert by_margin.count == by_votes.count


@pytest.mark.parametrize("seed", range(40))
def test_bounds_of_shares_decide_like_the_sign_of_all_products(seed: int) -> None:
    """Whether a softmax rises by more than a gap: far from it, close to it, and just by it."""
    rng = random.Random(seed)
    before, after = ([Fraction(rng.randint(-400, 400), 64) for _ in range(5)] for _ in range(2))
    link = Softmax()
    rise = Fraction(link.value(after, 1)) - Fraction(link.value(before, 1))
    for gap in (rise - Fraction(1, 10**9), rise + Fraction(1, 10**9), Fraction(0), Fraction(1, 2)):
        terms: defaultdict[Fraction, Fraction] = defaultdict(Fraction)
        for a in before:
            terms[after[1] + a] += 1
            for b in after:
                terms[a + b] -= gap
        for b in after:
            terms[before[1] + b] -= 1
        assert link.rises(before, after, 1, gap) == (_sign(terms) > 0)
    assert not link.rises(before, before, 1, Fraction(0))


def test_near_ties_beyond_every_float_are_decided() -> None:
    """exp(-1e30) is no float, and yet 1 - exp(-1e30) - 1/2 is below 1/2."""
    half, far = Fraction(1, 2), Fraction(10**30)
    assert not Sigmoid().rises([Fraction(0)], [far], 0, half)
    assert Sigmoid().rises([Fraction(0)], [far], 0, half - Fraction(1, 10**400))
    assert Sigmoid().rises([far], [far + Fraction(1, 10**300)], 0, Fraction(0))
    none, two = [Fraction(0)] * 4, [Fraction(0), Fraction(0), -far, -far]
    assert not Softmax().rises(none, two, 0, Fraction(1, 4))  # 1 / (2 + tiny) - 1 / 4
    assert Softmax().rises(two, none, 2, Fraction(1, 4) - Fraction(1, 10**300))
    assert not Softmax().rises(none, none[::-1], 0, Fraction(0))


def test_the_oracle_and_the_links_tell_the_same_probabilities() -> None:
    """Two ways to compute a sigmoid and a softmax, one of them in 200 digits."""
    model = with_probability(0, random_classifier(2))
    sums = [Fraction(-3, 7), Fraction(1, 3), Fraction(2)]
    softmax = replace(model, probability="softmax")
    sigmoid = replace(model, probability="sigmoid", slope=2.0)
    for output in range(3):
        assert Softmax().value(sums, output) == float(oracle.probability(softmax, sums, output))
        expected = float(oracle.probability(sigmoid, sums, output))
        assert Sigmoid(Fraction(2)).value(sums, output) == expected


def test_a_large_grid_is_bounded_and_estimated() -> None:
    """Beyond the grids that are visited, exact counting gives bounds, and says so."""
    trees = tuple((f, float(t), -0.05, 0.04) for f in range(14) for t in range(9))
    model = replace(ensemble_of(*trees), probability="sigmoid")
    question: dict[str, Any] = {"sensitive": 0, "probability_gap": "0.05", "distance": "any"}
    bounds = xcount.count(model, method="exact", **question)
    assert not bounds.exact
    assert bounds.stop_reason is StopReason.STEPS
    found = xcount.count(model, method="auto", **question)
    assert found.stop_reason is StopReason.COMPLETE
    assert found.count is not None
    assert 0 < bounds.low < found.low <= found.count <= found.high <= bounds.high


def test_leads_prove_that_a_softmax_does_not_change() -> None:
    """Beyond all visits: no class gains or loses enough on the one asked about."""
    stumps = [(f, 0.5, 0.0, 0.05) for f in range(60)]
    plain = ensemble_of(*stumps)
    trees = tuple(replace(tree, output=i % 3) for i, tree in enumerate(plain.trees))
    model = replace(plain, trees=trees, base=(0.0,) * 3, task="multiclass", probability="softmax")
    for sensitive in ("f0", "f1"):  # of the class itself, and of another one
        asked: dict[str, Any] = {"sensitive": sensitive, "class_": 0}
        none = xcount.count(model, probability_gap="0.0126", **asked)
        assert (none.exact, none.count, none.n_regions) == (True, 0, 2**60)
        some = xcount.count(model, probability_gap="0.001", epsilon=0.5, **asked)
        assert some.low > 0


def test_a_rare_change_of_a_softmax_is_no_proved_zero() -> None:
    """Pairs bound no softmax: what neither visits nor samples find is not excluded."""
    trees = [(f, float(t), -0.5, 0.5) for f in range(1, 14) for t in range(9)]
    plain = ensemble_of((0, 0.5, -0.5, 0.5), *trees, n_features=14)
    outputs = tuple(replace(tree, output=i % 3) for i, tree in enumerate(plain.trees))
    model = replace(plain, trees=outputs, base=(0.0,) * 3, task="multiclass", probability="softmax")
    question: dict[str, Any] = {"sensitive": 0, "probability_gap": "0.244", "class_": 0}
    for method in ("auto", "exact", "sample"):
        found = xcount.count(model, method=method, timeout=1, **question)
        assert found.high > 0
        assert not found.exact


def test_witnesses_show_probabilities_and_go_the_asked_way() -> None:
    """The library's own probability, when there is one, is the sigmoid of the margin."""
    model = xcount.load(str(adult_model_path()))
    asked: dict[str, Any] = {"sensitive": "sex", "probability_gap": "0.1", "direction": "down"}
    for witness in xcount.witnesses(model, n=5, **asked):
        assert witness.probability is not None
        assert witness.other_probability is not None
        assert witness.probability - witness.other_probability > 0.1
        expected = 1 / (1 + np.exp(-np.array([witness.margin, witness.other_margin])))
        assert np.allclose([witness.probability, witness.other_probability], expected)
    sure = xcount.witnesses(model, sensitive="sex", flip=True, from_probability="0.55", n=3)
    for witness in sure:
        assert witness.probability is not None
        assert max(witness.probability, 1 - witness.probability) >= 0.55


def test_what_means_nothing_is_refused() -> None:
    """With the option to leave out, or to give, in the message."""
    one = replace(random_ensemble(3), task="binary", probability="sigmoid")
    several = replace(one, base=(0.0, 0.0), task="multiclass", probability="softmax")
    refused: list[tuple[Ensemble, dict[str, Any], str]] = [
        (one, {"gap": 1, "direction": "left"}, "up, down or any"),
        (one, {"gap": 1, "probability_gap": "0.1"}, "not both"),
        (one, {"flip": True, "probability_gap": "0.1"}, "not both"),
        (one, {"gap": 1, "from_probability": "0.7"}, "--flip"),
        (one, {"flip": True, "from_probability": "70"}, "between 0 and 1"),
        (one, {"probability_gap": "0.1", "method": "xcount"}, "counts gaps alone"),
        (one, {"gap": 1, "direction": "up", "method": "xcount"}, "counts gaps alone"),
        (several, {"flip": True, "direction": "up"}, "no direction"),
        (several, {"flip": True, "from_probability": "7"}, "between 0 and 1"),
        (
            replace(several, probability="unknown"),
            {"flip": True, "from_probability": "0.7"},
            "in an unknown way",
        ),
        (several, {"probability_gap": "0.1"}, "--class"),
    ]
    for ensemble, question, words in refused:
        with pytest.raises(QueryError, match=words):
            xcount.count(ensemble, sensitive=0, **question)
