"""The decomposition of a count: the masks' counts as sums of counts of subproblems.

Regions with different masks are different regions, so ``C = sum over masks m of |A_m|``, with A_m
the combinations x of non-sensitive cells that make (x, m) sensitive. Each ``|A_m|`` is an
:class:`Expression`: nothing or everything, plus or minus the counts of subproblems "any (or all) of
these pairs of masks differ". A subproblem is counted once, however many masks need it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

Pair = tuple[int, int]
"""Two masks, by number."""


class Subproblem(NamedTuple):
    """Count the x for which these pairs differ by more than the threshold, or those in a part.

    The count is the sum of the counts of its ``2 ** part_bits`` parts, which several threads or
    machines can find.
    """

    pairs: Sequence[Pair]
    all_pairs: bool = False
    """Whether all of the pairs must differ, rather than any."""
    part: int = 0
    part_bits: int = 0


class Expression(NamedTuple):
    """``(everything if is_complement else 0) + sum of sign * count``, or at most that.

    Attributes:
        terms: (sign, number of a subproblem).
        is_complement: whether it starts from all combinations x.
        union_of: subproblems whose union is counted, if any: the count is at least that of each
            of them, and at most their sum.
        is_upper_bound: whether the count may be smaller than the sum.
    """

    terms: tuple[tuple[int, int], ...] = ()
    is_complement: bool = False
    union_of: tuple[int, ...] = ()
    is_upper_bound: bool = False

    @property
    def is_difference(self) -> bool:
        """Whether something is subtracted, which leaves rounding errors in float weights."""
        return self.is_complement or any(sign < 0 for sign, _ in self.terms)


@dataclass(frozen=True, slots=True)
class Decomposition:
    """The expressions of all masks, and the subproblems that they name.

    Attributes:
        pairs: subproblem i, for i < len(pairs), is "pair i differs".
        joint: the subproblems that come after those.
        expressions: the different expressions.
        expression_of: for each mask the number of its expression.
    """

    pairs: Sequence[Pair]
    joint: Sequence[Subproblem]
    expressions: Sequence[Expression]
    expression_of: Sequence[int]

    def subproblem(self, number: int) -> Subproblem:
        """Return the subproblem with that number."""
        if number < len(self.pairs):
            return Subproblem((self.pairs[number],))
        return self.joint[number - len(self.pairs)]

    def is_joint(self, number: int) -> bool:
        """Return whether a subproblem has several pairs."""
        return number >= len(self.pairs)

    def of_mask(self, mask: int) -> Expression:
        """Return the expression of a mask's count."""
        return self.expressions[self.expression_of[mask]]
