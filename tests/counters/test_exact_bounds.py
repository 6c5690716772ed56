"""What exact counting reports where a limit stops it: bounds that a cover proves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from enumeration import count_by_enumeration
from oracle import known
from strategies import random_ensemble

from xcount.counters.costs import Thresholds
from xcount.counters.exact import ExactRun, count_exactly
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress, StopReason, Tally
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query

CHANGES: list[dict[str, Any]] = [
    {"gap": "0.3", "distance": 1},
    {"gap": "0.3", "distance": 2},
    {"gap": "0.3", "distance": "any"},
    {"flip": True, "cutoff": 0, "distance": 1},
    {"flip": True, "cutoff": 0, "distance": "any"},
]


STOPPED = Settings(
    jobs=1, may_visit=False, thresholds=Thresholds(exact_step_budgets=(0,), least_cover_work=1)
)
"""Everything that takes a single split is left open, and the cover does little work."""


def problem_of(seed: int) -> Problem:
    """Return a question of one kind or the other about f0."""
    ensemble = random_ensemble(seed, max_features=4, max_trees=8)
    grid = Grid.of(ensemble, missing="cell" if seed % 2 else "none")
    return Problem(ensemble, grid, Query.of(ensemble, "f0", **CHANGES[seed % len(CHANGES)]))


def without_cover(problem: Problem) -> Tally:
    """Return what the same rounds find alone."""
    run = ExactRun(problem, Settings(jobs=1))
    run.solve(STOPPED.thresholds.exact_step_budgets)
    return run.tally("exact")


def test_bounds_of_what_is_open_hold_the_count() -> None:
    """Gaps and flips, any and all of several pairs: within the bounds, which get narrower."""
    n_open = n_narrower = n_solved = 0
    for seed in range(150):
        problem = problem_of(seed)
        true = known(count_by_enumeration(problem, Settings(jobs=1)).count)
        rounds, tally = without_cover(problem), count_exactly(problem, STOPPED)
        assert rounds.low <= tally.low <= true <= tally.high <= rounds.high
        is_exact = tally.low == tally.high
        assert tally.stop_reason is (StopReason.COMPLETE if is_exact else StopReason.STEPS)
        n_open += rounds.low < rounds.high
        n_narrower += tally.high - tally.low < rounds.high - rounds.low
        n_solved += is_exact and rounds.low < rounds.high
    assert n_open > 40
    assert n_narrower > n_open / 2
    assert n_solved > 0


def test_an_interrupt_ends_a_cover_and_keeps_what_it_proved() -> None:
    """Ctrl-C between slices: the run is interrupted, with the bounds of the slices before."""

    def interrupt(progress: Progress) -> None:
        if progress.message == "bounds of what is open":
            raise KeyboardInterrupt

    n_interrupted = 0
    for seed in range(40):
        problem = problem_of(seed)
        true = known(count_by_enumeration(problem, Settings(jobs=1)).count)
        tally = count_exactly(problem, replace(STOPPED, on_progress=interrupt))
        assert tally.low <= true <= tally.high
        n_interrupted += tally.stop_reason is StopReason.INTERRUPTED
    assert n_interrupted > 5


def test_bounds_do_not_depend_on_threads() -> None:
    """The same bounds on one thread and on three."""
    for seed in range(20):
        problem = problem_of(seed)
        tallies = [count_exactly(problem, replace(STOPPED, jobs=jobs)) for jobs in (1, 3)]
        assert len({(tally.low, tally.high) for tally in tallies}) == 1
