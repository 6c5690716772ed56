"""One evaluation of regions answers all gaps: against outputs and decisions, made one by one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from strategies import random_ensemble

from xcount.answers.explain.evaluate import Evaluator
from xcount.counters.decisions import RegionDecider
from xcount.counters.moves import kept_moves, known_moves
from xcount.counters.swings import SwingRows
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query

SCALES = ["ties", "decimals", "huge-and-tiny", "subnormal"]


def problem_of(seed: int, scale: str, n_sensitive: int, **words: object) -> Problem:
    """Return a question about a small model."""
    ensemble = random_ensemble(seed, max_features=4, scale=scale)
    sensitive = list(range(min(n_sensitive, len(ensemble.features))))
    return Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, sensitive, **words))


def regions_of(problem: Problem, seed: int, n: int = 300) -> np.ndarray:
    """Return random regions: a block of samples and a part of one."""
    counts = problem.grid.cell_counts
    return np.random.default_rng(seed).integers(0, counts, (n, len(counts)))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("n_sensitive", [1, 2])
@pytest.mark.parametrize("seed", range(8))
def test_native_swings_are_those_of_all_outputs(seed: int, n_sensitive: int, scale: str) -> None:
    """Up, down and the highest masks, found natively, are those of the outputs of all masks."""
    problem = problem_of(seed, scale, n_sensitive, gap="0.5")
    rows, regions = SwingRows(problem), regions_of(problem, seed)
    masks = RegionDecider(problem).masks_of(regions)
    found, highest = rows.evaluated(regions.astype(np.int32), masks)
    outputs = rows.outputs(regions.astype(np.int32))
    expected = rows.swings(outputs, masks)
    for side in ("up", "down"):
        ours, theirs = getattr(found, side), getattr(expected, side)
        assert ours.dtype == rows.dtype
        assert np.abs(ours - theirs).max() <= rows.doubt
    if rows.doubt == 0:
        assert highest.tolist() == outputs.highest.sum(axis=0).tolist()


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", ["gap", "probability_gap", "flip"])
@pytest.mark.parametrize("direction", ["any", "up", "down"])
@pytest.mark.parametrize("seed", range(5))
def test_moves_answer_every_gap(seed: int, direction: str, kind: str, scale: str) -> None:
    """What is kept for one gap decides every other one as the question itself does."""
    ensemble = replace(
        random_ensemble(seed, max_features=4, scale=scale),
        decides_at=0.0,
        task="binary",
        probability="sigmoid",
    )
    gaps = ["0", "0.1", "0.25", "0.5"] if kind != "flip" else [None]
    grid = Grid.of(ensemble)
    for number, gap in enumerate(gaps):
        words = {"flip": True, "cutoff": 0} if kind == "flip" else {kind: gap}
        problem = Problem(ensemble, grid, Query.of(ensemble, [0], direction=direction, **words))
        regions = regions_of(problem, seed)
        if number == 0:
            kept_moves(problem, "these", partial(Evaluator(problem).moves, regions))
        moves = known_moves(problem, "these")
        assert moves is not None
        expected = RegionDecider(problem).decide_regions(regions)
        assert moves.exceed(problem, regions).tolist() == expected.tolist()


def test_a_gap_that_is_a_size_is_not_exceeded() -> None:
    """Ties are decided exactly, however many words the sums have."""
    for scale in SCALES:
        problem = problem_of(1, scale, 1, gap="0.5")
        regions = regions_of(problem, 1)
        moves = Evaluator(problem).moves(regions)
        largest = Fraction(moves.swings.size("any").max()) * moves.unit
        query = Query.of(problem.ensemble, [0], largest)
        asked = Problem(problem.ensemble, problem.grid, query)
        expected = RegionDecider(asked).decide_regions(regions)
        assert moves.exceed(asked, regions).tolist() == expected.tolist()
