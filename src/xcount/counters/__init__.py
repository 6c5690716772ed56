"""The counters, by name. Each turns a problem into a tally; none is imported before it is used."""

from __future__ import annotations

from importlib import import_module

from xcount.counters.settings import Counter
from xcount.errors import QueryError
from xcount.problem.problem import Problem

_COUNTERS = {
    "auto": "xcount.counters.auto:count_automatically",
    "exact": "xcount.counters.exact:count_exactly",
    "brute": "xcount.counters.corners:count_by_corner_sums",
    "sample": "xcount.counters.sampling.counter:count_by_sampling",
    "xcount": "xcount.baselines.paper.xcount:count_by_xcount",
    "xcount-sum-first": "xcount.baselines.paper.xcount:count_by_xcount_sum_first",
    "xcount-exact-union": "xcount.baselines.paper.xcount:count_by_exact_union",
    "add-baseline": "xcount.baselines.paper.monolithic:count_by_monolithic_add",
    "add-baseline-plain": "xcount.baselines.paper.monolithic:count_by_plain_monolithic_add",
    "cnf-ganak": "xcount.baselines.cnf.counters:count_by_ganak",
    "cnf-approxmc": "xcount.baselines.cnf.counters:count_by_approxmc",
    "subproblems-cnf": "xcount.baselines.cnf.counters:count_by_subproblem_formulas",
}

METHODS = tuple(_COUNTERS)


GAPS_ONLY = tuple(name for name, home in _COUNTERS.items() if ".baselines." in home)
"""Methods that the paper defines for gaps alone."""


def counter(method: str, problem: Problem | None = None) -> Counter:
    """Return the counter of that name; refuse one that does not count the problem's change."""
    if method not in _COUNTERS:
        raise QueryError(f"unknown method {method!r}; methods are {', '.join(METHODS)}")
    if problem is not None and method in GAPS_ONLY and not problem.query.change.in_paper:
        known = ", ".join(name for name in METHODS if name not in GAPS_ONLY)
        raise QueryError(f"method {method!r} counts gaps alone; methods for this are {known}")
    if problem is not None and method in GAPS_ONLY and problem.grid.rules:
        known = ", ".join(name for name in METHODS if name not in GAPS_ONLY)
        raise QueryError(f"method {method!r} knows no rules; methods for this are {known}")
    module, _, name = _COUNTERS[method].partition(":")
    found: Counter = getattr(import_module(module), name)
    return found
