"""Read a million rows of Adult from CSV: XCount beside pandas, polars and Python's csv module.

    python -m benchmarks.tables [--data FOLDER] [--rows N] [--repeats N] [--before OTHER/src]

Each reads the same file in a process of its own, in turns: processor time of the reading alone,
without imports and the model, and the peak memory of the process. The numbers that they find must
have the same sum. ``--before`` adds the reader of another checkout. Linux only.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from benchmarks.harness import processes
from benchmarks.harness.options import parser_of
from benchmarks.harness.tables import markdown
from benchmarks.rows import prepare

OUTPUT = Path("benchmarks/results/tables.md")
MEASURED = """
import json, sys, time
{imports}
model, path = sys.argv[1:]
{setup}
wall, processor = time.perf_counter(), time.process_time()
{read}
wall, processor = time.perf_counter() - wall, time.process_time() - processor
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
peak = int(status["VmHWM"].split()[0]) / 1024
print(json.dumps([wall, processor, peak, {total}]))
"""
OURS = {
    "imports": "import xcount; from xcount.model.tables import read_table",
    "setup": "model = xcount.load(model)",
    "read": "table = read_table(path, model)",
    "total": "float(table.rows.sum())",
}
READERS: dict[str, Mapping[str, str]] = {
    "XCount": OURS,
    "pandas.read_csv": {
        "imports": "import pandas",
        "setup": "",
        "read": "table = pandas.read_csv(path)",
        "total": "float(table.to_numpy(float).sum())",
    },
    "polars.read_csv": {
        "imports": "import polars",
        "setup": "",
        "read": "table = polars.read_csv(path)",
        "total": "float(table.to_numpy().astype(float).sum())",
    },
    "csv.reader, to lists of text": {
        "imports": "import csv",
        "setup": "",
        "read": "table = list(csv.reader(open(path, newline='')))",
        "total": "sum(float(x) for row in table[1:] for x in row)",
    },
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("benchmarks.tables", __doc__, OUTPUT)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--before", help="sources of another checkout")
    options = parser.parse_args(arguments)
    readers = dict(READERS)
    if options.before is not None:
        readers["XCount, the other checkout"] = OURS
    runs: dict[str, list[list[float]]] = {name: [] for name in readers}
    with tempfile.TemporaryDirectory() as folder:
        model, table, _ = prepare(Path(folder), options.data, options.rows)
        size = os.path.getsize(table)
        for _ in range(options.repeats):
            totals = set()
            for name, words in readers.items():
                sources = options.before if "other" in name else os.environ.get("PYTHONPATH", "")
                finished = processes.run(
                    [sys.executable, "-c", MEASURED.format(**words), model, table],
                    kill_seconds=300,
                    environment={**os.environ, "PYTHONPATH": sources},
                )
                assert finished.status == 0, finished.errors
                *measured, total = json.loads(finished.output)
                runs[name].append(measured)
                totals.add(total)
            assert len(totals) == 1, totals
    lines = [
        [
            name,
            f"{median(run[1] for run in found):.2f}",
            f"{min(run[0] for run in found):.2f}",
            f"{median(run[2] for run in found):.0f}",
        ]
        for name, found in runs.items()
    ]
    header = ["reader", "processor s, median", "wall s, best", "peak MiB of the process"]
    title = f"{options.rows:,} rows of 14 columns, {size / 1e6:.0f} MB of CSV.\n\n"
    text = title + markdown(header, lines)
    print(text)
    options.output.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
