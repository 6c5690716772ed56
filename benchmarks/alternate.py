"""Two states of the package side by side: the same counts, and at what ratio of times.

    python -m benchmarks.alternate --before OTHER/src [--sample 400] [--limit-seconds 3]

``OTHER/src`` is the ``src`` folder of another checkout with its native core built into it. Each
instance of the paper's suite is asked of both, one after the other and in turns first, in two
processes that stay; only ratios of processor times within one run mean anything.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.datasets import PROJECT
from benchmarks.harness.instances import Instance, Sources, paper_instances, stratified_sample
from benchmarks.harness.options import parser_of
from benchmarks.harness.tables import markdown

CHILD = """
import json, sys, time
import xcount
kept = {}
for line in sys.stdin:
    asked = json.loads(line)
    path = asked.pop("model")
    if path not in kept:
        kept.clear()
        model = xcount.load(path)
        kept[path] = model, xcount.Grid.of(model)
    model, grid = kept[path]
    began, wall = time.process_time(), time.perf_counter()
    result = xcount.count(model, grid=grid, **asked)
    seconds = time.process_time() - began
    found = {"low": result.low, "high": result.high, "exact": result.exact,
             "cpu_seconds": seconds, "seconds": time.perf_counter() - wall}
    print(json.dumps(found), flush=True)
"""


class Side:
    """One state of the package, in a process of its own."""

    def __init__(self, source: Path) -> None:
        environment = os.environ | {"PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"}
        self._child = subprocess.Popen(
            [sys.executable, "-c", CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps(question) + "\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        if not line:
            raise RuntimeError(f"a side ended at {question}")
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait()


def compare(
    instances: Sequence[Instance], before: Path, method: str, limit_seconds: float
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Ask both sides every instance; the order changes from one to the next."""
    sides = Side(before), Side(PROJECT / "src")
    found = []
    for number, instance in enumerate(instances):
        limits = {"method": method, "timeout": limit_seconds, "jobs": 1}
        question = {"model": str(instance.model), **instance.question(), **limits}
        order = (0, 1) if number % 2 else (1, 0)
        answers = {side: sides[side].ask(question) for side in order}
        found.append((answers[0], answers[1]))
    for side in sides:
        side.close()
    return found


def contradicts(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Tell whether two exact answers differ, or intervals of exact bounds exclude each other."""
    return bool(before["low"] > now["high"] or now["low"] > before["high"])


def table(pairs: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> str:
    """Return what was found, as a table."""
    both = [(b, n) for b, n in pairs if b["exact"] and n["exact"]]
    ratios = [n["cpu_seconds"] / max(b["cpu_seconds"], 1e-6) for b, n in both]
    total = [sum(side[i]["cpu_seconds"] for side in both) for i in (0, 1)]
    rows = [
        ("instances", f"{len(pairs)}"),
        ("exact before", f"{sum(b['exact'] for b, _ in pairs)}"),
        ("exact now", f"{sum(n['exact'] for _, n in pairs)}"),
        ("contradictions", f"{sum(contradicts(b, n) for b, n in pairs)}"),
        ("processor seconds of both's, before", f"{total[0]:.2f}"),
        ("processor seconds of both's, now", f"{total[1]:.2f}"),
        ("ratio of the sums", f"{total[1] / max(total[0], 1e-9):.3f}"),
        ("median ratio", f"{statistics.median(ratios):.3f}" if ratios else "-"),
    ]
    return markdown(["", "found"], rows)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("benchmarks.alternate", __doc__, limit_seconds=3.0)
    parser.add_argument("--before", type=Path, required=True, help="src of another checkout")
    parser.add_argument("--method", default="exact")
    parser.add_argument("--sample", type=int, default=400)
    parser.add_argument("--only", nargs="*", help="data sets (default: all)")
    options = parser.parse_args(arguments)
    every = paper_instances(Sources.of(options, options.only))
    chosen = stratified_sample(every, options.sample)
    # Instances of one model stand together: it is read once by each side.
    chosen = sorted(chosen, key=lambda instance: (instance.model, instance.sensitive))
    print(table(compare(chosen, options.before, options.method, options.limit_seconds)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
