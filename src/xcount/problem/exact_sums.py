"""The sums of an ensemble at given points, as exact fractions: the check for witnesses."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from xcount.model.ensemble import Ensemble
from xcount.problem.integers import ScaledLeaves, scale_leaves


@dataclass(frozen=True, eq=False)
class ExactSums:
    """Exact margins, with the leaves and bases rounded first if a precision is given.

    Example:
        >>> from xcount.model.examples import figure_1
        >>> sums = ExactSums(figure_1(), None)
        >>> sums.at(np.array([[0.0, 0.0], [3.5, 0.0]]))
        [[Fraction(70, 1)], [Fraction(-15, 1)]]
    """

    ensemble: Ensemble
    precision: int | None

    @cached_property
    def _scaled(self) -> ScaledLeaves:
        parts = [tree.value for tree in self.ensemble.trees]
        flat = np.concatenate(parts) if parts else np.empty(0)
        return scale_leaves(flat, self.ensemble.divisor, self.precision)

    @cached_property
    def _starts(self) -> list[int]:
        sizes = [tree.n_nodes for tree in self.ensemble.trees]
        return [0, *np.cumsum(sizes).tolist()]

    def leaves(self, points: NDArray[np.float64]) -> list[list[Fraction]]:
        """Return the leaf value of every tree at every point."""
        values, scale = self._scaled.values, self._scaled.scale
        found = self.ensemble.leaf_indices(points).tolist()
        return [
            [Fraction(values[s + i]) / scale for s, i in zip(self._starts, row, strict=False)]
            for row in found
        ]

    def at(self, points: NDArray[np.float64]) -> list[list[Fraction]]:
        """Return the sums at every point, one per output."""
        values, scale = self._scaled.values, self._scaled.scale
        outputs = [tree.output for tree in self.ensemble.trees]
        sums = []
        for row in self.ensemble.leaf_indices(points).tolist():
            totals = [0] * self.ensemble.n_outputs
            for output, start, leaf in zip(outputs, self._starts, row, strict=False):
                totals[output] += values[start + leaf]
            sums.append([b + t / scale for b, t in zip(self._bases, totals, strict=True)])
        return sums

    @cached_property
    def _bases(self) -> list[Fraction]:
        bases = [Fraction(base) for base in self.ensemble.base]
        if self.precision is None:
            return bases
        power = 10**self.precision
        return [Fraction(round(base * power), power) for base in bases]
