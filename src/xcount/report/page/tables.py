"""Tables of a page: the script sorts them by a click on a column, and filters them by feature."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from xcount.report.markup import Child, Markup, element


def table(
    head: Sequence[Child], rows: Sequence[Child], caption: Child, *, can_sort: bool = True
) -> Markup:
    """Return a table that scrolls sideways by itself on a narrow screen."""
    header = element("tr", (element("th", cell, scope="col") for cell in head))
    inside = element(
        "table",
        element("caption", caption),
        element("thead", header),
        element("tbody", rows),
        class_="sort" if can_sort and len(rows) > 1 else None,
    )
    label = caption if isinstance(caption, str) else None
    return element("div", inside, class_="scroll", tabindex="0", role="region", aria_label=label)


def number_cell(
    text: Child, value: Fraction | float | None = None, tip: str | None = None
) -> Markup:
    """Return a table cell with a number; the script sorts it by its value."""
    sort_key = None if value is None else f"{float(value):.17g}"
    return element("td", text, class_="n", data_v=sort_key, title=tip)


def fact_list(facts: Sequence[tuple[str, Child]]) -> Markup:
    """Return facts as a list of names and values."""
    rows = (element("div", element("dt", what), element("dd", value)) for what, value in facts)
    return element("dl", rows, class_="record")
