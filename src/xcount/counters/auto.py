"""The default: exact as far as that is cheap, an estimate with a certificate for the rest.

Exact counting runs in rounds with growing budgets. Before a round that may be dear, a few samples
tell what an estimate of the open masks would cost; the round runs only if it cannot cost more.
Cost is counted in states and samples, not in seconds, so the answer does not depend on the machine
(unless a time limit cuts it short: exact counting leaves half of the time to sampling).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from xcount.counters.base import Settings, Tally
from xcount.counters.estimation import Bounds, Estimator, Pilot
from xcount.counters.exact import ExactRun
from xcount.counters.sampling import Rest, estimate, make_estimator, n_pairs_about, whole
from xcount.result import StopReason
from xcount.subproblems import Problem

MAX_PAIRS = 20_000
"""Pairs of masks beyond which exact counting is not tried."""

BUDGETS = (2_000, 30_000, 200_000, 1_500_000, 12_000_000)
"""States a task, round by round."""

FREE_SECONDS = 0.5
"""A round that cannot take longer than this (roughly) runs without asking what sampling costs."""

# Rough, and the same everywhere on purpose: they only weigh one kind of work against the other.
_SECONDS_PER_STATE = 3e-6
_SECONDS_PER_TREE = 25e-9
_SECONDS_PER_MASK = 3e-9
_SECONDS_PER_SAMPLE = 1e-6


def count_automatically(problem: Problem, settings: Settings) -> Tally:
    """Count what is cheap to count exactly, estimate the rest."""
    if n_pairs_about(problem) > MAX_PAIRS:
        return estimate(problem, settings, whole(problem, settings), method="auto")
    return _Auto(problem, settings).run()


class _Auto:
    """Exact rounds, then an estimate of what they left open."""

    def __init__(self, problem: Problem, settings: Settings) -> None:
        self._problem = problem
        self._settings = settings
        left = settings.seconds_left()
        limit = None if left is None else (settings.timeout_seconds or 0) - left / 2
        self._exact = ExactRun(problem, replace(settings, timeout_seconds=limit))

    def run(self) -> Tally:
        estimator: Estimator | None = None
        pilot: Pilot | None = None
        self._exact.solve([])
        for budget in BUDGETS:
            cost = self._cost(budget)
            if cost > FREE_SECONDS:
                estimator, pilot = self._consider(cost)
                if estimator is None or self._price(estimator, pilot) <= cost:
                    break
            if not self._round(budget):
                break
        if self._is_over():
            return self._tally()
        rest = self._rest()
        estimator = make_estimator(self._problem, self._settings, rest)
        if estimator is None:
            return self._tally()
        return estimator.run(pilot or estimator.pilot(), "auto", self._details(rest))
