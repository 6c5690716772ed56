"""Witnesses as tables for the terminal, and as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xcount.answers.witness.witnesses import Witness
from xcount.report.spreadsheet import cell
from xcount.report.terminal import escaped

if TYPE_CHECKING:
    from rich.console import RenderableType


INPUTS_BESIDE_EACH_OTHER = 4
"""So many columns of a table can be read; more would be cut off."""


def witness_tables(found: Sequence[Witness], title: str) -> list[RenderableType]:
    """Return the witnesses as a table of changes, and tables of the inputs."""
    from rich.table import Table

    if not found:
        return ["There is none: no region is sensitive."]
    changes = Table(title=escaped(title), title_justify="left", title_style="bold")
    rows = [witness.summary() for witness in found]
    for head in ("#", *rows[0]):
        changes.add_column(escaped(head))
    for number, row in enumerate(rows, start=1):
        changes.add_row(str(number), *(escaped(value) for value in row.values()))
    parts = range(0, len(found), INPUTS_BESIDE_EACH_OTHER)
    return [changes, *(_inputs(found, first) for first in parts)]


def _inputs(found: Sequence[Witness], first: int) -> RenderableType:
    """Return a table of the inputs of some witnesses, one column each."""
    from rich.table import Table

    shown = found[first : first + INPUTS_BESIDE_EACH_OTHER]
    inputs = Table(title="" if first else "Inputs", title_justify="left", title_style="bold")
    inputs.add_column("Feature")
    for number in range(first + 1, first + len(shown) + 1):
        inputs.add_column(f"#{number}", justify="right", overflow="fold")
    for rows_of_feature in zip(*(witness.values() for witness in shown), strict=True):
        cells = [a if a == b else f"{a} -> {b}" for _, a, b in rows_of_feature]
        inputs.add_row(escaped(rows_of_feature[0][0]), *map(escaped, cells))
    return inputs


def witness_csv(found: Sequence[Witness]) -> str:
    """Return two lines per witness, one per side; the columns of the features come last.

    Names that a spreadsheet would take for formulas get an apostrophe in front.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = found[0].features if found else ()
    writer.writerow(["witness", "side", "margin", "decision", *map(cell, names)])
    for number, witness in enumerate(found, start=1):
        sides = (
            ("point", witness.margin, witness.decision, witness.point),
            ("other", witness.other_margin, witness.other_decision, witness.other),
        )
        for side, margin, decision, values in sides:
            cells = ["" if math.isnan(value) else repr(value) for value in values]
            writer.writerow([number, side, repr(margin), cell(decision), *cells])
    return text.getvalue()
