"""Commands that are stopped at many moments, from their first millisecond to their last."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from effort import n_examples

import xcount
from xcount.model.examples import adult_model_path
from xcount.runs.journal import read_journal

pytestmark = pytest.mark.slow

PACKAGE = f"{Path(xcount.__file__).parent}/"
MODEL = str(adult_model_path())
QUICK = ("--method", "sample", "--epsilon", "0.1", "--seed", "3")
ASKED = ("--sensitive", "sex", "--sensitive", "age", "--sensitive", "workclass")
AUDIT = ("audit", MODEL, "--gap", "0.5,1", *ASKED, *QUICK, "--no-explain", "--json")
EXPLAINED = ("audit", MODEL, "--gap", "0.5", "--sensitive", "sex", *QUICK, "--json")
COMPARE = ("compare", MODEL, MODEL, "--gap", "0.5,1", "--sensitive", "sex", *QUICK, "--json")
AGE = ("--sensitive", "age", "--gap", "1", "--distance", "1")
ASKED_COUNT = ("count", MODEL, *AGE, "--json")
COUNT = (*ASKED_COUNT, "--method", "sample", "--epsilon", "0.02", "--seed", "3")

SIGNALS = (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
STATUSES = {
    signal.SIGINT: {0, 3, 130, -signal.SIGINT},
    signal.SIGTERM: {0, 3, 130, -signal.SIGTERM},
    signal.SIGKILL: {0, -signal.SIGKILL},
}
"""0: it was done before; 3: bounds so far; 130: outside a count; negative: before main ran."""


@dataclass(frozen=True)
class Stopped:
    """What is left of a command that was stopped."""

    stop: signal.Signals
    status: int
    out: str
    err: str


def command(*words: object) -> list[str]:
    """Return the installed command."""
    return [str(Path(sys.executable).parent / "xcount"), *map(str, words)]


def stopped_at(seconds: float, stop: signal.Signals, *words: object) -> Stopped:
    """Run a command, and stop it after so many seconds."""
    with subprocess.Popen(
        command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(stop)
        out, err = process.communicate(timeout=60)
    return Stopped(stop, process.returncode, out, err)


def moments(n: int, seed: int, words: tuple[object, ...]) -> list[tuple[float, signal.Signals]]:
    """Return moments spread over the time that the command takes, with a signal for each."""
    started = time.monotonic()
    subprocess.run(command(*words), check=True, capture_output=True)
    seconds = time.monotonic() - started
    spread = random.Random(seed)
    return [
        (seconds * (i + spread.random()) / n, SIGNALS[spread.randrange(len(SIGNALS))])
        for i in range(n)
    ]


def check_stopped(run: Stopped) -> None:
    """Check the status, and that nobody sees a traceback of ours."""
    if "Fatal Python error: init" in run.err or run.err == "KeyboardInterrupt\n":
        return  # Python itself was starting (no frame yet), and ends with a status of its own
    assert run.status in STATUSES[run.stop], run
    if run.err and "from xcount.cli import main" not in run.err:  # nor had we begun
        assert PACKAGE not in run.err, run
    if run.out and run.status != -signal.SIGKILL:  # that cuts off what does not fit a pipe
        json.loads(run.out)


def facts(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without what differs from run to run."""
    kept = dict(result)
    for name in ("seconds", "peak_memory_bytes"):
        del kept[name]
    return kept


def audit_facts(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what an audit found."""
    return [facts(result) for result in data["results"]]


def comparison_facts(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a comparison found."""
    return [facts(result) for row in data["rows"] for result in row["results"]]


@pytest.mark.parametrize(
    ("words", "n", "facts_of"),
    [(AUDIT, 10, audit_facts), (EXPLAINED, 4, audit_facts), (COMPARE, 8, comparison_facts)],
    ids=["audit", "explained", "compare"],
)
def test_a_stopped_run_is_whole_and_goes_on(
    words: tuple[str, ...],
    n: int,
    facts_of: Callable[[dict[str, Any]], Any],
    xcount_command: Command,
    tmp_path: Path,
) -> None:
    """Status and messages as documented; files whole or absent; resuming gives the same answers."""
    expected = facts_of(json.loads(xcount_command(*words).out))
    statuses = set()
    for number, (seconds, stop) in enumerate(moments(n_examples(n), 1, words)):
        folder = tmp_path / str(number)
        folder.mkdir()
        kept = (*words, "--journal", folder / "j.jsonl")
        run = stopped_at(
            seconds, stop, *kept, "--html", folder / "r.html", "--csv", folder / "r.csv"
        )
        check_stopped(run)
        statuses.add(run.status)
        left = {path.name for path in folder.iterdir()}
        if stop is not signal.SIGKILL:  # which leaves no time to clean up
            assert left <= {"j.jsonl", "r.html", "r.csv"}
        if "r.html" in left:
            assert (folder / "r.html").read_text().endswith("</html>")
        if "r.csv" in left:
            assert (folder / "r.csv").read_text().endswith("\n")
        if "j.jsonl" in left:
            read_journal(folder / "j.jsonl")
        resumed = xcount_command(*kept, "--resume")
        assert resumed.status == 0
        assert facts_of(json.loads(resumed.out)) == expected
    assert len(statuses) > 1


def test_a_stopped_count_has_an_interval_or_nothing(xcount_command: Command) -> None:
    """What is printed holds the count; nothing else is printed."""
    truth = json.loads(xcount_command(*ASKED_COUNT, "--method", "exact").out)["count"]
    for seconds, stop in moments(n_examples(10), 2, COUNT):
        run = stopped_at(seconds, stop, *COUNT)
        check_stopped(run)
        assert run.out or run.status not in (0, 3)
        if run.out:
            result = json.loads(run.out)
            assert result["low"] <= truth <= result["high"]
            assert (result["stop_reason"] == "interrupted") == (run.status == 3)


@pytest.mark.parametrize("n_signals", [0, 1, 2])
def test_what_was_counted_is_printed_first(n_signals: int) -> None:
    """A signal after the count lets the table be printed; only the next one ends the process."""
    code = f"""
import os, signal
from xcount.cli.progress import stoppable
signal.signal(signal.SIGINT, signal.SIG_DFL)
with stoppable():
    pass
for _ in range({n_signals}):
    os.kill(os.getpid(), signal.SIGINT)
print("a table")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    ended = n_signals == 2
    assert (done.returncode, done.stdout) == ((-signal.SIGINT, "") if ended else (0, "a table\n"))
