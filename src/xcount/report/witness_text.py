"""Witnesses in words: a row of a table each, tables for the terminal, and CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from xcount.answers.result import CountResult
from xcount.answers.witness.witness import Crossing, Witness, Witnesses
from xcount.question.change import shown_decimal
from xcount.question.flip import Flip
from xcount.report.explanation_words import explanation_of
from xcount.report.spreadsheet import cell
from xcount.report.terminal import escaped

if TYPE_CHECKING:
    from rich.console import RenderableType


INPUTS_BESIDE_EACH_OTHER = 4
"""So many columns of a table can be read; more would be cut off."""
_SHOWN_TREES = 3


def summary(witness: Witness) -> dict[str, str]:
    """Return one row of a table: what changes, and what the model makes of it."""
    changed = [(name, a, b) for name, a, b in values(witness) if a != b]
    of_class = "" if witness.class_label is None else f"{witness.class_label}: "
    row = {
        "Change": "; ".join(f"{name} {a} -> {b}" for name, a, b in changed),
        "Margin": f"{of_class}{witness.margin:.6g} -> {witness.other_margin:.6g}",
    }
    if witness.probability is not None:
        row["Probability"] = f"{witness.probability:.6g} -> {witness.other_probability:.6g}"
    if witness.decision is not None:
        row["Decision"] = f"{witness.decision} -> {witness.other_decision}"
    row["Guards crossed"] = "; ".join(
        f"{crossing.feature}: {_guards(crossing)}" for crossing in witness.crossed
    )
    top = [f"#{tree.tree} {tree.change:+.3g}" for tree in witness.trees[:_SHOWN_TREES]]
    more = len(witness.trees) - len(top)
    row["Trees"] = ", ".join(top) + (f" and {more} more" if more else "")
    if witness.row is not None:
        row["Near row (from 0)"] = f"{witness.row}{' (nearest)' if witness.proved else ''}"
        row["Moved"] = ", ".join(witness.moved or ()) or "nothing"
    if witness.library_margins is not None:
        row["Library"] = " -> ".join(f"{margin:.6g}" for margin in witness.library_margins)
    return row


def decisions(witness: Witness, result: CountResult) -> tuple[str, str]:
    """Return the decisions on both sides, named as the rest of a report names them.

    A side of a cut-off is class 0 or 1 where the model decides there, else it names the cut-off.
    """
    found = (str(witness.decision), str(witness.other_decision))
    if any(rates.favourable in ("0", "1") for rates in explanation_of(result).rates):
        classes = {"above": "1", "not above": "0"}
        return classes.get(found[0], found[0]), classes.get(found[1], found[1])
    change = result.change
    if not isinstance(change, Flip) or change.cutoff is None or "above" not in found:
        return found
    cutoff = shown_decimal(change.cutoff)
    return f"{found[0]} {cutoff}", f"{found[1]} {cutoff}"


def same_inputs(witness: Witness) -> str:
    """Return the features that stay the same, in one line."""
    return ", ".join(f"{name} {a}" for name, a, b in values(witness) if a == b)


def values(witness: Witness) -> list[tuple[str, str, str]]:
    """Return name, value and other value of each feature; categories by name."""
    rows = []
    for name, a, b in zip(witness.features, witness.point, witness.other, strict=True):
        first = witness.labels.get(name, _number(a))
        second = witness.other_labels.get(name, _number(b))
        if first == second and a != b and not math.isnan(a):
            first, second = repr(a), repr(b)
        rows.append((name, first, second))
    return rows


def _number(value: float) -> str:
    return "missing" if math.isnan(value) else f"{value:.9g}"


def _guards(crossing: Crossing) -> str:
    if not crossing.guards:
        is_missing = crossing.before_cell.is_missing or crossing.after_cell.is_missing
        return "missing or not" if is_missing else "category"
    finer = max((crossing.before_cell, crossing.after_cell), key=lambda cell: cell.digits or 0)
    return ", ".join(map(finer.edge_text, crossing.guards))


def witness_tables(found: Witnesses, title: str) -> list[RenderableType]:
    """Return the witnesses as a table of changes, and tables of the inputs."""
    from rich.table import Table

    if not found:
        return [f"There are none: {found.why_none}."]
    changes = Table(title=escaped(title), title_justify="left", title_style="bold")
    rows = list(map(summary, found))
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
    for rows_of_feature in zip(*map(values, shown), strict=True):
        cells = [a if a == b else f"{a} -> {b}" for _, a, b in rows_of_feature]
        inputs.add_row(escaped(rows_of_feature[0][0]), *map(escaped, cells))
    return inputs


def _csv_value(name: str, value: float, labels: Mapping[str, str]) -> str:
    if name in labels:
        return cell(labels[name])
    return "" if math.isnan(value) else repr(value)


def _own_column(name: str, features: Sequence[str]) -> str:
    """Return the name of a column that is no feature's, though a feature may have the same."""
    while name in features:
        name = f"xcount {name}"
    return name


def witness_csv(found: Witnesses) -> str:
    """Return two lines per witness, one per side; the columns of the features come last.

    Categories are named as the model names them, so the lines are rows of a table for it.
    Names that a spreadsheet would take for formulas get an apostrophe in front.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = found.features
    own = (_own_column(name, names) for name in ("witness", "side", "margin", "decision"))
    writer.writerow([*own, *map(cell, names)])
    for number, witness in enumerate(found, start=1):
        other_labels = witness.other_labels
        sides = (
            ("point", witness.margin, witness.decision, witness.point, witness.labels),
            ("other", witness.other_margin, witness.other_decision, witness.other, other_labels),
        )
        for side, margin, decision, values, labels in sides:
            cells = [_csv_value(name, v, labels) for name, v in zip(names, values, strict=True)]
            writer.writerow([number, side, repr(margin), cell(decision), *cells])
    return text.getvalue()
