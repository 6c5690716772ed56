"""How much this run of the tests tries: XCOUNT_TEST_PROFILE is quick, test or scheduled.

``quick`` tries few random models, to be run after every edit. ``test``, the default, tries the same
ones in every run, so that a failure is the fault of the change at hand. ``scheduled`` tries ten
times as many, and new ones in every run; XCOUNT_TEST_SEED repeats a run.
"""

from __future__ import annotations

import os
import random

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
