"""Other leaf values in live scikit-learn models, in pipelines around them, and in skops files.

A forest for classification holds the shares of the classes in each leaf. With two classes, that of
class 1 is the leaf's value, and the other one is the rest; with more classes there is no single
value per leaf and class that could change alone.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.errors import MissingExtraError, UnsupportedModelError
from xcount.model.ensemble import Ensemble
from xcount.model.loaders import load
from xcount.model.loaders.pipelines.wrappers import is_wrapper, opened
from xcount.repairs.writers.writer import ModelWriter, Values, unscaled

_NUMBERING = 2.0**30
"""Numbers of slots are written as shares of this: a share is at most 1."""


@dataclass(frozen=True, eq=False)
class _Leaves:
    """The leaves of one tree of a model.

    Attributes:
        values: of all nodes, as stored in the model: writing there changes the model.
        others: the shares of class 0, if ``values`` are shares of class 1.
        nodes: the leaves.
        factor: what the model multiplies the stored values by.
    """

    values: NDArray[np.float64]
    others: NDArray[np.float64] | None
    nodes: NDArray[np.int64]
    factor: float

    def store(self, stored: NDArray[np.float64]) -> None:
        """Change the values of the leaves."""
        self.values[self.nodes] = stored
        if self.others is not None:
            self.others[self.nodes] = 1.0 - stored


class SklearnWriter(ModelWriter):
    """A live model.

    Args:
        ensemble: the model as the loader reads it.
        model: the model; it is not changed.
    """

    def __init__(self, ensemble: Ensemble, model: Any) -> None:
        self.ensemble, self._model = ensemble, model
        leaves = list(_leaves_of(model))
        self._holds_shares = any(each.others is not None for each in leaves)
        self._sizes = [len(each.nodes) for each in leaves]
        self._factors = np.repeat([each.factor for each in leaves], self._sizes)
        self._given = np.concatenate([each.values[each.nodes] for each in leaves])

    @property
    def n_slots(self) -> int:
        return sum(self._sizes)

    def numbered(self) -> Ensemble:
        numbers = np.arange(1.0, self.n_slots + 1)
        if not self._holds_shares:
            model = self._with(numbers)
            inner = _estimator(model)
            if hasattr(inner, "estimators_") and hasattr(inner, "learning_rate"):
                inner.learning_rate = 1.0
            return load(model)
        ensemble = load(self._with(numbers / _NUMBERING))
        trees = (replace(tree, value=tree.value * _NUMBERING) for tree in ensemble.trees)
        return replace(ensemble, trees=tuple(trees))

    def rounded(self, values: Values) -> Values:
        found: Values = self._stored(values) * self._factors
        return found

    def data(self, values: Values) -> bytes:
        try:
            from skops import io
        except ImportError:
            raise MissingExtraError(
                "writing scikit-learn models needs skops: pip install 'xcount[sklearn]'"
            ) from None
        return bytes(io.dumps(self.live(values)))

    def live(self, values: Values) -> Any:
        return self._with(self._stored(values))

    def limits(self) -> tuple[float, float]:
        return (0.0, 1.0) if self._holds_shares else super().limits()

    def _stored(self, values: Values) -> Values:
        return unscaled(values, self._factors, self._given)

    def _with(self, stored: NDArray[np.float64]) -> Any:
        """Return a copy of the model with other values of its leaves."""
        model, start = copy.deepcopy(self._model), 0
        for leaves in _leaves_of(model):
            leaves.store(stored[start : start + len(leaves.nodes)])
            start += len(leaves.nodes)
        return model


def _estimator(model: Any) -> Any:
    """Return the model inside pipelines, searches and calibrations, or the model itself."""
    while is_wrapper(model):
        model = opened(model).model
    return model


def _leaves_of(model: Any) -> Iterator[_Leaves]:
    """Yield the leaves of all trees."""
    estimator = _estimator(model)
    if hasattr(estimator, "tree_"):
        yield _leaves_of_tree(estimator, 1.0)
    elif hasattr(estimator, "_predictors"):
        for predictor in (each for iteration in estimator._predictors for each in iteration):
            nodes = predictor.nodes
            yield _Leaves(nodes["value"], None, np.flatnonzero(nodes["is_leaf"]), 1.0)
    elif hasattr(estimator, "estimators_") and type(estimator).__module__.startswith("sklearn."):
        factor = float(getattr(estimator, "learning_rate", 1.0))
        for member in np.ravel(estimator.estimators_):
            yield _leaves_of_tree(member, factor)
    else:
        raise UnsupportedModelError(
            f"a {type(estimator).__name__} in a {type(model).__name__} cannot be repaired; repair "
            "the model inside by itself, on transformed rows"
        )


def _leaves_of_tree(member: Any, factor: float) -> _Leaves:
    tree = member.tree_
    values, nodes = tree.value, np.flatnonzero(tree.children_left < 0)
    if not hasattr(member, "classes_"):
        return _Leaves(values[:, 0, 0], None, nodes, factor)
    if values.shape[2] != 2:
        raise UnsupportedModelError(
            f"a {type(member).__name__} of {values.shape[2]} classes cannot be repaired: the "
            "shares of the classes in a leaf must add up to 1; train one model per class"
        )
    return _Leaves(values[:, 0, 1], values[:, 0, 0], nodes, factor)
