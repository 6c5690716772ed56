"""Draws from a domain with rules: from all of its boxes at once, never from outside it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from xcount.counters.sampling.draws import BATCH, LEVELS, CellDraws
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
        self._n_masks = np.array([len(part.starts) for part in parts], dtype=np.int64)
        ends = list(accumulate(part.n_regions for part in parts))
        self._ends_of_parts = np.array([float(Fraction(end, ends[-1])) for end in ends])
        self._tables = [_Table([part.cells[f] for part in parts]) for f in self._features]
        self._masks_of = _Table([part.starts for part in parts])
        counts = set(self._n_masks.tolist())
        self.levels = min(LEVELS, *counts) if len(counts) == 1 else LEVELS

    def _drawn(
        self, random: np.random.Generator, n: int = BATCH
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Draw cells, and the part that each sample is drawn from."""
        parts = np.searchsorted(self._ends_of_parts, random.random(n), side="right")
        regions = np.zeros((n, len(self._counts)), dtype=np.int32)
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
        self, regions: NDArray[np.int32], sources: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        outcomes = np.zeros(len(regions))
        groups = self._group_of[sources]
        for number in np.unique(groups).tolist():
            rows, group = np.flatnonzero(groups == number), self._groups[number]
            flags = group.problem.form.decide(group.to_part(regions[rows]))
            flags = flags[:, list(group.problem.counted_masks)]
            outcomes[rows] = flags.sum(axis=1) / self._n_masks[sources[rows]]
        return outcomes


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
