"""The other way to a limit: train a model of the same size without the sensitive features.

A model file does not say how its trees were trained. So two models are trained here, with all
features and without the sensitive ones, both with the library's defaults and as many rounds and as
deep (or with as many leaves) as the model: their difference is what dropping the features costs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from xcount.model.ensemble import Ensemble
from xcount.repairs.writers.writer import Values

_OBJECTIVES = {
    ("xgboost", "binary"): "binary:logistic",
    ("xgboost", "regression"): "reg:squarederror",
    ("lightgbm", "binary"): "binary",
    ("lightgbm", "regression"): "regression",
}
Rows = NDArray[np.float64]


def why_not(ensemble: Ensemble) -> str | None:
    """Return why no model can be trained to compare with; None if one can."""
    library = ensemble.format.partition("-")[0]
    if (library, ensemble.task) not in _OBJECTIVES or ensemble.n_outputs > 1:
        return f"no {ensemble.task} model of the format {ensemble.format} is trained for comparison"
    if any(feature.is_categorical for feature in ensemble.features):
        return "models with categories are not trained for comparison"
    try:
        __import__(library)
    except ImportError:
        return f"{library} is not installed"
    return None


def trained_margins(
    ensemble: Ensemble, columns: Sequence[int], rows: Rows, labels: Values, others: Rows
) -> Values:
    """Train a model of the same size on some columns; return its margins of other rows."""
    train = _xgboost if ensemble.format.startswith("xgboost") else _lightgbm
    own, given = rows[:, columns], others[:, columns]
    return np.asarray(train(ensemble, own, labels, given), dtype=np.float64).reshape(-1, 1)


def _objective(ensemble: Ensemble) -> str:
    return _OBJECTIVES[ensemble.format.partition("-")[0], ensemble.task]


def _xgboost(ensemble: Ensemble, rows: Rows, labels: Values, others: Rows) -> object:
    import xgboost

    parameters = {
        "objective": _objective(ensemble),
        "max_depth": max(1, ensemble.max_depth),
        "nthread": 1,
    }
    booster = xgboost.train(parameters, xgboost.DMatrix(rows, label=labels), ensemble.n_trees)
    return booster.predict(xgboost.DMatrix(others), output_margin=True)


def _lightgbm(ensemble: Ensemble, rows: Rows, labels: Values, others: Rows) -> object:
    import lightgbm

    n_leaves = max(int((tree.feature < 0).sum()) for tree in ensemble.trees)
    parameters = {
        "objective": _objective(ensemble),
        "num_leaves": max(2, n_leaves),
        "num_threads": 1,
        "verbose": -1,
    }
    booster = lightgbm.train(parameters, lightgbm.Dataset(rows, labels), ensemble.n_trees)
    return booster.predict(others, raw_score=True)
