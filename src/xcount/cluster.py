"""The same counts on a Dask cluster: models are sent once, results stream back as they come.

The unit of work is one count; counts that take a fraction of a second travel in bundles of about
``BUNDLE_SECONDS`` (longer on hundreds of workers), so that scheduling costs little. A worker that
dies costs its bundle, which Dask runs again elsewhere; one that joins gets its share of what is
left. A count depends on the model, the question and the seed alone, so the numbers are those of
one machine; client and workers must have the same versions of what computes them.

Workers should have a thread per core: a count takes one thread unless ``jobs`` says otherwise.
"""

from __future__ import annotations

import pickle
import queue
import threading
import time
import warnings
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from xcount.counters.base import Progress
from xcount.counting import versions
from xcount.errors import ClusterError, MissingExtraError
from xcount.measures import Weighing
from xcount.plan import Options, Task
from xcount.query import Query
from xcount.result import CountResult
from xcount.subproblems import Problem

if TYPE_CHECKING:
    from distributed import Client, Future

BUNDLE_SECONDS = 0.5
"""How long a bundle of short counts should take: long beside Dask's cost of a few ms a task."""

MAX_BUNDLES_PER_SECOND = 100
"""What the scheduler, the client and the journal are asked to keep up with."""

MAX_BUNDLE = 256
CONNECT_SECONDS = 10.0
_TICK_SECONDS = 0.2
_RECOUNT_SECONDS = 2.0

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class _Question:
    """A task without its model, which is on the cluster already."""

    query: Query
    options: Options
    max_share: float | None
    weighing: Weighing | None
    n_witnesses: int


class Cluster:
    """A Dask cluster that counts; a context that cancels what it left unfinished.

    Example::

        with Cluster("tcp://scheduler:8786") as cluster:
            for results in cluster.counts(dict(enumerate(tasks)), threading.Event()):
                ...
    """

    def __init__(self, where: str | Client) -> None:
        """Connect, and refuse workers whose versions differ.

        Args:
            where: the scheduler's address, or a Dask client, which stays open.
        """
        self._is_own = isinstance(where, str)
        self.client = _connect(where) if isinstance(where, str) else where
        self.address = str(getattr(self.client.scheduler, "address", where))
        try:
            self._n_threads = _checked_threads(self.client, self.address)
        except BaseException:
            self.close()
            raise
        self._recount_at = time.monotonic() + _RECOUNT_SECONDS
        self._running: dict[Future, Any] = {}
        self._ended: queue.SimpleQueue[Future] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cancel()
        self.close()

    def counts(
        self, tasks: Mapping[int, Task], stop: threading.Event, jobs: int = 0
    ) -> Iterator[dict[int, CountResult]]:
        """Yield results by their tasks' numbers as they come, and nothing a few times a second.

        When ``stop`` is set, what is going on is cancelled and the rest left out.
        """
        bases = {id(task.base): task.base for task in tasks.values()}
        models = {number: self._send(base) for number, base in bases.items()}
        # Tasks about one model stand together: a bundle has one model.
        waiting = deque(sorted(tasks, key=lambda index: list(bases).index(id(tasks[index].base))))
        pace = _Pace()

        def submit() -> tuple[Future, list[int]]:
            bundle = _next_bundle(waiting, tasks, pace.bundle_size(len(waiting), self._n_threads))
            questions = [
                _Question(task.query, task.options, task.max_share, task.weighing, task.n_witnesses)
                for task in (tasks[index] for index in bundle)
            ]
            model = models[id(tasks[bundle[0]].base)]
            future = self.client.submit(
                _count_bundle, model, questions, max(1, jobs), versions(), pure=False
            )
            return future, bundle

        for ended in self._stream(submit, lambda: bool(waiting) and not stop.is_set()):
            if stop.is_set():
                return
            results = {} if ended is None else dict(zip(*ended, strict=True))
            for result in results.values():
                pace.note(result.seconds)
            yield results

    def map(
        self, function: Callable[[Item], Answer], items: Iterable[Item]
    ) -> Iterator[tuple[int, Answer]]:
        """Yield ``(index, function(item))`` for every item, in the order in which they end."""
        waiting = deque(enumerate(items))

        def submit() -> tuple[Future, int]:
            index, item = waiting.popleft()
            return self.client.submit(function, item, pure=False), index

        for ended in self._stream(submit, lambda: bool(waiting)):
            if ended is not None:
                yield ended

    def cancel(self) -> None:
        """Stop what is still going on."""
        if self._running and self.client.status == "running":
            self.client.cancel(list(self._running))
        self._running.clear()

    def close(self) -> None:
        """Leave the cluster; a client that was given stays open."""
        if self._is_own:
            self.client.close(timeout=1)

    def _send(self, base: Problem) -> Future:
        """Put a model on the cluster, once.

        As a task that unpacks it, not as scattered data: Dask can run a task again when the only
        worker that had its result dies.
        """
        packed = zlib.compress(pickle.dumps(base), 1)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
            return self.client.submit(_unpack, packed, pure=False)

    def _stream(
        self, submit: Callable[[], tuple[Future, Any]], has_more: Callable[[], bool]
    ) -> Iterator[tuple[Any, Any] | None]:
        """Keep all workers busy; yield what ``submit`` said and the answer, or None for a tick."""
        while has_more() or self._running:
            while has_more() and len(self._running) < 2 * self._n_threads + 2:
                future, label = submit()
                self._running[future] = label
                future.add_done_callback(self._ended.put)
            future = self._next_ended()
            if future is None:
                yield None
            elif future in self._running:
                yield self._running.pop(future), self._answer(future)

    def _next_ended(self) -> Future | None:
        if time.monotonic() >= self._recount_at and self.client.status == "running":
            self._n_threads = max(1, sum(self.client.nthreads().values()))
            self._recount_at = time.monotonic() + _RECOUNT_SECONDS
        try:
            return self._ended.get(timeout=_TICK_SECONDS)
        except queue.Empty:
            return None

    def _answer(self, future: Future) -> Any:
        from distributed.scheduler import KilledWorker

        try:
            return future.result()
        except KilledWorker as error:
            raise ClusterError(
                f"several workers died while they counted, the last one {error.last_worker}: their "
                "memory may be too small; limit each count with --memory"
            ) from error
        except (CancelledError, OSError, TimeoutError) as error:
            raise ClusterError(
                f"the connection to the scheduler at {self.address} was lost; all finished "
                "results are kept, in the journal if there is one: start the scheduler again, "
                "then continue with --resume"
            ) from error


class _Pace:
    """How long counts take, and so how many make a bundle."""

    def __init__(self) -> None:
        self._seconds, self._n_counts = 0.0, 0

    def note(self, seconds: float) -> None:
        self._seconds += seconds
        self._n_counts += 1

    def bundle_size(self, n_waiting: int, n_threads: int) -> int:
        """Return how many counts go together: one until their time is known."""
        if not self._n_counts:
            return 1
        return bundle_size(self._seconds / self._n_counts, n_waiting, n_threads)


def bundle_size(mean_seconds: float, n_waiting: int, n_threads: int) -> int:
    """Return how many counts of that mean time make a bundle.

    Example:
        >>> bundle_size(0.05, n_waiting=10_000, n_threads=2)
        10
    """
    seconds = max(BUNDLE_SECONDS, n_threads / MAX_BUNDLES_PER_SECOND)
    # The last bundles stay small, or one worker would be busy while the others are done.
    fair = n_waiting // (4 * n_threads)
    paced = round(seconds / max(mean_seconds, seconds / MAX_BUNDLE))
    return max(1, min(paced, fair))


def _next_bundle(waiting: deque[int], tasks: Mapping[int, Task], size: int) -> list[int]:
    """Take up to ``size`` waiting tasks about one model."""
    bundle = [waiting.popleft()]
    base = tasks[bundle[0]].base
    while waiting and len(bundle) < size and tasks[waiting[0]].base is base:
        bundle.append(waiting.popleft())
    return bundle


def version_differences(ours: Mapping[str, str], theirs: Mapping[str, str | None]) -> list[str]:
    """Return in words where a worker differs; Python's third number does not matter.

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


def _connect(address: str) -> Client:
    try:
        from distributed import Client
        from distributed.versions import VersionMismatchWarning
    except ImportError:
        raise MissingExtraError(
            "a cluster needs the library distributed; install it with: "
            "pip install 'xcount[cluster]'"
        ) from None
    try:
        with warnings.catch_warnings():
            # What matters to a count is checked, and refused, below.
            warnings.simplefilter("ignore", VersionMismatchWarning)
            return Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {address} ({error}); start one with: dask scheduler"
        ) from error


def _checked_threads(client: Client, address: str) -> int:
    """Return the number of threads of all workers, having refused what cannot count with us."""
    found = client.get_versions(packages=["xcount", "numpy"])
    workers: Mapping[str, Any] = found["workers"]
    if not workers:
        raise ClusterError(
            f"the scheduler at {address} has no workers; start some with: dask worker {address}"
        )
    for worker, info in workers.items():
        _refuse(worker, version_differences(versions(), info["packages"]))
    n_threads: int = sum(client.nthreads().values())
    return max(1, n_threads)


def _refuse(worker: str, differences: Sequence[str]) -> None:
    if differences:
        raise ClusterError(
            f"the worker at {worker} has {', '.join(differences)}: its counts might differ; "
            "install the same versions everywhere"
        )


def _unpack(packed: bytes) -> Any:
    return pickle.loads(zlib.decompress(packed))


def _count_bundle(
    base: Problem, questions: Sequence[_Question], threads: int, wanted: Mapping[str, str]
) -> list[CountResult]:
    """Count, on a worker."""
    from distributed import get_worker

    worker = get_worker()
    _refuse(worker.address, version_differences(wanted, versions()))
    note = _stop_when_cancelled(worker)
    tasks = [
        Task(base, q.query, q.options, (), q.max_share, q.weighing, q.n_witnesses)
        for q in questions
    ]
    return [task.run(threads, note) for task in tasks]


def _stop_when_cancelled(worker: Any) -> Callable[[Progress], None]:
    """Return what ends a count, as Ctrl-C does, once nobody wants its result any more."""
    key = worker.get_current_task()

    def note(progress: Progress) -> None:
        state = worker.state.tasks.get(key)
        if state is None or state.state == "cancelled":
            raise KeyboardInterrupt

    return note
