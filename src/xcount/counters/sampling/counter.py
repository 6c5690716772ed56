"""Counting by sampling alone, and what other counters hand over to it."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from xcount import _core
from xcount.counters.base import DEFAULT_MEMORY_BYTES, Progress, Settings, held_memory_bytes
from xcount.counters.sampling.estimator import (
    BATCH,
    FLOAT_MARGIN,
    Bounds,
    Draws,
    Estimator,
    Ground,
    OutOfTimeError,
    Pilot,
)
from xcount.counters.tally import StopReason, Tally
from xcount.errors import BudgetError, ClusterError
from xcount.problem.problem import Problem

MAX_CHECKED_PAIRS = 5_000
"""Pairs of masks that are checked one by one before sampling."""

_MAX_COVERED_PAIRS = 2_000
PLAIN_SECONDS = 0.5
"""Below this price nothing but plain sampling is considered."""
_PILOT_PART = 50
_COVER_PILOT_BATCHES = 40
_TRIAL_PART = 0.02
"""Part of the price of plain samples that a cover is refined for without any sign of a gain."""
_FIRST_WORK = 2_000_000
_WORK_PER_SLICE = 2_000_000
_EXACT_REGIONS = 2**30
"""Up to here, volumes (53 significant bits or more) tell whole numbers of regions apart."""

# Rough, and the same everywhere on purpose: they only weigh one kind of work against another.
_SECONDS_PER_WORK = 40e-9
_SECONDS_PER_SAMPLE = 5e-7
_SECONDS_PER_TREE = 13e-9
_SECONDS_PER_MASK = 3e-9
_SECONDS_PER_REGION_TREE = 100e-9
_SECONDS_PER_TREE_OF_PAIR = 1e-6

MAX_ROW = 2**17
"""Masks and pairs of them beyond which a sample is one region, not a row of all masks."""

# Sizes of the native structures.
_BYTES_PER_MASK = 28
_BYTES_PER_PAIR = 16
_BYTES_PER_NODE = 40


@dataclass(frozen=True, slots=True)
class Rest:
    """What is left to estimate.

    Attributes:
        solved: the sensitive regions of all other masks.
        unresolved: the masks to estimate.
        pairs: the pairs of masks that may differ by more than the gap and touch an unresolved
            mask; None for all neighbours.
        known: bounds of the whole count that hold in any case.
    """

    solved: int
    unresolved: Sequence[int]
    pairs: Sequence[tuple[int, int]] | None
    known: Bounds

    @property
    def n_unresolved(self) -> int:
        """The number of unresolved masks; a range may be longer than ``len`` can say."""
        masks = self.unresolved
        return masks.stop - masks.start if isinstance(masks, range) else len(masks)


def count_by_sampling(problem: Problem, settings: Settings) -> Tally:
    """Estimate the count from random regions alone."""
    return estimate(problem, settings, whole(problem, settings), method="sample")


def everything(problem: Problem) -> Rest:
    """Return all masks as the rest."""
    return Rest(0, range(problem.n_masks), None, Bounds(0, problem.n_regions))


def whole(problem: Problem, settings: Settings) -> Rest:
    """Return everything as the rest, but for masks that no pair can make sensitive."""
    if problem.n_pairs_about > MAX_CHECKED_PAIRS or is_cheap(problem, settings):
        return everything(problem)
    pairs = list(problem.pairs())
    counter = _core.ExactCounter(problem.forest, problem.masks, problem.threshold_limbs)
    known = Bounds(0, problem.n_regions)
    left = settings.seconds_left()
    seconds = math.inf if left is None else left
    progress = Progress(0.0, known.low, known.high, "looking at pairs")
    live = counter.live(pairs, settings.n_threads, seconds, lambda: settings.report(progress))
    kept = [pair for pair, is_live in zip(pairs, live, strict=True) if is_live]
    return Rest(0, sorted({mask for pair in kept for mask in pair}), kept, known)


def is_cheap(problem: Problem, settings: Settings) -> bool:
    """Tell whether to sample at once, since looking at the pairs of masks would cost more."""
    looking = problem.n_pairs_about * len(problem.trees) * _SECONDS_PER_TREE_OF_PAIR
    if looking < PLAIN_SECONDS:
        return False
    estimation = Estimation(problem, settings, everything(problem))
    return estimation.is_needed and estimation.price(worth=looking) < looking


def make_sampler(problem: Problem, rest: Rest) -> _core.Sampler:
    """Compile the trees that matter to the rest; a sample decides all masks at once."""
    masks = (
        np.arange(len(rest.unresolved), dtype=np.int64)
        if rest.unresolved == range(len(rest.unresolved))
        else np.array(rest.unresolved, dtype=np.int64)
    )
    pairs = None
    # Where pairs abound, windows and extremes decide all masks faster than pair by pair.
    if rest.pairs is not None and len(rest.pairs) <= 4 * len(masks):
        pairs = np.array(rest.pairs, dtype=np.int64).reshape(-1, 2)
    return _core.Sampler(problem.forest, problem.masks, problem.threshold_limbs, masks, pairs)


def make_region_sampler(problem: Problem, budget: int | None = None) -> _core.RegionSampler:
    """Compile the trees for samples that are single regions: no list of masks is made.

    ``budget`` is how many nodes the search for one sample may look at before it is left open.
    """
    sensitive, distance = list(problem.query.sensitive), problem.distance
    return _core.RegionSampler(problem.forest, sensitive, distance, problem.threshold_limbs, budget)


def _draws_regions(problem: Problem, settings: Settings, rest: Rest) -> bool:
    """Tell whether a row of all masks, and the pairs among them, would be too much for a sample."""
    if rest.pairs is not None:
        return False
    n_masks, listed = problem.n_masks, 0
    if len(problem.query.sensitive) > 1 and problem.distance is not None:
        listed = problem.n_pairs_about
    if n_masks + listed > MAX_ROW:
        return True
    row = 8 * problem.n_limbs + 1
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
        self._sampler: _core.Sampler | _core.RegionSampler | None = None
        if rest.n_unresolved and self._obstacle is None:
            self._sampler = self._make_sampler()
        self._details: dict[str, Any] = {}
        self._refinements: list[int] = []

    def _make_sampler(self) -> _core.Sampler | _core.RegionSampler:
        problem, rest = self._problem, self._rest
        if not _draws_regions(problem, self._settings, rest):
            try:
                return make_sampler(problem, rest)
            except BudgetError:  # more cells on an axis than a row of masks is made for
                self._rest = replace(everything(problem), known=rest.known)
        return make_region_sampler(problem)

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to estimate at all."""
        if self._obstacle is not None:
            return True
        return self._sampler is not None and self._sampler.n_trees > 0

    def price(self, worth: float) -> float:
        """Guess the cost of the estimate; looking costs a small part of ``worth``."""
        if self._obstacle is not None:
            return 0.0
        cost = self._cost_of_sample()
        plain = self._plain()
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
            try:
                cover = make_cover(self._problem, self._rest)
            except BudgetError:  # trees too large to make differences of
                return plain.run(pilot, method, self._details)
            self._refine(cover, _FIRST_WORK, math.inf)
            if not is_decided(cover):
                batches = PLAIN_SECONDS / self._cost_of_sample() / BATCH
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
        return self._cost_of_sample() * self._needed(pilot, ground)

    def _decided(self, bounds: Bounds, method: str) -> Tally:
        """Return what is known without a sample: exact but for the rounding of volumes."""
        middle = (bounds.low + bounds.high) // 2
        details = {**self._details, "samples": 0}
        return Tally(middle, bounds.low, bounds.high, method, details=details)

    def _stopped(self, method: str, reason: StopReason) -> Tally:
        bounds = self._plain_ground().bounds()
        middle = (bounds.low + bounds.high) // 2
        return Tally(middle, bounds.low, bounds.high, method, reason, details=self._details)

    def _plain_ground(self) -> Ground:
        undecided = self._problem.n_combinations * self._rest.n_unresolved
        return Ground(self._rest.solved, undecided, self._rest.known, self._problem.n_regions)

    def _plain(self) -> Estimator:
        assert self._sampler is not None
        recipe: Callable[[], Draws] = partial(make_sampler, self._problem, self._rest)
        if isinstance(self._sampler, _core.RegionSampler):
            recipe = partial(make_region_sampler, self._problem)
        return Estimator(self._sampler, self._plain_ground(), self._settings, recipe)

    def _cost_of_sample(self) -> float:
        assert self._sampler is not None
        n_trees = self._sampler.n_trees
        if isinstance(self._sampler, _core.RegionSampler):
            return _SECONDS_PER_SAMPLE + n_trees * _SECONDS_PER_REGION_TREE
        trees = n_trees * _SECONDS_PER_TREE
        return _SECONDS_PER_SAMPLE + trees + self._sampler.n_masks * _SECONDS_PER_MASK

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
        pairs = self._rest.pairs
        return pairs is not None and len(pairs) <= _MAX_COVERED_PAIRS

    def _cover(
        self, cover: _core.Cover, plain_pilot: Pilot, plain: Ground
    ) -> tuple[Estimator, Pilot] | Bounds | None:
        """Refine a cover while it pays; return what to run, bounds if all is decided, or None."""
        settings = self._settings
        plain_price = self._plain_price(plain_pilot, plain)
        left = settings.seconds_left()
        deadline = math.inf if left is None else time.monotonic() + left / 2
        before = plain.undecided
        while True:
            ground = covered_ground(self._problem, self._rest, cover)
            self._details["cover_states"] = cover.n_expanded
            self._details["cover_share"] = float(
                Fraction(ground.undecided, self._problem.n_regions)
            )
            if is_decided(cover):
                return ground.bounds()
            estimator = Estimator(cover, ground, settings)
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
        if price > spent and time.monotonic() < deadline:  # else drawing is the small part
            steps = tuple(self._refinements)
            estimator.recipe = partial(make_cover, self._problem, self._rest, steps, cover.work)
        return (estimator, pilot) if price < plain_price else None

    def _refine(self, cover: _core.Cover, target: int, deadline: float) -> None:
        """Refine in slices, until so much work is done, nothing is left, or the time is up."""
        n_threads = self._settings.n_threads
        while (before := cover.work) < target and (left := deadline - time.monotonic()) > 0:
            self._refinements.append(min(_WORK_PER_SLICE, target - before))
            cover.refine(self._refinements[-1], left, n_threads)
            self._report(cover.n_expanded)
            if cover.work == before:
                break
        cover.freeze()

    def _report(self, n_states: int) -> None:
        bounds = self._plain_ground().bounds()
        self._settings.report(Progress(0.0, bounds.low, bounds.high, f"{n_states:,} states"))


def make_cover(
    problem: Problem, rest: Rest, refinements: Sequence[int] = (), work: int | None = None
) -> _core.Cover:
    """Return a cover of the rest; elsewhere, the same one again by the same steps."""
    cover = _core.Cover(problem.forest, problem.masks, problem.threshold_limbs, cover_tasks(rest))
    for step in refinements:
        cover.refine(step, math.inf, 1)
    cover.freeze()
    if work is not None and cover.work != work:
        raise ClusterError(
            f"a worker's cover took {cover.work} steps instead of {work}: its build of xcount "
            "differs; install the same one everywhere"
        )
    return cover


def is_decided(cover: _core.Cover) -> bool:
    """Tell whether a cover leaves nothing open."""
    return cover.open[0] == 0


def pooled(plain_pilot: Pilot, plain: Ground, pilot: Pilot, ground: Ground) -> Pilot:
    """Return what a cover's pilot says together with that of plain samples.

    Plain samples count by the part of their ground that is still open, their hits without those
    that the cover has proved since.
    """
    part = float(Fraction(ground.undecided, plain.undecided))
    proved = float(Fraction(ground.certain - plain.certain, plain.undecided))
    n = plain_pilot.n * part + pilot.n
    hits = max(0.0, plain_pilot.mean - proved) * plain_pilot.n + pilot.mean * pilot.n
    mean = min(1.0, hits / n)
    return Pilot(max(1, round(n)), mean, mean * (1 - mean))


def cover_tasks(rest: Rest) -> list[tuple[list[tuple[int, int]], int]]:
    """Group the unresolved masks by their pairs: masks with the same pairs share a task."""
    pairs_of: dict[int, list[tuple[int, int]]] = {mask: [] for mask in rest.unresolved}
    for pair in rest.pairs or ():
        for mask in pair:
            if mask in pairs_of:
                pairs_of[mask].append(pair)
    groups = Counter(tuple(pairs) for pairs in pairs_of.values() if pairs)
    return [(list(pairs), multiplicity) for pairs, multiplicity in sorted(groups.items())]


def covered_ground(problem: Problem, rest: Rest, cover: _core.Cover) -> Ground:
    """Return what a cover proves, rounded outwards."""
    n = problem.n_combinations
    solved, undecided = (
        Fraction(mantissa) * Fraction(2) ** exponent * n
        for mantissa, exponent in (cover.solved, cover.open)
    )
    certain, slack = _rounded(solved)
    rest_low, rest_slack = _rounded(undecided)
    whole = rest_low + rest_slack
    return Ground(rest.solved + certain, whole, rest.known, problem.n_regions, slack)


def _rounded(regions: Fraction) -> tuple[int, int]:
    """Return a number of regions from below, and how much larger it may be."""
    if regions < _EXACT_REGIONS:
        return round(regions), 0
    low = math.floor(regions * (1 - FLOAT_MARGIN))
    return low, math.ceil(regions * (1 + FLOAT_MARGIN)) - low


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
