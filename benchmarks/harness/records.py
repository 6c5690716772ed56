"""What a run writes: JSON lines, a header first, then one record per instance, each at once.

A run that was stopped goes on where it ended; a line that was cut off is dropped.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

from benchmarks.harness.datasets import PROJECT

GIB = 1 << 30


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
    """How a suite is run: what a resumed run must have in common with its beginning."""

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
        path.parent.mkdir(parents=True, exist_ok=True)
        if restart:
            path.unlink(missing_ok=True)
        if path.exists() and path.stat().st_size:
            self._resume(settings)
        else:
            self._append({"record": "header", "settings": asdict(settings), **surroundings()})

    def _resume(self, settings: RunSettings) -> None:
        lines = list(_lines(self.path))
        self.path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        if not lines or lines[0].get("settings") != asdict(settings):
            raise ResumeError(
                f"{self.path} holds a run with other settings; name another file with --output, "
                "or start afresh with --restart"
            )
        self.done = {line["name"]: line for line in lines if line["record"] == "instance"}
        self._append({"record": "resumed", **surroundings()})

    def add(self, record: Mapping[str, Any]) -> None:
        """Write one instance's record; it is on the disk when this returns."""
        self._append({"record": "instance", **record})
        self.done[record["name"]] = record

    def _append(self, record: Mapping[str, Any]) -> None:
        with self.path.open("a") as stream:
            stream.write(json.dumps(record) + "\n")


def read_run(path: Path) -> Run:
    """Read what a run wrote; a file whose name ends in .gz is unpacked."""
    lines = list(_lines(path))
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


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    stream: IO[str]
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as stream:
        for line in stream:
            if line.endswith("\n"):
                yield json.loads(line)


def surroundings() -> dict[str, Any]:
    """Return the date, the machine, its load and the versions that a measurement depends on."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "load": round(os.getloadavg()[0], 1),
        "placement": _placement(),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "system": " ".join([platform.system(), platform.release().split("-")[0]]),
        },
        "versions": _versions(),
        "revision": _revision(),
    }


def _placement() -> str:
    """Say which cores this process may use and whether it yields to others, where that is limited.

    With a real-time priority a pinned process has its cores to itself, whatever the load.
    """
    if sys.platform != "linux":
        return ""
    allowed = len(os.sched_getaffinity(0))
    pinned = allowed < (os.cpu_count() or 1)
    real_time = os.sched_getscheduler(0) in {os.SCHED_RR, os.SCHED_FIFO}
    words = [f"pinned to {allowed} core{'s' * (allowed > 1)}"] if pinned else []
    words += ["real-time priority"] if real_time else []
    return ", ".join(words)


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
