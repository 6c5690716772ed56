"""Mixtures of product measures: regions, volume, marginals, and populations."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from xcount.counters.settings import Settings
from xcount.errors import BudgetError, QueryError
from xcount.measures.draws import MixtureSampler
from xcount.measures.exact_shares import Budget, product_share
from xcount.measures.measure import Box, Measure
from xcount.measures.products import ProductComponent
from xcount.measures.weighting import Weighing, marginal_weights, volume_weights
from xcount.problem.parts import Part
from xcount.problem.problem import Problem
from xcount.question.grid import Grid

MAX_PARTS = 4096
"""Most products to draw from, counted separately for each box of the domain."""
_ROUNDING = 1e-13
"""Rounding error of a share of 1."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Mixture(Measure):
    """A mixture of product measures over the cells of a grid.

    Attributes:
        components: the products; rules of the grid are not taken into account.
    """

    components: tuple[ProductComponent, ...]

    @classmethod
    def uniform(cls, grid: Grid) -> Mixture:
        """Return the measure under which all regions weigh the same."""
        product = ProductComponent(1.0, [np.ones(n) / n for n in grid.cell_counts])
        return cls(name="regions", grid=grid, components=(product,))

    @classmethod
    def volume(cls, grid: Grid, weighing: Weighing) -> Mixture:
        """Return the measure that is uniform over a box."""
        weights, bounds = volume_weights(grid, weighing)
        product = ProductComponent(1.0, weights)
        return cls(name="volume", grid=grid, components=(product,), details={"bounds": bounds})

    @classmethod
    def marginals(cls, grid: Grid, weighing: Weighing) -> Mixture:
        """Return the product of the marginals of the data."""
        rows = weighing.readable
        assert rows is not None
        product = ProductComponent(1.0, marginal_weights(grid, rows))
        n_left_out = sum(map(len, weighing.unreadable.values()))
        details = {"n_rows": len(rows) + n_left_out, "source": weighing.source}
        return cls(name="marginals", grid=grid, components=(product,), details=details)

    @classmethod
    def population(cls, grid: Grid, weighing: Weighing) -> Mixture:
        """Return a fitted population."""
        population, note = weighing.population, weighing.population_note
        assert population is not None, "with_population comes first"
        details = {
            "source": population.source,
            "n_components": population.n_components,
            "realism": asdict(population.realism),
            **({"fitted_to_other_data": note} if note else {}),
        }
        components = tuple(population.on(grid))
        return cls(name="population", grid=grid, components=components, details=details)

    def products(self, problem: Problem) -> list[ProductComponent]:
        """Return the components with the weights of a question's masks."""
        return [component.with_masks(problem) for component in self.components]

    @property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(self.name.encode())
        for component in self.components:
            digest.update(np.array(component.weight).tobytes())
            for cells in component.cell_weights:
                digest.update(cells.tobytes())
        return digest.hexdigest()

    @cached_property
    def _parts(self) -> tuple[ProductComponent, ...]:
        """The products inside the boxes of the domain, with the weights that they have there."""
        boxes = self.grid.boxes(())
        if len(boxes) * len(self.components) > MAX_PARTS:
            raise BudgetError("the domain has too many parts to draw from")
        inside = [
            _in_box(c, _flags(box.cells, self.grid)) for c in self.components for box in boxes
        ]
        whole = math.fsum(part.weight for part in inside)
        if not whole > 0:
            raise QueryError(f"nothing of the domain has any weight under {self.name!r}")
        return tuple(replace(p, weight=p.weight / whole) for p in inside if p.weight > 0)

    def mass(self, box: Box) -> float:
        return min(1.0, math.fsum(_in_box(part, box).weight for part in self._parts))

    def marginal(self, feature: int) -> NDArray[np.float64]:
        weights = np.zeros(self.grid.axes[feature].n_cells)
        for part in self._parts:
            weights += part.weight * part.cell_weights[feature]
        return weights

    def moved(self, cells: Mapping[int, int]) -> Self:
        there = [_moved(component, cells) for component in self.components]
        return replace(self, components=tuple(there))

    def extended(self, grid: Grid, cells: Sequence[NDArray[np.float64]]) -> Self:
        wider = (
            replace(component, cell_weights=[*component.cell_weights, *cells])
            for component in self.components
        )
        return replace(self, grid=grid, components=tuple(wider))

    def draw(
        self, random: np.random.Generator, n: int, box: Box | None = None
    ) -> NDArray[np.int64]:
        sampler = self._sampler if not box else self._sampler_in(box)
        return sampler.draw(random, n)[0].astype(np.int64)

    @cached_property
    def _sampler(self) -> MixtureSampler:
        return self._sampler_in({})

    def _sampler_in(self, box: Box) -> MixtureSampler:
        parts = [_in_box(part, box) for part in self._parts]
        weights, cells = [p.weight for p in parts], [p.cell_weights for p in parts]
        return MixtureSampler(weights, cells, range(len(self.grid.axes)), always_chooses=True)

    def exact_share(
        self, problem: Problem, box: Box, settings: Settings, budget: Budget
    ) -> float | None:
        """Return the sensitive share of a box; None if that takes longer than the budget.

        Args:
            problem: the question, on the cells of the same grid.
            box: some cells of some features.
            settings: limits and threads.
            budget: limits of the exact weighing.
        """
        weighed = list(self._in_parts(problem, box))
        whole = math.fsum(product.weight for _, products in weighed for product in products)
        n_products = sum(len(products) for _, products in weighed)
        if not whole > 0:
            return None
        found = []
        for part, products in weighed:
            for product in products:
                own = Budget(budget.seconds / n_products, budget.steps // n_products)
                share = product_share(part.problem, product, settings, own)
                if share is None:
                    return None
                found.append(product.weight * share)
        share = math.fsum(found) / whole
        return 1.0 if share > 1 - _ROUNDING else share

    def _in_parts(
        self, problem: Problem, box: Box
    ) -> Iterator[tuple[Part, list[ProductComponent]]]:
        """Yield the parts of the question in a box, with the products there."""
        sensitive = problem.query.sensitive
        counts = problem.grid.cell_counts
        starts = np.ones(1)
        for feature in sensitive:
            flags = box.get(feature, np.ones(counts[feature], dtype=np.bool_))
            starts = np.outer(starts, flags).ravel()
        products = [
            replace(product, mask_weights=product.mask_weights * starts)
            for product in self.products(problem)
        ]
        others = {f: np.flatnonzero(own) for f, own in box.items() if f not in sensitive}
        for rule_box in problem.grid.boxes(sensitive):
            cells = {f: np.array(own) for f, own in rule_box.cells.items()}
            for feature, own in others.items():
                cells[feature] = np.intersect1d(cells.get(feature, own), own)
            if not all(len(own) for own in cells.values()):
                continue
            listed = {f: tuple(own.tolist()) for f, own in cells.items()}
            part = Part.of_box(problem, replace(rule_box, cells=listed))
            here = [product.in_part(part) for product in products]
            yield part, [product for product in here if product.weight > 0]


def _flags(cells: Mapping[int, Sequence[int]], grid: Grid) -> dict[int, NDArray[np.bool_]]:
    counts = grid.cell_counts
    return {f: np.isin(np.arange(counts[f]), own) for f, own in cells.items()}


def _in_box(part: ProductComponent, box: Box) -> ProductComponent:
    """Return a product confined to a box, with its weight there."""
    cells, weight = list(part.cell_weights), part.weight
    for feature, flags in box.items():
        own = np.where(flags, cells[feature], 0.0)
        mass = float(own.sum())
        weight *= mass
        cells[feature] = own / mass if mass else own
    return ProductComponent(weight, cells)


def _moved(part: ProductComponent, to: Mapping[int, int]) -> ProductComponent:
    cells = list(part.cell_weights)
    for feature, cell in to.items():
        cells[feature] = (np.arange(len(cells[feature])) == cell) / 1.0
    return ProductComponent(part.weight, cells)
