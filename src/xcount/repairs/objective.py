"""How much a change of leaf values costs: the squared change of the model's own predictions.

Let Z have a row per row of the data and a column per slot, 1 where the row ends in the leaf, W the
weights of the rows and w a change of the slots' values. The cost is::

    (sum over rows of W[i] * (Z w)[i]^2  +  W.mean() * RIDGE * |w|^2) / sum of W  =  w' H w

so H is the Gram matrix of the leaves. The second term keeps leaves that few rows reach where they
are, as if ``RIDGE`` rows ended in each leaf and in no other. For log-odds, a row weighs p (1 - p):
then the cost is, to second order, twice the divergence of the new predictions from the old ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcount.model.ensemble import Ensemble
from xcount.repairs.writers.writer import Slots, Values

RIDGE = 1.0
"""How many rows of its own each leaf counts for; see above."""
MOST_PRODUCTS = 1_500_000_000
"""Rows times squared number of trees; if there are more rows, some are drawn."""
MOST_SLOTS = 5_000
"""The most slots that may change: H is dense."""
LEAST_WEIGHT = 1e-3
"""The least weight of a row in log-odds: p (1 - p) of a probability of 0.1 %."""


@dataclass(frozen=True, eq=False)
class Objective:
    """The cost of changing the slots that may change.

    Attributes:
        kept: the slots that may change.
        gram: H, in the order of ``kept``.
        n_rows: how many rows of the data it is made of.
    """

    kept: NDArray[np.int64]
    gram: NDArray[np.float64]
    n_rows: int

    def cost(self, change: Values) -> float:
        """Return the cost of a change of all slots."""
        own = change[self.kept]
        return float(own @ self.gram @ own)


def objective_of(
    ensemble: Ensemble,
    slots: Slots,
    output: int,
    rows: NDArray[np.float64],
    linked: NDArray[np.bool_],
    *,
    may_compensate: bool,
    seed: int,
) -> Objective:
    """Return the cost of changes of one output's leaves.

    Args:
        ensemble: the model.
        slots: the slot of every node.
        output: which sum.
        rows: the data, one column per feature.
        linked: which slots are in some bound.
        may_compensate: whether other slots may change, too.
        seed: draws rows if there are too many.
    """
    trees = [i for i, tree in enumerate(ensemble.trees) if tree.output == output]
    most = max(1, MOST_PRODUCTS // max(1, len(trees)) ** 2)
    if len(rows) > most:
        drawn = np.random.default_rng(seed).choice(len(rows), most, replace=False)
        rows = rows[np.sort(drawn)]
    ended = _slots_of_rows(ensemble, slots, trees, rows)
    weights = _weights(ensemble, output, rows)
    kept = _kept(ended, linked, may_compensate)
    return Objective(kept, _gram(ended, weights, kept, len(linked)), len(rows))


def _slots_of_rows(
    ensemble: Ensemble, slots: Slots, trees: list[int], rows: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the slot that each row ends in, in each of the trees."""
    leaves = ensemble.leaf_indices(rows)
    if not trees:
        return np.empty((len(rows), 0), dtype=np.int64)
    return np.stack([slots[tree][leaves[:, tree]] for tree in trees], axis=1)


def _weights(ensemble: Ensemble, output: int, rows: NDArray[np.float64]) -> Values:
    """Return the weights of the rows: the curvature of the log-loss, or 1."""
    if ensemble.probability not in ("sigmoid", "softmax"):
        return np.ones(len(rows))
    p = probabilities(ensemble, ensemble.predict(rows))[:, output]
    return np.maximum(p * (1 - p), LEAST_WEIGHT)


def probabilities(ensemble: Ensemble, margins: Values) -> Values:
    """Return the probabilities of margins, one column per output."""
    with np.errstate(over="ignore"):
        if ensemble.probability == "softmax":
            shifted = np.exp(margins - margins.max(axis=1, keepdims=True))
            found: Values = shifted / shifted.sum(axis=1, keepdims=True)
            return found
        return 1 / (1 + np.exp(-ensemble.slope * margins))


def _kept(
    ended: NDArray[np.int64], linked: NDArray[np.bool_], may_compensate: bool
) -> NDArray[np.int64]:
    """Return the linked slots, and those others that most rows end in, as far as there is room."""
    own = np.flatnonzero(linked)
    room = MOST_SLOTS - len(own)
    if not may_compensate or room <= 0 or not ended.size:
        return own
    n_rows = np.bincount(ended.ravel(), minlength=len(linked))
    n_rows[linked] = 0
    others = np.argsort(-n_rows, kind="stable")[:room]
    return np.sort(np.concatenate([own, others[n_rows[others] > 0]]))


def _gram(
    ended: NDArray[np.int64], weights: Values, kept: NDArray[np.int64], n_slots: int
) -> NDArray[np.float64]:
    """Return H: for two slots, the weight of the rows that end in both of them."""
    n_kept = len(kept)
    place = np.full(n_slots, n_kept, dtype=np.int64)  # behind the others: slots that do not change
    place[kept] = np.arange(n_kept)
    columns = [np.unique(place[own], return_inverse=True) for own in ended.T]
    gram = np.zeros((n_kept + 1, n_kept + 1))
    for i, (own, rows) in enumerate(columns):
        for others, which in columns[i:]:
            both = np.bincount(rows * len(others) + which, weights, len(own) * len(others))
            gram[np.ix_(own, others)] += both.reshape(len(own), len(others))
    gram += gram.T - np.diag(gram.diagonal())
    gram[np.diag_indices(n_kept + 1)] += RIDGE * float(weights.mean() if len(weights) else 1.0)
    total = float(weights.sum()) or 1.0
    return gram[:n_kept, :n_kept] / total
