"""Algorithm 1 of the paper, ``--method xcount``, and its ablations.

xcount              subtract tree by tree, sample the union (the paper's algorithm)
xcount-sum-first    add the trees up, then subtract ("Opt 1+3")
xcount-exact-union  count the union of each mask's subproblems exactly ("Opt 1+2")
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from xcount import _core
from xcount.baselines.paper.bounds import PairBounds
from xcount.baselines.paper.guards import GuardSpace
from xcount.baselines.paper.limits import diagram_bytes, reason_of
from xcount.baselines.paper.subproblem import (
    Pair,
    ProcessSubproblem,
    difference_of_sums,
    sum_of_differences,
)
from xcount.baselines.paper.union import SampledUnion
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress, StopReason, Tally
from xcount.errors import BudgetError
from xcount.problem.problem import Problem

MAX_MASKS = 10**6
"""With more masks, even listing the subproblems takes too long."""

_REPORT_SECONDS = 0.1


def count_by_xcount(problem: Problem, settings: Settings) -> Tally:
    """Estimate the size of the union of all subproblems' solutions, as algorithm 1 does."""
    return _Run(problem, settings, "xcount", sum_of_differences).sample()


def count_by_xcount_sum_first(problem: Problem, settings: Settings) -> Tally:
    """Run algorithm 1 with the trees added up before they are subtracted."""
    return _Run(problem, settings, "xcount-sum-first", difference_of_sums).sample()


def count_by_exact_union(problem: Problem, settings: Settings) -> Tally:
    """Run algorithm 1 with an exact union: one BDD per mask, the disjunction of its pairs."""
    return _Run(problem, settings, "xcount-exact-union", sum_of_differences).unite()


class _Run:
    """One run: the subproblems in order, under limits."""

    def __init__(
        self, problem: Problem, settings: Settings, method: str, process: ProcessSubproblem
    ) -> None:
        self._problem = problem
        self._settings = settings
        self._method = method
        self._process = process
        sensitive = problem.query.sensitive
        others = [f for f in range(len(problem.grid.axes)) if f not in sensitive]
        self._space = GuardSpace(problem, others, max_bytes=diagram_bytes(settings))
        neighbours = _numbers_of_neighbours(problem)
        self._n_pairs = sum(neighbours) // 2
        self._bounds = PairBounds(problem, neighbours)
        self._n_done = 0
        self._reported = -math.inf

    def sample(self) -> Tally:
        """Merge the subproblems by sampling."""
        settings = self._settings
        union = SampledUnion(settings.epsilon, settings.delta, self._n_pairs, settings.seed)

        def merge(pair: Pair, bdd: _core.Diagram) -> None:
            solutions = self._space.solutions(bdd)
            union.add(pair, solutions)
            self._bounds.add(pair, solutions.count)

        reason = self._for_all_pairs(merge)
        details = self._details(
            threshold=union.threshold, sample_size=union.size, halvings=union.halvings
        )
        if reason is not StopReason.COMPLETE:
            return self._bounded(reason, details)  # a union of some pairs does not estimate C
        if union.is_complete:
            return self._tally(union.size, union.size, union.size, reason, details)
        return self._estimated(union.estimate, reason, details)

    def _estimated(self, count: int, reason: StopReason, details: dict[str, Any]) -> Tally:
        """Return the paper's estimate |X| / p as it is, and what the pairs prove beside it.

        The interval is as narrow as both allow, but holds the estimate even if the bounds do not.
        """
        bounds, settings = self._bounds, self._settings
        details |= {"pair_bounds": [bounds.low, bounds.high], "clipped": bounds.clip(count)}
        sampled_low, sampled_high = implied_interval(count, settings.epsilon)
        low = min(max(bounds.low, sampled_low), count)
        high = max(min(bounds.high, sampled_high), count)
        confidence = 1.0 if low == high == bounds.low == bounds.high else 1 - settings.delta
        return self._tally(count, low, high, reason, details, confidence)

    def unite(self) -> Tally:
        """Merge the subproblems exactly: masks are disjoint, so only a mask's own pairs overlap."""
        space, unions = self._space, dict[int, _core.Diagram]()
        or_ = _core.BoolOp.OR

        def merge(pair: Pair, bdd: _core.Diagram) -> None:
            self._bounds.add(pair, space.solutions(bdd).count)
            for mask in pair:
                known = unions.pop(mask, None)
                united = bdd if known is None else space.table.apply(or_, known, bdd)
                if self._bounds.is_done(mask):
                    self._bounds.set_mask(mask, space.solutions(united).count)
                else:
                    unions[mask] = united

        reason = self._for_all_pairs(merge)
        return self._bounded(reason, self._details())

    def _for_all_pairs(self, merge: Callable[[Pair, _core.Diagram], None]) -> StopReason:
        """Process and merge every subproblem; return why the run stopped."""
        self._space.table.set_time_limit(self._settings.seconds_left())
        try:
            for pair in self._problem.pairs():
                if self._settings.expired():
                    return StopReason.TIMEOUT
                merge(pair, self._process(self._space, pair))
                self._n_done += 1
                self._report()
        except (_core.DiagramLimit, MemoryError, KeyboardInterrupt) as error:
            return reason_of(error)
        return StopReason.COMPLETE

    def _report(self) -> None:
        now = time.monotonic()
        is_due = now - self._reported > _REPORT_SECONDS or self._n_done == self._n_pairs
        if self._settings.on_progress is not None and is_due:
            self._reported = now
            fraction = self._n_done / self._n_pairs
            bounds = self._bounds
            self._settings.report(Progress(fraction, bounds.low, bounds.high, "subproblems"))

    def _details(self, **more: Any) -> dict[str, Any]:
        return {
            "pairs": self._n_pairs,
            "pairs_done": self._n_done,
            "peak_nodes": self._space.table.peak_nodes,
            **more,
        }

    def _bounded(self, reason: StopReason, details: dict[str, Any]) -> Tally:
        """Return the bounds proved by the pairs finished so far."""
        low, high = self._bounds.low, self._bounds.high
        count = low if low == high else None
        return self._tally(count, low, high, reason, details)

    def _tally(
        self,
        count: int | None,
        low: int,
        high: int,
        reason: StopReason,
        details: dict[str, Any],
        confidence: float = 1.0,
    ) -> Tally:
        profile = self._bounds.profile() if self._settings.want_profile else None
        return Tally(count, low, high, self._method, reason, confidence, details, profile)


def _numbers_of_neighbours(problem: Problem) -> list[int]:
    """Return how many masks are within the distance of each mask."""
    if problem.n_masks > MAX_MASKS:
        raise BudgetError(
            f"the sensitive features have {problem.n_masks:.3g} masks together, and this method "
            f"handles at most {MAX_MASKS:.0e}; use --method auto, or fewer sensitive features"
        )
    if problem.query.distance is None:
        return [problem.n_masks - 1] * problem.n_masks
    return [len(problem.masks.neighbours(mask)) for mask in range(problem.n_masks)]


def implied_interval(estimate: int, epsilon: float) -> tuple[int, int]:
    """Return the integers C with ``(1 - epsilon) C <= estimate <= (1 + epsilon) C``."""
    exact_epsilon = Fraction(epsilon)
    low = math.ceil(estimate / (1 + exact_epsilon))
    return low, math.floor(estimate / (1 - exact_epsilon))
