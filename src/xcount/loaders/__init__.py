"""Model file or live model -> :class:`~xcount.ensemble.Ensemble`."""

from __future__ import annotations

from typing import Any

from xcount.ensemble import Ensemble
from xcount.errors import UnsupportedModelError


def load(model: Any) -> Ensemble:
    """Return the ensemble of a model file or a live model."""
    if isinstance(model, Ensemble):
        return model
    raise UnsupportedModelError(f"cannot load {type(model).__name__}")
