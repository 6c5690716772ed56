"""Places: boxes in words, and the numbers of each counted again."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import oracle
import pytest
from measure_problems import random_population, random_problem
from numpy.typing import NDArray
from oracle import known
from test_rates import MEASURES, weights_of

import xcount
from xcount.answers.explain import places as places_module
from xcount.answers.explain.places import PlaceFinder
from xcount.answers.explanation import Place
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress
from xcount.measures.exact_shares import Budget
from xcount.measures.measure import inside
from xcount.measures.mixture import Mixture
from xcount.measures.shares import measure_of
from xcount.measures.weighting import Weighing
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.examples import Nested, ensemble_of, tree_of
from xcount.problem.problem import Problem
from xcount.question.condition import parse_conditions
from xcount.question.domain import Domain
from xcount.question.grid import Grid
from xcount.question.query import Query, resolve_feature

HERE: Nested = (1, 29.0, (2, 40.0, 0.0, (0, 0.5, -1.0, 1.0)), 0.0)
"""f0 matters where f1 < 29 and f2 >= 40, and nowhere else."""


SIX = frozenset(range(6))


def model_with_a_place() -> Ensemble:
    """Return a model with many cells in which one box is sensitive to f0."""
    noise: list[Nested] = [(f, float(t), 0.01, 0.02) for f in (1, 2, 3) for t in range(20, 60, 4)]
    return ensemble_of(HERE, *noise)


def problem_of(ensemble: Ensemble, domain: Domain | None = None) -> Problem:
    """Return the question about one step of f0 and a gap of 1."""
    grid = Grid.of(ensemble, domain=domain or Domain())
    return Problem(ensemble, grid, Query.of(ensemble, "f0", 1, distance=1))


def places_of(problem: Problem) -> tuple[Place, ...]:
    """Return the places of regions, whose share was counted before."""
    own, settings = Mixture.uniform(problem.grid), Settings()
    share = own.exact_share(problem, {}, settings, Budget(10.0, 10**7))
    assert share is not None
    return PlaceFinder(problem, own, settings, share).places()


def box_of(problem: Problem, place: Place) -> dict[int, NDArray[np.bool_]]:
    """Return the cells that a place's conditions name, as ``--where`` reads them."""
    found = {}
    for text in place.conditions:
        (condition,) = parse_conditions(text)
        feature = resolve_feature(problem.ensemble, condition.name)
        axis = problem.grid.axes[feature]
        found[feature] = axis.holds_in(condition.test.values(axis.feature, axis.dtype))
    return found


def is_in(regions: NDArray[np.int32], box: dict[int, NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Return which regions are in a box."""
    return inside(regions, box)


def test_a_place_is_found_and_counted() -> None:
    """The box itself, in words; all of it is sensitive, and nothing else is."""
    problem = problem_of(model_with_a_place())
    (place,) = places_of(problem)
    assert place.text == "f1 < 29 and f2 >= 40"
    assert place.conditions == ("f1 < 29.0", "40.0 <= f2")
    assert place.exact
    assert place.confidence == 1.0
    assert place.part.least == place.within.least == 1.0
    counted = xcount.count(model_with_a_place(), sensitive="f0", gap=1)
    assert place.weight.least == pytest.approx(counted.share)
    assert place.size == pytest.approx(counted.share)


def test_a_place_names_all_of_its_categories() -> None:
    """Cut names could not be asked for again."""
    jobs = tuple(f"job {code}" for code in range(16))
    trees = [replace(tree_of((1, np.nan, (0, 0.5, -1.0, 1.0), 0.0)), left_categories={0: SIX})]
    for code in range(16):
        tree = tree_of((1, np.nan, 0.01, 0.02))
        trees.append(replace(tree, left_categories={0: frozenset([code])}))
    features = (Feature("f0"), Feature("occupation", tuple(range(16)), jobs))
    (place,) = places_of(problem_of(Ensemble(features, tuple(trees))))
    assert place.text == f"occupation in {{{', '.join(jobs[:6])}}}"
    assert place.size == 6 / 16


def test_the_numbers_of_a_box_are_those_of_a_count_of_it() -> None:
    """A place is a ``where``: of a model with several places, each is counted alike."""
    second: Nested = (
        1,
        45.0,
        0.0,
        (3, 30.0, (0, 0.5, 2.0, 0.0), (2, 24.0, (0, 0.5, 3.0, 1.0), 0.0)),
    )
    model = ensemble_of(
        *(HERE, second), *((f, float(t), 0.01, 0.02) for f in (1, 2, 3) for t in range(20, 60, 5))
    )
    problem = problem_of(model)
    found = places_of(problem)
    whole = xcount.count(model, sensitive="f0", gap=1)
    assert len(found) > 1
    for place in found:
        counted = xcount.count(model, sensitive="f0", gap=1, where=place.conditions)
        assert counted.exact
        assert place.exact
        assert place.within.least == pytest.approx(counted.share, abs=1e-12)
        assert place.part.least == pytest.approx(
            known(counted.count) / known(whole.count), abs=1e-12
        )
        assert place.weight.least == pytest.approx(
            known(counted.count) / whole.n_regions, abs=1e-12
        )
    assert [p.part.least for p in found] == sorted((p.part.least for p in found), reverse=True)
    boxes = [box_of(problem, place) for place in found]
    for one, other in itertools.combinations(boxes, 2):
        assert any(not (one[f] & other[f]).any() for f in one.keys() & other.keys())


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("measure", MEASURES)
def test_places_are_those_of_enumeration(
    seed: int, measure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gaps and flips, categories, missing cells, several sensitive features, every measure."""
    monkeypatch.setattr(places_module, "LEAST_HITS", 1)
    monkeypatch.setattr(places_module, "LEAST_DRAWS", 2000)
    problem, sensitive, weighing = random_problem(seed)
    weighing = Weighing(
        MEASURES[1:], weighing.inputs, "rows", weighing.bounds, random_population(problem, seed)
    )
    own = measure_of(measure, problem.grid, weighing)
    regions = oracle.all_regions(problem)
    weights = weights_of(own, regions)
    hits = np.array([sensitive[tuple(region)] for region in regions.tolist()])
    share = float(weights[hits].sum())
    for place in PlaceFinder(problem, own, Settings(jobs=1), share).places():
        here = is_in(regions, box_of(problem, place))
        weight = weights[here & hits].sum()
        assert place.exact
        assert place.size == pytest.approx(weights[here].sum(), abs=1e-9)
        assert place.weight.least == pytest.approx(weight, abs=1e-9)
        assert place.within.least == pytest.approx(weight / weights[here].sum(), abs=1e-9)
        assert place.part.least == pytest.approx(weight / weights[hits].sum(), abs=1e-9)


def test_intervals_of_sampled_places_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found by chance is not flattered: fresh draws count it."""
    monkeypatch.setattr(Mixture, "exact_share", lambda *_: None)
    monkeypatch.setattr(places_module, "LEAST_DRAWS", 400)
    monkeypatch.setattr(places_module, "MAX_DRAWS", 400)
    monkeypatch.setattr(places_module, "ENOUGH_HITS", 100)
    wrong = n = 0
    for seed in range(60):
        problem, sensitive, _ = random_problem(seed)
        own = Mixture.uniform(problem.grid)
        regions = oracle.all_regions(problem)
        hits = np.array([sensitive[tuple(region)] for region in regions.tolist()])
        found = PlaceFinder(problem, own, Settings(seed=seed, delta=0.2, jobs=1)).places()
        if not found:
            continue
        holds = True
        for place in found:
            assert not place.exact
            assert place.confidence == 0.8
            here = is_in(regions, box_of(problem, place))
            n_hits = (here & hits).sum()
            truths = (n_hits / len(hits), n_hits / here.sum(), n_hits / hits.sum())
            intervals = zip(truths, (place.weight, place.within, place.part), strict=True)
            holds &= all(i.low - 1e-9 <= t <= i.high + 1e-9 for t, i in intervals)
        n += 1
        wrong += not holds
    assert n > 10
    assert wrong <= 0.2 * n


def test_nothing_stands_out_where_everything_is_alike() -> None:
    """All is sensitive, nothing is, or the cells of nothing else matter."""
    everywhere = ensemble_of((0, 0.5, 0.0, 2.0), (1, 3.0, 0.0, 0.1))
    nowhere = ensemble_of((0, 0.5, 0.0, 0.2), (1, 3.0, 0.0, 0.1))
    for model in (everywhere, nowhere):
        problem = problem_of(model)
        assert not places_of(problem)


def test_where_a_change_starts_can_be_a_place() -> None:
    """A condition on the sensitive feature: the mask that is sensitive, its neighbours or not."""
    model = ensemble_of(
        *((0, float(t), 0.0, 0.1) for t in range(1, 20)), (0, 19.5, 0.0, 5.0), n_features=2
    )
    problem = problem_of(model)
    (place,) = places_of(problem)
    assert place.text == "f0 >= 19"
    assert place.within.least == 1.0
    assert place.weight.least == pytest.approx(2 / 21)


def test_places_in_a_domain() -> None:
    """Rules and conditions: only regions that exist count, and none is another's neighbour."""
    domain = Domain.of(where="f3 >= 28", rule="f1 < 24 -> f2 < 44")
    problem = problem_of(model_with_a_place(), domain)
    found = places_of(problem)
    assert found
    for place in found:
        counted = xcount.count(
            model_with_a_place(),
            sensitive="f0",
            gap=1,
            domain=Domain.of(domain, where=place.conditions),
        )
        assert place.within.least == pytest.approx(counted.share, abs=1e-12)


def test_an_interrupt_is_heard() -> None:
    """While regions are drawn."""

    def stop(_: Progress) -> None:
        raise KeyboardInterrupt

    problem = problem_of(model_with_a_place())
    finder = PlaceFinder(problem, Mixture.uniform(problem.grid), Settings(on_progress=stop))
    with pytest.raises(KeyboardInterrupt):
        finder.places()


def test_the_seed_decides() -> None:
    """The same seed finds the same places, however many threads there are."""
    problem = problem_of(model_with_a_place())
    own = Mixture.uniform(problem.grid)
    one, two = (PlaceFinder(problem, own, Settings(seed=5, jobs=j)).places() for j in (1, 2))
    assert one == two
