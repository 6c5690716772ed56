"""What a share is a share of, in words: of regions, of people, of a volume."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from typing import Any

from xcount.answers.result import CountResult
from xcount.measures.measured import REGIONS, Measured
from xcount.report.words.numbers import (
    estimate_words,
    integer,
    share_words,
    short_interval,
)

OF_PEOPLE = ("rows", "population")
"""Measures that speak of people, the plainest first."""


def of_whom(measured: Measured) -> str:
    """Return of whom or what a share is: ``of the 6,000 cases in x.csv``."""
    details = measured.details
    source = file_name(str(details.get("source") or "")) or "the data"
    if measured.name == "rows" and "n_rows" in details:
        placed = details["n_rows"] - measured.interval.left_out
        return f"of the {integer(placed)} cases in {source}"
    return {
        REGIONS: "of all regions",
        "rows": f"of the cases in {source}",
        "population": f"of a population like {source}",
        "marginals": f"of cases assembled from the columns of {source}",
        "volume": "of the input space by volume",
    }.get(measured.name, f"by {measured.name}")


def among_whom(measured: Measured) -> str:
    """Return a share with its whole, as it follows ``decide differently``.

    Rows are counted: ``for 147 of the 7,000 cases in x.csv (2.1 %)``. An estimate says so: ``for
    about 8.17 % (5.27 to 11.9 %) of a population like x.csv``.
    """
    share, whole = measured.interval, of_whom(measured)
    preposition = "for" if measured.name in (*OF_PEOPLE, "marginals") else "in"
    if share.high == 0:
        whom = whole.removeprefix("of ").removeprefix("all ")
        return f"{preposition} none of {whom}" if measured.name != REGIONS else "in no region"
    if measured.name == "rows" and "n_sensitive" in measured.details:
        return f"for {integer(measured.details['n_sensitive'])} {whole} ({share_words(share.low)})"
    return f"{preposition} {share_with_bounds(measured)} {whole}"


def share_with_bounds(measured: Measured) -> str:
    """Return a share, with its interval in brackets if it is an estimate."""
    share = measured.interval
    if share.value is None or share.exact:
        return estimate_words(share)
    return f"{estimate_words(share)} ({short_interval(share)})"


def realism_words(results: Iterable[CountResult]) -> str | None:
    """Return how realistic the population of some results is; None if they have none."""
    found = (result.measures["population"] for result in results if "population" in result.measures)
    entry: Mapping[str, Any] = next((measured.details for measured in found), {})
    realism = entry.get("realism")
    if realism is None:
        return None
    note = f"; {entry['fitted_to_other_data']}" if "fitted_to_other_data" in entry else ""
    return f"{_fit_words(entry, realism)}{note}"


def _fit_words(entry: Mapping[str, Any], realism: Mapping[str, Any]) -> str:
    """Return how well a population fits its rows."""
    if entry["n_components"] == 1:
        return "1 component, the product of the marginals: its columns are independent"
    gain = realism["log_likelihood"] - realism["marginals_log_likelihood"]
    said = (
        f"{entry['n_components']} components; a held-out row is "
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
        f"{said}; the shares of {len(checks)} pairs of conditions differ from those of held-out "
        f"rows by {own:.2g} points on average, by {alone:.2g} with independent columns"
    )


def file_name(path: str) -> str:
    """Return the last part of a path: the folders of a machine are nobody's business."""
    return os.path.basename(path.replace("\\", "/").rstrip("/"))
