"""A place in the ranking of an audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from xcount.answers.result import CountResult, Sensitive
from xcount.support.interval import Interval, mean_fields
from xcount.support.records import Json, record
from xcount.support.shown import Shown


@record("ranked", "A place in the ranking of an audit.")
@dataclass(frozen=True, slots=True, repr=False)
class Ranked(Shown):
    """A group of features in the ranking.

    ``score`` is the mean of its judged shares over all panels; the largest comes first. If only
    bounds of a share are known, its low bound takes its place in that order, and ``score`` has no
    value; of equals, the one with the larger high bounds comes first.
    """

    rank: Annotated[int, Json("1 for the most sensitive.", {"minimum": 1})]
    sensitive: Sensitive
    score: Annotated[
        Interval, Json("The mean of their shares.", form=mean_fields("score", "their"))
    ]
    results: tuple[CountResult, ...]

    @property
    def label(self) -> str:
        return " + ".join(self.sensitive)
