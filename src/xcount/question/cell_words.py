"""Some cells of a feature as text: for people, and as a condition for ``--where``."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from xcount.question.grid import Axis

_NEEDS_QUOTES = re.compile(r"[<>=!,{}'\"`]|->|\b(and|in|is|not)\b|^\s|\s$|^$")
_QUOTES = "'\"`"
LISTED = 4
"""How many categories are listed, unless said otherwise."""


def condition_text(axis: Axis, inside: NDArray[np.bool_]) -> str:
    """Return cells as an exact condition of :mod:`xcount.question.condition`.

    Numeric cells must be contiguous; the missing cell is the only one, or is left out.
    """
    return _text(axis, inside, exact=True)


def cells_text(axis: Axis, inside: NDArray[np.bool_], most: int | None = LISTED) -> str:
    """Return cells in words, with enough digits to distinguish the guards.

    Args:
        axis: the feature.
        inside: a flag for each of its cells.
        most: how many categories to list, before ``3 more``; None for all of them.
    """
    return _text(axis, inside, exact=False, most=most)


def _text(axis: Axis, inside: NDArray[np.bool_], *, exact: bool, most: int | None = None) -> str:
    name = quoted(axis.feature.name) if exact else axis.feature.name
    cells = np.flatnonzero(inside)
    if cells.tolist() == [axis.missing_cell]:
        return f"{name} is missing"
    n_values = axis.n_cells - (axis.missing_cell is not None)
    if len(cells) == n_values:
        return f"{name} is not missing" if axis.missing_cell is not None else f"any {name}"
    if axis.feature.is_categorical:
        return _categories_text(axis, name, cells, n_values, exact=exact, most=most)
    return _numbers_text(axis, name, int(cells[0]), int(cells[-1]), exact=exact)


def _categories_text(
    axis: Axis,
    name: str,
    cells: NDArray[np.int64],
    n_values: int,
    *,
    exact: bool,
    most: int | None,
) -> str:
    others = np.setdiff1d(np.arange(n_values), cells)
    is_negated = len(others) < len(cells)
    words = [
        word for cell in (others if is_negated else cells) for word in category_words(axis, cell)
    ]
    if exact:
        words = [quoted(word) for word in words]
    if len(words) == 1:
        equals = "!=" if is_negated else "==" if exact else "="
        return f"{name} {equals} {words[0]}"
    listed = words
    if most is not None and len(words) > most:
        listed = [*words[: most - 1], f"{len(words) - most + 1} more"]
    return f"{name} {'not ' if is_negated else ''}in {{{', '.join(listed)}}}"


def category_words(axis: Axis, cell: int) -> Sequence[str]:
    """Return the categories of a cell by name, or by code if they have none."""
    found = axis.cell_range(int(cell))
    return found.labels or tuple(map(str, found.categories))


def _numbers_text(axis: Axis, name: str, first: int, last: int, *, exact: bool) -> str:
    if exact:
        kind = np.dtype(axis.dtype).type
        low = "" if first == 0 else f"{kind(axis.numbers.pieces(first)[0][0])} <= "
        edge = axis.edge(last)
        high = "" if edge is None else f" < {kind(edge)}"
        return f"{low}{name}{high}"
    lower, upper = axis.cell_range(first), axis.cell_range(last)
    below, above = "<" if lower.low_is_out else "<=", "<=" if upper.high_is_in else "<"
    low_text = "" if first == 0 or lower.low is None else lower.edge_text(lower.low)
    is_last = last + 1 >= axis.numbers.n_cells
    high_text = "" if is_last or upper.high is None else upper.edge_text(upper.high)
    if low_text and high_text:
        return f"{low_text} {below} {name} {above} {high_text}"
    if low_text:
        return f"{name} {'>' if below == '<' else '>='} {low_text}"
    return f"{name} {above} {high_text}"


def quoted(word: str) -> str:
    """Return a name or value as written in conditions, quoted if necessary."""
    if not _NEEDS_QUOTES.search(word):
        return word
    quote = next((q for q in _QUOTES if q not in word), "'")
    return f"{quote}{word}{quote}"
