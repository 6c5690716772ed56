"""Train models as people really have them, once, and keep them in the cache folder.

Production settings of four libraries on the data sets of the paper: 300 to 2,000 trees, LightGBM
with 31 to 255 leaves, CatBoost of depth 8, random forests of full depth, several classes.

    python -m benchmarks.wild_models
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.datasets import Dataset, load_dataset
from benchmarks.harness.models import cache_folder
from benchmarks.harness.trainers import ENDINGS, Lesson, Margins

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
        family: the library.
        settings: parameters of the library.
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
    WildModel("adult-forest-300", "adult", "random-forest", {"n_estimators": 300}),
    WildModel("higgs-xgb-500x8", "higgs", "xgboost", {"n_estimators": 500, "max_depth": 8}),
    WildModel("higgs-lgb-300x127", "higgs", "lightgbm", {"n_estimators": 300, "num_leaves": 127}),
    WildModel("higgs-cat-500x8", "higgs", "catboost", {"iterations": 500, "depth": 8}),
    WildModel("susy-forest-300", "susy", "random-forest", {"n_estimators": 300}),
    WildModel("susy-xgb-800x6", "susy", "xgboost", {"n_estimators": 800, "max_depth": 6}),
    WildModel("webspam-lgb-300x31", "webspam", "lightgbm", {"n_estimators": 300, "num_leaves": 31}),
    WildModel("protein-lgb-1000x31", "protein", "lightgbm", {"n_estimators": 1000}),
    WildModel("wine-forest-300", "wine", "random-forest", {"n_estimators": 300}),
    WildModel("wine-xgb-500x6", "wine", "xgboost", {"n_estimators": 500, "max_depth": 6}),
    WildModel("covtype-xgb-7x100x6", "covtype", "xgboost", {"max_depth": 6}, has_classes=True),
    WildModel("covtype-lgb-7x100x31", "covtype", "lightgbm", {}, has_classes=True),
)


def model_file(model: WildModel, cache: str | Path | None, data: str | Path | None) -> Path:
    """Return a model's file; trains it, and writes notes beside it, if the cache lacks it."""
    folder = cache_folder(cache) / "wild"
    path = folder / f"{model.name}.{ENDINGS[model.family]}"
    if not notes_file(path).exists():
        folder.mkdir(parents=True, exist_ok=True)
        dataset = load_dataset(model.dataset, data)
        rate = {"learning_rate": 0.1} if model.family == "xgboost" else {}
        settings = rate | model.settings
        margins = _lesson(model, dataset).train(model.family, path, SEED, N_THREADS, **settings)
        notes_file(path).write_text(json.dumps(_notes(model, dataset, path, margins)))
    return path


def notes_file(path: Path) -> Path:
    """Return where the notes of a model are."""
    return path.with_suffix(".notes.json")


def _lesson(model: WildModel, dataset: Dataset) -> Lesson:
    target = dataset.train_target[:MAX_ROWS]
    return Lesson(
        dataset.train_rows[:MAX_ROWS],
        target - target.min() if model.has_classes else target,
        dataset.feature_names,
        model.has_classes or dataset.spec.objective == "binary:logistic",
    )


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
        if _lesson(model, dataset).is_classified
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
