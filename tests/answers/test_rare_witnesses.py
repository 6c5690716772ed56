"""Witnesses of questions whose sensitive regions chance does not meet: by visits, and by climbs."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import oracle
import pytest
from strategies import random_classifier, random_ensemble

from xcount.answers.witness import search, visited_draws
from xcount.answers.witness.climb import Climber, can_climb
from xcount.answers.witness.search import RegionFinder
from xcount.answers.witness.visited_draws import VisitedDraws
from xcount.counters.decisions import RegionDecider
from xcount.counters.exact import ExactRun
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress
from xcount.errors import OutOfLimitsError, QueryWarning
from xcount.model.ensemble import Ensemble
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query

Region = tuple[int, ...]


def _problem(ensemble: Ensemble, **asked: Any) -> Problem:
    return Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, [0], **asked))


def _sensitive(problem: Problem) -> set[Region]:
    """Return the sensitive regions, by a look at all of them."""
    sizes = problem.grid.cell_counts
    regions = np.stack(np.unravel_index(np.arange(math.prod(sizes)), sizes), axis=1)
    flags = RegionDecider(problem).decide_regions(regions)
    return {tuple(region) for region in regions[flags].tolist()}


@pytest.mark.parametrize("seed", range(12))
def test_visits_draw_every_sensitive_region_as_often(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ranks of a visit are the regions of the definition, each about as often (chi-square)."""
    monkeypatch.setattr(visited_draws, "MAX_LISTED", 12)
    ensemble = random_ensemble(seed, max_features=4)
    problem = _problem(ensemble, gap="0.3", distance=[1, 2, "any"][seed % 3])
    regions = oracle.sensitive_regions(ensemble, [0], Fraction(3, 10), problem.distance)
    expected = {region for region, is_sensitive in regions.items() if is_sensitive}
    n = 30 * len(expected) + 1
    found = VisitedDraws(problem, Settings(seed=seed)).draw(n)
    drawn = Counter(tuple(region.tolist()) for region in found)
    assert set(drawn) <= expected
    assert len(found) == (n if expected else 0)
    statistic = sum((drawn[region] - 30) ** 2 / 30 for region in expected)
    freedom = max(1, len(expected) - 1)
    assert statistic < freedom + 5 * math.sqrt(2 * freedom) + 10


@pytest.mark.parametrize("kind", ["flip", "probability"])
def test_visits_draw_other_changes_too(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flip, and a gap in the probability of one of several classes."""
    monkeypatch.setattr(visited_draws, "MAX_LISTED", 12)
    ensemble = replace(random_ensemble(32), base=(0.05,))
    asked: dict[str, Any] = {"flip": True}
    if kind == "probability":
        ensemble = replace(random_classifier(2), probability="softmax", task="multiclass")
        asked = {"probability_gap": "0.01", "class_": 0}
    problem = _problem(ensemble, distance=2, **asked)
    expected = _sensitive(problem)
    assert len(expected) > 3
    found = VisitedDraws(problem, Settings(seed=4)).draw(30 * len(expected))
    assert {tuple(region.tolist()) for region in found} == expected


def _without_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave climbs alone: no chance, no lists, no visits, no exact counts."""
    monkeypatch.setattr(RegionFinder, "_draw_by_chance", lambda finder, n: [])
    monkeypatch.setattr(search, "MAX_LISTED", 0)
    monkeypatch.setattr(search, "VISIT_SECONDS", -1.0)
    monkeypatch.setattr(search, "_STEPS", (0,))
    monkeypatch.setattr(RegionFinder.draw_solutions, "__defaults__", ((0,),))
    monkeypatch.setattr(ExactRun, "is_exact", lambda run: False)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["gap", "up", "sigmoid", "softmax"])
def test_climbs_end_in_sensitive_regions(kind: str, seed: int) -> None:
    """What climbs find is sensitive by the definition, and they find some where there are some."""
    ensemble = random_ensemble(seed)
    asked: dict[str, Any] = {"gap": "0.4", "direction": "up" if kind == "up" else "any"}
    if kind in ("sigmoid", "softmax"):
        classes = replace(random_classifier(seed), task="multiclass")
        ensemble = classes if kind == "softmax" else ensemble
        ensemble = replace(ensemble, probability="softmax" if kind == "softmax" else "sigmoid")
        asked = {"probability_gap": "0.1", "class_": 0}
    problem = _problem(ensemble, distance=2, **asked)
    expected = _sensitive(problem)
    assert can_climb(problem)
    if not expected:
        return
    finder = RegionFinder(problem, Settings(timeout_seconds=60))
    climber = Climber(problem, finder.decider, finder.go_on, seed)
    found = [finder.with_mask(cells, mask) for cells, mask in islice(climber.found(), 4)]
    assert {tuple(region.tolist()) for region in found} <= expected
    assert len(found) == 4


def test_where_nothing_else_helps_climbs_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the last resort, and a note says that they are no fair sample."""
    _without_the_rest(monkeypatch)
    problem = _problem(random_ensemble(32), gap="0.1", distance=2)
    with pytest.warns(QueryWarning, match="no fair sample"):
        found = RegionFinder(problem, Settings(timeout_seconds=60, seed=1)).draw(3)
    assert len(found) == 3
    assert {tuple(region.tolist()) for region in found} <= _sensitive(problem)


def test_climbs_hear_the_limit_and_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is nothing to find, the time ends them; Ctrl-C does at once."""
    _without_the_rest(monkeypatch)
    problem = _problem(random_ensemble(32), gap="1000", distance=2)
    with pytest.raises(OutOfLimitsError, match="time limit"):
        RegionFinder(problem, Settings(timeout_seconds=0.05)).draw(1)

    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RegionFinder(problem, Settings(timeout_seconds=60, on_progress=interrupt)).draw(1)
