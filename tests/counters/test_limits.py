"""Models that are large in an odd way: every method answers within its limits, or says why not."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest
from native import weighted_share
from oracle import all_regions, known
from test_exact import problem_of, run_exactly, wide_ensemble

import xcount
from xcount import _core
from xcount.counters.sampling.draws import RegionDraws
from xcount.counters.solutions import Solutions
from xcount.counters.tally import StopReason
from xcount.errors import BudgetError
from xcount.model.ensemble import Ensemble, Feature, Tree
from xcount.model.examples import Nested, ensemble_of, figure_1
from xcount.problem.problem import Problem
from xcount.support.process import held_memory_bytes

SENSITIVE = 1


def chain(depth: int) -> Tree:
    """Return a tree that is as deep as it has tests of f1, below one of f0."""
    n_nodes = 2 * depth + 3
    feature = np.full(n_nodes, -1, dtype=np.int32)
    threshold = np.full(n_nodes, np.nan)
    left, right = feature.copy(), feature.copy()
    feature[0], threshold[0], left[0], right[0] = 0, 0.5, 1, n_nodes - 1
    tests = 1 + 2 * np.arange(depth)
    feature[tests], threshold[tests] = 1, depth - np.arange(depth)
    left[tests], right[tests] = tests + 2, tests + 1
    value = np.where(feature < 0, np.arange(n_nodes) % 7 / 8, 0.0)
    none = np.zeros(n_nodes, dtype=np.int8)
    return Tree(feature, threshold, left, right, none.astype(np.bool_), none, value)


@pytest.mark.parametrize("method", ["auto", "exact", "sample", "brute", "xcount"])
def test_trees_deeper_than_any_library_trains_are_refused(method: str) -> None:
    """Walks over trees are recursive; 5,000 tests on a path are fine, 60,000 are an error."""
    features = (Feature("f0"), Feature("f1"))
    fine = Ensemble(features, (chain(5_000),))
    if method in ("auto", "exact", "sample"):
        assert known(xcount.count(fine, sensitive="f0", gap="0.5", method=method).count) > 0
    with pytest.raises(BudgetError, match=r"more than 10,000 tests|too many guards"):
        xcount.count(Ensemble(features, (chain(60_000),)), sensitive="f0", gap=1, method=method)


def test_wide_leaves_take_the_same_steps() -> None:
    """One tiny leaf makes all numbers wide, which must not make sums seem few."""
    steps = []
    for tiny in (2.0**-21, 1e-300):
        trees: list[Nested] = [(0, 0.5, (i + 1, 0.5, 2.0**i / 2**20, 0.0), 0.0) for i in range(16)]
        model = ensemble_of(*trees, (0, 0.5, (17, 0.5, tiny, 0.0), 0.0))
        problem = problem_of(model, sensitive="f0", gap="0.03")
        tally = run_exactly(problem, max_paths=16_384)
        steps.append(int(tally.details["n_steps"]))
    assert steps[1] < 2 * steps[0]


def product_of_sides(depth: int) -> Ensemble:
    """Return a tree whose difference at f0 has as many leaves as both sides multiplied."""

    def side(level: int, first: int) -> Nested:
        if level == depth:
            return float(rng.integers(1, 2**40)) / 2**40
        return (first + level, 0.5, side(level + 1, first), side(level + 1, first))

    rng = np.random.default_rng(0)
    return ensemble_of((0, 0.5, side(0, 1), side(0, 1 + depth)))


def test_differences_too_large_to_look_at_have_hope() -> None:
    """No difference exceeds the gap, but that would take 4 million leaves to see."""
    problem = problem_of(product_of_sides(11), sensitive="f0", gap=100)
    counter = _core.ExactCounter(problem.forest, problem.masks, problem.threshold_limbs)
    assert list(counter.live([(0, 1)], 1)) == [1]
    small = problem_of(product_of_sides(4), sensitive="f0", gap=100)
    counter = _core.ExactCounter(small.forest, small.masks, small.threshold_limbs)
    assert list(counter.live([(0, 1)], 1)) == [0]


@pytest.mark.parametrize("method", ["auto", "exact", "sample"])
def test_differences_too_large_for_the_memory_leave_an_interval(method: str) -> None:
    """Exact counting gives up; sampling needs no differences."""
    model = product_of_sides(11)
    memory = held_memory_bytes() + 60 * 2**20
    result = xcount.count(model, sensitive="f0", gap="0.3", method=method, memory=memory, jobs=1)
    assert result.low <= result.high
    expected = StopReason.MEMORY if method == "exact" else StopReason.COMPLETE
    assert result.stop_reason is expected


@pytest.mark.parametrize("distance", [2, 3, 4])
def test_many_features_that_may_be_missing(distance: int) -> None:
    """The missing cells are next to all others: boxes of a ball would multiply."""
    trees: list[Nested] = [(i, 0.5, float(i), 2.0 - i) for i in range(8)]
    model = ensemble_of(*trees)
    features = tuple(Feature(f"f{i}", can_be_missing=True) for i in range(8))
    several = Ensemble(features, model.trees)
    question: dict[str, Any] = {"sensitive": list(range(8)), "gap": 7, "distance": distance}
    problem = problem_of(several, missing=True, **question)
    answers = RegionDraws(problem.form.corner_question).decide(all_regions(problem).ravel())
    expected = xcount.count(several, method="brute", missing="cell", **question).count
    assert int((answers == SENSITIVE).sum()) == expected


def test_more_cells_than_codes_are_sampled_region_by_region() -> None:
    """A feature of 70,000 cells that is not sensitive."""

    def balanced(low: int, high: int) -> Nested:
        if high - low == 1:
            return low % 1000 / 1024
        middle = (low + high) // 2
        return (1, float(middle), balanced(low, middle), balanced(middle, high))

    model = ensemble_of((0, 0.5, balanced(0, 70_001), 0.0))
    exact = xcount.count(model, sensitive="f0", gap="0.5", method="exact")
    assert exact.exact
    sampled = xcount.count(model, sensitive="f0", gap="0.5", method="sample", delta=1e-6)
    assert sampled.low <= known(exact.count) <= sampled.high


def test_more_masks_than_numbers() -> None:
    """45 sensitive features of three cells: exact counting says what to do instead."""
    trees: list[Nested] = [(i, 0.5, 1.0, (i, 1.5, 3.0, 0.0)) for i in range(45)]
    model = ensemble_of(*trees)
    with pytest.raises(BudgetError, match="use --method auto or sample"):
        xcount.count(model, sensitive=list(range(45)), gap=1, method="exact")
    assert xcount.count(model, sensitive=list(range(45)), gap=1).low > 0


def test_a_distance_beyond_any_integer() -> None:
    """No two masks are that far apart, whatever the method."""
    for method in ("auto", "exact", "sample", "brute", "xcount", "add-baseline"):
        result = xcount.count(
            figure_1(), sensitive="f0", gap=80, distance=str(10**20), method=method
        )
        anywhere = xcount.count(figure_1(), sensitive="f0", gap=80, distance="any")
        assert (result.count, result.distance) == (anywhere.count, 10**20)


def test_enumeration_needs_no_pairs() -> None:
    """Thousands of masks, all near each other: extremes decide them, not 32 million pairs."""
    trees: list[Nested] = [(0, float(i), 0.0, 1.0) for i in range(8_000)]
    question: dict[str, Any] = {"sensitive": "f0", "gap": 7_995, "distance": "any"}
    result = xcount.count(ensemble_of(*trees), method="brute", **question)
    # The margins are 0 to 8,000: those within 4 of an end differ from the other end by more.
    assert (result.count, result.exact) == (10, True)


def test_too_many_guards_for_diagrams() -> None:
    """Operations on diagrams recur once for each level."""
    with pytest.raises(BudgetError, match="too many guards"):
        _core.DiagramTable([120_000])
    table = _core.DiagramTable([20_000])
    table.set_time_limit(1e10)
    monotone = table.monotone([0])
    assert table.size(table.apply(_core.BoolOp.AND, monotone, table.variable(19_999))) > 0


def test_a_diagram_without_solutions() -> None:
    """Forty features, each of which adds one whatever its value: no box, and nothing to draw."""
    pairs = [(1.0, 0.0), (0.0, 1.0)]
    trees: list[Nested] = [
        (0, 0.5, (i, 0.5, *leaves), 0.0) for i in range(1, 41) for leaves in pairs
    ]
    problem = problem_of(ensemble_of(*trees), sensitive="f0", gap=40)
    solutions = Solutions.of(problem, [(0, 1)])
    assert (solutions.count, solutions.boxes(10)) == (0, [])
    with pytest.raises(ValueError, match="no solution to sample"):
        solutions.sample(1, seed=0)


def weigh(problem: Problem) -> None:
    """Weigh a pair, whatever it takes."""
    weights = [np.ones(n) for n in problem.grid.cell_counts]
    weighted_share(problem, [(0, 1)], False, weights)


def keep(problem: Problem) -> None:
    """Keep the solutions of a pair, whatever it takes."""
    Solutions.of(problem, [(0, 1)], max_steps=2**62, max_bytes=2**40)


@pytest.mark.parametrize("work", [weigh, keep])
def test_an_interrupt_is_heard(work: Callable[[Problem], None]) -> None:
    """Weighing and keeping solutions take as long as counting them."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    problem = problem_of(wide_ensemble(150, 14, 7), sensitive="f0", gap="0.8")
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            work(problem)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
