"""Runs every experiment and writes its tables and pictures into one folder.

The short version fits a budget: samples, short limits, and a share of the time for each run. The
full version runs the suites whole with the paper's limits (samples for the slow methods) and says
beforehand how long that takes. Both go on where they were stopped.

    python -m benchmarks.all --budget 10m
    python -m benchmarks.all --full --plan
    python -m benchmarks.all --full
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import (
    ablations,
    beyond,
    frontier,
    gaps,
    methods,
    page,
    paper,
    regularisation,
    weights,
)
from benchmarks.commands import run_into
from benchmarks.datasets import BY_KEY, PROJECT, DataError
from benchmarks.instances import Instance, stratified_order
from benchmarks.methods import Order
from benchmarks.records import RecordFile, ResumeError, RunSettings
from benchmarks.running import GRACE_SECONDS
from benchmarks.summary import is_solved, markdown

RUNS = PROJECT / "benchmarks" / "runs"
UNITS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of a suite is run: all or a sample, and the limit of an instance in seconds."""

    sample: int | None
    limit_seconds: float


@dataclass(frozen=True, slots=True)
class Study:
    """One experiment: its suite, the methods, and both plans.

    ``weight`` is what each of its runs gets of a budget, in proportion to the others.
    """

    suite: str
    methods: tuple[str, ...]
    instances: Callable[[Namespace], list[Instance]]
    short: Plan
    full: Plan
    weight: float
    isolated: bool = False
    prepare: Callable[[Namespace, Path], None] | None = None
    order: Order = stratified_order


STUDIES = (
    Study(
        "gaps", ("auto",), gaps.instances, Plan(120, 2), Plan(None, 1800), 2,
        prepare=regularisation.write_splits,
    ),
    Study(
        "beyond", ("auto",), beyond.instances, Plan(None, 2), Plan(None, 1800), 3,
        prepare=weights.write_shares,
    ),
    Study("paper", ("exact", "auto"), paper.instances, Plan(200, 2), Plan(None, 1800), 3),
    Study("frontier", ("exact", "auto"), frontier.instances, Plan(9, 3), Plan(None, 10), 1, True),
    Study(
        "ablations", tuple(reversed(ablations.LABELS)), ablations.suite,
        Plan(12, 2), Plan(100, 60), 1, isolated=True, order=ablations.ordered,
    ),
    Study("methods", methods.METHODS, methods.suite, Plan(20, 2), Plan(100, 60), 1.2, True),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Job:
    """One run: a method on the instances of a study."""

    study: Study
    settings: RunSettings
    instances: tuple[Instance, ...]

    @property
    def file_name(self) -> str:
        return f"{self.settings.suite}-{self.settings.method}.jsonl"

    @property
    def most_seconds(self) -> float:
        """The time that it takes if no instance is solved."""
        grace = GRACE_SECONDS if self.settings.isolated else 0.0
        return len(self.instances) * (self.settings.limit_seconds + grace)


def jobs_of(studies: Sequence[Study], options: Namespace) -> list[Job]:
    """Return every run, training the models that the cache lacks."""
    jobs = []
    for study in studies:
        plan = study.full if options.full else study.short
        instances = _obtainable(study, options)
        if plan.sample is not None:
            # In this order what a budget cuts off is spread evenly, and the same for all methods.
            instances = study.order(instances)[: options.sample or plan.sample]
        for method in study.methods if instances else ():
            limit = options.limit_seconds or plan.limit_seconds
            settings = RunSettings(study.suite, method, limit, isolated=study.isolated)
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


def plan_table(jobs: Sequence[Job], results: Path) -> str:
    """Return what will be run and how long it takes, going by the results in a folder."""
    known = {(run.settings.suite, run.settings.method): run for run in page.read_runs(results)}
    rows = []
    total_about = total_most = 0.0
    for job in jobs:
        run = known.get((job.settings.suite, job.settings.method))
        most = job.most_seconds
        about = most
        if run is not None and run.records:
            limit = job.settings.limit_seconds
            spent = [float(r["elapsed_seconds"]) if is_solved(r) else limit for r in run.records]
            about = min(most, statistics.fmean(spent) * len(job.instances))
        total_about, total_most = total_about + about, total_most + most
        rows.append(
            [
                job.settings.suite,
                job.settings.method,
                str(len(job.instances)),
                f"{job.settings.limit_seconds:g}",
                duration(about) if run else "unknown",
                duration(most),
            ]
        )
    rows.append(["**all**", "", "", "", duration(total_about), duration(total_most)])
    return markdown(["suite", "method", "instances", "limit s", "about", "at most"], rows)


def duration(seconds: float) -> str:
    """Return a time in words, e.g. ``1 h 20 min``."""
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def budget_seconds(text: str) -> float:
    """Return a number of seconds, given like ``10m``, ``90s`` or ``2h``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh])", text.strip().lower())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; write 10m, 90s or 2h")
    return float(match[1]) * UNITS[match[2]]


def run_jobs(jobs: Sequence[Job], folder: Path, options: Namespace) -> None:
    """Run the jobs one after the other, each with its share of what is left of the budget."""
    budget = None if options.full else options.budget
    ends = time.monotonic() + (budget or 0.0)
    waiting = sum(job.study.weight for job in jobs)
    for job in jobs:
        share = job.study.weight / waiting
        seconds = None if budget is None else max(0.0, ends - time.monotonic()) * share
        waiting -= job.study.weight
        records = RecordFile(folder / job.file_name, job.settings, options.restart)
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


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.all", description=__doc__)
    parser.add_argument("--budget", type=budget_seconds, default="10m", help="e.g. 10m or 90s")
    parser.add_argument("--full", action="store_true", help="the whole suites, without a budget")
    parser.add_argument("--plan", action="store_true", help="say how long it takes, and stop")
    names = [study.suite for study in STUDIES]
    parser.add_argument("--only", nargs="+", choices=names, metavar="STUDY", help="some of them")
    parser.add_argument("--sample", type=int, metavar="N", help="another size of the samples")
    parser.add_argument("--limit-seconds", type=float, metavar="S", help="another limit")
    parser.add_argument("--output", type=Path, help="folder (default: in benchmarks/runs)")
    parser.add_argument("--restart", action="store_true", help="forget what the folder holds")
    parser.add_argument("--data", help="folder of the data sets (default: XCOUNT_DATA)")
    parser.add_argument("--cache", help="folder of the models (default: XCOUNT_CACHE)")
    options = parser.parse_args(arguments)
    chosen = options.only or names
    del options.only  # the suites know an option of that name: data sets
    folder = options.output or RUNS / ("full" if options.full else "short")
    studies = [study for study in STUDIES if study.suite in chosen]
    print("models: from the cache, or trained now", file=sys.stderr)
    jobs = jobs_of(studies, options)
    print(plan_table(jobs, page.RESULTS), file=sys.stderr)
    if not options.full:
        print(f"of which at most {duration(options.budget)} are spent", file=sys.stderr)
    if options.plan:
        return 0
    try:
        for study in studies:
            _prepare(study, options, folder)
        run_jobs(jobs, folder, options)
    except ResumeError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on", file=sys.stderr)
        return 130
    for path in page.write_results(folder):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
