"""A place in the ranking of an audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from xcount.answers.result import CountResult, Sensitive
from xcount.support.records import Json, record
from xcount.support.shown import Shown

_SHARE = {"minimum": 0, "maximum": 1}


@record("ranked", "A place in the ranking of an audit.")
@dataclass(frozen=True, slots=True, repr=False)
class Ranked(Shown):
    """A group of features in the ranking.

    ``score`` is the mean of its judged shares over all panels; the largest comes first. Where only
    bounds of a share are known, its low bound takes its place in that order, and ``score`` is None;
    of equals, the one with the larger high bounds comes first.
    """

    rank: Annotated[int, Json("1 for the most sensitive.", {"minimum": 1})]
    sensitive: Sensitive
    score: Annotated[
        float | None, Json("Mean of their shares; null if a share has no estimate.", _SHARE)
    ]
    score_low: Annotated[float, Json("Mean of the low bounds of their shares.", _SHARE)]
    score_high: Annotated[float, Json("Mean of the high bounds of their shares.", _SHARE)]
    results: tuple[CountResult, ...]

    @property
    def label(self) -> str:
        return " + ".join(self.sensitive)
