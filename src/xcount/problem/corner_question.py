"""A question for corner sums: the margins of the outputs that matter, and what must change.

Corner sums find the margins of every region of the grid, block by block, at a cost that depends on
the number of regions and axes and hardly on the trees (see docs/corner-sums.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.problem.integers import to_limbs
from xcount.problem.laid_trees import LaidTrees

MAX_BYTES = 2**32
"""What listing the corners may take, unless said otherwise."""


@dataclass(frozen=True, eq=False)
class CornerQuestion:
    """Changes of some margins; one pass over the grid answers all of them.

    Attributes:
        outputs: the trees of each output, in integers of one unit and width.
        bases: what each output starts from.
        sensitive: the features whose cells are a mask.
        distance: how far neighbours are apart at most; None for any distance.
        kind: a gap, a flip at a cut-off, or a flip of the largest of several.
        thresholds: for each change its gap or cut-off; 0 for the largest.
    """

    outputs: tuple[LaidTrees, ...]
    bases: tuple[int, ...]
    sensitive: tuple[int, ...]
    distance: int | None
    kind: Literal["gap", "flip", "largest"]
    thresholds: tuple[int, ...]

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs; what can be computed again stays here."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    @cached_property
    def masks(self) -> _core.MaskSpace:
        return _core.MaskSpace(self.outputs[0].forest, list(self.sensitive), self.distance)

    @cached_property
    def cost(self) -> _core.CornerCost:
        """What counting would take, found without counting."""
        forests = [laid.forest for laid in self.outputs]
        lane_bytes = 4 if self.n_bits <= 32 else 8
        return _core.estimate_corner_cost(forests, self.masks, self.kind == "gap", lane_bytes)

    @cached_property
    def n_bits(self) -> int:
        """The width of the integers that sums need, about: 32, 64 or more."""
        bound = max(laid.bound for laid in self.outputs) + max(map(abs, self.bases))
        return 32 if bound < 2**28 else 64 if bound < 2**60 else 64 * self.outputs[0].n_limbs

    @property
    def is_rounded(self) -> bool:
        """Whether sums of more than 64 bits are decided by rounded ones first."""
        is_apart = self.kind == "flip" or (self.kind == "gap" and min(self.thresholds) > 0)
        return self.n_bits > 64 and is_apart

    def joined(self, others: Sequence[CornerQuestion]) -> CornerQuestion:
        """Return one question with the thresholds of all that differ in theirs alone."""
        thresholds = [*self.thresholds]
        thresholds += [t for other in others if other.key == self.key for t in other.thresholds]
        return replace(self, thresholds=tuple(dict.fromkeys(thresholds)))

    @property
    def key(self) -> tuple[Any, ...]:
        """What questions that one visit answers have in common: all but the thresholds."""
        return tuple(getattr(self, f.name) for f in fields(self) if f.name != "thresholds")

    def sums(
        self,
        weights: Sequence[NDArray[np.float64]] | None = None,
        on_pause: Callable[[], None] | None = None,
        *,
        max_bytes: int = MAX_BYTES,
        seconds: float = math.inf,
    ) -> _core.CornerSums:
        """Return what counts, block by block; with weights, also the shares of the masks.

        Raises:
            TimeoutError: it was not made in time.
            BudgetError: it does not fit.
        """
        given = None
        if weights is not None:
            given = [np.ascontiguousarray(w, dtype=np.float64) for w in weights]
        forests = [laid.forest for laid in self.outputs]
        bases = [self._limbs(base) for base in self.bases]
        changes = [self._change(threshold) for threshold in self.thresholds]
        return _core.CornerSums(
            forests,
            bases,
            self.masks,
            changes,
            given,
            max_bytes,
            seconds=seconds,
            on_pause=on_pause,
        )

    def _change(self, threshold: int) -> _core.Change:
        if self.kind == "largest":
            return _core.Change.largest()
        make = _core.Change.gap if self.kind == "gap" else _core.Change.flip
        return make(self._limbs(threshold))

    def _limbs(self, value: int) -> NDArray[np.uint64]:
        limbs: NDArray[np.uint64] = to_limbs([value], self.outputs[0].n_limbs)[0]
        return limbs
