"""The requested measures with their data, and the weights of cells by length or rows."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.errors import QueryError
from xcount.measures.population import Population
from xcount.measures.products import Weights
from xcount.model.ensemble import Ensemble
from xcount.model.group_columns import GroupColumn
from xcount.model.inputs import Inputs
from xcount.model.tables import read_table
from xcount.question.grid import Axis, Grid
from xcount.question.query import resolve_feature
from xcount.support.parse import plain_float

MEASURES = ("regions", "volume", "marginals", "rows", "population")
WEIGHED = ("volume", "marginals", "population")
"""Measures that take time to weigh; rows are decided one by one."""

Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Grouping:
    """The groups that rows are compared by.

    Attributes:
        columns: the group of each row of the data, one column for each way to group them.
        favourable: the decision whose rates are compared, as in ``--favourable``.
    """

    columns: tuple[GroupColumn, ...]
    favourable: str | None = None

    @property
    def fingerprint(self) -> bytes:
        """A hash of the groups."""
        digest = hashlib.sha256(repr(self.favourable).encode())
        for column in self.columns:
            digest.update(repr((column.name, column.values)).encode())
            digest.update(column.codes.tobytes())
        return digest.digest()


@dataclass(frozen=True, eq=False)
class Weighing:
    """The requested measures, and the data and bounds they need.

    Attributes:
        names: the measures, without ``regions``.
        inputs: the rows of the data; None without data.
        source: where the rows come from.
        bounds: for each feature its least and largest value in a volume, if given.
        population: a population fitted earlier; None to fit one to the rows.
        population_file: where to save a newly fitted population.
        sha256: hash of the file that the rows come from; None without one.
        unreadable: rows that have no meaning to the model, by the reason.
        missing_in: the names of the features that rows, or people of the population, lack.
        start_cells: cells of the last features of a question that are no columns of the data:
            everybody starts there (see :meth:`starting_in`).
        grouping: the groups to compare rows by; None for no groups.
    """

    names: tuple[str, ...]
    inputs: Inputs | None = None
    source: str = ""
    bounds: tuple[Interval | None, ...] = ()
    population: Population | None = None
    population_file: str | None = None
    sha256: str | None = None
    unreadable: Mapping[str, Sequence[int]] = field(default_factory=dict)
    missing_in: frozenset[str] = frozenset()
    start_cells: tuple[int, ...] = ()
    grouping: Grouping | None = None

    @classmethod
    def of(
        cls,
        ensemble: Ensemble,
        measures: str | Iterable[str],
        data: Any = None,
        bounds: Mapping[str, Interval] | str | None = None,
        population: Population | str | os.PathLike[str] | None = None,
        *,
        is_over: Callable[[], bool] = lambda: False,
        n_threads: int = 0,
        groups: str | Iterable[str] = (),
        favourable: str | None = None,
    ) -> Weighing:
        """Validate the user's measures and data.

        Args:
            ensemble: the model.
            measures: names of measures; text may list several with commas.
            data: a table, in any form that :func:`xcount.model.tables.read_table` takes.
            bounds: per feature (least, largest), or text such as ``age=18:90,income=0:1e6``.
            population: a fitted population, or its file; with data, a file that does not exist yet
                is written.
            is_over: whether to stop reading; rows that are not read by then are left out.
            n_threads: to read data with; 0 for all cores.
            groups: columns of the data that put its rows into groups.
            favourable: the decision whose rates are compared between groups.
        """
        words = [measures] if isinstance(measures, str) else list(measures)
        names = tuple(dict.fromkeys(w.strip() for word in words for w in word.split(",")))
        for name in names:
            if name not in MEASURES:
                raise QueryError(f"unknown measure {name!r}; measures are {', '.join(MEASURES)}")
        fitted, kept = population, None
        if fitted is not None and not isinstance(fitted, Population):
            kept = os.fspath(fitted)
            is_new = data is not None and not os.path.exists(kept)
            fitted = None if is_new else Population.load(kept)
        for name in ("marginals", "rows", "population"):
            is_given = data is not None or (name == "population" and fitted is not None)
            if name in names and not is_given:
                other = ", or --population FILE" if name == "population" else ""
                raise QueryError(f"the measure {name!r} needs data; give --data FILE{other}")
        table = None
        if data is not None:
            table = read_table(
                data, ensemble, leave_out=True, is_over=is_over, n_threads=n_threads, groups=groups
            )
        found = cls(
            tuple(name for name in names if name != "regions"),
            None if table is None else table.inputs,
            "" if table is None else table.source,
            _resolved_bounds(ensemble, bounds),
            fitted,
            kept if fitted is None else None,
            None if table is None else table.sha256,
            {} if table is None else table.left_out,
            grouping=Grouping(table.groups, favourable) if table and table.groups else None,
        )
        lacking = () if fitted is None else (c.name for c in fitted.columns if c.has_missing)
        missing_in = frozenset(lacking) | (table.missing_in(ensemble) if table else frozenset())
        return replace(found, missing_in=missing_in)

    def starting_in(self, cells: Sequence[int]) -> Weighing:
        """Return the weighing of a question with more features: categories, by their numbers.

        They are no columns of the data; everybody starts in the given ones.
        """
        inputs = None if self.inputs is None else self.inputs.with_constants(cells)
        bounds = (*self.bounds, *(None for _ in cells)) if self.bounds else ()
        return replace(self, inputs=inputs, bounds=bounds, start_cells=tuple(cells))

    @property
    def unreadable_rows(self) -> list[int]:
        """The numbers of the rows that have no meaning to the model."""
        return [row for rows in self.unreadable.values() for row in rows]

    @property
    def unreadable_note(self) -> str | None:
        """A warning if rows without a meaning to the model are left out of weights; else None."""
        if self.inputs is None or not self.unreadable:
            return None
        reasons = "; ".join(f"{reason} ({len(rows):,})" for reason, rows in self.unreadable.items())
        return (
            f"{len(self.unreadable_rows):,} of {len(self.inputs):,} rows of {self.source} are left "
            f"out of marginals, volume and population: {reasons}"
        )

    @property
    def readable(self) -> Inputs | None:
        """The other rows; None without data."""
        return None if self.inputs is None else self.inputs.without(self.unreadable_rows)

    @property
    def population_note(self) -> str | None:
        """A warning if the population was fitted to other data than the given data; else None.

        Files are compared by their hashes; if one of the two has none, by their rows.
        """
        fitted = self.population
        if fitted is None or self.inputs is None:
            return None
        marks: tuple[object, object] = (fitted.data_sha256, self.sha256)
        if None in marks:
            marks = (fitted.n_data_rows, len(self.inputs))
        if None in marks or marks[0] == marks[1]:
            return None
        of_rows = "" if fitted.n_data_rows is None else f", {fitted.n_data_rows:,} rows"
        known_as = [os.path.basename(name) for name in (fitted.source, self.source)]
        before, now = (name or "a table" for name in known_as)
        return (
            f"the population was fitted to another table ({before}{of_rows}) than the one given "
            f"({now}, {len(self.inputs):,} rows); fit it again, or leave --data out"
        )

    def of_names(self, names: Collection[str]) -> Weighing:
        """Return the weighing of only some of the measures."""
        return replace(self, names=tuple(name for name in self.names if name in names))

    @property
    def n_weighed(self) -> int:
        """The number of measures that take time to weigh."""
        return sum(name in WEIGHED for name in self.names)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all inputs of the shares."""
        digest = hashlib.sha256(repr((self.names, self.bounds)).encode())
        if self.population is not None:
            digest.update(json.dumps(self.population.to_dict()).encode())
        if self.inputs is not None:
            for block in self.inputs.blocks():
                digest.update(block.data)
            unreadable = {reason: [*rows] for reason, rows in self.unreadable.items()}
            digest.update(json.dumps(unreadable).encode())
        if self.grouping is not None:
            digest.update(self.grouping.fingerprint)
        return digest.hexdigest()


def volume_weights(grid: Grid, weighing: Weighing) -> tuple[Weights, dict[str, list[float]]]:
    """Return the weights of cells by length, and the bounds of numeric features with guards.

    A numeric cell weighs its length within the bounds of the feature; by default these are the
    least and the largest value in the data. Categories weigh the same; a missing value weighs
    nothing.
    """
    weights: Weights = []
    used: dict[str, list[float]] = {}
    for index, axis in enumerate(grid.axes):
        if axis.feature.is_categorical:
            sizes = np.array([len(codes) for codes in axis.classes], dtype=np.float64)
            weights.append(_padded(sizes / sizes.sum(), axis))
        elif axis.numbers.n_cells < 2:
            if not axis.numbers.n_cells:
                raise QueryError(f"{axis.feature.name!r} is always missing: there is no volume")
            weights.append(_padded(np.ones(1), axis))
        else:
            low, high = _bounds_of(axis, index, weighing)
            used[axis.feature.name] = [low, high]
            weights.append(_padded(_lengths(axis, low, high), axis))
    return weights, used


def _bounds_of(axis: Axis, index: int, weighing: Weighing) -> Interval:
    given = weighing.bounds[index] if weighing.bounds else None
    if given is not None:
        return given
    name = axis.feature.name
    rows = weighing.readable
    if rows is None:
        raise QueryError(f"the volume needs bounds of {name!r}; give --bounds or --data")
    values = rows.columns[index].distinct()
    values = values[np.isfinite(values)]
    if not len(values):
        raise QueryError(f"the data has no number for {name!r}; give its bounds")
    return float(values.min()), float(values.max())


def _lengths(axis: Axis, low: float, high: float) -> NDArray[np.float64]:
    """Return the part of [low, high] that lies in each cell; a single point lies in one cell."""
    numbers = axis.numbers
    if low == high:
        cell_of_point = axis.cells_of(np.array([low]))[0]
        sizes = (numbers.cell_of_piece == cell_of_point) / 1.0
    elif axis.has_single_numbers:  # cells without length: each weighs the same
        sizes = ((low <= numbers.lows) & (numbers.lows <= high)) / 1.0
    else:
        halved = 0.5 if math.isinf(high - low) else 1.0  # half of a length is still a float
        highs, lows = (_as_written(ends, axis) for ends in (numbers.highs, numbers.lows))
        sizes = halved * np.clip(highs, low, high) - halved * np.clip(lows, low, high)
    weights = np.bincount(numbers.cell_of_piece, sizes, minlength=numbers.n_cells)
    if not weights.sum():
        raise QueryError(
            f"between its bounds {low:g} and {high:g}, {axis.feature.name!r} has nothing of the "
            "domain; give others with --bounds"
        )
    return weights / math.fsum(weights)


def _as_written(ends: NDArray[np.float64], axis: Axis) -> NDArray[np.float64]:
    """Return ends of pieces as bounds of a length: ``x > 1`` counts like ``x >= 1``."""
    written = ends.copy()
    for place in np.flatnonzero(~np.isin(ends, axis.thresholds)):
        written[place] = axis.as_written(float(ends[place]))
    return written


def _padded(weights: NDArray[np.float64], axis: Axis) -> NDArray[np.float64]:
    return np.append(weights, 0.0) if axis.missing_cell is not None else weights


def marginal_weights(grid: Grid, rows: Inputs) -> Weights:
    """Return the fraction of the rows in each cell; values outside every cell are left out."""
    regions = grid.cells_of(rows)
    weights: Weights = []
    for axis, cells in zip(grid.axes, regions.T, strict=True):
        counts = np.bincount(cells[cells >= 0], minlength=axis.n_cells).astype(np.float64)
        if not counts.sum():
            raise QueryError(f"no row of the data has a value of {axis.feature.name!r} in any cell")
        weights.append(counts / counts.sum())
    return weights


def _resolved_bounds(
    ensemble: Ensemble, bounds: Mapping[str, Interval] | str | None
) -> tuple[Interval | None, ...]:
    named = _split_bounds(bounds) if isinstance(bounds, str) else _given_bounds(bounds or {})
    resolved: list[Interval | None] = [None] * ensemble.n_features
    for name, (low, high) in named:
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise QueryError(
                f"bounds of {name!r} must be finite, the lower first, not {low}:{high}"
            )
        feature = resolve_feature(ensemble, name)
        if resolved[feature] is not None:
            raise QueryError(f"bounds of {name!r} are given twice; give one lower and upper end")
        resolved[feature] = (low, high)
    return tuple(resolved)


def _given_bounds(bounds: Mapping[str, Interval]) -> list[tuple[str, Interval]]:
    try:
        return [
            (name, (plain_float(low), plain_float(high))) for name, (low, high) in bounds.items()
        ]
    except (AttributeError, TypeError, ValueError):
        raise QueryError(
            f"bounds are a mapping of names to pairs of numbers, not {bounds!r}"
        ) from None


def _split_bounds(text: str) -> list[tuple[str, Interval]]:
    named: list[tuple[str, Interval]] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, interval = part.rpartition("=")
        low, _, high = interval.partition(":")
        try:
            named.append((name.strip(), (plain_float(low), plain_float(high))))
        except ValueError:
            raise QueryError(
                f"bounds are NAME=LOW:HIGH with commas between, not {part!r}"
            ) from None
    return named
