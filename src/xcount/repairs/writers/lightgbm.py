"""Other leaf values in LightGBM's text files, and in live LightGBM models.

Only the lines ``leaf_value`` change, and the lengths of the trees' texts in the header, by which
LightGBM finds the trees.
"""

from __future__ import annotations

import copy
import re
from itertools import pairwise
from typing import Any

import numpy as np

from xcount.model.ensemble import Ensemble
from xcount.model.loaders import lightgbm_text
from xcount.repairs.writers.writer import ModelWriter, Values

_TREE = re.compile(r"^Tree=", re.MULTILINE)
_LEAVES = re.compile(r"^(leaf_value=)([^\r\n]*)", re.MULTILINE)
_SIZES = re.compile(r"^tree_sizes=[^\r\n]*", re.MULTILINE)
_END = re.compile(r"^end of trees", re.MULTILINE)


class LightGBMWriter(ModelWriter):
    """A LightGBM model as text.

    Args:
        text: the whole model.
        ensemble: the model as the loader reads it.
        model: the live model, if it was one.
    """

    def __init__(self, text: str, ensemble: Ensemble, model: Any = None) -> None:
        self.ensemble, self._model = ensemble, model
        end = _END.search(text)
        ends = len(text) if end is None else end.start()
        starts = [match.start() for match in _TREE.finditer(text, 0, ends)]
        bounds = [*starts, ends]
        self._head = text[: bounds[0]]
        self._trees = [text[a:b] for a, b in pairwise(bounds)]
        self._tail = text[ends:]
        self._sizes = [len(_LEAVES.findall(tree)[0][1].split()) for tree in self._trees]

    @property
    def n_slots(self) -> int:
        return sum(self._sizes)

    def numbered(self) -> Ensemble:
        text = self._with(np.arange(1.0, self.n_slots + 1))
        return lightgbm_text.from_bytes(text.encode(), "the numbered model")

    def rounded(self, values: Values) -> Values:
        return values

    def data(self, values: Values) -> bytes:
        return self._with(values).encode()

    def live(self, values: Values) -> Any:
        import lightgbm

        booster = lightgbm.Booster(model_str=self._with(values))
        if self._model is None or hasattr(self._model, "model_to_string"):
            return booster
        model = copy.copy(self._model)
        model._Booster = booster
        return model

    def _with(self, values: Values) -> str:
        trees, start = [], 0
        for tree, size in zip(self._trees, self._sizes, strict=True):
            line = " ".join(f"{value:.17g}" for value in values[start : start + size].tolist())
            trees.append(_LEAVES.sub(rf"\g<1>{line}", tree, count=1))
            start += size
        sizes = " ".join(str(len(tree.encode())) for tree in trees)
        head = _SIZES.sub(f"tree_sizes={sizes}", self._head)
        return head + "".join(trees) + self._tail
