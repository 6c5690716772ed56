"""Draws from a domain with rules: from all of its boxes in one go, and never from outside."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from xcount.counters.sampling.draws import (
    BATCH,
    LEVELS,
    CellDraws,
    ProductComponent,
    ends_of,
    moved,
    moved_ends,
)
from xcount.problem.parts import Part, by_masks
from xcount.problem.problem import Problem


class BoxDraws(CellDraws):
    """Random regions of some parts of a question, however thin the domain is.

    A part is drawn by the number of its regions, then a cell of each other feature of its box; the
    outcome is the share of the part's masks that are sensitive there. So the mean is the share of
    all regions of the parts that are sensitive.

    Args:
        problem: the whole question.
        parts: those to draw from.
    """

    def __init__(self, problem: Problem, parts: Sequence[Part]) -> None:
        super().__init__(problem, ())
        groups = by_masks(problem, parts)
        self._groups = [group for group, _ in groups]
        self._group_of = np.empty(len(parts), dtype=np.int64)
        for number, (_, members) in enumerate(groups):
            self._group_of[members] = number
        self._n_masks = np.array([part.problem.n_masks for part in parts], dtype=np.int64)
        ends = list(accumulate(part.problem.n_regions for part in parts))
        self._ends_of_parts = np.array([float(Fraction(end, ends[-1])) for end in ends])
        self._tables = [_Table([part.cells[f] for part in parts]) for f in self._features]
        self._masks_of = _Table([part.masks for part in parts])
        counts = set(self._n_masks.tolist())
        self.levels = min(LEVELS, *counts) if len(counts) == 1 else LEVELS

    def _drawn(
        self, random: np.random.Generator, n: int = BATCH
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Draw cells, and the part that each sample is drawn from."""
        parts = np.searchsorted(self._ends_of_parts, random.random(n), side="right")
        regions = np.zeros((n, self._n_features), dtype=np.int32)
        chances = random.random((len(self._features), n))
        for feature, table, chance in zip(self._features, self._tables, chances, strict=True):
            regions[:, feature] = table.cells(parts, chance)
        return regions, parts

    def regions_and_masks(
        self, random: np.random.Generator, n: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Draw from all regions of the parts: cells of the other features, and masks there."""
        regions, parts = self._drawn(random, n)
        return regions, self._masks_of.cells(parts, random.random(n))

    def _outcomes_of_block(
        self, regions: NDArray[np.int32], parts: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        outcomes = np.zeros(len(regions))
        groups = self._group_of[parts]
        for number in np.unique(groups).tolist():
            rows, group = np.flatnonzero(groups == number), self._groups[number]
            flags = group.problem.form.decide(group.to_part(regions[rows]))
            outcomes[rows] = flags.sum(axis=1) / self._n_masks[parts[rows]]
        return outcomes


class WeighedBoxDraws(BoxDraws):
    """Random combinations under a mixture of product measures, within the boxes of some parts.

    A part and a product are drawn by what the product weighs in the part, then a cell of each other
    feature of its box; the outcome is the weight of the part's masks that are sensitive there. So
    the mean is the share of the parts' weight that is sensitive.

    Args:
        problem: the whole question.
        parts: those to draw from; each has some weight.
        products: the measures, in cells of the whole question.
    """

    def __init__(
        self, problem: Problem, parts: Sequence[Part], products: Sequence[ProductComponent]
    ) -> None:
        super().__init__(problem, parts)
        self.levels = LEVELS
        masses = np.array([[_mass(part, product) for product in products] for part in parts])
        self._ends_of_sources = ends_of(masses.ravel())
        self._n_products = len(products)
        self._weighed = [
            _WeighedTable([part.cells[f] for part in parts], [p.cell_weights[f] for p in products])
            for f in self._features
        ]
        self._weights_of_masks = [_mask_weights(group, products) for group in self._groups]

    def _drawn(
        self, random: np.random.Generator, n: int = BATCH
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Draw cells, and the part and product that each sample is drawn from, as one number."""
        sources = np.searchsorted(self._ends_of_sources, random.random(n), side="right")
        parts, products = np.divmod(sources, self._n_products)
        regions = np.zeros((n, self._n_features), dtype=np.int32)
        chances = random.random((len(self._features), n))
        for feature, table, chance in zip(self._features, self._weighed, chances, strict=True):
            regions[:, feature] = table.cells(parts, products, chance)
        return regions, sources

    def _outcomes_of_block(
        self, regions: NDArray[np.int32], parts: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        outcomes = np.zeros(len(regions))
        numbers, products = np.divmod(parts, self._n_products)
        groups = self._group_of[numbers]
        for number in np.unique(groups).tolist():
            rows, group = np.flatnonzero(groups == number), self._groups[number]
            flags = group.problem.form.decide(group.to_part(regions[rows]))
            weights = self._weights_of_masks[number][products[rows]]
            outcomes[rows] = np.einsum("ij,ij->i", flags, weights)
        return np.clip(outcomes, 0.0, 1.0)


def _mass(part: Part, product: ProductComponent) -> float:
    """Return what a part weighs under one product of a mixture."""
    mass = part.weights(list(product.cell_weights), product.mask_weights)[2]
    return product.weight * mass


def _mask_weights(group: Part, products: Sequence[ProductComponent]) -> NDArray[np.float64]:
    """Return what the masks of a part weigh under each product, with sum 1 where they do."""
    masses = np.array([product.mask_weights[group.masks] for product in products])
    sums = masses.sum(axis=1, keepdims=True)
    weights: NDArray[np.float64] = np.divide(masses, sums, out=masses, where=sums > 0)
    return weights


class _WeighedTable:
    """For each part and product the cells that the part's box has of one feature, by weight.

    Few parts differ in the cells of a feature, so each set of cells is kept once. The ends of a
    set's cells on [0, 1) are moved by its number: one search finds the cells of all samples.
    """

    def __init__(
        self, cells: Sequence[NDArray[np.int64]], weights: Sequence[NDArray[np.float64]]
    ) -> None:
        sets: dict[bytes, int] = {}
        distinct: list[NDArray[np.int64]] = []
        for own in cells:
            if sets.setdefault(own.tobytes(), len(sets)) == len(distinct):
                distinct.append(own)
        self._set_of = np.array([sets[own.tobytes()] for own in cells])
        self._n_products = len(weights)
        ends = [_ends(weight[own]) for own in distinct for weight in weights]
        self._ends = moved_ends(ends)
        self._cells = np.concatenate([own for own in distinct for _ in weights])

    def cells(
        self, parts: NDArray[np.int64], products: NDArray[np.int64], chances: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Return a cell of each part, chosen by a number in [0, 1)."""
        rows = self._set_of[parts] * self._n_products + products
        ends = np.searchsorted(self._ends, moved(rows, chances), side="right")
        found: NDArray[np.int64] = self._cells[ends]
        return found


def _ends(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return where cells end on [0, 1); a product that weighs nothing here is never drawn."""
    return ends_of(weights if weights.any() else np.ones(len(weights)))


class _Table:
    """For each part the cells that its box has of one feature, or its masks."""

    def __init__(self, cells: Sequence[NDArray[np.int64]]) -> None:
        self._sizes = np.array([len(own) for own in cells])
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._cells = np.concatenate(cells)

    def cells(self, parts: NDArray[np.int64], chances: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return a cell of each part, chosen by a number in [0, 1)."""
        within = (chances * self._sizes[parts]).astype(np.int64)
        found: NDArray[np.int64] = self._cells[self._starts[parts] + within]
        return found
