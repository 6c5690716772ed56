"""The result of a counter: bounds, why it stopped, and the count by masks and pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Any, NamedTuple

from xcount.question.cell import CellRange, mask_text
from xcount.question.share import Limit
from xcount.support.display import DisplayMixin
from xcount.support.records import Json, record, written


class Method(StrEnum):
    """The ways of counting, spelled as in ``--method`` and in the JSON."""

    AUTO = "auto"
    EXACT = "exact"
    VISIT = "brute"  # every region, by corner sums
    SAMPLE = "sample"
    XCOUNT = "xcount"
    XCOUNT_SUM_FIRST = "xcount-sum-first"
    XCOUNT_EXACT_UNION = "xcount-exact-union"
    ADD_BASELINE = "add-baseline"
    ADD_BASELINE_PLAIN = "add-baseline-plain"
    CNF_GANAK = "cnf-ganak"
    CNF_APPROXMC = "cnf-approxmc"
    SUBPROBLEMS_CNF = "subproblems-cnf"


class StopReason(StrEnum):
    """Why a run ended."""

    COMPLETE = "complete"  # exact, or within epsilon
    DECIDED = "decided"  # --max-share was decided before the accuracy was reached
    TIMEOUT = "timeout"
    MEMORY = "memory"
    STEPS = "steps"  # the exact counter's own budget of steps
    INTERRUPTED = "interrupted"


class Bounds(NamedTuple):
    """``low <= C <= high``."""

    low: int
    high: int

    def settled(self, epsilon: float, near: int | None = None) -> int | None:
        """Return a count within (1 +- epsilon) of all values from low to high, if there is one.

        The one nearest to ``near``, or to the middle.
        """
        fraction = Fraction(epsilon)
        near = (self.low + self.high) // 2 if near is None else near
        least = max(self.low, math.ceil((1 - fraction) * self.high))
        most = min(self.high, math.floor((1 + fraction) * self.low))
        return min(max(near, least), most) if least <= most else None

    def decides(self, max_share: Limit, n_regions: int) -> bool:
        """Return whether all counts from low to high are on one side of the share."""
        return max_share.allows(self.high, n_regions) or not max_share.allows(self.low, n_regions)

    def meet(self, other: Bounds) -> Bounds:
        """Return the intersection; if it is empty, the first of the two."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Bounds(low, high) if low <= high else self


_CELLS = {"items": {"type": "integer", "minimum": 0}}
_AT_LEAST_0 = {"minimum": 0}

Low = Annotated[int, Json("At least this many combinations of the other cells.", _AT_LEAST_0)]
High = Annotated[int, Json("At most this many.", _AT_LEAST_0)]
Combinations = Annotated[int, Json("All combinations of the other cells.", _AT_LEAST_0)]


@record("mask", "One cell per sensitive feature.")
@dataclass(frozen=True, slots=True)
class MaskCount:
    """How many combinations of the other cells make one mask sensitive (one row of a profile)."""

    cells: Annotated[
        tuple[int, ...], Json("Their numbers, from 0, in the order of `sensitive`.", _CELLS)
    ]
    ranges: Annotated[tuple[CellRange, ...], Json("What they hold.")]
    low: Low
    high: High
    n_combinations: Combinations

    @property
    @written(Json("The same in words.", after="ranges"))
    def description(self) -> str:
        """The mask in words, e.g. ``30.5 <= age < 42, sex = Male``."""
        return mask_text(self.ranges)

    @property
    def exact(self) -> bool:
        return self.low == self.high

    @property
    def is_open(self) -> bool:
        """Whether nothing is known of it."""
        return self.low == 0 < self.high == self.n_combinations


@record("pair", "Two neighbouring masks.")
@dataclass(frozen=True, slots=True)
class PairCount:
    """How many combinations of the other cells jump between two neighbouring masks."""

    cells: Annotated[tuple[int, ...], Json("The first mask.", _CELLS)]
    other_cells: Annotated[tuple[int, ...], Json("The second mask.", _CELLS)]
    ranges: Annotated[tuple[CellRange, ...], Json("What the cells of the first mask hold.")]
    other_ranges: Annotated[tuple[CellRange, ...], Json("What those of the second hold.")]
    low: Low
    high: High
    n_combinations: Combinations

    @property
    @written(Json("The same in words.", after="other_ranges"))
    def description(self) -> str:
        """Both masks in words."""
        return f"{mask_text(self.ranges)} | {mask_text(self.other_ranges)}"

    @property
    def exact(self) -> bool:
        return self.low == self.high

    @property
    def is_open(self) -> bool:
        """Whether nothing is known of it."""
        return self.low == 0 < self.high == self.n_combinations


@record("profile", "The count by mask and by pair of masks (`--profile`, and in audits).")
@dataclass(frozen=True, slots=True, repr=False)
class Profile(DisplayMixin):
    """The count broken down by mask, and by pair of neighbouring masks."""

    masks: Annotated[
        tuple[MaskCount, ...], Json("Cells of the sensitive features, with the count of each.")
    ]
    pairs: Annotated[
        tuple[PairCount, ...],
        Json("Neighbouring masks, with the jumps between them; empty if they were not counted."),
    ] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """A snapshot of a run's progress: its bounds so far and a description."""

    fraction: float
    low: int
    high: int
    message: str = ""


@dataclass(frozen=True, slots=True)
class Tally:
    """What a counter found: ``low <= C <= high`` with probability at least ``confidence``.

    ``count`` is C, or an estimate of it; None if only the bounds are known.
    """

    count: int | None
    low: int
    high: int
    method: str
    stop_reason: StopReason = StopReason.COMPLETE
    confidence: float = 1.0
    details: Mapping[str, Any] = field(default_factory=dict)
    profile: Profile | None = None

    @classmethod
    def of_bounds(
        cls,
        low: int,
        high: int,
        method: str,
        stop_reason: StopReason = StopReason.COMPLETE,
        *,
        details: Mapping[str, Any] | None = None,
        profile: Profile | None = None,
    ) -> Tally:
        """Return a tally of guaranteed bounds, with a count if they are equal.

        Example:
            >>> Tally.of_bounds(2, 2, "exact").count, Tally.of_bounds(2, 9, "exact").count
            (2, None)
        """
        count = low if low == high else None
        return cls(count, low, high, method, stop_reason, 1.0, details or {}, profile)
