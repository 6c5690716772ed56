"""Pieces of the paper as they are printed, errors included: what the corrections are held against.

Regions are enumerated instead of encoded, so that an error shown here is the algorithm's own and
not that of some diagram.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from xcount.problem.problem import Problem

Mask = tuple[int, ...]


def bit_mask_gen(k: int) -> list[Mask]:
    """BitMaskGen(k): k masks; the mask of all ones is never stored."""
    bit_mask, mask_set = [1] * k, []
    for i in range(k):
        bit_mask[i] = 0
        mask_set.append(tuple(bit_mask))
    return mask_set


def cell_of(mask: Mask) -> int:
    """Return the cell whose bits these are: bit i is 1 iff cell <= i."""
    return len(mask) - sum(mask)


def value_of(problem: Problem) -> Callable[[tuple[int, ...]], float]:
    """Return V, by the reference predictor."""
    ensemble, grid = problem.ensemble, problem.grid
    cells = list(itertools.product(*(range(axis.n_cells) for axis in grid.axes)))
    values = ensemble.predict(np.array([grid.point(c) for c in cells]))[:, 0]
    return dict(zip(cells, values.tolist(), strict=True)).__getitem__


def others(problem: Problem) -> Iterator[tuple[int, ...]]:
    """Yield the combinations of all cells but those of the first feature, the sensitive one."""
    yield from itertools.product(*(range(axis.n_cells) for axis in problem.grid.axes[1:]))


def solutions(problem: Problem, a: int, b: int) -> list[tuple[int, ...]]:
    """Return Sol of the subproblem (a, b), with ToBDD's v > G: one direction."""
    value, gap = value_of(problem), float(problem.query.change.order)
    return [x for x in others(problem) if value((a, *x)) - value((b, *x)) > gap]


def estimate(problem: Problem, n_elements: int, seed: int) -> float:
    """Algorithm 1's estimate of one subproblem whose t is ``n_elements``, while p stays 1."""
    return float(np.random.default_rng(seed).poisson(n_elements))


def exact_count(problem: Problem) -> int:
    """ExactCount: the number of pairs (b, b') within the distance with V(b') - V(b) > G."""
    value, gap = value_of(problem), float(problem.query.change.order)
    n_cells, limit = problem.grid.axes[0].n_cells, problem.query.distance
    return sum(
        value((b, *x)) - value((a, *x)) > gap
        for a, b in itertools.product(range(n_cells), repeat=2)
        if limit is None or abs(a - b) <= limit
        for x in others(problem)
    )
