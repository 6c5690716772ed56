"""The share of the sensitive regions under other weights than one for each region.

Volume and marginals are product measures (see :mod:`xcount.question.weighting`), a population is a
mixture of some: the weight of the sensitive regions is the sum over the parts and the masks of
(weight of the part) x (weight of the mask's cells) x (weight of the combinations that make it
sensitive), found exactly (but for the rounding of floats) where the budget allows, and by sampling
under the measure where not. A missing value weighs nothing in a volume.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.answers.measured import REGIONS, Measured
from xcount.answers.result import Verdict, verdict_of
from xcount.counters.bounds import Bounds
from xcount.counters.corners import CornerRun, corner_seconds
from xcount.counters.decisions import MAX_FLAGS, RegionDecider
from xcount.counters.exact import ExactRun
from xcount.counters.known_counts import HARD_STEPS
from xcount.counters.sampling.draws import CellDraws, Drawn
from xcount.counters.sampling.estimator import Estimator, Ground, OutOfTimeError, run_through
from xcount.counters.settings import DEFAULT_TIMEOUT_SECONDS, Settings
from xcount.counters.tally import Progress, StopReason
from xcount.errors import BudgetError, QueryError
from xcount.model.ensemble import Ensemble
from xcount.problem.parts import parts_of
from xcount.problem.problem import Problem
from xcount.question.fitting import fit_population
from xcount.question.grid import Grid
from xcount.question.population import Component, Population
from xcount.question.weighting import Interval, Weighing, Weights, marginal_weights, volume_weights
from xcount.support.numerals import scientific_text

MAX_STEPS, MAX_TASK_STEPS = 120_000_000, 3_000_000
"""Steps of exact weighing in a round: of all subproblems together, and of one in the first."""
MAX_TERMS = 200_000
"""Pairs of masks of all subproblems beyond which only sampling is tried."""
MAX_VISIT_SECONDS = 2.0
"""Up to here, in seconds of one core, all regions are visited."""
EARLY_SECONDS = 0.2
"""What samples that may decide a limit cost before exact weighing, in seconds of one core."""
LEAST_SECONDS = 0.1
"""How long a measure is tried although the time is over."""
_UNITS = 2**60
"""Whole numbers that stand for the weight 1, where an estimate counts in whole numbers."""


def measure(
    problem: Problem, weighing: Weighing, settings: Settings | None = None
) -> dict[str, Measured]:
    """Return the share of the sensitive regions under each measure.

    A time limit is that of all measures together, from when the settings were made. The one that
    the settings judge ends as soon as their limit is decided.

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
    makers: dict[str, Callable[[Problem, Weighing, Settings], Measured]] = {
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
                found[name] = makers[name](problem, weighing, replace(limited, max_share=limit))
            else:
                found[name] = _rows(problem, weighing)
        except BudgetError as error:
            found[name] = _unknown(name, StopReason.MEMORY, error)
        except KeyboardInterrupt:
            rest = weighing.names[len(found) :]
            return found | {name: _unknown(name, StopReason.INTERRUPTED) for name in rest}
    return found


def _unknown(name: str, reason: StopReason, refusal: BudgetError | None = None) -> Measured:
    """Return a measure of which nothing is known, and why it was refused, if it was."""
    details = {} if refusal is None else {"note": str(refusal), "note_code": refusal.code}
    return Measured(name, None, 0.0, 1.0, False, 1.0, reason, details)


def check_data(problem: Problem, weighing: Weighing) -> None:
    """Refuse data and bounds that a measure has no use for, before anything is counted."""
    if "volume" in weighing.names:
        volume_weights(problem.grid, weighing)
    if "marginals" in weighing.names:
        assert weighing.rows is not None
        marginal_weights(problem.grid, weighing.rows)
    if "rows" in weighing.names:
        _placed_rows(problem, weighing)
    if "population" in weighing.names and weighing.population is not None:
        weighing.population.on(problem.grid)


def _placed_rows(
    problem: Problem, weighing: Weighing
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the cells of every row, and the numbers of the rows that lie in a region."""
    assert weighing.rows is not None
    regions = problem.grid.cells_of(weighing.rows)
    placed = np.flatnonzero((regions >= 0).all(axis=1))
    placed = placed[problem.grid.exists(regions[placed])]
    if not len(placed):
        raise QueryError(
            f"no row of {weighing.source} lies in a region: each has a missing value or an unknown "
            "category; --missing cell has cells for missing values"
        )
    return regions, placed


def _rows(problem: Problem, weighing: Weighing) -> Measured:
    """Decide the region of every row."""
    regions, placed = _placed_rows(problem, weighing)
    sensitive = placed[RegionDecider(problem).decide_regions(regions[placed])]
    share = len(sensitive) / len(placed)
    details = {
        "n_rows": len(regions),
        "n_sensitive": len(sensitive),
        "sensitive_rows": sensitive.tolist(),
        "rows_in_no_cell": np.setdiff1d(np.arange(len(regions)), placed).tolist(),
        "source": weighing.source,
    }
    return Measured("rows", share, share, share, True, 1.0, StopReason.COMPLETE, details)


def _volume(problem: Problem, weighing: Weighing, settings: Settings) -> Measured:
    weights, bounds = volume_weights(problem.grid, weighing)
    return _weigh("volume", problem, [Component(1.0, weights)], settings, {"bounds": bounds})


def _marginals(problem: Problem, weighing: Weighing, settings: Settings) -> Measured:
    assert weighing.rows is not None
    weights = marginal_weights(problem.grid, weighing.rows)
    details = {"n_rows": len(weighing.rows), "source": weighing.source}
    return _weigh("marginals", problem, [Component(1.0, weights)], settings, details)


def _population(problem: Problem, weighing: Weighing, settings: Settings) -> Measured:
    population = weighing.population
    assert population is not None, "with_population comes first"
    details = {
        "source": population.source,
        "n_components": population.n_components,
        "realism": asdict(population.realism),
    }
    return _weigh("population", problem, population.on(problem.grid), settings, details)


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
        seed=settings.seed,
        n_threads=settings.n_threads,
        is_over=limited.expired,
        on_progress=show,
    )
    if weighing.population_file is not None:
        population.save(weighing.population_file)
    return replace(weighing, population=population)


def _weigh(
    name: str,
    problem: Problem,
    components: Sequence[Component],
    settings: Settings,
    details: dict[str, Any],
) -> Measured:
    """Weigh by a mixture of product measures, part by part where rules make parts."""
    if problem.n_masks > MAX_FLAGS:
        text = f"{scientific_text(problem.n_masks)} masks are too many to weigh"
        raise BudgetError(text, code="too_many_masks")
    products = [Drawn(c.weight, mask_masses(problem, c.cells), c.cells) for c in components]
    parts = _weighed_parts(problem, products)
    if parts is None:
        return _weigh_products(name, problem, products, settings, details)
    whole = math.fsum(mass for _, _, mass in parts)
    if not whole > 0:
        raise QueryError(f"nothing of the domain has any weight under {name!r}")
    own = replace(settings, delta=settings.delta / len(parts), max_share=None)
    found = [(mass / whole, _unknown(name, StopReason.DECIDED)) for _, _, mass in parts]
    for number, (part, inside, _) in enumerate(parts):
        limited = own.within(1 / (len(parts) - number), LEAST_SECONDS, DEFAULT_TIMEOUT_SECONDS)
        found[number] = (found[number][0], _weigh_products(name, part, inside, limited, {}))
        measured = _together(name, found, settings, details)
        if _is_decided(measured, settings):
            break
    return measured


def _weighed_parts(
    problem: Problem, products: Sequence[Drawn]
) -> list[tuple[Problem, list[Drawn], float]] | None:
    """Return each part with the measures inside it, and its weight; None without rules."""
    parts = parts_of(problem)
    if not parts:
        return None
    found = []
    for part in parts:
        inside = []
        for product in products:
            cells, masses, mass = part.weights(list(product.cell_weights), product.mask_weights)
            if product.weight * mass > 0:
                inside.append(Drawn(product.weight * mass, masses, cells))
        weight = math.fsum(product.weight for product in inside)
        if weight > 0:
            inside = [replace(product, weight=product.weight / weight) for product in inside]
            found.append((part.problem, inside, weight))
    return found


def _together(
    name: str,
    found: Sequence[tuple[float, Measured]],
    settings: Settings,
    details: dict[str, Any],
) -> Measured:
    """Add up what parts weigh."""
    low, high = (
        min(1.0, math.fsum(mass * getattr(measured, end) for mass, measured in found))
        for end in ("low", "high")
    )
    shares = [(mass, m.share) for mass, m in found if m.share is not None]
    share = math.fsum(m * s for m, s in shares) if len(shares) == len(found) else None
    is_exact = all(measured.exact for _, measured in found)
    reasons = [m.stop_reason for _, m in found if m.stop_reason is not StopReason.COMPLETE]
    confidence = 1.0 if is_exact else 1 - settings.delta
    reason = reasons[0] if reasons else StopReason.COMPLETE
    kept = share if share is None else min(1.0, share)
    return Measured(name, kept, low, high, is_exact, confidence, reason, details)


def _is_decided(measured: Measured, settings: Settings) -> bool:
    """Tell whether there is a limit, and what is known is on one side of it."""
    limit = settings.max_share
    return limit is not None and verdict_of(limit, measured.judged) is not Verdict.UNDECIDED


def _weigh_products(
    name: str,
    problem: Problem,
    products: Sequence[Drawn],
    settings: Settings,
    details: dict[str, Any],
) -> Measured:
    """Weigh exactly what the budget allows, estimate the rest; a limit may be decided before."""
    if settings.max_share is not None and not _is_soon_visited(problem, settings, len(products)):
        settings = replace(settings, delta=settings.delta / 2)  # a half for each of two estimates
        early = _estimate_early(name, problem, products, settings, details)
        if early is not None:
            return early
        later = _weigh_all(name, problem, products, settings, details)
        return later if later.exact else replace(later, confidence=1 - 2 * settings.delta)
    return _weigh_all(name, problem, products, settings, details)


def _weigh_all(
    name: str,
    problem: Problem,
    products: Sequence[Drawn],
    settings: Settings,
    details: dict[str, Any],
) -> Measured:
    """Weigh exactly what the budget allows, estimate the rest."""
    certain: list[float] = []
    rest: list[int] = []
    for product in products:
        share, rest = _known_share(problem, product, settings, len(products))
        if rest and len(products) > 1:
            break  # then all of the mixture is sampled: a part of a part would gain little
        certain.append(product.weight * share)
    if len(certain) == len(products) and not rest:
        share = min(1.0, max(0.0, math.fsum(certain)))
        return Measured(name, share, share, share, True, 1.0, StopReason.COMPLETE, details)
    if len(products) > 1:
        certain, rest = [], list(range(problem.n_masks))
    return _estimate(name, problem, products, settings, details, math.fsum(certain), rest)


def _known_share(
    problem: Problem, product: Drawn, settings: Settings, n_products: int
) -> tuple[float, list[int]]:
    """Return the weight of what is known to be sensitive, and the masks that are open."""
    masses, weights = product.mask_weights, list(product.cell_weights)
    masks = np.flatnonzero(masses).tolist()
    solved = _visited_shares(problem, weights, settings, n_products)
    if solved is None:
        solved = _solved_shares(problem, weights, masks, settings, n_products)
    certain = math.fsum(masses[mask] * share for mask, share in solved.items())
    return certain, [mask for mask in masks if mask not in solved]


def _estimate_early(
    name: str,
    problem: Problem,
    products: Sequence[Drawn],
    settings: Settings,
    details: dict[str, Any],
) -> Measured | None:
    """Draw a few samples; return what they say where that decides the limit, or was interrupted."""
    masks = np.flatnonzero(sum(product.mask_weights for product in products)).tolist()
    estimator = _estimator(problem, products, settings, 0.0, masks)
    reason = StopReason.DECIDED
    try:
        slices = estimator.slices(estimator.pilot())
        work = estimator.pilot_seconds
        for cost in slices:
            work += cost
            if work > EARLY_SECONDS:
                slices.close()
    except OutOfTimeError:
        return None
    except KeyboardInterrupt:
        reason = StopReason.INTERRUPTED
    found = _measured(name, estimator, reason, details)
    if reason is StopReason.INTERRUPTED or _is_decided(found, settings):
        return replace(found, confidence=1 - 2 * settings.delta)
    return None


def _estimate(
    name: str,
    problem: Problem,
    products: Sequence[Drawn],
    settings: Settings,
    details: dict[str, Any],
    certain: float,
    rest: list[int],
) -> Measured:
    """Estimate the weight of the open masks: one product's, or all masks of a mixture."""
    estimator = _estimator(problem, products, settings, certain, rest)
    reason = StopReason.TIMEOUT
    try:
        reason = run_through(estimator.slices(estimator.pilot()))
    except OutOfTimeError:
        pass
    except KeyboardInterrupt:
        reason = StopReason.INTERRUPTED
    return _measured(name, estimator, reason, details)


def _estimator(
    problem: Problem,
    products: Sequence[Drawn],
    settings: Settings,
    certain: float,
    rest: list[int],
) -> Estimator:
    """Return who draws from the open masks."""
    masses = [product.mask_weights[rest] for product in products]
    undecided = math.fsum(masses[0]) if len(products) == 1 else 1.0
    drawn = [
        Drawn(product.weight, own / own.sum(), product.cell_weights)
        for product, own in zip(products, masses, strict=True)
    ]
    ground = Ground(
        certain=int(certain * _UNITS),
        undecided=math.ceil(undecided * _UNITS),
        known=Bounds(0, _UNITS),
        n_regions=_UNITS,
    )
    return Estimator(CellDraws(problem, rest, drawn), ground, settings)


def _measured(
    name: str, estimator: Estimator, reason: StopReason, details: dict[str, Any]
) -> Measured:
    """Return what samples say so far."""
    tally = estimator.tally("sample", reason, {})
    low, high = (float(Fraction(n, _UNITS)) for n in (tally.low, tally.high))
    share = None if tally.count is None else float(Fraction(tally.count, _UNITS))
    found = {**details, "samples": tally.details["samples"]}
    return Measured(name, share, low, high, False, tally.confidence, reason, found)


def mask_masses(problem: Problem, weights: Weights) -> NDArray[np.float64]:
    """Return what the cells of each mask weigh together."""
    masses = np.ones(1)
    for feature in problem.query.sensitive:
        masses = np.outer(masses, weights[feature]).ravel()
    return masses


def _is_soon_visited(problem: Problem, settings: Settings, n_products: int) -> bool:
    """Tell whether a visit of all regions, one for each product, takes next to no time."""
    return corner_seconds(problem, settings.within(0.5)) * n_products <= MAX_VISIT_SECONDS


def _visited_shares(
    problem: Problem, weights: Weights, settings: Settings, n_products: int
) -> dict[int, float] | None:
    """Return the weight of what makes each mask sensitive, where all regions are soon visited."""
    if not _is_soon_visited(problem, settings, n_products):
        return None
    try:
        run = CornerRun(problem, settings.within(0.5), weights)
    except BudgetError:
        return None
    run.visit()
    if run.stop_reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    return dict(enumerate(run.shares.tolist())) if run.is_complete else None


def _solved_shares(
    problem: Problem, weights: Weights, masks: list[int], settings: Settings, n_products: int
) -> dict[int, float]:
    """Return the weight of what makes a mask sensitive, for the masks that the budget suffices for.

    Half of the time is left to sampling.
    """
    if problem.form.n_terms > MAX_TERMS:
        return {}
    max_steps = MAX_STEPS // n_products
    run = ExactRun(problem, settings.within(0.5), weights=weights, masks=masks)
    run.solve(())
    run.solve((max(1, min(MAX_TASK_STEPS, max_steps // max(1, run.n_subproblems))),))
    hard = max_steps // run.n_open_subproblems if run.n_open_subproblems else 0
    if hard > HARD_STEPS:  # a few hard ones, in parts
        run.solve((hard,))
    if run.stop_reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    bounds = zip(masks, run.all_mask_bounds(), strict=True)
    return {mask: low for mask, (low, high) in bounds if low == high}
