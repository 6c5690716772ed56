"""Compares ways to run the exact counter, alternately, on hard instances.

Takes the instances of the paper suite (100 trees of depth 5 and 6) that cost most of those solved
within a budget of steps; counts each in every way in turn, a few rounds, each round starting with
another; prints processor time as a ratio to the way in use. Models come from the cache of the paper
suite, which is trained if need be.

    python -m benchmarks.variants --instances 12 --rounds 3
    python -m benchmarks.variants --of memo
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence

from benchmarks.harness.instances import Instance, paper_instances
from benchmarks.harness.running import load_model
from xcount.counters.engine import Tuning
from xcount.counters.exact import ExactRun
from xcount.counters.settings import Settings
from xcount.problem.problem import Problem
from xcount.question.query import Query

IN_USE = Tuning()
VARIANTS = {
    "paths": {f"{n:,}": Tuning(max_paths=n) for n in (1, 64, 1024, 16_384, 65_536)},
    "memo": {f"{n:,} MiB": Tuning(memo_bytes=n * 2**20) for n in (1, 2, 16, 128)},
}
"""By what is varied: combinations of leaves of a state that is enumerated; the memo's size."""
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


def seconds(problem: Problem, tuning: Tuning, budgets: Sequence[int] = (2**62,)) -> float | None:
    """Return the processor time of one count on one thread; None if it was not solved."""
    run = ExactRun(problem, Settings(jobs=1), tuning)
    started = time.process_time()
    run.solve(budgets)
    used = time.process_time() - started
    return used if run.is_exact() else None


def hardest(instances: Sequence[Instance], size: int) -> list[Instance]:
    """Return the instances that cost most, of those solved within the budgets."""
    costs = {i.name: seconds(problem_of(i), IN_USE, BUDGETS) for i in instances}
    solved = [i for i in instances if costs[i.name] is not None]
    return sorted(solved, key=lambda i: costs[i.name] or 0.0, reverse=True)[:size]


def compare(
    chosen: Sequence[Instance], variants: Mapping[str, Tuning], n_rounds: int
) -> dict[str, dict[str, float]]:
    """Return, for each instance and variant, the least time of the rounds."""
    best: dict[str, dict[str, float]] = {instance.name: {} for instance in chosen}
    names = list(variants)
    for turn in range(n_rounds):
        for instance in chosen:
            problem = problem_of(instance)
            for name in (*names[turn % len(names) :], *names[: turn % len(names)]):
                used = seconds(problem, variants[name])
                if used is not None:
                    times = best[instance.name]
                    times[name] = min(used, times.get(name, used))
    return best


def table(best: dict[str, dict[str, float]], variants: Mapping[str, Tuning]) -> str:
    """Return the times as a table of ratios to the variant in use, the sums last."""
    in_use = next(name for name, tuning in variants.items() if tuning == IN_USE)
    lines = ["| instance |" + "".join(f" {name} |" for name in variants)]
    lines.append("|---|" + "---:|" * len(variants))
    rows = [*best.items(), ("all", {k: sum(t[k] for t in best.values()) for k in variants})]
    for instance, times in rows:
        ratios = "".join(f" {times[name] / times[in_use]:.2f} |" for name in variants)
        lines.append(f"| {instance} |{ratios}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--of", choices=VARIANTS, default="paths", help="what is varied")
    parser.add_argument("--instances", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", help="a data set (may be repeated)")
    parser.add_argument("--cache", help="where the models are kept")
    parser.add_argument("--data", help="where the data sets are")
    options = parser.parse_args(arguments)
    suite = paper_instances(options.only, options.cache, options.data)
    large = [i for i in suite if i.n_trees == 100 and i.depth >= 5]
    variants = VARIANTS[options.of]
    print(table(compare(hardest(large, options.instances), variants, options.rounds), variants))
    return 0


if __name__ == "__main__":
    sys.exit(main())
