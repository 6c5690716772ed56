"""The share of a result under one of its measures, in words: of regions, of people, of a volume."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from xcount.answers.result import CountResult
from xcount.measures.measured import REGIONS
from xcount.report.numbers import (
    estimate_words,
    in_a_table,
    integer,
    interval_words,
    share_words,
    shares_of,
    sure_words,
)

OF_PEOPLE = ("rows", "population")
"""Measures that speak of people, the plainest first."""


@dataclass(frozen=True, slots=True)
class Share:
    """How much is sensitive under a measure; ``value`` is None where only bounds are known."""

    measure: str
    value: Fraction | None
    low: Fraction
    high: Fraction
    exact: bool
    confidence: float
    details: Mapping[str, Any]

    @classmethod
    def of(cls, result: CountResult, measure: str = REGIONS) -> Share | None:
        """Return the share under a measure; None where it was not asked for."""
        known = result.share_under(measure)
        if known is None:
            return None
        details = result.measures[measure].details if measure != REGIONS else {}
        return cls(measure, *shares_of(known), known.exact, known.confidence, details)

    @property
    def is_known(self) -> bool:
        """Whether anything is known."""
        return self.value is not None or self.low > 0 or self.high < 1

    @property
    def text(self) -> str:
        """The share, or where it lies, as in a sentence: ``about 1 in 117,000``."""
        return estimate_words(self.value, self.low, self.high, self.exact)

    @property
    def short(self) -> str:
        """The share, or its interval, in little room."""
        return interval_words(self.low, self.high) if self.value is None else self.text

    @property
    def bare(self) -> str:
        """The same where the interval stands beside it: without ``about``."""
        return in_a_table(self.short)

    @property
    def interval(self) -> str:
        """The interval in little room; empty where it is a point."""
        return "" if self.low == self.high else interval_words(self.low, self.high)

    @property
    def how_sure(self) -> str:
        """``exact``, or the interval and its confidence."""
        return sure_words(self.value, self.low, self.high, self.exact, self.confidence)

    @property
    def least(self) -> Fraction:
        """What is known for certain, or the estimate: what the order goes by."""
        return self.low if self.value is None else self.value

    @property
    def order(self) -> tuple[Fraction, Fraction]:
        """Sorts shares, the largest first."""
        return (-self.least, -self.high)

    @property
    def is_zero(self) -> bool:
        """Whether it is proved to be nothing."""
        return self.high == 0

    @property
    def of_whom(self) -> str:
        """Of whom or what it is a share: ``of the 6,000 cases in x.csv``."""
        return share_of(self.measure, self.details)

    @property
    def preposition(self) -> str:
        """``for`` people, ``in`` regions."""
        return "for" if self.measure in (*OF_PEOPLE, "marginals") else "in"

    @property
    def among(self) -> str:
        """The share with its whole, as after ``decide otherwise``.

        Rows are counted: ``for 147 of the 7,000 cases in x.csv (2.1 %)``. An estimate says so:
        ``for about 8.17 % (5.27 to 11.9 %) of a population like x.csv``.
        """
        details = self.details
        if self.is_zero:
            whom = self.of_whom.removeprefix("of ").removeprefix("all ")
            return (
                f"{self.preposition} none of {whom}" if self.measure != REGIONS else "in no region"
            )
        if self.measure == "rows" and "n_sensitive" in details:
            found = integer(details["n_sensitive"])
            return f"for {found} {self.of_whom} ({share_words(self.low)})"
        text = self.text
        if self.value is not None and not self.exact:
            text = f"{text} ({self.interval})"
        return f"{self.preposition} {text} {self.of_whom}"


def share_of(measure: str, details: Mapping[str, Any]) -> str:
    """Return of whom a measure's shares are."""
    source = file_name(str(details.get("source") or "")) or "the data"
    if measure == "rows" and "n_rows" in details:
        placed = details["n_rows"] - len(details.get("rows_in_no_cell", ()))
        return f"of the {integer(placed)} cases in {source}"
    return {
        REGIONS: "of all regions",
        "rows": f"of the cases in {source}",
        "population": f"of a population like {source}",
        "marginals": f"of cases put together from the columns of {source}",
        "volume": "of the input space by volume",
    }.get(measure, f"by {measure}")


def realism_words(results: Iterable[CountResult]) -> str | None:
    """Return how realistic the population of some results is; None where they have none."""
    measures = (result.details.get("measures", {}) for result in results)
    entries = (found["population"] for found in measures if "population" in found)
    entry: Mapping[str, Any] = next(entries, {})
    realism = entry.get("realism")
    if realism is None:
        return None
    note = f"; {entry['fitted_to_other_data']}" if "fitted_to_other_data" in entry else ""
    return f"{_fit_words(entry, realism)}{note}"


def _fit_words(entry: Mapping[str, Any], realism: Mapping[str, Any]) -> str:
    """Return how well a population fits its rows."""
    if entry["n_components"] == 1:
        return "1 component, the product of the marginals: columns are independent in it"
    gain = realism["log_likelihood"] - realism["marginals_log_likelihood"]
    said = (
        f"{entry['n_components']} components; a row that it was not fitted to is "
        f"{math.exp(min(700.0, gain)):.3g} times as likely as with independent columns"
    )
    checks = realism["checks"]
    if not checks:
        return said
    own, alone = (
        100 * sum(abs(check[name] - check["rows"]) for check in checks) / len(checks)
        for name in ("population", "marginals")
    )
    return (
        f"{said}; the shares of {len(checks)} pairs of conditions are {own:.2g} points off those "
        f"of such rows on average, {alone:.2g} with independent columns"
    )


def file_name(path: str) -> str:
    """Return the last part of a path: the folders of a machine are nobody's business."""
    return os.path.basename(path.replace("\\", "/").rstrip("/"))
