"""Rows of data as a measure: every row weighs the same, and is sensitive if its region is."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from xcount.errors import QueryError
from xcount.measures.measure import Box, Measure, inside
from xcount.measures.weighting import Weighing
from xcount.model.inputs import Inputs
from xcount.question.grid import Grid
from xcount.support.workspace import Slot

_Key = tuple[Inputs, str, tuple[tuple[str, int], ...]]
_IS_MISSING = " is missing"


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows(Measure):
    """The rows of a table that lie in a region.

    Attributes:
        regions: of these rows.
        numbers: of these rows in the table.
        inputs: of these rows.
        n_outside: how many other rows the domain leaves out.
        left_out: the numbers of the rows without a place, by the reason.
    """

    regions: NDArray[np.int32]
    numbers: NDArray[np.int64]
    inputs: Inputs
    n_outside: int
    left_out: Mapping[str, Sequence[int]]

    @classmethod
    def of(cls, grid: Grid, weighing: Weighing) -> Rows:
        """Return the rows of the data on the cells of a grid.

        Raises:
            QueryError: no row lies in a region.
        """
        assert weighing.inputs is not None
        left_out = tuple((reason, len(rows)) for reason, rows in weighing.unreadable.items())
        key = (weighing.inputs, weighing.source, left_out)
        return grid.workspace.once(_ROWS, key, lambda: cls._placed(grid, weighing))

    @classmethod
    def _placed(cls, grid: Grid, weighing: Weighing) -> Rows:
        inputs = weighing.inputs
        assert inputs is not None
        regions = grid.cells_of(inputs)
        is_outside = grid.outside(inputs, regions)
        is_outside[weighing.unreadable_rows] = False
        left_out = {**weighing.unreadable, **_without_place(grid, weighing, regions, is_outside)}
        is_placed = ~is_outside
        for rows in left_out.values():
            is_placed[np.asarray(rows, dtype=np.int64)] = False
        placed = np.flatnonzero(is_placed)
        if not len(placed):
            raise QueryError(_nothing_placed(weighing.source, int(is_outside.sum()), left_out))
        return cls(
            name="rows",
            grid=grid,
            details={"source": weighing.source},
            regions=regions if len(placed) == len(regions) else regions[placed],
            numbers=placed,
            inputs=inputs if len(placed) == len(regions) else inputs.at(placed),
            n_outside=int(is_outside.sum()),
            left_out=left_out,
        )

    def without(self, positions: range, reason: str) -> Rows:
        """Return the rows but for those at the given positions, which are left out."""
        kept = np.delete(np.arange(len(self.numbers)), positions)
        lost = tuple(np.delete(self.numbers, kept).tolist())
        return replace(
            self,
            regions=self.regions[kept],
            numbers=self.numbers[kept],
            inputs=self.inputs.at(kept),
            left_out={**self.left_out, reason: lost},
        )

    @property
    def n_left_out(self) -> int:
        """The number of rows without a place."""
        return sum(map(len, self.left_out.values()))

    @property
    def n_rows(self) -> int:
        """The number of rows of the table."""
        return len(self.numbers) + self.n_outside + self.n_left_out

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(self.name.encode())
        digest.update(self.regions.tobytes())
        for block in self.inputs.blocks():
            digest.update(block.data)
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
        return here[random.integers(len(here), size=n)].astype(np.int64)

    def moved(self, cells: Mapping[int, int]) -> Self:
        regions = self.regions.copy()
        for feature, cell in cells.items():
            regions[:, feature] = cell
        return replace(self, regions=regions)

    def extended(self, grid: Grid, cells: Sequence[NDArray[np.float64]]) -> Self:
        added = np.array([own.argmax() for own in cells], dtype=np.int32)
        more = np.tile(added, (len(self.regions), 1))
        return replace(self, grid=grid, regions=np.concatenate([self.regions, more], axis=1))


_ROWS: Slot[_Key, Rows] = Slot("rows of a table in the cells of a grid")


def _without_place(
    grid: Grid,
    weighing: Weighing,
    regions: NDArray[np.int32],
    is_outside: NDArray[np.bool_],
) -> dict[str, tuple[int, ...]]:
    """Return the readable rows inside the domain that have a value in no cell, by the reason."""
    assert weighing.inputs is not None
    is_unplaced = (regions.min(axis=1, initial=0) < 0) & ~is_outside
    is_unplaced[weighing.unreadable_rows] = False
    unplaced = np.flatnonzero(is_unplaced)
    first_without = regions[unplaced].argmin(axis=1)
    found: dict[str, tuple[int, ...]] = {}
    for feature in np.unique(first_without).tolist():
        rows = unplaced[first_without == feature]
        is_missing = np.isnan(weighing.inputs.columns[feature].at(rows).numbers())
        name = grid.axes[feature].feature.name
        found[name + _IS_MISSING] = tuple(rows[is_missing].tolist())
        found[f"{name} is an unknown category"] = tuple(rows[~is_missing].tolist())
    return {reason: rows for reason, rows in found.items() if rows}


def _nothing_placed(source: str, n_outside: int, left_out: Mapping[str, Sequence[int]]) -> str:
    """Return why no row lies in a region."""
    reasons = [f"{reason} ({len(rows):,})" for reason, rows in left_out.items()]
    if n_outside:
        reasons.insert(0, f"outside the domain ({n_outside:,})")
    advice = (
        "; --missing auto places missing values as the model routes them, if it takes any"
        if any(reason.endswith(_IS_MISSING) for reason in left_out)
        else ""
    )
    return f"no row of {source} lies in a region: {'; '.join(reasons)}{advice}"
