"""Other leaf values in CatBoost's JSON files, and in live CatBoost models."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from xcount.model.ensemble import Ensemble
from xcount.model.loaders import catboost_models
from xcount.repairs.writers.writer import ModelWriter, Values, unscaled


class CatBoostWriter(ModelWriter):
    """A parsed CatBoost document.

    Args:
        document: the document; it is not changed.
        ensemble: the model as the loader reads it.
        model: the live model, if it was one.
    """

    def __init__(self, document: Any, ensemble: Ensemble, model: Any = None) -> None:
        self.ensemble, self._model, self._document = ensemble, model, document
        leaves = [np.ravel(holder[key]) for holder, key in _holders(document)]
        self._sizes = list(map(len, leaves))
        self._given = np.concatenate(leaves).astype(np.float64)
        self._scales = np.full(self.n_slots, document.get("scale_and_bias", [1.0])[0], np.float64)

    @property
    def n_slots(self) -> int:
        return sum(self._sizes)

    def numbered(self) -> Ensemble:
        document = self._with(np.arange(1.0, self.n_slots + 1))
        if "scale_and_bias" in document:
            document["scale_and_bias"] = [1.0, document["scale_and_bias"][1]]
        return catboost_models.from_document(document, "the numbered model", "catboost-json")

    def rounded(self, values: Values) -> Values:
        return self._stored(values) * self._scales

    def data(self, values: Values) -> bytes:
        return json.dumps(self._with(self._stored(values)), separators=(",", ":")).encode()

    def live(self, values: Values) -> Any:
        import catboost

        model = catboost.CatBoost() if self._model is None else type(self._model)()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.json"
            path.write_bytes(self.data(values))
            model.load_model(str(path), format="json")
        return model

    def _stored(self, values: Values) -> Values:
        """Return what the file holds: the model multiplies it by its scale."""
        return unscaled(values, self._scales, self._given)

    def _with(self, stored: Values) -> Any:
        """Return the document with other values of its leaves."""
        document, start = copy.deepcopy(self._document), 0
        for (holder, key), size in zip(_holders(document), self._sizes, strict=True):
            own = stored[start : start + size].tolist()
            holder[key] = own if isinstance(holder[key], list) else own[0]
            start += size
        return document


def _holders(document: Any) -> Iterator[tuple[Any, str]]:
    """Yield the objects that hold values of leaves, each with the key: oblivious trees or nodes."""
    if "oblivious_trees" in document:
        yield from ((tree, "leaf_values") for tree in document["oblivious_trees"])
        return
    waiting = list(reversed(document["trees"]))
    while waiting:
        node = waiting.pop()
        if "split" in node:
            waiting += [node["right"], node["left"]]
        else:
            yield node, "value"
