"""The margins of all masks at given cells: as floats, and exactly if needed."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.problem.form import PairSpace
from xcount.problem.integers import below_largest, is_above
from xcount.problem.margins import IntegerMargins
from xcount.problem.switch import OFF, Function, Switch
from xcount.question.flip import Sureness
from xcount.question.probability import Link

Limbs = NDArray[np.uint64]
Classes = NDArray[np.int64]

DOUBT = 1e-13
"""A bound of the float error of probabilities, and of differences of two of them."""


def first_largest(limbs: Limbs) -> Classes:
    """Return the first of the largest integers along the last axis but one."""
    best: Classes = np.zeros(limbs.shape[:-2], dtype=np.int64)
    top = limbs[..., 0, :]
    for k in range(1, limbs.shape[-2]):
        wins = is_above(limbs[..., k, :], top)
        best = np.where(wins, k, best)
        top = np.where(wins[..., np.newaxis], limbs[..., k, :], top)
    return best


class MarginRows:
    """Evaluates the margins of some outputs along all masks.

    A switch turns all trees off in its first cell, and on, output by output, in the others: the
    difference of a pair of masks that differ only in the switch is a margin.

    Args:
        margins: the margins in integers.
        outputs: the outputs to evaluate.
    """

    def __init__(self, margins: IntegerMargins, outputs: Sequence[int]) -> None:
        self._margins, self._outputs = margins, tuple(outputs)

    @cached_property
    def _sampler(self) -> _core.Sampler:
        margins, asked = self._margins, self._margins.asked
        functions = [Function(k, None, margins.bases[k]) for k in self._outputs]
        switch = Switch(asked.grid, (OFF, *functions))
        laid = switch.laid(asked.ensemble.trees, margins.leaves, margins.scale, margins.bound)
        space = PairSpace(laid, (*asked.query.sensitive, switch.feature), None, 0)
        first = np.arange(asked.n_masks, dtype=np.int64)[:, np.newaxis] * (1 + len(functions))
        cells = np.arange(1, 1 + len(functions), dtype=np.int64)
        both = np.broadcast_arrays(first, first + cells)
        pairs = np.stack([side.ravel() for side in both], axis=1)
        return space.sampler(pairs[:, 1].copy(), pairs)

    def at(self, cells: NDArray[np.int32], link: Link) -> tuple[NDArray[np.float64], Limbs]:
        """Return the margins as floats in the unit of a link's exponents, and their limbs.

        The floats' shape is (n_rows, n_masks, n_outputs). If the link compares outputs, they are
        the differences from the largest output of each mask.
        """
        mantissa, exponent = link.unit_as_float(self._margins.scale)
        switched = np.concatenate([cells, np.zeros((len(cells), 1), dtype=np.int32)], axis=1)
        rows = np.ascontiguousarray(switched).ravel()
        floats, limbs = self._sampler.differences(rows, exponent)
        shape = (len(cells), self._margins.asked.n_masks, len(self._outputs))
        floats, limbs = floats.reshape(shape), limbs.reshape(*shape, -1)
        if len(self._outputs) > 1 and link.concerns(0, 1):
            floats = below_largest(limbs, exponent)
        with np.errstate(over="ignore"):
            return floats * mantissa, limbs

    def sure(self, cells: NDArray[np.int32], sureness: Sureness) -> NDArray[np.bool_]:
        """Return whether the largest margin is sure enough, for all masks at each row."""
        scaled, limbs = self.at(cells, sureness.link)
        decided = first_largest(limbs)
        with np.errstate(over="ignore", invalid="ignore"):
            values = sureness.link.of_classes(scaled)
        return self.sure_of(values, limbs, decided, sureness)

    def sure_of(
        self, values: NDArray[np.float64], limbs: Limbs, decided: Classes, sureness: Sureness
    ) -> NDArray[np.bool_]:
        """Return the same, given the float probabilities and the decisions."""
        own = np.take_along_axis(values, decided[..., np.newaxis], axis=2)[..., 0]
        least = float(sureness.least)
        flags: NDArray[np.bool_] = own > least + DOUBT
        for row, mask in np.argwhere(~flags & ~(own < least - DOUBT)).tolist():
            margins = self.exactly(limbs[row, mask])
            flags[row, mask] = sureness.holds(margins, int(decided[row, mask]))
        return flags

    def exactly(self, limbs: Limbs) -> tuple[Fraction, ...]:
        """Return the margins of one mask, given its limbs by output."""
        data = np.ascontiguousarray(limbs, dtype="<u8")
        integers = (int.from_bytes(row.tobytes(), "little", signed=True) for row in data)
        return tuple(value / self._margins.scale for value in integers)
