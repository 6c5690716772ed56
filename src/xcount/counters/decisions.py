"""Which masks are sensitive at given cells: by evaluation, in integers.

Counters work on sets of regions. Measures of rows, witnesses and weighted samples need decisions
about single given regions: these are made here.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from xcount.counters.costs import (
    BLOCK_FLAGS,
    MAX_CELL_ROW,
    MAX_FLAGS,
    MAX_PROBED_ROWS,
    MAX_ROW,
    PROBE_WALKS,
)
from xcount.counters.region_search import RegionSearch
from xcount.counters.settings import Settings
from xcount.problem.form import refuse_many_masks
from xcount.problem.parts import by_masks, parts_of
from xcount.problem.problem import Problem


def n_decided_together(problem: Problem) -> int:
    """Return the number of masks, plus pairs of masks to list, needed to decide a row."""
    lists_pairs = len(problem.query.sensitive) > 1 and problem.distance is not None
    return problem.n_masks + (problem.n_pairs_about if lists_pairs else 0)


def count_hits_in_probe(problem: Problem, settings: Settings) -> int:
    """Decide a few random regions; return how many distinct ones are sensitive."""
    decider = RegionDecider(problem)
    if decider.searches:
        return 0  # a single region may use up all of the time
    generator = np.random.default_rng([settings.seed & (2**64 - 1), 4])
    walks = problem.n_masks * max(1, problem.form.n_trees)
    n_rows = max(1, min(MAX_PROBED_ROWS, decider.block, PROBE_WALKS // walks))
    sizes = _row_sizes(problem)
    rows = {tuple(row) for row in generator.integers(0, sizes, (n_rows, len(sizes))).tolist()}
    return int(decider.decide(np.array(sorted(rows))).sum())


def _row_sizes(problem: Problem) -> NDArray[np.int64]:
    """Return the numbers of cells of a row of all masks: one for each sensitive feature."""
    sizes = np.array(problem.grid.cell_counts)
    sizes[list(problem.query.sensitive)] = 1
    return sizes


def is_long_row(problem: Problem) -> bool:
    """Return whether samples are single searched regions rather than rows of all masks."""
    is_native = problem.form.native_draws() is not None
    return n_decided_together(problem) > (MAX_ROW if is_native else MAX_CELL_ROW)


class RegionDecider:
    """Decides all masks of given combinations of non-sensitive cells.

    Example:
        >>> from xcount.model.examples import figure_1
        >>> from xcount.question.grid import Grid
        >>> from xcount.question.query import Query
        >>> model = figure_1()
        >>> problem = Problem(model, Grid.of(model), Query.of(model, "f0", 80))
        >>> decider = RegionDecider(problem)
        >>> decider.decide(np.array([[0, 0], [0, 1], [0, 2]])).astype(int).tolist()
        [[1, 1, 0], [0, 0, 0], [0, 0, 0]]
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    @property
    def block(self) -> int:
        """The number of combinations to decide at a time."""
        return max(1, BLOCK_FLAGS // self.problem.form.flags_per_row)

    def decide(self, regions: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return whether each mask is sensitive at each row of cells, shape (n_rows, n_masks).

        The cells of the sensitive features in ``regions`` do not matter.
        """
        refuse_many_masks(self.problem.n_masks, MAX_FLAGS)
        if self.problem.is_split:
            return self._decide_parts(np.array(regions, ndmin=2))
        cells = np.array(regions, dtype=np.int32, ndmin=2)
        cells[:, list(self.problem.query.sensitive)] = 0
        self._check(cells)
        blocks = (cells[i : i + self.block] for i in range(0, len(cells), self.block))
        flags = [self.problem.form.decide(block) for block in blocks]
        found = np.concatenate(flags) if flags else self.problem.form.decide(cells)
        if self.problem.starts is not None:
            found &= np.isin(np.arange(self.problem.n_masks), self.problem.starts)
        return found

    def decide_all(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return all combinations of non-sensitive cells and their decisions, for small grids."""
        sizes = _row_sizes(self.problem)
        rows = np.stack(np.unravel_index(np.arange(sizes.prod()), sizes), axis=1)
        return rows, self.decide(rows)

    def _decide_parts(self, regions: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Decide parts with the same masks together: regions outside are not sensitive.

        So trees are laid out once for each set of masks, not once for each box of the domain.
        """
        flags = np.zeros((len(regions), self.problem.n_masks), dtype=np.bool_)
        parts = parts_of(self.problem)
        for group, members in by_masks(self.problem, parts):
            if group.n_masks < 2:  # nothing changes
                continue
            rows = np.concatenate([parts[number].rows_of(regions) for number in members])
            if len(rows):
                own = group.problem.form.decide(group.to_part(regions[rows]))
                flags[np.ix_(rows, group.starts)] = own[:, list(group.problem.counted_masks)]
        return flags

    @cached_property
    def search(self) -> RegionSearch:
        """The search that decides single regions without a list of masks."""
        return RegionSearch(self.problem.form.corner_question)

    @cached_property
    def can_search(self) -> bool:
        """Whether a search may decide single regions."""
        return not self.problem.is_split

    @cached_property
    def searches(self) -> bool:
        """Whether there are so many masks and pairs that single regions are decided by a search."""
        return self.can_search and n_decided_together(self.problem) > MAX_ROW

    @cached_property
    def _searches_soonest(self) -> bool:
        """Whether a search decides a single region faster than a row of all masks does.

        A search within a short distance meets few masks, however many there are.
        """
        if not self.can_search:
            return False
        if self.problem.distance is None:
            return is_long_row(self.problem)
        return n_decided_together(self.problem) > MAX_CELL_ROW

    def _check(self, cells: NDArray[np.int32]) -> None:
        sizes = np.array(self.problem.grid.cell_counts)
        if cells.shape[1] != len(sizes) or ((cells < 0) | (cells >= sizes)).any():
            raise IndexError("a region names a cell that does not exist")

    def masks_of(self, regions: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the number of each region's mask."""
        masks = np.zeros(len(regions), dtype=np.int64)
        for feature in self.problem.query.sensitive:
            masks = masks * self.problem.grid.axes[feature].n_cells + regions[:, feature]
        return masks

    def decide_regions(
        self, regions: NDArray[np.integer], seconds: float = math.inf
    ) -> NDArray[np.bool_]:
        """Return whether each region is sensitive, shape (n_rows,).

        Raises:
            OutOfLimitsError: time ran out during a search.
        """
        cells = np.array(regions, dtype=np.int32, ndmin=2)
        if self.searches:
            self._check(cells)
            return self.search.decide(cells, seconds)
        if not self._searches_soonest:
            return self._decide_in_rows(regions)
        self._check(cells)
        flags, doubtful = self.search.tried(cells, seconds)
        flags[doubtful] = self._decide_in_rows(cells[doubtful])
        return flags

    def _decide_in_rows(self, regions: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Decide all masks at the cells of each region, and look up the region's own."""
        masks = self.masks_of(regions)
        flags = [np.empty(0, dtype=np.bool_)]
        for start in range(0, len(regions), self.block):
            part = slice(start, start + self.block)
            chosen = masks[part, np.newaxis]
            flags.append(np.take_along_axis(self.decide(regions[part]), chosen, axis=1)[:, 0])
        return np.concatenate(flags)
