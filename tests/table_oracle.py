"""The definition of a count on whole tables: for questions with tens of thousands of regions.

Like :mod:`oracle`, it uses nothing of the package but the trees of the ensemble. Margins are
integers in a unit that every leaf is a multiple of. Probabilities are floats, and a question that
comes too close to a limit for floats to decide is refused.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import oracle
from numpy.typing import NDArray

from xcount.model.ensemble import Ensemble, Tree

EXACT_UNIT = Fraction(1, 64)
"""Leaves and bases must be multiples of this if they are not rounded."""
_LEAST_DOUBT = 1e-12

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Sums:
    """The sums of all outputs: ``units[output, ...] * unit``, and their probabilities if known."""

    units: Integers
    unit: Fraction
    probabilities: NDArray[np.float64]

    def __getitem__(self, chosen: tuple[Any, ...]) -> Sums:
        """Return the sums of some regions."""
        key = (slice(None), *chosen)
        return Sums(self.units[key], self.unit, self.probabilities[key])

    @property
    def n_outputs(self) -> int:
        return len(self.units)

    def above(self, table: Integers, limit: Fraction) -> Flags:
        """Tell where a table of units is strictly above a number."""
        return np.asarray(table > math.floor(limit / self.unit))


def sums_of(ensemble: Ensemble, precision: int | None, missing: bool = False) -> Sums:
    """Add up the leaves of all trees, rounded first if a precision is given."""
    unit = EXACT_UNIT if precision is None else Fraction(1, 10**precision)

    def in_units(value: float, divisor: int = 1) -> int:
        units = Fraction(value) / divisor / unit
        assert precision is not None or units.denominator == 1
        return round(units)

    axes = [np.array(oracle.cells(ensemble, f, missing)) for f in range(ensemble.n_features)]
    units = np.empty((ensemble.n_outputs, *(len(axis) for axis in axes)), dtype=np.int64)
    for output, base in enumerate(ensemble.base):
        units[output] = in_units(base)
    for tree in ensemble.trees:
        leaves = [in_units(float(value), ensemble.divisor) for value in tree.value]
        units[tree.output] += _leaf_table(tree, 0, axes, leaves)
    return Sums(units, unit, _probabilities(ensemble, units * np.float64(float(unit))))


def _probabilities(ensemble: Ensemble, margins: NDArray[np.float64]) -> NDArray[np.float64]:
    if ensemble.probability == "softmax":
        parts = np.exp(margins - margins.max(axis=0))
        return np.asarray(parts / parts.sum(axis=0))
    assert ensemble.probability == "sigmoid"
    return np.asarray(1 / (1 + np.exp(-margins * ensemble.slope)))


def _leaf_table(tree: Tree, node: int, axes: Sequence[Any], leaves: list[int]) -> Integers:
    """Return the leaf of every region below a node; axes that make no difference have length 1."""
    feature = int(tree.feature[node])
    if feature < 0:
        return np.full((1,) * len(axes), leaves[node], dtype=np.int64)
    cells = axes[feature]
    if node in tree.left_categories:
        goes_left = np.isin(cells, list(tree.left_categories[node]))
    else:
        goes_left = cells < tree.threshold[node]
    goes_left = np.where(np.isnan(cells), bool(tree.missing_left[node]), goes_left)
    goes_left = goes_left.reshape([-1 if f == feature else 1 for f in range(len(axes))])
    left, right = (_leaf_table(tree, int(n[node]), axes, leaves) for n in (tree.left, tree.right))
    return np.where(goes_left, left, right)


def _surely(values: NDArray[np.float64], limit: Fraction) -> Flags:
    """Tell where floats are above a limit, and fail if one is too close to it to tell."""
    assert np.abs(values - float(limit)).min(initial=1.0) > _LEAST_DOUBT
    return np.asarray(values > float(limit))


def _changed(
    before: Sums,
    after: Sums,
    *,
    gap: Fraction | None = None,
    probability_gap: Fraction | None = None,
    flip: bool = False,
    cutoff: Fraction = Fraction(0),
    from_probability: Fraction | None = None,
    direction: str = "any",
    class_: int = 0,
) -> Flags:
    """Tell where a change from these sums to those counts (see :func:`oracle.changed`)."""
    if flip and before.n_outputs > 1:
        decided = before.units.argmax(axis=0)  # the first of the largest
        found = np.asarray(decided != after.units.argmax(axis=0))
        own = before.probabilities.max(axis=0)
    elif flip:
        start, end = (sums.above(sums.units[0], cutoff) for sums in (before, after))
        found = {"any": start != end, "up": ~start & end, "down": start & ~end}[direction]
        own = np.where(start, before.probabilities[0], 1 - before.probabilities[0])
    elif probability_gap is not None:
        rise = after.probabilities[class_] - before.probabilities[class_]
        rises, falls = _surely(rise, probability_gap), _surely(-rise, probability_gap)
        return {"any": rises | falls, "up": rises, "down": falls}[direction]
    else:
        assert gap is not None
        difference = after.units[class_] - before.units[class_]
        rises, falls = before.above(difference, gap), before.above(-difference, gap)
        return {"any": rises | falls, "up": rises, "down": falls}[direction]
    return found if from_probability is None else found & _surely(own, from_probability)


def changing_table(
    ensemble: Ensemble,
    sensitive: Sequence[int],
    distance: int | None,
    precision: int | None = None,
    missing: bool = False,
    **change: Any,
) -> Flags:
    """Return for every region whether it changes as asked.

    The axes are the cells of the features: the sensitive ones first, then the others in order.
    """
    cells = [oracle.cells(ensemble, f, missing) for f in sensitive]
    others = [f for f in range(ensemble.n_features) if f not in sensitive]
    sums = sums_of(ensemble, precision, missing)
    axes = [0, *(1 + f for f in (*sensitive, *others))]
    sums = Sums(sums.units.transpose(axes), sums.unit, sums.probabilities.transpose(axes))
    found = np.zeros(sums.units.shape[1:], dtype=bool)
    masks = list(itertools.product(*(range(len(axis)) for axis in cells)))

    def steps(feature: int, axis: list[float], a: int, b: int) -> int:
        has_order = ensemble.features[feature].categories is None
        is_missing = math.isnan(axis[a]) or math.isnan(axis[b])
        return abs(a - b) if has_order and not is_missing else int(a != b)

    for start in masks:
        apart = [
            sum(steps(*move) for move in zip(sensitive, cells, start, end, strict=True))
            for end in masks
        ]
        near = [
            end
            for end, n in zip(masks, apart, strict=True)
            if n >= 1 and (distance is None or n <= distance)
        ]
        if near:
            before, after = (sums[tuple(np.array(of).T)] for of in ([start], near))
            found[start] = _changed(before, after, **change).any(axis=0)
    return found


def counts_of_masks(found: Flags, n_sensitive: int) -> dict[tuple[int, ...], int]:
    """Return how many regions of each mask are sensitive."""
    counts = found.sum(axis=tuple(range(n_sensitive, found.ndim)))
    return {mask: int(n) for mask, n in np.ndenumerate(counts)}
