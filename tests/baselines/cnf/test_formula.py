"""Gates, sums and comparisons: every input of small ones, by unit propagation."""

from __future__ import annotations

import io
import itertools
import random

import pytest
from propagation import clauses_of, propagate

from xcount.baselines.cnf.formula import Formula
from xcount.baselines.cnf.sums import binary_sum, require_at_least, require_at_most


def test_gates_are_what_they_say() -> None:
    """Given the inputs, unit propagation finds the outputs of every gate."""
    for bits in itertools.product((False, True), repeat=3):
        formula = Formula()
        inputs = [formula.new_variable() for _ in range(3)]
        a, b, c = inputs
        outputs = {
            formula.conjunction((a, -b, c)): bits[0] and not bits[1] and bits[2],
            formula.disjunction((a, -b)): bits[0] or not bits[1],
            formula.exclusive_or(a, -c): bits[0] == bits[2],
            formula.full_adder(a, -b, c)[0]: (bits[0] + (not bits[1]) + bits[2]) % 2 == 1,
            formula.full_adder(a, -b, c)[1]: bits[0] + (not bits[1]) + bits[2] >= 2,
        }
        given = [v if value else -v for v, value in zip(inputs, bits, strict=True)]
        found = propagate(clauses_of(formula), given)
        assert found is not None
        for output, value in outputs.items():
            assert (output if value else -output) in found


def test_constant_gates() -> None:
    """Empty, contradictory and constant inputs make constants."""
    formula = Formula()
    a = formula.new_variable()
    assert formula.conjunction(()) == formula.true
    assert formula.disjunction(()) == -formula.true
    assert formula.conjunction((a, -a)) == -formula.true
    assert formula.conjunction((a, formula.true)) == a
    assert formula.conjunction((a, -formula.true)) == -formula.true
    assert formula.disjunction((a, -a)) == formula.true


@pytest.mark.parametrize("seed", range(25))
def test_sums_and_comparisons(seed: int) -> None:
    """A sum of weighted bits is its binary number; a bound holds just where it should."""
    rng = random.Random(seed)
    formula = Formula()
    inputs = [formula.new_variable() for _ in range(rng.randrange(1, 6))]
    weights = [rng.choice([0, 1, 2, 3, 5, 70]) for _ in inputs]
    bits = [(k, v) for v, w in zip(inputs, weights, strict=True) for k in range(8) if w >> k & 1]
    number = binary_sum(formula, bits)
    bound = rng.randrange(-2, sum(weights) + 3)
    least, most = formula.new_variable(), formula.new_variable()
    require_at_least(formula, number, bound, least)
    require_at_most(formula, number, bound, most)
    clauses = clauses_of(formula)
    for values in itertools.product((False, True), repeat=len(inputs)):
        given = [v if value else -v for v, value in zip(inputs, values, strict=True)]
        total = sum(w for w, value in zip(weights, values, strict=True) if value)
        found = propagate(clauses, given)
        assert found is not None
        assert sum(1 << k for k, literal in enumerate(number) if literal in found) == total
        assert (propagate(clauses, [*given, least]) is not None) == (total >= bound)
        assert (propagate(clauses, [*given, most]) is not None) == (total <= bound)


def test_weights_of_any_size() -> None:
    """A weight may be far beyond 64 bits."""
    formula = Formula()
    a, b, c = (formula.new_variable() for _ in range(3))
    number = binary_sum(formula, [(2000, a), (2000, b), (0, c)])
    found = propagate(clauses_of(formula), [a, b, -c])
    assert found is not None
    assert [k for k, literal in enumerate(number) if literal in found] == [2001]


def test_dimacs_declares_the_projection() -> None:
    """The file has comments, the header, the projection set, and the clauses."""
    formula = Formula(comments=["a comment"])
    a, b = formula.new_variable(), formula.new_variable()
    formula.add(a, -b)
    formula.show = [b]
    stream = io.StringIO()
    formula.write(stream)
    assert stream.getvalue() == "c a comment\np cnf 2 1\nc p show 2 0\n1 -2 0\n"
