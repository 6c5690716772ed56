"""Trees that share no feature are counted by the distribution of their sums: still exactly."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from native import weighted_share
from test_exact import agree, nested_tree, problem_of, run_exactly

from xcount.counters.costs import THRESHOLDS
from xcount.counters.exact import ExactRun
from xcount.counters.settings import Settings
from xcount.counters.solutions import Solutions
from xcount.model.ensemble import Ensemble, Tree
from xcount.model.examples import ensemble_of


def grouped_ensemble(seed: int, leaves: str) -> Ensemble:
    """Return trees that fall into groups which share no feature but the sensitive one."""
    rng = np.random.default_rng([seed, 7])
    trees: list[Any] = []
    features = list(range(1, 10))
    while features:
        group = tuple(features.pop() for _ in range(min(len(features), int(rng.integers(1, 4)))))
        for _ in range(int(rng.integers(1, 3))):
            sides = [nested_tree(rng, group, len(group)) for _ in range(2)]
            trees.append((0, float(rng.integers(0, 3)), *sides))
    ensemble = ensemble_of(*trees)
    if leaves == "whole":
        return ensemble
    scale = {"fractions": 1.0, "huge": 1e12, "tiny": 1e-200}[leaves]

    def scaled(tree: Tree) -> Tree:
        return replace(tree, value=tree.value * scale + rng.normal(size=tree.value.shape))

    return replace(ensemble, trees=tuple(scaled(tree) for tree in ensemble.trees))


@pytest.mark.parametrize("leaves", ["whole", "fractions", "huge", "tiny"])
@pytest.mark.parametrize("distance", [1, 2, None])
@pytest.mark.parametrize("seed", range(12))
def test_independent_groups_of_trees(seed: int, distance: int | None, leaves: str) -> None:
    """Groups that share no other feature are counted by the distribution of their sums."""
    ensemble = grouped_ensemble(seed, leaves)
    gap = ["2", "4", "0"][seed % 3]
    problem = problem_of(ensemble, sensitive=0, gap=gap, distance=distance)
    with_groups = agree(problem, 16384)
    assert with_groups.count == run_exactly(problem, max_paths=0).count


@pytest.mark.parametrize("all_pairs", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_weights_of_independent_groups(seed: int, all_pairs: bool) -> None:
    """Under a product measure, groups weigh what the boxes of the kept solutions weigh."""
    rng = np.random.default_rng([seed, 8])
    problem = problem_of(grouped_ensemble(seed, "fractions"), sensitive=0, gap="1.5")
    pairs = [(1, 0), (1, 2)][: problem.n_masks - 1]
    counts = problem.grid.cell_counts
    weights = [rng.random(n) * (rng.random(n) > 0.2) for n in counts]
    weights = [w if w.any() else np.ones_like(w) for w in weights]
    weights = [w / w.sum() for w in weights]
    boxes = Solutions.of(problem, pairs, all_pairs=all_pairs).boxes(limit=10**6)
    expected = math.fsum(
        math.prod(float(weights[f][a:b].sum()) for f, (a, b) in box.items()) for box in boxes
    )
    share = weighted_share(problem, pairs, all_pairs, weights)
    assert share == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_independent_groups_cost_their_sum_not_their_product() -> None:
    """Thirty trees on thirty features: 2^30 combinations of leaves in a thousandth of the steps."""
    rng = np.random.default_rng(3)
    leaves = rng.integers(-1000, 1000, (30, 2)) / 1000
    trees = [(0, 0.0, (i + 1, 0.0, *map(float, pair)), 0.0) for i, pair in enumerate(leaves)]
    problem = problem_of(ensemble_of(*trees), sensitive=0, gap="1.5", precision=3)
    run = ExactRun(problem, Settings(jobs=1))
    run.solve(THRESHOLDS.exact_step_budgets)
    sums = {0: 1}  # by adding one tree after the other
    for low, high in leaves.tolist():
        sums = add_up(sums, round(low * 1000), round(high * 1000))
    beyond = sum(n for total, n in sums.items() if abs(total) > 1500)
    assert run.tally("exact").count == 2 * beyond
    assert run.n_steps < 2**20


def add_up(sums: dict[int, int], *leaves: int) -> dict[int, int]:
    """Return how often each sum comes out with one of the leaves more."""
    result: dict[int, int] = {}
    for (total, n), leaf in itertools.product(sums.items(), leaves):
        result[total + leaf] = result.get(total + leaf, 0) + n
    return result
