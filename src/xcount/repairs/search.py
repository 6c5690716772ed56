"""Search for leaf values that keep the limits of all questions, and cost little.

Gaps: the smallest change that keeps all bounds (:mod:`xcount.repairs.program`); if that program is
too large for the limits of time and memory, all differences shrink by the same factor. Flips have
no such bounds: differences shrink until an exact count finds no flip, and the largest factor is
found by bisection. With the factor 0, the sensitive features do not matter at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from xcount.counters.settings import Settings
from xcount.counters.tally import Progress
from xcount.errors import BudgetError
from xcount.model.ensemble import Ensemble
from xcount.problem.problem import Problem
from xcount.repairs.certify import within_limits
from xcount.repairs.objective import Objective, objective_of
from xcount.repairs.pair_bounds import PairBounds, coarse_bounds, components, pair_bounds
from xcount.repairs.program import Limit, smallest_change
from xcount.repairs.shrink import compensated, scaled
from xcount.repairs.sufficient import sufficient_gaps
from xcount.repairs.writers.writer import ModelWriter, Slots, Values, slot_values, slots_of

Method = Literal["unchanged", "program", "shrink"]

BISECTIONS = 8
"""How often the interval of factors is halved: the factor is found within 1/256."""
_SOLVING_PART = 0.7
"""Part of the time left for the program; the rest is for the proof."""


@dataclass(frozen=True, eq=False)
class Found:
    """Values of the slots that keep all limits.

    Attributes:
        values: rounded, as the library stores them.
        method: how they were found.
        factor: what differences were multiplied by, if they shrank.
        notes: what a user should know.
    """

    values: Values
    method: Method
    factor: float = 1.0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _Output:
    """One sum: the limits on it, which slots move together, and what changes cost."""

    limits: tuple[Limit, ...]
    component_of: NDArray[np.int64]
    objective: Objective


@dataclass(eq=False)
class Search:
    """A search for one model and its questions.

    Attributes:
        writer: the model.
        ensemble: the same on the features of the questions (one-hot groups are features).
        numbered: that ensemble with numbers of slots in its leaves.
        problems: the questions.
        rows: the data, one column per feature of ``ensemble``.
        settings: the limits of time and memory, and the seed.
        is_proved: counts questions about changed values; True if all counts are proved to be 0.
    """

    writer: ModelWriter
    ensemble: Ensemble
    numbered: Ensemble
    problems: Sequence[Problem]
    rows: NDArray[np.float64]
    settings: Settings
    is_proved: Callable[[Values, Sequence[int], Settings], bool]
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.slots: Slots = slots_of(self.numbered)
        self.before: Values = slot_values(self.ensemble, self.slots, self.writer.n_slots)
        self._allowed = self.writer.limits()

    def found(self) -> Found:
        """Return values that keep all limits."""
        self._report(0.0, "bounding how far the sums can move")
        outputs = self._outputs
        values = self.before
        method: Method = "unchanged"
        for output in outputs.values():
            if output.limits:
                values, method = self._within_gaps(values, output)
        flips = [i for i, problem in enumerate(self.problems) if self._gaps(problem) is None]
        factor = 1.0
        if flips:
            values, factor = self._without_flips(values, flips, outputs)
            method = "shrink" if factor < 1 else method
        return Found(values, method, factor, tuple(self.notes))

    def shrunk(self) -> Values | None:
        """Return values with the same limits by shrinking alone, to compare with; None for flips.

        Differences are multiplied by the largest factor that the bounds allow.
        """
        if any(self._gaps(problem) is None for problem in self.problems):
            return None
        values = self.before
        for output in self._outputs.values():
            if output.limits:
                values = self._shrunk(values, output, _largest_factor(values, output))
        return values

    @cached_property
    def _outputs(self) -> dict[int, _Output]:
        return {output: self._output(output) for output in self._concerned()}

    def _gaps(self, problem: Problem) -> dict[int, float] | None:
        """Return the limits of a question in units of the sums of leaves."""
        gaps = sufficient_gaps(problem.query, self.ensemble)
        if gaps is None:
            return None
        return {output: _below(gap * self.ensemble.divisor) for output, gap in gaps.items()}

    def _concerned(self) -> list[int]:
        """Return the outputs that some question is about."""
        every = range(self.ensemble.n_outputs)
        return [k for k in every if any(p.query.change.concerns(k) for p in self.problems)]

    def _output(self, output: int) -> _Output:
        """Return the limits of one sum, and the cost of its leaves."""
        limits: list[Limit] = []
        bounds: list[PairBounds] = []
        for problem in self.problems:
            if not problem.query.change.concerns(output):
                continue
            bounds.append(self._bounds(problem, output))
            gap = (self._gaps(problem) or {}).get(output)
            if gap is not None and bounds[-1].trees:
                limits.append(Limit(bounds[-1], gap))
        component_of = components(self.writer.n_slots, bounds)
        self._report(0.1, "weighing the leaves by the rows that reach them")
        objective = objective_of(
            self.ensemble,
            self.slots,
            output,
            self.rows,
            component_of >= 0,
            may_compensate=self._may_compensate,
            seed=self.settings.seed,
        )
        return _Output(tuple(limits), component_of, objective)

    def _bounds(self, problem: Problem, output: int) -> PairBounds:
        """Return the bounds of all changes, or one for all of them if there are too many."""
        try:
            return pair_bounds(problem, self.slots, output)
        except BudgetError as error:
            self.notes.append(
                f"{error}: one bound stands for all of them, which costs more; a smaller distance "
                "or fewer sensitive features may help"
            )
            return coarse_bounds(problem, self.slots, output)

    @property
    def _may_compensate(self) -> bool:
        """Whether other leaves may move: not if leaves are shares, which have a least value."""
        return not np.isfinite(self._allowed).any()

    def _within_gaps(self, values: Values, output: _Output) -> tuple[Values, Method]:
        """Return values that keep the limits of one sum."""
        self._report(0.3, "solving for the smallest change of leaf values")
        method: Method = "program"
        try:
            left = self.settings.within(_SOLVING_PART)
            values = values + smallest_change(
                output.objective,
                values,
                output.limits,
                allowed=self._allowed,
                seconds=left.seconds_left(),
                memory_bytes=self.settings.free_bytes(),
            )
        except BudgetError as error:
            self.notes.append(
                f"{error}: all differences were shrunk instead, which costs more; more time or "
                "memory, a smaller distance, or fewer sensitive features may help"
            )
            method, values = "shrink", self._shrunk(values, output, _largest_factor(values, output))
        values = np.clip(values, *self._allowed)
        rounded = self.writer.rounded
        kept = within_limits(values, output.limits, output.component_of, output.objective, rounded)
        return np.where(self._touched(output), kept, values), method

    def _touched(self, output: _Output) -> NDArray[np.bool_]:
        touched = np.zeros(len(self.before), dtype=np.bool_)
        touched[output.objective.kept] = True
        return touched

    def _shrunk(self, values: Values, output: _Output, factor: float) -> Values:
        shrunk = scaled(values, output.component_of, output.objective, factor)
        if not self._may_compensate:
            return shrunk
        return compensated(self.before, shrunk, output.component_of, output.objective)

    def _without_flips(
        self, values: Values, flips: Sequence[int], outputs: dict[int, _Output]
    ) -> tuple[Values, float]:
        """Return values with the largest factor for which exact counts find no flip."""

        def shrunk_by(factor: float) -> Values:
            found = values
            for output in outputs.values():
                found = self._shrunk(found, output, factor)
                found = np.where(self._touched(output), self.writer.rounded(found), found)
            return found

        low, high, best = 0.0, 1.0, shrunk_by(0.0)
        for step in range(BISECTIONS):
            if self.settings.expired():
                self.notes.append("the time limit stopped the search for a larger factor")
                break
            self._report(0.3 + 0.6 * step / BISECTIONS, "looking for the largest factor")
            middle = (low + high) / 2
            tried = shrunk_by(middle)
            if self.is_proved(tried, flips, self.settings.within(1 / (BISECTIONS - step + 1))):
                low, best = middle, tried
            else:
                high = middle
        return best, low

    def _report(self, fraction: float, message: str) -> None:
        self.settings.report(Progress(fraction, 0, 0, message))


def _largest_factor(values: Values, output: _Output) -> float:
    """Return the factor that brings all bounds to their limits."""
    sums = ((each.limit, each.bounds.largest_sum(values)) for each in output.limits)
    return min((limit / total if total > limit else 1.0 for limit, total in sums), default=1.0)


def _below(gap: Fraction) -> float:
    """Return the largest float that is at most an exact number."""
    found = float(gap)
    return found if found <= gap else float(np.nextafter(found, -np.inf))
