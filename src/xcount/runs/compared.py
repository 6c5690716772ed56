"""One question to several models: their counts side by side, and relative to the first model's."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

from xcount.answers.result import CountResult, Distance, Sensitive, Verdict, readable, verdict_of
from xcount.measures.measured import REGIONS, Judged
from xcount.question.change import Change
from xcount.question.change_fields import change_from
from xcount.question.share import Limit
from xcount.support.records import Json, Spread, record, reference, to_dict, written
from xcount.support.shown import Shown

_SHARE = {"minimum": 0, "maximum": 1}


@record("ratio", "A count relative to the first model's.")
@dataclass(frozen=True, slots=True)
class Ratio:
    """A count divided by the baseline's, with the bounds that their intervals give.

    ``value`` is None where either count has no estimate, ``high`` where the baseline may be zero;
    so are ratios beyond every float.
    The bounds hold where both intervals do: two that fail with probability delta each hold together
    with probability at least 1 - 2 delta.
    """

    value: Annotated[
        float | None,
        Json(
            "C / C0; null if either has no estimate, or if it exceeds every float.", {"minimum": 0}
        ),
    ]
    low: Annotated[float, Json("At least this.", {"minimum": 0})]
    high: Annotated[
        float | None,
        Json("At most this; null if C0 may be zero, or if it exceeds every float.", {"minimum": 0}),
    ]
    confidence: Annotated[
        float,
        Json(
            "The bounds hold with at least this probability: whenever both counts' intervals do.",
            _SHARE,
        ),
    ] = 1.0


def together(shares: Iterable[CountResult | Judged]) -> float:
    """Return with what probability all intervals hold at once, at least.

    Example:
        >>> together(())
        1.0
    """
    return max(0.0, 1.0 - math.fsum(1.0 - share.confidence for share in shares))


def _quotient(part: int | Fraction, whole: int | Fraction) -> float | None:
    """Return a ratio as a float; None where it is beyond all of them, as counts may be."""
    try:
        return float(part / whole)
    except OverflowError:
        return None


def readable_row(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row's JSON as it is written today, whatever version wrote it."""
    results = [None if result is None else readable(result) for result in row["results"]]
    return {**row, "results": results}


def _change_of(row: Mapping[str, Any]) -> Change:
    """Return the change that the results of a row are about, as far as they share it."""
    first, *others = (change_from(result) for result in row["results"] if result is not None)
    for other in others:
        first = first.shared_with(other) or first
    return first


def _written_ratios(ratios: Mapping[str, tuple[Ratio | None, ...]]) -> dict[str, Any]:
    """Return the ratios by measure; nothing without measures."""
    written = {
        name: [None if ratio is None else to_dict(ratio) for ratio in row]
        for name, row in ratios.items()
    }
    return {"measure_ratios": written} if written else {}


_MEASURE_RATIOS = Spread(
    {
        "measure_ratios": {
            "type": "object",
            "description": "The same for the share under each measure, by its name; only with "
            "`--measure` or `--judge`.",
            "additionalProperties": {
                "type": "array",
                "items": {"anyOf": [reference("ratio"), {"type": "null"}]},
            },
        }
    },
    _written_ratios,
    lambda data: None,
)


@record("compared", "One question and the answers of all models.")
@dataclass(frozen=True, slots=True, repr=False)
class Compared(Shown):
    """One question, answered by every model (None where the run was interrupted)."""

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
        )
    )
    def ratios(self) -> tuple[Ratio | None, ...]:
        return tuple(map(self.ratio, range(len(self.results))))

    @property
    @written(Json("The same for the shares under measures.", after="ratios", form=_MEASURE_RATIOS))
    def measure_ratios(self) -> Mapping[str, tuple[Ratio | None, ...]]:
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

    def ratio(self, index: int, measure: str = REGIONS) -> Ratio | None:
        """Return C_i / C_0, or the ratio of the shares under another measure.

        None where the first model's is zero, or a count is missing.
        """
        base, other = (self._share(place, measure) for place in (0, index))
        if base is None or other is None or base.parts[1] == 0:
            return None
        value = None
        if base.estimate and other.estimate is not None:
            value = _quotient(other.estimate, base.estimate)
        (low, high), (least, most) = other.parts, base.parts
        # Of one model and itself there is one interval, not two that may fail.
        failing = (base,) if index == 0 else (base, other)
        highest = None if least == 0 else _quotient(high, least)
        lowest = _quotient(low, most)
        lowest = sys.float_info.max if lowest is None else lowest
        return Ratio(value, lowest, highest, together(failing))

    def _share(self, index: int, measure: str) -> Judged | None:
        result = self.results[index]
        return None if result is None else result.share_under(measure)

    def verdict(self, index: int, max_ratio: Limit) -> Verdict:
        """Tell whether a judged share is at most ``max_ratio`` times the first model's."""
        base, other = self.results[0], self.results[index]
        if base is None or other is None:
            return Verdict.UNDECIDED
        return verdict_of(max_ratio, other.judged, base.judged)


@record("model_summary", "One model over all questions.")
@dataclass(frozen=True, slots=True)
class ModelSummary:
    """One model over all questions.

    Attributes:
        rank: 1 for the least sensitive model.
        mean_share: the mean of its shares; None where a share has no estimate.
        mean_share_low: the mean of their low bounds.
        mean_share_high: the mean of their high bounds.
        n_ratios: questions whose baseline count is not zero, with an estimate of both counts.
        quartiles: of the relative sensitivity over those questions: lower, median, upper.
    """

    index: Annotated[int, Json("Its position on the command line, from 0.", {"minimum": 0})]
    name: Annotated[str, Json("What it is called.")]
    rank: Annotated[int, Json("1 for the least sensitive.", {"minimum": 1})]
    mean_share: Annotated[
        float | None, Json("Mean of its shares; null if a share has no estimate.", _SHARE)
    ]
    mean_share_low: Annotated[float, Json("Mean of the low bounds of its shares.", _SHARE)]
    mean_share_high: Annotated[float, Json("Mean of the high bounds of its shares.", _SHARE)]
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
