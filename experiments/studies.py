"""What the short and the full version of the experiments run.

The short version takes samples of the suites with short limits. The full version is what the page
shows: suites as a whole, the rounds of the slow methods (``rounds.py``), and suites that have
commands of their own.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import cluster, limits, weights, wild
from benchmarks.harness.instances import Instance, stratified_order
from experiments import (
    ablations,
    beyond,
    encodings,
    frontier,
    gaps,
    methods,
    paper,
    recovery,
    regularisation,
    rounds,
    sampling,
)
from experiments.methods import Order


@dataclass(frozen=True, slots=True)
class Study:
    """A suite by some methods: ``sample`` None is all of it; ``jobs`` 0 is a thread for each core.

    ``weight`` is what each of its runs gets of a budget, in proportion to the others.
    """

    suite: str
    methods: tuple[str, ...]
    instances: Callable[[Namespace], list[Instance]]
    sample: int | None
    limit_seconds: float
    weight: float = 1.0
    jobs: int = 0
    isolated: bool = False
    prepare: Callable[[Namespace, Path], None] | None = None
    order: Order = stratified_order


SHORT = (
    Study("gaps", ("auto",), gaps.instances, 120, 2, 2, prepare=regularisation.write_splits),
    Study("beyond", ("auto",), beyond.instances, None, 2, 3, prepare=weights.write_shares),
    Study("paper", ("exact", "auto"), paper.instances, 200, 2, 3),
    Study("frontier", ("exact", "auto"), frontier.instances, 9, 3, 1, isolated=True),
    Study(
        "ablations", tuple(reversed(ablations.LABELS)), ablations.suite, 12, 2, 1, jobs=1,
        isolated=True, order=ablations.ordered,
    ),
    Study("methods", methods.METHODS, methods.suite, 20, 2, 1.2, jobs=1, isolated=True),
)  # fmt: skip

WHOLE = (
    Study("gaps", ("auto",), gaps.instances, None, 1800, jobs=1),
    Study("beyond", ("auto",), beyond.instances, None, 1800, jobs=1),
    Study("paper", ("auto",), paper.instances, None, 1800, jobs=1),
    Study("paper", ("exact",), paper.instances, None, 10, jobs=1),
    Study("frontier", ("exact", "auto"), frontier.instances, None, 10, isolated=True),
)
"""The suites that the full version runs as a whole, with the limits of the page."""


@dataclass(frozen=True, slots=True)
class Command:
    """A suite with a command of its own: what is said to it, and what it writes.

    A command that ``takes_folder`` names its file itself.
    """

    file: str
    main: Callable[[Sequence[str]], int]
    words: tuple[str, ...] = ()
    target: str = "--output"
    takes_folder: bool = False
    has_cache: bool = True

    @property
    def name(self) -> str:
        return Path(self.file).stem

    def arguments(self, folder: Path, options: Namespace) -> list[str]:
        """Return what follows the command's name."""
        found = [*self.words, self.target, str(folder if self.takes_folder else folder / self.file)]
        found += ["--data", options.data] if options.data else []
        found += ["--cache", options.cache] if options.cache and self.has_cache else []
        return found


COMMANDS = (
    Command(weights.FILE, weights.main, takes_folder=True),
    Command(sampling.FILE, sampling.main, takes_folder=True),
    Command(encodings.FILE, encodings.main),
    Command(cluster.FILE, cluster.main, takes_folder=True),
    Command(wild.FILE_OF_ALL, wild.main),
    Command(limits.FILE, limits.main),
    Command(regularisation.FILE, regularisation.main, has_cache=False),
    Command(recovery.FILE, recovery.main, target="--notes", has_cache=False),
)

SHORT_NAMES = tuple(study.suite for study in SHORT)
FULL_NAMES = tuple(
    dict.fromkeys(
        [
            *(study.suite for study in WHOLE),
            *(part.suite for part in rounds.ROUNDS),
            *(command.name for command in COMMANDS),
        ]
    )
)


def largest_rounds() -> Iterator[tuple[str, str, int, float]]:
    """Yield each suite and method of the rounds, with its most instances and their limit."""
    largest: dict[tuple[str, str], tuple[int, float]] = {}
    for part in rounds.ROUNDS:
        for method in part.methods:
            found = (part.n_instances, part.limit_seconds)
            largest[part.suite, method] = max(found, largest.get((part.suite, method), found))
    for (suite, method), (n_instances, limit_seconds) in largest.items():
        yield suite, method, n_instances, limit_seconds
