"""Runs the experiments and writes their tables and pictures into one folder.

The short version fits a budget: samples, short limits, and a share of the time for each run. The
full version runs what docs/experiments.md shows, with the same limits and threads. ``--plan`` says
how long each part takes, going by the kept results, and runs nothing. Both versions go on where
they were stopped; commands that keep no file to go on with start again.

    python -m experiments.all --budget 10m
    python -m experiments.all --full --plan
    python -m experiments.all --full
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from argparse import Namespace
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from benchmarks.harness.datasets import BY_KEY, PROJECT, DataError
from benchmarks.harness.instances import Instance
from benchmarks.harness.options import run_into
from benchmarks.harness.records import RecordFile, ResumeError, RunSettings
from experiments import archive, durations, page, rounds
from experiments.durations import duration
from experiments.studies import COMMANDS, FULL_NAMES, SHORT, SHORT_NAMES, WHOLE, Study

RUNS = PROJECT / "benchmarks" / "runs"
UNITS = {"s": 1, "m": 60, "h": 3600}
STOPPED = 130
"""The status of a command that Ctrl-C has ended."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run: a method on the instances of a study."""

    study: Study
    settings: RunSettings
    instances: tuple[Instance, ...]

    @property
    def file_name(self) -> str:
        return f"{self.settings.suite}-{self.settings.method}.jsonl"


def jobs_of(studies: Sequence[Study], options: Namespace) -> list[Job]:
    """Return every run, training the models that the cache lacks."""
    jobs = []
    for study in studies:
        instances = _obtainable(study, options)
        if study.sample is not None:
            # In this order what a budget cuts off is spread evenly, and the same for all methods.
            instances = study.order(instances)[: study.sample]
        for method in study.methods if instances else ():
            settings = RunSettings(
                study.suite, method, study.limit_seconds, jobs=study.jobs, isolated=study.isolated
            )
            jobs.append(Job(study, settings, tuple(instances)))
    return jobs


def _obtainable(study: Study, options: Namespace) -> list[Instance]:
    """Return the instances of the data sets that can be had; name the others."""
    given = vars(options) | {"all_features": False, "gap": None}
    try:
        return study.instances(Namespace(**given, only=None))
    except DataError:
        found: list[Instance] = []
        lacking: dict[str, None] = {}
        for key in BY_KEY:
            try:
                found += study.instances(Namespace(**given, only=[key]))
            except DataError as error:
                lacking[f"{study.suite} without {error}"] = None
        print("\n".join(lacking), file=sys.stderr)
        return found


def budget_seconds(text: str) -> float:
    """Return a number of seconds, given like ``10m``, ``90s`` or ``2h``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh])", text.strip().lower())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; write 10m, 90s or 2h")
    return float(match[1]) * UNITS[match[2]]


def short_studies(names: Collection[str], options: Namespace) -> list[Study]:
    """Return studies of the short version with the sample and the limit that are asked for."""
    return [
        replace(
            study,
            sample=study.sample and (options.sample or study.sample),
            limit_seconds=options.limit_seconds or study.limit_seconds,
        )
        for study in SHORT
        if study.suite in names
    ]


def run_short(names: Collection[str], folder: Path, options: Namespace) -> None:
    """Train what the cache lacks; then spend the budget on preparations and runs."""
    studies = short_studies(names, options)
    print("models: from the cache, or trained now", file=sys.stderr)
    jobs = jobs_of(studies, options)
    ends = time.monotonic() + options.budget
    for study in studies:
        _prepare(study, options, folder)
    run_jobs(jobs, folder, ends)


def run_jobs(jobs: Sequence[Job], folder: Path, ends: float | None = None) -> None:
    """Run the jobs one after the other, each with its share of the time until ``ends``."""
    waiting = sum(job.study.weight for job in jobs)
    for job in jobs:
        share = job.study.weight / waiting
        seconds = None if ends is None else max(0.0, ends - time.monotonic()) * share
        waiting -= job.study.weight
        records = RecordFile(folder / job.file_name, job.settings)
        print(f"{job.settings.suite}, {job.settings.method}:", file=sys.stderr)
        run_into(records, job.instances, job.settings, seconds)
        left = sum(instance.name not in records.done for instance in job.instances)
        if left:
            print(f"  {left} of {len(job.instances)} not begun: time is up", file=sys.stderr)


def _prepare(study: Study, options: Namespace, folder: Path) -> None:
    """Do what a study needs besides its runs, where its data can be had."""
    try:
        if study.prepare is not None:
            study.prepare(options, folder)
    except DataError as error:
        print(f"{study.suite}, in part: {error}", file=sys.stderr)


def run_full(names: Collection[str], folder: Path, options: Namespace) -> None:
    """Run the whole suites, the rounds, and the commands; what lacks data is named and left out."""
    for study in WHOLE:
        if study.suite in names:
            run_jobs(jobs_of([study], options), folder)
    given = Namespace(**vars(options) | {"output": folder, "only": None})
    never = datetime.now() + timedelta(days=3650)  # a clock on a wall
    for part in rounds.ROUNDS:
        if part.suite in names:
            try:
                rounds.run_round(part, given, never)
            except DataError as error:
                print(f"{part.suite}: {error}", file=sys.stderr)
    for command in COMMANDS:
        if command.name in names:
            print(f"{command.name}:", file=sys.stderr)
            try:
                status = command.main(command.arguments(folder, options))
            except DataError as error:
                print(f"{command.name}: {error}", file=sys.stderr)
                continue
            if status == STOPPED:
                raise KeyboardInterrupt


def forget(names: Collection[str], folder: Path) -> None:
    """Remove what a folder holds of some studies."""
    files = {command.name: command.file for command in COMMANDS}
    for name in names:
        for path in folder.glob(f"{name}-*.jsonl"):
            path.unlink()
        if name in files:
            (folder / files[name]).unlink(missing_ok=True)


def plan_table(names: Collection[str], options: Namespace) -> str:
    """Return what will be run and how long it takes, going by the kept results."""
    runs = page.runs_by_suite(archive.RESULTS)
    if options.full:
        return durations.table(durations.full(runs, archive.RESULTS, names))
    return durations.table(durations.short(runs, archive.RESULTS, short_studies(names, options)))


def options_of(arguments: Sequence[str] | None) -> Namespace:
    """Return what the command line asks for; the short version alone has samples and limits."""
    parser = argparse.ArgumentParser(prog="python -m experiments.all", description=__doc__)
    parser.add_argument("--budget", type=budget_seconds, default="10m", help="e.g. 10m or 90s")
    parser.add_argument("--full", action="store_true", help="what the page shows, no budget")
    parser.add_argument("--plan", action="store_true", help="say how long it takes, and stop")
    parser.add_argument("--only", nargs="+", metavar="STUDY", help="some of them")
    parser.add_argument("--sample", type=int, metavar="N", help="another size of the samples")
    parser.add_argument("--limit-seconds", type=float, metavar="S", help="another limit")
    parser.add_argument("--output", type=Path, help="folder (default: in benchmarks/runs)")
    parser.add_argument("--restart", action="store_true", help="forget what the folder holds")
    parser.add_argument("--data", help="folder of the data sets (default: XCOUNT_DATA)")
    parser.add_argument("--cache", help="folder of the models (default: XCOUNT_CACHE)")
    options = parser.parse_args(arguments)
    names = FULL_NAMES if options.full else SHORT_NAMES
    unknown = [name for name in options.only or () if name not in names]
    if unknown:
        parser.error(f"no study {', '.join(unknown)}; there are {', '.join(names)}")
    if options.full and (options.sample or options.limit_seconds):
        parser.error("--full has the samples and limits of the page: no --sample, --limit-seconds")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = options_of(arguments)
    names = options.only or (FULL_NAMES if options.full else SHORT_NAMES)
    del options.only  # the suites know an option of that name: data sets
    folder = options.output or RUNS / ("full" if options.full else "short")
    print(plan_table(names, options))
    if not options.full:
        print(f"of which at most {duration(options.budget)} are spent, once models are trained")
    if options.plan:
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    if options.restart:
        forget(names, folder)
    try:
        (run_full if options.full else run_short)(names, folder, options)
    except ResumeError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on", file=sys.stderr)
        return STOPPED
    for path in page.write_results(folder):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
