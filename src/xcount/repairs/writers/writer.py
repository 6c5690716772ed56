"""What every writer of a model format does: number its leaves, round values, write them.

A *slot* is a leaf value in the model file (or live model). A writer numbers its slots, and the
loader of the format reads the numbered model: that way each leaf of an ensemble knows its slot,
however the loader reorders nodes, and no second description of a format is needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.model.ensemble import Ensemble

Values = NDArray[np.float64]
Slots = tuple[NDArray[np.int64], ...]
"""The slot of every node, tree by tree; -1 at inner nodes."""


class ModelWriter(ABC):
    """A model whose leaf values can be replaced.

    Attributes:
        ensemble: the model as it is.
    """

    ensemble: Ensemble

    @property
    @abstractmethod
    def n_slots(self) -> int:
        """The number of leaf values."""

    @abstractmethod
    def numbered(self) -> Ensemble:
        """Return the ensemble with the number of its slot, plus 1, as the value of every leaf."""

    @abstractmethod
    def rounded(self, values: Values) -> Values:
        """Return the values of the slots as the library would store them."""

    @abstractmethod
    def data(self, values: Values) -> bytes:
        """Return the model file with (rounded) values of its slots."""

    @abstractmethod
    def live(self, values: Values) -> Any:
        """Return a live model of the library with (rounded) values of its slots."""

    def limits(self) -> tuple[float, float]:
        """Return the least and the largest value that a slot may hold."""
        return -np.inf, np.inf


def slots_of(numbered: Ensemble) -> Slots:
    """Return the slots of an ensemble whose leaves hold their numbers, plus 1."""
    return tuple(np.rint(tree.value).astype(np.int64) - 1 for tree in numbered.trees)


def slot_values(ensemble: Ensemble, slots: Slots, n_slots: int) -> Values:
    """Return the values of the slots; 0 for slots that no leaf of the ensemble uses."""
    values = np.zeros(n_slots)
    for tree, own in zip(ensemble.trees, slots, strict=True):
        leaves = own >= 0
        values[own[leaves]] = tree.value[leaves]
    return values


def unscaled(values: Values, factors: Values, given: Values) -> Values:
    """Return the values to store if the model multiplies them by factors.

    Args:
        values: what the leaves shall add.
        factors: of the slots.
        given: what is stored so far; it stays if the product is right already.
    """
    divided: Values = values / np.where(factors == 0, 1.0, factors)
    return np.where(given * factors == values, given, divided)
