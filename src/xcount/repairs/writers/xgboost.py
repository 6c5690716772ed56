"""Other leaf values in XGBoost's JSON and UBJSON files, and in live XGBoost models.

XGBoost keeps a leaf's value, a float32, among the thresholds (``split_conditions``) and again in
``base_weights``. Nodes stay where they are: XGBoost numbers them breadth-first.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.errors import UnsupportedModelError
from xcount.model.ensemble import Ensemble
from xcount.model.loaders import xgboost_json
from xcount.repairs.writers import ubjson
from xcount.repairs.writers.writer import ModelWriter, Values

_MOST_SLOTS = 2**24
"""Numbers of slots must be float32 numbers."""


class XGBoostWriter(ModelWriter):
    """A parsed XGBoost document.

    Args:
        document: the document; it is not changed.
        ensemble: the model as the loader reads it.
        model: the live model, if it was one.
    """

    def __init__(self, document: Any, ensemble: Ensemble, model: Any = None) -> None:
        self.ensemble, self._model = ensemble, model
        self._document = document
        booster, self._weights = _booster(document)
        trees = booster["model"]["trees"]
        self._leaves = [_leaves_of(tree, ensemble) for tree in trees]
        sizes = [len(nodes) for nodes in self._leaves]
        self._starts = np.cumsum([0, *sizes])
        if self.n_slots >= _MOST_SLOTS:
            raise UnsupportedModelError(f"{self.n_slots:,} leaves are too many to be repaired")
        self._weight_of = np.repeat(np.asarray(self._weights or [1.0] * len(sizes)), sizes)

    @property
    def n_slots(self) -> int:
        return int(self._starts[-1])

    def numbered(self) -> Ensemble:
        numbers = np.arange(1.0, self.n_slots + 1)
        document = self._with(numbers.astype(np.float32))
        if self._weights is not None:
            document["learner"]["gradient_booster"]["weight_drop"] = [1.0] * len(self._leaves)
        if hasattr(self._model, "get_booster"):  # it predicts up to its best iteration
            attributes = document["learner"].get("attributes") or {}
            document["learner"]["attributes"] = {**attributes, "scikit_learn": "{}"}
        return xgboost_json.from_document(document, "the numbered model", "xgboost-json")

    def rounded(self, values: Values) -> Values:
        stored = self._stored(values).astype(np.float64)
        return np.where(self._weight_of == 0, 0.0, stored * self._weight_of)

    def data(self, values: Values) -> bytes:
        document = self._with(self._stored(values))
        if self.ensemble.format == "xgboost-ubjson":
            return ubjson.encoded(document)
        return json.dumps(document, separators=(",", ":")).encode()

    def live(self, values: Values) -> Any:
        import xgboost

        raw = bytearray(
            json.dumps(self._with(self._stored(values)), separators=(",", ":")).encode()
        )
        if self._model is None or not hasattr(self._model, "get_booster"):
            booster = xgboost.Booster()
            booster.load_model(raw)
            return booster
        model = copy.deepcopy(self._model)
        model.get_booster().load_model(raw)
        return model

    def _stored(self, values: Values) -> NDArray[np.float32]:
        """Return what the file holds: DART multiplies it by the weight of its tree."""
        weights = np.where(self._weight_of == 0, 1.0, self._weight_of)
        return (values / weights).astype(np.float32)

    def _with(self, stored: NDArray[np.float32]) -> Any:
        """Return the document with other values of its leaves."""
        document = _copied(self._document)
        booster, _ = _booster(document)
        trees = booster["model"]["trees"]
        for tree, nodes, start in zip(trees, self._leaves, self._starts.tolist(), strict=False):
            own = stored[start : start + len(nodes)]
            for key in ("split_conditions", "base_weights"):
                if key in tree:
                    tree[key] = _replaced(tree[key], nodes, own)
        return document


def _booster(document: Any) -> tuple[Any, list[float] | None]:
    """Return the object that holds the trees, and the weights of DART's trees."""
    booster = document["learner"]["gradient_booster"]
    if booster["name"] == "dart":
        return booster["gbtree"], [float(np.float32(weight)) for weight in booster["weight_drop"]]
    return booster, None


def _leaves_of(tree: Any, ensemble: Ensemble) -> NDArray[np.int64]:
    """Return the nodes that are leaves, pruned ones included."""
    if int(tree.get("tree_param", {}).get("size_leaf_vector", "1") or 1) > 1:
        raise UnsupportedModelError(
            f"{ensemble.path or 'the model'}: trees with a vector in each leaf "
            "(multi_strategy=multi_output_tree) cannot be repaired; train one tree per output"
        )
    return np.flatnonzero(np.asarray(tree["left_children"]) < 0)


def _copied(document: Any) -> Any:
    """Return a document with a copy of everything on the way to its trees."""
    learner = dict(document["learner"])
    booster = dict(learner["gradient_booster"])
    learner["gradient_booster"] = booster
    home = booster
    if booster["name"] == "dart":
        home = dict(booster["gbtree"])
        booster["gbtree"] = home
    home["model"] = {**home["model"], "trees": [dict(tree) for tree in home["model"]["trees"]]}
    return {**document, "learner": learner}


def _replaced(values: Any, nodes: NDArray[np.int64], stored: NDArray[np.float32]) -> Any:
    """Return the values of all nodes; lists stay lists, with the fewest digits that read back."""
    if isinstance(values, np.ndarray):
        found = values.copy()
        found[nodes] = stored
        return found
    listed = list(values)
    for node, value in zip(nodes.tolist(), stored, strict=True):
        listed[node] = float(str(value))
    return listed
