"""A cover of what is undecided: solved states are proved, the open ones are drawn from.

Where hits are rare, refining a cover first saves samples: what it proves is certain, and what is
left open holds more of the hits than the whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property

from xcount import _core
from xcount.counters.cover import Refinement, counts, native_cover
from xcount.counters.engine import Tuning
from xcount.counters.sampling.draws import NativeDraws
from xcount.counters.sampling.estimator import KnownPart
from xcount.counters.sampling.pilot import Pilot
from xcount.counters.sampling.rest import Rest
from xcount.counters.settings import DEFAULT_MEMORY_BYTES
from xcount.errors import ClusterError
from xcount.problem.form import PairSpace
from xcount.problem.problem import Problem
from xcount.problem.subproblem import Pair, Subproblem


class CoverDraws(NativeDraws):
    """Samples from the open states of a cover of the rest.

    A sample is an open state drawn by its volume, then a combination of the cells in its box.
    Elsewhere the same cover is made again by the same slices of refinement.

    Args:
        space: the masks.
        rest: what is to be covered.
        max_bytes: what the cover may hold.
        tuning: how small states must be to be enumerated.
    """

    def __init__(
        self,
        space: PairSpace,
        rest: Rest,
        max_bytes: int = DEFAULT_MEMORY_BYTES // 2,
        tuning: Tuning | None = None,
    ) -> None:
        self._space = space
        self._tasks = cover_tasks(rest)
        self._max_bytes = max_bytes
        self._refinement = Refinement(tuning)

    @cached_property
    def _native(self) -> _core.Cover:
        cover = native_cover(self._space, self._tasks)
        self._refinement.repeat(cover)
        cover.freeze()
        if cover.work != self._refinement.work:
            raise ClusterError(
                f"a worker's cover took {cover.work} steps instead of {self._refinement.work}: its "
                "build of xcount differs; install the same one everywhere"
            )
        return cover

    @property
    def seconds_per_sample(self) -> float:
        return self._native.seconds_per_sample

    @property
    def n_states(self) -> int:
        """The number of states that are open."""
        return self._native.n_open

    @property
    def n_bytes(self) -> int:
        return self._native.n_bytes

    @property
    def work(self) -> int:
        return self._native.work

    @property
    def is_decided(self) -> bool:
        """Whether nothing is left open."""
        return self._native.n_open == 0

    @property
    def is_full(self) -> bool:
        """Whether memory ended the last refinement."""
        return self._native.is_full

    def refine(
        self, target: int, deadline: float, n_threads: int, on_pause: Callable[[], None]
    ) -> None:
        """Refine in slices, until so much work is done, nothing more fits, or the time is up."""
        cover = self._native
        self._refinement.run(cover, target, self._max_bytes, deadline, n_threads, on_pause)
        cover.freeze()

    def known_part(self, problem: Problem, rest: Rest) -> KnownPart:
        """Return what the cover proves, in whole regions."""
        known = counts(self._native, problem.n_combinations)
        times = [n_times for _, n_times in self._tasks]
        certain = sum(n * solved for n, (solved, _) in zip(times, known, strict=True))
        undecided = sum(n * unknown for n, (_, unknown) in zip(times, known, strict=True))
        return KnownPart(rest.solved + certain, undecided, rest.known, problem.n_regions)


def cover_tasks(rest: Rest) -> list[tuple[Subproblem, int]]:
    """Group the unresolved masks by their pairs: masks with the same pairs share a task."""
    pairs_of: dict[int, list[Pair]] = {mask: [] for mask in rest.unresolved}
    for pair in rest.pairs or ():
        for mask in pair:
            if mask in pairs_of:
                pairs_of[mask].append(pair)
    groups = Counter(tuple(pairs) for pairs in pairs_of.values() if pairs)
    return [(Subproblem(pairs), n_times) for pairs, n_times in sorted(groups.items())]


def pooled(plain_pilot: Pilot, plain: KnownPart, pilot: Pilot, known_part: KnownPart) -> Pilot:
    """Return what a cover's pilot says together with that of plain samples.

    Plain samples count by the part of their regions that is still open, their hits without those
    that the cover has proved since.
    """
    part = float(Fraction(known_part.undecided, plain.undecided))
    proved = float(Fraction(known_part.certain - plain.certain, plain.undecided))
    n = plain_pilot.n * part + pilot.n
    hits = max(0.0, plain_pilot.mean - proved) * plain_pilot.n + pilot.mean * pilot.n
    mean = min(1.0, hits / n)
    return Pilot(max(1, round(n)), mean, mean * (1 - mean))
