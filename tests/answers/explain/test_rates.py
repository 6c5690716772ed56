"""Group rates: against enumeration with weights, the library's predictions, and Fairlearn."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import oracle
import pytest
from domains import random_world
from measure_problems import random_population, random_problem
from numpy.typing import NDArray

from xcount.answers.explain import groups as groups_module
from xcount.answers.explain import rates as group_rates_module
from xcount.answers.explain.decided import Decision
from xcount.answers.explain.groups import groups_of
from xcount.answers.explain.rates import decision_of, group_rates
from xcount.answers.explanation import GroupRates
from xcount.counters.settings import Settings
from xcount.errors import BudgetError, QueryError
from xcount.measures.measure import Measure
from xcount.measures.mixture import Mixture
from xcount.measures.rows import Rows
from xcount.measures.shares import measure_of
from xcount.measures.weighting import Weighing
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.examples import ensemble_of, figure_1
from xcount.model.inputs import Inputs
from xcount.problem.problem import Problem
from xcount.question.domain import Domain
from xcount.question.grid import Axis, Grid
from xcount.question.query import Query

MEASURES = ("regions", "volume", "marginals", "rows", "population")


def asked(seed: int) -> tuple[Problem, Weighing, Decision]:
    """Return a question, its data and population, and a decision."""
    problem, _, weighing = random_problem(seed)
    weighing = Weighing(
        MEASURES[1:], weighing.inputs, "rows", weighing.bounds, random_population(problem, seed)
    )
    favourable = "0" if problem.ensemble.n_outputs > 1 else [None, "above", "below"][seed % 3]
    return problem, weighing, decision_of(problem.ensemble, problem.query.change, favourable)


def weights_of(own: Measure, regions: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return what each region weighs, region by region."""
    if isinstance(own, Rows):
        rows = [tuple(row) for row in own.regions.tolist()]
        return np.array([rows.count(tuple(region)) / len(rows) for region in regions.tolist()])
    assert isinstance(own, Mixture)
    weights = [
        math.fsum(
            c.weight * math.prod(cells[i] for cells, i in zip(c.cell_weights, region, strict=True))
            for c in own.components
        )
        for region in regions.tolist()
    ]
    return np.array(weights) / math.fsum(weights)


def decided(problem: Problem, decision: Decision, regions: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which regions get a decision, by definition."""
    points = (problem.grid.point(region) for region in regions)
    sums = (oracle.margins(problem.ensemble, point.tolist(), None) for point in points)
    return np.array([decision.flip.decision(each) == decision.value for each in sums])


def by_cells(problem: Problem, own: Measure, decision: Decision) -> GroupRates:
    """Return the rates of the groups that cells make."""
    groups = groups_of(problem, own, by_value=False)
    return group_rates(problem, own, decision, Settings(jobs=1), groups)


def in_group(problem: Problem, cells: Any, regions: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which regions are in a group."""
    found = np.ones(len(regions), dtype=np.bool_)
    for feature, own in zip(problem.query.sensitive, cells, strict=True):
        found &= np.isin(regions[:, feature], own)
    return found


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("measure", MEASURES)
def test_rates_are_those_of_enumeration(seed: int, measure: str) -> None:
    """One sum and several classes, categories, missing cells, several sensitive features."""
    problem, weighing, decision = asked(seed)
    own = measure_of(measure, problem.grid, weighing)
    found = by_cells(problem, own, decision)
    regions = oracle.all_regions(problem)
    weights, taken = weights_of(own, regions), decided(problem, decision, regions)
    rates = []
    for group in found.cells:
        here = in_group(problem, group.cells, regions)
        assert group.weight == pytest.approx(weights[here].sum(), abs=1e-12)
        rate = weights[here & taken].sum() / weights[here].sum()
        assert (
            group.rate.low == group.rate.high == group.rate.least == pytest.approx(rate, abs=1e-9)
        )
        rates.append(rate)
    assert found.exact
    assert found.confidence == 1.0
    assert sum(group.weight for group in found.cells) == pytest.approx(1)
    if max(rates) > 1e-9:
        assert found.ratio.value == pytest.approx(min(rates) / max(rates), abs=1e-6)


@pytest.mark.parametrize("seed", range(0, 24, 2))
@pytest.mark.parametrize("measure", MEASURES)
def test_everybody_may_be_put_into_a_cell(seed: int, measure: str) -> None:
    """``if_all``: all others as they are; under a product measure the same as the rate."""
    problem, weighing, decision = asked(seed)
    own = measure_of(measure, problem.grid, weighing)
    found = by_cells(problem, own, decision)
    regions = oracle.all_regions(problem)
    weights = weights_of(own, regions)
    if any(len(own) > 1 for group in found.cells for own in group.cells):
        assert all(group.if_all is None for group in found.cells)
        return
    for group in found.cells:
        moved = regions.copy()
        moved[:, list(problem.query.sensitive)] = [own[0] for own in group.cells]
        rate = weights[decided(problem, decision, moved)].sum()
        assert group.if_all is not None
        assert group.if_all.least == pytest.approx(rate, abs=1e-9)
        if measure not in ("rows", "population"):
            assert group.if_all.least == group.rate.least


@pytest.mark.parametrize("seed", range(30))
def test_rates_keep_to_the_domain(seed: int) -> None:
    """Conditions, one-hot groups and rules: only what exists counts."""
    world = random_world(seed, n_rules=seed % 3)
    domain = Domain.of(**world.words)
    ensemble = domain.pulled_back(world.ensemble)
    try:
        grid = Grid.of(ensemble, missing="cell" if world.missing else "none", domain=domain)
        problem = Problem(ensemble, grid, Query.of(ensemble, 0, "0.5"))
        problem.form.n_terms  # noqa: B018  # refuses what the rules leave nothing of
    except QueryError:
        return
    decision = decision_of(ensemble, problem.query.change)
    found = group_rates(problem, Mixture.uniform(problem.grid), decision, Settings(jobs=1))
    regions = oracle.all_regions(problem)
    regions = regions[grid.exists(regions)]
    taken = decided(problem, decision, regions)
    for group in found.cells:
        here = in_group(problem, group.cells, regions)
        assert group.weight == pytest.approx(here.mean())
        assert group.rate.least == pytest.approx(taken[here].mean())
        assert (group.if_all is None) == (bool(grid.rules) or len(group.cells[0]) > 1)


@pytest.mark.slow
def test_intervals_of_sampled_rates_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of one measure together as often as they say, and the ratio with them."""
    exact, n = {}, 0
    for seed in range(60):
        problem, weighing, decision = asked(seed)
        if problem.query.change.names_class and seed % 2:
            continue
        own = Mixture.population(problem.grid, weighing)
        found = group_rates(problem, own, decision, Settings(jobs=1))
        if any(0 < group.rate.least < 1 for group in found.cells):
            exact[seed] = (problem, own, decision, found)
    monkeypatch.setattr(Mixture, "exact_share", lambda *_: None)
    monkeypatch.setattr(group_rates_module, "LEAST_DRAWS", 300)
    monkeypatch.setattr(group_rates_module, "MAX_DRAWS", 300)
    wrong = 0
    for seed, (problem, own, decision, truth) in exact.items():
        settings = Settings(seed=seed, delta=0.2, jobs=1)
        found = group_rates(problem, own, decision, settings)
        assert not found.exact
        assert found.confidence == 0.8
        assert found.n_samples
        n += 1
        pairs = zip(found.cells, truth.cells, strict=True)
        holds = all(a.rate.low - 1e-12 <= b.rate.least <= a.rate.high + 1e-12 for a, b in pairs)
        if truth.ratio.value is not None:
            is_in = found.ratio.low - 1e-9 <= truth.ratio.value <= found.ratio.high + 1e-9
            assert is_in or not holds
        wrong += not holds
        assert found == group_rates(problem, own, decision, settings)
    assert n > 15
    assert wrong <= 0.2 * n  # Bonferroni and Clopper-Pearson are wider than that


def trained(rows: NDArray[np.float64], target: NDArray[np.int64]) -> tuple[Ensemble, Any]:
    """Return a small forest of scikit-learn, as XCount reads it, and itself."""
    from sklearn.ensemble import RandomForestClassifier

    import xcount

    model = RandomForestClassifier(8, max_depth=3, random_state=0)
    model.fit(rows, np.array(["no", "yes"])[target])
    return xcount.load(model), model


def test_rates_of_rows_are_fairlearns() -> None:
    """Selection rates by group, and the demographic parity ratio, on the library's decisions."""
    from fairlearn.metrics import (  # type: ignore[import-untyped]  # it has no types
        MetricFrame,
        demographic_parity_ratio,
        selection_rate,
    )

    rng = np.random.default_rng(3)
    group = rng.integers(0, 3, 600)
    income = rng.normal(group, 1)
    rows = np.stack([group, income, rng.normal(size=600)], axis=1)
    ensemble, model = trained(rows, (income + rng.normal(size=600) + 0.5 * group > 1).astype(int))
    problem = Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, 0, flip=True))
    weighing = Weighing(("rows",), Inputs.of(rows), "rows")
    decision = decision_of(ensemble, problem.query.change)
    own = Rows.of(problem.grid, weighing)
    found = group_rates(problem, own, decision, Settings())
    assert found.favourable == "yes"
    predicted = (model.predict(rows) == "yes").astype(int)
    cells = problem.grid.cells_of(rows)[:, 0]
    frame = MetricFrame(
        metrics=selection_rate, y_true=predicted, y_pred=predicted, sensitive_features=cells
    )
    assert {g.cells[0][0]: g.rate.least for g in found.cells} == frame.by_group.to_dict()
    assert len(found.cells) == 3
    ratio = demographic_parity_ratio(predicted, predicted, sensitive_features=cells)
    assert found.ratio.value == ratio
    assert 0 < ratio < 1


@pytest.mark.parametrize("categorical", [True, False])
def test_rows_are_told_apart_by_value(categorical: bool) -> None:
    """As Fairlearn does, even where the model makes no difference between values."""
    from fairlearn.metrics import (
        MetricFrame,
        demographic_parity_ratio,
        selection_rate,
    )

    rng = np.random.default_rng(5)
    group = rng.integers(0, 4, 400).astype(float)
    rows = np.stack([group, rng.normal(group / 2, 1)], axis=1)
    feature = (
        Feature("race", (0, 1, 2, 3), ("a", "b", "c", "d")) if categorical else Feature("race")
    )
    model = ensemble_of((1, 1.0, -1.0, 1.0), (0, 1.5, 0.1, -0.1), n_features=2)
    if categorical:
        tree = replace(
            model.trees[1], threshold=np.full(3, np.nan), left_categories={0: frozenset({0, 1})}
        )
        model = replace(model, trees=(model.trees[0], tree))
    model = replace(model, features=(feature, Feature("income")))
    problem = Problem(model, Grid.of(model), Query.of(model, "race", "0.05", distance="any"))
    decision = decision_of(model, problem.query.change)
    weighing = Weighing(("rows",), Inputs.of(rows), "rows")
    found = group_rates(problem, Rows.of(problem.grid, weighing), decision, Settings())
    predicted = (model.predict(rows)[:, 0] > 0).astype(int)
    frame = MetricFrame(
        metrics=selection_rate, y_true=predicted, y_pred=predicted, sensitive_features=group
    )
    assert [g.rate.least for g in found.cells] == frame.by_group.tolist()
    names = "abcd" if categorical else "0123"
    assert [g.text for g in found.cells] == [f"race = {name}" for name in names]
    assert [g.cells for g in found.cells] == [((0,),), ((0,),), ((1,),), ((1,),)]
    ratio = demographic_parity_ratio(predicted, predicted, sensitive_features=group)
    assert found.ratio.value == ratio
    moved = [model.predict(np.stack([np.full(400, v), rows[:, 1]], axis=1)) > 0 for v in range(4)]
    assert [g.if_all.least for g in found.cells if g.if_all] == [m.mean() for m in moved]


def test_many_cells_of_numbers_are_merged_into_ranges() -> None:
    """Of about the same weight, each of neighbours."""
    model = ensemble_of(*((0, float(i), -1.0, 1.0) for i in range(1, 40)), n_features=2)
    problem = Problem(model, Grid.of(model), Query.of(model, "f0", 1))
    own = Mixture.uniform(problem.grid)
    decision = decision_of(model, problem.query.change)
    found = group_rates(problem, own, decision, Settings(jobs=1))
    assert [group.text for group in found.cells] == [
        "f0 < 8",
        "8 <= f0 < 16",
        "16 <= f0 < 24",
        "24 <= f0 < 32",
        "f0 >= 32",
    ]
    assert [group.weight for group in found.cells] == pytest.approx([0.2] * 5)
    assert [group.rate.least for group in found.cells] == pytest.approx([0.0, 0.0, 0.5, 1.0, 1.0])
    assert all(group.if_all is None for group in found.cells)


def test_of_many_categories_the_heaviest_have_a_rate_of_their_own() -> None:
    """The others share one."""
    weights = np.array([0.01, 0.3, 0.02, 0.2, 0.15, 0.0, 0.25, 0.04, *[0.01] * 3, 0.0])
    axis = Axis(Feature("f0", tuple(range(12))), np.empty(0), tuple((code,) for code in range(12)))
    found = groups_module.merged_cells(axis, weights, 5)
    cells = [np.flatnonzero(flags).tolist() for flags in found]
    assert cells == [[1], [3], [4], [6], [0, 2, 5, 7, 8, 9, 10, 11]]


def test_a_decision_is_needed() -> None:
    """A regressor has none; one of several classes must be named; words are checked."""
    model = figure_1()
    gap = Query.of(model, "f0", 80).change
    regressor = replace(model, task="regression", decides_at=None)
    with pytest.raises(QueryError, match="makes no decision"):
        decision_of(regressor, gap)
    with pytest.raises(QueryError, match="no decision 'maybe'; its decisions are"):
        decision_of(model, gap, "maybe")
    classes = replace(model, base=(0.0, 0.0), task="multiclass", class_labels=("a", "b"))
    flip = Query.of(classes, "f0", flip=True).change
    with pytest.raises(QueryError, match="which of the classes a, b is the favourable"):
        decision_of(classes, flip)
    assert decision_of(classes, flip, "b").value == 1
    of_class = Query.of(classes, "f0", 80, class_="a").change
    assert decision_of(classes, of_class).label == "a"
    cutoff = Query.of(regressor, "f0", flip=True, cutoff="1.5").change
    assert decision_of(regressor, cutoff).label == "above 1.5"
    assert decision_of(regressor, cutoff, "below").label == "not above 1.5"


def test_rates_keep_to_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it is over, nothing is counted exactly, and a few people tell of each group."""
    problem = Problem(figure_1(), Grid.of(figure_1()), Query.of(figure_1(), "f0", 80))
    own = Mixture.uniform(problem.grid)
    decision = decision_of(figure_1(), problem.query.change, None)
    monkeypatch.setattr(Mixture, "exact_share", lambda *_: pytest.fail("too late"))
    found = group_rates(problem, own, decision, Settings(timeout_seconds=0.0))
    assert found.n_samples == 3 * group_rates_module.LATE_BLOCK
    assert not found.exact


def test_rates_keep_to_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees that do not fit a second time are not laid out again."""
    problem = Problem(figure_1(), Grid.of(figure_1()), Query.of(figure_1(), "f0", 80))
    own = Mixture.uniform(problem.grid)
    decision = decision_of(figure_1(), problem.query.change, None)
    monkeypatch.setattr("xcount.measures.products.BYTES_PER_LAID_NODE", 10**12)
    with pytest.raises(BudgetError, match=r"would take 10000000 MB more; raise --memory"):
        group_rates(problem, own, decision, Settings())
