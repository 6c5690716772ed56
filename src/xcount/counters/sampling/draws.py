"""Random regions under any product measure, decided by evaluation: for flips and for measures.

One sample is one combination of non-sensitive cells, each feature's cell drawn by its weight; the
outcome is the weight of the masks that are sensitive there, a number in [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from xcount.counters.sampling.decisions import RegionDecider
from xcount.counters.sampling.estimator import BATCH
from xcount.problem.problem import Problem

LEVELS = 1024
"""Outcomes are rounded at random to multiples of 1 / LEVELS, which keeps their mean."""


class RegionDraws:
    """Draws for an :class:`~xcount.counters.sampling.estimator.Estimator`.

    Args:
        decider: decides the masks of what is drawn.
        masks: the masks that count.
        mask_weights: their weights, with sum 1; all the same if None.
        cell_weights: for each feature the weights of its cells; all the same if None.
    """

    def __init__(
        self,
        decider: RegionDecider,
        masks: Sequence[int],
        mask_weights: NDArray[np.float64] | None = None,
        cell_weights: Sequence[NDArray[np.float64]] | None = None,
    ) -> None:
        self._decider = decider
        self._masks = np.array(masks, dtype=np.int64)
        self._mask_weights = mask_weights
        counts = decider.problem.grid.cell_counts
        sensitive = set(decider.problem.query.sensitive)
        self._features = [f for f, n in enumerate(counts) if n > 1 and f not in sensitive]
        self._n_features = len(counts)
        self._sizes = np.array([counts[f] for f in self._features], dtype=np.int64)
        self._ends: list[NDArray[np.float64]] | None = None
        if cell_weights is not None:
            self._ends = [_ends(cell_weights[f]) for f in self._features]
        self.levels = LEVELS if mask_weights is not None else min(LEVELS, len(self._masks))

    @property
    def n_trees(self) -> float:
        return float(self._decider.n_trees)

    def draw(
        self,
        seed: int,
        stream: int,
        first: int,
        n: int,
        n_threads: int,
        seconds: float = math.inf,
        on_pause: Callable[[], None] | None = None,
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
        """Return the histogram of the outcomes of n batches, and the hits of their samples.

        Batches of the few masks that are decided here are short: ``seconds`` ends none of them, and
        ``on_pause`` is not called.
        """
        histogram = np.zeros(self.levels + 1, dtype=np.uint64)
        hits = []
        step = max(1, self._decider.block // BATCH)
        for start in range(first, first + n, step):
            batches = range(start, min(start + step, first + n))
            generators = [np.random.default_rng([seed, stream, batch]) for batch in batches]
            outcomes = self.outcomes(np.concatenate([self.regions(g) for g in generators]))
            chances = np.concatenate([g.random((BATCH, 2)) for g in generators])
            scaled = outcomes * self.levels
            whole = np.floor(scaled + 1e-9)
            levels = np.minimum(whole + (chances[:, 0] < scaled - whole), self.levels)
            histogram += np.bincount(levels.astype(np.int64), minlength=self.levels + 1).astype(
                np.uint64
            )
            hits.append((chances[:, 1] < outcomes).astype(np.uint8))
        return histogram, np.concatenate(hits)

    def regions(self, random: np.random.Generator, n: int = BATCH) -> NDArray[np.int32]:
        """Draw cells; those of the sensitive features are 0."""
        regions = np.zeros((n, self._n_features), dtype=np.int32)
        if not self._features:
            return regions
        if self._ends is None:
            regions[:, self._features] = random.integers(0, self._sizes, (n, len(self._sizes)))
            return regions
        chances = random.random((len(self._features), n))
        for feature, ends, chance in zip(self._features, self._ends, chances, strict=True):
            regions[:, feature] = np.searchsorted(ends, chance, side="right")
        return regions

    def outcomes(self, regions: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the weight of the sensitive masks at each combination of cells."""
        flags = self._decider.decide(regions)
        if len(self._masks) < flags.shape[1]:
            flags = flags[:, self._masks]
        if self._mask_weights is None:
            counts: NDArray[np.float64] = flags.sum(axis=1) / len(self._masks)
            return counts
        return np.clip(flags @ self._mask_weights, 0.0, 1.0)


def region_draws(
    problem: Problem,
    masks: Sequence[int],
    mask_weights: NDArray[np.float64] | None = None,
    cell_weights: Sequence[NDArray[np.float64]] | None = None,
) -> RegionDraws:
    """Make draws from what can be sent to another process."""
    return RegionDraws(RegionDecider(problem), masks, mask_weights, cell_weights)


def _ends(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return where the cells end on [0, 1); a cell without weight is empty."""
    ends = np.cumsum(weights) / np.sum(weights)
    ends[np.flatnonzero(weights)[-1] :] = 1.0
    return ends
