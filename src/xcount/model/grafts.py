"""Trees under a test of one more feature, which has two categories."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcount.model.ensemble import Tree


def zero_under(tree: Tree, feature: int, code: int) -> Tree:
    """Return the tree below a test of a categorical feature: 0 if that has the given category."""
    return Tree(  # 0: that category? -> 1, a leaf of 0; else 2, the tree
        feature=np.concatenate([[feature, -1], tree.feature]).astype(np.int32),
        threshold=np.concatenate([[np.nan, np.nan], tree.threshold]),
        left=np.concatenate([[1, -1], _moved(tree.left)]).astype(np.int32),
        right=np.concatenate([[2, -1], _moved(tree.right)]).astype(np.int32),
        missing_left=np.concatenate([[False, False], tree.missing_left]),
        zero_side=np.concatenate([[0, 0], tree.zero_side]).astype(np.int8),
        value=np.concatenate([[0.0, 0.0], tree.value]),
        left_categories={
            0: frozenset({code}),
            **{node + 2: codes for node, codes in tree.left_categories.items()},
        },
        left_ranges={node + 2: ends for node, ends in tree.left_ranges.items()},
        output=tree.output,
    )


def _moved(children: NDArray[np.int32]) -> NDArray[np.int32]:
    return np.where(children >= 0, children + 2, -1)


def step(feature: int, at_0: float, at_1: float, output: int) -> Tree:
    """Return a tree that adds one number at a feature's category 0, another at its category 1."""
    return Tree(
        feature=np.array([feature, -1, -1], dtype=np.int32),
        threshold=np.full(3, np.nan),
        left=np.array([1, -1, -1], dtype=np.int32),
        right=np.array([2, -1, -1], dtype=np.int32),
        missing_left=np.zeros(3, dtype=np.bool_),
        zero_side=np.zeros(3, dtype=np.int8),
        value=np.array([0.0, at_0, at_1]),
        left_categories={0: frozenset({0})},
        output=output,
    )
