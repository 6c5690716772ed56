"""The true labels of a table: a column that the model does not have."""

from __future__ import annotations

from typing import Any

import numpy as np

from xcount.errors import TableError
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.tables import read_table
from xcount.repairs.writers.writer import Values


def read_labels(data: Any, target: str, ensemble: Ensemble) -> Values:
    """Return the labels of a table's rows: indices of classes, or numbers of a regression.

    Raises:
        TableError: the column is missing, or holds something else.

    Example:
        >>> from xcount.model.examples import figure_1
        >>> read_labels({"y": [3, 4.5]}, "y", figure_1()).tolist()
        [3.0, 4.5]
    """
    n_classes = n_classes_of(ensemble)
    names = ensemble.class_labels if n_classes else None
    if names is not None and not all(map(_is_number, names)):
        feature = Feature(target, tuple(range(len(names))), names)
        return read_table(data, Ensemble((feature,), ())).rows[:, 0]
    labels = read_table(data, Ensemble((Feature(target),), ())).rows[:, 0]
    if np.isnan(labels).any():
        raise TableError(f"column {target!r} has rows without a label; leave them out")
    if not n_classes:
        return labels
    known = list(map(float, names)) if names is not None else list(range(n_classes))
    indices = np.searchsorted(known, labels)
    inside = indices < len(known)
    if not (inside.all() and (np.asarray(known)[indices] == labels).all()):
        listed = ", ".join(f"{value:g}" for value in known[:5])
        raise TableError(
            f"column {target!r} holds {labels[~inside][0] if not inside.all() else labels[0]:g}, "
            f"which is no class: the model's classes are {listed}"
        )
    return indices.astype(np.float64)


def n_classes_of(ensemble: Ensemble) -> int:
    """Return the number of classes; 0 for a model that predicts numbers."""
    if ensemble.task == "multiclass":
        return ensemble.n_outputs
    is_named = len(ensemble.class_labels or ()) == 2
    return 2 if ensemble.n_outputs == 1 and (ensemble.task == "binary" or is_named) else 0


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
