"""The decision diagrams against OxiDD's BCDDs, and against evaluation point by point."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from xcount import _core
from xcount.baselines.paper.guards import RankedSolutions
from xcount.problem.integers import from_limbs, to_limbs

AND, OR, XOR = _core.BoolOp.AND, _core.BoolOp.OR, _core.BoolOp.XOR
N_VARIABLES = 9


def value_at(table: _core.DiagramTable, f: _core.Diagram, bits: tuple[int, ...]) -> int:
    """Follow the bits from the root to a terminal."""
    rows = {row[0]: row for row in table.rows(f)}
    _, level, low, high, limbs = rows[f.node]
    while level >= 0:
        _, level, low, high, limbs = rows[high if bits[level] else low]
    return int.from_bytes(np.array(limbs, dtype="<u8").tobytes(), "little", signed=True)


def random_pair(rng: random.Random, table: _core.DiagramTable, oracle: Any, depth: int) -> Any:
    """Build the same random Boolean function in both packages."""
    if depth == 0:
        v = rng.randrange(N_VARIABLES)
        return table.variable(v), oracle.var(v)
    (f, a), (g, b) = (random_pair(rng, table, oracle, depth - 1) for _ in range(2))
    choice = rng.randrange(4)
    if choice == 3:
        h, c = random_pair(rng, table, oracle, depth - 1)
        return table.ite(f, g, h), a.ite(b, c)
    combined = [a & b, a | b, a ^ b][choice]
    return table.apply([AND, OR, XOR][choice], f, g), combined


@pytest.mark.parametrize("seed", range(40))
def test_boolean_operations_agree_with_oxidd(seed: int) -> None:
    """Random formulas have the same models, counts and quantifications as OxiDD's."""
    bcdd = pytest.importorskip("oxidd.bcdd", reason="oxidd is not installed: pip install oxidd")
    rng = random.Random(seed)
    table = _core.DiagramTable([1] * N_VARIABLES)
    oracle = bcdd.BCDDManager(1 << 16, 1 << 14, 1)
    oracle.add_vars(N_VARIABLES)
    f, expected = random_pair(rng, table, oracle, 4)
    levels = list(range(N_VARIABLES))
    solutions = RankedSolutions(_core.Solutions(table, f, levels))
    assert solutions.count == expected.sat_count(N_VARIABLES)
    for bits in itertools.product((0, 1), repeat=N_VARIABLES):
        assert value_at(table, f, bits) == expected.eval(zip(levels, map(bool, bits), strict=True))

    quantified = rng.sample(levels, 3)
    marked = np.zeros(N_VARIABLES, dtype=np.uint8)
    marked[quantified] = 1
    cube = oracle.true()
    for v in quantified:
        cube = cube & oracle.var(v)
    some = RankedSolutions(_core.Solutions(table, table.exists(f, marked), levels))
    assert some.count == expected.exists(cube).sat_count(N_VARIABLES)


@pytest.mark.parametrize("seed", range(20))
def test_every_rank_is_a_different_solution(seed: int) -> None:
    """Unranking is a bijection between 0 .. count - 1 and the solutions."""
    rng = random.Random(seed)
    table = _core.DiagramTable([1] * 6)
    f = table.constant(False)
    for point in rng.sample(range(64), rng.randrange(1, 40)):
        cube = table.constant(True)
        for v in range(6):
            literal = table.variable(v)
            if not point >> v & 1:
                literal = table.apply(XOR, literal, table.constant(True))
            cube = table.apply(AND, cube, literal)
        f = table.apply(OR, f, cube)
    solutions = RankedSolutions(_core.Solutions(table, f, list(range(6))))
    rows = solutions.unrank(range(solutions.count))
    assert len({row.tobytes() for row in rows}) == solutions.count
    everything = np.array(list(itertools.product((0, 1), repeat=6)), dtype=np.uint8)
    found = everything[solutions.contains(everything)]
    assert {row.tobytes() for row in found} == {row.tobytes() for row in rows}


@pytest.mark.parametrize("n_limbs", [1, 2, 36])
def test_sums_of_every_width_are_exact(n_limbs: int) -> None:
    """Terminals of 64, 128 and 2304 bits add and subtract without rounding."""
    table = _core.DiagramTable([1, 1], n_limbs)
    large = 2 ** (64 * n_limbs - 4)

    def number(value: int) -> _core.Diagram:
        return table.terminal(to_limbs([value], n_limbs)[0])

    f = table.ite(table.variable(0), number(large), number(-large))
    g = table.ite(table.variable(1), number(1), number(0))
    total = table.arithmetic(_core.AddOp.PLUS, f, g)
    for a, b in itertools.product((0, 1), repeat=2):
        assert value_at(table, total, (a, b)) == (large if a else -large) + b
    # |total| > large holds at (1, 1) only: -large + 1 is nearer to zero, and the test is strict.
    beyond = table.exceeds(total, to_limbs([large], n_limbs)[0])
    assert from_limbs(_core.Solutions(table, beyond, [0, 1]).count()) == 1


def test_counts_do_not_end_at_64_bits() -> None:
    """The number of solutions is an integer of any size, and so are ranks."""
    n = 1500
    table = _core.DiagramTable([1] * n)
    f = table.apply(OR, table.variable(0), table.variable(n - 1))
    solutions = RankedSolutions(_core.Solutions(table, f, list(range(n))))
    assert solutions.count == 3 << (n - 2)
    rows = solutions.unrank([0, solutions.count // 2, solutions.count - 1])
    assert solutions.contains(rows).all()
    assert len({row.tobytes() for row in rows}) == 3


def test_limits_raise_and_leave_diagrams_usable() -> None:
    """A table that is full says which limit was reached; what it holds stays right."""
    table = _core.DiagramTable([1] * 16, max_nodes=200)
    kept = table.apply(AND, table.variable(0), table.variable(15))

    def grow() -> None:
        f = table.constant(False)
        for i in range(8):
            both = table.apply(AND, table.variable(i), table.variable(i + 8))
            f = table.apply(OR, f, both)

    with pytest.raises(_core.DiagramLimit) as caught:
        grow()
    assert caught.value.args[0] == "nodes"
    solutions = RankedSolutions(_core.Solutions(table, kept, list(range(16))))
    assert solutions.count == 2**14


def test_a_time_limit_raises() -> None:
    """An operation that outlasts its time is ended."""
    table = _core.DiagramTable([1] * 40)
    table.set_time_limit(0.0)

    def grow() -> None:
        f = table.constant(False)
        for i in range(20):
            both = table.apply(AND, table.variable(i), table.variable(i + 20))
            f = table.apply(OR, f, both)

    with pytest.raises(_core.DiagramLimit) as caught:
        grow()
    assert caught.value.args[0] == "time"


def test_snapshots_do_not_see_reused_nodes() -> None:
    """Solutions stay what they were although their diagram's nodes were collected and reused."""
    table = _core.DiagramTable([1] * 10)
    f = table.apply(AND, table.variable(2), table.variable(7))
    solutions = RankedSolutions(_core.Solutions(table, f, list(range(10))))
    before = solutions.unrank(range(solutions.count)).tobytes()
    del f
    table.collect_garbage()
    others = [table.apply(XOR, table.variable(i), table.variable(i + 1)) for i in range(9)]
    assert solutions.unrank(range(solutions.count)).tobytes() == before
    assert len(others) == 9
