"""How fast corner sums count: regions a second and core, beside what the machine copies.

    python -m benchmarks.corner_sums [--data FOLDER] [--threads N] [--json FILE] [--only WORD]
    python -m benchmarks.corner_sums --estimates

Every case trains a model on a few columns of Adult, makes the corner sums of one question and
counts all blocks. A region is at least one number that is read, added and written back: what the
machine copies within its cache, measured in the same run, is the speed to compare with. ``of copy``
are the numbers that pass for regions, as a part of those that a copy in the L2 cache moves (sums of
more than 64 bits are decided by 64). Regions a second and core are told per second of processor
time, which other work on the machine disturbs less.

With ``--estimates``, made-up models of many shapes: what a visit was expected to take, and took.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.datasets import BY_KEY, load_table
from xcount import _core, load
from xcount.counters.visit import visiting_seconds
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.examples import tree_of
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
    flip: bool = False
    is_weighed: bool = False


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
    part_of_copy: float
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
    Case("LightGBM 1000 on 9, sex, any", NINE, lightgbm_1000, "sex", (5,), None),
    Case("LightGBM 1000 on 9, age, distance 1", NINE, lightgbm_1000, "age", (1,), 1),
    Case("LightGBM 1000 on 9, sex, flip", NINE, lightgbm_1000, "sex", (), None, flip=True),
    Case("XGBoost 800 x 6, sex, flip", NINE, xgboost_800, "sex", (), None, flip=True),
    Case("XGBoost 800 x 6, age, any, gap 5", NINE, xgboost_800, "age", (5,), None),
    Case("XGBoost 800 x 6, age, any, precision 3", NINE, xgboost_800, "age", (5,), None, 3),
    Case("XGBoost 800 x 6, age, distance 1", NINE, xgboost_800, "age", (1,), 1),
    Case("XGBoost 800 x 6, age, distance 10", NINE, xgboost_800, "age", (2,), 10),
    Case("XGBoost 800 x 6, sex, any, five gaps", NINE, xgboost_800, "sex", (1, 2, 3, 4, 5), None),
    Case("XGBoost 800 x 6, sex and race, distance 1", NINE, xgboost_800, "sex,race", (1,), 1),
    *(
        Case(
            f"XGBoost 800 x 6, age and hours, distance {distance}",
            NINE,
            xgboost_800,
            "age,hours_per_week",
            (gap,),
            distance,
        )
        for distance, gap in ((5, 1), (10, 1), (40, 5))
    ),
    *(
        Case(
            f"XGBoost 800 x 6, three axes, {words}",
            NINE,
            xgboost_800,
            "age,hours_per_week,education_num",
            gaps,
            distance,
            flip=not gaps,
        )
        for words, gaps, distance in (
            ("distance 1", (1,), 1),
            ("distance 5", (2,), 5),
            ("distance 10", (4,), 10),
            ("five gaps, distance 5", (1, 2, 3, 4, 5), 5),
            ("flip, distance 5", (), 5),
            ("any", (8,), None),
        )
    ),
    *(
        Case(f"XGBoost 800 x 6, age, five gaps, {words}", NINE, xgboost_800, "age", gaps, distance)
        for words, gaps, distance in (
            ("any", (2, 4, 6, 8, 10), None),
            ("distance 10", (1, 2, 3, 4, 5), 10),
        )
    ),
    *(
        Case(
            f"XGBoost 800 x 6, age, weights, {words}",
            NINE,
            xgboost_800,
            "age",
            (gap,),
            distance,
            is_weighed=True,
        )
        for words, gap, distance in (("any", 5, None), ("distance 10", 2, 10))
    ),
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


def even_weights(grid: Grid) -> list[NDArray[np.float64]]:
    """Return weights of all cells, the same for those of an axis."""
    return [np.full(axis.n_cells, 1 / axis.n_cells) for axis in grid.axes]


def make_sums(problem: Problem, case: Case) -> _core.CornerSums:
    """Return the corner sums of several gaps, or of the problem itself."""
    question = problem.form.corner_question
    weights = even_weights(problem.grid) if case.is_weighed else None
    if not case.gaps:
        return question.sums(weights)
    thresholds = (problem.space.trees.threshold(Fraction(str(gap))) for gap in case.gaps)
    changes = tuple(CornerChange("gap", threshold) for threshold in thresholds)
    return replace(question, changes=changes).sums(weights)


def measure(case: Case, problem: Problem, n_threads: int, copied: float) -> Measurement:
    _ = problem.forest  # laid on the grid beforehand
    started = time.perf_counter()
    sums = make_sums(problem, case)
    made, worked = time.perf_counter(), time.process_time()
    counts, _, n_finished = sums.count(0, sums.n_blocks, n_threads)
    seconds, cpu_seconds = time.perf_counter() - made, time.process_time() - worked
    assert n_finished == sums.n_blocks
    speed = sums.n_regions / max(cpu_seconds, 1e-9)
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
        regions_per_cpu_second=speed,
        part_of_copy=speed * 2 * min(8, sums.n_bits // 8) / copied,
        count=int(counts[0].sum(dtype=object)),
    )


def run(folder: str | None, n_threads: int, only: str, copied: float) -> list[Measurement]:
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
            ensemble,
            sensitive,
            None if case.flip else case.gaps[0],
            distance=case.distance,
            precision=case.precision,
            flip=case.flip,
        )
        found.append(measure(case, Problem(ensemble, Grid.of(ensemble), query), n_threads, copied))
        click.echo(row(found[-1]))
    return found


SHAPES = (
    ((10,) * 7, 200, 4),
    ((40, 30, 20, 15, 10), 500, 6),
    ((200, 100, 50, 5), 1000, 6),
    ((3,) * 14, 200, 5),
    ((1000, 100, 20), 800, 5),
    ((2,) * 22, 300, 5),
)
"""Cells of the axes, trees, their depth."""
ASKED: tuple[dict[str, Any], ...] = (
    {"sensitive": "f0", "gap": 1, "distance": "any"},
    {"sensitive": "f0", "gap": 1, "distance": 1},
    {"sensitive": "f1", "flip": True, "cutoff": "0.3", "distance": 3},
    {"sensitive": "f0,f1", "gap": 1, "distance": 1},
    {"sensitive": "f1,f2", "gap": 1, "distance": 5},
    {"sensitive": "f0,f1,f2", "gap": 2, "distance": 2},
    {"sensitive": "f1", "flip": True, "cutoff": "0.3", "distance": "any"},
    {"sensitive": "f1", "probability_gap": "0.1", "distance": "any"},
)


def made_up(cells: Sequence[int], n_trees: int, depth: int, bits: int) -> Ensemble:
    """Return random trees, and a stump for every guard, whose sums need so many bits."""
    rng = np.random.default_rng(len(cells))
    leaves = rng.normal(size=512)
    if bits == 32:
        leaves = np.round(8 * leaves) / 8
    elif bits == 64:
        leaves = leaves.astype(np.float32).astype(np.float64)

    def grow(levels: int) -> Any:
        f = int(rng.integers(len(cells)))
        if levels == 0:
            return float(rng.choice(leaves))
        return (f, float(rng.integers(cells[f] - 1)), grow(levels - 1), grow(levels - 1))

    guards = ((f, t) for f, n in enumerate(cells) for t in range(n - 1))
    stumps = [tree_of((f, float(t), 0.0, float(leaves[0]))) for f, t in guards]
    trees = [tree_of(grow(depth)) for _ in range(n_trees)]
    features = tuple(Feature(f"f{i}") for i in range(len(cells)))
    return Ensemble(features, (*trees, *stumps), probability="sigmoid")


def compared(problem: Problem, is_weighed: bool) -> dict[str, Any]:
    """Return what a visit was expected to take, and took."""
    question = problem.form.corner_question
    expected = visiting_seconds(question, is_weighed=is_weighed)
    started = time.process_time()
    sums = question.sums(even_weights(problem.grid) if is_weighed else None)
    sums.count(0, sums.n_blocks, 1)
    took = time.process_time() - started
    return {
        "bits": sums.n_bits,
        "is_weighed": is_weighed,
        "expected_seconds": expected,
        "cpu_seconds": took,
    }


def estimate_row(line: dict[str, Any]) -> str:
    expected, took = line["expected_seconds"], line["cpu_seconds"]
    return (
        f"{line['cells']:<22}{line['bits']:>5}{line['sensitive']:>10}{line['distance']:>5}"
        f"{'  weighed' if line['is_weighed'] else '':<9}"
        f"{expected:>9.3f}{took:>9.3f}{expected / took:>7.2f}"
    )


def compare_estimates() -> list[dict[str, Any]]:
    """Return what visits were expected to take, and how much processor time they took."""
    found = []
    for (cells, n_trees, depth), bits in itertools.product(SHAPES, (32, 64, 128)):
        ensemble = made_up(cells, n_trees, depth, bits)
        grid = Grid.of(ensemble)
        for asked in ASKED:
            problem = Problem(ensemble, grid, Query.of(ensemble, **asked))
            words = (
                " x ".join(map(str, cells)) if len(set(cells)) > 1 else f"{cells[0]}^{len(cells)}"
            )
            for is_weighed in (False, True):
                found.append({"cells": words, **asked} | compared(problem, is_weighed))
                click.echo(estimate_row(found[-1]))
    ratios = [line["expected_seconds"] / line["cpu_seconds"] for line in found]
    click.echo(f"expected / took: {min(ratios):.2f} to {max(ratios):.2f}")
    return found


def row(m: Measurement) -> str:
    return (
        f"{m.case:<52}{m.n_regions:>13.3g}{m.n_corners:>10}{m.n_blocks:>9}{m.bits:>5}"
        f"{m.megabytes:>7.1f}{m.make_seconds:>8.3f}{m.count_seconds:>9.3f}"
        f"{m.cpu_seconds:>8.3f}{m.regions_per_cpu_second:>10.2e}{m.part_of_copy:>9.0%}  {m.count}"
    )


@click.command()
@click.option("--data", "folder", default=None, help="Folder of the data sets.")
@click.option("--threads", "n_threads", default=2, help="Threads that count.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="File to write to.")
@click.option("--only", default="", help="Run the cases whose name contains this.")
@click.option("--estimates", is_flag=True, help="Compare what visits were expected to take.")
def main(
    folder: str | None, n_threads: int, json_path: Path | None, only: str, estimates: bool
) -> None:
    """Measure corner sums."""
    document: dict[str, Any] = (
        {"estimates": compare_estimates()} if estimates else speeds(folder, n_threads, only)
    )
    if json_path is not None:
        json_path.write_text(json.dumps(document, indent=1) + "\n")


def speeds(folder: str | None, n_threads: int, only: str) -> dict[str, Any]:
    """Measure the machine, then all cases."""
    bandwidth = {
        name: copied_bytes_per_second(size)
        for name, size in {"L1": 1 << 14, "L2": 1 << 18, "memory": 1 << 27}.items()
    }
    for name, speed in bandwidth.items():
        click.echo(
            f"copying in {name}: {speed / 1e9:.0f} GB/s, {speed / 16:.1e} numbers of 64 bits"
        )
    click.echo(
        f"{'case':<52}{'regions':>13}{'corners':>10}{'blocks':>9}{'bits':>5}{'MB':>7}{'make s':>8}"
        f"{'count s':>9}{'cpu s':>8}{'/cpu s':>10}{'of copy':>9}  count"
    )
    found = run(folder, n_threads, only, bandwidth["L2"])
    return {"bytes_per_second": bandwidth, "cases": [asdict(m) for m in found]}


if __name__ == "__main__":
    main()
