"""Counts that are spread over the real workers of a Dask cluster, some of which die."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest
from conftest import Command
from dask_processes import DaskProcesses

import xcount
from xcount import CountResult
from xcount.answers.count import versions
from xcount.cluster.worker import (
    SharedTool,
    Terms,
    count_bundle,
    from_message,
    packed,
    to_message,
)
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress, StopReason
from xcount.errors import ClusterError
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.examples import adult_model_path, tree_of
from xcount.problem.problem import Problem
from xcount.question.query import Query
from xcount.runs.task import Question, Task

distributed = pytest.importorskip(
    "distributed", reason="a cluster needs the library distributed: pip install 'xcount[cluster]'"
)

# Two clusters at a time starve each other.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cluster")]

IMPATIENT = """
import functools

import xcount.cluster.spread
import xcount.cluster.worker
import xcount.counters.visit

xcount.counters.visit._SLICE_SECONDS = 0.02
xcount.cluster.worker.PATIENCE_SECONDS = 0.0
xcount.cluster.worker.LINE_SECONDS = 0.05
xcount.cluster.spread.UNIT_SECONDS = 0.02
xcount.cluster.worker.n_units = 0


def counted(do_unit):
    @functools.wraps(do_unit)
    def count(*arguments):
        xcount.cluster.worker.n_units += 1
        return do_unit(*arguments)

    return count


xcount.cluster.worker.do_unit = counted(xcount.cluster.worker.do_unit)
"""
"""What a worker loads first: counts ask for help at once, in small units, which are counted."""

SAMPLED: dict[str, Any] = {"sensitive": "sex", "flip": True, "method": "sample", "epsilon": 0.02}
"""A second or two of samples."""


def add_worker(processes: DaskProcesses, folder: Path) -> Popen[bytes]:
    """Start a worker whose counts ask for help at once."""
    preload = folder / "impatient.py"
    preload.write_text(IMPATIENT)
    return processes.add_worker("--preload", str(preload))


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskProcesses]:
    """A scheduler with two impatient workers, for the tests that break neither."""
    folder = tmp_path_factory.mktemp("dask")
    with DaskProcesses(folder) as processes:
        add_worker(processes, folder)
        add_worker(processes, folder)
        yield processes


@pytest.fixture
def client(dask: DaskProcesses) -> Iterator[Any]:
    """A client of the two workers."""
    with distributed.Client(dask.address, set_as_default=False) as connected:
        connected.wait_for_workers(2, timeout=60)
        yield connected


def units_done(client: Any) -> dict[str, int]:
    """Return how many units each worker has begun."""

    def n_units() -> Any:  # a closure travels, a function of this file does not
        from xcount.cluster import worker as workers

        return vars(workers)["n_units"]

    found: dict[str, int] = client.run(n_units)
    return found


def drivers(client: Any) -> dict[str, int]:
    """Return how many counts each worker has that are spread over the others."""

    def n_long_running(dask_worker: Any) -> int:
        return len(dask_worker.state.long_running)

    found: dict[str, int] = client.run(n_long_running)
    return found


def is_idle(client: Any) -> bool:
    """Tell whether no worker does anything."""

    def n_calls(dask_worker: Any) -> int:
        return len(dask_worker.state.executing) + len(dask_worker.state.long_running)

    return not any(client.run(n_calls).values())


def wait_until(condition: Callable[[], bool]) -> None:
    """Return when the condition holds; fail if it does not within a minute."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def facts(result: CountResult) -> CountResult:
    """Return a result without what differs from run to run, nor what only an audit explains."""
    return replace(result, seconds=0.0, peak_memory_bytes=0, explanation=None)


def adult_count(**options: Any) -> CountResult:
    """Ask the model of the examples."""
    return xcount.count(adult_model_path(), seed=7, **options)


@pytest.fixture(scope="module")
def sampled() -> CountResult:
    """The count of one machine."""
    return facts(adult_count(**SAMPLED))


@pytest.mark.parametrize(
    "question",
    [
        SAMPLED,
        {"sensitive": "age", "gap": 0.3, "distance": 1, "method": "exact", "profile": True},
        {"sensitive": "hours_per_week", "flip": True, "distance": 1, "epsilon": 0.05},
        {"sensitive": "age,hours_per_week", "gap": 0.3, "distance": 2, "epsilon": 0.004},
    ],
    ids=["flips from samples", "exact", "flips in both ways", "from samples"],
)
def test_a_spread_count_is_that_of_one_machine(client: Any, question: dict[str, Any]) -> None:
    """Both workers did units of it, and the answer is the same to the last detail."""
    before = units_done(client)
    there = adult_count(**question, cluster=client)
    after = units_done(client)
    assert facts(there) == facts(adult_count(**question))
    assert all(after[worker] > before[worker] for worker in after)


def test_an_audit_spreads_its_long_counts(client: Any, tmp_path: Path) -> None:
    """Several counts at once call each other's workers for help, and none waits for ever."""
    questions: dict[str, Any] = {
        "sensitive": ["sex", "hours_per_week", "education_num"],
        "flip": True,
        "distances": [1, 2],
        "method": "sample",
        "epsilon": 0.05,
    }
    before = sum(units_done(client).values())
    there = xcount.audit(adult_model_path(), cluster=client, journal=tmp_path / "j", **questions)
    assert sum(units_done(client).values()) > before
    here = xcount.audit(adult_model_path(), **questions)
    assert list(map(facts, there.results)) == list(map(facts, here.results))


def grid_of_stumps() -> Ensemble:
    """Return an ensemble whose 3.9e8 regions are quickly visited, but not at once."""
    stumps = [tree_of((f, float(t), 0.1 * f, -0.2)) for f in range(9) for t in range(8)]
    pairs = [tree_of((f, 3.5, 0.3, (f + 1, 2.5, 1.0, -1.0))) for f in range(8)]
    return Ensemble(tuple(Feature(f"f{i}") for i in range(9)), (*stumps, *pairs))


def test_a_visit_of_all_regions_is_spread(client: Any) -> None:
    """Both workers counted blocks, and the answer is that of one machine."""
    question: dict[str, Any] = {
        "sensitive": "f0",
        "flip": True,
        "cutoff": "-1",
        "distance": 1,
        "method": "brute",
    }
    before = units_done(client)
    there = xcount.count(grid_of_stumps(), **question, cluster=client, jobs=1)
    after = units_done(client)
    assert facts(there) == facts(xcount.count(grid_of_stumps(), **question))
    assert there.exact
    assert all(after[worker] > before[worker] for worker in after)


def test_an_audit_of_several_gaps_shares_visits(client: Any) -> None:
    """The same answers as here, gap by gap."""
    questions: dict[str, Any] = {"sensitive": ["f0", "f1"], "gaps": [0.2, 0.5, 1], "distances": [2]}
    there = xcount.audit(grid_of_stumps(), cluster=client, method="brute", **questions)
    here = xcount.audit(grid_of_stumps(), method="exact", **questions)
    assert [r.count for r in there.results] == [r.count for r in here.results]
    assert all(r.exact for r in there.results)


def test_a_measure_is_spread(client: Any) -> None:
    """A share under other weights is the one of one machine."""
    ranges = dict.fromkeys(xcount.load(adult_model_path()).feature_names, (0.0, 50.0))
    question = {**SAMPLED, "epsilon": 0.05, "measures": "volume", "bounds": ranges}
    assert facts(adult_count(**question, cluster=client)) == facts(adult_count(**question))


def test_the_command_line_counts_on_a_cluster(
    dask: DaskProcesses, xcount_command: Command, figure_1_file: str
) -> None:
    """--cluster is an option of count, too."""
    run = xcount_command(
        *("count", figure_1_file, "--sensitive", "age", "--gap", "80"),
        *("--cluster", dask.address, "--json"),
    )
    assert json.loads(run.out)["count"] == 2


def test_a_time_limit_holds(client: Any, sampled: CountResult) -> None:
    """It ends the count where it is put together, with the bounds found so far."""
    result = adult_count(**{**SAMPLED, "epsilon": 1e-4}, timeout=2, cluster=client)
    assert result.stop_reason is StopReason.TIMEOUT
    assert result.low <= sampled.high
    assert sampled.low <= result.high
    wait_until(lambda: is_idle(client))


def test_an_interrupt_leaves_the_interval_so_far(client: Any, sampled: CountResult) -> None:
    """Ctrl-C ends the count on the cluster, units and all, and keeps what it found."""
    seen: list[Progress] = []

    def interrupt(progress: Progress) -> None:
        if not seen and any(drivers(client).values()):
            seen.append(progress)
            os.kill(os.getpid(), signal.SIGINT)

    question = {**SAMPLED, "epsilon": 1e-4, "timeout": 500}
    result = adult_count(**question, cluster=client, on_progress=interrupt)
    assert seen
    assert result.stop_reason is StopReason.INTERRUPTED
    assert result.low <= sampled.high
    assert sampled.low <= result.high
    wait_until(lambda: is_idle(client))


def test_two_interrupts_leave_the_count(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who does not want to wait need not; the workers stop all the same."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def interrupt_while_ending(progress: Progress) -> None:
        monkeypatch.setattr(distributed.Event, "set", interrupt)
        interrupt()

    question = {**SAMPLED, "epsilon": 1e-4, "timeout": 500}
    with pytest.raises(KeyboardInterrupt):
        adult_count(**question, cluster=client, on_progress=interrupt_while_ending)
    wait_until(lambda: is_idle(client))


def test_an_interrupted_audit_frees_the_workers(client: Any) -> None:
    """Units of a count that nobody waits for end with it."""

    def interrupt(progress: object) -> None:
        if any(drivers(client).values()):
            os.kill(os.getpid(), signal.SIGINT)

    part = xcount.audit(
        adult_model_path(),
        **{**SAMPLED, "epsilon": 1e-4},
        timeout=500,
        cluster=client,
        on_progress=interrupt,
    )
    assert part.results == ()
    wait_until(lambda: is_idle(client))


@pytest.mark.parametrize("victim", ["the one that puts together", "one that helps"])
def test_a_worker_killed_in_the_middle(victim: str, tmp_path: Path, sampled: CountResult) -> None:
    """Its units are done by others; the whole count begins again if it was the count's own."""
    with DaskProcesses(tmp_path) as processes:
        by_pid = {(worker := add_worker(processes, tmp_path)).pid: worker for _ in range(2)}
        with distributed.Client(processes.address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
            pids = client.run(os.getpid)

            def kill(progress: object) -> None:
                spread = drivers(client)
                if len(spread) < 2 or not any(spread.values()):
                    return
                wait_until(lambda: all(units_done(client).values()))
                is_driver = victim == "the one that puts together"
                found = [address for address, n in spread.items() if bool(n) == is_driver]
                by_pid[pids[found[0]]].kill()
                killed.append(found[0])

            killed: list[str] = []
            audit = xcount.audit(
                adult_model_path(), **SAMPLED, seed=7, cluster=client, on_progress=kill
            )
    assert len(killed) == 1
    assert facts(audit.results[0]) == sampled


def test_a_tool_is_unpacked_once() -> None:
    """It travels packed, and is unpacked when it is first needed."""
    tool = SharedTool("key", packed([]))
    copied = type(tool)(*tool.__reduce__()[1])
    assert copied.get() == []
    assert copied.get() is copied.get()


def test_progress_travels_with_counts_of_any_size() -> None:
    """Counts beyond 64 bits come through."""
    progress = Progress(0.25, 3, 10**40, "samples")
    assert from_message(json.loads(json.dumps(to_message(progress)))) == progress


def test_an_unwanted_call_does_not_end_its_worker(client: Any) -> None:
    """A worker whose call is cancelled outside of any counter goes on with others."""
    pids = client.run(os.getpid)

    def interrupted() -> None:
        from xcount.cluster import worker as workers

        with workers.cancellation_as_error():
            raise KeyboardInterrupt

    with pytest.raises(ClusterError, match="cancelled"):
        client.submit(interrupted, pure=False).result(timeout=60)
    assert client.run(os.getpid) == pids


def test_a_bundle_goes_on_after_a_spread_count(client: Any) -> None:
    """Its next count waits for a thread of the worker, and is spread as well."""
    ensemble = xcount.load(adult_model_path())
    query = Query.of(ensemble, "sex", flip=True)
    base = Problem(ensemble, xcount.Grid.of(ensemble), query)
    settings = Settings(epsilon=0.05)
    queries = [replace(query, sensitive=(f,)) for f in query.sensitive * 3]
    questions = [Question(each, settings, "sample") for each in queries]
    tasks = [Task(base, question, ()) for question in questions]
    event = distributed.Event("all-begun", client)
    event.set()
    terms = Terms(versions(), 1, event.name)
    there = client.submit(count_bundle, base, questions, terms, pure=False).result(timeout=120)
    event.clear()
    assert list(map(facts, there)) == [facts(task.run(1)) for task in tasks]
