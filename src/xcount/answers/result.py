"""The result of a count: the number, its confidence, why the run stopped; to and from JSON.

The fields are listed only here: JSON, its schema, the journal's check and the columns of CSV files
are generated from them (see :mod:`xcount.support.records`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Any

from xcount.answers.explanation import Explanation
from xcount.answers.people.affected_table import AffectedTable, HasAffectedRows
from xcount.answers.people.group_table import Groups
from xcount.answers.witness.witness import Witness
from xcount.counters.tally import Profile, StopReason
from xcount.errors import QueryError
from xcount.measures.measured import REGIONS, Measured
from xcount.question.change import Change
from xcount.question.change_fields import CHANGE_FIELDS
from xcount.question.domain import Domain
from xcount.question.share import Limit
from xcount.support.display import DisplayMixin
from xcount.support.interval import Interval
from xcount.support.numerals import to_json
from xcount.support.records import (
    Form,
    Json,
    Schema,
    Spread,
    from_dict,
    record,
    reference,
    to_dict,
    whole_or,
    written,
)

_AT_LEAST_0 = {"minimum": 0}
_SHARE = {"minimum": 0, "maximum": 1}
_JUDGES = ["regions", "volume", "marginals", "rows", "population"]
_DETAILS = Form(reference("details"), dict, dict)
_MEASURES = Form(
    {"type": "object", "additionalProperties": reference("measured")},
    lambda measures: {name: measured.to_dict() for name, measured in measures.items()},
    lambda data: {name: Measured.from_dict(name, entry) for name, entry in data.items()},
)


class Verdict(StrEnum):
    """Whether the share is at most the given maximum."""

    PASS = "PASS"
    FAIL = "FAIL"
    UNDECIDED = "UNDECIDED"


ANSWERED, FAILED, LIMITED = 0, 1, 3
"""Exit statuses: answered (and PASS), FAIL, stopped by a limit or UNDECIDED."""


def verdict_of(limit: Limit, part: Interval, whole: Interval | None = None) -> Verdict:
    """Return whether a share (or a ratio of shares) is at most the limit, judging by its bounds.

    Weighted shares are floats: one that exceeds the limit only by rounding counts as equal to it.
    """
    base = Interval.exactly(1) if whole is None else whole
    used = limit if part.is_counted and base.is_counted else limit.loosened()
    if used.allows(Fraction(part.high), Fraction(base.low)):
        return Verdict.PASS
    may_pass = used.allows(Fraction(part.low), Fraction(base.high))
    return Verdict.UNDECIDED if may_pass else Verdict.FAIL


def judged_together(verdicts: Iterable[Verdict], is_whole: bool) -> Verdict:
    """Return FAIL if any verdict is; else UNDECIDED if any is, or is missing; else PASS."""
    found = set(verdicts)
    if Verdict.FAIL in found:
        return Verdict.FAIL
    return Verdict.PASS if found == {Verdict.PASS} and is_whole else Verdict.UNDECIDED


def status_of(verdict: Verdict | None, is_answered: bool) -> int:
    """Return the exit status; ``is_answered`` means that every question has its answer."""
    if verdict is Verdict.FAIL:
        return FAILED
    return ANSWERED if is_answered and verdict is not Verdict.UNDECIDED else LIMITED


def limit_form(name: str, description: str, most: float | None = None) -> Spread:
    """Return the JSON of a limit: the number, and the fraction it stands for."""
    bounds: Schema = _AT_LEAST_0 if most is None else {**_AT_LEAST_0, "maximum": most}
    text = f"{name}_text"

    def write(limit: Limit | None) -> dict[str, Any]:
        return {name: None} if limit is None else {name: float(limit), text: limit.text}

    def read(data: Mapping[str, Any]) -> Limit | None:
        value = data[name]
        return None if value is None else Limit.of(data.get(text) or float(value))

    exactly = "The same as an exact fraction, which is used for comparison; null for a float."
    properties: dict[str, Schema] = {
        name: {"type": ["number", "null"], "description": description, **bounds},
        text: {"type": ["string", "null"], "description": exactly},
    }
    return Spread(properties, write, read, required=(name,))


CUT_SHORT = ("exact", "samples")
"""What a time limit cuts short (:class:`xcount.counters.settings.TimeCuts`)."""
MAX_SHARE = limit_form("max_share", "`--max-share`; null without.", most=1)


@record("model", "Which model was asked.")
@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The model of a result."""

    path: Annotated[str | None, Json("The file as given; null for a live model.")]
    sha256: Annotated[
        str | None,
        Json("Hash of the file's bytes; null for a live model.", {"pattern": "^[0-9a-f]{64}$"}),
    ]
    format: Annotated[str, Json("What the file was recognised as, such as `xgboost-json`.")]
    n_trees: Annotated[int, Json("Number of trees.", _AT_LEAST_0)]
    max_depth: Annotated[int, Json("Tests on the longest path from a root to a leaf.", _AT_LEAST_0)]
    n_features: Annotated[int, Json("Features of the model, used or not.", _AT_LEAST_0)]
    n_guards: Annotated[int, Json("Guards of all features together.", _AT_LEAST_0)]

    def to_dict(self) -> dict[str, Any]:
        """Return the ``model`` of a result's JSON."""
        return to_dict(self)


AboutModel = Annotated[ModelInfo, Json("Which model was asked.")]
Versions = Annotated[
    Mapping[str, str],
    Json("Versions of xcount, Python and numpy.", {"required": ["xcount", "python", "numpy"]}),
]
Sensitive = Annotated[
    tuple[str, ...],
    Json(
        "The features that change together.", {"minItems": 1}, column="sensitive", cell=" + ".join
    ),
]
VERDICT_OF_ALL = Json(
    "FAIL if any count fails; otherwise UNDECIDED if any is undecided or missing; "
    "otherwise PASS. null without a limit.",
    after="created",
)
JUDGE_OF_ALL = Json(
    "The measure that limits apply to and features are ranked by.",
    {"enum": _JUDGES},
    after="verdict",
)
STATUS_OF_ALL = Json(
    "The exit status of the command.", {"enum": [ANSWERED, FAILED, LIMITED]}, after="judge"
)
Created = Annotated[str, Json("When the run started, ISO 8601 in UTC.")]
ModelTask = Annotated[str, Json("What the model is for, such as `binary`.")]
GapOrigin = Annotated[str, Json("Where the gaps come from, in words.")]
Planned = Annotated[
    int,
    Json(
        "Counts that were planned; an interrupted run has fewer results.",
        _AT_LEAST_0,
        name="planned",
    ),
]
AskedDomain = Annotated[
    Domain | None,
    Json("Which regions exist; only if a domain was given.", is_optional=True),
]
Distance = Annotated[
    int | None,
    Json(
        "How far the features may move, in cells, or `any`.",
        form=whole_or("any", least=1),
        column="distance",
    ),
]


@record("count", "`xcount count --json`: one question, one number.")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CountResult(DisplayMixin):
    """How many regions are sensitive, and how certain that is.

    ``low <= C <= high`` holds with probability at least ``confidence``. ``count`` is C or an
    estimate of it, never the middle of an interval: if only the bounds are known, it is None, and
    so is ``share``. ``change`` says what makes two regions differ; ``class_label`` names the class
    in question, if the model has several.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> result = xcount.count(figure_1(), sensitive="f0", gap=80, max_share="25%")
        >>> result.exact, result.share, str(result.verdict)
        (True, 0.2222222222222222, 'PASS')
    """

    sensitive: Sensitive
    change: Annotated[
        Change,
        Json("The change.", form=CHANGE_FIELDS, column="gap", cell=lambda change: change.text),
    ]
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
    count: Annotated[
        int | None,
        Json(
            "The number of sensitive regions, or an estimate of it; null if only `low` "
            "and `high` are known. An integer of any size: read it as one.",
            _AT_LEAST_0,
            column="count",
        ),
    ]
    low: Annotated[
        int, Json("At least this many, with probability `confidence`.", _AT_LEAST_0, column="low")
    ]
    high: Annotated[
        int, Json("At most this many, with probability `confidence`.", _AT_LEAST_0, column="high")
    ]
    verified: Annotated[
        bool | None,
        Json(
            "true if the verified counter found the same number; null if it did not finish, or was "
            "not asked (`--verify`).",
            column="verified",
        ),
    ] = None
    confidence: Annotated[
        float,
        Json("1 for guaranteed (exact) bounds, otherwise 1 - delta.", _SHARE, column="confidence"),
    ]
    n_regions: Annotated[
        int,
        Json(
            "The number of regions of the domain, of any size.", {"minimum": 1}, column="n_regions"
        ),
    ]
    n_fixed: Annotated[
        int,
        Json(
            "How many of them cannot be sensitive because no other values of the sensitive "
            "features are in the domain there.",
            _AT_LEAST_0,
            column="n_fixed",
        ),
    ] = 0
    domain: AskedDomain = None
    max_share: Annotated[
        Limit | None,
        Json(
            "The largest share allowed.",
            form=MAX_SHARE,
            column="max_share",
            cell=lambda limit: None if limit is None else float(limit),
        ),
    ] = None
    judge: Annotated[
        str,
        Json(
            "The measure that `max_share` applies to and audits rank by: `regions`, or "
            "one of `details.measures`.",
            {"enum": _JUDGES},
            column="judge",
        ),
    ] = REGIONS
    method: Annotated[str, Json("How it was counted, as in `--method`.", column="method")]
    stop_reason: Annotated[
        StopReason,
        Json(
            "Why the run ended: `complete` (exact, or within epsilon), `decided` (the "
            "verdict was certain before that), `timeout`, `memory`, `steps` or "
            "`interrupted`.",
            column="stop_reason",
        ),
    ]
    seconds: Annotated[float, Json("How long the count took.", _AT_LEAST_0, column="seconds")] = 0.0
    peak_memory_bytes: Annotated[int, Json("Peak memory of the process.", _AT_LEAST_0)] = 0
    epsilon: Annotated[float, Json("Allowed relative error.", {"exclusiveMinimum": 0})] = 0.1
    delta: Annotated[
        float,
        Json(
            "Allowed probability that an interval is wrong.",
            {"exclusiveMinimum": 0, "exclusiveMaximum": 1},
        ),
    ] = 0.1
    seed: Annotated[int, Json("Seed of all random choices.", _AT_LEAST_0)] = 0
    model: AboutModel
    versions: Versions = field(default_factory=dict)
    details: Annotated[
        Mapping[str, Any],
        Json("The counter's own numbers, measures and witnesses.", form=_DETAILS),
    ] = field(default_factory=dict)
    measures: Annotated[
        Mapping[str, Measured],
        Json(
            "The shares under other measures than `regions`, by their names.",
            form=_MEASURES,
            inside="details",
            is_optional=True,
        ),
    ] = field(default_factory=dict)
    witnesses: Annotated[
        tuple[Witness, ...] | None,
        Json("Example pairs; none if they were not asked for.", inside="details", is_optional=True),
    ] = None
    profile: Annotated[
        Profile | None,
        Json(
            "The count by mask and by pair of masks; with `--profile`, and in audits.",
            is_optional=True,
        ),
    ] = None
    explanation: Annotated[
        Explanation | None,
        Json(
            "Who is affected, in which direction and by how much; with `--explain`, and in audits.",
            is_optional=True,
        ),
    ] = None

    groups: Annotated[
        Groups | None,
        Json("How the groups of the data fare; with `--group`.", is_optional=True),
    ] = None

    question: str | None = field(default=None, compare=False)
    """The text of the question file that was verified; not part of the JSON."""
    affected_rows: HasAffectedRows | None = field(default=None, compare=False)
    """The sensitive rows of the data, to look at again; not part of the JSON."""

    @property
    @written(
        Json(
            "Whether `count` is proved: `low` = `high` and `confidence` = 1.",
            after="high",
            column="exact",
        )
    )
    def exact(self) -> bool:
        return self.low == self.high and self.confidence == 1.0

    @property
    @written(
        Json(
            "`count` / `n_regions`; null if `count` is.",
            _SHARE,
            after="n_regions",
            column="share",
        )
    )
    def share(self) -> float | None:
        return None if self.count is None else self.count / self.n_regions

    @property
    @written(Json("`low` / `n_regions`.", _SHARE, after="share", column="share_low"))
    def share_low(self) -> float:
        return self.low / self.n_regions

    @property
    @written(Json("`high` / `n_regions`.", _SHARE, after="share_low", column="share_high"))
    def share_high(self) -> float:
        return self.high / self.n_regions

    @property
    @written(
        Json(
            "PASS: the share under the measure `judge` is at most `max_share`; FAIL: it "
            "is above; UNDECIDED: the interval contains the limit; null: no limit was "
            "given.",
            after="max_share",
            column="verdict",
        )
    )
    def verdict(self) -> Verdict | None:
        """Whether the judged share is at most ``max_share``, judging by its bounds."""
        return None if self.max_share is None else verdict_of(self.max_share, self.judged)

    @property
    def judged(self) -> Interval:
        """The share under the measure ``judge``, with its bounds; the verdict is about it."""
        return self.share_under(self.judge) or Interval.unknown_share()

    def share_under(self, measure: str) -> Interval | None:
        """Return the share under a measure with its bounds; None if it was not measured."""
        found = self.measured(measure)
        return None if found is None else found.interval

    def measured(self, measure: str) -> Measured | None:
        """Return the result under a measure, ``regions`` included; None if it was not measured."""
        if measure != REGIONS:
            return self.measures.get(measure)
        n = self.n_regions
        value = None if self.count is None else Fraction(self.count, n)
        share = Interval(value, Fraction(self.low, n), Fraction(self.high, n), self.confidence)
        details = {"n_regions": n, "n_fixed": self.n_fixed}
        return Measured(REGIONS, share, self.stop_reason, details)

    @property
    def order(self) -> tuple[float, float, tuple[str, ...]]:
        """Sort key of results: the largest judged share first.

        The share is the estimate, or the low bound if there is none. Ties are broken by the larger
        high bound, then by the names.
        """
        judged = self.judged
        return (-float(judged.least), -float(judged.high), self.sensitive)

    @property
    def gap(self) -> str:
        """The change in brief: ``"2"`` for a gap, ``"flip at 0"`` for a decision."""
        return self.change.text

    @property
    def is_answered(self) -> bool:
        """Whether the judged share has the requested accuracy, or the verdict is known."""
        if self.verdict in (Verdict.PASS, Verdict.FAIL):
            return True
        return set(self.stop_reasons) == {StopReason.COMPLETE}

    @property
    def stop_reasons(self) -> tuple[StopReason, ...]:
        """Why the run ended, and why the judged measure did, if that is another measure."""
        own = self.measures.get(self.judge)
        return (self.stop_reason, *(() if own is None else (own.stop_reason,)))

    @property
    def cut_short(self) -> tuple[str, ...]:
        """What the time limit cut short, of the count or a measure: ``exact``, ``samples``.

        An answer without any is the same on every machine.
        """
        each = (self.details, *(measured.details for measured in self.measures.values()))
        return tuple(
            what for what in CUT_SHORT if any(f"{what}_cut_short" in details for details in each)
        )

    @property
    def exit_status(self) -> int:
        """0 answered (and PASS), 1 FAIL, 3 UNDECIDED or stopped by a limit."""
        return status_of(self.verdict, self.is_answered)

    def affected(self) -> Any:
        """Return the sensitive rows of the data: what they get, and could get at best and worst.

        The table is a pandas DataFrame; without pandas, a mapping of names to lists.

        Raises:
            QueryError: no rows were counted, or the result was read from JSON.
        """
        return affected_table([({}, self)]).to_frame()

    @property
    def about(self) -> dict[str, str]:
        """What the count is about, in words: columns of a table that holds several."""
        distance = "any" if self.distance is None else str(self.distance)
        return {
            "sensitive": " + ".join(self.sensitive),
            "change": self.change.text,
            "distance": distance,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON contract of ``xcount count --json``."""
        return to_dict(self)

    def to_json(self, indent: int | None = None) -> str:
        """Return the result as one JSON object."""
        return to_json(self.to_dict(), indent)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CountResult:
        """Read back what :meth:`to_dict` wrote."""
        return from_dict(cls, data)


def affected_table(
    parts: Iterable[tuple[Mapping[str, str], CountResult]], least_seconds: float | None = None
) -> AffectedTable:
    """Return the sensitive rows of counts: what they get, and could get at best and worst.

    Args:
        parts: the counts, each with columns that say what it is about.
        least_seconds: time for each count if its own time limit is over; None for no limit.

    Raises:
        QueryError: no rows were counted, or the results were read from JSON.
    """
    tables = []
    for about, result in parts:
        rows = result.affected_rows
        if rows is not None:
            limits = None if least_seconds is None else rows.settings.within(1.0, least_seconds)
            tables.append((about, rows.table(limits)))
    if not tables:
        raise QueryError(
            "there are no rows to list: count with --data (data) and the measure 'rows' (a result "
            "that was read from JSON or a journal has only their numbers)"
        )
    return AffectedTable.joined(tables)
