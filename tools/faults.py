"""Makes every allocation and every I/O call of a command fail once, in turn.

    python -m tools.faults                   # every call: takes about half an hour
    python -m tools.faults --most 50         # of each kind in each command, 50 calls
    python -m tools.faults --only audit      # one command
    python -m tools.faults --minutes 40      # as many as 40 minutes allow, spread over the calls

A fault is one call that fails, or all calls of its kind from that one on: an ``operator new`` in
the native core, or an open, read, write, fsync or rename in Python. After each fault:

- the exit status is a documented one, and an error is one line that is no internal error;
- an answer is the right one, or an interval that holds, and the verdict is the right one or none;
- files are whole, as they were, or absent, and no temporary file is left;
- no line of the journal is lost or damaged, and ``--resume`` gives the right answer, or the one
  that the run with the fault gave.

Anything else is a finding: it is printed, and the exit status is 1. Each fault runs in a process
that is forked after all imports. Allocations need a C++ compiler; without one they are left out,
and that is said.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

from tools import failing_io
from tools.failing_io import Fault

SHIM = Path(__file__).with_name("failing_allocations.cpp")
KINDS = ("allocate", *failing_io.KINDS)
LIMIT_SECONDS = 60
_STATUSES = (0, 1, 2, 3)

_QUESTION = ("--sensitive", "age", "--gap", "1", "--json", "--jobs", "1", "--seed", "7")
_AUDIT = ("--gap", "1,2", "--max-share", "90%", "--json", "--jobs", "1", "--journal", "j.jsonl")


@dataclass(frozen=True)
class Scenario:
    """A command, run in a folder with a model, another model, people and a finished journal.

    Attributes:
        words: the command line.
        outputs: files that it writes, besides the journal.
        n_kept: lines of ``done.jsonl`` that its journal starts with; None without a journal.
    """

    words: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    n_kept: int | None = None


_PEOPLE = ("--data", "people.csv", "--population", "fit.json", "--measure", "rows,population")
_PAGES = ("--html", "r.html", "--csv", "r.csv")

SCENARIOS = {
    "count": Scenario(("count", "m.json", *_QUESTION)),
    "exact": Scenario(("count", "m.json", *_QUESTION, "--method", "exact", "--profile")),
    "sample": Scenario(("count", "m.json", *_QUESTION, "--method", "sample", "--epsilon", "0.3")),
    "people": Scenario(("count", "m.json", *_QUESTION, *_PEOPLE, "--explain"), ("fit.json",)),
    "audit": Scenario(
        ("audit", "m.json", *_AUDIT, *_PAGES, "--markdown", "r.md"), ("r.html", "r.csv", "r.md"), 0
    ),
    "resume": Scenario(
        ("audit", "m.json", *_AUDIT, "--resume", "--html", "r.html"), ("r.html",), 3
    ),
    "compare": Scenario(
        ("compare", "m.json", "n.json", *_QUESTION, *_PAGES, "--journal", "j.jsonl"),
        ("r.html", "r.csv"),
        0,
    ),
    "report": Scenario(
        ("report", "done.jsonl", "--json", *_PAGES, "--markdown", "r.md"),
        ("r.html", "r.csv", "r.md"),
    ),
}


@dataclass(frozen=True)
class Ended:
    """What a command left behind: its exit status (negative for a signal) and its output."""

    status: int
    out: str
    err: str
    n_calls: Counter[str] = field(default_factory=Counter)


def prepare(folder: Path) -> None:
    """Make two small models, a table of people and a finished journal."""
    import numpy as np

    from tools.soak import random_tree

    names = ["age", "sex", "hours", "zip"]
    for file, seed in (("m.json", 3), ("n.json", 4)):
        random = np.random.default_rng(seed)
        trees = [_dumped(random_tree(random, 4, 3), names) for _ in range(6)]
        (folder / file).write_text(json.dumps(trees))
    rows = [",".join(str((i * k) % 7) for k in (1, 2, 3, 5)) for i in range(60)]
    (folder / "people.csv").write_text("\n".join([",".join(names), *rows]) + "\n")
    done = run_command(("audit", "m.json", *_AUDIT), folder, Fault())
    assert done.status in (0, 1), done.err
    (folder / "j.jsonl").rename(folder / "done.jsonl")


def _dumped(tree: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return a tree as XGBoost's ``dump_model`` writes it."""
    numbers = iter(range(1000))

    def node(tree: Any) -> dict[str, Any]:
        number = next(numbers)
        if not isinstance(tree, tuple):
            return {"nodeid": number, "leaf": tree}
        feature, threshold, low, high = tree
        children = [node(low), node(high)]
        first, second = (child["nodeid"] for child in children)
        split = {"split": names[feature], "split_condition": threshold, "missing": first}
        return {"nodeid": number, **split, "yes": first, "no": second, "children": children}

    return node(tree)


# ---- one command with one fault ----


def run_command(words: Sequence[str], folder: Path, fault: Fault) -> Ended:
    """Run a command in a folder, in a forked process that has one fault."""
    with tempfile.TemporaryDirectory() as name:
        seen = Path(name)
        child = os.fork()
        if child == 0:
            _run_child(words, folder, fault, seen)
        status = _wait(child)
        out, err = ((seen / file).read_text(errors="replace") for file in ("out", "err"))
        calls = (seen / "calls").read_text() or "{}"  # nothing if a signal ended it
        return Ended(status, out, err, Counter(json.loads(calls)))


def _run_child(words: Sequence[str], folder: Path, fault: Fault, seen: Path) -> None:
    """Run a command in this process and end it."""
    status = 99
    try:
        from xcount.cli import main

        os.chdir(folder)
        for descriptor, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(seen / name, os.O_WRONLY | os.O_CREAT), descriptor)
        calls = os.open(seen / "calls", os.O_WRONLY | os.O_CREAT)
        write = os.write
        failing_io.install(fault)
        is_allocation = fault.kind == "allocate"
        _watch_allocations(fault.number if is_allocation else 0, fault.is_lasting)
        status = main(list(words))
        fault.n_calls["allocate"] = _n_allocations()
        write(calls, json.dumps(fault.n_calls).encode())
    finally:
        os._exit(status)


def _wait(child: int) -> int:
    """Return the status of a process, minus its signal's number if one ended it."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -signal.SIGKILL


def _watch_allocations(number: int, is_lasting: bool) -> None:
    from xcount import _core

    if has_shim():
        inside = ctypes.CDLL(_core.__file__).PyInit__core
        address = ctypes.cast(inside, ctypes.c_void_p)
        ctypes.CDLL(None).xcount_fail_allocations(address, ctypes.c_long(number), int(is_lasting))


def _n_allocations() -> int:
    return int(ctypes.CDLL(None).xcount_allocations()) if has_shim() else 0


def has_shim() -> bool:
    """Return whether allocations can fail in this process."""
    return hasattr(ctypes.CDLL(None), "xcount_fail_allocations")


# ---- what a fault must not do ----


def problems(
    scenario: Scenario, truth: Ended, ended: Ended, folder: Path, whole: Path
) -> Iterator[str]:
    """Yield what is wrong after a fault; ``whole`` is the folder of the run without one."""
    lines = [line for line in ended.err.splitlines() if not line.startswith("xcount: note: ")]
    if ended.status not in _STATUSES:
        yield f"status {ended.status}"
    if "Traceback" in ended.err or "internal error" in ended.err:
        yield "a traceback or an internal error"
    elif len(lines) != (ended.status == 2):
        yield f"{len(lines)} lines of error"
    if ended.status in (0, 1, 3):
        yield from _wrong_answers(truth, ended)
    is_other = ended.status in (0, 1, 3) and _answers(ended) != _answers(truth)
    for name in scenario.outputs:
        old, new = whole / name, folder / name
        if new.exists() and not (_is_ended(new) and (is_other or _n_lines(new) == _n_lines(old))):
            yield f"{name} is not whole"
        elif ended.status == truth.status and not new.exists():
            yield f"{name} is missing"
    known = {path.name for path in whole.iterdir()}
    if extra := sorted(path.name for path in folder.iterdir() if path.name not in known):
        yield f"left behind: {', '.join(extra)}"
    if scenario.n_kept is not None:
        yield from _lost_lines(scenario, truth, ended, folder)


def _wrong_answers(truth: Ended, ended: Ended) -> Iterator[str]:
    found, right = _answers(ended), _answers(truth)
    if found is None:
        yield "no answer"
        return
    verdict = found.get("verdict")
    if verdict not in (right.get("verdict"), "UNDECIDED"):
        yield f"verdict {verdict}, not {right.get('verdict')}"
    rights = {_asked(each): each for each in _counts(right)}
    for each in _counts(found):
        exact = rights[_asked(each)]
        if not (each["low"] <= exact["high"] and exact["low"] <= each["high"]):
            yield f"{_asked(each)}: {each['low']} to {each['high']}, not {exact['count']}"
        if each["exact"] and exact["exact"] and each["count"] != exact["count"]:
            yield f"{_asked(each)}: exactly {each['count']}, not {exact['count']}"


def _counts(data: dict[str, Any]) -> list[dict[str, Any]]:
    if "rows" in data:
        return [each for row in data["rows"] for each in row["results"] if each is not None]
    found: list[dict[str, Any]] = data.get("results", [data])
    return found


def _asked(count: dict[str, Any]) -> tuple[str, ...]:
    return (str(count["model"].get("sha256")), str(count["sensitive"]), str(count.get("gap")))


_VARYING = {"seconds", "peak_memory_bytes", "created", "start", "work", "statistics"}


def _facts(data: Any) -> Any:
    """Return what does not differ from run to run."""
    if isinstance(data, dict):
        return {key: _facts(value) for key, value in data.items() if key not in _VARYING}
    return [_facts(each) for each in data] if isinstance(data, list) else data


def _answers(ended: Ended) -> Any:
    """Return what a command answered; None if that is no JSON."""
    try:
        return _facts(json.loads(ended.out))
    except ValueError:
        return None


def _is_ended(path: Path) -> bool:
    """Return whether a file ends as a whole one does."""
    ends = {".html": b"</html>", ".json": b"}"}
    return path.read_bytes().rstrip(b"\n").endswith(ends.get(path.suffix, b""))


def _n_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def _lost_lines(scenario: Scenario, truth: Ended, ended: Ended, folder: Path) -> Iterator[str]:
    """Check the journal after a fault, and that the run can be resumed from it.

    A run that answered all the same, if only with an estimate, is what its journal holds.
    """
    from xcount.runs.journal import DamagedLine, read_journal

    journal = folder / "j.jsonl"
    if journal.exists():
        before = b"".join(_first_lines(folder, scenario.n_kept or 0))
        if not journal.read_bytes().startswith(before):
            yield "lines of the journal are lost"
        if any(isinstance(line, DamagedLine) for line in read_journal(journal)):
            yield "lines of the journal are damaged"
    resume = () if "--resume" in scenario.words else ("--resume",)
    again = run_command((*scenario.words, *resume), folder, Fault())
    if again.status not in (truth.status, ended.status) or "not used" in again.err:
        yield f"--resume ends with status {again.status}: {again.err.strip()}"
    elif _answers(again) not in (_answers(truth), _answers(ended)):
        yield "--resume gives another answer"


def _first_lines(folder: Path, number: int) -> list[bytes]:
    return (folder / "done.jsonl").read_bytes().splitlines(keepends=True)[:number]


# ---- all faults ----


@dataclass
class Tally:
    """Faults of one kind in one command."""

    calls: int = 0
    faults: int = 0
    answered: int = 0
    findings: int = 0

    def __str__(self) -> str:
        return (
            f"{self.calls} calls, {self.faults} faults: {self.answered} answered all the same, "
            f"{self.faults - self.answered} ended with an error, {self.findings} findings"
        )

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True)
class Extent:
    """How many of the calls are made to fail: at most a number of each kind, until a deadline."""

    most: int | None = None
    deadline: float = math.inf

    def numbers_of_calls(self, n_calls: int) -> Iterator[int]:
        """Yield the numbers of the calls that are to fail, evenly spread if they are not all."""
        n_tried = n_calls if self.most is None else min(n_calls, self.most)
        numbers = [1 + (2 * i + 1) * n_calls // (2 * n_tried) for i in range(n_tried)]
        if self.deadline < math.inf:
            random.Random(0).shuffle(numbers)
        for number in numbers:
            if time.monotonic() > self.deadline:
                return
            yield number


def run_scenario(
    name: str, kinds: Sequence[str], extent: Extent, prepared: Path, work: Path
) -> dict[str, Tally]:
    """Inject faults of some kinds into one command; print and count the findings."""
    scenario = SCENARIOS[name]

    def fresh(place: str) -> Path:
        folder = work / place
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(prepared, folder)
        if scenario.n_kept:
            (folder / "j.jsonl").write_bytes(b"".join(_first_lines(folder, scenario.n_kept)))
        return folder

    whole = fresh("whole")
    truth = run_command(scenario.words, whole, Fault())
    if truth.status not in (0, 1) or list(problems(scenario, truth, truth, whole, whole)):
        raise RuntimeError(f"{name} fails without a fault: {truth.err}")
    tallies = {}
    for kind in kinds:
        tally = tallies[kind] = Tally(calls=truth.n_calls[kind])
        for number in extent.numbers_of_calls(tally.calls):
            for is_lasting in (False, True):
                folder = fresh("faulty")
                fault = Fault(kind, number, is_lasting)
                ended = run_command(scenario.words, folder, fault)
                found = list(problems(scenario, truth, ended, folder, whole))
                tally.faults += 1
                tally.answered += ended.status in (0, 1, 3)
                tally.findings += bool(found)
                if found:
                    what = "all from" if is_lasting else "number"
                    print(
                        f"{name}, {kind} {what} {number}: {'; '.join(found)}: {ended.err[-300:]}",
                        flush=True,
                    )
        print(f"{name}, {kind}: {tally}", flush=True)
    return tallies


def load_modules(folder: Path) -> None:
    """Import everything that the commands need, so that forked processes need not."""
    for scenario in SCENARIOS.values():
        (folder / "j.jsonl").unlink(missing_ok=True)
        listed = _modules_of(scenario, folder)
        for name in listed:
            if name.partition(".")[0] in ("xcount", "rich", "click", "numpy"):
                importlib.import_module(name)


def _modules_of(scenario: Scenario, folder: Path) -> list[str]:
    """Return the modules that a command imports."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            from xcount.cli import main

            os.chdir(folder)
            for descriptor in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
            main(list(scenario.words))
            with os.fdopen(writer, "w") as file:
                file.write("\n".join(sys.modules))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        listed = file.read().split()
    os.waitpid(child, 0)
    return listed


def preload_shim(arguments: Sequence[str]) -> int | None:
    """Run this program again with the shim of allocations; None if it cannot be built."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "failing_allocations.so"
        command = [compiler, "-std=c++17", "-O1", "-fPIC", "-shared", str(SHIM), "-o", str(library)]
        subprocess.run([*command, "-ldl"], check=True)
        again = [sys.executable, "-m", "tools.faults", *arguments]
        environment = {**os.environ, "LD_PRELOAD": str(library), "OPENBLAS_NUM_THREADS": "1"}
        return subprocess.run(again, check=False, env=environment).returncode


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.faults", description=__doc__)
    parser.add_argument("--most", type=int, help="try N calls of each kind in each command")
    parser.add_argument("--only", choices=SCENARIOS, help="one command instead of all")
    parser.add_argument("--kind", choices=KINDS, help="one kind of fault instead of all")
    parser.add_argument("--minutes", type=float, help="stop after so long")
    asked = parser.parse_args(arguments)
    if not has_shim():
        status = preload_shim(arguments)
        if status is not None:
            return status
        print("no C++ compiler: allocations are left out")
    total = Tally()
    limit = math.inf if asked.minutes is None else 60 * asked.minutes
    extent = Extent(asked.most, time.monotonic() + limit)
    with tempfile.TemporaryDirectory() as name:
        prepared, work = Path(name) / "prepared", Path(name)
        prepared.mkdir()
        prepare(prepared)
        shutil.copytree(prepared, work / "modules")
        load_modules(work / "modules")
        for scenario in SCENARIOS if asked.only is None else (asked.only,):
            kinds = KINDS if asked.kind is None else (asked.kind,)
            tallies = run_scenario(scenario, kinds, extent, prepared, work)
            total = sum(tallies.values(), total)
    print(f"together: {total}")
    return int(total.findings > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
