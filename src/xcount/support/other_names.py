"""The other names of arguments that public functions accept, for type checkers alone.

Nothing imports this module when a program runs: start-up time counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from xcount.support.spellings import Duration, Size


class OtherNamesOfAll(TypedDict, total=False):
    """Other names of arguments that :func:`public` functions accept, for type checkers."""

    output: int | str | None
    rules: str | Iterable[str]
    timeout_seconds: Duration | None
    memory_bytes: Size | None


class OtherNames(OtherNamesOfAll, total=False):
    """The same of a function that asks one question."""

    gaps: object
    probability_gaps: object
    distances: object


class OtherNamesOfCount(OtherNames, total=False):
    """The same of one that weighs its answer, too."""

    measure: str | Iterable[str]


class OtherNamesOfMany(OtherNamesOfAll, total=False):
    """The same of a function that asks several questions: one of each may be given."""

    gap: object
    probability_gap: object
    distance: object
    measure: str | Iterable[str]


class OtherNamesOfAudit(OtherNamesOfMany, total=False):
    """The same of one that shows examples, too."""

    witnesses: int
