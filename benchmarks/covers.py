"""Covers of two states of the package: what they leave open after equal processor time.

    python -m benchmarks.covers --before OTHER/src [--seconds 0.5 1 2 3]

``OTHER/src`` is the ``src`` folder of another checkout with its native core built into it. Each
question is asked of both in processes of their own, in turns first; only processor time is
compared. The first questions are about a model of 100 trees of depth 6 on Higgs with XGBoost's
default learning rate (0.3): one pair of masks, rare shares. The others are hard questions of the
paper's suite, where the open share is the width of the certain bounds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.alternate import HERE
from benchmarks.harness.datasets import load_dataset
from benchmarks.harness.models import cache_folder, models_of, paper_trainings

RESULTS = Path(__file__).parent / "results" / "covers.md"
MEMORY_BYTES = 2 * 2**30

CHILD = """
import json, sys, time
import xcount
from xcount import _core
from xcount.counters.exact import ExactRun
from xcount.counters.settings import Settings
from xcount.problem.problem import Problem

asked = json.loads(sys.stdin.readline())
model = xcount.load(asked["model"])
query = xcount.Query.of(model, asked["feature"], gap=asked["gap"])
problem = Problem(model, xcount.Grid.of(model), query)
run = ExactRun(problem, Settings(jobs=1))
run.solve(())
pairs = run.decomposition.pairs
is_new = hasattr(_core.Cover, "counts")
tasks = [([pair], False, 1) if is_new else ([pair], 1) for pair in pairs]
space = problem.space
began = time.process_time()
cover = _core.Cover(space.forest, space.masks, space.threshold_limbs, tasks)
found, left = [], list(asked["seconds"])
limit = asked["memory_bytes"] if is_new else 60.0
while left:
    before = cover.work
    cover.refine(1_000_000, limit, 1)
    seconds = time.process_time() - began
    if seconds < left[0] and cover.work > before:
        continue
    if is_new:
        shares = sum(unknown / total for _, unknown, total in cover.counts())
    else:
        shares = cover.open[0] * 2.0 ** cover.open[1]
    began += time.process_time() - began - seconds  # looking does not count
    while left and (seconds >= left[0] or shares == 0 or cover.work == before):
        found.append({"asked": left.pop(0), "seconds": seconds, "open": shares / len(pairs),
                      "megabytes": cover.n_bytes / 1e6})
print(json.dumps(found), flush=True)
"""


@dataclass(frozen=True, slots=True)
class Question:
    """One question: a model, a feature and a gap."""

    name: str
    model: Path
    feature: str
    gap: str


def questions(cache: str | None, data: str | None) -> list[Question]:
    """Return the questions; trains what the cache lacks."""
    quick = _default_rate_model(cache, data)
    suite = {
        model.name: model.path
        for training in paper_trainings(["adult", "higgs"])
        if training.depth == 6
        for model in models_of(training, cache, data)
    }
    higgs, adult = suite["higgs-d6-t100"], suite["adult-d6-t100"]
    return [
        Question("Higgs, learning rate 0.3, f20, gap 3", quick, "f20", "3"),
        Question("Higgs, learning rate 0.3, f20, gap 2.4", quick, "f20", "2.4"),
        Question("Higgs, f20, gap 1.5", higgs, "f20", "1.5"),
        Question("Higgs, f20, gap 0.05", higgs, "f20", "0.05"),
        Question("Adult, sex, gap 1", adult, "sex", "1"),
    ]


def _default_rate_model(cache: str | None, data: str | None) -> Path:
    """Return 100 trees of depth 6 on Higgs, trained as the suite's but for the learning rate."""
    path = cache_folder(cache) / "covers" / "higgs-d6-t100-eta0.3.json"
    if not path.exists():
        import xgboost

        rows = load_dataset("higgs", data)
        training = next(t for t in paper_trainings(["higgs"]) if t.depth == 6)
        matrix = xgboost.DMatrix(rows.train_rows, label=rows.train_target)
        path.parent.mkdir(parents=True, exist_ok=True)
        xgboost.train({**training.parameters, "eta": 0.3}, matrix, 100).save_model(path)
    return path


def ask(source: Path, question: Question, seconds: Sequence[float]) -> list[dict[str, Any]]:
    """Return what one state of the package leaves open after these processor times."""
    asked = {
        "model": str(question.model),
        "feature": question.feature,
        "gap": question.gap,
        "seconds": list(seconds),
        "memory_bytes": MEMORY_BYTES,
    }
    environment = os.environ | {"PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=json.dumps(asked) + "\n",
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def compare(asked: Sequence[Question], before: Path, seconds: Sequence[float]) -> str:
    """Return a table of both states' open shares."""
    rows = [
        "| question | processor seconds | open before | open now | ratio | MB before | MB now |",
        "|---|---|---|---|---|---|---|",
    ]
    for number, question in enumerate(asked):
        order = (before, HERE) if number % 2 else (HERE, before)
        found = {source: ask(source, question, seconds) for source in order}
        for old, new in zip(found[before], found[HERE], strict=True):
            ratio = f"{old['open'] / new['open']:.1f}" if new["open"] else "all decided"
            rows.append(
                f"| {question.name} | {old['asked']:g} | {old['open']:.3g} | {new['open']:.3g} "
                f"| {ratio} | {old['megabytes']:.0f} | {new['megabytes']:.0f} |"
            )
    return "\n".join(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.covers", description=__doc__)
    parser.add_argument("--before", type=Path, required=True, help="src of another checkout")
    parser.add_argument("--seconds", type=float, nargs="*", default=[0.5, 1.0, 2.0, 3.0])
    parser.add_argument("--cache", help="folder of the models (default: XCOUNT_CACHE)")
    parser.add_argument("--data", help="folder of the data sets (default: XCOUNT_DATA)")
    options = parser.parse_args(arguments)
    table = compare(questions(options.cache, options.data), options.before, options.seconds)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, one thread"
    limits = f"at most {MEMORY_BYTES // 2**30} GiB; processor time, on a machine with other work"
    text = (
        "# Covers: what is left open\n\n"
        "`python -m benchmarks.covers --before OTHER/src`: whole features eliminated, always in "
        "the largest state (before), and cuts in two down to a least volume (now). The open share "
        "is the width of the certain bounds, on average over the pairs of masks that bounds leave; "
        f"the same after equal processor time.\n\n{table}\n\nMachine: {machine}; {limits}.\n"
    )
    RESULTS.write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
