"""How fast corner sums count: regions a second and core, beside what the machine copies.

    python -m benchmarks.corner_sums [--data FOLDER] [--threads N] [--json FILE] [--only WORD]

Every case trains a model on a few columns of Adult, makes the corner sums of one question and
counts all blocks. A region is at least one number of ``bits`` bits that is read, added and written
back: what the machine copies within its cache is the speed to compare with. Regions a second and
core are told per second of processor time, which other work on the machine disturbs less.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.datasets import BY_KEY, load_table
from xcount import _core, load
from xcount.problem.corner_question import CornerChange
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query

SIX = ("age", "workclass", "education_num", "race", "sex", "hours_per_week")
NINE = (*SIX, "marital_status", "occupation", "relationship")


@dataclass(frozen=True, slots=True)
class Case:
    """A model and a question about it."""

    name: str
    columns: tuple[str, ...]
    train: Callable[[Any, Any], Any]
    sensitive: str
    gaps: tuple[float, ...]
    distance: int | None
    precision: int | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one case took."""

    case: str
    n_regions: int
    n_trees: int
    n_axes: int
    n_corners: int
    n_blocks: int
    bits: int
    megabytes: float
    make_seconds: float
    count_seconds: float
    cpu_seconds: float
    regions_per_cpu_second: float
    count: int


def lightgbm_1000(rows: Any, target: Any) -> Any:
    """Train 1,000 trees of 31 leaves on the first 7,000 rows."""
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(
        n_estimators=1000, num_leaves=31, learning_rate=0.1, min_child_samples=2, verbose=-1
    )
    return model.fit(rows[:7000], target[:7000])


def xgboost_800(rows: Any, target: Any) -> Any:
    """Train 800 trees of depth 6 on the first 7,000 rows."""
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=800, max_depth=6, learning_rate=0.1).fit(
        rows[:7000], target[:7000]
    )


CASES = (
    Case("LightGBM 1000, age, any, gap 30", SIX, lightgbm_1000, "age", (30,), None),
    Case("LightGBM 1000, age, any, precision 3", SIX, lightgbm_1000, "age", (30,), None, 3),
    Case("LightGBM 1000, sex, any", SIX, lightgbm_1000, "sex", (1,), None),
    Case("XGBoost 800 x 6, age, any, gap 5", NINE, xgboost_800, "age", (5,), None),
    Case("XGBoost 800 x 6, age, any, precision 3", NINE, xgboost_800, "age", (5,), None, 3),
    Case("XGBoost 800 x 6, age, distance 1", NINE, xgboost_800, "age", (1,), 1),
    Case("XGBoost 800 x 6, age, distance 10", NINE, xgboost_800, "age", (2,), 10),
    Case("XGBoost 800 x 6, sex, any, five gaps", NINE, xgboost_800, "sex", (1, 2, 3, 4, 5), None),
    Case("XGBoost 800 x 6, sex and race, distance 1", NINE, xgboost_800, "sex,race", (1,), 1),
)


def copied_bytes_per_second(n_bytes: int, seconds: float = 0.3) -> float:
    """Measure a copy of so many bytes, read and written, again and again."""
    source = np.ones(n_bytes // 8)
    target = np.empty_like(source)
    n_copies, started = 0, time.process_time()
    while (elapsed := time.process_time() - started) < seconds:
        for _ in range(16):
            np.copyto(target, source)
        n_copies += 16
    return 2 * n_bytes * n_copies / elapsed


def make_sums(problem: Problem, gaps: Sequence[float]) -> _core.CornerSums:
    """Return the corner sums of several gaps."""
    thresholds = (problem.space.trees.threshold(Fraction(str(gap))) for gap in gaps)
    changes = tuple(CornerChange("gap", threshold) for threshold in thresholds)
    return replace(problem.form.corner_question, changes=changes).sums()


def measure(case: Case, problem: Problem, n_threads: int) -> Measurement:
    _ = problem.forest  # laid on the grid beforehand
    started = time.perf_counter()
    sums = make_sums(problem, case.gaps)
    made, worked = time.perf_counter(), time.process_time()
    counts, _, n_finished = sums.count(0, sums.n_blocks, n_threads)
    seconds, cpu_seconds = time.perf_counter() - made, time.process_time() - worked
    assert n_finished == sums.n_blocks
    return Measurement(
        case=case.name,
        n_regions=sums.n_regions,
        n_trees=len(problem.trees),
        n_axes=sums.n_axes,
        n_corners=sums.n_corners,
        n_blocks=sums.n_blocks,
        bits=sums.n_bits,
        megabytes=sums.bytes(n_threads) / 1e6,
        make_seconds=made - started,
        count_seconds=seconds,
        cpu_seconds=cpu_seconds,
        regions_per_cpu_second=sums.n_regions / max(cpu_seconds, 1e-9),
        count=int(counts[0].sum(dtype=object)),
    )


def run(folder: str | None, n_threads: int, only: str) -> list[Measurement]:
    names, rows, target = load_table(BY_KEY["adult"], folder)
    models: dict[tuple[tuple[str, ...], str], Any] = {}
    found = []
    for case in CASES:
        if only not in case.name:
            continue
        key = (case.columns, case.train.__name__)
        if key not in models:
            columns = [names.index(name) for name in case.columns]
            models[key] = load(case.train(rows[:, columns], target))
        ensemble = models[key]
        sensitive = ",".join(f"f{case.columns.index(n)}" for n in case.sensitive.split(","))
        query = Query.of(
            ensemble, sensitive, case.gaps[0], distance=case.distance, precision=case.precision
        )
        found.append(measure(case, Problem(ensemble, Grid.of(ensemble), query), n_threads))
        click.echo(row(found[-1]))
    return found


def row(m: Measurement) -> str:
    return (
        f"{m.case:<42}{m.n_regions:>13.3g}{m.n_corners:>10}{m.n_blocks:>9}{m.bits:>5}"
        f"{m.megabytes:>7.1f}{m.make_seconds:>8.3f}{m.count_seconds:>9.3f}"
        f"{m.cpu_seconds:>8.3f}{m.regions_per_cpu_second:>10.2e}  {m.count}"
    )


@click.command()
@click.option("--data", "folder", default=None, help="Folder of the data sets.")
@click.option("--threads", "n_threads", default=2, help="Threads that count.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="File to write to.")
@click.option("--only", default="", help="Run the cases whose name contains this.")
def main(folder: str | None, n_threads: int, json_path: Path | None, only: str) -> None:
    """Measure corner sums."""
    bandwidth = {
        name: copied_bytes_per_second(size)
        for name, size in {"L1": 1 << 14, "L2": 1 << 18, "memory": 1 << 27}.items()
    }
    for name, speed in bandwidth.items():
        click.echo(
            f"copying in {name}: {speed / 1e9:.0f} GB/s, {speed / 16:.1e} numbers of 64 bits"
        )
    click.echo(
        f"{'case':<42}{'regions':>13}{'corners':>10}{'blocks':>9}{'bits':>5}{'MB':>7}{'make s':>8}"
        f"{'count s':>9}{'cpu s':>8}{'/cpu s':>10}  count"
    )
    found = run(folder, n_threads, only)
    if json_path is not None:
        document = {"bytes_per_second": bandwidth, "cases": [asdict(m) for m in found]}
        json_path.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
