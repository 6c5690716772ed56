"""The native core, asked directly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xcount.problem.problem import Problem
from xcount.problem.subproblem import Pair, Subproblem


def weighted_share(
    problem: Problem, pairs: Sequence[Pair], all_pairs: bool, weights: Sequence[np.ndarray]
) -> float:
    """Return the share of the x for which any (or all) of the pairs differ, under weights."""
    counter = problem.space.counter(weights)
    try:
        counter.start([Subproblem(pairs, all_pairs)], problem.n_masks, 2**62, 2**31, 1)
        while not counter.wait(0.1):
            pass
    finally:
        counter.cancel()
    [(status, share, _, _, _)] = counter.results()
    assert status == "solved"
    return float(share)
