"""A real Dask scheduler and real workers: processes on loopback that a test starts and stops."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

LOOPBACK = ("--host", "127.0.0.1")
START_SECONDS = 30.0


class DaskProcesses:
    """A scheduler and its workers, with options that all of them get; all end with the context."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._folder, self._options = folder, options
        self._processes: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start("scheduler", "--port", "0", "--no-dashboard")
        self.address = self._address_of(self.scheduler)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()

    def add_worker(
        self, *options: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a worker with one thread; it joins when it is ready."""
        fixed = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "0")
        return self._start("worker", self.address, *fixed, *options, environment=environment)

    def _start(
        self, command: str, *options: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        log = self._folder / f"{command}-{len(self._processes)}.log"
        common = (*LOOPBACK, *self._options)
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{command}", *common, *options],
                stdout=output,
                stderr=output,
                cwd=self._folder,
                env={**os.environ, **(environment or {})},
            )
        self._processes.append(process)
        return process

    def _address_of(self, scheduler: subprocess.Popen[bytes]) -> str:
        """Wait until the scheduler says where it listens."""
        log = self._folder / "scheduler-0.log"
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and scheduler.poll() is None:
            for line in log.read_text().splitlines():
                if "Scheduler at:" in line:
                    return line.split()[-1]
            time.sleep(0.05)
        self.__exit__(None, None, None)
        raise RuntimeError(f"no scheduler started:\n{log.read_text()}")
