"""How long the short and the full version take, going by the kept results.

Nothing is trained or counted for it. A run is scaled to the instances and the limit that are
planned: what it solved costs what it cost, what it gave up costs more with a longer limit.
"""

from __future__ import annotations

import itertools
import json
import statistics
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.harness.records import Run
from benchmarks.harness.running import GRACE_SECONDS
from benchmarks.harness.tables import ALL, is_solved, markdown
from experiments import encodings, sampling
from experiments.studies import (
    COMMANDS,
    FULL_NAMES,
    SHORT,
    WHOLE,
    Study,
    largest_rounds,
)

Runs = Mapping[str, Sequence[Run]]


@dataclass(frozen=True, slots=True)
class Planned:
    """One run that is planned; None is what no kept result tells.

    ``most_seconds`` is the time that it takes if no instance is solved.
    """

    suite: str
    method: str
    n_instances: int | None
    limit_seconds: float | None
    about_seconds: float | None
    most_seconds: float | None = None


def short(runs: Runs, folder: Path, studies: Sequence[Study] = SHORT) -> list[Planned]:
    """Return what the short version runs."""
    found = [
        Planned(study.suite, "preparation", None, None, _PREPARATIONS[study.suite](folder))
        for study in studies
        if study.prepare is not None
    ]
    return found + [each for study in studies for each in _of_study(study, runs)]


def full(runs: Runs, folder: Path, names: Collection[str] = FULL_NAMES) -> list[Planned]:
    """Return what the full version runs."""
    found = [each for study in WHOLE if study.suite in names for each in _of_study(study, runs)]
    found += [
        _scaled(
            suite, method, min(n, _n_asked(suite, runs)), limit, _kept(runs, suite, method), True
        )
        for suite, method, n, limit in largest_rounds()
        if suite in names
    ]
    return found + [
        Planned(command.name, "", None, None, _of_command(command.name, folder / command.file))
        for command in COMMANDS
        if command.name in names
    ]


def _of_study(study: Study, runs: Runs) -> list[Planned]:
    found = []
    for method in study.methods:
        kept = _kept(runs, study.suite, method)
        # A method without a kept run is asked as many as the others.
        others = max((len(run.records) for run in runs.get(study.suite, ())), default=0)
        n_all = (len(kept.records) if kept else others) or None
        n_instances = study.sample or n_all
        found.append(
            _scaled(study.suite, method, n_instances, study.limit_seconds, kept, study.isolated)
        )
    return found


def _n_asked(suite: str, runs: Runs) -> int:
    """Return how many instances a suite of the rounds has; ``hard`` has what ``exact`` gave up."""
    kept = _kept(runs, "paper", "exact")
    if suite != "hard" or kept is None:
        return sys.maxsize
    return sum(not is_solved(record) for record in kept.records)


def _kept(runs: Runs, suite: str, method: str) -> Run | None:
    return next((run for run in runs.get(suite, ()) if run.settings.method == method), None)


def _scaled(
    suite: str, method: str, n_instances: int | None, limit: float, kept: Run | None, isolated: bool
) -> Planned:
    most = n_instances and n_instances * (limit + (GRACE_SECONDS if isolated else 0.0))
    if kept is None or n_instances is None:
        return Planned(suite, method, n_instances, limit, None, most)
    factor = limit / kept.settings.limit_seconds
    spent = [float(r["elapsed_seconds"]) * (1.0 if is_solved(r) else factor) for r in kept.records]
    about = n_instances * statistics.fmean(min(seconds, limit) for seconds in spent)
    return Planned(suite, method, n_instances, limit, about, most)


def _of_command(name: str, path: Path) -> float | None:
    """Return what a command took, as far as its file tells."""
    if name not in _SECONDS or not path.is_file():
        return None
    text = path.read_text()
    lines = text.splitlines() if path.suffix == ".jsonl" else [text]
    return _SECONDS[name]([json.loads(line) for line in lines])


def _of_weights(documents: Sequence[Any]) -> float:
    return sum(float(feature["seconds"]) for feature in documents[0]["features"])


def _of_sampling(documents: Sequence[Any]) -> float:
    found = documents[0]
    drawn = sum(float(row["seconds"]) for row in [*found["intervals"], *found["rarity"]])
    return drawn + sampling.SPEED_SECONDS * len(found["speed"])


def _of_encodings(documents: Sequence[Any]) -> float:
    found = documents[0]
    seconds = (
        row[kind][method]
        for row in found["rows"]
        for kind in encodings.KINDS
        for method in encodings.COUNTERS
    )
    return sum(float(found["limit_seconds"] if each is None else each) for each in seconds)


def _of_cluster(documents: Sequence[Any]) -> float:
    return sum(float(d["seconds"]) for d in documents if d["record"] == "measured")


def _of_wild(documents: Sequence[Any]) -> float:
    return sum(float(d["now"]["wall_seconds"]) for d in documents if d["record"] == "instance")


def _of_limits(documents: Sequence[Any]) -> float:
    return sum(float(d["after"] + d["seconds"]) for d in documents if d["record"] == "instance")


def _of_regularisation(documents: Sequence[Any]) -> float:
    """Return the median time from one split to the next, for each: a run may have paused."""
    dates = sorted(datetime.fromisoformat(document["date"]) for document in documents)
    between = [(b - a).total_seconds() for a, b in itertools.pairwise(dates)]
    return len(dates) * statistics.median(between) if between else 0.0


_SECONDS: dict[str, Callable[[Sequence[Any]], float]] = {
    "weights": _of_weights,
    "sampling": _of_sampling,
    "encodings": _of_encodings,
    "cluster": _of_cluster,
    "wild_all": _of_wild,
    "limits": _of_limits,
    "regularisation": _of_regularisation,
}
"""What the file of a command tells of its time; that of ``recovery`` tells nothing."""


def _of_first_split(folder: Path) -> float | None:
    """Return what one split takes of the regularisation study, with both labels."""
    path = folder / "regularisation.jsonl"
    whole = _of_command("regularisation", path)
    return None if whole is None else 2 * whole / len(path.read_text().splitlines())


_PREPARATIONS: dict[str, Callable[[Path], float | None]] = {
    "gaps": _of_first_split,
    "beyond": lambda folder: _of_command("weights", folder / "weights.json"),
}


def table(planned: Sequence[Planned]) -> str:
    """Return every run, and how long it takes."""
    rows = [
        [
            each.suite,
            each.method,
            "" if each.n_instances is None else str(each.n_instances),
            "" if each.limit_seconds is None else f"{each.limit_seconds:g}",
            _words(each.about_seconds),
            "" if each.most_seconds is None else duration(each.most_seconds),
        ]
        for each in planned
    ]
    about, most = _total(planned)
    rows.append([ALL, "", "", "", duration(about), duration(most)])
    return markdown(["suite", "method", "instances", "limit s", "about", "at most"], rows)


def by_suite(planned: Sequence[Planned]) -> str:
    """Return how long the runs of each suite take together."""
    rows = []
    for suite in dict.fromkeys(each.suite for each in planned):
        members = [each for each in planned if each.suite == suite]
        about, most = _total(members)
        unknown = [each.method for each in members if each.about_seconds is None]
        known = _words(None) if len(unknown) == len(members) else duration(about)
        lacking = f", without {', '.join(unknown)}" if 0 < len(unknown) < len(members) else ""
        rows.append([suite, str(len(members)), known + lacking, duration(most) if most else ""])
    about, most = _total(planned)
    rows.append([ALL, str(len(planned)), duration(about), duration(most)])
    return markdown(["suite", "runs", "about", "at most"], rows)


def _total(planned: Iterable[Planned]) -> tuple[float, float]:
    """Return the sums of what is known."""
    found = [(each.about_seconds or 0.0, each.most_seconds or 0.0) for each in planned]
    return sum(about for about, _ in found), sum(most for _, most in found)


def report(runs: Runs, folder: Path) -> str:
    """Return how long both versions take, as Markdown."""
    return "\n\n".join(
        [
            "The short version, if no budget ended it:",
            by_suite(short(runs, folder)),
            "The full version:",
            by_suite(full(runs, folder)),
        ]
    )


def duration(seconds: float) -> str:
    """Return a time in words, e.g. ``1 h 20 min``."""
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _words(seconds: float | None) -> str:
    return "not noted" if seconds is None else duration(seconds)
