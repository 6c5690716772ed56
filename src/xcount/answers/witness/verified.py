"""Witnesses confirmed by the library: its own decisions, probabilities or margins differ.

Exact sums decide whether regions differ; the library adds floats. So a pair that is within rounding
of a tie may hold by exact sums and fail in the library: it is left out. A contradiction that
rounding does not explain is an error: the model was not read as the library reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from xcount.answers.witness.witness import Witness
from xcount.errors import BudgetError, ModelFormatError
from xcount.model.ensemble import Ensemble
from xcount.problem.problem import Problem
from xcount.question.change import Change, in_direction
from xcount.question.flip import Flip
from xcount.question.gap import ProbabilityGap

MAX_TURNS = 5
"""How many times unconfirmed pairs are replaced by new draws."""


@dataclass(frozen=True, slots=True)
class Side:
    """The library's predictions at one input of a pair; None for those it does not make."""

    margins: tuple[Fraction, ...]
    decision: int | None
    probabilities: tuple[Fraction, ...] | None


def sides_of(ensemble: Ensemble, model: Any, rows: Any, trust_pickle: bool) -> list[Side]:
    """Return what the library predicts at each row, as the model itself takes rows."""
    from xcount.model.loaders.predictions import library_predictions

    found = library_predictions(ensemble, model, rows, trust_pickle=trust_pickle)
    sides = []
    for i, margins in enumerate(found.margins.tolist()):
        decision = None if found.decisions is None else int(found.decisions[i])
        shares = None if found.probabilities is None else found.probabilities[i].tolist()
        probabilities = None if shares is None else tuple(map(Fraction, shares))
        sides.append(Side(tuple(map(Fraction, margins)), decision, probabilities))
    return sides


@dataclass(frozen=True, eq=False)
class Verifier:
    """Asks the library about pairs."""

    problem: Problem
    model: Any
    trust_pickle: bool = False

    def confirmed(self, found: Sequence[Witness]) -> list[Witness]:
        """Return the pairs that the library's own numbers confirm, with its margins.

        Raises:
            ModelFormatError: the library contradicts a pair, and rounding does not explain it.
        """
        from xcount.model.loaders.check import check, rounding_bound

        if not found:
            return []
        ensemble, query = self.problem.ensemble.source, self.problem.query
        points = [point for witness in found for point in (witness.point, witness.other)]
        rows = self.problem.ensemble.columns_of(np.array(points))
        check(ensemble, self.model, rows, trust_pickle=self.trust_pickle)
        sides = sides_of(ensemble, self.model, rows, self.trust_pickle)
        room = rounding_bound(ensemble, rows)
        kept = []
        for i, witness in enumerate(found):
            a, b = sides[2 * i], sides[2 * i + 1]
            before, after = (list(map(float, side.margins)) for side in (a, b))
            slack = float(room[2 * i : 2 * i + 2].sum())
            if query.precision is not None:
                slack += ensemble.n_trees * 10.0**-query.precision
            if not query.change.may_differ(before, after, slack):
                raise ModelFormatError(
                    f"witness {i} does not hold: the library predicts {before} and {after}"
                )
            if _confirms(query.change, ensemble, a, b):
                output = query.change.shown_output(before)
                kept.append(replace(witness, library_margins=(before[output], after[output])))
        return kept

    def drawn(
        self, n: int, draw: Callable[[int, int], list[Witness]], expired: Callable[[], bool]
    ) -> tuple[list[Witness], int]:
        """Return up to n confirmed pairs, and the number of unconfirmed ones drawn.

        Args:
            n: how many are wanted.
            draw: draws so many pairs, new ones in each turn.
            expired: returns whether time has run out.
        """
        kept: list[Witness] = []
        n_dropped = 0
        for turn in range(MAX_TURNS):
            try:
                found = draw(n - len(kept), turn)
            except BudgetError:
                if not turn:
                    raise
                break
            confirmed = self.confirmed(found)
            kept += confirmed
            n_dropped += len(found) - len(confirmed)
            if len(confirmed) == len(found) or expired():
                break
        return kept, n_dropped


def left_out_text(n_dropped: int, n_found: int, precision: int | None) -> str:
    """Return why pairs were left out, and how many."""
    rounds = "" if precision is None else f", and leaves were rounded to {precision} decimals here"
    return (
        f"{n_dropped} of {n_found} pairs are left out, since the library does not confirm them: it "
        "adds floats, which rounds, where XCount adds the leaves exactly, and these pairs are so "
        f"near to a tie that it matters{rounds}"
    )


def _confirms(change: Change, ensemble: Ensemble, before: Side, after: Side) -> bool:
    """Return whether the library's own numbers differ as the question requires."""
    if isinstance(change, Flip):
        return _confirms_flip(change, ensemble, before, after)
    if isinstance(change, ProbabilityGap) and before.probabilities and after.probabilities:
        output, gap = change.output, change.gap
        shares = before.probabilities[output], after.probabilities[output]
        return in_direction(change.direction, lambda a, b: b - a > gap, *shares)
    return change.differs(before.margins, after.margins)


def _confirms_flip(change: Flip, ensemble: Ensemble, before: Side, after: Side) -> bool:
    start, end = (decision_of(change, ensemble, side) for side in (before, after))
    return change.counts(start, end) and is_sure_enough(change, before, start)


def decision_of(change: Flip, ensemble: Ensemble, side: Side) -> int:
    """Return the library's own decision; from its margins if it makes another one, or none."""
    if side.decision is None or not _is_own(change, ensemble):
        return change.decision(side.margins)
    return side.decision


def is_sure_enough(change: Flip, before: Side, start: int) -> bool:
    """Return whether the library is as sure of its decision as the question requires."""
    if change.sureness is None:
        return True
    if before.probabilities is None:
        return change.sureness.holds(before.margins, start)
    is_single = len(before.margins) == 1
    share = before.probabilities[0 if is_single else start]
    return (1 - share if is_single and start == 0 else share) >= change.sureness.least


def _is_own(change: Flip, ensemble: Ensemble) -> bool:
    """Return whether a flip is of the decision that the library itself makes."""
    if change.cutoff is None or ensemble.decides_at is None:
        return change.cutoff is None
    same_tie = change.tie_is_above == ensemble.tie_is_above
    return change.cutoff == Fraction(ensemble.decides_at) and same_tie
