"""One question to several models: their counts side by side, and relative to the first model's."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

from xcount.answers.result import CountResult, Distance, Sensitive, Verdict, verdict_of
from xcount.measures.measured import REGIONS
from xcount.question.change import Change
from xcount.question.change_fields import change_from
from xcount.question.share import Limit
from xcount.support.display import DisplayMixin
from xcount.support.interval import Interval, Number, mean_fields
from xcount.support.records import (
    Json,
    Schema,
    Spread,
    list_form,
    object_form,
    or_none,
    record,
    written,
)

_SHARE = {"minimum": 0, "maximum": 1}


def finite(number: Number) -> Number | None:
    """Return a number; None if it is infinite."""
    return None if number == math.inf else number


_RATIO_FIELDS: Mapping[str, Schema] = {
    "value": {
        "type": ["number", "null"],
        "description": "C / C0; null if either has no estimate, or if it exceeds every float.",
        "minimum": 0,
    },
    "low": {"type": "number", "description": "At least this.", "minimum": 0},
    "high": {
        "type": ["number", "null"],
        "description": "At most this; null if C0 may be zero, or if it exceeds every float.",
        "minimum": 0,
    },
    "confidence": {
        "type": "number",
        "description": "The bounds hold with at least this probability: whenever both counts' "
        "intervals do.",
        **_SHARE,
    },
}
_RATIO = object_form(
    "ratio",
    "A count relative to the first model's.",
    Spread(
        _RATIO_FIELDS,
        lambda ratio: {
            "value": ratio.value,
            "low": ratio.low,
            "high": finite(ratio.high),
            "confidence": ratio.confidence,
        },
        lambda data: None,  # ratios follow from the counts
        required=tuple(_RATIO_FIELDS),
    ),
)
_RATIOS = list_form(or_none(_RATIO))


def together(confidences: Iterable[float]) -> float:
    """Return a lower bound on the probability that all intervals hold at once.

    Two that fail with probability delta each hold together with probability at least 1 - 2 delta.

    Example:
        >>> together(()), together([0.75, 0.5])
        (1.0, 0.25)
    """
    return max(0.0, 1.0 - math.fsum(1.0 - confidence for confidence in confidences))


def _quotient(part: Number, whole: Number) -> float | None:
    """Return a ratio as a float; None if it is beyond the range of floats."""
    try:
        return float(Fraction(part) / Fraction(whole))
    except OverflowError:
        return None


def _change_of(row: Mapping[str, Any]) -> Change:
    """Return the change of a row's question, without what differs between its models."""
    first, *others = (change_from(result) for result in row["results"] if result is not None)
    for other in others:
        first = first.shared_with(other) or first
    return first


_MEASURE_RATIOS = Spread(
    {
        "measure_ratios": {
            "type": "object",
            "description": "The same for the share under each measure, by its name; only with "
            "`--measure` or `--judge`.",
            "additionalProperties": _RATIOS.schema,
        }
    },
    lambda ratios: (
        {"measure_ratios": {name: _RATIOS.write(row) for name, row in ratios.items()}}
        if ratios
        else {}
    ),
    lambda data: None,
)


@record("compared", "One question and the answers of all models.")
@dataclass(frozen=True, slots=True, repr=False)
class Compared(DisplayMixin):
    """One question, answered by every model (None if the run was interrupted before)."""

    sensitive: Sensitive
    distance: Distance
    change: Annotated[Change, Json("The change.", form=Spread.nowhere(_change_of))]
    results: Annotated[
        tuple[CountResult | None, ...],
        Json(
            "For each model, an object as in `xcount count --json`; null if the run was "
            "stopped before."
        ),
    ]

    @property
    @written(Json("The gap as typed; `flip` with `--flip`.", after="distance"))
    def gap_text(self) -> str:
        return self.change.text

    @property
    @written(
        Json(
            "For each model, its count divided by the first model's; null if the first "
            "model's is zero, or a count is missing.",
            after="gap_text",
            form=_RATIOS,
        )
    )
    def ratios(self) -> tuple[Interval | None, ...]:
        return tuple(map(self.ratio, range(len(self.results))))

    @property
    @written(Json("The same for the shares under measures.", after="ratios", form=_MEASURE_RATIOS))
    def measure_ratios(self) -> Mapping[str, tuple[Interval | None, ...]]:
        return {
            name: tuple(self.ratio(index, name) for index in range(len(self.results)))
            for name in self.measures
        }

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that the models were weighed by."""
        found = (name for r in self.results if r is not None for name in r.measures)
        return tuple(dict.fromkeys(found))

    @property
    def label(self) -> str:
        return " + ".join(self.sensitive)

    def ratio(self, index: int, measure: str = REGIONS) -> Interval | None:
        """Return C_i / C_0, or the ratio of the shares under another measure.

        The ratio has no estimate if one of the two counts has none. Its high bound is infinite if
        C_0 may be zero, or if it is beyond the range of floats. None if C_0 is zero, or a count is
        missing.
        """
        base, other = (self._share(place, measure) for place in (0, index))
        if base is None or other is None or base.high == 0:
            return None
        value = None
        if base.value and other.value is not None:
            value = _quotient(other.value, base.value)
        # A model compared with itself has one interval that may fail, not two.
        failing = (base,) if index == 0 else (base, other)
        highest = None if base.low == 0 else _quotient(other.high, base.low)
        lowest = _quotient(other.low, base.high)
        return Interval(
            value,
            sys.float_info.max if lowest is None else lowest,
            math.inf if highest is None else highest,
            together(share.sureness for share in failing),
        )

    def _share(self, index: int, measure: str) -> Interval | None:
        result = self.results[index]
        return None if result is None else result.share_under(measure)

    def verdict(self, index: int, max_ratio: Limit) -> Verdict:
        """Return whether a judged share is at most ``max_ratio`` times the first model's."""
        base, other = self.results[0], self.results[index]
        if base is None or other is None:
            return Verdict.UNDECIDED
        return verdict_of(max_ratio, other.judged, base.judged)


@record("model_summary", "One model over all questions.")
@dataclass(frozen=True, slots=True)
class ModelSummary:
    """Summary of one model over all questions.

    Attributes:
        rank: 1 for the least sensitive model.
        mean_share: the mean of its shares; without a value if a share has no estimate.
        n_ratios: questions whose baseline count is not zero, with an estimate of both counts.
        quartiles: of the relative sensitivity over those questions: lower, median, upper.
    """

    index: Annotated[int, Json("Its position on the command line, from 0.", {"minimum": 0})]
    name: Annotated[str, Json("What it is called.")]
    rank: Annotated[int, Json("1 for the least sensitive.", {"minimum": 1})]
    mean_share: Annotated[
        Interval, Json("The mean of its shares.", form=mean_fields("mean_share", "its"))
    ]
    n_ratios: Annotated[
        int,
        Json(
            "Questions for which the first model's count is not zero and both counts have"
            " an estimate.",
            {"minimum": 0},
        ),
    ]
    quartiles: Annotated[
        tuple[float, float, float] | None,
        Json("Lower quartile, median and upper quartile of C / C0 over those questions."),
    ]
