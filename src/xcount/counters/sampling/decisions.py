"""Which masks are sensitive at given cells: by evaluation, in integers.

Counters eliminate and estimate; measures of rows, witnesses and samples under other weights ask
about given regions instead, and about a gap and a flip alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.errors import BudgetError
from xcount.problem.flip_encoding import OFF, FlipEncoding
from xcount.problem.problem import Problem
from xcount.support.numerals import scientific_text

MAX_PAIRS = 2_000_000
"""Pairs of masks that deciding about flips at a limited distance accepts."""

MAX_FLAGS = 1 << 24
"""Flags decided at a time, and masks of one combination."""

_SENSITIVE = 1  # of the native search for one region
_ANY_BUDGET = 2**62


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
        self._flips = None
        if problem.query.flip:
            _check_masks(problem)
            self._flips = _FlipDecider(problem)

    @cached_property
    def _sampler(self) -> _core.Sampler:
        if self._flips is not None:
            return self._flips.sampler
        _check_masks(self.problem)
        return _sampler(self.problem, np.arange(self.problem.n_masks, dtype=np.int64), None)

    @property
    def n_trees(self) -> int:
        """Number of trees that deciding evaluates."""
        return self._sampler.n_trees

    @property
    def block(self) -> int:
        """How many combinations to decide at a time."""
        return max(1, MAX_FLAGS // self._sampler.n_masks)

    def decide(self, regions: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return whether each mask is sensitive at each row of cells, shape (n_rows, n_masks).

        The cells of the sensitive features in ``regions`` do not matter.
        """
        cells = np.array(regions, dtype=np.int32, ndmin=2)
        cells[:, list(self.problem.query.sensitive)] = 0
        self._check(cells)
        if self._flips is not None:
            return self._flips.decide(cells)
        flags = self._sampler.decide(cells.ravel())
        return flags.reshape(len(cells), self.problem.n_masks).astype(np.bool_)

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

    def decide_regions(self, regions: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return whether each region is sensitive, shape (n_rows,)."""
        if self.problem.n_masks > MAX_FLAGS and self._flips is None:
            return self._search_regions(regions)
        masks = self.masks_of(regions)
        flags = [np.empty(0, dtype=np.bool_)]
        for start in range(0, len(regions), self.block):
            part = slice(start, start + self.block)
            chosen = masks[part, np.newaxis]
            flags.append(np.take_along_axis(self.decide(regions[part]), chosen, axis=1)[:, 0])
        return np.concatenate(flags)

    def _search_regions(self, regions: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Decide region by region, without a list of masks."""
        problem, cells = self.problem, np.array(regions, dtype=np.int32, ndmin=2)
        self._check(cells)
        sensitive, gap = list(problem.query.sensitive), problem.threshold_limbs
        search = _core.RegionSampler(problem.forest, sensitive, problem.distance, gap, _ANY_BUDGET)
        sensitive_flags: NDArray[np.bool_] = search.decide(cells.ravel()) == _SENSITIVE
        return sensitive_flags


@dataclass(frozen=True, eq=False)
class _FlipDecider:
    """Decides flips from the functions that hold at each mask."""

    problem: Problem

    @cached_property
    def encoding(self) -> FlipEncoding:
        return FlipEncoding.of(self.problem)

    @cached_property
    def sampler(self) -> _core.Sampler:
        masks = np.arange(self.problem.n_masks, dtype=np.int64)[:, np.newaxis]
        first = masks * self.encoding.n_switch
        cells = np.array([cell for cell, _, _ in self.encoding.duels], dtype=np.int64)
        both = np.broadcast_arrays(first + OFF, first + cells)
        pairs = np.stack([side.ravel() for side in both], axis=1)
        return _sampler(self.encoding.problem, pairs[:, 1].copy(), pairs)

    @cached_property
    def _pairs(self) -> NDArray[np.int64] | None:
        """The pairs of neighbours; None where all masks are neighbours."""
        problem = self.problem
        if problem.distance is None:
            return None
        pairs: list[tuple[int, int]] = []
        for pair in problem.pairs():
            pairs.append(pair)
            if len(pairs) > MAX_PAIRS:
                raise BudgetError(
                    f"more than {MAX_PAIRS:,} pairs of masks; ask about fewer sensitive features, "
                    "or about any distance"
                )
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def decide(self, cells: NDArray[np.int32]) -> NDArray[np.bool_]:
        decisions = self.decisions(cells)
        if self._pairs is None:
            changes = (decisions != decisions[:, :1]).any(axis=1)
            return np.repeat(changes[:, np.newaxis], self.problem.n_masks, axis=1)
        flags = np.zeros(decisions.shape, dtype=np.bool_)
        for first, second in self._pairs:
            differ = decisions[:, first] != decisions[:, second]
            flags[:, first] |= differ
            flags[:, second] |= differ
        return flags

    def decisions(self, cells: NDArray[np.int32]) -> NDArray[np.int16]:
        """Return the decision at every mask, shape (n_rows, n_masks)."""
        switched = np.concatenate([cells, np.zeros((len(cells), 1), dtype=np.int32)], axis=1)
        flags = self.sampler.decide(np.ascontiguousarray(switched).ravel())
        # The scope holds the off cell and those of the duels, in the order of the cells.
        duels = self.encoding.duels
        scope = sorted(cell for cell, _, _ in duels)
        columns = [1 + scope.index(cell) for cell, _, _ in duels]
        shape = (len(cells), self.problem.n_masks, 1 + len(duels))
        return self.encoding.decide(flags.reshape(shape)[:, :, columns].astype(np.bool_))


def _check_masks(problem: Problem) -> None:
    if problem.n_masks > MAX_FLAGS:
        raise BudgetError(
            f"{scientific_text(problem.n_masks)} masks are too many to decide together; ask about "
            "fewer sensitive features"
        )


def _sampler(
    problem: Problem, masks: NDArray[np.int64], pairs: NDArray[np.int64] | None
) -> _core.Sampler:
    return _core.Sampler(problem.forest, problem.masks, problem.threshold_limbs, masks, pairs)
