"""Samples beside the optimum where a part of the count is certain.

    python -m benchmarks.certain_part [--seeds 300] >benchmarks/results/certain-part.md

A part of the count is known exactly, the rest is estimated: ``C = certain + p * undecided``.
Whoever knew p beforehand would choose the relative error of p that makes epsilon in the whole, and
wait for as many hits as Huber's estimate needs for that, with all of delta: that is the optimum
here (of Huber's estimate, which is no lower bound for others). The
table says how many times as many samples an estimator takes that has to find out, and that keeps a
fifth of delta for intervals that hold at every moment, on average over many seeds: those of the
estimate alone, and those with its pilot. Samples are coin flips of a fake source, so nothing but
the estimator is measured; they are counted, not timed.
"""

from __future__ import annotations

import argparse
import math
import statistics
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage import most_failures
from xcount.counters.sampling.draws import BATCH
from xcount.counters.sampling.estimator import Estimator, KnownPart
from xcount.counters.sampling.intervals import plan_gamma_bernoulli
from xcount.counters.settings import Settings
from xcount.counters.tally import Bounds

EPSILON = DELTA = 0.1
UNDECIDED = 10**15
P = 0.004
"""The share of the rest: a batch has one hit."""
FLIPS = 1
"""Tells flips from the waiting times of the estimator, which has a generator of its own."""
RATIOS = (0.0, 0.1, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
"""What is certain, in units of what is not."""


class CoinFlips:
    """Hits with probability p, batch by batch; each stream is drawn in order."""

    levels = 1
    n_trees = 1.0
    seconds_per_sample = 1e-6

    def __init__(self, p: float) -> None:
        self._p = p
        self._streams: dict[int, tuple[np.random.Generator, int]] = {}
        self.n_drawn = 0

    def draw(
        self,
        seed: int,
        stream: int,
        first: int,
        n: int,
        n_threads: int,
        seconds: float = math.inf,
        on_pause: Callable[[], None] | None = None,
    ) -> tuple[NDArray[Any], ...]:
        """Return how many are misses and hits, and which."""
        self.n_drawn += n * BATCH
        fresh = np.random.default_rng([seed, stream, FLIPS])
        generator, n_before = self._streams.get(stream, (fresh, 0))
        assert first == n_before
        self._streams[stream] = generator, first + n
        hits = (generator.random(n * BATCH) < self._p).astype(np.uint8)
        n_hits = int(hits.sum())
        return np.array([len(hits) - n_hits, n_hits], dtype=np.uint64), hits


def optimal_samples(ratio: float, p: float = P) -> float:
    """Return how many samples it takes on average if p is known beforehand."""
    settled, open_ = 0.0, 0.999
    for _ in range(50):
        error = (settled + open_) / 2
        low, high = ratio + 1 / (1 + error), ratio + 1 / (1 - error)
        is_settled = (1 - EPSILON) * high <= (1 + EPSILON) * low
        settled, open_ = (error, open_) if is_settled else (settled, error)
    return plan_gamma_bernoulli(settled, DELTA).successes / p


def samples_taken(
    ratio: float, seed: int, p: float = P, delta: float = DELTA
) -> tuple[int, int, bool]:
    """Return the samples of an estimate, those with its pilot, and whether it is right."""
    draws = CoinFlips(p)
    certain = round(ratio * p * UNDECIDED)
    n_regions = 10 * UNDECIDED
    known_part = KnownPart(certain, UNDECIDED, Bounds(0, n_regions), n_regions)
    settings = Settings(epsilon=EPSILON, delta=delta, seed=seed, jobs=1)
    estimator = Estimator(draws, known_part, settings)
    tally = estimator.run("sample", {})
    is_right = tally.low <= certain + round(p * UNDECIDED) <= tally.high
    return int(tally.details["samples"]), draws.n_drawn, is_right


def mean_ratios(ratio: float, seeds: Sequence[int]) -> tuple[float, float, int]:
    """Return the mean samples in units of the optimum, without and with the pilot; and misses."""
    taken = [samples_taken(ratio, seed) for seed in seeds]
    best = optimal_samples(ratio)
    alone, together = (statistics.fmean(t[i] for t in taken) / best for i in (0, 1))
    return alone, together, sum(not is_right for *_, is_right in taken)


def explanation(seeds: int) -> str:
    """Say what the table shows."""
    chance = most_failures(seeds, DELTA, level=1e-3) / seeds
    return (
        f"Samples of estimates of certain + p * undecided, with p = {P}, epsilon = {EPSILON} and "
        f"delta = {DELTA}, in units of the optimum: Huber's estimate, told p beforehand. Means of "
        f"{seeds} seeds, without and with the pilot. Misses are runs whose interval does not hold "
        f"the count; where their share is {DELTA}, up to {chance:.3f} is chance (at 0.1 %). "
        "Written by `python -m benchmarks.certain_part`."
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.certain_part", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300)
    options = parser.parse_args(arguments)
    print(textwrap.fill(explanation(options.seeds), 98), end="\n\n")
    print("| certain / rest | optimum, hits | samples / optimum | with the pilot | misses |")
    print("|---|---|---|---|---|")
    for ratio in RATIOS:
        alone, together, misses = mean_ratios(ratio, range(options.seeds))
        hits = round(optimal_samples(ratio) * P)
        print(f"| {ratio} | {hits} | {alone:.2f} | {together:.2f} | {misses / options.seeds:.3f} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
