"""A question in the form that counters work on, one form for each kind of change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.model.ensemble import Tree
from xcount.problem.asked import Asked
from xcount.problem.form import Form, PairSpace
from xcount.question.change import Change
from xcount.question.flip import Flip
from xcount.question.gap import Gap, ProbabilityGap

_FORMS: dict[type[Change], tuple[str, str]] = {
    Gap: ("xcount.problem.directed_gap_form", "gap_form"),
    ProbabilityGap: ("xcount.problem.probability_form", "probability_form"),
    Flip: ("xcount.problem.flip_form", "flip_form"),
}
"""The function that makes the form of each change; imported when needed to start quickly."""
_PLAIN_GAP = ("xcount.problem.gap_form", "GapForm")
"""The form of most questions, without the code for directions."""


@dataclass(frozen=True, eq=False)
class Problem(Asked):
    """One query on one ensemble and grid, in the form of its change."""

    @cached_property
    def form(self) -> Form:
        """How regions that change are found and counted."""
        change = self.query.change
        is_plain_gap = isinstance(change, Gap) and change.direction == "any"
        home, name = _PLAIN_GAP if is_plain_gap else _FORMS[type(change)]
        form: Form = getattr(import_module(home), name)(self)
        return form

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
