"""A model counter in a child process, so that time and memory limits and Ctrl-C always work."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from xcount.baselines.cnf.formula import Formula
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason
from xcount.errors import MissingExtraError, XCountError

_INSTALL = {
    "ganak": "pip install 'xcount[baselines]'",
    "approxmc": (
        "pip install 'xcount[baselines]'; if pyganak was installed later (it also has a module "
        "of that name): pip install --force-reinstall --no-deps pyapproxmc==4.1.24"
    ),
}


class SolverStopped(Exception):  # noqa: N818  # not an error: a limit was reached
    """The counter was stopped by a limit."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(str(reason))
        self.reason = reason


class Solver:
    """A child process that answers one formula after another; use it as a context manager."""

    def __init__(self, name: str, settings: Settings) -> None:
        self._name = name
        seconds = settings.seconds_left()
        if seconds is not None:
            seconds = min(max(seconds, 0.001), threading.TIMEOUT_MAX)
        self._memory_bytes = min(settings.memory_bytes or 0, sys.maxsize)
        self._timed_out = False
        limits = ["0" if seconds is None else str(seconds), str(self._memory_bytes)]
        module = "xcount.baselines.cnf.child"
        # A file, not a pipe: nothing reads it while the counter works, and a full pipe would block.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed by __exit__
        self._child = subprocess.Popen(
            [sys.executable, "-m", module, name, *limits],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # Ctrl-C goes to the parent, which then stops the child
        )
        self._timer = None if seconds is None else threading.Timer(seconds, self._time_out)
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._child.kill()
        self._child.wait()
        for stream in (self._child.stdin, self._child.stdout, self._errors):
            if stream is not None:
                _close(stream)

    def count(self, formula: Formula, **parameters: Any) -> Mapping[str, Any]:
        """Return the counter's answer: ``count``, ``version`` and more."""
        job = {
            "parameters": parameters,
            "n_variables": formula.n_variables,
            "show": formula.show,
            "n_literals": len(formula.clauses),
        }
        try:
            return self._ask(json.dumps(job).encode() + b"\n", formula.clauses.tobytes())
        except OSError:  # the child is gone
            return self._explain_end()

    def _ask(self, head: bytes, body: bytes) -> Mapping[str, Any]:
        if self._child.stdin is None or self._child.stdout is None:
            raise XCountError("the model counter has no pipes")
        self._child.stdin.write(head)
        self._child.stdin.write(body)
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        if not line:
            return self._explain_end()
        answer: dict[str, Any] = json.loads(line)
        if "absent" in answer:
            raise MissingExtraError(f"{answer['absent']}; {_INSTALL[self._name]}")
        return answer

    def _time_out(self) -> None:
        self._timed_out = True
        self._child.kill()

    def _explain_end(self) -> Mapping[str, Any]:
        """Raise the error that explains why the child exited."""
        status = self._child.wait()
        if self._timed_out:
            raise SolverStopped(StopReason.TIMEOUT)
        self._errors.seek(0)
        message = self._errors.read().decode(errors="replace").strip()
        # Under a memory limit the counters crash with bad_alloc, abort or a null pointer.
        by_limit = status < 0 and self._memory_bytes > 0
        if by_limit or "MemoryError" in message or "bad_alloc" in message:
            raise SolverStopped(StopReason.MEMORY)
        last = message.splitlines()[-1] if message else "no message"
        raise XCountError(f"{self._name} ended {_end_text(status)}: {last}")


def _end_text(status: int) -> str:
    if status >= 0:
        return f"with status {status}"
    try:
        return f"by {signal.Signals(-status).name}"
    except ValueError:  # a signal without a name
        return f"by signal {-status}"


def _close(stream: Any) -> None:
    try:
        stream.close()
    except OSError:  # what could not be written is no longer needed
        return
