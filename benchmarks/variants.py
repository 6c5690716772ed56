"""Compares limits of what the exact counter enumerates, alternately, on hard instances.

Takes the instances of the paper suite (100 trees of depth 5 and 6) that cost most of those solved
within a budget of steps; counts each with every limit in turn, a few rounds, each round starting
with another limit; prints processor time as a ratio to the limit in use. Models come from the cache
of the paper suite, which is trained if need be.

    python -m benchmarks.variants --instances 12 --rounds 3
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from benchmarks.instances import Instance, paper_instances
from benchmarks.running import load_model
from xcount.counters.base import Settings
from xcount.counters.exact import MAX_PATHS, ExactRun
from xcount.query import Query
from xcount.subproblems import Problem

LIMITS = (1, 64, 1024, 16_384, 65_536)
BUDGETS = (200_000, 3_000_000)
"""Steps a task; an instance that needs more takes no part."""


def problem_of(instance: Instance) -> Problem:
    """Return the instance's question about its model."""
    model = load_model(instance.model)
    query = Query.of(
        model.ensemble,
        instance.sensitive,
        instance.gap,
        distance=instance.distance,
        precision=instance.precision,
    )
    return Problem(model.ensemble, model.grid, query)


def seconds(problem: Problem, max_paths: int, budgets: Sequence[int] = (2**62,)) -> float | None:
    """Return the processor time of one count on one thread; None if it was not solved."""
    run = ExactRun(problem, Settings(jobs=1), max_paths)
    started = time.process_time()
    run.solve(budgets)
    used = time.process_time() - started
    return used if run.is_exact() else None


def hardest(instances: Sequence[Instance], size: int) -> list[Instance]:
    """Return the instances that cost most, of those solved within the budgets."""
    costs = {i.name: seconds(problem_of(i), MAX_PATHS, BUDGETS) for i in instances}
    solved = [i for i in instances if costs[i.name] is not None]
    return sorted(solved, key=lambda i: costs[i.name] or 0.0, reverse=True)[:size]


def compare(chosen: Sequence[Instance], n_rounds: int) -> dict[str, dict[int, float]]:
    """Return, for each instance and limit, the least time of the rounds."""
    best: dict[str, dict[int, float]] = {instance.name: {} for instance in chosen}
    for turn in range(n_rounds):
        for instance in chosen:
            problem = problem_of(instance)
            for limit in (*LIMITS[turn % len(LIMITS) :], *LIMITS[: turn % len(LIMITS)]):
                used = seconds(problem, limit)
                if used is not None:
                    times = best[instance.name]
                    times[limit] = min(used, times.get(limit, used))
    return best


def table(best: dict[str, dict[int, float]]) -> str:
    """Return the times as a table of ratios to the limit in use, the sums last."""
    lines = ["| instance |" + "".join(f" {limit:,} |" for limit in LIMITS)]
    lines.append("|---|" + "---:|" * len(LIMITS))
    rows = [*best.items(), ("all", {k: sum(t[k] for t in best.values()) for k in LIMITS})]
    for name, times in rows:
        ratios = "".join(f" {times[limit] / times[MAX_PATHS]:.2f} |" for limit in LIMITS)
        lines.append(f"| {name} |{ratios}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", help="a data set (may be repeated)")
    parser.add_argument("--cache", help="where the models are kept")
    parser.add_argument("--data", help="where the data sets are")
    options = parser.parse_args(arguments)
    suite = paper_instances(options.only, options.cache, options.data)
    large = [i for i in suite if i.n_trees == 100 and i.depth >= 5]
    print(table(compare(hardest(large, options.instances), options.rounds)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
