"""Groups of people by the cells of the sensitive features.

If a cell holds several values, rows are grouped by value: a model that does not distinguish two
categories may still decide differently about the people who have them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xcount.errors import QueryError
from xcount.measures.measure import Measure, inside
from xcount.measures.rows import Rows
from xcount.problem.problem import Problem
from xcount.question.cell_words import cells_text
from xcount.question.grid import Axis

MAX_GROUPS = 12
"""Most groups of all sensitive features together; beyond that, some are merged."""
MAX_RANGES = 5
"""Number of ranges that the cells of a numeric feature are merged into, if they are many."""

Flags = NDArray[np.bool_]


class Group(NamedTuple):
    """Some cells of each sensitive feature, or some of the rows in them.

    Attributes:
        box: which cells.
        text: the group in words.
        rows: which of the rows are in it, if the cells do not determine that.
    """

    box: dict[int, Flags]
    text: str
    rows: Flags | None = None

    @property
    def cell(self) -> dict[int, int] | None:
        """The cell of each sensitive feature, if the group has a single one."""
        if any(flags.sum() != 1 for flags in self.box.values()):
            return None
        return {feature: int(flags.argmax()) for feature, flags in self.box.items()}

    def among(self, regions: NDArray[np.integer]) -> Flags:
        """Return which rows, given by their regions, are in the group."""
        return inside(regions, self.box) if self.rows is None else self.rows

    def weight_among(self, measure: Measure) -> float:
        """Return the weight of the group."""
        return measure.mass(self.box) if self.rows is None else float(self.rows.mean())


EVERYBODY = Group({}, "everybody")


class _Set(NamedTuple):
    """Some values of one feature: in words, their cells, and the rows that have them."""

    text: str
    cells: Flags
    rows: Flags | None = None


def groups_of(problem: Problem, measure: Measure, *, by_value: bool = True) -> list[Group]:
    """Return the groups: one for each mask, unless there are many masks.

    If there are many, neighbouring cells of numbers are merged into ranges of about equal weight,
    and all categories but the heaviest into one group.

    Args:
        problem: the question; its sensitive features define the groups.
        measure: the measure whose weights decide what is merged.
        by_value: whether rows with different values in the same cell are distinguished.
    """
    sensitive = problem.query.sensitive
    if 2 ** len(sensitive) > 4 * MAX_GROUPS:
        raise QueryError(f"{len(sensitive)} sensitive features make too many groups for rates")
    most = max(2, int(MAX_GROUPS ** (1 / len(sensitive)) + 1e-9))
    if problem.n_masks <= MAX_GROUPS:
        most = MAX_GROUPS
    sets = []
    for feature in sensitive:
        axis = problem.grid.axes[feature]
        found = merged_cells(axis, measure.marginal(feature), most)
        own = [_Set(cells_text(axis, cells), cells) for cells in found]
        if by_value and isinstance(measure, Rows):
            cells_of_rows = measure.regions[:, feature]
            own = [each._replace(rows=each.cells[cells_of_rows]) for each in own]
            values = measure.inputs.columns[feature].numbers()
            own = _value_sets(axis, values, cells_of_rows, most) or own
        sets.append(own)
    return [_together(sensitive, combination) for combination in itertools.product(*sets)]


def _together(sensitive: Sequence[int], sets: Sequence[_Set]) -> Group:
    """Return the group of people who have a value of each set."""
    box = {feature: own.cells for feature, own in zip(sensitive, sets, strict=True)}
    rows = [own.rows for own in sets if own.rows is not None]
    text = ", ".join(own.text for own in sets)
    return Group(box, text, np.logical_and.reduce(rows) if rows else None)


def merged_cells(axis: Axis, weights: NDArray[np.float64], most: int) -> list[Flags]:
    """Return all cells, merged into at most so many sets, plus one for missing values."""
    numbers = np.arange(axis.n_cells)
    n_values = axis.n_cells - (axis.missing_cell is not None)
    missing = [numbers == cell for cell in numbers[n_values:]]
    if n_values <= most:
        return [*(numbers == cell for cell in numbers[:n_values]), *missing]
    values = weights[:n_values]
    if axis.feature.is_categorical:
        kept = np.sort(np.argsort(-values, kind="stable")[: most - 1])
        rest = (numbers < n_values) & ~np.isin(numbers, kept)
        return [*(numbers == cell for cell in kept), rest, *missing]
    most = min(most, MAX_RANGES)
    # A cell belongs to the range that contains the middle of its weight.
    middles = (np.cumsum(values) - values / 2) / max(values.sum(), 1e-300)
    range_of = np.full(axis.n_cells, -1)
    range_of[:n_values] = np.minimum((middles * most).astype(np.int64), most - 1)
    ranges = (range_of == number for number in range(most))
    return [*(cells for cells in ranges if cells.any()), *missing]


def _value_sets(
    axis: Axis, values: NDArray[np.float64], cells: NDArray[np.int32], most: int
) -> list[_Set] | None:
    """Return sets of rows by value; None if cells are as good, or there are too many values."""
    is_missing = cells == (-1 if axis.missing_cell is None else axis.missing_cell)
    known = np.trunc(values) if axis.feature.is_categorical else values
    found, counts = np.unique(known[~is_missing], return_counts=True)
    cell_of = [int(cells[~is_missing & (known == value)][0]) for value in found]
    if len(set(cell_of)) == len(found) or (not axis.feature.is_categorical and len(found) > most):
        return None
    kept = found
    if len(found) > most:
        kept = np.sort(found[np.argsort(-counts, kind="stable")[: most - 1]])
    sets = {value_text(axis, value): known == value for value in kept}
    sets[f"another {axis.feature.name}"] = ~is_missing & ~np.isin(known, kept)
    sets[f"{axis.feature.name} is missing"] = is_missing
    numbers = np.arange(axis.n_cells)
    return [
        _Set(text, np.isin(numbers, cells[rows]), rows) for text, rows in sets.items() if rows.any()
    ]


def value_text(axis: Axis, value: float) -> str:
    """Return a value of a feature in words; categories by name, if they have one."""
    feature = axis.feature
    if math.isnan(value):
        return f"{feature.name} is missing"
    if feature.categories is None:
        return f"{feature.name} = {value:g}"
    labels = feature.labels or tuple(map(str, feature.categories))
    return f"{feature.name} = {labels[feature.categories.index(int(value))]}"
