"""Small ensembles to learn and test with: the paper's own, and helpers to write more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from xcount.model.ensemble import Ensemble, Feature, Tree

Nested = float | tuple[int, float, Any, Any]
"""A leaf value, or ``(feature, threshold, left, right)`` with left iff ``x < threshold``."""


def tree_of(nested: Nested, output: int = 0) -> Tree:
    """Build a tree from nested tuples.

    Example:
        >>> tree_of((0, 4.0, 30.0, 35.0)).n_nodes
        3
    """
    rows: list[list[float]] = []

    def add(node: Nested) -> int:
        index = len(rows)
        rows.append([-1, np.nan, -1, -1, 0.0])
        if isinstance(node, tuple):
            feature, threshold, left, right = node
            rows[index] = [feature, threshold, add(left), add(right), 0.0]
        else:
            rows[index][4] = float(node)
        return index

    add(nested)
    table = np.array(rows)
    n_nodes = len(rows)
    return Tree(
        feature=table[:, 0].astype(np.int32),
        threshold=table[:, 1],
        left=table[:, 2].astype(np.int32),
        right=table[:, 3].astype(np.int32),
        missing_left=np.zeros(n_nodes, dtype=np.bool_),
        zero_side=np.zeros(n_nodes, dtype=np.int8),
        value=table[:, 4],
        output=output,
    )


def ensemble_of(*trees: Nested, n_features: int | None = None) -> Ensemble:
    """Build a one-output ensemble from nested trees, with features named ``f0``, ``f1``, ..."""
    built = tuple(tree_of(tree) for tree in trees)
    used = max((int(tree.feature.max()) for tree in built), default=-1) + 1
    features = tuple(Feature(f"f{i}") for i in range(max(used, n_features or 0)))
    return Ensemble(features, built)


def figure_1() -> Ensemble:
    """Return the two trees of the paper's figure 1: 2 of 9 regions at S={f0}, d=1, G=80."""
    return ensemble_of(
        (0, 4.0, (1, 3.0, 30.0, -30.0), 35.0),
        (0, 3.0, (1, 2.0, 40.0, -40.0), -45.0),
    )


def appendix_model() -> Ensemble:
    """Return the model of the paper's example run: 32 of 32 regions at S={f2}, d=1, G=0.1.

    The paper prints the guards of f2 alone. These are the trees that XGBoost grows on
    scikit-learn's diabetes data (80 % of the rows, seed 42) with ``tree_method=exact,
    base_score=0.5, eta=0.1``: they have those guards, to the printed digits, and test f3 and f8
    besides.
    """
    return ensemble_of(
        (2, 0.0051110727, (8, -0.0028587314, 9.60584, 15.414189), (2, 0.07301323, 18.9, 26.055555)),
        (2, 0.0051110727, (8, 0.0062067355, 8.925476, 14.618777),
            (8, -0.001053842, 13.977333, 19.837193)),
        (2, 0.009422321, (8, -0.0028587314, 7.791864, 12.740597),
            (3, 0.01670811, 14.074359, 19.115177)),
        n_features=10,
    )  # fmt: skip


def adult_model_path() -> Path:
    """Return the XGBoost model of the Adult data that ships with the package.

    ``examples/train_adult.py`` in the repository trains it.

    Example:
        >>> adult_model_path().name
        'adult.json'
    """
    return Path(__file__).parent / "data" / "adult.json"


def adult_one_hot_paths() -> tuple[Path, Path]:
    """Return a model of the Adult data on one-hot columns that ships, too, and its domain.

    Example:
        >>> [path.name for path in adult_one_hot_paths()]
        ['adult-one-hot.json', 'adult-one-hot.toml']
    """
    data = Path(__file__).parent / "data"
    return data / "adult-one-hot.json", data / "adult-one-hot.toml"


def adult_held_out_path() -> Path:
    """Return the people of the Adult data that the model on one-hot columns was not trained on.

    Example:
        >>> adult_held_out_path().name
        'adult-held-out.csv.gz'
    """
    return Path(__file__).parent / "data" / "adult-held-out.csv.gz"
