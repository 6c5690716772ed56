"""The comparison of a sum with the gap as a diagram: every input of small ones."""

from __future__ import annotations

import itertools
import random

import pytest
from propagation import clauses_of, propagate

from xcount.baselines.cnf.decisions import JumpDiagram
from xcount.baselines.cnf.formula import Formula
from xcount.baselines.cnf.trees import Leaf


def random_numbers(rng: random.Random, formula: Formula) -> list[list[Leaf]]:
    """Return numbers of two or three values, each value with a literal of its own."""
    numbers = []
    for _ in range(rng.randrange(1, 5)):
        scale = rng.choice([1, 1, 10**40])
        values = rng.sample([v * scale for v in range(-4, 5)], rng.randrange(2, 4))
        numbers.append([(formula.new_variable(), value) for value in values])
    return numbers


@pytest.mark.parametrize("seed", range(60))
def test_the_literal_says_whether_the_sum_is_beyond_the_gap(seed: int) -> None:
    """Given one value of each number, unit propagation finds the answer."""
    rng = random.Random(seed)
    formula = Formula()
    numbers = random_numbers(rng, formula)
    gap = rng.choice([0, 1, 3, 5, 10**40])
    literal = JumpDiagram(formula, gap, numbers).literal()
    assert literal is not None
    clauses = clauses_of(formula)
    for chosen in itertools.product(*numbers):
        taken = {leaf for leaf, _ in chosen}
        given = [leaf if leaf in taken else -leaf for number in numbers for leaf, _ in number]
        found = propagate(clauses, given)
        assert found is not None
        is_beyond = abs(sum(value for _, value in chosen)) > gap
        assert (literal if is_beyond else -literal) in found


def test_a_diagram_that_is_too_large_leaves_no_trace() -> None:
    """Where it gives up, the formula is what it was."""
    formula = Formula()
    numbers = [[(formula.new_variable(), 0), (formula.new_variable(), 3**i)] for i in range(12)]
    assert JumpDiagram(formula, 1000, numbers, max_nodes=10).literal() is None
    assert (formula.n_variables, formula.n_clauses) == (24, 0)
    assert JumpDiagram(formula, 1000, numbers * 50).literal() is None
    assert formula.n_clauses == 0


def test_no_numbers_make_no_difference() -> None:
    """An empty sum is 0, which is not beyond any gap."""
    formula = Formula()
    assert JumpDiagram(formula, 0, []).literal() == -formula.true
