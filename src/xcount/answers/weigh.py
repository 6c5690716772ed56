"""The weight of the sensitive regions under a mixture of product measures.

It is the sum over the products and the masks of (weight of the product) x (weight of the mask's
cells) x (weight of the combinations that make it sensitive), found exactly (but for the rounding of
floats) where the budget allows, and by sampling under the mixture where not. A missing value weighs
nothing in a volume.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from xcount.answers.measured import Measured
from xcount.answers.pieces import products_of, weighed_parts
from xcount.answers.result import Verdict, verdict_of
from xcount.counters.bounds import Bounds
from xcount.counters.corners import CornerRun, corner_seconds
from xcount.counters.decisions import MAX_FLAGS, RegionDecider
from xcount.counters.exact import ExactRun, looking_seconds
from xcount.counters.known_counts import HARD_STEPS
from xcount.counters.sampling.draws import CellDraws, Drawn, WeighedRegionDraws
from xcount.counters.sampling.estimator import Estimator, Ground, OutOfTimeError, run_through
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
        return _estimate(name, problem, drawn, settings, details, _Exact(0.0, []))
    if problem.n_masks > MAX_FLAGS:
        text = f"{scientific_text(problem.n_masks)} masks are too many to weigh"
        raise BudgetError(text, code="too_many_masks")
    products = products_of(problem, components)
    parts = weighed_parts(problem, products)
    if parts is None:
        return _weigh_products(name, problem, products, settings, details)
    whole = math.fsum(mass for _, _, mass in parts)
    if not whole > 0:
        raise QueryError(f"nothing of the domain has any weight under {name!r}")
    own = replace(settings, delta=settings.delta / len(parts), max_share=None)
    found = [(mass / whole, unknown(name, StopReason.DECIDED)) for _, _, mass in parts]
    for number, (part, inside, _) in enumerate(parts):
        limited = own.within(1 / (len(parts) - number), LEAST_SECONDS, DEFAULT_TIMEOUT_SECONDS)
        found[number] = (found[number][0], _weigh_products(name, part.problem, inside, limited, {}))
        measured = _together(name, found, settings, details)
        if _is_decided(measured, settings):
            break
    return measured


def _together(
    name: str,
    found: Sequence[tuple[float, Measured]],
    settings: Settings,
    details: dict[str, Any],
) -> Measured:
    """Add up what parts weigh."""
    low, high = (
        min(1.0, math.fsum(mass * getattr(measured, end) for mass, measured in found))
        for end in ("low", "high")
    )
    shares = [(mass, m.share) for mass, m in found if m.share is not None]
    share = math.fsum(m * s for m, s in shares) if len(shares) == len(found) else None
    is_exact = all(measured.exact for _, measured in found)
    reasons = [m.stop_reason for _, m in found if m.stop_reason is not StopReason.COMPLETE]
    confidence = 1.0 if is_exact else 1 - settings.delta
    reason = reasons[0] if reasons else StopReason.COMPLETE
    kept = share if share is None else min(1.0, share)
    return Measured(name, kept, low, high, is_exact, confidence, reason, details)


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
        early = _estimate_early(name, problem, products, settings, details)
        if early is not None:
            return early
    known = _exact_shares(problem, products, settings, MAX_STEPS)
    if not known.rest:
        return known.measured(name, details)
    found = _estimate(name, problem, products, settings, details, known)
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
    name: str,
    problem: Problem,
    products: Sequence[Drawn],
    settings: Settings,
    details: dict[str, Any],
) -> Measured | None:
    """Draw a few samples; return what they say where that decides the limit, or was interrupted."""
    masks = np.flatnonzero(sum(product.mask_weights for product in products)).tolist()
    estimator = _estimator(problem, products, settings, _Exact(0.0, masks))
    reason = StopReason.DECIDED
    try:
        slices = estimator.slices(estimator.pilot())
        work = estimator.pilot_seconds
        for cost in slices:
            work += cost
            if work > EARLY_SECONDS:
                slices.close()
    except OutOfTimeError:
        return None
    except KeyboardInterrupt:
        reason = StopReason.INTERRUPTED
    found = _measured(name, estimator, reason, details)
    if reason is StopReason.INTERRUPTED or _is_decided(found, settings):
        return replace(found, confidence=1 - 2 * settings.delta)
    return None


def _estimate(
    name: str,
    problem: Problem,
    products: Sequence[Drawn],
    settings: Settings,
    details: dict[str, Any],
    known: _Exact,
) -> Measured:
    """Estimate the weight of the open masks: one product's, or all masks of a mixture."""
    estimator = _estimator(problem, products, settings, known)
    reason = StopReason.TIMEOUT
    try:
        reason = run_through(estimator.slices(estimator.pilot()))
    except OutOfTimeError:
        pass
    except KeyboardInterrupt:
        reason = StopReason.INTERRUPTED
    return _measured(name, estimator, reason, details)


def _estimator(
    problem: Problem,
    products: Sequence[Drawn],
    settings: Settings,
    known: _Exact,
) -> Estimator:
    """Return who draws from the open masks; from all regions, where masks are too many to list."""
    if RegionDecider(problem).searches:
        whole = Ground(0, _UNITS, Bounds(0, _UNITS), _UNITS)
        return Estimator(WeighedRegionDraws(problem, products), whole, settings)
    rest = known.rest
    masses = [product.mask_weights[rest] for product in products]
    undecided = math.fsum(masses[0]) if len(products) == 1 else 1.0
    drawn = [
        Drawn(product.weight, own / own.sum(), product.cell_weights)
        for product, own in zip(products, masses, strict=True)
    ]
    ground = Ground(
        certain=int(known.share * _UNITS),
        undecided=math.ceil(undecided * _UNITS),
        known=Bounds(0, _UNITS),
        n_regions=_UNITS,
    )
    return Estimator(CellDraws(problem, rest, drawn), ground, settings)


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
    return corner_seconds(problem, settings.within(0.5)) * n_products <= MAX_VISIT_SECONDS


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
