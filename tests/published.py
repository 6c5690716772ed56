"""The counts that the paper's authors publish for models of load_diabetes."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

PUBLISHED = {
    1: (48, 37),
    2: (640, 564),
    3: (5670, 4768),
    4: (13608, 11175),
    5: (27216, 23241),
    6: (48384, 41040),
    7: (72576, 64284),
    8: (120960, 106896),
    9: (663552, 548848),
    10: (1451520, 1217528),
}
"""Number of trees -> (regions, sensitive regions), at S = {2}, d = 1, G = 2, 3 decimals.

The counts are those of ``tests/naive_regression_cases.tsv`` in formal-trust-AI/ensenscount, which
does not have the numbers of regions.
"""

SMALL = range(1, 6)
"""The models that the paper's methods count in seconds."""


@cache
def published_model(n_trees: int) -> Any:
    """Train the model of that many trees; skip the test where its libraries are absent."""
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    datasets = pytest.importorskip("sklearn.datasets", reason="scikit-learn is not installed")
    from sklearn.model_selection import train_test_split

    rows, target = datasets.load_diabetes(return_X_y=True)
    train, _, train_target, _ = train_test_split(rows, target, test_size=0.2, random_state=42)
    parameters = {
        "tree_method": "hist",
        "objective": "reg:squarederror",
        "max_depth": 3,
        "eta": 0.1,
        "nthread": 1,
    }
    return xgboost.train(parameters, xgboost.DMatrix(train, train_target), n_trees)
