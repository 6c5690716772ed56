"""Choosing what to draw from: all that is left, or a cover of what is undecided of it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from xcount.counters.bounds import Bounds
from xcount.counters.engine import Draws
from xcount.counters.sampling.cover import CoverDraws, pooled
from xcount.counters.sampling.draws import BATCH, CellDraws, RegionDraws, RowDraws
from xcount.counters.sampling.estimator import Estimator, Ground, OutOfTimeError, Pilot
from xcount.counters.sampling.rest import Rest
from xcount.counters.settings import DEFAULT_MEMORY_BYTES, Settings
from xcount.counters.tally import Progress, StopReason, Tally
from xcount.errors import BudgetError
from xcount.problem.problem import Problem
from xcount.support.process import held_memory_bytes

_MAX_COVERED_PAIRS = 2_000
PLAIN_SECONDS = 0.5
"""Below this price nothing but plain sampling is considered."""
_PILOT_PART = 50
_COVER_PILOT_BATCHES = 40
_TRIAL_PART = 0.02
"""Part of the price of plain samples that a cover is refined for without any sign of a gain."""
_FIRST_WORK = 2_000_000
_SECONDS_PER_WORK = 40e-9
"""Rough, and the same everywhere on purpose: it only weighs one kind of work against another."""

MAX_ROW = 2**17
"""Masks and pairs of them beyond which a sample is one region, not a row of all masks."""

_COVER_PART = 0.25
"""Part of the time and memory left that the difference trees of a cover may take."""
_SECONDS_PER_DIFFERENCE = 1e-7

# Sizes of the native structures.
_BYTES_PER_DIFFERENCE = 16
_BYTES_PER_MASK = 28
_BYTES_PER_PAIR = 16
_BYTES_PER_NODE = 40


def _draws_regions(problem: Problem, settings: Settings, rest: Rest) -> bool:
    """Tell whether a row of all masks, and the pairs among them, would be too much for a sample."""
    if rest.pairs is not None:
        return False
    n_masks, listed = problem.n_masks, 0
    if len(problem.query.sensitive) > 1 and problem.distance is not None:
        listed = problem.n_pairs_about
    if n_masks + listed > MAX_ROW:
        return True
    row = 8 * problem.space.trees.n_limbs + 1
    needed = n_masks * (_BYTES_PER_MASK + settings.n_threads * row) + _BYTES_PER_PAIR * listed
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
    """

    def __init__(self, problem: Problem, settings: Settings, rest: Rest) -> None:
        self._problem = problem
        self._settings = settings
        self._rest = rest
        self._obstacle = _obstacle(problem, settings, rest)
        self._draws: Draws | None = None
        if rest.n_unresolved and self._obstacle is None:
            self._draws = self._make_draws()
        self._details: dict[str, Any] = {}

    def _make_draws(self) -> Draws:
        problem, rest = self._problem, self._rest
        space = problem.form.native_draws()
        if space is None:
            return CellDraws(problem, rest.unresolved)
        if not _draws_regions(problem, self._settings, rest):
            draws = RowDraws(space, rest.unresolved, rest.pairs)
            try:
                draws.n_trees  # noqa: B018  # makes the native sampler
            except BudgetError:  # more cells on an axis than a row of masks is made for
                self._rest = replace(Rest.everything(problem), known=rest.known)
            else:
                return draws
        return RegionDraws(space)

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
        plain = self._plain()
        cost = plain.seconds_per_sample
        try:
            pilot = plain.pilot(math.ceil(worth / cost / _PILOT_PART / BATCH))
        except OutOfTimeError:
            return 0.0
        if self._is_clear(pilot, plain.ground):
            return 0.0
        price = cost * self._needed(pilot, plain.ground)
        # What a cover saves is known only when it is there; on the paper's rare instances this is
        # about right, or still too high.
        return min(price, 0.5 * math.sqrt(price)) if self._can_cover() else price

    def run(self, method: str, details: Mapping[str, Any]) -> Tally:
        """Estimate, and say what was found."""
        self._details = dict(details)
        if not self.is_needed:
            return self._decided(Bounds(self._rest.solved, self._rest.solved), method)
        if self._obstacle is not None:
            return self._stopped(method, self._obstacle)
        try:
            return self._drawn(method)
        except OutOfTimeError:
            return self._stopped(method, StopReason.TIMEOUT)
        except KeyboardInterrupt:
            return self._stopped(method, StopReason.INTERRUPTED)

    def _drawn(self, method: str) -> Tally:
        plain = self._plain()
        pilot = plain.pilot()
        if self._plain_price(pilot, plain.ground) > PLAIN_SECONDS and self._can_cover():
            cover = CoverDraws(self._problem.space, self._rest)
            try:
                self._refine(cover, _FIRST_WORK, math.inf)
            except BudgetError:  # trees too large to make differences of
                return plain.run(pilot, method, self._details)
            if not cover.is_decided:
                batches = PLAIN_SECONDS / plain.seconds_per_sample / BATCH
                pilot = plain.pilot(math.ceil(batches))
            covered = self._cover(cover, pilot, plain.ground)
            if isinstance(covered, Bounds):
                return self._decided(covered, method)
            if covered is not None:
                return covered[0].run(covered[1], method, self._details)
        return plain.run(pilot, method, self._details)

    def _plain_price(self, pilot: Pilot, ground: Ground) -> float:
        if self._is_clear(pilot, ground):
            return 0.0
        return self._plain().seconds_per_sample * self._needed(pilot, ground)

    def _decided(self, bounds: Bounds, method: str) -> Tally:
        """Return what is known without a sample: exact but for the rounding of volumes."""
        details = {**self._details, "samples": 0}
        count = bounds.settled(self._settings.epsilon)
        reason = StopReason.STEPS if count is None else StopReason.COMPLETE
        return Tally(count, bounds.low, bounds.high, method, reason, details=details)

    def _stopped(self, method: str, reason: StopReason) -> Tally:
        bounds = self._plain_ground().bounds()
        return Tally.of_bounds(bounds.low, bounds.high, method, reason, details=self._details)

    def _plain_ground(self) -> Ground:
        undecided = self._problem.n_combinations * self._rest.n_unresolved
        return Ground(self._rest.solved, undecided, self._rest.known, self._problem.n_regions)

    def _plain(self) -> Estimator:
        assert self._draws is not None
        return Estimator(self._draws, self._plain_ground(), self._settings)

    def _needed(self, pilot: Pilot, ground: Ground) -> float:
        settings = self._settings
        return pilot.samples_needed(settings.epsilon, settings.delta, ground.certain_share)

    def _is_clear(self, pilot: Pilot, ground: Ground) -> bool:
        """Tell whether the asked share is so far from the pilot's that few samples decide it."""
        if self._settings.max_share is None:
            return False
        asked = self._settings.max_share.value * ground.n_regions - ground.certain
        share = max(0.0, float(asked / ground.undecided))
        few = 30 / pilot.n  # a share that the pilot's size can tell from zero
        return abs(pilot.mean - share) > max(few, 0.3 * share)

    def _can_cover(self) -> bool:
        """Tell whether a cover fits the limits: it begins with all difference trees."""
        pairs = self._rest.pairs
        if pairs is None or len(pairs) > _MAX_COVERED_PAIRS:
            return False
        n_nodes = len(pairs) * sum(tree.n_nodes for tree in self._problem.trees)
        left = self._settings.seconds_left()
        is_slow = left is not None and n_nodes * _SECONDS_PER_DIFFERENCE > _COVER_PART * left
        is_large = n_nodes * _BYTES_PER_DIFFERENCE > _COVER_PART * self._settings.free_bytes()
        return not (is_slow or is_large)

    def _cover(
        self, cover: CoverDraws, plain_pilot: Pilot, plain: Ground
    ) -> tuple[Estimator, Pilot] | Bounds | None:
        """Refine a cover while it pays; return what to run, bounds if all is decided, or None."""
        settings = self._settings
        plain_price = self._plain_price(plain_pilot, plain)
        half = settings.within(0.5)
        deadline = math.inf if half.timeout_seconds is None else half.started + half.timeout_seconds
        before = plain.undecided
        while True:
            ground = cover.ground(self._problem, self._rest)
            self._details["cover_states"] = cover.n_expanded
            self._details["cover_share"] = float(
                Fraction(ground.undecided, self._problem.n_regions)
            )
            if cover.is_decided:
                return ground.bounds()
            estimator = Estimator(cover, ground, settings, is_long=False)
            pilot = pooled(plain_pilot, plain, estimator.pilot(_COVER_PILOT_BATCHES), ground)
            price = cover.seconds_per_sample * self._needed(pilot, ground)
            spent = cover.work * _SECONDS_PER_WORK
            limit = settings.memory_bytes or DEFAULT_MEMORY_BYTES
            full = cover.n_bytes * 3 > limit or time.monotonic() >= deadline
            # Doubling the work may shrink the cover twice as much as the last doubling did.
            gain = price * (1 - float(Fraction(ground.undecided, before)) ** 2)
            is_promising = gain > spent or spent < _TRIAL_PART * plain_price
            if price <= spent or full or 2 * spent > plain_price or not is_promising:
                break
            before = ground.undecided
            self._refine(cover, 2 * cover.work, deadline)
        estimator.is_long = price > spent and time.monotonic() < deadline  # else a small part
        return (estimator, pilot) if price < plain_price else None

    def _refine(self, cover: CoverDraws, target: int, deadline: float) -> None:
        n_threads = self._settings.n_threads
        cover.refine(target, deadline, n_threads, lambda: self._report(cover.n_expanded))

    def _report(self, n_states: int) -> None:
        bounds = self._plain_ground().bounds()
        self._settings.report(Progress(0.0, bounds.low, bounds.high, f"{n_states:,} states"))


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
