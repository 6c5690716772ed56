"""Changes of the margin, or of the probability, by more than a gap."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

from xcount.question.change import (
    BRIEFLY,
    MOVES,
    SIDEWAYS,
    Change,
    Direction,
    decimal_text,
    in_direction,
    shown_decimal,
)
from xcount.question.probability import Link, Margins, Sigmoid, link_fields

PREDICTED = "the predicted probability"
_VERBS = {"any": "move", "up": "rise", "down": "fall"}


def points_text(gap: Fraction) -> str:
    """Return a difference of probabilities in percentage points.

    Example:
        >>> points_text(Fraction(1, 20)), points_text(Fraction(1, 100))
        ('5 percentage points', '1 percentage point')
    """
    return f"{shown_decimal(100 * gap)} percentage point{'' if gap == Fraction(1, 100) else 's'}"


@dataclass(frozen=True, slots=True)
class _AnyGap(Change):
    """The common part of gaps in margin and gaps in probability.

    Attributes:
        gap: an exact number; a change counts when it is strictly larger.
        output: index of the sum (the class) asked about.
        direction: whether only higher or only lower neighbours count.
    """

    gap: Fraction
    output: int = 0
    direction: Direction = "any"

    names_class: ClassVar[bool] = True
    _what: ClassVar[str]

    @property
    @abstractmethod
    def margin_gap(self) -> Fraction | None:
        """The equivalent gap in margin; None if there is none."""

    def decision(self, margins: Margins) -> None:
        return None

    def shown_output(self, margins: Sequence[Any]) -> int:
        return self.output

    @property
    def output_index(self) -> int:
        return self.output

    def for_output(self, output: int) -> _AnyGap:
        return replace(self, output=output)

    @property
    def order(self) -> Fraction:
        return self.gap

    @property
    def sentence(self) -> str:
        return f"{self._what.capitalize()} {MOVES[self.direction]} by more than {self._shown_gap}"

    @property
    def what_changes(self) -> str:
        return f"{self._what}{SIDEWAYS[self.direction]} by more than the gap"

    @property
    def effect(self) -> str:
        return f"{self._what}{SIDEWAYS[self.direction]} by more than {self._shown_gap}"

    def outcome(self, modal: str, margin: str, of_class: str) -> str:
        what = PREDICTED if self._what == "probability" else margin
        size = points_text(self.gap) if what == PREDICTED else self._shown_gap
        return f"{what}{of_class} {modal} {_VERBS[self.direction]} by more than {size}"

    def asked(self, of_class: str, rounded: str) -> str:
        verb = _VERBS[self.direction]
        return f"the {self._what}{of_class} {verb} by more than {self._shown_gap}{rounded}"

    @property
    def size(self) -> float:
        return float(self.gap)

    @property
    def _gap_text(self) -> str:
        return decimal_text(self.gap)

    @property
    def _shown_gap(self) -> str:
        return shown_decimal(self.gap)


@dataclass(frozen=True, slots=True)
class Gap(_AnyGap):
    """The margin of one output changes by more than the gap."""

    _what: ClassVar[str] = "margin"

    @property
    def in_paper(self) -> bool:
        return self.direction == "any"

    @property
    def margin_gap(self) -> Fraction:
        return self.gap

    def differs(self, before: Margins, after: Margins) -> bool:
        return in_direction(
            self.direction, lambda a, b: b - a > self.gap, before[self.output], after[self.output]
        )

    def may_differ(self, before: Sequence[float], after: Sequence[float], slack: float) -> bool:
        gap = float(self.gap) - slack
        return in_direction(
            self.direction, lambda a, b: b - a > gap, before[self.output], after[self.output]
        )

    def probability(self, margins: Margins) -> None:
        return None

    def concerns(self, output: int) -> bool:
        return output == self.output

    def shared_with(self, other: Change) -> Gap | None:
        return self if isinstance(other, Gap) and self == other.for_output(self.output) else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "gap": float(self.gap),
            "gap_text": self._gap_text,
            "class": self.output,
            "direction": self.direction,
        }

    @property
    def text(self) -> str:
        return f"{self._gap_text}{BRIEFLY[self.direction]}"

    @property
    def brief(self) -> str:
        return f"{self._shown_gap}{BRIEFLY[self.direction]}"

    @property
    def label(self) -> str:
        return f"gap {self.brief}"


@dataclass(frozen=True, slots=True)
class ProbabilityGap(_AnyGap):
    """The probability of one output changes by more than the gap.

    Attributes:
        link: computes the probability from the margins.
    """

    link: Link = field(default_factory=Sigmoid)

    _what: ClassVar[str] = "probability"

    @property
    def in_paper(self) -> bool:
        return False

    @property
    def margin_gap(self) -> Fraction | None:
        return self.link.same_margin_gap(self.gap)

    def differs(self, before: Margins, after: Margins) -> bool:
        link, output, gap = self.link, self.output, self.gap
        return in_direction(
            self.direction, lambda a, b: link.rises(a, b, output, gap), before, after
        )

    def may_differ(self, before: Sequence[float], after: Sequence[float], slack: float) -> bool:
        a, b = (self.probability([Fraction(m) for m in side]) for side in (before, after))
        gap = float(self.gap) - self.link.steepness * slack - 1e-12
        return in_direction(self.direction, lambda x, y: y - x > gap, a, b)

    def probability(self, margins: Margins) -> float:
        return self.link.value(margins, self.output)

    def concerns(self, output: int) -> bool:
        return self.link.concerns(output, self.output)

    def shared_with(self, other: Change) -> ProbabilityGap | None:
        if not isinstance(other, ProbabilityGap):
            return None
        same = replace(other, output=self.output, link=self.link)
        return self if same == self else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "probability_gap": float(self.gap),
            "probability_gap_text": self._gap_text,
            "gap_text": self.text,
            "class": self.output,
            "direction": self.direction,
            **link_fields(self.link),
        }

    @property
    def text(self) -> str:
        return f"probability {self._gap_text}{BRIEFLY[self.direction]}"

    @property
    def brief(self) -> str:
        return f"probability {self._shown_gap}{BRIEFLY[self.direction]}"

    @property
    def label(self) -> str:
        return f"probability gap {self._shown_gap}{BRIEFLY[self.direction]}"
