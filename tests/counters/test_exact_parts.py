"""The parts of hard subproblems add up, split alike, and bound what is open."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from enumeration import count_by_enumeration
from test_exact import agree, masks_of, odd_ensemble, problem_of, random_question, wide_ensemble

from xcount import _core
from xcount.counters.costs import Thresholds
from xcount.counters.engine import Tuning
from xcount.counters.exact import ExactRun
from xcount.counters.settings import Settings
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.examples import ensemble_of
from xcount.problem.problem import Problem
from xcount.problem.subproblem import Subproblem


def test_parts_add_up() -> None:
    """A hard subproblem is the sum of its parts: here every one is hard, and any number is cut."""
    for seed in range(300):
        thresholds = Thresholds(hard_steps=0, part_bits=1 + seed % 6)
        ensemble = odd_ensemble(seed)
        problem = problem_of(ensemble, **random_question(seed, ensemble))
        agree(problem, (0, 8)[seed % 2], thresholds=thresholds)


def near_tie() -> Problem:
    """Return a question where two features have the same range but for the rounding of doubles.

    f1 is a category, so a part looks at several of its values, and parts that differ later number
    their nodes differently.
    """
    high = (3, 0.0, (4, 0.0, (5, 0.0, 2.0**56, 0.0), 2.0**57), 2.0**57)
    trees = [
        (1, 0.0, high, (1, 2.0, (5, 0.0, 0.0, 2.0**56), 0.0)),
        (1, 0.0, 0.0, (2, 0.0, (5, 0.0, 2.0**53, 5.0), 0.0)),
        (6, 0.0, 2.0**53 + 2, 0.0),
        *[(2, 0.0, (5, 0.0, 1.0, 3.0), 0.0)] * 8,
    ]
    built = ensemble_of(*[(0, 0.0, tree, 0.0) for tree in trees])
    categorical = [
        replace(
            tree,
            threshold=np.where(tree.feature == 1, np.nan, tree.threshold),
            left_categories={
                int(i): frozenset({int(tree.threshold[i])})
                for i in np.flatnonzero(tree.feature == 1)
            },
        )
        for tree in built.trees
    ]
    features = (built.features[0], Feature("f1", (0, 1, 2)), *built.features[2:])
    return problem_of(Ensemble(features, tuple(categorical)), sensitive=0, gap=2**53 + 4)


@pytest.mark.parametrize("part_bits", range(7))
def test_parts_split_alike(part_bits: int) -> None:
    """Parts add up only if they are parts of the same splits."""
    agree(near_tie(), max_paths=0, thresholds=Thresholds(hard_steps=0, part_bits=part_bits))


def test_steps_do_not_depend_on_what_was_solved_before() -> None:
    """Budgets are steps, so that the answer is the same on any number of threads."""
    problem = problem_of(wide_ensemble(), sensitive="f0", gap="0.8", distance=2)

    def steps(tasks: list[Subproblem]) -> list[int]:
        counter = _core.ExactCounter(problem.forest, problem.masks, problem.threshold_limbs)
        counter.start(tasks, problem.n_masks, 2**62, 2**30, 1, max_paths=0, memo_bytes=2**14)
        assert counter.wait(60)
        return [result[-1] for result in counter.results()]

    tasks = [Subproblem((pair,)) for pair in problem.pairs()]
    assert steps(tasks) == [steps([task])[0] for task in tasks]


@pytest.mark.parametrize("question", [{"gap": "0.8"}, {"flip": True}])
@pytest.mark.parametrize("sensitive", ["f0", "f1", "f2"])
def test_some_parts_give_bounds(question: dict[str, Any], sensitive: str) -> None:
    """Parts that fit into the budget narrow the interval of every mask, from both sides."""
    settings = Settings(thresholds=Thresholds(hard_steps=0, part_bits=4))
    problem = problem_of(wide_ensemble(), sensitive=sensitive, **question)
    expected = masks_of(count_by_enumeration(problem, Settings(want_profile=True)).profile)
    is_gap = "gap" in question
    run = ExactRun(problem, settings, Tuning(max_paths=0) if is_gap else None)
    widths = []
    for budget in (int(2 ** (k / 2)) for k in range(20, 42)):
        run.solve((budget,))
        found = [run.mask_bounds(mask) for mask in range(problem.n_masks)]
        assert all(
            low <= count <= high for (low, high), (_, count, _) in zip(found, expected, strict=True)
        )
        widths.append(sum(high - low for low, high in found))
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) > 4
    assert widths[-1] == 0
