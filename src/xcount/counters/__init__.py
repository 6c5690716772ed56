"""The counters, by name. Each turns a problem into a tally; none is imported before it is used."""

from __future__ import annotations

from importlib import import_module

from xcount.counters.base import Counter
from xcount.errors import QueryError

_COUNTERS = {
    "auto": "xcount.counters.auto:count_automatically",
    "exact": "xcount.counters.exact:count_exactly",
    "brute": "xcount.counters.enumerate:count_by_enumeration",
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


def counter(method: str) -> Counter:
    """Return the counter of that name."""
    if method not in _COUNTERS:
        raise QueryError(f"unknown method {method!r}; methods are {', '.join(METHODS)}")
    module, _, name = _COUNTERS[method].partition(":")
    found: Counter = getattr(import_module(module), name)
    return found
