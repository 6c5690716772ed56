"""A question in which not every change is allowed everywhere, as a sum over boxes of the domain.

Rules leave out regions, and not every change is allowed (:mod:`xcount.question.allowed`). Every
region is counted in one part, and it may change to all other masks of that part: counts add up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from xcount.problem.joint import joined
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.rules import Box
from xcount.support.workspace import Slot


@dataclass(frozen=True, eq=False)
class Part:
    """The question in one box of the domain.

    Attributes:
        problem: the question on the cells of the box.
        cells: for each feature of the whole question, its cells in the box.
        masks: for each mask of ``problem``, its number in the whole question.
        moved: the cells that features which move along have at the masks that are no starts. These
            features are part of the masks of ``problem``.
    """

    problem: Problem
    whole: Problem
    cells: tuple[NDArray[np.int64], ...]
    masks: NDArray[np.int64]
    moved: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of_box(cls, whole: Problem, box: Box) -> Part:
        """Return the question in a box."""
        grid, sensitive = whole.grid, whole.query.sensitive
        box = whole.of_starts(box)
        cells = [np.array(box.cells.get(f, range(n))) for f, n in enumerate(grid.cell_counts)]
        exists = np.ones([grid.axes[f].n_cells for f in sensitive], dtype=np.bool_)
        if box.masks is not None:
            exists = box.masks
        listed = np.argwhere(exists)
        for place, feature in enumerate(sensitive):
            cells[feature] = np.array(sorted(set(listed[:, place].tolist())))
        numbers = np.array(np.ravel_multi_index(tuple(listed.T), exists.shape), dtype=np.int64)
        starts: tuple[int, ...] | None = None
        if box.starts is not None:
            starts = tuple(np.flatnonzero(box.starts.ravel()[numbers]).tolist())
        ensemble, query = whole.ensemble, whole.query
        own = _grid_of(grid, cells, box.moved)
        if box.moved or len(listed) < np.prod([len(cells[f]) for f in sensitive]):
            places = [np.searchsorted(cells[f], listed[:, i]) for i, f in enumerate(sensitive)]
            for feature, cell in box.moved.items():
                places.append(np.full(len(listed), cell))
                places[-1][list(starts or ())] = cells[feature][0]
            features = (*sensitive, *box.moved)
            rows = np.stack(places, axis=1)
            ensemble, own, joint = joined(ensemble, own, features, rows, len(sensitive))
            query = replace(query, sensitive=(joint,))
        problem = Problem(ensemble, own, query, starts)
        return cls(problem, whole, tuple(cells), numbers, box.moved)

    def apart(self) -> Part:
        """Return the same part with its own working memory, which goes with it.

        Trees laid out on the cells of many parts would not fit into memory together.
        """
        own = self.problem
        return replace(
            self, problem=Problem(own.ensemble, replace(own.grid), own.query, own.starts)
        )

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The numbers in the whole question of the masks that the part counts."""
        return self.masks[list(self.problem.counted_masks)]

    @cached_property
    def _others(self) -> list[int]:
        """The features that are not in the masks, as numbered in the whole question."""
        own = (*self.whole.query.sensitive, *self.moved)
        return [f for f in range(len(self.whole.grid.axes)) if f not in own]

    @cached_property
    def _columns(self) -> list[int]:
        """The features that are not in the masks, as numbered in the part."""
        own = self.problem.query.sensitive
        return [f for f in range(len(self.problem.grid.axes)) if f not in own]

    def rows_of(self, regions: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the numbers of the regions whose non-sensitive cells are in the box."""
        inside = [np.isin(regions[:, f], self.cells[f]) for f in (*self._others, *self.moved)]
        if not inside:
            return np.arange(len(regions))
        return np.flatnonzero(np.logical_and.reduce(inside))

    def to_part(self, regions: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return regions of the box in the cells of the part; the masks are 0."""
        found = np.zeros((len(regions), len(self.problem.grid.axes)), dtype=np.int32)
        for f, column in zip(self._others, self._columns, strict=True):
            found[:, column] = np.searchsorted(self.cells[f], regions[:, f])
        return found

    def to_whole(self, region: NDArray[np.integer], mask: int) -> NDArray[np.int64]:
        """Return a region of the part, with one of its starts, in the cells of the whole."""
        found = np.zeros(len(self.whole.grid.axes), dtype=np.int64)
        for f in self.moved:
            found[f] = self.cells[f][0]
        for f, column in zip(self._others, self._columns, strict=True):
            found[f] = self.cells[f][region[column]]
        cells = self.whole.masks.cells(int(self.masks[mask]))
        found[list(self.whole.query.sensitive)] = cells
        return found

    def weights(
        self, weights: list[NDArray[np.float64]], masses: NDArray[np.float64]
    ) -> tuple[list[NDArray[np.float64]], NDArray[np.float64], float]:
        """Return the weights of the part's cells and masks, with sum 1, and of the part.

        Args:
            weights: the weights of the cells of all features of the whole.
            masses: the weights of all masks of the whole.
        """
        found = [np.ones(n) / n for n in self.problem.grid.cell_counts]
        total = 1.0
        for f, column in zip(self._others, self._columns, strict=True):
            own = weights[f][self.cells[f]]
            total *= float(own.sum())
            found[column] = own / own.sum() if own.sum() else own
        for f in self.moved:
            total *= float(weights[f][self.cells[f][0]])
        own_masses = np.where(np.isin(self.masks, self.starts), masses[self.masks], 0.0)
        share = float(own_masses.sum())
        return found, own_masses / share if share else own_masses, total * share


_Key = tuple[bytes, bytes, tuple[tuple[int, int, int], ...]]
"""Masks, starts, and the features that move along, with their cells before and after."""
_BY_MASKS: Slot[_Key, Part] = Slot("all regions with some masks")
_PARTS: Slot[None, tuple[Part, ...]] = Slot("parts of the domain")


def by_masks(problem: Problem, parts: Sequence[Part]) -> list[tuple[Part, list[int]]]:
    """Merge parts with the same masks into one that has all cells of the other features.

    Each comes with the indices of the parts that it replaces. There are few of them, however many
    boxes the domain has.
    """
    members: dict[_Key, list[int]] = {}
    for number, part in enumerate(parts):
        moved = tuple((f, int(part.cells[f][0]), cell) for f, cell in part.moved.items())
        key = part.masks.tobytes(), part.starts.tobytes(), moved
        members.setdefault(key, []).append(number)
    shape = [problem.grid.axes[f].n_cells for f in problem.query.sensitive]

    def flags(masks: NDArray[np.int64]) -> NDArray[np.bool_]:
        found = np.zeros(shape, dtype=np.bool_)
        found.ravel()[masks] = True
        return found

    def widened(part: Part) -> Part:
        starts = None if part.problem.starts is None else flags(part.starts)
        cells = {f: (int(part.cells[f][0]),) for f in part.moved}
        return Part.of_box(problem, Box(cells, flags(part.masks), starts, part.moved))

    return [
        (problem.workspace.once(_BY_MASKS, key, partial(widened, parts[numbers[0]])), numbers)
        for key, numbers in members.items()
    ]


def _grid_of(grid: Grid, cells: Sequence[NDArray[np.int64]], moved: Mapping[int, int]) -> Grid:
    """Return the grid with only some cells; features that move along keep all of theirs."""
    axes = (
        (axis if f in moved else axis.with_cells(own.tolist())).with_all_targets()
        for f, (axis, own) in enumerate(zip(grid.axes, cells, strict=True))
    )
    return Grid(tuple(axes), grid.input_dtype, grid.domain)


def parts_of(problem: Problem) -> tuple[Part, ...]:
    """Return the question as a sum of parts, cached; empty if it is not split."""
    if not problem.is_split:
        return ()
    boxes = problem.grid.boxes(problem.query.sensitive)
    return problem.workspace.once(
        _PARTS, None, lambda: tuple(Part.of_box(problem, box) for box in boxes)
    )
