"""The size of a union of sets that arrive one by one, from a sample or from every element.

The sampler is algorithm 1's loop, after Meel, Vinodchandran and Chakraborty, "Estimating the size
of unions of sets in streaming models" (PODS 2021), with a true set instead of a multiset. After the
sets U_1 .. U_i and while the sampling probability is p, every element of their union is in X with
probability p, independently of all others; so |X| / p estimates the size of the union, and while
p = 1 it *is* the size.

Why that keeps Theorem 1. Give every element that arrives with U_i fresh coin flips, the latest
arrival wins, and let X_j hold the elements whose first j flips came up heads: each with probability
2**-j, independently. The state of the algorithm is X_j at a level j that only grows, and grows at
U_i only when |X_j| >= Thresh or |U_i| * 2**-j >= Thresh. Let j* be the first level with
2**-j < Thresh / (4 C). The second rule never reaches level j* (it would need
C * 2**-(j*-1) >= Thresh); the first reaches it with probability at most
|Probs| * exp(-Thresh / 6) <= delta / 6. At levels below j* the error exceeds epsilon with
probability at most
2 * exp(-epsilon**2 * C * 2**-j / 3) (Chernoff, binomial); from level j* - 1 upwards C * 2**-j is at
least 2**k * Thresh / 4, k = 0, 1, ..., and the terms add up to at most
2 * sum_k (delta / 24)**(2**k) < delta / 6. Level 0 has no error at all.
"""

from __future__ import annotations

import math
from random import Random

import numpy as np
from numpy.typing import NDArray

from xcount.baselines.paper.guards import RankedSolutions
from xcount.baselines.paper.subproblem import Pair

_EXACT_BINOMIAL = 2**53
"""The most trials that NumPy's binomial accepts; for more see ``_draw_number``."""


def threshold_of(epsilon: float, delta: float, n_pairs: int) -> float:
    """Return Thresh, the size at which the sample is halved."""
    return max(
        12 * math.log(24 / delta) / epsilon**2,
        6 * (math.log(6 / delta) + math.log(max(1, n_pairs))),
    )


class SampledUnion:
    """The set X of algorithm 1: a sample of the sensitive regions seen so far, by mask."""

    def __init__(self, epsilon: float, delta: float, n_pairs: int, seed: int) -> None:
        self.threshold = threshold_of(epsilon, delta, n_pairs)
        self.halvings = 0
        self._rows: dict[int, NDArray[np.uint8]] = {}
        self._flips = np.random.default_rng([seed, 1])
        self._ranks = Random(seed)

    @property
    def size(self) -> int:
        """|X|."""
        return sum(len(rows) for rows in self._rows.values())

    @property
    def is_complete(self) -> bool:
        """Whether p is still 1, so that X holds every sensitive region seen so far."""
        return self.halvings == 0

    @property
    def estimate(self) -> int:
        """|X| / p."""
        return self.size << self.halvings

    def add(self, pair: Pair, solutions: RankedSolutions) -> None:
        """Add both regions of every solution of a subproblem."""
        n_elements = 2 * solutions.count
        for mask in pair:
            rows = self._rows.get(mask)
            if rows is not None and len(rows):
                self._rows[mask] = rows[~solutions.contains(rows)]
        while n_elements >= self.threshold * 2**self.halvings:
            self._halve()
        n_drawn = self._draw_number(n_elements)
        while n_drawn + self.size >= self.threshold:
            self._halve()
            n_drawn = int(self._flips.binomial(n_drawn, 0.5))
        self._insert(pair, solutions, self._draw_ranks(n_elements, n_drawn))

    def _halve(self) -> None:
        for mask, rows in self._rows.items():
            self._rows[mask] = rows[self._flips.random(len(rows)) < 0.5]
        self.halvings += 1

    def _draw_number(self, n_elements: int) -> int:
        """Return how many of the elements are drawn: Binomial(n_elements, p)."""
        if self.halvings == 0:
            return n_elements
        if n_elements <= _EXACT_BINOMIAL:
            return int(self._flips.binomial(n_elements, 0.5**self.halvings))
        # n * p < Thresh here, so p < Thresh / 2**53, and Binomial(n, p) differs from Poisson(n * p)
        # by at most p in total variation (Barbour and Hall 1984).
        mean = math.ldexp(float(n_elements >> max(0, self.halvings - 60)), -min(self.halvings, 60))
        return int(self._flips.poisson(mean))

    def _draw_ranks(self, n_elements: int, n_drawn: int) -> list[int]:
        """Return distinct ranks below ``n_elements``, every set of them equally likely."""
        if n_drawn >= n_elements:
            return list(range(n_elements))
        if n_elements <= _EXACT_BINOMIAL:
            return sorted(self._ranks.sample(range(n_elements), n_drawn))
        ranks: set[int] = set()
        while len(ranks) < n_drawn:
            ranks.add(self._ranks.randrange(n_elements))
        return sorted(ranks)

    def _insert(self, pair: Pair, solutions: RankedSolutions, ranks: list[int]) -> None:
        """SampleBDD: rank 2r + i is the r-th solution at the i-th mask of the pair."""
        for i, mask in enumerate(pair):
            chosen = [rank >> 1 for rank in ranks if rank & 1 == i]
            if not chosen:
                continue
            rows = solutions.unrank(chosen)
            known = self._rows.get(mask)
            self._rows[mask] = rows if known is None else np.concatenate([known, rows])
