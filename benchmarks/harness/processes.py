"""Run commands in child processes within limits, and measure what they take."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

GRACE_SECONDS = 5.0
"""How long after its limit a counter may take to return by itself before it is killed."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A process that has ended: what it printed and what it took.

    ``status`` is its exit status, negative for the signal that ended it. ``wall_seconds`` run from
    its start, or from the signal that it was sent.
    """

    output: str
    errors: str
    status: int
    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int


def run(
    command: Sequence[str],
    kill_seconds: float,
    memory_bytes: int | None = None,
    environment: Mapping[str, str] | None = None,
    end: int | None = None,
    after: float = 0.0,
) -> Finished:
    """Run a command and wait for it.

    Args:
        command: the program and its arguments.
        kill_seconds: when it and all it started are killed.
        memory_bytes: a limit of its address space; None for none.
        environment: variables that replace those of this process.
        end: a signal to send to it.
        after: seconds from its start to that signal.
    """
    started = time.monotonic()
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env=os.environ | (environment or {}),
            start_new_session=True,
        )
        if memory_bytes is not None:
            resource.prlimit(process.pid, resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        if end is not None:
            time.sleep(after)
            os.kill(process.pid, end)  # not reaped yet, even if it has ended
            started = time.monotonic()
        timer = threading.Timer(kill_seconds, kill_group, [process.pid])
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        return Finished(
            _text(output),
            _text(errors),
            process.returncode,
            time.monotonic() - started,
            usage.ru_utime + usage.ru_stime,
            usage.ru_maxrss * 1024,
        )


def kill_group(pid: int) -> None:
    """Kill a process that leads a group, and the whole group."""
    for kill in (os.kill, os.killpg):
        with suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _text(stream: IO[str]) -> str:
    stream.seek(0)
    return stream.read()
