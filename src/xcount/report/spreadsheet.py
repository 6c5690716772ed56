"""The counts of an audit as CSV, a line each."""

from __future__ import annotations

import csv
import io
from dataclasses import astuple

from xcount.answers.result import CountResult
from xcount.runs.audit import AuditResult
from xcount.runs.compare import CompareResult
from xcount.support.numerals import to_json
from xcount.support.records import columns_of

COLUMNS = tuple(str(field.json.column) for field in columns_of(CountResult))
_RATIO_COLUMNS = ("ratio", "ratio_low", "ratio_high", "ratio_confidence")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def csv_report(audit: AuditResult) -> str:
    """Return one line per count, in the order of the audit.

    A name that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(_row(result) for result in audit.results)
    return out.getvalue()


def csv_comparison(comparison: CompareResult) -> str:
    """Return one line per question and model, with the ratio to the first model."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("model", *_RATIO_COLUMNS, *COLUMNS))
    for row in comparison.rows:
        for index, result in enumerate(row.results):
            if result is not None:
                ratio = row.ratio(index)
                bounds = astuple(ratio) if ratio else (None,) * len(_RATIO_COLUMNS)
                first = (comparison.names[index], *bounds)
                writer.writerow([*(cell(value) for value in first), *_row(result)])
    return out.getvalue()


def _row(result: CountResult) -> list[str]:
    return [cell(field.cell_of(result)) for field in columns_of(CountResult)]


def cell(value: object) -> str:
    """Return a cell of a CSV file; text that looks like a formula gets an apostrophe in front."""
    if value is None:
        return ""
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA_STARTS) else value
    return to_json(value)
