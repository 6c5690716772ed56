"""A cover of what is undecided: solved states are proved, the open ones are drawn from.

Where hits are rare, refining a cover first saves samples: what it proves is certain, and what is
left open holds more of the hits than the whole.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property

from xcount import _core
from xcount.counters.sampling.draws import NativeDraws
from xcount.counters.sampling.estimator import FLOAT_MARGIN, Ground
from xcount.counters.sampling.pilot import Pilot
from xcount.counters.sampling.rest import Rest
from xcount.errors import ClusterError
from xcount.problem.form import PairSpace
from xcount.problem.problem import Problem
from xcount.problem.subproblem import Pair

_WORK_PER_SLICE = 2_000_000
_EXACT_REGIONS = 2**30
"""Up to here, volumes (53 significant bits or more) tell whole numbers of regions apart."""


class CoverDraws(NativeDraws):
    """Samples from the open states of a cover of the rest.

    Elsewhere the same cover is made again by the same steps of refinement.

    Args:
        space: the masks.
        rest: what is to be covered.
    """

    def __init__(self, space: PairSpace, rest: Rest) -> None:
        self._space = space
        self._tasks = cover_tasks(rest)
        self._steps: list[int] = []
        self._work = 0

    @cached_property
    def _native(self) -> _core.Cover:
        space = self._space
        cover = _core.Cover(space.forest, space.masks, space.threshold_limbs, self._tasks)
        for step in self._steps:
            cover.refine(step, math.inf, 1)
        cover.freeze()
        if self._steps and cover.work != self._work:
            raise ClusterError(
                f"a worker's cover took {cover.work} steps instead of {self._work}: its build of "
                "xcount differs; install the same one everywhere"
            )
        return cover

    @property
    def seconds_per_sample(self) -> float:
        return self._native.seconds_per_sample

    @property
    def n_expanded(self) -> int:
        return self._native.n_expanded

    @property
    def n_bytes(self) -> int:
        return self._native.n_bytes

    @property
    def work(self) -> int:
        return self._native.work

    @property
    def is_decided(self) -> bool:
        """Whether nothing is left open."""
        return self._native.open[0] == 0

    def refine(
        self, target: int, deadline: float, n_threads: int, on_pause: Callable[[], None]
    ) -> None:
        """Refine in slices, until so much work is done, nothing is left, or the time is up."""
        cover = self._native
        while (before := cover.work) < target and (left := deadline - time.monotonic()) > 0:
            self._steps.append(min(_WORK_PER_SLICE, target - before))
            cover.refine(self._steps[-1], left, n_threads)
            on_pause()
            if cover.work == before:
                break
        cover.freeze()
        self._work = cover.work

    def ground(self, problem: Problem, rest: Rest) -> Ground:
        """Return what the cover proves, rounded outwards."""
        n = problem.n_combinations
        solved, undecided = (
            Fraction(mantissa) * Fraction(2) ** exponent * n
            for mantissa, exponent in (self._native.solved, self._native.open)
        )
        certain, slack = _rounded(solved)
        rest_low, rest_slack = _rounded(undecided)
        whole = rest_low + rest_slack
        return Ground(rest.solved + certain, whole, rest.known, problem.n_regions, slack)


def cover_tasks(rest: Rest) -> list[tuple[list[Pair], int]]:
    """Group the unresolved masks by their pairs: masks with the same pairs share a task."""
    pairs_of: dict[int, list[Pair]] = {mask: [] for mask in rest.unresolved}
    for pair in rest.pairs or ():
        for mask in pair:
            if mask in pairs_of:
                pairs_of[mask].append(pair)
    groups = Counter(tuple(pairs) for pairs in pairs_of.values() if pairs)
    return [(list(pairs), multiplicity) for pairs, multiplicity in sorted(groups.items())]


def pooled(plain_pilot: Pilot, plain: Ground, pilot: Pilot, ground: Ground) -> Pilot:
    """Return what a cover's pilot says together with that of plain samples.

    Plain samples count by the part of their ground that is still open, their hits without those
    that the cover has proved since.
    """
    part = float(Fraction(ground.undecided, plain.undecided))
    proved = float(Fraction(ground.certain - plain.certain, plain.undecided))
    n = plain_pilot.n * part + pilot.n
    hits = max(0.0, plain_pilot.mean - proved) * plain_pilot.n + pilot.mean * pilot.n
    mean = min(1.0, hits / n)
    return Pilot(max(1, round(n)), mean, mean * (1 - mean))


def _rounded(regions: Fraction) -> tuple[int, int]:
    """Return a number of regions from below, and how much larger it may be."""
    if regions < _EXACT_REGIONS:
        return round(regions), 0
    low = math.floor(regions * (1 - FLOAT_MARGIN))
    return low, math.ceil(regions * (1 + FLOAT_MARGIN)) - low
