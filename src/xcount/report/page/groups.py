"""The section of a page about groups of the table, which the model need not know."""

from __future__ import annotations

from collections.abc import Sequence

from xcount.report.group_words import Sheet
from xcount.report.markup import Child, Markup, element, name
from xcount.report.page.tables import number_cell, row, table, text_cell


def groups_section(sheets: Sequence[Sheet]) -> Markup | None:
    """Return the section; None without groups."""
    if not sheets:
        return None
    return element(
        "section",
        element("h2", "How groups fare"),
        group_sheets(sheets),
        element("p", sheets[-1].note, class_="note"),
        id="groups",
    )


def group_sheets(sheets: Sequence[Sheet]) -> list[Child]:
    """Return a table for each way to group the rows."""
    return [
        table(
            sheet.head,
            [row(text_cell(name(cells[0])), *map(number_cell, cells[1:])) for cells in sheet.rows],
            sheet.title,
            can_sort=False,
        )
        for sheet in sheets
    ]
