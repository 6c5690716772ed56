"""Sets of values of one feature, and the cells of a numeric feature.

Numbers are those that the library compares (float32 or float64), so every bound is half-open::

    x <= 65   is   x < (the next number after 65),      x == 3   is   3 <= x < (the next one)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from xcount.model.ensemble import Feature

Piece = tuple[float, float]
"""Numbers ``low <= x < high``; also infinity, if high is infinity."""
ALL_NUMBERS: tuple[Piece, ...] = ((-math.inf, math.inf),)


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A set of values of a feature: numbers or category codes, with or without missing values.

    Attributes:
        pieces: disjoint intervals of numbers, ascending; none for a categorical feature.
        codes: category codes; none for a numeric feature.
        has_missing: whether it contains missing values.
    """

    pieces: tuple[Piece, ...] = ()
    codes: frozenset[int] = frozenset()
    has_missing: bool = False

    @classmethod
    def everything(cls, feature: Feature) -> ValueSet:
        """Return all values of a feature."""
        if feature.categories is None:
            return cls(ALL_NUMBERS, has_missing=True)
        return cls(codes=frozenset(feature.categories), has_missing=True)

    def __bool__(self) -> bool:
        return bool(self.pieces or self.codes or self.has_missing)

    def __and__(self, other: ValueSet) -> ValueSet:
        shared = (
            (max(a, c), min(b, d)) for a, b in self.pieces for c, d in other.pieces
        )  # ascending, since both are
        return ValueSet(
            tuple(piece for piece in shared if piece[0] < piece[1]),
            self.codes & other.codes,
            self.has_missing and other.has_missing,
        )

    def complement(self, feature: Feature) -> ValueSet:
        """Return all other values of the feature."""
        if feature.categories is not None:
            codes = frozenset(feature.categories) - self.codes
            return ValueSet(codes=codes, has_missing=not self.has_missing)
        ends = [-math.inf, *(end for piece in self.pieces for end in piece), math.inf]
        pieces = zip(ends[::2], ends[1::2], strict=True)
        return ValueSet(tuple(p for p in pieces if p[0] < p[1]), has_missing=not self.has_missing)


def pieces_of(numbers: Iterable[float], dtype: str) -> tuple[Piece, ...]:
    """Return single numbers as pieces."""
    rounded = sorted({_rounded(number, dtype) for number in numbers})
    return tuple((number, next_number(number, dtype)) for number in rounded)


def piece_between(
    low: float, high: float, dtype: str, *, low_is_in: bool, high_is_in: bool
) -> Piece:
    """Return the numbers between two bounds, rounded as the library rounds inputs."""
    low, high = _rounded(low, dtype), _rounded(high, dtype)
    return (
        low if low_is_in or low == -math.inf else next_number(low, dtype),
        next_number(high, dtype) if high_is_in else high,
    )


def _rounded(number: float, dtype: str) -> float:
    with np.errstate(over="ignore"):
        return float(np.dtype(dtype).type(number))


def next_number(number: float, dtype: str, towards: float = math.inf) -> float:
    """Return the next number of that type."""
    kind = np.dtype(dtype).type
    with np.errstate(over="ignore", under="ignore"):
        return float(np.nextafter(kind(number), kind(towards)))


def is_next_of_shorter(number: float, dtype: str) -> bool:
    """Return whether a bound is the next float after a shorter number, probably the user's."""
    if not math.isfinite(number):
        return False
    kind = np.dtype(dtype).type
    return len(str(kind(next_number(number, dtype, -math.inf)))) < len(str(kind(number)))


@dataclass(frozen=True, eq=False)
class NumberCells:
    """The cells of a numeric axis, each one or several intervals of numbers.

    Attributes:
        lows: the lower bounds of the pieces, ascending.
        highs: their upper bounds.
        cell_of_piece: the cell that each belongs to, ascending.
        positions: the number of guards below each cell, from which distances are computed.
    """

    lows: NDArray[np.float64]
    highs: NDArray[np.float64]
    cell_of_piece: NDArray[np.int64]
    positions: NDArray[np.int64]

    @classmethod
    def between(
        cls,
        guards: NDArray[np.float64],
        allowed: Sequence[Piece] = ALL_NUMBERS,
        cuts: Sequence[float] = (),
    ) -> NumberCells:
        """Return the cells between guards that contain allowed numbers.

        A cut that is not a guard divides a cell in two at distance 0.
        """
        edges = np.array(sorted({*guards.tolist(), *cuts}), dtype=np.float64)
        lows, highs, numbers = [], [], []
        for low, high in allowed:
            inner = edges[np.searchsorted(edges, low, "right") : np.searchsorted(edges, high)]
            lows.append(np.concatenate([[low], inner]))
            highs.append(np.concatenate([inner, [high]]))
            numbers.append(np.searchsorted(edges, lows[-1], "right"))
        low_ends, full = np.concatenate([[], *lows]), np.concatenate([[], *numbers])
        is_first = np.diff(full, prepend=-1) > 0
        positions = np.searchsorted(guards, low_ends[is_first], "right")
        cells = np.cumsum(is_first) - 1
        return cls(
            low_ends,
            np.concatenate([[], *highs]),
            cells.astype(np.int64),
            positions.astype(np.int64),
        )

    @property
    def n_cells(self) -> int:
        return len(self.positions)

    @cached_property
    def is_regular(self) -> bool:
        """Whether neighbouring cells have one guard between them."""
        return bool((np.diff(self.positions) == 1).all())

    @cached_property
    def is_whole(self) -> bool:
        """Whether all numbers are in a cell."""
        if not len(self.lows):
            return False
        ends = self.lows[0], self.highs[-1]
        return ends == ALL_NUMBERS[0] and bool((self.lows[1:] == self.highs[:-1]).all())

    def pieces(self, cell: int) -> list[Piece]:
        """Return the pieces of a cell."""
        own = slice(*np.searchsorted(self.cell_of_piece, [cell, cell + 1]).tolist())
        return list(zip(self.lows[own].tolist(), self.highs[own].tolist(), strict=True))

    def with_cells(self, cells: Sequence[int]) -> NumberCells:
        """Return only some of the cells, with their positions."""
        kept = np.isin(self.cell_of_piece, cells)
        numbers = np.searchsorted(np.array(cells), self.cell_of_piece[kept])
        return NumberCells(
            self.lows[kept],
            self.highs[kept],
            numbers.astype(np.int64),
            self.positions[np.array(cells, dtype=np.int64)],
        )

    def cells_of(self, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the cell of each number; -1 if no cell holds it."""
        if not len(self.lows):
            return np.full(len(numbers), -1, dtype=np.int64)
        pieces = np.searchsorted(self.lows, numbers, side="right") - 1
        is_in = (numbers < self.highs[pieces]) | (self.highs[pieces] == math.inf)
        return np.where((pieces >= 0) & is_in, self.cell_of_piece[pieces], -1)

    def first_behind(self, guards_below: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many cells lie below each guard, given the number of guards up to it."""
        return np.searchsorted(self.positions, guards_below, side="left")
