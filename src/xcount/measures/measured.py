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
            n_left_out = len(details["rows_in_no_cell"])
            interval = counted_rows(details["n_sensitive"], details["n_rows"], n_left_out)
        return cls(name, interval, StopReason(data["stop_reason"]), details)


def counted_rows(n_sensitive: int, n_rows: int, n_left_out: int) -> Interval:
    """Return the share of sensitive rows among those that lie in some region.

    Example:
        >>> counted_rows(2, 10, 1).value
        Fraction(2, 9)
    """
    n_placed = n_rows - n_left_out
    return Interval.exactly(Fraction(n_sensitive, n_placed) if n_placed else 0, n_left_out)
