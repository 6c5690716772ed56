"""The share of the sensitive regions under other weights than one for each region.

Volume and marginals are product measures (see :mod:`xcount.question.weighting`), a population is a
mixture of some: the weight of the sensitive regions is the sum over the parts and the masks of
(weight of the part) x (weight of the mask's cells) x (weight of the combinations that make it
sensitive), found exactly (but for the rounding of floats) where the budget allows, and by sampling
under the measure where not. A missing value weighs nothing in a volume.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from xcount.answers.pieces import components_of, placed_rows, products_of, weighed_parts
from xcount.counters.bounds import Bounds
from xcount.counters.corners import CornerRun, corner_seconds
from xcount.counters.decisions import MAX_FLAGS, RegionDecider
from xcount.counters.exact import ExactRun
from xcount.counters.known_counts import HARD_STEPS
from xcount.counters.sampling.draws import CellDraws, Drawn
from xcount.counters.sampling.estimator import Estimator, Ground
from xcount.counters.settings import DEFAULT_TIMEOUT_SECONDS, Settings
from xcount.counters.tally import Progress, StopReason
from xcount.errors import BudgetError, QueryError
from xcount.problem.problem import Problem
from xcount.question.fitting import fit_population
from xcount.question.grid import Grid
from xcount.question.population import Component
from xcount.question.weighting import Weighing, Weights, marginal_weights, volume_weights
from xcount.support.numerals import scientific_text

MAX_STEPS, MAX_TASK_STEPS = 120_000_000, 3_000_000
"""Steps of exact weighing in a round: of all subproblems together, and of one in the first."""
MAX_TERMS = 200_000
"""Pairs of masks of all subproblems beyond which only sampling is tried."""
MAX_VISIT_SECONDS = 2.0
"""Up to here, in seconds of one core, all regions are visited."""
LEAST_SECONDS = 0.1
"""How long a measure is tried although the time is over."""
_UNITS = 2**60
"""Whole numbers that stand for the weight 1, where an estimate counts in whole numbers."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The weight of the sensitive regions, as a share of the whole.

    It is between ``low`` and ``high`` with probability at least ``confidence``; ``share`` is an
    estimate, None where there is none. ``details`` has what belongs to one measure alone, such as
    the numbers of the sensitive rows.
    """

    name: str
    share: float | None
    low: float
    high: float
    exact: bool
    confidence: float
    stop_reason: StopReason
    details: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return an entry of a result's ``details["measures"]``."""
        return {
            "share": self.share,
            "low": self.low,
            "high": self.high,
            "exact": self.exact,
            "confidence": self.confidence,
            "stop_reason": str(self.stop_reason),
            **self.details,
        }


def measure(
    problem: Problem, weighing: Weighing, settings: Settings | None = None
) -> dict[str, Measured]:
    """Return the share of the sensitive regions under each measure.

    A time limit is that of all measures together, from when the settings were made.

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
                found[name] = makers[name](problem, weighing, replace(limited, max_share=None))
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
        placed_rows(problem, weighing)
    if "population" in weighing.names and weighing.population is not None:
        weighing.population.on(problem.grid)


def _rows(problem: Problem, weighing: Weighing) -> Measured:
    """Decide the region of every row."""
    regions, placed = placed_rows(problem, weighing)
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
    details = {"bounds": volume_weights(problem.grid, weighing)[1]}
    return _weigh("volume", problem, components_of("volume", problem, weighing), settings, details)


def _marginals(problem: Problem, weighing: Weighing, settings: Settings) -> Measured:
    assert weighing.rows is not None
    details = {"n_rows": len(weighing.rows), "source": weighing.source}
    components = components_of("marginals", problem, weighing)
    return _weigh("marginals", problem, components, settings, details)


def _population(problem: Problem, weighing: Weighing, settings: Settings) -> Measured:
    population = weighing.population
    assert population is not None, "with_population comes first"
    details = {
        "source": population.source,
        "n_components": population.n_components,
        "realism": asdict(population.realism),
    }
    components = components_of("population", problem, weighing)
    return _weigh("population", problem, components, settings, details)


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
    products = products_of(problem, components)
    parts = weighed_parts(problem, products)
    if parts is None:
        return _weigh_products(name, problem, products, settings, details)
    whole = math.fsum(mass for _, _, mass in parts)
    if not whole > 0:
        raise QueryError(f"nothing of the domain has any weight under {name!r}")
    own = replace(settings, delta=settings.delta / len(parts))
    found: list[tuple[float, Measured]] = []
    for number, (part, inside, mass) in enumerate(parts):
        limited = own.within(1 / (len(parts) - number), LEAST_SECONDS, DEFAULT_TIMEOUT_SECONDS)
        found.append((mass / whole, _weigh_products(name, part.problem, inside, limited, {})))
    return _together(name, found, settings, details)


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


def _weigh_products(
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
    masses = [product.mask_weights[rest] for product in products]
    undecided = math.fsum(masses[0]) if len(products) == 1 else 1.0
    drawn = [
        Drawn(product.weight, own / own.sum(), product.cell_weights)
        for product, own in zip(products, masses, strict=True)
    ]
    draws = CellDraws(problem, rest, drawn)
    ground = Ground(
        certain=int(certain * _UNITS),
        undecided=math.ceil(undecided * _UNITS),
        known=Bounds(0, _UNITS),
        n_regions=_UNITS,
    )
    estimator = Estimator(draws, ground, settings)
    tally = estimator.run(estimator.pilot(), "sample", {})
    low, high = (float(Fraction(n, _UNITS)) for n in (tally.low, tally.high))
    share = None if tally.count is None else float(Fraction(tally.count, _UNITS))
    found = {**details, "samples": tally.details["samples"]}
    return Measured(name, share, low, high, False, tally.confidence, tally.stop_reason, found)


def _visited_shares(
    problem: Problem, weights: Weights, settings: Settings, n_products: int
) -> dict[int, float] | None:
    """Return the weight of what makes each mask sensitive, where all regions are soon visited."""
    if corner_seconds(problem, settings.within(0.5)) * n_products > MAX_VISIT_SECONDS:
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
