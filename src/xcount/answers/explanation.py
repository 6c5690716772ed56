"""Explanations of a count: who is affected, in which direction and by how much.

Let V be the output of a region (its margin, or its probability), and V' that of a neighbour: a
region that differs only in the sensitive features, within the distance. Then the output

- can rise by ``up = max(V') - V`` and fall by ``down = V - min(V')``, both at least 0;
- changes by ``size = max(up, down)``; with a direction, only that side counts.

An effect has the shares with ``up > G`` and ``down > G`` at the gap G in question, the mean and the
quantiles of the size, and where the output is highest. A curve is the share with ``size > G``
against G. For a flip, only neighbours with another decision count: the size is that of the change
that flips the decision, and 0 if nothing flips it. Between several classes, a flip to a later class
is up, and the size is half of the change of its lead over the previous winner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Literal

from xcount.question.change import Change
from xcount.question.share import Limit
from xcount.support.display import DisplayMixin
from xcount.support.interval import Interval, interval_fields
from xcount.support.records import Json, object_form, or_none, record

Unit = Literal["margin", "probability"]


@dataclass(frozen=True, slots=True)
class ExplanationRequest:
    """The request for an explanation.

    Attributes:
        changes: changes that differ only in their gaps; one computation serves all of them.
        favourable: the favourable decision, for group rates (see
            :func:`xcount.answers.explain.rates.decision_of`).
        with_people: whether to find places and group rates, too, which takes the most time.
    """

    changes: tuple[Change, ...]
    favourable: str | None = None
    with_people: bool = True


_AT_LEAST_0 = {"minimum": 0}
_SHARE = {"minimum": 0, "maximum": 1}

MeasureName = Annotated[
    str, Json("What regions weigh: `regions` (all the same), or the name of a measure.")
]
UnitName = Annotated[
    str,
    Json("What changes: `margin` or `probability`.", {"enum": ["margin", "probability"]}),
]
IsExact = Annotated[bool, Json("Whether every number is proved and needs no interval.")]
Confidence = Annotated[
    float,
    Json(
        "All intervals of all effects and curves of the explanation hold together with "
        "this probability; 1 if they are guaranteed.",
        _SHARE,
    ),
]
Samples = Annotated[
    int | None, Json("How many random regions were evaluated; null if none.", _AT_LEAST_0)
]


_SHARE_INTERVAL = object_form(
    "share_interval",
    "A share of a measure, with its interval.",
    interval_fields(
        "share",
        "The share, or its estimate from samples: an estimate of 0 proves nothing; "
        "`high` is how large it may be.",
        _SHARE,
    ),
)
_VALUE_INTERVAL = object_form(
    "value_interval",
    "A size of a change, with its interval.",
    interval_fields("value", "The number, or an estimate of it.", _AT_LEAST_0),
)
_RATE_INTERVAL = object_form(
    "rate_interval",
    "A rate of decisions, with its interval.",
    interval_fields("rate", "The rate, or its estimate from samples.", _SHARE),
)
_RATIO_INTERVAL = object_form(
    "ratio_interval",
    "A ratio of two rates, with its interval.",
    interval_fields(
        "value", "The ratio, or an estimate; null if it is 0 over 0.", _SHARE, may_be_none=True
    ),
)


@record("quantile", "A quantile of the size of the change, with its interval.")
@dataclass(frozen=True, slots=True)
class Quantile:
    """The least size that a share of at least ``level`` does not exceed."""

    level: Annotated[float, Json("Which share has at most this size: 0.5 for the median.", _SHARE)]
    size: Annotated[
        Interval,
        Json(
            "The size.",
            form=interval_fields("value", "The size, or an estimate of it.", _AT_LEAST_0),
        ),
    ]


@record("highest_cell", "Cells of the sensitive features in which the output is highest.")
@dataclass(frozen=True, slots=True)
class CellShare:
    """The share of the measure for which some sensitive cells have the highest output.

    All cells are compared with each other, however far apart. Tied cells are all highest; if all
    cells tie, none is.
    """

    cells: Annotated[
        tuple[int, ...],
        Json(
            "One cell per sensitive feature, by number.",
            {"items": {"type": "integer", "minimum": 0}},
        ),
    ]
    text: Annotated[str, Json("The same in words.")]
    share: Annotated[
        Interval,
        Json(
            "The share for which it is highest.",
            form=interval_fields(
                "share", "The share for which it is highest, or its estimate from samples.", _SHARE
            ),
        ),
    ]
    class_label: Annotated[
        str | None,
        Json(
            "For a flip between several classes: the class decided there but not in all cells.",
            is_optional=True,
        ),
    ] = None

    @property
    def label(self) -> str:
        """The cells in words, preceded by the class that wins there."""
        return self.text if self.class_label is None else f"{self.class_label} where {self.text}"


@record("effect", "In which direction and by how much the output changes, under one measure.")
@dataclass(frozen=True, slots=True)
class Effect:
    """Direction and size of the change under one measure."""

    measure: MeasureName
    unit: UnitName
    among: Annotated[
        str,
        Json(
            "What the mean and the quantiles are over: `all`, or for a flip only what is "
            "`sensitive`.",
            {"enum": ["all", "sensitive"]},
        ),
    ]
    up: Annotated[
        Interval,
        Json(
            "The share that can rise by more than the gap, or flip to above (to a later class).",
            form=_SHARE_INTERVAL,
        ),
    ]
    down: Annotated[
        Interval,
        Json(
            "The share that can fall by more than the gap, or flip to below (to an earlier class).",
            form=_SHARE_INTERVAL,
        ),
    ]
    mean: Annotated[
        Interval | None,
        Json(
            "The mean size of the change; null if no region for it was found.",
            form=or_none(_VALUE_INTERVAL),
        ),
    ]
    quantiles: Annotated[tuple[Quantile, ...], Json("Quantiles of the size, ascending.")]
    cells: Annotated[
        tuple[CellShare, ...],
        Json("Where the output is highest, the largest share first; only some if there are many."),
    ]
    exact: IsExact
    confidence: Confidence
    n_samples: Samples = None


@record("curve_point", "A point of a curve.")
@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The share that changes by more than a gap."""

    gap: Annotated[float, Json("The gap.", _AT_LEAST_0)]
    gap_text: Annotated[str, Json("The same as an exact decimal.")]
    share: Annotated[
        Interval,
        Json(
            "The share that changes by more.",
            form=interval_fields(
                "share", "The share that changes by more, or its estimate from samples.", _SHARE
            ),
        ),
    ]


@record("curve_gap", "A gap of a curve.")
@dataclass(frozen=True, slots=True)
class CurveGap:
    """A gap of a curve."""

    value: Annotated[float, Json("The gap.", _AT_LEAST_0)]
    value_text: Annotated[str, Json("The same as an exact decimal.")]


@record("curve", "The share that changes by more than a gap, against the gap.")
@dataclass(frozen=True, slots=True)
class Curve:
    """The share as a function of the gap under one measure; it never increases."""

    measure: MeasureName
    unit: UnitName
    direction: Annotated[str, Json("Which changes count.", {"enum": ["any", "up", "down"]})]
    points: Annotated[tuple[CurvePoint, ...], Json("Its points, the smallest gap first.")]
    exact: IsExact
    confidence: Confidence
    n_samples: Samples = None
    least_gap: Annotated[
        CurveGap | None,
        Json(
            "The smallest gap of the curve from which on the share is certainly at most "
            "`max_share`; null without a limit, if the limit applies to another measure, "
            "or if no gap of the curve is large enough."
        ),
    ] = None

    def judged_by(self, limit: Limit | None) -> Curve:
        """Return the curve, marked with the smallest gap at which a limit holds."""
        if limit is None:
            return replace(self, least_gap=None)
        rounded = limit.loosened()  # shares are floats: a tenth is a little more than 1/10
        holds = (p for p in self.points if rounded.allows(Fraction(p.share.high), 1))
        first = next(holds, None)
        found = None if first is None else CurveGap(first.gap, first.gap_text)
        return replace(self, least_gap=found)


@record("place", "A box that holds many sensitive inputs, in words, counted afresh.")
@dataclass(frozen=True, slots=True)
class Place:
    """A box of the input space that holds much of the sensitive weight under one measure.

    The box was found in random regions and then counted separately: by the counters (exactly), or
    in fresh random regions. Places of one measure are disjoint.
    """

    measure: MeasureName
    text: Annotated[str, Json("The box in words, such as `age < 29 and hours >= 40`.")]
    conditions: Annotated[
        tuple[str, ...],
        Json(
            "The same as conditions for `--where`, to the last digit. A condition on a "
            "sensitive feature says where a change starts, not where it may lead."
        ),
    ]
    size: Annotated[float, Json("How much of the measure is in the box: exact.", _SHARE)]
    weight: Annotated[
        Interval,
        Json("How much of the measure is in the box and sensitive.", form=_SHARE_INTERVAL),
    ]
    within: Annotated[
        Interval,
        Json("How much of the box is sensitive.", form=_SHARE_INTERVAL),
    ]
    part: Annotated[
        Interval,
        Json("How much of the sensitive weight is in the box.", form=_SHARE_INTERVAL),
    ]
    exact: IsExact
    confidence: Annotated[
        float,
        Json(
            "All intervals of all places of the measure hold together with this "
            "probability; 1 if they are exact.",
            _SHARE,
        ),
    ]


def ratio_of(rates: Sequence[Interval]) -> Interval:
    """Return the lowest rate over the highest, with the bounds that their intervals give.

    It has no estimate if nobody gets the favourable decision.
    """
    most = max((rate.least for rate in rates), default=0.0)
    least_high = min((rate.high for rate in rates), default=1.0)
    largest_low = max((rate.low for rate in rates), default=0.0)
    largest_high = max((rate.high for rate in rates), default=1.0)
    return Interval(
        value=min(rate.least for rate in rates) / most if most else None,
        low=min(rate.low for rate in rates) / largest_high if largest_high else 0.0,
        high=min(1.0, least_high / largest_low) if largest_low else 1.0,
    )


@record("group_rate", "How often a group gets the favourable decision.")
@dataclass(frozen=True, slots=True)
class GroupRate:
    """The rate of favourable decisions among those in some cells of the sensitive features."""

    cells: Annotated[
        tuple[tuple[int, ...], ...],
        Json(
            "The group: for each sensitive feature, the numbers of its cells (several if "
            "cells were merged).",
            {"items": {"type": "array", "items": {"type": "integer", "minimum": 0}}},
        ),
    ]
    text: Annotated[str, Json("The same in words.")]
    weight: Annotated[float, Json("The group's share of the measure.", _SHARE)]
    rate: Annotated[
        Interval,
        Json(
            "The rate of the group, as observed.",
            form=interval_fields(
                "rate",
                "The share of the group that gets the favourable decision, as observed; an "
                "estimate if it is sampled.",
                _SHARE,
            ),
        ),
    ]
    if_all: Annotated[
        Interval | None,
        Json(
            "The share of *everyone* who would get it if everyone were placed in the "
            "group and otherwise stayed the same: the effect of the feature itself in the"
            " model. Null if a group has several cells, or if rules couple the features.",
            form=or_none(_RATE_INTERVAL),
        ),
    ] = None


@record("group_rates", "How often each group gets the favourable decision.")
@dataclass(frozen=True, slots=True)
class GroupRates:
    """Rates of favourable decisions by the cells of the sensitive features, under one measure."""

    measure: MeasureName
    favourable: Annotated[str, Json("The favourable decision: a class, or a side of the cut-off.")]
    cells: Annotated[
        tuple[GroupRate, ...], Json("The groups that have any weight, in the order of the cells.")
    ]
    ratio: Annotated[
        Interval,
        Json(
            "The adverse impact ratio: the lowest `rate` divided by the highest.",
            form=_RATIO_INTERVAL,
        ),
    ]
    exact: IsExact
    confidence: Annotated[
        float,
        Json(
            "All intervals of all groups hold together with this probability; 1 if they are exact.",
            _SHARE,
        ),
    ]
    n_samples: Samples = None
    is_assumed: Annotated[
        bool,
        Json(
            "Whether `favourable` is an assumption, because `--favourable` did not name it.",
            name="favourable_assumed",
        ),
    ] = False

    @property
    def ratio_if_all(self) -> Interval | None:
        """The lowest ``if_all`` over the highest; None if a group has none."""
        found = [group.if_all for group in self.cells if group.if_all is not None]
        return ratio_of(found) if found and len(found) == len(self.cells) else None

    @property
    def differs(self) -> bool:
        """Whether a rate differs from its ``if_all``: groups then differ in other features, too."""
        return any(group.if_all not in (None, group.rate) for group in self.cells)


@record(
    "explanation",
    "Who is affected, in which direction and by how much (`--explain`, and in audits).",
)
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Explanation(DisplayMixin):
    """The explanation of a count: each list has one entry per measure, ``regions`` first."""

    effects: Annotated[
        tuple[Effect, ...],
        Json("In which direction and by how much the output changes, by measure."),
    ] = ()
    curves: Annotated[tuple[Curve, ...], Json("The share against the gap, by measure.")] = ()
    places: Annotated[
        tuple[Place, ...],
        Json(
            "Where the sensitive inputs are: a few boxes for each measure, the one that "
            "holds most first."
        ),
    ] = ()
    rates: Annotated[
        tuple[GroupRates, ...], Json("How often each group gets the favourable decision.")
    ] = ()
    notes: Annotated[
        tuple[str, ...], Json("Notes on what was left out, and why.", is_optional=True)
    ] = ()

    def judged_by(self, limit: Limit | None, measure: str = "regions") -> Explanation:
        """Return the explanation with curves judged by the limit of a share under a measure."""
        curves = tuple(
            curve.judged_by(limit if curve.measure == measure else None) for curve in self.curves
        )
        return replace(self, curves=curves)
