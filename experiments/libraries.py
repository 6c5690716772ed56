"""Trains one model of each library on the same rows, and keeps it in the cache folder.

XGBoost, LightGBM, CatBoost and scikit-learn's random forest: 50 trees of depth at most 5, learning
rate 0.1, everything else as the library sets it, the same training rows and seed. How large a gap
means something depends on the scale of a model's output (log-odds, a probability, a quality mark),
so each model is asked about a tenth of the standard deviation of its own output on those rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.datasets import PLAIN, Dataset, load_dataset
from benchmarks.harness.models import N_THREADS, cache_folder
from xcount import Grid, load

N_TREES, DEPTH = 50, 5
GAP_SHARE = 0.1
FOREST_LEAF_ROWS = 5
"""A forest's leaves hold at least so many rows, or its thresholds would be nearly the data."""


@dataclass(frozen=True, slots=True)
class LibraryModel:
    """A trained model: whose it is, where it is, and the gap it is asked about."""

    library: str
    dataset: str
    path: Path
    gap: str
    n_guards: int
    used: tuple[int, ...]


def library_model(
    library: str, key: str, cache: str | Path | None = None, data: str | Path | None = None
) -> LibraryModel:
    """Return the model of a library on a data set, from the cache where it holds it."""
    folder = cache_folder(cache) / "libraries"
    save, suffix = TRAINERS[library]
    path = folder / f"{key}-{library}.{suffix}"
    notes_path = folder / f"{key}-{library}.notes.json"
    asked = {"n_trees": N_TREES, "depth": DEPTH, "eta": PLAIN.eta, "gap_share": GAP_SHARE}
    notes = json.loads(notes_path.read_text()) if notes_path.exists() else {}
    if notes.get("asked") != asked or not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        dataset = load_dataset(key, data)
        save(dataset, path)
        notes = {"asked": asked, **_notes(path, dataset)}
        notes_path.write_text(json.dumps(notes))
    gap, used = notes["gap"], tuple(notes["used"])
    return LibraryModel(library, key, path, gap, notes["n_guards"], used)


def _notes(path: Path, dataset: Dataset) -> dict[str, Any]:
    ensemble = load(path)
    grid = Grid.of(ensemble)
    outputs = np.asarray(ensemble.predict(dataset.train_rows[:5000].astype(np.float64)))
    gap = f"{GAP_SHARE * float(outputs.std()):.2g}"
    used = [i for i, n_cells in enumerate(grid.cell_counts) if n_cells > 1]
    return {"gap": gap, "used": used, "n_guards": grid.n_guards}


def _is_binary(dataset: Dataset) -> bool:
    return dataset.spec.objective == "binary:logistic"


def _save_xgboost(dataset: Dataset, path: Path) -> None:
    import xgboost as xgb

    names = list(dataset.feature_names)
    matrix = xgb.QuantileDMatrix(
        dataset.train_rows, dataset.train_target, feature_names=names, nthread=N_THREADS
    )
    parameters = {
        "objective": dataset.spec.objective,
        "max_depth": DEPTH,
        "eta": PLAIN.eta,
        "tree_method": "hist",
        "seed": 0,
        "nthread": N_THREADS,
    }
    xgb.train(parameters, matrix, N_TREES).save_model(path)


def _save_lightgbm(dataset: Dataset, path: Path) -> None:
    import lightgbm as lgb

    names = list(dataset.feature_names)
    parameters = {
        "objective": "binary" if _is_binary(dataset) else "regression",
        "max_depth": DEPTH,
        "num_leaves": 2**DEPTH,
        "learning_rate": PLAIN.eta,
        "seed": 0,
        "num_threads": N_THREADS,
        "verbose": -1,
    }
    table = lgb.Dataset(dataset.train_rows, dataset.train_target, feature_name=names)
    lgb.train(parameters, table, N_TREES).save_model(path)


def _save_catboost(dataset: Dataset, path: Path) -> None:
    import catboost

    kind = catboost.CatBoostClassifier if _is_binary(dataset) else catboost.CatBoostRegressor
    model = kind(
        iterations=N_TREES,
        depth=DEPTH,
        learning_rate=PLAIN.eta,
        random_seed=0,
        thread_count=N_THREADS,
        verbose=False,
        allow_writing_files=False,
    )
    table = catboost.Pool(
        dataset.train_rows, dataset.train_target, feature_names=list(dataset.feature_names)
    )
    model.fit(table).save_model(str(path), format="json")


def _save_forest(dataset: Dataset, path: Path) -> None:
    import pandas as pd
    import skops.io
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestClassifier if _is_binary(dataset) else RandomForestRegressor
    model = kind(
        n_estimators=N_TREES,
        max_depth=DEPTH,
        min_samples_leaf=FOREST_LEAF_ROWS,
        random_state=0,
        n_jobs=N_THREADS,
    )
    rows = pd.DataFrame(dataset.train_rows, columns=list(dataset.feature_names))
    skops.io.dump(model.fit(rows, dataset.train_target), path)


TRAINERS: dict[str, tuple[Callable[[Dataset, Path], None], str]] = {
    "xgboost": (_save_xgboost, "json"),
    "lightgbm": (_save_lightgbm, "txt"),
    "catboost": (_save_catboost, "json"),
    "random-forest": (_save_forest, "skops"),
}
