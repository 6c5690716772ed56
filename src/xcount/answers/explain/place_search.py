"""Find boxes dense in sensitive regions (beam search over samples).

A box that holds a fraction p of the sensitive weight and a fraction q of all weight is scored by
the divergence ``p log(p / q) + (1 - p) log((1 - p) / (1 - q))``, which is 0 if the box is no denser
than the whole (p = q). Conditions are added one by one and the best few boxes kept; then the rest
of the space, outside the best box, is searched again, so that boxes are disjoint.

The search reports no numbers: those come from counting the boxes again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xcount.measures.measure import Box, inside
from xcount.question.grid import Axis

MAX_PLACES = 4
MAX_CONDITIONS = 3
LEAST_PART = 0.05
"""A place holds at least this fraction of the sensitive weight."""
LEAST_LIFT = 1.25
"""A place holds at least this many times what it would if sensitive weight were spread evenly."""
_LEAST_HITS = 8
_KEPT = 6
"""Boxes kept while conditions are added (the beam width)."""
_LEAST_GAIN = 1.1
"""A further condition must multiply the score of a box by at least this."""
_SHARP = 0.9
"""A condition with one end instead of two may score this much less."""
_ROWS_AT_ONCE = 1 << 14
_MAX_ENDS = 64
"""Interval ends tried on an axis."""


@dataclass(frozen=True, eq=False)
class _Candidate:
    box: dict[int, NDArray[np.bool_]]
    worth: float


class PlaceSearch:
    """Searches drawn regions for dense boxes.

    Args:
        axes: the cells of each feature.
        sensitive: regions drawn from the sensitive ones.
        everyone: regions drawn from all regions.
    """

    def __init__(
        self, axes: Sequence[Axis], sensitive: NDArray[np.integer], everyone: NDArray[np.integer]
    ) -> None:
        self._axes = axes
        self._sensitive, self._everyone = sensitive, everyone
        self._starts = np.cumsum([0, *(axis.n_cells for axis in axes)])
        self._features = [f for f, axis in enumerate(axes) if axis.n_cells > 1]
        self._least_part = max(LEAST_PART, _LEAST_HITS / max(1, len(sensitive)))

    def boxes(self) -> list[Box]:
        """Return a few disjoint boxes, the best-scoring first."""
        found: list[Box] = []
        pool: list[tuple[Box, _Candidate]] = []
        rests: list[Box] = [{}]
        while len(found) < MAX_PLACES:
            pool += [(rest, best) for rest in rests if (best := self._best(rest)) is not None]
            if not pool:
                break
            place = max(range(len(pool)), key=lambda i: pool[i][1].worth)
            outer, best = pool.pop(place)
            found.append(best.box)
            rests = list(self._outside(outer, best.box))
        return found

    def _best(self, outer: Box) -> _Candidate | None:
        """Return the best box inside another one; None if no box is good enough."""
        kept = [_Candidate(dict(outer), 0.0)]
        best: _Candidate | None = None
        for _ in range(MAX_CONDITIONS):
            longer = [c for candidate in kept for c in self._longer(candidate, outer)]
            longer.sort(key=lambda candidate: -candidate.worth)
            kept = longer[:_KEPT]
            if not kept or (best is not None and kept[0].worth < _LEAST_GAIN * best.worth):
                break
            best = kept[0]
        return best

    def _longer(self, candidate: _Candidate, outer: Box) -> Iterator[_Candidate]:
        """Yield boxes with one more condition, or with a stricter one."""
        p, q = (self._shares(each, candidate.box) for each in (self._sensitive, self._everyone))
        is_full = len(candidate.box) >= MAX_CONDITIONS + (len(outer) > 0)
        for feature in self._features:
            if is_full and feature not in candidate.box:
                continue
            axis = self._axes[feature]
            allowed = candidate.box.get(feature, np.ones(axis.n_cells, dtype=np.bool_))
            own = slice(self._starts[feature], self._starts[feature + 1])
            sets = _Sets.of(axis, p[own], q[own], allowed)
            worth = self._worth(sets.p, sets.q) * sets.factors
            worth[sets.q > q[own].sum() - _NOBODY] = 0.0  # a condition that leaves out nobody
            if len(worth) and worth.max() > candidate.worth:
                chosen = sets.flags(int(np.argmax(worth)))
                if not (chosen == allowed).all():
                    yield _Candidate({**candidate.box, feature: chosen}, float(worth.max()))

    def _shares(self, regions: NDArray[np.integer], box: Box) -> NDArray[np.float64]:
        """Return the fraction of the regions that are in the box, by cell of all features."""
        counts = np.zeros(int(self._starts[-1]), dtype=np.int64)
        for start in range(0, len(regions), _ROWS_AT_ONCE):
            some = regions[start : start + _ROWS_AT_ONCE]
            cells = some[inside(some, box)] + self._starts[:-1]
            counts += np.bincount(cells.ravel(), minlength=len(counts))
        return counts / len(regions)

    def _worth(self, p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores of boxes with these fractions; 0 for those that cannot be a place."""
        p, q = np.clip(p, 0.0, 1.0), np.clip(q, 1 / len(self._everyone), 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            rest = np.where(p < 1, (1 - p) * np.log((1 - p) / np.maximum(1 - q, 1e-12)), 0.0)
            worth = p * np.log(p / q) + rest
        return np.where((p >= self._least_part) & (p >= LEAST_LIFT * q), worth, 0.0)

    def _outside(self, outer: Box, box: Box) -> Iterator[Box]:
        """Yield disjoint boxes that together are the outer box without the inner one."""
        before: dict[int, NDArray[np.bool_]] = dict(outer)
        for feature, flags in box.items():
            allowed = before.get(feature, np.ones(len(flags), dtype=np.bool_))
            for rest in _runs(self._axes[feature], allowed & ~flags):
                yield {**before, feature: rest}
            before[feature] = flags


def _runs(axis: Axis, cells: NDArray[np.bool_]) -> Iterator[NDArray[np.bool_]]:
    """Yield the cells, split into sets that one condition can name."""
    values = cells.copy()
    if axis.missing_cell is not None:
        values[axis.missing_cell] = False
        if cells[axis.missing_cell]:
            yield np.arange(axis.n_cells) == axis.missing_cell
    if axis.feature.is_categorical:
        if values.any():
            yield values
        return
    edges = np.flatnonzero(np.diff(np.concatenate([[0], values.astype(np.int8), [0]])))
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        numbers = np.arange(axis.n_cells)
        yield (first <= numbers) & (numbers < end)


_NOBODY = 1e-12
"""A fraction that is only rounding."""


@dataclass(frozen=True, eq=False)
class _Sets:
    """Sets of cells of one axis that one condition can name.

    Attributes:
        axis: the axis.
        p: the fraction of the sensitive weight in each set.
        q: the fraction of all weight in each set.
        factors: of the scores, so that simple conditions are preferred.
        order: the cells, ordered so that every set is a run: the order of the axis, except for
            categories and the missing cell.
        runs: first position and end of each set's run.
    """

    axis: Axis
    p: NDArray[np.float64]
    q: NDArray[np.float64]
    factors: NDArray[np.float64]
    order: NDArray[np.int64]
    runs: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        axis: Axis,
        p: NDArray[np.float64],
        q: NDArray[np.float64],
        allowed: NDArray[np.bool_],
    ) -> _Sets:
        """Return the sets of allowed cells that are worth a try."""
        cells = np.flatnonzero(allowed)
        values = cells[cells != (-1 if axis.missing_cell is None else axis.missing_cell)]
        n = len(values)
        if axis.feature.is_categorical:
            # The best set of a given size has the cells in which sensitive weight is densest.
            values = values[np.argsort(-p[values] / np.maximum(q[values], 1e-12), kind="stable")]
            runs = np.stack([np.zeros(n, dtype=np.int64), np.arange(1, n + 1)], axis=1)
            factors = np.ones(n)
        else:
            ends = np.unique(np.linspace(0, n, min(n + 1, _MAX_ENDS)).astype(np.int64))
            first, end = np.triu_indices(len(ends), 1)
            runs = np.stack([ends[first], ends[end]], axis=1)
            is_simple = np.any(values[runs - [0, 1]] == [0, axis.numbers.n_cells - 1], axis=1)
            factors = np.where(is_simple, 1.0, _SHARP)
        if n < len(cells):  # the missing cell, always the last one, is a set of its own
            values = np.append(values, cells[-1])
            runs, factors = np.append(runs, [[n, n + 1]], axis=0), np.append(factors, 1.0)
        sums = [np.concatenate([[0.0], np.cumsum(part[values])]) for part in (p, q)]
        inside_p, inside_q = (each[runs[:, 1]] - each[runs[:, 0]] for each in sums)
        return cls(axis, inside_p, inside_q, factors, values, runs)

    def flags(self, number: int) -> NDArray[np.bool_]:
        """Return which cells are in a set."""
        first, end = self.runs[number]
        return np.isin(np.arange(self.axis.n_cells), self.order[first:end])
