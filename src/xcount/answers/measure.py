"""What a region weighs: the same sensitive regions, measured in other ways than one by one.

- ``regions``: every region weighs the same. That is the count itself.
- ``volume``: inputs uniform over a box; a numeric cell weighs its length within the feature's
  bounds (given, or the least and the largest value in the data), categories weigh the same.
- ``marginals``: a cell weighs the fraction of the data's rows in it; features are independent.
- ``rows``: every row of the data weighs the same; a row is sensitive if its region is.

Volume and marginals are product measures: the weight of the sensitive regions is the sum over the
masks of (weight of the mask's cells) x (weight of the combinations that make it sensitive), found
exactly (but for the rounding of floats) where the budget allows, and by sampling under the measure
where not. A missing value weighs nothing in a volume.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount import _core
from xcount.counters.base import Settings
from xcount.counters.sampling.decisions import MAX_FLAGS, RegionDecider
from xcount.counters.sampling.draws import region_draws
from xcount.counters.sampling.estimator import Bounds, Estimator, Ground
from xcount.counters.solutions import weighted_shares
from xcount.counters.tally import StopReason
from xcount.errors import BudgetError, QueryError
from xcount.model.ensemble import Ensemble
from xcount.model.tables import read_table
from xcount.problem.flip_encoding import FlipEncoding
from xcount.problem.problem import Problem
from xcount.question.grid import Axis, Grid
from xcount.question.query import resolve_feature
from xcount.support.numerals import scientific_text

MEASURES = ("regions", "volume", "marginals", "rows")

Weights = list[NDArray[np.float64]]
"""For each feature, what its cells weigh; with sum 1."""

Interval = tuple[float, float]

MAX_STEPS, MAX_TASK_STEPS = 60_000_000, 3_000_000
"""Steps of exact weighing, of all subproblems together and of one."""
MAX_TERMS = 200_000
"""Pairs of masks of all subproblems beyond which only sampling is tried."""
WEIGHED = ("volume", "marginals")
"""Measures that take time; rows are decided one by one."""
DEFAULT_SECONDS = 60.0
"""How long a measure may be sampled where no limit is given."""
LEAST_SECONDS = 0.1
"""How long a measure is tried although the time is over."""
_UNITS = 2**60
"""Whole numbers that stand for the weight 1, where an estimate counts in whole numbers."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The weight of the sensitive regions, as a share of the whole.

    ``low <= share <= high`` holds with probability at least ``confidence``; ``details`` has what
    belongs to one measure alone, such as the numbers of the sensitive rows.
    """

    name: str
    share: float
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


@dataclass(frozen=True, eq=False)
class Weighing:
    """Which measures are asked for, and the data and bounds they need.

    Attributes:
        names: the measures, without ``regions``.
        rows: inputs, one column per feature; None without data.
        source: where the rows come from.
        bounds: for each feature its least and largest value in a volume, where given.
    """

    names: tuple[str, ...]
    rows: NDArray[np.float64] | None = None
    source: str = ""
    bounds: tuple[Interval | None, ...] = ()

    @classmethod
    def of(
        cls,
        ensemble: Ensemble,
        measures: str | Iterable[str],
        data: Any = None,
        bounds: Mapping[str, Interval] | str | None = None,
    ) -> Weighing:
        """Validate what the user asks for.

        Args:
            ensemble: the model.
            measures: names of measures; text may list several with commas.
            data: a table, in any form that :func:`xcount.model.tables.read_table` takes.
            bounds: per feature (least, largest), or text such as ``age=18:90,income=0:1e6``.
        """
        words = [measures] if isinstance(measures, str) else list(measures)
        names = tuple(dict.fromkeys(w.strip() for word in words for w in word.split(",")))
        for name in names:
            if name not in MEASURES:
                raise QueryError(f"unknown measure {name!r}; measures are {', '.join(MEASURES)}")
        for name in ("marginals", "rows"):
            if name in names and data is None:
                raise QueryError(f"the measure {name!r} needs data; give --data FILE")
        table = None if data is None else read_table(data, ensemble)
        return cls(
            tuple(name for name in names if name != "regions"),
            None if table is None else table.rows,
            "" if table is None else table.source,
            _resolved_bounds(ensemble, bounds),
        )

    @property
    def n_weighed(self) -> int:
        """How many of the measures take time."""
        return sum(name in WEIGHED for name in self.names)

    @property
    def fingerprint(self) -> str:
        """A hash of all that the shares depend on."""
        digest = hashlib.sha256(repr((self.names, self.bounds)).encode())
        if self.rows is not None:
            digest.update(np.ascontiguousarray(self.rows).tobytes())
        return digest.hexdigest()


def measure(
    problem: Problem, weighing: Weighing, settings: Settings | None = None
) -> dict[str, Measured]:
    """Return the share of the sensitive regions under each measure.

    A time limit is that of all measures together, from when the settings were made.

    Example:
        >>> from xcount.model.examples import figure_1
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
    }
    found, n_open = {}, weighing.n_weighed
    for name in weighing.names:
        try:
            if name in makers:
                left = chosen.seconds_left()
                seconds = DEFAULT_SECONDS if left is None else max(LEAST_SECONDS, left / n_open)
                n_open -= 1
                limited = replace(chosen, max_share=None, timeout_seconds=seconds)
                limited = replace(limited, started=time.monotonic())
                found[name] = makers[name](problem, weighing, limited)
            else:
                found[name] = _rows(problem, weighing)
        except BudgetError as error:
            found[name] = _unknown(name, StopReason.MEMORY, str(error))
        except KeyboardInterrupt:
            rest = weighing.names[len(found) :]
            return found | {name: _unknown(name, StopReason.INTERRUPTED) for name in rest}
    return found


def _unknown(name: str, reason: StopReason, note: str | None = None) -> Measured:
    """Return a measure of which nothing is known."""
    details = {} if note is None else {"note": note}
    return Measured(name, 0.5, 0.0, 1.0, False, 1.0, reason, details)


def check_data(problem: Problem, weighing: Weighing) -> None:
    """Refuse data and bounds that a measure has no use for, before anything is counted."""
    if "volume" in weighing.names:
        volume_weights(problem.grid, weighing)
    if "marginals" in weighing.names:
        assert weighing.rows is not None
        marginal_weights(problem.grid, weighing.rows)
    if "rows" in weighing.names:
        _placed_rows(problem, weighing)


def _placed_rows(
    problem: Problem, weighing: Weighing
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the cells of every row, and the numbers of the rows that lie in a region."""
    assert weighing.rows is not None
    regions = problem.grid.cells_of(weighing.rows)
    placed = np.flatnonzero((regions >= 0).all(axis=1))
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
    return _weigh("volume", problem, weights, settings, {"bounds": bounds})


def _marginals(problem: Problem, weighing: Weighing, settings: Settings) -> Measured:
    assert weighing.rows is not None
    weights = marginal_weights(problem.grid, weighing.rows)
    details = {"n_rows": len(weighing.rows), "source": weighing.source}
    return _weigh("marginals", problem, weights, settings, details)


def volume_weights(grid: Grid, weighing: Weighing) -> tuple[Weights, dict[str, list[float]]]:
    """Return what cells weigh by length, and the bounds of each numeric feature that has guards."""
    weights: Weights = []
    used: dict[str, list[float]] = {}
    for index, axis in enumerate(grid.axes):
        if axis.feature.is_categorical:
            sizes = np.array([len(codes) for codes in axis.classes], dtype=np.float64)
            weights.append(_padded(sizes / sizes.sum(), axis))
        elif len(axis.thresholds) == 0:
            weights.append(_padded(np.ones(1), axis))
        else:
            low, high = _bounds_of(axis, index, weighing)
            used[axis.feature.name] = [low, high]
            weights.append(_padded(_lengths(axis, low, high), axis))
    return weights, used


def _bounds_of(axis: Axis, index: int, weighing: Weighing) -> Interval:
    given = weighing.bounds[index] if weighing.bounds else None
    if given is not None:
        return given
    name = axis.feature.name
    if weighing.rows is None:
        raise QueryError(f"the volume needs bounds of {name!r}; give --bounds or --data")
    values = weighing.rows[:, index]
    values = values[np.isfinite(values)]
    if not len(values):
        raise QueryError(f"the data has no number for {name!r}; give its bounds")
    return float(values.min()), float(values.max())


def _lengths(axis: Axis, low: float, high: float) -> NDArray[np.float64]:
    """Return the part of [low, high] that lies in each cell; a single point lies in one cell."""
    if low == high:
        weights = np.zeros(len(axis.thresholds) + 1)
        weights[axis.cells_of(np.array([low]))[0]] = 1.0
        return weights
    ends = np.clip(np.concatenate([[low], axis.thresholds, [high]]), low, high)
    if math.isinf(high - low):  # half of each length is still a float
        ends, low, high = ends / 2, low / 2, high / 2
    lengths: NDArray[np.float64] = np.diff(ends) / (high - low)
    return lengths


def _padded(weights: NDArray[np.float64], axis: Axis) -> NDArray[np.float64]:
    return np.append(weights, 0.0) if axis.missing_cell is not None else weights


def marginal_weights(grid: Grid, rows: NDArray[np.float64]) -> Weights:
    """Return the fraction of the rows in each cell; values that no cell holds are left out."""
    regions = grid.cells_of(rows)
    weights: Weights = []
    for axis, cells in zip(grid.axes, regions.T, strict=True):
        counts = np.bincount(cells[cells >= 0], minlength=axis.n_cells).astype(np.float64)
        if not counts.sum():
            raise QueryError(f"no row of the data has a value of {axis.feature.name!r} in any cell")
        weights.append(counts / counts.sum())
    return weights


def _weigh(
    name: str, problem: Problem, weights: Weights, settings: Settings, details: dict[str, Any]
) -> Measured:
    """Weigh exactly what the budget allows, estimate the rest."""
    if problem.n_masks > MAX_FLAGS:
        raise BudgetError(f"{scientific_text(problem.n_masks)} masks are too many to weigh")
    masses = mask_masses(problem, weights)
    masks = np.flatnonzero(masses).tolist()
    shares = _mask_shares(problem, weights, masks, settings)
    solved = {mask: share for mask, share in shares.items() if not math.isnan(share)}
    certain = math.fsum(masses[mask] * share for mask, share in solved.items())
    rest = [mask for mask in masks if mask not in solved]
    if not rest:
        share = min(1.0, max(0.0, certain))
        return Measured(name, share, share, share, True, 1.0, StopReason.COMPLETE, details)
    return _estimate(name, problem, weights, settings, details, certain, rest, masses)


def _estimate(
    name: str,
    problem: Problem,
    weights: Weights,
    settings: Settings,
    details: dict[str, Any],
    certain: float,
    rest: list[int],
    masses: NDArray[np.float64],
) -> Measured:
    undecided = math.fsum(masses[rest])
    recipe = partial(region_draws, problem, rest, masses[rest] / undecided, weights)
    ground = Ground(
        certain=int(certain * _UNITS),
        undecided=math.ceil(undecided * _UNITS),
        known=Bounds(0, _UNITS),
        n_regions=_UNITS,
    )
    estimator = Estimator(recipe(), ground, settings, recipe)
    tally = estimator.run(estimator.pilot(), "sample", {})
    share, low, high = (float(Fraction(n, _UNITS)) for n in (tally.count, tally.low, tally.high))
    found = {**details, "samples": tally.details["samples"]}
    return Measured(name, share, low, high, False, tally.confidence, tally.stop_reason, found)


def mask_masses(problem: Problem, weights: Weights) -> NDArray[np.float64]:
    """Return what the cells of each mask weigh together."""
    masses = np.ones(1)
    for feature in problem.query.sensitive:
        masses = np.outer(masses, weights[feature]).ravel()
    return masses


def _mask_shares(
    problem: Problem, weights: Weights, masks: list[int], settings: Settings
) -> dict[int, float]:
    """Return the weight of what makes each mask sensitive; NaN where the budget was too small."""
    if problem.distance is None:
        n_terms = len(masks) * problem.n_masks
    else:
        n_terms = len(masks) * (len(problem.masks.neighbours(problem.n_masks // 2)) + 1)
    if n_terms > MAX_TERMS:
        return {}
    if problem.query.flip:
        return _flip_shares(problem, weights, masks, settings)
    counter = _core.ExactCounter(problem.forest, problem.masks, problem.threshold_limbs)
    pairs = sorted({_pair(m, o) for m in masks for o in problem.masks.neighbours(m)})
    flags = np.asarray(counter.live(pairs, settings.n_threads))
    live = {pair for pair, flag in zip(pairs, flags, strict=True) if flag}
    tasks = {
        mask: [pair for o in problem.masks.neighbours(mask) if (pair := _pair(mask, o)) in live]
        for mask in masks
    }
    asked = [mask for mask, pairs_of in tasks.items() if pairs_of]
    shares = _solve(problem, [(tasks[mask], False) for mask in asked], weights, settings)
    return dict.fromkeys(masks, 0.0) | dict(zip(asked, shares, strict=True))


def _flip_shares(
    problem: Problem, weights: Weights, masks: list[int], settings: Settings
) -> dict[int, float]:
    """Weigh where no decision holds all around a mask (see :mod:`xcount.problem.flip_encoding`)."""
    encoding = FlipEncoding.of(problem)
    everyone = tuple(range(problem.n_masks))
    near = problem.masks.neighbours
    any_distance = problem.distance is None
    around = {m: everyone if any_distance else tuple(sorted([m, *near(m)])) for m in masks}
    keys = list(dict.fromkeys(around.values()))
    decisions = range(len(encoding.decisions))
    tasks = [(encoding.pairs(decision, key), True) for key in keys for decision in decisions]
    switch = np.full(encoding.n_switch, 1 / encoding.n_switch)
    shares = _solve(encoding.problem, tasks, [*weights, switch], settings)
    steady = np.array(shares).reshape(len(keys), len(decisions)).sum(axis=1)
    flips = dict(zip(keys, np.clip(1 - steady, 0, 1).tolist(), strict=True))
    return {mask: flips[around[mask]] for mask in masks}


def _solve(
    problem: Problem,
    tasks: Sequence[tuple[list[tuple[int, int]], bool]],
    weights: Weights,
    settings: Settings,
) -> list[float]:
    if not tasks:
        return []
    return weighted_shares(
        problem,
        tasks,
        weights,
        n_threads=settings.n_threads,
        max_steps=max(1, min(MAX_TASK_STEPS, MAX_STEPS // len(tasks))),
        timeout_seconds=(settings.seconds_left() or 0.0) / 2,
    )


def _pair(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a < b else (b, a)


def _resolved_bounds(
    ensemble: Ensemble, bounds: Mapping[str, Interval] | str | None
) -> tuple[Interval | None, ...]:
    named = _split_bounds(bounds) if isinstance(bounds, str) else dict(bounds or {})
    resolved: list[Interval | None] = [None] * ensemble.n_features
    for name, (low, high) in named.items():
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise QueryError(
                f"bounds of {name!r} must be finite, the lower first, not {low}:{high}"
            )
        resolved[resolve_feature(ensemble, name)] = (float(low), float(high))
    return tuple(resolved)


def _split_bounds(text: str) -> dict[str, Interval]:
    named: dict[str, Interval] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, interval = part.rpartition("=")
        low, _, high = interval.partition(":")
        try:
            named[name.strip()] = (float(low), float(high))
        except ValueError:
            raise QueryError(
                f"bounds are NAME=LOW:HIGH with commas between, not {part!r}"
            ) from None
    return named
