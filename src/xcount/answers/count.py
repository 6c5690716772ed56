"""One count from start to finish: model -> ensemble -> grid -> query -> counter -> result."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from xcount.answers.explanation import ExplanationRequest
from xcount.answers.options import (
    ClusterOption,
    CountingOptions,
    ExplainOptions,
    MeasureOptions,
    QuestionOptions,
    TrustOption,
    fitted,
    missing_in,
)
from xcount.answers.people.group_table import Groups
from xcount.answers.result import CountResult, ModelInfo, Verdict, verdict_of
from xcount.counters import counter
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress, StopReason, Tally
from xcount.errors import QueryError
from xcount.measures.measured import Measured
from xcount.model.ensemble import Ensemble
from xcount.problem.problem import Problem
from xcount.question.change import Change
from xcount.question.column_groups import note_single_columns, note_unused
from xcount.question.grid import Grid
from xcount.question.query import Query
from xcount.question.share import Limit
from xcount.support.options import option, python_option, takes
from xcount.support.process import peak_memory_bytes

if TYPE_CHECKING:
    from xcount.measures.weighting import Weighing

COUNTING_PART, LEAST_COUNTING_PART = 0.9, 0.5
"""Part of a time limit for the count; the rest is for the explanation, if one is wanted. If laying
out its trees takes longer, the explanation gets more."""
EXPLAINING_STAGES = 3
"""Stages of an explanation: sizes of changes, rates by group, places."""
READING_PART = 0.5
"""Part of the time left that reading a table may take; rows that are not read are left out."""
JUDGED_PART = 0.75
"""Part of the time for the judged measure, if there is a limit to decide."""
CONTEXT_SECONDS = 2.0
"""Least time for the other measures after the verdict; they may take as long as the verdict did."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AnswerOptions(MeasureOptions, CountingOptions):
    """How to count and to weigh, and the verdict on the answer."""

    max_share: object = field(
        default=None,
        metadata=option(
            "Give a verdict: PASS if at most this share of the regions, or of the --judge measure, "
            "is sensitive (0.01, 1% or 2/9).",
            'the largest share allowed, for a verdict: 0.05, ``"5%"`` or ``"1/20"``; may stop the '
            "run early.",
            metavar="SHARE",
        ),
    )
    on_progress: Callable[[Progress], None] | None = field(
        default=None,
        metadata=python_option(
            "called a few times a second; a KeyboardInterrupt raised in it ends the count with the "
            "bounds found so far. A notebook shows a bar unless this is given."
        ),
    )

    def count_settings(self, **more: Any) -> Settings:
        """Return the settings of a count: accuracy, limits and the requested verdict."""
        limit = self.max_share
        return self.settings(
            max_share=None if limit is None else Limit.share(limit, "--max-share (max_share)"),
            judge=self.judge,
            on_progress=self.on_progress,
            **more,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class CountOptions(
    AnswerOptions,
    TrustOption,
    ClusterOption,
    ExplainOptions,
    CountingOptions,
    QuestionOptions,
):
    """The options of a count."""

    profile: bool = field(
        default=False,
        metadata=option(
            "Also show where: the count of each mask, and the jumps between masks.",
            "whether to break the count down by mask.",
        ),
    )
    verify: bool = field(
        default=False,
        metadata=option(
            "Count an exact count again with the verified counter, within the limits; a difference "
            "is an error.",
            "whether the verified counter counts an exact count again, within the limits.",
        ),
    )
    question: str | os.PathLike[str] | None = field(
        default=None,
        metadata=option(
            "Also write the question in integers to this file, for `xcount verify`.",
            "a file to write the question to, in integers, for :func:`xcount.verify`.",
            metavar="FILE",
        ),
    )
    grid: Grid | None = field(
        default=None, metadata=python_option("the cells to count in, if not those of the model.")
    )


@takes(CountOptions)
def count(model: Any, options: CountOptions) -> CountResult:
    """Count the sensitive regions of a model.

    A region is sensitive if a change of the sensitive features within the distance changes the
    margin by more than ``gap``, or the predicted probability by more than ``probability_gap``; or,
    with ``flip``, if it changes the decision: which side of the ``cutoff`` (a margin, the model's
    own unless given) the margin lies on, or which of several classes wins.

    Args:
        model: a model file, a live model, or an ensemble.
        options: the question, the accuracy, and what else to report.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> result = xcount.count(figure_1(), sensitive="f0", gap=80)
        >>> result.count, result.n_regions
        (2, 9)
    """
    from xcount.model.loaders import load

    options.check_change()
    cluster = options.workers()
    settings = options.count_settings(want_profile=options.profile)
    options.measure_names()  # reject unknown names before reading a large model
    if options.verify:
        from xcount.verified.counter import find_engine

        find_engine()  # reject it before counting
    regions = options.regions()
    if regions and options.grid is not None:
        raise QueryError("give a grid or a domain, not both")
    ensemble = regions.pulled_back(load(model, trust_pickle=options.trust_pickle))
    settings.check_memory()
    with options.knowing_columns():
        query = options.query(ensemble)
    weighing = options.weighing(ensemble, settings.within(READING_PART))
    cells = options.grid or Grid.of(
        ensemble, missing=options.missing, missing_in=missing_in(weighing), domain=regions
    )
    note_single_columns(cells, [query.sensitive])
    if options.data is not None and not options.groups:
        note_unused(cells, query.sensitive)
    problem = Problem(ensemble, cells, query)
    if options.question is not None:
        from xcount.verified.question_file import write_question

        write_question(problem, options.question)
    settings.check_time()
    weighing = fitted(weighing, problem.grid, settings)
    request = explanation_request(ensemble, (query.change,), options)
    if cluster is not None:
        from xcount.cluster.client import Cluster

        with Cluster(cluster) as workers:
            result = workers.count(problem, settings, options.method, weighing, request)
    else:
        result = solve(problem, settings, options.method, weighing, request)
    result = replace(result, seconds=time.monotonic() - settings.started)
    result = with_affected_rows(result, problem, weighing, settings, options.favourable)
    if options.verify:
        from xcount.answers.verify import verified_result

        return verified_result(problem, result, settings)
    return result


def with_affected_rows(
    result: CountResult,
    problem: Problem,
    weighing: Weighing | None,
    settings: Settings,
    favourable: str | None,
) -> CountResult:
    """Return a result that knows its sensitive rows, if rows were counted."""
    measured = result.measures.get("rows")
    if measured is None:
        return result
    from xcount.answers.explain.rates import decision_of
    from xcount.answers.people.affected import AffectedRows

    change = problem.query.change
    best = None if favourable is None else decision_of(problem.ensemble, change, favourable)
    rows = AffectedRows.of(problem, measured, weighing, settings, best)
    return replace(result, affected_rows=rows)


def explanation_request(
    ensemble: Ensemble, changes: Sequence[Change], options: ExplainOptions
) -> ExplanationRequest | None:
    """Return the request for an explanation, if one is wanted; reject unknown decisions."""
    favourable = options.favourable
    if favourable is not None or options.groups:
        from xcount.answers.people.groups import compared_decision

        if not (options.explain or options.groups):
            raise QueryError(
                "a favourable decision is for rates by group; give --explain, or --group (groups)"
            )
        for change in changes:
            compared_decision(ensemble, change, favourable)
    return ExplanationRequest(tuple(changes), favourable) if options.explain else None


def solve(
    problem: Problem,
    settings: Settings,
    method: str = "auto",
    weighing: Weighing | None = None,
    explain: ExplanationRequest | None = None,
) -> CountResult:
    """Count a prepared problem, and measure it.

    Args:
        problem: the question.
        settings: accuracy and limits.
        method: how to count.
        weighing: the measures to find along with the count.
        explain: the questions to explain, including this one; None for no explanation.
    """
    started = time.perf_counter()
    if explain is None:
        return _solved(problem, settings, method, weighing)
    most = _counting_seconds(problem, settings)
    result = _solved(problem, replace(settings, timeout_seconds=most), method, weighing)
    result = explained(result, problem, settings, weighing, explain)
    return replace(result, seconds=time.perf_counter() - started)


def _counting_seconds(problem: Problem, settings: Settings) -> float | None:
    """Return the time limit of a count that is to be explained."""
    from xcount.measures.products import stage_seconds

    limit = settings.timeout_seconds
    if limit is None:
        return None
    rest = limit - EXPLAINING_STAGES * stage_seconds(problem)
    return max(LEAST_COUNTING_PART * limit, min(COUNTING_PART * limit, rest))


def explained(
    result: CountResult,
    problem: Problem,
    settings: Settings,
    weighing: Weighing | None,
    request: ExplanationRequest,
) -> CountResult:
    """Return a count with its explanation; if interrupted, the finished count without it."""
    if result.stop_reason is StopReason.INTERRUPTED:
        return result
    from xcount.answers.explain.effects import explain
    from xcount.answers.explain.who import with_people

    known = _certain_shares(result)
    try:
        found = explain(problem, settings, weighing, request.changes, known)
        if request.with_people:
            found = with_people(found, problem, settings, weighing, known, request.favourable)
    except KeyboardInterrupt:
        return result
    return replace(result, explanation=replace(found, notes=(*found.notes, *_left_out(result))))


def _left_out(result: CountResult) -> list[str]:
    """Say that an explanation is not about rows without a place."""
    rows = result.measures.get("rows")
    if rows is None or not rows.interval.left_out:
        return []
    reasons = rows.details["left_out_reasons"].items()
    listed = "; ".join(f"{reason} ({number:,})" for reason, number in reasons)
    return [f"rows that have no place are not in the explanation: {listed}"]


def _certain_shares(result: CountResult) -> dict[str, tuple[float, float]]:
    """Return the guaranteed bounds on shares, by measure."""
    found = {}
    if result.confidence == 1.0:
        found["regions"] = (result.share_low, result.share_high)
    for name, measured in result.measures.items():
        if measured.confidence == 1.0 and not measured.interval.left_out:
            found[name] = (measured.low, measured.high)
    return found


def _solved(
    problem: Problem, settings: Settings, method: str, weighing: Weighing | None
) -> CountResult:
    started = time.perf_counter()
    if weighing is not None:
        from xcount.measures.shares import check_data

        check_data(problem, weighing)
    tally, found = _counted(problem, settings, method, weighing)
    query, ensemble = problem.query, problem.ensemble
    result = CountResult(
        count=tally.count,
        low=tally.low,
        high=tally.high,
        confidence=tally.confidence,
        n_regions=problem.n_regions,
        n_fixed=problem.grid.n_fixed(query.sensitive),
        domain=problem.grid.domain or None,
        method=tally.method,
        stop_reason=tally.stop_reason,
        sensitive=tuple(ensemble.features[f].name for f in query.sensitive),
        change=query.change,
        distance=query.distance,
        precision=query.precision,
        class_label=class_label(ensemble, query),
        model=model_info(ensemble, problem.grid),
        epsilon=settings.epsilon,
        delta=settings.delta,
        seed=settings.seed,
        max_share=settings.max_share,
        judge=settings.judge,
        seconds=time.perf_counter() - started,
        peak_memory_bytes=peak_memory_bytes(),
        versions=versions(),
        details=tally.details,
        measures=found,
        profile=tally.profile,
    )
    result = replace(result, groups=_groups(problem, found, weighing, settings))
    return replace(result, stop_reason=_stop_reason(result))


def _groups(
    problem: Problem, found: Mapping[str, Measured], weighing: Weighing | None, settings: Settings
) -> Groups | None:
    """Return how the groups of the data fare, if they were asked for and rows were measured."""
    if weighing is None or weighing.grouping is None or _was_interrupted(found):
        return None
    from xcount.answers.people.groups import groups_of_rows

    try:
        return groups_of_rows(problem, found, weighing, settings)
    except KeyboardInterrupt:  # the count itself is done
        return None


def _proved_share(tally: Tally, problem: Problem) -> float | None:
    """Return the share that the count proves under every measure: 0, 1, or None if neither."""
    if tally.confidence < 1:
        return None
    if tally.high == 0:
        return 0.0
    return 1.0 if tally.low == problem.n_regions else None


def _counted(
    problem: Problem, settings: Settings, method: str, weighing: Weighing | None
) -> tuple[Tally, dict[str, Measured]]:
    """Count and measure, the judged measure first; return measures in the requested order.

    The count gets half of the time if other measures need some. With a limit, the judged measure
    gets most of it, and the others stop soon after the verdict.
    """
    if weighing is None or not weighing.names:
        return _tally(problem, settings, method), {}
    from xcount.measures.shares import measure

    names, found = weighing.names, dict[str, Measured]()
    rest = settings
    if settings.judge in names:
        part = 0.5 if settings.max_share is None else JUDGED_PART
        found = measure(problem, weighing.of_names([settings.judge]), settings.within(part))
        rest = replace(_after(found[settings.judge], settings), max_share=None)
    others = weighing.of_names(set(names) - found.keys())
    if _was_interrupted(found):
        return Tally.of_bounds(0, problem.n_regions, method, StopReason.INTERRUPTED), found
    tally = _tally(problem, rest.within(0.5) if others.n_weighed else rest, method)
    if tally.stop_reason is not StopReason.INTERRUPTED:
        proved = _proved_share(tally, problem)
        if proved is not None:
            others = weighing.of_names([n for n in names if n not in found or not found[n].exact])
        found |= measure(problem, others, rest, proved)
        if _was_interrupted(found):
            tally = replace(tally, stop_reason=StopReason.INTERRUPTED)
    return tally, {name: found[name] for name in names if name in found}


def _was_interrupted(found: Mapping[str, Measured]) -> bool:
    return any(measured.stop_reason is StopReason.INTERRUPTED for measured in found.values())


def _after(judged: Measured, settings: Settings) -> Settings:
    """Return the settings for the work that follows the judged measure."""
    limit = settings.max_share
    if limit is None or verdict_of(limit, judged.interval) is Verdict.UNDECIDED:
        return settings
    now, left = time.monotonic(), settings.seconds_left()
    seconds = max(CONTEXT_SECONDS, now - settings.started)
    allowed = seconds if left is None else min(seconds, left)
    return replace(settings, timeout_seconds=allowed, started=now)


def _tally(problem: Problem, settings: Settings, method: str) -> Tally:
    """Count; an estimate says what the time limit cut short."""
    own = settings.for_one_answer()
    return own.cuts.told_by(_counted_within(problem, own, method))


def _counted_within(problem: Problem, settings: Settings, method: str) -> Tally:
    try:
        count_one = counter(method, problem)
        if problem.n_masks == 1 and not settings.want_profile:  # nothing can change
            return Tally.of_bounds(0, 0, method, StopReason.COMPLETE)
        if problem.is_split:
            from xcount.counters.parts import count_parts
            from xcount.problem.parts import parts_of

            if parts := parts_of(problem):
                return count_parts(problem, parts, settings, count_one, method)
        return count_one(problem, settings)
    except KeyboardInterrupt:  # before the counter found any bounds
        return Tally.of_bounds(0, problem.n_regions, method, StopReason.INTERRUPTED)


def class_label(ensemble: Ensemble, query: Query) -> str | None:
    """Return the name of the class in question, if the model has several."""
    if not query.change.names_class or ensemble.n_outputs < 2:
        return None
    labels, output = ensemble.class_labels, query.change.output_index
    return labels[output] if labels else str(output)


def _stop_reason(result: CountResult) -> StopReason:
    """Return DECIDED if the requested verdict is known although the accuracy was not reached.

    Otherwise, if the judged measure was cut short, return its reason.
    """
    cut_short = [r for r in result.stop_reasons[::-1] if r is not StopReason.COMPLETE]
    if not cut_short:
        return StopReason.COMPLETE
    is_decided = result.verdict in (Verdict.PASS, Verdict.FAIL)
    return StopReason.DECIDED if is_decided else cut_short[0]


def model_info(ensemble: Ensemble, grid: Grid) -> ModelInfo:
    """Describe the model for a result."""
    return ModelInfo(
        path=ensemble.path,
        sha256=ensemble.sha256,
        format=ensemble.format,
        n_trees=ensemble.n_trees,
        max_depth=ensemble.max_depth,
        n_features=ensemble.source.n_features,
        n_guards=grid.n_guards,
    )


def versions() -> dict[str, str]:
    """Return the versions a result depends on."""
    import numpy as np

    from xcount._version import __version__

    return {"xcount": __version__, "python": sys.version.split()[0], "numpy": np.__version__}
