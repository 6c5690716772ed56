"""How to count: accuracy, limits, seed and engine. The query says what to count."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from numpy.typing import NDArray

from xcount.counters.costs import THRESHOLDS, Thresholds
from xcount.counters.engine import LOCAL, Engine
from xcount.counters.tally import Progress, Tally
from xcount.errors import QueryWarning
from xcount.problem.problem import Problem
from xcount.question.query import Query
from xcount.question.share import Limit
from xcount.support.parse import open_share, whole_number
from xcount.support.process import held_memory_bytes

DEFAULT_TIMEOUT_SECONDS = 60.0
"""Default time limit of one count among many."""
DEFAULT_MEMORY_BYTES = 4 * 2**30
MOST_JOBS = 1024
"""Most threads accepted; a larger number is a typo."""
_LEAST_BYTES = 16 * 2**20
LEAST_MEMORY_BYTES = 10**6
"""Least memory limit accepted; a smaller number lacks its unit."""
LEAST_DELTA = 1e-12
"""Least delta accepted; below it, the float 1 - delta would be 1."""
LEAST_READING_SECONDS = 0.1
"""No warning about the reading time is given for time limits shorter than this."""


@dataclass(frozen=True, slots=True)
class Companions:
    """Queries about one model and grid that one visit of all regions may answer together.

    Attributes:
        queries: in the order in which they are counted, one after the other.
        counts: the counts of the masks found by visits, by question and change.
    """

    queries: Sequence[Query]
    counts: dict[tuple[Any, Any], NDArray[Any]] = field(default_factory=dict)


@dataclass(slots=True)
class TimeCuts:
    """What the time limit ended early, or left out, in one count.

    Without any of it, an answer is the same on every machine.

    Attributes:
        exact: exact counting or a visit of all regions, which might have found the answer.
        samples: a pilot or a cover, which choose what an estimate draws.
    """

    exact: bool = False
    samples: bool = False

    def told_by(self, tally: Tally) -> Tally:
        """Return a tally that says what was cut short, unless it is exact all the same."""
        if tally.low == tally.high:
            return tally
        return replace(tally, details={**tally.details, **self.details()})

    def details(self) -> dict[str, bool]:
        """Return these facts for the details of an estimate."""
        facts = {"exact_cut_short": self.exact, "samples_cut_short": self.samples}
        return {name: True for name, is_so in facts.items() if is_so}


@dataclass(frozen=True, slots=True)
class Settings:
    """How to count. The clock of the time limit starts when the settings are made.

    Attributes:
        epsilon: allowed relative error.
        delta: allowed probability that an interval is wrong.
        seed: seed of all random choices.
        timeout_seconds: when to stop, with the bounds found so far.
        memory_bytes: the memory at which to stop.
        jobs: threads; 0 for all cores.
        max_share: the largest allowed share: once the verdict is decided, the run may stop.
        judge: the measure of that share; counters judge only ``regions``.
        want_profile: whether to break the count down by cells.
        on_progress: called a few times a second; an exception ends the count.
        engine: solves subproblems, draws samples and visits regions.
        companions: queries that may share a visit with the one that is counted.
        may_visit: whether counters other than ``brute`` may visit all regions if that is quicker.
        thresholds: the values by which counters decide what to do next.
        started: when the clock started.
        cuts: what the time limit cut short; settings made from these add to it.
    """

    epsilon: float = 0.1
    delta: float = 0.1
    seed: int = 0
    timeout_seconds: float | None = None
    memory_bytes: int | None = None
    jobs: int = 0
    max_share: Limit | None = None
    judge: str = "regions"
    want_profile: bool = False
    on_progress: Callable[[Progress], None] | None = None
    engine: Engine = LOCAL
    companions: Companions | None = None
    may_visit: bool = True
    thresholds: Thresholds = THRESHOLDS
    started: float = field(default_factory=time.monotonic)
    cuts: TimeCuts = field(default_factory=TimeCuts, compare=False)

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta"):
            open_share(getattr(self, name), name)
        whole_number(self.jobs, "number of jobs", most=MOST_JOBS)

    @property
    def n_threads(self) -> int:
        return self.jobs if self.jobs > 0 else os.cpu_count() or 1

    def seconds_left(self) -> float | None:
        """Return the time until the limit, never negative; None without a limit."""
        if self.timeout_seconds is None:
            return None
        return max(0.0, self.started + self.timeout_seconds - time.monotonic())

    def search_seconds(self) -> float:
        """Return the time until the limit as a number; infinite without one."""
        left = self.seconds_left()
        return math.inf if left is None else left

    def expired(self) -> bool:
        return self.seconds_left() == 0.0

    def within(self, part: float, least: float = 0.0, default: float | None = None) -> Settings:
        """Return the same settings with a part of the time that is left.

        Args:
            part: the part of the time left.
            least: the least time, even if less is left.
            default: the time if there is no limit.
        """
        left = self.seconds_left()
        seconds = default if left is None else max(least, part * left)
        return replace(self, timeout_seconds=seconds, started=time.monotonic())

    def for_one_answer(self) -> Settings:
        """Return the same settings with a record of their own of what the time limit cuts short."""
        return replace(self, cuts=TimeCuts())

    def restarted(self) -> Settings:
        """Return the same settings with all of their time: for another count, or machine."""
        return replace(self, started=time.monotonic())

    def report(self, progress: Progress) -> None:
        """Report the progress of the run to the listener, if there is one."""
        if self.on_progress is not None:
            self.on_progress(progress)

    def check_memory(self) -> None:
        """Warn if the process exceeds the memory limit before it counts."""
        held = held_memory_bytes()
        if self.memory_bytes is not None and held > self.memory_bytes:
            warnings.warn(
                f"the process holds {held / 1e6:.0f} MB already, model included, more than the "
                f"{self.memory_bytes / 1e6:.3g} MB of --memory: counting gets "
                f"{_LEAST_BYTES / 1e6:.0f} MB on top at most, and may have to stop at once",
                QueryWarning,
                stacklevel=3,
            )

    def check_time(self) -> None:
        """Warn if reading the model has taken all of the time."""
        taken = time.monotonic() - self.started
        if self.expired() and taken >= LEAST_READING_SECONDS:
            warnings.warn(
                f"reading the model took {taken:.1f} s, all of the time "
                f"limit; raise --timeout for bounds that are worth more",
                QueryWarning,
                stacklevel=3,
            )

    def free_bytes(self) -> int:
        """Return the memory that a counter's tables may take in addition to the process's own."""
        return free_bytes(self.memory_bytes)


def free_bytes(limit: int | None) -> int:
    """Return what is left of a memory limit, or of the default one, with a minimum."""
    return max(_LEAST_BYTES, (limit or DEFAULT_MEMORY_BYTES) - held_memory_bytes())


class Counter(Protocol):
    """A way of counting: a problem in, a tally out."""

    def __call__(self, problem: Problem, settings: Settings) -> Tally: ...
