"""Measure how long commands take to start, as multiples of ``python -c pass``.

    python -m benchmarks.startup

Commands run in turns; the best run by the clock and the median by the processor are shown. Measure
an installed package (``pip install .``): an editable one pays for its import hook, and sources
without ``.pyc`` files beside them for being compiled.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from statistics import median

from benchmarks.harness import processes
from benchmarks.harness.tables import markdown
from xcount.model.examples import adult_model_path


def main() -> int:
    parser = ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    xcount = str(Path(sys.executable).parent / "xcount")
    question = [str(adult_model_path()), "--sensitive", "sex", "--gap", "1", "--distance", "1"]
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "xcount --version": [xcount, "--version"],
        "xcount count --json": [xcount, "count", *question, "--json"],
        "xcount count": [xcount, "count", *question],
    }
    runs: dict[str, list[processes.Finished]] = {name: [] for name in commands}
    for _ in range(parser.parse_args().repeats):
        for name, command in commands.items():
            runs[name].append(processes.run(command, kill_seconds=60))
    rows: list[list[str]] = []
    units: list[float] = []
    for name, found in runs.items():
        times = (min(r.wall_seconds for r in found), median(r.cpu_seconds for r in found))
        units = units or list(times)
        ratios = [f"{time / unit:.1f}" for time, unit in zip(times, units, strict=True)]
        rows.append([name, *(f"{1000 * time:.1f}" for time in times), *ratios])
    header = ["command", "wall ms, best", "processor ms, median", "wall ratio", "processor ratio"]
    print(markdown(header, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
