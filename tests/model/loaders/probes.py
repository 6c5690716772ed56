"""Rows that try a loaded model where it can go wrong, and comparisons with the library."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from xcount.model.ensemble import ZERO_RANGE, Ensemble
from xcount.question.grid import Grid

ODD_NUMBERS = [
    *(0.0, -0.0, ZERO_RANGE, -ZERO_RANGE),
    *(np.nextafter(ZERO_RANGE, 1), -np.nextafter(ZERO_RANGE, 1), np.nextafter(ZERO_RANGE, 0)),
    *(1e-40, -1e-40, 1e30, -1e30),
]
ODD_CATEGORIES = [-7.0, -1.0, -0.5, 0.5, 2.7, 11.0, 40.0, 1e6, 1e9]


def probe_rows(
    ensemble: Ensemble, *, n_rows: int = 1500, seed: int = 0, infinities: bool = False
) -> NDArray[np.float64]:
    """Return rows of thresholds, their neighbours in the input's type, odd values and noise."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, ensemble.n_features)) * 2
    for index, feature in enumerate(ensemble.features):
        if feature.categories is not None:
            pool = np.array([*feature.categories, *ODD_CATEGORIES, np.nan])
        else:
            thresholds = _thresholds(ensemble, index).astype(ensemble.input_dtype)
            low, high = (thresholds.dtype.type(end) for end in (-np.inf, np.inf))
            near = [thresholds, np.nextafter(thresholds, low), np.nextafter(thresholds, high)]
            pool = np.concatenate([*near, ODD_NUMBERS, [np.nan, np.nan]]).astype(np.float64)
        if infinities:
            pool = np.append(pool, [np.inf, -np.inf])
        chosen = rng.random(n_rows) < 0.75
        rows[chosen, index] = rng.choice(pool, int(chosen.sum()))
    return rows


def _thresholds(ensemble: Ensemble, feature: int) -> NDArray[np.float64]:
    found = [np.zeros(1)]
    for tree in ensemble.trees:
        found.append(tree.threshold[(tree.feature == feature) & np.isfinite(tree.threshold)])
    return np.unique(np.concatenate(found))


def assert_same_leaves(ensemble: Ensemble, rows: ArrayLike, library_leaves: ArrayLike) -> None:
    """Assert that rows share a leaf with us iff they share one in the library, tree by tree."""
    ours = ensemble.leaf_indices(rows)
    theirs = np.asarray(library_leaves).reshape(ours.shape)
    for tree in range(ensemble.n_trees):
        pairs = set(zip(ours[:, tree].tolist(), theirs[:, tree].tolist(), strict=True))
        assert len(pairs) == len({our for our, _ in pairs}), f"tree {tree}"
        assert len(pairs) == len({their for _, their in pairs}), f"tree {tree}"


def rows_and_their_points(
    ensemble: Ensemble, *, infinities: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return rows that a region holds, and the point that stands for each row's region."""
    rows = probe_rows(ensemble, n_rows=600, seed=1, infinities=infinities)
    for index, feature in enumerate(ensemble.features):
        if feature.categories is not None:
            known = np.isin(rows[:, index], feature.categories)
            rows[~known, index] = feature.categories[-1]
    grid = Grid.of(ensemble, missing="cell")
    cells = grid.cells_of(rows)
    held = (cells >= 0).all(axis=1)
    assert held.sum() > 10
    return rows[held], np.array([grid.point(region) for region in cells[held]])


def shared_models() -> Path:
    """Return the folder of models that other people trained; skip where it is absent."""
    root = Path(__file__).resolve().parents[3]
    folder = Path(os.environ.get("XCOUNT_SHARED", root.parent / "shared")) / "models"
    candidates: Sequence[Path] = (folder, root.parents[1] / "shared" / "models")
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    pytest.skip(f"no models of other people in {folder}; XCOUNT_SHARED says where they are")
