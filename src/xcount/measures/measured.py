"""Shares of a result, one for each measure.

Results import this module, so it must import fast. Weighing is in :mod:`xcount.measures.shares`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from xcount.counters.tally import StopReason
from xcount.errors import QueryError
from xcount.support.display import DisplayMixin
from xcount.support.interval import Interval

REGIONS = "regions"
"""The measure under which all regions weigh the same: the count itself."""
COUNTED_ROWS = ("n_sensitive", "n_rows", "outside", "left_out")
"""The numbers of rows that their share is made of (:func:`counted_rows`)."""
_OWN_FIELDS = ("share", "low", "high", "exact", "confidence", "stop_reason")


def measures_meant(
    measures: str | Iterable[str], judge: str, data: object, bounds: object, population: object
) -> tuple[str, ...]:
    """Return the requested measures; default to the measure implied by the data.

    Example:
        >>> measures_meant((), "regions", "people.csv", None, None)
        ('rows',)
    """
    named = _names(measures)
    if named or judge != REGIONS:
        return named
    given = {"population": population, "rows": data, "volume": bounds}
    return tuple(name for name, value in given.items() if value is not None)[:1]


def _names(measures: object) -> tuple[str, ...]:
    listed: Iterable[Any] = (measures,)
    if isinstance(measures, Iterable) and not isinstance(measures, str):
        listed = measures
    names = tuple(listed)
    if not all(isinstance(name, str) for name in names):
        raise QueryError(
            f"measures are names, such as 'rows' or ['rows', 'volume'], not {measures!r}"
        )
    return names


@dataclass(frozen=True, slots=True, repr=False)
class Measured(DisplayMixin):
    """The weight of the sensitive regions under a measure, as a share of the whole.

    Attributes:
        name: of the measure.
        interval: the share and its bounds; fractions for rows, which are counted.
        stop_reason: why the weighing ended.
        details: details of one measure, such as the numbers of the sensitive rows.
    """

    name: str
    interval: Interval
    stop_reason: StopReason = StopReason.COMPLETE
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_known(self) -> bool:
        """Whether anything is known about the share."""
        share = self.interval
        return share.value is not None or share.low > 0 or share.high < 1

    @property
    def share(self) -> float | None:
        """The share, or an estimate of it; None if only the bounds are known."""
        return None if self.interval.value is None else float(self.interval.value)

    @property
    def low(self) -> float:
        """The lower bound on the share."""
        return float(self.interval.low)

    @property
    def high(self) -> float:
        """The upper bound on the share."""
        return float(self.interval.high)

    @property
    def exact(self) -> bool:
        """Whether the share is known exactly, without sampling."""
        return self.interval.exact

    @property
    def confidence(self) -> float:
        """The bounds hold with at least this probability."""
        return 1.0 if self.interval.confidence is None else self.interval.confidence

    def to_dict(self) -> dict[str, Any]:
        """Return an entry of ``details.measures`` of a result's JSON."""
        return {
            "share": self.share,
            "low": self.low,
            "high": self.high,
            "exact": self.exact,
            "confidence": self.confidence,
            "stop_reason": str(self.stop_reason),
            **self.details,
        }

    @classmethod
    def from_dict(cls, name: str, data: Mapping[str, Any]) -> Measured:
        """Read back what :meth:`to_dict` wrote."""
        details = {key: value for key, value in data.items() if key not in _OWN_FIELDS}
        interval = Interval(data["share"], data["low"], data["high"], data["confidence"])
        if "n_sensitive" in details:
            interval = counted_rows(*(details[key] for key in COUNTED_ROWS))
        return cls(name, interval, StopReason(data["stop_reason"]), details)


def counted_rows(n_sensitive: int, n_rows: int, outside: int, left_out: int) -> Interval:
    """Return the share of sensitive rows among those inside the domain.

    A row that is left out because it has no place may be sensitive or not: none of them is in the
    low bound, all are in the high bound. The estimate is the share among the others.

    Example:
        >>> share = counted_rows(2, 11, 1, 2)
        >>> share.low, share.value, share.high
        (Fraction(1, 5), Fraction(1, 4), Fraction(2, 5))
    """
    n_asked = n_rows - outside
    n_placed = n_asked - left_out
    if not n_placed:
        return Interval(None, 0, 1, 1.0, left_out)
    low, high = Fraction(n_sensitive, n_asked), Fraction(n_sensitive + left_out, n_asked)
    return Interval(Fraction(n_sensitive, n_placed), low, high, 1.0, left_out)
