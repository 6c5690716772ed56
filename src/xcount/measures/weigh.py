"""The weight of the sensitive regions under a mixture of product measures.

Exact weighing and sampling run side by side, as they do for a count (see
:mod:`xcount.counters.sampling.policy`). Exact weights are exact but for the rounding of floats.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from xcount.counters.costs import MAX_FLAGS
from xcount.counters.decisions import RegionDecider, is_long_row
from xcount.counters.engine import Draws
from xcount.counters.sampling.estimator import Estimator, KnownPart
from xcount.counters.sampling.policy import Scheduler, SuccessiveEstimates
from xcount.counters.settings import Settings
from xcount.counters.tally import Bounds, StopReason, Tally
from xcount.counters.visit import corner_seconds
from xcount.errors import BudgetError, QueryError
from xcount.measures.draws import MixtureDraws, SearchedDraws
from xcount.measures.exact_shares import (
    UNITS,
    ExactShares,
    is_summed_exactly,
    relative_error,
    visited_shares,
)
from xcount.measures.measured import Measured
from xcount.measures.mixture import Mixture
from xcount.measures.products import ProductComponent, WeighedPart, weighed_parts
from xcount.problem.problem import Problem
from xcount.support.interval import Interval
from xcount.support.numerals import scientific_text

MAX_LISTED = 2**20
"""With more masks than this, single regions are drawn and searched, if possible."""
_ROUNDING = 1e-12
"""Rounding error of the whole weight."""
LEAST_SECONDS = 0.1
"""Time that a measure gets even if no time is left."""


def unknown(name: str, reason: StopReason, refusal: BudgetError | None = None) -> Measured:
    """Return an unknown share, with the reason if it was refused."""
    details = {} if refusal is None else {"note": str(refusal), "note_code": refusal.code}
    return Measured(name, Interval.unknown_share(), reason, details)


def exactly(name: str, share: float, details: Mapping[str, Any]) -> Measured:
    """Return a share that is known exactly."""
    return Measured(name, Interval.exactly(share), details=details)


def weigh(
    mixture: Mixture, problem: Problem, settings: Settings, proved: float | None = None
) -> Measured:
    """Return the sensitive share under a mixture.

    ``proved`` is the share if a count has proved it: 0 for no region, 1 for all regions.
    """
    name, details = mixture.name, mixture.details
    settings = replace(settings, want_profile=False)
    if proved is not None and problem.n_masks > MAX_FLAGS:
        return exactly(name, proved, details)
    if problem.n_masks > MAX_LISTED and RegionDecider(problem).searches:
        everything = KnownPart(0, UNITS, Bounds(0, UNITS), UNITS)
        draws = SearchedDraws(problem, mixture.components)
        estimator = Estimator(draws, everything, settings)
        return _estimated(name, estimator.run("sample", {}), details)
    if problem.n_masks > MAX_FLAGS:
        text = f"{scientific_text(problem.n_masks)} masks are too many to weigh"
        raise BudgetError(text, code="too_many_masks")
    products = mixture.products(problem)
    parts = weighed_parts(problem, products)
    if not parts:
        raise QueryError(f"nothing of the domain has any weight under {name!r}")
    if proved is not None:
        return exactly(name, proved, details)
    return Weight(name, problem, products, parts, settings, details).run()


class Weight(Scheduler[Measured]):
    """Exact weighing, and estimates of the undecided weight, in turns.

    Args:
        name: of the measure.
        problem: the whole question.
        products: the mixture.
        parts: the parts of the domain that have any weight.
        settings: accuracy and limits.
        details: of the result.

    Attributes:
        shares: the exact weighing.
    """

    def __init__(
        self,
        name: str,
        problem: Problem,
        products: Sequence[ProductComponent],
        parts: Sequence[WeighedPart],
        settings: Settings,
        details: Mapping[str, Any],
    ) -> None:
        shares, seconds = ExactShares(parts, settings), _visiting_seconds(parts, settings)
        bounded = shares.only_bounds
        super().__init__(shares, settings, whole=UNITS, visit_seconds=seconds, only_bounds=bounded)
        self._name, self._details = name, dict(details)
        self._problem, self._products, self._parts = problem, products, parts
        self.shares = shares

    def _run(self) -> Measured:
        scan, thresholds = self.shares.pair_scan_seconds, self._thresholds
        is_quick = self._visit_seconds <= max(thresholds.instant_seconds, scan)
        if is_quick and (found := self._visit()) is not None:
            return found
        # A scan of the pairs of masks may cost more than an estimate of everything.
        if scan >= thresholds.free_pair_scan_seconds:
            self._can_count = self._sampling().price(worth=scan) >= scan
        return super()._run()

    @property
    def _free_seconds(self) -> float:
        free = super()._free_seconds
        return min(free, self.shares.pair_scan_seconds) if self._only_bounds else free

    def _make_estimates(self) -> SuccessiveEstimates:
        return SuccessiveEstimates(self.shares, self._settings, self.estimate)

    def estimate(self, settings: Settings, known: Bounds, series: int) -> Estimator:
        """Return an estimate of the currently undecided part."""
        draws, certain, undecided = self._rest()
        known_part = KnownPart(int(certain * UNITS), math.ceil(undecided * UNITS), known, UNITS)
        return Estimator(draws, known_part, settings, series=series)

    def _rest(self) -> tuple[Draws, float, float]:
        """Return draws from the undecided part, the sensitive weight outside it, and its weight."""
        shares, decider = self.shares, RegionDecider(self._problem)
        if self._problem.is_split:
            return self._open_parts()
        # If there are too many masks to decide a row of them, draw from all regions.
        is_untouched = shares.certain == 0 and shares.undecided > 1 - _ROUNDING
        is_long = decider.can_search and is_long_row(self._problem)
        if decider.searches or (is_untouched and is_long):
            return SearchedDraws(self._problem, self._products), 0.0, 1.0
        (open_products,) = shares.products
        drawn = []
        for product, weighed in zip(self._products, open_products, strict=True):
            known = weighed.known
            if len(known.open):
                weights = np.zeros(self._problem.n_masks)
                weights[known.open] = product.mask_weights[known.open]
                own = product.weight * known.open_weight / shares.undecided
                drawn.append(ProductComponent(own, product.cell_weights, weights / weights.sum()))
        return MixtureDraws(self._problem, drawn), shares.certain, shares.undecided

    def _open_parts(self) -> tuple[Draws, float, float]:
        """Return the same for a domain with rules: each part is either undecided or decided."""
        certain, undecided = [], []
        for inside, products in zip(self._parts, self.shares.products, strict=True):
            if any(len(product.known.open) for product in products):
                undecided.append(inside)
            else:
                certain += [product.weight * product.known.certain for product in products]
        draws = MixtureDraws(self._problem, self._products, [each.part for each in undecided])
        return draws, math.fsum(certain), math.fsum(each.weight for each in undecided)

    def _visited(self) -> Measured | None:
        shares, errors = [], []
        for inside in self._parts:
            for product in inside.products:
                found = visited_shares(inside.problem, product, self._settings.within(0.5))
                if found is None:
                    return None
                share = math.fsum(product.mask_weights * found)
                shares.append(inside.weight * product.weight * share)
                is_exact = not self._problem.is_split and is_summed_exactly(product)
                errors.append(0.0 if is_exact else shares[-1] * relative_error(product))
        return self._rounded(math.fsum(shares), math.fsum(errors))

    def _rounded(self, share: float, error: float) -> Measured:
        interval = Interval.rounded(min(1.0, max(0.0, share)), error)
        return Measured(self._name, interval, details=self._details)

    def _weighed(self) -> Measured:
        """Return the weight, or only bounds if it may be a mere rounding error."""
        certain, error = self.shares.certain, self.shares.error
        if certain > error or not error:
            return self._rounded(certain, error)
        high = min(1.0, certain + error)
        return Measured(self._name, Interval(None, 0.0, high, 1.0), details=self._details)

    def _found(self) -> Measured:
        if not self.shares.open_size:
            return self._weighed()
        reason = self._reason()
        if (sampled := self._sampled()) is not None:
            return _estimated(self._name, sampled.tally("sample", reason, {}), self._details)
        bounds = self.shares.bounds()
        count = bounds.settled(self._settings.epsilon)
        tally = Tally(count, bounds.low, bounds.high, "exact", reason)
        return _estimated(self._name, tally, self._details)


def _estimated(name: str, tally: Tally, details: Mapping[str, Any]) -> Measured:
    """Return an estimated or bounded share, from a tally in units of weight."""
    low, high = (float(Fraction(n, UNITS)) for n in (tally.low, tally.high))
    share = None if tally.count is None else float(Fraction(tally.count, UNITS))
    sampled = {name: tally.details[name] for name in ("samples",) if name in tally.details}
    interval = Interval(share, low, high, tally.confidence)
    return Measured(name, interval, tally.stop_reason, {**details, **sampled})


def _visiting_seconds(parts: Sequence[WeighedPart], settings: Settings) -> float:
    """Estimate how long a visit of all regions takes for each product, on one core."""
    half, seconds = settings.within(0.5), 0.0
    for inside in parts:
        seconds += corner_seconds(inside.problem, half, is_weighed=True) * len(inside.products)
        if seconds == math.inf:  # trees need not be laid out on the cells of the other parts
            break
    return seconds
