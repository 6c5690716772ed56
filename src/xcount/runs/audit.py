"""An audit: every used feature (or given groups) x gaps x distances, ranked, with a verdict."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any

from xcount.answers.count import class_label, explanation_request, model_info, versions
from xcount.answers.explanation import ExplanationRequest
from xcount.answers.options import EXPLAIN_HELP, MOST_WITNESSES, fitted, missing_in
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
    affected_table,
    judged_together,
    status_of,
)
from xcount.errors import QueryError
from xcount.measures.measured import REGIONS
from xcount.model.ensemble import Ensemble
from xcount.problem.problem import Problem
from xcount.question.change import Change
from xcount.question.column_groups import note_single_columns
from xcount.question.grid import Grid
from xcount.runs.batch import run_kept
from xcount.runs.inputs import Inputs, inputs_of
from xcount.runs.journal import Record
from xcount.runs.journal_lines import FORMAT, KeptRun, Line, RunNotes, last_run, read_lines
from xcount.runs.options import BatchOptions
from xcount.runs.plan import (
    Changes,
    MaxShare,
    choose_groups,
    choose_max_shares,
    margin_is_probability,
    named_limits,
    questions,
)
from xcount.runs.protected import is_protected
from xcount.runs.ranked import Ranked
from xcount.runs.shards import merged_run, shard_notes
from xcount.runs.task import Question, Task, fingerprint, with_rows
from xcount.support.display import DisplayMixin
from xcount.support.files import written_to
from xcount.support.interval import mean, mean_of
from xcount.support.nearest import nearest
from xcount.support.numerals import to_json
from xcount.support.options import option, python_option, takes
from xcount.support.parse import whole_number
from xcount.support.records import FIRST, Json, from_dict, record, to_dict, written
from xcount.verified.counter import find_engine

MAX_PROFILE_BITS = 20_000_000
"""Profiles with more bits of counts are left out, to keep the journal of a wide model readable."""

Panel = tuple[int | None, Change]
"""A (distance, change) pair: the counts of one panel are comparable."""


@record("audit", "`xcount audit --json` and `xcount demo --json`.")
@dataclass(frozen=True, kw_only=True, repr=False)
class AuditResult(DisplayMixin):
    """All counts of an audit, and what they are about.

    Attributes:
        results: one per group, gap and distance, ordered by distance, gap, names.
        model: the audited model.
        n_planned: counts that were planned; an interrupted audit has fewer results.
        gap_origin: where the gaps come from, in words.
        is_judged: whether any count, finished or not, had a limit.
        created: when the run started (ISO 8601, UTC).
        unused_features: features that no tree tests: changing them has no effect.
        one_step_features: features whose values are all one step from each other.
        task: what the model is for, e.g. ``"binary"``.
        margin: ``"probability"`` if the trees' votes add up to a probability, else ``"score"``.
        output_label: the class in question, for a model with several.

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
            "`probability` if the trees vote and votes add up to one.",
            {"enum": ["score", "probability"]},
        ),
    ] = "score"
    output_label: Annotated[
        str | None,
        Json("The class in question, if the model has several.", name="class_label"),
    ] = None
    gap_origin: GapOrigin = ""
    domain: AskedDomain = None
    n_planned: Planned
    inputs: Inputs = ()
    named: Annotated[
        tuple[str, ...],
        Json(
            "Groups named by `--sensitive` or in `--max-share`, their features joined by "
            "` + `; a report never leaves them out.",
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
    notes: RunNotes = ()
    versions: Versions = field(default_factory=dict)
    results: Annotated[
        tuple[CountResult, ...],
        Json("One object, as in `xcount count --json`, for each group, gap and distance."),
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
        """The groups, most sensitive first: by the mean judged share over their panels.

        If only bounds on a share are known, its low bound counts.
        """
        groups: dict[tuple[str, ...], list[CountResult]] = {}
        for result in self.results:
            groups.setdefault(result.sensitive, []).append(result)
        shares = {name: [result.judged for result in own] for name, own in groups.items()}
        means = {name: mean_of(own) for name, own in shares.items()}
        least = {name: mean(share.least for share in own) for name, own in shares.items()}
        order = sorted(groups, key=lambda name: (-least[name], -means[name].high))
        return tuple(
            Ranked(rank, name, means[name], tuple(groups[name]))
            for rank, name in enumerate(order, start=1)
        )

    def panel(self, panel: Panel) -> tuple[CountResult, ...]:
        """Return one panel's results, the largest share (or low bound) first."""
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
        found = from_dict(cls, data)
        return replace(found, results=_in_order(found.results))

    @classmethod
    def from_journal(cls, path: str | os.PathLike[str]) -> AuditResult:
        """Read the last audit from a journal, finished or not; of equal counts, the latest wins."""
        return cls.from_lines(read_lines(path), path)

    @classmethod
    def from_lines(cls, lines: Sequence[Line], path: str | os.PathLike[str]) -> AuditResult:
        """Return the last audit from the lines of the journal at a path."""
        return cls.from_run(last_run(lines, path, "audit"))

    @classmethod
    def from_journals(cls, paths: Sequence[str | os.PathLike[str]]) -> AuditResult:
        """Read an audit from the journals of its shards; missing shards are named in ``notes``."""
        return cls.from_run(merged_run(paths, "audit"))

    @classmethod
    def from_run(cls, kept: KeptRun) -> AuditResult:
        """Return an audit as its journal holds it."""
        found = (each for each in kept.results() if each is not None)
        notes = (*shard_notes(kept.header), *kept.notes)
        return replace(_audit_result(kept.header, found), notes=notes)

    def affected_parts(self) -> Iterator[tuple[dict[str, str], CountResult]]:
        """Yield the counts, each with what it is about."""
        return ((result.about, result) for result in self.results)

    def affected(self) -> Any:
        """Return the sensitive rows of all counts, as in :meth:`CountResult.affected`."""
        return affected_table(self.affected_parts()).to_frame()

    def __getitem__(self, label: str) -> Ranked:
        """Return the counts of one group: ``audit["sex"]``, or ``audit["age + sex"]``."""
        known = {ranked.label: ranked for ranked in self.ranking}
        if label in known:
            return known[label]
        near = nearest(label, list(known))
        hint = f"did you mean {near!r}?" if near else f"there are {', '.join(known)}"
        raise KeyError(f"no counts of {label!r}; {hint}")

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report, one self-contained HTML page; with a path, write it there, too."""
        from xcount.report import html_report

        return written_to(path, html_report(self))

    def to_markdown(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return a block for a model card; with a path, write it there, too."""
        from xcount.report import markdown_report

        return written_to(path, markdown_report(self))

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return one line per count; with a path, write them there, too."""
        from xcount.report import csv_report

        return written_to(path, csv_report(self))


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditOptions(BatchOptions):
    """The options of an audit."""

    max_share: MaxShare | None = field(
        default=None,
        metadata=option(
            "Give a verdict: the largest share allowed, for all features (1%) or for each "
            "(age=1%,sex=0; age+sex=1% for both together). Repeat it, or separate them by commas.",
            "the largest share allowed: a number for all, or per feature, as a mapping or as "
            '``"age=0.01,sex=0"``. It needs a gap or a flip of your choice. Features that it names '
            "are audited even if no tree tests them.",
            metavar="SHARES",
            repeated="text",
        ),
    )
    n_witnesses: int = field(
        default=0,
        metadata=option(
            "Add N example pairs of inputs to each count.",
            "how many example pairs to add to each count, if they can be drawn.",
            flag="--witnesses",
            metavar="N",
            least=0,
            most=MOST_WITNESSES,
        ),
    )
    profile: bool = field(
        default=True, metadata=python_option("whether to break each count down by mask.")
    )
    explain: bool = field(
        default=True,
        metadata=option(
            EXPLAIN_HELP,
            "whether to say who is affected, in which direction and by how much, as in "
            ":func:`xcount.count`; gaps of the same features share the work. Places and group "
            "rates are found for features you name and legally protected attributes.",
        ),
    )


@takes(AuditOptions)
def audit(model: Any, options: AuditOptions) -> AuditResult:
    """Count every group of features at every gap and distance.

    Args:
        model: a model file, a live model, or an ensemble.
        options: the questions, the accuracy, and what else to report.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> result = xcount.audit(figure_1(), gaps=80)
        >>> [(ranked.label, ranked.results[0].count) for ranked in result.ranking]
        [('f0', 2), ('f1', 2)]
    """
    from xcount.model.loaders import load

    settings = options.settings(judge=options.judge, want_profile=options.profile)
    options.measure_names()  # reject unknown names before reading a large model
    workers, shard = options.workers(), options.part()
    if options.verify:
        find_engine()  # reject it before counting
    n_witnesses = whole_number(options.n_witnesses, "number of witnesses")
    regions = options.regions()
    ensemble = regions.pulled_back(load(model, trust_pickle=options.trust_pickle))
    settings = settings.restarted()
    settings.check_memory()
    chosen = options.changes(ensemble)
    is_chosen = options.flip or (options.gaps, options.probability_gaps) != (None, None)
    if options.max_share is not None and not is_chosen:
        raise QueryError(
            "a verdict needs a gap of your choice: give --gap or --probability-gap "
            "(probability_gaps), or --flip"
        )
    weighing = options.weighing(ensemble, settings)
    grid = Grid.of(
        ensemble, missing=options.missing, missing_in=missing_in(weighing), domain=regions
    )
    with options.knowing_columns():
        limited = tuple(named_limits(ensemble, options.max_share))
        groups = choose_groups(ensemble, grid, options.sensitive, limited)
    note_single_columns(grid, groups)
    limits = dict(zip(groups, choose_max_shares(ensemble, groups, options.max_share), strict=True))
    weighing = fitted(weighing, grid, settings)
    request = explanation_request(ensemble, chosen.values, options)
    n_bits = len(groups) * len(chosen.values) * grid.n_regions.bit_length()
    if n_bits > MAX_PROFILE_BITS:
        settings = replace(settings, want_profile=False)
    named = groups if options.sensitive is not None else limited
    asked = [
        Question(
            query,
            replace(settings, max_share=limits[query.sensitive]),
            options.method,
            weighing,
            n_witnesses,
            explain=_explanation_for_group(request, ensemble, query.sensitive, named),
        )
        for query in questions(chosen.values, groups, options.distances, options.precision)
    ]
    base = Problem(ensemble, grid, asked[0].query)
    scope = (fingerprint(ensemble),)
    tasks = [Task(base, question, scope) for question in asked]
    header = _header(ensemble, grid, tasks, chosen)
    inputs = inputs_of(weighing, options.data, options.population)
    header["inputs"] = [to_dict(each) for each in inputs]
    header["named"] = [" + ".join(_names(ensemble, group)) for group in groups if group in named]
    header["judged"] = any(limit is not None for limit in limits.values())
    if shard is not None:
        tasks, header = shard.cut(tasks, header)
    outcome = run_kept(
        tasks,
        header,
        journal=options.journal,
        resume=options.resume,
        jobs=options.jobs,
        cluster=workers,
        verify=options.verify,
        on_progress=options.on_progress,
    )
    answers = with_rows(tasks, outcome.results, options.favourable)
    finished = [result for result in answers if result is not None]
    return replace(_audit_result(header, finished), notes=(*shard_notes(header), *outcome.notes))


def _header(ensemble: Ensemble, grid: Grid, tasks: list[Task], chosen: Changes) -> dict[str, Any]:
    """Return the content of the journal's run line."""
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
    """Return what to explain for a group: places and rates only if readers look for them.

    That is if the user named the group, or one of its features is legally protected: places and
    rates take longer than most counts.
    """
    if request is None:
        return None
    is_first = group in named or any(map(is_protected, _names(ensemble, group)))
    return replace(request, with_people=is_first)


def _audit_result(header: Record, results: Iterable[CountResult]) -> AuditResult:
    """Return an audit, made from the content of its run line and its results."""
    empty = from_dict(AuditResult, {**header, "results": []})
    return replace(empty, results=_in_order(results))


def _in_order(results: Iterable[CountResult]) -> tuple[CountResult, ...]:
    def place(result: CountResult) -> tuple[float, Fraction, tuple[str, ...]]:
        distance = float("inf") if result.distance is None else result.distance
        return (distance, result.change.order, result.sensitive)

    return tuple(sorted(results, key=place))
