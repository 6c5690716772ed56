"""Commands whose standard error is a terminal, as people run them."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

COMMAND = [sys.executable, "-m", "xcount"]


@dataclass(frozen=True)
class Watched:
    """A command that was stopped when it had shown something: its end, and what was seen of it."""

    status: int
    out: str
    shown: str
    seconds_to_end: float

    @property
    def left(self) -> str:
        """What stays on the terminal: the text after the last erased line."""
        return self.shown.rpartition("\x1b[2K")[2].replace("\x1b[?25h", "")


def stopped_when(
    words: str, arguments: Sequence[object], stop: signal.Signals = signal.SIGINT
) -> Watched:
    """Run a command in a terminal, and send a signal as soon as it shows these words."""
    controller, terminal = pty.openpty()
    command = [*COMMAND, *map(str, arguments)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    shown = b""
    stopped_at = 0.0
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=terminal, env=environment
    ) as process:
        os.close(terminal)
        while part := _read(controller):
            shown += part
            if not stopped_at and words.encode() in shown:
                stopped_at = time.monotonic()
                process.send_signal(stop)
        assert process.stdout is not None
        out = process.stdout.read().decode()
    os.close(controller)
    seconds = time.monotonic() - stopped_at
    return Watched(process.returncode, out, shown.decode(), seconds)


def _read(controller: int) -> bytes:
    try:
        return os.read(controller, 4096)
    except OSError:  # the other end is closed
        return b""
