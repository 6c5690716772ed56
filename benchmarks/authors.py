"""Side by side with the authors' own program, for whoever has built it.

The program (``formal-trust-AI/ensenscount`` on GitHub) is not part of this project. Given the path
of its binary, the same questions of the paper's suite are put to both, one after the other, each in
a process of its own, from the same dump of the model:

    python -m benchmarks.authors path/to/ensenscount --sample 100 --limit-seconds 60

What is measured is the whole process, start-up and reading included: wall time, processor time,
and the most memory it held. Lines go to ``benchmarks/runs/authors.jsonl``; a run goes on where it
ended. The program rounds leaves otherwise than the paper (number 8 in docs/errata.md), so that its
counts may be larger than the true ones even where it counts exactly.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.commands import memory_size
from benchmarks.datasets import PROJECT, DataError
from benchmarks.instances import Instance, paper_instances, stratified_sample
from benchmarks.records import surroundings
from benchmarks.summary import markdown

FILE = "authors.jsonl"
COUNT_LINE = re.compile(r"^Total count \([^)]*\): (-?\d+)", re.MULTILINE)
"""How the program prints its count, as its own regression test reads it."""
OURS, THEIRS = "xcount", "authors"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one process did."""

    count: int | None
    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def measured(
    command: Sequence[str], limit_seconds: float, memory_bytes: int
) -> tuple[str, Outcome]:
    """Run a command within limits; return what it printed, and what it cost."""
    started = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            ["bash", "-c", f'ulimit -v {memory_bytes // 1024}; exec "$0" "$@"', *command],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        timer = threading.Timer(limit_seconds, _end, [process.pid])
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - started
        output.seek(0)
        text = output.read() if process.returncode in {0, 1} else ""
    cpu = usage.ru_utime + usage.ru_stime
    return text, Outcome(None, wall, cpu, usage.ru_maxrss * 1024)


def _end(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def command_of(who: str, binary: str, dump: Path, asked: Instance, seconds: float) -> list[str]:
    """Return how each program is asked the question."""
    feature, precision = asked.sensitive[0], str(asked.precision)
    if who == THEIRS:
        question = ["-g", asked.gap, "-p", precision, "-s", str(feature)]
        return [binary, "-f", str(dump), *question, "-k", str(asked.distance)]
    question = ["--sensitive", f"f{feature}", "--gap", asked.gap, "--precision", precision]
    question += ["--distance", str(asked.distance), "--timeout", f"{seconds:g}s", "--json"]
    return [sys.executable, "-m", "xcount", "count", str(dump), *question]


def count_of(who: str, text: str) -> int | None:
    """Return the count that a program printed; None where it printed none."""
    if who == THEIRS:
        found = COUNT_LINE.findall(text)
        return int(found[-1]) if found else None
    try:
        answer: int | None = json.loads(text)["count"]
    except (ValueError, KeyError):
        return None
    return answer


def write_dump(instance: Instance, path: Path) -> None:
    """Write the model as XGBoost dumps it, features by number."""
    import xgboost as xgb

    booster = xgb.Booster(model_file=str(instance.model))
    booster.feature_names = None
    path.write_text("[" + ",".join(booster.get_dump(dump_format="json")) + "]")


def run(options: argparse.Namespace) -> None:
    """Ask both programs every question that the file does not hold."""
    done = {line["name"] for line in read(options.output)}
    instances = paper_instances(options.only, options.cache, options.data)
    with tempfile.TemporaryDirectory() as folder:
        for instance in stratified_sample(instances, options.sample):
            if instance.name in done:
                continue
            dump = Path(folder) / "model.json"
            write_dump(instance, dump)
            line: dict[str, Any] = {"name": instance.name, **surroundings()}
            for who in (THEIRS, OURS):
                command = command_of(who, options.binary, dump, instance, options.limit_seconds)
                text, outcome = measured(command, options.limit_seconds, options.memory)
                line[who] = outcome.to_dict() | {"count": count_of(who, text)}
            with options.output.open("a") as stream:
                stream.write(json.dumps(line) + "\n")


def read(path: Path) -> list[dict[str, Any]]:
    """Return the questions that were asked."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def report(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return both programs side by side as Markdown."""
    rows = []
    for who in (THEIRS, OURS):
        solved = [line[who] for line in lines if line[who]["count"] is not None]
        numbers = [
            f"{statistics.median(entry[name] for entry in solved):.3g}" if solved else "-"
            for name in ("wall_seconds", "cpu_seconds")
        ]
        peak = max((line[who]["peak_bytes"] for line in lines), default=0) / 2**20
        rows.append([who, str(len(lines)), str(len(solved)), *numbers, f"{peak:.0f}"])
    header = ["program", "questions", "answered", "median wall s", "median processor s", "peak MiB"]
    return "\n\n".join([markdown(header, rows), _ratios(lines)])


def _ratios(lines: Sequence[Mapping[str, Any]]) -> str:
    both = [
        (line[OURS], line[THEIRS])
        for line in lines
        if None not in (line[OURS]["count"], line[THEIRS]["count"])
    ]
    if not both:
        return "No question was answered by both."
    wall, cpu = (
        statistics.median(theirs[name] / max(ours[name], 1e-6) for ours, theirs in both)
        for name in ("wall_seconds", "cpu_seconds")
    )
    same = sum(ours["count"] == theirs["count"] for ours, theirs in both)
    return (
        f"Of {len(both)} questions that both answer, {same} have the same count; theirs takes "
        f"{wall:.3g} times our wall time and {cpu:.3g} times our processor time (medians)."
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.authors", description=__doc__)
    parser.add_argument("binary", help="path of the authors' program")
    parser.add_argument("--only", nargs="*", help="data sets (default: all)")
    parser.add_argument("--sample", type=int, default=100, metavar="N", help="stratified")
    parser.add_argument("--limit-seconds", type=float, default=60.0, metavar="S")
    parser.add_argument("--memory", type=memory_size, default="4G")
    parser.add_argument("--data", help="folder of the data sets (default: XCOUNT_DATA)")
    parser.add_argument("--cache", help="folder of the models (default: XCOUNT_CACHE)")
    parser.add_argument("--output", type=Path, default=PROJECT / "benchmarks" / "runs" / FILE)
    options = parser.parse_args(arguments)
    if not os.access(options.binary, os.X_OK):
        print(f"{options.binary} is no program that can be run", file=sys.stderr)
        return 2
    options.output.parent.mkdir(parents=True, exist_ok=True)
    try:
        run(options)
    except DataError as error:
        print(error, file=sys.stderr)
        return 2
    print(report(read(options.output)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
