"""Is a model monotone: does raising a feature never lower (or never raise) its output?

Each feature is a question of its own: from how many regions can the output fall by more than the
gap if only this feature rises? 0 is a proof that the output never does.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Annotated, Any, Literal

from xcount.answers.count import READING_PART, model_info, solve, versions
from xcount.answers.options import (
    ClassOption,
    CountingOptions,
    DomainOptions,
    TrustOption,
    missing_in,
)
from xcount.answers.result import (
    AboutModel,
    Verdict,
    Versions,
    judged_together,
    status_of,
)
from xcount.answers.witness.witness import Witness
from xcount.counters.settings import Settings
from xcount.counters.tally import Method, Progress, StopReason
from xcount.errors import BudgetError, QueryError
from xcount.measures.measured import COUNTED_ROWS, Measured, counted_rows
from xcount.measures.weighting import Weighing
from xcount.model.ensemble import Ensemble
from xcount.problem.directed_gap_form import DirectedGapForm
from xcount.problem.problem import Problem
from xcount.question.domain import Domain
from xcount.question.gap import Gap
from xcount.question.grid import Grid, Missing
from xcount.question.query import Query, resolve_features
from xcount.question.share import Limit
from xcount.support.display import DisplayMixin
from xcount.support.files import written_to
from xcount.support.numerals import to_json
from xcount.support.options import option, python_option, takes
from xcount.support.records import Json, record, to_dict

Order = Literal["increasing", "decreasing"]
Names = str | int | Iterable[str | int]
_LEAST = {"minimum": 0}
_SHARE = {"minimum": 0, "maximum": 1}
_OF_ROWS = ("n_rows", "n_sensitive", "n_fixed", "outside", "left_out", "left_out_reasons")


@dataclass(frozen=True, kw_only=True, eq=False)
class MonotoneOptions(TrustOption, CountingOptions, DomainOptions, ClassOption):
    """The options of ``monotone``."""

    increasing: Names = field(
        default=(),
        metadata=option(
            "Features with which the output should never fall: names, fN or indices, separated by "
            "commas.",
            "features with which the output should never fall, by name or index.",
            metavar="NAMES",
            repeated="list",
        ),
    )
    decreasing: Names = field(
        default=(),
        metadata=option(
            "Features with which the output should never rise.",
            "features with which the output should never rise, by name or index.",
            metavar="NAMES",
            repeated="list",
        ),
    )
    all: bool = field(
        default=False,
        metadata=option(
            "Say for every feature with an order which of the two holds, if any.",
            "whether to say for every feature with an order which of the two holds, if any.",
        ),
    )
    gap: object = field(
        default=0,
        metadata=option(
            "Count only changes of the margin by more than G.",
            "how much the margin must change in the wrong direction.",
            metavar="G",
        ),
    )
    max_share: object = field(
        default=0,
        metadata=option(
            "The largest share of regions that may break an order: 0 asks for a proof.",
            "the largest share of regions that may break an order: 0 asks for a proof.",
            metavar="SHARE",
        ),
    )
    data: Any = field(
        default=None,
        metadata=option(
            "CSV or Parquet file with a column per feature: also count the rows that break an "
            "order.",
            "a table: also count its rows that break an order.",
            metavar="FILE",
        ),
    )
    n_witnesses: int = field(
        default=1,
        metadata=option(
            "How many pairs of inputs to show for each broken order.",
            "how many pairs of inputs to find for each broken order.",
            flag="--witnesses",
            metavar="N",
            least=0,
            most=1000,
        ),
    )
    on_progress: Callable[[Progress], None] | None = field(
        default=None, metadata=python_option("called a few times a second.")
    )


@record("monotone_feature", "Whether one feature keeps one order.")
@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureOrder:
    """How many regions break the order of one feature."""

    feature: Annotated[str, Json("The feature that rises.")]
    direction: Annotated[
        str, Json("What the output should be as it rises.", {"enum": ["increasing", "decreasing"]})
    ]
    count: Annotated[
        int | None,
        Json("The number of regions that break the order, or an estimate of it.", _LEAST),
    ]
    low: Annotated[int, Json("At least this many, with probability `confidence`.", _LEAST)]
    high: Annotated[int, Json("At most this many, with probability `confidence`.", _LEAST)]
    exact: Annotated[bool, Json("Whether `count` is exact.")]
    confidence: Annotated[float, Json("1 for guaranteed bounds, otherwise 1 - delta.", _SHARE)]
    share: Annotated[float | None, Json("`count` / `n_regions`.", _SHARE)]
    share_low: Annotated[float, Json("`low` / `n_regions`.", _SHARE)]
    share_high: Annotated[float, Json("`high` / `n_regions`.", _SHARE)]
    n_regions: Annotated[int, Json("The number of regions of the domain.", {"minimum": 1})]
    verdict: Annotated[Verdict, Json("Whether the share is at most `max_share`.")]
    method: Annotated[str, Json("How it was counted.")]
    stop_reason: Annotated[StopReason, Json("Why the count ended.")]
    seconds: Annotated[float, Json("How long it took.", _LEAST)]
    n_rows: Annotated[
        int | None, Json("With `--data`: the number of rows.", _LEAST, is_optional=True)
    ] = None
    n_sensitive: Annotated[
        int | None,
        Json("With `--data`: how many rows break the order.", _LEAST, is_optional=True),
    ] = None
    n_fixed: Annotated[
        int | None,
        Json("With `--data`: how many rows cannot rise.", _LEAST, is_optional=True),
    ] = None
    outside: Annotated[
        int | None,
        Json("With `--data`: how many rows are outside the domain.", _LEAST, is_optional=True),
    ] = None
    left_out: Annotated[
        int | None,
        Json("With `--data`: how many other rows have no place.", _LEAST, is_optional=True),
    ] = None
    left_out_reasons: Annotated[
        Mapping[str, int] | None,
        Json("With `--data`: why, and how many for each reason.", is_optional=True),
    ] = None
    witnesses: Annotated[
        tuple[Witness, ...] | None,
        Json("Pairs of inputs that break the order.", is_optional=True),
    ] = None

    @property
    def holds(self) -> bool | None:
        """Whether no region breaks the order; None if unknown."""
        if self.high == 0 and self.confidence == 1:
            return True
        return False if self.low > 0 else None

    @property
    def rows(self) -> Measured | None:
        """The share of the rows that break the order; None without data."""
        if self.n_rows is None:
            return None
        details = {name: getattr(self, name) for name in _OF_ROWS}
        share = counted_rows(*(details[name] for name in COUNTED_ROWS))
        return Measured("rows", share, details=details)


@record("monotone", "`xcount monotone --json`: which features keep which order.")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MonotoneResult(DisplayMixin):
    """Which features keep which order.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> xcount.monotone(figure_1(), decreasing="f1").verdict
        <Verdict.PASS: 'PASS'>
    """

    results: Annotated[tuple[FeatureOrder, ...], Json("One for each feature and order asked.")]
    verdict: Annotated[
        Verdict | None,
        Json("PASS if all named features pass, FAIL if one fails; null with `--all` only."),
    ]
    holds: Annotated[
        Mapping[str, str] | None,
        Json(
            "With `--all`: which order each feature keeps: `increasing`, `decreasing`, `both`, "
            "`none`, or `unknown` within the limits.",
            is_optional=True,
        ),
    ] = None
    gap: Annotated[float, Json("Changes of the margin up to this one do not count.", _LEAST)]
    max_share: Annotated[float, Json("The largest share allowed.", _SHARE)]
    domain: Annotated[
        Domain | None,
        Json("Which regions exist; only if a domain was given.", is_optional=True),
    ] = None
    seconds: Annotated[float, Json("How long it took.", _LEAST)]
    model: AboutModel
    versions: Versions = field(default_factory=dict)

    @property
    def exit_status(self) -> int:
        """0 answered (and PASS), 1 FAIL, 3 UNDECIDED or stopped by a limit."""
        is_answered = all(r.stop_reason is StopReason.COMPLETE for r in self.results)
        return status_of(self.verdict, is_answered or self.verdict is not None)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON contract of ``xcount monotone --json``."""
        return to_dict(self)

    def to_json(self, indent: int | None = None) -> str:
        """Return the result as one JSON object."""
        return to_json(self.to_dict(), indent)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report, one self-contained HTML page; with a path, write it there, too."""
        from xcount.report import html_monotone

        return written_to(path, html_monotone(self))

    def __repr__(self) -> str:
        found = (f"{r.feature} {r.direction}: {r.count}" for r in self.results)
        return f"MonotoneResult({', '.join(found)})"


@takes(MonotoneOptions)
def monotone(model: Any, options: MonotoneOptions) -> MonotoneResult:
    """Count the regions from which raising a feature changes the output in the wrong direction.

    Args:
        model: a model file, a live model, or an ensemble.
        options: the features, the accuracy, and what else to report.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> found = xcount.monotone(figure_1(), decreasing="f1")
        >>> found.results[0].count, str(found.verdict)
        (0, 'PASS')
    """
    from xcount.model.loaders import load

    started = time.monotonic()
    settings = options.settings(on_progress=options.on_progress)
    limit = Limit.share(options.max_share, "--max-share (max_share)")
    regions = options.regions()
    ensemble = regions.pulled_back(load(model, trust_pickle=options.trust_pickle))
    settings.check_memory()
    asked_gap = Query.of(ensemble, 0, options.gap, class_=options.class_).change
    assert isinstance(asked_gap, Gap)
    weighing = _weighing(ensemble, options, settings)
    grid = _grid(ensemble, options.missing, weighing, regions)
    named = list(_named(ensemble, grid, options))
    others = [asked for asked in _every(grid) if asked not in named] if options.all else []
    asked = [*named, *others]
    results = []
    for number, (feature, order) in enumerate(asked):
        problem = _problem(ensemble, grid, feature, order, options)
        own = settings.within(1 / (len(asked) - number)) if settings.timeout_seconds else settings
        results.append(_found(problem, own, order, options, weighing, limit))
    verdicts = [each.verdict for each in results[: len(named)]]
    return MonotoneResult(
        results=tuple(results),
        verdict=judged_together(verdicts, is_whole=True) if verdicts else None,
        holds=_holding(results) if options.all else None,
        gap=float(asked_gap.gap),
        max_share=float(limit),
        domain=regions or None,
        seconds=time.monotonic() - started,
        model=model_info(ensemble, grid),
        versions=versions(),
    )


def _weighing(ensemble: Ensemble, options: MonotoneOptions, settings: Settings) -> Weighing | None:
    if options.data is None:
        return None
    from xcount.measures.shares import weighing_of

    reading = settings.within(READING_PART)
    return weighing_of(ensemble, "regions", "rows", options.data, None, None, reading)


def _grid(ensemble: Ensemble, missing: Missing, weighing: Weighing | None, regions: Domain) -> Grid:
    return Grid.of(ensemble, missing=missing, missing_in=missing_in(weighing), domain=regions)


def _named(ensemble: Ensemble, grid: Grid, options: MonotoneOptions) -> Iterator[tuple[int, Order]]:
    """Yield the named features, each with its order."""
    orders: tuple[tuple[Order, Names], ...] = (
        ("increasing", options.increasing),
        ("decreasing", options.decreasing),
    )
    n_named = 0
    for order, names in orders:
        if names in ((), [], ""):
            continue
        for feature in resolve_features(ensemble, names):
            if grid.axes[feature].feature.is_categorical:
                name = grid.axes[feature].feature.name
                raise QueryError(f"the categories of {name!r} have no order; name numeric features")
            n_named += 1
            yield feature, order
    if not n_named and not options.all:
        raise QueryError(
            "no feature given; name some with --increasing or --decreasing, or give --all"
        )


def _every(grid: Grid) -> Iterator[tuple[int, Order]]:
    orders: tuple[Order, ...] = ("increasing", "decreasing")
    for feature, axis in enumerate(grid.axes):
        if not axis.feature.is_categorical:
            yield from ((feature, order) for order in orders)


def _problem(
    ensemble: Ensemble, grid: Grid, feature: int, order: Order, options: MonotoneOptions
) -> Problem:
    """Return the question in how many regions a feature that rises breaks its order."""
    direction = "down" if order == "increasing" else "up"
    query = Query.of(
        ensemble, feature, options.gap, class_=options.class_, direction=direction, distance="any"
    )
    rising = replace(grid.allowed, rising=frozenset({feature}))
    return Problem(ensemble, replace(grid, allowed=rising), query)


def _found(
    problem: Problem,
    settings: Settings,
    order: Order,
    options: MonotoneOptions,
    weighing: Weighing | None,
    limit: Limit,
) -> FeatureOrder:
    name = problem.ensemble.features[problem.query.sensitive[0]].name
    started = time.monotonic()
    if weighing is None and options.method == Method.AUTO and _is_proved_by_bounds(problem):
        return FeatureOrder(
            feature=name,
            direction=order,
            count=0,
            low=0,
            high=0,
            exact=True,
            confidence=1.0,
            share=0.0,
            share_low=0.0,
            share_high=0.0,
            n_regions=problem.n_regions,
            verdict=Verdict.PASS,
            method=Method.AUTO,
            stop_reason=StopReason.COMPLETE,
            seconds=time.monotonic() - started,
        )
    result = replace(solve(problem, settings, options.method, weighing), max_share=limit)
    rows = result.measures["rows"].details if "rows" in result.measures else {}
    assert result.verdict is not None
    return FeatureOrder(
        feature=name,
        direction=order,
        count=result.count,
        low=result.low,
        high=result.high,
        exact=result.exact,
        confidence=result.confidence,
        share=result.share,
        share_low=result.share_low,
        share_high=result.share_high,
        n_regions=result.n_regions,
        verdict=result.verdict,
        method=result.method,
        stop_reason=result.stop_reason,
        seconds=time.monotonic() - started,
        **{name: rows.get(name) for name in _OF_ROWS},
        witnesses=_witnesses(problem, settings, options.n_witnesses) if result.low else None,
    )


def _is_proved_by_bounds(problem: Problem) -> bool:
    """Return whether bounds prove that no step to the next cell breaks the order.

    Then no larger step does, either. Trees that are monotone by themselves are proved so.
    """
    grid, query = problem.grid, problem.query
    assert isinstance(query.change, Gap)
    at_all = replace(query, change=replace(query.change, gap=Fraction(0)))
    form = DirectedGapForm(Problem(problem.ensemble, Grid(grid.axes, grid.input_dtype), at_all))
    n_cells = grid.axes[query.sensitive[0]].numbers.n_cells
    steps = [form.pair(cell, cell + 1) for cell in range(n_cells - 1)]
    return not steps or not any(form.space.counter().live(steps, 1, math.inf, None))


def _witnesses(problem: Problem, settings: Settings, n: int) -> tuple[Witness, ...] | None:
    """Return pairs of inputs that break an order, if the time is enough to find some."""
    if not n:
        return None
    from xcount.answers.witness.witnesses import drawn_witnesses

    try:
        return drawn_witnesses(problem, n, settings)
    except BudgetError:
        return None


def _holding(results: list[FeatureOrder]) -> dict[str, str]:
    """Return which order each feature keeps."""
    by_feature: dict[str, dict[str, bool | None]] = {}
    for each in results:
        by_feature.setdefault(each.feature, {})[each.direction] = each.holds
    found: dict[str, str] = {}
    for feature, holds in by_feature.items():
        kept = [order for order, is_kept in holds.items() if is_kept]
        if len(kept) == 2:
            found[feature] = "both"
        elif kept:
            found[feature] = kept[0]
        else:
            found[feature] = "unknown" if None in holds.values() else "none"
    return found
