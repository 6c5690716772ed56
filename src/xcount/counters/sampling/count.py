"""Estimate a count: the part left to estimate, and the source of its samples.

The open part of a count is a :class:`Rest`. A sample from all of it decides all open masks at once
(a row), or a single region if there are too many masks. If hits are rare, a cover of the open part
is refined first: its decided part is certain, and hits are more frequent in its open part.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from xcount.counters import costs
from xcount.counters.cover import can_cover_pairs, is_affordable, seconds_of_trees
from xcount.counters.decisions import is_long_row, n_decided_together
from xcount.counters.engine import Draws
from xcount.counters.exact import ExactRun
from xcount.counters.sampling.draws import (
    BATCH,
    CellDraws,
    CoverDraws,
    PairCoverDraws,
    RegionDraws,
    RowDraws,
)
from xcount.counters.sampling.estimator import Estimator, KnownPart
from xcount.counters.sampling.pilot import Pilot
from xcount.counters.sampling.policy import SuccessiveEstimates
from xcount.counters.settings import DEFAULT_MEMORY_BYTES, Settings
from xcount.counters.tally import Bounds, Progress, StopReason, Tally
from xcount.counters.visit import pair_scan_seconds, visited
from xcount.errors import BudgetError
from xcount.problem.form import refuse_many_masks
from xcount.problem.problem import Problem
from xcount.problem.subproblem import Pair, Subproblem
from xcount.support.process import held_memory_bytes

Cover = CoverDraws | PairCoverDraws

# ---- what is left to estimate ----


@dataclass(frozen=True, slots=True)
class Rest:
    """The part of a count that is left to estimate.

    Attributes:
        solved: the sensitive regions of all other masks.
        unresolved: the masks to estimate.
        pairs: the pairs of masks that may differ by more than the gap and touch an unresolved
            mask; None for all neighbours.
        known: bounds of the whole count that are certain.
    """

    solved: int
    unresolved: Sequence[int]
    pairs: Sequence[Pair] | None
    known: Bounds

    @classmethod
    def everything(cls, problem: Problem) -> Rest:
        """Return all masks as the rest."""
        return cls(0, problem.counted_masks, None, Bounds(0, problem.n_regions))

    @classmethod
    def of(cls, run: ExactRun) -> Rest:
        """Return what an exact run leaves open."""
        unresolved = run.unsolved_masks()
        is_open = set(unresolved)
        bounds = zip(run.masks, run.all_mask_bounds(), strict=True)
        solved = sum(low for mask, (low, _) in bounds if mask not in is_open)
        return cls(solved, unresolved, run.open_pairs(), run.bounds())

    @property
    def n_unresolved(self) -> int:
        """The number of unresolved masks; a range may be too long for ``len``."""
        masks = self.unresolved
        return masks.stop - masks.start if isinstance(masks, range) else len(masks)

    def cover_tasks(self) -> list[tuple[Subproblem, int]]:
        """Return the subproblems of a cover, each with the number of masks that share its pairs."""
        pairs_of: dict[int, list[Pair]] = {mask: [] for mask in self.unresolved}
        for pair in self.pairs or ():
            for mask in pair:
                if mask in pairs_of:
                    pairs_of[mask].append(pair)
        groups = Counter(tuple(pairs) for pairs in pairs_of.values() if pairs)
        return [(Subproblem(pairs), n_times) for pairs, n_times in sorted(groups.items())]


# ---- what to draw from ----


def _draws_regions(problem: Problem, settings: Settings, rest: Rest) -> bool:
    """Return whether a row of all masks, and the pairs among them, is too much for a sample."""
    if rest.pairs is not None:
        return False
    if is_long_row(problem):
        return True
    n_masks, together = problem.n_masks, n_decided_together(problem)
    row = 8 * problem.form.corner_question.outputs[0].n_limbs + 1
    needed = n_masks * (costs.BYTES_PER_MASK + settings.n_threads * row)
    needed += costs.BYTES_PER_PAIR * (together - n_masks)
    return (
        settings.memory_bytes is not None and held_memory_bytes() + needed > settings.memory_bytes
    )


def _obstacle(problem: Problem, settings: Settings, rest: Rest) -> StopReason | None:
    """Return the limit that even the first sample would exceed, if there is one."""
    if rest.pairs is not None or settings.memory_bytes is None:
        return None
    needed = costs.BYTES_PER_TREE_NODE * sum(tree.n_nodes for tree in problem.trees)
    return StopReason.MEMORY if held_memory_bytes() + needed > settings.memory_bytes else None


class CountEstimate:
    """An estimate of a count: from the whole rest, or from the open part of a cover.

    It is a :class:`xcount.counters.sampling.policy.Estimate`. A sample from the whole rest decides
    all masks at once. If hits are rare, a cover is refined first, as long as that promises to save
    more samples than it costs. Costs are counted in states and samples, so that the choice is the
    same everywhere.

    Attributes:
        rest: what is estimated.
        stop_reason: why the estimate ended, once it has.
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
        self._plain: Estimator | None = None  # draws from the whole rest; made when needed
        self._chosen: Estimator | None = None  # draws the samples of the answer
        self._certain: Bounds | None = None  # set if the answer needs no sample
        self.stop_reason = StopReason.COMPLETE

    def _make_draws(self) -> Draws:
        problem, rest = self._problem, self.rest
        if not _draws_regions(problem, self._settings, rest):
            space = problem.form.native_draws()
            if space is None:
                return CellDraws(problem, rest.unresolved)
            draws = RowDraws(space, rest.unresolved, rest.pairs)
            try:
                draws.n_trees  # noqa: B018  # makes the native sampler
            except BudgetError:  # more cells on an axis than a row of masks supports
                pass
            else:
                return draws
        if problem.starts is not None:
            refuse_many_masks(problem.n_masks, 0)
        # Regions are drawn with all masks, solved ones included.
        self.rest = replace(Rest.everything(problem), known=rest.known)
        return RegionDraws(problem.form.corner_question)

    def limit(self, settings: Settings) -> None:
        """Continue within these limits; delta stays the same."""
        self._settings = replace(settings, delta=self._settings.delta)
        if self._plain is not None:
            self._plain.limit(settings)

    def spend(self, delta: float) -> None:
        """Use this chance of being wrong; called before the first slice."""
        self._settings = replace(self._settings, delta=delta)
        if self._plain is not None:
            self._plain.spend(delta)

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to estimate."""
        if self._obstacle is not None:
            return True
        return self._draws is not None and self._draws.n_trees > 0

    def price(self, worth: float) -> float:
        """Predict the cost of the estimate by a pilot that costs a small part of ``worth``."""
        return 0.0 if self._obstacle is not None else self._plain_estimator().price(worth)

    @property
    def pilot_seconds(self) -> float:
        """The cost of the pilot so far, in seconds of one core."""
        return 0.0 if self._draws is None else self._plain_estimator().pilot_seconds

    def seconds_left(self) -> float:
        """Predict the remaining cost of the estimate, in seconds of one core."""
        return math.inf if self._chosen is None else self._chosen.seconds_left()

    def run(self, method: str, details: Mapping[str, Any]) -> Tally:
        """Run the estimate to its end, and return the tally."""
        try:
            for _ in self.slices():
                pass
        except KeyboardInterrupt:
            self.stop_reason = StopReason.INTERRUPTED
        return self.tally(method, details)

    def slices(self) -> Generator[float, None, None]:
        """Estimate in slices; yield the cost of each, in seconds of one core."""
        if not self.is_needed:
            self._certain = Bounds(self.rest.solved, self.rest.solved)
        elif self._obstacle is not None:
            self.stop_reason = self._obstacle
        else:
            yield from self._drawn()

    def bounds(self) -> Bounds:
        """Return the bounds of C so far."""
        if self._certain is not None:
            return self._certain
        return self._known_part().bounds() if self._chosen is None else self._chosen.bounds()

    def narrow(self, known: Bounds) -> None:
        """Adopt bounds that are certain."""
        self.rest = replace(self.rest, known=self.rest.known.meet(known))
        if self._certain is not None:
            self._certain = self._certain.meet(known)
        if self._chosen is not None:
            self._chosen.narrow(known)

    def tally(self, method: str, details: Mapping[str, Any]) -> Tally:
        """Return the tally so far."""
        details = {**self._details, **details}
        if self._certain is not None:
            return _decided(self._certain, self._settings.epsilon, method, details)
        if self._chosen is not None:
            self._chosen.stop_reason = self.stop_reason
            return self._chosen.tally(method, details)
        return Tally.of_bounds(*self.bounds(), method, self.stop_reason, details=details)

    def _drawn(self) -> Generator[float, None, None]:
        """Draw from the whole rest, or from a cover if plain samples are expensive."""
        plain, thresholds = self._plain_estimator(), self._settings.thresholds
        before = plain.pilot_seconds
        pilot = plain.pilot()
        yield plain.pilot_seconds - before
        chosen = (plain, pilot)
        if plain.price_by(pilot) > thresholds.plain_seconds:
            if (cover := (yield from self._make_cover())) is None:
                yield from self._run(plain, pilot)
                return
            if not cover.is_decided:
                before = plain.pilot_seconds
                batches = thresholds.plain_seconds / plain.seconds_per_sample / BATCH
                pilot = plain.pilot(math.ceil(batches))
                yield plain.pilot_seconds - before
            chosen = (yield from self._covered(cover, plain, pilot)) or (plain, pilot)
            if self._certain is not None:
                return
        yield from self._run(*chosen)

    def _make_cover(self) -> Generator[float, None, Cover | None]:
        """Return a cover with its first work done; None if none fits the limits."""
        problem, pairs = self._problem, self.rest.pairs
        max_bytes = self._settings.free_bytes() // 2
        cover: Cover
        try:
            if isinstance(self._draws, RowDraws) and can_cover_pairs(problem, self._settings):
                space = problem.form.native_draws()
                assert space is not None
                cover = PairCoverDraws(space, self._draws, max_bytes)
            elif pairs is not None and is_affordable(problem, self._settings, len(pairs)):
                yield seconds_of_trees(problem, len(pairs))
                cover = CoverDraws(problem.space, self.rest.cover_tasks(), max_bytes)
            else:
                return None
            self._refine(cover, self._settings.thresholds.first_cover_work, math.inf)
        except BudgetError:  # trees too large to make differences of
            return None
        yield cover.work * cover.seconds_per_work
        return cover

    def _run(self, estimator: Estimator, pilot: Pilot) -> Generator[float, None, None]:
        self._chosen = estimator
        yield from estimator.slices(pilot)
        self.stop_reason = estimator.stop_reason

    def _known_part(self) -> KnownPart:
        undecided = self._problem.n_combinations * self.rest.n_unresolved
        return KnownPart(self.rest.solved, undecided, self.rest.known, self._problem.n_regions)

    def _cover_known_part(self, cover: Cover) -> KnownPart:
        """Return the part that a cover proves, in whole regions."""
        certain, undecided = cover.counts(self._problem.n_combinations)
        known, n_regions = self.rest.known, self._problem.n_regions
        slack = math.floor(undecided * cover.rounding)
        return KnownPart(self.rest.solved + certain, undecided, known, n_regions, slack)

    def _plain_estimator(self) -> Estimator:
        """Return the estimator that draws from the whole rest."""
        if self._plain is None:
            assert self._draws is not None
            settings = self._settings
            if isinstance(self._draws, RegionDraws):
                part = costs.TUNING_PART * settings.search_seconds()
                seed = settings.seed & (2**64 - 1)
                is_tuned = self._draws.tune(seed, settings.n_threads, part, self._tell)
                settings.cuts.samples |= not is_tuned
            self._plain = Estimator(self._draws, self._known_part(), settings, series=self._series)
        return self._plain

    def _tell(self) -> None:
        """Report that the run is still going; the listener may end it by raising."""
        self._settings.report(Progress(0.0, *self.rest.known, "a few samples"))

    def _covered(
        self, cover: Cover, plain: Estimator, plain_pilot: Pilot
    ) -> Generator[float, None, tuple[Estimator, Pilot] | None]:
        """Refine a cover while it pays; return what to run, None if it is not worth it.

        If the cover decides everything, the answer is certain and needs no sample.
        """
        settings = self._settings
        plain_price = plain.price_by(plain_pilot)
        half = settings.within(0.5)
        deadline = math.inf if half.timeout_seconds is None else half.started + half.timeout_seconds
        before = plain.known_part.undecided
        while True:
            known_part = self._cover_known_part(cover)
            self._details["cover_states"] = cover.n_states
            open_share = Fraction(known_part.undecided, self._problem.n_regions)
            self._details["cover_share"] = float(min(Fraction(1), open_share))
            if cover.is_decided:
                self._certain = known_part.bounds()
                return None
            estimator = Estimator(cover, known_part, settings, is_long=False, series=self._series)
            drawn = estimator.pilot(costs.COVER_PILOT_BATCHES)
            pilot = _pooled(plain_pilot, plain.known_part, drawn, known_part)
            yield estimator.pilot_seconds
            price = cover.seconds_per_sample * estimator.samples_needed(pilot)
            spent = cover.work * cover.seconds_per_work
            limit = settings.memory_bytes or DEFAULT_MEMORY_BYTES
            is_late = time.monotonic() >= deadline
            settings.cuts.samples |= is_late
            full = cover.is_full or cover.n_bytes * 3 > limit or is_late
            # Doubling the work may shrink the cover twice as much as the last doubling did.
            gain = price * (1 - float(Fraction(known_part.undecided, before)) ** 2)
            is_promising = gain > spent or spent < settings.thresholds.trial_part * plain_price
            if price <= spent or full or 2 * spent > plain_price or not is_promising:
                break
            before = known_part.undecided
            self._refine(cover, 2 * cover.work, deadline)
            yield cover.work * cover.seconds_per_work - spent
        is_long = price > spent and time.monotonic() < deadline  # else a small part
        estimator.is_long = is_long and not isinstance(cover, PairCoverDraws)
        return (estimator, pilot) if price < plain_price else None

    def _refine(self, cover: Cover, target: int, deadline: float) -> None:
        n_threads = self._settings.n_threads
        cover.refine(target, deadline, n_threads, lambda: self._report(cover.n_states))

    def _report(self, n_states: int) -> None:
        bounds = self._known_part().bounds()
        self._settings.report(Progress(0.0, *bounds, f"{n_states:,} states"))


def _pooled(plain_pilot: Pilot, plain: KnownPart, pilot: Pilot, covered: KnownPart) -> Pilot:
    """Return the pilot of a cover pooled with that of plain samples.

    Plain samples count by the part of their regions that is still open; their hits exclude those
    that the cover has proved since.
    """
    part = float(Fraction(covered.undecided, plain.undecided))
    proved = float(Fraction(covered.certain - plain.certain, plain.undecided))
    n = plain_pilot.n * part + pilot.n
    hits = max(0.0, plain_pilot.mean - proved) * plain_pilot.n + pilot.mean * pilot.n
    mean = min(1.0, hits / n)
    # Outcomes other than 0 and 1 vary less than hits do.
    variance = mean * (pilot.variance / pilot.mean if pilot.mean else 1.0)
    return Pilot(max(1, round(n)), mean, min(mean * (1 - mean), variance))


def _decided(bounds: Bounds, epsilon: float, method: str, details: Mapping[str, Any]) -> Tally:
    """Return the tally without any sample: exact except for the rounding of volumes."""
    count = bounds.settled(epsilon)
    reason = StopReason.STEPS if count is None else StopReason.COMPLETE
    return Tally(count, *bounds, method, reason, details={**details, "samples": 0})


def estimates_of(run: ExactRun, settings: Settings) -> SuccessiveEstimates:
    """Return estimates of the masks that an exact run leaves open."""

    def make(settings: Settings, known: Bounds, series: int) -> CountEstimate:
        rest = replace(Rest.of(run), known=known)
        return CountEstimate(run.problem, settings, rest, series=series)

    return SuccessiveEstimates(run, settings, make)


# ---- counting by samples only ----


def estimate_everything(problem: Problem, settings: Settings, method: str) -> Tally:
    """Estimate the count from samples of all masks."""
    return CountEstimate(problem, settings, Rest.everything(problem)).run(method, {})


def count_by_sampling(problem: Problem, settings: Settings) -> Tally:
    """Estimate the count from samples only: method ``sample``."""
    estimate = CountEstimate(problem, settings, rest_to_sample(problem, settings))
    tally = estimate.run("sample", {})
    if tally.stop_reason is StopReason.STEPS and problem.n_regions <= costs.MAX_SMALL_VISIT:
        # Nothing was hit in more samples than there are regions: a visit of all is cheaper.
        return visited(problem, settings, "sample") or tally
    return tally


def rest_to_sample(problem: Problem, settings: Settings) -> Rest:
    """Return all masks as the rest, except those that bounds prove to be never sensitive."""
    n_terms, most = problem.form.n_terms, settings.thresholds.max_checked_terms
    if n_terms > most or is_cheap_to_sample(problem, settings):
        return Rest.everything(problem)
    run = ExactRun(problem, settings.within(costs.PAIR_SCAN_PART))
    run.solve(())
    if run.stop_reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    settings.cuts.samples |= run.stop_reason is StopReason.TIMEOUT
    return replace(Rest.of(run), known=Rest.everything(problem).known)


def is_cheap_to_sample(problem: Problem, settings: Settings) -> bool:
    """Return whether an estimate of everything costs less than a scan of the pairs of masks."""
    scan = pair_scan_seconds(problem)
    if scan < settings.thresholds.free_pair_scan_seconds:
        return False
    estimate = CountEstimate(problem, settings, Rest.everything(problem))
    return estimate.is_needed and estimate.price(worth=scan) < scan
