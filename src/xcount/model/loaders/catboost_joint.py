"""CatBoost's statistics of several features together, as tables of yes and no.

Such a statistic has a value for each tuple: the categories of some features, and the answers to
tests of others (``x > border``, or whether a category is a certain one). The library knows a tuple
by one number, ``mix(mix(0, category), ...)`` over its members. With a border, a statistic is a
table of yes and no over the tuples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcount.model.loaders.catboost_hash import TABLE_FACTOR

ADVICE = (
    "train the model with max_ctr_complexity=1, and every categorical feature stands on its own"
)

SetTest = tuple[int, frozenset[int]]
"""A column, and the categories for which the test does not hold."""


@dataclass(frozen=True, eq=False)
class JointTest:
    """A test of several features.

    Attributes:
        columns: the categorical columns of the first axes.
        bits: the tests of the other axes: a position, and a border.
        holds: whether the test holds, for each tuple.
    """

    columns: tuple[int, ...]
    bits: tuple[tuple[int, float], ...]
    holds: NDArray[np.bool_]


def joint_keys(hashes: Sequence[Sequence[int]], n_bits: int) -> NDArray[np.uint64]:
    """Return the numbers of all tuples: an axis for each list of hashes, and for each bit."""
    factor = np.uint64(TABLE_FACTOR)
    members = [np.array(each, dtype=np.uint32).view(np.int32).astype(np.int64) for each in hashes]
    members += [np.arange(2)] * n_bits
    keys = np.zeros((), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for member in members:
            keys = factor * (keys[..., np.newaxis] + factor * member.astype(np.uint64))
    return keys
