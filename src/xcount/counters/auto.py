"""The default: the best counter for the query at hand."""

from __future__ import annotations

from xcount.counters.base import Settings, Tally
from xcount.counters.exact import count_exactly
from xcount.subproblems import Problem


def count_automatically(problem: Problem, settings: Settings) -> Tally:
    """Count exactly, within the limits."""
    return count_exactly(problem, settings)
