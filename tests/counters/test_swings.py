"""How far regions can move: against the outputs of all masks, written down once more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from strategies import random_classifier, random_ensemble

from xcount.counters.class_swings import ClassSwingRows, swing_rows
from xcount.counters.swings import SwingRows
from xcount.errors import BudgetError
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query


def rows_of(seed: int, distance: int | None) -> SwingRows:
    """Return rows of a small model with integer sums."""
    ensemble = random_ensemble(seed, max_features=3, scale="ties")
    query = Query.of(ensemble, [0], "0.5", distance=distance)
    return SwingRows(Problem(ensemble, Grid.of(ensemble), query))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("distance", [1, 2, None])
def test_swings_are_those_of_the_neighbours(seed: int, distance: int | None) -> None:
    """Up and down are the largest differences to the neighbours; none are below 0."""
    rows = rows_of(seed, distance)
    problem = rows.problem
    cells = np.zeros((1, len(problem.grid.axes)), dtype=np.int32)
    outputs = rows.outputs(cells)
    values, found = outputs.values[0], rows.swings(outputs)
    for mask in range(problem.n_masks):
        near = values[list(problem.around(mask))]
        assert found.up[0, mask] == near.max() - values[mask]
        assert found.down[0, mask] == values[mask] - near.min()
        alone = rows.swings(outputs, np.array([mask]))
        assert (alone.up[0], alone.down[0]) == (found.up[0, mask], found.down[0, mask])
    assert rows.doubt == 0


@pytest.mark.parametrize("seed", range(10))
def test_no_change_is_larger_than_the_most(seed: int) -> None:
    """The range that means and quantiles rely on holds every change."""
    rows = rows_of(seed, None)
    n_masks, n_features = rows.problem.n_masks, len(rows.problem.grid.axes)
    rng = np.random.default_rng(seed)
    counts = rows.problem.grid.cell_counts
    cells = rng.integers(0, counts, (200, n_features)).astype(np.int32)
    found = rows.swings(rows.outputs(cells), rng.integers(0, n_masks, 200))
    assert max(found.up.max(), found.down.max()) <= rows.most


def test_the_highest_masks_tie() -> None:
    """Where all masks are the same, none is highest; equal ones are all highest."""
    rows = rows_of(3, None)
    cells = np.zeros((1, len(rows.problem.grid.axes)), dtype=np.int32)
    outputs = rows.outputs(cells)
    flat = replace(outputs, values=np.array([[2, 2, 2], [1, 5, 5]]))
    assert flat.highest.tolist() == [[False, False, False], [False, True, True]]


def test_more_masks_than_are_compared_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their outputs would take too long."""
    monkeypatch.setattr("xcount.counters.swings.MANY_MASKS", 1)
    with pytest.raises(BudgetError, match="too many"):
        rows_of(3, None)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("scale", ["ties", "huge-and-tiny"])
def test_flips_are_those_that_the_question_decides(seed: int, scale: str) -> None:
    """Where a swing is not 0, the decision flips, sums of several words included."""
    ensemble = replace(random_ensemble(seed, max_features=3, scale=scale), decides_at=0.0)
    for way in ("up", "down"):
        query = Query.of(ensemble, [0], flip=True, cutoff=0, direction=way, distance=1)
        problem = Problem(ensemble, Grid.of(ensemble), query)
        counts = [1, *problem.grid.cell_counts[1:]]
        cells = np.array(list(np.ndindex(*counts)), dtype=np.int32)
        rows = SwingRows(problem)
        found = rows.swings(rows.outputs(cells)).size(way)
        assert ((found > 0) == problem.form.decide(cells)).all()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("distance", [1, 2, None])
def test_a_mask_alone_moves_between_classes_as_among_all(seed: int, distance: int | None) -> None:
    """Its neighbours alone are evaluated; where nothing moves, the question decides so, too."""
    ensemble = random_classifier(seed)
    if ensemble.n_outputs < 2:
        return
    features = range(min(2, ensemble.n_features))
    query = Query.of(ensemble, features, flip=True, distance=distance)
    problem = Problem(ensemble, Grid.of(ensemble), query)
    rows = swing_rows(problem)
    assert isinstance(rows, ClassSwingRows)
    rng = np.random.default_rng(seed)
    counts = problem.grid.cell_counts
    cells = rng.integers(0, counts, (20, len(counts))).astype(np.int32)
    cells[:, list(features)] = 0
    everywhere = rows.swings(rows.outputs(cells))
    flags = problem.form.decide(cells)
    for mask in range(problem.n_masks):
        alone = rows.swings(rows.outputs(cells), np.full(len(cells), mask))
        assert np.array_equal(alone.up, everywhere.up[:, mask])
        assert np.array_equal(alone.down, everywhere.down[:, mask])
        assert np.array_equal(np.maximum(alone.up, alone.down) > 0, flags[:, mask])


def test_all_outputs_of_a_softmax_are_work() -> None:
    """How many regions are evaluated depends on the numbers that one takes."""
    classifiers = map(random_classifier, range(20))
    several = next(each for each in classifiers if each.n_outputs > 1)
    ensemble = replace(several, probability="softmax", task="multiclass")
    query = Query.of(ensemble, [0], probability_gap="0.1", class_=0)
    rows = SwingRows(Problem(ensemble, Grid.of(ensemble), query))
    assert rows.n_numbers == 2 * ensemble.n_outputs * rows.problem.n_masks + rows.n_near
