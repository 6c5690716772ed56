"""How far the output of given regions can rise and fall when only the sensitive features change.

With V the output of a region and V' that of a neighbour, ``up = max(V') - V`` and ``down = V -
min(V')``, the region itself included: both are at least 0. For a flip, only neighbours with another
decision count: ``up`` is 0 unless one of them is above the cut-off, and so on.

Margins that fit 64 bits are integers, compared exactly. Others, and probabilities, are floats: the
true numbers are less than a *doubt* away. A float of 0 is always exact: a change that is not known
to be 0 is at least the least positive float.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.errors import BudgetError, QueryError
from xcount.problem.form import PairSpace
from xcount.problem.integers import exceeds
from xcount.problem.laid_trees import LaidTrees
from xcount.problem.margin_rows import DOUBT, MarginRows
from xcount.problem.margins import Cutoffs, IntegerMargins
from xcount.problem.neighbours import NearMasks
from xcount.problem.problem import Problem
from xcount.question.flip import Flip
from xcount.question.gap import Gap, ProbabilityGap
from xcount.question.probability import Link, Votes
from xcount.question.query import resolve_link

MAX_MASKS = 4096
"""Most masks whose outputs are compared with each other in any number of regions."""
MANY_MASKS = 1 << 16
"""Most masks whose outputs are compared in a few regions, if there is no other way."""
MAX_NUMBERS = 1 << 21
"""Most numbers held at a time."""
TINY = float(np.finfo(np.float64).tiny)

Numbers = NDArray[Any]
"""Integers of 64 bits, or floats."""
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class FlipSides:
    """Sides of the cut-off for the margins of all masks, shape (n_rows, n_masks) each.

    Attributes:
        above: whether the margin is above.
        starts_up: whether a flip from here to above counts (the decision is sure enough).
        starts_down: whether a flip from here to below counts.
    """

    above: Flags
    starts_up: Flags
    starts_down: Flags


@dataclass(frozen=True, eq=False)
class Outputs:
    """The outputs of all masks at some combinations of the other cells.

    Attributes:
        values: shape (n_rows, n_masks).
        same: numbers that are equal iff the outputs are, shape (n_rows, n_masks, any).
        sides: for a flip, the sides of the cut-off.
    """

    values: Numbers
    same: Numbers
    sides: FlipSides | None = None

    @cached_property
    def highest(self) -> Flags:
        """Which masks have the highest output; none if all are equal."""
        top = self.values.max(axis=1, keepdims=True)
        is_flat = self.values.min(axis=1, keepdims=True) == top
        found: Flags = (self.values == top) & ~is_flat
        return found


@dataclass(frozen=True, eq=False)
class Swings:
    """How far some regions can rise and fall, in the rows' own unit."""

    up: Numbers
    down: Numbers

    def size(self, direction: str) -> Numbers:
        """Return the size of the change."""
        if direction == "any":
            return np.maximum(self.up, self.down)
        return self.up if direction == "up" else self.down

    def raveled(self) -> Swings:
        """Return the same, one after the other."""
        return Swings(np.ravel(self.up), np.ravel(self.down))


class SwingRows:
    """Evaluates outputs along all masks, and how far they can move.

    Args:
        problem: the question; its gap does not matter.

    Raises:
        BudgetError: there are too many masks, or sums beyond every float.

    Example:
        >>> from xcount.model.examples import figure_1
        >>> from xcount.question.grid import Grid
        >>> from xcount.question.query import Query
        >>> model = figure_1()
        >>> rows = SwingRows(Problem(model, Grid.of(model), Query.of(model, "f0", 80)))
        >>> found = rows.swings(rows.outputs(np.zeros((1, 2), dtype=np.int32)))
        >>> (found.up * float(rows.unit)).tolist(), (found.down * float(rows.unit)).tolist()
        ([[0.0, 85.0, 80.0]], [[85.0, 0.0, 5.0]])
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        change = problem.query.change
        assert not (isinstance(change, Flip) and change.cutoff is None), "see ClassSwingRows"
        refuse_many(problem)
        self._link = _link_of(problem)
        self._is_margin = isinstance(self._link, Votes)

    @cached_property
    def unit(self) -> Fraction:
        """The value that 1 stands for in all numbers."""
        return 1 / self._source.scale if self._is_whole else Fraction(1)

    @property
    def dtype(self) -> type[np.int64] | type[np.float64]:
        """The type of all numbers."""
        return np.int64 if self._is_whole else np.float64

    @cached_property
    def most(self) -> float:
        """Upper bound on every change, in the same unit as all numbers."""
        if not self._is_margin:
            return 1.0
        span = Fraction(self._source.span)
        try:
            return float(span if self._is_whole else span / self._source.scale)
        except OverflowError:
            raise BudgetError("sums are too large for floats") from None

    @property
    def doubt(self) -> float:
        """Bound on the error of numbers other than 0; 0 for integers."""
        if self._is_whole:
            return 0.0
        return math.ldexp(self.most, -48) if self._is_margin else DOUBT

    @property
    def n_trees(self) -> int:
        """The number of trees walked for a row."""
        return self._source.n_trees

    @cached_property
    def n_near(self) -> int:
        """The number of outputs compared for a region."""
        return self.problem.n_masks if self.near is None else self.near.width

    @property
    def n_numbers(self) -> int:
        """The number of values computed for a row."""
        return self._source.n_numbers * self.problem.n_masks + self.n_near

    @property
    def block(self) -> int:
        """How many rows to evaluate at a time."""
        return max(1, MAX_NUMBERS // (self.problem.n_masks * (2 + self._source.n_numbers)))

    def outputs(self, cells: NDArray[np.int32]) -> Outputs:
        """Return the outputs of all masks at rows of cells; sensitive cells are ignored."""
        own = np.array(cells, dtype=np.int32, ndmin=2)
        own[:, list(self.problem.query.sensitive)] = 0
        scaled, limbs = self._source.at(own, self._link)
        if self._is_whole:
            values: Numbers = limbs.view(np.int64)[:, :, 0]
        else:
            with np.errstate(over="ignore"):
                values = self._link.of_floats(scaled, self._source.output)
        exact = limbs.reshape(len(own), self.problem.n_masks, -1)
        sides = None if self._cutoffs is None else _sides(exact, self._cutoffs)
        return Outputs(values, values[..., np.newaxis] if self._is_whole else exact, sides)

    def evaluated(
        self, cells: NDArray[np.int32], masks: NDArray[np.int64]
    ) -> tuple[Swings, NDArray[np.int64]]:
        """Return how far one mask of each row can move, and for how many rows each is highest."""
        source = self._source
        if self.near is None and isinstance(source, _Differences) and self.problem.n_masks > 1:
            return source.evaluated(cells, masks, self._link if not self._is_whole else None)
        outputs = self.outputs(cells)
        return self.swings(outputs, masks), outputs.highest.sum(axis=0)

    def evaluated_all(self, cells: NDArray[np.int32]) -> tuple[Swings, Flags]:
        """Return how far all masks of each row can move, and where the output is highest."""
        outputs = self.outputs(cells)
        return self.swings(outputs), outputs.highest

    def swings(self, outputs: Outputs, masks: NDArray[np.int64] | None = None) -> Swings:
        """Return how far regions can move: one mask of each row, or all of them."""
        own = self._own(outputs.values, masks)
        up = self._around(outputs.values, np.maximum, masks) - own
        down = own - self._around(outputs.values, np.minimum, masks)
        if not self._is_whole:
            differs = self._differs(outputs.same, masks)
            up, down = (np.where(differs, np.maximum(side, TINY), 0.0) for side in (up, down))
        if (sides := outputs.sides) is not None:
            up = up * (
                self._own(sides.starts_up, masks) & self._around(sides.above, np.logical_or, masks)
            )
            down = down * (
                self._own(sides.starts_down, masks)
                & self._around(~sides.above, np.logical_or, masks)
            )
        return Swings(up, down)

    def _own(self, array: Numbers, masks: NDArray[np.int64] | None) -> Numbers:
        """Return the values of one mask of each row, or of all masks."""
        return array if masks is None else array[np.arange(len(masks)), masks]

    def _around(
        self, array: Numbers, combine: np.ufunc, masks: NDArray[np.int64] | None
    ) -> Numbers:
        """Reduce values over the neighbours of one mask of each row, or of all masks."""
        found: Numbers
        if self.near is None:
            found = combine.reduce(array, axis=1, keepdims=masks is None)
        elif masks is not None:
            found = combine.reduce(np.take_along_axis(array, self.near.of(masks), axis=1), axis=1)
        else:
            table = self.near.table
            found = array[:, table[:, 0]]
            for near in table.T[1:]:
                combine(found, array[:, near], out=found)
        return found

    def _differs(self, same: Numbers, masks: NDArray[np.int64] | None) -> Flags:
        """Return whether any neighbour's output differs."""
        found: Flags
        rows = np.arange(len(same))[:, np.newaxis]
        if self.near is None:  # then so for all masks of a row, or for none
            found = (same != same[:, :1]).any(axis=(1, 2))
            return found[:, np.newaxis] if masks is None else found
        if masks is not None:
            around = same[rows, self.near.of(masks)]
            found = (around != same[rows, masks[:, np.newaxis]]).any(axis=(1, 2))
            return found
        found = np.zeros(same.shape[:2], dtype=np.bool_)
        for near in self.near.table.T:
            found |= (same[:, near] != same).any(axis=2)
        return found

    @cached_property
    def near(self) -> NearMasks | None:
        """Neighbour lists of the masks; None if all masks are neighbours."""
        return NearMasks.of_question(self.problem)

    @cached_property
    def _cutoffs(self) -> Cutoffs | None:
        """The cut-offs of a flip; None for a gap."""
        change = self.problem.query.change
        if not isinstance(change, Flip):
            return None
        assert isinstance(self._source, _Margins)
        return self._source.cutoffs(change)

    @cached_property
    def _source(self) -> _Differences | _Margins:
        change = self.problem.query.change
        if self._is_margin and not isinstance(change, Flip):
            return _Differences(self.problem)
        return _Margins(self.problem, self._link)

    @cached_property
    def _is_whole(self) -> bool:
        return self._is_margin and self._source.n_limbs == 1


def refuse_many(problem: Problem) -> None:
    """Raise if there are more masks than are compared with each other."""
    if problem.n_masks > MANY_MASKS:
        raise BudgetError(f"{problem.n_masks:,} masks are too many to compare their outputs")


def _sides(margins: NDArray[np.uint64], cutoffs: Cutoffs) -> FlipSides:
    above = exceeds(margins, cutoffs.at)
    if cutoffs.at == cutoffs.sure_below == cutoffs.sure_above:
        return FlipSides(above, ~above, above)
    return FlipSides(
        above, ~exceeds(margins, cutoffs.sure_below), exceeds(margins, cutoffs.sure_above)
    )


def _link_of(problem: Problem) -> Link:
    """Return the link from margins to the output; if the output is the margin, the identity."""
    change = problem.query.change
    if isinstance(change, Flip):
        return own_link(problem) or Votes()
    return change.link if isinstance(change, ProbabilityGap) else Votes()


def own_link(problem: Problem) -> Link | None:
    """Return the link to the model's probability, if it has one."""
    try:
        return resolve_link(problem.ensemble)
    except QueryError:
        return None


class _Differences:
    """Margins relative to that of the first mask: only trees that test sensitive features count."""

    output = 0
    n_numbers = 2

    def __init__(self, problem: Problem) -> None:
        change, query = problem.query.change, problem.query
        assert isinstance(change, Gap | ProbabilityGap)
        self._n_masks = problem.n_masks
        laid = LaidTrees.of_output(problem.ensemble, problem.grid, change.output, query.precision)
        self.scale, self.n_limbs = laid.scale, laid.n_limbs
        self.span = span_of(laid, query.sensitive)
        self._space = PairSpace(laid, query.sensitive, problem.distance, 0)

    @cached_property
    def _sampler(self) -> Any:
        masks = np.arange(self._n_masks, dtype=np.int64)
        pairs = np.stack([np.zeros_like(masks), masks], axis=1)[1:]
        return self._space.sampler(masks, np.ascontiguousarray(pairs))

    @property
    def n_trees(self) -> int:
        return int(self._sampler.n_trees) if self._n_masks > 1 else 0

    def at(
        self, cells: NDArray[np.int32], link: Link
    ) -> tuple[NDArray[np.float64], NDArray[np.uint64]]:
        mantissa, exponent = link.unit_as_float(self.scale)
        shape = (len(cells), self._n_masks, 1)
        floats, limbs = np.zeros(shape), np.zeros((*shape[:2], self.n_limbs), dtype=np.uint64)
        if self._n_masks > 1:
            found = self._sampler.differences(np.ascontiguousarray(cells).ravel(), exponent)
            floats[:, 1:] = found[0].reshape(len(cells), -1, 1)
            limbs[:, 1:] = found[1].reshape(len(cells), -1, self.n_limbs)
        with np.errstate(over="ignore"):
            return floats * mantissa, limbs

    def evaluated(
        self, cells: NDArray[np.int32], masks: NDArray[np.int64], link: Link | None
    ) -> tuple[Swings, NDArray[np.int64]]:
        """Return how far one mask of each row can move, and for how many rows each is highest.

        The numbers are integers without a link, else floats. All masks are neighbours.
        """
        mantissa, exponent = (1.0, 0) if link is None else link.unit_as_float(self.scale)
        regions = np.ascontiguousarray(cells, dtype=np.int32).ravel()
        *sides, highest = self._sampler.swings(regions, np.ascontiguousarray(masks), exponent)
        if link is None:
            return Swings(*(limbs.view(np.int64) for _, limbs in sides)), highest.astype(np.int64)
        with np.errstate(over="ignore"):
            sizes = (floats * mantissa for floats, _ in sides)
            differ = (limbs.reshape(len(masks), -1).any(axis=1) for _, limbs in sides)
            found = [
                np.where(d, np.maximum(s, TINY), 0.0) for s, d in zip(sizes, differ, strict=True)
            ]
        return Swings(*found), highest.astype(np.int64)


def span_of(laid: LaidTrees, sensitive: Sequence[int]) -> int:
    """Return a bound on the difference of two masks: the spans of trees with sensitive tests."""
    total, start = 0, 0
    for tree in laid.trees:
        if np.isin(tree.feature, sensitive).any():
            values = laid.values[start : start + tree.n_nodes].at(tree.feature < 0)
            total += values.highest() - values.lowest()
        start += tree.n_nodes
    return total


class _Margins:
    """The margins themselves, of all outputs that take part in a probability."""

    def __init__(self, problem: Problem, link: Link) -> None:
        margins, change = IntegerMargins.of(problem), problem.query.change
        asked = 0 if isinstance(change, Flip) else change.output_index
        outputs = [k for k in range(margins.n_outputs) if link.concerns(k, asked)]
        self.output = outputs.index(asked)
        self.scale, self.span = margins.scale, 2 * margins.bound
        self.n_limbs = margins.outputs[0].n_limbs
        self.n_numbers = 2 * len(outputs)
        self.n_trees = sum(tree.output in outputs for tree in problem.ensemble.trees)
        self.cutoffs = margins.cutoffs
        self._rows = MarginRows(margins, outputs)

    def at(
        self, cells: NDArray[np.int32], link: Link
    ) -> tuple[NDArray[np.float64], NDArray[np.uint64]]:
        floats, limbs = self._rows.at(cells, link)
        if floats.shape[2] == 1:
            return floats, limbs[:, :, 0]
        return floats, limbs.reshape(*limbs.shape[:2], -1)
