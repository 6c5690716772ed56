"""Pieces of the paper as they are printed, errors included: what the corrections are held against.

Regions are enumerated instead of encoded, so that an error shown here is the algorithm's own and
not that of some diagram.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from xcount.model.ensemble import Tree
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


def estimate(n_elements: int, seed: int) -> float:
    """Algorithm 1's estimate of one subproblem whose t is ``n_elements``, while p stays 1."""
    return float(np.random.default_rng(seed).poisson(float(n_elements)))


def exact_count(problem: Problem) -> int:
    """ExactCount: the number of pairs (b, b') with V(b') - V(b) > G.

    They agree in all features that are not sensitive, and are within the distance in the last that
    is: AtMostDistance stands after the loop over S, and takes the f that the loop has left.
    """
    value, gap = value_of(problem), float(problem.query.change.order)
    sensitive, limit = problem.query.sensitive, problem.query.distance
    cells = itertools.product(*(range(axis.n_cells) for axis in problem.grid.axes))
    return sum(
        value(b) - value(a) > gap
        for a, b in itertools.product(list(cells), repeat=2)
        if all(x == y for f, (x, y) in enumerate(zip(a, b, strict=True)) if f not in sensitive)
        and (limit is None or abs(a[sensitive[-1]] - b[sensitive[-1]]) <= limit)
    )


def bits_apart(a: int, b: int) -> int:
    """Return the Hamming distance of two cells' bits, as in (C2)."""
    return abs(a - b)


def features_apart(a: int, b: int) -> int:
    """Return the Hamming distance of two values of one feature, as in "Notion of Distance"."""
    return int(a != b)


def regions(
    problem: Problem,
    exceeds: Callable[[float, float], bool] = operator.gt,
    distance: Callable[[int, int], int] = bits_apart,
) -> int:
    """Return the number of sensitive regions, by one reading of the gap and of the distance."""
    value, gap = value_of(problem), float(problem.query.change.order)
    n_cells, limit = problem.grid.axes[0].n_cells, problem.query.distance
    return sum(
        any(
            exceeds(abs(value((a, *x)) - value((b, *x))), gap)
            for b in range(n_cells)
            if limit is None or distance(a, b) <= limit
        )
        for a in range(n_cells)
        for x in others(problem)
    )


@dataclass(slots=True)
class Node:
    """A node of a tree that may be changed: a test with two branches, or a leaf's value."""

    guard: tuple[int, float] | None
    yes: Node | None = None
    no: Node | None = None
    value: float = 0.0


def node_of(tree: Tree, place: int = 0) -> Node:
    """Return a tree in that form."""
    if tree.left[place] < 0:
        return Node(None, value=float(tree.value[place]))
    guard = (int(tree.feature[place]), float(tree.threshold[place]))
    return Node(guard, node_of(tree, tree.left[place]), node_of(tree, tree.right[place]))


def prune_tree(node: Node, mask: Mapping[tuple[int, float], bool]) -> Node:
    """PruneTree(n, m): the children are written back into the tree that is pruned."""
    if node.yes is None or node.no is None or node.guard is None:
        return node
    node.yes, node.no = prune_tree(node.yes, mask), prune_tree(node.no, mask)
    if node.guard not in mask:
        return node
    return node.yes if mask[node.guard] else node.no


def value_at(node: Node, point: Mapping[int, float]) -> float:
    """Return a pruned tree's leaf."""
    while node.yes is not None and node.no is not None and node.guard is not None:
        feature, threshold = node.guard
        node = node.yes if point[feature] < threshold else node.no
    return node.value


def regions_by_prune_tree(problem: Problem) -> int:
    """Algorithm 1 without sampling, with ProcessSubproblem's trees pruned in place."""
    (sensitive,) = problem.query.sensitive
    axis, gap = problem.grid.axes[sensitive], float(problem.query.change.order)
    guards = [(sensitive, float(threshold)) for threshold in axis.thresholds]
    masks = [{guard: cell <= i for i, guard in enumerate(guards)} for cell in range(axis.n_cells)]
    trees = [node_of(tree) for tree in problem.ensemble.trees]
    found = set()
    for a, b in itertools.permutations(range(len(masks)), 2):
        if abs(a - b) != 1:
            continue
        pruned = [(prune_tree(tree, masks[a]), prune_tree(tree, masks[b])) for tree in trees]
        for cells in itertools.product(*(range(other.n_cells) for other in problem.grid.axes)):
            point = dict(enumerate(problem.grid.point(cells)))
            difference = sum(value_at(x, point) - value_at(y, point) for x, y in pruned)
            if abs(difference) > gap and cells[sensitive] in (a, b):
                found.add(cells)
    return len(found)
