"""The share of the sensitive regions under other weights than one for each region.

Volume and marginals are product measures (see :mod:`xcount.measures.weighting`), a population is a
mixture of some; :mod:`xcount.measures.weigh` weighs by them. Rows are decided one by one.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from xcount.counters.decisions import RegionDecider
from xcount.counters.settings import DEFAULT_TIMEOUT_SECONDS, Settings
from xcount.counters.tally import Progress, StopReason
from xcount.errors import BudgetError, OutOfLimitsError, QueryWarning
from xcount.measures.fitting import fit_population
from xcount.measures.measured import REGIONS, Measured
from xcount.measures.population import Population
from xcount.measures.products import components_of, placed_rows
from xcount.measures.weigh import LEAST_SECONDS, unknown, weigh
from xcount.measures.weighting import Interval, Weighing, marginal_weights, volume_weights
from xcount.model.ensemble import Ensemble
from xcount.problem.problem import Problem
from xcount.question.grid import Grid


def measure(
    problem: Problem,
    weighing: Weighing,
    settings: Settings | None = None,
    proved: float | None = None,
) -> dict[str, Measured]:
    """Return the share of the sensitive regions under each measure.

    A time limit is that of all measures together, from when the settings were made. The one that
    the settings judge ends as soon as their limit is decided. Where a count has proved that no
    region is sensitive, or that all are, ``proved`` is 0 or 1: the share under every measure.

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
    makers: dict[str, Callable[[Problem, Weighing, Settings, float | None], Measured]] = {
        "volume": _volume,
        "marginals": _marginals,
        "population": _population,
    }
    found, n_open = {}, weighing.n_weighed
    for name in weighing.names:
        try:
            if name in makers:
                limited = chosen.within(1 / n_open, LEAST_SECONDS, DEFAULT_TIMEOUT_SECONDS)
                n_open -= 1
                limit = chosen.max_share if name == chosen.judge else None
                judging = replace(limited, max_share=limit)
                found[name] = makers[name](problem, weighing, judging, proved)
            else:
                found[name] = _rows(problem, weighing, chosen)
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
    """Refuse data and bounds that a measure has no use for, before anything is counted."""
    if "volume" in weighing.names:
        volume_weights(problem.grid, weighing)
    if "marginals" in weighing.names:
        assert weighing.rows is not None
        marginal_weights(problem.grid, weighing.rows)
    if "rows" in weighing.names:
        placed_rows(problem, weighing)
    if "population" in weighing.names and weighing.population is not None:
        weighing.population.on(problem.grid)


def _rows(problem: Problem, weighing: Weighing, settings: Settings) -> Measured:
    """Decide the region of every row."""
    regions, placed = placed_rows(problem, weighing)
    limited = settings.within(1.0, LEAST_SECONDS, DEFAULT_TIMEOUT_SECONDS)
    decided = RegionDecider(problem).decide_regions(regions[placed], limited.search_seconds())
    sensitive = placed[decided]
    share = len(sensitive) / len(placed)
    details = {
        "n_rows": len(regions),
        "n_sensitive": len(sensitive),
        "sensitive_rows": sensitive.tolist(),
        "rows_in_no_cell": np.setdiff1d(np.arange(len(regions)), placed).tolist(),
        "source": weighing.source,
    }
    return Measured("rows", share, share, share, True, 1.0, StopReason.COMPLETE, details)


def _volume(
    problem: Problem, weighing: Weighing, settings: Settings, proved: float | None
) -> Measured:
    details = {"bounds": volume_weights(problem.grid, weighing)[1]}
    components = components_of("volume", problem, weighing)
    return weigh("volume", problem, components, settings, details, proved)


def _marginals(
    problem: Problem, weighing: Weighing, settings: Settings, proved: float | None
) -> Measured:
    assert weighing.rows is not None
    details = {"n_rows": len(weighing.rows), "source": weighing.source}
    components = components_of("marginals", problem, weighing)
    return weigh("marginals", problem, components, settings, details, proved)


def _population(
    problem: Problem, weighing: Weighing, settings: Settings, proved: float | None
) -> Measured:
    population = weighing.population
    assert population is not None, "with_population comes first"
    details = {
        "source": population.source,
        "n_components": population.n_components,
        "realism": asdict(population.realism),
        **({"fitted_to_other_data": weighing.population_note} if weighing.population_note else {}),
    }
    components = components_of("population", problem, weighing)
    return weigh("population", problem, components, settings, details, proved)


def weighing_of(
    ensemble: Ensemble,
    grid: Grid,
    settings: Settings,
    measures: str | Iterable[str],
    data: Any,
    bounds: Mapping[str, Interval] | str | None,
    population: Population | str | os.PathLike[str] | None,
) -> Weighing | None:
    """Return how to weigh as asked: by the measures, and by the one that is judged.

    None where that is the count itself; see :meth:`Weighing.of` for the rest.
    """
    listed = [measures] if isinstance(measures, str) else list(measures)
    if settings.judge not in (*listed, REGIONS):
        listed.append(settings.judge)
    if not listed:
        return None
    weighing = Weighing.of(ensemble, listed, data, bounds, population)
    if "population" in weighing.names and (note := weighing.population_note) is not None:
        warnings.warn(note, QueryWarning, stacklevel=4)
    return with_population(weighing, grid, settings)


def with_population(weighing: Weighing, grid: Grid, settings: Settings) -> Weighing:
    """Return a weighing that has its population: fitted now, in half of the time, if need be."""
    if "population" not in weighing.names or weighing.population is not None:
        return weighing
    assert weighing.rows is not None
    limited = settings.within(0.5)

    def show(fraction: float, what: str) -> None:
        settings.report(Progress(fraction, 0, 1, what))

    population = fit_population(
        grid,
        weighing.rows,
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
