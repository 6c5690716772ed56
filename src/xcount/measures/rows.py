"""Rows of data as a measure: every row weighs the same, and is sensitive if its region is."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from xcount.errors import QueryError
from xcount.measures.measure import Box, Measure, inside
from xcount.measures.weighting import Weighing
from xcount.question.domain import EVERYTHING
from xcount.question.grid import Grid


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows(Measure):
    """The rows of a table that lie in a region.

    Attributes:
        regions: of these rows.
        numbers: of these rows in the table.
        values: their inputs, a column for each feature.
        left_out: the numbers of the other rows of the table.
    """

    regions: NDArray[np.int64]
    numbers: NDArray[np.int64]
    values: NDArray[np.float64]
    left_out: NDArray[np.int64]

    @classmethod
    def of(cls, grid: Grid, weighing: Weighing) -> Rows:
        """Return the rows of the data on the cells of a grid.

        Raises:
            QueryError: no row lies in a region.
        """
        assert weighing.rows is not None
        regions = grid.cells_of(weighing.rows)
        placed = np.flatnonzero((regions >= 0).all(axis=1))
        placed = placed[grid.exists(regions[placed])]
        if not len(placed):
            domain = "" if grid.domain == EVERYTHING else "lies outside the domain, or "
            raise QueryError(
                f"no row of {weighing.source} lies in a region: each {domain}has a missing value "
                "or an unknown category; --missing cell has cells for missing values"
            )
        return cls(
            name="rows",
            grid=grid,
            details={"source": weighing.source},
            regions=regions[placed],
            numbers=placed,
            values=weighing.rows[placed],
            left_out=np.setdiff1d(np.arange(len(regions)), placed),
        )

    @property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(self.name.encode())
        digest.update(self.regions.tobytes())
        digest.update(self.values.tobytes())
        return digest.hexdigest()

    def mass(self, box: Box) -> float:
        return float(inside(self.regions, box).mean())

    def marginal(self, feature: int) -> NDArray[np.float64]:
        counts = np.bincount(self.regions[:, feature], minlength=self.grid.axes[feature].n_cells)
        return counts / len(self.regions)

    def draw(
        self, random: np.random.Generator, n: int, box: Box | None = None
    ) -> NDArray[np.int64]:
        here = self.regions[inside(self.regions, box or {})]
        return here[random.integers(len(here), size=n)]

    def moved(self, cells: Mapping[int, int]) -> Self:
        regions = self.regions.copy()
        for feature, cell in cells.items():
            regions[:, feature] = cell
        return replace(self, regions=regions)

    def extended(self, grid: Grid, cells: Sequence[NDArray[np.float64]]) -> Self:
        more = np.tile([int(own.argmax()) for own in cells], (len(self.regions), 1))
        return replace(self, grid=grid, regions=np.concatenate([self.regions, more], axis=1))
