"""Counting on a Dask cluster: models are sent once, results stream back as they finish.

Counts that take a fraction of a second are sent in bundles of about ``BUNDLE_SECONDS`` (longer on
hundreds of workers), so that scheduling costs little; a long count is spread over all workers once
they have nothing else to do (see :mod:`xcount.cluster.worker`). If a worker dies, Dask runs its
bundle again elsewhere; a worker that joins gets a share of the remaining work. A count depends only
on the model, the question and the seed, so the numbers are the same as on one machine; client and
workers must have the same versions of the libraries that compute them.

Workers should have one thread per core: a count uses one thread unless ``jobs`` says otherwise.
"""

from __future__ import annotations

import ssl
import threading
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from xcount.answers.count import versions
from xcount.answers.explanation import ExplanationRequest
from xcount.answers.options import SecureScheduler
from xcount.answers.result import CountResult
from xcount.cluster.worker import (
    Flight,
    Terms,
    count_bundle,
    count_one,
    from_message,
    packed,
    refuse,
    send,
    unpacked,
    version_differences,
)
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress
from xcount.errors import BudgetError, ClusterError, MissingExtraError, QueryError
from xcount.measures.weighting import Weighing
from xcount.problem.problem import Problem
from xcount.runs.task import Task

if TYPE_CHECKING:
    from distributed import Client
    from distributed.deploy import Cluster as DaskCluster
    from distributed.security import Security

BUNDLE_SECONDS = 0.5
"""How long a bundle of short counts should take: long compared to Dask's few ms per task."""

MAX_BUNDLES_PER_SECOND = 100
"""The rate that the scheduler, the client and the journal must keep up with."""

MAX_BUNDLE = 256
SMALLEST_PART = 8
"""The last bundles are at least this fraction of the normal size."""

CONNECT_SECONDS = 10.0
_TICK_SECONDS = 0.2

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Cluster:
    """A Dask cluster that counts; a context manager that cancels unfinished work.

    Example::

        with Cluster("tcp://scheduler:8786") as cluster:
            for results in cluster.counts(dict(enumerate(tasks)), threading.Event()):
                ...
    """

    def __init__(self, where: str | SecureScheduler | Client | DaskCluster) -> None:
        """Connect, and reject workers whose versions differ.

        Args:
            where: the scheduler's address, with or without certificates, or a Dask client or
                cluster (not closed by us).
        """
        self._is_own = not _is_client(where)
        self.client = cast("Client", _connect(where) if self._is_own else where)
        self.address = str(getattr(self.client.scheduler, "address", where))
        try:
            _check_workers(self.client, self.address)
        except BaseException:
            self.close()
            raise
        self._flight = Flight(self.client)

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
    ) -> Iterator[dict[int, CountResult | BudgetError]]:
        """Yield results by task number as they finish, or nothing a few times a second.

        If the method rejects a count, the error is its result.

        When ``stop`` is set, running counts are cancelled and the rest are left out.
        """
        models = {id(base): send(self.client, unpacked, packed(base)) for base in _bases(tasks)}
        # Tasks about one model go together: a bundle has one model.
        rank = {model: i for i, model in enumerate(models)}
        waiting = deque(sorted(tasks, key=lambda index: rank[id(tasks[index].base)]))
        pace = _Pace()
        with self._event() as all_begun:
            terms = Terms(versions(), max(1, jobs), all_begun.name)

            def submit() -> None:
                size = pace.bundle_size(len(waiting), self._flight.n_threads)
                bundle = _next_bundle(waiting, tasks, size)
                questions = [tasks[index].question for index in bundle]
                model = models[id(tasks[bundle[0]].base)]
                self._flight.submit(bundle, count_bundle, model, questions, terms)
                if not waiting:
                    all_begun.set()

            for ended in self._stream(submit, lambda: bool(waiting) and not stop.is_set()):
                results: dict[int, CountResult | BudgetError] = {}
                for bundle, answers in ended:
                    results.update(zip(bundle, answers, strict=True))
                for result in results.values():
                    if isinstance(result, CountResult):
                        pace.note(result.seconds)
                yield results
                if stop.is_set():
                    return

    def count(
        self,
        problem: Problem,
        settings: Settings,
        method: str = "auto",
        weighing: Weighing | None = None,
        explain: ExplanationRequest | None = None,
    ) -> CountResult:
        """Count one problem, spread over all workers if it takes long.

        Ctrl-C stops it with the bounds so far; a second one abandons it.
        """
        sent = send(self.client, unpacked, packed(problem))
        plain = replace(settings, on_progress=None)
        with self._event() as all_begun, self._event() as end, self._progress_of(end.name) as heard:
            all_begun.set()
            terms = Terms(versions(), max(1, settings.jobs), all_begun.name, end.name)
            self._flight.submit(None, count_one, sent, plain, method, weighing, explain, terms)
            is_ending = False
            while True:
                try:
                    with self._dask_errors_explained():
                        for _, result in self._flight.collect(_TICK_SECONDS):
                            return cast(CountResult, result)
                    if heard:
                        settings.report(heard.pop())
                except KeyboardInterrupt:
                    if is_ending:
                        raise
                    is_ending = True
                    end.set()

    def map(
        self, function: Callable[[Item], Answer], items: Iterable[Item]
    ) -> Iterator[tuple[int, Answer]]:
        """Yield ``(index, function(item))`` for every item, in the order in which they finish."""
        waiting = deque(enumerate(items))

        def submit() -> None:
            index, item = waiting.popleft()
            self._flight.submit(index, function, item)

        for ended in self._stream(submit, lambda: bool(waiting)):
            yield from ended

    def cancel(self) -> None:
        """Cancel all running calls."""
        self._flight.cancel()

    def close(self) -> None:
        """Disconnect; a client passed by the caller stays open."""
        if self._is_own:
            with suppress(OSError, TimeoutError):  # the scheduler may be gone
                self.client.close(timeout=1)

    def _stream(
        self, submit: Callable[[], None], has_more: Callable[[], bool]
    ) -> Iterator[list[tuple[Any, Any]]]:
        """Keep all workers busy; yield labels and answers of finished calls, or nothing."""
        while has_more() or len(self._flight):
            with self._dask_errors_explained():
                while has_more() and len(self._flight) < 2 * self._flight.n_threads + 2:
                    submit()
                ended = self._flight.collect(_TICK_SECONDS)
            yield ended

    @contextmanager
    def _event(self) -> Iterator[Any]:
        """Create an event that workers can see; a context manager that removes it."""
        from distributed import Event

        event = Event(f"xcount-{uuid.uuid4().hex}", self.client)
        try:
            yield event
        finally:
            if self.client.status == "running":
                with suppress(OSError, TimeoutError):
                    event.clear()

    @contextmanager
    def _progress_of(self, topic: str) -> Iterator[deque[Progress]]:
        """Yield a queue that holds the latest progress of a count."""
        heard: deque[Progress] = deque(maxlen=1)
        self.client.subscribe_topic(topic, lambda event: heard.append(from_message(event[1])))
        try:
            yield heard
        finally:
            if self.client.status == "running":
                self.client.unsubscribe_topic(topic)

    @contextmanager
    def _dask_errors_explained(self) -> Iterator[None]:
        """Translate Dask's errors about lost workers or connections."""
        from distributed.scheduler import KilledWorker

        try:
            yield
        except KilledWorker as error:
            raise ClusterError(
                f"several workers died while counting, the last one {error.last_worker}: they may "
                "have too little memory; limit each count with --memory"
            ) from error
        except (CancelledError, OSError, TimeoutError) as error:
            raise ClusterError(
                f"the connection to the scheduler at {self.address} was lost; all finished "
                "results are kept, in the journal if there is one: restart the scheduler, "
                "then continue with --resume"
            ) from error


class _Pace:
    """Measures how long counts take, and so how many make a bundle."""

    def __init__(self) -> None:
        self._seconds, self._n_counts = 0.0, 0

    def note(self, seconds: float) -> None:
        self._seconds += seconds
        self._n_counts += 1

    def bundle_size(self, n_waiting: int, n_threads: int) -> int:
        """Return how many counts make a bundle: one until their time is known."""
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
    # The last bundles are smaller, or one worker would be busy after the others have finished; but
    # not so small that sending them takes longer than running them.
    fair = n_waiting // (4 * n_threads)
    paced = round(seconds / max(mean_seconds, seconds / MAX_BUNDLE))
    return max(1, min(paced, max(fair, paced // SMALLEST_PART)))


def _next_bundle(waiting: deque[int], tasks: Mapping[int, Task], size: int) -> list[int]:
    """Take up to ``size`` waiting tasks about one model, more if they may share a visit."""
    bundle = [waiting.popleft()]
    base = tasks[bundle[0]].base
    while waiting and tasks[waiting[0]].base is base:
        is_family = tasks[waiting[0]].family == tasks[bundle[-1]].family
        if len(bundle) >= size and not is_family:
            break
        bundle.append(waiting.popleft())
    return bundle


def _bases(tasks: Mapping[int, Task]) -> list[Problem]:
    """Return the distinct models and grids of the tasks."""
    return list({id(task.base): task.base for task in tasks.values()}.values())


def _is_client(where: object) -> bool:
    """Return whether it is a client, not an address or a cluster; reject anything else."""
    if hasattr(where, "submit") and hasattr(where, "scheduler"):
        return True
    if isinstance(where, str | SecureScheduler) or hasattr(where, "scheduler_address"):
        return False
    raise QueryError(
        f"a cluster is a Dask scheduler's address, a client or a cluster, not {where!r:.60}"
    )


def _connect(where: str | SecureScheduler | DaskCluster) -> Client:
    try:
        from distributed import Client
        from distributed.versions import VersionMismatchWarning
    except ImportError:
        raise MissingExtraError(
            "a cluster needs the library distributed; install it with: "
            "pip install 'xcount[cluster]'"
        ) from None
    address = where.address if isinstance(where, SecureScheduler) else where
    security = _security(where) if isinstance(where, SecureScheduler) else None
    if isinstance(address, str):
        _check_address(address)
    try:
        with warnings.catch_warnings():
            # The versions that matter are checked below.
            warnings.simplefilter("ignore", VersionMismatchWarning)
            return Client(address, timeout=CONNECT_SECONDS, set_as_default=False, security=security)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        hint = "start one with: dask scheduler"
        if str(address).startswith("tls://"):
            hint = "check --tls-ca-file, --tls-cert and --tls-key, and that one runs there"
        raise ClusterError(f"no Dask scheduler answers at {address} ({error}); {hint}") from error


def _security(where: SecureScheduler) -> Security:
    """Return Dask's settings for TLS; reject files that cannot be used, before Dask tries them."""
    from distributed.security import Security

    try:
        context = ssl.create_default_context(cafile=where.ca_file)
    except OSError as error:
        raise _unusable(where.ca_file, "--tls-ca-file (tls_ca_file)", error) from error
    try:
        context.load_cert_chain(where.cert, where.key, password="")  # never ask for one
    except OSError as error:
        files = where.cert if where.key is None else f"{where.cert} and {where.key}"
        raise _unusable(files, "--tls-cert (tls_cert) and its key", error) from error
    return Security(
        tls_ca_file=where.ca_file,
        tls_client_cert=where.cert,
        tls_client_key=where.key,
        require_encryption=True,
    )


def _unusable(files: str, option: str, error: OSError) -> ClusterError:
    reason = error.strerror or str(error)
    return ClusterError(
        f"cannot use {files} as {option}: {reason}; name PEM files without a password"
    )


def _check_address(address: str) -> None:
    """Reject an address without host and port: a client that cannot start is noisy to stop."""
    from distributed.comm import get_address_host_port

    if address.startswith("inproc://"):  # a scheduler of this process needs no port
        return
    try:
        host, port = get_address_host_port(address)
        is_place = bool(host) and 0 < port < 2**16
    except ValueError:
        is_place = False
    if not is_place:
        raise ClusterError(
            f"{address!r} is not the address of a Dask scheduler; give its host and port, such as "
            "tcp://scheduler:8786"
        )


def _check_workers(client: Client, address: str) -> None:
    """Reject a cluster without workers, or with workers of other versions."""
    found = client.get_versions(packages=["xcount", "numpy"])
    workers: Mapping[str, Any] = found["workers"]
    if not workers:
        raise ClusterError(
            f"the scheduler at {address} has no workers; start some with: dask worker {address}"
        )
    for worker, info in workers.items():
        refuse(worker, version_differences(versions(), info["packages"]))
