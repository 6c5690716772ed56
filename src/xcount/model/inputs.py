"""Inputs of a model, column by column: rows of a table take a few bytes each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

_ROWS_AT_ONCE = 65536
Scalar = TypeVar("Scalar", bound=np.generic)
Codes = NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True, eq=False)
class Column:
    """One number for each row; NaN means missing.

    Attributes:
        values: the numbers of the rows; with codes, the numbers that occur, and maybe others.
        codes: for each row the place of its number in ``values``.
    """

    values: NDArray[np.float64]
    codes: Codes | None = None

    def __len__(self) -> int:
        return len(self.values if self.codes is None else self.codes)

    def numbers(self) -> NDArray[np.float64]:
        """Return the number of each row."""
        return self.values if self.codes is None else self.values[self.codes]

    def distinct(self) -> NDArray[np.float64]:
        """Return the numbers that occur; some maybe more than once."""
        return self.values if self.codes is None else self.values[np.unique(self.codes)]

    def mapped(self, function: Callable[[NDArray[np.float64]], NDArray[Scalar]]) -> NDArray[Scalar]:
        """Return a function of each row's number, computed once for each of the values."""
        found = function(self.values)
        return found if self.codes is None else found[self.codes]

    def at(self, rows: NDArray[np.integer[Any]] | slice) -> Column:
        """Return the column of only some rows."""
        if self.codes is None:
            return Column(self.values[rows])
        return Column(self.values, self.codes[rows])

    def padded(self, n_rows: int) -> Column:
        """Return the column with missing numbers for more rows."""
        n_more = n_rows - len(self)
        if not n_more:
            return self
        values = np.append(self.values, np.full(n_more if self.codes is None else 1, np.nan))
        if self.codes is None:
            return Column(values)
        missing = np.full(n_more, len(self.values), dtype=np.min_scalar_type(len(self.values)))
        return Column(values, np.concatenate([self.codes, missing]))


@dataclass(frozen=True, eq=False)
class Inputs:
    """Rows of inputs, a column for each feature.

    Example:
        >>> inputs = Inputs.of([[1, 2], [3, 4]])
        >>> len(inputs), inputs.row(1).tolist()
        (2, [3.0, 4.0])
    """

    columns: tuple[Column, ...]
    n_rows: int

    @classmethod
    def of(cls, rows: ArrayLike | Inputs) -> Inputs:
        """Return the columns of a matrix; of one row, if that is all."""
        if isinstance(rows, Inputs):
            return rows
        matrix = np.atleast_2d(np.asarray(rows, dtype=np.float64))
        return cls(tuple(map(Column, matrix.T)), len(matrix))

    def __len__(self) -> int:
        return self.n_rows

    def row(self, index: int) -> NDArray[np.float64]:
        """Return one row."""
        return self.at(slice(index, index + 1)).matrix().ravel()

    def at(self, rows: NDArray[np.integer[Any]] | slice) -> Inputs:
        """Return only some rows."""
        n_rows = len(np.empty(self.n_rows, dtype=np.bool_)[rows])
        return Inputs(tuple(column.at(rows) for column in self.columns), n_rows)

    def without(self, rows: Sequence[int]) -> Inputs:
        """Return the rows but for some."""
        return self.at(np.delete(np.arange(self.n_rows), rows)) if len(rows) else self

    def with_constants(self, values: Sequence[float]) -> Inputs:
        """Return the rows with more columns, each with one number in all rows."""
        codes = np.zeros(self.n_rows, dtype=np.uint8)
        more = (Column(np.full(1, float(value)), codes) for value in values)
        return Inputs((*self.columns, *more), self.n_rows)

    def without_last(self, n: int) -> Inputs:
        """Return the rows without their last n columns."""
        return Inputs(self.columns[: len(self.columns) - n], self.n_rows)

    def matrix(self, features: Sequence[int] | None = None) -> NDArray[np.float64]:
        """Return a matrix with a line for each row, of all or of some features."""
        chosen = self.columns if features is None else [self.columns[f] for f in features]
        rows = np.empty((self.n_rows, len(chosen)))
        for place, column in enumerate(chosen):
            rows[:, place] = column.numbers()
        return rows

    def blocks(self) -> Iterator[NDArray[np.float64]]:
        """Yield the lines of the matrix, some at a time."""
        for start in range(0, self.n_rows, _ROWS_AT_ONCE):
            yield self.at(slice(start, start + _ROWS_AT_ONCE)).matrix()
