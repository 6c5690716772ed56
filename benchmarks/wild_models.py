"""Trains models as people really have them, once, and keeps them in the cache folder.

Production settings of four libraries on the data sets of the paper: 300 to 2,000 trees, LightGBM
with 31 to 255 leaves, CatBoost of depth 8, random forests of full depth, several classes.

    python -m benchmarks.wild_models
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.datasets import Dataset, load_dataset
from benchmarks.harness.models import cache_folder

MAX_ROWS = 40_000
N_THREADS = 1
"""Threads that wait for each other are slow beside other work."""
N_PROBES = 20_000
"""Random regions whose changes tell what a usual and a rare gap is."""
SEED = 7


@dataclass(frozen=True, slots=True)
class WildModel:
    """What is trained: a library's model of a data set, with settings of its own.

    Attributes:
        name: of the file, without its ending.
        dataset: the key of the data set.
        family: the library, by the function that trains with it.
        settings: what the library is told.
        has_classes: whether the target's classes are learnt, rather than a number or two classes.
    """

    name: str
    dataset: str
    family: str
    settings: dict[str, Any]
    has_classes: bool = False


WILD_MODELS: tuple[WildModel, ...] = (
    WildModel("adult-xgb-300x6", "adult", "xgboost", {"n_estimators": 300, "max_depth": 6}),
    WildModel("adult-xgb-2000x4", "adult", "xgboost", {"n_estimators": 2000, "max_depth": 4}),
    WildModel("adult-lgb-500x31", "adult", "lightgbm", {"n_estimators": 500, "num_leaves": 31}),
    WildModel("adult-lgb-1000x255", "adult", "lightgbm", {"n_estimators": 1000, "num_leaves": 255}),
    WildModel("adult-cat-1000x8", "adult", "catboost", {"iterations": 1000, "depth": 8}),
    WildModel("adult-forest-300", "adult", "forest", {"n_estimators": 300}),
    WildModel("higgs-xgb-500x8", "higgs", "xgboost", {"n_estimators": 500, "max_depth": 8}),
    WildModel("higgs-lgb-300x127", "higgs", "lightgbm", {"n_estimators": 300, "num_leaves": 127}),
    WildModel("higgs-cat-500x8", "higgs", "catboost", {"iterations": 500, "depth": 8}),
    WildModel("susy-forest-300", "susy", "forest", {"n_estimators": 300}),
    WildModel("susy-xgb-800x6", "susy", "xgboost", {"n_estimators": 800, "max_depth": 6}),
    WildModel("webspam-lgb-300x31", "webspam", "lightgbm", {"n_estimators": 300, "num_leaves": 31}),
    WildModel("protein-lgb-1000x31", "protein", "lightgbm", {"n_estimators": 1000}),
    WildModel("wine-forest-300", "wine", "forest", {"n_estimators": 300}),
    WildModel("wine-xgb-500x6", "wine", "xgboost", {"n_estimators": 500, "max_depth": 6}),
    WildModel("covtype-xgb-7x100x6", "covtype", "xgboost", {"max_depth": 6}, has_classes=True),
    WildModel("covtype-lgb-7x100x31", "covtype", "lightgbm", {}, has_classes=True),
)


def model_file(model: WildModel, cache: str | Path | None, data: str | Path | None) -> Path:
    """Return a model's file; trains it, and writes notes beside it, if the cache lacks it."""
    folder = cache_folder(cache) / "wild"
    endings = {"xgboost": "json", "lightgbm": "txt", "catboost": "json", "forest": "skops"}
    path = folder / f"{model.name}.{endings[model.family]}"
    if not notes_file(path).exists():
        folder.mkdir(parents=True, exist_ok=True)
        dataset = load_dataset(model.dataset, data)
        margins = _TRAINERS[model.family](model, dataset, path)
        notes_file(path).write_text(json.dumps(_notes(model, dataset, path, margins)))
    return path


def notes_file(path: Path) -> Path:
    """Return where the notes of a model are."""
    return path.with_suffix(".notes.json")


Margins = Callable[[NDArray[np.float32]], NDArray[np.float64]]
"""Returns the first margin of rows, as the library itself finds it."""


def _rows(model: WildModel, dataset: Dataset) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    rows, target = dataset.train_rows[:MAX_ROWS], dataset.train_target[:MAX_ROWS]
    return rows, target - target.min() if model.has_classes else target


def _is_classified(model: WildModel, dataset: Dataset) -> bool:
    return model.has_classes or dataset.spec.objective == "binary:logistic"


def _train_xgboost(model: WildModel, dataset: Dataset, path: Path) -> Margins:
    import xgboost

    kind = xgboost.XGBClassifier if _is_classified(model, dataset) else xgboost.XGBRegressor
    trained = kind(learning_rate=0.1, n_jobs=N_THREADS, random_state=SEED, **model.settings)
    trained.fit(*_rows(model, dataset))
    booster = trained.get_booster()
    booster.feature_names = list(dataset.feature_names)
    booster.save_model(path)

    def margins(rows: NDArray[np.float32]) -> NDArray[np.float64]:
        matrix = xgboost.DMatrix(rows, feature_names=list(dataset.feature_names))
        return _first(booster.predict(matrix, output_margin=True))

    return margins


def _train_lightgbm(model: WildModel, dataset: Dataset, path: Path) -> Margins:
    import lightgbm

    kind = lightgbm.LGBMClassifier if _is_classified(model, dataset) else lightgbm.LGBMRegressor
    trained = kind(n_jobs=N_THREADS, random_state=SEED, verbosity=-1, **model.settings)
    rows, target = _rows(model, dataset)
    trained.fit(rows, target, feature_name=list(dataset.feature_names))
    trained.booster_.save_model(str(path))
    return lambda rows: _first(trained.booster_.predict(rows, raw_score=True))


def _train_catboost(model: WildModel, dataset: Dataset, path: Path) -> Margins:
    import catboost

    kind = catboost.CatBoostClassifier
    trained = kind(
        thread_count=N_THREADS,
        random_seed=SEED,
        verbose=False,
        allow_writing_files=False,
        **model.settings,
    )
    rows, target = _rows(model, dataset)
    trained.fit(catboost.Pool(rows, target, feature_names=list(dataset.feature_names)))
    trained.save_model(str(path), format="json")
    return lambda rows: _first(trained.predict(rows, prediction_type="RawFormulaVal"))


def _train_forest(model: WildModel, dataset: Dataset, path: Path) -> Margins:
    import pandas as pd
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from skops.io import dump

    is_classified = _is_classified(model, dataset)
    kind = RandomForestClassifier if is_classified else RandomForestRegressor
    trained = kind(n_jobs=N_THREADS, random_state=SEED, **model.settings)
    rows, target = _rows(model, dataset)
    names = list(dataset.feature_names)
    trained.fit(pd.DataFrame(rows, columns=names), target)
    dump(trained, path)

    def margins(rows: NDArray[np.float32]) -> NDArray[np.float64]:
        frame = pd.DataFrame(rows, columns=names)
        found = trained.predict_proba(frame)[:, 1] if is_classified else trained.predict(frame)
        return np.asarray(found, dtype=np.float64)

    return margins


_TRAINERS: dict[str, Callable[[WildModel, Dataset, Path], Margins]] = {
    "xgboost": _train_xgboost,
    "lightgbm": _train_lightgbm,
    "catboost": _train_catboost,
    "forest": _train_forest,
}


def _first(predicted: Any) -> NDArray[np.float64]:
    """Return the margins of the first class, where there are several."""
    found = np.asarray(predicted, dtype=np.float64)
    return found if found.ndim == 1 else found[:, 0]


def _notes(model: WildModel, dataset: Dataset, path: Path, margins: Margins) -> dict[str, Any]:
    """Return the sensitive features to ask about, and gaps that a tenth or hardly any exceed."""
    import xcount

    ensemble = xcount.load(path)
    grid = xcount.Grid.of(ensemble)
    generator = np.random.default_rng([SEED, len(model.name)])
    used = [f for f, axis in enumerate(grid.axes) if axis.n_cells > 1]
    order = generator.permutation(used).tolist()
    points = [
        np.array([axis.point(cell, grid.input_dtype) for cell in range(axis.n_cells)])
        for axis in grid.axes
    ]
    cells = np.stack([generator.integers(0, len(p), N_PROBES) for p in points], axis=1)
    changes = {}
    for size in (1, 2, 3, 5):
        other = cells.copy()
        for feature in order[:size]:
            other[:, feature] = generator.integers(0, len(points[feature]), N_PROBES)
        found = [_values(points, each) for each in (cells, other)]
        change = np.abs(margins(found[0]) - margins(found[1]))
        usual, rare = np.quantile(change, 0.9), change.max() * 1.1
        changes[size] = {"usual": f"{usual:.3g}", "rare": f"{rare:.3g}"}
    return {
        "name": model.name,
        "dataset": model.dataset,
        "n_trees": ensemble.n_trees,
        "n_guards": grid.n_guards,
        "n_regions": str(grid.n_regions),
        "order": order[:5],
        "gaps": changes,
        "cutoff": None
        if _is_classified(model, dataset)
        else f"{np.median(dataset.train_target):.6g}",
        "has_classes": model.has_classes,
    }


def _values(points: list[NDArray[np.float64]], cells: NDArray[np.int64]) -> NDArray[np.float32]:
    columns = [points[feature][cells[:, feature]] for feature in range(len(points))]
    return np.stack(columns, axis=1).astype(np.float32)


def main() -> int:
    for model in WILD_MODELS:
        started = time.perf_counter()
        path = model_file(model, None, None)
        notes = json.loads(notes_file(path).read_text())
        print(
            f"{model.name}: {notes['n_trees']} trees, {notes['n_guards']} guards, "
            f"{time.perf_counter() - started:.1f} s",
            file=sys.stderr,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
