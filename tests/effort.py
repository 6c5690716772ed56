"""How much this run of the tests tries: XCOUNT_TEST_PROFILE is quick, test or scheduled.

``quick`` is for after every edit: it leaves out slow tests and those of the benchmarks, runs one
case of each other test, and tries few random models. ``test``, the default, tries the same
ones in every run, so that a failure is the fault of the change at hand. ``scheduled`` tries ten
times as many, and new ones in every run; XCOUNT_TEST_SEED repeats a run.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import settings

_PARTS = {"quick": 0.1, "test": 1.0, "scheduled": 10.0}
PROFILE = os.environ.get("XCOUNT_TEST_PROFILE", "test")

if PROFILE not in _PARTS:
    raise ValueError(f"XCOUNT_TEST_PROFILE is {PROFILE!r}; profiles are {', '.join(_PARTS)}")

if PROFILE == "scheduled":  # the processes of pytest-xdist inherit it
    os.environ.setdefault("XCOUNT_TEST_SEED", str(random.randrange(10**9)))
FIRST_SEED = int(os.environ.get("XCOUNT_TEST_SEED", "0"))
"""Where the seeds of random models start."""

# No deadlines: time is measured in benchmarks.
settings.register_profile("quick", derandomize=True, deadline=None, max_examples=10)
settings.register_profile("test", derandomize=True, deadline=None, max_examples=100)
settings.register_profile(
    "scheduled", derandomize=False, deadline=None, print_blob=True, max_examples=500
)


def n_examples(number: int) -> int:
    """Return how many examples to try of those that ``make test`` tries; at least one."""
    return max(1, round(number * _PARTS[PROFILE]))


_QUICK_CASES = 1


def left_out(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests that this profile does not run, by their markers and their cases."""
    if PROFILE == "scheduled":
        return []
    if PROFILE == "test":
        return [item for item in items if item.get_closest_marker("scheduled")]
    seen: Counter[str] = Counter()
    found = []
    for item in items:
        function = item.nodeid.partition("[")[0]
        seen[function] += 1
        is_one_too_many = seen[function] > _QUICK_CASES and not item.get_closest_marker("contract")
        is_slow = item.get_closest_marker("slow") or item.get_closest_marker("scheduled")
        if is_slow or is_one_too_many or item.nodeid.startswith("tests/benchmarks/"):
            found.append(item)
    return found
