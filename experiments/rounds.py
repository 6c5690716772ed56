"""Runs the paper's methods in rounds, until a time is up: what is done then is the same for all.

Instances come in an order whose every beginning is a fair sample, so a run that is stopped anywhere
has lost nothing but the rest; the same command goes on. For undisturbed seconds give it a core of
its own (round robin, not first in first out: whoever kills what overruns must get a turn):

    taskset -c 1 chrt -r 1 python -m experiments.rounds --until 14:30
    python -m experiments.rounds --suites methods --methods xcount --until 16:00
    python -m experiments.rounds --list
"""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from benchmarks.harness.datasets import PROJECT, DataError
from benchmarks.harness.instances import Instance, paper_instances, stratified_order
from benchmarks.harness.options import run_into
from benchmarks.harness.plots import PAPER_INSTANCES
from benchmarks.harness.records import RecordFile, ResumeError, RunSettings, Status, read_run
from benchmarks.harness.running import GRACE_SECONDS
from experiments import ablations, gaps, methods

RUNS = PROJECT / "benchmarks" / "runs" / "rounds"
CNF = ("subproblems-cnf", "cnf-ganak", "cnf-approxmc")
QUICK = ("auto", "exact", "sample")


@dataclass(frozen=True, slots=True)
class Round:
    """The first ``n_instances`` of a suite by some methods, with a limit of seconds for each."""

    suite: str
    methods: tuple[str, ...]
    n_instances: int
    limit_seconds: float


ROUNDS = (
    Round("methods", (*QUICK, "xcount", "xcount-exact-union", *CNF), 20, 60),
    Round("ablations", tuple(reversed(ablations.LABELS)), 24, 10),
    Round("gaps", ("xcount",), 80, 10),
    Round("methods", ("add-baseline",), 20, 60),
    Round("methods", (*QUICK, "xcount", "xcount-exact-union", *CNF), 40, 60),
    Round("ablations", tuple(reversed(ablations.LABELS)), 48, 10),
    Round("hard", ("exact",), 40, 1800),
    Round("ablations", tuple(reversed(ablations.LABELS)), 158, 10),
    Round("methods", (*QUICK, "xcount", "xcount-exact-union", *CNF), 80, 60),
    Round("methods", ("add-baseline",), 40, 60),
    Round("ablations", tuple(reversed(ablations.LABELS)), 256, 10),
    Round("gaps", ("xcount",), 320, 10),
    Round("methods", ("xcount",), 640, 60),
    Round("methods", CNF, 120, 60),
    Round("methods", ("xcount",), PAPER_INSTANCES, 60),
)
ALL = sorted({method for part in ROUNDS for method in part.methods})


def methods_order(options: Namespace) -> list[Instance]:
    return stratified_order(methods.suite(options))


def ablations_order(options: Namespace) -> list[Instance]:
    return ablations.ordered(ablations.suite(options))


def gaps_order(options: Namespace) -> list[Instance]:
    """Return every question with all its gaps, so that any part of them compares the gaps."""
    asked = {(i.model, i.sensitive, i.gap): i for i in gaps.instances(options)}
    questions = stratified_order([i for i in asked.values() if i.gap == gaps.GAPS[0]])
    return [asked[i.model, i.sensitive, gap] for i in questions for gap in gaps.GAPS]


def hard_order(options: Namespace) -> list[Instance]:
    """Return what ``exact`` gave up in the kept run of the suite, the narrowest bounds first."""
    kept = read_run(PROJECT / "benchmarks" / "results" / "paper-exact.jsonl.gz").records
    given_up = {r["name"]: r for r in kept if r["status"] != Status.EXACT}
    found = [i for i in paper_instances(None, options.cache, options.data) if i.name in given_up]
    return sorted(found, key=lambda i: given_up[i.name]["high"] / max(1, given_up[i.name]["low"]))


ORDERS: dict[str, Callable[[Namespace], list[Instance]]] = {
    "methods": methods_order,
    "ablations": ablations_order,
    "gaps": gaps_order,
    "hard": hard_order,
}


def ends_at(text: str, now: datetime) -> datetime:
    """Return the next time that a clock shows, given like ``14:30``."""
    try:
        clock = datetime.strptime(text, "%H:%M").time()  # of this place's clock
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time of day; write 14:30") from None
    ending = datetime.combine(now.date(), clock)
    return ending if ending > now else ending + timedelta(days=1)


def run_round(part: Round, options: Namespace, ending: datetime) -> None:
    """Run one round; no instance is begun that might end too late."""
    chosen = ORDERS[part.suite](options)[: part.n_instances]
    for method in part.methods:
        left = (ending - datetime.now()).total_seconds()  # as above
        seconds = left - part.limit_seconds - GRACE_SECONDS
        if seconds <= 0:
            continue
        settings = RunSettings(part.suite, method, part.limit_seconds, jobs=1, isolated=True)
        records = RecordFile(options.output / f"{part.suite}-{method}.jsonl", settings)
        print(f"{part.suite}, {method}, {len(chosen)} instances:", file=sys.stderr)
        run_into(records, chosen, settings, seconds)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments.rounds", description=__doc__)
    clock = partial(ends_at, now=datetime.now())  # this place's clock
    parser.add_argument(
        "--until", type=clock, default="23:59", metavar="HH:MM", help="when to stop"
    )
    parser.add_argument("--suites", nargs="+", choices=list(ORDERS), default=list(ORDERS))
    parser.add_argument("--methods", nargs="+", choices=ALL, default=ALL, metavar="METHOD")
    parser.add_argument("--list", action="store_true", help="print the rounds and stop")
    parser.add_argument("--output", type=Path, default=RUNS, help="folder for the runs")
    parser.add_argument("--data", help="folder of the data sets (default: XCOUNT_DATA)")
    parser.add_argument("--cache", help="folder of the models (default: XCOUNT_CACHE)")
    options = parser.parse_args(arguments)
    options.only = None
    try:
        for part in ROUNDS:
            if options.list:
                print(part)
            elif part.suite in options.suites:
                wanted = tuple(m for m in part.methods if m in options.methods)
                run_round(replace(part, methods=wanted), options, options.until)
    except (DataError, ResumeError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
