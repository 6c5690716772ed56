"""Samples under a mixture of product measures.

:class:`MixtureSampler` draws cells. Two kinds of draws feed estimates with them:
:class:`MixtureDraws` decides all masks at a combination of the other cells, and
:class:`SearchedDraws` decides single regions if masks are too many for that.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.counters.engine import Outcomes
from xcount.counters.region_search import region_sampler
from xcount.counters.sampling.draws import BATCH, LEVELS, CellDraws, searched_sample_seconds
from xcount.measures.products import ProductComponent
from xcount.problem.parts import Part, by_masks
from xcount.problem.problem import Problem

Cells = NDArray[np.int32]
Numbers = NDArray[np.int64]


class MixtureSampler:
    """Draws cells from a mixture of products, by inverting their distribution functions.

    Args:
        weights: of the products; their sum need not be 1.
        cells: for each product the weights of the cells of every feature.
        features: those whose cells are drawn; the cells of the others are 0.
        always_chooses: whether choosing among products takes a random number even if there is only
            one product.
    """

    def __init__(
        self,
        weights: Sequence[float],
        cells: Sequence[Sequence[NDArray[np.float64]]],
        features: Sequence[int],
        *,
        always_chooses: bool,
    ) -> None:
        self._ends = ends_of(np.array(weights))
        self._chooses = always_chooses or len(weights) > 1
        self._features, self._n_features = list(features), len(cells[0])
        self._tables = [Table([own[f] for own in cells]) for f in features]

    def draw(self, random: np.random.Generator, n: int) -> tuple[Cells, Numbers]:
        """Draw regions, and the number of the product that each is drawn from."""
        products = np.zeros(n, dtype=np.int64)
        if self._chooses:
            products = np.searchsorted(self._ends, random.random(n), side="right")
        regions = np.zeros((n, self._n_features), dtype=np.int32)
        chances = random.random((len(self._features), n))
        for feature, table, chance in zip(self._features, self._tables, chances, strict=True):
            regions[:, feature] = table.draw(products, chance)
        return regions, products


class Table:
    """One discrete distribution for each of several products.

    The cumulative weights of each distribution are shifted by its position in the table, so that
    one search serves all samples. Products that share an array share its position.

    Args:
        weights: for each product those of the numbers 0, 1, ...; nothing is drawn from a product
            whose weights are all 0.
    """

    def __init__(self, weights: Sequence[NDArray[np.float64]]) -> None:
        distinct = {id(own): own for own in weights}
        places = {key: place for place, key in enumerate(distinct)}
        self._place_of = np.array([places[id(own)] for own in weights])
        ends = (ends_of(own if own.any() else np.ones(len(own))) for own in distinct.values())
        self._ends = np.concatenate([own + place for place, own in enumerate(ends)])
        self._numbers = np.concatenate([np.arange(len(own)) for own in distinct.values()])

    def draw(self, products: Numbers, chances: NDArray[np.float64]) -> Numbers:
        """Return a number for each sample, given its product and a random number in [0, 1)."""
        places = self._place_of[products]
        moved = np.minimum(places + chances, np.nextafter(places + 1.0, 0.0))  # sums may round up
        found: Numbers = self._numbers[np.searchsorted(self._ends, moved, side="right")]
        return found


def ends_of(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cumulative weights of numbers, scaled so that the last is 1."""
    ends = np.cumsum(weights) / np.sum(weights)
    ends[np.flatnonzero(weights)[-1] :] = 1.0
    return ends


class MixtureDraws(CellDraws):
    """Combinations of non-sensitive cells under a mixture, in some parts of a question.

    A part and a product are drawn by the weight of the product in the part, then a cell of each
    non-sensitive feature. The outcome is the weight of the part's masks that are sensitive there:
    the mean of the outcomes is the sensitive share of the parts' weight.

    Args:
        problem: the whole question.
        products: the mixture, in cells of the whole question.
        parts: parts of a domain with rules, each with some weight; None without rules.
    """

    def __init__(
        self,
        problem: Problem,
        products: Sequence[ProductComponent],
        parts: Sequence[Part] | None = None,
    ) -> None:
        super().__init__(problem, ())
        self.levels = LEVELS
        self._products = products
        if parts is None:
            groups = [(Part.of_whole(problem), [0])]
            weights = [product.weight for product in products]
            cells = [product.cell_weights for product in products]
        else:
            groups = by_masks(problem, parts)
            weights = [product.in_part(part).weight for part in parts for product in products]
            cells = _cells_in_parts(parts, products)
        self._groups = [group for group, _ in groups]
        self._group_of = np.empty(sum(len(members) for _, members in groups), dtype=np.int64)
        for number, (_, members) in enumerate(groups):
            self._group_of[members] = number
        self._sampler = MixtureSampler(
            weights, cells, self._features, always_chooses=parts is not None
        )
        self._mask_weights = [_mask_weights(group, products) for group in self._groups]

    def _drawn(self, random: np.random.Generator, n: int = BATCH) -> tuple[Cells, Numbers]:
        """Draw cells, and the part and product of each sample, as one number."""
        return self._sampler.draw(random, n)

    @cached_property
    def _masks_of_products(self) -> Table:
        return Table([product.mask_weights for product in self._products])

    def single_regions(self, random: np.random.Generator, n: int) -> tuple[Cells, Numbers]:
        """Draw regions of a question without rules: cells, those of sensitive features 0, masks."""
        regions, products = self._drawn(random, n)
        return regions, self._masks_of_products.draw(products, random.random(n))

    def _outcomes_of_block(self, regions: Cells, sources: Numbers) -> NDArray[np.float64]:
        outcomes = np.zeros(len(regions))
        parts, products = np.divmod(sources, len(self._products))
        groups = self._group_of[parts]
        for number in np.unique(groups).tolist():
            rows, group = np.flatnonzero(groups == number), self._groups[number]
            is_whole = group.problem is self._problem
            cells = regions[rows] if is_whole else group.to_part(regions[rows])
            weighed = group.problem.form.decide(cells) @ self._mask_weights[number].T
            outcomes[rows] = weighed[np.arange(len(rows)), products[rows]]
        return np.clip(outcomes, 0.0, 1.0)


def _cells_in_parts(
    parts: Sequence[Part], products: Sequence[ProductComponent]
) -> list[Sequence[NDArray[np.float64]]]:
    """Return cell weights for each part and product; few parts differ in the cells of a feature."""
    found: dict[tuple[int, int, bytes], NDArray[np.float64]] = {}

    def inside(part: Part, number: int, feature: int) -> NDArray[np.float64]:
        cells, weights = part.cells[feature], products[number].cell_weights[feature]
        key = (number, feature, cells.tobytes())
        if key not in found:
            found[key] = np.zeros(len(weights))
            found[key][cells] = weights[cells]
        return found[key]

    features = range(len(parts[0].cells))
    return [
        [inside(part, number, feature) for feature in features]
        for part in parts
        for number in range(len(products))
    ]


def _mask_weights(group: Part, products: Sequence[ProductComponent]) -> NDArray[np.float64]:
    """Return the weights of a part's masks under each product, with sum 1 unless all are 0."""
    is_start = np.isin(group.masks, group.starts)
    masses = np.array([product.mask_weights[group.masks] * is_start for product in products])
    sums = masses.sum(axis=1, keepdims=True)
    weights: NDArray[np.float64] = np.divide(masses, sums, out=masses, where=sums > 0)
    return weights


class SearchedDraws:
    """Single regions under a mixture, masks included, each decided by a search.

    No list of masks is made: the weight of a mask is that of its cells.

    Args:
        problem: the question.
        products: the mixture.
    """

    levels = 1

    def __init__(self, problem: Problem, products: Sequence[ProductComponent]) -> None:
        self._problem = problem
        features = [f for f, n in enumerate(problem.grid.cell_counts) if n > 1]
        weights, cells = zip(*((p.weight, p.cell_weights) for p in products), strict=True)
        self._sampler = MixtureSampler(weights, cells, features, always_chooses=False)

    @property
    def n_trees(self) -> float:
        return float(self._problem.form.n_trees)

    @cached_property
    def _search(self) -> _core.RegionSampler:
        return region_sampler(self._problem.form.corner_question)

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs; the native search is made again there."""
        return {name: value for name, value in self.__dict__.items() if name != "_search"}

    @property
    def seconds_per_sample(self) -> float:
        return searched_sample_seconds(self.n_trees)

    def regions(self, random: np.random.Generator, n: int = BATCH) -> Cells:
        """Draw regions, cells of the sensitive features included."""
        return self._sampler.draw(random, n)[0]

    def draw(
        self,
        seed: int,
        stream: int,
        first: int,
        n: int,
        n_threads: int,
        seconds: float = math.inf,
        on_pause: Callable[[], None] | None = None,
    ) -> Outcomes:
        """Return the histogram of the outcomes of n batches, and the hits of their samples."""
        end = time.monotonic() + seconds
        found = []
        for batch in range(first, first + n):
            regions = self.regions(np.random.default_rng([seed, stream, batch]))
            left = max(0.0, end - time.monotonic())
            found.append(self._search.decide(regions.ravel(), None, None, left, on_pause))
            if len(found[-1]) < BATCH:
                return np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint8)
        answers = np.concatenate(found)
        hits, upper = (flags.astype(np.uint8) for flags in (answers == 1, answers != 2))
        both = [hits] if np.array_equal(hits, upper) else [hits, upper]
        pairs = [(np.bincount(each, minlength=2).astype(np.uint64), each) for each in both]
        return tuple(array for pair in pairs for array in pair)
