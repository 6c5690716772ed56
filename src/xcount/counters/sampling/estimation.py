"""Choosing what to draw from: all that is left, or a cover of what is undecided of it."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from xcount.counters.bounds import Bounds
from xcount.counters.cover import is_affordable, seconds_of_trees
from xcount.counters.decisions import is_long_row, n_decided_together
from xcount.counters.engine import Draws
from xcount.counters.sampling.cover import CoverDraws, pooled
from xcount.counters.sampling.draws import BATCH, CellDraws, RegionDraws, RowDraws
from xcount.counters.sampling.estimator import (
    Estimator,
    KnownPart,
    Slices,
    run_through,
)
from xcount.counters.sampling.pilot import Pilot
from xcount.counters.sampling.plain import pilot_worth, price_of, samples_needed
from xcount.counters.sampling.rest import Rest
from xcount.counters.settings import DEFAULT_MEMORY_BYTES, Settings
from xcount.counters.tally import Progress, StopReason, Tally
from xcount.errors import BudgetError
from xcount.problem.problem import Problem
from xcount.support.process import held_memory_bytes

PLAIN_SECONDS = 0.5
"""Below this price nothing but plain sampling is considered."""
_COVER_PILOT_BATCHES = 40
_TUNING_PART = 0.2
"""Part of the time that a few samples may take that tell how long to search for each."""
_TRIAL_PART = 0.02
"""Part of the price of plain samples that a cover is refined for without any sign of a gain."""
_FIRST_WORK = 2_000_000
_SECONDS_PER_WORK = 40e-9
"""Rough, and the same everywhere on purpose: it only weighs one kind of work against another."""

# Sizes of the native structures.
_BYTES_PER_MASK = 28
_BYTES_PER_PAIR = 16
_BYTES_PER_NODE = 40


def _draws_regions(problem: Problem, settings: Settings, rest: Rest) -> bool:
    """Tell whether a row of all masks, and the pairs among them, would be too much for a sample."""
    if rest.pairs is not None:
        return False
    if is_long_row(problem):
        return True
    n_masks, together = problem.n_masks, n_decided_together(problem)
    row = 8 * problem.form.corner_question.outputs[0].n_limbs + 1
    needed = n_masks * (_BYTES_PER_MASK + settings.n_threads * row)
    needed += _BYTES_PER_PAIR * (together - n_masks)
    return (
        settings.memory_bytes is not None and held_memory_bytes() + needed > settings.memory_bytes
    )


def _obstacle(problem: Problem, settings: Settings, rest: Rest) -> StopReason | None:
    """Return the limit that not even the first sample would keep, if there is one."""
    if rest.pairs is not None or settings.memory_bytes is None:
        return None
    needed = _BYTES_PER_NODE * sum(tree.n_nodes for tree in problem.trees)
    return StopReason.MEMORY if held_memory_bytes() + needed > settings.memory_bytes else None


class Estimation:
    """Chooses what to draw from: the whole rest, or a cover of what is left of it undecided.

    A sample from the whole rest decides all masks at once. Where hits are rare, a cover is refined
    first, as long as that promises to save more samples than it costs. Costs are counted in states
    and samples, so that the choice is the same everywhere.

    Attributes:
        rest: what is estimated.
        reason: why the estimate ended, once it has.
    """

    def __init__(self, problem: Problem, settings: Settings, rest: Rest, series: int = 0) -> None:
        self._problem = problem
        self._settings = settings
        self.rest = rest
        self._series = series
        self._obstacle = _obstacle(problem, settings, rest)
        self._draws: Draws | None = None
        if rest.n_unresolved and self._obstacle is None:
            self._draws = self._make_draws()
        self._details: dict[str, Any] = {}
        self._chosen: Estimator | None = None  # that draws what the answer is made of
        self._certain: Bounds | None = None  # where no sample is needed for an answer
        self.reason = StopReason.COMPLETE

    def _make_draws(self) -> Draws:
        problem, rest = self._problem, self.rest
        if not _draws_regions(problem, self._settings, rest):
            space = problem.form.native_draws()
            if space is None:
                return CellDraws(problem, rest.unresolved)
            draws = RowDraws(space, rest.unresolved, rest.pairs)
            try:
                draws.n_trees  # noqa: B018  # makes the native sampler
            except BudgetError:  # more cells on an axis than a row of masks is made for
                pass
            else:
                return draws
        # Regions are drawn with all masks, solved ones included.
        self.rest = replace(Rest.everything(problem), known=rest.known)
        return RegionDraws(problem.form.corner_question)

    def limit(self, settings: Settings) -> None:
        """Go on within these limits; what delta is for stays as it is."""
        self._settings = replace(settings, delta=self._settings.delta)
        if "_plain" in self.__dict__:
            self._plain.limit(self._settings)

    def spend(self, delta: float) -> None:
        """Take this chance of being wrong; before the first slice."""
        self._settings = replace(self._settings, delta=delta)
        self.limit(self._settings)

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to estimate at all."""
        if self._obstacle is not None:
            return True
        return self._draws is not None and self._draws.n_trees > 0

    def price(self, worth: float) -> float:
        """Guess the cost of the estimate; looking costs a small part of ``worth``."""
        if self._obstacle is not None:
            return 0.0
        return self._plain_price(pilot_worth(self._plain, worth))

    @property
    def pilot_seconds(self) -> float:
        """What looking at the price has cost, in seconds of one core."""
        return 0.0 if self._draws is None else self._plain.pilot_seconds

    def seconds_left(self) -> float:
        """Guess what the rest of the estimate costs, in seconds of one core."""
        return math.inf if self._chosen is None else self._chosen.seconds_left()

    def run(self, method: str, details: Mapping[str, Any]) -> Tally:
        """Estimate, and say what was found."""
        try:
            self.reason = run_through(self.slices())
        except KeyboardInterrupt:
            self.reason = StopReason.INTERRUPTED
        return self.tally(method, details)

    def slices(self) -> Slices:
        """Estimate in slices; yield the work of each, in seconds of one core."""
        if not self.is_needed:
            self._certain = Bounds(self.rest.solved, self.rest.solved)
        elif self._obstacle is not None:
            self.reason = self._obstacle
        else:
            self.reason = yield from self._drawn()
        return self.reason

    @property
    def bounds(self) -> Bounds:
        """What is known of C so far."""
        if self._certain is not None:
            return self._certain
        return self._plain_known_part().bounds() if self._chosen is None else self._chosen.bounds

    def narrow(self, known: Bounds) -> None:
        """Take over bounds that hold in any case."""
        self.rest = replace(self.rest, known=self.rest.known.meet(known))
        if self._certain is not None:
            self._certain = self._certain.meet(known)
        if self._chosen is not None:
            self._chosen.narrow(known)

    def tally(self, method: str, details: Mapping[str, Any]) -> Tally:
        """Say what was found so far."""
        details = {**self._details, **details}
        if self._certain is not None:
            return _decided(self._certain, self._settings.epsilon, method, details)
        if self._chosen is not None:
            return self._chosen.tally(method, self.reason, details)
        bounds = self.bounds
        return Tally.of_bounds(bounds.low, bounds.high, method, self.reason, details=details)

    def _drawn(self) -> Slices:
        plain = self._plain
        before = plain.pilot_seconds
        pilot = plain.pilot()
        yield plain.pilot_seconds - before
        if self._plain_price(pilot) > PLAIN_SECONDS and self._can_cover():
            yield seconds_of_trees(self._problem, len(self.rest.pairs or ()))
            cover = CoverDraws(self._problem.space, self.rest, self._settings.free_bytes() // 2)
            try:
                self._refine(cover, _FIRST_WORK, math.inf)
            except BudgetError:  # trees too large to make differences of
                return (yield from self._run(plain, pilot))
            yield cover.work * _SECONDS_PER_WORK
            if not cover.is_decided:
                before = plain.pilot_seconds
                batches = PLAIN_SECONDS / plain.seconds_per_sample / BATCH
                pilot = plain.pilot(math.ceil(batches))
                yield plain.pilot_seconds - before
            covered = yield from self._cover(cover, pilot, plain.known_part)
            if self._certain is not None:
                return StopReason.COMPLETE
            if covered is not None:
                return (yield from self._run(*covered))
        return (yield from self._run(plain, pilot))

    def _run(self, estimator: Estimator, pilot: Pilot) -> Slices:
        self._chosen = estimator
        return (yield from estimator.slices(pilot))

    def _plain_price(self, pilot: Pilot) -> float:
        return price_of(self._plain, pilot, self._settings)

    def _plain_known_part(self) -> KnownPart:
        undecided = self._problem.n_combinations * self.rest.n_unresolved
        return KnownPart(self.rest.solved, undecided, self.rest.known, self._problem.n_regions)

    @cached_property
    def _plain(self) -> Estimator:
        assert self._draws is not None
        if isinstance(self._draws, RegionDraws):
            settings = self._settings
            part = _TUNING_PART * settings.search_seconds()
            self._draws.tune(settings.seed & (2**64 - 1), settings.n_threads, part, self._tell)
        return Estimator(self._draws, self._plain_known_part(), self._settings, series=self._series)

    def _tell(self) -> None:
        """Tell that the run goes on; whoever listens may end it."""
        known = self.rest.known
        self._settings.report(Progress(0.0, known.low, known.high, "a few samples"))

    def _can_cover(self) -> bool:
        """Tell whether a cover fits the limits: it begins with all difference trees."""
        pairs = self.rest.pairs
        return pairs is not None and is_affordable(self._problem, self._settings, len(pairs))

    def _cover(
        self, cover: CoverDraws, plain_pilot: Pilot, plain: KnownPart
    ) -> Generator[float, None, tuple[Estimator, Pilot] | None]:
        """Refine a cover while it pays; return what to run, None if it is not worth it.

        Where it decides everything, what is certain says so.
        """
        settings = self._settings
        plain_price = self._plain_price(plain_pilot)
        half = settings.within(0.5)
        deadline = math.inf if half.timeout_seconds is None else half.started + half.timeout_seconds
        before = plain.undecided
        while True:
            known_part = cover.known_part(self._problem, self.rest)
            self._details["cover_states"] = cover.n_states
            self._details["cover_share"] = float(
                Fraction(known_part.undecided, self._problem.n_regions)
            )
            if cover.is_decided:
                self._certain = known_part.bounds()
                return None
            estimator = Estimator(cover, known_part, settings, is_long=False, series=self._series)
            pilot = pooled(plain_pilot, plain, estimator.pilot(_COVER_PILOT_BATCHES), known_part)
            yield estimator.pilot_seconds
            price = cover.seconds_per_sample * samples_needed(pilot, known_part, settings)
            spent = cover.work * _SECONDS_PER_WORK
            limit = settings.memory_bytes or DEFAULT_MEMORY_BYTES
            full = cover.is_full or cover.n_bytes * 3 > limit or time.monotonic() >= deadline
            # Doubling the work may shrink the cover twice as much as the last doubling did.
            gain = price * (1 - float(Fraction(known_part.undecided, before)) ** 2)
            is_promising = gain > spent or spent < _TRIAL_PART * plain_price
            if price <= spent or full or 2 * spent > plain_price or not is_promising:
                break
            before = known_part.undecided
            self._refine(cover, 2 * cover.work, deadline)
            yield cover.work * _SECONDS_PER_WORK - spent
        estimator.is_long = price > spent and time.monotonic() < deadline  # else a small part
        return (estimator, pilot) if price < plain_price else None

    def _refine(self, cover: CoverDraws, target: int, deadline: float) -> None:
        n_threads = self._settings.n_threads
        cover.refine(target, deadline, n_threads, lambda: self._report(cover.n_states))

    def _report(self, n_states: int) -> None:
        bounds = self._plain_known_part().bounds()
        self._settings.report(Progress(0.0, bounds.low, bounds.high, f"{n_states:,} states"))


def _decided(bounds: Bounds, epsilon: float, method: str, details: Mapping[str, Any]) -> Tally:
    """Return what is known without a sample: exact but for the rounding of volumes."""
    count = bounds.settled(epsilon)
    reason = StopReason.STEPS if count is None else StopReason.COMPLETE
    return Tally(count, bounds.low, bounds.high, method, reason, details={**details, "samples": 0})


def estimate(
    problem: Problem,
    settings: Settings,
    rest: Rest,
    *,
    method: str,
    details: Mapping[str, Any] | None = None,
) -> Tally:
    """Estimate the sensitive regions of the unresolved masks and add them to the solved ones."""
    return Estimation(problem, settings, rest).run(method, details or {})
