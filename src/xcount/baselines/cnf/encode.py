"""A problem -> a formula whose projected models are the sensitive regions.

Variables, for every feature with n cells: ``b[i]``, i = 0 .. n-2, "the cell is at most i" (for a
numeric feature: x < thresholds[i]), with ``b[i] => b[i+1]``. A region is sensitive iff it has one
of two neighbouring masks, and the trees' sums at the two differ by more than the gap. If there are
few pairs of neighbours, the formula is a disjunction over them: both masks of a pair are constants,
so that only trees that distinguish them matter. If there are many, the sensitive
features have a second copy ``b'`` instead, and the formula says: the sums at b and at b' differ by
more than the gap, and b' is within the distance of b. Projected on b, its models are the regions
that have such a b': projection is the existential quantifier.

With D(t) the value of tree t at b less its value at b', the comparison of their sum with the gap is
a decision diagram over the trees (decisions.py) if that is small. Otherwise adders build::

    z = sum over t of (D(t) - least D(t)) = V(b) - V(b') + R,   R = - sum over t of least D(t)

so that ``|V(b) - V(b')| > G`` is ``z >= R + G + 1 or z <= R - G - 1``. Trees that test no sensitive
feature give the same at b and b' and are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Protocol

from xcount.baselines.cnf.decisions import JumpDiagram
from xcount.baselines.cnf.formula import Formula
from xcount.baselines.cnf.sums import (
    WeightedBit,
    binary_sum,
    require_at_least,
    require_at_most,
)
from xcount.baselines.cnf.trees import Cells, Leaf, TreeEncoder
from xcount.errors import QueryError
from xcount.problem.problem import Problem
from xcount.question.grid import Axis

MAX_PAIRS = 1_000
"""The largest number of pairs of masks that a formula lists one by one."""


class Checkpoint(Protocol):
    """A callback, called regularly while a formula is built, that raises to stop the work."""

    def __call__(self) -> None: ...


def encode(
    problem: Problem, checkpoint: Checkpoint = lambda: None, *, max_pairs: int = MAX_PAIRS
) -> Formula:
    """Return the formula of the whole question, projected on all guards.

    Up to so many pairs of masks are named one by one; more are left to a second copy of the guards.
    """
    if not problem.query.change.in_paper:
        raise QueryError("there is no formula for flips; ask about a gap")
    formula = Formula()
    formula.comments += _describe_query(problem)
    bits = _guard_bits(formula, problem, range(len(problem.grid.axes)))
    formula.show = _shown(formula, bits)
    pairs = pairs_of_masks(problem, max_pairs)
    if pairs is None:
        _require_counterpart(formula, problem, bits, checkpoint)
    else:
        _require_pair(formula, problem, bits, pairs, checkpoint)
    return formula


def pairs_of_masks(problem: Problem, most: int) -> list[tuple[int, int]] | None:
    """Return the pairs of neighbouring masks, the smaller first; None if more than ``most``."""
    pairs: list[tuple[int, int]] = []
    for mask in range(problem.n_masks):
        pairs += [(mask, other) for other in problem.masks.neighbours(mask) if mask < other]
        if len(pairs) > most:
            return None
    return pairs


def _require_pair(
    formula: Formula,
    problem: Problem,
    bits: Mapping[int, Sequence[int]],
    pairs: Sequence[tuple[int, int]],
    checkpoint: Checkpoint,
) -> None:
    """Require that b has one of two masks whose sums differ by more than the gap."""
    encoder = TreeEncoder(formula, problem)
    trees = _trees_that_test(problem, problem.query.sensitive)
    sensitive: list[int] = []
    for pair in pairs:
        checkpoint()
        here, there = (_fixed(problem, bits, mask) for mask in pair)
        numbers = [encoder.difference(i, here, there) for i in trees]
        jump = formula.disjunction(_jumps(formula, problem.threshold, numbers))
        either = [_at_mask(formula, problem, bits, mask) for mask in pair]
        sensitive.append(formula.conjunction((formula.disjunction(either), jump)))
    # A variable after all shown ones: ApproxMC knows only variables that occur in clauses.
    formula.add(*sensitive, -formula.true)


def _at_mask(
    formula: Formula, problem: Problem, bits: Mapping[int, Sequence[int]], mask: int
) -> int:
    """Return a literal for "the sensitive features have this mask"."""
    literals: list[int] = []
    cells = problem.masks.cells(mask)
    for feature, cell in zip(problem.query.sensitive, cells, strict=True):
        at_most = bits[feature]
        literals += at_most[cell : cell + 1]
        literals += [-at_most[cell - 1]] if cell else []
    return formula.conjunction(literals)


def _require_counterpart(
    formula: Formula,
    problem: Problem,
    bits: Mapping[int, Sequence[int]],
    checkpoint: Checkpoint,
) -> None:
    """Require some b' within the distance of b whose sum differs by more than the gap."""
    sensitive = problem.query.sensitive
    primed = {**bits, **_guard_bits(formula, problem, sensitive, mark="'")}
    _require_distance(formula, problem, bits, primed)
    encoder = TreeEncoder(formula, problem)
    numbers = []
    for index in _trees_that_test(problem, sensitive):
        checkpoint()
        numbers.append(encoder.difference(index, bits, primed))
    formula.add(*_jumps(formula, problem.threshold, numbers))


def encode_mask(
    problem: Problem, mask: int, neighbours: Iterable[int], checkpoint: Checkpoint = lambda: None
) -> Formula:
    """Return the formula of "this mask jumps to one of its neighbours", over the other guards."""
    formula = Formula()
    sensitive = problem.query.sensitive
    others = [f for f in range(len(problem.grid.axes)) if f not in sensitive]
    bits = _guard_bits(formula, problem, others)
    formula.show = _shown(formula, bits)
    encoder = TreeEncoder(formula, problem)
    trees = _trees_that_test(problem, sensitive)
    here = _fixed(problem, bits, mask)
    jumps: list[int] = []
    for neighbour in neighbours:
        checkpoint()
        there = _fixed(problem, bits, neighbour)
        numbers = [encoder.difference(i, here, there) for i in trees]
        jumps += _jumps(formula, problem.threshold, numbers)
    formula.add(*jumps)
    return formula


def _shown(formula: Formula, bits: Mapping[int, Sequence[int]]) -> list[int]:
    """Return the projection set; one true variable if there is no guard to project on."""
    return [literal for feature in bits.values() for literal in feature] or [formula.true]


def _fixed(problem: Problem, bits: Mapping[int, Sequence[int]], mask: int) -> dict[int, Cells]:
    fixed = zip(problem.query.sensitive, problem.masks.cells(mask), strict=True)
    return {**bits, **dict(fixed)}


def _trees_that_test(problem: Problem, features: Sequence[int]) -> list[int]:
    return [i for i, tree in enumerate(problem.trees) if set(tree.feature) & set(features)]


def _guard_bits(
    formula: Formula, problem: Problem, features: Iterable[int], mark: str = ""
) -> dict[int, list[int]]:
    """Create the monotone bits of the features' cells, and record what they mean."""
    bits: dict[int, list[int]] = {}
    for feature in features:
        axis = problem.grid.axes[feature]
        made = [formula.new_variable() for _ in range(axis.n_cells - 1)]
        for low, high in pairwise(made):
            formula.add(-low, high)
        for i, variable in enumerate(made):
            formula.comments.append(f"variable {variable}: {_guard_text(axis, i, mark)}")
        bits[feature] = made
    return bits


def _guard_text(axis: Axis, i: int, mark: str) -> str:
    name = _one_line(axis.feature.name) + mark
    edge = axis.edge(i)
    if edge is not None:
        return f"{name} < {edge!r}"
    cells = ", ".join(_one_line(axis.describe(cell)) for cell in range(i + 1))
    return f"the cell of {name} is one of: {cells}"


def _one_line(text: str) -> str:
    """Return a name that cannot break a comment line."""
    return " ".join(text.split())


def _describe_query(problem: Problem) -> list[str]:
    query, features = problem.query, problem.ensemble.features
    names = ", ".join(_one_line(features[f].name) for f in query.sensitive)
    distance = "any" if query.distance is None else str(query.distance)
    precision = "exact" if query.precision is None else f"{query.precision} decimals"
    return [
        "XCount: the sensitive regions of a tree ensemble, as models projected on the shown",
        "variables (the guards of a region b; marked ' are those of its counterpart b')",
        f"sensitive {names}; distance {distance}; {query.change.label}; leaves {precision}"
        f"; class {query.change.shown_output(())}",
        f"regions {problem.n_regions}",
    ]


def _require_distance(
    formula: Formula,
    problem: Problem,
    bits: Mapping[int, Sequence[int]],
    primed: Mapping[int, Sequence[int]],
) -> None:
    limit = problem.query.distance
    if limit is None:
        return
    steps: list[WeightedBit] = []
    for feature in problem.query.sensitive:
        differ = [
            formula.exclusive_or(a, b) for a, b in zip(bits[feature], primed[feature], strict=True)
        ]
        steps += [(0, literal) for literal in _steps(formula, problem.grid.axes[feature], differ)]
    require_at_most(formula, binary_sum(formula, steps), limit, formula.true)


def _steps(formula: Formula, axis: Axis, differ: list[int]) -> list[int]:
    """Return literals of which the number that are true is the distance on this axis."""
    if axis.feature.is_categorical:
        return [formula.disjunction(differ)]
    steps = [bit for bit, n in zip(differ, axis.steps, strict=False) for _ in range(n)]
    if axis.missing_cell is None or not differ:
        return steps
    # The last bit separates the missing cell from the others: one step, whatever the other bits.
    appears = differ[-1]
    return [appears] + [formula.conjunction((bit, -appears)) for bit in steps]


def _jumps(formula: Formula, gap: int, numbers: Sequence[list[Leaf]]) -> list[int]:
    """Return literals of which one can be true iff the sum of the numbers exceeds the gap."""
    decided = JumpDiagram(formula, gap, numbers).literal()
    return [decided] if decided is not None else _added_jumps(formula, gap, numbers)


def _added_jumps(formula: Formula, gap: int, numbers: Sequence[list[Leaf]]) -> list[int]:
    """The same with adders: the first literal implies sum > gap, the second sum < -gap."""
    offset = 0
    shifted: list[list[Leaf]] = []
    for number in numbers:
        least = min(value for _, value in number)
        shifted.append([(literal, value - least) for literal, value in number])
        offset -= least
    unit = math.gcd(*(value for number in shifted for _, value in number)) or 1
    bits: list[WeightedBit] = []
    for number in shifted:
        bits += _number_bits(formula, [(literal, value // unit) for literal, value in number])
    total = binary_sum(formula, bits)
    rises, falls = formula.new_variable(), formula.new_variable()
    require_at_least(formula, total, -((-(offset + gap + 1)) // unit), rises)
    require_at_most(formula, total, (offset - gap - 1) // unit, falls)
    return [rises, falls]


def _number_bits(formula: Formula, leaves: list[Leaf]) -> list[WeightedBit]:
    """Return the binary digits of the value of the leaf that is reached, exactly one of all."""
    width = max((value for _, value in leaves), default=0).bit_length()
    digits = []
    for k in range(width):
        ones = [literal for literal, value in leaves if value >> k & 1]
        zeros = [literal for literal, value in leaves if not value >> k & 1]
        if not ones:
            continue
        digits.append((k, formula.disjunction(ones) if zeros else formula.true))
    return digits
