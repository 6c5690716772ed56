"""How groups of a table fare, as sheets of text that every form of report shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xcount.answers.diff_result import DiffResult
from xcount.answers.people.group_table import GroupRow, Groups, GroupTable
from xcount.answers.result import CountResult
from xcount.report.diff_words import swap_title
from xcount.report.explanation_words import ASSUMED
from xcount.report.words.numbers import NONE, plural, share_words
from xcount.runs.compare import CompareResult

UNKNOWN_GROUP, EVERYONE = "(unknown)", "(all rows)"
MOST_SHARES = 5
"""Columns with shares of sensitive rows side by side."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table of groups in words: a title, headings, rows of as many cells, and a note."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str


def count_sheets(result: CountResult) -> list[Sheet]:
    """Return the groups of one count."""
    return [] if result.groups is None else sheets([("Sensitive", result.groups)])


def audit_sheets(results: Iterable[CountResult]) -> list[Sheet]:
    """Return the groups of an audit, with the shares of sensitive rows for its first questions."""
    shown = [
        (f"{' + '.join(r.sensitive)}, {r.change.label}", r.groups)
        for r in results
        if r.groups is not None
    ]
    return sheets(shown[:MOST_SHARES]) if shown else []


def comparison_sheets(comparison: CompareResult) -> list[Sheet]:
    """Return the groups of the models of a comparison: their rates side by side."""
    for row in comparison.rows:
        found = [
            (name, result.groups)
            for name, result in zip(comparison.names, row.results, strict=True)
            if result is not None and result.groups is not None
        ]
        if found:
            label = f"{row.label}, {row.change.label}"
            return sheets([(f"{label}, {name}", groups) for name, groups in found], found)
    return []


def diff_sheets(result: DiffResult) -> list[Sheet]:
    """Return the groups of a diff: both models' rates, and how many rows go which way."""
    if result.groups is None:
        return []
    both = (result.groups, result.other_groups)
    rates = [(name, own) for name, own in zip(result.names, both, strict=True) if own is not None]
    swaps = [(swap_title(s, result.names), s.groups) for s in result.swaps if s.groups is not None]
    return sheets([*swaps] or [("Disagree", result.groups)], rates)


def sheets(
    sensitive: Sequence[tuple[str, Groups]], rates: Sequence[tuple[str, Groups]] = ()
) -> list[Sheet]:
    """Return a sheet for each way to group the rows.

    Args:
        sensitive: what each column of sensitive rows is about, and its groups.
        rates: the models whose rates are compared, by name; that of the first groups unless given.
    """
    first = sensitive[0][1]
    models = rates or [("", first)]
    found = []
    for number, table in enumerate(first.tables):
        head, columns = ["Group", "Rows"], [_labels(table), _n_rows(table, first)]
        for name, groups in models if first.favourable is not None else ():
            of_model = f" by {name}" if name else ""
            own = groups.tables[number]
            head += [f"Rate{of_model}", f"Impact ratio{of_model}"]
            columns += [_rates(own, groups), _ratios(own)]
        for label, groups in sensitive:
            head.append(label)
            columns.append(_shares(groups.tables[number], groups))
        rows = tuple(zip(*columns, strict=True))
        found.append(Sheet(_title(table), tuple(head), rows, _note(table, first)))
    return found


def impact_text(groups: Groups, table: GroupTable) -> str:
    """Return the lowest and the highest rate of some groups, and their ratio, in a sentence."""
    ordered = table.by_rate()
    if not ordered:
        return f"Groups by {table.label}: their rates are not known."
    low, high = ordered[0], ordered[-1]
    ratio = "" if table.ratio is None else f"; impact ratio {table.ratio:.3g}"
    return (
        f"Groups by {table.label}: {_decision(groups)} for {_percent(low.rate)} of {low.label} "
        f"and {_percent(high.rate)} of {high.label}{ratio}."
    )


def _title(table: GroupTable) -> str:
    return f"Groups by {table.label}"


def _decision(groups: Groups) -> str:
    assumed = f" ({ASSUMED})" if groups.is_assumed else ""
    return f"the favourable decision, {groups.favourable}{assumed},"


def _note(table: GroupTable, groups: Groups) -> str:
    """Return what the columns are, and which rows are in no group."""
    parts = []
    if groups.favourable is not None:
        assumed = f" ({ASSUMED})" if groups.is_assumed else ""
        parts.append(
            f"Rate: the share of the group whose decision is {groups.favourable}{assumed}. "
            "Impact ratio: that rate divided by the highest rate of a group."
        )
    else:
        parts.append("There are no rates: no decision is asked about.")
    if groups.n_outside or groups.n_left_out:
        parts.append(
            f"Not in the table: {plural(groups.n_outside, 'row')} outside the domain, "
            f"{plural(groups.n_left_out, 'row')} without a place."
        )
    return " ".join(parts)


def _all(table: GroupTable, everyone: GroupRow) -> list[GroupRow]:
    unknown = [table.unknown] if table.unknown.n_rows else []
    return [*table.groups, *unknown, everyone]


def _labels(table: GroupTable) -> list[str]:
    unknown = [UNKNOWN_GROUP] if table.unknown.n_rows else []
    return [*(group.label for group in table.groups), *unknown, EVERYONE]


def _n_rows(table: GroupTable, groups: Groups) -> list[str]:
    return [f"{row.n_rows:,}" for row in _all(table, groups.everyone)]


def _rates(table: GroupTable, groups: Groups) -> list[str]:
    return [_percent(row.rate) for row in _all(table, groups.everyone)]


def _ratios(table: GroupTable) -> list[str]:
    rows = _all(table, table.unknown)  # neither the unknown nor all rows have a ratio
    return [NONE if r.impact_ratio is None else f"{r.impact_ratio:.3f}" for r in rows]


def _shares(table: GroupTable, groups: Groups) -> list[str]:
    found = []
    for row in _all(table, groups.everyone):
        number = "" if row.n_sensitive is None else f" ({row.n_sensitive:,})"
        found.append(f"{_percent(row.share)}{number}")
    return found


def _percent(share: float | None) -> str:
    return NONE if share is None else share_words(share)
