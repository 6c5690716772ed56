"""``|sum of numbers| > gap`` as a decision diagram over the numbers, written as clauses.

After I. Abío, R. Nieuwenhuis, A. Oliveras, E. Rodríguez-Carbonell and V. Mayer-Eichberger, "A new
look at BDDs for pseudo-Boolean constraints" (JAIR 2012): a node is a number that comes next and an
interval of partial sums for which all that follows is the same. Partial sums that decide the
comparison, whatever follows, end the diagram, so a model counter sees an answer early. Where the
diagram grows too large, adders (sums.py) are used instead: they never do.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from xcount.baselines.cnf.formula import Formula
from xcount.baselines.cnf.trees import Leaf
from xcount.support.dataclass import dataclass

MAX_NODES = 20_000
MAX_NUMBERS = 300
"""Deeper diagrams would need deeper recursion than Python allows; they are never small anyway."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A literal that is right for all partial sums with ``low <= sum <= high``."""

    low: int
    high: int
    literal: int


class _TooLargeError(Exception):
    """The diagram has more nodes than allowed."""


class JumpDiagram:
    """The diagram of one comparison."""

    def __init__(
        self,
        formula: Formula,
        gap: int,
        numbers: Sequence[list[Leaf]],
        max_nodes: int = MAX_NODES,
    ) -> None:
        self._formula = formula
        self._gap = gap
        self._left = max_nodes
        # Large numbers first: the sooner the comparison is decided.
        self._numbers = sorted(numbers, key=_spread, reverse=True)
        self._least, self._largest = [0], [0]
        for number in reversed(self._numbers):
            self._least.append(self._least[-1] + min(value for _, value in number))
            self._largest.append(self._largest[-1] + max(value for _, value in number))
        self._least.reverse()
        self._largest.reverse()
        self._beyond = 2 * (gap + 1 + sum(max(abs(v) for _, v in n) for n in self._numbers))
        self._layers: list[list[_Node]] = [[] for _ in range(len(self._numbers) + 1)]

    def literal(self) -> int | None:
        """Return a literal that is true iff the sum is beyond the gap; None if it is too large."""
        if len(self._numbers) > MAX_NUMBERS:
            return None
        planned = _Plan(self._formula)
        try:
            root = self._node(planned, 0, 0).literal
        except _TooLargeError:
            return None
        return planned.write(root)

    def _node(self, plan: _Plan, layer: int, partial: int) -> _Node:
        known = self._layers[layer]
        at = bisect_right(known, partial, key=lambda node: node.low)
        if at and partial <= known[at - 1].high:
            return known[at - 1]
        node = self._decided(layer, partial) or self._undecided(plan, layer, partial)
        known.insert(at, node)
        return node

    def _decided(self, layer: int, partial: int) -> _Node | None:
        least, largest, gap = self._least[layer], self._largest[layer], self._gap
        if partial + least > gap:
            return _Node(gap - least + 1, self._beyond, _Plan.TRUE)
        if partial + largest < -gap:
            return _Node(-self._beyond, -gap - largest - 1, _Plan.TRUE)
        if -gap <= partial + least and partial + largest <= gap:
            return _Node(-gap - least, gap - largest, _Plan.FALSE)
        return None

    def _undecided(self, plan: _Plan, layer: int, partial: int) -> _Node:
        low, high = -self._beyond, self._beyond
        children = []
        for leaf, value in self._numbers[layer]:
            child = self._node(plan, layer + 1, partial + value)
            low, high = max(low, child.low - value), min(high, child.high - value)
            children.append((leaf, child.literal))
        if len({literal for _, literal in children}) == 1:
            return _Node(low, high, children[0][1])
        self._left -= 1
        if self._left < 0:
            raise _TooLargeError
        return _Node(low, high, plan.add(children))


class _Plan:
    """Nodes that are written only when the whole diagram is known to be small enough."""

    FALSE, TRUE = 0, 1

    def __init__(self, formula: Formula) -> None:
        self._formula = formula
        self._nodes: list[list[tuple[int, int]]] = [[], []]

    def add(self, children: list[tuple[int, int]]) -> int:
        """Plan a node: if a leaf's literal holds, the node is what its child is."""
        self._nodes.append(children)
        return len(self._nodes) - 1

    def write(self, root: int) -> int:
        """Write the clauses of all nodes; return the root's literal."""
        formula = self._formula
        literals = [-formula.true, formula.true]
        for children in self._nodes[2:]:
            node = formula.new_variable()
            for leaf, child in children:
                formula.add(-node, -leaf, literals[child])
                formula.add(node, -leaf, -literals[child])
            literals.append(node)
        return literals[root]


def _spread(number: list[Leaf]) -> int:
    values = [value for _, value in number]
    return max(values) - min(values)
