"""Formulas in conjunctive normal form: variables, gates, clauses, DIMACS.

A literal is a non-zero int, as in DIMACS; ``TRUE`` is a literal that a unit clause makes true, so
that gates need no special cases. Gates are equivalences (Tseitin): given the inputs, unit
propagation finds the output.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import IO

from xcount.support.visible import visible


@dataclass(eq=False)
class Formula:
    """Clauses, the variables to project on, and what the variables mean.

    Attributes:
        clauses: the clauses' literals, each clause followed by a 0.
        show: the projection set; a count is a count of its assignments.
        comments: lines for the head of a DIMACS file.
    """

    clauses: array[int] = field(default_factory=lambda: array("i"))
    n_variables: int = 0
    n_clauses: int = 0
    show: list[int] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    _true: int = 0
    _gates: dict[tuple[str, tuple[int, ...]], int] = field(default_factory=dict)

    @property
    def true(self) -> int:
        """A literal that is true."""
        if not self._true:
            self._true = self.new_variable()
            self.add(self._true)
        return self._true

    def new_variable(self) -> int:
        self.n_variables += 1
        return self.n_variables

    def add(self, *literals: int) -> None:
        """Add a clause."""
        self.clauses.extend(literals)
        self.clauses.append(0)
        self.n_clauses += 1

    def conjunction(self, literals: Iterable[int]) -> int:
        """Return a literal that is true iff all the given ones are."""
        inputs = set(literals) - {self._true}
        if any(-literal in inputs for literal in inputs) or (self._true and -self._true in inputs):
            return -self.true
        if len(inputs) <= 1:
            return next(iter(inputs), 0) or self.true
        key = ("and", tuple(sorted(inputs)))
        if key not in self._gates:
            output = self._gates[key] = self.new_variable()
            for literal in key[1]:
                self.add(-output, literal)
            self.add(output, *(-literal for literal in key[1]))
        return self._gates[key]

    def disjunction(self, literals: Iterable[int]) -> int:
        """Return a literal that is true iff one of the given ones is."""
        return -self.conjunction(-literal for literal in literals)

    def exclusive_or(self, a: int, b: int) -> int:
        """Return a literal that is true iff exactly one of the two is."""
        key = ("xor", tuple(sorted((abs(a), abs(b)))))
        if key not in self._gates:
            x, y = key[1]
            output = self._gates[key] = self.new_variable()
            self._define_parity(output, (x, y))
        output = self._gates[key]
        return output if (a > 0) == (b > 0) else -output

    def _define_parity(self, output: int, inputs: Sequence[int]) -> None:
        """Require that ``output`` is true iff an odd number of the inputs are."""
        for signs in range(1 << len(inputs)):
            chosen = [x if signs >> i & 1 else -x for i, x in enumerate(inputs)]
            is_odd = signs.bit_count() % 2 == 1
            self.add(*(-literal for literal in chosen), output if is_odd else -output)

    def full_adder(self, a: int, b: int, c: int) -> tuple[int, int]:
        """Return the sum bit and the carry bit of three bits."""
        total, carry = self.new_variable(), self.new_variable()
        self._define_parity(total, (a, b, c))
        for x, y in ((a, b), (a, c), (b, c)):
            self.add(-x, -y, carry)
            self.add(x, y, -carry)
        return total, carry

    def half_adder(self, a: int, b: int) -> tuple[int, int]:
        """Return the sum bit and the carry bit of two bits."""
        return self.exclusive_or(a, b), self.conjunction((a, b))

    def write(self, stream: IO[str]) -> None:
        """Write DIMACS, with the projection set as ``c p show ... 0``."""
        for line in self.comments:
            stream.write(f"c {visible(line)}".rstrip() + "\n")
        stream.write(f"p cnf {self.n_variables} {self.n_clauses}\n")
        stream.write(f"c p show {' '.join(map(str, self.show))} 0\n".replace("  ", " "))
        parts: list[str] = []
        for literal in self.clauses:
            parts.append(str(literal))
            if literal == 0:
                stream.write(" ".join(parts) + "\n")
                parts.clear()
