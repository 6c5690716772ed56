"""Trees -> guards: the thresholds of each feature, and the sets of its categorical splits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcount.model.ensemble import ZERO_RANGE, Tree

_NOTHING = np.empty(0)
_ZERO_GUARDS = (-ZERO_RANGE, float(np.nextafter(ZERO_RANGE, np.inf)))


def rounded_up(guards: NDArray[np.float64], dtype: str) -> NDArray[np.float64]:
    """Return guards of ``dtype`` that split inputs of that type exactly like the given ones."""
    if dtype == "float64":
        return guards
    infinity = np.dtype(dtype).type(np.inf)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        nearest = guards.astype(dtype)
        above = np.where(nearest < guards, np.nextafter(nearest, infinity), nearest)
    return above.astype(np.float64)


def zero_range_matters(threshold: float, zero_side: int) -> bool:
    """Return whether sending zero to ``zero_side`` differs from ``x < threshold``."""
    if zero_side < 0:
        return threshold <= ZERO_RANGE
    return zero_side > 0 and threshold > -ZERO_RANGE


def collect_guards(
    trees: list[Tree], n_features: int, dtype: str
) -> tuple[list[NDArray[np.float64]], list[list[frozenset[int]]]]:
    """Return, for each feature, its sorted thresholds and its categorical splits' left sets."""
    sets: list[list[frozenset[int]]] = [[] for _ in range(n_features)]
    if not trees:
        return [np.empty(0)] * n_features, sets
    feature = np.concatenate([tree.feature for tree in trees])
    threshold = np.concatenate([tree.threshold for tree in trees])
    zero_side = np.concatenate([tree.zero_side for tree in trees])
    extra: dict[int, NDArray[np.float64]] = {}
    for node in np.flatnonzero(zero_side):
        if zero_range_matters(float(threshold[node]), int(zero_side[node])):
            extra[int(feature[node])] = rounded_up(np.array(_ZERO_GUARDS), dtype)
    for tree in trees:
        for node_index, categories in tree.left_categories.items():
            sets[int(tree.feature[node_index])].append(frozenset(categories))
        for node_index, range_ends in tree.left_ranges.items():
            known = extra.setdefault(int(tree.feature[node_index]), np.empty(0))
            more = rounded_up(np.array(range_ends), dtype)
            extra[int(tree.feature[node_index])] = np.concatenate([known, more])
    is_inner = feature >= 0
    feature, threshold = feature[is_inner], rounded_up(threshold[is_inner], dtype)
    # x < -inf and x < inf do not separate numbers: such a test is only about missing values.
    is_guard = np.isfinite(threshold)
    feature, threshold = feature[is_guard], threshold[is_guard]
    order = by_feature(feature, n_features)
    ends = np.searchsorted(feature[order], np.arange(n_features + 1))
    threshold = threshold[order]
    guards = [
        _distinct(np.concatenate([threshold[ends[f] : ends[f + 1]], extra.get(f, _NOTHING)]))
        for f in range(n_features)
    ]
    return guards, sets


def by_feature(feature: NDArray[np.int32], n_features: int) -> NDArray[np.intp]:
    """Return the order of nodes by their features."""
    # 16-bit integers are radix-sorted, in a fraction of the time.
    keys = feature.astype(np.uint16) if n_features <= 2**16 else feature
    return np.argsort(keys, kind="stable")


def _distinct(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distinct numbers in order."""
    # Not np.unique: it imports numpy.ma, a tenth of the start-up time.
    numbers = np.sort(numbers) + 0.0  # -0.0 is 0.0
    is_new = np.ones(len(numbers), dtype=np.bool_)
    is_new[1:] = numbers[1:] != numbers[:-1]
    return numbers[is_new]
