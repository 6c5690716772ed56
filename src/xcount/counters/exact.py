"""The exact counter: every mask's expression, one subproblem after the other.

``C = sum over masks m of |A_m|``, and each ``|A_m|`` is a constant plus signed counts of
subproblems (see :mod:`xcount.problem.subproblem`), which the question's form chooses. With weights,
the same run finds the share of each A_m under a product measure. If a limit leaves a mask open, the
bounds of its subproblems bound it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import compress, islice
from typing import Any

from xcount.counters import costs
from xcount.counters.cover import (
    Refinement,
    affordable_pairs,
    counts,
    fewest_pairs_first,
    native_cover,
)
from xcount.counters.engine import Tuning, Weights
from xcount.counters.known_counts import Bounded, KnownCounts
from xcount.counters.profile import pair_rows, profile_of
from xcount.counters.settings import Settings
from xcount.counters.tally import Bounds, Profile, Progress, StopReason, Tally
from xcount.counters.visit import corner_seconds, pair_scan_seconds, visited
from xcount.errors import BudgetError
from xcount.problem.problem import Problem
from xcount.problem.subproblem import Decomposition, Expression, Pair, Subproblem


def count_exactly(problem: Problem, settings: Settings) -> Tally:
    """Count every mask exactly, or bound the masks that a limit leaves open."""
    run = ExactRun(problem, settings.within(1 - costs.COVER_PART))
    thresholds = settings.thresholds
    if run.is_too_large:
        raise BudgetError(
            f"exact counting would take about {problem.form.n_terms:,} terms, more than "
            f"{problem.form.max_exact_terms:,}; use --method auto or sample"
        )
    corner = corner_seconds(problem, settings)
    if thresholds.free_pair_scan_seconds < pair_scan_seconds(problem) >= corner:
        tally = visited(problem, settings, "exact")
        corner = math.inf
        if tally is not None:
            return tally
    for budget in thresholds.exact_step_budgets:
        if run.is_over:
            break
        # The first rounds are cheap, and separate the pairs for a profile.
        if budget > thresholds.free_step_budget and corner <= run.cost_of(budget):
            tally = visited(problem, settings, "exact")
            corner = math.inf
            if tally is not None:
                return within(tally, run)
        run.solve((budget,))
    run.cover(settings)
    return _with_probe(run.tally("exact"), problem, settings)


def _with_probe(tally: Tally, problem: Problem, settings: Settings) -> Tally:
    """Raise a lower bound of 0 to the number of sensitive regions that a probe finds.

    One sensitive region proves that there are some. With a profile the tally stays as it is, since
    it is the sum of the profile.
    """
    is_known = tally.low > 0 or tally.high == 0 or settings.want_profile
    if is_known or tally.stop_reason is StopReason.INTERRUPTED:
        return tally
    from xcount.counters.decisions import count_hits_in_probe

    seen = min(tally.high, count_hits_in_probe(problem, settings))
    return replace(tally, low=seen, count=seen if seen == tally.high else None)


def within(tally: Tally, run: ExactRun) -> Tally:
    """Return the tally of a visit, narrowed by the bounds of an exact run."""
    low, high = run.bounds()
    low, high = max(low, tally.low), min(high, tally.high)
    details = {**tally.details, "n_steps": run.n_steps}
    profile = tally.profile if tally.profile is None else run.profile(tally.profile)
    return Tally.of_bounds(
        low, high, tally.method, tally.stop_reason, details=details, profile=profile
    )


def slices_of(
    runs: Sequence[ExactRun], budgets: Iterable[int], thresholds: costs.Thresholds
) -> Iterator[float]:
    """Run the rounds of all runs in slices; yield the cost of each, in seconds of one core.

    Slices grow with the cost of the runs so far. Ends when all of them are exact, or nothing is
    left to try.
    """
    spent = 0.0

    def most() -> float:
        return max(thresholds.least_slice_seconds, thresholds.slice_part * spent)

    for budget in budgets:
        for run in runs:
            for work in run.round(budget, most):
                spent += work
                yield work
        if not any(run.n_open_subproblems for run in runs):
            return


class _TimeIsUpError(Exception):
    """Time ran out before all pairs were scanned."""


class ExactRun:
    """An exact count: the subproblems solved so far, and the bounds of masks that follow.

    Args:
        problem: the question.
        settings: limits, and the engine.
        tuning: of the native counter.
        weights: of all features' cells, for shares instead of counts.
        masks: the masks to count; all of them unless given.
        decomposition: of the count of these masks, if already known.
    """

    def __init__(
        self,
        problem: Problem,
        settings: Settings,
        tuning: Tuning | None = None,
        *,
        weights: Weights | None = None,
        masks: Sequence[int] | None = None,
        decomposition: Decomposition | None = None,
    ) -> None:
        self.problem, self.settings = problem, settings
        self.stop_reason = StopReason.COMPLETE
        self.masks = problem.counted_masks if masks is None else masks
        self.decomposition = decomposition
        form = problem.form
        given = None if weights is None else form.cell_weights(weights)
        self._is_weighed = weights is not None
        self._whole: Any = problem.n_combinations if weights is None else 1.0
        self._solver = settings.engine.solver(form.space, settings.memory_bytes, given)
        self._counts = KnownCounts(
            self._solver, form.space.n_masks, self._whole, settings, tuning or Tuning()
        )

    @property
    def n_steps(self) -> int:
        return self._counts.n_steps

    @property
    def n_slices(self) -> int:
        """The number of slices so far: bounds only change with it."""
        return self._counts.n_slices

    @property
    def lacked_memory(self) -> bool:
        """Whether a subproblem was given up because its tables did not fit."""
        return self._counts.lacked_memory

    @property
    def open_size(self) -> int:
        """The number of masks whose count is open."""
        return len(self.unsolved_masks())

    @property
    def is_over(self) -> bool:
        """Whether there is an exact count, or a limit has ended the run."""
        ended = (StopReason.TIMEOUT, StopReason.INTERRUPTED)
        is_known = self.decomposition is not None and self.is_exact()
        return is_known or self.stop_reason in ended

    @property
    def n_subproblems(self) -> int:
        """The number of subproblems that the masks' expressions have."""
        found = self.decomposition
        return 0 if found is None else len(found.pairs) + len(found.joint)

    @property
    def n_open_subproblems(self) -> int:
        """The number of subproblems that open expressions still wait for."""
        if self.decomposition is None:
            return 0
        return len(self._open_subproblems())

    @property
    def is_too_large(self) -> bool:
        """Whether there are too many terms to be listed."""
        return self.problem.form.n_terms > self.problem.form.max_exact_terms

    def solve(self, budgets: Iterable[int]) -> None:
        """Run rounds with these budgets of steps a subproblem, until done or stopped.

        May be called again with larger budgets: only what is still open is tried.
        """
        if self.stop_reason in (StopReason.STEPS, StopReason.MEMORY):
            self.stop_reason = StopReason.COMPLETE
        try:
            if self.decomposition is None and not self.is_too_large:
                self._decompose()
            for budget in budgets if self.decomposition is not None else ():
                if not self._stopped():
                    for _ in self.round(budget):
                        pass
        except KeyboardInterrupt:
            self._solver.cancel()
            self.stop_reason = StopReason.INTERRUPTED
        if self.stop_reason in (StopReason.COMPLETE, StopReason.TIMEOUT):
            self.stop_reason = self._why_it_ended()

    def slices(self, budgets: Iterable[int] | None = None) -> Iterator[float]:
        """Run rounds in slices; yield the cost of each, in seconds of one core.

        Ends when there is an exact count, or nothing is left to try. Budgets are those of ``auto``
        unless given.
        """
        thresholds = self.settings.thresholds
        return slices_of(
            [self], thresholds.step_budgets if budgets is None else budgets, thresholds
        )

    def limit(self, settings: Settings) -> None:
        """Continue within these limits."""
        self.settings = settings
        self._counts.limit(settings)

    def end(self, reason: StopReason | None = None) -> None:
        """Record why the run ended after its last slice."""
        self.stop_reason = self._why_it_ended() if reason is None else reason

    def cover(self, settings: Settings) -> None:
        """Narrow the bounds of the masks that a limit left open, by a cover of their subproblems.

        Without a limit of time, a cover takes about as much work as the rounds before it.
        """
        found = self.decomposition
        is_wanted = self.stop_reason not in (StopReason.COMPLETE, StopReason.INTERRUPTED)
        if found is None or self._is_weighed or not is_wanted:
            return
        numbers = self._open_subproblems()
        tasks = [found.subproblem(number) for number in numbers]
        chosen = fewest_pairs_first(tasks, affordable_pairs(self.problem, settings))
        if not chosen:
            return
        try:
            self._narrow([numbers[i] for i in chosen], [tasks[i] for i in chosen], settings)
        except KeyboardInterrupt:
            self.stop_reason = StopReason.INTERRUPTED
            return
        if self.is_exact():
            self.stop_reason = StopReason.COMPLETE

    def _narrow(
        self, numbers: Sequence[int], tasks: Sequence[Subproblem], settings: Settings
    ) -> None:
        """Cover the subproblems, and adopt the bounds it proves, however it ends."""
        try:
            cover = native_cover(self.problem.form.space, ((task, 1) for task in tasks))
        except BudgetError:  # trees too large to make differences of
            return
        left = settings.seconds_left()
        deadline = math.inf if left is None else time.monotonic() + left
        least = settings.thresholds.least_cover_work
        work = max(least, self.n_steps) if left is None else 2**62
        try:
            Refinement().run(
                cover, work, settings.free_bytes() // 2, deadline, settings.n_threads, self._tell
            )
        finally:
            known = counts(cover, self._whole)
            for number, (solved, undecided) in zip(numbers, known, strict=True):
                self._counts.narrow(number, (solved, solved + undecided))

    def _tell(self) -> None:
        """Report that the run is still going; the listener may end it between slices."""
        self.settings.report(Progress(1.0, *self.bounds(), "bounds of what is open"))

    def _open_subproblems(self) -> list[int]:
        """Return the subproblems that open expressions still wait for."""
        numbers = {n for e in self._open_expressions() for _, n in e.terms}
        return sorted(number for number in numbers if not self._counts.is_known(number))

    def _why_it_ended(self) -> StopReason:
        """Return what kept the run from an exact count, if anything did."""
        if self.is_exact():
            return StopReason.COMPLETE
        if self.settings.expired():
            return StopReason.TIMEOUT
        return StopReason.MEMORY if self._counts.lacked_memory else StopReason.STEPS

    def is_exact(self) -> bool:
        return not self.unsolved_masks()

    def unsolved_masks(self) -> list[int]:
        """Return the masks whose count is still open."""
        if self.decomposition is None:
            return list(self.masks)
        is_open = [low != high for low, high in self._each()]
        of_mask = self.decomposition.expression_of
        return [mask for mask in self.masks if is_open[of_mask[mask]]]

    def mask_bounds(self, mask: int) -> Bounded:
        """Return bounds of ``|A_m|``, or of its share: equal when it is known."""
        if self.decomposition is None:
            return self._whole - self._whole, self._whole
        return self._bounds_of(self.decomposition.of_mask(mask))

    def all_mask_bounds(self) -> list[Bounded]:
        """Return the bounds of every mask."""
        if self.decomposition is None:
            return [self.mask_bounds(mask) for mask in self.masks]
        each = self._each()
        return [each[self.decomposition.expression_of[mask]] for mask in self.masks]

    def _each(self) -> list[Bounded]:
        assert self.decomposition is not None
        return [self._bounds_of(expression) for expression in self.decomposition.expressions]

    def _bounds_of(self, expression: Expression) -> Bounded:
        nothing = self._whole - self._whole
        low = high = self._whole if expression.is_complement else nothing
        is_known = all(self._counts.is_known(number) for _, number in expression.terms)
        for sign, number in expression.terms:
            least, most = self._counts[number]
            low, high = (low + least, high + most) if sign > 0 else (low - most, high - least)
        if low != high and expression.union_of:
            parts = [self._counts[number] for number in expression.union_of]
            low = max(low, *(least for least, _ in parts))
            high = min(high, sum(most for _, most in parts))
        low, high = (min(max(end, nothing), self._whole) for end in (low, high))
        if is_known:
            high = low  # sums of weights are rounded
        return (nothing, high) if expression.is_upper_bound else (low, high)

    def bounds(self) -> Bounds:
        """Return bounds on the whole count; with weights, these are the trivial ones."""
        if self.decomposition is None or self._is_weighed:
            return Bounds(0, self.problem.n_regions)
        each = self.all_mask_bounds()
        return Bounds(sum(low for low, _ in each), sum(high for _, high in each))

    def open_pairs(self) -> list[Pair] | None:
        """Return the pairs that may make an open mask sensitive; None if every pair may."""
        found = self.decomposition
        if found is None or any(e.is_upper_bound for e in found.expressions):
            return None  # upper bounds do not determine which pairs matter
        if not found.pairs:
            return None if found.joint else []
        numbers = {n for m in self.unsolved_masks() for n in found.of_mask(m).union_of}
        return [found.pairs[number] for number in sorted(numbers)]

    def n_open_pairs(self) -> int:
        """Return about how many pairs the open subproblems have together."""
        assert self.decomposition is not None
        found = self.decomposition
        # A pair of a union counts for both of its masks.
        doubled = sum(len(found.of_mask(mask).union_of) for mask in self.unsolved_masks())
        numbers = {n for e in self._open_expressions() if not e.union_of for _, n in e.terms}
        return max(1, doubled // 2 + sum(len(found.subproblem(n).pairs) for n in numbers))

    def cost_of(self, budget: int) -> float:
        """Return the most that a round with this budget costs, in seconds of one core."""
        if self.decomposition is None:
            return 0.0
        # A step of a subproblem costs in proportion to its pairs.
        return self.n_open_pairs() * budget * costs.SECONDS_PER_STEP

    def tally(self, method: str) -> Tally:
        """Return what is known now."""
        low, high = self.bounds()
        profile = self.profile() if self.settings.want_profile else None
        details = {"n_steps": self.n_steps, "n_masks": self.problem.n_masks}
        return Tally.of_bounds(
            low, high, method, self.stop_reason, details=details, profile=profile
        )

    def profile(self, other: Profile | None = None) -> Profile | None:
        """Return the profile, narrowed by another one's bounds of the masks."""
        if self.decomposition is None:
            return other
        bounds = self.all_mask_bounds()
        if other is not None:
            known = zip(bounds, other.masks, strict=True)
            bounds = [(max(low, m.low), min(high, m.high)) for (low, high), m in known]
        pairs = pair_rows(self.problem, self.decomposition.pairs, self._counts)
        return profile_of(self.problem, bounds, pairs)

    def _decompose(self) -> None:
        """Decompose the count into subproblems, if time allows."""
        try:
            self.decomposition = self.problem.form.decompose(self._live, self.masks)
        except _TimeIsUpError:
            self.stop_reason = StopReason.TIMEOUT

    def _live(self, pairs: Iterable[Pair]) -> list[Pair]:
        """Return the pairs that may differ at all. Checks limits even if there are no pairs."""
        found: list[Pair] = []
        remaining = iter(pairs)
        while True:
            if self._stopped():
                raise _TimeIsUpError
            if not (chunk := list(islice(remaining, costs.PAIRS_PER_SLICE))):
                return found
            left = self.settings.seconds_left()
            seconds = math.inf if left is None else left
            live = self._solver.live(chunk, self.settings.n_threads, seconds, self._pause)
            found += compress(chunk, live)

    def round(self, budget: int, most: Callable[[], float] = lambda: math.inf) -> Iterator[float]:
        """Try the open pairs, then the joint subproblems; yield the cost of each slice."""
        found = self.decomposition
        assert found is not None
        singles = {n for e in self._open_expressions() for _, n in e.terms if not found.is_joint(n)}
        if self.settings.want_profile:
            singles |= set(range(len(found.pairs)))
        numbers = sorted(n for n in singles if not self._counts.is_known(n))
        yield from self._try(numbers, budget, most)
        joint = {n for e in self._open_expressions() for n in self._joint_terms(e)}
        numbers = sorted(joint, key=lambda n: (len(found.subproblem(n).pairs), n))
        yield from self._try(numbers, budget, most)

    def _try(
        self, numbers: Iterable[int], budget: int, most: Callable[[], float]
    ) -> Iterator[float]:
        assert self.decomposition is not None
        tasks = {number: self.decomposition.subproblem(number) for number in numbers}
        return self._counts.solve(tasks, budget, self.bounds, most)

    def _open_expressions(self) -> list[Expression]:
        assert self.decomposition is not None
        each = zip(self.decomposition.expressions, self._each(), strict=True)
        return [expression for expression, (low, high) in each if low != high]

    def _joint_terms(self, expression: Expression) -> list[int]:
        """Return the open joint subproblems of an expression whose single pairs are known."""
        assert self.decomposition is not None
        is_joint = self.decomposition.is_joint
        numbers = [n for _, n in expression.terms if not self._counts.is_known(n)]
        return numbers if all(map(is_joint, numbers)) else []

    def _stopped(self) -> bool:
        if self.stop_reason is not StopReason.COMPLETE:
            return True
        if self.settings.expired():
            self.stop_reason = StopReason.TIMEOUT
            return True
        return False

    def _pause(self) -> None:
        """Report that the run is still going, before there are subproblems to count."""
        self.settings.report(Progress(0.0, 0, self.problem.n_regions, "looking at pairs"))
