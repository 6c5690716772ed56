"""Changes of the decision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from xcount.question.change import (
    BRIEFLY,
    SIDEWAYS,
    Change,
    Direction,
    decimal_text,
    in_direction,
    shown_decimal,
)
from xcount.question.probability import Link, Margins, link_fields


@dataclass(frozen=True, slots=True)
class Sureness:
    """A requirement on flips: the decision they start from has at least some probability.

    Attributes:
        least: that probability.
        link: computes the probability of being above the cut-off from one margin, or that of one
            of several classes.
    """

    least: Fraction
    link: Link

    def holds(self, margins: Margins, decision: int) -> bool:
        """Return whether the decision, 1 for above or a class, has enough probability."""
        if len(margins) > 1:
            return self.link.compared(margins, decision, self.least) >= 0
        if decision == 1:
            return self.link.compared(margins, 0, self.least) >= 0
        return self.link.compared(margins, 0, 1 - self.least) <= 0


@dataclass(frozen=True, slots=True)
class Flip(Change):
    """The decision changes.

    Attributes:
        cutoff: T, where the decision about one margin changes; None if the largest of several
            margins wins, the first of equal ones.
        tie_is_above: whether a margin of exactly T is above.
        direction: whether only flips to above or only flips to below count; *any* with several
            classes.
        sureness: how sure the flipped decision must be; None if that does not matter.
    """

    cutoff: Fraction | None = Fraction(0)
    tie_is_above: bool = False
    direction: Direction = "any"
    sureness: Sureness | None = None

    names_class: ClassVar[bool] = False

    @property
    def in_paper(self) -> bool:
        return False

    def differs(self, before: Margins, after: Margins) -> bool:
        start, end = self.decision(before), self.decision(after)
        if not self.counts(start, end):
            return False
        return self.sureness is None or self.sureness.holds(before, start)

    def counts(self, start: int, end: int) -> bool:
        """Tell whether two decisions differ, in the direction asked about."""
        return start != end and start != {"any": None, "up": 1, "down": 0}[self.direction]

    def may_differ(self, before: Sequence[float], after: Sequence[float], slack: float) -> bool:
        if self.cutoff is None:
            if self.shown_output(before) != self.shown_output(after):
                return True
            # If the winner is the same, one of the two must have been a near-tie.
            return any(a - b <= slack for a, b in (sorted(m)[:-3:-1] for m in (before, after)))
        cutoff = float(self.cutoff)
        return in_direction(
            self.direction,
            lambda low, high: low <= cutoff + slack and high > cutoff - slack,
            before[0],
            after[0],
        )

    def decision(self, margins: Margins) -> int:
        """Return 1 above the cut-off, else 0; with several classes, the first largest."""
        if self.cutoff is None:
            return self.shown_output(margins)
        return int(margins[0] > self.cutoff or (self.tie_is_above and margins[0] == self.cutoff))

    def probability(self, margins: Margins) -> float | None:
        """Return the probability of being above, if it matters how sure a decision is.

        With several classes, it is that of the one that wins.
        """
        if self.sureness is None:
            return None
        output = self.decision(margins) if self.cutoff is None else 0
        return self.sureness.link.value(margins, output)

    def shown_output(self, margins: Sequence[Any]) -> int:
        values = list(margins)
        return values.index(max(values))

    def concerns(self, output: int) -> bool:
        return True

    @property
    def output_index(self) -> int:
        return 0

    def for_output(self, output: int) -> Flip:
        return self

    def shared_with(self, other: Change) -> Flip | None:
        if not isinstance(other, Flip) or self._how != other._how:
            return None
        # If the cut-offs differ, each model's own decision is meant.
        return self if other == self else replace(self, cutoff=None, tie_is_above=False)

    @property
    def _how(self) -> tuple[Direction, Fraction | None]:
        return self.direction, None if self.sureness is None else self.sureness.least

    def to_dict(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "gap_text": self.text,
            "flip": True,
            "cutoff": None if self.cutoff is None else float(self.cutoff),
            "cutoff_text": None if self.cutoff is None else decimal_text(self.cutoff),
            "direction": self.direction,
        }
        if self.sureness is not None:
            data["from_probability"] = float(self.sureness.least)
            data["from_probability_text"] = decimal_text(self.sureness.least)
            data |= link_fields(self.sureness.link)
        return data | ({"tie_is_above": True} if self.tie_is_above else {})

    @property
    def order(self) -> Fraction:
        return Fraction(0)

    @property
    def text(self) -> str:
        return self._text(decimal_text)

    @property
    def brief(self) -> str:
        return self._text(shown_decimal)

    @property
    def label(self) -> str:
        return self.brief

    def _text(self, written: Callable[[Fraction], str]) -> str:
        where = "" if self.cutoff is None else f" at {written(self.cutoff)}"
        sure = "" if self.sureness is None else f" from {written(self.sureness.least)}"
        return f"flip{BRIEFLY[self.direction]}{where}{sure}"

    @property
    def sentence(self) -> str:
        return f"The decision changes{self._details}"

    @property
    def what_changes(self) -> str:
        return "decision"

    @property
    def effect(self) -> str:
        sure = "" if self.sureness is None else f" made with {self.sure_text}"
        return f"decision{sure}{SIDEWAYS[self.direction]}"

    def outcome(self, modal: str, margin: str, of_class: str) -> str:
        is_any = self.direction == "any"
        if self.sureness is not None:
            goes = "change" if is_any else f"move {self.direction}"
            return f"a decision made with {self.sure_text} {modal} {goes}"
        return (
            f"the model {modal} decide differently"
            if is_any
            else (f"the decision {modal} move {self.direction}")
        )

    def asked(self, of_class: str, rounded: str) -> str:
        sure = "" if self.sureness is None else f", made with {self.sure_text},"
        where = "" if self.cutoff is None else f" (cut-off {shown_decimal(self.cutoff)})"
        return f"the decision{where}{sure} flip{SIDEWAYS[self.direction]}"

    @property
    def _details(self) -> str:
        where = "" if self.cutoff is None else f" at the cut-off {shown_decimal(self.cutoff)}"
        sure = "" if self.sureness is None else f", from one made with {self.sure_text}"
        return f"{SIDEWAYS[self.direction]}{where}{sure}"

    @property
    def sure_text(self) -> str:
        """How sure the flipped decision must be, in words."""
        assert self.sureness is not None
        return f"a probability of at least {shown_decimal(self.sureness.least)}"

    @property
    def size(self) -> None:
        return None
