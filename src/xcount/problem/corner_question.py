"""A question for corner sums: the margins of the outputs that matter, and what must change.

Corner sums find the margins of every region of the grid, block by block, at a cost that depends on
the number of regions and axes and hardly on the trees (see docs/corner-sums.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.problem.integers import to_limbs
from xcount.problem.laid_trees import LaidTrees
from xcount.question.change import Direction


@dataclass(frozen=True, slots=True)
class CornerChange:
    """One change of the margins, in integers.

    Attributes:
        kind: a gap, a flip at a cut-off, or a flip of the largest of several.
        threshold: the gap or the cut-off; 0 for the largest.
        direction: whether only higher or only lower neighbours count.
        sure: a flip up starts at margins up to the first, a flip down at those above the second.
    """

    kind: Literal["gap", "flip", "largest"]
    threshold: int = 0
    direction: Direction = "any"
    sure: tuple[int, int] | None = None


@dataclass(frozen=True, eq=False)
class CornerQuestion:
    """Changes of some margins; one pass over the grid answers all of them.

    Attributes:
        outputs: the trees of each output, in integers of one unit and width.
        bases: what each output starts from.
        sensitive: the features whose cells are a mask.
        distance: how far neighbours are apart at most; None for any distance.
        changes: what must change.
    """

    outputs: tuple[LaidTrees, ...]
    bases: tuple[int, ...]
    sensitive: tuple[int, ...]
    distance: int | None
    changes: tuple[CornerChange, ...]

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs; what can be computed again stays here."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    @cached_property
    def masks(self) -> _core.MaskSpace:
        return _core.MaskSpace(self.outputs[0].forest, list(self.sensitive), self.distance)

    @cached_property
    def cost(self) -> _core.CornerCost:
        """What counting would take, found without counting."""
        return _core.estimate_corner_cost([laid.forest for laid in self.outputs], self.masks)

    def sums(
        self, weights: Sequence[NDArray[np.float64]] | None = None, **options: int
    ) -> _core.CornerSums:
        """Return what counts, block by block; with weights, also the shares of the masks."""
        given = None
        if weights is not None:
            given = [np.ascontiguousarray(w, dtype=np.float64) for w in weights]
        forests = [laid.forest for laid in self.outputs]
        bases = [self._limbs(base) for base in self.bases]
        changes = [self._change(change) for change in self.changes]
        return _core.CornerSums(forests, bases, self.masks, changes, given, **options)

    def _change(self, change: CornerChange) -> _core.Change:
        if change.kind == "largest":
            return _core.Change.largest()
        threshold = self._limbs(change.threshold)
        if change.kind == "gap":
            return _core.Change.gap(threshold, change.direction)
        below, above = change.sure or (change.threshold, change.threshold)
        return _core.Change.flip(
            threshold, change.direction, self._limbs(below), self._limbs(above)
        )

    def _limbs(self, value: int) -> NDArray[np.uint64]:
        limbs: NDArray[np.uint64] = to_limbs([value], self.outputs[0].n_limbs)[0]
        return limbs
