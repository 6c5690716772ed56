"""Ensemble(s) -> Grid: the cells of every feature, and conversion between cells and points.

A numeric feature with sorted thresholds ``t[0] < ... < t[m-1]`` has ``m + 1`` cells::

    cell i is  t[i-1] <= x < t[i]        (t[-1] = -inf and t[m] = +inf)

A categorical feature's cells are the classes of categories that no split distinguishes. With
``missing="cell"`` a feature that can be missing has one more cell, the last one; with
``missing="auto"`` only a feature that the data lacks values of. A *region* is one cell per feature;
the model gives the same answer at all points of a region.

A domain (:mod:`xcount.question.domain`) leaves out cells, and parts of cells. A cell then is its
remaining part; distances still count all guards in between.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xcount.errors import QueryError
from xcount.model.align import joint_feature
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.inputs import Inputs
from xcount.question.allowed import ALL_CHANGES, Allowed, ChangeAxis, Exchange
from xcount.question.cell import CellRange
from xcount.question.domain import EVERYTHING, Domain, ValuePair
from xcount.question.guards import collect_guards
from xcount.question.rules import Box, CellCondition, CellRule, boxes
from xcount.question.values import NumberCells, ValueSet, is_next_of_shorter, next_number
from xcount.support.numerals import DIGITS, digits_apart, scientific_text
from xcount.support.workspace import Slot, Workspace

Missing = Literal["none", "cell", "auto"]

_BOXES: Slot[tuple[int, ...], list[Box]] = Slot("disjoint boxes by sensitive features")


@dataclass(frozen=True, eq=False)
class JoinedAxes:
    """The axes that a joint axis combines, with a row of their cells for each of its cells."""

    axes: tuple[Axis, ...]
    cells: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Axis:
    """The cells of one feature.

    Attributes:
        feature: the feature that the axis belongs to.
        thresholds: sorted guards of a numeric feature, all that the trees have; empty for a
            categorical one.
        classes: the category codes of each cell of a categorical feature; empty for a numeric one.
        missing_cell: index of the cell of missing values, always the last one; or None.
        given_numbers: the cells of a numeric feature, if they are not those between all guards.
        dtype: the number type of inputs.
        is_restricted: whether a domain reduces the largest distance between its cells.
        excludes_missing: whether a condition of the domain leaves missing values out.
        joined: the axes that a joint axis combines.
        missing_is_target: whether a known value may become a missing one.
        no_targets: categories that no value may become, such as those the model does not know.
    """

    feature: Feature
    thresholds: NDArray[np.float64]
    classes: tuple[tuple[int, ...], ...] = ()
    missing_cell: int | None = None
    given_numbers: NumberCells | None = None
    dtype: str = "float64"
    is_restricted: bool = False
    excludes_missing: bool = False
    joined: JoinedAxes | None = None
    missing_is_target: bool = True
    no_targets: frozenset[int] = frozenset()

    @cached_property
    def only_starts(self) -> frozenset[int]:
        """The cells that a change may leave but not enter."""
        closed = {i for i, codes in enumerate(self.classes) if self.no_targets.issuperset(codes)}
        if self.missing_cell is not None and not self.missing_is_target:
            closed.add(self.missing_cell)
        return frozenset(closed)

    @cached_property
    def numbers(self) -> NumberCells:
        """The numeric cells."""
        return self.given_numbers or NumberCells.between(self.thresholds)

    @property
    def _n_values(self) -> int:
        """The number of cells without the missing one."""
        return len(self.classes) if self.feature.is_categorical else self.numbers.n_cells

    @property
    def n_cells(self) -> int:
        return self._n_values + (self.missing_cell is not None)

    @property
    def ends(self) -> set[float]:
        """The bounds of the numeric cells."""
        return {*self.numbers.lows.tolist(), *self.numbers.highs.tolist()}

    @property
    def codes(self) -> list[int]:
        """The categories in the cells."""
        return [code for codes in self.classes for code in codes]

    @property
    def n_guards(self) -> int:
        """Number of guards between the cells; a categorical axis has one less than classes."""
        if self.feature.is_categorical:
            return max(0, len(self.classes) - 1)
        positions = self.numbers.positions
        return int(positions[-1] - positions[0]) if len(positions) else 0

    @property
    def is_unused(self) -> bool:
        """Whether no test distinguishes values of the feature."""
        return self.n_cells < 2 and not self.is_restricted

    @property
    def is_regular(self) -> bool:
        """Whether neighbouring cells are at distance 1, if cells have an order."""
        return self.feature.is_categorical or self.numbers.is_regular

    @property
    def max_distance(self) -> int:
        """The largest distance between two cells of the axis."""
        if self.joined is not None:
            return sum(axis.max_distance for axis in self.joined.axes)
        return self.n_guards + (self.missing_cell is not None) if self.n_cells > 1 else 0

    def distance(self, cell: int, other: int) -> int:
        """Return the number of guards in between; 1 for different cells without an order."""
        if self.joined is not None:
            both = zip(self.joined.axes, *self.joined.cells[[cell, other]].tolist(), strict=True)
            return sum(axis.distance(a, b) for axis, a, b in both)
        if self.feature.is_categorical or self.missing_cell in (cell, other):
            return int(cell != other)
        return int(abs(self.numbers.positions[cell] - self.numbers.positions[other]))

    def distances_from(self, cells: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return how far each cell of the axis is from given ones, shape (n given, n_cells)."""
        all_cells = np.arange(self.n_cells)
        found: NDArray[np.int32] = (cells[:, np.newaxis] != all_cells).astype(np.int32)
        if self.joined is not None:
            both = zip(self.joined.axes, self.joined.cells.T, strict=True)
            each = [axis.distances_from(own[cells])[:, own] for axis, own in both]
            found = np.sum(each, axis=0, dtype=np.int32)
        elif not self.feature.is_categorical:
            has_order = cells != self.missing_cell
            positions = self.numbers.positions
            apart = positions[cells[has_order]][:, np.newaxis] - positions
            found[np.ix_(has_order, all_cells != self.missing_cell)] = np.abs(apart)
        return found

    @property
    def steps(self) -> tuple[int, ...]:
        """The distance of each numeric cell to the next one."""
        return tuple(np.diff(self.numbers.positions).tolist())

    def edge(self, cell: int) -> float | None:
        """Return the lower bound of the next cell, if there is one."""
        if self.feature.is_categorical or cell + 1 >= self.numbers.n_cells:
            return None
        return self.numbers.pieces(cell + 1)[0][0]

    @property
    def has_single_numbers(self) -> bool:
        """Whether the domain leaves only single numbers, no interval."""
        lows = self.numbers.lows.astype(self.dtype)
        with np.errstate(over="ignore"):
            nexts = np.nextafter(lows, np.dtype(self.dtype).type(np.inf))
        return bool((nexts.astype(np.float64) == self.numbers.highs).all())

    def guards_between(self, cell: int, other: int) -> tuple[float, ...]:
        """Return the guards between two cells; none if cells have no order."""
        if self.feature.is_categorical or self.missing_cell in (cell, other):
            return ()
        first, last = sorted(self.numbers.positions[[cell, other]].tolist())
        return tuple(self.thresholds[first:last].tolist())

    def cells_of(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the cell of each value; -1 if no cell holds it (NaN, unknown category)."""
        missing = -1 if self.missing_cell is None else self.missing_cell
        if self.feature.missing_as is not None:
            values = np.where(np.isnan(values), self.feature.missing_as, values)
        for number in self.feature.like_missing:
            values = np.where(values == number, np.nan, values)
        if not self.feature.is_categorical:
            cells = self.numbers.cells_of(values)
        else:
            cell_of = {code: i for i, codes in enumerate(self.classes) for code in codes}
            distinct, places = np.unique(np.trunc(values), return_inverse=True)
            found = [cell_of.get(int(v), -1) if np.isfinite(v) else -1 for v in distinct]
            cells = np.array(found, dtype=np.int64)[places]
        return np.where(np.isnan(values), missing, cells).astype(np.int64)

    def cells_below(self, thresholds: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return in how many numeric cells ``x < threshold`` holds: always the first ones.

        Each threshold is a guard or infinite.
        """
        # An infinite threshold is not a guard: x < -inf holds in no cell, x < inf in all of them.
        up_to = np.searchsorted(self.thresholds, thresholds, side="right")
        return self.numbers.first_behind(up_to + (thresholds == np.inf))

    def restricted(self, allowed: ValueSet, told_apart: Sequence[ValueSet] = ()) -> Axis:
        """Return the axis of only the allowed values, with cells cut at the bounds of sets."""
        has_missing = self.missing_cell is not None and allowed.has_missing
        if self.feature.is_categorical:
            classes: dict[tuple[object, ...], list[int]] = {}
            for cell, codes in enumerate(self.classes):
                for code in (code for code in codes if code in allowed.codes):
                    key = (cell, *(code in each.codes for each in told_apart))
                    classes.setdefault(key, []).append(code)
            axis = replace(self, classes=tuple(map(tuple, classes.values())))
        else:
            cuts = {end for each in told_apart for piece in each.pieces for end in piece}
            cuts -= {-math.inf, math.inf}
            cells = NumberCells.between(self.thresholds, allowed.pieces, sorted(cuts))
            axis = replace(self, given_numbers=cells)
        axis = replace(
            axis,
            missing_cell=axis._n_values if has_missing else None,
            excludes_missing=not allowed.has_missing,
        )
        return replace(axis, is_restricted=axis.max_distance < self.max_distance)

    def unrestricted(self) -> Axis:
        """Return an axis of all values with the cell bounds of this one."""
        known = set(self.codes)
        left_out = [(code,) for code in self.feature.categories or () if code not in known]
        guards = {*self.thresholds.tolist(), *self.ends} - {-math.inf, math.inf}
        thresholds = self.thresholds if self.feature.is_categorical else np.array(sorted(guards))
        axis = Axis(self.feature, thresholds, (*self.classes, *left_out), dtype=self.dtype)
        return replace(axis, missing_cell=axis.n_cells) if self.missing_cell is not None else axis

    def leaves_out(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which values the domain leaves out; of those, no cell holds any."""
        is_known = self.unrestricted().cells_of(values) >= 0
        is_excluded = np.isnan(values) & self.excludes_missing
        return (self.cells_of(values) < 0) & (is_known | is_excluded)

    def with_cells(self, cells: Sequence[int]) -> Axis:
        """Return the axis with only some of its cells."""
        if len(cells) == self.n_cells:
            return self
        values = [cell for cell in cells if cell != self.missing_cell]
        missing_cell = len(values) if len(values) < len(cells) else None
        if self.feature.is_categorical:
            classes = tuple(self.classes[cell] for cell in values)
            return replace(self, classes=classes, missing_cell=missing_cell, is_restricted=False)
        numbers = self.numbers.with_cells(values)
        return replace(self, given_numbers=numbers, missing_cell=missing_cell, is_restricted=False)

    @cached_property
    def for_changes(self) -> ChangeAxis:
        """What changes may do along the axis."""
        places = np.arange(self.n_cells)
        has_order = np.zeros(self.n_cells, dtype=np.bool_)
        if not self.feature.is_categorical:
            has_order[: self._n_values] = True
            places[: self._n_values] = self.numbers.positions
        return ChangeAxis(self.only_starts, places, has_order)

    def with_all_targets(self) -> Axis:
        """Return the axis with cells that a change may enter, all of them."""
        if not self.only_starts:
            return self
        return replace(self, missing_is_target=True, no_targets=frozenset())

    def holds_in(self, values: ValueSet) -> NDArray[np.bool_]:
        """Return which cells lie in a set of values; no cell is partly in it."""
        if self.feature.is_categorical:
            found = [codes[0] in values.codes for codes in self.classes]
        else:
            lows = [self.numbers.pieces(cell)[0][0] for cell in range(self.numbers.n_cells)]
            found = [any(a <= low < b for a, b in values.pieces) for low in lows]
        found += [] if self.missing_cell is None else [values.has_missing]
        return np.array(found, dtype=np.bool_)

    def exchanged_apart(self, pairs: Iterable[ValuePair]) -> list[ValueSet]:
        """Return the values to tell from others of their cells before they are exchanged.

        A number stands for all numbers of its cell, unless the domain leaves only single ones.
        """
        if not (self.feature.is_categorical or self.has_single_numbers):
            return []
        is_apart = [pair for pair in pairs if self._cell_of(pair[0]) != self._cell_of(pair[1])]
        return [value for pair in is_apart for value in pair]

    def exchange(self, pairs: Iterable[ValuePair]) -> NDArray[np.int64]:
        """Return for each cell the one that it becomes; -1 if the axis does not have that one."""
        found = np.arange(self.n_cells)
        for a, b in (tuple(map(self._cell_of, pair)) for pair in pairs):
            for cell, other in ((a, b), (b, a)):
                if cell >= 0 and found[cell] not in (cell, other):
                    raise QueryError(
                        f"the model does not tell all values of {self.feature.name!r} apart that "
                        "are to be exchanged; name fewer of them"
                    )
                if cell >= 0:
                    found[cell] = other
        return found

    def _cell_of(self, value: ValueSet) -> int:
        """Return the cell of a single value; -1 if there is none."""
        number = next(iter(value.codes)) if self.feature.is_categorical else value.pieces[0][0]
        return int(self.cells_of(np.array([float(number)]))[0])

    def describe(self, cell: int) -> str:
        """Return the cell in words, e.g. ``30.5 <= age < 42``."""
        return self.cell_range(cell).description

    def cell_range(self, cell: int) -> CellRange:
        """Return the contents of the cell; for a cell in several pieces, their span."""
        name = self.feature.name
        if cell == self.missing_cell:
            return CellRange(name, is_missing=True)
        if self.feature.is_categorical:
            codes = self.classes[cell]
            return CellRange(name, categories=codes, labels=self._labels(codes))
        pieces = self.numbers.pieces(cell)
        ends = pieces[0][0], pieces[-1][1]
        low, high = map(self.as_written, ends)
        at = np.searchsorted(self.thresholds, ends).tolist()
        digits = max(self._digits(i, end) for i, end in zip(at, (low, high), strict=True))
        return CellRange(
            name,
            low=None if low == -math.inf else low,
            high=None if high == math.inf else high,
            digits=digits if digits > DIGITS else None,
            low_is_out=low != ends[0],
            high_is_in=high != ends[1],
        )

    def as_written(self, end: float) -> float:
        """Return the bound that the user wrote for the end of a piece: 1 for the next float.

        ``x > 1`` is stored as ``x >=`` the next float after 1, which nobody would have written.
        """
        index = int(np.searchsorted(self.thresholds, end))
        if self._is_guard(index, end) or not is_next_of_shorter(end, self.dtype):
            return end
        return next_number(end, self.dtype, -math.inf)

    def _digits(self, index: int, end: float) -> int:
        """Return how many digits a bound of a cell needs: a guard, or a bound of the domain."""
        if self._is_guard(index, end):
            return self._guard_digits[index]
        return next((n for n in range(DIGITS, 17) if self._rounded(f"{end:.{n}g}") == end), 17)

    def _rounded(self, text: str) -> float:
        return float(np.dtype(self.dtype).type(text))

    def _is_guard(self, index: int, end: float) -> bool:
        return index < len(self.thresholds) and bool(self.thresholds[index] == end)

    @cached_property
    def _guard_digits(self) -> tuple[int, ...]:
        return digits_apart(self.thresholds.tolist())

    def _labels(self, codes: Sequence[int]) -> tuple[str, ...]:
        categories, labels = self.feature.categories, self.feature.labels
        if categories is None or labels is None:
            return ()
        return tuple(labels[categories.index(code)] for code in codes)

    def point(self, cell: int, dtype: str) -> float:
        """Return a value of the cell that ``dtype`` represents exactly."""
        if cell == self.missing_cell:
            return math.nan
        if self.feature.is_categorical:
            return float(self.classes[cell][0])
        low, high = self.numbers.pieces(cell)[0]
        if low == -math.inf:
            return 0.0 if high == math.inf else _below(high, dtype)
        if high == math.inf:
            return low
        middle = float(np.dtype(dtype).type(low + (high - low) / 2))
        return middle if low <= middle < high else low


def _below(threshold: float, dtype: str) -> float:
    """Return a value of ``dtype`` below the threshold, a round number if one is nearby."""
    lower = threshold - max(1.0, abs(threshold) * 2**-20)
    with np.errstate(over="ignore"):
        rounded = float(np.dtype(dtype).type(lower))
    if math.isfinite(rounded) and rounded < threshold:
        return rounded
    with np.errstate(over="ignore"):
        return float(np.nextafter(np.dtype(dtype).type(threshold), np.dtype(dtype).type(-np.inf)))


@dataclass(frozen=True, eq=False)
class Grid:
    """The cells of all features of one ensemble, or of several that share their guards.

    Example:
        >>> from xcount.model.examples import figure_1
        >>> Grid.of(figure_1())
        Grid(2 features, 4 guards, 9 regions)
    """

    axes: tuple[Axis, ...]
    input_dtype: Literal["float32", "float64"] = "float64"
    domain: Domain = EVERYTHING
    rules: tuple[CellRule, ...] = ()
    allowed: Allowed = ALL_CHANGES
    workspace: Workspace = field(default_factory=Workspace, init=False, repr=False)
    """Values derived from the grid and shared by its users, such as trees laid on it."""

    def __repr__(self) -> str:
        regions = scientific_text(self.n_regions) if self.n_regions >= 10**15 else self.n_regions
        return f"Grid({len(self.axes):,} features, {self.n_guards:,} guards, {regions} regions)"

    @classmethod
    def of(
        cls,
        *ensembles: Ensemble,
        missing: Missing = "none",
        missing_in: Collection[str] = (),
        domain: Domain = EVERYTHING,
    ) -> Grid:
        """Build the grid in which every given ensemble is constant on every region.

        Args:
            ensembles: the models.
            missing: which features have a cell for missing values: none of them, all that can be
                missing (``"cell"``), or those of ``missing_in`` (``"auto"``): there, missing is a
                place to start from, and not one to change to.
            missing_in: the names of the features that the data lacks values of.
            domain: which regions exist; its one-hot groups are features already (see
                ``Domain.pulled_back``).
        """
        if missing not in get_args(Missing):
            raise QueryError(
                "missing must be 'auto' (a cell where the data lacks values), 'cell' (for every "
                f"feature) or 'none', not {missing!r}"
            )
        first = ensembles[0]
        for other in ensembles[1:]:
            if other.feature_names != first.feature_names:
                raise QueryError("models on a shared grid must have the same features in order")
        # float64 can hold every float32 guard, so mixed libraries share a float32 input space.
        dtype = "float32" if any(e.input_dtype == "float32" for e in ensembles) else "float64"
        trees = [tree for ensemble in ensembles for tree in ensemble.trees]
        guards, sets = collect_guards(trees, first.n_features, dtype)
        axes = []
        for index in range(first.n_features):
            feature = joint_feature([ensemble.features[index] for ensemble in ensembles])
            is_placed = missing == "cell" or (missing == "auto" and feature.name in missing_in)
            axis = _axis(feature, guards[index], sets[index], is_placed, dtype)
            no_targets = frozenset() if domain.unknown else feature.unknown_codes
            axis = replace(axis, no_targets=no_targets, missing_is_target=missing == "cell")
            axes.append(axis)
        joined = replace(first, features=tuple(axis.feature for axis in axes))
        rules = domain.rules(joined, dtype)
        starts, targets = domain.starts(joined, dtype), domain.targets(joined, dtype)
        tests = [*starts, *targets, *(test for sides in rules for side in sides for test in side)]
        told_apart: dict[int, list[ValueSet]] = {}
        for index, test in tests:
            told_apart.setdefault(index, []).append(test)
        values, exchanges = domain.values(joined, dtype), domain.exchanges(joined, dtype)
        for index in {*values, *told_apart, *exchanges}:
            allowed = values.get(index, ValueSet.everything(axes[index].feature))
            cut = partial(axes[index].restricted, allowed)
            own = told_apart.get(index, [])
            axes[index] = cut(own)
            if apart := axes[index].exchanged_apart(exchanges.get(index, ())):
                axes[index] = cut([*own, *apart])
            if not axes[index].n_cells:
                raise QueryError(_no_cell(domain, first, index))
        on_cells = tuple(CellRule(*(_on_cells(side, axes) for side in sides)) for sides in rules)
        changes = Allowed(
            _that_matter(_on_cells(starts, axes)),
            _that_matter(_on_cells(targets, axes)),
            tuple(Exchange(f, axes[f].exchange(pairs)) for f, pairs in exchanges.items()),
        )
        grid = cls(tuple(axes), dtype, domain, on_cells, changes)  # type: ignore[arg-type]
        grid._check_regions()
        return grid

    def _check_regions(self) -> None:
        """Reject a domain that leaves no region, or none to start from or to change to."""
        for what, conditions in (("from", self.allowed.starts), ("to", self.allowed.targets)):
            for condition in conditions:
                if not condition.holds.any():
                    name, texts = self.axes[condition.feature].feature.name, self.domain.where_from
                    texts = texts if what == "from" else self.domain.where_to
                    raise QueryError(
                        f"no region is left to change {what}: no value of {name!r} in the domain "
                        f"fulfils where-{what} {' and '.join(map(repr, texts))}"
                    )
        if not self.n_regions:
            what = " or a where-from condition" if self.allowed.starts else ""
            raise QueryError(f"no region is left: every one breaks a rule{what} of the domain")

    @cached_property
    def n_regions(self) -> int:
        """The number of regions to start from, a Python int of any size."""
        counts = self.cell_counts
        return sum(box.n_regions(counts, ()) for box in self.boxes(()))

    def boxes(self, sensitive: Sequence[int]) -> list[Box]:
        """Return the regions to start from as disjoint boxes, each with masks to change to."""
        return self.workspace.once(_BOXES, tuple(sensitive), lambda: self._boxes(sensitive))

    def _boxes(self, sensitive: Sequence[int]) -> list[Box]:
        axes = [axis.for_changes for axis in self.axes]
        return self.allowed.boxes(self.rules, axes, sensitive)

    def may_become(
        self, region: NDArray[np.integer], others: NDArray[np.integer]
    ) -> NDArray[np.bool_]:
        """Return whether a region may change to each of the others.

        The others have the features exchanged that move along (:meth:`Allowed.moved`).
        """
        found: NDArray[np.bool_] = others.min(axis=1, initial=0) >= 0
        ordered = self.allowed.rising | self.allowed.falling
        axes = {
            feature: axis.for_changes
            for feature, axis in enumerate(self.axes)
            if axis.only_starts or feature in ordered
        }
        whole = others[found]
        found[found] = self.exists(whole) & self.allowed.may_lead(region, whole, axes)
        return found

    def is_split(self, sensitive: Sequence[int]) -> bool:
        """Return whether not all changes of the sensitive features are allowed everywhere."""
        closed = any(self.axes[f].only_starts for f in sensitive)
        return bool(self.rules) or bool(self.allowed) or closed

    @property
    def split_by(self) -> str:
        """What makes a question a sum of parts, in the words of the user."""
        if self.rules:
            return "rules"
        named = {
            "where-from": self.allowed.starts,
            "where-to": self.allowed.targets,
            "along": self.allowed.along,
            "order of changes": self.allowed.rising | self.allowed.falling,
        }
        return next((name for name, own in named.items() if own), "values that may only be left")

    def fixed_boxes(self, sensitive: Sequence[int]) -> list[Box]:
        """Return the boxes with one mask: no other one is in the domain from their regions."""
        counts = self.cell_counts
        return [box for box in self.boxes(sensitive) if box.n_masks(counts, sensitive) == 1]

    def n_fixed(self, sensitive: Sequence[int]) -> int:
        """Return the number of regions from which no other mask is in the domain."""
        counts = self.cell_counts
        return sum(box.n_regions(counts, sensitive) for box in self.fixed_boxes(sensitive))

    def are_fixed(
        self, regions: NDArray[np.integer], sensitive: Sequence[int]
    ) -> NDArray[np.bool_]:
        """Return from which regions no other mask is in the domain."""
        found: NDArray[np.bool_] = np.zeros(len(regions), dtype=np.bool_)
        for box in self.fixed_boxes(sensitive):
            found |= box.holds(regions, sensitive)
        return found

    def holds(self, regions: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return whether each region (of existing cells) is asked about: changes start there."""
        return self.exists(regions) & self.allowed.are_starts(regions)

    def exists(self, regions: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return whether each region (of existing cells) obeys the rules."""
        found = np.ones(len(regions), dtype=np.bool_)
        for rule in self.rules:
            found &= rule.is_kept(regions)
        return found

    @cached_property
    def n_guards(self) -> int:
        """The number of (feature, threshold) pairs."""
        return sum(axis.n_guards for axis in self.axes)

    def rules_fix(self, feature: int, sensitive: Sequence[int]) -> bool:
        """Return whether the rules leave a sensitive feature one cell wherever a region exists."""
        axis = self.axes[feature]
        if axis.max_distance == 0 or not any(feature in rule.features for rule in self.rules):
            return False
        place = list(sensitive).index(feature)
        for box in boxes(self.rules, self.cell_counts, sensitive):
            cells = range(axis.n_cells) if box.masks is None else box.cells_of_mask(place)
            if axis.distance(cells[0], cells[-1]) > 0:
                return False
        return True

    def check_can_change(self, sensitive: Sequence[int], ensemble: Ensemble) -> None:
        """Reject the question if no sensitive feature can change, or if one moves along."""
        for exchange in self.allowed.along:
            if exchange.feature in sensitive:
                name = self.axes[exchange.feature].feature.name
                raise QueryError(
                    f"{name!r} is sensitive, so it cannot move along; ask about other features, or "
                    "leave --along out"
                )
        reasons = [self._why_fixed(feature, sensitive, ensemble) for feature in sensitive]
        if reasons and all(reasons):
            name = self.axes[sensitive[0]].feature.name
            raise QueryError(f"the sensitive feature {name!r} cannot change: {reasons[0]}")

    def _why_fixed(self, feature: int, sensitive: Sequence[int], ensemble: Ensemble) -> str | None:
        axis = self.axes[feature]
        if self.rules_fix(feature, sensitive):
            return "the rules leave only one of its cells wherever a region exists"
        if axis.max_distance == 0 and axis.is_restricted:
            about = self.domain.about(ensemble, feature)
            return f"{about} leaves only one of its cells, {axis.describe(0)}"
        return None

    @property
    def cell_counts(self) -> tuple[int, ...]:
        return tuple(axis.n_cells for axis in self.axes)

    def cells_of(self, rows: ArrayLike | Inputs) -> NDArray[np.int32]:
        """Return the region of each row; -1 in a column if no cell holds the value."""
        inputs = Inputs.of(rows)
        cells = np.empty((len(inputs), len(self.axes)), dtype=np.int32)
        for feature, axis in enumerate(self.axes):
            cells[:, feature] = inputs.columns[feature].mapped(partial(self._cells_on, axis))
        return cells

    def _cells_on(self, axis: Axis, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
        return axis.cells_of(self._rounded(numbers))

    def _rounded(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return numbers in the library's type."""
        with np.errstate(over="ignore"):
            return numbers.astype(self.input_dtype).astype(np.float64)

    def outside(self, rows: ArrayLike | Inputs, regions: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return which rows the domain leaves out, by a condition or a rule.

        Args:
            rows: the rows.
            regions: their regions, as :meth:`cells_of` returns them.
        """
        inputs = Inputs.of(rows)
        found: NDArray[np.bool_] = np.zeros(len(inputs), dtype=np.bool_)
        for feature in np.flatnonzero(regions.min(axis=0, initial=0) < 0).tolist():
            own = np.flatnonzero(regions[:, feature] < 0)
            numbers = self._rounded(inputs.columns[feature].at(own).numbers())
            found[own] |= self.axes[feature].leaves_out(numbers)
        if self.rules or self.allowed.starts:
            whole = np.flatnonzero(regions.min(axis=1, initial=0) >= 0)
            found[whole] = ~self.holds(regions[whole])
        return found

    def without_last(self, n: int) -> Grid:
        """Return the grid without its last n features, which no rule is about."""
        return replace(self, axes=self.axes[: len(self.axes) - n])

    def point(self, cells: Sequence[int]) -> NDArray[np.float64]:
        """Return an input that the library itself routes into the region."""
        values = [
            axis.point(int(cell), self.input_dtype)
            for axis, cell in zip(self.axes, cells, strict=True)
        ]
        return np.array(values, dtype=np.float64)


def _axis(
    feature: Feature,
    guards: NDArray[np.float64],
    sets: list[frozenset[int]],
    is_missing_placed: bool,
    dtype: str,
) -> Axis:
    """Return the cells of a feature; without a place for missing values, none holds them."""
    classes: tuple[tuple[int, ...], ...] = ()
    if feature.categories is not None:
        by_signature: dict[tuple[bool, ...], list[int]] = {}
        for code in feature.categories:
            by_signature.setdefault(tuple(code in s for s in sets), []).append(code)
        classes = tuple(tuple(codes) for codes in by_signature.values()) or ((0,),)
        guards = np.empty(0)
    n_values = len(classes) if feature.is_categorical else len(guards) + 1
    has_missing_cell = is_missing_placed and feature.can_be_missing
    if not is_missing_placed:
        feature = replace(feature, missing_as=None)
    return Axis(feature, guards, classes, n_values if has_missing_cell else None, dtype=dtype)


def _on_cells(
    side: Sequence[tuple[int, ValueSet]], axes: Sequence[Axis]
) -> tuple[CellCondition, ...]:
    return tuple(CellCondition(index, axes[index].holds_in(values)) for index, values in side)


def _that_matter(conditions: Sequence[CellCondition]) -> tuple[CellCondition, ...]:
    """Return the conditions that do not hold in every cell."""
    return tuple(condition for condition in conditions if not condition.holds.all())


def _no_cell(domain: Domain, ensemble: Ensemble, feature: int) -> str:
    name = ensemble.features[feature].name
    return (
        f"no region is left: no cell of {name!r} fulfils {domain.about(ensemble, feature)}; "
        "--missing cell adds cells for missing values"
    )
