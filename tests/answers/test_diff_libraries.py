"""Diffs of models of real libraries, against the libraries' own predictions."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_files import xgboost_tree

import xcount
from xcount.model.align import aligned
from xcount.model.ensemble import Ensemble, Tree
from xcount.model.two_models import TwoModels
from xcount.question.grid import Grid

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")
ensemble = pytest.importorskip("sklearn.ensemble")

pytestmark = pytest.mark.filterwarnings("ignore::xcount.errors.QueryWarning")


def sample(seed: int, n: int = 300, n_features: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Return rows with few decimals, and their labels."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, n_features)).round(1)
    return rows, (rows[:, 0] * rows[:, -1] + rng.normal(size=n) * 0.3 > 0).astype(int)


def trained(kind: str, seed: int, n_features: int = 2) -> Any:
    """Return a small model of a library."""
    rows, labels = sample(seed, n_features=n_features)
    if kind == "lightgbm":
        words = {"objective": "binary", "num_leaves": 5, "verbose": -1, "num_threads": 1}
        return lightgbm.train(words, lightgbm.Dataset(rows, labels), num_boost_round=4)
    if kind == "xgboost":
        words = {"objective": "binary:logistic", "max_depth": 2, "nthread": 1}
        return xgboost.train(words, xgboost.DMatrix(rows, labels), 4)
    if kind == "forest":
        forest = ensemble.RandomForestClassifier(3, max_depth=2, random_state=seed, n_jobs=1)
        return forest.fit(rows, labels)
    boosting = ensemble.HistGradientBoostingClassifier(max_iter=3, max_depth=2, random_state=seed)
    return boosting.fit(rows, labels)


def chances(kind: str, model: Any, rows: np.ndarray) -> np.ndarray:
    """Return the probabilities of class 1 that the library predicts."""
    if kind == "lightgbm":
        return np.asarray(model.predict(rows))
    if kind == "xgboost":
        return np.asarray(model.predict(xgboost.DMatrix(rows)), dtype=np.float64)
    return np.asarray(model.predict_proba(rows)[:, 1])


def joint_points(first: Ensemble, second: Ensemble) -> np.ndarray:
    """Return a point of every region of the joint grid."""
    both = aligned([first, second])
    grid = Grid.of(TwoModels((both[0], both[1]), ("a", "b")).ensemble)
    cells = itertools.product(*map(range, grid.cell_counts[:-1]))
    return np.array([grid.point([*region, 0])[:-1] for region in cells])


KINDS = ("lightgbm", "xgboost", "forest", "hist")


@pytest.mark.parametrize("pair", list(itertools.product(KINDS, KINDS)), ids="-".join)
def test_decisions_are_those_of_the_libraries(pair: tuple[str, str]) -> None:
    """In every region of the joint grid, thin ones between rounded thresholds included."""
    for seed in range(2):
        models = [trained(kind, seed + 10 * k) for k, kind in enumerate(pair)]
        loaded = [xcount.load(model) for model in models]
        found = xcount.diff(*models, flip=True)
        points = joint_points(*loaded)
        assert len(points) == found.n_regions
        first, second = (
            chances(kind, model, points) for kind, model in zip(pair, models, strict=True)
        )
        is_near = np.minimum(abs(first - 0.5), abs(second - 0.5)) < 1e-6
        n = int(((first > 0.5) != (second > 0.5))[~is_near].sum())
        assert n <= (found.count or 0) <= n + int(is_near.sum())
        for witness in found.witnesses or ():
            assert witness.library_margins is not None
            row = np.array([witness.point])
            ours = [chances(k, m, row)[0] > 0.5 for k, m in zip(pair, models, strict=True)]
            assert ours[0] != ours[1]


@pytest.mark.parametrize("pair", [("lightgbm", "xgboost"), ("xgboost", "hist")], ids="-".join)
def test_probabilities_are_those_of_the_libraries(pair: tuple[str, str]) -> None:
    """In every region, for several gaps."""
    models = [trained(kind, 3 + k) for k, kind in enumerate(pair)]
    points = joint_points(*map(xcount.load, models))
    first, second = (chances(k, m, points) for k, m in zip(pair, models, strict=True))
    size = abs(first - second)
    for gap in (0.03, 0.1, 0.2):
        found = xcount.diff(*models, probability_gap=gap, witnesses=1)
        assert not (abs(size - gap) < 1e-6).any()
        assert found.count == int((size > gap).sum())


def converted(model: Ensemble, text: str, path: Path) -> str:
    """Write a LightGBM model as XGBoost's JSON, as converters do: thresholds become float32."""
    blocks = text.split("Tree=")[1:]
    thresholds = []
    for block in blocks:
        fields = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        thresholds.append([float(t) for t in fields["threshold"].split()])

    def nested(tree: Tree, own: list[float], node: int = 0) -> Any:
        if tree.feature[node] < 0:
            return float(np.float32(tree.value[node]))
        # LightGBM's x <= t becomes x < t, with t rounded to the nearest float32.
        near = min(own, key=lambda t: abs(t - float(tree.threshold[node])))
        left, right = (nested(tree, own, int(c[node])) for c in (tree.left, tree.right))
        return (int(tree.feature[node]), float(np.float32(near)), left, right)

    words = {"max_depth": 1, "base_score": 0.0, "nthread": 1}
    rows = xgboost.DMatrix(np.eye(2), [0.0, 1.0], feature_names=list(model.feature_names))
    document = json.loads(xgboost.train(words, rows, 1).save_raw("json"))
    boosted = document["learner"]["gradient_booster"]["model"]
    boosted["trees"] = [
        _xgboost_tree(nested(tree, own), k, model.n_features)
        for k, (tree, own) in enumerate(zip(model.trees, thresholds, strict=True))
    ]
    boosted["gbtree_model_param"]["num_trees"] = str(model.n_trees)
    boosted["tree_info"] = [0] * model.n_trees
    boosted["iteration_indptr"] = list(range(model.n_trees + 1))
    path.write_text(json.dumps(document))
    return str(path)


def _xgboost_tree(nested: Any, number: int, n_features: int) -> dict[str, Any]:
    """Return a tree with all fields that XGBoost itself reads."""
    tree = xgboost_tree(nested)
    n = len(tree["left_children"])
    parents = [2**31 - 1] * n
    for side in ("left_children", "right_children"):
        for parent, child in enumerate(tree[side]):
            if child >= 0:
                parents[child] = parent
    zeros = dict.fromkeys(("base_weights", "loss_changes", "sum_hessian"), [0.0] * n)
    param = {"num_deleted": "0", "num_feature": str(n_features), "num_nodes": str(n)}
    param["size_leaf_vector"] = "1"
    return {**tree, **zeros, "id": number, "parents": parents, "tree_param": param}


def test_every_input_that_a_conversion_changes_is_found(tmp_path: Path) -> None:
    """Only thin cells at thresholds differ, and both libraries confirm inputs in them."""
    rows, _ = sample(5, n_features=2)
    target = rows[:, 0] + rows[:, 1] ** 2
    words = {"objective": "regression", "num_leaves": 6, "verbose": -1, "num_threads": 1}
    model = lightgbm.train(words, lightgbm.Dataset(rows, target), num_boost_round=5)
    model.save_model(str(tmp_path / "model.txt"))
    loaded = xcount.load(tmp_path / "model.txt")
    path = converted(loaded, (tmp_path / "model.txt").read_text(), tmp_path / "converted.json")
    found = xcount.diff(tmp_path / "model.txt", path, gap=0.01, witnesses=5)
    assert found.exact
    assert 0 < (found.count or 0) < found.n_regions
    booster = xgboost.Booster(model_file=path)
    points = joint_points(loaded, xcount.load(path))
    names = list(loaded.feature_names)
    ours = booster.predict(xgboost.DMatrix(points, feature_names=names), output_margin=True)
    size = abs(np.asarray(ours, dtype=np.float64) - model.predict(points))
    assert found.count == int((size > 0.01).sum())
    assert len(found.witnesses or ()) == 5
    for witness in found.witnesses or ():
        assert witness.library_margins is not None
        assert abs(witness.library_margins[0] - witness.library_margins[1]) > 0.01
    random = np.random.default_rng(0).normal(size=(1000, 2))
    ours = booster.predict(xgboost.DMatrix(random, feature_names=names), output_margin=True)
    assert (abs(np.asarray(ours) - model.predict(random)) < 0.01).all()  # samples miss them
    volume = xcount.diff(
        tmp_path / "model.txt", path, gap=0.01, measures="volume", data=rows, witnesses=0
    ).measures["volume"]
    assert 0 < (volume.share or 0) < 1e-5


def test_pipelines_are_compared_on_their_own_columns() -> None:
    """A pipeline that scales its columns against a model that does not."""
    pipeline = pytest.importorskip("sklearn.pipeline")
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    rows, labels = sample(8)
    forest = ensemble.RandomForestClassifier(3, max_depth=2, random_state=0, n_jobs=1)
    scaled = pipeline.make_pipeline(preprocessing.StandardScaler(), forest).fit(rows, labels)
    plain = trained("forest", 8)
    found = xcount.diff(scaled, plain, flip=True)
    points = joint_points(xcount.load(scaled), xcount.load(plain))
    first, second = (chances("forest", model, points) for model in (scaled, plain))
    is_near = np.minimum(abs(first - 0.5), abs(second - 0.5)) < 1e-9
    n = int(((first > 0.5) != (second > 0.5))[~is_near].sum())
    assert n <= (found.count or 0) <= n + int(is_near.sum())
    same = xcount.diff(scaled, scaled, flip=True)
    assert (same.count, same.exact) == (0, True)
    assert all(witness.library_margins is not None for witness in found.witnesses or ())
