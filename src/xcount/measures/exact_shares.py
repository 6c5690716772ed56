"""The exact weight of the sensitive regions under a mixture of products.

It is the sum over the parts of a domain, the products of a mixture and the masks of (weight of the
part) x (weight of the product) x (weight of the mask's cells) x (weight of the combinations that
make the mask sensitive), exact but for the rounding of floats. :func:`product_share` finds it for
one product in one go; :class:`ExactShares` for all of them in slices, mask by mask, so that the
undecided weight shrinks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xcount.counters.exact import ExactRun, pair_scan_seconds, slices_of
from xcount.counters.settings import Settings
from xcount.counters.tally import Bounds, StopReason
from xcount.counters.visit import completed_visit, corner_seconds
from xcount.measures.products import ProductComponent, WeighedPart, laid_bytes, laying_seconds
from xcount.problem.problem import Problem
from xcount.problem.subproblem import Decomposition

UNITS = 2**60
"""The weight 1 in units: bounds and estimates are whole numbers of units."""
MAX_TERMS = 200_000
"""If all subproblems have more pairs of masks than this, a part is only sampled."""
_ROUNDING = 2.0**-40
"""Relative widening of bounds that are sums over open masks."""
_NOISE = 2.0**-44
"""A difference of weights below this may be rounding."""
_LEAST_STEPS = 1000
"""Hardly any open subproblem is solved in fewer steps."""


class Budget(NamedTuple):
    """Limits of weighing a box exactly.

    Attributes:
        seconds: for visiting all its regions or listing its subproblems, as estimated.
        steps: of exact counting, if visiting takes longer.
    """

    seconds: float
    steps: int


def product_share(
    problem: Problem, product: ProductComponent, settings: Settings, budget: Budget
) -> float | None:
    """Return the sensitive share under one product; None if that takes longer than the budget."""
    if problem.n_masks < 2:
        return 0.0
    if laying_seconds(problem) > budget.seconds or laid_bytes(problem) > settings.free_bytes():
        return None
    shares: NDArray[np.float64] | None = None
    if corner_seconds(problem, settings, is_weighed=True) <= budget.seconds:
        shares = visited_shares(problem, product, settings)
    if shares is None:
        shares = _solved_shares(problem, product, settings, budget)
    return None if shares is None else min(1.0, math.fsum(product.mask_weights * shares))


def visited_shares(
    problem: Problem, product: ProductComponent, settings: Settings
) -> NDArray[np.float64] | None:
    """Return the sensitive share of each mask by a visit of all regions; None if it is too much."""
    run = completed_visit(problem, settings, list(product.cell_weights))
    return None if run is None else run.shares


def _solved_shares(
    problem: Problem, product: ProductComponent, settings: Settings, budget: Budget
) -> NDArray[np.float64] | None:
    """Return the sensitive share of each mask that has any weight, by exact counting."""
    if pair_scan_seconds(problem) + laying_seconds(problem) > budget.seconds:
        return None
    masks = np.flatnonzero(product.mask_weights).tolist()
    run = ExactRun(problem, settings, weights=list(product.cell_weights), masks=masks)
    run.solve(())
    if (n_open := run.n_open_subproblems) > budget.steps // _LEAST_STEPS:
        return None
    if n_open:
        run.solve((budget.steps // n_open,))
    if run.stop_reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    bounds = run.all_mask_bounds()
    if any(low != high for low, high in bounds):
        return None
    shares = np.zeros(problem.n_masks)
    shares[masks] = [low for low, _ in bounds]
    return shares


@dataclass(frozen=True, slots=True)
class Known:
    """Bounds on the sensitive weight of one product in one part of the domain, as a share.

    Attributes:
        certain: the sensitive weight of the masks that are solved.
        open: the masks that have some weight and are not solved.
        open_weight: their weight.
        low: lower bound on the sensitive weight of all masks.
        high: upper bound.
        doubt: possible error of ``certain``, beyond the rounding of a sum.
    """

    certain: float
    open: NDArray[np.int64]
    open_weight: float
    low: float
    high: float
    doubt: float = 0.0


class WeighedProduct:
    """One product in one part of the domain: its exact run, and the bounds found so far.

    Args:
        inside: the part.
        product: one of its products.
    """

    def __init__(self, inside: WeighedPart, product: ProductComponent) -> None:
        self.problem, self.product = inside.problem, product
        self.weight = inside.weight * product.weight
        self._masks = np.flatnonzero(self.product.mask_weights)
        self._masses = self.product.mask_weights[self._masks]
        self.run: ExactRun | None = None
        self._seen = -1
        self._is_nothing: dict[int, bool] = {}
        self._known = Known(0.0, self._masks, 1.0, 0.0, 1.0)
        if inside.problem.n_masks == 1:  # nothing changes
            self._known = Known(0.0, self._masks[:0], 0.0, 0.0, 0.0)

    @property
    def is_solvable(self) -> bool:
        """Whether there are few enough terms to list."""
        return self.problem.n_masks > 1 and self.problem.form.n_terms <= MAX_TERMS

    @property
    def masks(self) -> bytes:
        """Key of the masks that have any weight: products with the same ones share subproblems."""
        return self._masks.tobytes()

    def look(self, settings: Settings, decomposition: Decomposition | None) -> Decomposition | None:
        """Start the exact run; find which pairs of masks can differ, unless they are given."""
        weights, masks = list(self.product.cell_weights), self._masks.tolist()
        self.run = ExactRun(
            self.problem, settings, weights=weights, masks=masks, decomposition=decomposition
        )
        self.run.solve(())
        if self.run.stop_reason is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        return self.run.decomposition

    @property
    def known(self) -> Known:
        """The bounds found so far."""
        run = self.run
        if run is not None and run.decomposition is not None and run.n_slices > self._seen:
            self._known, self._seen = self._found(run), run.n_slices
        return self._known

    def _found(self, run: ExactRun) -> Known:
        ends = np.array(run.all_mask_bounds(), dtype=np.float64).reshape(-1, 2)
        is_open = ends[:, 0] != ends[:, 1]
        doubt = self._without_rounding(run, ends)
        low, high = (math.fsum(self._masses * end) for end in ends.T)
        certain = math.fsum((self._masses * ends[:, 0])[~is_open])
        open_weight = math.fsum(self._masses[is_open])
        return Known(certain, self._masks[is_open], open_weight, low, high, doubt)

    def _without_rounding(self, run: ExactRun, ends: NDArray[np.float64]) -> float:
        """Zero shares below rounding error; return the weight still undecided.

        A tiny share left over from a difference of weights may really be 0: no region is sensitive.
        """
        assert run.decomposition is not None
        is_tiny = (ends[:, 0] == ends[:, 1]) & (ends[:, 0] < _NOISE)
        of_mask = run.decomposition.of_mask
        tiny = [i for i in np.flatnonzero(is_tiny) if of_mask(int(self._masks[i])).is_difference]
        unknown = [mask for mask in self._masks[tiny].tolist() if mask not in self._is_nothing]
        if unknown:
            counted = ExactRun(self.problem, run.settings, masks=unknown)
            counted.solve((run.n_steps + 1,))
            found = (bounds == (0, 0) for bounds in counted.all_mask_bounds())
            self._is_nothing |= dict(zip(unknown, found, strict=True))
        doubtful = [i for i in tiny if not self._is_nothing[int(self._masks[i])]]
        ends[[i for i in tiny if i not in doubtful]] = 0.0
        return math.fsum(self._masses[doubtful] * _NOISE)


class ExactShares:
    """Exact weighing of all products in all parts, in slices.

    Args:
        parts: the parts of the domain, with their products.
        settings: limits and engine.

    Attributes:
        products: for each part its products.
        stop_reason: why the work ended.
    """

    def __init__(self, parts: Sequence[WeighedPart], settings: Settings) -> None:
        self._settings = settings
        self._has_rules = parts[0].part.whole.is_split
        self.products = [
            [WeighedProduct(inside, product) for product in inside.products] for inside in parts
        ]
        self.stop_reason = StopReason.COMPLETE

    @property
    def _each(self) -> list[WeighedProduct]:
        return [product for products in self.products for product in products]

    @property
    def only_bounds(self) -> bool:
        """Whether exact work finds upper bounds, but hardly ever the weight itself."""
        return self._each[0].problem.form.only_bounds

    @property
    def pair_scan_seconds(self) -> float:
        """Estimate how long it takes to scan the pairs of masks of all parts.

        With rules, this includes laying the trees out on the cells of each part.
        """
        tried = [products[0].problem for products in self.products if self._tried(products)]
        return sum(map(laying_seconds if self._has_rules else pair_scan_seconds, tried))

    def _pair_scan_seconds(self, problem: Problem) -> float:
        laying = laying_seconds(problem) if self._has_rules else 0.0
        return laying + pair_scan_seconds(problem)

    @staticmethod
    def _tried(products: Sequence[WeighedProduct]) -> list[WeighedProduct]:
        return [product for product in products if product.is_solvable]

    def slices(self, budgets: Iterable[int] | None = None) -> Iterator[float]:
        """Weigh part by part, then in rounds; yield the cost of each slice.

        Ends when everything is known or nothing is left to try. Budgets are those of ``auto``
        unless given.
        """
        thresholds = self._settings.thresholds
        for products in self.products:
            found: dict[bytes, Decomposition] = {}
            for product in self._tried(products):
                looked = product.look(self._settings, found.get(product.masks))
                if looked is None:
                    return  # the time is up
                found[product.masks] = looked
            if found:
                yield len(found) * self._pair_scan_seconds(products[0].problem)
        runs = [product.run for product in self._each if product.run is not None]
        budgets = thresholds.step_budgets if budgets is None else budgets
        yield from slices_of(runs, budgets, thresholds)

    def limit(self, settings: Settings) -> None:
        """Continue within these limits."""
        self._settings = settings
        for product in self._each:
            if product.run is not None:
                product.run.limit(settings)

    def end(self, reason: StopReason | None = None) -> None:
        """Note why the work ended."""
        self.stop_reason = self._why_it_ended() if reason is None else reason

    def _why_it_ended(self) -> StopReason:
        if not self.open_size:
            return StopReason.COMPLETE
        if self._settings.expired():
            return StopReason.TIMEOUT
        runs = (product.run for product in self._each)
        lacked = any(run is not None and run.lacked_memory for run in runs)
        return StopReason.MEMORY if lacked else StopReason.STEPS

    @property
    def open_size(self) -> int:
        """The undecided weight, in units."""
        return math.ceil(self.undecided * UNITS)

    @property
    def undecided(self) -> float:
        """The undecided weight."""
        return math.fsum(product.weight * product.known.open_weight for product in self._each)

    @property
    def certain(self) -> float:
        """The sensitive weight of the masks that are solved."""
        return math.fsum(
            math.fsum(product.weight * product.known.certain for product in products)
            for products in self.products
        )

    @property
    def doubt(self) -> float:
        """The possible error of ``certain``, if a difference of weights nearly cancels."""
        return math.fsum(product.weight * product.known.doubt for product in self._each)

    def bounds(self) -> Bounds:
        """Return bounds on the sensitive weight, in units."""
        if not self.open_size:
            found = round(min(1.0, max(0.0, self.certain)) * UNITS)
            return Bounds(found, found)
        each = [(product.weight, product.known) for product in self._each]
        low = math.fsum(weight * known.low for weight, known in each) * (1 - _ROUNDING)
        high = math.fsum(weight * known.high for weight, known in each) * (1 + _ROUNDING)
        return Bounds(math.floor(low * UNITS), min(UNITS, math.ceil(high * UNITS)))
