"""The margins that a question is about, as sums of integer leaves in one unit.

``V_k(region) = bases[k] + sum of the leaves of the trees of output k``, in integers: leaves,
bases and the threshold are scaled together, so that every comparison is that of real numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from xcount.problem.asked import Asked
from xcount.problem.integers import Integers, last_integer, scale_leaves
from xcount.problem.laid_trees import LaidTrees
from xcount.question.flip import Flip, Sureness
from xcount.question.probability import Sigmoid


class Cutoffs(NamedTuple):
    """Where a decision about one margin changes, in integers: it is above iff ``V > at``.

    A flip up starts where ``V <= sure_below``, a flip down where ``V > sure_above``:
    ``sure_below <= at <= sure_above``, with equality if every decision is sure enough.
    """

    at: int
    sure_below: int
    sure_above: int


class SureClasses(NamedTuple):
    """Where a decision between several classes is sure enough, in integers.

    Attributes:
        above: sure iff the margin of the class is above this; None if all margins take part.
        lead: sure only if the class leads every other one by more than this.
    """

    above: int | None
    lead: int | None


@dataclass(frozen=True, eq=False)
class IntegerMargins:
    """All margins of an ensemble in integers.

    Attributes:
        asked: the ensemble, its grid, and the precision of its leaves.
        leaves: for each tree of the ensemble the integers of its nodes.
        bases: the base of each output.
        scale: one unit of margin in these integers.
    """

    asked: Asked
    leaves: Sequence[Integers]
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
        integers = scaled.values.times(finer)
        leaves = [integers[e - len(p) : e] for e, p in zip(ends, parts, strict=True)]
        rounded = tuple(round(base * finer) for base in bases)
        return cls(asked, leaves, rounded, scaled.scale * finer)

    @property
    def n_outputs(self) -> int:
        return len(self.bases)

    @cached_property
    def bound(self) -> int:
        """A bound of |V| of every output, and of half the difference of any two of them."""
        return sum(own.largest() for own in self.leaves) + max(map(abs, self.bases)) + 1

    def cut(self, cutoff: Fraction, tie_is_above: bool) -> int:
        """Return the integer T for which a margin V is above the cut-off iff ``V > T``."""
        scaled = cutoff * self.scale
        # Integers V: above T is above floor(T); at least T is above ceil(T) - 1.
        return math.ceil(scaled) - 1 if tie_is_above else math.floor(scaled)

    def cutoffs(self, flip: Flip) -> Cutoffs | None:
        """Return the cut-offs of a flip as integers; None if several margins decide."""
        if flip.cutoff is None:
            return None
        at = max(-self.bound - 1, min(self.bound + 1, self.cut(flip.cutoff, flip.tie_is_above)))
        sureness = flip.sureness
        if sureness is None:
            return Cutoffs(at, at, at)

        def is_sure(value: int, decision: int) -> bool:
            return sureness.holds((value / self.scale,), decision)

        digits = len(str(self.bound)) + 20
        above, below = (
            sureness.link.margin_at(share, digits) for share in (sureness.least, 1 - sureness.least)
        )
        sure_above = self._last(lambda value: not is_sure(value, 1), above)
        sure_below = self._last(lambda value: is_sure(value, 0), below)
        return Cutoffs(at, min(at, sure_below), max(at, sure_above))

    def sure_classes(self, sureness: Sureness) -> SureClasses:
        """Return where a decision between several classes is sure enough."""
        link, least = sureness.link, sureness.least
        digits = len(str(self.bound)) + 20
        if not link.concerns(0, 1):  # the probability of a class depends only on its own margin
            near = link.margin_at(least, digits)
            return SureClasses(
                self._last(lambda v: link.compared((v / self.scale,), 0, least) < 0, near), None
            )
        if least >= 1:
            return SureClasses(None, 2 * self.bound)  # no softmax is 1
        # With p >= P, no other class has more than 1 - P: exp(V[j] - V[k]) <= (1 - P) / P.
        odds = Sigmoid().margin_at(least, digits)
        lead = -1 if odds is None else math.floor(odds * self.scale) - 1
        return SureClasses(None, min(lead, 2 * self.bound))

    def _last(self, holds: Callable[[int], bool], near: Fraction | None) -> int:
        """Return the last margin, in integers, for which a monotone condition holds.

        The search is fast if it is near the given margin.
        """
        low, high = -self.bound - 1, self.bound + 1
        for middle in () if near is None else (math.floor(near * self.scale) + i for i in (-2, 3)):
            if low < middle <= high:
                low, high = (middle, high) if holds(middle) else (low, middle - 1)
        return last_integer(holds, low, high)

    @cached_property
    def outputs(self) -> tuple[LaidTrees, ...]:
        """The trees of each output, laid on the grid."""
        ensemble, grid = self.asked.ensemble, self.asked.grid
        laid = []
        for output in range(ensemble.n_outputs):
            own = [i for i, tree in enumerate(ensemble.trees) if tree.output == output]
            trees = tuple(ensemble.trees[i] for i in own)
            values = Integers.joined([self.leaves[i] for i in own])
            laid.append(LaidTrees(trees, values, grid, self.scale, known_bound=self.bound))
        return tuple(laid)
