"""Flips of the decision: every method against the definition, and the certificate of estimates."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import oracle
import pytest
from oracle import known
from strategies import random_classifier

import xcount
from xcount.answers.result import CountResult, Verdict
from xcount.counters.costs import Thresholds
from xcount.counters.decisions import RegionDecider
from xcount.counters.exact import count_exactly
from xcount.counters.region_search import RegionSearch
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason
from xcount.errors import BudgetError, QueryError
from xcount.model.ensemble import Ensemble
from xcount.model.examples import ensemble_of, figure_1
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query


def random_question(seed: int, ensemble: Ensemble) -> dict[str, Any]:
    """Return a question; cut-offs are often sums that occur."""
    rng = np.random.default_rng([seed, 10])
    size = int(rng.integers(1, ensemble.n_features + 1))
    question: dict[str, Any] = {
        "sensitive": sorted(rng.choice(ensemble.n_features, size, replace=False).tolist()),
        "distance": [1, 2, None][int(rng.integers(3))],
        "precision": [None, None, None, 0, 1][int(rng.integers(5))],
    }
    if ensemble.n_outputs == 1:
        divisor = int(rng.choice([1, 2, 10]))
        question["cutoff"] = Fraction(int(rng.integers(-3, 4)), divisor)
    return question


def expected(ensemble: Ensemble, question: dict[str, Any], missing: bool) -> list[bool]:
    """Return what the definition says, region by region."""
    known = {"cutoff": Fraction(0), **question}
    return list(oracle.flipping_regions(ensemble, missing=missing, **known).values())


@pytest.mark.parametrize("block", range(4))
def test_exact_counting_and_enumeration_agree_with_the_definition(block: int) -> None:
    """Random classifiers: ties at the cut-off and between classes, bases, categories, missing."""
    for seed in range(block * 60, (block + 1) * 60):
        ensemble = random_classifier(seed)
        question = random_question(seed, ensemble)
        missing = seed % 2 == 1
        count = sum(expected(ensemble, question, missing))
        for method in ("brute", "exact", "auto"):
            result = xcount.count(
                ensemble,
                flip=True,
                method=method,
                jobs=1,
                missing="cell" if missing else "none",
                **question,
            )
            assert (seed, method, result.count, result.exact) == (seed, method, count, True)


def test_hard_flips_are_the_sum_of_their_parts() -> None:
    """Every subproblem counts as hard here, and is cut into any number of parts."""
    for seed in range(120):
        thresholds = Thresholds(hard_steps=0, part_bits=1 + seed % 5)
        ensemble = random_classifier(seed)
        question = random_question(seed, ensemble)
        problem = Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, flip=True, **question))
        tally = count_exactly(problem, Settings(thresholds=thresholds))
        count = sum(expected(ensemble, question, missing=False))
        assert (tally.low, tally.count, tally.high) == (count, count, count)


@pytest.mark.parametrize("seed", range(100))
def test_every_region_is_decided_as_defined(seed: int) -> None:
    """Deciding regions one by one agrees, not only their number."""
    ensemble = random_classifier(1000 + seed)
    question = random_question(seed, ensemble)
    query = Query.of(ensemble, flip=True, **question)
    problem = Problem(ensemble, Grid.of(ensemble), query)
    known = {"cutoff": Fraction(0), **question}
    flips = oracle.flipping_regions(ensemble, missing=False, **known)
    regions = np.array(list(flips), dtype=np.int32)
    decided = RegionDecider(problem).decide_regions(regions)
    assert decided.tolist() == list(flips.values())
    found = RegionSearch(problem.form.corner_question).decide(regions)
    assert found.tolist() == list(flips.values())


def test_intervals_of_estimates_hold() -> None:
    """Of 60 estimates with 90 % confidence, at least 46 hold (a binomial bound of 1e-4)."""
    held = total = 0
    for seed in range(60):
        ensemble = random_classifier(seed, max_features=4)
        question: dict[str, Any] = {"sensitive": 0, "flip": True, "jobs": 1, "distance": "any"}
        exact = xcount.count(ensemble, method="brute", **question)
        if known(exact.share) < 0.02:
            continue
        estimate = xcount.count(ensemble, method="sample", epsilon=0.2, seed=seed, **question)
        held += estimate.low <= known(exact.count) <= estimate.high
        total += 1
        assert estimate.confidence == (1.0 if estimate.exact else 0.9)
        assert estimate.stop_reason is StopReason.COMPLETE
    assert total >= 20
    assert held >= total * 46 / 60


def test_a_forest_flips_where_its_votes_do() -> None:
    """Votes of 0.25 and 0.75: both above 0, so nothing flipped there; its own cut-off is 0.5."""
    votes = ensemble_of((0, 1.0, 0.25, 0.75), n_features=1)
    forest = replace(votes, task="binary", decides_at=0.5)
    assert xcount.count(forest, sensitive=0, flip=True).count == 2
    assert xcount.count(forest, sensitive=0, flip=True, cutoff=0).count == 0


def test_a_tie_may_be_above() -> None:
    """A library that decides by >= has its tie on the other side."""
    stump = replace(ensemble_of((0, 1.0, 0.0, -1.0), n_features=1), task="binary")
    for tie_is_above, count in ((False, 0), (True, 2)):
        model = replace(stump, tie_is_above=tie_is_above)
        for method in ("brute", "exact", "auto", "sample"):
            assert xcount.count(model, sensitive=0, flip=True, method=method).count == count


def test_outputs_that_are_no_classes_do_not_flip() -> None:
    """Targets and quantiles are numbers: none of them wins."""
    numbers = replace(figure_1(), base=(0.0, 0.0), task="multitarget")
    with pytest.raises(QueryError, match="several outputs that are not classes"):
        xcount.count(numbers, sensitive=0, flip=True)
    regressor = replace(figure_1(), task="regression", decides_at=None)
    with pytest.raises(QueryError, match="makes no decision; pass --cutoff"):
        xcount.count(regressor, sensitive=0, flip=True)
    assert known(xcount.count(regressor, sensitive="f0", flip=True, cutoff=0).count) > 0


def test_a_tie_is_not_above_the_cutoff() -> None:
    """The margins 0 and 1: at the cut-off 0 they differ, at 1 and just below 0 they do not."""
    stump = ensemble_of((0, 1.0, 0.0, 1.0), n_features=1)
    counts = [
        xcount.count(stump, sensitive=0, flip=True, cutoff=cutoff).count
        for cutoff in ("-0.001", 0, "0.999", 1)
    ]
    assert counts == [0, 2, 2, 0]


def test_the_base_decides_along() -> None:
    """The base shifts the margin, although it cancels in every difference."""
    stump = ensemble_of((0, 1.0, -1.0, 1.0), n_features=1)
    raised = replace(stump, base=(1.5,))
    assert xcount.count(stump, sensitive=0, flip=True).count == 2
    assert xcount.count(raised, sensitive=0, flip=True).count == 0
    assert xcount.count(raised, sensitive=0, gap=1).count == 2


def test_of_equal_classes_the_first_wins() -> None:
    """Class 1 must be strictly better than class 0 to win."""
    stump = ensemble_of((0, 1.0, 0.0, 1.0), n_features=1)
    two = replace(stump, trees=(replace(stump.trees[0], output=1),), base=(0.0, 0.0))
    assert xcount.count(two, sensitive=0, flip=True).count == 2
    equal = replace(two, base=(1.0, 0.0))
    assert xcount.count(equal, sensitive=0, flip=True).count == 0


def test_a_result_about_flips_says_so() -> None:
    """The JSON has flip and cutoff instead of a gap, and can be read back."""
    result = xcount.count(figure_1(), sensitive="f0", flip=True, cutoff="-1.5", max_share=0.5)
    data = result.to_dict()
    assert (data["flip"], data["cutoff"], data["gap_text"]) == (True, -1.5, "flip at -1.5")
    assert "gap" not in data
    assert CountResult.from_dict(data) == result
    assert result.verdict in (Verdict.PASS, Verdict.FAIL)
    assert "flip" not in xcount.count(figure_1(), sensitive="f0", gap=80).to_dict()


def test_questions_that_make_no_sense_are_refused() -> None:
    """A gap and a flip, a cut-off without a flip, a class or a cut-off of several classes."""
    model = figure_1()
    several = replace(model, base=(0.0, 0.0))
    for ensemble, question, words in (
        (model, {"flip": True, "gap": 1}, "not both"),
        (model, {"gap": 1, "cutoff": 0}, "add --flip"),
        (model, {}, "no gap"),
        (model, {"flip": True, "cutoff": "x"}, "cut-off must be a number"),
        (model, {"flip": True, "cutoff": "1e500"}, "outside the range"),
        (several, {"flip": True, "cutoff": 0}, "leave out the cut-off"),
        (several, {"flip": True, "class_": 1}, "leave out --class"),
        (model, {"flip": True, "method": "xcount"}, "counts gaps alone"),
    ):
        with pytest.raises(QueryError, match=words):
            xcount.count(ensemble, sensitive="f0", **question)


def test_a_profile_adds_up() -> None:
    """The flips of all masks together are the count."""
    for method in ("exact", "brute"):
        result = xcount.count(
            random_classifier(3), sensitive=0, flip=True, method=method, profile=True
        )
        assert result.profile is not None
        assert sum(mask.low for mask in result.profile.masks) == result.count


def test_enumeration_refuses_what_would_take_hours() -> None:
    """The message names a way out."""
    trees = tuple((f, float(t), -1.0, 1.0) for f in range(14) for t in range(9))
    with pytest.raises(BudgetError, match="--method auto"):
        xcount.count(ensemble_of(*trees), sensitive=0, flip=True, method="brute")


def test_audits_count_flips() -> None:
    """An audit about flips ranks features, judges, and renders every report."""
    result = xcount.audit(figure_1(), flip=True, distances="any", max_share=1)
    assert {r.gap for r in result.results} == {"flip at 0"}
    for ranked in result.ranking:
        (found,) = ranked.results
        alone = xcount.count(
            figure_1(), sensitive=ranked.sensitive, flip=True, distance="any", method="brute"
        )
        assert found.count == alone.count
    assert result.verdict is Verdict.PASS
    page = result.to_html()
    assert "The decision changes at the cut-off 0" in page
    assert "gap flip" not in page
    assert "flip at 0" in result.to_markdown()
    assert "flip at 0" in result.to_csv()
    with pytest.raises(QueryError, match="not both"):
        xcount.audit(figure_1(), flip=True, gaps=1)
