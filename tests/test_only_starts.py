"""Cells that a change may leave but not enter: all counters against the definition."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import oracle
import pytest
from test_changes import QUESTIONS

from xcount.answers.count import solve
from xcount.answers.explain.explorer import Explorer
from xcount.answers.witness.search import RegionFinder
from xcount.answers.witness.witnesses import _Maker
from xcount.counters.decisions import RegionDecider
from xcount.counters.settings import Settings
from xcount.counters.tally import Method
from xcount.measures.mixture import Mixture
from xcount.measures.products import ProductComponent
from xcount.measures.weigh import weigh
from xcount.model.ensemble import Ensemble
from xcount.problem.parts import parts_of
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query

pytestmark = pytest.mark.filterwarnings(
    "ignore:the cut-off .* is a margin:xcount.errors.QueryWarning"
)


def closed_categories(ensemble: Ensemble, seed: int) -> list[frozenset[int]]:
    """Return for each feature some categories that may not be entered."""
    rng = np.random.default_rng([seed, 31])
    return [
        frozenset(code for code in feature.categories or () if rng.random() < 0.4)
        for feature in ensemble.features
    ]


def problem_of(
    ensemble: Ensemble, words: dict[str, Any], change: dict[str, Any], closed: list[frozenset[int]]
) -> Problem:
    """Return the question with missing cells and categories that may only be left."""
    grid = Grid.of(ensemble, missing="cell")
    axes = tuple(
        replace(axis, missing_is_target=False, no_targets=codes)
        for axis, codes in zip(grid.axes, closed, strict=True)
    )
    return Problem(ensemble, replace(grid, axes=axes), Query.of(ensemble, **words, **change))


def truth_of(
    ensemble: Ensemble, words: dict[str, Any], change: dict[str, Any], closed: list[frozenset[int]]
) -> dict[tuple[int, ...], bool]:
    """Return which regions are sensitive, by definition."""
    codes = [_cells_of_codes(ensemble, feature) for feature in range(ensemble.n_features)]

    def may_become(feature: int, value: float) -> bool:
        if math.isnan(value):
            return False
        return not closed[feature] or not closed[feature].issuperset(codes[feature][value])

    return oracle.changing_regions(ensemble, **words, missing=True, may_become=may_become, **change)


def _cells_of_codes(ensemble: Ensemble, feature: int) -> dict[float, list[int]]:
    """Return the categories in the cell of each value that stands for a cell."""
    categories = ensemble.features[feature].categories
    if categories is None:
        return {}
    values = oracle.cells(ensemble, feature)
    found: dict[float, list[int]] = {value: [] for value in values}
    for code in categories:
        alike = [v for v in values if not oracle._told_apart(ensemble, feature, code, int(v))]
        found[alike[0]].append(code)
    return found


@pytest.mark.parametrize("block", range(2))
@pytest.mark.parametrize("kind", QUESTIONS)
def test_counts_are_those_of_the_definition(kind: str, block: int) -> None:
    """By every method, region by region, and by mask."""
    n_split = 0
    for seed in range(block * 20, (block + 1) * 20):
        ensemble, words, change = QUESTIONS[kind](seed + 500)
        closed = closed_categories(ensemble, seed)
        problem = problem_of(ensemble, words, change, closed)
        expected = truth_of(ensemble, words, change, closed)
        n_split += problem.is_split
        assert problem.n_regions == len(expected)
        assert sum(part.problem.n_regions for part in parts_of(problem)) in (0, len(expected))
        truth = sum(expected.values())
        what = (kind, seed)
        for method in (Method.VISIT, Method.EXACT, Method.AUTO):
            settings = Settings(jobs=1, delta=1e-6, want_profile=method is Method.EXACT)
            found = solve(problem, settings, method)
            assert (what, method, found.count, found.exact) == (what, method, truth, True)
            if method is Method.EXACT:
                assert found.profile is not None
                assert sum(mask.low for mask in found.profile.masks) == truth
        settings = Settings(jobs=1, delta=1e-6, may_visit=False, timeout_seconds=1.0)
        found = solve(problem, settings, Method.AUTO)
        assert (what, found.low <= truth <= found.high) == (what, True)
        decided = RegionDecider(problem).decide_regions(np.array(list(expected)))
        assert (what, decided.tolist()) == (what, list(expected.values()))
    assert n_split >= 10


@pytest.mark.parametrize("seed", range(30))
def test_shares_are_those_of_the_definition(seed: int) -> None:
    """Under a mixture of products, which weighs cells that may only be left like any others."""
    ensemble, words, change = QUESTIONS["gap"](seed + 900)
    closed = closed_categories(ensemble, seed)
    problem = problem_of(ensemble, words, change, closed)
    expected = truth_of(ensemble, words, change, closed)
    rng = np.random.default_rng([seed, 32])
    products = []
    for weight in (0.25, 0.75):
        cells = [rng.dirichlet(np.ones(n)) for n in problem.grid.cell_counts]
        products.append(ProductComponent(weight, cells))
    mixture = Mixture(name="mixture", grid=problem.grid, components=tuple(products))
    weights = {
        region: sum(
            p.weight * math.prod(own[c] for own, c in zip(p.cell_weights, region, strict=True))
            for p in products
        )
        for region in expected
    }
    truth = math.fsum(weights[region] for region, is_so in expected.items() if is_so)
    for may_visit in (True, False):
        found = weigh(mixture, problem, Settings(jobs=1, delta=1e-6, may_visit=may_visit))
        assert found.interval.low - 1e-9 <= truth <= found.interval.high + 1e-9
        if may_visit:
            assert found.interval.value == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_explanations_find_how_far_regions_can_move(seed: int) -> None:
    """The share beyond the gap is the count's, if all regions are evaluated."""
    ensemble, words, change = QUESTIONS["gap"](seed + 1300)
    closed = closed_categories(ensemble, seed)
    problem = problem_of(ensemble, words, change, closed)
    truth = truth_of(ensemble, words, change, closed)
    asked = Fraction(change["gap"])
    spectra = Explorer(problem, Settings(jobs=1), None, ["regions"]).spectra([asked])
    found, _, _ = spectra.by_measure["regions"].asked[asked]
    assert found.value == pytest.approx(sum(truth.values()) / len(truth))


@pytest.mark.parametrize("seed", range(20))
def test_witnesses_enter_no_closed_cell(seed: int) -> None:
    """A witness starts at any sensitive region, and ends where a change may end."""
    ensemble, words, change = QUESTIONS["gap"](seed + 1700)
    closed = closed_categories(ensemble, seed)
    problem = problem_of(ensemble, words, change, closed)
    expected = truth_of(ensemble, words, change, closed)
    finder = RegionFinder(problem, Settings(jobs=1))
    regions = finder.draw(5)
    assert bool(regions) == any(expected.values())
    for region in regions:
        assert expected[tuple(region.tolist())]
        witness = _Maker(finder).witness(region)
        sides = problem.grid.cells_of([witness.point, witness.other])
        assert problem.grid.may_become(sides[0], sides[1:]).all()
    if regions:
        solutions = finder.draw_solutions(5)
        assert all(expected[tuple(region.tolist())] for region in solutions)
