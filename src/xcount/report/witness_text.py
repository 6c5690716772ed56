"""Witnesses as tables for the terminal, and as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xcount.witnesses import Witness

if TYPE_CHECKING:
    from rich.console import RenderableType

_TREES = 3


def witness_rows(found: Sequence[Witness]) -> list[dict[str, str | float]]:
    """Return one flat row per witness, for tables: what changes, and what the model makes of it."""
    return [_row(witness) for witness in found]


def witness_tables(found: Sequence[Witness], title: str) -> list[RenderableType]:
    """Return the witnesses as a table of changes and one of the inputs."""
    from rich.markup import escape
    from rich.table import Table

    if not found:
        return ["There is none: no region is sensitive."]
    changes = Table(title=escape(title), title_justify="left", title_style="bold")
    rows = witness_rows(found)
    for head in ("#", *rows[0]):
        changes.add_column(escape(head))
    for number, row in enumerate(rows, start=1):
        changes.add_row(str(number), *(escape(_text(value)) for value in row.values()))
    inputs = Table(title="Inputs", title_justify="left", title_style="bold")
    inputs.add_column("Feature")
    for number in range(1, len(found) + 1):
        inputs.add_column(f"#{number}", justify="right")
    for index, name in enumerate(found[0].features):
        cells = [_pair(witness.point[index], witness.other[index]) for witness in found]
        inputs.add_row(escape(name), *cells)
    return [changes, inputs]


def witness_csv(found: Sequence[Witness]) -> str:
    """Return two lines per witness, one per side; the columns of the features come last."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = found[0].features if found else ()
    writer.writerow(["witness", "side", "margin", "decision", *names])
    for number, witness in enumerate(found, start=1):
        sides = (
            ("point", witness.margin, witness.decision, witness.point),
            ("other", witness.other_margin, witness.other_decision, witness.other),
        )
        for side, margin, decision, values in sides:
            cells = ["" if math.isnan(value) else repr(value) for value in values]
            writer.writerow([number, side, repr(margin), decision or "", *cells])
    return text.getvalue()


def _row(witness: Witness) -> dict[str, str | float]:
    changed = [
        (name, a, b)
        for name, a, b in zip(witness.features, witness.point, witness.other, strict=True)
        if not (a == b or (math.isnan(a) and math.isnan(b)))
    ]
    row: dict[str, str | float] = {
        "Change": "; ".join(f"{name} {_number(a)} -> {_number(b)}" for name, a, b in changed),
        "Margin": f"{witness.margin:.6g} -> {witness.other_margin:.6g}",
    }
    if witness.decision is not None:
        row["Decision"] = f"{witness.decision} -> {witness.other_decision}"
    row["Guards crossed"] = "; ".join(
        f"{crossing.feature}: {', '.join(f'{guard:g}' for guard in crossing.guards) or 'category'}"
        for crossing in witness.crossed
    )
    top = [f"#{tree.tree} {tree.change:+.3g}" for tree in witness.trees[:_TREES]]
    more = len(witness.trees) - len(top)
    row["Trees"] = ", ".join(top) + (f" and {more} more" if more else "")
    if witness.row is not None:
        row["Near row"] = f"{witness.row}{' (nearest)' if witness.proved else ''}"
        row["Moved"] = ", ".join(witness.moved) or "nothing"
    if witness.library_margins is not None:
        row["Library"] = " -> ".join(f"{margin:.6g}" for margin in witness.library_margins)
    return row


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def _number(value: float) -> str:
    return "missing" if math.isnan(value) else f"{value:.9g}"


def _pair(a: float, b: float) -> str:
    first, second = _number(a), _number(b)
    return first if first == second else f"{first} -> {second}"
