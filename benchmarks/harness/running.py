"""Run the instances of a suite, in this process or each in a process of its own.

In-process is fast: one process, every core inside each count, the counter's own limits. Isolated
puts each instance into a forked child with a hard time limit (the child is killed) and a hard
memory limit (``RLIMIT_AS``), and survives whatever happens to it. In both, a model is loaded once
for all the instances that ask about it, and loading is not part of an instance's seconds.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import itertools
import json
import math
import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, NoReturn

from benchmarks.harness.instances import Instance
from benchmarks.harness.processes import GRACE_SECONDS, kill_group
from benchmarks.harness.records import RecordFile, RunSettings, Status
from xcount import CountResult, Ensemble, Grid, XCountError, count, load
from xcount.model.examples import figure_1

Record = dict[str, Any]
Answer = Callable[[Instance, "LoadedModel", RunSettings], Record]
"""Counts one instance and returns the rest of its record."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in memory, ready for many questions."""

    path: Path
    grid_with: tuple[Path, ...]
    ensemble: Ensemble
    grid: Grid
    load_seconds: float


def load_model(path: Path, grid_with: tuple[Path, ...] = ()) -> LoadedModel:
    """Read a model and cut its axes into cells, at the guards of other models too."""
    started = time.perf_counter()
    ensemble = load(path)
    grid = Grid.of(ensemble, *(load(other) for other in grid_with))
    return LoadedModel(path, grid_with, ensemble, grid, time.perf_counter() - started)


def run_suite(
    instances: Sequence[Instance],
    settings: RunSettings,
    records: RecordFile,
    cluster: str | None = None,
    seconds: float | None = None,
) -> None:
    """Run every instance that the file does not hold yet, writing each record at once.

    How far it is goes to standard error. ``seconds`` is how long instances may be started; the
    others have no record then.
    """
    ends = math.inf if seconds is None else time.monotonic() + seconds
    waiting = [instance for instance in instances if instance.name not in records.done]
    started = itertools.takewhile(lambda _: time.monotonic() < ends, waiting)
    if cluster is not None:
        found = run_on_cluster(waiting, settings, cluster)
    else:
        runner = run_isolated if settings.isolated else run_in_process
        found = runner(started, settings)
    progress = Progress(len(waiting))
    for record in found:
        records.add(record)
        progress.show(record)
    left = len(waiting) - progress.n_done
    if left:
        print(f"  {left} of {len(instances)} not started: time is up", file=sys.stderr)


class Progress:
    """Says on standard error, now and then, how far a run is."""

    def __init__(self, n_instances: int, interval_seconds: float = 5.0) -> None:
        self.n_instances = n_instances
        self.interval_seconds = interval_seconds
        self.started = self.shown = time.monotonic()
        self.n_done = self.n_solved = 0

    def show(self, record: Record) -> None:
        """Take note of one record."""
        self.n_done += 1
        self.n_solved += Status(record["status"]).solved
        now = time.monotonic()
        if now - self.shown < self.interval_seconds and self.n_done < self.n_instances:
            return
        self.shown = now
        print(
            f"{self.n_done}/{self.n_instances} done, {self.n_solved} solved, "
            f"{now - self.started:.0f} s, last {record['name']} ({record['seconds']:.3f} s)",
            file=sys.stderr,
        )


def run_in_process(instances: Iterable[Instance], settings: RunSettings) -> Iterator[Record]:
    """Count one instance after the other, in this process."""
    gc.freeze()  # the collector need not look at what was imported before
    try:
        for instance, model in _with_models(instances):
            gc.collect()
            _reset_peak_memory()
            yield {**_about(instance, model), **answer(instance, model, settings)}
    finally:
        gc.unfreeze()


def run_on_cluster(
    instances: Sequence[Instance], settings: RunSettings, cluster: Any
) -> Iterator[Record]:
    """Count on a Dask cluster whose workers have this folder and the models at the same places."""
    from xcount.cluster.client import Cluster

    with Cluster(cluster) as found:
        for _, record in found.map(partial(_answer_there, settings=settings), instances):
            yield record


def _answer_there(instance: Instance, settings: RunSettings) -> Record:
    model = _cached_model(instance.model, instance.grid_with)
    return {**_about(instance, model), **answer(instance, model, settings)}


@lru_cache(maxsize=4)
def _cached_model(path: Path, grid_with: tuple[Path, ...]) -> LoadedModel:
    return load_model(path, grid_with)


def _with_models(instances: Iterable[Instance]) -> Iterator[tuple[Instance, LoadedModel]]:
    model: LoadedModel | None = None
    for instance in instances:
        wanted = (instance.model, instance.grid_with)
        if model is None or (model.path, model.grid_with) != wanted:
            model = load_model(*wanted)
        yield instance, model


def _about(instance: Instance, model: LoadedModel) -> Record:
    return {**instance.to_dict(), "load_seconds": round(model.load_seconds, 6)}


def answer(instance: Instance, model: LoadedModel, settings: RunSettings) -> Record:
    """Count one instance; whatever goes wrong becomes part of the record."""
    clock = processor_seconds if settings.processor_time else time.perf_counter
    started = clock()
    try:
        result = count(
            model.ensemble,
            grid=model.grid,
            **instance.question(),
            method=settings.method,
            epsilon=settings.epsilon,
            delta=settings.delta,
            seed=settings.seed,
            timeout=settings.wall_seconds,
            memory=settings.memory_bytes,
            jobs=settings.n_threads,
        )
    except MemoryError:
        outcome: Record = {"status": Status.MEMORY}
    except XCountError as error:
        outcome = {"status": Status.ERROR, "message": f"{type(error).__name__}: {error}"}
    else:
        outcome = _outcome(result, settings)
    elapsed = clock() - started
    if settings.processor_time:
        outcome["seconds"] = elapsed
        if elapsed > settings.limit_seconds:
            outcome["status"] = Status.TIMEOUT
    return {
        "status": outcome.pop("status"),
        "seconds": round(outcome.pop("seconds", elapsed), 6),
        "elapsed_seconds": round(elapsed, 6),
        "peak_memory_bytes": _peak_memory(),
        **outcome,
    }


def processor_seconds() -> float:
    """Return the processor time of this process and of the children that it has waited for."""
    waited_for = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + waited_for.ru_utime + waited_for.ru_stime


def _outcome(result: CountResult, settings: RunSettings) -> Record:
    return {
        "status": status_of(result, settings),
        "seconds": result.seconds,
        "count": result.count,
        "low": result.low,
        "high": result.high,
        "n_regions": result.n_regions,
        "share": result.share,
        "counted_by": result.method,
        "stop_reason": str(result.stop_reason),
        "details": json.loads(json.dumps(dict(result.details), default=str)),
    }


def status_of(result: CountResult, settings: RunSettings) -> Status:
    """Return what a result is worth under the limits of the run."""
    if result.seconds > settings.wall_seconds + GRACE_SECONDS:
        return Status.TIMEOUT
    if result.exact:
        return Status.EXACT
    return Status.GUARANTEE if result.stop_reason == "complete" else Status.STOPPED


# ---- each instance in a process of its own ----


@dataclass(slots=True)
class _Child:
    """A process that counts one instance; ``seconds`` is when it is killed."""

    pid: int
    answers: Connection
    about: Record
    seconds: float
    started: float = field(default_factory=time.monotonic)

    @property
    def overdue(self) -> bool:
        return time.monotonic() - self.started > self.seconds


def run_isolated(
    instances: Iterable[Instance],
    settings: RunSettings,
    answer: Answer = answer,
    grace_seconds: float = GRACE_SECONDS,
) -> Iterator[Record]:
    """Count every instance in a child of its own, up to ``settings.workers`` at a time."""
    _warm_up(settings)
    queue = _with_models(instances)
    children: list[_Child] = []
    try:
        while True:
            for item in itertools.islice(queue, settings.workers - len(children)):
                children.append(_start(*item, settings, answer, grace_seconds))
            if not children:
                return
            for child in _ended(children, settings):
                children.remove(child)
                yield _finish(child, settings)
    finally:
        for child in children:
            _kill(child)


def _warm_up(settings: RunSettings) -> None:
    """Import what the method needs, so that no child is charged for it."""
    with contextlib.suppress(XCountError):
        count(figure_1(), sensitive="f0", gap=80, method=settings.method, jobs=1)


def _start(
    instance: Instance,
    model: LoadedModel,
    settings: RunSettings,
    answer: Answer,
    grace_seconds: float,
) -> _Child:
    receiver, sender = Pipe(duplex=False)
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    with warnings.catch_warnings():
        # Python warns of threads that a child would lack; counts join theirs before they return.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        receiver.close()
        _count_and_exit(partial(answer, instance, model, settings), settings, sender, parent)
    sender.close()
    seconds = settings.wall_seconds + grace_seconds
    return _Child(pid, receiver, _about(instance, model), seconds)


def _count_and_exit(
    count_it: Callable[[], Record], settings: RunSettings, sender: Connection, parent: int
) -> NoReturn:
    """Be the child: limit the memory, count, send the answer, and exit without any clean-up."""
    status = 1
    try:
        os.setsid()
        _die_with_parent(parent)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        limit = settings.memory_bytes + _virtual_memory()
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if settings.processor_time:
            seconds = math.ceil(settings.limit_seconds)
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        sender.send_bytes(json.dumps(count_it()).encode())
        status = 0
    except MemoryError:
        sender.send_bytes(json.dumps({"status": Status.MEMORY}).encode())
    except BaseException as error:
        message = {"status": Status.ERROR, "message": f"{type(error).__name__}: {error}"}
        sender.send_bytes(json.dumps(message).encode())
    finally:
        os._exit(status)


def _die_with_parent(parent: int) -> None:
    """Ask Linux to kill this process when its parent ends, however that ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:  # it has ended already
        os._exit(1)


def _ended(children: Sequence[_Child], settings: RunSettings) -> list[_Child]:
    """Wait until some child has answered, died or overrun its time; return those."""
    while True:
        ready = wait([child.answers for child in children], timeout=0.5)
        ended = [c for c in children if c.answers in ready or c.overdue]
        ended += [
            c for c in children if c not in ended and _resident(c.pid) > settings.memory_bytes
        ]
        if ended:
            return ended


def _finish(child: _Child, settings: RunSettings) -> Record:
    """Make the record of a child that has ended, or end it."""
    elapsed = time.monotonic() - child.started
    ending: Record = {"seconds": round(elapsed, 6), "elapsed_seconds": round(elapsed, 6)}
    if child.answers.poll():
        try:
            ending |= json.loads(child.answers.recv_bytes())
        except EOFError:
            ending["status"] = Status.CRASH
    elif child.overdue:
        ending["status"] = Status.TIMEOUT
    else:
        ending["status"] = Status.MEMORY
    code, peak = _kill(child)
    if ending["status"] == Status.CRASH:
        ending["message"] = _how_it_died(code)
        if code == -signal.SIGXCPU:
            ending["status"] = Status.TIMEOUT
            ending["seconds"] = settings.limit_seconds
        if code == -signal.SIGABRT and peak > settings.memory_bytes * 0.8:
            ending["status"] = Status.MEMORY  # an allocation failed and was not caught
    ending.setdefault("peak_memory_bytes", peak)
    return {**child.about, **ending}


def _kill(child: _Child) -> tuple[int, int]:
    """End a child and all it started; return its exit code and its most memory.

    A process that is already ending keeps its own exit code.
    """
    child.answers.close()
    kill_group(child.pid)
    _, status, usage = os.wait4(child.pid, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024


def _how_it_died(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"


# ---- memory, as Linux reports it ----


def _status_bytes(pid: int | str, name: str) -> int:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def _virtual_memory() -> int:
    return _status_bytes("self", "VmSize")


def _resident(pid: int) -> int:
    return _status_bytes(pid, "VmRSS")


def _reset_peak_memory() -> None:
    """Make the kernel forget the most memory this process has held, where it lets us."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _peak_memory() -> int:
    peak = _status_bytes("self", "VmHWM")
    return peak or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
