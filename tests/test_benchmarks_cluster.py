"""The simulation of large runs: limits that can be told by hand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.cluster import Costs, simulate

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
    assert simulate(times, 100, FREE).seconds == 7.0


def test_what_passes_one_by_one_bounds_the_speed() -> None:
    """With many workers, handing out and the journal are what is left."""
    found = simulate(np.full((100, 10), 1.0), 10_000, Costs(0.5, 0.25, 0.0))
    assert found.seconds == pytest.approx(1000 * 0.75 + 1.0)


def test_short_counts_are_handed_out_in_bundles() -> None:
    """Counts of a hundredth of a second cost less to hand out than one by one."""
    times = np.full((100, 50), 0.01)
    found = simulate(times, 1, Costs(1.0, 0.0, 0.0))
    assert found.seconds < 300
