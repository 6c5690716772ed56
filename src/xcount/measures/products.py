"""Product measures: a weight for each cell of each feature, features independent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from xcount.counters.costs import BYTES_PER_LAID_NODE, SECONDS_PER_LAID_NODE
from xcount.counters.settings import Settings
from xcount.errors import BudgetError, OutOfLimitsError
from xcount.problem.parts import Part, parts_of
from xcount.problem.problem import Problem

LAYOUTS_PER_STAGE = 8
"""How often a stage of an explanation lays trees out: on other cells, with and without a switch."""
_LEAST_SECONDS = 0.1
"""Time that laying trees out may take even if no time is left."""

Weights = list[NDArray[np.float64]]
"""For each feature the weights of its cells, with sum 1."""


@dataclass(frozen=True, eq=False)
class ProductComponent:
    """A product measure, and its share of a mixture.

    Attributes:
        weight: the share; those of all components add up to 1.
        cell_weights: for each feature those of its cells, with sum 1.
        mask_weights: of the masks, with sum 1; empty if masks are not listed. In a part of a domain
            with rules they are no product of the weights of cells.
    """

    weight: float
    cell_weights: Sequence[NDArray[np.float64]]
    mask_weights: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    def with_masks(self, problem: Problem) -> ProductComponent:
        """Return the component with the weights of a question's masks."""
        return replace(self, mask_weights=mask_masses(problem, self.cell_weights))

    def in_part(self, part: Part) -> ProductComponent:
        """Return the component on the cells and masks of a part; its weight is that in the part."""
        cells, masks, mass = part.weights(list(self.cell_weights), self.mask_weights)
        return ProductComponent(self.weight * mass, cells, masks)


@dataclass(frozen=True, eq=False)
class WeighedPart:
    """A part of a question, with a mixture of products on its cells.

    Attributes:
        part: the part; the whole question if its domain has no rules.
        products: the mixture inside it; empty if all regions weigh the same.
        weight: of the part; those of all parts add up to 1.
    """

    part: Part
    products: Sequence[ProductComponent]
    weight: float

    @property
    def problem(self) -> Problem:
        """The question in the part."""
        return self.part.problem


def uniform_parts(problem: Problem) -> list[WeighedPart]:
    """Return the parts of a question in which all regions weigh the same."""
    if not problem.is_split:
        return [WeighedPart(Part.of_whole(problem), (), 1.0)]
    return [WeighedPart(part, (), part.n_regions / problem.n_regions) for part in parts_of(problem)]


def weighed_parts(problem: Problem, products: Sequence[ProductComponent]) -> list[WeighedPart]:
    """Return the parts of a question that have any weight under a mixture."""
    if not problem.is_split:
        return [WeighedPart(Part.of_whole(problem), products, 1.0)]
    found = []
    for part in parts_of(problem):
        inside = [own for product in products if (own := product.in_part(part)).weight > 0]
        weight = math.fsum(product.weight for product in inside)
        if weight > 0:
            inside = [replace(product, weight=product.weight / weight) for product in inside]
            found.append(WeighedPart(part, inside, weight))
    whole = math.fsum(each.weight for each in found)
    return [replace(each, weight=each.weight / whole) for each in found]


def mask_masses(problem: Problem, weights: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the product of the weights of each mask's cells."""
    masses = np.ones(1)
    for feature in problem.query.sensitive:
        masses = np.outer(masses, weights[feature]).ravel()
    return masses


def laid_bytes(problem: Problem) -> int:
    """Estimate the memory that the trees of a question take once they are laid out on cells."""
    return BYTES_PER_LAID_NODE * _n_nodes(problem)


def laying_seconds(problem: Problem) -> float:
    """Estimate how long it takes to lay the trees of a question out on other cells."""
    return SECONDS_PER_LAID_NODE * _n_nodes(problem)


def stage_seconds(problem: Problem) -> float:
    """Estimate the least time of a stage of an explanation: it lays the trees out several times."""
    return LAYOUTS_PER_STAGE * laying_seconds(problem)


def refuse_without_time(problem: Problem, settings: Settings) -> None:
    """Raise if a stage of an explanation would not be over in time."""
    if stage_seconds(problem) > settings.search_seconds():
        raise OutOfLimitsError("no time was left; raise --timeout")


def _n_nodes(problem: Problem) -> int:
    return sum(tree.n_nodes for tree in problem.ensemble.trees)


def refuse_without_room(problem: Problem, settings: Settings) -> None:
    """Raise if the trees of a question cannot be laid out on other cells within the limits."""
    if (needed := laid_bytes(problem)) > settings.free_bytes():
        raise BudgetError(f"they would take {needed / 1e6:.0f} MB more; raise --memory")
    if laying_seconds(problem) > max(_LEAST_SECONDS, settings.search_seconds()):
        raise OutOfLimitsError("no time is left; raise --timeout")
