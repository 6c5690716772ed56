"""Witnesses: pairs of inputs that differ only in the sensitive features and get other outputs.

- *Uniform*: each of the n witnesses is drawn independently and uniformly from all sensitive
  regions: from random regions if hits are frequent; if they are rare, from the solutions themselves
  (a mask by its exact count, then a solution of that mask).
- *Nearest to rows*: for each row, a sensitive region with the fewest features in another cell than
  the row's (of those, with the fewest cells in between). ``proved`` says whether a full search
  showed that there is nothing nearer; else it is the nearest one found.

Exact arithmetic decides whether a pair's outputs differ. The inputs are the shortest decimals that
the library itself puts in the cells.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from xcount.answers.options import (
    GIVE_UP_HELP,
    MOST_WITNESSES,
    LimitOptions,
    QuestionOptions,
    TrustOption,
)
from xcount.answers.witness.points import friendly_point
from xcount.answers.witness.search import NearestSearch, RegionFinder
from xcount.answers.witness.verified import Verifier, left_out_text
from xcount.answers.witness.witness import Contribution, Crossing, Witness, Witnesses
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress
from xcount.errors import BudgetError, QueryError, QueryWarning, UnsupportedModelError
from xcount.model.ensemble import Ensemble, Feature, row_from_0
from xcount.model.inputs import Inputs
from xcount.model.tables import Table, read_table
from xcount.problem.exact_sums import ExactSums
from xcount.problem.problem import Problem
from xcount.question.column_groups import note_single_columns
from xcount.question.grid import Grid
from xcount.question.query import resolve_link
from xcount.support.options import option, python_option, takes
from xcount.support.parse import whole_number

if TYPE_CHECKING:
    from xcount.support.parse import Duration, Size

Item = TypeVar("Item")
_SEEDS_APART = 1_000_003
"""Step between the seeds of turns, large so that they rarely equal a seed that a user chose."""
DRAWS_PER_WITNESS = 4
"""Draws for each witness of an audit; the most realistic ones are kept."""


def drawn_witnesses(
    problem: Problem, n: int, settings: Settings, rows: Inputs | None = None
) -> tuple[Witness, ...]:
    """Return n witnesses of a prepared problem, the most realistic of the draws first.

    With rows: rows that are sensitive themselves, spread over the table; then draws from the
    sensitive regions, the nearest to any row first. Without rows: draws, the most typical first.

    Raises:
        BudgetError: there is no way to draw them within the limits of the settings.
    """
    maker = _Maker(RegionFinder(problem, settings))
    if rows is None:
        drawn = _typical(maker.finder.draw(n * DRAWS_PER_WITNESS))[:n]
        return tuple(maker.made(drawn, maker.witness))
    regions = problem.grid.cells_of(rows)
    placed = np.flatnonzero((regions >= 0).all(axis=1))
    placed = placed[problem.grid.holds(regions[placed])]
    sensitive = placed[maker.finder.decider.decide_regions(regions[placed])]
    spread = np.linspace(0, len(sensitive) - 1, min(n, len(sensitive))).astype(int)
    chosen = sensitive[spread].tolist()
    found = list(maker.made(chosen, lambda row: maker.at_row(row, rows.row(row), regions[row])))
    return (*found, *_drawn_near(maker, n - len(found), placed, regions, bool(found)))


def _drawn_near(
    maker: _Maker,
    n: int,
    placed: NDArray[np.int64],
    regions: NDArray[np.int32],
    may_lack: bool,
) -> list[Witness]:
    """Return n drawn witnesses, nearest to any row first; none if ``may_lack`` and draws fail."""
    try:
        drawn = maker.finder.draw(n * DRAWS_PER_WITNESS) if n else []
    except BudgetError:
        if not may_lack:
            raise
        return []
    near = maker.made(drawn, lambda region: maker.near_rows(region, placed, regions))
    return sorted(near, key=lambda witness: len(witness.moved or ()))[:n]


def _typical(drawn: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Return regions, sorted so that those that share the most cells with others come first."""
    if not drawn:
        return []
    cells = np.stack(list(drawn))
    alike = [int((cells == region).sum()) for region in cells]
    return [drawn[i] for i in sorted(range(len(drawn)), key=lambda i: (-alike[i], i))]


@dataclass(frozen=True, kw_only=True, eq=False)
class WitnessOptions(TrustOption, LimitOptions, QuestionOptions):
    """The options of a search for witnesses."""

    n: int = field(
        default=10,
        metadata=option(
            "Number of pairs; with --near, one for each of the first N rows.",
            "how many; with ``near``, the nearest of each of so many rows, the first in the "
            "domain.",
            flag="-n",
            metavar="N",
            least=1,
            most=MOST_WITNESSES,
        ),
    )
    near: Any = field(
        default=None,
        metadata=option(
            "Find the pair closest to each row of this CSV or Parquet file.",
            "a table of rows to find the nearest witnesses of.",
            metavar="FILE",
        ),
    )
    timeout: Duration | None = field(
        default=None,
        metadata=option(
            f"{GIVE_UP_HELP}: 60s, 5m, 1h.",
            'when to give up: seconds, or ``"60s"``, ``"5m"``; reading the model counts, too.',
            metavar="DURATION",
        ),
    )
    memory: Size | None = field(
        default=None,
        metadata=option(
            "Use at most this much memory: 4GB, 500MB, 1GiB.",
            'the memory that counting may take: bytes, or ``"4GB"``.',
            metavar="SIZE",
        ),
    )
    verify: bool = field(
        default=False,
        metadata=option(
            "Check every pair by predicting it with the library itself.",
            "predict them with the library itself, and leave out those that it does not confirm "
            "by its own decisions, probabilities or margins (ties within its rounding; a warning "
            "and ``n_unconfirmed`` say how many).",
        ),
    )
    on_progress: Callable[[Progress], None] | None = field(
        default=None,
        metadata=python_option(
            "called a few times a second; what it raises ends the search. A notebook shows a bar "
            "unless this is given."
        ),
    )


@takes(WitnessOptions)
def witnesses(model: Any, options: WitnessOptions) -> Witnesses:
    """Return n witnesses; none if it is proved that there are none.

    Args:
        model: a model file, a live model, or an ensemble.
        options: the question, the number of witnesses, and the rows that they should be near.

    Raises:
        BudgetError: the sensitive regions are too rare to draw and too hard to list, or time ran
            out.
        ModelFormatError: the library contradicts a witness by more than rounding.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> found = xcount.witnesses(figure_1(), sensitive="f0", gap=80, n=1)[0]
        >>> abs(found.change), found.crossed[0].guards
        (85.0, (3.0,))
    """
    from xcount.model.loaders import load

    options.check_change()
    n = whole_number(options.n, "number of witnesses")
    if n < 1:
        raise QueryError(f"the number of witnesses must be at least 1, not {n}")
    settings = options.settings(on_progress=options.on_progress)
    regions = options.regions()
    ensemble = regions.pulled_back(load(model, trust_pickle=options.trust_pickle))
    settings.check_memory()
    query = options.query(ensemble)
    table = None
    if options.near is not None:
        reading = settings.within(0.5)
        table = read_table(
            options.near, ensemble, is_over=reading.expired, n_threads=settings.n_threads
        )
    lacking = () if table is None else table.missing_in(ensemble)
    grid = Grid.of(ensemble, missing=options.missing, missing_in=lacking, domain=regions)
    note_single_columns(grid, [query.sensitive])
    problem = Problem(ensemble, grid, query)
    maker = _Maker(RegionFinder(problem, settings))
    verifier = Verifier(problem, model, options.trust_pickle) if options.verify else None
    found, n_dropped = maker.asked(n, table, verifier)
    if n_dropped:
        text = left_out_text(n_dropped, n_dropped + len(found), query.precision)
        warnings.warn(text, QueryWarning, stacklevel=3)
    return Witnesses.within(regions, found, ensemble.feature_names, n_dropped)


@dataclass(frozen=True, eq=False)
class _Maker:
    """Makes witnesses of sensitive regions."""

    finder: RegionFinder

    @property
    def problem(self) -> Problem:
        return self.finder.problem

    @cached_property
    def sums(self) -> ExactSums:
        return ExactSums(self.problem.ensemble, self.problem.query.precision)

    def asked(
        self, n: int, near: Table | None, verifier: Verifier | None
    ) -> tuple[list[Witness], int]:
        """Return n witnesses, drawn or near rows, and how many the library did not confirm."""
        if near is not None:
            found = self.nearest(near.inputs, n)
            kept = found if verifier is None else verifier.confirmed(found)
            return kept, len(found) - len(kept)
        if verifier is None:
            return list(self.witnesses(n)), 0
        return verifier.drawn(n, self._drawn_in_turn, self.finder.settings.expired)

    def _drawn_in_turn(self, n: int, turn: int) -> list[Witness]:
        """Return n drawn witnesses, new ones in each turn."""
        settings = self.finder.settings
        seed = settings.seed + turn * _SEEDS_APART
        finder = replace(self.finder, settings=replace(settings, seed=seed))
        return list(replace(self, finder=finder).witnesses(n))

    def nearest(self, rows: Inputs, n: int) -> list[Witness]:
        """Return the nearest witness of each of the first n rows in the domain that has one."""
        grid = self.problem.grid
        regions = grid.cells_of(rows)
        found = []
        for index in self._placed(rows, regions, n):
            nearest, proved = NearestSearch(self.finder, regions[index]).run()
            if nearest is not None:
                witness = self.witness(nearest, keep=rows.row(index))
                both = zip(grid.axes, regions[index], nearest, strict=True)
                moved = tuple(axis.feature.name for axis, a, b in both if a != b)
                found.append(replace(witness, row=index, moved=moved, proved=proved))
        return found

    def _placed(self, rows: Inputs, regions: NDArray[np.int32], n: int) -> list[int]:
        """Return the numbers of the first n rows; in a domain, of those that lie in it."""
        if self.problem.grid.domain:
            inside = np.flatnonzero((regions >= 0).all(axis=1))
            found: list[int] = inside[self.problem.grid.holds(regions[inside])].tolist()
            if not found:
                raise QueryError(f"all {len(rows):,} rows to look near are outside the domain")
            return found[:n]
        for index in np.flatnonzero((regions[:n] < 0).any(axis=1)).tolist():
            place = int(np.argmin(regions[index]))
            name, value = self.problem.ensemble.features[place].name, float(rows.row(index)[place])
            is_what = "is missing" if math.isnan(value) else f"= {value:g}"
            raise QueryError(
                f"{row_from_0(index)}: no cell holds {name} {is_what}; --missing cell has cells "
                "for missing values"
            )
        return list(range(min(n, len(rows))))

    def at_row(self, index: int, row: NDArray[np.float64], region: NDArray[np.int64]) -> Witness:
        """Return the witness of a row that is sensitive itself."""
        return replace(self.witness(region, keep=row), row=index, moved=(), proved=True)

    def near_rows(
        self, region: NDArray[np.int64], placed: NDArray[np.int64], regions: NDArray[np.int32]
    ) -> Witness:
        """Return a drawn witness, with the row that it shares the most cells with, if any."""
        witness = self.witness(region)
        if not len(placed):
            return witness
        row = int(placed[np.argmax((regions[placed] == region).sum(axis=1))])
        names = self.problem.ensemble.feature_names
        moved = [n for n, a, b in zip(names, regions[row], region, strict=True) if a != b]
        return replace(witness, row=row, moved=tuple(moved), proved=False)

    def witnesses(self, n: int) -> Iterator[Witness]:
        """Yield witnesses of random regions: n, or fewer if time runs out."""
        yield from self.made(self.finder.draw(n), self.witness)

    def made(self, items: Iterable[Item], make: Callable[[Item], Witness]) -> Iterator[Witness]:
        """Yield a witness of each item, or of the first ones if time runs out."""
        for number, item in enumerate(items):
            if number and self.finder.settings.expired():
                return
            yield make(item)

    def witness(
        self, region: NDArray[np.int64], keep: NDArray[np.float64] | None = None
    ) -> Witness:
        """Choose the other side (nearest, then the largest change), and describe the pair.

        If there are many masks, the other side is one of the nearest.
        """
        problem, grid = self.problem, self.problem.grid
        point = friendly_point(grid, region.tolist(), keep)
        regions = self._neighbours(region)
        steps = [self._distance(region, other) for other in regions]
        points = np.stack([friendly_point(grid, r.tolist(), point) for r in regions])
        here, *there = self.sums.at(np.concatenate([point[np.newaxis], points]))
        change = problem.query.change
        shown = change.shown_output(here)
        index = min(
            (i for i in range(len(regions)) if change.differs(here, there[i])),
            key=lambda i: (steps[i], -abs(there[i][shown] - here[shown])),
        )
        return self.described(region, regions[index], point)

    def described(
        self, region: NDArray[np.int64], other: NDArray[np.int64], point: NDArray[np.float64]
    ) -> Witness:
        """Describe a pair of regions; ``point`` is an input in the first."""
        problem, grid = self.problem, self.problem.grid
        other_point = friendly_point(grid, other.tolist(), point)
        sides = self.sums.at(np.stack([point, other_point]))
        shown = problem.query.change.shown_output(sides[0])
        decisions = [_decision_text(side, problem) for side in sides]
        probabilities = [self._probability(side, shown) for side in sides]
        along = [exchange.feature for exchange in grid.allowed.along]
        moving = (*problem.query.sensitive, *along)
        cells = [(f, int(region[f]), int(other[f])) for f in moving]
        return Witness(
            features=problem.ensemble.feature_names,
            point=tuple(point.tolist()),
            other=tuple(other_point.tolist()),
            margin=_as_float(sides[0][shown]),
            other_margin=_as_float(sides[1][shown]),
            change=_as_float(sides[1][shown] - sides[0][shown]),
            distance=self._distance(region, other),
            crossed=tuple(_crossing(grid, f, a, b) for f, a, b in cells if a != b),
            trees=self._contributions(point, other_point),
            class_label=_shown_class(problem.ensemble, shown),
            decision=decisions[0],
            other_decision=decisions[1],
            probability=probabilities[0],
            other_probability=probabilities[1],
            labels=labels_of(problem.ensemble.features, point),
            other_labels=labels_of(problem.ensemble.features, other_point),
        )

    def _probability(self, margins: Sequence[Fraction], shown: int) -> float | None:
        """Return the probability in question, else that of the shown output, if there is one."""
        asked = self.problem.query.change.probability(margins)
        if asked is not None:
            return asked
        try:
            return resolve_link(self.problem.ensemble).value(margins, shown)
        except QueryError:
            return None

    def _neighbours(self, region: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return the neighbours that it may change to, or one if they are many."""
        problem, finder = self.problem, self.finder
        if finder.decider.searches:
            other = region.copy()
            found = finder.decider.search.partner(
                region.astype(np.int32), finder.settings.search_seconds()
            )
            other[list(problem.query.sensitive)] = found
            return [other]
        mask = int(finder.decider.masks_of(region[np.newaxis])[0])
        start = problem.grid.allowed.moved(region[np.newaxis])[0]
        reached = [finder.with_mask(start, other) for other in problem.masks.neighbours(mask)]
        allowed = problem.grid.may_become(region, np.stack(reached))
        return [other for other, may_end in zip(reached, allowed, strict=True) if may_end]

    def _distance(self, region: NDArray[np.int64], other: NDArray[np.int64]) -> int:
        axes = self.problem.grid.axes
        return sum(
            axes[f].distance(int(region[f]), int(other[f])) for f in self.problem.query.sensitive
        )

    def _contributions(
        self, point: NDArray[np.float64], other: NDArray[np.float64]
    ) -> tuple[Contribution, ...]:
        before, after = self.sums.leaves(np.stack([point, other]))
        change, trees = self.problem.query.change, self.problem.ensemble.trees
        found = [
            Contribution(i, trees[i].output, _as_float(b - a))
            for i, (a, b) in enumerate(zip(before, after, strict=True))
            if a != b and change.concerns(trees[i].output)
        ]
        return tuple(sorted(found, key=lambda c: (-abs(c.change), c.tree)))


def witness_of_pair(
    problem: Problem, settings: Settings, region: NDArray[np.int64], other: NDArray[np.int64]
) -> Witness:
    """Return the witness of a given pair of regions."""
    point = friendly_point(problem.grid, region.tolist())
    return _Maker(RegionFinder(problem, settings)).described(region, other, point)


def _as_float(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        raise UnsupportedModelError(
            "the leaves are so large that a margin, or a change of it, is more than the largest "
            "float, 1.8e308: there is a witness, but it cannot be shown"
        ) from None


def _crossing(grid: Grid, feature: int, before: int, after: int) -> Crossing:
    axis = grid.axes[feature]
    ranges = axis.cell_range(before), axis.cell_range(after)
    return Crossing(axis.feature.name, *ranges, axis.guards_between(before, after))


def labels_of(features: Sequence[Feature], point: NDArray[np.float64]) -> dict[str, str]:
    """Return the names of the categories in an input, if they have names."""
    return {
        feature.name: feature.labels[feature.categories.index(int(value))]
        for feature, value in zip(features, point.tolist(), strict=True)
        if feature.labels is not None
        and feature.categories is not None
        and not math.isnan(value)
        and int(value) in feature.categories
    }


def _decision_text(sums: list[Any], problem: Problem) -> str | None:
    chosen = problem.query.change.decision(sums)
    if chosen is None:
        return None
    labels = problem.ensemble.class_labels
    if labels and len(labels) == max(2, len(sums)):
        return labels[chosen]
    if len(sums) == 1:
        return "above" if chosen else "not above"
    return str(chosen)


def _shown_class(ensemble: Ensemble, output: int) -> str | None:
    """Return the name of the class whose margin is shown, if there are several."""
    if ensemble.n_outputs < 2:
        return None
    return ensemble.class_labels[output] if ensemble.class_labels else str(output)
