"""Weights: exact work and samples side by side, and what is left of either."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from measure_problems import expected_share, random_population, random_problem
from oracle import known
from strategies import wide_ensemble

import xcount
from xcount.counters.costs import SECONDS_PER_STEP, Thresholds
from xcount.counters.exact import ExactRun
from xcount.counters.known_counts import KnownCounts
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason
from xcount.measures import exact_shares
from xcount.measures.draws import MixtureDraws
from xcount.measures.exact_shares import UNITS, ExactShares
from xcount.measures.mixture import Mixture
from xcount.measures.products import ProductComponent, weighed_parts
from xcount.measures.shares import measure
from xcount.measures.weigh import weigh
from xcount.measures.weighting import Weighing
from xcount.model.examples import adult_model_path, ensemble_of
from xcount.problem.problem import Problem
from xcount.question.domain import Domain
from xcount.question.grid import Grid
from xcount.question.query import Query
from xcount.question.share import Limit


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the steps that all exact runs have taken."""
    taken: list[int] = []
    take = KnownCounts._take

    def noted(self: KnownCounts, *of_what: Any) -> float:
        before = self.n_steps
        work = take(self, *of_what)
        taken.append(self.n_steps - before)
        return work

    monkeypatch.setattr(KnownCounts, "_take", noted)
    return taken


TINY_SLICES = Thresholds(
    step_budgets=(20, 60, 200, 800),
    free_exact_seconds=0.0,
    alone_seconds=0.0,
    least_slice_seconds=0.0,
    slice_part=0.0,
)
"""Exact work and samples take turns from the first step on."""


def demo_problem(**change: Any) -> tuple[Problem, Weighing]:
    """Return a question about the age of the demo's people, and bounds of all features."""
    model = xcount.load(adult_model_path())
    bounds = {
        f.name: (0.0, 100.0 if f.name != "capital_gain" else 1e5)
        for f in model.features
        if not f.categories
    }
    weighing = Weighing.of(model, "volume", bounds=bounds)
    return Problem(model, Grid.of(model), Query.of(model, "age", distance=1, **change)), weighing


def test_samples_do_not_wait_for_exact_work_that_leads_nowhere(steps: list[int]) -> None:
    """A flip that exact work would take minutes for: it costs what the samples cost, about."""
    problem, weighing = demo_problem(flip=True)
    found = measure(problem, weighing, Settings(jobs=1))["volume"]
    assert found.stop_reason is StopReason.COMPLETE
    assert found.details["samples"] > 0
    assert sum(steps) * SECONDS_PER_STEP < 1.0


def rare_path(n: int, weight: float) -> tuple[Problem, Mixture]:
    """Return a tree that changes only where n rare conditions hold, each of this weight."""
    tree: Any = (n, 0.5, 0.0, 1.0)
    for i in range(n):
        tree = (i, 0.5, 0.0, tree)
    model = ensemble_of(tree)
    problem = Problem(model, Grid.of(model), Query.of(model, n, "0.5"))
    rare = np.array([1 - weight, weight])
    weights = [*([rare] * n), np.array([0.5, 0.5])]
    product = ProductComponent(1.0, weights)
    return problem, Mixture(name="rare", grid=problem.grid, components=(product,))


@pytest.mark.parametrize("may_visit", [True, False])
@pytest.mark.parametrize(("n", "weight"), [(2, 1e-3), (9, 1e-3), (12, 1e-3), (20, 1e-7)])
def test_a_tiny_share_is_not_nothing(n: int, weight: float, may_visit: bool) -> None:
    """However rare the conditions are: the bounds hold the share, and they are not both 0."""
    problem, mixture = rare_path(n, weight)
    found = weigh(mixture, problem, Settings(jobs=1, may_visit=may_visit, max_share=Limit.of("0")))
    truth = Fraction(weight) ** n
    assert 0 < Fraction(found.low) <= truth <= Fraction(found.high)
    assert found.high < found.low * (1 + 1e-6)
    assert not found.exact


def test_a_share_below_every_float_is_not_proved_to_be_0() -> None:
    """The product of so many weights is rounded to 0."""
    problem, mixture = rare_path(30, 1e-20)
    found = weigh(mixture, problem, Settings(jobs=1))
    assert found.low <= Fraction(1e-20) ** 30 <= found.high
    assert 0 < found.high < 1e-200


def test_what_is_cheap_is_exact() -> None:
    """As a count is: a tenth of a second is exact work's in any case."""
    problem, weighing = demo_problem(gap="2")
    assert measure(problem, weighing, Settings(jobs=1))["volume"].interval.is_settled


def test_bounds_alone_are_no_reason_to_go_on(steps: list[int]) -> None:
    """Pairs of masks only bound a gap in probability: where samples are cheap, they are alone."""
    problem, weighing = demo_problem(probability_gap="0.05")
    found = measure(problem, weighing, Settings(jobs=1))["volume"]
    assert found.stop_reason is StopReason.COMPLETE
    assert not steps


def test_a_profile_is_the_counts_matter(steps: list[int]) -> None:
    """Measures need no pair that a mask does not."""
    problem, weighing = demo_problem(gap="2")
    measure(problem, weighing, Settings(jobs=1))
    n_steps = sum(steps)
    steps.clear()
    measure(problem, weighing, Settings(jobs=1, want_profile=True))
    assert sum(steps) == n_steps > 0


@pytest.mark.usefixtures("no_corner_sums")
@pytest.mark.parametrize("begins_anew", [False, True])
def test_a_mixture_that_is_solved_in_part_is_drawn_in_part(
    begins_anew: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Open masks of each product are drawn from, the others are certain; intervals hold."""
    thresholds = replace(TINY_SLICES, step_budgets=(3, 6, 12))
    if begins_anew:
        thresholds = replace(thresholds, shrunk_part=1.0, cheaper_part=math.inf)
    else:
        thresholds = replace(thresholds, free_exact_seconds=20 * SECONDS_PER_STEP)
    drawn: list[int] = []
    make = MixtureDraws.__init__

    def noted(self: MixtureDraws, problem: Problem, products: Sequence[Any]) -> None:
        drawn.append(sum(int((each.mask_weights == 0).sum()) for each in products))
        make(self, problem, products)

    monkeypatch.setattr(MixtureDraws, "__init__", noted)
    n = n_held = 0
    for seed in range(80):
        problem, regions, _ = random_problem(seed)
        population = random_population(problem, seed)
        share = expected_share(population, problem, regions)
        if not 0.02 < share < 0.999:
            continue
        weighing = Weighing(("population",), population=population)
        settings = Settings(jobs=1, seed=seed, epsilon=0.2, thresholds=thresholds)
        found = measure(problem, weighing, settings)["population"]
        if "samples" in found.details:
            n += 1
            n_held += found.low - 1e-9 <= share <= found.high + 1e-9
        else:
            assert found.low - 1e-9 <= share <= found.high + 1e-9
    assert max(drawn) > 0
    assert n > 5
    assert n_held >= n - 3


def test_what_is_known_in_part_bounds_the_whole() -> None:
    """After any slice, of every product and mask, bounds are certain."""
    n_narrow = 0
    for seed in range(30):
        problem, regions, _ = random_problem(seed)
        population = random_population(problem, seed)
        share = expected_share(population, problem, regions)
        weighing = Weighing(("population",), population=population)
        products = Mixture.population(problem.grid, weighing).products(problem)
        shares = ExactShares(weighed_parts(problem, products), Settings(jobs=1))
        for _ in shares.slices((2, 8, 32, 2**62)):
            low, high = (end / UNITS for end in shares.bounds())
            assert low - 1e-9 <= share <= high + 1e-9
            assert shares.certain - 1e-9 <= share <= shares.certain + shares.undecided + 1e-9
            n_narrow += 0 < high - low < 0.99
        assert not shares.open_size
        assert shares.certain == pytest.approx(share, abs=1e-9)
    assert n_narrow > 10


@pytest.mark.usefixtures("no_corner_sums")
@pytest.mark.parametrize("rules", [(), ("f1 < 3 -> f2 < 5",)])
def test_the_same_on_any_number_of_threads(rules: tuple[str, ...]) -> None:
    """Turns are taken by counted work."""
    model = wide_ensemble()
    weighing = Weighing.of(model, "volume", bounds=dict.fromkeys(model.feature_names, (0.0, 8.0)))
    grid = Grid.of(model, domain=Domain.of(rule=rules))
    problem = Problem(model, grid, Query.of(model, "f0", flip=True, cutoff=0.1))
    found = [
        measure(problem, weighing, Settings(jobs=jobs, thresholds=TINY_SLICES))["volume"]
        for jobs in (1, 2, 3)
    ]
    assert found[0] == found[1] == found[2]
    assert found[0].details["samples"] > 0


@pytest.mark.usefixtures("no_corner_sums")
@pytest.mark.parametrize("n_done", [0, 1, 2, 5, 20])
def test_an_interrupt_leaves_bounds_and_ends_the_measures_after_it(
    n_done: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever it comes: before the first step, between slices, while samples are drawn."""
    model = wide_ensemble()
    problem = Problem(model, Grid.of(model), Query.of(model, "f0", flip=True, cutoff=0.1))
    bounds = dict.fromkeys(model.feature_names, (0.0, 8.0))
    rows = np.repeat(np.arange(8.0)[:, np.newaxis], 6, axis=1)
    weighing = Weighing.of(model, ("volume", "marginals"), rows, bounds)
    endless = Settings(jobs=1, epsilon=1e-9, thresholds=replace(TINY_SLICES, step_budgets=(2**62,)))
    truth = measure(problem, weighing, endless)["volume"]
    assert truth.interval.is_settled
    done: list[str] = []

    def stopped(name: str, function: Any) -> Any:
        def work(*of_what: Any) -> Any:
            if len(done) == n_done:
                raise KeyboardInterrupt
            done.append(name)
            return function(*of_what)

        return work

    monkeypatch.setattr(KnownCounts, "_try", stopped("exact", KnownCounts._try))
    monkeypatch.setattr(MixtureDraws, "draw", stopped("samples", MixtureDraws.draw))
    settings = Settings(jobs=1, epsilon=1e-3, delta=1e-6, thresholds=TINY_SLICES)
    found = measure(problem, weighing, settings)
    assert found["volume"].low <= known(truth.share) <= found["volume"].high
    reasons = [measured.stop_reason for measured in found.values()]
    assert reasons == [StopReason.INTERRUPTED] * 2
    assert (found["marginals"].low, found["marginals"].high) == (0.0, 1.0)
    if n_done == 20:
        assert {*done} == {"exact", "samples"}
        assert found["volume"].high - found["volume"].low < 0.9


@pytest.mark.usefixtures("no_corner_sums")
def test_a_limit_of_time_leaves_bounds() -> None:
    """Samples have something to say even where no time is left for exact work."""
    problem, weighing = demo_problem(flip=True)
    accurate = known(measure(problem, weighing, Settings(jobs=1))["volume"].share)
    settings = Settings(jobs=1, epsilon=1e-4, timeout_seconds=0.3)
    found = measure(problem, weighing, settings)["volume"]
    assert found.stop_reason is StopReason.TIMEOUT
    assert 0 < found.low <= accurate * 1.2
    assert accurate * 0.8 <= found.high < 1


def test_runs_of_the_same_masks_are_taken_apart_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which pairs can differ does not depend on the weights."""
    problem, _, _ = random_problem(0)
    population = random_population(problem, 0)
    n_looked = 0
    decompose = ExactRun._decompose

    def noted(self: ExactRun) -> None:
        nonlocal n_looked
        n_looked += 1
        decompose(self)

    monkeypatch.setattr(ExactRun, "_decompose", noted)
    weighing = Weighing(("population",), population=population)
    products = Mixture.population(problem.grid, weighing).products(problem)
    shares = ExactShares(weighed_parts(problem, products), Settings(jobs=1))
    list(shares.slices((2**62,)))
    assert len(products) > 1
    assert n_looked == len({product.masks for product in shares.products[0]}) == 1


def test_too_many_terms_are_sampled(monkeypatch: pytest.MonkeyPatch, no_corner_sums: None) -> None:
    """With all of delta: no other estimate can follow."""
    monkeypatch.setattr(exact_shares, "MAX_TERMS", 0)
    problem, weighing = demo_problem(gap="0.2")
    found = measure(problem, weighing, Settings(jobs=1))["volume"]
    assert found.stop_reason is StopReason.COMPLETE
    assert found.details["samples"] > 0
    assert found.confidence == 0.9


def never_flipping(*more: Any) -> tuple[Problem, Weighing]:
    """Return flips that other trees alone make happen, and weights that are rounded in every sum.

    An odd number of twos, with either sign, never adds up to less than a quarter.
    """
    rng = np.random.default_rng(9)
    stumps = [(1 + i % 3, float(rng.random()), 2.0, -2.0) for i in range(27)]
    model = ensemble_of((0, 0.5, 0.25, -0.25), *stumps, *more)
    query = Query.of(model, "f0", flip=True, cutoff=0)
    weighing = Weighing.of(model, "volume", bounds={f"f{i}": (0.0, 1.0) for i in range(4)})
    return Problem(model, Grid.of(model), query), weighing


def test_a_weight_of_nothing_is_nothing(no_corner_sums: None) -> None:
    """What never flips weighs 0, also where that is 1 less a sum of weights that is rounded."""
    problem, weighing = never_flipping()
    products = Mixture.volume(problem.grid, weighing).products(problem)
    run = ExactRun(problem, Settings(), weights=list(products[0].cell_weights))
    run.solve((2**62,))
    assert any(low == high > 0 for low, high in run.all_mask_bounds())  # rounding
    found = measure(problem, weighing)["volume"]
    assert (found.share, found.low, found.high, found.exact) == (0.0, 0.0, 0.0, True)


def test_a_weight_that_may_be_rounding_has_bounds(no_corner_sums: None) -> None:
    """Where regions flip that weigh less than the rounding of all others."""
    problem, weighing = never_flipping((1, 1e-20, (0, 0.5, 100.0, -100.0), 0.0))
    found = measure(problem, weighing)["volume"]
    assert not found.exact
    assert found.share is None
    assert found.low == 0.0 < found.high < 1e-12


@pytest.mark.parametrize("judge", ["regions", "volume"])
def test_a_count_of_nothing_proves_every_measure(
    judge: str, monkeypatch: pytest.MonkeyPatch, no_corner_sums: None
) -> None:
    """What no region does, no weight does, however little samples alone would prove."""
    monkeypatch.setattr(exact_shares, "MAX_TERMS", 0)
    problem, weighing = never_flipping()
    decided = Settings(max_share=Limit.share("50%"), judge="volume")
    assert not measure(problem, weighing, decided)["volume"].exact
    bounds = {f"f{i}": (0.0, 1.0) for i in range(4)}
    asked: dict[str, Any] = {"sensitive": "f0", "flip": True, "cutoff": 0, "max_share": "50%"}
    result = xcount.count(
        problem.ensemble, **asked, method="exact", measures="volume", judge=judge, bounds=bounds
    )
    assert result.high == 0
    found = result.measures["volume"]
    assert (found.share, found.low, found.high, found.exact) == (0.0, 0.0, 0.0, True)
