"""Writes small XGBoost model files by hand, so that tests of the command line need no library."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Nested = float | tuple[int, float, Any, Any]
"""A leaf value, or ``(feature, threshold, left, right)`` with left iff ``x < threshold``."""

FIGURE_1: tuple[Nested, ...] = (
    (0, 4.0, (1, 3.0, 30.0, -30.0), 35.0),
    (0, 3.0, (1, 2.0, 40.0, -40.0), -45.0),
)


def xgboost_tree(nested: Nested) -> dict[str, Any]:
    """Return a tree as XGBoost's JSON format stores it: parallel lists over its nodes."""
    rows: list[list[Any]] = []

    def add(node: Nested) -> int:
        index = len(rows)
        rows.append([-1, -1, 0, node])
        if isinstance(node, tuple):
            feature, threshold, left, right = node
            rows[index] = [add(left), add(right), feature, threshold]
        return index

    add(nested)
    left, right, feature, condition = (list(column) for column in zip(*rows, strict=True))
    return {
        "left_children": left,
        "right_children": right,
        "split_indices": feature,
        "split_conditions": condition,
        "default_left": [0] * len(rows),
        "split_type": [0] * len(rows),
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
        "tree_param": {"num_nodes": str(len(rows)), "size_leaf_vector": "1"},
    }


def xgboost_document(trees: Sequence[Nested], names: Sequence[str]) -> dict[str, Any]:
    """Return a regression model with these trees and features."""
    return {
        "learner": {
            "attributes": {},
            "feature_names": list(names),
            "feature_types": ["float"] * len(names),
            "gradient_booster": {
                "name": "gbtree",
                "model": {
                    "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
                    "iteration_indptr": list(range(len(trees) + 1)),
                    "tree_info": [0] * len(trees),
                    "trees": [xgboost_tree(tree) for tree in trees],
                },
            },
            "learner_model_param": {
                "base_score": "5E-1",
                "num_class": "0",
                "num_feature": str(len(names)),
                "num_target": "1",
            },
            "objective": {"name": "reg:squarederror"},
        },
        "version": [3, 0, 0],
    }


def write_model(path: Path, trees: Sequence[Nested], names: Sequence[str]) -> str:
    """Write a model file and return its path."""
    path.write_text(json.dumps(xgboost_document(trees, names)))
    return str(path)


def first_trees(path: Path, n: int) -> str:
    """Return the text of an XGBoost model file with the first trees only."""
    document = json.loads(path.read_text())
    model = document["learner"]["gradient_booster"]["model"]
    model["gbtree_model_param"]["num_trees"] = str(n)
    for name, length in (("trees", n), ("tree_info", n), ("iteration_indptr", n + 1)):
        model[name] = model[name][:length]
    return json.dumps(document)
