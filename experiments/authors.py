"""Put the paper's questions to the authors' own program and to two of our methods.

The program (``formal-trust-AI/ensenscount`` on GitHub) is not part of this project. Given the path
of its binary, each question is put to it and to ours, one after the other, each in a process of its
own, from the same dump of the model:

    python -m experiments.authors path/to/ensenscount --sample 100 --limit-seconds 60

The program gets the options that its own ``scripts/experiment/upload_and_prepare.py`` gives it: the
paper's XCount, one thread. Ours are ``auto``, the default, and ``xcount``, the paper's algorithm,
one thread each. The whole process is measured, start-up and reading included: wall time, processor
time, and peak memory. Lines go to ``benchmarks/runs/authors.jsonl``; a run continues where it
ended. The program rounds leaves differently from the paper (number 8 in docs/errata.md), so its
counts may be larger than the true ones even when it counts exactly.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import sys
import tempfile
from argparse import Namespace
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.harness import processes
from benchmarks.harness.datasets import DataError
from benchmarks.harness.instances import Instance, Sources, paper_instances, stratified_sample
from benchmarks.harness.options import memory_size, parser_of
from benchmarks.harness.processes import GRACE_SECONDS
from benchmarks.harness.records import RUNS, append_line, read_lines, surroundings
from benchmarks.harness.tables import joined, markdown

FILE = "authors.jsonl"
COUNT_LINE = re.compile(r"^Total count \([^)]*\): (-?\d+)", re.MULTILINE)
"""How the program prints its count, as its own regression test reads it."""
THEIRS, OURS = "authors", ("auto", "xcount")
EPSILON, DELTA, SEED = "0.1", "0.1", "42"


def command_of(who: str, dump: Path, asked: Instance, options: Namespace) -> list[str]:
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


def run(options: Namespace, instances: Sequence[Instance]) -> None:
    """Ask every program each question that the file does not hold."""
    done = {line["name"] for line in read_lines(options.output)}
    with tempfile.TemporaryDirectory() as folder:
        for instance in instances:
            if instance.name in done:
                continue
            dump = Path(folder) / "model.json"
            write_dump(instance, dump)
            line: dict[str, Any] = {"name": instance.name, **surroundings()}
            for who in (THEIRS, *OURS):
                command = command_of(who, dump, instance, options)
                line[who] = asked(who, command, options.limit_seconds, options.memory)
            append_line(options.output, line)


def asked(
    who: str,
    command: Sequence[str],
    limit_seconds: float,
    memory_bytes: int,
    grace_seconds: float = GRACE_SECONDS,
) -> dict[str, Any]:
    """Run a program within limits; return its answer, none if it was killed, and its cost.

    It is killed some seconds after the limit: a program that watches the limit itself can still
    print what it knows.
    """
    done = processes.run(command, limit_seconds + grace_seconds, memory_bytes)
    return answer_of(who, done.output if done.status >= 0 else "") | {
        "wall_seconds": done.wall_seconds,
        "cpu_seconds": done.cpu_seconds,
        "peak_bytes": done.peak_bytes,
    }


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
        rows.append([who, 1, len(lines), len(solved), *numbers, f"{peak:.0f}"])
    columns = ["questions", "answered", "median wall s", "median processor s", "peak MiB"]
    table = markdown(["program", "threads", *columns], rows)
    return joined(table, *(_ratios(lines, who) for who in OURS))


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


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("experiments.authors", __doc__, RUNS / FILE, limit_seconds=60.0)
    parser.add_argument("binary", type=Path, help="path of the authors' program")
    parser.add_argument("--only", nargs="*", help="data sets (default: all)")
    parser.add_argument("--sample", type=int, default=100, metavar="N", help="stratified")
    parser.add_argument("--memory", type=memory_size, default="4G")
    options = parser.parse_args(arguments)
    if not os.access(options.binary, os.X_OK):
        print(f"{options.binary} is not a program that can be run", file=sys.stderr)
        return 2
    try:
        suite = paper_instances(Sources.of(options, options.only))
    except DataError as error:
        print(error, file=sys.stderr)
        return 2
    run(options, stratified_sample(suite, options.sample))
    print(report(read_lines(options.output)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
