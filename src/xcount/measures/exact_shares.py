"""Exact weights of the sensitive regions, in slices: one exact run for each product measure.

The weight is the sum over the pieces of a domain, the products of a mixture and the masks of
(weight of the piece) x (weight of the product) x (weight of the mask's cells) x (weight of the
combinations that make it sensitive), exact but for the rounding of floats. Masks are solved one by
one: what is open is a part of a product, of a mixture, of a domain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcount.counters.exact import ExactRun, pair_scan_seconds, slices_of
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason
from xcount.measures.products import Piece, laying_seconds
from xcount.problem.problem import Problem
from xcount.problem.subproblem import Decomposition

UNITS = 2**60
"""Whole numbers that stand for the weight 1, where bounds and estimates are whole numbers."""
MAX_TERMS = 200_000
"""Pairs of masks of all subproblems beyond which a piece is only sampled."""
_ROUNDING = 2.0**-40
"""Bounds that add up what is known of open masks are widened by this part of themselves."""
_NOISE = 2.0**-44
"""What is left of a difference of weights may be their rounding where it is below this."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the weight of what is sensitive, as a share of a product on a piece.

    Attributes:
        certain: the weight of the solved masks' part of it.
        open: the masks that are not solved, of those that have any weight.
        open_weight: what they weigh.
        low: at least so much is sensitive, of all masks.
        high: at most so much.
        doubt: by so much the weight of the solved masks may be off, beyond the rounding of a sum.
    """

    certain: float
    open: NDArray[np.int64]
    open_weight: float
    low: float
    high: float
    doubt: float = 0.0


class WeighedProduct:
    """One product measure on one piece of the domain: its exact run, and what that knows.

    Args:
        piece: the piece.
        number: which one of its products.
    """

    def __init__(self, piece: Piece, number: int) -> None:
        self.problem, self.product = piece.problem, piece.products[number]
        self.weight = piece.weight * self.product.weight
        self._masks = np.flatnonzero(self.product.mask_weights)
        self._masses = self.product.mask_weights[self._masks]
        self.run: ExactRun | None = None
        self._seen = -1
        self._is_nothing: dict[int, bool] = {}
        self._known = Known(0.0, self._masks, 1.0, 0.0, 1.0)
        if piece.problem.n_masks == 1:  # nothing changes
            self._known = Known(0.0, self._masks[:0], 0.0, 0.0, 0.0)

    @property
    def is_solvable(self) -> bool:
        """Whether its terms are few enough to be listed."""
        return self.problem.n_masks > 1 and self.problem.form.n_terms <= MAX_TERMS

    @property
    def masks(self) -> bytes:
        """The masks that have any weight: others with the same ones are taken apart alike."""
        return self._masks.tobytes()

    def look(self, settings: Settings, decomposition: Decomposition | None) -> Decomposition | None:
        """Begin the exact run; look which pairs of masks can differ at all, if nobody has."""
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
        """What is known now."""
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
        """Set shares to 0 that are nothing but rounding; return the weight of what may still be.

        A tiny share that is left of a difference may be nothing: then no region is counted.
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
    """Exact weighing of all products on all pieces, in slices.

    Args:
        pieces: the pieces of the domain, with their products.
        settings: limits, and who does the work.

    Attributes:
        stop_reason: why the work ended, as far as it has come.
    """

    def __init__(self, pieces: Sequence[Piece], settings: Settings) -> None:
        self._settings = settings
        self._has_rules = any(piece.part is not None for piece in pieces)
        self.products = [
            [WeighedProduct(piece, number) for number in range(len(piece.products))]
            for piece in pieces
        ]
        self.stop_reason = StopReason.COMPLETE

    @property
    def _each(self) -> list[WeighedProduct]:
        return [product for products in self.products for product in products]

    @property
    def only_bounds(self) -> bool:
        """Whether it finds what is not sensitive, but hardly how much is."""
        return self._each[0].problem.form.only_bounds

    @property
    def pair_scan_seconds(self) -> float:
        """Guess how long it takes to look at the pairs of masks of all pieces.

        Of pieces that rules make: to lay the trees on their cells, which nobody has done yet.
        """
        tried = [products[0].problem for products in self.products if self._tried(products)]
        return sum(map(laying_seconds if self._has_rules else pair_scan_seconds, tried))

    def _pair_scan_seconds(self, problem: Problem) -> float:
        laying = laying_seconds(problem) if self._has_rules else 0.0
        return laying + pair_scan_seconds(problem)

    @staticmethod
    def _tried(products: Sequence[WeighedProduct]) -> list[WeighedProduct]:
        return [product for product in products if product.is_solvable]

    def slices(self, budgets: Iterable[int]) -> Iterator[float]:
        """Weigh piece by piece, then in rounds; yield the work of each slice.

        Ends when all is known, or nothing is left to try.
        """
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
        yield from slices_of(runs, budgets)

    def limit(self, settings: Settings) -> None:
        """Go on within these limits."""
        self._settings = settings
        for product in self._each:
            if product.run is not None:
                product.run.limit(settings)

    def end(self, reason: StopReason | None = None) -> None:
        """Note why the work ended, as far as its slices have come."""
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
        """The weight of what is open, in units; 0 where nothing is."""
        return math.ceil(self.undecided * UNITS)

    @property
    def undecided(self) -> float:
        """The weight of what is open."""
        return math.fsum(product.weight * product.known.open_weight for product in self._each)

    @property
    def certain(self) -> float:
        """The weight of what is known to be sensitive, of the masks that are solved."""
        return math.fsum(
            math.fsum(product.weight * product.known.certain for product in products)
            for products in self.products
        )

    @property
    def doubt(self) -> float:
        """By so much the weight may be off, where little is left of a difference of weights."""
        return math.fsum(product.weight * product.known.doubt for product in self._each)

    def bounds(self) -> tuple[int, int]:
        """Return bounds of the weight, in units."""
        if not self.open_size:
            found = round(min(1.0, max(0.0, self.certain)) * UNITS)
            return found, found
        each = [(product.weight, product.known) for product in self._each]
        low = math.fsum(weight * known.low for weight, known in each) * (1 - _ROUNDING)
        high = math.fsum(weight * known.high for weight, known in each) * (1 + _ROUNDING)
        return math.floor(low * UNITS), min(UNITS, math.ceil(high * UNITS))
