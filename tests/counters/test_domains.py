"""Counts in a domain: every counter finds what enumeration of its points finds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from domains import Value, World, random_world
from oracle import all_regions

import xcount
from xcount.counters import counter
from xcount.counters import parts as count_in_parts
from xcount.counters.costs import Thresholds
from xcount.counters.decisions import RegionDecider
from xcount.counters.parts import count_parts
from xcount.counters.region_search import RegionSearch
from xcount.counters.sampling.box_draws import BoxDraws
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason, Tally
from xcount.errors import QueryError
from xcount.measures.fitting import fit_population
from xcount.measures.population import Population
from xcount.measures.shares import measure
from xcount.measures.weighting import Weighing, volume_weights
from xcount.model.examples import ensemble_of, figure_1
from xcount.problem.parts import Part, parts_of
from xcount.problem.problem import Problem
from xcount.question.domain import Domain
from xcount.question.grid import Grid
from xcount.question.query import Query

METHODS = ("auto", "exact", "brute", "sample")
PAPER = ("xcount-exact-union", "add-baseline", "add-baseline-plain")


def ask(
    world: World,
    method: str,
    names: list[str],
    distance: int | None,
    gap: Any,
    profile: bool = False,
) -> Any:
    """Count in a world with the package."""
    change = {"flip": True, "cutoff": 0} if gap is None else {"gap": gap}
    return xcount.count(
        world.ensemble,
        sensitive=names,
        distance="any" if distance is None else distance,
        missing="cell" if world.missing else "none",
        method=method,
        profile=profile,
        epsilon=0.1 if method == "sample" else 1e-9,
        delta=1e-5,  # hundreds of intervals, and none may miss
        **change,
        **world.words,
    )


def question(world: World, seed: int) -> tuple[list[str], int | None, Fraction | None]:
    """Return random sensitive features, a distance, and a gap (or a flip)."""
    rng = np.random.default_rng([seed, 5])
    n = int(rng.integers(1, min(2, len(world.features)) + 1))
    names = [str(name) for name in rng.choice(world.features, n, replace=False)]
    distance = [1, 2, 3, None][int(rng.integers(4))]
    gap = [Fraction(0), Fraction(1, 2), Fraction(3, 10), Fraction(1), None][int(rng.integers(5))]
    return names, distance, gap


def is_refused(world: World, names: list[str], expected: tuple[int, int]) -> bool:
    """Tell whether the domain has no region, or fixes a sensitive feature."""
    whole = replace(world, where=(), rules=())
    fixed = [
        not world.changes_somewhere(name, names)
        if world.can_change(name)
        else whole.can_change(name)
        for name in names
    ]
    return expected[1] == 0 or all(fixed)


def check(seed: int, method: str, n_rules: int = 0) -> bool:
    """Count in a random world; return whether there was anything to count."""
    world = random_world(seed, n_rules)
    names, distance, gap = question(world, seed)
    expected = world.count(names, distance, gap)
    if is_refused(world, names, expected):
        with pytest.raises(QueryError, match=r"no region is left|cannot change"):
            ask(world, method, names, distance, gap)
        return False
    result = ask(world, method, names, distance, gap)
    assert result.n_regions == expected[1]
    assert result.low <= expected[0] <= result.high
    assert result.exact or method == "sample"
    return True


@pytest.mark.parametrize("method", METHODS)
def test_counts_are_those_of_the_points_of_the_domain(method: str) -> None:
    """All of our counters, on random models, groups and conditions."""
    assert sum(check(seed, method) for seed in range(80)) > 40


@pytest.mark.parametrize("method", PAPER)
def test_the_papers_algorithms_know_domains(method: str) -> None:
    """A domain is a grid like any other, but for the distances of its cells."""
    seeds = [seed for seed in range(60) if question(random_world(seed), seed)[2] is not None]
    assert sum(check(seed, method) for seed in seeds) > 15


@pytest.mark.parametrize("method", METHODS)
def test_rules_leave_out_what_breaks_them(method: str) -> None:
    """Rules between any features, the sensitive ones included."""
    assert sum(check(seed, method, n_rules=1 + seed % 3) for seed in range(80)) > 45


def sigmoid(margin: Fraction) -> float:
    """Return the probability that belongs to a margin."""
    return 1 / (1 + math.exp(-margin))


CHANGES: dict[str, tuple[dict[str, Any], Callable[[Fraction, Fraction], bool]]] = {
    "gap up": ({"gap": "0.3", "direction": "up"}, lambda a, b: b - a > Fraction(3, 10)),
    "gap down": ({"gap": "0.3", "direction": "down"}, lambda a, b: a - b > Fraction(3, 10)),
    "probability": (
        {"probability_gap": "0.0731"},
        lambda a, b: abs(sigmoid(b) - sigmoid(a)) > 0.0731,
    ),
    "probability up": (
        {"probability_gap": "0.0731", "direction": "up"},
        lambda a, b: sigmoid(b) - sigmoid(a) > 0.0731,
    ),
    "flip down": (
        {"flip": True, "cutoff": 0, "direction": "down"},
        lambda a, b: a > 0 >= b,
    ),
    "sure flip": (
        {"flip": True, "cutoff": 0, "from_probability": "0.5813"},
        lambda a, b: (a > 0) != (b > 0) and max(sigmoid(a), sigmoid(-a)) >= 0.5813,
    ),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", CHANGES)
def test_every_change_is_counted_within_rules(name: str, method: str) -> None:
    """Directions, probabilities and sure flips, too."""
    options, differs = CHANGES[name]
    n_counted = 0
    for seed in range(12):
        world = random_world(seed + 200, n_rules=seed % 3)
        world = replace(world, ensemble=replace(world.ensemble, probability="sigmoid"))
        names, distance, _ = question(world, seed)
        expected = world.count(names, distance, None, differs)
        if is_refused(world, names, expected):
            continue
        result = xcount.count(
            world.ensemble,
            sensitive=names,
            distance="any" if distance is None else distance,
            missing="cell" if world.missing else "none",
            method=method,
            epsilon=0.1 if method == "sample" else 1e-9,
            **options,
            **world.words,
        )
        assert result.low <= expected[0] <= result.high
        assert result.n_regions == expected[1]
        assert result.exact or method == "sample"
        n_counted += 1
    assert n_counted > 5


@pytest.mark.parametrize(
    ("words", "exists"),
    [
        ({}, lambda x, y: True),
        ({"where": "1.5 <= f0 < 6"}, lambda x, y: 1.5 <= x < 6),
        ({"rule": "f0 < 2.5 -> f1 < 1"}, lambda x, y: x >= 2.5 or y < 1),
    ],
)
def test_tests_of_ranges_are_decided_in_the_cells_that_are_left(
    words: dict[str, Any], exists: Callable[[float, float], bool]
) -> None:
    """As binning makes them: left iff 1 <= x < 3 or 5 <= x."""
    plain = ensemble_of((0, 2.0, 1.0, 0.0), (0, 4.0, (1, 1.0, 0.5, 0.0), 0.0))
    binned = replace(plain.trees[0], threshold=np.full(3, np.nan), left_ranges={0: (1.0, 3.0, 5.0)})
    model = replace(plain, trees=(binned, plain.trees[1]))
    cuts = (1, 2.5, 3, 4, 5) if "rule" in words else (1, 3, 4, 5)
    points = [(x / 2, y) for x in range(14) for y in (0, 1) if exists(x / 2, y)]
    values = {p: float(model.predict(np.array([p], dtype=float))[0, 0]) for p in points}
    cells = {p: (sum(cut <= p[0] for cut in cuts), p[1]) for p in points}
    sensitive = {
        cells[p]
        for p in points
        if any(p[1] == q[1] and abs(values[p] - values[q]) > 0.75 for q in points)
    }
    for method in METHODS:
        asked: dict[str, Any] = {"sensitive": "f0", "gap": "0.75", "distance": "any", **words}
        found = xcount.count(model, method=method, **asked)
        assert found.n_regions == len(set(cells.values()))
        assert found.low <= len(sensitive) <= found.high


def test_the_papers_algorithms_say_that_they_know_no_rules() -> None:
    """Rather than count what does not exist."""
    world = random_world(1, n_rules=1)
    with pytest.raises(QueryError, match="knows no rules"):
        ask(world, "xcount", world.features[:1], 1, Fraction(1))


@pytest.mark.parametrize("seed", range(40))
def test_regions_are_decided_one_by_one_in_a_domain(seed: int) -> None:
    """By masks, and by the search for single regions where there are no rules."""
    world = random_world(seed, n_rules=seed % 3)
    names, distance, gap = question(world, seed)
    expected = world.count(names, distance, gap)
    if is_refused(world, names, expected):
        return
    problem = problem_of(world, names, distance, gap)
    regions = all_regions(problem)
    exists = problem.grid.exists(regions)
    assert exists.sum() == expected[1]
    assert RegionDecider(problem).decide_regions(regions).sum() == expected[0]
    if not problem.grid.rules:
        found = RegionSearch(problem.form.corner_question).decide(regions)
        assert found.sum() == expected[0]


def weighed_problem(seed: int, n_rules: int) -> Problem | None:
    """Return a question about a gap in a random domain; None where it is refused."""
    world = random_world(seed, n_rules=n_rules)
    names, distance, gap = question(world, seed)
    if gap is None or is_refused(world, names, world.count(names, distance, gap)):
        return None
    return problem_of(world, names, distance, gap)


@pytest.mark.parametrize("seed", range(30))
def test_measures_are_conditioned_on_the_domain(seed: int) -> None:
    """The weight of what is sensitive, divided by that of what exists."""
    problem = weighed_problem(seed, n_rules=seed % 3)
    if problem is None:
        return
    bounds = {
        axis.feature.name: (-10.0, 10.0)
        for axis in problem.grid.axes
        if not axis.feature.is_categorical
    }
    weighing = Weighing.of(problem.ensemble, "volume", bounds=bounds)
    if any(axis.missing_cell == 0 for axis in problem.grid.axes):
        with pytest.raises(QueryError, match="always missing"):
            volume_weights(problem.grid, weighing)
        return
    weights = volume_weights(problem.grid, weighing)[0]
    regions = all_regions(problem)
    masses = np.prod([w[cells] for w, cells in zip(weights, regions.T, strict=True)], axis=0)
    masses = masses * problem.grid.exists(regions)
    if not masses.sum():
        with pytest.raises(QueryError, match="nothing of the domain has any weight"):
            measure(problem, weighing)
        return
    found = measure(problem, weighing)["volume"]
    flags = RegionDecider(problem).decide_regions(regions)
    assert found.interval.is_settled
    assert found.share == pytest.approx(masses[flags].sum() / masses.sum())


@pytest.mark.filterwarnings("ignore::xcount.errors.QueryWarning")  # some values are missing
@pytest.mark.parametrize("seed", range(30))
def test_a_population_is_conditioned_on_the_domain(seed: int) -> None:
    """It is fitted to all rows; what it weighs is what exists."""
    problem = weighed_problem(seed, n_rules=seed % 3)
    if problem is None:
        return
    population = fit_population(problem.grid, random_rows(problem.ensemble, seed))
    weighing = Weighing(("population",), population=population)
    regions = all_regions(problem)
    regions = regions[problem.grid.exists(regions)]
    points = [problem.grid.point(region) for region in regions]
    masses = np.array([probability(population, point) for point in points])
    found = measure(problem, weighing)["population"]
    flags = RegionDecider(problem).decide_regions(regions)
    assert found.interval.is_settled
    assert found.share == pytest.approx(masses[flags].sum() / masses.sum())


def random_rows(ensemble: xcount.Ensemble, seed: int) -> np.ndarray:
    """Return two kinds of rows, so that a component is not enough; some values are missing."""
    rng = np.random.default_rng([seed, 6])
    is_other = rng.random(200) < 0.4
    columns = [
        rng.normal(3 * is_other, 1).round(1)
        if feature.categories is None
        else np.where(is_other, feature.categories[0], rng.choice(feature.categories, 200))
        for feature in ensemble.features
    ]
    rows = np.column_stack(columns).astype(float)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    return rows


def probability(population: Population, point: np.ndarray) -> float:
    """Return what the cells of the population that a point lies in weigh."""
    product = population.weights.copy()
    for column, value in zip(population.columns, point, strict=True):
        if math.isnan(value):
            cell = len(column.probabilities) - 1
        elif column.classes is None:
            cell = sum(guard <= value for guard in column.guards)
        else:
            cell = next(i for i, codes in enumerate(column.classes) if int(value) in codes)
        product *= column.probabilities[cell]
    return float(product.sum())


def test_boxes_are_drawn_from_in_proportion_and_never_outside() -> None:
    """The mean of all outcomes is the share, whatever the boxes are like."""
    n_drawn = 0
    for seed in range(40):
        world = random_world(seed, n_rules=2)
        names, distance, gap = question(world, seed)
        expected = world.count(names, distance, gap)
        if gap is None or is_refused(world, names, expected):
            continue
        problem = problem_of(world, names, distance, gap)
        parts = parts_of(problem)
        draws = BoxDraws(problem, parts)
        regions = draws.regions(np.random.default_rng(seed), 200)
        inside = [part.rows_of(regions) for part in parts]
        assert sorted(np.concatenate(inside).tolist()) == list(range(200))
        histogram, hits = draws.draw(seed, 0, 0, 8, 1)
        share = expected[0] / expected[1]
        n, values = histogram.sum(), np.arange(len(histogram)) / draws.levels
        error = 4.5 * math.sqrt(max(share * (1 - share), 1e-9) / n)
        assert abs(float(values @ histogram) / n - share) <= error
        assert abs(hits.mean() - share) <= error
        n_drawn += 1
    assert n_drawn > 15


def test_an_interrupt_of_one_part_ends_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other parts are neither visited nor sampled after it."""
    asked = []

    def visited(problem: Problem, _: Settings, method: str) -> Tally:
        asked.append(problem)
        return Tally.of_bounds(0, problem.n_regions, method, StopReason.INTERRUPTED)

    monkeypatch.setattr(count_in_parts, "visited", visited)
    result = xcount.count(figure_1(), sensitive="f0", gap=60, rule="f1 < 2 -> f0 < 4")
    assert result.stop_reason is StopReason.INTERRUPTED
    assert (result.low, result.high, len(asked)) == (0, 8, 1)


def test_an_interrupt_leaves_what_the_parts_before_it_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Parts that are counted stay counted, and bounds of others hold."""
    counted = count_in_parts._counted_part
    n_narrow = 0
    for seed in range(30):
        world = random_world(seed, n_rules=2)
        names, distance, gap = question(world, seed)
        expected = world.count(names, distance, gap)
        if is_refused(world, names, expected):
            continue
        asked: list[Part] = []

        def first_alone(part: Part, *more: Any, asked: list[Part] = asked) -> Tally:
            asked.append(part)
            if len(asked) > 1:
                raise KeyboardInterrupt
            return counted(part, *more)

        monkeypatch.setattr(count_in_parts, "_counted_part", first_alone)
        result = ask(world, "auto", names, distance, gap)
        assert result.low <= expected[0] <= result.high
        if len(asked) > 1:
            assert result.stop_reason is StopReason.INTERRUPTED
            n_narrow += result.high - result.low < result.n_regions
    assert n_narrow > 5


@pytest.mark.slow
def test_open_parts_are_estimated_together() -> None:
    """With one interval for their sum, also beside parts that are counted exactly."""
    thresholds = Thresholds(instant_seconds=0.0, visit_seconds=0.0, parts_steps=30)
    n_estimated = n_right = 0
    for seed in range(60):
        world = random_world(seed, n_rules=1 + seed % 3)
        names, distance, gap = question(world, seed)
        expected = world.count(names, distance, gap)
        if gap is None or is_refused(world, names, expected):
            continue
        for method in ("auto", "sample"):
            problem = problem_of(world, names, distance, gap)
            settings = Settings(seed=seed, thresholds=thresholds)
            found = count_parts(problem, parts_of(problem), settings, counter(method), method)
            is_exact = found.low == found.high and found.confidence == 1
            n_estimated += not is_exact
            n_right += not is_exact and found.low <= expected[0] <= found.high
            assert not is_exact or found.count == expected[0]
    assert n_estimated > 20
    assert n_right >= 0.9 * n_estimated


@pytest.mark.parametrize("seed", range(30))
def test_witnesses_lie_in_the_domain(seed: int) -> None:
    """On both sides; and there are some iff there is a count."""
    world = random_world(seed, n_rules=1 + seed % 2)
    names, distance, gap = question(world, seed)
    expected = world.count(names, distance, gap)
    if is_refused(world, names, expected):
        return
    change: dict[str, Any] = {"flip": True, "cutoff": 0} if gap is None else {"gap": gap}
    found = xcount.witnesses(
        world.ensemble,
        sensitive=names,
        distance="any" if distance is None else distance,
        missing="cell" if world.missing else "none",
        n=5,
        **change,
        **world.words,
    )
    assert bool(found) == (expected[0] > 0)
    for witness in found:
        for point, labels in (
            (witness.point, witness.labels),
            (witness.other, witness.other_labels),
        ):
            values = values_of(world, dict(zip(witness.features, point, strict=True)), labels)
            assert world.keeps_rules(values)
            assert all(atom(values[atom.feature]) for atom in world.where)


def values_of(world: World, point: dict[str, float], labels: Mapping[str, str]) -> dict[str, Value]:
    """Return a point as conditions see it: numbers, labels, and None for missing values."""
    values: dict[str, Value] = {}
    for name, number in point.items():
        names = world.ensemble.feature_names
        is_category = name in names and world.ensemble.features[names.index(name)].is_categorical
        known = str(int(number)) if is_category and not math.isnan(number) else number
        values[name] = None if math.isnan(number) else labels.get(name, known)
    return values


@pytest.mark.parametrize("method", ["auto", "exact"])
def test_a_profile_adds_up_over_the_boxes_of_a_domain(method: str) -> None:
    """By mask, of all that exists."""
    for seed in range(20):
        world = random_world(seed, n_rules=2)
        names, distance, gap = question(world, seed)
        expected = world.count(names, distance, gap)
        if gap is None or is_refused(world, names, expected):
            continue
        result = ask(world, method, names, distance, gap, profile=True)
        assert result.profile is not None
        assert sum(mask.low for mask in result.profile.masks) == expected[0]
        sizes = [mask.n_combinations for mask in result.profile.masks]
        assert sum(sizes) <= expected[1]


def test_a_rule_that_conditions_imply_changes_nothing() -> None:
    """And one whose supposition never holds neither."""
    for seed in range(40):
        world = random_world(seed)
        names, distance, gap = question(world, seed)
        if is_refused(world, names, world.count(names, distance, gap)) or not world.where:
            continue
        plain = ask(world, "exact", names, distance, gap)
        first = world.where[0]
        implied = World(
            world.ensemble, world.groups, world.where, (((first,), (first,)),), world.missing
        )
        within = ask(implied, "exact", names, distance, gap)
        assert within.count == implied.count(names, distance, gap)[0]
        if not first.bounds:
            assert (plain.count, plain.n_regions) == (within.count, within.n_regions)


def problem_of(
    world: World, names: list[str], distance: int | None, gap: Fraction | None
) -> Problem:
    """Return the question on the cells of the world's domain: a gap, or a flip."""
    domain = Domain.of(**world.words)
    ensemble = domain.pulled_back(world.ensemble)
    grid = Grid.of(ensemble, missing="cell" if world.missing else "none", domain=domain)
    words: dict[str, Any] = {"flip": True, "cutoff": 0} if gap is None else {"gap": gap}
    return Problem(ensemble, grid, Query.of(ensemble, names, distance=distance, **words))


def many_parts() -> tuple[Problem, tuple[Part, ...]]:
    """Return a question with a rule for each pair of features, and so 32 parts."""
    trees = [(f, t, -0.2, (0, t, 0.1, 0.3)) for f in range(11) for t in (0.25, 0.5, 0.75)]
    model = ensemble_of(*trees)
    rules = [f"f{2 * i + 1} < 0.5 -> f{2 * i + 2} < 0.75" for i in range(5)]
    grid = Grid.of(model, domain=Domain.of(rule=rules))
    problem = Problem(model, grid, Query.of(model, "f0", "0.45"))
    return problem, parts_of(problem)


@pytest.mark.parametrize("method", ["auto", "exact"])
def test_trees_are_laid_out_on_one_part_at_a_time(method: str) -> None:
    """Not on all of them: that took gigabytes."""
    problem, parts = many_parts()
    assert len(parts) >= 32
    tally = count_parts(problem, parts, Settings(jobs=1), counter(method, problem), method)
    assert tally.low == tally.high
    assert not any("form" in part.problem.__dict__ for part in parts)


def test_parts_that_no_time_or_memory_is_left_for_are_open() -> None:
    """And no trees are laid out on them."""
    problem, parts = many_parts()
    for settings, reason in (
        (Settings(jobs=1, timeout_seconds=0.0), StopReason.TIMEOUT),
        (Settings(jobs=1, memory_bytes=1), StopReason.MEMORY),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(count_in_parts, "BYTES_PER_LAID_NODE", 10**9)
            found = count_in_parts._counted_soon(problem, parts, settings)
        assert {tally.stop_reason for tally in found} == {reason}
        assert [tally.high for tally in found] == [part.problem.n_regions for part in parts]
