"""Predictions before and after a repair: how far they move, decisions that change, quality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from xcount.model.ensemble import Ensemble
from xcount.repairs.labels import n_classes_of
from xcount.repairs.objective import probabilities
from xcount.repairs.writers.writer import Values
from xcount.support.records import Json, record

_AT_LEAST_0 = {"minimum": 0}
_SHARE = {"minimum": 0, "maximum": 1}
_LEAST_PROBABILITY = 1e-15
"""Probabilities are clipped to this before their logarithm is taken, as scikit-learn does."""


@record("repair_moves", "How the predictions of some rows change.")
@dataclass(frozen=True, slots=True)
class Moves:
    """How the predictions of some rows change."""

    n_rows: Annotated[int, Json("Number of rows.", _AT_LEAST_0)]
    root_mean_square: Annotated[
        float, Json("Root mean square of the change of the margin.", _AT_LEAST_0)
    ]
    largest: Annotated[float, Json("Largest change of the margin.", _AT_LEAST_0)]
    raised: Annotated[
        int | None,
        Json(
            "Rows whose decision rises from below to above the cut-off; with several classes, all "
            "rows whose class changes; null if the model makes no decision.",
        ),
    ] = None
    lowered: Annotated[
        int | None,
        Json("Rows whose decision falls; null with several classes, or without a decision."),
    ] = None


@record("repair_quality", "How well a model predicts labelled rows.")
@dataclass(frozen=True, slots=True)
class Quality:
    """How well a model predicts labelled rows; None for what does not apply to it."""

    log_loss: Annotated[float | None, Json("Mean log-loss; null without probabilities.")] = None
    auc: Annotated[
        float | None,
        Json("Area under the ROC curve; null unless there are two classes.", _SHARE),
    ] = None
    accuracy: Annotated[
        float | None, Json("Share of right decisions; null without decisions.", _SHARE)
    ] = None
    rmse: Annotated[
        float | None,
        Json("Root mean squared error of the margin; null for a classifier.", _AT_LEAST_0),
    ] = None


def moves(before: Ensemble, after: Ensemble, rows: NDArray[np.float64]) -> Moves:
    """Return how predictions change from one model to another."""
    old, new = before.predict(rows), after.predict(rows)
    change = np.abs(new - old)
    raised = lowered = None
    if before.decision in ("cutoff", "argmax"):
        first, second = before.decide(rows), after.decide(rows)
        if before.decision == "cutoff":
            raised, lowered = int((second > first).sum()), int((second < first).sum())
        else:
            raised = int((second != first).sum())
    return Moves(
        len(rows),
        _root_mean_square(change),
        float(change.max(initial=0.0)),
        raised,
        lowered,
    )


def _root_mean_square(change: Values) -> float:
    """Return the root mean square, also of numbers whose squares overflow."""
    largest = float(change.max(initial=0.0))
    return largest * float(np.sqrt(np.mean((change / largest) ** 2))) if largest else 0.0


def quality(ensemble: Ensemble, rows: NDArray[np.float64], labels: Values) -> Quality:
    """Return how well a model predicts labels (see :func:`xcount.repairs.labels.read_labels`)."""
    return quality_of_margins(ensemble, ensemble.predict(rows), labels)


def quality_of_margins(ensemble: Ensemble, margins: Values, labels: Values) -> Quality:
    """Return how well margins predict labels, read as those of a model."""
    n_classes = n_classes_of(ensemble)
    if not n_classes:
        return Quality(rmse=float(np.sqrt(np.mean((margins[:, 0] - labels) ** 2))))
    classes = labels.astype(np.int64)
    loss = _log_loss(ensemble, margins, classes)
    if n_classes > 2 or ensemble.n_outputs > 1:
        return Quality(loss, None, float(np.mean(margins.argmax(axis=1) == classes)))
    at = ensemble.decides_at or 0.0
    above = margins[:, 0] >= at if ensemble.tie_is_above else margins[:, 0] > at
    return Quality(loss, _auc(margins[:, 0], classes), float(np.mean(above == classes)))


def _log_loss(ensemble: Ensemble, margins: Values, classes: NDArray[np.int64]) -> float | None:
    if ensemble.probability in ("none", "unknown"):
        return None
    found = margins if ensemble.probability == "margin" else probabilities(ensemble, margins)
    if found.shape[1] == 1:
        found = np.concatenate([1 - found, found], axis=1)
    right = found[np.arange(len(classes)), classes]
    return float(-np.log(np.clip(right, _LEAST_PROBABILITY, 1.0)).mean())


def _auc(scores: Values, classes: NDArray[np.int64]) -> float | None:
    """Return the share of pairs of both classes that are in order; ties count half."""
    n_above = int(classes.sum())
    n_pairs = n_above * (len(classes) - n_above)
    if not n_pairs:
        return None
    _, places, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(sizes) - (sizes - 1) / 2
    total = float(ranks[places.ravel()][classes == 1].sum())
    return (total - n_above * (n_above + 1) / 2) / n_pairs
