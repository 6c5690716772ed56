"""The smallest change of leaf values that keeps every bound within its limit: a convex program.

Variables are the changes of the linked slots, and a bound u for each pair of classes of each tree
(:mod:`xcount.repairs.pair_bounds`)::

    minimise    w' H w
    subject to  (value + w) of l  -  (value + w) of l'  <=  u[t, A, B]    for possible pairs (l, l')
                sum over trees of u[t, A, B]            <=  limit         for pairs of masks

Slots that are in no bound appear only in the cost; they are eliminated first (a Schur complement),
so the program that Clarabel solves is as large as the part of the model that is concerned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.errors import BudgetError, MissingExtraError
from xcount.repairs.objective import Objective
from xcount.repairs.pair_bounds import PairBounds
from xcount.repairs.writers.writer import Values
from xcount.support.process import ended_by_signals

_BYTES_OF_ENTRY = 48
"""Memory that the solver takes for an entry of its factor, about."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The bounds of one question, and the limit of their sums."""

    bounds: PairBounds
    limit: float


def check_solver() -> None:
    """Reject a repair without the solver, before anything is read."""
    try:
        import clarabel  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            "a repair needs the solver clarabel; install it with: pip install 'xcount[repair]'"
        ) from None


def smallest_change(
    objective: Objective,
    values: Values,
    limits: Sequence[Limit],
    *,
    allowed: tuple[float, float] = (-np.inf, np.inf),
    seconds: float | None = None,
    memory_bytes: int | None = None,
) -> Values:
    """Return the change of all slots that costs least and keeps all limits, to the solver's digits.

    Args:
        objective: the cost.
        values: of all slots, before.
        limits: of sums of bounds.
        allowed: the least and the largest value of a slot.
        seconds: a limit of time.
        memory_bytes: a limit of memory.

    Raises:
        BudgetError: the program is too large for the limits, or not solved within them.
    """
    program = _Program(objective, values, limits, allowed)
    program.check_size(memory_bytes)
    return program.solved(seconds)


class _Program:
    def __init__(
        self,
        objective: Objective,
        values: Values,
        limits: Sequence[Limit],
        allowed: tuple[float, float],
    ) -> None:
        self._objective, self._values, self._limits = objective, values, limits
        self._allowed = allowed
        linked = np.zeros(len(values), dtype=np.bool_)
        for limit in limits:
            linked[np.unique(limit.bounds.linked)] = True
        own = linked[objective.kept]
        self._concerned, self._free = np.flatnonzero(own), np.flatnonzero(~own)
        self._slots = objective.kept[self._concerned]
        self._place = np.full(len(values), -1, dtype=np.int64)
        self._place[self._slots] = np.arange(len(self._slots))
        largest = float(np.abs(values[self._slots]).max(initial=0.0))
        self._scale = largest or 1.0

    def check_size(self, memory_bytes: int | None) -> None:
        """Reject a program whose factor would not fit."""
        n_bounds = sum(limit.bounds.n_bounds for limit in self._limits)
        n_entries = (len(self._slots) + n_bounds) ** 2 // 2
        if memory_bytes is not None and n_entries * _BYTES_OF_ENTRY > memory_bytes:
            raise BudgetError(
                f"the program has {len(self._slots):,} leaf values and {n_bounds:,} bounds, too "
                "many for the memory limit"
            )

    def solved(self, seconds: float | None) -> Values:
        import clarabel
        from scipy.sparse import csc_array

        cost, back = self._reduced_cost()
        rows, right = self._constraints()
        n_bounds = rows.shape[1] - len(self._slots)
        unit = float(np.trace(cost)) / max(1, len(cost)) or 1.0
        upper = np.triu(cost / unit)
        quadratic: Any = csc_array(upper)
        quadratic.resize((rows.shape[1], rows.shape[1]))
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        if seconds is not None:
            settings.time_limit = max(0.01, seconds)
        with ended_by_signals():
            solver = clarabel.DefaultSolver(
                quadratic,
                np.zeros(rows.shape[1]),
                rows,
                right,
                [clarabel.NonnegativeConeT(rows.shape[0])],
                settings,
            )
            solution = solver.solve()
        good = (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved)
        if solution.status not in good:
            raise BudgetError(f"the solver stopped before an answer: {solution.status}")
        found = np.asarray(solution.x)[: rows.shape[1] - n_bounds] * self._scale
        change = np.zeros(len(self._values))
        change[self._slots] = found
        change[self._objective.kept[self._free]] = back @ found
        return change

    def _reduced_cost(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the cost with the best free slots, and those as a function of the others."""
        gram, own, free = self._objective.gram, self._concerned, self._free
        cost = gram[np.ix_(own, own)]
        if not len(free):
            return cost, np.zeros((0, len(own)))
        from scipy.linalg import cho_factor, cho_solve

        crossed = gram[np.ix_(free, own)]
        back: NDArray[np.float64] = -cho_solve(cho_factor(gram[np.ix_(free, free)]), crossed)
        reduced = cost + crossed.T @ back
        return (reduced + reduced.T) / 2, back

    def _constraints(self) -> tuple[Any, Values]:
        """Return the rows and right sides of ``rows @ x <= right``."""
        from scipy.sparse import csc_array, vstack

        n_slots = len(self._slots)
        n_bounds = sum(limit.bounds.n_bounds for limit in self._limits)
        shape = n_slots + n_bounds
        parts, right, first = [], [], n_slots
        for limit in self._limits:
            for part, sides in (
                self._pair_rows(limit.bounds, first),
                self._sum_rows(limit, first),
            ):
                parts.append(part)
                right.append(sides)
            first += limit.bounds.n_bounds
        for sign, end in zip((-1.0, 1.0), self._allowed, strict=True):
            if np.isfinite(end):
                at = np.arange(n_slots)
                parts.append((np.full(n_slots, sign), at, at, n_slots))
                right.append(sign * (end - self._values[self._slots]) / self._scale)
        tables: list[Any] = [
            csc_array((entries, (rows, columns)), shape=(n_rows, shape))
            for entries, rows, columns, n_rows in parts
        ]
        return csc_array(vstack(tables)), np.concatenate(right)

    def _pair_rows(self, bounds: PairBounds, first: int) -> tuple[Any, Values]:
        entries, rows, columns, right, n_rows = [], [], [], [], 0
        for tree, start in zip(bounds.trees, bounds.first_bounds.tolist(), strict=False):
            highs, lows = tree.highs, tree.lows
            bound = first + start + np.repeat(np.arange(tree.n_bounds), np.diff(tree.starts))
            at = n_rows + np.arange(len(highs))
            differ = highs != lows
            for sign, slots in ((1.0, highs), (-1.0, lows)):
                entries.append(np.full(int(differ.sum()), sign))
                rows.append(at[differ])
                columns.append(self._place[slots[differ]])
            entries.append(np.full(len(highs), -1.0))
            rows.append(at)
            columns.append(bound)
            right.append((self._values[lows] - self._values[highs]) / self._scale)
            n_rows += len(highs)
        part = (np.concatenate(entries), np.concatenate(rows), np.concatenate(columns), n_rows)
        return part, np.concatenate(right)

    def _sum_rows(self, limit: Limit, first: int) -> tuple[Any, Values]:
        table = limit.bounds.rows
        rows, trees = np.nonzero(table >= 0)
        columns = first + limit.bounds.first_bounds[trees] + table[rows, trees]
        part = (np.ones(len(rows)), rows, columns, len(table))
        return part, np.full(len(table), limit.limit / self._scale)
