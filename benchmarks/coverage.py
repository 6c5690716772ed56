"""How often intervals and estimates miss, over many seeds: ``python -m benchmarks.coverage``.

For every instance of known count and every seed, one run to the end and one run that is stopped at
a moment drawn from the seed. The interval may miss the count, and the estimate may leave
(1 +- epsilon), in at most a share delta of the runs; a binomial bound says what chance allows.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from benchmarks.known_counts import HASTY_BUDGET, KnownCount, all_instances
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason, Tally


@dataclass(frozen=True, slots=True)
class StopEarly(Settings):
    """Settings whose time is up after so many looks at the clock, whatever the clock says."""

    looks: int = 1
    seen: list[int] = field(default_factory=list)

    def expired(self) -> bool:
        """Count the looks."""
        self.seen.append(1)
        return len(self.seen) > self.looks


@dataclass(frozen=True, slots=True)
class Misses:
    """What went wrong in a number of runs."""

    runs: int
    interval: int
    estimate: int
    stopped_interval: int

    def worst(self) -> int:
        return max(self.interval, self.estimate, self.stopped_interval)


def most_failures(runs: int, probability: float, level: float = 1e-4) -> int:
    """Return the k that a Binomial(runs, probability) exceeds with probability below ``level``."""
    log_ratio = math.log(probability) - math.log1p(-probability)
    log_term = runs * math.log1p(-probability)
    total, k = math.exp(log_term), 0
    while 1 - total > level:
        log_term += math.log(runs - k) - math.log(k + 1) + log_ratio
        total += math.exp(log_term)
        k += 1
    return k


def run_to_end(instance: KnownCount, seed: int, epsilon: float, delta: float) -> Tally:
    """Return the tally of a run that stops by itself, or after 20 looks if it might never.

    That is the case of a zero, and where samples are left open.
    """
    settings: Settings = Settings(epsilon=epsilon, delta=delta, seed=seed, jobs=1)
    if instance.count == 0 or instance.budget == HASTY_BUDGET:
        settings = StopEarly(epsilon=epsilon, delta=delta, seed=seed, jobs=1, looks=20)
    estimator = instance.estimator(settings)
    return estimator.run("sample", {})


def run_stopped(instance: KnownCount, seed: int, epsilon: float, delta: float) -> Tally:
    """Return the tally of a run that is stopped after 1 to 16 slices."""
    looks = 1 + (seed * 7) % 16
    settings = StopEarly(epsilon=epsilon, delta=delta, seed=seed, jobs=1, looks=looks)
    estimator = instance.estimator(settings)
    return estimator.run("sample", {})


def misses_of(
    instance: KnownCount, seeds: Iterable[int], epsilon: float, delta: float, stopped: bool = True
) -> Misses:
    """Return how often the runs of one instance miss its count."""
    runs = interval = estimate = stopped_interval = 0
    for seed in seeds:
        runs += 1
        tally = run_to_end(instance, seed, epsilon, delta)
        interval += not tally.low <= instance.count <= tally.high
        if tally.count is not None and tally.stop_reason is StopReason.COMPLETE:
            estimate += abs(tally.count - instance.count) > epsilon * instance.count
        if stopped:
            tally = run_stopped(instance, seed, epsilon, delta)
            stopped_interval += not tally.low <= instance.count <= tally.high
    return Misses(runs, interval, estimate, stopped_interval)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--delta", type=float, default=0.1)
    options = parser.parse_args()
    allowed = most_failures(options.seeds, options.delta)
    print(f"{options.seeds} seeds, delta {options.delta}: at most {allowed} misses by chance")
    print(f"{'instance':34} {'share':>9} {'interval':>9} {'estimate':>9} {'stopped':>9}")
    worst, total = 0, 0
    instances = all_instances()
    for instance in instances:
        misses = misses_of(instance, range(options.seeds), options.epsilon, options.delta)
        worst, total = max(worst, misses.worst()), total + misses.interval
        print(
            f"{instance.name:34} {instance.share:9.2g} {misses.interval:9} {misses.estimate:9} "
            f"{misses.stopped_interval:9}",
            flush=True,
        )
    share = total / (len(instances) * options.seeds)
    print(f"{len(instances)} instances; worst {worst}; intervals missed altogether {share:.2%}")


if __name__ == "__main__":
    main()
