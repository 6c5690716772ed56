"""Labelled rows: how well the repaired model predicts them, beside its alternatives."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.errors import TableError
from xcount.model.ensemble import Ensemble
from xcount.model.tables import read_table
from xcount.repairs.effect import Quality, quality, quality_of_margins
from xcount.repairs.labels import read_labels
from xcount.repairs.result import Tested
from xcount.repairs.retrain import trained_margins, why_not
from xcount.repairs.writers.writer import Values


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Labelled rows to test with, and to train with if the data has labels, too.

    Attributes:
        rows: to test with, one column per feature.
        labels: of these rows.
        data: to train with; None if there are no labels of it.
        data_labels: of these rows.
    """

    rows: NDArray[np.float64]
    labels: Values
    data: NDArray[np.float64] | None
    data_labels: Values | None

    @classmethod
    def of(cls, test: Any, data: Any, target: str, ensemble: Ensemble) -> LabelledRows:
        """Read the tables; labels of the data are used if it has them."""
        rows, labels = read_table(test, ensemble).rows, read_labels(test, target, ensemble)
        try:
            data_labels = read_labels(data, target, ensemble)
            return cls(rows, labels, read_table(data, ensemble).rows, data_labels)
        except TableError:  # no such column: nothing is trained
            return cls(rows, labels, None, None)

    def compared(
        self,
        before: Ensemble,
        after: Ensemble,
        shrunk: Ensemble | None,
        sensitive: Collection[int],
    ) -> Tested:
        """Return how well the models predict the rows."""
        retrained = dropped = None
        why = "the data has no labels" if self.data is None else why_not(before)
        if why is None:
            every = list(range(before.n_features))
            retrained = self._trained(before, every)
            others = [feature for feature in every if feature not in sensitive]
            dropped = self._trained(before, others) if others else None
            words = "with the library's defaults, in the size of the model"
        else:
            words = f"not done: {why}"
        return Tested(
            n_rows=len(self.rows),
            before=quality(before, self.rows, self.labels),
            after=quality(after, self.rows, self.labels),
            shrunk=None if shrunk is None else quality(shrunk, self.rows, self.labels),
            retrained=retrained,
            dropped=dropped,
            retraining=words,
        )

    def _trained(self, ensemble: Ensemble, columns: list[int]) -> Quality:
        assert self.data is not None
        assert self.data_labels is not None
        margins = trained_margins(ensemble, columns, self.data, self.data_labels, self.rows)
        return quality_of_margins(ensemble, margins, self.labels)
