"""Which changes are allowed: from which regions, to which regions, and what moves along.

A change goes from a *start* to a *target* that differs in the cells of sensitive features:

- every condition of ``starts`` holds at the start, every condition of ``targets`` at the target;
- a feature of ``along`` is not sensitive, but its cell is exchanged for another one whenever a
  sensitive feature changes;
- a *closed* cell may be left but not entered: a missing value, say;
- a feature that may only rise (or only fall) has a higher (lower) cell at the target.

Counters know nothing of this. The starts are divided into disjoint boxes
(:class:`~xcount.question.rules.Box`), in each of which every start may change to every other mask
of the box. Each box is then a question of its own (:mod:`xcount.problem.parts`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from xcount.errors import QueryError
from xcount.question.rules import MAX_BOXES, Box, CellCondition, CellRule, Flags, boxes, merged

MAX_FLAGS = 1 << 26
"""The most masks of all boxes together."""


@dataclass(frozen=True, eq=False)
class Exchange:
    """A feature that moves along.

    Attributes:
        feature: the feature.
        cells: for each of its cells the one that it becomes; -1 if that one does not exist.
    """

    feature: int
    cells: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ChangeAxis:
    """What changes may do along the axis of one feature.

    Attributes:
        closed: the cells that may be left, but not entered.
        places: the places of its cells in their order; cells at distance 0 have the same place.
        has_order: whether a cell has a place in an order; no category and no missing value has one.
    """

    closed: frozenset[int]
    places: NDArray[np.int64]
    has_order: Flags

    @property
    def n_cells(self) -> int:
        return len(self.places)

    def above(self, cell: int) -> Flags:
        """Return which cells are higher than a given one."""
        found: Flags = self.has_order & self.has_order[cell] & (self.places > self.places[cell])
        return found

    def below(self, cell: int) -> Flags:
        """Return which cells are lower than a given one."""
        found: Flags = self.has_order & self.has_order[cell] & (self.places < self.places[cell])
        return found


@dataclass(frozen=True, eq=False)
class Allowed:
    """The allowed changes, on the cells of a grid.

    Attributes:
        starts: conditions on the region that a change starts from.
        targets: conditions on the region that it leads to.
        along: the features that move along.
        rising: sensitive features that may only rise.
        falling: sensitive features that may only fall.
    """

    starts: tuple[CellCondition, ...] = ()
    targets: tuple[CellCondition, ...] = ()
    along: tuple[Exchange, ...] = ()
    rising: frozenset[int] = field(default_factory=frozenset)
    falling: frozenset[int] = field(default_factory=frozenset)

    def __bool__(self) -> bool:
        return bool(self.starts or self.targets or self.along or self.rising or self.falling)

    def are_starts(self, regions: NDArray[np.integer]) -> Flags:
        """Return from which regions changes may start."""
        return _hold(self.starts, regions)

    def moved(self, regions: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return regions with their features that move along exchanged; -1 if that is no cell."""
        found = np.array(regions, dtype=np.int64)
        for exchange in self.along:
            found[:, exchange.feature] = exchange.cells[found[:, exchange.feature]]
        return found

    def may_lead(
        self,
        region: NDArray[np.integer],
        others: NDArray[np.integer],
        axes: Mapping[int, ChangeAxis],
    ) -> Flags:
        """Return whether an existing region may change to each of some existing others.

        Args:
            region: the start.
            others: the regions to change to, with the features exchanged that move along.
            axes: those with closed cells or an order that matters.
        """
        found = _hold(self.targets, others) & bool(self.are_starts(region[np.newaxis])[0])
        for feature, axis in axes.items():
            cell, cells = int(region[feature]), others[:, feature]
            found &= ~np.isin(cells, list(axis.closed)) | (cells == cell)
            if feature in self.rising:
                found &= axis.above(cell)[cells]
            if feature in self.falling:
                found &= axis.below(cell)[cells]
        return found

    def boxes(
        self,
        rules: Sequence[CellRule],
        axes: Sequence[ChangeAxis],
        sensitive: Sequence[int],
    ) -> list[Box]:
        """Return disjoint boxes of all starts, each with the masks that its starts may change to.

        Args:
            rules: those that every region satisfies.
            axes: those of all features.
            sensitive: the features that change; none if only the starts are wanted.
        """
        return _Boxes(self, rules, axes, tuple(sensitive)).found()


def _hold(conditions: Sequence[CellCondition], regions: NDArray[np.integer]) -> Flags:
    every: Flags = np.ones(len(regions), dtype=np.bool_)
    return reduce(np.logical_and, (c.holds[regions[:, c.feature]] for c in conditions), every)


@dataclass(frozen=True, eq=False)
class _Sides:
    """Starts and targets at some cells of the other features: every start may become every target.

    Attributes:
        starts: the masks to start from.
        targets: the masks to change to.
        moved: the cells that the features that move along have at the targets, if they move.
    """

    starts: Flags
    targets: Flags
    moved: Mapping[int, int] = field(default_factory=dict)


class _Boxes:
    """Divides the starts of a question into boxes.

    Args:
        allowed: the allowed changes.
        rules: those that every region satisfies.
        axes: those of all features.
        sensitive: the features that change.
    """

    def __init__(
        self,
        allowed: Allowed,
        rules: Sequence[CellRule],
        axes: Sequence[ChangeAxis],
        sensitive: tuple[int, ...],
    ) -> None:
        self._allowed, self._rules, self._axes = allowed, rules, axes
        self._sensitive = sensitive
        self._along = tuple(e for e in allowed.along if sensitive)
        self._features = (*sensitive, *(e.feature for e in self._along))
        self._shape = tuple(axes[f].n_cells for f in sensitive)

    def found(self) -> list[Box]:
        """Return the boxes."""
        found: list[Box] = []
        n_flags = math.prod(self._shape) if self._restricts_changes else 0
        for box in self._built() if n_flags <= MAX_FLAGS else ():
            found.append(box)
            n_flags += 0 if box.masks is None else box.masks.size
            if len(found) > MAX_BOXES or n_flags > MAX_FLAGS:
                break
        if len(found) > MAX_BOXES or n_flags > MAX_FLAGS:
            raise QueryError(
                "the allowed changes differ between too many values of the sensitive features; "
                "ask about fewer sensitive features, or with fewer conditions on them"
            )
        return found

    def _built(self) -> Iterator[Box]:
        counts = [axis.n_cells for axis in self._axes]
        elsewhere = [c for c in self._allowed.starts if c.feature not in self._features]
        rules = [*self._rules, *(CellRule((), (condition,)) for condition in elsewhere)]
        whole = boxes(rules, counts, self._features)
        if not self._restricts_changes:
            yield from whole
            return
        for box in whole:
            for cells, may_end in self._by_targets(box.cells):
                for own, sides in self._by_exchange(box, cells, may_end):
                    for each in self._by_closed(sides):
                        yield from self._connected(own, each)

    @cached_property
    def _restricts_changes(self) -> bool:
        """Whether more than rules restricts the changes of the sensitive features."""
        if not self._sensitive:
            return False
        allowed, sensitive = self._allowed, set(self._sensitive)
        return bool(
            allowed.targets
            or self._along
            or any(c.feature in sensitive for c in allowed.starts)
            or any(self._axes[f].closed for f in sensitive)
            or sensitive & (allowed.rising | allowed.falling)
        )

    def _by_targets(
        self, cells: Mapping[int, tuple[int, ...]]
    ) -> Iterator[tuple[dict[int, tuple[int, ...]], bool]]:
        """Divide a box by the conditions on targets that concern features which do not change."""
        inside = dict(cells)
        for condition in self._allowed.targets:
            feature = condition.feature
            if feature in self._features:
                continue
            own = inside.get(feature, range(self._axes[feature].n_cells))
            outside = tuple(c for c in own if not condition.holds[c])
            if outside:
                yield {**inside, feature: outside}, False
            inside[feature] = tuple(c for c in own if condition.holds[c])
            if not inside[feature]:
                return
        yield inside, True

    def _by_exchange(
        self, box: Box, cells: dict[int, tuple[int, ...]], may_end: bool
    ) -> Iterator[tuple[dict[int, tuple[int, ...]], _Sides]]:
        """Divide a box by the cells of the features that move along."""
        n_cells = [len(e.cells) for e in self._along]
        exists = np.ones((*self._shape, *n_cells), dtype=np.bool_)
        if box.masks is not None:
            exists = box.masks
        names = [e.feature for e in self._along]
        by_along = np.moveaxis(exists, range(len(self._shape)), range(-len(self._shape), 0))
        staying: dict[tuple[tuple[int, ...], ...], Flags] = {}
        for here in itertools.product(*map(range, n_cells)):
            there = tuple(int(e.cells[c]) for e, c in zip(self._along, here, strict=True))
            starts = by_along[here] & self._held(self._allowed.starts, here)
            if not starts.any():
                continue
            targets = np.zeros(self._shape, dtype=np.bool_)
            if may_end and self._may_move(here, there):
                targets = by_along[there] & self._held(self._allowed.targets, there)
            if here == there or not targets.any():
                staying[tuple((c,) for c in here)] = np.stack([starts, targets])
            else:
                own = {f: (c,) for f, c in zip(names, here, strict=True)}
                moved = dict(zip(names, there, strict=True))
                yield {**cells, **own}, _Sides(starts, targets, moved)
        for place in range(len(names)):
            staying = merged(staying, place)
        for case, sides in staying.items():
            yield {**cells, **dict(zip(names, case, strict=True))}, _Sides(*sides)

    def _may_move(self, here: Sequence[int], there: Sequence[int]) -> bool:
        """Return whether the features that move along may do so."""
        closed = [self._axes[e.feature].closed for e in self._along]
        each = zip(here, there, closed, strict=True)
        return all(b >= 0 and (a == b or b not in own) for a, b, own in each)

    def _held(self, conditions: Sequence[CellCondition], along: Sequence[int]) -> Flags:
        """Return which masks fulfil all conditions, at cells of the features that move along."""
        cells = dict(zip((e.feature for e in self._along), along, strict=True))
        held = np.ones(self._shape, dtype=np.bool_)
        for condition in conditions:
            if condition.feature in cells:
                held = held & condition.holds[cells[condition.feature]]
            elif condition.feature in self._sensitive:
                held = held & self._along_axis(condition.feature, condition.holds)
        return held

    def _along_axis(self, feature: int, flags: Flags) -> Flags:
        """Return flags of a sensitive feature's cells, to be combined with those of masks."""
        place = self._sensitive.index(feature)
        return flags.reshape([-1 if i == place else 1 for i in range(len(self._shape))])

    def _by_closed(self, sides: _Sides) -> Iterator[_Sides]:
        """Divide starts by their closed cells: those with the same ones have the same targets.

        A feature may stay in such a cell while others change.
        """
        closed = [self._axes[f].closed for f in self._sensitive]
        for cells in itertools.product(*((None, *sorted(own)) for own in closed)):
            starts, targets = sides.starts, sides.targets
            for feature, cell, own in zip(self._sensitive, cells, closed, strict=True):
                is_open = _without(self._axes[feature].n_cells, own)
                here = is_open if cell is None else np.arange(len(is_open)) == cell
                starts = starts & self._along_axis(feature, here)
                targets = targets & self._along_axis(feature, is_open | here)
            if starts.any():
                yield _Sides(starts, targets, sides.moved)

    def _connected(self, cells: dict[int, tuple[int, ...]], sides: _Sides) -> Iterator[Box]:
        """Divide starts and targets so that every start of a box may become every other mask."""
        ordered = set(self._sensitive) & (self._allowed.rising | self._allowed.falling)
        alone = sides.starts
        if not sides.moved and not ordered:
            together = sides.starts & sides.targets
            alone = sides.starts & ~together
            if together.any():
                yield Box(cells, sides.targets, together)
        for start in np.argwhere(alone):
            own = np.zeros(self._shape, dtype=np.bool_)
            own[tuple(start)] = True
            targets = sides.targets & ~(self._at_distance_0(start) if sides.moved else own)
            for feature in ordered:
                targets = targets & self._along_axis(feature, self._beyond(feature, start))
            moved = sides.moved if targets.any() else {}
            yield Box(cells, targets | own, own, moved)

    def _at_distance_0(self, start: NDArray[np.int64]) -> Flags:
        """Return the masks at distance 0: the start, and those that only bounds tell from it."""
        found: Flags = np.ones(self._shape, dtype=np.bool_)
        for feature, cell in zip(self._sensitive, start.tolist(), strict=True):
            axis = self._axes[feature]
            is_same = (axis.places == axis.places[cell]) & (axis.has_order == axis.has_order[cell])
            found = found & self._along_axis(feature, is_same)
        return found

    def _beyond(self, feature: int, start: NDArray[np.int64]) -> Flags:
        """Return the cells that an ordered feature may change to."""
        axis, cell = self._axes[feature], int(start[self._sensitive.index(feature)])
        return axis.above(cell) if feature in self._allowed.rising else axis.below(cell)


def _without(n_cells: int, cells: Collection[int]) -> Flags:
    found: Flags = ~np.isin(np.arange(n_cells), list(cells))
    return found


ALL_CHANGES = Allowed()
"""Every change of the sensitive features."""
