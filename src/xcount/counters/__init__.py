"""The counters by name. Each turns a problem into a tally, and is imported on first use."""

from __future__ import annotations

from importlib import import_module

from xcount.counters.settings import Counter
from xcount.counters.tally import Method
from xcount.errors import QueryError
from xcount.problem.problem import Problem

_COUNTERS = {
    Method.AUTO: "xcount.counters.auto:count_automatically",
    Method.EXACT: "xcount.counters.exact:count_exactly",
    Method.VISIT: "xcount.counters.visit:count_by_visiting",
    Method.SAMPLE: "xcount.counters.sampling.count:count_by_sampling",
    Method.XCOUNT: "xcount.baselines.paper.xcount:count_by_xcount",
    Method.XCOUNT_SUM_FIRST: "xcount.baselines.paper.xcount:count_by_xcount_sum_first",
    Method.XCOUNT_EXACT_UNION: "xcount.baselines.paper.xcount:count_by_exact_union",
    Method.ADD_BASELINE: "xcount.baselines.paper.monolithic:count_by_monolithic_add",
    Method.ADD_BASELINE_PLAIN: "xcount.baselines.paper.monolithic:count_by_plain_monolithic_add",
    Method.CNF_GANAK: "xcount.baselines.cnf.counters:count_by_ganak",
    Method.CNF_APPROXMC: "xcount.baselines.cnf.counters:count_by_approxmc",
    Method.SUBPROBLEMS_CNF: "xcount.baselines.cnf.counters:count_by_subproblem_formulas",
}

METHODS = tuple(Method)

GAPS_ONLY = tuple(name for name, home in _COUNTERS.items() if ".baselines." in home)
"""Methods that the paper defines only for gaps."""


def counter(method: str, problem: Problem | None = None) -> Counter:
    """Return the counter of that name; reject one that cannot count the problem's change."""
    if method not in METHODS:
        raise QueryError(f"unknown method {method!r}; methods are {', '.join(METHODS)}")
    if problem is not None and method in GAPS_ONLY and not problem.query.change.in_paper:
        known = ", ".join(name for name in METHODS if name not in GAPS_ONLY)
        raise QueryError(f"method {method!r} counts gaps alone; methods for this are {known}")
    if problem is not None and method in GAPS_ONLY and problem.is_split:
        known = ", ".join(name for name in METHODS if name not in GAPS_ONLY)
        unknown = problem.grid.split_by
        raise QueryError(f"method {method!r} knows no {unknown}; methods for this are {known}")
    module, _, name = _COUNTERS[Method(method)].partition(":")
    found: Counter = getattr(import_module(module), name)
    return found
