"""Groups of a table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xcount.report.group_words import Sheet
from xcount.report.terminal import escaped

if TYPE_CHECKING:
    from rich.console import RenderableType


def group_tables(sheets: Sequence[Sheet]) -> list[RenderableType]:
    """Return a table for each way to group the rows; the last one says what the columns are."""
    from rich.table import Table

    found: list[RenderableType] = []
    for sheet in sheets:
        table = Table(
            title=escaped(sheet.title),
            title_justify="left",
            title_style="bold",
            caption_justify="left",
        )
        for head in sheet.head:
            table.add_column(escaped(head), justify="left" if head == "Group" else "right")
        for row in sheet.rows:
            table.add_row(*map(escaped, row))
        found.append(table)
    return [*found, escaped(sheets[-1].note)] if found else []
