"""Runs the instances of a suite, in this process or each in a process of its own.

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
from benchmarks.harness.records import RecordFile, RunSettings, Status
from xcount import CountResult, Ensemble, Grid, XCountError, count, load
from xcount.model.examples import figure_1

Record = dict[str, Any]
GRACE_SECONDS = 5.0
"""How long past its limit a counter may take to come back by itself before it is killed."""


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
    on_record: Callable[[Record], None] = lambda record: None,
    cluster: str | None = None,
    seconds: float | None = None,
) -> None:
    """Run every instance that the file does not hold yet, writing each record at once.

    ``seconds`` is how long instances may be begun; those left over have no record then.
    """
    ends = math.inf if seconds is None else time.monotonic() + seconds
    waiting = [instance for instance in instances if instance.name not in records.done]
    begun = itertools.takewhile(lambda _: time.monotonic() < ends, waiting)
    if cluster is not None:
        found = run_on_cluster(waiting, settings, cluster)
    else:
        runner = run_isolated if settings.isolated else run_in_process
        found = runner(begun, settings)
    for record in found:
        records.add(record)
        on_record(record)


def run_in_process(instances: Iterable[Instance], settings: RunSettings) -> Iterator[Record]:
    """Count one instance after the other, in this process."""
    gc.freeze()  # what was imported before need not be looked at again and again
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
    model = _kept_model(instance.model, instance.grid_with)
    return {**_about(instance, model), **answer(instance, model, settings)}


@lru_cache(maxsize=4)
def _kept_model(path: Path, grid_with: tuple[Path, ...]) -> LoadedModel:
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
    started = time.perf_counter()
    try:
        result = count(
            model.ensemble,
            grid=model.grid,
            sensitive=instance.sensitive,
            gap=instance.gap,
            distance=instance.distance,
            precision=instance.precision,
            method=settings.method,
            epsilon=settings.epsilon,
            delta=settings.delta,
            seed=settings.seed,
            timeout_seconds=settings.limit_seconds,
            memory_bytes=settings.memory_bytes,
            jobs=settings.n_threads,
        )
    except MemoryError:
        outcome: Record = {"status": Status.MEMORY}
    except XCountError as error:
        outcome = {"status": Status.ERROR, "message": f"{type(error).__name__}: {error}"}
    else:
        outcome = _outcome(result, settings)
    elapsed = time.perf_counter() - started
    return {
        "status": outcome.pop("status"),
        "seconds": round(outcome.pop("seconds", elapsed), 6),
        "elapsed_seconds": round(elapsed, 6),
        "peak_memory_bytes": _peak_memory(),
        **outcome,
    }


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
    if result.seconds > settings.limit_seconds + GRACE_SECONDS:
        return Status.TIMEOUT
    if result.exact:
        return Status.EXACT
    return Status.GUARANTEE if result.stop_reason == "complete" else Status.STOPPED


# ---- each instance in a process of its own ----


@dataclass(slots=True)
class _Child:
    """A process that counts one instance, and what is known of its end."""

    pid: int
    answers: Connection
    about: Record
    started: float = field(default_factory=time.monotonic)

    def overdue(self, settings: RunSettings) -> bool:
        return time.monotonic() - self.started > settings.limit_seconds + GRACE_SECONDS


def run_isolated(instances: Iterable[Instance], settings: RunSettings) -> Iterator[Record]:
    """Count every instance in a child of its own, up to ``settings.workers`` at a time."""
    _warm_up(settings)
    queue = _with_models(instances)
    children: list[_Child] = []
    try:
        while True:
            for item in itertools.islice(queue, settings.workers - len(children)):
                children.append(_start(*item, settings))
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


def _start(instance: Instance, model: LoadedModel, settings: RunSettings) -> _Child:
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
        _count_and_exit(instance, model, settings, sender, parent)
    sender.close()
    return _Child(pid, receiver, _about(instance, model))


def _count_and_exit(
    instance: Instance,
    model: LoadedModel,
    settings: RunSettings,
    sender: Connection,
    parent: int,
) -> NoReturn:
    """Be the child: limit the memory, count, send the answer, and leave without any clean-up."""
    status = 1
    try:
        os.setsid()
        _die_with_parent(parent)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        limit = settings.memory_bytes + _virtual_memory()
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sender.send_bytes(json.dumps(answer(instance, model, settings)).encode())
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
        ended = [c for c in children if c.answers in ready or c.overdue(settings)]
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
    elif child.overdue(settings):
        ending["status"] = Status.TIMEOUT
    else:
        ending["status"] = Status.MEMORY
    code, peak = _kill(child)
    if ending["status"] == Status.CRASH:
        ending["message"] = _how_it_died(code)
        if code == -signal.SIGABRT and peak > settings.memory_bytes * 0.8:
            ending["status"] = Status.MEMORY  # an allocation failed where nobody catches it
    ending.setdefault("peak_memory_bytes", peak)
    return {**child.about, **ending}


def _kill(child: _Child) -> tuple[int, int]:
    """End a child and all it started; return its exit code and its most memory.

    A process that is already ending keeps its own exit code.
    """
    child.answers.close()
    for end in (os.kill, os.killpg):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            end(child.pid, signal.SIGKILL)
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
