"""A template for a domain: a TOML file with the one-hot groups and the features of a model.

Columns are proposed as a one-hot group (:mod:`xcount.question.column_groups`) with what the rows of
a table say about it: they confirm it, need a category more, or contradict it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from xcount.model.loaders import load
from xcount.model.tables import Table, read_table
from xcount.question.column_groups import ColumnGroup, groups_by_name, groups_by_rows
from xcount.question.domain import WITH_NONE
from xcount.question.grid import Axis, Grid

_LISTED = 12
_SHOWN = 3
"""How many of the rows that contradict a group are shown."""


def domain_template(model: Any, data: Any = None, *, trust_pickle: bool = False) -> str:
    """Return a TOML file for ``--domain``.

    Args:
        model: a model file, a live model, or an ensemble.
        data: a table whose rows confirm one-hot groups.
        trust_pickle: whether a pickle may be opened.

    Example:
        >>> from xcount.model.examples import figure_1
        >>> print(domain_template(figure_1()).splitlines()[-1])
        # "f1": guards 2, 3
    """
    ensemble = load(model, trust_pickle=trust_pickle)
    grid = Grid.of(ensemble)
    table = None if data is None else read_table(data, ensemble)
    lines = [
        "# Which regions exist; for --domain. Remove the # of what holds, and change it.",
        "",
        "# Conditions that every region fulfils.",
        f"# where = [{_text(_example(grid))}]",
        "",
        *_group_lines(grid, table),
        "",
        "# The features:",
        *(_feature_line(axis) for axis in grid.axes),
    ]
    return "\n".join(lines) + "\n"


def proposed_groups(grid: Grid) -> dict[str, tuple[str, ...]]:
    """Return the columns of each one-hot group that the column names suggest."""
    names = [axis.feature.name for axis in grid.axes]
    return {group.name: tuple(names[c] for c in group.columns) for group in groups_by_name(grid)}


def _group_lines(grid: Grid, table: Table | None) -> list[str]:
    """Return the table of one-hot groups, each with what the data say about it."""
    lines = [f"# Columns of which exactly one is 1 ({WITH_NONE}: or all are 0)."]
    if table is None or not table.n_rows:
        groups = groups_by_name(grid)
        lines += ["# The names suggest these groups: check them."] if groups else []
        table = None
    else:
        groups = groups_by_rows(grid, table.inputs)
    if all(group.broken for group in groups):
        lines += ["# [one-hot]", '# name = ["column", "column"]']
    else:
        lines.append("[one-hot]")
    for group in groups:
        columns = [grid.axes[column].feature.name for column in group.columns]
        if table is not None:
            lines.append(_evidence(group, columns, table))
        listed = _listed([*columns, WITH_NONE] if group.without_one else columns)
        lines.append(f"{'# ' if group.broken else ''}{_text(group.name)} = {listed}")
    return lines


def _evidence(group: ColumnGroup, columns: Sequence[str], table: Table) -> str:
    """Return a comment that says what the rows of a table say about a group."""
    if group.is_confirmed:
        return f"# Confirmed: exactly one is 1 in each of the {table.n_rows:,} rows."
    if group.broken:
        shown = "; ".join(_row_text(row, group, columns, table) for row in group.broken[:_SHOWN])
        more = ", ..." if len(group.broken) > _SHOWN else "."
        n_rows = f"{len(group.broken):,} of {table.n_rows:,} rows"
        return f"# Not one-hot, although the names suggest it. {n_rows} contradict: {shown}{more}"
    n_rows = f"{len(group.without_one):,} of {table.n_rows:,} rows"
    first = table.row_name(group.without_one[0])
    return (
        f"# Not confirmed: none is 1 in {n_rows}, first in {first}. {WITH_NONE} makes that a "
        "category of its own; is a column missing?"
    )


def _row_text(row: int, group: ColumnGroup, columns: Sequence[str], table: Table) -> str:
    """Return how a row contradicts a group: the columns that are not 0."""
    values = zip(columns, table.inputs.row(row)[list(group.columns)].tolist(), strict=True)
    shown = ", ".join(f"{_text(name)} is {value:g}" for name, value in values if value != 0)
    return f"{table.row_name(row)}: {shown}"


def _example(grid: Grid) -> str:
    """Return an example of a condition that some region satisfies."""
    for axis in grid.axes:
        if not axis.feature.is_categorical and len(axis.thresholds):
            return f"{axis.feature.name} >= {axis.thresholds[0]:g}"
    return "age >= 25"


def _feature_line(axis: Axis) -> str:
    """Return a comment line about a feature: its guards, or its categories."""
    feature = axis.feature
    if feature.categories is not None:
        words: Sequence[object] = feature.labels or feature.categories
        what = "categories"
    else:
        words, what = [f"{guard:g}" for guard in axis.thresholds], "guards"
    shown = ", ".join(map(str, words[:_LISTED])) + (", ..." if len(words) > _LISTED else "")
    return (
        f"# {_text(feature.name)}: {what} {shown}" if words else f"# {_text(feature.name)}: unused"
    )


def _listed(words: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, words))}]"


def _text(text: str) -> str:
    """Return a text as a TOML string; the escapes of JSON are valid in TOML, too."""
    return json.dumps(text)
