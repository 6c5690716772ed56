"""The affected rows: what they get, the best and the worst they could get, and by which change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.answers.explain.decided import Decision
from xcount.answers.explain.groups import value_text
from xcount.answers.people.affected_table import AffectedTable, Columns
from xcount.answers.people.outcomes import OutcomeFinder, Outcomes, Outlook
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress
from xcount.errors import BudgetError
from xcount.measures.measured import Measured
from xcount.measures.rows import Rows
from xcount.measures.weighting import Weighing
from xcount.model.ensemble import Ensemble
from xcount.model.inputs import Column
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query

Texts = NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class AffectedRows:
    """The sensitive rows of one count, and how to find what they could get.

    Attributes:
        ensemble: the model.
        grid: the cells of its features.
        query: the question.
        numbers: of these rows in the table, from 0.
        regions: of these rows.
        values: the columns of the sensitive features.
        n_left_out: how many rows have no place, by the reason: they may be sensitive or not.
        favourable: the favourable decision; None if the highest output is the best.
        settings: the limits of the count.
    """

    ensemble: Ensemble
    grid: Grid
    query: Query
    numbers: NDArray[np.int64]
    regions: NDArray[np.int32]
    values: tuple[Column, ...]
    n_left_out: Mapping[str, int] = field(default_factory=dict)
    favourable: Decision | None = None
    settings: Settings = field(default_factory=Settings)

    @classmethod
    def of(
        cls,
        problem: Problem,
        measured: Measured | None,
        weighing: Weighing | None,
        settings: Settings,
        favourable: Decision | None = None,
    ) -> AffectedRows | None:
        """Return the sensitive rows of a count; None if no rows were decided.

        Args:
            problem: the question.
            measured: the share of the sensitive rows.
            weighing: the table.
            settings: the limits of the count.
            favourable: the favourable decision, if one was named.
        """
        if measured is None or weighing is None or "sensitive_rows" not in measured.details:
            return None
        rows = Rows.of(problem.grid, weighing)
        numbers = np.asarray(measured.details["sensitive_rows"], dtype=np.int64)
        places = np.searchsorted(rows.numbers, numbers)
        columns = (rows.inputs.columns[feature] for feature in problem.query.sensitive)
        return cls(
            problem.ensemble,
            problem.grid,
            problem.query,
            numbers,
            rows.regions[places],
            tuple(column.at(places) for column in columns),
            measured.details["left_out_reasons"],
            favourable,
            replace(settings, on_progress=None, companions=None),
        )

    def table(self, settings: Settings | None = None) -> AffectedTable:
        """Return what the rows get and could get, within the limits of other settings, if any."""
        problem = Problem(self.ensemble, self.grid, self.query)
        finder = OutcomeFinder(problem, self.favourable)
        maker = _TableMaker(self, finder)
        try:
            found, reason = maker.looked(settings or Settings())
        except BudgetError as error:  # too many masks
            found, reason = [], str(error)
        return AffectedTable(maker.columns(found), maker.notes(found, reason), self.n_left_out)


class _TableMaker:
    """Makes the table of the affected rows of one count."""

    def __init__(self, rows: AffectedRows, finder: OutcomeFinder) -> None:
        self._rows, self._finder = rows, finder

    def looked(self, settings: Settings) -> tuple[list[Outlook], str | None]:
        """Return the outlooks of the first rows, block by block, and why not of all."""
        found: list[Outlook] = []
        finder, n_rows = self._finder, len(self._rows.numbers)
        for start in range(0, n_rows, finder.block):
            if start and settings.expired():
                return found, "the time was over"
            try:
                settings.report(Progress(1.0, 0, finder.problem.n_regions, "affected rows"))
                found.append(finder.look(self._rows.regions[start : start + finder.block]))
            except KeyboardInterrupt:
                return found, "interrupted"
        return found, None

    def notes(self, found: Sequence[Outlook], reason: str | None) -> tuple[str, ...]:
        """Say of how many rows the outcomes are not known."""
        n_open = len(self._rows.numbers) - sum(len(part.outputs) for part in found)
        if not n_open:
            return ()
        return (f"of {n_open:,} rows what they could get is not known: {reason}",)

    def columns(self, found: Sequence[Outlook]) -> Columns:
        """Return the columns of the table."""
        columns: Columns = {"row": self._rows.numbers, "now": self._own_words()}
        outputs = _joined([part.outputs for part in found])
        labels = self._rows.ensemble.class_labels
        if self._rows.ensemble.n_outputs > 1:
            names = labels or [str(k) for k in range(self._rows.ensemble.n_outputs)]
            columns["class"] = self._padded(_named(names, outputs))
        own = _joined([part.now.masks for part in found])
        for prefix, side in (("", "now"), ("best_", "best"), ("worst_", "worst")):
            parts: list[Outcomes] = [getattr(part, side) for part in found]
            if prefix:
                masks = _joined([part.masks for part in parts])
                columns[f"{prefix}change"] = self._padded(self._change_words(own, masks))
            columns |= self._outcome_columns(prefix, parts)
        return columns

    def _outcome_columns(self, prefix: str, parts: Sequence[Outcomes]) -> Columns:
        found: Columns = {f"{prefix}margin": self._padded(_joined([p.margins for p in parts], 1.0))}
        if self._finder.link is not None:
            shares = [p.probabilities for p in parts if p.probabilities is not None]
            found[f"{prefix}probability"] = self._padded(_joined(shares, 1.0))
        if self._finder.flip is not None:
            decided = _joined([p.decisions for p in parts if p.decisions is not None])
            found[f"{prefix}decision"] = self._padded(_named(self._finder.decision_names, decided))
        return found

    def _padded(self, column: NDArray[Any]) -> NDArray[Any]:
        """Return a column with nothing for the rows that were not looked at."""
        n_open = len(self._rows.numbers) - len(column)
        if not n_open:
            return column
        nothing = np.full(n_open, None if column.dtype == object else np.nan, dtype=column.dtype)
        return np.concatenate([column, nothing])

    def _own_words(self) -> Texts:
        """Return the values of the sensitive features of each row, in words."""
        texts: Texts | None = None
        for feature, column in zip(self._rows.query.sensitive, self._rows.values, strict=True):
            axis = self._rows.grid.axes[feature]
            values, codes = np.unique(column.numbers(), return_inverse=True)
            words = np.array([value_text(axis, value) for value in values.tolist()], dtype=object)
            own = words[codes] if len(words) else np.empty(0, dtype=object)
            texts = own if texts is None else texts + ", " + own
        assert texts is not None
        return texts

    def _change_words(self, own: NDArray[np.int64], masks: NDArray[np.int64]) -> Texts:
        """Return what changes on the way from one mask to another; nothing for no change."""
        n_masks = self._finder.problem.n_masks
        ways, codes = np.unique(own * n_masks + masks, return_inverse=True)
        words = np.empty(len(ways), dtype=object)
        words[:] = [self._way(*divmod(way, n_masks)) for way in ways.tolist()]
        found: Texts = words[codes]
        return found

    def _way(self, before: int, after: int) -> str:
        axes = (self._rows.grid.axes[feature] for feature in self._rows.query.sensitive)
        cells = self._finder.mask_cells[[before, after]].tolist()
        changed = [axis.describe(b) for axis, a, b in zip(axes, *cells, strict=True) if a != b]
        return ", ".join(changed)


def _joined(parts: Sequence[NDArray[Any]], kind: float = 0) -> NDArray[Any]:
    """Return arrays one after the other; no arrays are one of the kind of number given."""
    return np.concatenate(parts) if parts else np.empty(0, dtype=type(kind))


def _named(names: Sequence[str], numbers: NDArray[np.int64]) -> Texts:
    words = np.array([*names, None], dtype=object)[:-1]
    found: Texts = words[numbers]
    return found
