"""Check that limits hold: hard models, hard questions, 5 s and 300 MB, Ctrl-C and SIGTERM.

Each question is a command of its own, as a user would type it. The whole process is measured,
interpreter and model included. A limit holds if the process ends within 10 % + 0.5 s of the
time and 10 % + 50 MB of the memory. A signal must end it within a second, whatever it is doing.

    python -m benchmarks.limits --restart --output benchmarks/results/limits.jsonl
    python -m benchmarks.limits --only signals --models trees-5000

A run continues where it ended; ``--table`` only prints what is there. On a busy machine seconds
mean little: ``--processor-time`` checks the processor's seconds, of two cores. The exit status is 1
if something does not hold.
"""

from __future__ import annotations

import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import processes
from benchmarks.harness.options import parser_of
from benchmarks.harness.records import (
    RUNS,
    RecordFile,
    ResumeError,
    Run,
    Runs,
    RunSettings,
    read_run,
)
from benchmarks.harness.tables import joined, made_on, markdown
from benchmarks.limits_models import HARD_MODELS, LIGHTGBM, hard_model

FILE = "limits.jsonl"

TIMEOUT_SECONDS, MEMORY_BYTES = 5.0, 300 * 10**6
LIMITS = ("--timeout", "5s", "--memory", "300MB")
SIGNAL_SECONDS = 1.0
KILL_SECONDS = 60.0
"""When a process that ignores its limit is killed."""
N_CORES = 2

CHANGES = {
    "gap": ("--gap", "1"),
    "flip": ("--flip",),
    "probability": ("--probability-gap", "0.3"),
}
SENSITIVE = ("f0", "f0,f1,f2")
DISTANCES = ("1", "any")
SIGNAL_AFTER = (0.3, 1.0, 2.5)
"""When a process gets a signal: while it imports, reads the model, and counts."""
KINDS = ("limits", "signals")


@dataclass(frozen=True, slots=True)
class Case:
    """One command; ``end`` is the signal that it gets, and ``after`` how many seconds."""

    model: str
    command: str
    words: tuple[str, ...]
    end: int | None = None
    after: float = 0.0

    @property
    def name(self) -> str:
        name = f"{self.model} {self.command} {' '.join(self.words)}"
        if self.end is None:
            return name
        return f"{name}, {signal.Signals(self.end).name} after {self.after:g} s"


@dataclass(frozen=True, slots=True)
class Measured:
    """What became of a process: ``seconds`` since its start, or since the signal."""

    seconds: float
    processor_seconds: float
    peak_bytes: int
    status: int
    has_answer: bool

    def fault(self, case: Case, by_processor: bool) -> str:
        """Return what does not hold; nothing if all does."""
        if case.end is not None:
            return "" if self.seconds <= SIGNAL_SECONDS else "late"
        seconds = self.processor_seconds / N_CORES if by_processor else self.seconds
        faults = {
            "late": seconds > 1.1 * TIMEOUT_SECONDS + 0.5,
            "memory": self.peak_bytes > 1.1 * MEMORY_BYTES + 50e6,
            "no answer": not self.has_answer,
        }
        return ", ".join(name for name, is_so in faults.items() if is_so)


def cases(models: Sequence[str], kinds: Sequence[str]) -> Iterator[Case]:
    """Yield what is asked: every change and distance of a count, and some of other commands."""
    for model in models:
        changes = dict(CHANGES)
        if model == LIGHTGBM:
            changes["gap"] = ("--gap", "30")
        if model.startswith("classes"):
            changes = {name: _of_class(name, words) for name, words in changes.items()}
        for kind in kinds:
            yield from (_limit_cases if kind == "limits" else _signal_cases)(model, changes)


def _of_class(change: str, words: tuple[str, ...]) -> tuple[str, ...]:
    return words if change == "flip" else (*words, "--class", "3")


def _limit_cases(model: str, changes: dict[str, tuple[str, ...]]) -> Iterator[Case]:
    for words in changes.values():
        for sensitive in SENSITIVE:
            for distance in DISTANCES:
                asked = ("--sensitive", sensitive, "--distance", distance, *words)
                yield Case(model, "count", asked)
        yield Case(model, "witness", ("--sensitive", "f0", "--distance", "any", *words))
    yield Case(model, "audit", ("--sensitive", "f0", "--distance", "any", *changes["gap"]))


def _signal_cases(model: str, changes: dict[str, tuple[str, ...]]) -> Iterator[Case]:
    asked = ("--sensitive", "f0,f1,f2", "--distance", "any")
    for after in SIGNAL_AFTER:
        for end in (signal.SIGINT, signal.SIGTERM):
            yield Case(model, "count", (*asked, *changes["flip"]), end, after)
            yield Case(model, "witness", (*asked, *changes["gap"]), end, after)


def measure(case: Case, path: Path) -> Measured:
    """Run one command, and end it if that is the question."""
    command = [sys.executable, "-m", "xcount", case.command, str(path), *case.words, "--json"]
    if case.end is None:
        command += LIMITS
    done = processes.run(command, KILL_SECONDS, end=case.end, after=case.after)
    return Measured(
        done.wall_seconds, done.cpu_seconds, done.peak_bytes, done.status, bool(done.output)
    )


Measure = Callable[[Case, Path], Measured]


def row(record: Mapping[str, Any]) -> list[str]:
    """Return a line of the table."""
    return [
        record["name"],
        f"{record['seconds']:.1f}",
        f"{record['processor_seconds']:.1f}",
        f"{record['peak_bytes'] / 1e6:.0f}",
        str(record["status"]),
        record["fault"] or "yes",
    ]


def report(run: Run) -> str:
    """Return the table as Markdown: on which machine, what is checked, and what does not hold."""
    settings = run.settings
    by_processor = any(record["by_processor"] for record in run.records)
    clock = "processor's seconds, halved" if by_processor else "clock's seconds"
    about = (
        f"Limits of {settings.limit_seconds:g} s and {settings.memory_bytes / 1e6:g} MB, checked "
        f"by the {clock}; signals by the clock's. {made_on(run.header)}"
    )
    header = ["command", "seconds", "processor", "peak MB", "status", "holds"]
    faults = [f"- {r['name']}: {r['fault']}" for r in run.records if r["fault"]]
    verdict = f"{len(faults)} of {len(run.records)} do not hold{':' if faults else '.'}"
    table = markdown(header, map(row, run.records))
    return joined(about, table, verdict, "\n".join(faults))


def section(runs: Runs, folder: Path) -> str:
    """Return the commands that a folder holds."""
    return report(read_run(folder / FILE))


def run_cases(
    asked: Iterable[Case], paths: Mapping[str, Path], options: Namespace, measure: Measure = measure
) -> None:
    """Measure the cases that the file does not hold yet."""
    settings = RunSettings("limits", "auto", TIMEOUT_SECONDS, MEMORY_BYTES)
    file = RecordFile(options.output, settings, options.restart)
    for case in asked:
        if case.name in file.done:
            continue
        found = measure(case, paths[case.model])
        fault = found.fault(case, options.processor_time)
        checked = {"by_processor": options.processor_time, "fault": fault}
        file.add({"name": case.name, "after": case.after, **asdict(found), **checked})
        print(f"{case.name}: {found.seconds:.1f} s, {fault or 'holds'}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("benchmarks.limits", __doc__, RUNS / FILE)
    parser.add_argument("--models", nargs="*", choices=HARD_MODELS, default=HARD_MODELS)
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--restart", action="store_true", help="forget what the file holds")
    parser.add_argument("--table", action="store_true", help="only print what the file holds")
    options = parser.parse_args(arguments)
    try:
        if not options.table:
            paths = {name: hard_model(name, options.cache, options.data) for name in options.models}
            asked = cases(options.models, (options.only,) if options.only else KINDS)
            run_cases(asked, paths, options)
    except ResumeError as error:
        print(error, file=sys.stderr)
        return 2
    run = read_run(options.output)
    print(report(run))
    return 1 if any(record["fault"] for record in run.records) else 0


if __name__ == "__main__":
    sys.exit(main())
