"""The simulation of large runs: limits that can be told by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks import cluster
from benchmarks.cluster_simulation import Costs, simulate, spread_end

FREE = Costs(0.0, 0.0, 0.0)


def test_one_worker_takes_the_sum() -> None:
    """Nothing overlaps, nothing is idle."""
    found = simulate(np.full((3, 4), 2.0), 1, FREE)
    assert (found.seconds, found.busy) == (24.0, 1.0)


def test_equal_counts_spread_evenly() -> None:
    """As many workers as counts take the time of one."""
    assert simulate(np.full((3, 4), 2.0), 12, FREE).seconds == 2.0


def test_the_largest_count_is_a_lower_bound() -> None:
    """More workers than counts do not help."""
    times = np.array([[1.0, 7.0, 1.0]])
    assert simulate(times, 100, FREE, spread=False).seconds == 7.0


def test_a_long_count_is_spread_when_nothing_waits() -> None:
    """After a second of patience all workers share the rest, and end a unit's time later."""
    times = np.array([[1.0, 7.0, 1.0]])
    assert simulate(times, 100, FREE).seconds == pytest.approx(1 + 6 / 100 + 0.5)
    assert simulate(times, 1, FREE).seconds == 9.0


def test_short_counts_are_not_spread() -> None:
    """What ends within the second of patience ends where it began."""
    assert spread_end(np.array([10.0, 10.5]), 10.0) == 10.5
    assert spread_end(np.array([10.0, 16.0]), 10.0) == 11.0 + 5.0 / 2 + 0.5


def test_what_passes_one_by_one_bounds_the_speed() -> None:
    """With many workers, handing out and the journal are what is left."""
    found = simulate(np.full((100, 10), 1.0), 10_000, Costs(5.0, 0.25, 0.0), spread=False)
    # At 10,000 workers bundles are of 12 counts and more: of a whole model.
    assert found.seconds == pytest.approx(100 * 5.0 + 1000 * 0.25 + 10.0)


def test_short_counts_are_handed_out_in_bundles() -> None:
    """Counts of a hundredth of a second cost less to hand out than one by one."""
    times = np.full((100, 50), 0.01)
    found = simulate(times, 1, Costs(1.0, 0.0, 0.0))
    assert found.seconds < 300


def lines_of(n_repeats: int) -> list[dict[str, Any]]:
    """Return what a measurement writes: one load in so many repeats, and a simulated run."""
    machine = {"processor": "a processor", "cores": 2, "system": "a system"}
    header = {"record": "header", "machine": machine, "revision": "r", "date": "today"}
    lines: list[dict[str, Any]] = [header | {"load": 0.5, "niceness": 0, "repeats": n_repeats}]
    for repeat in range(n_repeats):
        for n_workers, seconds in ((1, 8.0 + repeat), (2, 4.0 + repeat)):
            line = {"what": "2 instances of the paper's suite", "counts": [1.0, 3.0 + repeat]}
            lines.append({"record": "measured", "workers": n_workers, "seconds": seconds} | line)
            lines[-1]["processor_seconds"] = 7.0 + n_workers / 10
    lines.append({"record": "costs", "task": 0.002, "journal": 1e-5, "model": 0.001})
    return [*lines, *cluster.simulated(cluster.times_of(lines), FREE, n_models=20)]


def test_the_report_shows_the_shortest_runs() -> None:
    """One row a load with its best times, and the simulation of all numbers of workers."""
    lines = lines_of(3)
    assert sorted(set(cluster.times_of(lines).tolist())) == [1.0, 3.0, 4.0, 5.0]
    text = cluster.report(lines)
    assert "| 2 instances of the paper's suite | 2 | 8.00 | 4.00 | 7.10 | 7.20 | 2.00 |" in text
    assert "A task of Dask that does nothing costs 2.00 ms" in text
    assert all(f"\n| {n} | " in text for n in cluster.WORKERS)
