"""Bounds of how far a sum can move, as linear functions of the leaf values.

For a tree, masks are in one *class* if they decide all of its tests of sensitive features alike.
Let m and m' be masks of the classes A and B. A pair of leaves (l, l') is *possible* for (A, B) if
some combination x of the other cells leads to l with m and to l' with m'. Then for every x::

    T(x, m) - T(x, m')  <=  u[A, B]  =  max of (value of l) - (value of l') over possible pairs

and the sum V of all trees moves by at most the sum of the trees' u between m' and m. Boxes meet
if they meet on every feature, so the possible pairs are found feature by feature. Trees that do not
separate m and m' contribute nothing: x leads to the same leaf.

A limit G is proved if ``sum of u[A, B] <= G`` for every ordered pair of masks within the distance.
Rules and allowed changes divide the domain into parts, each with its own masks and boxes of leaves.
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
from xcount.problem.parts import by_masks, parts_of
from xcount.problem.problem import Problem
from xcount.question.change import Direction
from xcount.question.grid import Grid
from xcount.repairs.writers.writer import Slots, Values

MOST_PAIRS = 4_000_000
"""The most pairs of masks that are looked at."""
MOST_SUM_ENTRIES = 100_000_000
"""The most entries of a table of trees by pairs of masks."""
MOST_LEAF_PAIRS = 3_000_000
"""The most pairs of leaves in all bounds together."""
MOST_PARTS = 64
"""The most parts of a domain that are bounded one by one."""
_LeafPairs = tuple[NDArray[np.int64], NDArray[np.int64]]
_TOO_LARGE = "the limits of {n} pairs of {what} are too many to solve at once"


@dataclass(frozen=True, eq=False)
class TreeBounds:
    """The possible pairs of leaves of one tree, for every pair of classes that is needed.

    Attributes:
        starts: for each bound u, where its pairs start; and the end.
        highs: the slots of the leaves l of all pairs.
        lows: the slots of the leaves l' of all pairs.
    """

    starts: NDArray[np.int64]
    highs: NDArray[np.int64]
    lows: NDArray[np.int64]

    @property
    def n_bounds(self) -> int:
        return len(self.starts) - 1

    def largest(self, values: Values) -> Values:
        """Return each bound u: the largest difference of a possible pair."""
        return np.maximum.reduceat(values[self.highs] - values[self.lows], self.starts[:-1])


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
            for pairs in (np.stack([tree.highs, tree.lows], axis=1) for tree in self.trees)
        ]
        return np.concatenate(found) if found else np.empty((0, 2), dtype=np.int64)


def pair_bounds(problem: Problem, slots: Slots, output: int) -> PairBounds:
    """Return the bounds of the sum of one output, for all changes that a question allows.

    Args:
        problem: the question.
        slots: the slot of every node of every tree of the ensemble.
        output: which sum.

    Raises:
        BudgetError: there are too many pairs.
    """
    found = _Bounds(_slots_of_output(problem, slots, output))
    for part in _parts(problem):
        found.add(part, _changes(part, output), output)
    return found.bounds()


def coarse_bounds(problem: Problem, slots: Slots, output: int) -> PairBounds:
    """Return a single sum that bounds all changes, however many masks there are.

    Every tree contributes its largest difference for any two masks.

    Raises:
        BudgetError: there are too many pairs of leaves.
    """
    found = _Bounds(_slots_of_output(problem, slots, output))
    found.add_any(problem, output)
    return found.bounds()


def _slots_of_output(problem: Asked, slots: Slots, output: int) -> list[NDArray[np.int64]]:
    trees = problem.ensemble.trees
    return [own for tree, own in zip(trees, slots, strict=True) if tree.output == output]


def _parts(problem: Problem) -> list[Problem]:
    """Return the parts of the domain in which a change may lead to any other mask.

    If there are many, those with the same masks become one.
    """
    parts = parts_of(problem)
    if not parts:
        return [problem]
    if len(parts) > MOST_PARTS:
        parts = tuple(part for part, _ in by_masks(problem, parts))
    return [part.problem for part in parts]


def _changes(problem: Asked, output: int) -> NDArray[np.int64]:
    """Return the pairs of masks between which V may not grow by more than the limit.

    V at the first mask may exceed V at the second one by at most the limit.
    """
    if problem.n_pairs_about > MOST_PAIRS // 2:
        raise BudgetError(_TOO_LARGE.format(n=f"{2 * problem.n_pairs_about:,}", what="masks"))
    starts = problem.counted_masks
    pairs = np.array(list(problem.pairs_of(starts)), dtype=np.int64).reshape(-1, 2)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    is_start = np.zeros(problem.n_masks, dtype=np.bool_)
    is_start[list(starts)] = True
    may_fall, may_rise = is_start[both[:, 0]], is_start[both[:, 1]]
    direction = _direction(problem, output)
    if direction == "any":
        may_break = may_fall | may_rise
    else:
        may_break = may_rise if direction == "up" else may_fall
    found: NDArray[np.int64] = both[may_break]
    return found


def _direction(problem: Asked, output: int) -> Direction:
    """Return which changes of one output are limited; both if others must move, too."""
    change = problem.query.change
    concerned = [k for k in range(problem.ensemble.n_outputs) if change.concerns(k)]
    return change.direction if concerned == [output] else "any"


class _Bounds:
    """Bounds in the making: the possible pairs of each tree, and the sums."""

    def __init__(self, slots: Sequence[NDArray[np.int64]]) -> None:
        self._slots = slots
        self._numbers: list[dict[bytes, int]] = [{} for _ in slots]
        self._pairs: list[list[_LeafPairs]] = [[] for _ in slots]
        self._sums: list[NDArray[np.int32]] = []
        self._n_leaf_pairs = self._n_entries = 0

    def add(self, problem: Asked, changes: NDArray[np.int64], output: int) -> None:
        """Add the bounds of all changes in one part of the domain."""
        columns = np.full((len(changes), len(self._slots)), -1, dtype=np.int32)
        self._n_entries += columns.size
        if self._n_entries > MOST_SUM_ENTRIES:
            raise BudgetError(_TOO_LARGE.format(n=f"{len(changes):,}", what="masks"))
        for place, boxes in self._boxes(problem, problem.query.sensitive, output):
            classes, reach = boxes.classes_of_masks()
            own = classes[changes]
            needed, which = np.unique(own, axis=0, return_inverse=True)
            bounds = [
                -1 if a == b else self._number(place, boxes.possible(reach[:, a], reach[:, b]))
                for a, b in needed.tolist()
            ]
            columns[:, place] = np.array(bounds, dtype=np.int32)[which.ravel()]
        self._sums.append(np.unique(columns, axis=0))

    def add_any(self, problem: Asked, output: int) -> None:
        """Add one sum: of every tree the largest difference that any change can make."""
        along = (exchange.feature for exchange in problem.grid.allowed.along)
        changing = (*problem.query.sensitive, *along)
        row = np.full((1, len(self._slots)), -1, dtype=np.int32)
        for place, boxes in self._boxes(problem, changing, output):
            row[0, place] = self._number(place, boxes.all_possible())
        self._sums.append(row)

    def _boxes(
        self, problem: Asked, changing: Sequence[int], output: int
    ) -> Iterator[tuple[int, _TreeBoxes]]:
        """Yield the trees that test a changing feature: their places, and their leaves' boxes."""
        laid = LaidTrees.of_output(problem.ensemble, problem.grid, output, None)
        for place, (tree, cells) in enumerate(zip(laid.trees, laid.left_cells(), strict=True)):
            if np.isin(tree.feature, changing).any():
                yield place, _TreeBoxes(problem.grid, changing, tree, cells, self._slots[place])

    def _number(self, place: int, pairs: _LeafPairs) -> int:
        """Return the number of a bound of a tree; equal ones share it, and -1 is for no pairs."""
        if not len(pairs[0]):
            return -1
        numbers = self._numbers[place]
        key = pairs[0].tobytes() + pairs[1].tobytes()
        if key not in numbers:
            numbers[key] = len(numbers)
            self._pairs[place].append(pairs)
            self._n_leaf_pairs += len(pairs[0])
            if self._n_leaf_pairs > MOST_LEAF_PAIRS:
                most = f"more than {MOST_LEAF_PAIRS:,}"
                raise BudgetError(_TOO_LARGE.format(n=most, what="leaves"))
        return numbers[key]

    def bounds(self) -> PairBounds:
        used = [place for place, pairs in enumerate(self._pairs) if pairs]
        trees = tuple(_tree_bounds(self._pairs[place]) for place in used)
        rows = np.unique(np.concatenate(self._sums)[:, used], axis=0)
        return PairBounds(trees, rows[(rows >= 0).any(axis=1)])


def _tree_bounds(pairs: Sequence[_LeafPairs]) -> TreeBounds:
    starts = np.cumsum([0, *(len(highs) for highs, _ in pairs)])
    highs, lows = (np.concatenate([pair[i] for pair in pairs]) for i in (0, 1))
    return TreeBounds(starts, highs, lows)


class _TreeBoxes:
    """The leaves of a tree as boxes: for each feature that it tests, the cells of each leaf."""

    def __init__(
        self,
        grid: Grid,
        changing: Sequence[int],
        tree: Tree,
        left_cells: Sequence[NDArray[np.bool_]],
        slots: NDArray[np.int64],
    ) -> None:
        self._grid, self._changing, self._tree = grid, changing, tree
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
        axes, tree = self._grid.axes, self._tree
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
        for feature in self._changing:
            n_cells = self._grid.axes[feature].n_cells
            own = self._cells.get(feature, np.ones((len(self._slots), n_cells), dtype=np.bool_))
            columns, of_cell = np.unique(own, axis=1, return_inverse=True)
            n_own = columns.shape[1]
            classes = (classes[:, np.newaxis] * n_own + of_cell.reshape(1, -1)).ravel()
            reach = (reach[:, :, np.newaxis] & columns[:, np.newaxis, :]).reshape(len(reach), -1)
        reach, merged = np.unique(reach, axis=1, return_inverse=True)
        return merged.ravel()[classes], reach

    @cached_property
    def _meet(self) -> NDArray[np.bool_]:
        """Whether the boxes of two leaves meet on all features that do not change."""
        found = np.ones((len(self._slots), len(self._slots)), dtype=np.bool_)
        for feature, cells in self._cells.items():
            if feature not in self._changing:
                numbers = cells.astype(np.float32)
                found &= (numbers @ numbers.T) > 0
        return found

    def possible(self, first: NDArray[np.bool_], second: NDArray[np.bool_]) -> _LeafPairs:
        """Return the possible pairs for two classes, given which leaves they reach."""
        return self._listed(self._meet & first[:, np.newaxis] & second)

    def all_possible(self) -> _LeafPairs:
        """Return the possible pairs for any two masks."""
        return self._listed(self._meet.copy())

    def _listed(self, pairs: NDArray[np.bool_]) -> _LeafPairs:
        """Return pairs as slots; of the pairs of equal leaves, one stands for all."""
        equal = np.flatnonzero(np.diagonal(pairs))
        np.fill_diagonal(pairs, False)
        highs, lows = np.nonzero(pairs)
        if len(equal):
            highs, lows = np.append(highs, equal[0]), np.append(lows, equal[0])
        return self._slots[highs], self._slots[lows]


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
