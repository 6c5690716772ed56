"""A population: a mixture of product distributions over the cells of a grid, fitted to rows.

Columns of real data depend on each other. The product of their marginals ignores that and gives
weight to people who do not exist. A mixture of products keeps the dependence, and each of its
products can be weighed exactly (see docs/population.md).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from xcount.errors import QueryError
from xcount.measures.portrait import Check, ComponentPortrait, Realism, component_portraits
from xcount.measures.products import ProductComponent
from xcount.model.ensemble import Feature
from xcount.model.loaders import kinds
from xcount.question.grid import Axis, Grid
from xcount.support.display import DisplayMixin
from xcount.support.files import write_atomically
from xcount.support.records import Json, record, to_dict

FORMAT = "xcount-population-1"
MAX_CHARACTERS = 2**28
"""Longest saved population; a longer file is refused."""


@record("population", "A fitted population: its components, and how realistic it is.")
@dataclass(frozen=True, slots=True, repr=False)
class Portrait(DisplayMixin):
    """A population in words and numbers."""

    source: Annotated[str, Json("The data that it was fitted to, by name.")]
    n_data_rows: Annotated[int | None, Json("Rows of the data; null if unknown.", {"minimum": 0})]
    data_sha256: Annotated[
        str | None,
        Json(
            "Hash of the bytes of the data's file; null without one.",
            {"pattern": "^[0-9a-f]{64}$"},
        ),
    ]
    n_columns: Annotated[int, Json("Columns that it knows.", {"minimum": 0})]
    n_components: Annotated[int, Json("How many components it has.", {"minimum": 1})]
    realism: Annotated[Realism, Json("How well it fits held-out rows.")]
    components: Annotated[
        tuple[ComponentPortrait, ...], Json("Its components, the heaviest first.")
    ]

    def to_dict(self) -> dict[str, Any]:
        """Return what ``xcount inspect FILE --json`` prints of a saved population."""
        return to_dict(self)


@dataclass(frozen=True, eq=False)
class Column:
    """The cells of one column, as the population knows them.

    Attributes:
        name: of the feature.
        guards: the boundaries of numeric cells; empty for categories.
        classes: the category codes of each cell; None for numbers.
        has_missing: whether the last cell is that of missing values.
        probabilities: of each cell (rows) in each component (columns).
        labels: the names of the categories of each cell, if known.
    """

    name: str
    guards: tuple[float, ...]
    classes: tuple[tuple[int, ...], ...] | None
    has_missing: bool
    probabilities: NDArray[np.float64]
    labels: tuple[tuple[str, ...], ...] | None = None

    @property
    def axis(self) -> Axis:
        """The cells as an axis, for describing them."""
        codes, names = self.classes, self.labels
        feature = Feature(
            self.name,
            None if codes is None else tuple(code for each in codes for code in each),
            None if names is None else tuple(name for each in names for name in each),
        )
        missing = len(self.probabilities) - 1 if self.has_missing else None
        return Axis(feature, np.array(self.guards), codes or (), missing)

    def on(self, axis: Axis) -> NDArray[np.float64]:
        """Return the probabilities of the cells of an axis that is no finer than the column's."""
        if axis.feature.is_categorical != (self.classes is not None):
            raise QueryError(f"{self.name!r} has categories in only one of model and population")
        self._check_cells_of(axis)
        cells = axis.cells_of(self._examples())
        table = np.zeros((axis.n_cells, self.probabilities.shape[1]))
        np.add.at(table, cells[cells >= 0], self.probabilities[cells >= 0])
        return table

    def _check_cells_of(self, axis: Axis) -> None:
        """Reject an axis that separates values of one cell of the population."""
        lacks = self._told_apart(axis)
        if lacks:
            raise QueryError(
                f"the population was fitted to a model {lacks}; fit it to this model's cells with "
                "--data"
            )

    def _told_apart(self, axis: Axis) -> str:
        """Return in words which values the axis separates but the population does not, if any."""
        if self.classes is None:
            finer = {end for end in axis.ends if math.isfinite(end)} - set(self.guards)
            return f"without the guard {min(finer):g} of {self.name!r}" if finer else ""
        known = {code for codes in self.classes for code in codes}
        for code in axis.codes:
            if code not in known:
                return f"without the category {code} of {self.name!r}"
        for codes in self.classes:
            if len(set(axis.cells_of(np.array(codes, dtype=np.float64)).tolist())) > 1:
                both = f"{codes[0]} and {codes[-1]}"
                return f"that does not tell the categories {both} of {self.name!r} apart"
        return ""

    def _examples(self) -> NDArray[np.float64]:
        """Return a value of each cell."""
        if self.classes is not None:
            values = [float(codes[0]) for codes in self.classes]
        else:
            below = -math.inf if not self.guards else math.nextafter(self.guards[0], -math.inf)
            values = [below, *self.guards]
        return np.array([*values, math.nan] if self.has_missing else values)

    def to_dict(self) -> dict[str, Any]:
        """Return the column as JSON."""
        cells: dict[str, Any] = {"guards": list(self.guards)}
        if self.classes is not None:
            cells = {"categories": [list(codes) for codes in self.classes]}
        if self.labels is not None:
            cells["labels"] = [list(names) for names in self.labels]
        return {
            "name": self.name,
            **cells,
            "missing": self.has_missing,
            "probabilities": self.probabilities.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], n_components: int) -> Column:
        """Read back what :meth:`to_dict` wrote; reject anything else."""
        classes, labels = None, None
        if "categories" in data:
            classes = tuple(tuple(int(code) for code in codes) for codes in data["categories"])
        if data.get("labels") is not None:
            labels = tuple(tuple(str(name) for name in names) for names in data["labels"])
            if classes is None or list(map(len, labels)) != list(map(len, classes)):
                raise ValueError("a column's names are not those of its categories")
        guards = tuple(float(guard) for guard in data.get("guards", ()))
        probabilities = np.array(data["probabilities"], dtype=np.float64)
        n_values = len(guards) + 1 if classes is None else len(classes)
        shape = (n_values + bool(data["missing"]), n_components)
        sums = probabilities.sum(axis=0)
        is_sound = probabilities.shape == shape and bool((probabilities >= 0).all())
        if not is_sound or not np.allclose(sums, 1) or list(guards) != sorted(set(guards)):
            raise ValueError("a column's table is not one of distributions")
        missing = bool(data["missing"])
        return cls(str(data["name"]), guards, classes, missing, probabilities, labels)


@dataclass(frozen=True, eq=False, repr=False)
class Population(DisplayMixin):
    """A mixture of product distributions over cells.

    Attributes:
        weights: of the components, with sum 1.
        columns: for each feature its cells, and what they weigh in each component.
        realism: how well it fits.
        source: the data that it was fitted to.
        n_data_rows: rows of the data.
        data_sha256: hash of the data's file; None without one.

    Example:
        >>> import numpy as np
        >>> from xcount.model.examples import figure_1
        >>> from xcount.measures.fitting import fit_population
        >>> rows = np.array([[1.0, 1.0], [5.0, 2.5]] * 50)
        >>> fit_population(Grid.of(figure_1()), rows, source="two kinds of rows")
        Population(2 columns, 2 components, fitted to two kinds of rows)
    """

    weights: NDArray[np.float64]
    columns: tuple[Column, ...]
    realism: Realism
    source: str = ""
    n_data_rows: int | None = None
    data_sha256: str | None = None

    @property
    def n_components(self) -> int:
        return len(self.weights)

    def on(self, grid: Grid) -> list[ProductComponent]:
        """Return the product measures on the cells of a grid, conditioned on its domain."""
        tables = self._tables_on(grid)
        masses = [table.sum(axis=0) for table in tables]
        weights = self.weights * np.prod(masses, axis=0)
        if not weights.sum() > 0:
            raise QueryError("the population has nobody in these regions")
        weights = weights / weights.sum()
        return [
            ProductComponent(
                float(weight), [t[:, k] / m[k] for t, m in zip(tables, masses, strict=True)]
            )
            for k, weight in enumerate(weights)
            if weight > 0
        ]

    def share_of(self, grid: Grid) -> float:
        """Return how much of the population is in the regions of a grid."""
        tables = self._tables_on(grid)
        total = 0.0
        for box in grid.boxes(()):
            masses = [
                (table[list(box.cells[f])] if f in box.cells else table).sum(axis=0)
                for f, table in enumerate(tables)
            ]
            total += float((self.weights * np.prod(masses, axis=0)).sum())
        return min(1.0, total)

    def _tables_on(self, grid: Grid) -> list[NDArray[np.float64]]:
        """Return for each axis of a grid the weights of its cells in each component."""
        by_name = {column.name: column for column in self.columns}
        for axis in grid.axes:
            if axis.feature.name not in by_name:
                raise QueryError(
                    f"the population has no column {axis.feature.name!r}; fit it to this model "
                    "with --data"
                )
        return [by_name[axis.feature.name].on(axis) for axis in grid.axes]

    @property
    def portrait(self) -> Portrait:
        """The components in words, and how realistic the population is."""
        axes = [column.axis for column in self.columns]
        tables = [column.probabilities for column in self.columns]
        return Portrait(
            self.source,
            self.n_data_rows,
            self.data_sha256,
            len(self.columns),
            self.n_components,
            self.realism,
            component_portraits(self.weights, axes, tables),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the population as JSON."""
        return {
            "format": FORMAT,
            "source": self.source,
            "n_data_rows": self.n_data_rows,
            "data_sha256": self.data_sha256,
            "realism": asdict(self.realism),
            "weights": self.weights.tolist(),
            "columns": [column.to_dict() for column in self.columns],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the population to a file, to inspect it or use it again."""
        write_atomically(path, json.dumps(self.to_dict(), allow_nan=False))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Population:
        """Read what :meth:`save` wrote."""
        where = os.fspath(path)
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read(MAX_CHARACTERS + 1)
            if len(text) > MAX_CHARACTERS:
                raise ValueError(f"more than {MAX_CHARACTERS:,} characters")
            other = kinds.mistaken(path, text.encode(), kinds.POPULATION)
            if other is not None:
                raise QueryError(other)
            data = json.loads(text)
            if not isinstance(data, dict):
                raise ValueError("no object in braces")
            if data["format"] != FORMAT:
                raise ValueError(f"its format is {data['format']!r}")
            return cls._from_dict(data)
        except OSError as error:
            raise QueryError(kinds.unreadable(path, error, kinds.POPULATION)) from None
        except QueryError:
            raise  # a ValueError, too
        except KeyError as error:
            raise QueryError(f"{where}: not a population that xcount saved (no {error})") from None
        except (ValueError, TypeError, AttributeError) as error:
            raise QueryError(f"{where}: not a population that xcount saved ({error})") from None

    @classmethod
    def _from_dict(cls, data: Mapping[str, Any]) -> Population:
        weights = np.array(data["weights"], dtype=np.float64)
        if weights.ndim != 1 or not (weights >= 0).all() or not math.isclose(weights.sum(), 1):
            raise ValueError("its weights are not those of a mixture")
        about = dict(data["realism"])
        checks = tuple(Check(**check) for check in about.pop("checks"))
        columns = tuple(Column.from_dict(each, len(weights)) for each in data["columns"])
        realism = Realism(**about, checks=checks)
        n_rows, sha256 = data.get("n_data_rows"), data.get("data_sha256")
        return cls(
            weights,
            columns,
            realism,
            str(data["source"]),
            None if n_rows is None else int(n_rows),
            None if sha256 is None else str(sha256),
        )


def is_saved_population(path: str | os.PathLike[str]) -> bool:
    """Return whether :meth:`Population.save` wrote a file, by its first bytes."""
    try:
        with open(path, "rb") as file:
            start = file.read(256)
    except (OSError, ValueError):
        return False
    return start.lstrip().startswith(b"{") and f'"{FORMAT}"'.encode() in start
