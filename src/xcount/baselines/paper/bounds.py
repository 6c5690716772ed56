"""Certain bounds on the whole count from the numbers of solutions of single pairs.

For a mask m, with t(m, m') solutions of the pair {m, m'}::

    max over neighbours of t  <=  |A_m|  <=  min(n_combinations, sum over neighbours of t)

so every finished pair narrows the bounds, and a run that is stopped still has an interval.
"""

from __future__ import annotations

from xcount.baselines.paper.subproblem import Pair
from xcount.counters.profile import pair_rows, profile_of
from xcount.counters.tally import Profile
from xcount.problem.problem import Problem


class PairBounds:
    """Bounds on the count from the pairs finished so far."""

    def __init__(self, problem: Problem, n_neighbours: list[int]) -> None:
        self._problem = problem
        self._left = list(n_neighbours)
        self._low = [0] * len(n_neighbours)
        self._sum = [0] * len(n_neighbours)
        self._pairs: list[tuple[Pair, int]] = []

    def add(self, pair: Pair, n_solutions: int) -> None:
        """Record the number of solutions of a pair."""
        for mask in pair:
            self._left[mask] -= 1
            self._low[mask] = max(self._low[mask], n_solutions)
            self._sum[mask] += n_solutions
        self._pairs.append((pair, n_solutions))

    def set_mask(self, mask: int, count: int) -> None:
        """Record the exact count of a mask."""
        self._left[mask] = 0
        self._low[mask] = self._sum[mask] = count

    def is_done(self, mask: int) -> bool:
        return self._left[mask] == 0

    def _high(self, mask: int) -> int:
        all_combinations = self._problem.n_combinations
        return all_combinations if self._left[mask] else min(all_combinations, self._sum[mask])

    @property
    def low(self) -> int:
        return sum(self._low)

    @property
    def high(self) -> int:
        return sum(self._high(mask) for mask in range(len(self._low)))

    def clip(self, count: int) -> int:
        """Return the number nearest to ``count`` that the bounds allow."""
        return min(max(count, self.low), self.high)

    def profile(self) -> Profile:
        """Return the bounds by mask, and the counts of the finished pairs."""
        pairs = [pair for pair, _ in self._pairs]
        rows = pair_rows(self._problem, pairs, [(count, count) for _, count in self._pairs])
        bounds = [(low, self._high(mask)) for mask, low in enumerate(self._low)]
        return profile_of(self._problem, bounds, rows)
