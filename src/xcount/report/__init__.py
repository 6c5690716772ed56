"""Results -> one HTML page, a model-card block, a spreadsheet, plots. Nothing here counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xcount.report.markdown import markdown_report
    from xcount.report.page.audit import html_report
    from xcount.report.page.comparison import html_comparison
    from xcount.report.page.diff import html_diff
    from xcount.report.page.monotone import html_monotone
    from xcount.report.page.person import html_person
    from xcount.report.page.repair import html_repair
    from xcount.report.repair_markdown import markdown_repair
    from xcount.report.spreadsheet import csv_comparison, csv_report

__all__ = [
    "csv_comparison",
    "csv_report",
    "html_comparison",
    "html_diff",
    "html_monotone",
    "html_person",
    "html_repair",
    "html_report",
    "markdown_repair",
    "markdown_report",
]

_HOMES = {
    "csv_comparison": "xcount.report.spreadsheet",
    "csv_report": "xcount.report.spreadsheet",
    "html_comparison": "xcount.report.page.comparison",
    "html_diff": "xcount.report.page.diff",
    "html_monotone": "xcount.report.page.monotone",
    "html_repair": "xcount.report.page.repair",
    "html_person": "xcount.report.page.person",
    "html_report": "xcount.report.page.audit",
    "markdown_repair": "xcount.report.repair_markdown",
    "markdown_report": "xcount.report.markdown",
}


def __getattr__(name: str) -> Any:
    """Import a renderer when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'xcount.report' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
