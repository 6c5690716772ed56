"""Measure a Dask cluster of this machine's cores, and simulate large runs from the measurements.

Measured, on 1 and on 2 workers of one thread, alternately: an audit of many short counts, a sample
of the paper's suite, one hard count by exact subproblems and one by samples (both spread over the
workers); and what Dask and the journal cost a task, and what a model costs to send. Simulated: one
audit of 50 features for each of 10,000 models on 1 to 500 workers, with times drawn from those of
the sample.

    python -m benchmarks.cluster
    python -m benchmarks.cluster --repeats 1 --output /tmp/here
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cluster_simulation import Costs, Times, simulate
from benchmarks.harness.instances import (
    Instance,
    Sources,
    frontier_instances,
    paper_instances,
    stratified_sample,
)
from benchmarks.harness.options import parser_of
from benchmarks.harness.records import (
    RUNS,
    Runs,
    RunSettings,
    append_line,
    read_lines,
    surroundings,
)
from benchmarks.harness.running import run_on_cluster
from benchmarks.harness.tables import joined, made_on, markdown
from xcount import audit, count, load
from xcount.cluster.worker import packed, unpacked
from xcount.model.examples import adult_model_path, figure_1
from xcount.question.grid import Grid
from xcount.runs.journal import Journal

N_MODELS, N_FEATURES = 10_000, 50
WORKERS = (1, 2, 10, 50, 100, 200, 500)
SEED = 20240
FILE = "cluster.jsonl"
JOURNALLED = 100
"""Lines that are written together."""
AUDITED = "higgs-d5-t50"
HARD_EXACTLY: dict[str, Any] = {"sensitive": "age", "gap": "0.3", "distance": 4}
"""Of the example's model: many subproblems of middling size."""
HARD_BY_SAMPLES, EPSILON = "adult-d8-t500-f0_f5-d3", 0.002

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Load:
    """Something to count; returns the seconds of each count, on one thread."""

    name: str
    run: Callable[[Any], list[float]]


def loads_of(options: argparse.Namespace) -> list[Load]:
    """Return what is measured."""
    paper, frontier = (f(Sources.of(options)) for f in (paper_instances, frontier_instances))
    by_name = {instance.name: instance for instance in [*paper, *frontier]}
    audited = next(i for i in paper if i.name.startswith(f"{AUDITED}-"))
    sample = stratified_sample(paper, options.sample)
    return [
        Load(f"audit of {AUDITED}", lambda client: _audit(audited, client)),
        Load(
            f"{len(sample)} instances of the paper's suite", lambda client: _suite(sample, client)
        ),
        Load("one hard count of the example's model, exact", _hard_exactly),
        Load(
            f"{HARD_BY_SAMPLES}, samples, epsilon {EPSILON:g}",
            lambda client: _hard_by_samples(by_name[HARD_BY_SAMPLES], client),
        ),
    ]


def _audit(instance: Instance, client: Any) -> list[float]:
    found = audit(instance.model, distances=[1, 2], timeout=None, cluster=client)
    return [result.seconds for result in found.results]


def _suite(instances: Sequence[Instance], client: Any) -> list[float]:
    settings = RunSettings("paper", "auto", limit_seconds=60.0, jobs=1)
    return [record["seconds"] for record in run_on_cluster(instances, settings, client)]


def _hard_exactly(client: Any) -> list[float]:
    return [count(adult_model_path(), **HARD_EXACTLY, method="exact", cluster=client).seconds]


def _hard_by_samples(instance: Instance, client: Any) -> list[float]:
    result = count(
        instance.model,
        **instance.question(),
        method="sample",
        epsilon=EPSILON,
        cluster=client,
    )
    return [result.seconds]


@contextmanager
def local_cluster(n_workers: int) -> Iterator[Any]:
    """Yield a client of workers with one thread each, in processes of their own, warmed up."""
    from distributed import Client, LocalCluster

    options = {"processes": True, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(n_workers=n_workers, **options) as cluster, Client(cluster) as client:
        client.wait_for_workers(n_workers, timeout=60)
        audit(figure_1(), gaps=range(1, 80), cluster=client)
        client.run(load, adult_model_path())
        yield client


def measure_loads(loads: Sequence[Load], repeats: int) -> Iterator[Line]:
    """Yield a line for each load on 1 and on 2 workers, as often as asked."""
    for _ in range(repeats):
        for n_workers in (1, 2):
            with local_cluster(n_workers) as client:
                for asked in loads:
                    before = round(os.getloadavg()[0], 1)
                    used = sum(client.run(time.process_time).values())
                    started = time.perf_counter()
                    seconds = asked.run(client)
                    elapsed = time.perf_counter() - started
                    used = sum(client.run(time.process_time).values()) - used
                    yield {
                        "record": "measured",
                        "what": asked.name,
                        "workers": n_workers,
                        "load": before,
                        "seconds": round(elapsed, 3),
                        "processor_seconds": round(used, 3),
                        "counts": [round(value, 6) for value in seconds],
                    }


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
        for _ in range(20):
            journal.append(*[line] * JOURNALLED)
        written = (time.perf_counter() - started) / 20 / JOURNALLED
    ensemble = load(adult_model_path())
    sent = packed((ensemble, Grid.of(ensemble)))
    started = time.perf_counter()
    for _ in range(10):
        unpacked(sent)
    return Costs(task, written, (time.perf_counter() - started) / 10)


def simulated(times: Times, costs: Costs, n_models: int = N_MODELS) -> Iterator[Line]:
    """Yield a line for each number of workers."""
    drawn = np.random.default_rng(SEED).choice(times, (n_models, N_FEATURES))
    for n_workers in WORKERS:
        found = simulate(drawn, n_workers, costs)
        whole = simulate(drawn, n_workers, costs, spread=False)
        plain = simulate(drawn, n_workers, replace(costs, journal=0.0))
        yield {
            "record": "simulated",
            "workers": n_workers,
            "seconds": round(found.seconds, 3),
            "busy": round(found.busy, 4),
            "seconds_not_spread": round(whole.seconds, 3),
            "seconds_without_journal": round(plain.seconds, 3),
        }


def times_of(lines: Sequence[Line]) -> Times:
    """Return the times of the suite's sample on one worker, all repeats together."""
    found = [
        line["counts"]
        for line in lines
        if line["record"] == "measured" and "suite" in line["what"] and line["workers"] == 1
    ]
    return np.concatenate([np.array(counts) for counts in found])


def report(lines: Sequence[Line]) -> str:
    """Return what was measured and simulated as Markdown."""
    header = next(line for line in lines if line["record"] == "header")
    costs = next(line for line in lines if line["record"] == "costs")
    times = times_of(lines)
    about = (
        f"Workers of one thread, niceness {header['niceness']}: {made_on(header)} The shortest of "
        f"{header['repeats']} runs, 1 and 2 workers alternately: other work on the machine only "
        "makes them longer, those of 2 workers, which need both cores, more than those of 1. "
        "Processor time grows, too, where the two cores are threads of one."
    )
    cost = (
        f"A task of Dask that does nothing costs {costs['task'] * 1e3:.2f} ms, a line of the "
        f"journal {costs['journal'] * 1e3:.3f} ms (of {JOURNALLED} written together), unpacking a "
        f"model {costs['model'] * 1e3:.2f} ms."
    )
    quantiles = ", ".join(f"{q:.3f}" for q in np.quantile(times, [0.5, 0.9, 0.99, 1.0]))
    drawn = (
        f"Simulated: {N_MODELS:,} models x {N_FEATURES} features, {N_MODELS * N_FEATURES:,} counts "
        f"with times drawn from the {len(times)} of the suite's sample (mean {times.mean():.3f} s; "
        f"median, 90 %, 99 %, largest: {quantiles} s) and with the costs above."
    )
    return joined(about, _speed_table(lines), cost, drawn, _simulated_table(lines))


def _speed_table(lines: Sequence[Line]) -> str:
    measured = [line for line in lines if line["record"] == "measured"]
    rows = []
    for what in dict.fromkeys(line["what"] for line in measured):
        of_it = [line for line in measured if line["what"] == what]
        clock, processor = (
            [min(line[name] for line in of_it if line["workers"] == n) for n in (1, 2)]
            for name in ("seconds", "processor_seconds")
        )
        times = [f"{value:.2f}" for value in (*clock, *processor)]
        rows.append([what, str(len(of_it[0]["counts"])), *times, f"{clock[0] / clock[1]:.2f}"])
    header = ["what", "counts", "1 worker s", "2 workers s"]
    header += ["processor s, 1 worker", "2 workers together", "speed-up"]
    return markdown(header, rows)


def _simulated_table(lines: Sequence[Line]) -> str:
    found = [line for line in lines if line["record"] == "simulated"]
    first = found[0]["seconds"]
    rows = [
        [
            str(line["workers"]),
            _duration(line["seconds"]),
            f"{first / line['seconds']:.1f}",
            f"{line['busy']:.0%}",
            _duration(line["seconds_not_spread"]),
            _duration(line["seconds_without_journal"]),
        ]
        for line in found
    ]
    header = ["workers", "time", "speed-up", "busy", "no count spread", "without journal"]
    return markdown(header, rows)


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:.2f} h" if seconds >= 3600 else f"{seconds:.1f} s"


def section(runs: Runs, folder: Path) -> str:
    """Return the measurements and simulations that a folder holds."""
    return report(read_lines(folder / FILE))


def _measure(options: argparse.Namespace) -> Iterator[Mapping[str, Any]]:
    yield {
        "record": "header",
        **surroundings(),
        "niceness": os.nice(0),
        "repeats": options.repeats,
    }
    lines = []
    for line in measure_loads(loads_of(options), options.repeats):
        lines.append(line)
        yield line
    with local_cluster(2) as client:
        costs = measure_costs(client)
    yield {"record": "costs", **asdict(costs)}
    yield from simulated(times_of(lines), costs)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("benchmarks.cluster", __doc__, RUNS / FILE)
    parser.add_argument("--sample", type=int, default=400, help="instances of the paper's suite")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(arguments)
    options.output.unlink(missing_ok=True)
    for line in _measure(options):
        append_line(options.output, line)
        shown = {key: value for key, value in line.items() if key != "counts"}
        print(json.dumps(shown), file=sys.stderr, flush=True)
    print(report(read_lines(options.output)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
