"""An audit: every used feature (or given groups) x gaps x distances, ranked, with a verdict."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from xcount.answers.count import class_label, explanation_request, model_info, versions
from xcount.answers.explanation import ExplanationRequest
from xcount.answers.mean_share import MeanShare
from xcount.answers.result import (
    JUDGE_OF_ALL,
    STATUS_OF_ALL,
    VERDICT_OF_ALL,
    AboutModel,
    AskedDomain,
    CountResult,
    Created,
    GapOrigin,
    ModelTask,
    Planned,
    Verdict,
    Versions,
    judged_together,
    readable,
    status_of,
)
from xcount.counters.settings import DEFAULT_TIMEOUT_SECONDS, Settings
from xcount.errors import QueryError
from xcount.measures.measured import REGIONS, measures_meant
from xcount.measures.shares import weighing_of
from xcount.model.ensemble import Ensemble
from xcount.problem.problem import Problem
from xcount.question.change import Change
from xcount.question.domain import Domain, DomainLike, OneHot, Words
from xcount.question.grid import Grid, Missing
from xcount.runs.batch import BatchOutcome, BatchProgress, run_kept
from xcount.runs.inputs import Inputs, inputs_of
from xcount.runs.journal import Record
from xcount.runs.journal_schema import last_run, result_of
from xcount.runs.plan import (
    Changes,
    Group,
    MaxShare,
    choose_changes,
    choose_groups,
    choose_max_shares,
    margin_is_probability,
    named_limits,
    questions,
)
from xcount.runs.protected import is_protected
from xcount.runs.ranked import Ranked
from xcount.runs.task import Question, Task, fingerprint
from xcount.support.interface import public
from xcount.support.numerals import to_json
from xcount.support.records import FIRST, Json, from_dict, record, to_dict, written
from xcount.support.shown import Shown
from xcount.support.spellings import whole_number

if TYPE_CHECKING:
    from distributed import Client
    from distributed.deploy import Cluster as DaskCluster

    from xcount.measures.population import Population
    from xcount.support.spellings import Duration, Number, Size

FORMAT = 1
MAX_PROFILE_BITS = 20_000_000
"""Without profiles beyond this many bits of counts: the journal of a wide model stays readable."""

Panel = tuple[int | None, Change]
"""A (distance, change): the counts of one panel compare with each other."""


@record("audit", "`xcount audit --json` and `xcount demo --json`.")
@dataclass(frozen=True, kw_only=True, repr=False)
class AuditResult(Shown):
    """All counts of an audit, and what they are about.

    Attributes:
        results: one per group, gap and distance, in that order of distance, gap, names.
        model: which model was asked.
        n_planned: counts that were planned; an interrupted audit has fewer results.
        gap_origin: where the gaps come from, in words.
        is_judged: whether a limit was given, of any count, finished or not.
        created: when the run began (ISO 8601, UTC).
        unused_features: features that no tree tests: changing them changes nothing.
        one_step_features: features whose values are all one step from each other.
        task: what the model is for, e.g. ``"binary"``.
        margin: ``"probability"`` where the trees' votes add up to one, else ``"score"``.
        output_label: the class asked about, for a model with several.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> result = xcount.audit(figure_1(), gaps=[60, 80])
        >>> [ranked.label for ranked in result.ranking], len(result.results)
        (['f0', 'f1'], 4)
    """

    created: Created = ""
    model: AboutModel
    task: ModelTask = "unknown"
    margin: Annotated[
        str,
        Json(
            "`probability` where the trees vote and votes add up to one.",
            {"enum": ["score", "probability"]},
        ),
    ] = "score"
    output_label: Annotated[
        str | None,
        Json("The class asked about, where the model has several.", name="class_label"),
    ] = None
    gap_origin: GapOrigin = ""
    domain: AskedDomain = None
    n_planned: Planned
    inputs: Inputs = ()
    named: Annotated[
        tuple[str, ...],
        Json(
            "Groups that were named by `--sensitive` or in `--max-share`, their features joined "
            "by ` + `; a report never leaves them out.",
            is_optional=True,
        ),
    ] = ()
    is_judged: Annotated[
        bool,
        Json("Whether `--max-share` limits any planned count.", name="judged", is_optional=True),
    ] = False
    unused_features: Annotated[tuple[str, ...], Json("Features that no tree tests.")] = ()
    one_step_features: Annotated[
        tuple[str, ...],
        Json(
            "Features whose values are all one step from each other: categories, or two cells.",
            is_optional=True,
        ),
    ] = ()
    versions: Versions = field(default_factory=dict)
    results: Annotated[
        tuple[CountResult, ...],
        Json("One object as of `xcount count --json` per group, gap and distance."),
    ]

    @property
    @written(Json("What this object is.", {"const": "audit"}, after=FIRST))
    def kind(self) -> str:
        return "audit"

    @property
    @written(Json("Version of this layout.", {"const": FORMAT}, after="kind"))
    def format(self) -> int:
        return FORMAT

    @cached_property
    def panels(self) -> tuple[Panel, ...]:
        """The (distance, change) pairs that were counted, ascending."""
        return tuple(dict.fromkeys((r.distance, r.change) for r in self.results))

    @cached_property
    @written(Json("The features or groups, the most sensitive first.", after="versions"))
    def ranking(self) -> tuple[Ranked, ...]:
        """The groups, most sensitive first: by the mean judged share over the panels they have.

        Where only bounds of a share are known, its low bound counts.
        """
        groups: dict[tuple[str, ...], list[CountResult]] = {}
        for result in self.results:
            groups.setdefault(result.sensitive, []).append(result)
        means = {name: MeanShare.of(results) for name, results in groups.items()}
        order = sorted(groups, key=lambda name: (-means[name].least, -means[name].high))
        return tuple(
            Ranked(rank, name, mean.value, mean.low, mean.high, tuple(groups[name]))
            for rank, name in enumerate(order, start=1)
            for mean in (means[name],)
        )

    def panel(self, panel: Panel) -> tuple[CountResult, ...]:
        """Return one panel's results, the largest share first, as far as it is known."""
        found = [r for r in self.results if (r.distance, r.change) == panel]
        return tuple(sorted(found, key=lambda r: r.order))

    @property
    def is_whole(self) -> bool:
        """Whether every planned count has a result."""
        return len(self.results) >= self.n_planned

    @property
    @written(VERDICT_OF_ALL)
    def verdict(self) -> Verdict | None:
        """FAIL if any count fails; else UNDECIDED if any is, or is missing; else PASS."""
        verdicts = [r.verdict for r in self.results if r.verdict is not None]
        is_judged = bool(verdicts) or (self.is_judged and not self.is_whole)
        return judged_together(verdicts, self.is_whole) if is_judged else None

    @property
    @written(JUDGE_OF_ALL)
    def judge(self) -> str:
        return self.results[0].judge if self.results else REGIONS

    @property
    @written(STATUS_OF_ALL)
    def exit_status(self) -> int:
        """0 answered (and PASS), 1 FAIL, 3 UNDECIDED or stopped by a limit."""
        is_answered = self.is_whole and all(result.is_answered for result in self.results)
        return status_of(self.verdict, is_answered)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON contract of ``xcount audit --json``."""
        return to_dict(self)

    def to_json(self, indent: int | None = None) -> str:
        """Return the audit as one JSON object."""
        return to_json(self.to_dict(), indent)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AuditResult:
        """Read back what :meth:`to_dict` wrote, or a run line of a journal with its results."""
        results = [readable(result) for result in data["results"]]
        found = from_dict(cls, {**data, "results": results})
        return replace(found, results=_in_order(found.results))

    @classmethod
    def from_journal(cls, path: str | os.PathLike[str]) -> AuditResult:
        """Read the last audit from a journal, finished or not; the latest of equal counts wins.

        Without a list of what it planned, as in older journals, it is all counts there are.
        """
        kept = last_run(path, "audit")
        if kept.keys is not None:
            found = [result for result in kept.results() if result is not None]
            planned = len(kept.keys)
        else:
            by_question = {_question(r): r for r in map(result_of, kept.lines)}
            found = list(by_question.values())
            planned = max(kept.header["planned"], len(found))
        data = {**kept.header, "results": [result.to_dict() for result in found]}
        return cls.from_dict(data | {"planned": planned})

    def to_html(self) -> str:
        """Return the report: one self-contained HTML page."""
        from xcount.report import html_report

        return html_report(self)

    def to_markdown(self) -> str:
        """Return a block for a model card."""
        from xcount.report import markdown_report

        return markdown_report(self)

    def to_csv(self) -> str:
        """Return one line per count."""
        from xcount.report import csv_report

        return csv_report(self)


@public
def audit(
    model: Any,
    *,
    sensitive: Iterable[Group] | str | int | None = None,
    gaps: object = None,
    probability_gaps: object = None,
    flip: bool = False,
    cutoff: object = None,
    from_probability: object = None,
    direction: str = "any",
    distances: object = 1,
    precision: int | str | None = "exact",
    class_: int | str | None = None,
    missing: Missing = "none",
    domain: DomainLike = None,
    one_hot: OneHot = (),
    where: Words = (),
    rule: Words = (),
    method: str = "auto",
    epsilon: Number = 0.1,
    delta: Number = 0.1,
    seed: int = 0,
    timeout: Duration | None = DEFAULT_TIMEOUT_SECONDS,
    memory: Size | None = None,
    jobs: int = 0,
    max_share: MaxShare | None = None,
    judge: str = REGIONS,
    measures: str | Iterable[str] = (),
    data: Any = None,
    bounds: Mapping[str, tuple[float, float]] | str | None = None,
    population: Population | str | os.PathLike[str] | None = None,
    n_witnesses: int = 0,
    profile: bool = True,
    explain: bool = True,
    favourable: str | None = None,
    journal: str | os.PathLike[str] | None = None,
    resume: bool = False,
    trust_pickle: bool = False,
    cluster: str | Client | DaskCluster | None = None,
    on_progress: Callable[[BatchProgress], None] | None = None,
) -> AuditResult:
    """Count every group of features at every gap and distance.

    Args:
        model: a model file, a live model, or an ensemble.
        sensitive: groups of features; None for each used feature by itself.
        gaps: gaps in margin; None for a ladder that fits the leaves.
        probability_gaps: gaps in the predicted probability, instead.
        flip: count changes of the decision instead of changes by more than a gap.
        cutoff: the margin at which the decision changes; the model's own unless given.
        from_probability: only flips of a decision that is taken with at least this probability.
        direction: ``"up"`` or ``"down"`` if only changes that raise or lower count.
        distances: numbers, or ``"any"``; one or several.
        precision: decimals that leaves are rounded to, or ``"exact"``.
        class_: the class asked about, where the model has several.
        missing: whether missing values are a cell of their own.
        domain: which regions exist, as in :func:`xcount.count`.
        one_hot: columns of which exactly one is 1.
        where: conditions that every region fulfils.
        rule: rules ``COND -> COND`` that every region keeps.
        method: how to count.
        epsilon: relative error allowed.
        delta: probability with which an interval may be wrong.
        seed: seed of all random choices.
        timeout: limit of each count, not of the audit: seconds, or ``"60s"``, ``"5m"``.
        memory: limit of each count: bytes, or ``"4GB"``.
        jobs: cores to use; 0 for all.
        max_share: the largest share allowed: a number for all, or per feature, as a mapping or as
            ``"age=0.01,sex=0"``. Needs gaps that are given. What it names is audited, also where
            no tree tests it.
        judge: the measure whose share that is, and that ranks: ``regions``, or one of ``measures``.
        measures: other weights of the same regions (see :mod:`xcount.measures.measure`).
        data: the table that the measures need; alone, it asks for ``rows``.
        bounds: the bounds of a volume.
        population: a fitted population, or its file; a file that is not there yet is written.
        n_witnesses: how many examples of each count to add, where they can be drawn.
        profile: whether to take each count apart by cells.
        explain: whether to say who is affected, which way and how much, as in
            :func:`xcount.count`; gaps of the same features share the work. Places and group rates
            are those of features that were named, or that laws protect.
        favourable: the decision whose rates are compared between groups, as in
            :func:`xcount.count`.
        journal: file that keeps each finished count.
        resume: go on with a journal that exists.
        trust_pickle: whether a pickle may be opened.
        cluster: a Dask scheduler's address, client or cluster; there, jobs are threads a count.
        on_progress: called from the calling thread, a few times a second. A notebook shows a bar
            unless this is given.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> result = xcount.audit(figure_1(), gaps=80)
        >>> [(ranked.label, ranked.results[0].count) for ranked in result.ranking]
        [('f0', 2), ('f1', 0)]
    """
    from xcount.model.loaders import load

    measures = measures_meant(measures, judge, data, bounds, population)
    regions = Domain.of(domain, one_hot=one_hot, where=where, rule=rule)
    ensemble = regions.pulled_back(load(model, trust_pickle=trust_pickle))
    settings = Settings.of(
        epsilon=epsilon,
        delta=delta,
        seed=seed,
        timeout=timeout,
        memory=memory,
        jobs=jobs,
        judge=judge,
        want_profile=profile,
    )
    settings.check_memory()
    chosen = choose_changes(
        ensemble,
        gaps=gaps,
        probability_gaps=probability_gaps,
        flip=flip,
        cutoff=cutoff,
        from_probability=from_probability,
        direction=direction,
        class_=class_,
    )
    if max_share is not None and gaps is None and probability_gaps is None and not flip:
        raise QueryError(
            "a verdict needs a gap of your choice: give --gap or --probability-gap "
            "(probability_gaps), or --flip"
        )
    grid = Grid.of(ensemble, missing=missing, domain=regions)
    limited = tuple(named_limits(ensemble, max_share))
    groups = choose_groups(ensemble, grid, sensitive, limited)
    limits = dict(zip(groups, choose_max_shares(ensemble, groups, max_share), strict=True))
    weighing = weighing_of(ensemble, grid, settings, measures, data, bounds, population)
    request = explanation_request(ensemble, chosen.values, explain, favourable)
    n_bits = len(groups) * len(chosen.values) * grid.n_regions.bit_length()
    if n_bits > MAX_PROFILE_BITS:
        settings = replace(settings, want_profile=False)
    named = groups if sensitive is not None else limited
    asked = [
        Question(
            query,
            replace(settings, max_share=limits[query.sensitive]),
            method,
            weighing,
            whole_number(n_witnesses, "number of witnesses"),
            explain=_explanation_for_group(request, ensemble, query.sensitive, named),
        )
        for query in questions(chosen.values, groups, distances, precision)
    ]
    base = Problem(ensemble, grid, asked[0].query)
    scope = (fingerprint(ensemble),)
    tasks = [Task(base, question, scope) for question in asked]
    header = _header(ensemble, grid, tasks, chosen)
    header["inputs"] = [to_dict(each) for each in inputs_of(weighing, data, population)]
    header["named"] = [" + ".join(_names(ensemble, group)) for group in groups if group in named]
    header["judged"] = any(limit is not None for limit in limits.values())
    outcome = run_kept(
        tasks,
        header,
        journal=journal,
        resume=resume,
        jobs=jobs,
        cluster=cluster,
        on_progress=on_progress,
    )
    return _audit_result(header, outcome)


def _header(ensemble: Ensemble, grid: Grid, tasks: list[Task], chosen: Changes) -> dict[str, Any]:
    """Return what the journal's run line says."""
    axes = list(zip(ensemble.feature_names, grid.axes, strict=True))
    unused = [name for name, axis in axes if axis.is_unused]
    one_step = [name for name, axis in axes if axis.feature.is_categorical or axis.n_cells == 2]
    return {
        "command": "audit",
        "format": FORMAT,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "fingerprint": fingerprint(ensemble),
        "model": model_info(ensemble, grid).to_dict(),
        "task": ensemble.task,
        "margin": "probability" if margin_is_probability(ensemble) else "score",
        "class_label": class_label(ensemble, tasks[0].question.query),
        "gap_origin": chosen.origin,
        **({"domain": grid.domain.to_dict()} if grid.domain else {}),
        "planned": len(tasks),
        "keys": [task.key for task in tasks],
        "unused_features": unused,
        "one_step_features": one_step,
        "versions": versions(),
    }


def _names(ensemble: Ensemble, group: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(ensemble.feature_names[feature] for feature in group)


def _explanation_for_group(
    request: ExplanationRequest | None,
    ensemble: Ensemble,
    group: tuple[int, ...],
    named: Sequence[tuple[int, ...]],
) -> ExplanationRequest | None:
    """Return what is explained of a group: places and rates only where one looks for them.

    That is where the group was named, or a law protects one of its features: both take longer than
    most counts.
    """
    if request is None:
        return None
    is_first = group in named or any(map(is_protected, _names(ensemble, group)))
    return replace(request, with_people=is_first)


def _audit_result(header: Record, outcome: BatchOutcome) -> AuditResult:
    data = {**header, "results": [r.to_dict() for r in outcome.finished]}
    return AuditResult.from_dict(data)


def _question(result: CountResult) -> tuple[Any, ...]:
    return (result.sensitive, result.change, result.distance, result.precision)


def _in_order(results: Iterable[CountResult]) -> tuple[CountResult, ...]:
    def place(result: CountResult) -> tuple[float, Fraction, tuple[str, ...]]:
        distance = float("inf") if result.distance is None else result.distance
        return (distance, result.change.order, result.sensitive)

    return tuple(sorted(results, key=place))
