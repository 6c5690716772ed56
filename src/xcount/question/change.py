"""The change that a question asks about: when do two regions differ?

V are the margins of a region and V' those of a neighbour, one number per output; p is the
probability that a link computes from margins (see :mod:`xcount.question.probability`)::

    Gap(G, k)              |V'[k] - V[k]| > G
    ProbabilityGap(P, k)   |p(V') - p(V)| > P
    Flip(T)                (V[0] > T) is not (V'[0] > T)   (a tie is not above, unless specified)
    Flip(None)             the first largest of V is not that of V'             (several classes)

A direction keeps one of the two cases: *up*, the neighbour is higher, or *down*, it is lower.

A change says what two vectors of margins must satisfy, and how that is written in JSON and in
words. Its *form* (one for each kind of change, see :mod:`xcount.problem.form`) says how regions
with such a neighbour are counted. Each kind has its own file, :mod:`~xcount.question.gap` and
:mod:`~xcount.question.flip`; :mod:`~xcount.question.change_fields` reads all of them from JSON.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Literal, get_args

from xcount.question.probability import Margins

Direction = Literal["any", "up", "down"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)

BRIEFLY = {"any": "", "up": " up", "down": " down"}
"""A direction after a change, if it has one."""
SIDEWAYS = {"any": "", "up": " upwards", "down": " downwards"}
"""A direction as an adverb."""
MOVES = {"any": "changes", "up": "rises", "down": "falls"}
"""What a number does, in the present tense; the infinitive has no s."""

_MOST_DIGITS = 12


class Change(ABC):
    """What makes two regions differ."""

    __slots__ = ()

    direction: Direction
    """Whether only higher (*up*) or only lower (*down*) neighbours count."""
    names_class: ClassVar[bool]
    """Whether it asks about one of several classes, which a result then names."""

    @property
    @abstractmethod
    def in_paper(self) -> bool:
        """Whether the paper's algorithms and formulas support it."""

    @abstractmethod
    def differs(self, before: Margins, after: Margins) -> bool:
        """Tell whether a region with the margins ``before`` changes to one with ``after``."""

    @abstractmethod
    def may_differ(self, before: Sequence[float], after: Sequence[float], slack: float) -> bool:
        """Return whether margins known up to ``slack`` (of both together) can differ."""

    @abstractmethod
    def decision(self, margins: Margins) -> int | None:
        """Return the decision at a point; None if the change is not about decisions."""

    @abstractmethod
    def probability(self, margins: Margins) -> float | None:
        """Return the probability at a point; None if the change is not about probabilities."""

    @abstractmethod
    def shown_output(self, margins: Sequence[Any]) -> int:
        """Return the output whose margin best shows what the model predicts at a point."""

    @abstractmethod
    def concerns(self, output: int) -> bool:
        """Tell whether the trees of that output take part."""

    @property
    @abstractmethod
    def output_index(self) -> int:
        """The output asked about; 0 if the change is about all of them."""

    @abstractmethod
    def for_output(self, output: int) -> Change:
        """Return the same change of another output, if it is about one."""

    @abstractmethod
    def shared_with(self, other: Change) -> Change | None:
        """Return the change that two models were both asked about; None if they differ.

        A class may have another index in another model, and each model may have its own cut-off
        and its own link.
        """

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the change's fields in a result's JSON."""

    @property
    @abstractmethod
    def order(self) -> Fraction:
        """The sort key of the change among others of its kind."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The shortest text of the change, with all digits, e.g. ``2`` or ``flip at 0``."""

    @property
    @abstractmethod
    def brief(self) -> str:
        """The same for display: numbers with many digits are rounded."""

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
        """What follows "regions can change their", e.g. ``margin by more than 2``."""

    @abstractmethod
    def outcome(self, modal: str, margin: str, of_class: str) -> str:
        """Return what would (could) happen, in words: ``the model would decide otherwise``.

        Args:
            modal: the auxiliary verb.
            margin: the word for the margin.
            of_class: the class asked about, in words; empty for none.
        """

    @abstractmethod
    def asked(self, of_class: str, rounded: str) -> str:
        """Return what follows "in how many regions does ..."."""

    @property
    @abstractmethod
    def size(self) -> float | None:
        """How large the change must be, as a number to plot; None if that is meaningless."""


def in_direction(
    direction: Direction, rises: Callable[[Any, Any], bool], before: Any, after: Any
) -> bool:
    """Return whether a value rises from before to after (*up*), falls (*down*), or either."""
    is_up = direction != "down" and rises(before, after)
    return is_up or (direction != "up" and rises(after, before))


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


def shown_decimal(value: Fraction) -> str:
    """Return a number for display: as it is, or with six digits if it has many.

    Example:
        >>> shown_decimal(Fraction(1, 20)), shown_decimal(Fraction(0.4702309906180411))
        ('0.05', '0.470231')
    """
    text = decimal_text(value)
    is_short = value.denominator == 1 or len(text) <= _MOST_DIGITS
    return text if is_short else f"{float(value):.6g}"
