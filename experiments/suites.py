"""The suites of questions, and which methods the short and the full version run on them.

A suite's order makes every prefix a fair sample, so a run that is stopped anywhere has lost only
the rest, and all methods can be compared on what each of them was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import cluster, limits, weights, wild
from benchmarks.harness.datasets import BY_KEY
from benchmarks.harness.instances import (
    Instance,
    Sources,
    alternating_order,
    frontier_instances,
    paper_instances,
    stratified_order,
)
from benchmarks.harness.records import RESULTS, Status, read_run
from experiments import (
    encodings,
    paper,
    recovery,
    regularisation,
    regularisation_report,
    sampling,
    theorem,
)
from experiments.libraries import library_instances

ADULT = "adult"
GAPS = ("0.02", "0.2", "2", "20")


@dataclass(frozen=True, slots=True)
class Suite:
    """Questions about models, and the order of which every prefix is a fair sample."""

    instances: Callable[[Sources], list[Instance]]
    order: Callable[[Sequence[Instance]], list[Instance]] = stratified_order


def adult_instances(sources: Sources, gaps: Sequence[str | None] = (None,)) -> list[Instance]:
    """Return questions about every used feature of the 40 Adult models, with each gap."""
    if sources.only and ADULT not in sources.only:
        return []
    adult = sources._replace(only=[ADULT])
    return [i for gap in gaps for i in paper_instances(adult, all_features=True, gap=gap)]


def gap_instances(sources: Sources) -> list[Instance]:
    """Return the gap sweep."""
    return adult_instances(sources, GAPS)


def gaps_order(instances: Sequence[Instance]) -> list[Instance]:
    """Return every question with all its gaps, so that any prefix compares the gaps."""
    asked = {(i.model, i.sensitive, i.gap): i for i in instances}
    questions = stratified_order([i for i in instances if i.gap == GAPS[0]])
    return [asked[i.model, i.sensitive, gap] for i in questions for gap in GAPS]


def ablations_order(instances: Sequence[Instance]) -> list[Instance]:
    """Return in turns an instance with a count and one without, according to the gap sweep.

    Two thirds of the counts are 0, which some methods see at once.
    """
    path = RESULTS / "gaps-auto.jsonl.gz"
    known = read_run(path).records if path.exists() else ()
    suffix = f"-g{BY_KEY[ADULT].gap}"
    zeros = {r["name"].removesuffix(suffix) for r in known if r.get("high") == 0}
    return alternating_order(instances, zeros)


def hard_order(instances: Sequence[Instance]) -> list[Instance]:
    """Return what ``exact`` gave up in the kept run of the suite, the narrowest bounds first."""
    kept = read_run(RESULTS / "paper-exact.jsonl.gz").records
    given_up = {r["name"]: r for r in kept if r["status"] != Status.EXACT}
    found = [i for i in instances if i.name in given_up]
    return sorted(found, key=lambda i: given_up[i.name]["high"] / max(1, given_up[i.name]["low"]))


def census_order(instances: Sequence[Instance]) -> list[Instance]:
    """Return all instances of depths 3 and 4, then of depth 5, then of 6; each a fair sample."""
    ordered = stratified_order(instances)
    return sorted(ordered, key=lambda instance: max(4, instance.depth))


SUITES = {
    "paper": Suite(paper_instances),
    "methods": Suite(paper_instances),
    "census": Suite(paper_instances, census_order),
    "hard": Suite(paper_instances, hard_order),
    "ablations": Suite(adult_instances, ablations_order),
    "gaps": Suite(gap_instances, gaps_order),
    "frontier": Suite(frontier_instances),
    "beyond": Suite(library_instances),
}


@dataclass(frozen=True, slots=True)
class Study:
    """A suite by some methods: ``sample`` None is all of it; ``jobs`` 0 is a thread for each core.

    ``weight`` is what each of its runs gets of a budget, in proportion to the others. A study whose
    models must be trained first gets nothing of it: it runs when it is named.
    """

    suite: str
    methods: tuple[str, ...]
    sample: int | None
    limit_seconds: float
    weight: float = 1.0
    jobs: int = 1
    isolated: bool = True
    processor_time: bool = False
    models_ship: bool = True


METHODS = (
    "auto", "exact", "sample", "xcount", "xcount-exact-union", "xcount-sum-first", "add-baseline",
    "add-baseline-plain", "cnf-ganak", "cnf-approxmc", "subproblems-cnf",
)  # fmt: skip
ABLATED = (
    "add-baseline-plain", "add-baseline", "xcount-sum-first", "xcount-exact-union",
    "subproblems-cnf", "xcount", "exact", "auto",
)  # fmt: skip
CNF = ("subproblems-cnf", "cnf-ganak", "cnf-approxmc")
QUICK = ("auto", "exact", "sample", "xcount", "xcount-exact-union", *CNF)

SHORT = (
    Study("methods", METHODS, 20, 2, 1.2),
    Study("ablations", ABLATED[::-1], 12, 2),
    Study("paper", ("exact", "auto"), 200, 2, 3, jobs=0, isolated=False),
    Study("gaps", ("auto",), 120, 2, 2, jobs=0, isolated=False),
    Study("beyond", ("auto",), None, 2, 3, jobs=0, isolated=False, models_ship=False),
    Study("frontier", ("exact", "auto"), 9, 3, jobs=0, models_ship=False),
)
FULL = (
    Study("gaps", ("auto",), None, 1800, isolated=False),
    Study("beyond", ("auto",), None, 1800, isolated=False),
    Study("paper", ("auto",), None, 1800, isolated=False),
    Study("paper", ("exact",), None, 10, isolated=False),
    Study("frontier", ("exact", "auto"), None, 10, jobs=0),
    # The slow methods in rounds: if time ends them, all methods have come as far.
    Study("methods", QUICK, 20, 60),
    Study("ablations", ABLATED[::-1], 24, 10),
    Study("gaps", ("xcount",), 80, 10),
    Study("methods", ("add-baseline",), 20, 60),
    Study("methods", QUICK, 40, 60),
    Study("ablations", ABLATED[::-1], 48, 10),
    Study("hard", ("exact",), 40, 1800),
    Study("ablations", ABLATED[::-1], 158, 10),
    Study("methods", QUICK, 80, 60),
    Study("methods", ("add-baseline",), 40, 60),
    Study("ablations", ABLATED[::-1], 256, 10),
    Study("gaps", ("xcount",), 320, 10),
    Study("methods", ("xcount",), 640, 60),
    Study("methods", CNF, 120, 60),
    Study("census", ("xcount",), paper.N_INSTANCES, 60, processor_time=True),
)


@dataclass(frozen=True, slots=True)
class Command:
    """A study with a command of its own.

    ``seconds`` is what its kept result took, None if that was not noted. ``short`` are its
    arguments in the short version, None if it is no part of that.
    """

    file: str
    main: Callable[[Sequence[str]], int]
    seconds: float | None
    short: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        return Path(self.file).stem


COMMANDS = (
    Command(weights.FILE, weights.main, 1.3, ("--limit-seconds", "2")),
    Command(sampling.FILE, sampling.main, 315),
    Command(encodings.FILE, encodings.main, 703),
    Command(cluster.FILE, cluster.main, 413),
    Command(wild.FILE_OF_ALL, wild.main, 405),
    Command(limits.FILE, limits.main, 293),
    Command(regularisation_report.FILE, regularisation.main, 2184, ("--splits", "0")),
    Command(recovery.FILE, recovery.main, None),
    Command(theorem.FILE, theorem.main, None, ("--seeds", "20")),
)
