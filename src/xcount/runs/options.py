"""The options that ``audit`` and ``compare`` share: several questions, and the journal."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from xcount.answers.options import (
    STOP_EACH_HELP,
    ChangeOptions,
    ClusterOption,
    CountingOptions,
    DomainOptions,
    ExplainOptions,
    TrustOption,
)
from xcount.counters.settings import DEFAULT_TIMEOUT_SECONDS
from xcount.errors import QueryError
from xcount.model.ensemble import Ensemble
from xcount.runs.batch import BatchProgress
from xcount.runs.plan import Changes, Group, choose_changes
from xcount.runs.shards import Shard
from xcount.support.options import option, python_option

if TYPE_CHECKING:
    from xcount.support.parse import Duration


@dataclass(frozen=True, kw_only=True, eq=False)
class SeveralQuestions:
    """Several questions: groups of features, gaps and distances."""

    sensitive: Iterable[Group] | str | int | None = field(
        default=None,
        metadata=option(
            "A feature, or features that change together, separated by commas; repeat it for "
            "more. Default: every used feature by itself.",
            "groups of features; None for each used feature by itself.",
            metavar="NAMES",
            repeated="list",
        ),
    )
    gaps: object = field(
        default=None,
        metadata=option(
            "Gaps in the margin; repeat it, or separate them by commas. Default: round numbers "
            "around the scale of the leaves.",
            "gaps in margin; None for round numbers around the scale of the leaves.",
            flag="--gap",
            metavar="G",
            repeated="list",
        ),
    )
    probability_gaps: object = field(
        default=None,
        metadata=option(
            "Gaps in the predicted probability instead; repeat it, or separate them by commas.",
            "gaps in the predicted probability instead.",
            flag="--probability-gap",
            metavar="P",
            repeated="list",
        ),
    )
    distances: object = field(
        default="any",
        metadata=option(
            "How many cells the features may move in total; repeat it, or separate by commas.",
            'how many cells the features may move in total, or ``"any"``; one or several.',
            flag="--distance",
            metavar="N|any",
            repeated="list",
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class BatchLimits(CountingOptions):
    """How to count each question, and when to stop."""

    timeout: Duration | None = field(
        default=DEFAULT_TIMEOUT_SECONDS,
        metadata=option(
            f"{STOP_EACH_HELP}: 60s, 5m, 1h.",
            "when to stop each count, not including reading the model: seconds, or "
            '``"60s"``, ``"5m"``.',
            metavar="DURATION",
            shown_default="60s",
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class BatchOptions(
    TrustOption,
    ClusterOption,
    ExplainOptions,
    BatchLimits,
    DomainOptions,
    ChangeOptions,
    SeveralQuestions,
):
    """The options of a run of many counts."""

    journal: str | os.PathLike[str] | None = field(
        default=None,
        metadata=option(
            "Save every finished count to this file (JSON lines).",
            "a file that keeps each finished count.",
            metavar="FILE",
        ),
    )
    resume: bool = field(
        default=False,
        metadata=option(
            "Continue a journal: count only what is missing.",
            "continue a journal that exists.",
        ),
    )
    shard: str | None = field(
        default=None,
        metadata=option(
            "Count only the K-th of N shards, for one of N processes that share out the run: 3/20. "
            "It needs --journal; `xcount merge` joins the journals.",
            'count only one part of the run: ``"3/20"`` for the third of 20 shards. It needs a '
            "journal; ``AuditResult.from_journals`` or ``CompareResult.from_journals`` joins them.",
            metavar="K/N",
        ),
    )
    verify: bool = field(
        default=False,
        metadata=option(
            "Count every exact count again with the verified counter, after the counts and within "
            "the limits of each; a difference is an error. The HTML report of an audit then "
            "carries the questions and the counter.",
            "whether the verified counter counts every exact count again, within the limits of "
            "each.",
        ),
    )
    on_progress: Callable[[BatchProgress], None] | None = field(
        default=None,
        metadata=python_option(
            "called from the calling thread, a few times a second. A notebook shows a bar unless "
            "this is given."
        ),
    )

    def part(self) -> Shard | None:
        """Return the shard to count; None for the whole run."""
        if self.shard is None:
            return None
        shard = Shard.parse(self.shard)
        if self.journal is None:
            raise QueryError(
                "--shard (shard) needs --journal FILE (journal), a file of its own for each "
                "shard: xcount merge reads them"
            )
        return shard

    def changes(self, ensemble: Ensemble) -> Changes:
        """Return the changes of the questions about a model."""
        return choose_changes(
            ensemble,
            gaps=self.gaps,
            probability_gaps=self.probability_gaps,
            flip=self.flip,
            cutoff=self.decided_at,
            from_probability=self.from_probability,
            direction=self.direction,
            class_=self.class_,
        )
