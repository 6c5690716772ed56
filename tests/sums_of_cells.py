"""Models of which sums of cells tell everything: truths for questions with millions of masks."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from xcount.answers.count import solve
from xcount.counters.decisions import RegionDecider
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason
from xcount.problem.problem import Problem

STUMPS = [(f, float(t), 0.0, (3, 0.5, 1 / 64, -1 / 64)) for f in range(3) for t in range(200)]
"""With i the sum of the cells of three features, V is i / 64 or -i / 64, as a fourth one says."""
_MOST = 600


def sensitive_sums(problem: Problem, *others: Fraction) -> dict[tuple[int, int], bool]:
    """Tell by definition for which signs and sums of cells a region is sensitive.

    What differs from a start most is at one of the two ends of its reach. Other outputs than that
    of the stumps are constants.
    """
    differs, distance = problem.query.change.differs, problem.distance or _MOST

    def is_sensitive(i: int, sign: int) -> bool:
        ends = (max(0, i - distance), min(_MOST, i + distance))
        start, *reached = ([sign * Fraction(1, 64) * j, *others] for j in (i, *ends))
        return any(differs(start, end) for end in reached)

    return {(sign, i): is_sensitive(i, sign) for sign in (-1, 1) for i in range(_MOST + 1)}


def check_many_masks(problem: Problem, *others: Fraction) -> None:
    """Check a count within its accuracy, and given regions, of a question about the stumps."""
    ways = np.convolve(np.convolve(np.ones(201), np.ones(201)), np.ones(201))
    expected = sensitive_sums(problem, *others)
    share = sum(float(ways[i]) for (_, i), is_so in expected.items() if is_so) / 2 / 201**3
    assert 0.001 < share < 0.99
    result = solve(problem, Settings(memory_bytes=10**9, epsilon=0.2, delta=1e-4), "auto")
    assert result.stop_reason is StopReason.COMPLETE
    assert result.share_low <= share <= result.share_high
    rows = np.random.default_rng(1).integers(0, problem.grid.cell_counts, (300, 4))
    decided = RegionDecider(problem).decide_regions(rows)
    signs = np.where(rows[:, 3], -1, 1).tolist()
    keys = zip(signs, rows[:, :3].sum(axis=1).tolist(), strict=True)
    assert decided.tolist() == [expected[key] for key in keys]
