"""The form of a question: the interface that counters use, with a class for each kind of change.

A form turns "the change holds between two regions" into integers: into pairs of masks of an integer
forest that differ by more than a threshold (:class:`PairSpace`), into a sum of subproblems about
such pairs (:class:`~xcount.problem.subproblem.Decomposition`), and into a decision about given
cells. Counters know forms, never changes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.errors import BudgetError
from xcount.problem.asked import Asked
from xcount.problem.corner_question import CornerQuestion
from xcount.problem.integers import to_limbs
from xcount.problem.laid_trees import LaidTrees
from xcount.problem.subproblem import Decomposition, Pair, Subproblem
from xcount.question.change import Direction

LivePairs = Callable[[Iterable[Pair]], list[Pair]]
"""Returns the pairs that may differ at all, according to bounds."""


@dataclass(frozen=True, eq=False)
class PairSpace:
    """Masks of an integer forest: a pair {m, m'} differs at x iff |W(x, m) - W(x, m')| > threshold.

    With a direction, m is sensitive by m' iff W(x, m') - W(x, m) > threshold (*up*), or the other
    way round (*down*): only samplers use the direction.

    Attributes:
        trees: the trees that add up to W.
        sensitive: the features whose cells form a mask.
        distance: the largest distance of neighbours; None for any distance.
        threshold: an integer, like the leaves.
        direction: which neighbours count, the higher or the lower ones.
    """

    trees: LaidTrees
    sensitive: tuple[int, ...]
    distance: int | None
    threshold: int
    direction: Direction = "any"

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to send to another process, without cached values."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    @property
    def forest(self) -> _core.Forest:
        return self.trees.forest

    @cached_property
    def masks(self) -> _core.MaskSpace:
        """The masks and their neighbours, in native form."""
        return _core.MaskSpace(self.forest, list(self.sensitive), self.distance)

    @cached_property
    def threshold_limbs(self) -> NDArray[np.uint64]:
        limbs: NDArray[np.uint64] = to_limbs([self.threshold], self.trees.n_limbs)[0]
        return limbs

    @property
    def n_masks(self) -> int:
        axes = self.trees.grid.axes
        return math.prod(axes[f].n_cells for f in self.sensitive)

    def counter(self, weights: Sequence[NDArray[np.float64]] | None = None) -> _core.ExactCounter:
        """Return a native counter of subproblems; with weights, it computes their shares."""
        given = None
        if weights is not None:
            given = [np.ascontiguousarray(w, dtype=np.float64) for w in weights]
        return _core.ExactCounter(self.forest, self.masks, self.threshold_limbs, given)

    def sampler(
        self, masks: NDArray[np.int64], pairs: NDArray[np.int64] | None = None
    ) -> _core.Sampler:
        """Return a native sampler that decides these masks at random x, using only these pairs."""
        return _core.Sampler(
            self.forest, self.masks, self.threshold_limbs, masks, pairs, self.direction
        )


class Form(ABC):
    """A question about one kind of change, in the form that counters work on."""

    max_exact_terms: int
    """The most terms for which exact counting is tried."""
    max_auto_terms: int
    """The most terms for which ``auto`` does not sample at once."""
    only_bounds = False
    """Whether expressions are only upper bounds, which prove that masks are never sensitive."""

    def __init__(self, problem: Asked) -> None:
        self.problem = problem

    @property
    @abstractmethod
    def space(self) -> PairSpace:
        """The pairs of masks that subproblems are about."""

    @property
    @abstractmethod
    def n_terms(self) -> int:
        """About how many pairs of masks all subproblems have together, without listing them."""

    @property
    @abstractmethod
    def n_trees(self) -> int:
        """The number of trees that take part."""

    @property
    def flags_per_row(self) -> int:
        """How many flags are made for one row of :meth:`decide`."""
        return self.problem.n_masks

    @abstractmethod
    def decompose(self, live: LivePairs, masks: Sequence[int]) -> Decomposition:
        """Decompose the counts of these masks; other masks get an empty expression."""

    @property
    @abstractmethod
    def corner_question(self) -> CornerQuestion:
        """The question for corner sums and for searches."""

    @abstractmethod
    def decide(self, cells: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return whether each mask is sensitive at each row of cells, shape (n_rows, n_masks).

        The sensitive features' cells are 0 in all rows.
        """

    @abstractmethod
    def supersets(self, decomposition: Decomposition, mask: int) -> list[Subproblem]:
        """Return subproblems, each solved by every x that makes the mask sensitive."""

    @abstractmethod
    def influences(self) -> set[int]:
        """Return the features whose cells can make a difference."""

    def cell_weights(self, weights: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        """Return the weights of the cells of all features of the pair space."""
        return list(weights)

    def native_draws(self) -> PairSpace | None:
        """Return the pair space if sampling its masks decides the question itself."""
        return None


def refuse_many_masks(n_masks: int, most: int) -> None:
    """Raise if there are more masks than can be decided together."""
    if n_masks > most:
        from xcount.support.numerals import scientific_text

        raise BudgetError(
            f"{scientific_text(n_masks)} masks are too many to decide together; ask about "
            "fewer sensitive features"
        )
