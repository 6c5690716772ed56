"""Rates and shares of sensitive rows by groups of a table, whatever the model knows of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from xcount.answers.explain.decided import Decision
from xcount.answers.explain.rates import decision_of, favourable_rows
from xcount.answers.people.group_table import GroupRow, Groups, GroupTable, impact_ratios
from xcount.counters.settings import Settings
from xcount.errors import BudgetError, QueryError
from xcount.measures.measured import Measured
from xcount.measures.rows import Rows
from xcount.measures.weighting import Weighing
from xcount.model.ensemble import Ensemble
from xcount.model.group_columns import UNKNOWN, GroupColumn
from xcount.problem.problem import Problem
from xcount.question.change import Change
from xcount.question.flip import Flip
from xcount.question.query import resolve_flip

Flags = NDArray[np.bool_]
Codes = NDArray[np.int64]


def compared_decision(
    ensemble: Ensemble, change: Change, favourable: str | None
) -> Decision | None:
    """Return the decision whose rates are compared; None if the model makes none.

    Raises:
        QueryError: it is unclear which decision is the favourable one.
    """
    if not isinstance(change, Flip) and favourable is None:
        try:
            resolve_flip(ensemble)
        except QueryError:
            return None
    return decision_of(ensemble, change, favourable)


def groups_of_rows(
    problem: Problem, measured: Mapping[str, Measured], weighing: Weighing, settings: Settings
) -> Groups | None:
    """Return how the groups of the rows fare; None if no groups were asked for.

    Args:
        problem: the question.
        measured: the shares by measure, of which rows are one.
        weighing: the rows, and the columns of their groups.
        settings: the limits of the count.
    """
    grouping, share = weighing.grouping, measured.get("rows")
    if grouping is None or share is None:
        return None
    rows = Rows.of(problem.grid, weighing)
    decision = None
    if problem.starts is None or isinstance(problem.query.change, Flip):
        decision = compared_decision(problem.ensemble, problem.query.change, grouping.favourable)
    favourable = None
    if decision is not None:
        try:
            favourable = favourable_rows(problem, rows, decision, settings)
        except BudgetError:  # no time or memory is left: the rates are not known
            favourable = None
    counter = _Counter(favourable, _sensitive(rows, share))
    columns = [column.codes[rows.numbers] for column in grouping.columns]
    singles = list(zip(([c] for c in grouping.columns), ([c] for c in columns), strict=True))
    together = [(list(grouping.columns), columns)] if len(columns) > 1 else []
    return Groups(
        favourable=None if decision is None else decision.label,
        is_assumed=decision is not None and decision.is_assumed,
        everyone=counter.row(np.ones(len(rows.numbers), dtype=np.bool_)),
        n_outside=rows.n_outside,
        n_left_out=rows.n_left_out,
        tables=tuple(counter.table(own, codes) for own, codes in [*singles, *together]),
    )


def _sensitive(rows: Rows, share: Measured) -> Flags | None:
    """Return which rows are sensitive; None if that is not known of all."""
    if "sensitive_rows" not in share.details or share.details["left_out"] != rows.n_left_out:
        return None
    return np.isin(rows.numbers, np.asarray(share.details["sensitive_rows"], dtype=np.int64))


class _Counter:
    """Counts the favourable decisions and the sensitive rows of groups."""

    def __init__(self, favourable: Flags | None, sensitive: Flags | None) -> None:
        self._favourable, self._sensitive = favourable, sensitive

    def row(self, is_in: Flags) -> GroupRow:
        """Return the numbers of some rows together."""
        (found,) = self._rows([()], np.zeros(np.count_nonzero(is_in), dtype=np.int64), is_in)
        return found

    def table(self, columns: Sequence[GroupColumn], codes: Sequence[Codes]) -> GroupTable:
        """Return the groups by the combinations of some columns."""
        each = np.stack(codes, axis=1)
        is_known = (each != UNKNOWN).all(axis=1)
        found, places = np.unique(each[is_known], axis=0, return_inverse=True)
        names = [
            tuple(c.values[code] for c, code in zip(columns, own, strict=True))
            for own in found.tolist()
        ]
        groups = self._rows(names, places.ravel(), is_known)
        ratios = impact_ratios([group.rate for group in groups])
        return GroupTable(
            tuple(column.name for column in columns),
            tuple(replace(g, impact_ratio=r) for g, r in zip(groups, ratios, strict=True)),
            self.row(~is_known),
        )

    def _rows(
        self, names: Sequence[tuple[str, ...]], places: Codes, is_in: Flags
    ) -> list[GroupRow]:
        """Return the numbers of groups, given the group of each of the rows that are in one."""

        def counted(flags: Flags | None) -> Sequence[int | None]:
            if flags is None:
                return [None] * len(names)
            counts: list[int] = np.bincount(places[flags[is_in]], minlength=len(names)).tolist()
            return counts

        n_rows = np.bincount(places, minlength=len(names)).tolist()
        columns = (names, n_rows, counted(self._favourable), counted(self._sensitive))
        return [GroupRow(*each) for each in zip(*columns, strict=True)]
