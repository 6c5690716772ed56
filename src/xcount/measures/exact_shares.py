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

from xcount.counters.exact import ExactRun, slices_of
from xcount.counters.settings import Settings
from xcount.counters.tally import Bounds, StopReason
from xcount.counters.visit import completed_visit, corner_seconds, pair_scan_seconds
from xcount.measures.products import ProductComponent, WeighedPart, laid_bytes, laying_seconds
from xcount.problem.problem import Problem
from xcount.problem.subproblem import Decomposition

UNITS = 2**60
"""The weight 1 in units: bounds and estimates are whole numbers of units."""
MAX_TERMS = 200_000
"""If all subproblems have more pairs of masks than this, a part is only sampled."""
_ROUNDING = 2.0**-40
"""The most that sums and products of floats are off by, as a part of the sum."""
_NOISE = 2.0**-44
"""The most that a difference of shares is off by."""
_EPSILON = float(np.finfo(np.longdouble).eps)
"""Rounding of the sum of the weights of an axis, of which stretches are differences."""
_LEAST_LOG = -900.0
"""Products of weights below 2 to this power may be rounded to 0."""
_UNDERFLOW = 2.0**_LEAST_LOG
_PLACES = 52
"""The binary places that a float below 1 always has."""
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
    """Return the sensitive share of each mask by a visit of all regions.

    None if that is too much, or if the shares are so small that rounding would tell in the digits.
    """
    run = completed_visit(problem, settings, list(product.cell_weights))
    if run is None:
        return None
    # A visit adds shares up in whole units: what is below one is lost.
    least = run.share_error / _ROUNDING
    is_rounded = (run.counts > 0) & (run.shares < least) & (product.mask_weights > 0)
    if least_share(problem, product) > least:
        is_rounded &= run.shares > 0
    return None if is_rounded.any() else run.shares


def least_share(problem: Problem, product: ProductComponent) -> float:
    """Return the least weight that a combination of non-sensitive cells has, if it has any."""
    others = (w for f, w in enumerate(product.cell_weights) if f not in problem.query.sensitive)
    return math.prod(float(own[own > 0].min()) for own in others if (own > 0).any())


def relative_error(product: ProductComponent) -> float:
    """Return the most that sums of a product's weights are off by, as a part of the sum.

    The weight of a stretch of cells is a difference of two sums along its axis.
    """
    least = [float(own[own > 0].min()) for own in product.cell_weights if (own > 0).any()]
    return _ROUNDING + sum(2 * _EPSILON / weight for weight in least)


def is_summed_exactly(product: ProductComponent) -> bool:
    """Return whether every sum of products of the weights is a float, so that none is rounded."""
    factors = [np.array([product.weight]), *product.cell_weights]
    return sum(max(map(_n_places, own.tolist()), default=0) for own in factors) <= _PLACES


def _n_places(weight: float) -> int:
    """Return how many binary places a weight has."""
    return weight.as_integer_ratio()[1].bit_length() - 1


def underflow_error(product: ProductComponent) -> float:
    """Return the most that is lost where a product of weights is too small for a float."""
    least = [float(own[own > 0].min()) for own in product.cell_weights if (own > 0).any()]
    return _UNDERFLOW if sum(map(math.log2, least)) < _LEAST_LOG else 0.0


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
        error: the most that ``certain`` is off by.
    """

    certain: float
    open: NDArray[np.int64]
    open_weight: float
    low: float
    high: float
    error: float = 0.0


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
        error = self._error(run, ends)
        low, high = (math.fsum(self._masses * end) for end in ends.T)
        certain = math.fsum((self._masses * ends[:, 0])[~is_open])
        open_weight = math.fsum(self._masses[is_open])
        return Known(certain, self._masks[is_open], open_weight, low, high, error)

    def _error(self, run: ExactRun, ends: NDArray[np.float64]) -> float:
        """Zero shares that are mere rounding; return the most that the weight of all is off by.

        A tiny share left over from a difference of weights may really be 0: no region is sensitive.
        """
        assert run.decomposition is not None
        of_mask = run.decomposition.of_mask
        is_solved = ends[:, 0] == ends[:, 1]
        is_difference = np.array([of_mask(mask).is_difference for mask in self._masks.tolist()])
        is_difference &= is_solved
        tiny = np.flatnonzero(is_difference & (ends[:, 0] < _NOISE)).tolist()
        unknown = [mask for mask in self._masks[tiny].tolist() if mask not in self._is_nothing]
        if unknown:
            counted = ExactRun(self.problem, run.settings, masks=unknown)
            counted.solve((run.n_steps + 1,))
            found = (bounds == (0, 0) for bounds in counted.all_mask_bounds())
            self._is_nothing |= dict(zip(unknown, found, strict=True))
        has_no_tiny = least_share(self.problem, self.product) > 2 * _NOISE
        nothing = [i for i in tiny if has_no_tiny or self._is_nothing[int(self._masks[i])]]
        ends[nothing] = 0.0
        is_difference[nothing] = False
        absolute = np.where(is_difference, _NOISE, underflow_error(self.product))
        absolute[nothing] = 0.0
        errors = absolute + relative_error(self.product) * ends[:, 0]
        return math.fsum((self._masses * errors)[is_solved])


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
                if self._has_rules and laid_bytes(product.problem) > self._settings.free_bytes():
                    return  # the trees of another part do not fit
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
    def error(self) -> float:
        """The most that ``certain`` is off by."""
        return math.fsum(product.weight * product.known.error for product in self._each)

    def bounds(self) -> Bounds:
        """Return bounds on the sensitive weight, in units."""
        if not self.open_size:
            found = round(min(1.0, max(0.0, self.certain)) * UNITS)
            return Bounds(found, found)
        each = [(product.weight, product.known) for product in self._each]
        low = math.fsum(weight * known.low for weight, known in each) * (1 - _ROUNDING)
        high = math.fsum(weight * known.high for weight, known in each) * (1 + _ROUNDING)
        return Bounds(math.floor(low * UNITS), min(UNITS, math.ceil(high * UNITS)))
