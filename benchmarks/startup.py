"""How long commands take to start, as multiples of ``python -c pass``.

    python benchmarks/startup.py

prints one line per command: the best of several runs by the clock, their median by the processor,
and the ratios. The targets: ``xcount --version`` at most 4, ``xcount count`` on a ten-tree XGBoost
file at most 10. Measure an installed package (``pip install .``): an editable one pays for its
import hook, and sources without ``.pyc`` files beside them for being compiled.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

N_TREES = 10
DEPTH = 3
N_FEATURES = 8
TARGETS = {"version": 4.0, "count": 10.0, "count (table)": 10.0}


def random_tree(rng: random.Random) -> dict[str, Any]:
    """Return a full tree of random tests, as XGBoost's JSON format stores it."""
    n_inner = 2**DEPTH - 1
    n_nodes = 2 * n_inner + 1
    inner = range(n_inner)
    n_leaves = n_nodes - n_inner
    leaves = [rng.gauss(0, 1) for _ in range(n_leaves)]
    return {
        "left_children": [2 * i + 1 for i in inner] + [-1] * n_leaves,
        "right_children": [2 * i + 2 for i in inner] + [-1] * n_leaves,
        "split_indices": [rng.randrange(N_FEATURES) for _ in inner] + [0] * n_leaves,
        "split_conditions": [rng.choice((-1.0, 0.0, 1.0)) for _ in inner] + leaves,
        "default_left": [0] * n_nodes,
    }


def write_model(path: Path) -> None:
    """Write a regression model of ten small trees."""
    rng = random.Random(0)
    trees = [random_tree(rng) for _ in range(N_TREES)]
    learner = {
        "gradient_booster": {
            "name": "gbtree",
            "model": {"trees": trees, "tree_info": [0] * N_TREES},
        },
        "learner_model_param": {"base_score": "0", "num_feature": str(N_FEATURES)},
        "objective": {"name": "reg:squarederror"},
    }
    path.write_text(json.dumps({"learner": learner}), encoding="utf-8")


class Times(NamedTuple):
    """What a run took."""

    wall: float
    processor: float


def measure(repeats: int) -> dict[str, list[Times]]:
    """Run the commands in turns; return what each run took, by the command's name."""
    xcount = str(Path(sys.executable).parent / "xcount")
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.json"
        write_model(model)
        question = ["count", str(model), "--sensitive", "0", "--gap", "1"]
        commands = {
            "python": [sys.executable, "-c", "pass"],
            "version": [xcount, "--version"],
            "count": [xcount, *question, "--json"],
            "count (table)": [xcount, *question],
        }
        runs: dict[str, list[Times]] = {name: [] for name in commands}
        for _ in range(repeats):
            for name, command in commands.items():
                runs[name].append(_times(command))
    return runs


def _times(command: list[str]) -> Times:
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        raise SystemExit(f"{' '.join(command)} ended with status {status}")
    return Times(time.perf_counter() - started, usage.ru_utime + usage.ru_stime)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure start-up times.")
    parser.add_argument("--repeats", type=int, default=20)
    runs = measure(parser.parse_args().repeats)
    print(f"load {os.getloadavg()[0]:.1f}; wall: the best run; processor: the median run")
    wall = {name: min(each.wall for each in found) for name, found in runs.items()}
    used = {name: median(each.processor for each in found) for name, found in runs.items()}
    for name in runs:
        target = f"  (target: at most {TARGETS[name]:g})" if name in TARGETS else ""
        print(
            f"{name:15} wall {wall[name] * 1000:6.1f} ms {wall[name] / wall['python']:5.1f} x   "
            f"processor {used[name] * 1000:6.1f} ms {used[name] / used['python']:5.1f} x{target}"
        )


if __name__ == "__main__":
    main()
