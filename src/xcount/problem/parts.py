"""A question in which not every change is allowed everywhere, as a sum over boxes of the domain.

Rules leave out regions, and not every change is allowed (:mod:`xcount.question.allowed`). Every
region is counted in one part, and it may change to all other masks of that part: counts add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from xcount.problem.joint import JointTests
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.rules import Box
from xcount.support.workspace import Slot


@dataclass(frozen=True, eq=False)
class Part:
    """The question in one box of the domain.

    Its own question is made when it is first asked for: a domain may have thousands of parts.

    Attributes:
        whole: the whole question.
        cells: for each feature of the whole question, its cells in the box.
        masks: for each mask of ``problem``, its number in the whole question.
        places: those of ``masks`` whose regions are counted; None for all.
        moved: the cells that features which move along have at the masks that are no starts. These
            features are part of the masks of ``problem``.
    """

    whole: Problem
    cells: tuple[NDArray[np.int64], ...]
    masks: NDArray[np.int64]
    places: tuple[int, ...] | None = None
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
        places: tuple[int, ...] | None = None
        if box.starts is not None:
            places = tuple(np.flatnonzero(box.starts.ravel()[numbers]).tolist())
        return cls(whole, tuple(cells), numbers, places, box.moved)

    @classmethod
    def of_whole(cls, whole: Problem) -> Part:
        """Return a question that is not split as its only part."""
        cells = tuple(np.arange(n) for n in whole.grid.cell_counts)
        found = cls(whole, cells, np.arange(whole.n_masks), whole.starts)
        vars(found)["problem"] = whole  # in the place of the property: nothing is made again
        return found

    @property
    def n_masks(self) -> int:
        return len(self.masks)

    @cached_property
    def n_regions(self) -> int:
        """The number of regions that the part counts."""
        return len(self.starts) * math.prod(len(self.cells[f]) for f in self._others)

    @cached_property
    def problem(self) -> Problem:
        """The question on the cells of the box."""
        whole, sensitive = self.whole, self.whole.query.sensitive
        grid = _grid_of(whole.grid, self.cells, self.moved)
        if not self.moved and self.n_masks == math.prod(len(self.cells[f]) for f in sensitive):
            return Problem(whole.ensemble, grid, whole.query, self.places)
        listed = self._listed
        own = [np.searchsorted(self.cells[f], listed[:, i]) for i, f in enumerate(sensitive)]
        tests = _tests_of(whole, (*sensitive, *self.moved))
        ensemble, grid = tests.joined(
            grid,
            [grid.axes[f] for f in sensitive],
            np.stack(own, axis=1),
            np.column_stack([listed, *self._moved_cells()]),
        )
        query = replace(whole.query, sensitive=(tests.number_of_joint,))
        return Problem(ensemble, grid, query, self.places)

    @property
    def _listed(self) -> NDArray[np.int64]:
        """The cells of the sensitive features at each mask, a row for each."""
        shape = [self.whole.grid.axes[f].n_cells for f in self.whole.query.sensitive]
        return np.stack(np.unravel_index(self.masks, shape), axis=1)

    def _moved_cells(self) -> Iterator[NDArray[np.int64]]:
        """Yield the cells at each mask of the features that move along."""
        for feature, cell in self.moved.items():
            found = np.full(self.n_masks, cell)
            found[list(self.places or ())] = self.cells[feature][0]
            yield found

    def apart(self) -> Part:
        """Return the same part with its own working memory, which goes with it.

        Trees laid out on the cells of many parts would not fit into memory together.
        """
        return replace(self)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The numbers in the whole question of the masks that the part counts."""
        return self.masks if self.places is None else self.masks[list(self.places)]

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
_TESTS: Slot[tuple[int, ...], JointTests] = Slot("trees with some features joined")
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
        starts = None if part.places is None else flags(part.starts)
        cells = {f: (int(part.cells[f][0]),) for f in part.moved}
        return Part.of_box(problem, Box(cells, flags(part.masks), starts, part.moved))

    return [
        (problem.workspace.once(_BY_MASKS, key, partial(widened, parts[numbers[0]])), numbers)
        for key, numbers in members.items()
    ]


def _tests_of(whole: Problem, features: tuple[int, ...]) -> JointTests:
    """Return the trees with some features joined, which all parts share."""
    return whole.workspace.once(
        _TESTS, features, lambda: JointTests(whole.ensemble, whole.grid, features)
    )


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
