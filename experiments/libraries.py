"""Other libraries: five data sets learnt by XGBoost, LightGBM, CatBoost and random forests.

50 trees of depth at most 5, learning rate 0.1, everything else as the library sets it, the same
training rows and seed. The four models of a data set share one grid and are asked about the same
features one at a time, with leaves as stored and distance 1. What gap means something depends on
the scale of a model's output (log-odds, a probability, a quality mark), so each is asked about a
tenth of the standard deviation of its own output on the training rows. So the shares of sensitive
regions can be compared, and the models ranked by them.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.datasets import BY_KEY, PLAIN, Dataset, load_dataset
from benchmarks.harness.instances import FEATURES_PER_MODEL, SEED, Instance, Sources
from benchmarks.harness.models import N_THREADS, ModelFile, cache_folder
from benchmarks.harness.plots import COLOURS, figure, legend_beside
from benchmarks.harness.records import Run, Runs
from benchmarks.harness.tables import (
    conditions,
    grouped_table,
    is_solved,
    joined,
    markdown,
    picture,
)
from benchmarks.harness.trainers import ENDINGS, Lesson
from xcount import Grid, load

DATASETS = ("diabetes", "adult", "wine", "higgs", "protein")
N_TREES, DEPTH = 50, 5
GAP_SHARE = 0.1
SETTINGS: dict[str, dict[str, Any]] = {
    "xgboost": {"n_estimators": N_TREES, "max_depth": DEPTH, "tree_method": "hist"},
    "lightgbm": {"n_estimators": N_TREES, "max_depth": DEPTH, "num_leaves": 2**DEPTH},
    "catboost": {"iterations": N_TREES, "depth": DEPTH},
    # With fewer rows in its leaves, a forest's thresholds would be nearly the data.
    "random-forest": {"n_estimators": N_TREES, "max_depth": DEPTH, "min_samples_leaf": 5},
}


def library_instances(sources: Sources) -> list[Instance]:
    """Return the questions about each library's model of each data set."""
    found = []
    for key in DATASETS:
        if sources.only and key not in sources.only:
            continue
        models = {name: library_model(name, key, sources) for name in SETTINGS}
        features = common_features([model for model, _ in models.values()])
        for model, gap in models.values():
            others = tuple(other.path for other, _ in models.values() if other is not model)
            found += [_instance(model, gap, feature, others) for feature in features]
    return found


def library_model(library: str, key: str, sources: Sources) -> tuple[ModelFile, str]:
    """Return a library's model of a data set and its gap, from the cache if it holds them."""
    folder = cache_folder(sources.cache) / "libraries"
    path = folder / f"{key}-{library}.{ENDINGS[library]}"
    notes_path = folder / f"{key}-{library}.notes.json"
    asked = {"n_trees": N_TREES, "depth": DEPTH, "eta": PLAIN.eta, "gap_share": GAP_SHARE}
    notes = json.loads(notes_path.read_text()) if notes_path.exists() else {}
    if notes.get("asked") != asked or not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        dataset = load_dataset(key, sources.data)
        _train(library, dataset, path)
        notes = {"asked": asked, **_notes(path, dataset)}
        notes_path.write_text(json.dumps(notes))
    model = ModelFile(path, key, DEPTH, N_TREES, notes["n_guards"], tuple(notes["used"]))
    return model, notes["gap"]


def _train(library: str, dataset: Dataset, path: Path) -> None:
    is_classified = dataset.spec.objective == "binary:logistic"
    lesson = Lesson(dataset.train_rows, dataset.train_target, dataset.feature_names, is_classified)
    rate = {} if library == "random-forest" else {"learning_rate": PLAIN.eta}
    lesson.train(library, path, 0, N_THREADS, **rate, **SETTINGS[library])


def _notes(path: Path, dataset: Dataset) -> dict[str, Any]:
    ensemble = load(path)
    grid = Grid.of(ensemble)
    outputs = np.asarray(ensemble.predict(dataset.train_rows[:5000].astype(np.float64)))
    gap = f"{GAP_SHARE * float(outputs.std()):.2g}"
    used = [i for i, n_cells in enumerate(grid.cell_counts) if n_cells > 1]
    return {"gap": gap, "used": used, "n_guards": grid.n_guards}


def common_features(models: Sequence[ModelFile]) -> tuple[int, ...]:
    """Return up to 8 of the features that all models of a data set use."""
    common = sorted(set.intersection(*(set(model.used) for model in models)))
    if len(common) <= FEATURES_PER_MODEL:
        return tuple(common)
    generator = np.random.default_rng([SEED, DATASETS.index(models[0].dataset)])
    drawn = generator.choice(common, FEATURES_PER_MODEL, replace=False)
    return tuple(sorted(int(feature) for feature in drawn))


def _instance(model: ModelFile, gap: str, feature: int, others: tuple[Path, ...]) -> Instance:
    return Instance(
        name=f"{model.name}-f{feature}",
        model=model.path,
        dataset=model.dataset,
        depth=DEPTH,
        n_trees=N_TREES,
        n_guards=model.n_guards,
        sensitive=(feature,),
        gap=gap,
        precision=None,
        grid_with=others,
    )


def library_of(record_name: str) -> str:
    """Return the library of a record, by its name ``DATASET-LIBRARY-fN``."""
    return record_name.partition("-")[2].rpartition("-f")[0]


def mean_shares(run: Run) -> dict[str, dict[str, float]]:
    """Return, for each data set and library, the mean share over the features all have solved."""
    shares: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for record in filter(is_solved, run.records):
        of_library = shares[record["dataset"]][library_of(record["name"])]
        of_library[record["sensitive"][0]] = float(record["share"])
    means: dict[str, dict[str, float]] = {}
    for key, by_library in shares.items():
        solved = set.intersection(*(set(found) for found in by_library.values()))
        if solved and len(by_library) == len(SETTINGS):
            means[key] = {
                library: statistics.fmean(found[feature] for feature in solved)
                for library, found in by_library.items()
            }
    return means


def ranking_table(run: Run) -> str:
    """Return the mean shares and, in brackets, the places: 1 is the least sensitive model."""
    rows, places = [], defaultdict(list)
    for key, by_library in mean_shares(run).items():
        order = sorted(by_library, key=lambda library: by_library[library])
        for library in by_library:
            places[library].append(order.index(library) + 1)
        cells = [f"{by_library[name]:.3g} ({order.index(name) + 1})" for name in SETTINGS]
        rows.append([BY_KEY[key].title, *cells])
    if rows:
        rows.append(["mean place", *(f"{statistics.fmean(places[name]):.1f}" for name in SETTINGS)])
    return markdown(["data set", *SETTINGS], rows)


def model_table(run: Run) -> str:
    """Return the guards and the gap of each model."""
    models = {r["model"]: (r["dataset"], r["name"], r["n_guards"], r["gap"]) for r in run.records}
    rows = [
        [BY_KEY[key].title, library_of(name), n_guards, gap]
        for key, name, n_guards, gap in models.values()
    ]
    return markdown(["data set", "library", "guards", "gap"], rows)


def draw(run: Run, path: Path) -> None:
    """Draw the mean shares of the models, a group of bars for each data set."""
    means = mean_shares(run)
    with figure(path, size=(6.5, 3.8)) as axes:
        for i, library in enumerate(SETTINGS):
            values = [100 * by_library[library] for by_library in means.values()]
            places = [place + 0.2 * (i - (len(SETTINGS) - 1) / 2) for place in range(len(values))]
            axes.bar(places, values, width=0.18, color=COLOURS[i], label=library)
        axes.set_xticks(range(len(means)), [BY_KEY[key].title for key in means])
        axes.set_ylabel("% of regions, mean over features")
        axes.set_title("Sensitivity of four libraries' models on shared grids")
        legend_beside(axes)


def section(runs: Runs, folder: Path) -> str:
    """Return the tables and the picture of a run."""
    run, path = runs["beyond"][0], folder / "beyond.svg"
    draw(run, path)
    return joined(
        conditions(run),
        grouped_table(run, "library", lambda record: library_of(record["name"])),
        "Mean share of sensitive regions, and the place (1: the least sensitive):",
        ranking_table(run),
        model_table(run),
        picture(path, "sensitivity of four libraries' models"),
    )
