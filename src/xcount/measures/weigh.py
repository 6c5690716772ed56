"""The weight of the sensitive regions under a mixture of product measures.

It is weighed exactly and estimated from samples under the mixture, side by side, as a count is (see
:mod:`xcount.counters.side_by_side`); what is exact is so but for the rounding of floats. A missing
value weighs nothing in a volume.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from xcount.counters.bounds import Bounds
from xcount.counters.decisions import MAX_FLAGS, RegionDecider, is_long_row
from xcount.counters.engine import Draws
from xcount.counters.exact import FREE_PAIR_SCAN_SECONDS
from xcount.counters.sampling.box_draws import WeighedBoxDraws
from xcount.counters.sampling.draws import CellDraws, ProductComponent, WeighedRegionDraws
from xcount.counters.sampling.estimator import Estimator, KnownPart
from xcount.counters.sampling.plain import PlainEstimation
from xcount.counters.sampling.rest_estimate import RestEstimate
from xcount.counters.settings import Settings
from xcount.counters.side_by_side import INSTANT_SECONDS, SideBySide
from xcount.counters.tally import StopReason, Tally
from xcount.counters.visit import CornerRun, corner_seconds
from xcount.errors import BudgetError, QueryError
from xcount.measures.exact_shares import UNITS, ExactShares
from xcount.measures.measured import Measured
from xcount.measures.population import Component
from xcount.measures.products import Piece, products_of, weighed_pieces
from xcount.problem.problem import Problem
from xcount.support.numerals import scientific_text

MAX_LISTED = 2**20
"""Masks up to which each is weighed, where all regions are visited or solved."""
_ROUNDING = 1e-12
"""The whole weight may be rounded by so much."""
LEAST_SECONDS = 0.1
"""How long a measure is tried although the time is over."""


def unknown(name: str, reason: StopReason, refusal: BudgetError | None = None) -> Measured:
    """Return a measure of which nothing is known, and why it was refused, if it was."""
    details = {} if refusal is None else {"note": str(refusal), "note_code": refusal.code}
    return Measured(name, None, 0.0, 1.0, False, 1.0, reason, details)


def exactly(name: str, share: float, details: Mapping[str, Any]) -> Measured:
    """Return a measure that is known."""
    return Measured(name, share, share, share, True, 1.0, StopReason.COMPLETE, details)


def weigh(
    name: str,
    problem: Problem,
    components: Sequence[Component],
    settings: Settings,
    details: Mapping[str, Any],
    proved: float | None = None,
) -> Measured:
    """Weigh by a mixture of product measures, piece by piece where rules make pieces.

    ``proved`` is what the count has proved of the share: 0 of nothing, 1 of everything.
    """
    settings = replace(settings, want_profile=False)
    if proved is not None and problem.n_masks > MAX_FLAGS:
        return exactly(name, proved, details)
    if problem.n_masks > MAX_LISTED and RegionDecider(problem).searches:
        drawn = [ProductComponent(c.weight, np.empty(0), c.cells) for c in components]
        everything = KnownPart(0, UNITS, Bounds(0, UNITS), UNITS)
        estimator = Estimator(WeighedRegionDraws(problem, drawn), everything, settings)
        return _estimated(name, PlainEstimation(estimator, settings).run("sample", {}), details)
    if problem.n_masks > MAX_FLAGS:
        text = f"{scientific_text(problem.n_masks)} masks are too many to weigh"
        raise BudgetError(text, code="too_many_masks")
    products = products_of(problem, components)
    pieces = weighed_pieces(problem, products)
    if not pieces:
        raise QueryError(f"nothing of the domain has any weight under {name!r}")
    if proved is not None:
        return exactly(name, proved, details)
    return Weight(name, problem, products, pieces, settings, details).run()


class Weight(SideBySide[Measured]):
    """Exact weighing, and estimates of what it leaves open, in turns.

    Args:
        name: of the measure.
        problem: the whole question.
        products: the measures that it is a mixture of.
        pieces: the pieces of the domain that have any weight.
        settings: accuracy and limits.
        details: of the result.

    Attributes:
        shares: what is weighed exactly.
    """

    def __init__(
        self,
        name: str,
        problem: Problem,
        products: Sequence[ProductComponent],
        pieces: Sequence[Piece],
        settings: Settings,
        details: Mapping[str, Any],
    ) -> None:
        shares, corner = ExactShares(pieces, settings), _visiting_seconds(pieces, settings)
        bounded = shares.only_bounds
        super().__init__(shares, settings, whole=UNITS, corner=corner, only_bounds=bounded)
        self._name, self._details = name, dict(details)
        self._problem, self._products, self._pieces = problem, products, pieces
        self.shares = shares

    def _run(self) -> Measured:
        looking = self.shares.pair_scan_seconds
        is_quick = self._corner <= max(INSTANT_SECONDS, looking)
        if is_quick and (found := self._visit()) is not None:
            return found
        # Looking at the pairs of masks may cost more than an estimate of everything.
        if looking >= FREE_PAIR_SCAN_SECONDS:
            self._can_count = self._sampling.price(worth=looking) >= looking
        return super()._run()

    @property
    def _free_seconds(self) -> float:
        free = super()._free_seconds
        return min(free, self.shares.pair_scan_seconds) if self._only_bounds else free

    def _made_estimate(self) -> RestEstimate:
        return RestEstimate(self.shares, self._settings, self.estimation)

    def estimation(self, settings: Settings, known: Bounds, series: int) -> PlainEstimation:
        """Return an estimate of what is open now."""
        draws, certain, undecided = self._rest()
        known_part = KnownPart(int(certain * UNITS), math.ceil(undecided * UNITS), known, UNITS)
        return PlainEstimation(Estimator(draws, known_part, settings, series=series), settings)

    def _rest(self) -> tuple[Draws, float, float]:
        """Return what draws from what is open, what is certain without it, and what it weighs."""
        shares, decider = self.shares, RegionDecider(self._problem)
        if self._problem.grid.rules:
            return self._open_pieces()
        # Where masks are too many to decide a row of them, all regions are drawn from.
        is_untouched = shares.certain == 0 and shares.undecided > 1 - _ROUNDING
        is_long = decider.can_search and is_long_row(self._problem)
        if decider.searches or (is_untouched and is_long):
            return WeighedRegionDraws(self._problem, self._products), 0.0, 1.0
        (open_products,) = shares.products
        known = [product.known for product in open_products]
        masks = np.unique(np.concatenate([each.open for each in known]))
        drawn = []
        for product, each in zip(self._products, known, strict=True):
            if len(each.open):
                weights = np.zeros(len(masks))
                weights[np.searchsorted(masks, each.open)] = product.mask_weights[each.open]
                own = product.weight * each.open_weight / shares.undecided
                drawn.append(ProductComponent(own, weights / weights.sum(), product.cell_weights))
        return CellDraws(self._problem, masks.tolist(), drawn), shares.certain, shares.undecided

    def _open_pieces(self) -> tuple[Draws, float, float]:
        """Return the same in a domain with rules, where pieces are open or not."""
        pairs = list(zip(self._pieces, self.shares.products, strict=True))
        is_open = [any(len(p.known.open) for p in products) for _, products in pairs]
        solved = [products for (_, products), o in zip(pairs, is_open, strict=True) if not o]
        certain = math.fsum(p.weight * p.known.certain for products in solved for p in products)
        pieces = [piece for piece, o in zip(self._pieces, is_open, strict=True) if o]
        parts = [piece.part for piece in pieces if piece.part is not None]
        draws = WeighedBoxDraws(self._problem, parts, self._products)
        return draws, certain, math.fsum(piece.weight for piece in pieces)

    def _visited(self) -> Measured | None:
        shares = []
        for piece in self._pieces:
            for product in piece.products:
                found = _visited_share(piece.problem, product, self._settings)
                if found is None:
                    return None
                shares.append(piece.weight * product.weight * found)
        return self._exactly(math.fsum(shares))

    def _exactly(self, share: float) -> Measured:
        return exactly(self._name, min(1.0, max(0.0, share)), self._details)

    def _weighed(self) -> Measured:
        """Return what exact weighing found, within bounds where rounding may be all of it."""
        certain, doubt = self.shares.certain, self.shares.doubt
        if certain > doubt or not doubt:
            return self._exactly(certain)
        high = min(1.0, certain + doubt)
        complete = StopReason.COMPLETE
        return Measured(self._name, None, 0.0, high, False, 1.0, complete, self._details)

    def _found(self) -> Measured:
        if not self.shares.open_size:
            return self._weighed()
        reason = self._reason()
        if self._is_sampled:
            assert self._estimate is not None
            return _estimated(self._name, self._estimate.tally("sample", reason, {}), self._details)
        bounds = Bounds(*self.shares.bounds())
        count = bounds.settled(self._settings.epsilon)
        tally = Tally(count, bounds.low, bounds.high, "exact", reason)
        return _estimated(self._name, tally, self._details)


def _estimated(name: str, tally: Tally, details: Mapping[str, Any]) -> Measured:
    """Return what is known of a weight that is not known exactly, from whole units of it."""
    low, high = (float(Fraction(n, UNITS)) for n in (tally.low, tally.high))
    share = None if tally.count is None else float(Fraction(tally.count, UNITS))
    sampled = {name: tally.details[name] for name in ("samples",) if name in tally.details}
    sure = (False, tally.confidence, tally.stop_reason)
    return Measured(name, share, low, high, *sure, {**details, **sampled})


def _visiting_seconds(pieces: Sequence[Piece], settings: Settings) -> float:
    """Guess how long it takes to visit all regions, once for each product, on one core."""
    half, seconds = settings.within(0.5), 0.0
    for piece in pieces:
        seconds += corner_seconds(piece.problem, half, is_weighed=True) * len(piece.products)
        if seconds == math.inf:  # trees need not be laid on the cells of the others
            break
    return seconds


def _visited_share(problem: Problem, product: ProductComponent, settings: Settings) -> float | None:
    """Return the weight of what is sensitive under a product; None where a visit is too much."""
    try:
        run = CornerRun(problem, settings.within(0.5), list(product.cell_weights))
    except BudgetError:
        return None
    run.visit()
    if run.stop_reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    if not run.is_complete:
        return None
    masses = product.mask_weights
    masks = np.flatnonzero(masses)
    return math.fsum(masses[masks] * run.shares[masks])
