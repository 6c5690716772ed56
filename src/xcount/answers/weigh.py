"""The weight of the sensitive regions under a mixture of product measures.

It is the sum over the products and the masks of (weight of the product) x (weight of the mask's
cells) x (weight of the combinations that make it sensitive), found exactly (but for the rounding of
floats) where the budget allows, and by sampling under the mixture where not. A missing value weighs
nothing in a volume.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from xcount.answers.measured import Measured
from xcount.answers.pieces import WeighedPart, products_of, weighed_parts
from xcount.answers.result import Verdict, verdict_of
from xcount.counters.bounds import Bounds
from xcount.counters.corners import CornerRun, corner_seconds
from xcount.counters.decisions import MAX_FLAGS, RegionDecider, is_long_row
from xcount.counters.exact import ExactRun, looking_seconds
from xcount.counters.known_counts import HARD_STEPS
from xcount.counters.sampling.box_draws import WeighedBoxDraws
from xcount.counters.sampling.draws import CellDraws, Drawn, WeighedRegionDraws
from xcount.counters.sampling.estimator import Estimator, Ground, run_through
from xcount.counters.settings import DEFAULT_TIMEOUT_SECONDS, Settings
from xcount.counters.tally import StopReason
from xcount.errors import BudgetError, QueryError
from xcount.problem.problem import Problem
from xcount.question.population import Component
from xcount.question.weighting import Weights
from xcount.support.dataclass import dataclass
from xcount.support.numerals import scientific_text

MAX_STEPS, MAX_TASK_STEPS = 120_000_000, 3_000_000
"""Steps of exact weighing in a round: of all subproblems together, and of one in the first."""
MAX_LISTED = 2**20
"""Masks up to which each is weighed, where all regions are visited or solved."""
MAX_TERMS = 200_000
"""Pairs of masks of all subproblems beyond which only sampling is tried."""
MAX_VISIT_SECONDS = 2.0
"""Up to here, in seconds of one core, all regions are visited."""
FREE_STEPS = 3_000_000
"""Steps of exact weighing before a few samples may decide a limit: an exact share says more."""
EARLY_SECONDS = 0.2
"""What samples that may decide a limit cost before exact weighing, in seconds of one core."""
LEAST_SECONDS = 0.1
"""How long a measure is tried although the time is over."""
_UNITS = 2**60
"""Whole numbers that stand for the weight 1, where an estimate counts in whole numbers."""


def unknown(name: str, reason: StopReason, refusal: BudgetError | None = None) -> Measured:
    """Return a measure of which nothing is known, and why it was refused, if it was."""
    details = {} if refusal is None else {"note": str(refusal), "note_code": refusal.code}
    return Measured(name, None, 0.0, 1.0, False, 1.0, reason, details)


def weigh(
    name: str,
    problem: Problem,
    components: Sequence[Component],
    settings: Settings,
    details: dict[str, Any],
) -> Measured:
    """Weigh by a mixture of product measures, part by part where rules make parts."""
    if problem.n_masks > MAX_LISTED and RegionDecider(problem).searches:
        drawn = [Drawn(c.weight, np.empty(0), c.cells) for c in components]
        return _estimate(name, _estimator(problem, drawn, settings, _Exact(0.0, [])), details)
    if problem.n_masks > MAX_FLAGS:
        text = f"{scientific_text(problem.n_masks)} masks are too many to weigh"
        raise BudgetError(text, code="too_many_masks")
    products = products_of(problem, components)
    parts = weighed_parts(problem, products)
    if parts is None:
        return _weigh_products(name, problem, products, settings, details)
    if not parts:
        raise QueryError(f"nothing of the domain has any weight under {name!r}")
    return _weigh_parts(name, problem, products, parts, settings, details)


def _weigh_parts(
    name: str,
    problem: Problem,
    products: Sequence[Drawn],
    parts: Sequence[WeighedPart],
    settings: Settings,
    details: dict[str, Any],
) -> Measured:
    """Weigh parts exactly as far as the budget allows; one estimate draws from all open ones."""
    delta = settings.delta
    if settings.max_share is not None:
        looking = sum(looking_seconds(p.part.problem) * len(p.inside) for p in parts)
        cheap = _shares_of_parts(parts, settings, FREE_STEPS if looking < EARLY_SECONDS else 0)
        if not cheap.open or cheap.is_interrupted:
            return cheap.measured(name, details)
        settings = replace(settings, delta=delta / 2)  # a half for each of two estimates
        estimator = cheap.estimator(problem, products, settings)
        early = _estimate_early(name, estimator, settings, details)
        if early is not None:
            return early
    known = _shares_of_parts(parts, settings, MAX_STEPS)
    if not known.open or known.is_interrupted:
        return known.measured(name, details)
    found = _estimate(name, known.estimator(problem, products, settings), details)
    return replace(found, confidence=found.confidence - (delta - settings.delta))


def _shares_of_parts(
    parts: Sequence[WeighedPart], settings: Settings, max_steps: int
) -> _KnownParts:
    """Weigh every part exactly, each with its part of the steps and of half of the time."""
    limited = settings.within(0.5, LEAST_SECONDS, DEFAULT_TIMEOUT_SECONDS)
    shares: list[float | None] = [None] * len(parts)
    try:
        for number, (part, inside, _) in enumerate(parts if max_steps else ()):
            own = limited.within(1 / (len(parts) - number))
            exact = _exact_shares(part.problem, inside, own, max_steps // len(parts))
            shares[number] = None if exact.rest else exact.share
    except KeyboardInterrupt:
        return _KnownParts(parts, shares, is_interrupted=True)
    return _KnownParts(parts, shares)


@dataclass(frozen=True)
class _KnownParts:
    """The sensitive share of each part, None where it is not known."""

    parts: Sequence[WeighedPart]
    shares: Sequence[float | None]
    is_interrupted: bool = False

    @property
    def open(self) -> list[WeighedPart]:
        """The parts whose share is not known."""
        return [p for p, share in zip(self.parts, self.shares, strict=True) if share is None]

    def _of_whole(self, weights: Iterable[float]) -> float:
        whole = math.fsum(part.weight for part in self.parts)
        return min(1.0, max(0.0, math.fsum(weights) / whole))

    @property
    def _certain(self) -> float:
        pairs = zip(self.parts, self.shares, strict=True)
        return self._of_whole(part.weight * share for part, share in pairs if share is not None)

    @property
    def _undecided(self) -> float:
        return self._of_whole(part.weight for part in self.open)

    def measured(self, name: str, details: dict[str, Any]) -> Measured:
        """Return what is known without samples."""
        if not self.open:
            return _Exact(self._certain, []).measured(name, details)
        ends = (self._certain, min(1.0, self._certain + self._undecided))
        return Measured(name, None, *ends, False, 1.0, StopReason.INTERRUPTED, details)

    def estimator(
        self, problem: Problem, products: Sequence[Drawn], settings: Settings
    ) -> Estimator:
        """Return who draws from the open parts, in proportion to their weights."""
        ground = _ground(self._certain, self._undecided)
        draws = WeighedBoxDraws(problem, [part.part for part in self.open], products)
        return Estimator(draws, ground, settings)


def _is_decided(measured: Measured, settings: Settings) -> bool:
    """Tell whether there is a limit, and what is known is on one side of it."""
    limit = settings.max_share
    return limit is not None and verdict_of(limit, measured.judged) is not Verdict.UNDECIDED


def _weigh_products(
    name: str,
    problem: Problem,
    products: Sequence[Drawn],
    settings: Settings,
    details: dict[str, Any],
) -> Measured:
    """Weigh exactly what the budget allows, estimate the rest; a limit may be decided before."""
    if settings.max_share is not None:
        if looking_seconds(problem) * len(products) < EARLY_SECONDS:
            cheap = _exact_shares(problem, products, settings, FREE_STEPS)
            if not cheap.rest:
                return cheap.measured(name, details)
        settings = replace(settings, delta=settings.delta / 2)  # a half for each of two estimates
        masks = np.flatnonzero(sum(product.mask_weights for product in products)).tolist()
        estimator = _estimator(problem, products, settings, _Exact(0.0, masks))
        early = _estimate_early(name, estimator, settings, details)
        if early is not None:
            return early
    known = _exact_shares(problem, products, settings, MAX_STEPS)
    if not known.rest:
        return known.measured(name, details)
    found = _estimate(name, _estimator(problem, products, settings, known), details)
    early_delta = 0.0 if settings.max_share is None else settings.delta
    return replace(found, confidence=found.confidence - early_delta)


@dataclass(frozen=True, slots=True)
class _Exact:
    """What is known to be sensitive, as a share, and the masks that are open."""

    share: float
    rest: list[int]

    def measured(self, name: str, details: dict[str, Any]) -> Measured:
        """Return the share where no mask is open."""
        share = min(1.0, max(0.0, self.share))
        return Measured(name, share, share, share, True, 1.0, StopReason.COMPLETE, details)


def _exact_shares(
    problem: Problem, products: Sequence[Drawn], settings: Settings, max_steps: int
) -> _Exact:
    """Weigh exactly; of a mixture all or nothing: a part of a part would gain little."""
    certain: list[float] = []
    for product in products:
        share, rest = _known_share(problem, product, settings, len(products), max_steps)
        if rest and len(products) > 1:
            return _Exact(0.0, list(range(problem.n_masks)))
        certain.append(product.weight * share)
    return _Exact(math.fsum(certain), rest)


def _known_share(
    problem: Problem, product: Drawn, settings: Settings, n_products: int, max_steps: int
) -> tuple[float, list[int]]:
    """Return the weight of what is known to be sensitive, and the masks that are open."""
    masses, weights = product.mask_weights, list(product.cell_weights)
    masks = np.flatnonzero(masses).tolist()
    solved = _visited_shares(problem, weights, settings, n_products)
    if solved is None:
        solved = _solved_shares(problem, weights, masks, settings, max_steps // n_products)
    certain = math.fsum(masses[mask] * share for mask, share in solved.items())
    return certain, [mask for mask in masks if mask not in solved]


def _estimate_early(
    name: str, estimator: Estimator, settings: Settings, details: dict[str, Any]
) -> Measured | None:
    """Draw a few samples; return what they say where that decides the limit, or was interrupted."""
    reason = StopReason.DECIDED
    try:
        slices = estimator.slices(estimator.pilot())
        work = estimator.pilot_seconds
        for cost in slices:
            work += cost
            if work > EARLY_SECONDS:
                slices.close()
    except KeyboardInterrupt:
        reason = StopReason.INTERRUPTED
    found = _measured(name, estimator, reason, details)
    if reason is StopReason.INTERRUPTED or _is_decided(found, settings):
        return replace(found, confidence=1 - 2 * settings.delta)
    return None


def _estimate(name: str, estimator: Estimator, details: dict[str, Any]) -> Measured:
    """Estimate the weight of what is open."""
    try:
        reason = run_through(estimator.slices(estimator.pilot()))
    except KeyboardInterrupt:
        reason = StopReason.INTERRUPTED
    return _measured(name, estimator, reason, details)


def _estimator(
    problem: Problem,
    products: Sequence[Drawn],
    settings: Settings,
    known: _Exact,
) -> Estimator:
    """Return who draws from the open masks: one product's, or all masks of a mixture.

    Where masks are too many to decide a row of them, it draws from all regions.
    """
    decider = RegionDecider(problem)
    if decider.searches or (
        not known.share
        and len(known.rest) == _n_weighed(products)
        and decider.can_search
        and is_long_row(problem)
    ):
        whole = Ground(0, _UNITS, Bounds(0, _UNITS), _UNITS)
        return Estimator(WeighedRegionDraws(problem, products), whole, settings)
    rest = known.rest
    masses = [product.mask_weights[rest] for product in products]
    undecided = math.fsum(masses[0]) if len(products) == 1 else 1.0
    drawn = [
        Drawn(product.weight, own / own.sum(), product.cell_weights)
        for product, own in zip(products, masses, strict=True)
    ]
    return Estimator(CellDraws(problem, rest, drawn), _ground(known.share, undecided), settings)


def _n_weighed(products: Sequence[Drawn]) -> int:
    """Return how many masks have any weight."""
    return int(np.count_nonzero(sum(product.mask_weights for product in products)))


def _ground(certain: float, undecided: float) -> Ground:
    """Return what is known before sampling, of weights in whole numbers."""
    return Ground(
        certain=int(certain * _UNITS),
        undecided=math.ceil(undecided * _UNITS),
        known=Bounds(0, _UNITS),
        n_regions=_UNITS,
    )


def _measured(
    name: str, estimator: Estimator, reason: StopReason, details: dict[str, Any]
) -> Measured:
    """Return what samples say so far."""
    tally = estimator.tally("sample", reason, {})
    low, high = (float(Fraction(n, _UNITS)) for n in (tally.low, tally.high))
    share = None if tally.count is None else float(Fraction(tally.count, _UNITS))
    found = {**details, "samples": tally.details["samples"]}
    return Measured(name, share, low, high, False, tally.confidence, reason, found)


def _is_soon_visited(problem: Problem, settings: Settings, n_products: int) -> bool:
    """Tell whether a visit of all regions, one for each product, takes next to no time."""
    seconds = corner_seconds(problem, settings.within(0.5), is_weighed=True)
    return seconds * n_products <= MAX_VISIT_SECONDS


def _visited_shares(
    problem: Problem, weights: Weights, settings: Settings, n_products: int
) -> dict[int, float] | None:
    """Return the weight of what makes each mask sensitive, where all regions are soon visited."""
    if not _is_soon_visited(problem, settings, n_products):
        return None
    try:
        run = CornerRun(problem, settings.within(0.5), weights)
    except BudgetError:
        return None
    run.visit()
    if run.stop_reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    return dict(enumerate(run.shares.tolist())) if run.is_complete else None


def _solved_shares(
    problem: Problem, weights: Weights, masks: list[int], settings: Settings, max_steps: int
) -> dict[int, float]:
    """Return the weight of what makes a mask sensitive, for the masks that the budget suffices for.

    Half of the time is left to sampling.
    """
    if problem.form.n_terms > MAX_TERMS:
        return {}
    run = ExactRun(problem, settings.within(0.5), weights=weights, masks=masks)
    run.solve(())
    run.solve((max(1, min(MAX_TASK_STEPS, max_steps // max(1, run.n_subproblems))),))
    hard = max_steps // run.n_open_subproblems if run.n_open_subproblems else 0
    if hard > HARD_STEPS:  # a few hard ones, in parts
        run.solve((hard,))
    if run.stop_reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    bounds = zip(masks, run.all_mask_bounds(), strict=True)
    return {mask: low for mask, (low, high) in bounds if low == high}
