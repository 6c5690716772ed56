"""The promises that every counter makes, checked against the definition.

The truth comes from :mod:`oracle` (small models, in fractions) and from :mod:`table_oracle` (large
ones, on arrays), which share nothing with the counters. A counter that would rather visit all
regions of such grids is asked again with visits forbidden, so that it has to count its own way.
"""

from __future__ import annotations

import functools
import itertools
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import oracle
import pytest
import table_oracle
from effort import FIRST_SEED, n_examples
from oracle import known
from strategies import random_classifier, random_ensemble, random_tree

from xcount.answers.count import solve
from xcount.answers.result import CountResult
from xcount.counters import GAPS_ONLY, METHODS, counter
from xcount.counters.settings import Settings
from xcount.counters.tally import Method, Progress, StopReason
from xcount.errors import QueryError
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.examples import ensemble_of, figure_1
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query

pytestmark = pytest.mark.contract

PROGRAMS = (Method.CNF_GANAK, Method.CNF_APPROXMC, Method.SUBPROBLEMS_CNF)
"""Methods that start other programs; tests/baselines/cnf tests them."""
HERE = tuple(method for method in METHODS if method not in PROGRAMS)
ESTIMATES = (Method.SAMPLE, Method.XCOUNT, Method.XCOUNT_SUM_FIRST)
OURS = (Method.AUTO, Method.EXACT, Method.VISIT, Method.SAMPLE)


@dataclass(frozen=True)
class Way:
    """A method, with or without the permission to visit all regions instead."""

    method: Method
    may_visit: bool = True

    def __str__(self) -> str:
        return self.method if self.may_visit else f"{self.method} without visits"

    def ask(self, problem: Problem, **settings: Any) -> CountResult:
        """Count on one thread."""
        chosen = {"jobs": 1, "may_visit": self.may_visit, **settings}
        return solve(problem, Settings(**chosen), self.method)

    def refuses(self, change: str) -> bool:
        """Tell whether the method is defined for plain gaps only, and this is none."""
        return self.method in GAPS_ONLY and bool(CHANGES[change].keys() - {"gap", "class_"})

    def is_certain(self, change: str) -> bool:
        """Tell whether the answer about a small model is exact.

        Without a visit, probabilities that are not a margin's are bounded by those of margins.
        """
        only_bounds = not self.may_visit and change in BOUNDED
        return self.method not in ESTIMATES and not only_bounds


OUR_WAYS = (
    *(Way(method) for method in OURS),
    *(Way(method, may_visit=False) for method in (Method.AUTO, Method.EXACT)),
)
WAYS = (*OUR_WAYS, *(Way(method) for method in HERE if method not in OURS))

CHANGES: dict[str, dict[str, Any]] = {
    "gap": {"gap": "0.5"},
    "gap of a class": {"gap": "0.5", "class_": 0},
    "flip": {"flip": True},
    "flip at a cut-off": {"flip": True, "cutoff": "-0.25"},
    "flip of classes": {"flip": True},
    "gap up": {"gap": "0.5", "direction": "up"},
    "flip down": {"flip": True, "direction": "down"},
    "sure flip": {"flip": True, "from_probability": "0.6"},
    "sure flip of classes": {"flip": True, "from_probability": "0.6"},
    "probability gap": {"probability_gap": "0.1"},
    "probability gap of a class": {"probability_gap": "0.1", "class_": 0, "direction": "down"},
}
"""One question of each kind of change."""
BOUNDED = ("sure flip of classes", "probability gap", "probability gap of a class")
"""Changes that subproblems bound and do not count."""

# A change is asked about in one process: the oracles take longer than the counters.
IN_GROUPS = {c: pytest.mark.xdist_group(f"contract, {c}") for c in CHANGES}
every_change = pytest.mark.parametrize(
    "change", [pytest.param(change, marks=group) for change, group in IN_GROUPS.items()]
)
every_way = pytest.mark.parametrize("way", WAYS, ids=str)
our_ways = pytest.mark.parametrize("way", OUR_WAYS, ids=str)
every_way_and_its_changes = pytest.mark.parametrize(
    ("way", "change"),
    [
        pytest.param(way, change, id=f"{way}-{change}", marks=group)
        for way, (change, group) in itertools.product(WAYS, IN_GROUPS.items())
        if not way.refuses(change)
    ],
)


# ---- questions, and their answers by definition ----


@dataclass(frozen=True)
class Asked:
    """A question with its true answer: the number of sensitive regions of each mask."""

    problem: Problem
    of_masks: dict[tuple[int, ...], int]

    @property
    def truth(self) -> int:
        return sum(self.of_masks.values())


def exact_words(change: str) -> dict[str, Any]:
    """Return the change as the oracles take it, with fractions."""
    numbers = ("gap", "probability_gap", "cutoff", "from_probability")
    return {name: Fraction(v) if name in numbers else v for name, v in CHANGES[change].items()}


def problem_of(ensemble: Ensemble, change: str, **words: Any) -> Problem:
    """Return the question about an ensemble."""
    query = Query.of(ensemble, **{"sensitive": 0, **words, **CHANGES[change]})
    return Problem(ensemble, Grid.of(ensemble), query)


def small_model(change: str, seed: int) -> Ensemble:
    """Return a small random model that the change can be asked of."""
    if change == "gap":
        return random_ensemble(seed, categorical=False, scale="decimals")
    several = "class" in change
    numbers = (seed * 100 + i for i in range(100))
    models = (random_classifier(number) for number in numbers)
    model = next(model for model in models if (model.n_outputs > 1) == several)
    if several:
        return replace(model, probability="softmax")
    return replace(model, probability="sigmoid")


@functools.cache
def small_question(change: str, seed: int, distance: int | None, precision: int | None) -> Asked:
    """Return a question about the first feature of a small model."""
    ensemble = small_model(change, FIRST_SEED + seed)
    problem = problem_of(ensemble, change, distance=distance, precision=precision)
    found = oracle.changing_regions(ensemble, [0], distance, precision, **exact_words(change))
    assert problem.n_regions == len(found)
    of_masks: dict[tuple[int, ...], int] = {region[:1]: 0 for region in found}
    for region, is_sensitive in found.items():
        of_masks[region[:1]] += is_sensitive
    return Asked(problem, of_masks)


def small_questions(change: str, first_seed: int, number: int) -> Iterator[Asked]:
    """Yield questions at every distance, exact and rounded, of some models."""
    for i in range(n_examples(number)):
        for distance, precision in itertools.product((1, 2, None), (None, 1)):
            yield small_question(change, first_seed + i, distance, precision)


def large_model(change: str, seed: int) -> Ensemble:
    """Return a model of 24 trees with 20,000 to 40,000 regions; one feature has categories."""
    rng = np.random.default_rng([seed, 21])
    features = (*(Feature(f"f{i}") for i in range(4)), Feature("f4", (0, 1, 2, 3)))
    n_outputs = 3 if "class" in change else 1
    leaves = rng.integers(-24, 25, size=64) / 64
    trees = tuple(
        random_tree(rng, features, 5, leaves, np.arange(9.0), output=i % n_outputs)
        for i in range(24)
    )
    return Ensemble(
        features,
        trees,
        base=(0.0,) * n_outputs,
        task="multiclass" if n_outputs > 1 else "binary",
        probability="softmax" if n_outputs > 1 else "sigmoid",
    )


LARGE: tuple[dict[str, Any], ...] = (
    {"sensitive": (0,), "distance": 1, "precision": None},
    {"sensitive": (1,), "distance": None, "precision": 1},
    {"sensitive": (2, 4), "distance": 2, "precision": None},
    {"sensitive": (0, 3), "distance": None, "precision": None},
)
"""Which features, how far, and how precisely the large models are asked about."""


@functools.cache
def large_question(change: str, number: int) -> Asked:
    """Return a question about a large model."""
    words = LARGE[number % len(LARGE)]
    ensemble = large_model(change, FIRST_SEED + number)
    problem = problem_of(ensemble, change, **words)
    found = table_oracle.changing_table(ensemble, **words, **exact_words(change))
    assert problem.n_regions == found.size
    return Asked(problem, table_oracle.counts_of_masks(found, len(words["sensitive"])))


def large_questions(change: str) -> Iterator[Asked]:
    """Yield large questions of a change."""
    for number in range(n_examples(len(LARGE))):
        yield large_question(change, number)


@every_change
def test_both_oracles_know_the_same_regions(change: str) -> None:
    """The definition in fractions and the one on tables, on models that both can take."""
    rng = np.random.default_rng(22)
    leaves = rng.integers(-32, 33, size=64) / 64
    features = (Feature("f0", can_be_missing=True), Feature("f1", (0, 1, 2)), Feature("f2"))
    n_outputs = 3 if "class" in change else 1
    for words in ({"sensitive": (0,)}, {"sensitive": (0, 1)}):
        trees = [
            random_tree(rng, features, 3, leaves, np.arange(3.0), i % n_outputs) for i in range(5)
        ]
        kind: Any = "softmax" if n_outputs > 1 else "sigmoid"
        ensemble = Ensemble(features, tuple(trees), base=(0.0,) * n_outputs, probability=kind)
        for distance, precision in ((1, None), (2, 1), (None, None)):
            asked = (ensemble, words["sensitive"], distance, precision, True)
            slow = oracle.changing_regions(*asked, **exact_words(change))
            table = table_oracle.changing_table(*asked, **exact_words(change))
            assert {region: bool(is_so) for region, is_so in np.ndenumerate(table)} == slow


# ---- the promises ----


@every_way_and_its_changes
def test_small_counts_are_those_of_the_definition(way: Way, change: str) -> None:
    """On ten random models, at every distance, exact and rounded."""
    for asked in small_questions(change, 90_000, 10):
        result = way.ask(asked.problem, delta=1e-6)
        assert result.low <= asked.truth <= result.high
        if way.is_certain(change):
            assert (result.low, result.count, result.high) == (asked.truth,) * 3
            assert result.exact


@every_change
@our_ways
def test_large_counts_are_those_of_the_definition(way: Way, change: str) -> None:
    """Every counter goes its own way: visits, eliminates, or samples; one and two features."""
    for asked in large_questions(change):
        result = way.ask(asked.problem, delta=1e-6)
        assert result.low <= asked.truth <= result.high
        if result.exact:
            assert result.count == asked.truth
        if result.stop_reason is StopReason.COMPLETE:
            assert abs(known(result.count) - asked.truth) <= result.epsilon * asked.truth
        else:
            assert (way.method, result.stop_reason) == (Method.EXACT, StopReason.STEPS)
            assert not way.is_certain(change)


def test_large_questions_are_counted_in_every_way() -> None:
    """Visits happen if allowed, and elimination and samples have their share if not."""
    taken: dict[Way, set[str]] = {way: set() for way in OUR_WAYS}
    for way, change in itertools.product(OUR_WAYS, ("gap", "flip", "probability gap")):
        problem = problem_of(large_model(change, 0), change, distance=1)
        details = way.ask(problem).details
        ways = {"regions_visited": "visits", "n_steps": "steps", "samples": "samples"}
        taken[way] |= {ways[name] for name in ways if details.get(name)}
    assert {str(way): sorted(found) for way, found in taken.items()} == {
        "auto": ["visits"],
        "auto without visits": ["samples", "steps"],
        "exact": ["steps", "visits"],
        "exact without visits": ["steps"],
        "brute": ["visits"],
        "sample": ["samples"],
    }


@every_way_and_its_changes
def test_a_result_is_in_order(way: Way, change: str) -> None:
    """0 <= low <= count <= high <= regions, a confidence, and the reason why it stopped."""
    for seed in range(n_examples(10)):
        result = way.ask(problem_of(small_model(change, 91_000 + seed), change))
        assert 0 <= result.low <= result.high <= result.n_regions
        assert result.count is None or result.low <= result.count <= result.high
        assert 0.9 <= result.confidence <= 1
        assert result.stop_reason is StopReason.COMPLETE or not way.is_certain(change)
        assert result.exact or result.high > 0  # zero is only ever proved
        assert CountResult.from_dict(result.to_dict()) == result


@every_change
@every_way
def test_a_change_is_counted_or_refused(way: Way, change: str) -> None:
    """The paper's methods are defined for gaps without a direction, all others for every change."""
    problem = problem_of(small_model(change, 94_000), change)
    if way.refuses(change):
        with pytest.raises(QueryError, match="counts gaps alone"):
            way.ask(problem)
    else:
        assert way.ask(problem).method == way.method


class Interrupt:
    """A listener that presses Ctrl-C when it has heard of progress so many times."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, progress: Progress) -> None:
        self.left -= 1
        if self.left <= 0:
            raise KeyboardInterrupt


@every_change
@our_ways
@pytest.mark.parametrize("after", [1, 2, 5])
def test_an_interrupt_leaves_valid_bounds(way: Way, change: str, after: int) -> None:
    """A listener may end the count at any moment."""
    small = (small_question(change, 95_000 + i, None, None) for i in range(n_examples(5)))
    for asked in (*small, *large_questions(change)):
        result = way.ask(asked.problem, delta=1e-6, on_progress=Interrupt(after))
        assert result.low <= asked.truth <= result.high


@every_change
@our_ways
def test_no_time_leaves_valid_bounds(way: Way, change: str) -> None:
    """A time limit that has passed before the count starts still gives a result."""
    for asked in (small_question(change, 96_000, None, None), *large_questions(change)):
        result = way.ask(asked.problem, timeout_seconds=0)
        assert result.low <= asked.truth <= result.high


@every_change
def test_a_problem_travels(change: str) -> None:
    """Pickled and unpickled, a problem has the same integers and the same answer."""
    problem = problem_of(small_model(change, 97_000), change)
    space = pickle.loads(pickle.dumps(problem.space))
    assert space.threshold == problem.space.threshold
    assert list(space.trees.values) == list(problem.space.trees.values)
    travelled = pickle.loads(pickle.dumps(problem))
    tallies = [counter(Method.EXACT)(p, Settings(jobs=1)) for p in (problem, travelled)]
    assert tallies[0] == tallies[1]


@every_way
def test_a_difference_of_just_the_gap_does_not_count(way: Way) -> None:
    """The comparison is strict in every counter."""
    for gap, expected in ((85, 0), ("84.9", 2)):
        query = Query.of(figure_1(), "f0", gap)
        assert way.ask(Problem(figure_1(), Grid.of(figure_1()), query)).count == expected


@every_way
def test_a_feature_without_guards_changes_nothing(way: Way) -> None:
    """It has one cell, so there is no other cell to move to."""
    constant = ensemble_of((0, 0.0, 5.0, 0.0), n_features=2)
    result = way.ask(Problem(constant, Grid.of(constant), Query.of(constant, 1, 0)))
    assert (result.count, result.n_regions) == (0, 2)


@our_ways
def test_zero_flips_are_proved(way: Way) -> None:
    """By bounds if the margin is above the cut-off everywhere, otherwise by counting."""
    above = ensemble_of((0, 0.0, 5.0, 1.0), n_features=2)
    # f0 moves the margin by 2, but only where f1 holds it far from the cut-off.
    guarded = ensemble_of((1, 0.0, (0, 0.0, 5.0, 7.0), -3.0), n_features=2)
    for ensemble in (above, guarded):
        result = way.ask(problem_of(ensemble, "flip"))
        assert (result.count, result.high, result.exact) == (0, 0, True)


@every_way_and_its_changes
def test_the_same_seed_gives_the_same_answer(way: Way, change: str) -> None:
    """Two runs with one seed have the same bounds and the same count."""
    problem = problem_of(small_model(change, 92_000), change)
    results = [way.ask(problem, seed=7) for _ in range(2)]
    assert len({(r.low, r.count, r.high) for r in results}) == 1


@every_change
@pytest.mark.parametrize("way", [w for w in OUR_WAYS if w.method is not Method.SAMPLE], ids=str)
def test_profiles_are_those_of_the_definition(way: Way, change: str) -> None:
    """Each mask has the count that the definition gives it, or bounds of it."""
    small = (small_question(change, 93_000 + i, 1, None) for i in range(n_examples(10)))
    for asked in (*small, *large_questions(change)):
        result = way.ask(asked.problem, want_profile=True)
        if result.profile is None:  # an estimate has none
            assert not result.exact
            continue
        rows = {row.cells: row for row in result.profile.masks}
        assert rows.keys() == asked.of_masks.keys()
        for cells, row in rows.items():
            assert row.low <= asked.of_masks[cells] <= row.high
        if result.exact:
            assert {cells: row.low for cells, row in rows.items()} == asked.of_masks
