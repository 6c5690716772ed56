"""How fast sampling is, and how intervals shrink: ``python -m benchmarks.sampling``.

Three tables (and, with ``--plot FILE``, the picture of the second):

* speed: samples and tree evaluations a second on one core, for models of the paper's data sets;
* interval against time, for ten instances that exact counting leaves open;
* share against trees: how rare solutions may be, and how large the ensemble, for ``sample`` to
  answer within the limit.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.instances import Instance, frontier_instances, paper_instances
from benchmarks.running import load_model
from xcount import count
from xcount.counters.base import Progress
from xcount.counters.sampling import everything, make_sampler
from xcount.query import Query
from xcount.result import CountResult
from xcount.subproblems import Problem

SPEED = ("adult-d6-t100-f0", "adult-d6-t100-f9", "higgs-d6-t100-f26", "susy-d6-t100-f2")
HARD_PAPER = (
    "covtype-d6-t70-f12",
    "covtype-d5-t100-f43",
    "adult-d6-t100-f9",
    "adult-d6-t90-f5",
    "protein-d6-t100-f6",
)
HARD_FRONTIER = (
    "covtype-d7-t200-f12_f27",
    "covtype-d7-t500-f12_f27-dany",
    "covtype-d8-t200-f30_f37_f44",
    "covtype-d8-t1000-f37-dany",
    "adult-d8-t200-f0_f2_f5",
)
Trace = list[tuple[float, float, float]]
"""Seconds, and the bounds of the share then."""


def named(instances: Sequence[Instance], names: Sequence[str]) -> list[Instance]:
    """Return the instances of these names that the suite holds."""
    return [instance for instance in instances if instance.name in names]


def problem_of(instance: Instance, distance: int | None) -> Problem:
    model = load_model(instance.model)
    query = Query.of(
        model.ensemble,
        instance.sensitive,
        instance.gap,
        distance=distance,
        precision=instance.precision,
    )
    return Problem(model.ensemble, model.grid, query)


def speed_table(instances: Sequence[Instance], seconds: float) -> None:
    """Print samples and tree evaluations per second of processor time, on one thread."""
    print(f"{'instance':28} {'d':>4} {'masks':>6} {'trees':>6} {'samples/s':>11} {'trees/s':>9}")
    for instance in instances:
        for distance in (1, None):
            problem = problem_of(instance, distance)
            sampler = make_sampler(problem, everything(problem))
            n, started = 0, time.process_time()
            while (elapsed := time.process_time() - started) < seconds:
                sampler.draw(0, 1, n, 40, 1)
                n += 40
            rate = n * sampler.batch / elapsed
            name = "any" if distance is None else str(distance)
            print(
                f"{instance.name:28} {name:>4} {problem.n_masks:6} {sampler.n_trees:6} "
                f"{rate:11,.0f} {rate * sampler.n_trees / 1e6:7.1f} M",
                flush=True,
            )


def trace(instance: Instance, limit: float, method: str) -> tuple[CountResult, Trace]:
    """Run one instance and keep the interval at every report."""
    model = load_model(instance.model)
    started = time.perf_counter()
    seen: Trace = []
    n_regions = model.grid.n_regions

    def listen(progress: Progress) -> None:
        elapsed = time.perf_counter() - started
        seen.append((elapsed, progress.low / n_regions, progress.high / n_regions))

    result = count(
        model.ensemble,
        grid=model.grid,
        sensitive=instance.sensitive,
        gap=instance.gap,
        distance=instance.distance,
        precision=instance.precision,
        method=method,
        timeout_seconds=limit,
        on_progress=listen,
    )
    seen.append((result.seconds, result.share_low, result.share_high))
    return result, seen


def interval_table(instances: Sequence[Instance], limit: float, plot: Path | None) -> None:
    """Print when the interval was how narrow, and draw it."""
    traces: dict[str, Trace] = {}
    print(f"{'instance':32} {'seconds':>8} {'stop':>9} {'share':>9} {'low':>9} {'high':>9}")
    for instance in instances:
        result, seen = trace(instance, limit, "sample")
        traces[instance.name] = seen
        print(
            f"{instance.name:32} {result.seconds:8.2f} {result.stop_reason:>9} "
            f"{result.share:9.2e} {result.share_low:9.2e} {result.share_high:9.2e}",
            flush=True,
        )
    if plot is not None:
        draw(traces, plot)


def draw(traces: dict[str, Trace], path: Path) -> None:
    """Draw both bounds against time, one panel for all instances."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 6))
    for name, seen in traces.items():
        seconds = [s for s, _, _ in seen]
        (line,) = axes.plot(seconds, [high for _, _, high in seen], label=name)
        axes.plot(seconds, [max(low, 1e-9) for _, low, _ in seen], color=line.get_color())
    axes.set(xscale="log", yscale="log", xlabel="seconds", ylabel="share: low and high")
    axes.legend(fontsize=7)
    figure.savefig(path, dpi=150)


def rarity_table(instances: Sequence[Instance], limit: float) -> None:
    """Print, by number of trees a sample evaluates, the share and how the run ended."""
    print(f"{'instance':40} {'trees':>6} {'share':>9} {'seconds':>8} {'stop':>9} {'high/low':>8}")
    for instance in instances:
        result, _ = trace(instance, limit, "auto")
        width = f"{result.high / result.low:8.2f}" if result.low else "     inf"
        print(
            f"{instance.name:40} {instance.n_trees:6} {result.share:9.2e} {result.seconds:8.2f} "
            f"{result.stop_reason:>9} {width}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit-seconds", type=float, default=60.0)
    parser.add_argument("--plot", type=Path, help="write the picture of the intervals here")
    parser.add_argument("--parts", nargs="+", default=["speed", "intervals", "rarity"])
    options = parser.parse_args()
    paper = paper_instances(["adult", "covtype", "higgs", "susy", "protein"])
    frontier = frontier_instances(["adult", "covtype"])
    if "speed" in options.parts:
        speed_table(named(paper, SPEED), seconds=1.0)
    if "intervals" in options.parts:
        hard = named(paper, HARD_PAPER) + named(frontier, HARD_FRONTIER)
        interval_table(hard, options.limit_seconds, options.plot)
    if "rarity" in options.parts:
        rare = [i for i in frontier if i.dataset == "covtype"]
        rarity_table(rare, options.limit_seconds)


if __name__ == "__main__":
    main()
