"""Shares of a result: one for each measure, and the one that a verdict judges.

Results import this module: it must stay light. Weighing is in :mod:`xcount.measures.shares`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from xcount.counters.tally import StopReason
from xcount.errors import QueryError
from xcount.support.shown import Shown

REGIONS = "regions"
"""The measure under which all regions weigh the same: the count itself."""
_OWN_FIELDS = ("share", "low", "high", "exact", "confidence", "stop_reason")


def measures_meant(
    measures: str | Iterable[str], judge: str, data: object, bounds: object, population: object
) -> tuple[str, ...]:
    """Return the measures asked for; default to the measure implied by the data.

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


@dataclass(frozen=True, slots=True)
class Judged:
    """A share, and how sure it is: ``low <= share <= high`` with probability ``confidence``.

    ``share`` is None where there is no estimate. The three are known as fractions, too: ``share =
    estimate / whole``, ``low = parts[0] / whole`` and ``high = parts[1] / whole``, whole numbers
    where something is counted (regions, rows); ``is_counted`` tells. Weights are floats, and
    rounded.
    """

    share: float | None
    low: float
    high: float
    exact: bool
    confidence: float
    estimate: int | Fraction | None
    parts: tuple[int | Fraction, int | Fraction]
    whole: int
    is_counted: bool = True

    @classmethod
    def unknown(cls) -> Judged:
        """Return what is known of a share that nobody has measured."""
        return cls(None, 0.0, 1.0, False, 1.0, None, (0, 1), 1)


@dataclass(frozen=True, slots=True, repr=False)
class Measured(Shown):
    """The weight of the sensitive regions, as a share of the whole.

    It is between ``low`` and ``high`` with probability at least ``confidence``; ``share`` is an
    estimate, None where there is none. ``details`` has what belongs to one measure alone, such as
    the numbers of the sensitive rows.
    """

    name: str
    share: float | None
    low: float
    high: float
    exact: bool
    confidence: float
    stop_reason: StopReason
    details: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return an entry of a result's ``details["measures"]``."""
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
        own = {field: data[field] for field in _OWN_FIELDS}
        own["stop_reason"] = StopReason(own["stop_reason"])
        details = {field: value for field, value in data.items() if field not in _OWN_FIELDS}
        return cls(name, **own, details=details)

    @property
    def judged(self) -> Judged:
        """The share as a verdict takes it: of rows, in whole numbers."""
        shares = (self.share, self.low, self.high, self.exact, self.confidence)
        if "n_sensitive" in self.details:
            n_placed = self.details["n_rows"] - len(self.details["rows_in_no_cell"])
            n_sensitive = self.details["n_sensitive"]
            return Judged(*shares, n_sensitive, (n_sensitive, n_sensitive), n_placed)
        ends = (Fraction(self.low), Fraction(self.high))
        estimate = None if self.share is None else Fraction(self.share)
        return Judged(*shares, estimate, ends, 1, is_counted=False)
