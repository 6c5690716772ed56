"""One person of a table: what they get, and what they would get with other sensitive features."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from xcount.answers.count import READING_PART, class_label, model_info, versions
from xcount.answers.explain.rates import decision_names
from xcount.answers.options import LimitOptions, QuestionOptions, TrustOption
from xcount.answers.result import (
    ANSWERED,
    LIMITED,
    AboutModel,
    AskedDomain,
    Distance,
    Sensitive,
    Versions,
)
from xcount.answers.witness.points import friendly_point
from xcount.answers.witness.verified import Side, decision_of, sides_of
from xcount.answers.witness.witnesses import labels_of
from xcount.counters.tally import Progress
from xcount.errors import MissingExtraError, QueryError, UnsupportedModelError
from xcount.measures.rows import Rows
from xcount.measures.shares import measure
from xcount.measures.weighting import Weighing
from xcount.model.ensemble import Ensemble
from xcount.problem.exact_sums import ExactSums
from xcount.problem.problem import Problem
from xcount.question.change import Change
from xcount.question.change_fields import CHANGE_FIELDS
from xcount.question.column_groups import note_single_columns
from xcount.question.flip import Flip
from xcount.question.grid import Grid
from xcount.question.query import resolve_flip, resolve_link
from xcount.support.display import DisplayMixin
from xcount.support.files import written_to
from xcount.support.numerals import to_json
from xcount.support.options import option, python_option, takes
from xcount.support.parse import whole_number
from xcount.support.records import FIRST, Json, from_dict, record, to_dict, whole_or, written

MAX_CELLS = 2000
"""Most cells of all sensitive features together: each is listed."""
_AT_LEAST_0 = {"minimum": 0}
_SHARE = {"minimum": 0, "maximum": 1}


@dataclass(frozen=True, kw_only=True, eq=False)
class PersonOptions(TrustOption, LimitOptions, QuestionOptions):
    """The options of a question about one person."""

    data: Any = field(
        metadata=option(
            "The table that the person is a row of: CSV or Parquet, with a column per feature.",
            "the table that the person is a row of.",
            metavar="FILE",
            is_required=True,
        ),
    )
    row: int = field(
        metadata=option(
            "The number of the person's row, from 0.",
            "the number of the person's row, from 0.",
            metavar="N",
            least=0,
            is_required=True,
        ),
    )
    on_progress: Callable[[Progress], None] | None = field(
        default=None,
        metadata=python_option(
            "called a few times a second; what it raises ends the search. A notebook shows a bar "
            "unless this is given."
        ),
    )


@record("person_cell", "What a person would get with some values of the sensitive features.")
@dataclass(frozen=True, slots=True)
class PersonCell:
    """What a person would get in one cell of each sensitive feature, all else equal."""

    text: Annotated[str, Json("The cells in words.")]
    point: Annotated[
        Mapping[str, float | None],
        Json("Values of all features in the cells, the person's own if possible; null if missing."),
    ]
    distance: Annotated[int, Json("How far the cells are from the person's own.", _AT_LEAST_0)]
    is_now: Annotated[bool, Json("Whether these are the person's own cells.", name="now")]
    is_allowed: Annotated[
        bool,
        Json(
            "Whether the question allows this change: domain, distance, start and target.",
            name="allowed",
        ),
    ]
    counts: Annotated[
        bool, Json("Whether the output changes as the question says, and the change is allowed.")
    ]
    margin: Annotated[float, Json("The margin: of the class that is shown.")]
    probability: Annotated[
        float | None, Json("The predicted probability; null if the model has none.", _SHARE)
    ]
    decision: Annotated[str | None, Json("The decision; null if the model makes none.")]
    library_margin: Annotated[
        float | None, Json("The library's own margin; null if it cannot be asked.")
    ] = None
    confirmed: Annotated[
        bool | None,
        Json("Whether the library itself makes this decision; null if it cannot be asked."),
    ] = None


@record("person", "`xcount person --json`: one person.")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PersonResult(DisplayMixin):
    """What a person gets, and would get in every cell of the sensitive features.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> people = {"f0": [1, 5], "f1": [0, 2.5]}
        >>> found = xcount.person(figure_1(), data=people, row=0, sensitive="f0", cutoff=0)
        >>> [(cell.text, cell.margin) for cell in found.cells]
        [('f0 < 3', 70.0), ('3 <= f0 < 4', -15.0), ('4 <= f0', -10.0)]
        >>> found.nearest.text
        '3 <= f0 < 4'
    """

    row: Annotated[int, Json("The number of the person's row, from 0.", _AT_LEAST_0)]
    inputs: Annotated[
        Mapping[str, float | None],
        Json("The person's values by feature; a category is its code, a missing value null."),
    ]
    labels: Annotated[
        Mapping[str, str], Json("Names of the person's categories, if known.", is_optional=True)
    ] = field(default_factory=dict)
    sensitive: Sensitive
    change: Annotated[Change, Json("The change.", form=CHANGE_FIELDS)]
    class_label: Annotated[
        str | None,
        Json("The class whose margins are shown; only if the model has several.", is_optional=True),
    ] = None
    distance: Distance
    precision: Annotated[
        int | None,
        Json(
            "Number of decimals to which leaves were rounded, or `exact`.",
            form=whole_or("exact", least=0),
        ),
    ]
    domain: AskedDomain = None
    now: Annotated[PersonCell, Json("What the person gets.")]
    nearest: Annotated[
        PersonCell | None,
        Json(
            "The nearest change that counts; of equally near ones that with the largest change of "
            "the margin. null if none counts: a proof, since all cells were tried."
        ),
    ]
    cells: Annotated[
        tuple[PersonCell, ...],
        Json("Every combination of cells of the sensitive features that exists, in order."),
    ]
    n_same: Annotated[
        int,
        Json(
            "Rows of the table, this one included, in the same cells of all other features: what "
            "this says holds for them, too.",
            {"minimum": 1},
        ),
    ]
    n_sensitive: Annotated[
        int | None,
        Json("Rows for which some change counts; null if time ran out.", _AT_LEAST_0),
    ]
    n_rows: Annotated[int, Json("Rows that were asked about.", {"minimum": 1})]
    seconds: Annotated[float, Json("How long it took.", _AT_LEAST_0)] = 0.0
    model: AboutModel
    versions: Versions = field(default_factory=dict)

    @property
    @written(Json("What this object is.", {"const": "person"}, after=FIRST))
    def kind(self) -> str:
        return "person"

    @property
    @written(
        Json(
            "Whether the library itself makes all these decisions; null if it cannot be asked.",
            after="cells",
        )
    )
    def confirmed(self) -> bool | None:
        found = [cell.confirmed for cell in self.cells]
        return None if None in found else all(found)

    @property
    def exit_status(self) -> int:
        """0 if all is known, 3 if time ran out before the other rows were decided."""
        return LIMITED if self.n_sensitive is None else ANSWERED

    def to_dict(self) -> dict[str, Any]:
        """Return what ``xcount person --json`` prints."""
        return to_dict(self)

    def to_json(self, indent: int | None = None) -> str:
        """Return the same as JSON text."""
        return to_json(self.to_dict(), indent)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PersonResult:
        """Read back what :meth:`to_dict` wrote."""
        return from_dict(cls, data)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report, one self-contained HTML page; with a path, write it there, too."""
        from xcount.report import html_person

        return written_to(path, html_person(self))


@takes(PersonOptions)
def person(model: Any, options: PersonOptions) -> PersonResult:
    """Tell what one person gets, and would get with every other value of the sensitive features.

    Without a gap, the question is whether the decision flips.

    Args:
        model: a model file, a live model, or an ensemble.
        options: the table, the row, and the question.

    Raises:
        ModelFormatError: the library contradicts a margin by more than rounding.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> people = {"f0": [1, 5], "f1": [0, 2.5]}
        >>> found = xcount.person(figure_1(), data=people, row=1, sensitive="f0", cutoff=0)
        >>> found.now.decision, found.nearest, found.n_sensitive, found.n_rows
        ('not above 0', None, 1, 2)
    """
    from xcount.model.loaders import load

    settings = options.settings(on_progress=options.on_progress)
    index = whole_number(options.row, "row")
    asked = options if options.has_gap else replace(options, flip=True)
    regions = options.regions()
    ensemble = regions.pulled_back(load(model, trust_pickle=options.trust_pickle))
    settings.check_memory()
    query = asked.query(ensemble)
    reading = settings.within(READING_PART)
    weighing = Weighing.of(
        ensemble, "rows", options.data, is_over=reading.expired, n_threads=settings.n_threads
    )
    grid = Grid.of(
        ensemble, missing=options.missing, missing_in=weighing.missing_in, domain=regions
    )
    note_single_columns(grid, [query.sensitive])
    problem = Problem(ensemble, grid, query)
    if problem.n_masks > MAX_CELLS:
        raise QueryError(
            f"the sensitive features have {problem.n_masks:,} combinations of cells, too many to "
            f"list (at most {MAX_CELLS:,}); name fewer of them"
        )
    rows = Rows.of(grid, weighing)
    place = _place(rows, index, weighing.source)
    point, region = rows.inputs.row(place), rows.regions[place]
    maker = _CellMaker(problem, point, region)
    cells = maker.confirmed(maker.cells(), model, options.trust_pickle)
    others = np.delete(rows.regions, query.sensitive, axis=1)
    shares = measure(problem, weighing, settings)["rows"].details
    return PersonResult(
        row=index,
        inputs=_named(ensemble, point),
        labels=labels_of(ensemble.features, point),
        sensitive=tuple(ensemble.features[f].name for f in query.sensitive),
        change=query.change,
        class_label=_class_shown(problem, maker.shown),
        distance=query.distance,
        precision=query.precision,
        domain=grid.domain or None,
        now=next(cell for cell in cells if cell.is_now),
        nearest=_nearest(cells),
        cells=cells,
        n_same=int((others == others[place]).all(axis=1).sum()),
        n_sensitive=_n_sensitive(shares, rows),
        n_rows=len(rows.numbers),
        seconds=time.monotonic() - settings.started,
        model=model_info(ensemble, grid),
        versions=versions(),
    )


def _n_sensitive(details: Mapping[str, Any], rows: Rows) -> int | None:
    """Return how many rows are sensitive; None if not all were decided."""
    is_whole = details.get("left_out") == rows.n_left_out
    return details["n_sensitive"] if is_whole else None


def _place(rows: Rows, index: int, source: str) -> int:
    """Return the place of a row among those in regions.

    Raises:
        QueryError: the table has no such row, or it lies in no region.
    """
    if index >= rows.n_rows:
        raise QueryError(
            f"--row (row) is {index}, but {source} has {rows.n_rows:,} rows, counted from 0"
        )
    place = int(np.searchsorted(rows.numbers, index))
    if place < len(rows.numbers) and rows.numbers[place] == index:
        return place
    reasons = [reason for reason, numbers in rows.left_out.items() if index in numbers]
    raise QueryError(
        f"row {index} of {source} is in no region: {' and '.join(reasons) or 'outside the domain'}"
    )


def _named(ensemble: Ensemble, point: NDArray[np.float64]) -> dict[str, float | None]:
    values = (None if math.isnan(value) else value for value in point.tolist())
    return dict(zip(ensemble.feature_names, values, strict=True))


def _class_shown(problem: Problem, output: int) -> str | None:
    labels = problem.ensemble.class_labels
    if problem.ensemble.n_outputs < 2:
        return None
    return class_label(problem.ensemble, problem.query) or (
        labels[output] if labels else str(output)
    )


def _nearest(cells: tuple[PersonCell, ...]) -> PersonCell | None:
    """Return the nearest change that counts, with the largest change of the margin."""
    now = next(cell for cell in cells if cell.is_now)
    found = [cell for cell in cells if cell.counts]
    return min(found, key=lambda c: (c.distance, -abs(c.margin - now.margin)), default=None)


class _CellMaker:
    """Finds what a person would get in every cell of the sensitive features."""

    def __init__(
        self, problem: Problem, point: NDArray[np.float64], region: NDArray[np.int32]
    ) -> None:
        self._problem, self._region = problem, region
        grid, sensitive = problem.grid, list(problem.query.sensitive)
        sizes = [grid.axes[f].n_cells for f in sensitive]
        masks = np.stack(np.unravel_index(np.arange(problem.n_masks), sizes), axis=1)
        regions = np.repeat(grid.allowed.moved(region[np.newaxis]), problem.n_masks, axis=0)
        regions[:, sensitive] = masks
        self._own = int(np.flatnonzero((masks == region[sensitive]).all(axis=1))[0])
        regions[self._own] = region
        exists: NDArray[np.bool_] = regions.min(axis=1) >= 0
        exists[exists] = grid.holds(regions[exists])
        exists[self._own] = True
        self._numbers = np.flatnonzero(exists)
        self._masks, self._regions = masks[exists], regions[exists]
        self._may = grid.may_become(region.astype(np.int64), self._regions)
        self._points = np.stack([friendly_point(grid, r, point) for r in self._regions.tolist()])
        self._points[self._numbers == self._own] = point
        self._sums = ExactSums(problem.ensemble, problem.query.precision).at(self._points)
        self._flip = _own_flip(problem)
        self.shown = problem.query.change.shown_output(self._sums[self._place_of_own])

    @property
    def _place_of_own(self) -> int:
        return int(np.searchsorted(self._numbers, self._own))

    def cells(self) -> tuple[PersonCell, ...]:
        """Return the cells in their order."""
        return tuple(self._cell(place) for place in range(len(self._numbers)))

    def _cell(self, place: int) -> PersonCell:
        problem, change = self._problem, self._problem.query.change
        margins, here = self._sums[place], self._sums[self._place_of_own]
        is_now = place == self._place_of_own
        distance = self._distance(place)
        within = problem.distance is None or distance <= problem.distance
        is_allowed = not is_now and within and bool(self._may[place])
        return PersonCell(
            text=problem.describe(self._masks[place].tolist()),
            point=_named(problem.ensemble, self._points[place]),
            distance=distance,
            is_now=is_now,
            is_allowed=is_allowed,
            counts=is_allowed and change.differs(here, margins),
            margin=float(margins[self.shown]),
            probability=self._probability(margins),
            decision=self._decision(margins),
        )

    def _distance(self, place: int) -> int:
        sensitive, axes = self._problem.query.sensitive, self._problem.grid.axes
        own = self._region[list(sensitive)].tolist()
        both = zip(sensitive, own, self._masks[place].tolist(), strict=True)
        return sum(axes[f].distance(a, b) for f, a, b in both)

    def _probability(self, margins: list[Fraction]) -> float | None:
        asked = self._problem.query.change.probability(margins)
        if asked is not None:
            return asked
        try:
            return resolve_link(self._problem.ensemble).value(margins, self.shown)
        except QueryError:
            return None

    def _decision(self, margins: list[Fraction]) -> str | None:
        if self._flip is None:
            return None
        chosen = self._flip.decision(margins)
        return (
            None if chosen is None else decision_names(self._problem.ensemble, self._flip)[chosen]
        )

    def confirmed(
        self, cells: tuple[PersonCell, ...], model: Any, trust_pickle: bool
    ) -> tuple[PersonCell, ...]:
        """Return the cells with the library's own predictions, if it can be asked.

        Raises:
            ModelFormatError: the library contradicts a margin by more than rounding.
        """
        from xcount.model.loaders.check import check

        ensemble = self._problem.ensemble
        try:
            rows = ensemble.columns_of(self._points)
            check(ensemble.source, model, rows, trust_pickle=trust_pickle)
            sides = sides_of(ensemble.source, model, rows, trust_pickle)
        except (UnsupportedModelError, MissingExtraError):
            return cells
        return tuple(map(self._with_side, cells, sides, self._sums))

    def _with_side(self, cell: PersonCell, side: Side, margins: list[Fraction]) -> PersonCell:
        """Return a cell with the library's margin, and whether it decides the same."""
        is_same = True
        if self._flip is not None:
            own = self._flip.decision(margins)
            is_same = decision_of(self._flip, self._problem.ensemble.source, side) == own
        margin = float(side.margins[self.shown])
        return replace(cell, library_margin=margin, confirmed=is_same)


def _own_flip(problem: Problem) -> Flip | None:
    """Return how decisions are made: as the question says, or else as the model does."""
    change = problem.query.change
    if isinstance(change, Flip):
        return change
    try:
        return resolve_flip(problem.ensemble)
    except QueryError:
        return None
