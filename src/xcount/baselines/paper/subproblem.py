"""ProcessSubproblem: a pair of masks -> the BDD of the combinations where it jumps over the gap."""

from __future__ import annotations

from collections.abc import Callable

from xcount import _core
from xcount.baselines.paper.guards import GuardSpace

Pair = tuple[int, int]
ProcessSubproblem = Callable[[GuardSpace, Pair], _core.Diagram]

_PLUS, _MINUS = _core.AddOp.PLUS, _core.AddOp.MINUS


def pruned_tree(
    space: GuardSpace, tree: int, mask: int, *, only_fixed: bool = False
) -> _core.Diagram:
    """Return the ADD of a tree at a mask, without branches that no region reaches.

    The paper says that the monotonicity constraint is applied to the ADDs, but not how. A product
    with it would map points that are not regions to 0, a legal value; here those points take
    whatever value makes the diagram smallest.
    """
    add = space.encode(tree, space.mask_cells(mask), only_fixed=only_fixed)
    return space.table.simplify(add)


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
    """The paper's ablation "Opt 1+3": add the trees up first, then subtract the two sums.

    As in the authors' program, what cancels is not added up: branches that test no sensitive
    feature, and trees that are the same at both masks.
    """
    table = space.table
    sums = [space.number(0), space.number(0)]
    for tree in range(len(space.problem.trees)):
        pruned = [pruned_tree(space, tree, mask, only_fixed=True) for mask in pair]
        if pruned[0] != pruned[1]:
            sums = [
                table.arithmetic(_PLUS, total, add, monotone=True)
                for total, add in zip(sums, pruned, strict=True)
            ]
    return space.above_gap(table.arithmetic(_MINUS, sums[0], sums[1], monotone=True))
