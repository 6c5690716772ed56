"""A question in the form that counters work on, one form for each kind of change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.model.ensemble import Tree
from xcount.problem.asked import Asked
from xcount.problem.directed_gap_form import gap_form
from xcount.problem.flip_form import FlipForm
from xcount.problem.form import Form, PairSpace
from xcount.problem.probability_form import probability_form
from xcount.question.change import Change
from xcount.question.flip import Flip
from xcount.question.gap import Gap, ProbabilityGap

_FORMS: dict[type[Change], Callable[[Asked], Form]] = {
    Gap: gap_form,
    ProbabilityGap: probability_form,
    Flip: FlipForm,
}


@dataclass(frozen=True, eq=False)
class Problem(Asked):
    """One query on one ensemble and grid, in the form that its change has."""

    @cached_property
    def form(self) -> Form:
        """How regions that change are found and counted."""
        return _FORMS[type(self.query.change)](self)

    @property
    def space(self) -> PairSpace:
        """The pairs of masks that subproblems are about."""
        return self.form.space

    @property
    def trees(self) -> tuple[Tree, ...]:
        return self.space.trees.trees

    @property
    def forest(self) -> _core.Forest:
        return self.space.forest

    @property
    def threshold(self) -> int:
        return self.space.threshold

    @property
    def threshold_limbs(self) -> NDArray[np.uint64]:
        return self.space.threshold_limbs
