"""Kept solutions: counted, listed, sampled and weighed like enumeration says."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from native import weighted_share
from strategies import random_ensemble

from xcount.counters.solutions import Solutions
from xcount.errors import BudgetError
from xcount.model.ensemble import Ensemble, Feature, Tree
from xcount.model.examples import tree_of
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query


def problem_of(seed: int, *, distance: object = "any", gap: object = "0.4") -> Problem:
    """Return a small random problem about its first feature."""
    ensemble = random_ensemble(seed)
    grid = Grid.of(ensemble, missing="cell" if seed % 2 else "none")
    return Problem(ensemble, grid, Query.of(ensemble, "f0", gap, distance=distance))


def solutions_by_enumeration(problem: Problem, mask: int) -> set[tuple[int, ...]]:
    """Return the combinations (with -1 for f0) that make the mask sensitive."""
    trees = problem.trees
    found = set()
    cells = [range(axis.n_cells) for axis in problem.grid.axes[1:]]
    values = problem.space.trees.values
    starts = np.cumsum([0, *(tree.n_nodes for tree in trees)])

    def total(region: tuple[int, ...]) -> int:
        point = problem.grid.point(region)[np.newaxis]
        return sum(
            values[start + int(tree.leaves_of(point)[0])]
            for tree, start in zip(trees, starts, strict=False)
        )

    for rest in itertools.product(*cells):
        here = total((mask, *rest))
        if any(
            abs(here - total((other, *rest))) > problem.threshold
            for other in problem.masks.neighbours(mask)
        ):
            found.add((-1, *rest))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_solutions_are_those_of_enumeration(seed: int) -> None:
    """Count, boxes and samples of every mask agree with visiting all combinations."""
    problem = problem_of(seed)
    for mask in range(min(problem.n_masks, 3)):
        expected = solutions_by_enumeration(problem, mask)
        solutions = Solutions.of_mask(problem, mask)
        assert solutions.count == len(expected)
        listed: list[tuple[int, ...]] = []
        for box in solutions.boxes(limit=10**6):
            axes = problem.grid.axes
            ranges = [range(*box.get(f, (0, axis.n_cells))) for f, axis in enumerate(axes)]
            listed += [(-1, *rest) for rest in itertools.product(*ranges[1:])]
        assert len(listed) == len(set(listed)) == len(expected)
        assert set(listed) == expected
        if expected:
            assert {tuple(row) for row in solutions.sample(20, seed).tolist()} <= expected


def test_samples_are_uniform() -> None:
    """A chi-square test of 200 samples a solution does not tell the samples from uniform ones."""
    tested = 0
    for seed in range(60):
        problem = problem_of(seed)
        solutions = Solutions.of_mask(problem, 0)
        if not 5 <= solutions.count <= 400:
            continue
        expected = 200
        rows = solutions.sample(expected * solutions.count, seed=seed)
        _, counts = np.unique(rows, axis=0, return_counts=True)
        assert len(counts) == solutions.count
        statistic = float(((counts - expected) ** 2 / expected).sum())
        freedom = solutions.count - 1
        # Wilson and Hilferty's approximation: 5 standard deviations of the cube root.
        limit = freedom * (1 - 2 / (9 * freedom) + 5 * math.sqrt(2 / (9 * freedom))) ** 3
        assert statistic < limit
        tested += 1
    assert tested >= 10


@pytest.mark.parametrize("seed", range(40))
def test_weights_add_up_like_enumeration(seed: int) -> None:
    """Under random cell weights, the share of a mask is the sum of its solutions' weights."""
    problem = problem_of(seed)
    rng = np.random.default_rng(seed)
    weights = [rng.random(axis.n_cells) + 0.01 for axis in problem.grid.axes]
    weights = [w / w.sum() for w in weights]
    pairs = [(0, other) for other in problem.masks.neighbours(0)]
    share = weighted_share(problem, pairs, False, weights)
    expected = sum(
        math.prod(weights[f][cell] for f, cell in enumerate(row) if f > 0)
        for row in solutions_by_enumeration(problem, 0)
    )
    assert share == pytest.approx(expected, abs=1e-12)


def test_a_part_of_weight_0_weighs_nothing() -> None:
    """f1 is certain: what lies beyond 1 has no weight, whatever the independent groups add up to.

    The first tree is 50 or 0 by a category where f1 < 1, and 1 or 0 beyond.
    """
    nodes = [0, 1, 2, -1, -1, 1, -1, -1, -1]
    thresholds = [0.5, 1.0, np.nan, np.nan, np.nan, 2.0, np.nan, np.nan, np.nan]
    left, right = [1, 2, 3, -1, -1, 6, -1, -1, -1], [8, 5, 4, -1, -1, 7, -1, -1, -1]
    first = Tree(
        feature=np.array(nodes, dtype=np.int32),
        threshold=np.array(thresholds),
        left=np.array(left, dtype=np.int32),
        right=np.array(right, dtype=np.int32),
        missing_left=np.zeros(9, dtype=np.bool_),
        zero_side=np.zeros(9, dtype=np.int8),
        value=np.array([0, 0, 0, 50.0, 0, 0, 1.0, 0, 0]),
        left_categories={2: frozenset({0, 2})},
    )
    stumps = [tree_of((0, 0.5, (i, 0.5, 1.0, 0.0), 0.0)) for i in range(3, 13)]
    names = [Feature("f0"), Feature("f1"), Feature("f2", (0, 1, 2))]
    features = (*names, *(Feature(f"f{i}") for i in range(3, 13)))
    model = Ensemble(features, (first, *stumps))
    problem = Problem(model, Grid.of(model), Query.of(model, "f0", 4))
    weights = [np.full(n, 1 / n) for n in problem.grid.cell_counts]
    weights[1] = np.array([1.0, 0.0, 0.0])
    more_than_4 = sum(math.comb(10, n) for n in range(5, 11)) / 2**10
    share = weighted_share(problem, [(0, 1)], False, weights)
    assert share == pytest.approx(0.5 + 0.5 * more_than_4)


def test_equal_weights_give_the_count() -> None:
    """With equal weights, shares are counts divided by the number of combinations."""
    problem = problem_of(7)
    weights = [np.ones(axis.n_cells) for axis in problem.grid.axes]
    pairs = [(0, other) for other in problem.masks.neighbours(0)]
    share = weighted_share(problem, pairs, False, weights)
    assert share == pytest.approx(Solutions.of_mask(problem, 0).count / problem.n_combinations)


def test_a_small_budget_is_an_error() -> None:
    """What cannot be kept within the budget is refused, not cut off."""
    for seed in range(60):
        problem = problem_of(seed)
        if Solutions.of_mask(problem, 0).diagram.n_nodes > 3:
            with pytest.raises(BudgetError, match="too many to keep"):
                Solutions.of_mask(problem, 0, max_steps=50)
            return
    pytest.fail("no problem was large enough")
