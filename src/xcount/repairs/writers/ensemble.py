"""Other leaf values in an :class:`~xcount.Ensemble`, which is not read from a file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from xcount.errors import UnsupportedModelError
from xcount.model.ensemble import Ensemble
from xcount.repairs.writers.writer import ModelWriter, Values


class EnsembleWriter(ModelWriter):
    """An ensemble whose leaves are float64 numbers."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.ensemble = ensemble
        self._leaves = [np.flatnonzero(tree.feature < 0) for tree in ensemble.trees]

    @property
    def n_slots(self) -> int:
        return sum(map(len, self._leaves))

    def numbered(self) -> Ensemble:
        return self.live(np.arange(1.0, self.n_slots + 1))

    def rounded(self, values: Values) -> Values:
        return values

    def data(self, values: Values) -> bytes:
        raise UnsupportedModelError(
            "an ensemble is not a model of a library, so it cannot be written; leave out output, "
            "or repair the model it was made from"
        )

    def live(self, values: Values) -> Ensemble:
        start, trees = 0, []
        for tree, leaves in zip(self.ensemble.trees, self._leaves, strict=True):
            own = tree.value.copy()
            own[leaves] = values[start : start + len(leaves)]
            start += len(leaves)
            trees.append(replace(tree, value=own))
        return replace(self.ensemble, trees=tuple(trees))
