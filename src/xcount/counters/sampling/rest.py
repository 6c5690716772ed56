"""What is left to estimate, after what was counted exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xcount.counters.bounds import Bounds
from xcount.counters.exact import ExactRun
from xcount.problem.problem import Problem
from xcount.problem.subproblem import Pair


@dataclass(frozen=True, slots=True)
class Rest:
    """What is left to estimate.

    Attributes:
        solved: the sensitive regions of all other masks.
        unresolved: the masks to estimate.
        pairs: the pairs of masks that may differ by more than the gap and touch an unresolved
            mask; None for all neighbours.
        known: bounds of the whole count that hold in any case.
    """

    solved: int
    unresolved: Sequence[int]
    pairs: Sequence[Pair] | None
    known: Bounds

    @classmethod
    def everything(cls, problem: Problem) -> Rest:
        """Return all masks as the rest."""
        return cls(0, range(problem.n_masks), None, Bounds(0, problem.n_regions))

    @classmethod
    def of(cls, run: ExactRun) -> Rest:
        """Return what an exact run leaves open."""
        unresolved = run.unsolved_masks()
        is_open = set(unresolved)
        bounds = zip(run.masks, run.all_mask_bounds(), strict=True)
        solved = sum(low for mask, (low, _) in bounds if mask not in is_open)
        return cls(solved, unresolved, run.open_pairs(), Bounds(*run.bounds()))

    @property
    def n_unresolved(self) -> int:
        """The number of unresolved masks; a range may be longer than ``len`` can say."""
        masks = self.unresolved
        return masks.stop - masks.start if isinstance(masks, range) else len(masks)
