"""The share of the whole suite that the paper's algorithm solves, from runs by depth.

The census has all instances of the depths that it got to; a stratified sample stands for the
others. The shares of the depths are weighted by how many instances the suite has of each.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.records import Run, Runs
from benchmarks.harness.tables import ALL, conditions, is_solved, joined, markdown, solved_share

METHOD = "xcount"
Z_95 = 1.96
Record = Mapping[str, Any]


def by_depth(runs: Runs) -> dict[int, tuple[str, Sequence[Record]]]:
    """Return for each depth the suite that asked more of its instances, and their records."""
    found: dict[int, tuple[str, Sequence[Record]]] = {}
    for suite in ("census", "methods"):
        for run in (run for run in runs.get(suite, ()) if run.settings.method == METHOD):
            for depth in {record["depth"] for record in run.records}:
                records = [record for record in run.records if record["depth"] == depth]
                if len(records) > len(found.get(depth, ("", ()))[1]):
                    found[depth] = (suite, records)
    return dict(sorted(found.items()))


def weighted(parts: Sequence[tuple[int, Sequence[Record]]]) -> tuple[float, float]:
    """Return the share that is solved, and half of its interval of 95 %.

    Each part is the number of its instances, and the records of those that were asked; where all
    were asked, nothing is left to chance.
    """
    n_all = sum(n for n, _ in parts)
    share = variance = 0.0
    for n, records in parts:
        weight, asked = n / n_all, len(records)
        solved = statistics.fmean(map(is_solved, records))
        share += weight * solved
        left = 1 - asked / n
        variance += weight**2 * left * solved * (1 - solved) / max(1, asked - 1)
    return share, Z_95 * math.sqrt(variance)


def table(runs: Runs) -> str:
    """Return what is solved by depth, and the weighted share."""
    sizes = Counter(record["depth"] for record in _suite(runs))
    parts, rows = [], []
    for depth, (suite, records) in by_depth(runs).items():
        n, n_solved = sizes[depth], sum(map(is_solved, records))
        parts.append((n, records))
        is_whole = len(records) == n
        share = f"{100 * n_solved / n:.1f}" if is_whole else solved_share(records)
        seconds = statistics.median(float(record["seconds"]) for record in records)
        rows.append([depth, n, len(records), n_solved, share, f"{seconds:.3f}", f"`{suite}`"])
    middle, spread = (100 * value for value in weighted(parts))
    total = f"{middle:.1f} ({middle - spread:.1f} to {middle + spread:.1f})"
    asked = sum(len(records) for _, records in parts)
    rows.append([ALL, sum(sizes.values()), asked, "", total, "", ""])
    header = ["depth", "instances of the suite", "asked", "solved", "% (95 %)", "median s", "run"]
    return markdown(header, rows)


def _suite(runs: Runs) -> Sequence[Record]:
    """Return the records of the whole suite."""
    return max((run.records for run in runs.get("paper", ())), key=len, default=())


def section(runs: Runs, folder: Path) -> str:
    """Return the table and the conditions of the census."""
    about: list[Run] = [run for run in runs["census"] if run.settings.method == METHOD]
    return joined(table(runs), *map(conditions, about))
