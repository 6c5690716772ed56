"""Enumeration against the definition, on thousands of tiny ensembles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import oracle
import pytest
from oracle import known
from strategies import SCALES, random_ensemble

import xcount
from xcount.counters import visit
from xcount.counters.costs import Thresholds
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress, StopReason, Tally
from xcount.counters.visit import count_by_visiting
from xcount.errors import BudgetError
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.examples import ensemble_of, figure_1, tree_of
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query

N_ENSEMBLES = 2000


def random_question(seed: int, ensemble: Ensemble) -> dict[str, Any]:
    """Return a question whose gap often equals a difference that occurs."""
    rng = np.random.default_rng([seed, 1])
    n_sensitive = int(rng.integers(1, ensemble.n_features + 1))
    sensitive = sorted(rng.choice(ensemble.n_features, n_sensitive, replace=False).tolist())
    leaves = np.concatenate([tree.value for tree in ensemble.trees])
    tie = abs(Fraction(float(rng.choice(leaves))) - Fraction(float(rng.choice(leaves))))
    gaps = [Fraction(0), Fraction(1, 2), Fraction(1), Fraction(1, 10), tie]
    return {
        "sensitive": sensitive,
        "gap": gaps[int(rng.integers(len(gaps)))],
        "distance": [1, 2, 3, None][int(rng.integers(4))],
        "precision": [None, None, 0, 1, 3][int(rng.integers(5))],
    }


def agree(ensemble: Ensemble, question: dict[str, Any], missing: bool) -> None:
    """Assert that enumeration and the oracle give the same answer."""
    expected = oracle.count(ensemble, missing=missing, **question)
    result = xcount.count(
        ensemble, method="brute", jobs=1, missing="cell" if missing else "none", **question
    )
    assert (result.count, result.n_regions) == expected
    assert result.exact


@pytest.mark.parametrize("block", range(10))
def test_enumeration_agrees_with_the_definition(block: int) -> None:
    """Random ensembles: categories, missing cells, ties at the gap, several sensitive features."""
    size = N_ENSEMBLES // 10
    for seed in range(block * size, (block + 1) * size):
        ensemble = random_ensemble(seed, max_features=3, max_trees=4)
        agree(ensemble, random_question(seed, ensemble), missing=seed % 2 == 1)


@pytest.mark.parametrize("scale", SCALES)
def test_no_leaf_is_too_large_or_too_small(scale: str) -> None:
    """Sums that no float holds (1e300 with 5e-324) are compared exactly."""
    for seed in range(60):
        ensemble = random_ensemble(10_000 + seed, max_features=3, max_trees=4, scale=scale)
        question = random_question(seed, ensemble) | {"precision": None}
        agree(ensemble, question, missing=False)


def test_figure_1_has_2_of_9() -> None:
    """The paper's worked example."""
    result = xcount.count(figure_1(), sensitive="f0", gap=80, method="brute")
    assert (result.count, result.n_regions, result.share) == (2, 9, 2 / 9)


@pytest.mark.parametrize(
    ("trees", "gap", "precision", "expected"),
    [
        ([(0, 0.0, 1.0001, -0.9998)], "2", "exact", 0),
        ([(0, 0.0, 1.990, 0.0), *[(1, 0.0, 0.0, 0.0)] * 11], "2", "exact", 0),
        ([(0, 0.0, 0.001, 0.0), *[(1, 0.0, 0.0, 0.0)] * 51], "0.05", "exact", 0),
        ([(0, 0.0, 0.0008, 0.0)], "0.0005", "exact", 2),
        ([(0, 0.0, 0.0008, 0.0)], "0.0005", 3, 2),
    ],
)
def test_rounding_never_inflates_a_count(
    trees: list[Any], gap: str, precision: str | int, expected: int
) -> None:
    """Rounding one side up and the other down would count all of the first three."""
    ensemble = ensemble_of(*trees)
    result = xcount.count(ensemble, sensitive="f0", gap=gap, precision=precision, method="brute")
    assert result.count == expected


def test_a_gap_met_exactly_does_not_count() -> None:
    """The comparison is strict, also where floats would round: 0.1 + 0.2 against 0.3."""
    ensemble = ensemble_of((0, 0.0, 0.1, 0.0), (0, 0.0, 0.2, 0.0))
    exact_sum = Fraction(0.1) + Fraction(0.2)
    assert xcount.count(ensemble, sensitive=0, gap=exact_sum, method="brute").count == 0
    assert xcount.count(ensemble, sensitive=0, gap="0.3", method="brute").count == 2
    rounded = xcount.count(ensemble, sensitive=0, gap="0.3", precision=1, method="brute")
    assert rounded.count == 0


def test_a_divisor_divides_every_leaf() -> None:
    """A forest of three trees averages: the change is 1/3 of the leaf's, exactly."""
    averaged = Ensemble(
        features=ensemble_of((0, 0.0, 1.0, 0.0)).features,
        trees=ensemble_of((0, 0.0, 1.0, 0.0)).trees,
        divisor=3,
    )
    third = Fraction(1, 3)
    for gap, expected in [(third, 0), (third - Fraction(1, 10**20), 2), ("0.3333333333", 2)]:
        assert xcount.count(averaged, sensitive=0, gap=gap, method="brute").count == expected


def test_a_feature_no_tree_tests_has_no_sensitive_region() -> None:
    """One cell, nowhere to go: 0, exactly."""
    ensemble = ensemble_of((0, 0.0, 5.0, 0.0), n_features=3)
    result = xcount.count(ensemble, sensitive="f2", gap=0, method="brute")
    assert (result.count, result.n_regions, result.exact) == (0, 2, True)


def test_all_features_may_be_sensitive() -> None:
    """Then a region is its mask, and any two regions may be compared."""
    result = xcount.count(figure_1(), sensitive="f0,f1", gap=80, distance="any", method="brute")
    expected = oracle.count(figure_1(), [0, 1], Fraction(80), None)
    assert (result.count, result.n_regions) == expected


@pytest.mark.parametrize("ensemble", [ensemble_of(n_features=2), ensemble_of(3.0, n_features=2)])
def test_a_constant_model_is_sensitive_to_nothing(ensemble: Ensemble) -> None:
    """No trees, or a single leaf: one region, and it never moves."""
    result = xcount.count(ensemble, sensitive=[0, 1], gap=0, distance="any", method="brute")
    assert (result.count, result.n_regions, result.exact) == (0, 1, True)


def test_a_model_of_several_classes_is_asked_about_one() -> None:
    """Trees of other classes do not count, but their guards still cut the grid."""
    trees = (tree_of((0, 0.0, 1.0, 0.0), output=0), tree_of((0, 1.0, 5.0, 0.0), output=1))
    ensemble = Ensemble((Feature("a"),), trees, base=(0.0, 0.0))
    counts = [
        xcount.count(ensemble, sensitive="a", gap="0.5", distance=1, class_=k, method="brute").count
        for k in (0, 1)
    ]
    assert counts == [2, 2]
    assert xcount.count(ensemble, sensitive="a", gap=2, class_=0, method="brute").count == 0


def test_the_profile_adds_up_to_the_count() -> None:
    """One row per mask, in words."""
    result = xcount.count(
        figure_1(), sensitive="f0", gap=60, distance=1, profile=True, method="brute"
    )
    assert result.profile is not None
    assert sum(mask.low for mask in result.profile.masks) == result.count == 4
    assert [mask.description for mask in result.profile.masks] == [
        "f0 < 3",
        "3 <= f0 < 4",
        "4 <= f0",
    ]


def test_the_number_of_threads_changes_nothing() -> None:
    """The same counts on one thread and on five."""
    for seed in range(20):
        ensemble = random_ensemble(seed, max_features=4, max_trees=5)
        results = [
            xcount.count(ensemble, sensitive=0, gap="0.5", method="brute", jobs=jobs)
            for jobs in (1, 5)
        ]
        assert results[0].count == results[1].count


def comb(n_features: int, n_guards: int) -> Ensemble:
    """Return one stump per guard: ``(n_guards + 1) ** n_features`` regions."""
    pairs = itertools.product(range(n_features), range(n_guards))
    return ensemble_of(*((f, float(t), 1.0, -1.0) for f, t in pairs))


def test_too_many_regions_are_refused_politely() -> None:
    """The message says how many, and which methods to use; numbers beyond floats too."""
    with pytest.raises(BudgetError, match=r"3\.138e\+12 regions.*--method auto or exact"):
        xcount.count(comb(12, 10), sensitive=0, gap=1, method="brute")
    with pytest.raises(BudgetError, match=r"e\+416"):
        xcount.count(comb(400, 10), sensitive=0, gap=1, method="brute")


def test_an_expired_time_limit_leaves_the_trivial_bounds() -> None:
    """Nothing visited: anything between none and all."""
    result = xcount.count(figure_1(), sensitive="f0", gap=80, method="brute", timeout=1e-9)
    assert (result.low, result.high) == (0, 9)
    assert result.stop_reason is StopReason.TIMEOUT
    assert not result.exact


def visited_in_slices(seconds: float, on_progress: Callable[[Progress], None]) -> Tally:
    """Visit all regions of a comb of six features, in slices of so many seconds."""
    ensemble = comb(6, 20)
    problem = Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, 0, flip=True, cutoff=0))
    thresholds = Thresholds(visit_slice_seconds=seconds)
    settings = Settings(jobs=1, on_progress=on_progress, thresholds=thresholds)
    return count_by_visiting(problem, settings)


def test_an_interrupt_leaves_the_bounds_so_far() -> None:
    """Ctrl-C after the first slice: what was visited is counted, the rest is open."""

    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    result = visited_in_slices(1e-3, interrupt)
    full = xcount.count(comb(6, 20), sensitive=0, flip=True, cutoff=0, method="brute")
    assert result.stop_reason is StopReason.INTERRUPTED
    assert 0 < result.low < known(full.count) <= result.high
    assert full.exact


def test_progress_grows_towards_the_answer() -> None:
    """Fractions ascend to 1, intervals shrink onto the count."""
    seen: list[Progress] = []
    result = visited_in_slices(1e-2, seen.append)
    assert len(seen) > 2
    assert [p.fraction for p in seen] == sorted(p.fraction for p in seen)
    assert all(p.low <= known(result.count) <= p.high for p in seen)
    assert (seen[-1].fraction, seen[-1].low, seen[-1].high) == (1.0, result.count, result.count)


def test_a_shared_grid_has_the_guards_of_all_models() -> None:
    """The same model counted on a finer grid: more regions, the same question."""
    first, second = ensemble_of((0, 0.0, 1.0, 0.0)), ensemble_of((0, 1.0, 1.0, 0.0))
    grid = Grid.of(first, second)
    result = xcount.count(first, sensitive=0, gap="0.5", distance=1, grid=grid, method="brute")
    assert (result.count, result.n_regions) == (2, 3)


def test_many_neighbours_are_part_of_the_cost() -> None:
    """A distance makes a visit dearer; windows keep that within reason."""
    wide = ensemble_of(
        *((f, float(t), 1.0, -1.0) for f, n in enumerate((100, 100)) for t in range(n))
    )
    seconds = []
    for distance in (1, 30, "any"):
        query = Query.of(wide, ["f0", "f1"], 3, distance=distance)
        problem = Problem(wide, Grid.of(wide), query)
        seconds.append(visit.corner_seconds(problem, Settings()))
    assert seconds[2] < seconds[0] < seconds[1] < 0.1


@pytest.mark.parametrize("distance", [1, 30, "any"])
def test_weights_are_part_of_the_cost(distance: int | str) -> None:
    """Weighing what is sensitive takes longer than counting it, most with a distance."""
    wide = ensemble_of(
        *((f, float(t), 1.0, -1.0) for f, n in enumerate((100, 100, 50)) for t in range(n))
    )
    problem = Problem(wide, Grid.of(wide), Query.of(wide, ["f0", "f1"], 3, distance=distance))
    plain, weighed = (
        visit.corner_seconds(problem, Settings(), is_weighed=is_weighed)
        for is_weighed in (False, True)
    )
    assert plain < weighed < 10 * plain + 0.1


def test_a_visit_that_does_not_fit_is_not_chosen() -> None:
    """Little memory leaves the other ways."""
    problem = Problem(comb(6, 20), Grid.of(comb(6, 20)), Query.of(comb(6, 20), 0, 1))
    assert visit.visited(problem, Settings(timeout_seconds=0.0), "auto") is None


def chain(n_features: int) -> Ensemble:
    """Return trees that test every feature on one path, whose last leaf has 2**n corners."""
    trees = []
    for first in (0.0, 1.0):
        node: Any = 1.0
        for f in range(n_features):
            node = (f, first, node, float(f))
        trees.append(tree_of(node))
    return Ensemble(tuple(Feature(f"f{i}") for i in range(n_features)), tuple(trees))


def test_leaves_with_too_many_corners_are_refused_at_once() -> None:
    """Depth 30: what no memory holds is neither tried nor waited for."""
    ensemble = chain(30)
    problem = Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, 0, flip=True, cutoff=3))
    assert problem.form.corner_question.cost.n_corners > 2**30
    assert visit.corner_seconds(problem, Settings()) == math.inf
    assert visit.visited(problem, Settings(), "auto") is None
    with pytest.raises(BudgetError, match="corners"):
        visit.count_by_visiting(problem, Settings(timeout_seconds=60.0))


def test_listing_corners_obeys_the_limits() -> None:
    """Time, memory and an interrupt end it as they end counting: with valid bounds, or refused."""
    ensemble = chain(21)
    problem = Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, 0, flip=True, cutoff=3))
    late = visit.count_by_visiting(problem, Settings(timeout_seconds=0.0))
    assert late.stop_reason is StopReason.TIMEOUT
    assert (late.low, late.high) == (0, problem.n_regions)
    question = problem.form.corner_question
    with pytest.raises(BudgetError, match="memory"):
        question.sums(max_bytes=2**20)
    with pytest.raises(TimeoutError):
        question.sums(seconds=0.0)

    def interrupt() -> None:
        raise KeyboardInterrupt

    def list_until_a_pause() -> None:
        while True:  # once may be too quick for a pause
            question.sums(on_pause=interrupt)

    with pytest.raises(KeyboardInterrupt):
        list_until_a_pause()
