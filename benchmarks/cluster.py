"""Measures a Dask cluster of this machine's cores, and simulates large runs from what it measured.

Measured: a sample of the paper's suite on 1 and on 2 workers, what Dask and the journal cost a
task, and what a model costs to send. Simulated: one audit of 50 features for each of 10,000 models
on 1 to 500 workers, with times drawn from the measured ones.

    python -m benchmarks.cluster
    python -m benchmarks.cluster --times benchmarks/runs/paper-auto.jsonl
"""

from __future__ import annotations

import argparse
import heapq
import math
import os
import pickle
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.instances import Instance, paper_instances, stratified_sample
from benchmarks.records import RunSettings, read_run
from benchmarks.running import run_on_cluster
from xcount.cluster import bundle_size
from xcount.examples import adult_model_path
from xcount.grid import Grid
from xcount.journal import Journal
from xcount.loaders import load

N_MODELS, N_FEATURES = 10_000, 50
WORKERS = (1, 2, 10, 50, 100, 200, 500)
SEED = 20240
Times = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Costs:
    """What a run costs besides counting, in seconds.

    Attributes:
        task: per bundle, where all of them pass one by one: the client and the scheduler.
        journal: per bundle, in the same place: its lines in the journal.
        model: per bundle, on its worker: to unpack a model (at most; a worker keeps models).
    """

    task: float
    journal: float
    model: float


@dataclass(frozen=True, slots=True)
class Simulated:
    """A simulated run: how long, and which part of the workers' time went into counts."""

    seconds: float
    busy: float


def simulate(times: Times, n_workers: int, costs: Costs) -> Simulated:
    """Run ``times[model, count]`` on workers that take the next bundle when they are free.

    Bundles are made as :mod:`xcount.cluster` makes them, of one model each; handing them out and
    writing their results are done one after the other.
    """
    mean, n_waiting = float(times.mean()), times.size
    free_at = [0.0] * n_workers
    handed_out = end = 0.0
    for counts in times:
        at = 0
        while at < len(counts):
            size = min(bundle_size(mean, n_waiting, n_workers), len(counts) - at)
            handed_out += costs.task + costs.journal
            start = max(heapq.heappop(free_at), handed_out)
            done = start + costs.model + float(counts[at : at + size].sum())
            heapq.heappush(free_at, done)
            end = max(end, done)
            at, n_waiting = at + size, n_waiting - size
    return Simulated(end, float(times.sum()) / (n_workers * end))


@contextmanager
def local_cluster(n_workers: int) -> Iterator[Any]:
    """Yield a client of workers with one thread each, in processes of their own."""
    from distributed import Client, LocalCluster

    options = {"processes": True, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(n_workers=n_workers, **options) as cluster, Client(cluster) as client:
        client.wait_for_workers(n_workers, timeout=60)
        yield client


def measure_suite(client: Any, instances: Sequence[Instance]) -> tuple[float, Times]:
    """Return the seconds of a run, and those of each of its counts."""
    settings = RunSettings("paper", "auto", limit_seconds=10.0, jobs=1)
    for instance in instances[:4]:  # imports and first pages are not the suite's
        list(run_on_cluster([instance], settings, client))
    started = time.perf_counter()
    records = list(run_on_cluster(instances, settings, client))
    elapsed = time.perf_counter() - started
    return elapsed, np.array([record["seconds"] for record in records])


def measure_costs(client: Any, n_tasks: int = 500) -> Costs:
    """Return what a task costs that does nothing, a journal line, and a model."""
    client.gather([client.submit(abs, -1, pure=False) for _ in range(20)])
    started = time.perf_counter()
    client.gather([client.submit(abs, -1, pure=False) for _ in range(n_tasks)])
    task = (time.perf_counter() - started) / n_tasks
    line = {"kind": "result", "key": "k" * 32, "result": {"text": "x" * 1500}}
    with (
        tempfile.TemporaryDirectory(dir=Path.cwd()) as folder,
        Journal(Path(folder) / "journal.jsonl") as journal,
    ):
        started = time.perf_counter()
        for _ in range(50):
            journal.append(*[line] * 10)
        written = (time.perf_counter() - started) / 50
    ensemble = load(adult_model_path())
    packed = zlib.compress(pickle.dumps((ensemble, Grid.of(ensemble))), 1)
    started = time.perf_counter()
    for _ in range(10):
        pickle.loads(zlib.decompress(packed))
    return Costs(task, written, (time.perf_counter() - started) / 10)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--sample", type=int, default=100, help="instances of the paper's suite")
    parser.add_argument("--times", type=Path, help="take the simulation's times from this run")
    parser.add_argument("--cache", help="folder of the models (default: XCOUNT_CACHE)")
    parser.add_argument("--data", help="folder of the data sets (default: XCOUNT_DATA)")
    options = parser.parse_args(arguments)
    instances = stratified_sample(
        paper_instances(None, options.cache, options.data), options.sample
    )
    times, costs = _print_measured(instances)
    if options.times is not None:
        records = read_run(options.times).records
        times = np.array([record["seconds"] for record in records])
    _print_simulated(times, costs)
    return 0


def _print_measured(instances: Sequence[Instance]) -> tuple[Times, Costs]:
    print(f"{len(instances)} instances of the paper's suite; {os.cpu_count()} cores, load ", end="")
    print(f"{os.getloadavg()[0]:.1f} before\n")
    print("| workers | seconds | counting, seconds | speed-up |\n|---|---|---|---|")
    first = math.nan
    for n_workers in (1, 2):
        with local_cluster(n_workers) as client:
            elapsed, times = measure_suite(client, instances)
            costs = measure_costs(client)
        first = elapsed if n_workers == 1 else first
        print(f"| {n_workers} | {elapsed:.2f} | {times.sum():.2f} | {first / elapsed:.2f} |")
    print(f"\nA task of Dask: {costs.task * 1e3:.2f} ms; ten lines of the journal: ", end="")
    print(f"{costs.journal * 1e3:.2f} ms; unpacking a model: {costs.model * 1e3:.2f} ms.")
    return times, costs


def _print_simulated(times: Times, costs: Costs) -> None:
    quantiles = np.quantile(times, [0.5, 0.9, 0.99, 1.0])
    print(
        f"\nTimes of {len(times)} counts: mean {times.mean():.3f} s, median, 90 %, 99 %, largest "
    )
    print(", ".join(f"{q:.3f}" for q in quantiles), "s.\n")
    drawn = np.random.default_rng(SEED).choice(times, (N_MODELS, N_FEATURES))
    print(f"Simulated: {N_MODELS:,} models x {N_FEATURES} features, {drawn.size:,} counts\n")
    print("| workers | hours | speed-up | busy | hours without journal |\n|---|---|---|---|---|")
    first = math.nan
    for n_workers in WORKERS:
        found = simulate(drawn, n_workers, costs)
        plain = simulate(drawn, n_workers, replace(costs, journal=0.0))
        first = found.seconds if n_workers == 1 else first
        print(
            f"| {n_workers} | {found.seconds / 3600:.3f} | {first / found.seconds:.1f} "
            f"| {found.busy:.0%} | {plain.seconds / 3600:.3f} |"
        )


if __name__ == "__main__":
    sys.exit(main())
