"""Checks that limits hold: the frontier's hardest questions with 5 seconds, and with 500 MB.

Each question is a command of its own, as a user would give it. What is measured is the whole
process, interpreter and model included: `--timeout 5s` is to end within 6 s, `--memory 500MB` is to
stay below 500 MB, and the result is to name the limit. Exit status 1 if one does not.

    python -m benchmarks.limits
    python -m benchmarks.limits --only time --questions 5

On a busy machine seconds mean little: give `--processor-time` to check the processor's seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.instances import Instance, frontier_instances

TIMEOUT_SECONDS, TIME_ALLOWED = 5.0, 6.0
MEMORY_BYTES = 500 * 10**6
NO_RESULT = "no result"
KILL_SECONDS = 60.0
"""When a process that ignores its limit is killed."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit, as options of the command."""

    name: str
    options: tuple[str, ...]


LIMITS = (
    Limit("time", ("--timeout", "5s", "--memory", "8GB")),
    Limit("memory", ("--timeout", "20s", "--memory", "500MB")),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """What became of a process.

    ``seconds`` is None where it was killed; the counting and the reason are what its result says.
    """

    seconds: float | None
    counting_seconds: float
    processor_seconds: float
    peak_bytes: int
    stop_reason: str

    def keeps(self, limit: Limit, by_processor: bool) -> bool:
        if self.seconds is None or self.stop_reason == NO_RESULT:
            return False
        if limit.name == "memory":
            return self.peak_bytes <= MEMORY_BYTES
        return (self.processor_seconds if by_processor else self.seconds) <= TIME_ALLOWED


def hardest(instances: Sequence[Instance], n_questions: int) -> list[Instance]:
    """Return the questions with most to do: many features, large distances, many guards."""

    def size(instance: Instance) -> tuple[int, float, int]:
        distance = float("inf") if instance.distance is None else instance.distance
        return len(instance.sensitive), distance, instance.n_guards

    return sorted(instances, key=size, reverse=True)[:n_questions]


def measure(instance: Instance, limit: Limit, method: str) -> Measured:
    """Run one question as a command."""
    command = [sys.executable, "-m", "xcount", "count", str(instance.model), "--json"]
    command += ["--sensitive", ",".join(str(feature) for feature in instance.sensitive)]
    command += ["--gap", instance.gap, "--precision", str(instance.precision)]
    command += ["--distance", "any" if instance.distance is None else str(instance.distance)]
    command += ["--method", method, *limit.options]
    started = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
        ended, usage = _wait(process.pid, started + KILL_SECONDS)
        seconds = time.monotonic() - started
        output.seek(0)
        text = output.read()
    process.returncode = 0  # it is reaped
    result = _result(text)
    return Measured(
        seconds=seconds if ended else None,
        counting_seconds=result.get("seconds", 0.0),
        processor_seconds=usage.ru_utime + usage.ru_stime,
        peak_bytes=usage.ru_maxrss * 1024,
        stop_reason=str(result.get("stop_reason", NO_RESULT)) if ended else "killed",
    )


def _wait(pid: int, deadline: float) -> tuple[bool, Any]:
    """Wait for a process and return its use of resources; kill it when it is overdue."""
    while time.monotonic() < deadline:
        found, _, usage = os.wait4(pid, os.WNOHANG)
        if found:
            return True, usage
        time.sleep(0.02)
    os.kill(pid, 9)
    return False, os.wait4(pid, 0)[2]


def _result(output: bytes) -> dict[str, Any]:
    sys.set_int_max_str_digits(0)
    try:
        found: dict[str, Any] = json.loads(output)
    except ValueError:
        return {}
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits", description=__doc__)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--only", choices=[limit.name for limit in LIMITS])
    parser.add_argument("--method", default="auto")
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--cache", help="folder of the models (default: XCOUNT_CACHE)")
    parser.add_argument("--data", help="folder of the data sets (default: XCOUNT_DATA)")
    options = parser.parse_args(arguments)
    chosen = hardest(frontier_instances(None, options.cache, options.data), options.questions)
    n_wrong = 0
    print(f"load {os.getloadavg()[0]:.1f}; method {options.method}\n")
    print("| question | limit | seconds | counting | processor | peak MB | stopped by | holds |")
    print("|---|---|---|---|---|---|---|---|")
    for limit in LIMITS:
        for instance in chosen if options.only in (None, limit.name) else ():
            found = measure(instance, limit, options.method)
            holds = found.keeps(limit, options.processor_time)
            n_wrong += not holds
            seconds = f"> {KILL_SECONDS:.0f}" if found.seconds is None else f"{found.seconds:.1f}"
            print(
                f"| {instance.name} | {limit.name} | {seconds} "
                f"| {found.counting_seconds:.1f} | {found.processor_seconds:.1f} "
                f"| {found.peak_bytes / 1e6:.0f} | {found.stop_reason} "
                f"| {'yes' if holds else 'NO'} |",
                flush=True,
            )
    print(f"\n{n_wrong} limits do not hold")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
