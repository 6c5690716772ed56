"""A question about the margins of some outputs, in the form for corner sums.

Corner sums and searches for single regions (:mod:`xcount.counters.region_search`) answer it.
Corner sums find the margins of every region of the grid, block by block, at a cost that depends on
the number of regions and axes and hardly on the trees (see docs/corner-sums.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.problem.integers import to_limbs
from xcount.problem.laid_trees import LaidTrees
from xcount.question.change import Direction
from xcount.question.flip import Sureness
from xcount.question.gap import ProbabilityGap
from xcount.question.probability import Softmax

MAX_REMEMBERED = 2**16
"""How many exact comparisons of probabilities are cached."""


@dataclass(frozen=True, slots=True)
class CornerChange:
    """One change of the margins, in integers.

    Attributes:
        kind: a gap, a flip at a cut-off, a flip of the largest of several (perhaps only if it is
            sure enough), or a gap in probability.
        threshold: the gap or the cut-off; 0 for the largest; a gap in probability as a whole number
            of 1 / ProbabilityLink.one, rounded down.
        direction: whether only higher or only lower neighbours count.
        sure: a flip up starts at margins up to the first, a flip down at margins above the second;
            the largest is sure above the second, unless a link decides.
    """

    kind: Literal["gap", "flip", "largest", "sure largest", "probability"]
    threshold: int = 0
    direction: Direction = "any"
    sure: tuple[int, int] | None = None


MAX_BYTES = 2**32
"""The default memory for listing the corners."""


@dataclass(frozen=True, eq=False)
class CornerQuestion:
    """Changes of some margins; one pass over the grid answers all of them.

    Attributes:
        outputs: the trees of each output, in integers of one unit and width.
        bases: the base of each output.
        sensitive: the features whose cells form a mask.
        distance: the largest distance of neighbours; None for any distance.
        changes: the changes asked about.
        probability: decides exactly if probabilities are compared: a gap, whose output is one of
            ``outputs``, or how sure the largest must be.
    """

    outputs: tuple[LaidTrees, ...]
    bases: tuple[int, ...]
    sensitive: tuple[int, ...]
    distance: int | None
    changes: tuple[CornerChange, ...]
    probability: ProbabilityGap | Sureness | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to send to another process, without cached values."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    @cached_property
    def masks(self) -> _core.MaskSpace:
        return _core.MaskSpace(self.outputs[0].forest, list(self.sensitive), self.distance)

    @cached_property
    def cost(self) -> _core.CornerCost:
        """The predicted cost of counting."""
        forests = [laid.forest for laid in self.outputs]
        lane_bytes = 4 if self.n_bits <= 32 else 8
        return _core.estimate_corner_cost(forests, self.masks, self.kind == "gap", lane_bytes)

    @property
    def kind(self) -> str:
        """The kind of the changes; one question has changes of one kind."""
        return self.changes[0].kind

    @cached_property
    def n_bits(self) -> int:
        """The approximate width of the integers that sums need: 32, 64 or more."""
        bound = max(laid.bound for laid in self.outputs) + max(map(abs, self.bases))
        if bound < 2**28 and self.probability is None:
            return 32
        return 64 if bound < 2**60 else 64 * self.outputs[0].n_limbs

    @property
    def is_rounded(self) -> bool:
        """Whether sums of more than 64 bits are decided by rounded ones first."""
        least = min(change.threshold for change in self.changes)
        is_apart = self.kind == "flip" or (self.kind == "gap" and least > 0)
        return self.n_bits > 64 and is_apart

    def joined(self, others: Sequence[CornerQuestion]) -> CornerQuestion:
        """Return one question with the changes of all, which differ only in their changes."""
        changes = [*self.changes]
        changes += [c for other in others if other.key == self.key for c in other.changes]
        return replace(self, changes=tuple(dict.fromkeys(changes)))

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for questions that one visit can answer: all but the numbers of the changes."""
        return (self.kind, *(getattr(self, f.name) for f in fields(self) if f.name != "changes"))

    def sums(
        self,
        weights: Sequence[NDArray[np.float64]] | None = None,
        on_pause: Callable[[], None] | None = None,
        *,
        max_bytes: int = MAX_BYTES,
        seconds: float = math.inf,
    ) -> _core.CornerSums:
        """Return native corner sums that count by block; with weights, also shares of masks.

        Raises:
            TimeoutError: there was not enough time to list the corners.
            BudgetError: they do not fit into memory.
        """
        given = None
        if weights is not None:
            given = [np.ascontiguousarray(w, dtype=np.float64) for w in weights]
        return _core.CornerSums(
            [laid.forest for laid in self.outputs],
            self.native_bases(),
            self.masks,
            self.native_changes(),
            given,
            max_bytes,
            seconds=seconds,
            on_pause=on_pause,
            link=self.native_link(),
            judge=None if self.probability is None else lru_cache(MAX_REMEMBERED)(self._judged),
        )

    def native_link(self) -> _core.ProbabilityLink | None:
        """Return the native link that computes float probabilities, if they are compared."""
        asked = self.probability
        if asked is None:
            return None
        mantissa, exponent = asked.link.unit_as_float(self.outputs[0].scale)
        is_softmax = isinstance(asked.link, Softmax)
        output = asked.output if isinstance(asked, ProbabilityGap) else 0
        return _core.ProbabilityLink(is_softmax, output, mantissa, exponent)

    def native_bases(self) -> list[NDArray[np.uint64]]:
        """Return the bases in limbs."""
        return [self._limbs(base) for base in self.bases]

    def native_changes(self) -> list[_core.Change]:
        """Return the changes in native form."""
        return [self._change(change) for change in self.changes]

    def _judged(self, change: int, before: bytes, after: bytes) -> bool:
        """Decide exactly whether the probability rises by more than the gap, or is enough."""
        assert self.probability is not None
        gap = self.probability
        if isinstance(gap, Sureness):
            sums = self._sums(before)
            return gap.holds(sums, sums.index(max(sums)))
        return gap.link.rises(self._sums(before), self._sums(after), gap.output, gap.gap)

    def _sums(self, data: bytes) -> list[Fraction]:
        size, scale = 8 * self.outputs[0].n_limbs, self.outputs[0].scale
        numbers = (data[i : i + size] for i in range(0, len(data), size))
        return [int.from_bytes(n, "little", signed=True) / scale for n in numbers]

    def _change(self, change: CornerChange) -> _core.Change:
        if change.kind == "largest":
            return _core.Change.largest()
        threshold = self._limbs(change.threshold)
        if change.kind == "sure largest":
            assert isinstance(self.probability, Sureness)
            least = math.floor(self.probability.least * _core.ProbabilityLink.one)
            above = (change.sure or (0, 0))[1]
            return _core.Change.sure_largest(self._limbs(least), self._limbs(above))
        if change.kind == "gap":
            return _core.Change.gap(threshold, change.direction)
        if change.kind == "probability":
            return _core.Change.probability(threshold, change.direction)
        below, above = change.sure or (change.threshold, change.threshold)
        return _core.Change.flip(
            threshold, change.direction, self._limbs(below), self._limbs(above)
        )

    def _limbs(self, value: int) -> NDArray[np.uint64]:
        limbs: NDArray[np.uint64] = to_limbs([value], self.outputs[0].n_limbs)[0]
        return limbs
