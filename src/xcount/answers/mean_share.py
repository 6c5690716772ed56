"""The mean of the shares of several counts: what audits and comparisons rank by."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from xcount.answers.result import CountResult


@dataclass(frozen=True, slots=True)
class MeanShare:
    """The mean of the judged shares of several counts, as far as it is known.

    Attributes:
        value: of the estimates; None where a count has none.
        low: of the low bounds.
        high: of the high bounds.
        least: of the estimates, and of the low bounds where there is none.
        most: of the estimates, and of the high bounds where there is none.
    """

    value: float | None
    low: float
    high: float
    least: float
    most: float

    @classmethod
    def of(cls, results: Iterable[CountResult]) -> MeanShare:
        """Return the mean over results; without any, nothing is known."""
        found = tuple(result.judged for result in results)
        if not found:
            return cls(None, 0.0, 1.0, 0.0, 1.0)
        shares = [each.share for each in found if each.share is not None]
        return cls(
            _mean(shares) if len(shares) == len(found) else None,
            _mean(each.low for each in found),
            _mean(each.high for each in found),
            _mean(each.low if each.share is None else each.share for each in found),
            _mean(each.high if each.share is None else each.share for each in found),
        )


def _mean(values: Iterable[float]) -> float:
    listed = tuple(values)
    return math.fsum(listed) / len(listed)
