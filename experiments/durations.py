"""How long the experiments take, judging by the kept results; nothing is trained or counted."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.processes import GRACE_SECONDS
from benchmarks.harness.records import RESULTS, Run, Runs, runs_by_suite
from benchmarks.harness.tables import ALL, is_solved, markdown
from experiments.suites import COMMANDS, FULL, Command, Study

Planned = tuple[str, float | None, float]
"""A suite, about how many seconds a run of it takes (None: unknown), and at most how many."""


def planned(studies: Sequence[Study], commands: Sequence[Command], runs: Runs) -> list[Planned]:
    """Return every run; of several rounds of a suite and method the largest."""
    largest: dict[tuple[str, str], Study] = {}
    for study in studies:
        for method in study.methods:
            known = largest.setdefault((study.suite, method), study)
            if (study.sample or 0) > (known.sample or 0):
                largest[study.suite, method] = study
    found = [_of_run(study, method, runs) for (_, method), study in largest.items()]
    return found + [(command.name, command.seconds, 0.0) for command in commands]


def _of_run(study: Study, method: str, runs: Runs) -> Planned:
    """Scale the kept run: what it solved costs the same, what it gave up goes with the limit."""
    kept = next((r for r in runs.get(study.suite, ()) if r.settings.method == method), None)
    most = max((len(run.records) for run in runs.get(study.suite, ())), default=0)
    n = study.sample or (len(kept.records) if kept else most)
    if study.suite == "hard":
        n = min(n, _n_given_up(runs))
    limit = study.limit_seconds
    at_most = n * (limit + (GRACE_SECONDS if study.isolated else 0.0))
    if kept is None:
        return study.suite, None, at_most
    factor = limit / kept.settings.limit_seconds
    spent = [float(r["elapsed_seconds"]) * (1.0 if is_solved(r) else factor) for r in kept.records]
    return study.suite, n * statistics.fmean(min(s, limit) for s in spent), at_most


def _n_given_up(runs: Runs) -> int:
    """Return how many instances ``exact`` gave up: the suite ``hard``."""
    exact: list[Run] = [r for r in runs.get("paper", ()) if r.settings.method == "exact"]
    return sum(not is_solved(record) for run in exact for record in run.records)


def table(found: Sequence[Planned]) -> str:
    """Return how long the runs of each suite take together."""
    rows = []
    for suite in dict.fromkeys(suite for suite, _, _ in found):
        members = [each for each in found if each[0] == suite]
        known = [about for _, about, _ in members if about is not None]
        unknown = len(members) - len(known)
        about = duration(sum(known)) if known else "not noted"
        about += f", without {unknown} of them" if known and unknown else ""
        at_most = sum(most for _, _, most in members)
        rows.append([suite, len(members), about, duration(at_most) if at_most else ""])
    total = (sum(about or 0.0 for _, about, _ in found), sum(most for _, _, most in found))
    rows.append([ALL, len(found), *map(duration, total)])
    return markdown(["suite", "runs", "about", "at most"], rows)


def plan_table(studies: Sequence[Study], commands: Sequence[Command]) -> str:
    """Return how long some studies and commands take, judging by the kept results."""
    return table(planned(studies, commands, runs_by_suite(RESULTS)))


def section(runs: Runs, folder: Path) -> str:
    """Return how long the full version takes."""
    return table(planned(FULL, COMMANDS, runs))


def duration(seconds: float) -> str:
    """Return a time in words, e.g. ``1 h 20 min``."""
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
