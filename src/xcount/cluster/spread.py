"""The work of a long count in units that workers elsewhere can do, with the numbers of one machine.

Exact counting is many independent subproblems; sampling is batches of numbered random numbers; a
visit of all regions is numbered blocks. None depends on who does it, nor on when the helpers were
called: results are put in the order of their subproblems, batches and blocks are taken in the order
of their numbers.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from xcount import _core
from xcount.counters.engine import (
    BlockCounts,
    Draws,
    Outcomes,
    Solved,
    Tuning,
    Visit,
    Weights,
)
from xcount.counters.sampling.estimator import next_look
from xcount.counters.settings import free_bytes
from xcount.problem.form import PairSpace
from xcount.problem.subproblem import Pair, Subproblem

UNIT_SECONDS = 0.5
"""How long a unit should take: long beside the cost of sending it, short beside the whole count."""

_POLL_SECONDS = 0.1
_SECONDS_PER_STEP = 3e-8
_UNKNOWN: Solved = ("cancelled", 0, 1, 0, 0)

Unit = Callable[[Any, Callable[[], None]], Any]
"""A piece of a count's work, ready to be sent: called with the tool it needs (what counts, what
draws) and with what raises KeyboardInterrupt as soon as nobody wants the answer any more."""


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
    def crew(self, tool: Any) -> Crew:
        """Return workers who have the tool, which can be sent."""
        ...


@dataclass(frozen=True, slots=True)
class SpreadEngine:
    """Does the work here until helpers are free, and then with them."""

    helpers: Helpers

    def solver(
        self, space: PairSpace, memory_bytes: int | None, weights: Weights | None
    ) -> SpreadSolver:
        return SpreadSolver(Counting(space, weights), memory_bytes, self.helpers)

    def batches(
        self, draws: Draws, key: tuple[int, int], span: tuple[int, int, int], n_threads: int
    ) -> SpreadDraws | None:
        if not self.helpers.are_free():
            return None
        first, end, per_second = span
        spans = spans_between(first, end, next_look, max(1, int(UNIT_SECONDS * per_second)))
        return SpreadDraws(self.helpers.crew(draws), key, spans, n_threads)

    def blocks(
        self, visit: Visit, sums: _core.CornerSums, span: tuple[int, int, float], n_threads: int
    ) -> SpreadBlocks | None:
        first, end, per_second = span
        size = max(1, int(UNIT_SECONDS * per_second))
        if end - first < 2 * size or not self.helpers.are_free():
            return None
        spans = ((at, min(size, end - at)) for at in range(first, end, size))
        return SpreadBlocks(self.helpers.crew(Visiting(visit, sums)), spans, n_threads)


@dataclass(frozen=True, slots=True)
class Counting:
    """What counts subproblems: it can be sent, the native counter is made where it is used."""

    space: PairSpace
    weights: Weights | None = None

    def counter(self) -> _core.ExactCounter:
        """Return a native counter."""
        return self.space.counter(self.weights)


@dataclass(frozen=True, slots=True)
class SolvingUnit:
    """A few subproblems, and the limits of each."""

    tasks: Sequence[Subproblem]
    max_steps: int
    n_threads: int
    memory_bytes: int | None
    tuning: Tuning

    def __call__(self, counting: Counting, check: Callable[[], None]) -> list[Solved]:
        counter = counting.counter()
        free = free_bytes(self.memory_bytes)
        n_masks = counting.space.n_masks
        counter.start(self.tasks, n_masks, self.max_steps, free, self.n_threads, *self.tuning)
        try:
            while not counter.wait(_POLL_SECONDS):
                check()
        finally:
            counter.cancel()
        return counter.results()


class SpreadSolver:
    """Solves tasks unit by unit: here, until helpers are free for those that are still waiting."""

    def __init__(self, counting: Counting, memory_bytes: int | None, helpers: Helpers) -> None:
        self._counting = counting
        self._helpers, self._memory_bytes = helpers, memory_bytes
        self._native = counting.counter()
        self._crew: Crew | None = None
        self._tasks: Sequence[Subproblem] = ()
        self._limits = (0, 0, 1)
        self._tuning = Tuning()
        self._results: list[Solved] = []
        self._waiting: deque[range] = deque()
        self._here: range | None = None
        self._n_away = self._n_done = 0

    @property
    def n_done(self) -> int:
        return self._n_done + (0 if self._here is None else self._native.n_done)

    def live(
        self,
        pairs: Sequence[Pair],
        n_threads: int,
        seconds: float,
        on_pause: Callable[[], None],
    ) -> list[int]:
        return self._native.live(pairs, n_threads, seconds, on_pause)

    def start(
        self,
        tasks: Sequence[Subproblem],
        n_masks: int,
        max_steps: int,
        max_bytes: int,
        n_threads: int,
        max_paths: int = Tuning().max_paths,
        memo_bytes: int = Tuning().memo_bytes,
    ) -> None:
        if n_masks != self._counting.space.n_masks:
            raise ValueError(f"{n_masks} masks are not the space's {self._counting.space.n_masks}")
        self._tasks, self._limits = tasks, (max_steps, max_bytes, n_threads)
        self._tuning = Tuning(max_paths, memo_bytes)
        self._results, self._n_done = [_UNKNOWN] * len(tasks), 0
        size = tasks_per_unit(len(tasks), max_steps, n_threads)
        self._waiting.extend(
            range(at, min(at + size, len(tasks))) for at in range(0, len(tasks), size)
        )

    def wait(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while self._n_done < len(self._tasks):
            self._begin()
            left = end - time.monotonic()
            self._take_ended(max(0.0, left))
            if left <= 0:
                break
        return self._n_done == len(self._tasks)

    def cancel(self) -> None:
        self._native.cancel()
        if self._here is not None:
            self._put(self._here, self._native.results())
            self._here = None
        if self._crew is not None:
            self._crew.cancel()
        self._waiting.clear()
        self._n_away = 0

    def results(self) -> list[Solved]:
        return self._results

    def _begin(self) -> None:
        """Send units to the helpers if there are any, else begin the next one here."""
        if self._crew is None and self._waiting and self._helpers.are_free():
            self._crew = self._helpers.crew(self._counting)
        max_steps, max_bytes, n_threads = self._limits
        while self._crew is not None and self._waiting and self._n_away < max_under_way(self._crew):
            span = self._waiting.popleft()
            tasks = [self._tasks[i] for i in span]
            unit = SolvingUnit(tasks, max_steps, n_threads, self._memory_bytes, self._tuning)
            self._crew.submit(span, unit)
            self._n_away += 1
        if self._crew is None and self._here is None and self._waiting:
            self._here = self._waiting.popleft()
            tasks = [self._tasks[i] for i in self._here]
            n_masks = self._counting.space.n_masks
            self._native.start(tasks, n_masks, max_steps, max_bytes, n_threads, *self._tuning)

    def _take_ended(self, seconds: float) -> None:
        if self._here is not None:
            if self._native.wait(min(seconds, _POLL_SECONDS / 4) if self._n_away else seconds):
                self._put(self._here, self._native.results())
                self._here = None
            seconds = 0.0
        if self._n_away and self._crew is not None:
            for span, results in self._crew.collect(seconds):
                self._n_away -= 1
                self._put(span, results)

    def _put(self, span: range, results: Sequence[Solved]) -> None:
        self._results[span.start : span.stop] = results
        self._n_done += len(span)


def max_under_way(crew: Crew) -> int:
    """Return how many units keep a crew busy while answers are on their way."""
    return 2 * crew.n_workers + 2


def tasks_per_unit(n_tasks: int, max_steps: int, n_threads: int) -> int:
    """Return how many tasks make a unit that takes no longer than it should, at the worst.

    Example:
        >>> tasks_per_unit(1000, 200_000, 1), tasks_per_unit(1000, 500_000_000, 1)
        (83, 1)
    """
    affordable = int(UNIT_SECONDS / (max_steps * _SECONDS_PER_STEP))
    return max(1, min(affordable, n_tasks)) * n_threads


@dataclass(frozen=True, slots=True)
class DrawingUnit:
    """Batches of samples, by their numbers."""

    seed: int
    stream: int
    first: int
    n: int
    n_threads: int
    seconds: float

    def __call__(self, draws: Any, check: Callable[[], None]) -> Outcomes:
        check()
        outcomes: Outcomes = draws.draw(
            self.seed, self.stream, self.first, self.n, self.n_threads, self.seconds, check
        )
        return outcomes


class InOrder:
    """Units that a crew works on ahead of time, taken in the order of their spans.

    Args:
        crew: who does them.
        spans: (number of the first, how many), in order.
    """

    def __init__(self, crew: Crew, spans: Iterator[tuple[int, int]]) -> None:
        self._crew, self._spans = crew, spans
        self._under_way: deque[tuple[int, int]] = deque()
        self._ready: dict[tuple[int, int], Any] = {}

    def take(self, seconds: float, unit: Callable[[int, int], Unit]) -> tuple[int, Any] | None:
        """Return how many the next span has, and its answer; None if it is not there in time."""
        n_missing = max_under_way(self._crew) - len(self._under_way)
        for span in islice(self._spans, max(0, n_missing)):
            self._crew.submit(span, unit(*span))
            self._under_way.append(span)
        if self._under_way[0] not in self._ready:
            self._ready.update(self._crew.collect(seconds))
        if self._under_way[0] not in self._ready:
            return None
        span = self._under_way.popleft()
        return span[1], self._ready.pop(span)

    def close(self) -> None:
        """Give up what is under way."""
        self._crew.cancel()


class SpreadDraws:
    """Batches that a crew draws, ahead of the look at them, taken in the order of their numbers.

    Args:
        crew: has what draws.
        key: seed and stream.
        spans: which batches to draw: (number of the first, how many), without an end.
        n_threads: of each unit.
    """

    def __init__(
        self, crew: Crew, key: tuple[int, int], spans: Iterator[tuple[int, int]], n_threads: int
    ) -> None:
        self._units, self._key, self._n_threads = InOrder(crew, spans), key, n_threads

    def take(self, seconds: float, seconds_left: float) -> tuple[int, Outcomes] | None:
        """Return the next batches and how many they are; None if they are not there in time."""

        def unit(first: int, n: int) -> DrawingUnit:
            return DrawingUnit(*self._key, first, n, self._n_threads, seconds_left)

        return self._units.take(seconds, unit)

    def close(self) -> None:
        """Give up what was drawn ahead."""
        self._units.close()


class Visiting:
    """What visits regions: it can be sent, and lists its corners once in each process."""

    def __init__(self, visit: Visit, sums: _core.CornerSums | None = None) -> None:
        self._visit, self._sums = visit, sums
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[Visiting], tuple[Visit]]:
        return Visiting, (self._visit,)

    def sums(self, check: Callable[[], None]) -> _core.CornerSums:
        """Return what counts; make it if need be."""
        with self._lock:
            if self._sums is None:
                visit = self._visit
                free = free_bytes(visit.memory_bytes)
                self._sums = visit.question.sums(visit.weights, check, max_bytes=free)
            return self._sums


@dataclass(frozen=True, slots=True)
class VisitingUnit:
    """Blocks of regions, by their numbers."""

    first: int
    n: int
    n_threads: int

    def __call__(self, visiting: Visiting, check: Callable[[], None]) -> BlockCounts:
        sums = visiting.sums(check)
        return sums.count(self.first, self.first + self.n, self.n_threads, on_pause=check)


class SpreadBlocks:
    """Blocks that a crew counts, taken in the order of their numbers.

    Args:
        crew: has what counts.
        spans: which blocks to count: (number of the first, how many).
        n_threads: of each unit.
    """

    def __init__(self, crew: Crew, spans: Iterator[tuple[int, int]], n_threads: int) -> None:
        self._units, self._n_threads = InOrder(crew, spans), n_threads

    def take(self, seconds: float) -> BlockCounts | None:
        """Return the counts of the next blocks; None if they are not there in time."""
        taken = self._units.take(seconds, lambda at, n: VisitingUnit(at, n, self._n_threads))
        return None if taken is None else taken[1]

    def close(self) -> None:
        """Give up what is under way."""
        self._units.close()


def spans_between(
    first: int, end: int, look_after: Callable[[int], int], size: int
) -> Iterator[tuple[int, int]]:
    """Yield spans of at most ``size`` batches, none of which has a look in its middle.

    Example:
        >>> from itertools import islice
        >>> list(islice(spans_between(7, 10, lambda n: n + 4, 3), 3))
        [(7, 3), (10, 3), (13, 1)]
    """
    while True:
        while first < end:
            n = min(size, end - first)
            yield first, n
            first += n
        end = look_after(end)
