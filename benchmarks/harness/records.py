"""Records of runs: JSON lines, a header first, then one record for each instance.

Each record is written at once. A run that was stopped continues where it ended; a line that was cut
off is dropped.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from benchmarks.harness.datasets import PROJECT

GIB = 1 << 30
RESULTS = PROJECT / "benchmarks" / "results"
"""Kept results, which the pages show."""
RUNS = PROJECT / "benchmarks" / "runs"
"""Results of this machine."""


SLOWEST = 30.0
"""How many times as long as its limit of processor time an instance may take on a busy machine."""


class Status(StrEnum):
    """How an instance ended."""

    EXACT = "exact"
    GUARANTEE = "guarantee"  # within epsilon, with probability 1 - delta
    STOPPED = "stopped"  # the counter gave up by itself, with bounds
    TIMEOUT = "timeout"  # killed, or answered too late
    MEMORY = "memory"  # ran into the memory limit, or was killed at it
    CRASH = "crash"
    ERROR = "error"

    @property
    def solved(self) -> bool:
        return self in {Status.EXACT, Status.GUARANTEE}


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How a suite is run: a resumed run must have the same settings.

    With ``processor_time``, limits and seconds are the processor's, so that they do not depend on
    what else the machine does; only instances in processes of their own can be limited so.
    """

    suite: str
    method: str = "auto"
    limit_seconds: float = 1800.0
    memory_bytes: int = 4 * GIB
    epsilon: float = 0.1
    delta: float = 0.1
    seed: int = 0
    jobs: int = 0
    isolated: bool = False
    workers: int = 1
    processor_time: bool = False

    @property
    def wall_seconds(self) -> float:
        """When an instance is given up at the latest, by the clock on the wall."""
        return self.limit_seconds * (SLOWEST if self.processor_time else 1.0)

    @property
    def n_threads(self) -> int:
        """Threads of one count: what was asked, else the cores that a worker has to itself."""
        return self.jobs or max(1, (os.cpu_count() or 1) // self.workers)


class ResumeError(Exception):
    """The file holds a run with other settings."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run read back: its settings, where and when it was made, and one record per instance."""

    settings: RunSettings
    header: Mapping[str, Any]
    records: tuple[Mapping[str, Any], ...]


class RecordFile:
    """The file of a run, open for appending."""

    def __init__(self, path: Path, settings: RunSettings, restart: bool = False) -> None:
        """Open the file; go on with what it holds unless ``restart`` is set."""
        self.path = path
        self.done: dict[str, Mapping[str, Any]] = {}
        if restart:
            path.unlink(missing_ok=True)
        if path.exists() and path.stat().st_size:
            self._resume(settings)
        else:
            append_line(
                self.path, {"record": "header", "settings": asdict(settings), **surroundings()}
            )

    def _resume(self, settings: RunSettings) -> None:
        lines = read_lines(self.path)
        self.path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        if not lines or RunSettings(**lines[0].get("settings", {"suite": ""})) != settings:
            raise ResumeError(
                f"{self.path} holds a run with other settings; name another file with --output, "
                "or start afresh with --restart"
            )
        self.done = {line["name"]: line for line in lines if line["record"] == "instance"}
        append_line(self.path, {"record": "resumed", **surroundings()})

    def add(self, record: Mapping[str, Any]) -> None:
        """Write one instance's record; it is on the disk when this returns."""
        append_line(self.path, {"record": "instance", **record})
        self.done[record["name"]] = record


def read_run(path: Path) -> Run:
    """Read what a run wrote; a file whose name ends in .gz is unpacked."""
    lines = read_lines(path)
    if not lines or lines[0].get("record") != "header":
        raise ValueError(f"{path} does not begin with the header of a run")
    records = {line["name"]: line for line in lines if line["record"] == "instance"}
    return Run(RunSettings(**lines[0]["settings"]), _whole_header(lines), tuple(records.values()))


def _whole_header(lines: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the header of a run with the revisions of all its parts that wrote a record."""
    revisions: dict[str | None, None] = {}
    revision = None
    for line in lines:
        if line["record"] == "instance":
            revisions[revision] = None
        else:
            revision = line.get("revision")
    found = [each for each in revisions if each]
    return dict(lines[0]) | ({"revision": " and ".join(found)} if found else {})


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read the whole lines of a file of JSON lines, packed if its name ends in .gz.

    A file that does not exist has none; a line that was cut off is dropped.
    """
    if not path.exists():
        return []
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in text.split(b"\n")[:-1]]


def append_line(path: Path, line: Mapping[str, Any]) -> None:
    """Add a line to a file of JSON lines; it is on the disk when this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        stream.write(json.dumps(line) + "\n")


Runs = Mapping[str, Sequence[Run]]
"""The runs of each suite, by its name."""


def runs_by_suite(folder: Path) -> Runs:
    """Return the runs in a folder that have records, by suite.

    They are files called ``SUITE-METHOD.jsonl``; a packed run yields to one that is not packed.
    """
    plain = list(folder.glob("*-*.jsonl"))
    packed = [path for path in folder.glob("*-*.jsonl.gz") if path.with_suffix("") not in plain]
    by_suite: dict[str, list[Run]] = {}
    for run in map(read_run, sorted([*plain, *packed])):
        if run.records:
            by_suite.setdefault(run.settings.suite, []).append(run)
    return by_suite


def surroundings() -> dict[str, Any]:
    """Return what a measurement depends on: date, machine, load, versions, revision."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "load": round(os.getloadavg()[0], 1),
        "placement": _own_placement(),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "system": " ".join([platform.system(), platform.release().split("-")[0]]),
        },
        "versions": _versions(),
        "revision": _revision(),
    }


def _own_placement() -> str:
    if sys.platform != "linux":
        return ""
    is_real_time = os.sched_getscheduler(0) in {os.SCHED_RR, os.SCHED_FIFO}
    return placement(len(os.sched_getaffinity(0)), os.cpu_count() or 1, is_real_time)


def placement(n_allowed: int, n_cores: int, is_real_time: bool) -> str:
    """Say which cores a process may use and whether it yields to others, if that is limited.

    With a real-time priority a pinned process has its cores to itself, whatever the load.
    """
    pinned = f"pinned to {n_allowed} core{'s' * (n_allowed > 1)}" if n_allowed < n_cores else ""
    return ", ".join(filter(None, [pinned, "real-time priority" * is_real_time]))


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


LIBRARIES = (
    "xgboost", "xgboost-cpu", "lightgbm", "catboost", "scikit-learn", "pyganak", "pyapproxmc"
)  # fmt: skip


def _versions() -> dict[str, str]:
    from importlib import metadata

    from xcount.answers.count import versions

    found = versions()
    for package in LIBRARIES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _revision() -> str | None:
    """Return the commit that was measured, with ``+`` when files had been changed since.

    Where there is no repository, as in a container, ``XCOUNT_REVISION`` tells.
    """
    if named := os.environ.get("XCOUNT_REVISION"):
        return named
    command = ["git", "-C", str(PROJECT), "describe", "--always", "--dirty=+", "--abbrev=10"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()
