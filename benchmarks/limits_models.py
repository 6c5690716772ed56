"""Models that are hard on limits of time and memory, written once into the cache folder.

Most are random trees in XGBoost's own format, which take no training: many trees, many classes,
deep trees, long axes. One is trained: LightGBM on six columns of Adult, few regions and many trees.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.datasets import load_dataset
from benchmarks.harness.models import cache_folder

SEED = 11


@dataclass(frozen=True, slots=True)
class RandomModel:
    """What random trees look like.

    Attributes:
        n_trees: all of them.
        depth: of the longest path.
        n_leaves: of a tree: fewer than 2 ** depth make paths of different lengths.
        n_features: columns.
        n_cuts: different thresholds of a column.
        n_classes: 1 for a binary classifier.
    """

    n_trees: int
    depth: int
    n_leaves: int
    n_features: int = 20
    n_cuts: int = 50
    n_classes: int = 1


RANDOM_MODELS: dict[str, RandomModel] = {
    "trees-1000": RandomModel(1000, 6, 64),
    "trees-5000": RandomModel(5000, 6, 64),
    "classes-22": RandomModel(22 * 40, 6, 64, n_classes=22),
    "depth-25": RandomModel(200, 25, 300),
    "cells-1000": RandomModel(500, 6, 64, n_features=10, n_cuts=1000),
}


def random_tree(shape: RandomModel, rng: random.Random) -> dict[str, Any]:
    """Return a tree as XGBoost's JSON stores it; a path is cut as often as its depth allows."""
    left, right, feature, value, depths = [-1], [-1], [0], [0.0], [0]
    leaves = [0]
    while leaves and len(left) < 2 * shape.n_leaves - 1:
        # The last leaf most of the time: deep paths beside short ones.
        place = len(leaves) - 1 if rng.random() < 0.6 else rng.randrange(len(leaves))
        node = leaves.pop(place)
        if depths[node] >= shape.depth:
            continue
        left[node], right[node] = len(left), len(left) + 1
        feature[node] = rng.randrange(shape.n_features)
        value[node] = float(np.float32(rng.randrange(shape.n_cuts) / 8))
        for column, start in ((left, -1), (right, -1), (feature, 0)):
            column += [start, start]
        value += [float(np.float32(rng.gauss(0, 0.1))) for _ in range(2)]
        depths += [depths[node] + 1] * 2
        leaves += [left[node], right[node]]
    return {
        "left_children": left,
        "right_children": right,
        "split_indices": feature,
        "split_conditions": value,
        "default_left": [0] * len(left),
    }


def random_document(shape: RandomModel) -> dict[str, Any]:
    """Return a model file of random trees."""
    rng = random.Random(SEED)
    trees = [random_tree(shape, rng) for _ in range(shape.n_trees)]
    many = shape.n_classes > 1
    return {
        "learner": {
            "gradient_booster": {
                "name": "gbtree",
                "model": {
                    "trees": trees,
                    "tree_info": [i % shape.n_classes for i in range(shape.n_trees)],
                },
            },
            "learner_model_param": {
                "base_score": "0.5",
                "num_class": str(shape.n_classes if many else 0),
                "num_feature": str(shape.n_features),
            },
            "objective": {"name": "multi:softprob" if many else "binary:logistic"},
        }
    }


def _write_random(shape: RandomModel) -> Callable[[Path, str | None], None]:
    def write(path: Path, data: str | None) -> None:
        path.write_text(json.dumps(random_document(shape)), encoding="utf-8")

    return write


def _train_lightgbm(path: Path, data: str | None) -> None:
    """Train a thousand trees on six columns of Adult: 4.7 million regions."""
    import lightgbm

    adult = load_dataset("adult", data)
    columns = adult.train_rows[:7000, :6]
    trained = lightgbm.LGBMClassifier(
        n_estimators=1000,
        num_leaves=31,
        learning_rate=0.1,
        min_data_in_leaf=2,
        n_jobs=1,
        random_state=SEED,
        verbosity=-1,
    )
    trained.fit(columns, adult.train_target[:7000], feature_name=list(adult.feature_names[:6]))
    trained.booster_.save_model(str(path))


def hard_model(name: str, cache: str | None, data: str | None) -> Path:
    """Return a model's file; makes it if the cache lacks it."""
    path = cache_folder(cache) / "limits" / f"{name}.{'txt' if name == LIGHTGBM else 'json'}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        make = _train_lightgbm if name == LIGHTGBM else _write_random(RANDOM_MODELS[name])
        make(path, data)
    return path


LIGHTGBM = "lightgbm-1000"
HARD_MODELS = (LIGHTGBM, *RANDOM_MODELS)
