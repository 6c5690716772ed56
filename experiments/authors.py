"""Side by side with the authors' own program, for whoever has built it.

The program (``formal-trust-AI/ensenscount`` on GitHub) is not part of this project. Given the path
of its binary, the same questions of the paper's suite are put to it and to two of our methods, one
after the other, each in a process of its own, from the same dump of the model:

    python -m experiments.authors path/to/ensenscount --sample 100 --limit-seconds 60

The program gets the options that its own ``scripts/experiment/upload_and_prepare.py`` gives it: the
paper's XCount, one thread. Ours are ``auto``, the default, and ``xcount``, the paper's algorithm,
one thread each. What is measured is the whole process, start-up and reading included: wall time,
processor time, and the most memory it held. Lines go to ``benchmarks/runs/authors.jsonl``; a run
goes on where it ended. The program rounds leaves otherwise than the paper (number 8 in
docs/errata.md), so that its counts may be larger than the true ones even where it counts exactly.
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
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.harness.datasets import PROJECT, DataError
from benchmarks.harness.instances import Instance, paper_instances, stratified_sample
from benchmarks.harness.options import memory_size
from benchmarks.harness.records import surroundings
from benchmarks.harness.running import GRACE_SECONDS
from benchmarks.harness.tables import markdown

FILE = "authors.jsonl"
COUNT_LINE = re.compile(r"^Total count \([^)]*\): (-?\d+)", re.MULTILINE)
"""How the program prints its count, as its own regression test reads it."""
THEIRS, OURS = "authors", ("auto", "xcount")
EPSILON, DELTA, SEED = "0.1", "0.1", "42"


@dataclass(frozen=True, slots=True)
class Cost:
    """What one process took."""

    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int


def measured(command: Sequence[str], limit_seconds: float, memory_bytes: int) -> tuple[str, Cost]:
    """Run a command within limits; return what it printed, nothing if it was killed, and its cost.

    It is killed ``GRACE_SECONDS`` after the limit: a program that watches the limit by itself can
    still print what it knows.
    """
    started = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            ["bash", "-c", f'ulimit -v {memory_bytes // 1024}; exec "$0" "$@"', *command],
            stdout=output,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        timer = threading.Timer(limit_seconds + GRACE_SECONDS, _end, [process.pid])
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - started
        output.seek(0)
        text = output.read() if process.returncode >= 0 else ""
    return text, Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def _end(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def command_of(who: str, dump: Path, asked: Instance, options: argparse.Namespace) -> list[str]:
    """Return how each program is asked the question."""
    feature, distance, precision = asked.sensitive[0], str(asked.distance), str(asked.precision)
    if who == THEIRS:
        question = ["-s", str(feature), "-g", asked.gap, "-p", precision, "-k", distance]
        method = ["-M", "pepin", "--pepin-eps", EPSILON, "--pepin-delta", DELTA, "-R", SEED]
        # Without -l it makes a folder of logs where it is started.
        log = ["-l", str(dump.with_suffix(".log"))]
        return [str(options.binary.resolve()), "-f", str(dump), *question, *method, *log]
    question = ["--sensitive", f"f{feature}", "--gap", asked.gap, "--precision", precision]
    method = ["--method", who, "--epsilon", EPSILON, "--delta", DELTA, "--seed", SEED]
    limits = ["--timeout", f"{options.limit_seconds:g}s", "--memory", f"{options.memory}B"]
    command = [sys.executable, "-m", "xcount", "count", str(dump), *question]
    return [*command, "--distance", distance, *method, *limits, "--jobs", "1", "--json"]


def answer_of(who: str, text: str) -> dict[str, Any]:
    """Return the count that a program printed, None without a guarantee; of ours, bounds too."""
    if who == THEIRS:
        found = COUNT_LINE.findall(text)
        return {"count": int(found[-1]) if found else None}
    try:
        printed = json.loads(text)
    except ValueError:
        return {"count": None}
    answered = printed["exact"] or printed["stop_reason"] == "complete"
    bounds = {name: printed[name] for name in ("low", "high", "stop_reason")}
    return {"count": printed["count"] if answered else None, **bounds}


def write_dump(instance: Instance, path: Path) -> None:
    """Write the model as XGBoost dumps it, but features as integers: the program reads no others.

    Its ``src/utils.cpp`` demands ``nodeid``, and ``leaf`` or an integer ``split``,
    ``split_condition``, ``yes``, ``no`` and ``children``, like its ``models/*.json``.
    """
    import xgboost as xgb

    booster = xgb.Booster(model_file=str(instance.model))
    booster.feature_names = None
    trees = [json.loads(tree) for tree in booster.get_dump(dump_format="json")]
    for tree in trees:
        _number_features(tree)
    path.write_text(json.dumps(trees))


def _number_features(node: dict[str, Any]) -> None:
    if "split" in node:
        node["split"] = int(node["split"].removeprefix("f"))
    for child in node.get("children", ()):
        _number_features(child)


def run(options: argparse.Namespace) -> None:
    """Ask every program each question that the file does not hold."""
    done = {line["name"] for line in read(options.output)}
    instances = paper_instances(options.only, options.cache, options.data)
    with tempfile.TemporaryDirectory() as folder:
        for instance in stratified_sample(instances, options.sample):
            if instance.name in done:
                continue
            dump = Path(folder) / "model.json"
            write_dump(instance, dump)
            line: dict[str, Any] = {"name": instance.name, **surroundings()}
            for who in (THEIRS, *OURS):
                command = command_of(who, dump, instance, options)
                text, cost = measured(command, options.limit_seconds, options.memory)
                line[who] = answer_of(who, text) | asdict(cost)
            with options.output.open("a") as stream:
                stream.write(json.dumps(line) + "\n")


def read(path: Path) -> list[dict[str, Any]]:
    """Return the questions that were asked."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def report(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return all programs side by side as Markdown."""
    rows = []
    for who in (THEIRS, *OURS):
        solved = [line[who] for line in lines if line[who]["count"] is not None]
        numbers = [
            f"{statistics.median(entry[name] for entry in solved):.3g}" if solved else "-"
            for name in ("wall_seconds", "cpu_seconds")
        ]
        peak = max((line[who]["peak_bytes"] for line in lines), default=0) / 2**20
        rows.append([who, "1", str(len(lines)), str(len(solved)), *numbers, f"{peak:.0f}"])
    columns = ["questions", "answered", "median wall s", "median processor s", "peak MiB"]
    table = markdown(["program", "threads", *columns], rows)
    return "\n\n".join([table, *(_ratios(lines, who) for who in OURS)])


def _ratios(lines: Sequence[Mapping[str, Any]], who: str) -> str:
    both = [
        (line[who], line[THEIRS])
        for line in lines
        if None not in (line[who]["count"], line[THEIRS]["count"])
    ]
    if not both:
        return f"No question was answered by both `{who}` and the authors' program."
    wall, cpu = (
        statistics.median(theirs[name] / max(ours[name], 1e-6) for ours, theirs in both)
        for name in ("wall_seconds", "cpu_seconds")
    )
    near = sum(
        abs(theirs["count"] - ours["count"]) <= Fraction(EPSILON) * ours["count"]
        for ours, theirs in both
    )
    return (
        f"Of {len(both)} questions that `{who}` and the authors' program answer, {near} have "
        f"counts within a tenth of ours; theirs takes {wall:.3g} times our wall time and "
        f"{cpu:.3g} times our processor time (medians)."
    )


def command_line() -> argparse.ArgumentParser:
    """Return what the command line takes."""
    parser = argparse.ArgumentParser(prog="python -m experiments.authors", description=__doc__)
    parser.add_argument("binary", type=Path, help="path of the authors' program")
    parser.add_argument("--only", nargs="*", help="data sets (default: all)")
    parser.add_argument("--sample", type=int, default=100, metavar="N", help="stratified")
    parser.add_argument("--limit-seconds", type=float, default=60.0, metavar="S")
    parser.add_argument("--memory", type=memory_size, default="4G")
    parser.add_argument("--data", help="folder of the data sets (default: XCOUNT_DATA)")
    parser.add_argument("--cache", help="folder of the models (default: XCOUNT_CACHE)")
    parser.add_argument("--output", type=Path, default=PROJECT / "benchmarks" / "runs" / FILE)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    options = command_line().parse_args(arguments)
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
