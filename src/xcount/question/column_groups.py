"""Guess which columns of a model are one-hot groups, by their names and by rows of data.

A column can be in a group if all of its tests separate 0 from 1. The *prefixes* of a column are its
name up to each of its separators. Rows decide first: columns with a common prefix are a group if
exactly one of them is 1 in every row. Names decide about the columns that are left.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from xcount.errors import QueryWarning
from xcount.model.inputs import Inputs
from xcount.question.grid import Axis, Grid

_SEPARATOR = re.compile(r"(?<=[^\W_])[\W_]+(?=.)")
MOST_GUARDS = 2
"""A column with more guards between 0 and 1 is numeric; several models may have one each."""
_MARKS = ("=", "_")
"""What usually stands between the names of a feature and of a category, most telling first."""


@dataclass(frozen=True, slots=True)
class ColumnGroup:
    """Columns that may be a one-hot group, and the rows that speak against it.

    Attributes:
        name: the prefix that the columns share.
        columns: their indices, ascending.
        without_one: rows in which all of them are 0.
        broken: rows in which several are 1, or one is neither 0 nor 1.
    """

    name: str
    columns: tuple[int, ...]
    without_one: tuple[int, ...] = ()
    broken: tuple[int, ...] = ()

    @property
    def is_confirmed(self) -> bool:
        """Whether exactly one column is 1 in every row."""
        return not self.without_one and not self.broken


def groups_by_name(grid: Grid) -> list[ColumnGroup]:
    """Return the groups that the names of the columns suggest."""
    return _by_name(_binary_columns(grid), _taken(grid))


def note_single_columns(grid: Grid, sensitive: Iterable[Sequence[int]]) -> None:
    """Warn if sensitive features are columns that look one-hot, but were not said to be.

    Args:
        grid: the regions; the columns of its one-hot groups are not among its features.
        sensitive: the groups of sensitive features, each of which changes together.
    """
    asked = {feature for features in sensitive for feature in features}
    found = [group for group in groups_by_name(grid) if not asked.isdisjoint(group.columns)]
    if not found:
        return
    names = [axis.feature.name for axis in grid.axes]
    group = found[0]
    column = next(names[column] for column in group.columns if column in asked)
    listed = ",".join(names[column] for column in group.columns)
    others = f" (and {len(found) - 1} more groups)" if len(found) > 1 else ""
    warnings.warn(
        f"{column!r} looks like one of {len(group.columns)} one-hot columns of {group.name!r}"
        f"{others}: changed by itself, it leads to inputs in which none or several of them are 1; "
        f"if no input is like that, give --one-hot (one_hot) '{group.name}={listed}' and ask about "
        f"{group.name!r}",
        QueryWarning,
        stacklevel=4,
    )


def note_unused(grid: Grid, sensitive: Sequence[int]) -> None:
    """Warn if no tree of the model tests the sensitive features."""
    names = [grid.axes[feature].feature.name for feature in sensitive]
    if all(grid.axes[feature].is_unused for feature in sensitive):
        warnings.warn(
            f"no tree of the model tests {' or '.join(names)}, so changing it changes nothing; "
            "name it with --group (groups) to see how its groups fare",
            QueryWarning,
            stacklevel=4,
        )


def groups_by_rows(grid: Grid, rows: Inputs) -> list[ColumnGroup]:
    """Return the groups of which exactly one column is 1 in every row, and those left to names."""
    names, taken = _binary_columns(grid), _taken(grid)
    found = list(_exact_groups(names, taken, rows))
    grouped = {column for group in found for column in group.columns}
    left = {column: name for column, name in names.items() if column not in grouped}
    known = taken | {group.name for group in found}
    found += [_checked(group, rows) for group in _by_name(left, known)]
    return sorted(found, key=lambda group: group.columns)


def _exact_groups(
    names: Mapping[int, str], taken: Iterable[str], rows: Inputs
) -> Iterator[ColumnGroup]:
    """Yield groups of which exactly one column is 1 in every row.

    Larger sets of columns come first, and the longest prefix of the same columns; then what these
    leave of a set, longest prefixes first.
    """
    shared = {name: own for name, own in _shared(names, _prefixes).items() if name not in {*taken}}
    free = set(names)
    whole = sorted(shared, key=lambda name: (-len(shared[name]), -len(name)))
    for name in [*whole, *sorted(shared, key=len, reverse=True)]:
        columns = tuple(column for column in shared[name] if column in free)
        group = ColumnGroup(name, columns)
        if len(columns) > 1 and _checked(group, rows).is_confirmed:
            free -= {*columns}
            yield group


def _by_name(names: Mapping[int, str], taken: Iterable[str]) -> list[ColumnGroup]:
    """Return the columns that share a prefix, longest prefixes first.

    For ``a_b_c`` the prefix is ``a_b`` if other names start with it, else ``a``.
    """
    found: dict[str, tuple[int, ...]] = {}
    shared = _shared(names, _likely_prefixes)
    for name in sorted(shared, key=len, reverse=True):
        free = tuple(c for c in shared[name] if not any(c in own for own in found.values()))
        if len(free) > 1:
            found[name] = free
    in_order = sorted(found.items(), key=lambda item: item[1])
    return [ColumnGroup(name, own) for name, own in in_order if name not in {*taken}]


def _shared(
    names: Mapping[int, str], prefixes_of: Callable[[str], list[str]]
) -> dict[str, list[int]]:
    """Return the columns of each prefix."""
    shared: dict[str, list[int]] = {}
    for column, name in names.items():
        for prefix in prefixes_of(name):
            shared.setdefault(prefix, []).append(column)
    return shared


def _prefixes(name: str) -> list[str]:
    """Return a name up to each of its separators."""
    return [name[: match.start()] for match in _SEPARATOR.finditer(name)]


def _likely_prefixes(name: str) -> list[str]:
    """Return the prefixes that end at the most telling separator, if a name has one.

    In ``race_Asian-Pac-Islander``, the hyphens belong to the category.
    """
    matches = list(_SEPARATOR.finditer(name))
    mark = next((mark for mark in _MARKS if any(mark in match[0] for match in matches)), "")
    return [name[: match.start()] for match in matches if mark in match[0]]


def _binary_columns(grid: Grid) -> dict[int, str]:
    """Return the columns whose tests all separate 0 from 1, with their names."""
    return {i: axis.feature.name for i, axis in enumerate(grid.axes) if _is_binary(axis)}


def _taken(grid: Grid) -> set[str]:
    """Return the names that a group cannot have."""
    return {axis.feature.name for axis in grid.axes}


def _is_binary(axis: Axis) -> bool:
    """Return whether all tests of a column separate 0 from 1, or nothing."""
    if axis.feature.categories is not None:
        return {*axis.feature.categories} <= {0, 1}
    is_between = (axis.thresholds > 0) & (axis.thresholds <= 1)
    return len(is_between) <= MOST_GUARDS and bool(is_between.all())


def _checked(group: ColumnGroup, rows: Inputs) -> ColumnGroup:
    """Return a group with the rows that contradict it."""
    values = rows.matrix(group.columns)
    is_binary = np.isin(values, (0.0, 1.0)).all(axis=1)
    n_ones = (values == 1).sum(axis=1)
    without_one = np.flatnonzero(is_binary & (n_ones == 0))
    broken = np.flatnonzero(~is_binary | (n_ones > 1))
    return replace(group, without_one=tuple(without_one.tolist()), broken=tuple(broken.tolist()))
