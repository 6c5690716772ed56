"""A measure: what regions weigh.

- ``regions``: every region weighs the same. Its share is the count itself.
- ``volume``: inputs are uniform over a box.
- ``marginals``: a cell weighs the fraction of the data's rows in it; features are independent.
- ``population``: a mixture of product distributions, fitted to the data.
- ``rows``: every row of the data weighs the same.

The first four are mixtures of products (:mod:`xcount.measures.mixture`), the last one is a list of
regions (:mod:`xcount.measures.rows`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from xcount.question.grid import Grid

Box = Mapping[int, NDArray[np.bool_]]
"""For some features, which of their cells are inside; all cells of other features are."""


def inside(regions: NDArray[np.integer], box: Box) -> NDArray[np.bool_]:
    """Return which regions are in a box."""
    found = np.ones(len(regions), dtype=np.bool_)
    for feature, flags in box.items():
        found &= flags[regions[:, feature]]
    return found


@dataclass(frozen=True, eq=False, kw_only=True)
class Measure(ABC):
    """What the regions of a grid weigh; the whole weight is 1.

    Attributes:
        name: ``regions``, ``volume``, ``marginals``, ``population`` or ``rows``.
        grid: the cells, and the rules that regions satisfy.
        details: what a result reports about the measure, such as its source.
    """

    name: str
    grid: Grid
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A hash of all weights."""

    @abstractmethod
    def mass(self, box: Box) -> float:
        """Return the weight of a box."""

    @abstractmethod
    def marginal(self, feature: int) -> NDArray[np.float64]:
        """Return the weight of each cell of a feature."""

    @abstractmethod
    def draw(
        self, random: np.random.Generator, n: int, box: Box | None = None
    ) -> NDArray[np.int64]:
        """Draw regions in a box by their weight, independently."""

    @abstractmethod
    def moved(self, cells: Mapping[int, int]) -> Self:
        """Return the measure with all its weight moved to given cells of some features.

        The grid must have no rules.
        """

    @abstractmethod
    def extended(self, grid: Grid, cells: Sequence[NDArray[np.float64]]) -> Self:
        """Return the measure on a grid with more axes, given the weights of their cells."""
