"""The sensitive share of a question under every requested measure.

Mixtures of products are weighed (:mod:`xcount.measures.weigh`); rows are decided one by one.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.counters.decisions import RegionDecider
from xcount.counters.moves import known_moves
from xcount.counters.settings import DEFAULT_TIMEOUT_SECONDS, Settings
from xcount.counters.tally import Progress, StopReason
from xcount.errors import BudgetError, OutOfLimitsError, QueryWarning
from xcount.measures.fitting import fit_population
from xcount.measures.measure import Measure
from xcount.measures.measured import REGIONS, Measured, counted_rows
from xcount.measures.mixture import Mixture
from xcount.measures.population import Population
from xcount.measures.rows import Rows
from xcount.measures.weigh import LEAST_SECONDS, unknown, weigh
from xcount.measures.weighting import MEASURES, WEIGHED, Interval, Weighing
from xcount.model.ensemble import Ensemble
from xcount.model.tables import NOT_READ
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.support.workspace import Slot

_ROWS_AT_ONCE = 8192
"""Rows decided between two checks of the time."""
_NO_TIME = "no time was left to decide it"


def measure(
    problem: Problem,
    weighing: Weighing,
    settings: Settings | None = None,
    proved: float | None = None,
) -> dict[str, Measured]:
    """Return the share of the sensitive regions under each measure.

    All measures share one time limit, which starts when the settings are made. The measure that the
    settings judge stops as soon as their limit is decided. If a count has proved that no region is
    sensitive, or that all are, ``proved`` is 0 or 1: the share under every measure.

    Example:
        >>> from xcount.model.examples import figure_1
        >>> from xcount.question.grid import Grid
        >>> from xcount.question.query import Query
        >>> model = figure_1()
        >>> problem = Problem(model, Grid.of(model), Query.of(model, "f0", 80))
        >>> weighing = Weighing.of(model, "volume", bounds="f0=0:10,f1=0:10")
        >>> round(measure(problem, weighing)["volume"].share, 6)
        0.08
    """
    chosen = settings or Settings()
    found, n_open = {}, weighing.n_weighed
    for name in weighing.names:
        part, limit = 1.0, None
        if name in WEIGHED:
            part, n_open = 1 / n_open, n_open - 1
            limit = chosen.max_share if name == chosen.judge else None
        try:
            limited = chosen.within(part, LEAST_SECONDS, DEFAULT_TIMEOUT_SECONDS).for_one_answer()
            own = measure_of(name, problem.grid, weighing)
            share = _measured(own, problem, replace(limited, max_share=limit), proved)
            cuts = {} if share.confidence == 1 else limited.cuts.details()
            found[name] = replace(share, details={**share.details, **cuts})
        except OutOfLimitsError:
            found[name] = unknown(name, StopReason.TIMEOUT)
        except BudgetError as error:
            found[name] = unknown(name, StopReason.MEMORY, error)
        except KeyboardInterrupt:
            found[name] = unknown(name, StopReason.INTERRUPTED)
        if found[name].stop_reason is StopReason.INTERRUPTED:
            rest = weighing.names[len(found) :]
            return found | {name: unknown(name, StopReason.INTERRUPTED) for name in rest}
    return found


def check_data(problem: Problem, weighing: Weighing) -> None:
    """Reject data and bounds that a measure cannot use, before anything is counted."""
    for name in MEASURES:
        is_fitted = name != "population" or weighing.population is not None
        if name in weighing.names and is_fitted:
            measure_of(name, problem.grid, weighing)


def measure_of(name: str, grid: Grid, weighing: Weighing | None = None) -> Measure:
    """Return a measure on the cells of a grid.

    Args:
        name: which one.
        grid: the cells.
        weighing: the data and bounds that measures other than ``regions`` need.
    """
    if weighing is not None and weighing.start_cells and name in _OF_COLUMNS:
        counts = grid.cell_counts[-len(weighing.start_cells) :]
        own = measure_of(name, columns_of(grid, weighing), replace(weighing, start_cells=()))
        starts = zip(counts, weighing.start_cells, strict=True)
        return own.extended(grid, [np.eye(n)[cell] for n, cell in starts])
    if name == REGIONS:
        return Mixture.uniform(grid)
    assert weighing is not None
    makers: dict[str, Callable[[Grid, Weighing], Measure]] = {
        "volume": Mixture.volume,
        "marginals": Mixture.marginals,
        "rows": Rows.of,
        "population": Mixture.population,
    }
    return makers[name](grid, weighing)


def columns_of(grid: Grid, weighing: Weighing) -> Grid:
    """Return the grid of only the features that are columns of the data, cached."""
    n = len(weighing.start_cells)
    return grid.workspace.once(_COLUMNS, n, lambda: grid.without_last(n)) if n else grid


_OF_COLUMNS = (REGIONS, "volume", "population")
"""Measures that know nothing of features that are no columns of the data."""
_COLUMNS: Slot[int, Grid] = Slot("the grid of the columns of data")


def _measured(
    measure: Measure, problem: Problem, settings: Settings, proved: float | None
) -> Measured:
    """Return the sensitive share under one measure."""
    if isinstance(measure, Mixture):
        return weigh(measure, problem, settings, proved)
    assert isinstance(measure, Rows)
    known = known_moves(problem, measure)
    if known is not None:
        decided = known.exceed(problem, measure.regions)
    else:
        decided = _decided(measure.regions, problem, settings)
    is_over = NOT_READ in measure.left_out
    if len(decided) < len(measure.regions):
        is_over = True
        measure = measure.without(range(len(decided), len(measure.regions)), _NO_TIME)
    sensitive = measure.numbers[decided]
    details = {
        "n_rows": measure.n_rows,
        "outside": measure.n_outside,
        "left_out": measure.n_left_out,
        "left_out_reasons": {reason: len(rows) for reason, rows in measure.left_out.items()},
        "left_out_rows": sorted(row for rows in measure.left_out.values() for row in rows),
        "n_fixed": int(problem.grid.are_fixed(measure.regions, problem.query.sensitive).sum()),
        "n_sensitive": len(sensitive),
        "sensitive_rows": sensitive.tolist(),
        **measure.details,
    }
    share = counted_rows(len(sensitive), measure.n_rows, measure.n_outside, measure.n_left_out)
    reason = StopReason.TIMEOUT if is_over else StopReason.COMPLETE
    return Measured(measure.name, share, reason, details)


def _decided(regions: NDArray[np.int32], problem: Problem, settings: Settings) -> NDArray[np.bool_]:
    """Return whether the regions of rows are sensitive: of the first ones, if time runs out."""
    decider = RegionDecider(problem)
    found = [np.empty(0, dtype=np.bool_)]
    step = min(_ROWS_AT_ONCE, decider.block)
    for start in range(0, len(regions), step):
        if start and settings.expired():
            break
        settings.report(Progress(start / len(regions), 0, problem.n_regions, "rows decided"))
        try:
            some = decider.decide_regions(regions[start : start + step], settings.search_seconds())
        except OutOfLimitsError:
            break
        found.append(some)
    return np.concatenate(found)


def weighing_of(
    ensemble: Ensemble,
    judge: str,
    measures: str | Iterable[str],
    data: Any,
    bounds: Mapping[str, Interval] | str | None,
    population: Population | str | os.PathLike[str] | None,
    settings: Settings,
    groups: str | Iterable[str] = (),
    favourable: str | None = None,
) -> Weighing | None:
    """Return the data of the requested and judged measures; None if there are none.

    A population to fit is still to be fitted (:func:`with_population`). Data is read within the
    limits of the settings. See :meth:`Weighing.of` for the other arguments.
    """
    listed = [measures] if isinstance(measures, str) else list(measures)
    if judge not in (*listed, REGIONS):
        listed.append(judge)
    if not listed:
        return None
    weighing = Weighing.of(
        ensemble,
        listed,
        data,
        bounds,
        population,
        is_over=settings.expired,
        n_threads=settings.n_threads,
        groups=groups,
        favourable=favourable,
    )
    if "population" in weighing.names and (note := weighing.population_note) is not None:
        warnings.warn(note, QueryWarning, stacklevel=4)
    if weighing.n_weighed and (note := weighing.unreadable_note) is not None:
        warnings.warn(note, QueryWarning, stacklevel=4)
    return weighing


def with_population(weighing: Weighing, grid: Grid, settings: Settings) -> Weighing:
    """Return a weighing with its population; if needed, fit one now, in half of the time."""
    if "population" not in weighing.names or weighing.population is not None:
        return weighing
    rows = weighing.readable
    assert rows is not None
    rows = rows.without_last(len(weighing.start_cells))
    limited = settings.within(0.5)

    def show(fraction: float, what: str) -> None:
        settings.report(Progress(fraction, 0, 1, what))

    population = fit_population(
        columns_of(grid, weighing),
        rows,
        source=weighing.source,
        sha256=weighing.sha256,
        seed=settings.seed,
        n_threads=settings.n_threads,
        is_over=limited.expired,
        on_progress=show,
    )
    if weighing.population_file is not None:
        population.save(weighing.population_file)
    return replace(weighing, population=population)
