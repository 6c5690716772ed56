"""ExactCount of the paper, ``--method add-baseline``: one ADD for the whole ensemble.

    C = number of b with: exists b'. |V(b) - V(b')| > G and distance(b, b') <= d
                                     and monotone(b) and monotone(b')

As printed, ExactCount counts pairs (b, b'), in one direction only; see docs/errata.md.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from xcount import _core
from xcount.baselines.paper.guards import Group, GuardSpace
from xcount.baselines.paper.limits import diagram_bytes, reason_of
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress, StopReason, Tally
from xcount.problem.problem import Problem

_PLUS, _MINUS, _MIN = _core.AddOp.PLUS, _core.AddOp.MINUS, _core.AddOp.MIN


def count_by_monolithic_add(problem: Problem, settings: Settings) -> Tally:
    """Count with one ADD, kept small by leaving out branches that no region reaches."""
    return _count(problem, settings, "add-baseline", monotone=True)


def count_by_plain_monolithic_add(problem: Problem, settings: Settings) -> Tally:
    """Count with one ADD whose monotonicity is enforced only after the sum, as printed."""
    return _count(problem, settings, "add-baseline-plain", monotone=False)


def _count(problem: Problem, settings: Settings, method: str, *, monotone: bool) -> Tally:
    features = range(len(problem.grid.axes))
    sensitive = problem.query.sensitive
    space = GuardSpace(problem, features, sensitive, max_bytes=diagram_bytes(settings))
    space.table.set_time_limit(settings.seconds_left())
    try:
        total = _sum_of_trees(space, settings, monotone=monotone)
        bdd = _sensitive_regions(space, total, monotone=monotone)
        count = space.solutions(bdd).count
    except (_core.DiagramLimit, MemoryError, KeyboardInterrupt) as error:
        details = {"peak_nodes": space.table.peak_nodes}
        return Tally.of_bounds(0, problem.n_regions, method, reason_of(error), details=details)
    details = {"sum_nodes": space.table.size(total), "peak_nodes": space.table.peak_nodes}
    return Tally(count, count, count, method, StopReason.COMPLETE, details=details)


def _sum_of_trees(space: GuardSpace, settings: Settings, *, monotone: bool) -> _core.Diagram:
    """A_sum: the ADD of the whole ensemble."""
    table, cells = space.table, space.open_cells()
    n_trees = len(space.problem.trees)
    total = space.number(0)
    for tree in range(n_trees):
        add = space.encode(tree, cells)
        if monotone:
            add = table.simplify(add)
        total = table.arithmetic(_PLUS, total, add, monotone=monotone)
        settings.report(Progress((tree + 1) / n_trees, 0, space.problem.n_regions, "trees added"))
    return total


def _sensitive_regions(space: GuardSpace, total: _core.Diagram, *, monotone: bool) -> _core.Diagram:
    """The BDD of the sensitive regions, over the unprimed guards."""
    table = space.table
    primed = table.permute(total, _to_primed(space))
    difference = table.arithmetic(_MINUS, primed, total, monotone=monotone)
    bdd = space.conjoin(space.above_gap(difference), within_distance(space))
    marked = np.zeros(table.n_variables, dtype=np.uint8)
    marked[space.levels(primed=True)] = 1
    return table.exists(bdd, marked)


def _copies(space: GuardSpace) -> list[tuple[Group, Group]]:
    """Return the groups of the sensitive features, each with its primed copy."""
    pairs = zip(space.groups, space.groups[1:], strict=False)
    return [(group, copy) for group, copy in pairs if copy.primed]


def _to_primed(space: GuardSpace) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    """ReplaceBits: every sensitive guard becomes its primed copy, and the copy the guard."""
    target = np.arange(space.table.n_variables, dtype=np.uint32)
    for group, copy in _copies(space):
        target[group.first : group.first + group.size] = list(copy.levels)
        target[copy.first : copy.first + copy.size] = list(group.levels)
    return target


def within_distance(space: GuardSpace) -> _core.Diagram:
    """AtMostDistance: the BDD of ``distance(b, b') <= d``, over all sensitive features."""
    limit = space.problem.distance
    table = space.table
    if limit is None:
        return table.constant(True)
    # Distances beyond the limit need not be distinguished: capping them keeps the diagram small.
    cap = space.number(limit + 1)
    total = space.number(0)
    for group, copy in _copies(space):
        total = _capped_sum(space, total, _distance(space, group, copy, cap), cap)
    far = table.exceeds(total, space.limbs(limit))
    return table.ite(far, table.constant(False), table.constant(True))


def _capped_sum(
    space: GuardSpace, a: _core.Diagram, b: _core.Diagram, cap: _core.Diagram
) -> _core.Diagram:
    total = space.table.arithmetic(_PLUS, a, b, monotone=True)
    return space.table.arithmetic(_MIN, total, cap, monotone=True)


def _distance(space: GuardSpace, group: Group, copy: Group, cap: _core.Diagram) -> _core.Diagram:
    """The ADD of the distance of two cells of one feature, as the grid defines it."""
    table, axis = space.table, space.problem.grid.axes[group.feature]
    differ = [
        table.apply(_core.BoolOp.XOR, table.variable(i), table.variable(j))
        for i, j in zip(group.levels, copy.levels, strict=True)
    ]
    if axis.feature.is_categorical:
        return reduce(lambda f, g: table.apply(_core.BoolOp.OR, f, g), differ, space.number(0))
    # With a cell of missing values, the last bit separates it from the others.
    ordered = differ if axis.missing_cell is None else differ[:-1]
    steps = space.number(0)
    for bit, n in zip(ordered, axis.steps, strict=True):
        for _ in range(n):
            steps = _capped_sum(space, steps, bit, cap)
    return (
        steps
        if axis.missing_cell is None or not differ
        else table.ite(differ[-1], table.constant(True), steps)
    )
