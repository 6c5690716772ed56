"""A comparison: several models asked the same questions on one shared grid.

Counts of different models are comparable only if they count the same regions, so the grid holds the
guards of all of them (as in section 6 of the paper). The first model is the baseline, and::

    relative sensitivity of model i  =  C_i / C_0

for each question whose baseline count is not zero. Measures are compared in the same way: all
models are weighed by the same rows, bounds or population on that grid.
"""

from __future__ import annotations

import datetime
import math
import os
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any

from xcount.answers.count import explanation_request, model_info, versions
from xcount.answers.options import fitted, missing_in
from xcount.answers.result import (
    JUDGE_OF_ALL,
    STATUS_OF_ALL,
    VERDICT_OF_ALL,
    AskedDomain,
    CountResult,
    Created,
    GapOrigin,
    ModelInfo,
    ModelTask,
    Planned,
    Verdict,
    Versions,
    affected_table,
    judged_together,
    limit_form,
    status_of,
)
from xcount.errors import QueryError
from xcount.measures.measured import REGIONS
from xcount.model.align import aligned, check_margins, distinct_names, same_class
from xcount.model.ensemble import Ensemble
from xcount.problem.problem import Problem
from xcount.question.change import Change
from xcount.question.column_groups import note_single_columns
from xcount.question.grid import Grid
from xcount.question.share import Limit
from xcount.runs.batch import run_kept
from xcount.runs.compared import Compared, ModelSummary
from xcount.runs.inputs import Inputs, inputs_of
from xcount.runs.journal import Record
from xcount.runs.journal_lines import FORMAT, KeptRun, Line, RunNotes, last_run, read_lines
from xcount.runs.options import BatchOptions
from xcount.runs.plan import Changes, choose_groups, questions
from xcount.runs.shards import merged_run, shard_notes
from xcount.runs.task import Question, Task, fingerprint, with_rows
from xcount.support.display import DisplayMixin
from xcount.support.files import written_to
from xcount.support.interval import Interval, mean, mean_of
from xcount.support.numerals import to_json
from xcount.support.options import option, takes
from xcount.support.records import FIRST, Json, from_dict, record, to_dict, written
from xcount.verified.counter import find_engine

MAX_RATIO = limit_form("max_ratio", "`--max-ratio`; null without.")


@record("compare", "`xcount compare --json`.")
@dataclass(frozen=True, kw_only=True, repr=False)
class CompareResult(DisplayMixin):
    """The answers of several models to the same questions on a shared grid.

    Attributes:
        names: the names of the models.
        models: the compared models; the first is the baseline.
        rows: one per question, ordered by distance, gap, names.
        n_regions: regions of the shared grid.
        n_guards: guards of the shared grid; 0 in older journals, which lack it.
        max_ratio: the largest allowed C_i / C_0, or ratio of judged shares; None for no verdict.
        n_planned: counts that were planned; an interrupted comparison has fewer results.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import ensemble_of
        >>> rough, smooth = ensemble_of((0, 1.0, 0.0, 3.0)), ensemble_of((0, 1.0, 0.0, 1.0))
        >>> result = xcount.compare([rough, smooth], names=["rough", "smooth"], gaps=2, max_ratio=1)
        >>> result.ranking[0].name, str(result.verdict)
        ('smooth', 'PASS')
    """

    created: Created = ""
    names: Annotated[tuple[str, ...], Json("What the models are called.", {"minItems": 1})]
    models: Annotated[
        tuple[ModelInfo, ...], Json("Which models were asked; the first is the baseline.")
    ]
    task: ModelTask = "unknown"
    gap_origin: GapOrigin = ""
    domain: AskedDomain = None
    n_regions: Annotated[int, Json("Regions of the grid that all models share.", {"minimum": 1})]
    n_guards: Annotated[
        int,
        Json(
            "Guards of that grid; each model has its own number.", {"minimum": 0}, is_optional=True
        ),
    ] = 0
    max_ratio: Annotated[Limit | None, Json("The largest ratio allowed.", form=MAX_RATIO)] = None
    n_planned: Planned = 0
    inputs: Inputs = ()
    notes: RunNotes = ()
    versions: Versions = field(default_factory=dict)
    rows: Annotated[tuple[Compared, ...], Json("One per question.")]

    @property
    @written(Json("What this object is.", {"const": "compare"}, after=FIRST))
    def kind(self) -> str:
        return "compare"

    @property
    @written(Json("Version of this layout.", {"const": FORMAT}, after="kind"))
    def format(self) -> int:
        return FORMAT

    @property
    def n_models(self) -> int:
        return len(self.names)

    @cached_property
    def results(self) -> tuple[CountResult, ...]:
        """All finished counts, row by row."""
        return tuple(result for result in self._answers if result is not None)

    @property
    def _answers(self) -> list[CountResult | None]:
        return [result for row in self.rows for result in row.results]

    @property
    def n_results(self) -> int:
        return len(self.results)

    @property
    def is_whole(self) -> bool:
        """Whether every planned count has a result."""
        return self.n_results >= self.n_planned and None not in self._answers

    @cached_property
    def panels(self) -> tuple[tuple[int | None, Change], ...]:
        """The (distance, change) pairs that were counted, ascending."""
        return tuple(dict.fromkeys((row.distance, row.change) for row in self.rows))

    @cached_property
    @written(Json("The models, the least sensitive first.", after="versions"))
    def ranking(self) -> tuple[ModelSummary, ...]:
        """The models, least sensitive first: by the mean of their shares.

        If only bounds on a share are known, its high bound counts: an unknown share is not small.
        """
        shares = [self._judged(index) for index in range(self.n_models)]
        means = [mean_of(own) for own in shares]
        most = [mean(share.most for share in own) if own else 1.0 for own in shares]
        order = sorted(range(self.n_models), key=lambda i: (most[i], means[i].low))
        return tuple(
            ModelSummary(
                index,
                self.names[index],
                rank,
                means[index],
                *self._quartiles(index),
            )
            for rank, index in enumerate(order, start=1)
        )

    def _judged(self, index: int) -> list[Interval]:
        return [r.judged for row in self.rows if (r := row.results[index]) is not None]

    def known_ratios(self, index: int) -> list[float]:
        """Return the ratio of judged shares for every question that has an estimate of both."""
        ratios = (row.ratio(index, self.judge) for row in self.rows)
        return [float(r.value) for r in ratios if r is not None and r.value is not None]

    def _quartiles(self, index: int) -> tuple[int, tuple[float, float, float] | None]:
        ratios = self.known_ratios(index)
        if len(ratios) < 2:
            return len(ratios), (ratios[0],) * 3 if ratios else None
        low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
        return len(ratios), (low, middle, high)

    @property
    @written(VERDICT_OF_ALL)
    def verdict(self) -> Verdict | None:
        """FAIL if any count exceeds ``max_ratio``; else UNDECIDED if any may, or none is compared.

        A planned count that is missing may exceed it, too.
        """
        if self.max_ratio is None:
            return None
        others = range(1, self.n_models)
        verdicts = [row.verdict(i, self.max_ratio) for row in self.rows for i in others]
        return judged_together(verdicts, self.is_whole)

    @property
    @written(JUDGE_OF_ALL)
    def judge(self) -> str:
        return self.results[0].judge if self.results else REGIONS

    @property
    @written(STATUS_OF_ALL)
    def exit_status(self) -> int:
        """0 answered (and PASS), 1 FAIL, 3 UNDECIDED or stopped by a limit."""
        are_counted = self.is_whole and all(result.is_answered for result in self.results)
        return status_of(self.verdict, are_counted or self.verdict is Verdict.PASS)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON contract of ``xcount compare --json``."""
        return to_dict(self)

    def to_json(self, indent: int | None = None) -> str:
        """Return the comparison as one JSON object."""
        return to_json(self.to_dict(), indent)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CompareResult:
        """Read back what :meth:`to_dict` wrote."""
        return from_dict(cls, data)

    @classmethod
    def from_journal(cls, path: str | os.PathLike[str]) -> CompareResult:
        """Read a comparison from its journal, finished or not."""
        return cls.from_lines(read_lines(path), path)

    @classmethod
    def from_lines(cls, lines: Sequence[Line], path: str | os.PathLike[str]) -> CompareResult:
        """Return the last comparison from the lines of the journal at a path."""
        return cls.from_run(last_run(lines, path, "compare"))

    @classmethod
    def from_journals(cls, paths: Sequence[str | os.PathLike[str]]) -> CompareResult:
        """Read a comparison from the journals of its shards; ``notes`` names missing shards."""
        return cls.from_run(merged_run(paths, "compare"))

    @classmethod
    def from_run(cls, kept: KeptRun) -> CompareResult:
        """Return a comparison as its journal holds it."""
        answers = _by_model(kept.results(), len(kept.header["names"]))
        notes = (*shard_notes(kept.header), *kept.notes)
        return replace(_compare_result(kept.header, answers), notes=notes)

    def affected_parts(self) -> Iterator[tuple[dict[str, str], CountResult]]:
        """Yield the finished counts, each with what it is about."""
        for row in self.rows:
            for name, result in zip(self.names, row.results, strict=True):
                if result is not None:
                    yield {"model": name, **result.about}, result

    def affected(self) -> Any:
        """Return the sensitive rows of all counts, as in :meth:`CountResult.affected`."""
        return affected_table(self.affected_parts()).to_frame()

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report, one self-contained HTML page; with a path, write it there, too."""
        from xcount.report import html_comparison

        return written_to(path, html_comparison(self))


@dataclass(frozen=True, kw_only=True, eq=False)
class CompareOptions(BatchOptions):
    """The options of a comparison."""

    names: Sequence[str] | None = field(
        default=None,
        metadata=option(
            "A name for each model, in order; repeat it.",
            "a name for each model, in order.",
            flag="--name",
            metavar="NAME",
            repeated="list",
        ),
    )
    max_ratio: object = field(
        default=None,
        metadata=option(
            "Give a verdict: PASS if no count, or share of the --judge measure, is more than R "
            "times the first model's (1.05, 105% or 1/3).",
            "the largest ratio allowed, for a verdict: no count, or share of the ``judge`` "
            "measure, may be more than so many times the first model's.",
            metavar="R",
        ),
    )

    def ratio_limit(self) -> Limit | None:
        """Return the largest allowed ratio."""
        if self.max_ratio is None:
            return None
        return Limit.of(self.max_ratio, "--max-ratio (max_ratio)")


@takes(CompareOptions, gathers=True)
def compare(models: Sequence[Any], options: CompareOptions) -> CompareResult:
    """Ask several models the same questions on the grid of all their guards.

    Features are matched by name, and a model ignores those that only others have. The models need
    the same classes, in any order; ``class_`` and default gaps are the first model's. Rows, bounds
    and a population are the same for all models, so that their shares under a measure are
    comparable, too.

    Args:
        models: model files, live models or ensembles, in a list or one after the other; the first
            is the baseline.
        options: the questions, the accuracy, and what else to report.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import ensemble_of
        >>> rough, smooth = ensemble_of((0, 1.0, 0.0, 3.0)), ensemble_of((0, 1.0, 0.0, 1.0))
        >>> result = xcount.compare([rough, smooth], gaps=2)
        >>> result.rows[0].ratio(1).value
        0.0
    """
    from xcount.model.loaders import load

    if isinstance(models, str | os.PathLike) or not isinstance(models, Iterable):
        raise QueryError("several models are compared; give them as a list: [old, new]")
    settings, ratio = options.settings(judge=options.judge), options.ratio_limit()
    options.measure_names()  # reject unknown names before reading a large model
    workers, shard = options.workers(), options.part()
    if options.verify:
        find_engine()  # reject it before counting
    regions = options.regions()
    loaded = aligned([load(model, trust_pickle=options.trust_pickle) for model in models])
    ensembles = [regions.pulled_back(ensemble) for ensemble in loaded]
    settings = settings.restarted()
    settings.check_memory()
    chosen = options.changes(ensembles[0])
    classes = same_class(ensembles, chosen.values[0].output_index)
    own = [chosen.values] * len(ensembles)
    if options.flip or options.probability_gaps is not None:
        # Each model decides, and computes probabilities, in its own way.
        own = [options.changes(ensemble).values for ensemble in ensembles]
        if options.flip and len(set(own)) > 1:
            chosen = replace(chosen, origin="none; what counts is each model's own decision")
    else:
        check_margins(ensembles)
    weighing = options.weighing(ensembles[0], settings)
    grid = Grid.of(
        *ensembles, missing=options.missing, missing_in=missing_in(weighing), domain=regions
    )
    with options.knowing_columns():
        groups = choose_groups(ensembles[0], grid, options.sensitive)
    note_single_columns(grid, groups)
    request = explanation_request(ensembles[0], own[0], options)
    weighing = fitted(weighing, grid, settings)
    asked = [
        Question(query, settings, options.method, weighing, explain=request)
        for query in questions(chosen.values, groups, options.distances, options.precision)
    ]
    tasks = _tasks(ensembles, grid, classes, asked, own)
    names = distinct_names(ensembles, options.names)
    header = _header(ensembles, grid, chosen, names, tasks, ratio)
    inputs = inputs_of(weighing, options.data, options.population)
    header["inputs"] = [to_dict(each) for each in inputs]
    if shard is not None:
        tasks, header = shard.cut(tasks, header, len(ensembles))
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
    found = _compare_result(header, _by_model(answers, len(ensembles)))
    return replace(found, notes=(*shard_notes(header), *outcome.notes))


def _tasks(
    ensembles: Sequence[Ensemble],
    grid: Grid,
    classes: Sequence[int],
    asked: Sequence[Question],
    changes: Sequence[Sequence[Change]],
) -> list[Task]:
    """Return the tasks: every question to every model, ordered by question, then model.

    ``changes`` lists the changes for each model, in the same order: a class may have another number
    in another model, and each model decides at its own cut-off.
    """
    marks = tuple(fingerprint(ensemble) for ensemble in ensembles)
    bases = [Problem(ensemble, grid, asked[0].query) for ensemble in ensembles]
    numbers = {change: number for number, change in enumerate(changes[0])}
    tasks = []
    for question in asked:
        number = numbers[question.query.change]
        for base, mark, output, own in zip(bases, marks, classes, changes, strict=True):
            query = replace(question.query, change=own[number].for_output(output))
            tasks.append(Task(base, replace(question, query=query), (mark, *marks)))
    return tasks


def _header(
    ensembles: Sequence[Ensemble],
    grid: Grid,
    chosen: Changes,
    names: Sequence[str],
    tasks: Sequence[Task],
    max_ratio: Limit | None,
) -> dict[str, Any]:
    """Return the content of the journal's run line."""
    return {
        "command": "compare",
        "format": FORMAT,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "fingerprints": [fingerprint(ensemble) for ensemble in ensembles],
        "names": list(names),
        "models": [model_info(ensemble, Grid.of(ensemble)).to_dict() for ensemble in ensembles],
        "task": ensembles[0].task,
        "gap_origin": chosen.origin,
        **({"domain": grid.domain.to_dict()} if grid.domain else {}),
        "n_regions": grid.n_regions,
        "n_guards": grid.n_guards,
        **MAX_RATIO.write(max_ratio),
        "planned": len(tasks),
        "keys": [task.key for task in tasks],
        "versions": versions(),
    }


def _by_model(
    results: Sequence[CountResult | None], n_models: int
) -> list[tuple[int, CountResult]]:
    """Return the (model, result) pairs of finished counts; the tasks are ordered by question."""
    return [(i % n_models, result) for i, result in enumerate(results) if result is not None]


def _compare_result(header: Record, found: Iterable[tuple[int, CountResult]]) -> CompareResult:
    """Gather (model, result) pairs into rows; of equal questions, the latest result wins."""
    empty = from_dict(CompareResult, {**header, "rows": []})
    n_models = len(empty.names)
    rows: list[tuple[Change, list[CountResult | None]]] = []
    for index, result in found:
        place = _row_of(rows, result)
        if place is None:
            place = len(rows)
            rows.append((result.change, [None] * n_models))
        change, results = rows[place]
        # Regions are counted on the shared grid, but each model keeps its own guards.
        results[index] = replace(result, model=empty.models[index])
        rows[place] = (change.shared_with(result.change) or change, results)
    compared = [_compared(change, results) for change, results in rows]
    compared.sort(
        key=lambda row: (
            math.inf if row.distance is None else row.distance,
            row.change.order,
            row.sensitive,
        )
    )
    return replace(empty, rows=tuple(compared))


def _row_of(
    rows: Sequence[tuple[Change, list[CountResult | None]]], result: CountResult
) -> int | None:
    """Return the row of the question that a result answers, if there is one already."""
    for place, (change, results) in enumerate(rows):
        first = next(r for r in results if r is not None)
        is_same = (first.sensitive, first.distance) == (result.sensitive, result.distance)
        if is_same and change.shared_with(result.change) is not None:
            return place
    return None


def _compared(change: Change, results: Sequence[CountResult | None]) -> Compared:
    first = next(result for result in results if result is not None)
    return Compared(first.sensitive, first.distance, change, tuple(results))
