"""What every counter is: a :class:`Problem` in, a :class:`Tally` out, under :class:`Settings`."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from xcount.counters.tally import Tally
from xcount.problem.problem import Problem
from xcount.question.share import Limit

DEFAULT_MEMORY_BYTES = 4 * 2**30
_LEAST_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Progress:
    """A snapshot of a run: what is known so far, for people and for progress bars."""

    fraction: float
    low: int
    high: int
    message: str = ""


Unit = Callable[[Any, Callable[[], None]], Any]
"""A piece of a count's work, ready to be sent: called with the tool it needs (a problem, a sampler)
and with what raises KeyboardInterrupt as soon as nobody wants the answer any more."""


class Crew(Protocol):
    """Workers elsewhere who have the tool for the units of one kind of work."""

    @property
    def n_workers(self) -> int: ...
    def submit(self, label: Any, unit: Unit) -> None: ...
    def collect(self, seconds: float) -> list[tuple[Any, Any]]:
        """Return the labels and answers of what has ended; wait at most that long for one."""
        ...

    def cancel(self) -> None:
        """Give up what is under way."""
        ...


class Helpers(Protocol):
    """Who may take over work of a count that goes on for long; the answer is the same."""

    def are_free(self) -> bool: ...
    def crew(self, tool: Any, recipe: Callable[[], Any]) -> Crew:
        """Return workers who make the tool again by the recipe, which can be sent."""
        ...


@dataclass(frozen=True, slots=True)
class Settings:
    """How to count: accuracy, limits, seed. What to count is the query."""

    epsilon: float = 0.1
    delta: float = 0.1
    seed: int = 0
    timeout_seconds: float | None = None
    memory_bytes: int | None = None
    jobs: int = 0
    max_share: Limit | None = None
    want_profile: bool = False
    on_progress: Callable[[Progress], None] | None = None
    helpers: Helpers | None = None
    started: float = field(default_factory=time.monotonic)

    @property
    def n_threads(self) -> int:
        return self.jobs if self.jobs > 0 else os.cpu_count() or 1

    def seconds_left(self) -> float | None:
        """Return the time until the limit, never negative; None without a limit."""
        if self.timeout_seconds is None:
            return None
        return max(0.0, self.started + self.timeout_seconds - time.monotonic())

    def expired(self) -> bool:
        return self.seconds_left() == 0.0

    def report(self, progress: Progress) -> None:
        """Tell whoever listens how far the run is."""
        if self.on_progress is not None:
            self.on_progress(progress)

    def free_bytes(self) -> int:
        """Return the memory that a counter's tables may take on top of what the process holds."""
        return free_bytes(self.memory_bytes)


def held_memory_bytes() -> int:
    """Return the memory that the process holds now, not its peak: earlier counts are over."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        # Systems without /proc only tell the peak: in kilobytes, on macOS in bytes.
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return pages * resource.getpagesize()


def free_bytes(limit: int | None) -> int:
    """Return what is left of a limit of memory, or of the default one; never next to nothing."""
    return max(_LEAST_BYTES, (limit or DEFAULT_MEMORY_BYTES) - held_memory_bytes())


class Counter(Protocol):
    """A way of counting."""

    def __call__(self, problem: Problem, settings: Settings) -> Tally: ...
