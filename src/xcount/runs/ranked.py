"""A place in the ranking of an audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from xcount.answers.result import CountResult, Sensitive
from xcount.support.display import DisplayMixin
from xcount.support.interval import Interval, mean_fields
from xcount.support.records import Json, record


@record("ranked", "A place in the ranking of an audit.")
@dataclass(frozen=True, slots=True, repr=False)
class Ranked(DisplayMixin):
    """A group of features in the ranking.

    ``score`` is the mean of its judged shares over all panels; the largest comes first. If only
    bounds on a share are known, groups are ordered by its low bound, and ``score`` has no value.
    Ties are broken by the larger high bounds.
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
