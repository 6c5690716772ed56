"""The definition of a count, written down once more in plain Python, from the paper's words.

Nothing here uses the package's grid, query, arithmetic or native code: only trees as arrays, and
fractions. It is slow and obvious on purpose.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from xcount.model.ensemble import Ensemble, Tree
from xcount.problem.problem import Problem

Number = TypeVar("Number", int, float)

MISSING = math.nan


def cells(ensemble: Ensemble, feature: int, missing: bool = False) -> list[float]:
    """Return one value per cell, in the cells' order; NaN stands for the missing cell."""
    categories = ensemble.features[feature].categories
    if categories is None:
        thresholds = sorted(
            {
                float(tree.threshold[node])
                for tree in ensemble.trees
                for node in range(tree.n_nodes)
                if tree.feature[node] == feature
            }
        )
        values = [thresholds[0] - 1.0, *thresholds] if thresholds else [0.0]
    else:
        values = []
        for code in categories:
            if all(_told_apart(ensemble, feature, code, int(other)) for other in values):
                values.append(float(code))
    if missing and ensemble.features[feature].can_be_missing:
        values.append(MISSING)
    return values


def _told_apart(ensemble: Ensemble, feature: int, a: int, b: int) -> bool:
    return any(
        (a in codes) != (b in codes)
        for tree in ensemble.trees
        for node, codes in tree.left_categories.items()
        if tree.feature[node] == feature
    )


def leaf_value(tree: Tree, point: Sequence[float]) -> float:
    """Return what the tree adds at a point."""
    node = 0
    while tree.feature[node] >= 0:
        x = point[tree.feature[node]]
        if math.isnan(x):
            left = bool(tree.missing_left[node])
        elif node in tree.left_categories:
            left = int(x) in tree.left_categories[node]
        else:
            left = x < tree.threshold[node]
        node = int(tree.left[node] if left else tree.right[node])
    return float(tree.value[node])


def margin(ensemble: Ensemble, point: Sequence[float], precision: int | None) -> Fraction:
    """Return the exact sum at a point, each leaf rounded first if a precision is given."""
    total = Fraction(0)
    for tree in ensemble.trees:
        leaf = Fraction(leaf_value(tree, point)) / ensemble.divisor
        total += (
            leaf if precision is None else round(leaf * 10**precision) / Fraction(10**precision)
        )
    return total


def margins(ensemble: Ensemble, point: Sequence[float], precision: int | None) -> list[Fraction]:
    """Return the exact sums at a point, one per output, bases included."""
    sums = []
    for output, base in enumerate(ensemble.base):
        trees = tuple(tree for tree in ensemble.trees if tree.output == output)
        start = Fraction(base)
        if precision is not None:
            start = Fraction(round(start * 10**precision), 10**precision)
        sums.append(start + margin(replace(ensemble, trees=trees), point, precision))
    return sums


def decision(
    ensemble: Ensemble, point: Sequence[float], cutoff: Fraction, precision: int | None
) -> int:
    """Return which side of the cut-off the sum is on, or the first class with the largest sum."""
    sums = margins(ensemble, point, precision)
    return int(sums[0] > cutoff) if len(sums) == 1 else sums.index(max(sums))


_BITS = 700
_UNIT = 1 << _BITS
_DOUBT = Fraction(1, 1 << (_BITS - 100))


def exponential(x: Fraction) -> Fraction:
    """Return exp(x) for x <= 0, right to some 200 digits: a Taylor series of integers."""
    if x < -_BITS:
        return Fraction(0)
    halvings = max(0, math.ceil(-x)).bit_length() + 8
    step = x.numerator * _UNIT // (x.denominator << halvings)
    total = term = _UNIT
    n = 0
    while term:
        n += 1
        term = abs(term) * abs(step) // _UNIT // n * (-1 if n % 2 else 1)
        total += term
    for _ in range(halvings):
        total = total * total // _UNIT
    return Fraction(total, _UNIT)


def probability(ensemble: Ensemble, sums: Sequence[Fraction], output: int) -> Fraction:
    """Return the probability that the library makes of these sums, right to some 200 digits."""
    if ensemble.probability == "margin":
        return sums[output]
    if ensemble.probability == "sigmoid":
        x = sums[output] * Fraction(ensemble.slope)
        small = exponential(-abs(x))
        return (1 if x > 0 else small) / (1 + small)
    assert ensemble.probability == "softmax"
    parts = [exponential(value - max(sums)) for value in sums]
    return parts[output] / sum(parts)


def changed(
    ensemble: Ensemble,
    before: Sequence[Fraction],
    after: Sequence[Fraction],
    *,
    gap: Fraction | None = None,
    probability_gap: Fraction | None = None,
    flip: bool = False,
    cutoff: Fraction = Fraction(0),
    from_probability: Fraction | None = None,
    direction: str = "any",
    class_: int = 0,
) -> bool:
    """Tell whether a region with these sums changes to a neighbour with those."""
    if flip and len(before) > 1:
        decided = before.index(max(before))
        least = from_probability
        is_sure = least is None or not _is_less(ensemble, before, decided, least)
        return is_sure and decided != after.index(max(after))
    if flip:
        start, end = before[0] > cutoff, after[0] > cutoff
        if from_probability is not None:
            above = probability(ensemble, before, 0)
            own = above if start else 1 - above
            is_sigmoid = ensemble.probability == "sigmoid"
            if is_sigmoid and from_probability == 1:  # it is never so sure, however close
                return False
            near = is_sigmoid and abs(own - from_probability) < _DOUBT
            if near and from_probability == Fraction(1, 2):  # 5e-324 is on a side, too
                own = from_probability + (before[0] if start else -before[0])
            assert not near or from_probability in (0, Fraction(1, 2))
            if own < from_probability and not (is_sigmoid and from_probability == 0):
                return False
        wanted = {"any": (True, False), "up": (True,), "down": (False,)}[direction]
        return start != end and end in wanted
    if probability_gap is not None:
        low, high = (probability(ensemble, sums, class_) for sums in (before, after))
        limit = probability_gap
        if ensemble.probability == "sigmoid" and limit == 0:  # it never stands still
            low, high = before[class_], after[class_]
        elif ensemble.probability != "margin" and abs(abs(high - low) - limit) < _DOUBT:
            assert limit == 0 or ensemble.probability == "sigmoid"
            # A tie, or one but for exp(-1e30) or 5e-324: no sigmoid is 0 or 1, so it falls short of
            # 1, and of 0.5 unless the smaller margin moves it beyond.
            least, most = sorted((before[class_], after[class_]))
            small = most if abs(most) < abs(least) else -least
            if limit != Fraction(1, 2) or small <= 0:
                return False
            far = (limit + 1, Fraction(0))
            high, low = far if after[class_] > before[class_] else far[::-1]
    else:
        assert gap is not None
        low, high, limit = before[class_], after[class_], gap
    rises, falls = high - low > limit, low - high > limit
    return {"any": rises or falls, "up": rises, "down": falls}[direction]


def _is_less(ensemble: Ensemble, sums: Sequence[Fraction], decided: int, least: Fraction) -> bool:
    """Tell whether one of several classes is less probable than that."""
    if ensemble.probability == "margin":
        return sums[decided] < least
    if least in (0, 1):  # between 0 and 1, however close
        return least == 1
    own = probability(ensemble, sums, decided)
    if ensemble.probability == "sigmoid" and least == Fraction(1, 2):
        return sums[decided] < 0  # 5e-324 is on a side, too
    assert own == least or abs(own - least) > _DOUBT
    return own < least


Region = tuple[int, ...]


def neighbourhoods(
    ensemble: Ensemble,
    sensitive: Sequence[int],
    distance: int | None,
    missing: bool,
    value_at: Callable[[list[float]], Any],
    may_become: Callable[[int, float], bool] = lambda feature, value: True,
) -> dict[Region, tuple[Any, list[Any]]]:
    """Return for every region its value, and those of its neighbours within the distance.

    Only values of a feature that it may become are changed to.
    """
    axes = [cells(ensemble, f, missing) for f in range(ensemble.n_features)]
    regions = list(itertools.product(*(range(len(axis)) for axis in axes)))
    value = {region: value_at([axes[f][c] for f, c in enumerate(region)]) for region in regions}

    def steps(feature: int, a: int, b: int) -> int:
        has_order = ensemble.features[feature].categories is None
        if has_order and not math.isnan(axes[feature][a]) and not math.isnan(axes[feature][b]):
            return abs(a - b)
        return int(a != b)

    def near(region: Region) -> list[Any]:
        found = []
        for moved in itertools.product(*(range(len(axes[f])) for f in sensitive)):
            other = list(region)
            for f, c in zip(sensitive, moved, strict=True):
                other[f] = c
            apart = sum(steps(f, region[f], other[f]) for f in sensitive)
            entered = [(f, axes[f][other[f]]) for f in sensitive if other[f] != region[f]]
            if not all(may_become(f, value) for f, value in entered):
                continue
            if apart >= 1 and (distance is None or apart <= distance):
                found.append(value[tuple(other)])
        return found

    return {region: (value[region], near(region)) for region in regions}


def regions_that_change(
    ensemble: Ensemble,
    sensitive: Sequence[int],
    distance: int | None,
    missing: bool,
    value_at: Callable[[list[float]], Any],
    changes: Callable[[Any, Any], bool],
    may_become: Callable[[int, float], bool] = lambda feature, value: True,
) -> dict[Region, bool]:
    """Return for every region whether a change within the distance changes the value."""
    found = neighbourhoods(ensemble, sensitive, distance, missing, value_at, may_become)
    return {
        region: any(changes(own, other) for other in others)
        for region, (own, others) in found.items()
    }


def sensitive_regions(
    ensemble: Ensemble,
    sensitive: Sequence[int],
    gap: Fraction,
    distance: int | None,
    precision: int | None = None,
    missing: bool = False,
) -> dict[Region, bool]:
    """Return for every region whether it is sensitive."""
    return regions_that_change(
        ensemble,
        sensitive,
        distance,
        missing,
        lambda point: margin(ensemble, point, precision),
        lambda a, b: bool(abs(a - b) > gap),
    )


def flipping_regions(
    ensemble: Ensemble,
    sensitive: Sequence[int],
    cutoff: Fraction,
    distance: int | None,
    precision: int | None = None,
    missing: bool = False,
) -> dict[Region, bool]:
    """Return for every region whether its decision flips."""
    return regions_that_change(
        ensemble,
        sensitive,
        distance,
        missing,
        lambda point: decision(ensemble, point, cutoff, precision),
        lambda a, b: bool(a != b),
    )


def changing_regions(
    ensemble: Ensemble,
    sensitive: Sequence[int],
    distance: int | None,
    precision: int | None = None,
    missing: bool = False,
    may_become: Callable[[int, float], bool] = lambda feature, value: True,
    **change: Any,
) -> dict[Region, bool]:
    """Return for every region whether it changes as asked (see :func:`changed`)."""
    return regions_that_change(
        ensemble,
        sensitive,
        distance,
        missing,
        lambda point: margins(ensemble, point, precision),
        lambda a, b: changed(ensemble, a, b, **change),
        may_become,
    )


def count(
    ensemble: Ensemble,
    sensitive: Sequence[int],
    gap: Fraction,
    distance: int | None,
    precision: int | None = None,
    missing: bool = False,
) -> tuple[int, int]:
    """Return the number of sensitive regions and the number of regions."""
    found = sensitive_regions(ensemble, sensitive, gap, distance, precision, missing)
    return sum(found.values()), len(found)


def all_regions(problem: Problem) -> np.ndarray:
    """Return every region, row by row."""
    cells = [range(axis.n_cells) for axis in problem.grid.axes]
    return np.array(list(itertools.product(*cells)), dtype=np.int32)


def known(number: Number | None) -> Number:
    """Return a count or a share that must be there."""
    assert number is not None
    return number
