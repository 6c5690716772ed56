"""What stands around a model: pipelines, searches, calibration; and what is inside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xcount.errors import UnsupportedModelError


def is_wrapper(model: Any) -> bool:
    """Tell whether a model of scikit-learn has another one inside that can be loaded."""
    return _kind(model) is not None


@dataclass(frozen=True, eq=False)
class Opened:
    """A wrapper, opened by one layer.

    Attributes:
        steps: the transformers in front of the model, by name.
        model: the model inside.
        calibrator: what makes a probability of the model's score, where the wrapper calibrates.
    """

    steps: Sequence[tuple[str, Any]]
    model: Any
    calibrator: Any = None


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
    return _opened_calibration(wrapper)


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


_KINDS = ("Pipeline", "BaseSearchCV", "CalibratedClassifierCV", "FrozenEstimator")


def _kind(model: Any) -> str | None:
    """Return which wrapper a model is, by its class or the one it is derived from."""
    for kind in type(model).__mro__:
        if kind.__module__.partition(".")[0] == "sklearn" and kind.__name__ in _KINDS:
            return kind.__name__
    return None
