"""The solutions of a subproblem, kept as a decision diagram: counted, sampled, listed, weighed.

Counting discards solved states as it goes; here they are kept for callers that need the solutions
themselves: witnesses, examples, measures other than the number of regions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.problem.problem import Problem
from xcount.problem.subproblem import Pair, Subproblem

MAX_STEPS = 200_000_000
MAX_BYTES = 2 * 2**30


@dataclass(frozen=True)
class Solutions:
    """The x for which any (or all) of the pairs of masks differ by more than the gap.

    Example:
        >>> from xcount.model.examples import figure_1
        >>> from xcount.question.grid import Grid
        >>> from xcount.question.query import Query
        >>> model = figure_1()
        >>> problem = Problem(model, Grid.of(model), Query.of(model, "f0", 80))
        >>> solutions = Solutions.of_mask(problem, 0)
        >>> solutions.count, solutions.sample(2, seed=1).tolist()
        (1, [[-1, 0], [-1, 0]])
    """

    problem: Problem
    pairs: tuple[Pair, ...]
    diagram: _core.SolutionDiagram

    @classmethod
    def of(
        cls,
        problem: Problem,
        pairs: Sequence[Pair],
        *,
        all_pairs: bool = False,
        max_steps: int = MAX_STEPS,
        max_bytes: int = MAX_BYTES,
    ) -> Solutions:
        """Solve a subproblem and keep its solutions; BudgetError if that costs too much."""
        space = problem.space
        diagram = _core.SolutionDiagram(
            space.forest,
            space.masks,
            space.threshold_limbs,
            list(pairs),
            all_pairs,
            max_steps,
            max_bytes,
        )
        return cls(problem, tuple(pairs), diagram)

    @classmethod
    def of_subproblem(cls, problem: Problem, subproblem: Subproblem) -> Solutions:
        """Solve a subproblem of the problem's form and keep its solutions."""
        return cls.of(problem, subproblem.pairs, all_pairs=subproblem.all_pairs)

    @classmethod
    def of_mask(cls, problem: Problem, mask: int, *, max_steps: int = MAX_STEPS) -> Solutions:
        """Return the x that make a mask sensitive: those that differ from some neighbour."""
        pairs = [(mask, other) for other in problem.masks.neighbours(mask)]
        return cls.of(problem, pairs, max_steps=max_steps)

    @cached_property
    def count(self) -> int:
        """The number of combinations of all non-sensitive cells that are solutions."""
        return self.diagram.count * (self.problem.n_combinations // self.diagram.total)

    def sample(self, n: int, seed: int) -> NDArray[np.int64]:
        """Return n solutions, uniform and independent: one cell per feature, -1 if sensitive."""
        axes = self.problem.grid.axes
        rng = np.random.default_rng(seed)
        rows = np.stack([rng.integers(axis.n_cells, size=n) for axis in axes], axis=1)
        features = list(self.diagram.features)
        cells = np.asarray(self.diagram.sample(n, seed)).reshape(n, len(features))
        rows[:, features] = cells
        rows[:, list(self.problem.query.sensitive)] = -1
        return rows

    def boxes(self, limit: int = 1000) -> list[dict[int, tuple[int, int]]]:
        """Return disjoint boxes of solutions: feature -> (first cell, end); others are free."""
        features = list(self.diagram.features)
        counts = self.problem.grid.cell_counts
        found = []
        for begins, ends in self.diagram.boxes(limit):
            box = zip(features, begins, ends, strict=True)
            found.append({f: (a, b) for f, a, b in box if (a, b) != (0, counts[f])})
        return found
