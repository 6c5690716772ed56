"""Tables of a page: the script sorts them by a click on a column, and filters them by feature.

Where there is no room for columns (a phone; on paper, tables of many columns), each row becomes a
list: every cell carries the heading of its column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from xcount.report.markup import Child, Markup, element

_MOST_BESIDE_ON_PAPER = 8


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: what it shows, what the script sorts it by, and what a pointer over it says."""

    content: Child
    value: Fraction | float | None = None
    tip: str | None = None
    kind: str | None = None
    is_heading: bool = False

    def drawn(self, heading: str) -> Markup:
        """Return the cell under a heading."""
        if self.is_heading:
            return element("th", self.content, scope="row", class_=self.kind)
        return element(
            "td",
            self.content,
            class_=self.kind,
            data_v=None if self.value is None else f"{float(self.value):.17g}",
            data_head=heading or None,
            title=self.tip,
        )


@dataclass(frozen=True, slots=True)
class Row:
    """A row of cells; its attributes are what the script filters by."""

    cells: tuple[Cell, ...]
    attributes: Mapping[str, str | None]


def row(*cells: Cell, **attributes: str | None) -> Row:
    """Return a row; attributes are spelled as those of elements are."""
    return Row(cells, attributes)


def text_cell(content: Child) -> Cell:
    """Return a cell with words."""
    return Cell(content)


def number_cell(text: Child, value: Fraction | float | None = None, tip: str | None = None) -> Cell:
    """Return a cell with a number; the script sorts it by its value."""
    return Cell(text, value, tip, "n")


def table(
    head: Sequence[str],
    rows: Sequence[Row],
    caption: Child,
    *,
    can_sort: bool = True,
    beside_on_a_phone: int = 2,
) -> Markup:
    """Return a table that scrolls sideways by itself where nothing else helps.

    Args:
        head: the headings.
        rows: as long as the headings.
        caption: what the table shows.
        can_sort: whether the script lets people sort it.
        beside_on_a_phone: so many columns have room on a narrow screen.
    """
    header = element("tr", (element("th", element("bdi", each), scope="col") for each in head))
    body = (
        element(
            "tr",
            (cell.drawn(heading) for cell, heading in zip(each.cells, head, strict=True)),
            **each.attributes,
        )
        for each in rows
    )
    kinds = {
        "sort": can_sort and len(rows) > 1,
        "stack": len(head) > beside_on_a_phone,
        "many": len(head) > _MOST_BESIDE_ON_PAPER,
    }
    inside = element(
        "table",
        element("caption", caption),
        element("thead", header),
        element("tbody", body),
        class_=" ".join(kind for kind, holds in kinds.items() if holds) or None,
    )
    label = caption if isinstance(caption, str) else None
    return element("div", inside, class_="scroll", tabindex="0", role="region", aria_label=label)


def fact_list(facts: Sequence[tuple[str, Child]]) -> Markup:
    """Return facts as a list of names and values."""
    rows = (element("div", element("dt", what), element("dd", value)) for what, value in facts)
    return element("dl", rows, class_="record")
