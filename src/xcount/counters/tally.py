"""What a counter finds: bounds of the count, why it stopped, and the count taken apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class StopReason(StrEnum):
    """Why a run ended."""

    COMPLETE = "complete"  # exact, or within epsilon
    DECIDED = "decided"  # --max-share was decided before the accuracy was reached
    TIMEOUT = "timeout"
    MEMORY = "memory"
    STEPS = "steps"  # the exact counter's own budget of steps
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class MaskCount:
    """How many combinations of the other cells make one mask sensitive (one row of a profile)."""

    cells: tuple[int, ...]
    description: str
    low: int
    high: int
    n_combinations: int

    @property
    def exact(self) -> bool:
        return self.low == self.high


@dataclass(frozen=True, slots=True)
class PairCount:
    """How many combinations of the other cells jump between two neighbouring masks."""

    cells: tuple[int, ...]
    other_cells: tuple[int, ...]
    description: str
    low: int
    high: int
    n_combinations: int


@dataclass(frozen=True, slots=True)
class Profile:
    """The count taken apart: by mask, and by pair of neighbouring masks."""

    masks: tuple[MaskCount, ...]
    pairs: tuple[PairCount, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """A snapshot of a run: what is known so far, for people and for progress bars."""

    fraction: float
    low: int
    high: int
    message: str = ""


@dataclass(frozen=True, slots=True)
class Tally:
    """What a counter found: ``low <= C <= high`` with probability at least ``confidence``."""

    count: int
    low: int
    high: int
    method: str
    stop_reason: StopReason = StopReason.COMPLETE
    confidence: float = 1.0
    details: Mapping[str, Any] = field(default_factory=dict)
    profile: Profile | None = None
