"""Who is near whom among the masks: against the masks around each one."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import random_ensemble

from xcount.errors import BudgetError
from xcount.problem.asked import Asked
from xcount.problem.neighbours import NearMasks
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query


def question(seed: int) -> Problem:
    """Return a question about two features at a limited distance."""
    ensemble = random_ensemble(seed, max_features=4)
    sensitive = range(min(2, ensemble.n_features))
    query = Query.of(ensemble, sensitive, 1, distance=1 + seed % 2)
    return Problem(ensemble, Grid.of(ensemble), query)


def near_masks(problem: Asked) -> NearMasks | None:
    """Return who is near whom in a question."""
    return NearMasks.of_question(problem)


@pytest.mark.parametrize("seed", range(20))
def test_neighbours_are_those_around_each_mask(seed: int) -> None:
    """Of some masks and of all; what fills up is near, too, and about as many are expected."""
    problem = question(seed)
    if (near := near_masks(problem)) is None:
        assert problem.distance is None
        return
    around = [set(problem.around(mask)) for mask in range(problem.n_masks)]
    assert [set(row) for row in near.table.tolist()] == around
    some = np.random.default_rng(seed).integers(0, problem.n_masks, 7)
    assert [set(row) for row in near.of(some).tolist()] == [around[mask] for mask in some]
    assert near.table.shape[1] <= near.width


@pytest.mark.parametrize("seed", range(20))
def test_what_is_near_is_compared(seed: int) -> None:
    """Differences and extremes are those of the masks around; no number spoils its neighbours."""
    problem = question(seed)
    if (near := near_masks(problem)) is None:
        return
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 3, (5, problem.n_masks)).astype(float)
    values[0, 0] = np.nan
    low, high = near.extremes(values)
    differ = near.differ(values[1:].astype(np.int16))
    for mask in range(problem.n_masks):
        own = values[:, list(problem.around(mask))]
        assert np.array_equal(low[:, mask], own.min(axis=1), equal_nan=True)
        assert np.array_equal(high[:, mask], own.max(axis=1), equal_nan=True)
        assert (differ[:, mask] == (own[1:] != values[1:, [mask]]).any(axis=1)).all()


def test_too_many_pairs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of them would take all memory."""
    monkeypatch.setattr("xcount.problem.neighbours.MAX_PAIRS", 1)
    problems = map(question, range(20))
    near = next(n for n in map(near_masks, problems) if n is not None and n.width > 2)
    with pytest.raises(BudgetError, match="pairs of masks"):
        _ = near.table
