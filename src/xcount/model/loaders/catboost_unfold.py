"""Trees with tests of several features together, as trees that ask about single features.

A node with a :class:`~xcount.model.loaders.catboost_joint.JointTest` is replaced by a small tree
that asks about the members of the tuple one by one: equal slices of the table share a path, and
what the path above has already decided is not asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import NDArray

from xcount.errors import UnsupportedModelError
from xcount.model.loaders.catboost_joint import ADVICE, JointTest, SetTest
from xcount.model.loaders.catboost_trees import Nodes

MAX_NODES = 1_000_000
"""The most nodes of all trees together, once each asks about single features only."""
Context = Mapping[int, tuple[float, float] | frozenset[int]]
"""What a path has decided: of a number's position, ``low < x <= high``; of a categorical column
(as ``~column``), the categories that are left."""


@dataclass(eq=False)
class Unfolding:
    """Replaces the joint tests of a model's trees.

    Attributes:
        tests: the tests of categories, by position after the numbers; set tests are added.
        n_floats: how many positions are numbers.
        n_codes: how many categories each categorical column has.
        where: the place for error messages.
    """

    tests: list[SetTest | JointTest]
    n_floats: int
    n_codes: Mapping[int, int]
    where: str
    _n_nodes: int = 0
    _numbers: dict[SetTest, int] = field(default_factory=dict)

    def unfolded(self, nodes: Nodes) -> Nodes:
        """Return a tree without joint tests."""
        asked = nodes.position[nodes.position >= self.n_floats] - self.n_floats
        if not any(isinstance(self.tests[number], JointTest) for number in asked.tolist()):
            return nodes
        tree = _Tree(self, nodes)
        tree.add(0, {})
        return tree.nodes()

    def set_tests(self) -> list[SetTest]:
        """Return the tests without the joint ones, in whose places there is a test of nothing."""
        return [(-1, frozenset()) if isinstance(each, JointTest) else each for each in self.tests]

    def number_of(self, test: SetTest) -> int:
        """Return the position of a set test."""
        if test not in self._numbers:
            self._numbers[test] = len(self.tests)
            self.tests.append(test)
        return self.n_floats + self._numbers[test]

    def count_node(self) -> None:
        """Count a node; reject a model of too many."""
        self._n_nodes += 1
        if self._n_nodes > MAX_NODES:
            raise UnsupportedModelError(
                f"{self.where}: statistics of several features together make trees of more than "
                f"{MAX_NODES:,} nodes; {ADVICE}"
            )


class _Tree:
    """A tree while its joint tests are replaced."""

    def __init__(self, all_trees: Unfolding, nodes: Nodes) -> None:
        self._all, self._nodes = all_trees, nodes
        self._rows: list[list[float]] = []  # position, border, left, right, leaf

    def nodes(self) -> Nodes:
        position, border, left, right, leaf = np.array(self._rows).T
        whole = [each.astype(np.int64) for each in (position, left, right, leaf)]
        return Nodes(whole[0], border, whole[1], whole[2], whole[3], self._nodes.values)

    def _row(self, position: int, border: float, leaf: int = -1) -> int:
        self._all.count_node()
        self._rows.append([position, border, -1, -1, leaf])
        return len(self._rows) - 1

    def add(self, node: int, known: Context) -> int:
        """Add what is left of a subtree below a path; return its root."""
        old = self._nodes
        while (position := int(old.position[node])) >= 0:
            children = int(old.left[node]), int(old.right[node])
            test = self._joint(position)
            if test is not None:
                return self._add_joint(test, children, known)
            sides = self._sides(position, float(old.border[node]), known)
            if None not in sides:
                return self._split(position, float(old.border[node]), children, sides)
            node = children[0] if sides[1] is None else children[1]
        return self._row(-1, np.nan, int(old.leaf[node]))

    def _joint(self, position: int) -> JointTest | None:
        test = None if position < self._all.n_floats else self._test(position)
        return test if isinstance(test, JointTest) else None

    def _test(self, position: int) -> SetTest | JointTest:
        return self._all.tests[position - self._all.n_floats]

    def _split(
        self,
        position: int,
        border: float,
        children: tuple[int, int],
        sides: Sequence[Context | None],
    ) -> int:
        row = self._row(position, border)
        for side, (child, known) in enumerate(zip(children, sides, strict=True)):
            self._rows[row][2 + side] = self.add(child, known or {})
        return row

    def _sides(self, position: int, border: float, known: Context) -> list[Context | None]:
        """Return what is known left and right of a test; None for a side that no input reaches."""
        if position < self._all.n_floats:
            low, high = cast("tuple[float, float]", known.get(position, (-np.inf, np.inf)))
            ends = [(low, min(high, border)), (max(low, border), high)]
            return [{**known, position: end} if end[0] < end[1] else None for end in ends]
        column, left = cast("SetTest", self._test(position))
        codes = self._codes(column, known)
        parts = (codes & left, codes - left)
        return [{**known, ~column: part} if part else None for part in parts]

    def _codes(self, column: int, known: Context) -> frozenset[int]:
        """Return the categories of a column that a path leaves."""
        every = frozenset(range(self._all.n_codes[column]))
        return cast("frozenset[int]", known.get(~column, every))

    def _add_joint(self, test: JointTest, children: tuple[int, int], known: Context) -> int:
        """Add the tests of the members that still decide, and the subtrees below them."""
        choices = [self._choices(test, axis, known) for axis in range(test.holds.ndim)]
        holds = test.holds[np.ix_(*(np.concatenate(each) for each in choices))]
        if holds.all() or not holds.any():
            return self.add(children[int(holds.flat[0])], known)
        groups = {
            axis: found for axis in range(holds.ndim) if len(found := _groups(holds, axis)) > 1
        }
        axis = min(groups, key=lambda axis: len(groups[axis]))
        if axis >= len(test.columns):
            position, border = test.bits[axis - len(test.columns)]
            return self._split_joint(position, border, test, children, known)
        codes = np.concatenate(choices[axis])
        half = groups[axis][: len(groups[axis]) // 2]
        left = frozenset(codes[[place for group in half for place in group]].tolist())
        position = self._all.number_of((test.columns[axis], left))
        return self._split_joint(position, 0.5, test, children, known)

    def _split_joint(
        self,
        position: int,
        border: float,
        test: JointTest,
        children: tuple[int, int],
        known: Context,
    ) -> int:
        row = self._row(position, border)
        for side, below in enumerate(self._sides(position, border, known)):
            self._rows[row][2 + side] = self._add_joint(test, children, below or {})
        return row

    def _choices(self, test: JointTest, axis: int, known: Context) -> list[list[int]]:
        """Return the members of an axis that a path leaves."""
        if axis < len(test.columns):
            return [sorted(self._codes(test.columns[axis], known))]
        sides = self._sides(*test.bits[axis - len(test.columns)], known)
        return [[side] for side, below in enumerate(sides) if below is not None]


def _groups(holds: NDArray[np.bool_], axis: int) -> list[list[int]]:
    """Return the places along an axis, grouped by equal slices."""
    found: dict[bytes, list[int]] = {}
    for place, part in enumerate(np.moveaxis(holds, axis, 0)):
        found.setdefault(part.tobytes(), []).append(place)
    return list(found.values())
