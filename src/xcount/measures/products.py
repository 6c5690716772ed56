"""What a measure is made of: rows, or pieces of the domain with product measures on each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from xcount.counters.sampling.draws import ProductComponent
from xcount.counters.settings import Settings
from xcount.errors import BudgetError, OutOfLimitsError, QueryError
from xcount.measures.population import Component
from xcount.measures.weighting import Weighing, Weights, marginal_weights, volume_weights
from xcount.problem.parts import Part, parts_of
from xcount.problem.problem import Problem
from xcount.question.domain import EVERYTHING

_SECONDS_PER_NODE, _BYTES_PER_NODE = 1.2e-6, 300
"""What it takes to lay trees out on other cells, for each of their nodes."""

_LEAST_SECONDS = 0.1
"""What laying trees may take where no time is left."""


@dataclass(frozen=True, eq=False)
class Piece:
    """A part of the domain under a measure.

    Attributes:
        problem: the question there.
        masks: for each of its masks the number that it has in the whole question.
        products: the measures inside it; none where every region weighs the same.
        weight: of the whole part; those of all parts add up to 1.
        part: the part of a domain with rules; None for the whole.
    """

    problem: Problem
    masks: NDArray[np.int64]
    products: Sequence[ProductComponent]
    weight: float
    part: Part | None = None


def pieces_of(name: str, problem: Problem, weighing: Weighing | None = None) -> list[Piece]:
    """Return the pieces of a measure, ``rows`` excepted; one where the domain has no rules."""
    if name != "regions":
        assert weighing is not None
        products = products_of(problem, components_of(name, problem, weighing))
        return weighed_pieces(problem, products)
    if not problem.grid.rules:
        return [Piece(problem, np.arange(problem.n_masks), (), 1.0)]
    n_regions = problem.n_regions
    return [
        Piece(part.problem, part.masks, (), part.problem.n_regions / n_regions, part)
        for part in parts_of(problem)
    ]


def components_of(name: str, problem: Problem, weighing: Weighing) -> Sequence[Component]:
    """Return the product measures that a measure is a mixture of."""
    if name == "volume":
        return [Component(1.0, volume_weights(problem.grid, weighing)[0])]
    if name == "marginals":
        assert weighing.rows is not None
        return [Component(1.0, marginal_weights(problem.grid, weighing.rows))]
    assert weighing.population is not None, "with_population comes first"
    return weighing.population.on(problem.grid)


def products_of(problem: Problem, components: Sequence[Component]) -> list[ProductComponent]:
    """Return product measures with the weights of their masks."""
    return [ProductComponent(c.weight, mask_masses(problem, c.cells), c.cells) for c in components]


def mask_masses(problem: Problem, weights: Weights) -> NDArray[np.float64]:
    """Return what the cells of each mask weigh together."""
    masses = np.ones(1)
    for feature in problem.query.sensitive:
        masses = np.outer(masses, weights[feature]).ravel()
    return masses


def weighed_pieces(problem: Problem, products: Sequence[ProductComponent]) -> list[Piece]:
    """Return the pieces that have any weight under a mixture of product measures."""
    if not problem.grid.rules:
        return [Piece(problem, np.arange(problem.n_masks), products, 1.0)]
    found = []
    for part in parts_of(problem):
        inside = []
        for product in products:
            cells, masses, mass = part.weights(list(product.cell_weights), product.mask_weights)
            if product.weight * mass > 0:
                inside.append(ProductComponent(product.weight * mass, masses, cells))
        weight = math.fsum(product.weight for product in inside)
        if weight > 0:
            inside = [replace(product, weight=product.weight / weight) for product in inside]
            found.append(Piece(part.problem, part.masks, inside, weight, part))
    whole = math.fsum(piece.weight for piece in found)
    return [replace(piece, weight=piece.weight / whole) for piece in found]


def placed_rows(
    problem: Problem, weighing: Weighing
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the cells of every row, and the numbers of the rows that lie in a region."""
    assert weighing.rows is not None
    regions = problem.grid.cells_of(weighing.rows)
    placed = np.flatnonzero((regions >= 0).all(axis=1))
    placed = placed[problem.grid.exists(regions[placed])]
    if not len(placed):
        domain = "" if problem.grid.domain == EVERYTHING else "lies outside the domain, or "
        raise QueryError(
            f"no row of {weighing.source} lies in a region: each {domain}has a missing value or an "
            "unknown category; --missing cell has cells for missing values"
        )
    return regions, placed


def laid_bytes(problem: Problem) -> int:
    """Guess the memory that the trees of a question take once they are laid on cells."""
    return _BYTES_PER_NODE * _n_nodes(problem)


def laying_seconds(problem: Problem) -> float:
    """Guess how long it takes to lay the trees of a question on other cells."""
    return _SECONDS_PER_NODE * _n_nodes(problem)


def _n_nodes(problem: Problem) -> int:
    return sum(tree.n_nodes for tree in problem.ensemble.trees)


def refuse_without_room(problem: Problem, settings: Settings) -> None:
    """Raise if the trees of a question cannot be laid on other cells within the limits."""
    if (needed := laid_bytes(problem)) > settings.free_bytes():
        raise BudgetError(f"they would take {needed / 1e6:.0f} MB more; raise --memory")
    if laying_seconds(problem) > max(_LEAST_SECONDS, settings.search_seconds()):
        raise OutOfLimitsError("no time is left; raise --timeout")
