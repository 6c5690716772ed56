"""Rows on which a loader that is wrong anywhere gives itself away."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcount.model.ensemble import Ensemble
from xcount.question.grid import Grid

_EXTREMES = (0.0, -0.0, 1e-45, -1e-45, 3.4028234663852886e38, -3.4028234663852886e38)


def edge_rows(
    ensemble: Ensemble, *, infinities: bool, seed: int = 0, n_random: int = 40
) -> NDArray[np.float64]:
    """Return rows with every threshold, its neighbours, extremes, NaN and random points.

    NaN comes only where the ensemble says that a value can be missing; categorical columns hold
    their categories. Neighbours come in the input's number type and in float64.
    """
    rng = np.random.default_rng(seed)
    start = rng.normal(size=(n_random, ensemble.n_features))
    for column, feature in enumerate(ensemble.features):
        if feature.categories is not None:
            start[:, column] = rng.choice(feature.categories, n_random)
    parts = [start]
    for column, feature in enumerate(ensemble.features):
        values = _categories_or_neighbours(ensemble, column)
        if feature.can_be_missing:
            values = np.append(values, np.nan)
        if infinities and not feature.is_categorical:
            values = np.append(values, [np.inf, -np.inf])
        block = start[rng.integers(n_random, size=2 * len(values))]
        block[:, column] = np.repeat(values, 2)
        parts.append(block)
    return np.concatenate([*parts, _sprinkled(ensemble, start, infinities, rng)])


def _categories_or_neighbours(ensemble: Ensemble, column: int) -> NDArray[np.float64]:
    feature = ensemble.features[column]
    if feature.categories is not None:
        return np.array(feature.categories, dtype=np.float64)
    dtype = np.dtype(ensemble.input_dtype).type
    values = list(_EXTREMES)
    for threshold in Grid.of(ensemble).axes[column].thresholds:
        for number_type in (dtype, np.float64):
            exact = number_type(threshold)
            up, down = number_type(np.inf), number_type(-np.inf)
            neighbours = (exact, np.nextafter(exact, up), np.nextafter(exact, down))
            values += [float(value) for value in neighbours]
    finite = np.array(values, dtype=np.float64)
    return finite[np.abs(finite) <= np.finfo(ensemble.input_dtype).max]


def _sprinkled(
    ensemble: Ensemble, start: NDArray[np.float64], infinities: bool, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return rows in which a third of the values are NaN or infinite, as far as allowed."""
    rows = start.copy()
    for column, feature in enumerate(ensemble.features):
        special = [np.nan] * feature.can_be_missing
        special += [np.inf, -np.inf] * (infinities and not feature.is_categorical)
        if special:
            chosen = rng.random(len(rows)) < 1 / 3
            rows[chosen, column] = rng.choice(special, int(chosen.sum()))
    return rows


def all_region_points(ensemble: Ensemble, limit: int = 5000) -> NDArray[np.float64]:
    """Return a point of every region of the ensemble's grid, missing cells included.

    Only a fixed random choice of them where there are more than ``limit``.
    """
    grid = Grid.of(ensemble, missing="cell")
    rng = np.random.default_rng(0)
    if grid.n_regions <= limit:
        regions = np.stack(
            np.meshgrid(*[np.arange(n) for n in grid.cell_counts], indexing="ij"), axis=-1
        ).reshape(-1, ensemble.n_features)
    else:
        regions = rng.integers(0, grid.cell_counts, size=(limit, ensemble.n_features))
    points = np.stack([grid.point(region) for region in regions.tolist()])
    assert np.array_equal(grid.cells_of(points), regions)
    return points
