"""Inputs on which two models disagree, confirmed by both libraries.

A witness of a diff has the same input on both sides: ``point`` is what the first model gets, and
``other`` what the second gets. Its margins are each model's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.answers.witness.verified import Side, decision_of, is_sure_enough, sides_of
from xcount.answers.witness.witness import Witness
from xcount.answers.witness.witnesses import drawn_witnesses
from xcount.counters.settings import Settings
from xcount.errors import MissingExtraError, QueryError, UnsupportedModelError
from xcount.model.align import own_columns
from xcount.model.ensemble import Ensemble
from xcount.model.inputs import Inputs
from xcount.model.two_models import FIRST, SECOND
from xcount.problem.exact_sums import ExactSums
from xcount.problem.problem import Problem
from xcount.question.change import Change, in_direction
from xcount.question.flip import Flip
from xcount.question.gap import ProbabilityGap
from xcount.question.query import resolve_link


@dataclass(frozen=True, eq=False)
class BothModels:
    """The two models of a diff, as they were given and as they are asked.

    Attributes:
        given: the files or live models.
        loaded: their ensembles.
        own: each by itself, on the features of the question, with the first one's order of classes.
        changes: the change in each model's own terms.
        places: the place that each class has in the second model's own order.
        trust_pickle: whether a pickle may be opened.
    """

    given: tuple[Any, Any]
    loaded: Sequence[Ensemble]
    own: tuple[Ensemble, Ensemble]
    changes: tuple[Change, Change]
    places: tuple[int, ...]
    trust_pickle: bool = False

    def predicted(self, number: int, points: NDArray[np.float64]) -> list[Side]:
        """Return what the library of one model predicts, with the first one's order of classes.

        Raises:
            ModelFormatError: the library contradicts the loaded trees.
            MissingExtraError: the library is not installed.
            UnsupportedModelError: no library predicts with this model.
        """
        from xcount.model.loaders.check import check

        own, loaded = self.own[number], self.loaded[number]
        rows = own_columns(self.loaded, number, own.source, own.columns_of(points))
        check(loaded, self.given[number], rows, trust_pickle=self.trust_pickle)
        sides = sides_of(loaded, self.given[number], rows, self.trust_pickle)
        return [self._in_order(side) for side in sides] if number == SECOND else sides

    def _in_order(self, side: Side) -> Side:
        if len(side.margins) == 1:
            return side
        shares = side.probabilities
        return Side(
            tuple(side.margins[place] for place in self.places),
            None if side.decision is None else self.places.index(side.decision),
            None if shares is None else tuple(shares[place] for place in self.places),
        )

    def confirm(self, before: Side, after: Side) -> bool:
        """Return whether the libraries' own numbers differ as the question requires."""
        change, other = self.changes
        if isinstance(change, Flip) and isinstance(other, Flip):
            start = decision_of(change, self.loaded[FIRST], before)
            end = decision_of(other, self.loaded[SECOND], after)
            return change.counts(start, end) and is_sure_enough(change, before, start)
        output, gap = change.output_index, change.order
        numbers = before.margins[output], after.margins[output]
        if isinstance(change, ProbabilityGap) and before.probabilities and after.probabilities:
            numbers = before.probabilities[output], after.probabilities[output]
        return in_direction(change.direction, lambda a, b: b - a > gap, *numbers)


@dataclass(frozen=True, eq=False)
class DiffWitnesses:
    """Finds inputs on which two models disagree.

    Attributes:
        problem: the question; its last feature says which model answers.
        models: the two models.
    """

    problem: Problem
    models: BothModels

    def found(
        self, n: int, settings: Settings, rows: Inputs | None, notes: list[str]
    ) -> tuple[Witness, ...]:
        """Return up to n witnesses, rows of the data first; add to the notes what is missing.

        Raises:
            BudgetError: none was found within the limits.
        """
        drawn = drawn_witnesses(self.problem, n, settings, rows)
        return self._confirmed([self._of_both(witness) for witness in drawn], notes)

    def _of_both(self, witness: Witness) -> Witness:
        """Return a witness without the chooser, with each model's own numbers."""
        point = np.array([witness.point[:-1]])
        (first,), (second,) = (
            ExactSums(own, self.problem.query.precision).at(point) for own in self.models.own
        )
        change, other = self.models.changes
        shown, then = change.shown_output(first), other.shown_output(second)
        chooser = self.problem.ensemble.feature_names[-1]
        labels = {name: label for name, label in witness.labels.items() if name != chooser}
        moved = witness.moved
        return replace(
            witness,
            features=witness.features[:-1],
            point=witness.point[:-1],
            other=witness.point[:-1],
            margin=float(first[shown]),
            other_margin=float(second[then]),
            change=float(second[then] - first[shown]),
            crossed=(),
            trees=(),
            probability=_probability(self.models.own[FIRST], first, shown),
            other_probability=_probability(self.models.own[SECOND], second, then),
            moved=None if moved is None else tuple(name for name in moved if name != chooser),
            labels=labels,
            other_labels=labels,
        )

    def _confirmed(self, found: Sequence[Witness], notes: list[str]) -> tuple[Witness, ...]:
        """Return the witnesses that both libraries confirm; all of them if one cannot be asked."""
        if not found:
            return ()
        points = np.array([witness.point for witness in found])
        try:
            sides = [self.models.predicted(number, points) for number in (FIRST, SECOND)]
        except (MissingExtraError, QueryError, UnsupportedModelError) as error:
            notes.append(f"the inputs are not confirmed by both libraries: {error}")
            return tuple(found)
        change, other = self.models.changes
        kept = []
        for witness, before, after in zip(found, *sides, strict=True):
            if self.models.confirm(before, after):
                margins = (
                    float(before.margins[change.shown_output(before.margins)]),
                    float(after.margins[other.shown_output(after.margins)]),
                )
                kept.append(replace(witness, library_margins=margins))
        if len(kept) < len(found):
            notes.append(
                f"{len(found) - len(kept)} of {len(found)} inputs are left out, since the "
                "libraries do not confirm them: they add floats, which rounds, and these inputs "
                "are so near to a tie that it matters"
            )
        return tuple(kept)


def _probability(ensemble: Ensemble, margins: Sequence[Fraction], output: int) -> float | None:
    """Return the probability of an output, if the model has one."""
    try:
        return resolve_link(ensemble).value(margins, output)
    except QueryError:
        return None
