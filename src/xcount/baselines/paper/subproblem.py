"""ProcessSubproblem: a pair of masks -> the BDD of the combinations where it jumps over the gap."""

from __future__ import annotations

from collections.abc import Callable

from xcount import _core
from xcount.baselines.paper.guards import GuardSpace

Pair = tuple[int, int]
ProcessSubproblem = Callable[[GuardSpace, Pair], _core.Diagram]

_PLUS, _MINUS = _core.AddOp.PLUS, _core.AddOp.MINUS


def pruned_tree(space: GuardSpace, tree: int, mask: int) -> _core.Diagram:
    """Return the ADD of a tree at a mask, without branches that no region reaches.

    The paper says that the monotonicity constraint is applied to the ADDs, but not how. A product
    with it would map points that are not regions to 0, a legal value; here those points take
    whatever value makes the diagram smallest.
    """
    return space.table.simplify(space.encode(tree, space.mask_cells(mask)))


def sum_of_differences(space: GuardSpace, pair: Pair) -> _core.Diagram:
    """Algorithm 2: subtract tree by tree, add the differences up, compare with the gap."""
    table = space.table
    diff_sum = space.number(0)
    for tree in range(len(space.problem.trees)):
        first, second = (pruned_tree(space, tree, mask) for mask in pair)
        difference = table.arithmetic(_MINUS, first, second, monotone=True)
        diff_sum = table.arithmetic(_PLUS, diff_sum, difference, monotone=True)
    return space.above_gap(diff_sum)


def difference_of_sums(space: GuardSpace, pair: Pair) -> _core.Diagram:
    """The paper's ablation "Opt 1+3": add the trees up first, then subtract the two sums."""
    table = space.table
    sums = []
    for mask in pair:
        total = space.number(0)
        for tree in range(len(space.problem.trees)):
            total = table.arithmetic(_PLUS, total, pruned_tree(space, tree, mask), monotone=True)
        sums.append(total)
    return space.above_gap(table.arithmetic(_MINUS, sums[0], sums[1], monotone=True))
