"""What a share is a share of, in words: of regions, of people, of a volume."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from xcount.answers.result import CountResult, Verdict
from xcount.measures.measured import REGIONS, Measured
from xcount.report.words.numbers import (
    OF_MEASURE,
    estimate_words,
    integer,
    interval_words,
    plural,
    share_words,
    short_integer,
    short_interval,
    short_share,
)
from xcount.support.interval import Interval
from xcount.support.visible import visible

OF_PEOPLE = ("rows", "population")
"""Measures that speak of people, the plainest first."""
_LISTED = 3
_CUT_SHORT = {"exact": "exact counting", "samples": "trial samples"}


def of_whom(measured: Measured) -> str:
    """Return of whom or what a share is: ``of the 6,000 cases in x.csv``."""
    details = measured.details
    source = file_name(str(details.get("source") or "")) or "the data"
    if has_rows(measured):
        apart = _in_brackets(_rows_apart(measured))
        return f"of the {integer(_n_asked(measured))} cases in {source}{apart}"
    return {
        REGIONS: "of all regions",
        "rows": f"of the cases in {source}",
        "population": f"of a population like {source}",
        "marginals": f"of cases assembled from the columns of {source}",
        "volume": "of the input space by volume",
    }.get(measured.name, f"by {measured.name}")


def among_whom(measured: Measured, names: Sequence[str] = ()) -> str:
    """Return a share with its whole, as it follows ``decide differently``.

    Rows are counted: ``for 147 of the 7,000 cases in x.csv (2.1 %)``. An estimate says so: ``for
    about 8.17 % (5.27 to 11.9 %) of a population like x.csv``. With the names of the sensitive
    features, it says what share of those who can change that is, if not all can.
    """
    share, whole = measured.interval, of_whom(measured)
    preposition = "for" if measured.name in (*OF_PEOPLE, "marginals") else "in"
    if share.high == 0:
        whom = whole.removeprefix("of ").removeprefix("all ")
        return f"{preposition} none of {whom}" if measured.name != REGIONS else "in no region"
    if has_rows(measured):
        cases = whole.removesuffix(_in_brackets(_rows_apart(measured)))
        said = _in_brackets([rows_share(share), *notes_of(measured, names)])
        return f"for {_n_sensitive(measured)} {cases}{said}"
    said = _in_brackets(notes_of(measured, names))
    return f"{preposition} {share_with_bounds(measured)} {whole}{said}"


def of_measured(measured: Measured) -> str:
    """Return what a share is a share of, in brief; rows with their numbers."""
    if has_rows(measured):
        return f"of {'; '.join([plural(_n_asked(measured), 'row'), *notes_of(measured)])}"
    return f"{OF_MEASURE[measured.name]}{_in_brackets(notes_of(measured))}"


def _in_brackets(notes: Sequence[str]) -> str:
    return f" ({'; '.join(notes)})" if notes else ""


def rows_words(measured: Measured, names: Sequence[str] = ()) -> str:
    """Return how many rows are sensitive, of how many, and which ones the share is not about.

    Example:
        >>> from xcount.measures.measured import counted_rows
        >>> numbers = {"n_rows": 10, "n_sensitive": 2, "n_fixed": 0, "outside": 1, "left_out": 1}
        >>> details = {**numbers, "left_out_reasons": {"age is missing": 1}}
        >>> rows_words(Measured("rows", counted_rows(2, 10, 1, 1), details=details))
        '2 to 3 of 9 rows; 1 of 10 is outside the domain; 1 left out: age is missing'
    """
    asked = f"{_n_sensitive(measured)} of {plural(_n_asked(measured), 'row')}"
    return "; ".join([asked, *notes_of(measured, names)])


def cut_short_words(kinds: Collection[str]) -> str | None:
    """Return what the time limit cut short before an estimate; None if nothing.

    Example:
        >>> cut_short_words(("exact",))
        'the time limit cut exact counting short'
    """
    words = " and ".join(words for kind, words in _CUT_SHORT.items() if kind in kinds)
    return f"the time limit cut {words} short" if words else None


def has_rows(measured: Measured | None) -> bool:
    """Return whether a share is one of counted rows."""
    return measured is not None and "n_sensitive" in measured.details


def rows_share(share: Interval) -> str:
    """Return a share of counted rows: from the bounds, if rows without a place may be sensitive."""
    return share_words(share.low) if share.exact else interval_words(share)


def notes_of(measured: Measured, names: Sequence[str] = ()) -> list[str]:
    """Return what else there is to say of a share.

    That is the share among those who can change at all, if not all can; and which rows the share
    is not about: those outside the domain, or without a place.

    Args:
        measured: the share.
        names: the sensitive features, to be named.
    """
    changeable = share_of_changeable(measured, names)
    notes = [] if changeable is None else [changeable]
    return [*notes, *(_rows_apart(measured) if has_rows(measured) else [])]


def share_of_changeable(measured: Measured, names: Sequence[str] = ()) -> str | None:
    """Return the share among those who can change: ``39.0 % of the 565 whose sex can change``.

    None if all can, or none.
    """
    details, share = measured.details, measured.interval
    whole = _n_asked(measured) if has_rows(measured) else details.get("n_regions", 0)
    n_changeable = whole - details.get("n_fixed", 0)
    if not 0 < n_changeable < whole:
        return None
    part = Fraction(whole, n_changeable)
    value = None if share.value is None or share.left_out else min(1, share.value * part)
    among = Interval(value, min(1, share.low * part), min(1, share.high * part), share.confidence)
    whose = " and ".join(map(visible, names))
    who = f"whose {whose} can change" if names else "that can change"
    return f"{short_share(among)} of the {short_integer(n_changeable)} {who}"


def _rows_apart(measured: Measured) -> list[str]:
    """Return which rows a share is not about: outside the domain, or without a place."""
    details, notes = measured.details, []
    if n_outside := details["outside"]:
        are = "is" if n_outside == 1 else "are"
        notes.append(
            f"{integer(n_outside)} of {integer(details['n_rows'])} {are} outside the domain"
        )
    if n_left_out := details["left_out"]:
        notes.append(f"{integer(n_left_out)} left out: {_reasons(details['left_out_reasons'])}")
    return notes


def _reasons(reasons: Mapping[str, int]) -> str:
    """Return why rows are left out, the most frequent reason first."""
    ordered = sorted(reasons.items(), key=lambda item: -item[1])
    if len(ordered) == 1:
        return visible(ordered[0][0])
    listed = [f"{visible(reason)} ({integer(n)})" for reason, n in ordered[:_LISTED]]
    more = len(ordered) - len(listed)
    return ", ".join([*listed, plural(more, "more reason")] if more else listed)


def _n_asked(measured: Measured) -> int:
    """Return how many rows are inside the domain."""
    return int(measured.details["n_rows"]) - int(measured.details["outside"])


def _n_sensitive(measured: Measured) -> str:
    """Return how many rows are sensitive; those without a place may be."""
    least, left_out = measured.details["n_sensitive"], measured.details["left_out"]
    return f"{integer(least)} to {integer(least + left_out)}" if left_out else integer(least)


def why_rows_undecided(result: CountResult) -> str | None:
    """Return why rows without a place leave a verdict undecided; None if that is not the reason."""
    share = result.judged
    if result.verdict is not Verdict.UNDECIDED or not share.left_out:
        return None
    none, all_of_them = share_words(share.low), share_words(share.high)
    return (
        f"{plural(share.left_out, 'row')} could not be placed: the share is {none} if none of them "
        f"is sensitive, {all_of_them} if all are"
    )


def share_with_bounds(measured: Measured) -> str:
    """Return a share, with its interval in brackets if it is an estimate."""
    share = measured.interval
    if share.value is None or share.is_settled:
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
