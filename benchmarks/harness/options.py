"""What the suites' command lines have in common."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.harness.datasets import BY_KEY, PROJECT, DataError
from benchmarks.harness.instances import Instance, stratified_sample
from benchmarks.harness.records import RecordFile, ResumeError, Run, RunSettings, read_run
from benchmarks.harness.running import Record, run_suite
from benchmarks.harness.tables import is_solved, report

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
Suite = Callable[[argparse.Namespace], list[Instance]]


def suite_parser(
    suite: str, description: str | None, limit_seconds: float, isolated: bool
) -> argparse.ArgumentParser:
    """Return a parser with the options that every suite has."""
    parser = argparse.ArgumentParser(prog=f"python -m experiments.{suite}", description=description)
    parser.set_defaults(suite=suite)
    where = parser.add_argument_group("where things are")
    where.add_argument("--data", help="folder of the data sets (default: XCOUNT_DATA)")
    where.add_argument("--cache", help="folder of the models (default: XCOUNT_CACHE)")
    where.add_argument("--output", type=Path, help="file to write (default: in benchmarks/runs)")
    where.add_argument("--restart", action="store_true", help="forget what the file holds")
    what = parser.add_argument_group("which instances")
    what.add_argument("--only", nargs="+", choices=list(BY_KEY), metavar="SET", help="data sets")
    what.add_argument("--sample", type=int, metavar="N", help="a stratified sample")
    what.add_argument("--list", action="store_true", help="print the instances and stop")
    how = parser.add_argument_group("how they are counted")
    how.add_argument("--method", default="auto", help="method of xcount.count (default: auto)")
    how.add_argument("--limit-seconds", type=float, default=limit_seconds, metavar="S")
    how.add_argument("--memory", type=memory_size, default="4G", help="limit, e.g. 4G or 500M")
    how.add_argument("--epsilon", type=float, default=0.1)
    how.add_argument("--delta", type=float, default=0.1)
    how.add_argument("--seed", type=int, default=0)
    how.add_argument("--jobs", type=int, default=0, help="threads of one count (default: cores)")
    how.add_argument(
        "--isolated",
        action=argparse.BooleanOptionalAction,
        default=isolated,
        help=f"each instance in its own process (default: {'yes' if isolated else 'no'})",
    )
    how.add_argument("--workers", type=int, default=1, help="processes at a time, if isolated")
    how.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="on the workers of this Dask scheduler, which have this folder and the models, too",
    )
    return parser


def memory_size(text: str) -> int:
    """Return a number of bytes, given like ``4G``, ``500MB`` or ``1048576``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]?)i?b?", text.strip().lower())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write 4G, 500M or 1048576")
    return int(float(match[1]) * UNITS[match[2]])


def run_command(
    options: argparse.Namespace, suite: Suite, describe: Callable[[Run], str] = report
) -> int:
    """Run a suite as its command line asks, and print the summary."""
    if options.workers > 1 and not options.isolated:
        print("--workers needs --isolated", file=sys.stderr)
        return 2
    if options.cluster and options.isolated:
        print(
            "--cluster needs --no-isolated: workers count in their own processes", file=sys.stderr
        )
        return 2
    settings = settings_of(options)
    try:
        instances = suite(options)
        if options.sample is not None:
            instances = stratified_sample(instances, options.sample)
        if options.list:
            print("\n".join(instance.name for instance in instances))
            return 0
        path = options.output or default_output(options)
        records = RecordFile(path, settings, options.restart)
    except (DataError, ResumeError) as error:
        print(error, file=sys.stderr)
        return 2
    try:
        run_into(records, instances, settings, cluster=options.cluster)
    except KeyboardInterrupt:
        print(f"\nstopped; the same command goes on with {path}", file=sys.stderr)
        return 130
    print(describe(read_run(path)))
    return 0


def run_into(
    records: RecordFile,
    instances: Sequence[Instance],
    settings: RunSettings,
    seconds: float | None = None,
    cluster: str | None = None,
) -> None:
    """Run what a file does not hold yet, telling on standard error how far it is."""
    waiting = len(instances) - sum(instance.name in records.done for instance in instances)
    run_suite(instances, settings, records, Progress(waiting), cluster, seconds)


def default_output(options: argparse.Namespace) -> Path:
    """Return where a run is written when nobody says."""
    parts = [options.suite, options.method]
    parts += sorted(options.only or [])
    parts += ["all"] if getattr(options, "all_features", False) else []
    parts += [f"gap{options.gap}"] if getattr(options, "gap", None) else []
    parts += [f"sample{options.sample}"] if options.sample is not None else []
    parts += ["isolated"] if options.isolated else []
    parts += ["cluster"] if options.cluster else []
    return PROJECT / "benchmarks" / "runs" / f"{'-'.join(parts)}.jsonl"


def settings_of(options: argparse.Namespace) -> RunSettings:
    """Return the settings that a command line asks for."""
    return RunSettings(
        suite=options.suite,
        method=options.method,
        limit_seconds=options.limit_seconds,
        memory_bytes=options.memory,
        epsilon=options.epsilon,
        delta=options.delta,
        seed=options.seed,
        jobs=options.jobs,
        isolated=options.isolated,
        workers=options.workers,
    )


class Progress:
    """Says on standard error, now and then, how far a run is."""

    def __init__(self, n_instances: int, interval_seconds: float = 5.0) -> None:
        self.n_instances = n_instances
        self.interval_seconds = interval_seconds
        self.started = self.shown = time.monotonic()
        self.n_done = self.n_solved = 0

    def __call__(self, record: Record) -> None:
        """Take note of one record."""
        self.n_done += 1
        self.n_solved += is_solved(record)
        now = time.monotonic()
        if now - self.shown < self.interval_seconds and self.n_done < self.n_instances:
            return
        self.shown = now
        print(
            f"{self.n_done}/{self.n_instances} done, {self.n_solved} solved, "
            f"{now - self.started:.0f} s, last {record['name']} ({record['seconds']:.3f} s)",
            file=sys.stderr,
        )
