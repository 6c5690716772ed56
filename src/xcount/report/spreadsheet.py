"""The counts of an audit as CSV, a line each."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from xcount.answers.people.group_table import GroupRow
from xcount.answers.result import CountResult
from xcount.measures.measured import Measured
from xcount.runs.audit import AuditResult
from xcount.runs.compare import CompareResult
from xcount.runs.compared import finite
from xcount.support.interval import Interval, Number
from xcount.support.numerals import to_json
from xcount.support.records import columns_of
from xcount.support.visible import visible

COLUMNS = (*(str(field.json.column) for field in columns_of(CountResult)), "cut_short")
_RATIO_COLUMNS = ("ratio", "ratio_low", "ratio_high", "ratio_confidence")
_SHARE_KEYS = ("share", "low", "high")
_ROW_KEYS = ("n_sensitive", "n_rows", "outside", "left_out", "left_out_reasons", "n_fixed")
_GROUP_KEYS = ("n_rows", "rate", "impact_ratio", "n_sensitive", "share")
_FORMULA_STARTS = ("=", "+", "-", "@")


def csv_report(audit: AuditResult) -> str:
    """Return one line per count, in the order of the audit.

    A name that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    measures, groups = _measures(audit.results), _groups(audit.results)
    writer.writerow((*COLUMNS, *_measure_columns(measures), *_group_columns(groups)))
    for result in audit.results:
        shares = _measure_cells(result, measures)
        writer.writerow([*_row(result), *shares, *_group_cells(result, groups)])
    return out.getvalue()


def csv_comparison(comparison: CompareResult) -> str:
    """Return one line per question and model, with the ratio to the first model."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    measures, groups = _measures(comparison.results), _groups(comparison.results)
    ratios = [f"{name}_{column}" for name in measures for column in _RATIO_COLUMNS]
    heads = (*COLUMNS, *_measure_columns(measures), *ratios, *_group_columns(groups))
    writer.writerow(("model", *_RATIO_COLUMNS, *heads))
    for row in comparison.rows:
        for index, result in enumerate(row.results):
            if result is not None:
                first = (comparison.names[index], *_ratio_cells(row.ratio(index)))
                last = [c for name in measures for c in _ratio_cells(row.ratio(index, name))]
                shares = _measure_cells(result, measures)
                own = _group_cells(result, groups)
                writer.writerow([*map(cell, first), *_row(result), *shares, *map(cell, last), *own])
    return out.getvalue()


def _ratio_cells(ratio: Interval | None) -> tuple[Number | None, ...]:
    if ratio is None:
        return (None,) * len(_RATIO_COLUMNS)
    return (ratio.value, ratio.low, finite(ratio.high), ratio.confidence)


def _measures(results: Iterable[CountResult]) -> list[str]:
    """Return the names of the measures that any result has."""
    return list(dict.fromkeys(name for result in results for name in result.measures))


def _measure_columns(measures: Sequence[str]) -> list[str]:
    return [f"{name}_{key}" for name in measures for key in keys_of(name)]


def _measure_cells(result: CountResult, measures: Sequence[str]) -> list[str]:
    """Return the share and its interval under each measure, empty where it was not measured."""
    return [
        cell(None if name not in result.measures else value_of(result.measures[name], key))
        for name in measures
        for key in keys_of(name)
    ]


_Group = tuple[tuple[str, ...], tuple[str, ...]]
"""The columns that make groups, and their values in one; no values are those of no known group."""


def _groups(results: Iterable[CountResult]) -> list[_Group]:
    """Return the groups of rows that any result has."""
    return list(dict.fromkeys(group for result in results for group in _group_rows(result)))


def _group_rows(result: CountResult) -> dict[_Group, GroupRow]:
    tables = () if result.groups is None else result.groups.tables
    return {
        (table.columns, row.values): row
        for table in tables
        for row in (*table.groups, table.unknown)
    }


def _group_columns(groups: Sequence[_Group]) -> list[str]:
    return [
        cell(f"{' '.join(columns)}={' '.join(values) or 'unknown'}:{key}")
        for columns, values in groups
        for key in _GROUP_KEYS
    ]


def _group_cells(result: CountResult, groups: Sequence[_Group]) -> list[str]:
    """Return the numbers of each group's rows, empty if there are none."""
    own = _group_rows(result)
    return [
        cell(None if group not in own else getattr(own[group], key))
        for group in groups
        for key in _GROUP_KEYS
    ]


def keys_of(measure: str) -> tuple[str, ...]:
    """Return the columns of a measure: the share, its bounds, and the numbers of rows."""
    return (*_SHARE_KEYS, *(_ROW_KEYS if measure == "rows" else ()))


def value_of(measured: Measured, key: str) -> object:
    """Return the value in a column of a measure; None if it is not known."""
    if key in _SHARE_KEYS:
        return getattr(measured, key)
    value = measured.details.get(key)
    if not isinstance(value, Mapping):
        return value
    return "; ".join(f"{reason}: {number}" for reason, number in value.items())


def _row(result: CountResult) -> list[str]:
    own = [cell(field.cell_of(result)) for field in columns_of(CountResult)]
    return [*own, cell("; ".join(result.cut_short))]


def cell(value: object) -> str:
    """Return a cell of a CSV file, control characters as escapes.

    Text that looks like a formula gets an apostrophe in front.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        shown = visible(value)
        return f"'{shown}" if shown.startswith(_FORMULA_STARTS) else shown
    return to_json(value)
