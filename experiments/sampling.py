"""How fast sampling is, how intervals shrink, and how rare is too rare.

Three studies, each written into one file beside the runs of the suites:

* speed: samples and tree evaluations a second of one core, by number of masks and distance;
* intervals: low and high against time, ``sample`` on ten instances that exact counting leaves open;
* rarity: share against trees that a sample evaluates, ``auto`` on models of 200 to 1000 trees.

    python -m experiments.sampling
    python -m experiments.sampling --parts speed
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.harness.instances import (
    Instance,
    Sources,
    frontier_instances,
    paper_instances,
)
from benchmarks.harness.options import parser_of
from benchmarks.harness.plots import COLOURS, MARKERS, figure, legend_beside, line_style
from benchmarks.harness.records import RUNS, Runs, surroundings
from benchmarks.harness.running import load_model
from benchmarks.harness.tables import joined, made_on, markdown, picture
from xcount import CountResult, count
from xcount.counters.costs import MAX_ROW
from xcount.counters.decisions import n_decided_together
from xcount.counters.engine import Draws
from xcount.counters.sampling.draws import BATCH, RegionDraws, RowDraws
from xcount.counters.tally import Progress

FILE = "sampling.json"
PARTS = ("speed", "intervals", "rarity")
INTERVAL_SECONDS, RARITY_SECONDS, SPEED_SECONDS = 60.0, 60.0, 1.0
MAX_POINTS = 60
"""Of an interval's way through time, at most so many moments are kept."""

SPEED_PAPER = ("adult-d6-t100-f0", "adult-d6-t100-f9", "higgs-d6-t100-f26", "susy-d6-t100-f2")
SPEED_FRONTIER = (
    "covtype-d8-t1000-f37-dany",
    "higgs-d7-t1000-f4",
    "higgs-d6-t1000-f10_f11_f13",
    "higgs-d8-t1000-f6_f17_f18-d3",
    "higgs-d7-t1000-f3_f4_f18-dany",
)
HARD_PAPER = ("covtype-d6-t40-f45", "higgs-d6-t100-f16", "webspam-d6-t70-f92")
HARD_FRONTIER = (
    "adult-d8-t200-f0_f2_f5",
    "covtype-d7-t200-f12_f27",
    "covtype-d7-t500-f12_f27_f40",
    "covtype-d7-t500-f27-d3",
    "covtype-d7-t1000-f27",
    "covtype-d8-t1000-f37-dany",
    "higgs-d7-t1000-f3_f4_f18-dany",
)

Found = dict[str, Any]


def named(instances: Sequence[Instance], names: Sequence[str]) -> list[Instance]:
    """Return the instances of these names that the suite holds."""
    return [instance for instance in instances if instance.name in names]


def speed_of(instance: Instance, distance: int | None, seconds: float) -> Found:
    """Measure samples a second of processor time on one thread."""
    problem = replace(instance, distance=distance).problem()
    by_region = n_decided_together(problem) > MAX_ROW
    sampler: Draws = RowDraws(problem.space, range(problem.n_masks), None)
    if by_region:
        sampler = RegionDraws(problem.form.corner_question)
    n, chunk, started = 0, 2, time.process_time()
    while (elapsed := time.process_time() - started) < seconds:
        sampler.draw(0, 1, n, chunk, 1, math.inf, lambda: None)
        n += chunk
    return {
        "name": instance.name,
        "distance": "any" if distance is None else distance,
        "n_masks": problem.n_masks,
        "sample": "region" if by_region else "row",
        "n_trees": sampler.n_trees,
        "samples_per_second": n * BATCH / elapsed,
    }


def traced(instance: Instance, limit_seconds: float, method: str) -> tuple[CountResult, Found]:
    """Run one instance and keep the interval at every report."""
    model = load_model(instance.model)
    started = time.perf_counter()
    seen: list[tuple[float, float, float]] = []
    n_regions = model.grid.n_regions

    def listen(progress: Progress) -> None:
        elapsed = time.perf_counter() - started
        seen.append((elapsed, progress.low / n_regions, progress.high / n_regions))

    result = count(
        model.ensemble,
        grid=model.grid,
        **instance.question(),
        method=method,
        timeout=limit_seconds,
        on_progress=listen,
    )
    seen.append((result.seconds, result.share_low, result.share_high))
    found = {
        "name": instance.name,
        "seconds": round(result.seconds, 3),
        "stop_reason": str(result.stop_reason),
        "exact": result.exact,
        "share": result.share,
        "share_low": result.share_low,
        "share_high": result.share_high,
        "trace": thinned(seen),
    }
    return result, found


def thinned(seen: Sequence[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    """Return a few of many moments, evenly on a logarithmic scale of time; the last one is kept."""
    kept: list[tuple[float, float, float]] = []
    ratio = (max(seen[-1][0], 0.02) / 0.01) ** (1 / MAX_POINTS)
    for point in seen[:-1]:
        if not kept or point[0] >= kept[-1][0] * ratio:
            kept.append(point)
    return [*kept, seen[-1]]


def rarity_of(instance: Instance, limit_seconds: float) -> Found:
    """Run one instance, and tell how many trees a sample of it evaluates."""
    problem = instance.problem()
    n_trees = RowDraws(problem.space, range(problem.n_masks), None).n_trees
    _, found = traced(instance, limit_seconds, "auto")
    return {"model_trees": instance.n_trees, "n_trees": n_trees} | found | {"trace": []}


def measured(parts: Sequence[str], limit_seconds: float | None, sources: Sources) -> Found:
    """Return what the asked parts find, and under which circumstances."""
    found: Found = {"about": surroundings()}
    asked = ["adult", "covtype", "higgs", "susy", "webspam"]
    paper = paper_instances(sources._replace(only=asked))
    frontier = frontier_instances(sources)
    if "speed" in parts:
        found["speed"] = [
            *(speed_of(i, d, SPEED_SECONDS) for i in named(paper, SPEED_PAPER) for d in (1, None)),
            *(speed_of(i, i.distance, SPEED_SECONDS) for i in named(frontier, SPEED_FRONTIER)),
        ]
    if "intervals" in parts:
        hard, limit = named(paper, HARD_PAPER), limit_seconds or INTERVAL_SECONDS
        hard += named(frontier, HARD_FRONTIER)
        found["intervals"] = [traced(i, limit, "sample")[1] for i in hard]
    if "rarity" in parts:
        rare, limit = (
            [i for i in frontier if i.dataset == "covtype"],
            limit_seconds or RARITY_SECONDS,
        )
        found["rarity"] = [rarity_of(i, limit) for i in rare]
    return found


def write(found: Mapping[str, Any], path: Path) -> None:
    """Write what was found; other parts that the file holds stay."""
    path.parent.mkdir(parents=True, exist_ok=True)
    before = json.loads(path.read_text()) if path.exists() else {}
    about = {part: found["about"] for part in PARTS if part in found}
    merged = {**before, **found, "about": {**before.get("about", {}), **about}}
    path.write_text(json.dumps(merged) + "\n")


def report(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the table of each part as Markdown."""
    tables = {"speed": _speed_table, "intervals": _interval_table, "rarity": _rarity_table}
    return {
        part: joined(table(found[part]), made_on(found["about"][part]))
        for part, table in tables.items()
        if part in found
    }


def _speed_table(rows: Sequence[Mapping[str, Any]]) -> str:
    cells = [
        [
            row["name"],
            str(row["distance"]),
            f"{row['n_masks']:,}",
            row["sample"],
            f"{row['n_trees']:g}",
            f"{row['samples_per_second']:,.0f}",
            f"{row['samples_per_second'] * row['n_trees'] / 1e6:.1f}",
        ]
        for row in rows
    ]
    header = ["instance", "distance", "masks", "a sample is a", "trees", "samples/s"]
    return markdown([*header, "million trees/s"], cells)


def _interval_cells(row: Mapping[str, Any]) -> list[str]:
    low, high = row["share_low"], row["share_high"]
    width = high / low if low else math.inf if high else 1.0
    found = [row[key] for key in ("share", "share_low", "share_high")]
    shares = ["-" if share is None else f"{share:.3g}" for share in found]
    return [f"{row['seconds']:.2f}", row["stop_reason"], *shares, f"{width:.3g}"]


_INTERVAL_HEADER = ("seconds", "ended by", "share", "low", "high", "high / low")


def _interval_table(rows: Sequence[Mapping[str, Any]]) -> str:
    cells = [[row["name"], *_interval_cells(row)] for row in rows]
    return markdown(["instance", *_INTERVAL_HEADER], cells)


def _rarity_table(rows: Sequence[Mapping[str, Any]]) -> str:
    ordered = sorted(rows, key=lambda row: (row["n_trees"], row["name"]))
    cells = [[f"{row['n_trees']:g}", row["name"], *_interval_cells(row)] for row in ordered]
    return markdown(["trees of a sample", "instance", *_INTERVAL_HEADER], cells)


def draw_intervals(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw both bounds against time, a colour and a line style for each instance."""
    with figure(path, size=(8, 5)) as axes:
        for i, row in enumerate(rows):
            seconds = [max(0.01, point[0]) for point in row["trace"]]
            only_point = MARKERS[i // len(COLOURS)] if len(seconds) == 1 else None
            style = line_style(i) | {"marker": only_point}
            axes.plot(seconds, [p[2] for p in row["trace"]], label=row["name"], **style)
            axes.plot(seconds, [max(p[1], 1e-10) for p in row["trace"]], **style)
        axes.set(xscale="log", yscale="log", xlabel="seconds", ylabel="share: low and high")
        axes.set_title("Intervals against time")
        legend_beside(axes)


def draw_rarity(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw share against trees: answered exactly, within the guarantee, or not."""
    kinds = {
        "exact": [row for row in rows if row["exact"]],
        "within the guarantee": [
            row for row in rows if row["stop_reason"] == "complete" and not row["exact"]
        ],
        "stopped": [row for row in rows if row["stop_reason"] != "complete"],
    }
    with figure(path) as axes:
        for i, (label, found) in enumerate(kinds.items()):
            trees = [row["n_trees"] for row in found]
            known = [row["share_low"] if row["share"] is None else row["share"] for row in found]
            shares = [max(share, 1e-12) for share in known]
            below = [
                share - max(row["share_low"], 1e-12)
                for share, row in zip(shares, found, strict=True)
            ]
            above = [row["share_high"] - share for share, row in zip(shares, found, strict=True)]
            errors = [[max(0.0, e) for e in below], [max(0.0, e) for e in above]]
            style = {"color": COLOURS[i], "marker": MARKERS[i], "linestyle": "none"}
            axes.errorbar(trees, shares, yerr=errors, label=label, capsize=2, **style)
        axes.set(xscale="log", yscale="log", xlabel="trees of a sample", ylabel="share")
        axes.set_title("How rare, and how large (covtype, 200 to 1000 trees)")
        legend_beside(axes)


def section(runs: Runs, folder: Path) -> str:
    """Return the speed of samples, intervals against time, and share against trees."""
    found = json.loads((folder / FILE).read_text())
    tables, parts = report(found), []
    draw = {"intervals": draw_intervals, "rarity": draw_rarity}
    titles = {"intervals": "intervals against time", "rarity": "share against trees"}
    for part, table in tables.items():
        parts.append(table)
        if part in draw:
            path = folder / f"sampling-{part}.svg"
            draw[part](found[part], path)
            parts.append(picture(path, titles[part]))
    return joined(*parts)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("experiments.sampling", __doc__, RUNS / FILE)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--limit-seconds", type=float, metavar="S", help="of an instance")
    options = parser.parse_args(arguments)
    write(measured(options.parts, options.limit_seconds, Sources.of(options)), options.output)
    known = report(json.loads(options.output.read_text()))
    print(joined(*(known[part] for part in options.parts)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
