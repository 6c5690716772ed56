"""Intervals and estimates miss no more often than delta allows, on instances of known count.

The larger study, with more seeds and a smaller epsilon, is ``python -m benchmarks.coverage``.
"""

from __future__ import annotations

from fractions import Fraction

import pytest
from oracle import known

from benchmarks.coverage import misses_of, most_failures, run_stopped, run_to_end
from benchmarks.known_counts import KnownCount, all_instances
from xcount.counters.tally import StopReason

INSTANCES = all_instances()
EPSILON, DELTA, SEEDS = 0.3, 0.1, 200


def test_the_instances_span_counts_and_shares() -> None:
    """At least 40 instances, counts from 0 to beyond 10^20, shares from 10^-9 to 1."""
    counts = [instance.count for instance in INSTANCES]
    shares = [instance.share for instance in INSTANCES]
    assert len(INSTANCES) >= 40
    assert min(counts) == 0
    assert 2 in counts  # the smallest count but 0: sensitive regions come in pairs
    assert max(counts) > 10**20
    assert min(share for share in shares if share) <= 1e-9
    assert max(shares) == 1
    assert {len(instance.problem.query.sensitive) for instance in INSTANCES} == {1, 2, 3}


@pytest.mark.parametrize("instance", INSTANCES, ids=lambda instance: instance.name)
def test_runs_to_the_end_miss_as_rarely_as_promised(instance: KnownCount) -> None:
    """Over 200 seeds, interval and estimate miss in at most a share delta of the runs."""
    misses = misses_of(instance, range(SEEDS), EPSILON, DELTA, stopped=False)
    assert misses.worst() <= most_failures(SEEDS, DELTA)


@pytest.mark.parametrize("instance", INSTANCES, ids=lambda instance: instance.name)
def test_runs_stopped_at_any_moment_miss_as_rarely_as_promised(instance: KnownCount) -> None:
    """Stopped after 1 to 16 slices, the interval still holds as often as it says."""
    seeds = range(1000, 1040)
    misses = 0
    for seed in seeds:
        tally = run_stopped(instance, seed, EPSILON, DELTA)
        assert tally.stop_reason in (StopReason.TIMEOUT, StopReason.COMPLETE)
        misses += not tally.low <= instance.count <= tally.high
    assert misses <= most_failures(len(seeds), DELTA)


def test_the_count_lies_in_its_own_interval_and_settles_it() -> None:
    """A run that stops by itself returns a count within (1 +- epsilon) of all of its interval."""
    for instance in INSTANCES[1:12]:
        tally = run_to_end(instance, 0, EPSILON, DELTA)
        assert tally.low <= known(tally.count) <= tally.high
        epsilon = Fraction(EPSILON)
        assert (1 - epsilon) * tally.high <= known(tally.count) <= (1 + epsilon) * tally.low
