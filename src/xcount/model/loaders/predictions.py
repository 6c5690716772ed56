"""What the library itself makes of rows: margins, and where it says so decisions and probabilities.

The library adds floats. Where a sum is within their rounding of a cut-off, its decision may be
another than that of the exact sum, and only the library can tell which.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.model.ensemble import Ensemble
from xcount.model.loaders import check

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Predictions:
    """What the library predicts.

    Attributes:
        margins: shape ``(n_rows, n_outputs)``.
        decisions: the class of each row, by its index, as ``predict`` says; None where the library
            says nothing about classes.
        probabilities: of class 1 or of every class, shape ``(n_rows, n_outputs)``; None likewise.
    """

    margins: Numbers
    decisions: NDArray[np.int64] | None = None
    probabilities: Numbers | None = None


def library_predictions(
    ensemble: Ensemble, model: Any, rows: Numbers, *, trust_pickle: bool = False
) -> Predictions:
    """Return what the library predicts of rows: one column per feature, a category is its code."""
    margins = check.library_margins(ensemble, model, rows, trust_pickle=trust_pickle)
    source = check.unpickled(model) if trust_pickle else model
    decisions, probabilities = _classified(ensemble, source, rows)
    return Predictions(margins, decisions, probabilities)


Classified = tuple[NDArray[np.int64] | None, Numbers | None]
_NOTHING: Classified = (None, None)


def _classified(ensemble: Ensemble, model: Any, rows: Numbers) -> Classified:
    """Return decisions and probabilities, where the library has them."""
    library = ensemble.format.partition("-")[0]
    if ensemble.decision not in ("cutoff", "argmax"):
        return _NOTHING
    if "-pipeline" in ensemble.format:
        library = "sklearn"
    if library in _BY_LIBRARY:
        return _BY_LIBRARY[library](ensemble, model, rows)
    predicted = check.raw_predictions(ensemble, model, rows, are_margins=False)
    if predicted.shape[1] < ensemble.n_outputs:  # multi:softmax predicts classes
        return predicted[:, 0].astype(np.int64), None
    is_single = ensemble.n_outputs == 1
    decisions = (predicted[:, 0] > 0.5) if is_single else np.argmax(predicted, axis=1)
    has_meaning = ensemble.probability in ("sigmoid", "softmax")
    return decisions.astype(np.int64), predicted if has_meaning else None


def _by_scikit_learn(_: Ensemble, model: Any, rows: Numbers) -> Classified:
    from xcount.model.loaders import pipelines, sklearn_models

    opened = sklearn_models.opened(model) if isinstance(model, str | os.PathLike) else model
    if pipelines.is_wrapper(opened):
        inside = pipelines.inside(opened, rows)
        if inside is None:
            return _NOTHING
        decisions, probabilities = _classified(*inside)
        threshold = pipelines.opened(opened).threshold
        if threshold is None or probabilities is None:
            return decisions, probabilities
        is_margin = threshold.method == "decision_function"
        scores = check.library_margins(*inside) if is_margin else probabilities
        return threshold.decisions(scores[:, 0]), probabilities
    predicted, probabilities = sklearn_models.classified(opened, rows)
    return _indices(predicted, sklearn_models.classes_of(opened)), probabilities


def _by_interpret(ensemble: Ensemble, model: Any, rows: Numbers) -> Classified:
    from xcount.model.loaders import explainable_boosting

    predicted, probabilities = explainable_boosting.classified(model, rows, ensemble.features)
    return _indices(predicted, model.classes_), probabilities


def _by_onnx(ensemble: Ensemble, model: Any, rows: Numbers) -> Classified:
    from xcount.model.loaders import onnx_models

    predicted, probabilities = onnx_models.classified(model, rows)
    return _indices(predicted, ensemble.class_labels or ()), probabilities


def _by_catboost(ensemble: Ensemble, model: Any, rows: Numbers) -> Classified:
    from xcount.model.loaders import catboost_models

    def ask(what: str) -> NDArray[Any]:
        return catboost_models.predictions(model, rows, ensemble.features, what)

    labels = ensemble.class_labels or [str(k) for k in range(max(2, ensemble.n_outputs))]
    probabilities = np.asarray(ask("Probability"), dtype=np.float64)
    of_classes = probabilities[:, 1:] if ensemble.n_outputs == 1 else probabilities
    return _indices(ask("Class").ravel(), labels), of_classes


def _indices(predicted: NDArray[Any], classes: Sequence[Any]) -> NDArray[np.int64] | None:
    """Return the places of predicted classes in the list of all; None where one is not there."""
    places = {str(label): place for place, label in enumerate(classes)}
    found = [places.get(str(label), -1) for label in predicted]
    return None if -1 in found else np.array(found, dtype=np.int64)


_BY_LIBRARY = {
    "sklearn": _by_scikit_learn,
    "catboost": _by_catboost,
    "interpret": _by_interpret,
    "onnx": _by_onnx,
}
