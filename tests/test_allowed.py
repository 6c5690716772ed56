"""From whom to whom, and what moves along: every counter against the definition."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import question_oracle
from allowed_worlds import ChangingWorld, Region, random_change, random_changing_world

from xcount.answers.count import solve
from xcount.answers.explain.explorer import Explorer
from xcount.answers.witness.search import RegionFinder
from xcount.answers.witness.witnesses import _Maker
from xcount.counters.settings import Settings
from xcount.counters.tally import Method
from xcount.errors import QueryError
from xcount.measures.shares import measure
from xcount.measures.weighting import Weighing
from xcount.problem.problem import Problem
from xcount.question.domain import Domain
from xcount.question.grid import Grid
from xcount.question.query import Query
from xcount.verified.question_file import question_text

pytestmark = pytest.mark.filterwarnings(
    "ignore:the cut-off .* is a margin:xcount.errors.QueryWarning"
)
DISTANCES = (1, 2, None, None)
N_WORLDS = 60


def problem_of(
    world: ChangingWorld, sensitive: list[str], distance: int | None, change: dict[str, Any]
) -> Problem:
    """Return the question as the package asks it."""
    domain = Domain.of(**world.words)
    ensemble = domain.pulled_back(world.ensemble)
    missing = ("auto" if world.closed_missing else "cell") if world.missing else "none"
    names = ensemble.feature_names
    grid = Grid.of(ensemble, missing=missing, missing_in=names, domain=domain)  # type: ignore[arg-type]
    if world.rising:
        features = frozenset(names.index(name) for name in sensitive)
        none = frozenset[int]()
        rising, falling = (features, none) if world.rising > 0 else (none, features)
        grid = replace(grid, allowed=replace(grid.allowed, rising=rising, falling=falling))
    return Problem(ensemble, grid, Query.of(ensemble, sensitive, distance=distance, **change))


def questions(
    block: int, n_rules: int = 0, n_worlds: int = N_WORLDS, rising: bool = False
) -> Iterator[tuple[Any, ChangingWorld, Problem, dict[Region, bool], list[str]]]:
    """Yield random questions that are not refused, with the answer by definition."""
    n_asked = 0
    for seed in range(block * n_worlds, (block + 1) * n_worlds):
        world, sensitive = random_changing_world(seed, n_rules)
        if rising:
            world = replace(world, rising=1 if seed % 2 else -1)
        distance, change = DISTANCES[seed % 4], random_change(seed, world)
        try:
            problem = problem_of(world, sensitive, distance, change)
        except QueryError as error:
            message = str(error)
            assert any(words in message for words in ("no region is left", "cannot change"))
            continue
        expected = world.sensitive_regions(sensitive, distance, **change)
        yield (seed, change), world, problem, expected, sensitive
        n_asked += 1
    assert n_asked > n_worlds // 3


def check_counts(
    what: Any, world: ChangingWorld, problem: Problem, expected: dict[Region, bool], names: Any
) -> None:
    """Compare all counts of a question with the definition."""
    truth = sum(expected.values())
    assert (what, problem.n_regions) == (what, len(expected))
    for method in (Method.VISIT, Method.EXACT, Method.AUTO):
        settings = Settings(jobs=1, delta=1e-6, want_profile=method is Method.EXACT)
        found = solve(problem, settings, method)
        if method is Method.EXACT and problem.form.only_bounds:
            assert (what, found.low <= truth <= found.high) == (what, True)
            continue
        assert (what, method, found.count, found.exact) == (what, method, truth, True)
        assert (what, found.n_fixed) == (what, world.n_fixed(names))
        if method is Method.EXACT and found.profile is not None:
            assert sum(mask.low for mask in found.profile.masks) == truth
    settings = Settings(jobs=1, delta=1e-6, may_visit=False, timeout_seconds=1.0)
    for method in (Method.AUTO, Method.SAMPLE):
        found = solve(problem, settings, method)
        assert (what, method, found.low <= truth <= found.high) == (what, method, True)


@pytest.mark.parametrize("n_rules", [0, 2])
@pytest.mark.parametrize("block", range(3))
def test_counts_are_those_of_the_definition(block: int, n_rules: int) -> None:
    """By every method, for every change, in domains with groups, rules and missing values."""
    n_hits = 0
    for what, world, problem, expected, names in questions(block, n_rules):
        check_counts(what, world, problem, expected, names)
        n_hits += any(expected.values())
    assert n_hits > 5


@pytest.mark.parametrize("block", range(2))
def test_changes_may_be_only_upwards_or_downwards(block: int) -> None:
    """Along features with an order."""
    for what, world, problem, expected, names in questions(block + 10, rising=True):
        check_counts(what, world, problem, expected, names)


@pytest.mark.parametrize("block", range(2))
def test_shares_are_those_of_the_definition(block: int) -> None:
    """Of rows, and of a product of marginals."""
    for what, world, problem, expected, _ in questions(block + 20, n_rules=block):
        points = world.regions()
        rng = np.random.default_rng([what[0], 80])
        regions = list(points)
        chosen = [regions[i] for i in rng.integers(len(regions), size=40)]
        rows = [points[region] for region in chosen]
        if not any(region in expected for region in chosen):
            continue
        weighing = Weighing.of(problem.ensemble, ("rows", "marginals"), np.array(rows))
        try:
            found = measure(problem, weighing, Settings(jobs=1, delta=1e-6))
        except QueryError:  # no start has any weight
            assert not _marginal_weights(world, chosen, expected)
            continue
        details = found["rows"].details
        hits = sum(expected.get(region, False) for region in chosen)
        asked = sum(region in expected for region in chosen)
        assert (what, details["n_sensitive"]) == (what, hits)
        assert (what, details["outside"], details["left_out"]) == (what, len(rows) - asked, 0)
        weights = _marginal_weights(world, chosen, expected)
        share = sum(w for r, w in weights.items() if expected[r]) / sum(weights.values())
        interval = found["marginals"].interval
        assert (what, interval.low - 1e-9 <= share <= interval.high + 1e-9) == (what, True)


def _marginal_weights(
    world: ChangingWorld, rows: list[Region], expected: dict[Region, bool]
) -> dict[Region, float]:
    """Return the weights of the starts if features were independent."""
    shares = [
        {cell: sum(row[f] == cell for row in rows) / len(rows) for cell in {r[f] for r in rows}}
        for f in range(len(world.features))
    ]
    weights = {
        region: math.prod(own.get(cell, 0.0) for own, cell in zip(shares, region, strict=True))
        for region in expected
    }
    return {region: weight for region, weight in weights.items() if weight}


@pytest.mark.parametrize("block", range(2))
def test_question_files_say_the_same(block: int) -> None:
    """A reader written from the format's document counts as many regions."""
    n_asked = 0
    for what, _, problem, expected, _ in questions(block + 30, n_rules=block):
        try:
            text = question_text(problem)
        except QueryError:
            continue
        n_asked += 1
        assert (what, question_oracle.count(text)) == (what, sum(expected.values()))
    assert n_asked > 10


@pytest.mark.parametrize("block", range(2))
def test_witnesses_are_allowed_changes(block: int) -> None:
    """A witness starts at a sensitive region, and ends where a change may end."""
    n_found = 0
    for what, world, problem, expected, names in questions(block + 40, n_rules=block):
        if not any(expected.values()):
            continue
        finder = RegionFinder(problem, Settings(jobs=1))
        reached = world._reached(names, problem.query.distance, dict(what[1]))
        by_sums = {}
        for region in finder.draw(3):
            witness = _Maker(finder).witness(region)
            start, end = (world.region_of(p) for p in (witness.point, witness.other))
            assert (what, expected.get(start)) == (what, True)
            assert (what, dict(reached[start])[end]) == (what, True)
            by_sums[start] = end
            n_found += 1
    assert n_found > 5


@pytest.mark.parametrize("seed", range(30))
def test_explanations_find_how_far_regions_can_move(seed: int) -> None:
    """The share beyond the gap is the count's, if all regions are evaluated."""
    world, sensitive = random_changing_world(seed + 5000)
    gap = Fraction(1, 2)
    try:
        problem = problem_of(world, sensitive, None, {"gap": gap})
    except QueryError:
        return
    truth = world.sensitive_regions(sensitive, None, gap=gap)
    spectra = Explorer(problem, Settings(jobs=1), None, ["regions"]).spectra([gap])
    found, _, _ = spectra.by_measure["regions"].asked[gap]
    assert found.value == pytest.approx(sum(truth.values()) / len(truth))
