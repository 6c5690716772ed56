"""CatBoost and missing values: the border that tells them from numbers makes no guard."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import catboost
import numpy as np
import pytest
from edge_rows import all_region_points
from numpy.typing import NDArray
from oracle import known

import xcount
from xcount.model.ensemble import Ensemble
from xcount.model.loaders import catboost_models
from xcount.question.grid import Grid

_RNG = np.random.default_rng(11)
X = _RNG.normal(size=(240, 4)).round(1)
X_MISSING = np.where(_RNG.random(X.shape) < 0.15, np.nan, X)
POLICIES = ("SymmetricTree", "Depthwise", "Lossguide")


def _trained(data: Any, target: Any, **options: Any) -> Any:
    settings: dict[str, Any] = {"iterations": 8, "depth": 5, "thread_count": 1, "random_seed": 0}
    settings |= {"verbose": False, "allow_writing_files": False, "loss_function": "RMSE"}
    return catboost.CatBoost(settings | options).fit(data, target)


def _assert_same_margins(model: Any, ensemble: Ensemble, rows: NDArray[np.float64]) -> None:
    expected = catboost_models.raw_predictions(model, rows)
    np.testing.assert_allclose(ensemble.predict(rows), expected, rtol=1e-13, atol=1e-13)


_HIGHEST = float(np.finfo(np.float32).max)
_MISSING_MATTERS = np.isnan(X_MISSING[:, 0]).astype(float) * 5 + X[:, 1]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("nan_mode", ["Min", "Max"])
def test_the_border_that_stands_for_missing_values_is_no_guard(
    nan_mode: str, policy: str, tmp_path: Path
) -> None:
    """It separates the missing cell from all finite numbers but the one that CatBoost mistakes."""
    model = _trained(X_MISSING, _MISSING_MATTERS, nan_mode=nan_mode, grow_policy=policy)
    path = tmp_path / "model.json"
    model.save_model(str(path), format="json")
    column = np.array([np.nan, -np.inf, -_HIGHEST, -1e38, 0.0, 1e38, _HIGHEST, np.inf])
    rows = np.zeros((len(column), 4))
    rows[:, 0] = column
    for source in (model, path):
        ensemble = xcount.load(source)
        borders = [tree.threshold[tree.feature == 0] for tree in ensemble.trees]
        assert any(np.isneginf(each).any() for each in borders)
        for missing in ("none", "cell"):
            axis = Grid.of(ensemble, missing=missing).axes[0]
            assert (np.abs(axis.thresholds) < 1e3).all()
        _assert_same_margins(source, ensemble, rows)
        _assert_same_margins(source, ensemble, all_region_points(ensemble))
        alike = [-np.inf, -_HIGHEST] if nan_mode == "Min" else [np.inf]
        assert list(ensemble.features[0].like_missing) == alike
        margins = ensemble.predict(rows).ravel()
        assert (margins[np.isin(column, alike)] == margins[0]).all()
        assert abs(margins[4] - margins[0]) > 1


@pytest.mark.parametrize("nan_mode", ["Min", "Max"])
def test_without_missing_cells_only_numbers_count(nan_mode: str) -> None:
    """A model that only looks whether a column is missing is insensitive to its numbers."""
    data = np.stack([np.where(np.isnan(X_MISSING[:, 0]), np.nan, 0.0), X[:, 1]], axis=1)
    model = _trained(data, _MISSING_MATTERS, nan_mode=nan_mode, iterations=3, depth=2)
    for method in ("brute", "exact"):
        question: dict[str, Any] = {"sensitive": "f0", "gap": "0", "method": method}
        assert xcount.count(model, missing="none", **question).count == 0
        with_missing = xcount.count(model, missing="cell", **question)
        assert with_missing.count == with_missing.n_regions


@pytest.mark.parametrize("nan_mode", ["Min", "Max"])
def test_a_count_with_missing_cells_agrees_with_the_library(nan_mode: str) -> None:
    """Counting on the ensemble finds what asking CatBoost about all regions finds."""
    target = np.where(np.isnan(X_MISSING[:, 0]) & (X[:, 1] > 0), 5.0, X[:, 1])
    model = _trained(X_MISSING[:, :2], target, nan_mode=nan_mode, iterations=3, depth=3)
    ensemble = xcount.load(model)
    grid = Grid.of(ensemble, missing="cell")
    points = all_region_points(ensemble)
    assert len(points) == grid.n_regions
    values = catboost_models.raw_predictions(model, points).reshape(grid.cell_counts)
    sensitive = np.zeros(values.shape, dtype=bool)
    for cell, other in permutations(range(grid.cell_counts[0]), 2):
        if grid.axes[0].distance(cell, other) == 1:
            sensitive[cell] |= np.abs(values[cell] - values[other]) > 0.6
    result = xcount.count(
        model, sensitive="f0", gap="0.6", distance=1, method="brute", missing="cell"
    )
    assert 0 < known(result.count) < grid.n_regions
    assert result.count == int(sensitive.sum())


def test_a_border_at_the_other_end_tells_no_missing_values_apart() -> None:
    """Where missing values go with the low numbers, x > highest is true for +inf alone."""
    document: dict[str, Any] = {
        "features_info": {
            "float_features": [
                {
                    "flat_feature_index": 0,
                    "nan_value_treatment": "AsFalse",
                    "borders": [_HIGHEST],
                }
            ]
        },
        "oblivious_trees": [
            {
                "splits": [{"border": _HIGHEST, "float_feature_index": 0, "split_index": 0}],
                "leaf_values": [1.0, 2.0],
            }
        ],
    }
    ensemble = catboost_models.from_document(document, "m.json", "catboost-json")
    rows = np.array([[np.nan], [-np.inf], [0.0], [_HIGHEST], [np.inf]])
    assert ensemble.predict(rows).ravel().tolist() == [1.0, 1.0, 1.0, 1.0, 2.0]
    assert Grid.of(ensemble, missing="none").n_regions == 1
