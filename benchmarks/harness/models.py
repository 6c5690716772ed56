"""Train the models of the suites once, and keep them in a cache folder; some ship already.

Boosting is incremental and nothing is drawn at random, so the first k trees of a longer run are
the model of k trees: one training per data set and depth gives every number of trees.

``python -m benchmarks.harness.models`` trains the paper suite; ``--frontier`` the larger models.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness.datasets import (
    BY_KEY,
    PLAIN,
    SPECS,
    DataError,
    Recipe,
    load_table,
    training_part,
)
from benchmarks.harness.options import parser_of
from benchmarks.harness.tables import markdown

N_THREADS = 2
PAPER_TREES = tuple(range(10, 101, 10))
PAPER_DEPTHS = (3, 4, 5, 6)
FRONTIER_SETS = ("adult", "covtype", "higgs")
FRONTIER_TREES = (200, 500, 1000)
FRONTIER_DEPTHS = (6, 7, 8)


@dataclass(frozen=True, slots=True)
class Training:
    """One run of XGBoost, from which the models of several sizes are cut."""

    dataset: str
    depth: int
    sizes: tuple[int, ...]
    suite: str = "paper"
    recipe: Recipe = PLAIN

    @property
    def name(self) -> str:
        return f"{self.dataset}-d{self.depth}"

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the parameters of XGBoost."""
        base = self.recipe.base_score
        return {
            "tree_method": self.recipe.tree_method,
            "objective": BY_KEY[self.dataset].objective,
            "max_depth": self.depth,
            "eta": self.recipe.eta,
            "seed": 0,
            "nthread": N_THREADS,
            **({} if base is None else {"base_score": base}),
        }

    def describe(self) -> dict[str, Any]:
        """Return what tells this training from others, as it is noted beside its models."""
        data = asdict(self) | {"parameters": self.parameters}
        if not self.recipe.is_split:
            data["order"] = "as read"
        described: dict[str, Any] = json.loads(json.dumps(data))
        return described


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A cached model and what is known of it without loading it.

    ``used`` lists the indices of the features that occur in some split.
    """

    path: Path
    dataset: str
    depth: int
    n_trees: int
    n_guards: int
    used: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.path.stem


def paper_trainings(keys: Iterable[str] | None = None) -> list[Training]:
    """Return the runs that give the 400 configurations of the paper."""
    chosen = list(keys or BY_KEY)
    return [
        Training(spec.key, depth, PAPER_TREES, recipe=spec.recipe)
        for spec in SPECS
        if spec.key in chosen
        for depth in PAPER_DEPTHS
    ]


def frontier_trainings(keys: Iterable[str] | None = None) -> list[Training]:
    """Return the runs that give the larger models."""
    chosen = list(keys or FRONTIER_SETS)
    return [
        Training(key, depth, FRONTIER_TREES, "frontier")
        for key in FRONTIER_SETS
        if key in chosen
        for depth in FRONTIER_DEPTHS
    ]


def cache_folder(folder: str | Path | None = None) -> Path:
    """Return the folder for models: the given one, else ``XCOUNT_CACHE``, else one in the home."""
    chosen = folder or os.environ.get("XCOUNT_CACHE") or Path.home() / ".cache" / "xcount-bench"
    return Path(chosen)


def models_of(
    training: Training, cache: str | Path | None = None, data: str | Path | None = None
) -> list[ModelFile]:
    """Return the models of a training, from the cache where it holds them."""
    folder = cache_folder(cache) / training.suite
    notes_path = folder / f"{training.name}.notes.json"
    notes = _cached_notes(training, notes_path)
    if notes is None:
        from benchmarks.harness import shipped

        folder.mkdir(parents=True, exist_ok=True)
        notes = shipped.unpack(training, folder) or _train(training, folder, data)
        _write(notes_path, json.dumps(notes))
    return [
        ModelFile(
            folder / note["file"],
            training.dataset,
            training.depth,
            note["n_trees"],
            note["n_guards"],
            tuple(note["used"]),
        )
        for note in notes["models"]
    ]


def _cached_notes(training: Training, path: Path) -> dict[str, Any] | None:
    """Return what was noted when the models were trained, if that was the same training."""
    if not path.exists():
        return None
    notes: dict[str, Any] = json.loads(path.read_text())
    return notes if notes["training"] == training.describe() else None


def _train(training: Training, folder: Path, data: str | Path | None) -> dict[str, Any]:
    import xgboost as xgb

    columns, rows, target = load_table(BY_KEY[training.dataset], data)
    names = list(columns)
    rows, target = training_part(rows, target, training.recipe.is_split)
    matrix = xgb.DMatrix(rows, target, feature_names=names, nthread=N_THREADS)
    booster = xgb.train(training.parameters, matrix, max(training.sizes))
    models = []
    for size in training.sizes:
        path = folder / f"{training.name}-t{size}.json"
        part = booster[:size]
        _write(path, bytes(part.save_raw("json")).decode())
        models.append({"file": path.name, "n_trees": size, **_splits(part, names)})
    return {
        "training": training.describe(),
        "xgboost": xgb.__version__,
        "n_rows": len(rows),
        "n_features": len(names),
        "models": models,
    }


def _splits(booster: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return the number of guards and the used features of a booster."""
    nodes = booster.trees_to_dataframe()
    splits = nodes[nodes["Feature"] != "Leaf"]
    guards = splits[["Feature", "Split"]].drop_duplicates()
    used = sorted(names.index(name) for name in guards["Feature"].unique())
    return {"n_guards": len(guards), "used": used}


def _write(path: Path, text: str) -> None:
    """Write a file at once: no reader sees half of it."""
    partial = path.with_suffix(f".partial{os.getpid()}")
    partial.write_text(text)
    partial.replace(path)


def guard_table(models: Iterable[ModelFile], compare: bool = True) -> str:
    """Return the guards of each data set's models as Markdown, beside the paper's table 1."""
    guards: dict[str, list[int]] = {}
    for model in models:
        guards.setdefault(model.dataset, []).append(model.n_guards)
    rows = [
        [BY_KEY[key].title, min(found), max(found), *(BY_KEY[key].paper_guards if compare else ())]
        for key, found in guards.items()
    ]
    header = ["data set", "guards, fewest", "most"]
    return markdown([*header, *(("in the paper, fewest", "most") if compare else ())], rows)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("benchmarks.harness.models", __doc__)
    parser.add_argument("--only", nargs="*", help="data sets to train on (default: all)")
    parser.add_argument("--frontier", action="store_true", help="the larger models instead")
    options = parser.parse_args(arguments)
    trainings = (frontier_trainings if options.frontier else paper_trainings)(options.only)
    models: list[ModelFile] = []
    for training in trainings:
        started = time.perf_counter()
        try:
            models += models_of(training, options.cache, options.data)
        except DataError as error:
            print(error, file=sys.stderr)
            return 2
        print(f"{training.name}: {time.perf_counter() - started:.1f} s", file=sys.stderr)
    print(guard_table(models, compare=not options.frontier))
    return 0


if __name__ == "__main__":
    sys.exit(main())
