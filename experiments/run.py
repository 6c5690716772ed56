"""Run the experiments, and write their tables and pictures into one folder.

The short version fits a budget: samples, short limits, and a share of the time for each run, the
paper's methods first, of models that ship with the repository. The full version runs what
docs/experiments.md shows, with the same limits and threads. Named studies are run alone, with
another sample, limit or methods if asked. Every run continues where it was
stopped.

    python -m experiments.run --budget 10m
    python -m experiments.run --full --plan
    python -m experiments.run --full
    python -m experiments.run paper --methods cnf-ganak --sample 100 --limit-seconds 60 --isolated
    taskset -c 1 chrt -r 1 python -m experiments.run methods ablations --full --until 14:30
"""

from __future__ import annotations

import math
import sys
import time
from argparse import BooleanOptionalAction, Namespace
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.harness.datasets import BY_KEY, DataError
from benchmarks.harness.instances import Instance, Sources
from benchmarks.harness.options import (
    STOPPED,
    budget_seconds,
    memory_size,
    parser_of,
    seconds_until,
)
from benchmarks.harness.processes import GRACE_SECONDS
from benchmarks.harness.records import RUNS, RecordFile, ResumeError, RunSettings
from benchmarks.harness.running import run_suite
from experiments import durations, page
from experiments.suites import COMMANDS, FULL, SHORT, SUITES, Command, Study

BUDGET_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Job:
    """One run: a method on the instances of a study."""

    weight: float
    settings: RunSettings
    instances: tuple[Instance, ...]

    @property
    def file_name(self) -> str:
        return f"{self.settings.suite}-{self.settings.method}.jsonl"


def studies_of(options: Namespace) -> list[Study]:
    """Return the studies that are asked for, with the sample, limit and methods asked for."""
    found = []
    for study in FULL if options.full else SHORT:
        methods = study.methods
        if options.methods:
            methods = tuple(m for m in options.methods if m in methods or not options.full)
        changed = replace(
            study,
            methods=methods,
            sample=options.sample or study.sample,
            limit_seconds=options.limit_seconds or study.limit_seconds,
            jobs=study.jobs if options.jobs is None else options.jobs,
            isolated=study.isolated if options.isolated is None else options.isolated,
        )
        if changed.suite in options.studies:
            found.append(changed)
    return found


def commands_of(options: Namespace) -> list[Command]:
    """Return the commands that are asked for."""
    return [c for c in COMMANDS if c.name in options.studies and (options.full or c.short)]


def jobs_of(study: Study, options: Namespace) -> list[Job]:
    """Return the runs of a study; trains the models that the cache lacks."""
    instances = _obtainable(study, options)
    if study.sample is not None:
        # In this order, what a budget cuts off is spread evenly, and the same for all methods.
        instances = SUITES[study.suite].order(instances)[: study.sample]
    return [
        Job(
            study.weight,
            RunSettings(
                study.suite,
                method,
                study.limit_seconds,
                options.memory,
                jobs=study.jobs,
                isolated=study.isolated,
                workers=options.workers,
                processor_time=study.processor_time,
            ),
            tuple(instances),
        )
        for method in study.methods
        if instances
    ]


def _obtainable(study: Study, options: Namespace) -> list[Instance]:
    """Return the instances of the data sets that can be had; name the others."""
    found: list[Instance] = []
    lacking: dict[str, None] = {}
    for key in options.sets or BY_KEY:
        try:
            found += SUITES[study.suite].instances(Sources.of(options, [key]))
        except DataError as error:
            lacking[f"{study.suite} without {error}"] = None
    print("".join(f"{line}\n" for line in lacking), end="", file=sys.stderr)
    return found


def run_short(options: Namespace) -> None:
    """Spend the budget on runs, then on commands if any is left; preparing them is part of it."""
    studies, ends = studies_of(options), time.monotonic() + options.budget
    if math.isfinite(options.budget):
        studies = [study for study in studies if study.models_ship]
    weights = sum(study.weight * len(study.methods) for study in studies)
    for study in studies:
        for job in jobs_of(study, options):
            run_job(job, options, max(0.0, ends - time.monotonic()) * job.weight / weights)
            weights -= job.weight
    if time.monotonic() < ends:
        run_commands(commands_of(options), options)


def run_full(options: Namespace) -> None:
    """Run the studies, then the commands; with a time to end at, start nothing that may overrun."""
    ends = None if options.until is None else time.monotonic() + options.until
    for study in studies_of(options):
        for job in jobs_of(study, options):
            if ends is None:
                run_job(job, options, None)
                continue
            left = ends - time.monotonic() - job.settings.limit_seconds - GRACE_SECONDS
            if left > 0:
                run_job(job, options, left)
    if ends is None:
        run_commands(commands_of(options), options)


def run_job(job: Job, options: Namespace, seconds: float | None) -> None:
    """Run one job; ``seconds`` is how long instances may be started."""
    records = RecordFile(options.output / job.file_name, job.settings)
    print(f"{job.settings.suite}, {job.settings.method}:", file=sys.stderr)
    run_suite(job.instances, job.settings, records, options.cluster, seconds)


def run_commands(commands: Iterable[Command], options: Namespace) -> None:
    """Run studies that have commands of their own; name those that lack their data."""
    for command in commands:
        print(f"{command.name}:", file=sys.stderr)
        words = [*((command.short or ()) if not options.full else ())]
        words += ["--output", str(options.output / command.file)]
        for name in ("data", "cache"):
            if (value := getattr(options, name)) is not None:
                words += [f"--{name}", str(value)]
        try:
            if command.main(words) == STOPPED:
                raise KeyboardInterrupt
        except DataError as error:
            print(f"{command.name}: {error}", file=sys.stderr)


def forget(names: Iterable[str], folder: Path) -> None:
    """Remove what a folder holds of some studies."""
    files = {command.name: command.file for command in COMMANDS}
    for name in names:
        for path in folder.glob(f"{name}-*.jsonl"):
            path.unlink()
        if name in files:
            (folder / files[name]).unlink(missing_ok=True)


def options_of(arguments: Sequence[str] | None) -> Namespace:
    """Read the command line."""
    parser = parser_of("experiments.run", __doc__)
    parser.add_argument("studies", nargs="*", metavar="STUDY", help="default: all")
    parser.add_argument("--full", action="store_true", help="what the page shows, no budget")
    parser.add_argument("--budget", type=budget_seconds, help="e.g. 10m (the default) or 90s")
    parser.add_argument("--until", type=seconds_until, metavar="HH:MM", help="when to stop")
    parser.add_argument("--plan", action="store_true", help="say how long it takes, and stop")
    parser.add_argument("--list", action="store_true", help="print the instances, and stop")
    parser.add_argument("--sets", nargs="+", choices=BY_KEY, metavar="SET", help="data sets")
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help="other methods")
    parser.add_argument("--sample", type=int, metavar="N", help="another size of the samples")
    parser.add_argument("--limit-seconds", type=float, metavar="S", help="another limit")
    parser.add_argument("--memory", type=memory_size, default="4G", help="e.g. 4G or 500M")
    parser.add_argument("--jobs", type=int, help="threads of one count (0: all cores)")
    parser.add_argument("--isolated", action=BooleanOptionalAction, help="a process an instance")
    parser.add_argument("--workers", type=int, default=1, help="processes at a time, if isolated")
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="on the workers of this Dask scheduler, which have this folder and the models, too",
    )
    parser.add_argument("--output", type=Path, help="folder (default: in benchmarks/runs)")
    parser.add_argument("--restart", action="store_true", help="forget what the folder holds")
    options = parser.parse_args(arguments)
    names = [study.suite for study in (FULL if options.full else SHORT)]
    names += [command.name for command in COMMANDS if options.full or command.short]
    if unknown := [name for name in options.studies if name not in names]:
        known = ", ".join(dict.fromkeys(names))
        parser.error(f"no study {', '.join(unknown)}; there are {known}")
    if options.full and (options.sample or options.limit_seconds):
        parser.error("--full has the samples and limits of the page: no --sample, --limit-seconds")
    if options.cluster and options.isolated is not False:
        parser.error("--cluster needs --no-isolated: workers count in their own processes")
    if options.budget is None:  # studies that are named take the time they need
        options.budget = float("inf") if options.studies else BUDGET_SECONDS
    options.studies = options.studies or names
    options.output = options.output or RUNS / ("full" if options.full else "short")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = options_of(arguments)
    if options.list:
        jobs = [job for study in studies_of(options) for job in jobs_of(study, options)]
        print("\n".join(f"{job.settings.method} {i.name}" for job in jobs for i in job.instances))
        return 0
    print(durations.plan_table(studies_of(options), commands_of(options)))
    if options.plan:
        return 0
    options.output.mkdir(parents=True, exist_ok=True)
    if options.restart:
        forget(options.studies, options.output)
    try:
        (run_full if options.full else run_short)(options)
    except ResumeError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped; the same command continues", file=sys.stderr)
        return STOPPED
    for path in page.write_results(options.output):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
