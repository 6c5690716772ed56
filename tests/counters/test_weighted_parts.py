"""Exact runs give counts and weights alike: whole, in parts, and as enumeration has them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from strategies import random_ensemble

from xcount import _core
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query

Weights = list[NDArray[np.float64]]
Task = tuple[list[tuple[int, int]], bool, int, int]


def random_problem(seed: int) -> Problem:
    """Return a question about a small ensemble, with categories and missing cells among them."""
    ensemble = random_ensemble(seed)
    sensitive = [seed % ensemble.n_features]
    query = Query.of(ensemble, sensitive, "0.5", distance=(1, 2, None)[seed % 3])
    return Problem(ensemble, Grid.of(ensemble, missing="cell" if seed % 2 else "none"), query)


def random_weights(problem: Problem, seed: int) -> Weights:
    """Return a weight for every cell, some of them 0; each feature's weights sum to 1."""
    rng = np.random.default_rng([seed, 7])
    found = []
    for n_cells in problem.grid.cell_counts:
        weights = rng.random(n_cells) * rng.integers(0, 2, n_cells)
        weights[rng.integers(n_cells)] += 0.1
        found.append(weights / weights.sum())
    return found


def tasks_of(problem: Problem, part_bits: int) -> list[Task]:
    """Return for each mask the parts of "some neighbour differs"."""
    return [
        ([(mask, other) for other in problem.masks.neighbours(mask)], False, part, part_bits)
        for mask in range(problem.n_masks)
        for part in range(2**part_bits)
    ]


def results(
    problem: Problem, tasks: Sequence[Task], weights: Weights | None, max_steps: int = 2**62
) -> list[tuple[str, Any, Any, Any, int]]:
    """Solve the tasks."""
    counter = _core.ExactCounter(problem.forest, problem.masks, problem.threshold_limbs, weights)
    counter.start(tasks, problem.n_masks, max_steps, 2**30, 2, max_paths=8)
    assert counter.wait(60)
    return counter.results()


def weights_by_enumeration(problem: Problem, weights: Weights) -> list[float]:
    """Return the weight of the combinations that make each mask sensitive, one after the other."""
    brute = _core.BruteForce(problem.forest, problem.masks, problem.threshold_limbs)
    free = [w for f, w in enumerate(weights) if f not in problem.query.sensitive]
    found: list[list[float]] = [[] for _ in range(problem.n_masks)]
    for i, cells in enumerate(itertools.product(*free)):
        weight = math.prod(cells)
        for mask, is_sensitive in enumerate(brute.count(i, i + 1, 1)):
            found[mask].append(weight * int(is_sensitive))
    return [math.fsum(terms) for terms in found]


@pytest.mark.parametrize("seed", range(30))
def test_weights_of_parts_add_up_to_the_enumerated_ones(seed: int) -> None:
    """The parts of a mask hold its weight, and all of the space, between them."""
    problem = random_problem(seed)
    weights = random_weights(problem, seed)
    expected = weights_by_enumeration(problem, weights)
    for part_bits in (0, 1, 4):
        n_parts = 2**part_bits
        found = results(problem, tasks_of(problem, part_bits), weights)
        assert all(isinstance(x, float) for result in found for x in result[1:4])
        assert all(result[0] == "solved" and result[2] == 1.0 for result in found)
        assert all(0 <= count <= size + 1e-12 for _, count, _, size, _ in found)
        for mask in range(problem.n_masks):
            parts = found[mask * n_parts : (mask + 1) * n_parts]
            assert math.fsum(p[1] for p in parts) == pytest.approx(expected[mask], abs=1e-12)
            assert math.fsum(p[3] for p in parts) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_equal_weights_are_shares_of_counts(seed: int) -> None:
    """With equal cells, count, total and size are those of the counts, divided by the total."""
    problem = random_problem(seed)
    equal = [np.full(n, 1 / n) for n in problem.grid.cell_counts]
    for part_bits in (0, 3):
        tasks = tasks_of(problem, part_bits)
        counted, weighed = (results(problem, tasks, w) for w in (None, equal))
        for a, b in zip(counted, weighed, strict=True):
            assert a[0] == b[0] == "solved"
            assert all(isinstance(x, int) for x in a[1:4])
            assert b[1] == pytest.approx(a[1] / a[2], abs=1e-12)
            assert b[3] == pytest.approx(a[3] / a[2], abs=1e-12)


def test_tasks_that_are_given_up_weigh_nothing() -> None:
    """A task without a result says so, in numbers of the same kind."""
    for seed in range(30):
        problem = random_problem(seed)
        for weights in (None, random_weights(problem, seed)):
            for status, count, total, size, _ in results(problem, tasks_of(problem, 2), weights, 1):
                kind = int if weights is None else float
                assert isinstance(count, kind)
                assert status == "solved" or (status, count, total, size) == ("steps", 0, 1, 0)
