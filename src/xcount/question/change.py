"""The change that a question is about: when do two regions differ?

With V and V' the margins of two regions, one number per output::

    Gap(G, k)    |V[k] - V'[k]| > G
    Flip(T)      (V[0] > T) is not (V'[0] > T)                  (a tie is not above, unless said)
    Flip(None)   the first largest of V is not that of V'       (several classes)

A change says what two vectors of margins must satisfy, and how that is written in JSON and in
words. How regions with such a neighbour are counted is the matter of its *form*, one for each kind
of change (see :mod:`xcount.problem.form`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from xcount.support.records import Spread

Margins = Sequence[Fraction]
"""The margins of one point, one per output, base included."""


class Change(ABC):
    """What makes two regions differ."""

    __slots__ = ()

    names_class: ClassVar[bool]
    """Whether it is about one of several classes, which a result then names."""
    in_paper: ClassVar[bool]
    """Whether the paper's algorithms and formulas know it."""

    @abstractmethod
    def differs(self, before: Margins, after: Margins) -> bool:
        """Tell whether two points with these margins differ."""

    @abstractmethod
    def may_differ(self, before: Sequence[float], after: Sequence[float], slack: float) -> bool:
        """Tell whether margins that are known up to ``slack`` (of both together) can differ."""

    @abstractmethod
    def decision(self, margins: Margins) -> int | None:
        """Return the decision at a point; None where the change is not about decisions."""

    @abstractmethod
    def shown_output(self, margins: Sequence[Any]) -> int:
        """Return the output whose margin tells best what the model makes of a point."""

    @abstractmethod
    def concerns(self, output: int) -> bool:
        """Tell whether the trees of that output take part."""

    @property
    @abstractmethod
    def output_index(self) -> int:
        """The output asked about; 0 where the change is about all of them."""

    @abstractmethod
    def for_output(self, output: int) -> Change:
        """Return the same change of another output, where it is about one."""

    @abstractmethod
    def shared_with(self, other: Change) -> Change | None:
        """Return what two models were asked alike; None if these are different questions.

        A class may have another number in another model, and a model its own cut-off.
        """

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the change's fields in a result's JSON."""

    @property
    @abstractmethod
    def order(self) -> Fraction:
        """Where the change stands among others of its kind."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The change as briefly as possible, e.g. ``2`` or ``flip at 0``."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The change as a label, e.g. ``gap 2`` or ``flip at 0``."""

    @property
    @abstractmethod
    def sentence(self) -> str:
        """What happens to a sensitive region, e.g. ``Margin changes by more than 2``."""

    @property
    @abstractmethod
    def what_changes(self) -> str:
        """What changes, for all changes of the kind: ``margin by more than the gap``."""

    @property
    @abstractmethod
    def effect(self) -> str:
        """What changes, as an object: regions "can change their" ``margin by more than 2``."""

    @abstractmethod
    def asked(self, of_class: str, rounded: str) -> str:
        """Return what follows "in how many regions does ..."."""

    @property
    @abstractmethod
    def size(self) -> float | None:
        """How large the change must be, as a number to draw; None where that means nothing."""


@dataclass(frozen=True, slots=True)
class Gap(Change):
    """The margin of one output changes by more than the gap.

    Attributes:
        gap: G, an exact number; a change counts when it is strictly larger.
        output: index of the sum (the class) asked about.
    """

    gap: Fraction
    output: int = 0

    names_class: ClassVar[bool] = True
    in_paper: ClassVar[bool] = True

    def differs(self, before: Margins, after: Margins) -> bool:
        return abs(before[self.output] - after[self.output]) > self.gap

    def may_differ(self, before: Sequence[float], after: Sequence[float], slack: float) -> bool:
        return abs(before[self.output] - after[self.output]) > float(self.gap) - slack

    def decision(self, margins: Margins) -> None:
        return None

    def shown_output(self, margins: Sequence[Any]) -> int:
        return self.output

    def concerns(self, output: int) -> bool:
        return output == self.output

    @property
    def output_index(self) -> int:
        return self.output

    def for_output(self, output: int) -> Gap:
        return Gap(self.gap, output)

    def shared_with(self, other: Change) -> Gap | None:
        return self if isinstance(other, Gap) and other.gap == self.gap else None

    def to_dict(self) -> dict[str, Any]:
        return {"gap": float(self.gap), "gap_text": self.text, "class": self.output}

    @property
    def order(self) -> Fraction:
        return self.gap

    @property
    def text(self) -> str:
        return decimal_text(self.gap)

    @property
    def label(self) -> str:
        return f"gap {self.text}"

    @property
    def sentence(self) -> str:
        return f"Margin changes by more than {self.text}"

    @property
    def what_changes(self) -> str:
        return "margin by more than the gap"

    @property
    def effect(self) -> str:
        return f"margin by more than {self.text}"

    def asked(self, of_class: str, rounded: str) -> str:
        return f"the margin{of_class} move by more than {self.text}{rounded}"

    @property
    def size(self) -> float:
        return float(self.gap)


@dataclass(frozen=True, slots=True)
class Flip(Change):
    """The decision changes.

    Attributes:
        cutoff: T, where the decision about one margin changes; None where the largest of several
            margins wins, the first of equal ones.
        tie_is_above: whether a margin of just T is above.
    """

    cutoff: Fraction | None = Fraction(0)
    tie_is_above: bool = False

    names_class: ClassVar[bool] = False
    in_paper: ClassVar[bool] = False

    def differs(self, before: Margins, after: Margins) -> bool:
        return self.decision(before) != self.decision(after)

    def may_differ(self, before: Sequence[float], after: Sequence[float], slack: float) -> bool:
        if self.cutoff is not None:
            low, high = sorted((before[0], after[0]))
            return low <= float(self.cutoff) + slack and high > float(self.cutoff) - slack
        if self.shown_output(before) != self.shown_output(after):
            return True
        # The same winner: then one of the two must have been a near-tie.
        return any(a - b <= slack for a, b in (sorted(m)[:-3:-1] for m in (before, after)))

    def decision(self, margins: Margins) -> int:
        """Return 1 above the cut-off, else 0; of several classes the first with the largest."""
        if self.cutoff is None:
            return self.shown_output(margins)
        return int(margins[0] > self.cutoff or (self.tie_is_above and margins[0] == self.cutoff))

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
        if not isinstance(other, Flip):
            return None
        return self if other == self else Flip(None)  # each model's own decision

    def to_dict(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "gap_text": self.text,
            "flip": True,
            "cutoff": None if self.cutoff is None else float(self.cutoff),
            "cutoff_text": None if self.cutoff is None else decimal_text(self.cutoff),
        }
        return data | ({"tie_is_above": True} if self.tie_is_above else {})

    @property
    def order(self) -> Fraction:
        return Fraction(0)

    @property
    def text(self) -> str:
        return "flip" if self.cutoff is None else f"flip at {decimal_text(self.cutoff)}"

    @property
    def label(self) -> str:
        return self.text

    @property
    def sentence(self) -> str:
        where = "" if self.cutoff is None else f" at the cut-off {decimal_text(self.cutoff)}"
        return f"The decision changes{where}"

    @property
    def what_changes(self) -> str:
        return "decision"

    @property
    def effect(self) -> str:
        return "decision"

    def asked(self, of_class: str, rounded: str) -> str:
        where = "" if self.cutoff is None else f" at the cut-off {decimal_text(self.cutoff)}"
        return f"the decision{where} flip"

    @property
    def size(self) -> None:
        return None


def change_from(data: Mapping[str, Any]) -> Change:
    """Read back what :meth:`Change.to_dict` wrote."""
    if data.get("flip"):
        text = data.get("cutoff_text")
        return Flip(None if text is None else Fraction(text), data.get("tie_is_above", False))
    return Gap(Fraction(data.get("gap_text", str(data["gap"]))), data.get("class", 0))


def decimal_text(value: Fraction) -> str:
    """Return an exact decimal as text, e.g. ``Fraction(1, 20)`` -> ``"0.05"``."""
    if value.denominator == 1:
        return str(value.numerator)
    places = 1
    while (value * 10**places).denominator != 1:
        places += 1
        if places > 1100:
            return str(value)
    digits = str(abs(value * 10**places).numerator).rjust(places + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"


_GAP_FIELDS: dict[str, Any] = {
    "gap": {
        "type": "number",
        "description": "The gap, as a float. Not there with `--flip`.",
        "minimum": 0,
    },
    "class": {
        "type": "integer",
        "description": "The output asked about; 0 where there is only one. Not there with "
        "`--flip`.",
        "minimum": 0,
    },
}
_FLIP_FIELDS: dict[str, Any] = {
    "flip": {"const": True, "description": "Only with `--flip`."},
    "cutoff": {
        "type": ["number", "null"],
        "description": "Only with `--flip`: the margin at which the decision changes; null where "
        "one of several classes wins.",
    },
    "cutoff_text": {
        "type": ["string", "null"],
        "description": "Only with `--flip`: the cut-off as it was typed.",
    },
}
CHANGE_FIELDS = Spread(
    {
        "gap_text": {
            "type": "string",
            "description": "The gap as it was typed, which is what is compared with; `flip` or "
            "`flip at T` with `--flip`.",
        },
        **_GAP_FIELDS,
        **_FLIP_FIELDS,
        "tie_is_above": {
            "const": True,
            "description": "Only with `--flip`, where a margin equal to the cut-off is above it.",
        },
    },
    write=lambda change: change.to_dict(),
    read=change_from,
    required=("gap_text",),
    either=(tuple(_GAP_FIELDS), tuple(_FLIP_FIELDS)),
)
"""A change in JSON: fields beside each other, those of one kind of change or of another."""
