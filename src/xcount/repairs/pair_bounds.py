"""Bounds of how far a sum can move, as linear functions of the leaf values.

For a tree, masks are in one *class* if they decide all of its tests of sensitive features alike.
Let m and m' be masks of the classes A and B. A pair of leaves (l, l') is *possible* for (A, B) if
some combination x of the other cells leads to l with m and to l' with m'. Then for every x::

    T(x, m) - T(x, m')  <=  u[A, B]  =  max of (value of l) - (value of l') over possible pairs

and the sum V of all trees moves by at most the sum of the trees' u between m' and m. Boxes meet
if they meet on every feature, so the possible pairs are found feature by feature. Trees that do not
separate m and m' contribute nothing: x leads to the same leaf.

A limit G is proved if ``sum of u[A, B] <= G`` for every ordered pair of masks within the distance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.errors import BudgetError
from xcount.model.ensemble import Tree
from xcount.problem.asked import Asked
from xcount.problem.laid_trees import LaidTrees
from xcount.repairs.writers.writer import Slots, Values

MOST_PAIRS = 4_000_000
"""The most pairs of masks that are looked at."""
MOST_SUM_ENTRIES = 100_000_000
"""The most entries of a table of trees by pairs of masks."""
MOST_LEAF_PAIRS = 3_000_000
"""The most pairs of leaves in all bounds together."""
_TOO_LARGE = "the limits of {n} pairs of {what} are too many to solve at once"


@dataclass(frozen=True, eq=False)
class TreeBounds:
    """The possible pairs of leaves of one tree, for every pair of classes that is needed.

    Attributes:
        slots: the slot of each leaf.
        starts: for each bound u, where its pairs start; and the end.
        highs: the leaves l of all pairs, as places in ``slots``.
        lows: the leaves l' of all pairs.
    """

    slots: NDArray[np.int64]
    starts: NDArray[np.int64]
    highs: NDArray[np.int64]
    lows: NDArray[np.int64]

    @property
    def n_bounds(self) -> int:
        return len(self.starts) - 1

    def largest(self, values: Values) -> Values:
        """Return each bound u: the largest difference of a possible pair."""
        own = values[self.slots]
        return np.maximum.reduceat(own[self.highs] - own[self.lows], self.starts[:-1])


@dataclass(frozen=True, eq=False)
class PairBounds:
    """The bounds of one question.

    Attributes:
        trees: the trees that separate some pair of masks.
        rows: for each distinct sum of bounds, the bound of each tree; -1 if a tree is not in it.
    """

    trees: tuple[TreeBounds, ...]
    rows: NDArray[np.int32]

    @cached_property
    def first_bounds(self) -> NDArray[np.int64]:
        """The number of the first bound of each tree, among all of them; and the end."""
        return np.cumsum([0, *(tree.n_bounds for tree in self.trees)])

    @property
    def n_bounds(self) -> int:
        return int(self.first_bounds[-1])

    def largest_sum(self, values: Values) -> float:
        """Return the bound of how far the sum moves, for given values of the slots."""
        if not len(self.rows):
            return 0.0
        total = np.zeros(len(self.rows))
        for place, tree in enumerate(self.trees):
            bounds = np.append(tree.largest(values), 0.0)  # the place -1 is for no bound
            total += bounds[self.rows[:, place]]
        return max(0.0, float(total.max()))

    @cached_property
    def linked(self) -> NDArray[np.int64]:
        """The pairs of different slots that occur in some bound, one pair a row."""
        found = [
            np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
            for pairs in map(_slot_pairs, self.trees)
        ]
        return np.concatenate(found) if found else np.empty((0, 2), dtype=np.int64)


def _slot_pairs(tree: TreeBounds) -> NDArray[np.int64]:
    return np.stack([tree.slots[tree.highs], tree.slots[tree.lows]], axis=1)


def pair_bounds(problem: Asked, slots: Slots, output: int) -> PairBounds:
    """Return the bounds of the sum of one output, for all changes that a question allows.

    Args:
        problem: the question.
        slots: the slot of every node of every tree of the ensemble.
        output: which sum.

    Raises:
        BudgetError: there are too many pairs.
    """
    pairs = _mask_pairs(problem)
    trees: list[TreeBounds] = []
    columns: list[NDArray[np.int32]] = []
    n_leaf_pairs = 0
    for tree in _separating_trees(problem, slots, output):
        classes, reach = tree.classes_of_masks()
        codes = np.stack([classes[pairs[:, 0]], classes[pairs[:, 1]]], axis=1)
        found, column = tree.bounds_of(codes, reach)
        if found is None:
            continue
        n_leaf_pairs += len(found.highs)
        if n_leaf_pairs > MOST_LEAF_PAIRS:
            raise BudgetError(_TOO_LARGE.format(n=f"more than {MOST_LEAF_PAIRS:,}", what="leaves"))
        trees.append(found)
        columns.append(column)
        if len(columns) * len(pairs) > MOST_SUM_ENTRIES:
            raise BudgetError(_TOO_LARGE.format(n=f"{len(pairs):,}", what="masks"))
    if not trees:
        return PairBounds((), np.empty((0, 0), dtype=np.int32))
    rows = np.unique(np.stack(columns, axis=1), axis=0)
    return PairBounds(tuple(trees), rows[(rows >= 0).any(axis=1)])


def _mask_pairs(problem: Asked) -> NDArray[np.int64]:
    """Return the ordered pairs of masks between which a change is allowed, one way or the other."""
    if problem.n_pairs_about > MOST_PAIRS // 2:
        raise BudgetError(_TOO_LARGE.format(n=f"{2 * problem.n_pairs_about:,}", what="masks"))
    found = np.array(list(problem.pairs()), dtype=np.int64).reshape(-1, 2)
    cells = _cells_of_masks(problem)
    may = _may_become(problem, cells[found[:, 0]], cells[found[:, 1]])
    may |= _may_become(problem, cells[found[:, 1]], cells[found[:, 0]])
    kept = found[may]
    return np.concatenate([kept, kept[:, ::-1]])


def _cells_of_masks(problem: Asked) -> NDArray[np.int64]:
    """Return the cells of the sensitive features in each mask, one mask a row."""
    shape = [problem.grid.axes[f].n_cells for f in problem.query.sensitive]
    return np.stack(np.unravel_index(np.arange(problem.n_masks), shape), axis=1)


def _may_become(
    problem: Asked, before: NDArray[np.int64], after: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which changes end in cells that may be entered."""
    found = np.ones(len(before), dtype=np.bool_)
    for place, feature in enumerate(problem.query.sensitive):
        closed = list(problem.grid.axes[feature].only_starts)
        own = after[:, place]
        found &= ~np.isin(own, closed) | (own == before[:, place])
    return found


def _separating_trees(problem: Asked, slots: Slots, output: int) -> Iterator[_TreeBoxes]:
    """Yield the trees of an output that test a sensitive feature, each with its leaves' boxes."""
    laid = LaidTrees.of_output(problem.ensemble, problem.grid, output, None)
    own = [
        s for tree, s in zip(problem.ensemble.trees, slots, strict=True) if tree.output == output
    ]
    for tree, cells, slot in zip(laid.trees, laid.left_cells(), own, strict=True):
        if np.isin(tree.feature, problem.query.sensitive).any():
            yield _TreeBoxes(problem, tree, cells, slot)


class _TreeBoxes:
    """The leaves of a tree as boxes: for each feature that it tests, the cells of each leaf."""

    def __init__(
        self,
        problem: Asked,
        tree: Tree,
        left_cells: Sequence[NDArray[np.bool_]],
        slots: NDArray[np.int64],
    ) -> None:
        self._problem, self._tree = problem, tree
        self._features = np.unique(tree.feature[tree.feature >= 0]).tolist()
        boxes = list(self._walk(left_cells))
        self._slots = slots[[leaf for leaf, _ in boxes]]
        self._cells = {
            feature: np.array([box[feature] for _, box in boxes]) for feature in self._features
        }

    def _walk(
        self, left_cells: Sequence[NDArray[np.bool_]]
    ) -> Iterator[tuple[int, dict[int, NDArray[np.bool_]]]]:
        """Yield the leaves that some region leads to, each with its cells by feature."""
        axes, tree = self._problem.grid.axes, self._tree
        whole = {f: np.ones(axes[f].n_cells, dtype=np.bool_) for f in self._features}
        stack = [(0, whole)]
        while stack:
            node, box = stack.pop()
            feature = int(tree.feature[node])
            if feature < 0:
                yield node, box
                continue
            left = left_cells[node]
            for child, cells in ((tree.left, left), (tree.right, ~left)):
                own = box[feature] & cells
                if own.any():
                    stack.append((int(child[node]), {**box, feature: own}))

    def classes_of_masks(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the class of each mask, and which leaves (rows) each class (column) can reach."""
        classes = np.zeros(1, dtype=np.int64)
        reach = np.ones((len(self._slots), 1), dtype=np.bool_)
        for feature in self._problem.query.sensitive:
            n_cells = self._problem.grid.axes[feature].n_cells
            own = self._cells.get(feature, np.ones((len(self._slots), n_cells), dtype=np.bool_))
            columns, of_cell = np.unique(own, axis=1, return_inverse=True)
            n_own = columns.shape[1]
            classes = (classes[:, np.newaxis] * n_own + of_cell.reshape(1, -1)).ravel()
            reach = (reach[:, :, np.newaxis] & columns[:, np.newaxis, :]).reshape(len(reach), -1)
        reach, merged = np.unique(reach, axis=1, return_inverse=True)
        return merged.ravel()[classes], reach

    @cached_property
    def _meet(self) -> NDArray[np.bool_]:
        """Whether the boxes of two leaves meet on all features that are not sensitive."""
        found = np.ones((len(self._slots), len(self._slots)), dtype=np.bool_)
        for feature, cells in self._cells.items():
            if feature not in self._problem.query.sensitive:
                numbers = cells.astype(np.float32)
                found &= (numbers @ numbers.T) > 0
        return found

    def bounds_of(
        self, codes: NDArray[np.int64], reach: NDArray[np.bool_]
    ) -> tuple[TreeBounds | None, NDArray[np.int32]]:
        """Return the bounds for pairs of classes, and which of them each pair of masks needs."""
        n_classes = reach.shape[1]
        differ = codes[:, 0] != codes[:, 1]
        column = np.full(len(codes), -1, dtype=np.int32)
        needed, which = np.unique(
            codes[differ, 0] * n_classes + codes[differ, 1], return_inverse=True
        )
        if not len(needed):
            return None, column
        numbers: dict[bytes, int] = {}
        parts: list[tuple[NDArray[np.int64], ...]] = []
        bound_of = np.full(len(needed), -1, dtype=np.int32)
        for place, code in enumerate(needed.tolist()):
            possible = self._possible(reach[:, code // n_classes], reach[:, code % n_classes])
            if not len(possible[0]):
                continue
            key = possible[0].tobytes() + possible[1].tobytes()
            bound_of[place] = numbers.setdefault(key, len(parts))
            if bound_of[place] == len(parts):
                parts.append(possible)
        column[differ] = bound_of[which.ravel()]
        if not parts:
            return None, column
        starts = np.cumsum([0, *(len(highs) for highs, _ in parts)])
        highs, lows = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        return TreeBounds(self._slots, starts, highs, lows), column

    def _possible(
        self, first: NDArray[np.bool_], second: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the possible pairs of leaves; of equal leaves, one pair stands for all."""
        pairs = self._meet & first[:, np.newaxis] & second
        equal = np.flatnonzero(np.diagonal(pairs))
        np.fill_diagonal(pairs, False)
        highs, lows = np.nonzero(pairs)
        if len(equal):
            highs, lows = np.append(highs, equal[0]), np.append(lows, equal[0])
        return highs, lows


def components(n_slots: int, bounds: Sequence[PairBounds]) -> NDArray[np.int64]:
    """Return a component for each slot: linked slots share one; -1 for slots without a link.

    Scaling the differences inside every component scales every bound, and every change of the sum.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    pairs = np.concatenate([np.empty((0, 2), dtype=np.int64), *(each.linked for each in bounds)])
    ones: Any = np.ones(len(pairs))
    graph = coo_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(n_slots, n_slots))
    _, labels = connected_components(graph, directed=False)
    found = np.full(n_slots, -1, dtype=np.int64)
    linked = np.unique(pairs)
    _, found[linked] = np.unique(labels[linked], return_inverse=True)
    return found
