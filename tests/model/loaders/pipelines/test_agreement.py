"""A pipeline, the model inside it, and a model of native categories have one count."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import xgboost
from random_pipelines import people
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import xcount


def native_model(inner: Any, names: Sequence[str], groups: dict[str, int], folder: Path) -> Path:
    """Write the file of a model in which one-hot columns are categories of one feature.

    A test of a column becomes XGBoost's own test "is it this category?".
    """
    document = json.loads(bytes(inner.get_booster().save_raw("json")))
    learner, features = document["learner"], [*groups, "age"]
    trees = learner["gradient_booster"]["model"]["trees"]
    asked = {
        tree["split_indices"][n]
        for tree in trees
        for n, child in enumerate(tree["left_children"])
        if child >= 0
    }
    place = {}
    for number, group in enumerate(features):
        own = [i for i, name in enumerate(names) if name == group or name.startswith(f"{group}_")]
        # A file does not say how many categories there are: one that is asked about is the last.
        for code, i in enumerate(sorted(own, key=lambda i: i in asked)):
            place[i] = number, code
    for tree in trees:
        inside = [n for n, child in enumerate(tree["left_children"]) if child >= 0]
        by_node = {n: place[tree["split_indices"][n]] for n in inside}
        nodes = [n for n in inside if by_node[n][0] < len(groups)]
        tree["split_indices"] = [
            by_node[n][0] if n in by_node else 0 for n in range(len(tree["split_indices"]))
        ]
        tree["split_type"] = [int(n in nodes) for n in range(len(tree["split_indices"]))]
        tree["categories"] = [by_node[n][1] for n in nodes]
        tree["categories_nodes"], tree["categories_sizes"] = nodes, [1] * len(nodes)
        tree["categories_segments"] = list(range(len(nodes)))
        tree["tree_param"]["num_feature"] = str(len(features))
    learner["learner_model_param"]["num_feature"] = str(len(features))
    learner["feature_names"] = features
    learner["feature_types"] = ["c"] * len(groups) + ["float"]
    path = folder / "native.json"
    path.write_text(json.dumps(document))
    return path


def test_a_pipeline_its_model_inside_and_one_of_categories_agree(tmp_path: Path) -> None:
    """Original columns, the same by --one-hot, and XGBoost's native categories."""
    groups = {"job": 5, "sex": 2}
    prepare = ColumnTransformer(
        [
            ("job", OneHotEncoder(), ["job"]),
            ("sex", OneHotEncoder(), ["sex"]),
            ("age", "passthrough", ["age"]),
        ]
    )
    model = xgboost.XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1)
    pipeline = make_pipeline(prepare, model).fit(*people())
    names = [name.partition("__")[2] for name in pipeline[0].get_feature_names_out()]
    inner = xcount.load(pipeline[-1])
    inner = replace(
        inner,
        features=tuple(replace(f, name=n) for f, n in zip(inner.features, names, strict=True)),
    )
    native = native_model(pipeline[-1], names, groups, tmp_path)
    columns = {g: [name for name in names if name.startswith(f"{g}_")] for g in groups}
    for change in ({"gap": "0.3"}, {"flip": True}, {"probability_gap": "0.1", "direction": "up"}):
        for sensitive in ("sex", "job", "age"):
            asked: dict[str, Any] = {"sensitive": sensitive, **change}
            counts = [
                xcount.count(pipeline, **asked),
                xcount.count(inner, one_hot=columns, **asked),
                xcount.count(native, **asked),
            ]
            assert len({(c.count, c.n_regions, c.exact) for c in counts}) == 1
            assert counts[0].exact
