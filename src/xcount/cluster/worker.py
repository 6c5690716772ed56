"""The code that runs on a cluster's workers: counts, and units of long counts.

A count runs on one worker. When it has run for ``PATIENCE_SECONDS`` and no other count is waiting
for a worker, it gives up its thread, hands out its work to all workers in units (see
:mod:`xcount.cluster.spread`), and combines their answers. Units of about half a second keep all
workers busy until the end, and if a worker dies, only its units are lost.
"""

from __future__ import annotations

import pickle
import queue
import threading
import time
import uuid
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from xcount.answers.count import solve, versions
from xcount.answers.explanation import ExplanationRequest
from xcount.answers.result import CountResult
from xcount.cluster.spread import SpreadEngine, Unit
from xcount.counters.settings import Companions, Settings
from xcount.counters.tally import Progress
from xcount.errors import BudgetError, ClusterError
from xcount.measures.weighting import Weighing
from xcount.problem.problem import Problem
from xcount.runs.task import Question, families

if TYPE_CHECKING:
    from distributed import Client, Future

PATIENCE_SECONDS = 1.0
"""How long a count runs before it asks for help, and how often it asks again."""

LINE_SECONDS = 0.5
"""How often a single count reports its progress."""

UNIT_PRIORITY = 1
"""Units come before counts that have not started: started counts are finished first."""

_RECOUNT_SECONDS = 2.0


class Flight:
    """Calls running on a cluster: submitted with a label, collected as they finish."""

    def __init__(self, client: Client, priority: int = 0) -> None:
        self._client, self._priority = client, priority
        self._running: dict[Future, Any] = {}
        self._ended: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self._failures: list[Exception] = []
        self._n_threads, self._recount_at = 1, 0.0

    def __len__(self) -> int:
        return len(self._running) + len(self._failures)

    @property
    def n_threads(self) -> int:
        """The threads of all workers, as they were a moment ago."""
        if time.monotonic() >= self._recount_at and self._client.status == "running":
            self._n_threads = max(1, sum(self._client.nthreads().values()))
            self._recount_at = time.monotonic() + _RECOUNT_SECONDS
        return self._n_threads

    def submit(self, label: Any, function: Callable[..., Any], *arguments: Any) -> None:
        future = self._client.submit(function, *arguments, pure=False, priority=self._priority)
        self._running[future] = label
        future.add_done_callback(self._ended.put)

    def collect(self, seconds: float) -> list[tuple[Any, Any]]:
        """Return labels and answers of finished calls; wait at most that long for the first.

        An error of a call is raised after the answers that came with it have been returned.
        """
        ended = [] if self._failures else self._take(seconds)
        answers = []
        try:
            for future in ended:
                answers += self._answer(future)
        except BaseException:  # an interrupt: finished calls are collected the next time
            for future in ended:
                self._ended.put(future)
            raise
        for future in ended:
            self._running.pop(future, None)
        if self._failures and not answers:
            raise self._failures.pop()
        return answers

    def _take(self, seconds: float) -> list[Future]:
        ended = []
        try:
            ended.append(self._ended.get(timeout=seconds))
            while True:
                ended.append(self._ended.get_nowait())
        except queue.Empty:
            return ended

    def _answer(self, future: Future) -> list[tuple[Any, Any]]:
        """Return a call's label and answer; an empty list if it was cancelled or failed."""
        if future not in self._running:
            return []
        try:
            return [(self._running[future], future.result())]
        except Exception as error:
            self._failures.append(error)
            return []

    def cancel(self) -> None:
        """Cancel all running calls."""
        if self._running and self._client.status == "running":
            self._client.cancel(list(self._running))
        self._running.clear()
        self._failures.clear()


def send(client: Client, function: Callable[..., Any], *arguments: Any) -> Future:
    """Put the result of a function on the cluster, once.

    It is sent as a task, not as scattered data: Dask can run a task again if the only worker that
    had its result dies.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
        return client.submit(function, *arguments, pure=False, priority=UNIT_PRIORITY)


def packed(value: object) -> bytes:
    """Return a value as it is sent."""
    return zlib.compress(pickle.dumps(value), 1)


def unpacked(data: bytes) -> Any:
    """Return the value that was sent."""
    return pickle.loads(zlib.decompress(data))


def version_differences(ours: Mapping[str, str], theirs: Mapping[str, str | None]) -> list[str]:
    """Return a worker's version differences in words; Python's third number does not matter.

    Example:
        >>> version_differences({"xcount": "1.0", "python": "3.11.7"},
        ...                     {"xcount": "0.9", "python": "3.11.2"})
        ['xcount 0.9 instead of 1.0']
    """
    differences = []
    for name, version in ours.items():
        other = theirs.get(name)
        n_parts = 2 if name == "python" else 99
        if other is None:
            differences.append(f"no {name}")
        elif other.split(".")[:n_parts] != version.split(".")[:n_parts]:
            differences.append(f"{name} {other} instead of {version}")
    return differences


def refuse(worker: str, differences: Sequence[str]) -> None:
    """Raise if there are any differences."""
    if differences:
        raise ClusterError(
            f"the worker at {worker} has {', '.join(differences)}: its counts might differ; "
            "install the same versions everywhere"
        )


# ---- counts ----


@dataclass(frozen=True, slots=True)
class Terms:
    """What a client requires of its workers.

    Attributes:
        versions: the versions they must have.
        n_threads: the threads of each count, and of each unit.
        call: name of the event that is set once no count is waiting for a worker.
        line: topic of one count's progress, and name of the event that stops it early.
    """

    versions: Mapping[str, str]
    n_threads: int
    call: str
    line: str = ""


def count_bundle(
    base: Problem, questions: Sequence[Question], terms: Terms
) -> list[CountResult | BudgetError]:
    """Run counts on a worker; if the method rejects one, the error is its answer."""
    from distributed import rejoin

    check = _checked_in(terms)

    def note(progress: Progress) -> None:
        check()

    companions = [Companions([])] * len(questions)
    for numbers in families(question.family for question in questions):
        together = Companions([questions[number].query for number in numbers])
        for number in numbers:
            companions[number] = together
    results: list[CountResult | BudgetError] = []
    with cancellation_as_error():
        for question, others in zip(questions, companions, strict=True):
            with WorkerHelpers(terms) as helpers:
                try:
                    engine = SpreadEngine(helpers)
                    results.append(question.answer(base, terms.n_threads, note, engine, others))
                except BudgetError as error:
                    results.append(error)
            if helpers.were_called and len(results) < len(questions):
                rejoin()
    return results


def count_one(
    problem: Problem,
    settings: Settings,
    method: str,
    weighing: Weighing | None,
    explain: ExplanationRequest | None,
    terms: Terms,
) -> CountResult:
    """Run one count on a worker and report its progress; the client may stop it early."""
    note = _Line(_checked_in(terms), terms).note
    with cancellation_as_error(), WorkerHelpers(terms) as helpers:
        settings = replace(
            settings.restarted(),  # clocks of different machines have nothing in common
            jobs=terms.n_threads,
            on_progress=note,
            engine=SpreadEngine(helpers),
        )
        return solve(problem, settings, method, weighing, explain)


class _Line:
    """Sends a count's progress to the client, and receives its request to stop."""

    def __init__(self, check: Callable[[], None], terms: Terms) -> None:
        self._check, self._line = check, terms.line
        self._next = time.monotonic() + LINE_SECONDS
        self._has_ended = False

    def note(self, progress: Progress) -> None:
        self._check()
        if time.monotonic() < self._next:
            return
        from distributed import Event, get_client, get_worker

        self._next = time.monotonic() + LINE_SECONDS
        get_worker().log_event(self._line, to_message(progress))
        if not self._has_ended and Event(self._line, get_client()).is_set():
            self._has_ended = True
            raise KeyboardInterrupt


def to_message(progress: Progress) -> list[Any]:
    """Return progress as a message: large counts are text (decimals have a limit)."""
    return [progress.fraction, hex(progress.low), hex(progress.high), progress.message]


def from_message(message: Sequence[Any]) -> Progress:
    """Return the progress in a message."""
    return Progress(message[0], int(message[1], 16), int(message[2], 16), message[3])


def _checked_in(terms: Terms) -> Callable[[], None]:
    """Reject other versions; return a check that interrupts a cancelled call, as Ctrl-C does.

    A Dask worker does not stop a call that runs in a thread when it is cancelled.
    """
    from distributed import get_worker

    worker = get_worker()
    refuse(worker.address, version_differences(terms.versions, versions()))
    key = worker.get_current_task()

    def check() -> None:
        state = worker.state.tasks.get(key)
        if state is None or state.state == "cancelled":
            raise KeyboardInterrupt

    return check


@contextmanager
def cancellation_as_error() -> Iterator[None]:
    """Turn the interrupt of a cancelled call into an error: it would stop the worker."""
    try:
        yield
    except KeyboardInterrupt:
        raise ClusterError("the call was cancelled") from None


# ---- units of one count ----

_TOOLS_HERE: dict[str, Any] = {}
"""The tools of counts that run in this process, for units that are sent back to it."""


class SharedTool:
    """A tool as it is sent: unpacked once on each worker that needs it.

    Dask keeps one of these on each such worker, and drops it when the count is over.
    """

    def __init__(self, key: str, data: bytes) -> None:
        self._key, self._data = key, data
        self._tool: Any = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[SharedTool], tuple[str, bytes]]:
        return SharedTool, (self._key, self._data)

    def get(self) -> Any:
        """Return the tool; unpack it on first use."""
        with self._lock:
            if self._tool is None:
                here = _TOOLS_HERE.get(self._key)
                self._tool = unpacked(self._data) if here is None else here
            return self._tool


def do_unit(tool: SharedTool, unit: Unit, terms: Terms) -> Any:
    """Do one unit of a count on a worker."""
    check = _checked_in(terms)
    with cancellation_as_error():
        return unit(tool.get(), check)


class WorkerHelpers:
    """All workers as the helpers of one count that runs on one of them.

    A context manager that cancels running units and drops their tools.
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._ask_at = time.monotonic() + PATIENCE_SECONDS
        self._crews: list[WorkerCrew] = []
        self._are_free = False

    @property
    def were_called(self) -> bool:
        return bool(self._crews)

    def are_free(self) -> bool:
        """Return whether the count has run for long and no other count is waiting."""
        if not self._are_free and time.monotonic() >= self._ask_at:
            from distributed import Event, get_client

            client = get_client()
            n_threads = sum(client.nthreads().values())
            self._are_free = n_threads > 1 and Event(self._terms.call, client).is_set()
            self._ask_at = time.monotonic() + PATIENCE_SECONDS
        return self._are_free

    def crew(self, tool: Any) -> WorkerCrew:
        """Give up this worker thread, and return the workers for the units."""
        from distributed import get_client, secede

        if not self._crews:
            secede()
        crew = WorkerCrew(get_client(), tool, self._terms)
        self._crews.append(crew)
        return crew

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for crew in self._crews:
            crew.close()


class WorkerCrew:
    """The workers of a cluster, with the tool for one kind of units."""

    def __init__(self, client: Client, tool: Any, terms: Terms) -> None:
        self._key, self._terms = f"tool-{uuid.uuid4().hex}", terms
        _TOOLS_HERE[self._key] = tool
        self._shared: Future | None = send(client, SharedTool, self._key, packed(tool))
        self._flight = Flight(client, UNIT_PRIORITY)

    @property
    def n_workers(self) -> int:
        return self._flight.n_threads

    def submit(self, label: Any, unit: Unit) -> None:
        self._flight.submit(label, do_unit, self._shared, unit, self._terms)

    def collect(self, seconds: float) -> list[tuple[Any, Any]]:
        return self._flight.collect(seconds)

    def cancel(self) -> None:
        self._flight.cancel()

    def close(self) -> None:
        self._flight.cancel()
        self._shared = None
        _TOOLS_HERE.pop(self._key, None)
