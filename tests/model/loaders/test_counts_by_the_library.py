"""Counts in which XGBoost or LightGBM themselves evaluate every region."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import xcount
from xcount.question.grid import Grid

lgb = pytest.importorskip("lightgbm")
xgb = pytest.importorskip("xgboost")

N = 300
RNG = np.random.default_rng(2)
ROWS = RNG.normal(size=(N, 3))
ROWS[:, 1] = RNG.integers(0, 5, N)
ROWS[RNG.random(N) < 0.3, 2] = 0.0
HOLEY = np.where(RNG.random(ROWS.shape) < 0.2, np.nan, ROWS)
LABELS = (
    ROWS[:, 0] + 3.0 * (ROWS[:, 1] == 2) + 2.0 * (ROWS[:, 2] == 0) - 5.0 * np.isnan(HOLEY[:, 0])
)
Predict = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def lightgbm_model(rows: NDArray[np.float64], **parameters: Any) -> tuple[Any, Predict]:
    """Train three small LightGBM trees; feature 1 is categorical."""
    booster = lgb.train(
        {
            "objective": "regression",
            "num_leaves": 8,
            "min_data_in_leaf": 5,
            "min_data_per_group": 5,
            "cat_smooth": 1.0,
            "verbosity": -1,
            "num_threads": 1,
            **parameters,
        },
        lgb.Dataset(rows, LABELS, categorical_feature=[1]),
        3,
    )
    return booster, lambda points: np.asarray(booster.predict(points, raw_score=True))


def xgboost_model(**parameters: Any) -> tuple[Any, Predict]:
    """Train three small XGBoost trees; feature 1 is categorical."""
    kinds = ["q", "c", "q"]
    booster = xgb.train(
        {"max_depth": 3, "max_leaves": 6, "nthread": 1, **parameters},
        xgb.DMatrix(HOLEY, LABELS, feature_types=kinds),
        3,
    )
    return booster, lambda points: np.asarray(
        booster.predict(xgb.DMatrix(points, feature_types=kinds), output_margin=True), dtype=float
    )


MODELS: dict[str, Callable[[], tuple[Any, Predict]]] = {
    "lightgbm": lambda: lightgbm_model(ROWS),
    "lightgbm-holes": lambda: lightgbm_model(HOLEY),
    "lightgbm-zero-as-missing": lambda: lightgbm_model(HOLEY, zero_as_missing=True),
    "lightgbm-no-missing": lambda: lightgbm_model(HOLEY, use_missing=False),
    "xgboost-one-hot": lambda: xgboost_model(max_cat_to_onehot=9),
    "xgboost-partition": lambda: xgboost_model(max_cat_to_onehot=1),
}


def pair_differences(
    predict: Predict, grid: Grid, sensitive: Sequence[int], distance: int
) -> list[tuple[int, int, float]]:
    """Return every pair of regions within the distance, with the difference of their margins."""
    regions = list(itertools.product(*(range(n) for n in grid.cell_counts)))
    margins = predict(np.array([grid.point(region) for region in regions]))
    index_of = {region: i for i, region in enumerate(regions)}
    pairs = []
    for region, i in index_of.items():
        for cells in itertools.product(*(range(grid.cell_counts[f]) for f in sensitive)):
            other = list(region)
            for feature, cell in zip(sensitive, cells, strict=True):
                other[feature] = cell
            j = index_of[tuple(other)]
            steps = sum(grid.axes[f].distance(region[f], other[f]) for f in sensitive)
            if i < j and steps <= distance:
                pairs.append((i, j, float(abs(margins[i] - margins[j]))))
    return pairs


def gaps_between(differences: Sequence[float]) -> list[float]:
    """Return gaps that no difference comes near, so that float sums decide them rightly."""
    values = np.unique(np.round(np.append(differences, 0.0), 5))
    wide = np.flatnonzero(np.diff(values) > 1e-3)
    if not wide.size:  # a feature that no tree tests: no difference at all
        return [0.5]
    chosen = wide[[len(wide) // 4, len(wide) // 2, -1]]
    return [float(np.round((values[i] + values[i + 1]) / 2, 5)) for i in chosen]


@pytest.mark.parametrize("missing", ["none", "cell"])
@pytest.mark.parametrize("name", MODELS)
def test_the_library_finds_as_many_sensitive_regions(name: str, missing: Any) -> None:
    """The definition, with every region's margin from the library at the region's point."""
    model, predict = MODELS[name]()
    ensemble = xcount.load(model)
    grid = Grid.of(ensemble, missing=missing)
    assert grid.n_regions < 20_000
    for sensitive, distance in (([0], 1), ([1], 1), ([2], 2), ([1, 2], 2)):
        pairs = pair_differences(predict, grid, sensitive, distance)
        for gap in gaps_between([difference for _, _, difference in pairs]):
            found = {i for pair in pairs if pair[2] > gap for i in pair[:2]}
            result = xcount.count(
                ensemble,
                sensitive=sensitive,
                gap=str(gap),
                distance=distance,
                missing=missing,
                method="brute",
            )
            assert (result.count, result.n_regions) == (len(found), grid.n_regions)
