"""What stands around a model: pipelines, searches, calibration, thresholds; and what is inside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.errors import UnsupportedModelError


def is_wrapper(model: Any) -> bool:
    """Tell whether a model of scikit-learn has another one inside that can be loaded."""
    return _kind(model) is not None


@dataclass(frozen=True)
class Threshold:
    """The score from which on a classifier predicts its *positive* class.

    Attributes:
        score: the least score of the positive class.
        method: what makes the score: ``predict_proba`` or ``decision_function``.
        of_first: whether the positive class is the first one, not the second.
    """

    score: float
    method: str
    of_first: bool

    def positive_scores(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the positive class's scores, of the second class's."""
        if not self.of_first:
            return scores
        return 1.0 - scores if self.method == "predict_proba" else -scores

    def decisions(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return which class is predicted, by its index, of the second class's scores."""
        is_positive = self.positive_scores(scores) >= self.score
        classes: NDArray[np.int64] = (is_positive != self.of_first).astype(np.int64)
        return classes


@dataclass(frozen=True, eq=False)
class Opened:
    """A wrapper, opened by one layer.

    Attributes:
        steps: the transformers in front of the model, by name.
        model: the model inside.
        calibrator: what makes a probability of the model's score, where the wrapper calibrates.
        threshold: where the wrapper decides, if that is its own choice.
    """

    steps: Sequence[tuple[str, Any]]
    model: Any
    calibrator: Any = None
    threshold: Threshold | None = None


def opened(wrapper: Any) -> Opened:
    """Return what is inside a wrapper."""
    kind = _kind(wrapper)
    if kind == "Pipeline":
        if not wrapper.steps or not hasattr(wrapper.steps[-1][1], "predict"):
            raise UnsupportedModelError("Pipeline: its last step is no model")
        return Opened(wrapper.steps[:-1], wrapper.steps[-1][1])
    if kind == "FrozenEstimator":
        return Opened((), wrapper.estimator)
    if kind == "BaseSearchCV":
        if not hasattr(wrapper, "best_estimator_"):
            raise UnsupportedModelError(
                f"{type(wrapper).__name__}: it has no best_estimator_; call fit() with refit=True"
            )
        return Opened((), wrapper.best_estimator_)
    if kind == "BaseThresholdClassifier":
        return _opened_threshold(wrapper)
    return _opened_calibration(wrapper)


def _opened_threshold(wrapper: Any) -> Opened:
    """Open TunedThresholdClassifierCV or FixedThresholdClassifier."""
    name = type(wrapper).__name__
    model = getattr(wrapper, "estimator_", wrapper.estimator)
    if not hasattr(model, "classes_"):
        raise UnsupportedModelError(f"{name}: the model is not fitted")
    is_tuned = hasattr(wrapper, "best_threshold_")
    positive = wrapper._curve_scorer._get_pos_label() if is_tuned else wrapper.pos_label
    method = wrapper.response_method
    if method == "auto":
        method = "predict_proba" if hasattr(model, "predict_proba") else "decision_function"
    score = wrapper.best_threshold_ if is_tuned else wrapper.threshold
    if isinstance(score, str):  # auto
        score = 0.5 if method == "predict_proba" else 0.0
    of_first = positive is not None and positive == model.classes_[0]
    return Opened((), model, threshold=Threshold(float(score), method, bool(of_first)))


def _opened_calibration(wrapper: Any) -> Opened:
    members = getattr(wrapper, "calibrated_classifiers_", None)
    if members is None:
        raise UnsupportedModelError("CalibratedClassifierCV: the model is not fitted")
    if len(members) != 1:
        raise UnsupportedModelError(
            f"CalibratedClassifierCV predicts with {len(members)} models, one per fold; fit it "
            "with ensemble=False, or around FrozenEstimator(model), or pass one of its "
            "calibrated_classifiers_[i].estimator"
        )
    if len(wrapper.classes_) != 2:
        raise UnsupportedModelError(
            f"CalibratedClassifierCV of {len(wrapper.classes_)} classes: its decisions are not "
            "those of the model inside; pass that model alone"
        )
    member = members[0]
    return Opened((), member.estimator, member.calibrators[0])


_KINDS = (
    "Pipeline",
    "BaseSearchCV",
    "CalibratedClassifierCV",
    "FrozenEstimator",
    "BaseThresholdClassifier",
)


def _kind(model: Any) -> str | None:
    """Return which wrapper a model is, by its class or the one it is derived from."""
    for kind in type(model).__mro__:
        if kind.__module__.partition(".")[0] == "sklearn" and kind.__name__ in _KINDS:
            return kind.__name__
    return None
