"""A long count in units of work for other workers, with the same numbers as on one machine.

Exact counting consists of many independent subproblems, sampling of numbered batches of random
numbers, a visit of all regions of numbered blocks. No result depends on which worker computes it or
when helpers join: results are stored in the order of their subproblems, and batches and blocks are
used in the order of their numbers.
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
from xcount.counters import costs
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
"""How long a unit should take: long compared to sending it, short compared to the whole count."""

_POLL_SECONDS = 0.1
_UNKNOWN: Solved = ("cancelled", 0, 1, 0, 0)

Unit = Callable[[Any, Callable[[], None]], Any]
"""A unit of work that can be sent: called with the tool it needs (a counter or sampler) and with a
check that raises KeyboardInterrupt as soon as the answer is no longer wanted."""


class Crew(Protocol):
    """Remote workers that have the tool for one kind of units."""

    @property
    def n_workers(self) -> int: ...
    def submit(self, label: Any, unit: Unit) -> None: ...
    def collect(self, seconds: float) -> list[tuple[Any, Any]]:
        """Return labels and answers of finished units; wait at most that long for one."""
        ...

    def cancel(self) -> None:
        """Cancel all running units."""
        ...


class Helpers(Protocol):
    """Workers that may take over units of a long count; the answer is the same."""

    def are_free(self) -> bool: ...
    def crew(self, tool: Any) -> Crew:
        """Send the tool to workers, and return them."""
        ...


@dataclass(frozen=True, slots=True)
class SpreadEngine:
    """Works locally until helpers are free, then with them."""

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
    """A counter of subproblems that can be sent: the native one is made where it is used."""

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
    """Solves tasks unit by unit: locally, until helpers are free for the remaining ones."""

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
        """Send units to the helpers if there are any, else start the next one here."""
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
    """Return how many units keep a crew busy while answers are in transit."""
    return 2 * crew.n_workers + 2


def tasks_per_unit(n_tasks: int, max_steps: int, n_threads: int) -> int:
    """Return how many tasks make a unit that stays within its time in the worst case.

    Example:
        >>> tasks_per_unit(1000, 200_000, 1), tasks_per_unit(1000, 500_000_000, 1)
        (83, 1)
    """
    affordable = int(UNIT_SECONDS / (max_steps * costs.SECONDS_PER_STEP))
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
        crew: the workers.
        spans: (number of the first, how many), in order.
    """

    def __init__(self, crew: Crew, spans: Iterator[tuple[int, int]]) -> None:
        self._crew, self._spans = crew, spans
        self._under_way: deque[tuple[int, int]] = deque()
        self._ready: dict[tuple[int, int], Any] = {}

    def take(self, seconds: float, unit: Callable[[int, int], Unit]) -> tuple[int, Any] | None:
        """Return the length of the next span, and its answer; None if it is not ready in time."""
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
        """Cancel all running units."""
        self._crew.cancel()


class SpreadDraws:
    """Batches that a crew draws ahead of their use, taken in the order of their numbers.

    Args:
        crew: workers with the sampler.
        key: seed and stream.
        spans: which batches to draw: (number of the first, how many), without an end.
        n_threads: of each unit.
    """

    def __init__(
        self, crew: Crew, key: tuple[int, int], spans: Iterator[tuple[int, int]], n_threads: int
    ) -> None:
        self._units, self._key, self._n_threads = InOrder(crew, spans), key, n_threads

    def take(self, seconds: float, seconds_left: float) -> tuple[int, Outcomes] | None:
        """Return the number of the next batches, and them; None if they are not ready in time."""

        def unit(first: int, n: int) -> DrawingUnit:
            return DrawingUnit(*self._key, first, n, self._n_threads, seconds_left)

        return self._units.take(seconds, unit)

    def close(self) -> None:
        """Cancel the batches drawn ahead."""
        self._units.close()


class Visiting:
    """A visit of regions that can be sent, and lists its corners once in each process."""

    def __init__(self, visit: Visit, sums: _core.CornerSums | None = None) -> None:
        self._visit, self._sums = visit, sums
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[Visiting], tuple[Visit]]:
        return Visiting, (self._visit,)

    def sums(self, check: Callable[[], None]) -> _core.CornerSums:
        """Return the native corner sums; make them on first use."""
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
        crew: workers with the corner sums.
        spans: which blocks to count: (number of the first, how many).
        n_threads: of each unit.
    """

    def __init__(self, crew: Crew, spans: Iterator[tuple[int, int]], n_threads: int) -> None:
        self._units, self._n_threads = InOrder(crew, spans), n_threads

    def take(self, seconds: float) -> BlockCounts | None:
        """Return the counts of the next blocks; None if they are not ready in time."""
        taken = self._units.take(seconds, lambda at, n: VisitingUnit(at, n, self._n_threads))
        return None if taken is None else taken[1]

    def close(self) -> None:
        """Cancel all running units."""
        self._units.close()


def spans_between(
    first: int, end: int, look_after: Callable[[int], int], size: int
) -> Iterator[tuple[int, int]]:
    """Yield spans of at most ``size`` batches, none with a look inside it.

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
