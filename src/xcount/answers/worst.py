"""The largest change from start to finish: model -> question -> search -> result."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any

from xcount.answers.count import class_label, model_info, versions
from xcount.answers.options import (
    ClassOption,
    DirectionOption,
    DistanceOption,
    DomainOptions,
    LimitOptions,
    PrecisionOption,
    SensitiveOption,
    TrustOption,
)
from xcount.answers.result import (
    ANSWERED,
    LIMITED,
    AboutModel,
    AskedDomain,
    Distance,
    Sensitive,
    Versions,
)
from xcount.answers.witness.verified import Verifier
from xcount.answers.witness.witness import Witness
from xcount.answers.witness.witnesses import witness_of_pair
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress, StopReason
from xcount.counters.worst import LargestChange, largest_change
from xcount.errors import MissingExtraError, QueryWarning, UnsupportedModelError
from xcount.model.ensemble import Ensemble
from xcount.problem.problem import Problem
from xcount.question.column_groups import note_single_columns
from xcount.question.grid import Grid
from xcount.question.query import Query
from xcount.support.display import DisplayMixin
from xcount.support.numerals import to_json
from xcount.support.options import option, python_option, takes
from xcount.support.process import peak_memory_bytes
from xcount.support.records import FIRST, Json, from_dict, record, to_dict, whole_or, written

_AT_LEAST_0 = {"minimum": 0}


@dataclass(frozen=True, kw_only=True, eq=False)
class WorstOptions(
    TrustOption,
    LimitOptions,
    DomainOptions,
    ClassOption,
    PrecisionOption,
    DirectionOption,
    DistanceOption,
    SensitiveOption,
):
    """The options of a search for the largest change."""

    probability: bool = field(
        default=False,
        metadata=option(
            "Find the largest change of the predicted probability instead of the margin.",
            "whether to find the largest change of the predicted probability instead of the "
            "margin.",
        ),
    )
    on_progress: Callable[[Progress], None] | None = field(
        default=None,
        metadata=python_option(
            "called a few times a second; a KeyboardInterrupt raised in it ends the search with "
            "the bounds found so far. A notebook shows a bar unless this is given."
        ),
    )

    def query(self, ensemble: Ensemble) -> Query:
        """Return the question about a model; its gap of 0 does not matter."""
        return Query.of(
            ensemble,
            self.sensitive,
            None if self.probability else 0,
            distance=self.distance,
            class_=self.class_,
            precision=self.precision,
            probability_gap=0 if self.probability else None,
            direction=self.direction,
        )


@record("worst", "`xcount worst --json`: the largest change.")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WorstResult(DisplayMixin):
    """The largest change that a change of the sensitive features can make, or bounds of it.

    ``low <= largest possible change <= high`` always holds. ``largest`` is the change of ``pair``,
    the largest one found; it is the largest possible one if ``exact``.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> found = xcount.worst(figure_1(), sensitive="f0")
        >>> found.largest, found.exact
        (85.0, True)
    """

    sensitive: Sensitive
    of: Annotated[
        str,
        Json("What changes: `margin` or `probability`.", {"enum": ["margin", "probability"]}),
    ]
    largest: Annotated[
        float, Json("The largest change found; the largest possible one if `exact`.", _AT_LEAST_0)
    ]
    low: Annotated[float, Json("The largest possible change is at least this.", _AT_LEAST_0)]
    high: Annotated[float, Json("The largest possible change is at most this.", _AT_LEAST_0)]
    exact: Annotated[bool, Json("Whether it is proved that no change is larger than `largest`.")]
    pair: Annotated[
        Witness | None, Json("Two inputs with that change; null if nothing changes the output.")
    ]
    confirmed: Annotated[
        bool | None,
        Json(
            "true if the library itself predicts the change of `pair`; null if it cannot be asked, "
            "or there is no pair."
        ),
    ] = None
    direction: Annotated[str, Json("Which changes count.", {"enum": ["up", "down", "any"]})] = "any"
    class_label: Annotated[
        str | None,
        Json(
            "The name of the class in question; only if the model has several.",
            is_optional=True,
        ),
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
    stop_reason: Annotated[
        StopReason,
        Json("Why the search ended: `complete`, `timeout`, `memory` or `interrupted`."),
    ]
    n_boxes: Annotated[int, Json("Boxes of pairs that the search evaluated.", _AT_LEAST_0)]
    seconds: Annotated[
        float, Json("How long reading the model and the search took.", _AT_LEAST_0)
    ] = 0.0
    peak_memory_bytes: Annotated[int, Json("Peak memory of the process.", _AT_LEAST_0)] = 0
    seed: Annotated[int, Json("Seed of all random choices.", _AT_LEAST_0)] = 0
    model: AboutModel
    versions: Versions = field(default_factory=dict)

    @property
    @written(Json("What this object is.", {"const": "worst"}, after=FIRST))
    def kind(self) -> str:
        return "worst"

    @property
    def exit_status(self) -> int:
        """0 if the largest change is known, 3 if a limit came first."""
        return ANSWERED if self.exact else LIMITED

    def to_dict(self) -> dict[str, Any]:
        """Return what ``xcount worst --json`` prints."""
        return to_dict(self)

    def to_json(self, indent: int | None = None) -> str:
        """Return the same as JSON text."""
        return to_json(self.to_dict(), indent)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> WorstResult:
        """Read back what :meth:`to_dict` wrote."""
        return from_dict(cls, data)


@takes(WorstOptions)
def worst(model: Any, options: WorstOptions) -> WorstResult:
    """Find the largest change that a change of the sensitive features can make.

    Args:
        model: a model file, a live model, or an ensemble.
        options: the question and the limits.

    Raises:
        ModelFormatError: the library contradicts the pair by more than rounding.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import adult_model_path
        >>> found = xcount.worst(adult_model_path(), sensitive="sex", probability=True)
        >>> found.exact, 0.1 < found.largest < 1
        (True, True)
    """
    from xcount.model.loaders import load

    settings = options.settings(on_progress=options.on_progress)
    regions = options.regions()
    ensemble = regions.pulled_back(load(model, trust_pickle=options.trust_pickle))
    settings.check_memory()
    query = options.query(ensemble)
    grid = Grid.of(ensemble, missing=options.missing, domain=regions)
    note_single_columns(grid, [query.sensitive])
    problem = Problem(ensemble, grid, query)
    found = largest_change(problem, settings)
    seconds = time.monotonic() - settings.started  # not counting the library that confirms the pair
    pair, confirmed = _pair(found, problem, settings, model, options.trust_pickle)
    return WorstResult(
        sensitive=tuple(ensemble.features[f].name for f in query.sensitive),
        of="probability" if options.probability else "margin",
        largest=float(found.low),
        low=float(found.low),
        high=float(found.low) if found.exact else _rounded_up(found.high),
        exact=found.exact,
        pair=pair,
        confirmed=confirmed,
        direction=query.change.direction,
        class_label=class_label(ensemble, query),
        distance=query.distance,
        precision=query.precision,
        domain=problem.grid.domain or None,
        stop_reason=found.stop_reason,
        n_boxes=found.n_boxes,
        seconds=seconds,
        peak_memory_bytes=peak_memory_bytes(),
        seed=settings.seed,
        model=model_info(ensemble, problem.grid),
        versions=versions(),
    )


def _pair(
    found: LargestChange, problem: Problem, settings: Settings, model: Any, trust_pickle: bool
) -> tuple[Witness | None, bool | None]:
    """Return the pair as inputs, with the library's own margins if it can be asked."""
    if found.pair is None:
        return None, None
    witness = witness_of_pair(problem, settings, *found.pair)
    try:
        kept = Verifier(problem, model, trust_pickle).confirmed([witness])
    except (UnsupportedModelError, MissingExtraError):
        return witness, None
    if kept:
        return kept[0], True
    warnings.warn(
        "the library does not confirm the pair: it adds floats, which rounds, where XCount adds "
        "the leaves exactly, and this change is smaller than that",
        QueryWarning,
        stacklevel=4,
    )
    return witness, False


def _rounded_up(number: Fraction) -> float:
    """Return a float that is at least the number."""
    rounded = float(number)
    return rounded if Fraction(rounded) >= number else math.nextafter(rounded, math.inf)
