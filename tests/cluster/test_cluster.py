"""Audits on a real Dask scheduler and real workers, which come, go and differ."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import pytest
from conftest import Command
from dask_processes import DaskProcesses

import xcount
from xcount.answers.result import CountResult, Verdict
from xcount.cluster import client as cluster_module
from xcount.cluster.client import Cluster, bundle_size
from xcount.cluster.worker import Flight, version_differences
from xcount.counters.settings import Settings
from xcount.errors import BudgetError, ClusterError, MissingExtraError, QueryError, QueryWarning
from xcount.model.examples import adult_model_path, ensemble_of, figure_1
from xcount.problem.problem import Problem
from xcount.question.gap import Gap
from xcount.question.grid import Grid
from xcount.question.query import Query
from xcount.runs.audit import AuditResult
from xcount.runs.batch import BatchProgress
from xcount.runs.compare import CompareResult
from xcount.runs.journal import read_journal
from xcount.runs.task import Question, Task

distributed = pytest.importorskip(
    "distributed", reason="a cluster needs the library distributed: pip install 'xcount[cluster]'"
)

# Two clusters at a time starve each other.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cluster")]

PEOPLE = Path(__file__).parent.parent.parent / "examples" / "adult-extract.csv.gz"
QUESTIONS: dict[str, Any] = {
    "gaps": [0.5, 1],
    "distances": [1, 2],
    "sensitive": ["sex", "education_num", "hours_per_week"],
    "method": "sample",
    "epsilon": 0.2,
    "seed": 7,
}
"""Twelve counts of a moment each, with random numbers."""


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskProcesses]:
    """A scheduler with two workers, for the tests that break neither."""
    with DaskProcesses(tmp_path_factory.mktemp("dask")) as processes:
        processes.add_worker()
        processes.add_worker()
        wait_for_workers(processes, 2)
        yield processes


@pytest.fixture
def frail(tmp_path: Path) -> Iterator[DaskProcesses]:
    """A scheduler without workers, to be broken."""
    with DaskProcesses(tmp_path) as processes:
        yield processes


def wait_for_workers(processes: DaskProcesses, n_workers: int) -> None:
    """Return when so many workers have joined."""
    with distributed.Client(processes.address, set_as_default=False) as client:
        client.wait_for_workers(n_workers, timeout=60)


def facts(results: tuple[CountResult | None, ...]) -> list[CountResult]:
    """Return results without what differs from run to run."""
    return [replace(r, seconds=0.0, peak_memory_bytes=0) for r in results if r is not None]


def adult_audit(**options: Any) -> AuditResult:
    """Count the questions above."""
    return xcount.audit(adult_model_path(), **QUESTIONS, **options)


@pytest.fixture(scope="module")
def alone() -> list[CountResult]:
    """The counts of one machine."""
    return facts(adult_audit().results)


def once(action: Callable[[], object]) -> Callable[[BatchProgress], None]:
    """Return a watcher of progress that acts when the first result is there."""
    left = [action]

    def watch(progress: BatchProgress) -> None:
        if left and progress.done:
            left.pop()()

    return watch


def test_the_numbers_are_those_of_one_machine(
    dask: DaskProcesses, alone: list[CountResult], tmp_path: Path
) -> None:
    """Same seed, same results, all of them in the journal."""
    path = tmp_path / "j.jsonl"
    assert facts(adult_audit(cluster=dask.address, journal=path).results) == alone
    assert facts(AuditResult.from_journal(path).results) == alone


def test_a_cluster_asks_within_a_domain(dask: DaskProcesses, tmp_path: Path) -> None:
    """Conditions, rules and sure flips travel, and stand in the journal."""
    asked: dict[str, Any] = {
        "sensitive": ["sex", "education_num"],
        "flip": True,
        "from_probability": "0.6",
        "where": "25 <= age < 65",
        "rule": ["relationship == Husband -> sex == Male", "age < 30 -> education_num < 15"],
        "method": "sample",
        "epsilon": 0.2,
    }
    here = xcount.audit(adult_model_path(), **asked)
    path = tmp_path / "j.jsonl"
    there = xcount.audit(adult_model_path(), cluster=dask.address, journal=path, **asked)
    assert facts(there.results) == facts(here.results)
    again = AuditResult.from_journal(path)
    assert facts(again.results) == facts(here.results)
    assert all(result.domain == here.results[0].domain for result in again.results if result)


@pytest.mark.parametrize("judge", ["marginals", "population"])
def test_a_cluster_judges_by_measures(dask: DaskProcesses, judge: str) -> None:
    """The shares, the judge and the verdicts are those of one machine."""
    asked: dict[str, Any] = {
        "sensitive": "sex",
        "gaps": "0.5",
        "distances": "any",
        "judge": judge,
        "data": PEOPLE,
    }
    here = xcount.audit(adult_model_path(), **asked)
    there = xcount.audit(adult_model_path(), cluster=dask.address, **asked)
    assert there.judge == judge
    assert facts(there.results) == facts(here.results)
    limited = xcount.audit(adult_model_path(), cluster=dask.address, max_share="3%", **asked)
    assert limited.verdict is Verdict.FAIL
    assert [r.judged for r in limited.results] == [r.judged for r in here.results]


def test_a_client_serves_and_stays_open(dask: DaskProcesses) -> None:
    """A client in Python is as good as an address, for comparisons too."""

    def rows(result: CompareResult) -> list[list[CountResult]]:
        return [facts(row.results) for row in result.rows]

    models = [figure_1(), figure_1()]
    with distributed.Client(dask.address, set_as_default=False) as client:
        there = xcount.compare(models, gaps=[1, 80], cluster=client)
        assert client.status == "running"
    assert rows(there) == rows(xcount.compare(models, gaps=[1, 80]))


def test_a_cluster_of_dask_is_as_good_as_its_address() -> None:
    """``LocalCluster()`` serves every function, and stays open."""
    local = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    )
    with local as cluster:
        assert xcount.count(figure_1(), sensitive="f0", gap=80, cluster=cluster).count == 2
        assert len(xcount.audit(figure_1(), gaps=80, cluster=cluster).results) == 2
        assert len(xcount.compare([figure_1()] * 2, gaps=80, cluster=cluster).results) == 4
        assert cluster.status.name == "running"


def test_what_is_no_cluster_is_refused() -> None:
    """In words, not by an attribute that is missing."""
    with pytest.raises(QueryError, match="a cluster is a Dask scheduler's address, a client or a"):
        xcount.count(figure_1(), sensitive="f0", gap=80, cluster=cast(Any, 7))


def test_the_command_line(
    dask: DaskProcesses, xcount_command: Command, figure_1_file: str, tmp_path: Path
) -> None:
    """--cluster names the scheduler, for audit and compare."""
    options = ("--gap", "80", "--distance", "1", "--cluster", dask.address, "--json")
    run = xcount_command("audit", figure_1_file, *options, "--journal", tmp_path / "j.jsonl")
    assert [r["count"] for r in json.loads(run.out)["results"]] == [2, 0]
    run = xcount_command("compare", figure_1_file, figure_1_file, *options)
    assert [r["count"] for r in json.loads(run.out)["rows"][0]["results"]] == [2, 2]


def test_the_example_of_the_help(
    dask: DaskProcesses, xcount_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ``xcount count --help`` shows works, at the address of this scheduler."""
    shutil.copy(adult_model_path(), tmp_path / "model.json")
    monkeypatch.chdir(tmp_path)
    help_text = xcount_command("count", "--help").out
    line = next(line for line in help_text.splitlines() if "--cluster tcp://" in line)
    *words, _ = shlex.split(line)[1:]
    run = xcount_command(*words, dask.address)
    assert (run.status, run.err) == (0, "")


def test_an_error_in_a_count_is_that_of_one_machine(dask: DaskProcesses) -> None:
    """What a counter refuses, it refuses on a worker by the same name."""
    with pytest.raises(BudgetError):
        xcount.audit(
            adult_model_path(),
            gaps=1,
            method="brute",
            timeout=None,
            cluster=dask.address,
        )


def test_any_function_runs_on_a_cluster(dask: DaskProcesses) -> None:
    """Answers come with the numbers of their items."""
    with Cluster(dask.address) as cluster:
        assert dict(cluster.map(abs, range(-50, 0))) == {i: 50 - i for i in range(50)}


def test_an_interrupt_frees_the_workers(dask: DaskProcesses) -> None:
    """A count that nobody waits for any more ends long before its time is over."""

    def n_executing(dask_worker: Any) -> int:
        return len(dask_worker.state.executing)

    def busy() -> bool:
        return any(client.run(n_executing).values())

    def interrupt(progress: BatchProgress) -> None:
        if busy():
            os.kill(os.getpid(), signal.SIGINT)

    hard: dict[str, Any] = {"method": "sample", "epsilon": 1e-4, "timeout": 500}
    with distributed.Client(dask.address, set_as_default=False) as client:
        part = xcount.audit(
            adult_model_path(),
            flip=True,
            sensitive="sex",
            cluster=client,
            on_progress=interrupt,
            **hard,
        )
        assert part.results == ()
        deadline = time.monotonic() + 60
        while busy() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not busy()


def test_an_interrupt_keeps_what_is_finished(
    dask: DaskProcesses, tmp_path: Path, alone: list[CountResult]
) -> None:
    """The rest is left out, and resumed later."""
    path = tmp_path / "j.jsonl"
    watch = once(lambda: os.kill(os.getpid(), signal.SIGINT))
    part = adult_audit(cluster=dask.address, journal=path, on_progress=watch)
    assert 1 <= len(part.results) < part.n_planned
    assert len(read_journal(path)) == 1 + len(part.results)
    whole = adult_audit(cluster=dask.address, journal=path, resume=True)
    assert facts(whole.results) == alone


def test_what_arrives_with_the_interrupt_is_kept(
    dask: DaskProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results that are there when the run is told to end are results."""
    stop = threading.Event()
    base = Problem(figure_1(), Grid.of(figure_1()), Query((0,), Gap(Fraction(80))))
    task = Task(base, Question(base.query, Settings()), ())
    with Cluster(dask.address) as cluster:
        collect = cluster._flight.collect

        def collect_and_stop(seconds: float) -> list[tuple[Any, Any]]:
            ended = collect(60)
            stop.set()
            return ended

        monkeypatch.setattr(cluster._flight, "collect", collect_and_stop)
        found = [answer for answers in cluster.counts({3: task}, stop) for answer in answers]
    assert found == [3]


def test_a_worker_dies_and_another_joins_late(
    frail: DaskProcesses, alone: list[CountResult]
) -> None:
    """The one that joined does what is left, and what the dead one was at."""
    first = frail.add_worker()
    wait_for_workers(frail, 1)

    def swap() -> None:
        frail.add_worker()
        wait_for_workers(frail, 2)
        first.kill()

    assert facts(adult_audit(cluster=frail.address, on_progress=once(swap)).results) == alone


def test_a_lost_scheduler_loses_no_result(
    frail: DaskProcesses, tmp_path: Path, alone: list[CountResult]
) -> None:
    """The error says what is safe; the journal resumes, here without a cluster."""
    frail.add_worker()
    wait_for_workers(frail, 1)
    path = tmp_path / "j.jsonl"
    watch = once(frail.scheduler.kill)
    with pytest.raises(ClusterError, match=r"was lost; all finished results are kept.*--resume"):
        adult_audit(cluster=frail.address, journal=path, on_progress=watch)
    kept = AuditResult.from_journal(path).results
    assert 1 <= len(kept) < len(alone)
    assert facts(adult_audit(journal=path, resume=True).results) == alone


def test_a_lost_scheduler_is_one_line(frail: DaskProcesses, tmp_path: Path) -> None:
    """Dask's own tracebacks do not come before it."""
    frail.add_worker()
    wait_for_workers(frail, 1)
    path = tmp_path / "j.jsonl"
    words = ["audit", str(adult_model_path()), "--gap", "0.5,1,2", "--distance", "any"]
    words += ["--journal", str(path), "--cluster", frail.address]
    with subprocess.Popen(
        [sys.executable, "-m", "xcount", *words], stderr=subprocess.PIPE, text=True
    ) as process:
        while not (path.exists() and path.read_bytes().count(b"\n") > 1):
            assert process.poll() is None
            time.sleep(0.02)
        frail.scheduler.kill()
        _, line = process.communicate(timeout=60)
    assert process.returncode == 2
    assert line.count("\n") == 1
    assert line.startswith("xcount: the connection to the scheduler at ")


def test_a_scheduler_that_ends_before_the_good_bye_is_no_error(
    frail: DaskProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leaving may take too long on a busy machine; that hides nothing that has happened."""
    frail.add_worker()
    wait_for_workers(frail, 1)

    def late(*_: object, **__: object) -> None:
        raise TimeoutError("timed out after 1 s.")

    with Cluster(frail.address) as found:
        closed = found.client.close
        monkeypatch.setattr(found.client, "close", late)
    closed()


def test_a_worker_with_another_version_is_refused(frail: DaskProcesses, tmp_path: Path) -> None:
    """Before any count, by name."""
    installed = tmp_path / "old" / "xcount-0.0.1.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: xcount\nVersion: 0.0.1\n")
    frail.add_worker(environment={"PYTHONPATH": str(installed.parent)})
    wait_for_workers(frail, 1)
    with pytest.raises(ClusterError, match=r"has xcount 0\.0\.1 instead of"):
        xcount.audit(figure_1(), gaps=80, cluster=frail.address)


def test_a_worker_with_another_version_is_refused_when_it_counts(
    frail: DaskProcesses, tmp_path: Path
) -> None:
    """A worker that joins after the first check is checked with its first count."""
    with pytest.raises(ClusterError, match=r"has no workers; start some with: dask worker tcp://"):
        xcount.audit(figure_1(), gaps=80, cluster=frail.address)
    preload = tmp_path / "older.py"
    preload.write_text("import xcount._version\nxcount._version.__version__ = '0.0.1'\n")
    frail.add_worker("--preload", str(preload))
    wait_for_workers(frail, 1)
    with pytest.raises(ClusterError, match=r"has xcount 0\.0\.1 instead of"):
        xcount.audit(figure_1(), gaps=80, cluster=frail.address)


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens at port 1."""
    monkeypatch.setattr(cluster_module, "CONNECT_SECONDS", 0.5)
    with pytest.raises(ClusterError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1"):
        xcount.audit(figure_1(), gaps=80, cluster="tcp://127.0.0.1:1")


@pytest.mark.parametrize(
    "address",
    ["", "localhost", "tcp://localhost", "localhost:", ":8786", "a:b", "x://a:1", "a:99999"],
)
def test_an_address_has_a_host_and_a_port(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has none is refused before a client is made, which would complain later once more."""
    monkeypatch.setattr("distributed.Client", None)
    with pytest.raises(ClusterError, match=f"'{address}' is not the address of a Dask scheduler"):
        xcount.audit(figure_1(), gaps=80, cluster=address)


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the library, the message says how to get it."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"xcount\[cluster\]"):
        xcount.audit(figure_1(), gaps=80, cluster="tcp://127.0.0.1:1")


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        ({"xcount": "1.2", "python": "3.11.9", "numpy": "2.1"}, []),
        ({"xcount": "1.2", "python": "3.12.0", "numpy": "2.1"}, ["python 3.12.0"]),
        ({"xcount": None, "python": "3.11.9", "numpy": "2.1.1"}, ["no xcount", "numpy 2.1.1"]),
    ],
)
def test_versions_that_matter(theirs: dict[str, str | None], expected: list[str]) -> None:
    """Python's third number is free; what computes is not."""
    ours = {"xcount": "1.2", "python": "3.11.7", "numpy": "2.1"}
    found = version_differences(ours, theirs)
    assert [difference.split(" instead")[0] for difference in found] == expected


def test_short_counts_travel_together() -> None:
    """Bundles grow with the pace, stay fair to all threads, and end small."""
    assert bundle_size(0.05, n_waiting=10_000, n_threads=2) == 10
    assert bundle_size(0.05, n_waiting=40, n_threads=2) == 5
    assert bundle_size(0.05, n_waiting=3, n_threads=2) == 1
    assert bundle_size(100.0, n_waiting=10_000, n_threads=2) == 1
    assert bundle_size(0.0, n_waiting=10_000, n_threads=2) == cluster_module.MAX_BUNDLE
    assert bundle_size(0.05, n_waiting=10**6, n_threads=500) == 100
    assert bundle_size(0.05, n_waiting=1000, n_threads=500) == 100 // 8


class _Ended:
    """A call that has ended, with an answer or an error."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def result(self) -> object:
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer

    def add_done_callback(self, call: Callable[[_Ended], None]) -> None:
        call(self)


class _AtOnce:
    """A client whose calls end as soon as they are submitted."""

    status = "running"

    def submit(self, function: Callable[..., object], answer: object, **_: object) -> _Ended:
        return _Ended(answer)


def test_an_error_comes_after_the_answers_that_ended_with_it() -> None:
    """Nothing that has ended is lost, wherever the error stands; an interrupt loses nothing."""
    for place in range(3):
        flight = Flight(cast(Any, _AtOnce()))
        answers: list[object] = [1, 2]
        answers.insert(place, ValueError("no"))
        for label, answer in enumerate(answers):
            flight.submit(label, str, answer)
        assert [answer for _, answer in flight.collect(0.1)] == [1, 2]
        assert len(flight) == 1
        with pytest.raises(ValueError, match="no"):
            flight.collect(0.1)
        assert len(flight) == 0
    flight = Flight(cast(Any, _AtOnce()))
    interrupted = _Ended(KeyboardInterrupt())
    flight.submit("a", str, 1)
    flight._running[cast(Any, interrupted)] = "b"
    flight._ended.put(cast(Any, interrupted))
    with pytest.raises(KeyboardInterrupt):
        flight.collect(0.1)
    interrupted._answer = 2
    assert flight.collect(0.1) == [("a", 1), ("b", 2)]


def test_a_refused_count_leaves_the_others(dask: DaskProcesses) -> None:
    """As on one machine: a count too large for its method is named, and missing."""
    trees = [(f, k + 0.5, 0.0, 1.0) for f in range(3) for k in range(12)]
    with pytest.warns(QueryWarning, match="1 of 2 counts refused"):
        result = xcount.audit(
            ensemble_of(*trees),
            sensitive=["f0", "f0,f1,f2"],
            flip=True,
            cutoff=3,
            distances=4,
            method="exact",
            cluster=dask.address,
        )
    assert [count.sensitive for count in result.results] == [("f0",)]
    assert result.exit_status == 3
