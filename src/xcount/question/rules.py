"""Rules between features: which combinations of a grid's cells exist.

``COND -> COND`` is broken where the first holds and the second does not. Every condition holds in a
whole cell or nowhere in it (a rule's bounds cut cells), so the existing regions are a union of
disjoint *boxes*: some cells of each non-sensitive feature, together with the masks that exist
there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from xcount.errors import QueryError

MAX_BOXES = 4096
"""The most boxes of a domain; rules that need more are rejected."""
MAX_CASES = 1 << 16
"""The most combinations of conditions that are enumerated together."""
MAX_MASKS = 1 << 22
"""The most masks for which rules about sensitive features are evaluated."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CellCondition:
    """A condition on the cells of one feature: which of them fulfil it."""

    feature: int
    holds: Flags


@dataclass(frozen=True, eq=False)
class CellRule:
    """If all of ``supposed`` hold, so do all of ``required``."""

    supposed: tuple[CellCondition, ...]
    required: tuple[CellCondition, ...]

    @property
    def conditions(self) -> tuple[CellCondition, ...]:
        return (*self.supposed, *self.required)

    @property
    def features(self) -> set[int]:
        return {condition.feature for condition in self.conditions}

    def is_kept(self, regions: NDArray[np.integer]) -> Flags:
        """Return whether each region obeys the rule."""
        supposed, required = (
            reduce(np.logical_and, [c.holds[regions[:, c.feature]] for c in side])
            for side in (self.supposed, self.required)
        )
        kept: Flags = ~supposed | required
        return kept


@dataclass(frozen=True, eq=False)
class Box:
    """Combinations of cells that exist.

    Attributes:
        cells: the cells in the box, for some features; all cells of the others are in it.
        masks: which masks exist there, with an axis per sensitive feature; None if all do.
        starts: the masks whose regions belong to the box; the others are only there to change to.
            None if all masks do.
        moved: the cells that features which move along have at the masks to change to. The box has
            then one start.
    """

    cells: Mapping[int, tuple[int, ...]]
    masks: Flags | None = None
    starts: Flags | None = None
    moved: Mapping[int, int] = field(default_factory=dict)

    def cells_of_mask(self, place: int) -> list[int]:
        """Return the cells of the sensitive feature at that position that occur in the masks."""
        assert self.masks is not None
        others = tuple(axis for axis in range(self.masks.ndim) if axis != place)
        found: list[int] = np.flatnonzero(self.masks.any(axis=others)).tolist()
        return found

    def n_masks(self, cell_counts: Sequence[int], sensitive: Sequence[int]) -> int:
        """Return how many masks exist in the box, to start from or to change to."""
        if self.masks is not None:
            return int(self.masks.sum())
        return math.prod(cell_counts[f] for f in sensitive)

    def holds(self, regions: NDArray[np.integer], sensitive: Sequence[int]) -> Flags:
        """Return which existing regions belong to the box."""
        found: Flags = np.ones(len(regions), dtype=np.bool_)
        for feature, cells in self.cells.items():
            found &= np.isin(regions[:, feature], cells)
        belonging = self.masks if self.starts is None else self.starts
        if belonging is not None:
            found &= belonging[tuple(regions[:, feature] for feature in sensitive)]
        return found

    def n_regions(self, cell_counts: Sequence[int], sensitive: Sequence[int]) -> int:
        """Return the number of regions in the box."""
        n_masks = math.prod(cell_counts[f] for f in sensitive)
        belonging = self.masks if self.starts is None else self.starts
        if belonging is not None:
            n_masks = int(belonging.sum())
        others = (f for f in range(len(cell_counts)) if f not in sensitive)
        return n_masks * math.prod(
            len(self.cells[f]) if f in self.cells else cell_counts[f] for f in others
        )


def boxes(
    rules: Sequence[CellRule], cell_counts: Sequence[int], sensitive: Sequence[int]
) -> list[Box]:
    """Return disjoint boxes of exactly the regions that obey all rules."""
    found = [Box({})]
    for linked in _linked(rules, sensitive):
        own = _Cases(linked, cell_counts, sensitive).boxes()
        joined = (_both(a, b) for a, b in itertools.product(found, own))
        found = [box for box in joined if box.masks is None or box.masks.any()]
        if len(found) > MAX_BOXES:
            raise QueryError(
                f"the rules divide the domain into more than {MAX_BOXES} boxes; use fewer rules "
                "that have no feature in common"
            )
    return found


def _both(a: Box, b: Box) -> Box:
    """Return the intersection of two boxes that restrict different features."""
    masks = b.masks if a.masks is None else a.masks if b.masks is None else a.masks & b.masks
    return Box({**a.cells, **b.cells}, masks)


def _linked(rules: Sequence[CellRule], sensitive: Sequence[int]) -> list[list[CellRule]]:
    """Group the rules that have non-sensitive features in common."""
    groups: list[tuple[set[int], list[CellRule]]] = []
    for rule in rules:
        features = {c.feature for c in rule.conditions} - set(sensitive)
        together = [group for group in groups if group[0] & features]
        groups = [group for group in groups if not group[0] & features]
        groups.append(
            (
                features.union(*(group[0] for group in together)),
                [*(r for group in together for r in group[1]), rule],
            )
        )
    return [linked for _, linked in groups]


class _Cases:
    """The combinations of cells of some features that rules can distinguish."""

    def __init__(
        self, rules: Sequence[CellRule], cell_counts: Sequence[int], sensitive: Sequence[int]
    ) -> None:
        self._rules, self._sensitive = rules, sensitive
        self._shape = tuple(cell_counts[f] for f in sensitive)
        conditions = [c for rule in rules for c in rule.conditions]
        features = sorted({c.feature for c in conditions} - set(sensitive))
        self._alike = {f: _alike([c.holds for c in conditions if c.feature == f]) for f in features}
        asks_masks = any(c.feature in sensitive for c in conditions)
        n_cases = math.prod(len(alike) for alike in self._alike.values())
        if n_cases > MAX_CASES or (asks_masks and math.prod(self._shape) > MAX_MASKS):
            raise QueryError(
                "the rules couple too many features at once; use fewer rules, or ask about fewer "
                "sensitive features"
            )

    def boxes(self) -> list[Box]:
        """Return the boxes of the cases in which some mask exists, after merging."""
        found: dict[tuple[tuple[int, ...], ...], Flags] = {}
        for case in itertools.product(*self._alike.values()):
            first = {f: cells[0] for f, cells in zip(self._alike, case, strict=True)}
            masks = np.broadcast_to(self._masks(first), self._shape)
            if masks.any():
                found[case] = masks
        for place in range(len(self._alike)):
            found = merged(found, place)
        return [
            Box(dict(zip(self._alike, case, strict=True)), None if masks.all() else masks)
            for case, masks in found.items()
        ]

    def _masks(self, cells: Mapping[int, int]) -> Flags:
        """Return which masks obey all rules at these cells."""
        kept = np.ones((), dtype=np.bool_)
        for rule in self._rules:
            supposed, required = (
                reduce(np.logical_and, self._held(side, cells), np.ones((), dtype=np.bool_))
                for side in (rule.supposed, rule.required)
            )
            kept = kept & (~supposed | required)
        return np.asarray(kept)

    def _held(
        self, conditions: Sequence[CellCondition], cells: Mapping[int, int]
    ) -> Iterator[Flags]:
        """Yield for each condition whether it holds, along its axis of the masks."""
        for condition in conditions:
            if condition.feature in cells:
                yield condition.holds[cells[condition.feature]]
            else:
                place = self._sensitive.index(condition.feature)
                yield condition.holds.reshape(
                    [-1 if i == place else 1 for i in range(len(self._shape))]
                )


def _alike(conditions: Sequence[Flags]) -> list[tuple[int, ...]]:
    """Return the groups of cells that no condition distinguishes."""
    alike: dict[tuple[bool, ...], list[int]] = {}
    for cell, seen in enumerate(zip(*(holds.tolist() for holds in conditions), strict=True)):
        alike.setdefault(seen, []).append(cell)
    return [tuple(cells) for cells in alike.values()]


def merged(
    cases: dict[tuple[tuple[int, ...], ...], Flags], place: int
) -> dict[tuple[tuple[int, ...], ...], Flags]:
    """Merge the cases that have the same masks and differ in the cells of only one feature."""
    together: dict[tuple[object, bytes], tuple[tuple[tuple[int, ...], ...], Flags]] = {}
    for case, masks in cases.items():
        key = ((case[:place], case[place + 1 :]), masks.tobytes())
        known = together.get(key)
        cells = case[place] if known is None else tuple(sorted({*known[0][place], *case[place]}))
        together[key] = ((*case[:place], cells, *case[place + 1 :]), masks)
    return dict(together.values())
