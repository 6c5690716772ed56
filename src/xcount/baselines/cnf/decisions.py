"""``|sum of numbers| > gap`` as a decision diagram over the numbers, written as clauses.

After I. Abío, R. Nieuwenhuis, A. Oliveras, E. Rodríguez-Carbonell and V. Mayer-Eichberger, "A new
look at BDDs for pseudo-Boolean constraints" (JAIR 2012): a node is the next number and an interval
of partial sums that all have the same continuation. Partial sums that decide the comparison,
whatever follows, lead to a terminal, so a model counter sees an answer early. If the diagram grows
too large, adders (sums.py), whose size is linear, are used instead.

The values of a number are in ascending order, so that those which lead to one child form few runs.
With a literal "the value is at least this" for each, a run of any length takes two clauses.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from xcount.baselines.cnf.formula import Formula
from xcount.baselines.cnf.trees import Leaf

MAX_NODES = 20_000
MAX_NUMBERS = 300
"""Deeper diagrams would exceed Python's recursion limit; they are never small anyway."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A literal that is valid for all partial sums with ``low <= sum <= high``."""

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
        # Large numbers first, so that the comparison is decided sooner.
        ascending = [sorted(number, key=lambda leaf: leaf[1]) for number in numbers]
        self._numbers = sorted(ascending, key=_spread, reverse=True)
        self._least, self._largest = [0], [0]
        for number in reversed(self._numbers):
            self._least.append(self._least[-1] + min(value for _, value in number))
            self._largest.append(self._largest[-1] + max(value for _, value in number))
        self._least.reverse()
        self._largest.reverse()
        self._beyond = 2 * (gap + 1 + sum(max(abs(v) for _, v in n) for n in self._numbers))
        self._layers: list[list[_Node]] = [[] for _ in range(len(self._numbers) + 1)]

    def literal(self) -> int | None:
        """Return a literal that is true iff the sum exceeds the gap; None if too large."""
        if len(self._numbers) > MAX_NUMBERS:
            return None
        planned = _Plan(self._formula, self._numbers)
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
        for _, value in self._numbers[layer]:
            child = self._node(plan, layer + 1, partial + value)
            low, high = max(low, child.low - value), min(high, child.high - value)
            children.append(child.literal)
        if len(set(children)) == 1:
            return _Node(low, high, children[0])
        self._left -= 1
        if self._left < 0:
            raise _TooLargeError
        return _Node(low, high, plan.add(layer, children))


class _Plan:
    """Nodes that are written only once the whole diagram is known to be small enough."""

    FALSE, TRUE = 0, 1

    def __init__(self, formula: Formula, numbers: Sequence[list[Leaf]]) -> None:
        self._formula = formula
        self._numbers = numbers
        self._nodes: list[tuple[int, list[int]]] = [(0, []), (0, [])]

    def add(self, layer: int, children: list[int]) -> int:
        """Plan a node that equals its i-th child if the layer's number has its i-th value."""
        self._nodes.append((layer, children))
        return len(self._nodes) - 1

    def write(self, root: int) -> int:
        """Write the clauses of all nodes; return the root's literal."""
        formula = self._formula
        literals = [-formula.true, formula.true]
        at_least = [self._orders(number) for number in self._numbers] if root > 1 else []
        for layer, children in self._nodes[2:]:
            node, orders = formula.new_variable(), at_least[layer]
            for child, run in groupby(range(len(children)), key=children.__getitem__):
                places = list(run)
                first, after = places[0], places[-1] + 1
                outside = [-orders[first]] if first else []
                outside += [orders[after]] if after < len(children) else []
                formula.add(-node, *outside, literals[child])
                formula.add(node, *outside, -literals[child])
            literals.append(node)
        return literals[root]

    def _orders(self, number: list[Leaf]) -> list[int]:
        """Return for each position a literal that is true iff the value is there or later."""
        orders: list[int] = []
        for leaf, _ in reversed(number):
            orders.append(self._formula.disjunction((leaf, *orders[-1:])))
        return orders[::-1]


def _spread(number: list[Leaf]) -> int:
    values = [value for _, value in number]
    return max(values) - min(values)
