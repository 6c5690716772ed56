"""Questions that differ in their change alone share one visit of all regions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from strategies import random_ensemble

import xcount
from xcount import CountResult
from xcount.counters import visit
from xcount.counters.settings import Companions, Settings
from xcount.counters.tally import StopReason
from xcount.problem.corner_question import CornerChange, CornerQuestion
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query
from xcount.runs.audit import audit

GAPS = ["0.2", "0.5", "1", "2"]
Visits = list[tuple[CornerChange, ...]]


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> Visits:
    """Return the changes of every visit that is made."""
    made: Visits = []
    original = CornerQuestion.sums

    def sums(question: CornerQuestion, *arguments: Any, **options: Any) -> Any:
        made.append(question.changes)
        return original(question, *arguments, **options)

    monkeypatch.setattr(CornerQuestion, "sums", sums)
    return made


def facts(results: Sequence[CountResult]) -> list[CountResult]:
    """Return results without what differs from run to run."""
    return [replace(r, seconds=0.0, peak_memory_bytes=0, explanation=None) for r in results]


@pytest.mark.parametrize("method", ["brute", "auto"])
@pytest.mark.parametrize("seed", range(10))
def test_an_audit_counts_what_single_counts_count(method: str, seed: int, visits: Visits) -> None:
    """Every gap, distance and group: the same results, to the last detail, from fewer visits."""
    ensemble = random_ensemble(seed, max_features=4, max_trees=6)
    options: dict[str, Any] = {"method": method, "seed": 3}
    found = audit(ensemble, explain=False, gaps=GAPS, distances=[1, "any"], jobs=2, **options)
    n_shared = len(visits)
    alone = [
        xcount.count(
            ensemble,
            sensitive=r.sensitive,
            gap=r.gap,
            distance=r.distance,
            profile=r.profile is not None,
            jobs=1,
            **options,
        )
        for r in found.results
    ]
    assert facts(found.results) == facts(alone)
    n_alone = len(visits) - n_shared
    assert n_shared <= n_alone
    assert method == "auto" or 3 * n_shared <= n_alone


def test_one_visit_has_all_gaps(visits: Visits) -> None:
    """The first question visits with the gaps of the later ones."""
    ensemble = random_ensemble(3, max_features=3, max_trees=6)
    found = audit(ensemble, explain=False, sensitive=["f0"], gaps=GAPS, method="brute")
    assert len(found.results) == 4
    assert len(visits) == 1
    assert len(visits[0]) == 4


def test_a_resumed_audit_visits_for_the_rest(tmp_path: Path, visits: Visits) -> None:
    """What the journal has is not asked again."""
    ensemble = random_ensemble(3, max_features=3, max_trees=6)
    asked: dict[str, Any] = {"sensitive": ["f0"], "method": "brute", "journal": tmp_path / "j"}
    audit(ensemble, explain=False, gaps=GAPS[:2], **asked)
    resumed = audit(ensemble, explain=False, gaps=GAPS, resume=True, **asked)
    assert [len(changes) for changes in visits] == [2, 2]
    assert facts(resumed.results) == facts(
        audit(ensemble, explain=False, gaps=GAPS, sensitive=["f0"], method="brute").results
    )


def test_other_questions_do_not_join(visits: Visits) -> None:
    """Companions with another distance, precision or feature are not asked along."""
    ensemble = random_ensemble(3, max_features=3, max_trees=6)
    grid = Grid.of(ensemble)
    queries = [
        Query.of(ensemble, "f0", 1),
        Query.of(ensemble, "f0", 2, distance=2),
        Query.of(ensemble, "f0", 2, precision=1),
        Query.of(ensemble, "f1", 2),
        Query.of(ensemble, "f0", flip=True, cutoff=1),
        Query.of(ensemble, "f0", 3),
    ]
    settings = Settings(companions=Companions(queries))
    visit.count_by_visiting(Problem(ensemble, grid, queries[0]), settings)
    assert [len(changes) for changes in visits] == [2]


def test_a_visit_without_time_for_all_asks_for_one(
    visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Companions never cost a question its own answer."""
    monkeypatch.setattr(
        visit, "visiting_seconds", lambda question, **_: 100.0 * (len(question.changes) - 1)
    )
    ensemble = random_ensemble(3, max_features=3, max_trees=6)
    audit(ensemble, explain=False, sensitive=["f0"], gaps=GAPS, method="brute", timeout=60.0)
    assert [len(changes) for changes in visits] == [1, 1, 1, 1]


def test_an_unfinished_visit_answers_nobody_else(visits: Visits) -> None:
    """Each question has its own time."""
    ensemble = random_ensemble(3, max_features=3, max_trees=6)
    options: dict[str, Any] = {"sensitive": ["f0"], "gaps": GAPS, "method": "brute"}
    found = audit(ensemble, timeout=1e-9, **options)
    assert {r.stop_reason for r in found.results} == {StopReason.TIMEOUT}
    assert [(r.low, r.high) for r in found.results] == [(0, r.n_regions) for r in found.results]
