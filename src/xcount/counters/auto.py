"""The default: the best counter for the query at hand."""

from __future__ import annotations

from xcount.counters.base import Settings, Tally
from xcount.counters.brute import count_by_enumeration
from xcount.subproblems import Problem


def count_automatically(problem: Problem, settings: Settings) -> Tally:
    """Enumerate: the only counter so far."""
    return count_by_enumeration(problem, settings)
