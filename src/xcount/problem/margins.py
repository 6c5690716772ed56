"""The margins that a question is about, as sums of integer leaves in one unit.

``V_k(region) = bases[k] + sum of the leaves of the trees of output k``, in integers: leaves,
bases and the threshold are scaled together, so that every comparison is that of the real numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from xcount.problem.asked import Asked
from xcount.problem.integers import scale_leaves
from xcount.problem.laid_trees import LaidTrees


@dataclass(frozen=True, eq=False)
class IntegerMargins:
    """All margins of an ensemble in integers.

    Attributes:
        asked: the ensemble, its grid, and the precision of its leaves.
        leaves: for each tree of the ensemble the integers of its nodes.
        bases: what each output starts from.
        scale: what one unit of margin is in these integers.
    """

    asked: Asked
    leaves: Sequence[Sequence[int]]
    bases: tuple[int, ...]
    scale: Fraction

    @classmethod
    def of(cls, asked: Asked) -> IntegerMargins:
        """Scale the leaves and bases of an ensemble together."""
        ensemble, precision = asked.ensemble, asked.query.precision
        parts = [tree.value for tree in ensemble.trees]
        flat = np.concatenate(parts) if parts else np.empty(0)
        scaled = scale_leaves(flat, ensemble.divisor, precision)
        bases = [Fraction(base) * scaled.scale for base in ensemble.base]
        finer = 1
        if precision is None:
            finer = max(base.denominator for base in bases)  # powers of two
        ends = np.cumsum([len(part) for part in parts]).tolist()
        integers = [value * finer for value in scaled.values]
        leaves = [integers[e - len(p) : e] for e, p in zip(ends, parts, strict=True)]
        rounded = tuple(round(base * finer) for base in bases)
        return cls(asked, leaves, rounded, scaled.scale * finer)

    @cached_property
    def bound(self) -> int:
        """A bound of |V| of every output, and of the difference of any two of them, halved."""
        return sum(max(map(abs, own)) for own in self.leaves) + max(map(abs, self.bases)) + 1

    def cutoff(self, cutoff: Fraction, *, tie_is_above: bool) -> int:
        """Return the integer T for which "above the cut-off" is ``V > T``."""
        scaled = cutoff * self.scale
        # Integers V: above T is above floor(T); at least T is above ceil(T) - 1.
        threshold = math.ceil(scaled) - 1 if tie_is_above else math.floor(scaled)
        return max(-self.bound - 1, min(self.bound + 1, threshold))

    @cached_property
    def outputs(self) -> tuple[LaidTrees, ...]:
        """The trees of each output, laid on the grid."""
        ensemble, grid = self.asked.ensemble, self.asked.grid
        laid = []
        for output in range(ensemble.n_outputs):
            own = [i for i, tree in enumerate(ensemble.trees) if tree.output == output]
            trees = tuple(ensemble.trees[i] for i in own)
            values = [leaf for i in own for leaf in self.leaves[i]]
            laid.append(LaidTrees(trees, values, grid, self.scale, known_bound=self.bound))
        return tuple(laid)
