"""A repair from start to finish: model -> bounds -> smallest change -> file -> proof -> result."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcount.answers.count import READING_PART, solve, versions
from xcount.answers.options import LimitOptions, QuestionOptions, TrustOption, missing_in
from xcount.answers.result import CountResult
from xcount.counters.settings import Settings
from xcount.counters.tally import Progress
from xcount.errors import QueryError
from xcount.measures.shares import weighing_of
from xcount.measures.weighting import Weighing
from xcount.model.ensemble import Ensemble
from xcount.model.loaders import load, parse_model
from xcount.problem.problem import Problem
from xcount.question.column_groups import note_single_columns
from xcount.question.domain import Domain
from xcount.question.grid import Grid
from xcount.repairs.effect import moves
from xcount.repairs.program import check_solver
from xcount.repairs.questions import Words, more_queries
from xcount.repairs.result import Repaired, RepairResult
from xcount.repairs.search import Found, Search
from xcount.repairs.sufficient import sufficient_gaps
from xcount.repairs.testing import LabelledRows
from xcount.repairs.writers import writer_of
from xcount.repairs.writers.writer import ModelWriter, Values
from xcount.support.files import check_writable, write_atomically
from xcount.support.options import option, python_option, takes
from xcount.support.process import peak_memory_bytes

BEFORE_SECONDS = 20.0
"""The most time for each count of the model as it was: it is only there to compare with."""
_BEFORE_PART = 0.25


@dataclass(frozen=True, kw_only=True, eq=False)
class RepairOptions(TrustOption, LimitOptions, QuestionOptions):
    """The options of a repair."""

    also: Words = field(
        default=(),
        metadata=option(
            "One more limit to keep: 'age: gap 0.3, distance 1', with gap, probability-gap or "
            "flip; distance, direction, class, cutoff. May be repeated.",
            "more limits to keep: texts such as ``age: gap 0.3, distance 1``, or mappings with the "
            "names of arguments.",
            metavar="QUESTION",
            repeated="list",
        ),
    )
    data: Any = field(
        default=None,
        metadata=option(
            "CSV or Parquet file with a column per feature, best the training data: the repair "
            "changes the predictions of its rows as little as it can.",
            "the table whose predictions should change as little as possible, best the training "
            "data.",
            metavar="FILE",
        ),
    )
    output: str | os.PathLike[str] | None = field(
        default=None,
        metadata=option(
            "Where to write the repaired model, in the format of MODEL.",
            "where to write the repaired model, in the format of the file; a live model need not "
            "be written.",
            metavar="FILE",
        ),
    )
    test: Any = field(
        default=None,
        metadata=option(
            "CSV or Parquet file with labelled rows (--target): how well does the model predict "
            "them before and after?",
            "a table with labelled rows (``target``): how well does the model predict them before "
            "and after?",
            metavar="FILE",
        ),
    )
    target: str | None = field(
        default=None,
        metadata=option(
            "The column of --test with the labels. If --data has it, too, models are trained with "
            "and without the sensitive features to compare with.",
            "the column of ``test`` with the labels; if ``data`` has it, too, models are trained "
            "with and without the sensitive features to compare with.",
            metavar="COLUMN",
        ),
    )
    verify: bool = field(
        default=False,
        metadata=option(
            "Count the repaired model again with the verified counter, within the limits.",
            "whether the verified counter counts the repaired model again, within the limits.",
        ),
    )
    explain: bool = field(
        default=False,
        metadata=option(
            "Also find the share that changes by more than a gap, for every gap, before and "
            "after. A page (--html) has both as a curve.",
            "whether to find the share against the gap, before and after, too: the page has both "
            "as a curve.",
        ),
    )
    on_progress: Callable[[Progress], None] | None = field(
        default=None,
        metadata=python_option(
            "called a few times with what the repair is doing. A notebook shows a bar unless this "
            "is given."
        ),
    )


@takes(RepairOptions)
def repair(model: Any, options: RepairOptions) -> RepairResult:
    """Return the same model with other leaf values, and the proof that it keeps a limit.

    Leaf values change as little as the limit allows: among all changes that keep a bound of how far
    the sum can move, the one that changes the model's own predictions of the data least. The count
    of the repaired model, which is read back as it is written, is the proof.

    Args:
        model: a model file or a live model.
        options: the limit, the data, and where to write the model.

    Raises:
        UnsupportedModelError: there is no writer for the model's format.
        BudgetError: there are too many changes to bound them one by one.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import adult_held_out_path, adult_one_hot_paths
        >>> model, domain = adult_one_hot_paths()
        >>> people = adult_held_out_path()
        >>> result = xcount.repair(model, domain=domain, sensitive="sex", gap=0.5, data=people)
        >>> result.proved, result.method
        (True, 'program')
    """
    options.check_change()
    if str(options.precision) != "exact":
        raise QueryError("a repair is about leaves as they are stored; leave out --precision")
    if options.data is None:
        raise QueryError(
            "a repair needs rows whose predictions should change as little as possible; give "
            "--data FILE"
        )
    if (options.test is None) != (options.target is None):
        raise QueryError("--test and --target belong together: labelled rows, and their labels")
    if options.output is not None:
        check_writable(options.output)
    check_solver()
    settings = options.settings(on_progress=options.on_progress)
    return _Repair(model, options, settings).result()


class _Repair:
    """One repair: the model, its questions and its data."""

    def __init__(self, model: Any, options: RepairOptions, settings: Settings) -> None:
        self._options, self._settings = options, settings
        self._is_live = not isinstance(model, str | os.PathLike)
        self._domain: Domain = options.regions()
        self._writer: ModelWriter = writer_of(model, trust_pickle=options.trust_pickle)
        self._ensemble = self._domain.pulled_back(self._writer.ensemble)
        settings.check_memory()
        reading = settings.within(READING_PART)
        weighing = weighing_of(
            self._ensemble, "regions", ("rows",), options.data, None, None, reading
        )
        assert weighing is not None  # there is a measure
        self._weighing: Weighing = weighing
        self._problems = self._problems_of(self._ensemble)
        note_single_columns(self._problems[0].grid, [p.query.sensitive for p in self._problems])

    def _problems_of(self, ensemble: Ensemble) -> list[Problem]:
        """Return the questions about a model, all on one grid."""
        options = self._options
        grid = Grid.of(
            ensemble,
            missing=options.missing,
            missing_in=missing_in(self._weighing),
            domain=self._domain,
        )
        queries = [options.query(ensemble), *more_queries(ensemble, options.also)]
        return [Problem(ensemble, grid, query) for query in queries]

    @property
    def _rows(self) -> NDArray[np.float64]:
        """The rows that the model can read."""
        assert self._weighing.inputs is not None
        return self._weighing.inputs.without(self._weighing.unreadable_rows).matrix()

    def result(self) -> RepairResult:
        test = self._test_table()
        before = [self._counted_before(problem) for problem in self._problems]
        if all(count.exact and count.count == 0 for count in before):
            note = "the limit is met already: the model is written as it is"
            found = Found(self._search.before, "unchanged", notes=(note,))
        else:
            found = self._search.found()
        ensemble, data = self._read_back(found.values)
        after = [self._counted_after(problem) for problem in self._problems_of(ensemble)]
        questions = [Repaired(*pair) for pair in zip(before, after, strict=True)]
        result = self._described(found, questions, ensemble)
        if test is not None:
            shrunk = self._search.shrunk()
            other = None if shrunk is None else self._read_back(self._writer.rounded(shrunk))[0]
            tested = test.compared(self._ensemble, ensemble, other, self._sensitive)
            changed = moves(self._ensemble, ensemble, test.rows)
            result = replace(result, test=tested, moves=changed)
        if result.proved and self._options.output is not None:
            write_atomically(self._options.output, data)
            result = replace(result, output=os.fspath(self._options.output))
        live = self._writer.live(found.values) if self._is_live and result.proved else None
        seconds = time.monotonic() - self._settings.started
        return replace(result, model=live, seconds=seconds)

    @property
    def _sensitive(self) -> frozenset[int]:
        """The sensitive features of all questions."""
        return frozenset(f for problem in self._problems for f in problem.query.sensitive)

    def _test_table(self) -> LabelledRows | None:
        """Return the labelled rows, if there are some, before anything is counted."""
        options = self._options
        if options.test is None or options.target is None:
            return None
        return LabelledRows.of(options.test, options.data, options.target, self._ensemble)

    def _counted_before(self, problem: Problem) -> CountResult:
        limit = self._settings.within(_BEFORE_PART, default=BEFORE_SECONDS)
        if (limit.timeout_seconds or 0) > BEFORE_SECONDS:
            limit = replace(limit, timeout_seconds=BEFORE_SECONDS)
        limit = replace(limit, on_progress=None)
        return self._explained(problem, solve(problem, limit, "auto", self._weighing), limit)

    def _counted_after(self, problem: Problem) -> CountResult:
        settings = replace(self._settings, on_progress=None)
        result = solve(problem, settings, "auto", self._weighing)
        result = self._explained(problem, result, self._settings)
        if not self._options.verify:
            return result
        from xcount.answers.verify import verified_result

        return verified_result(problem, result, settings)

    def _explained(self, problem: Problem, result: CountResult, settings: Settings) -> CountResult:
        if not self._options.explain:
            return result
        from xcount.answers.explain.effects import explain

        limited = replace(settings.within(_BEFORE_PART, default=BEFORE_SECONDS), on_progress=None)
        return replace(result, explanation=explain(problem, limited, None))

    @cached_property
    def _search(self) -> Search:
        return Search(
            self._writer,
            self._ensemble,
            self._domain.pulled_back(self._writer.numbered()),
            self._problems,
            self._rows,
            self._settings,
            self._is_proved,
        )

    def _is_proved(self, values: Values, which: Sequence[int], settings: Settings) -> bool:
        """Count some questions about the model with other values; tell if all counts are 0."""
        ensemble, _ = self._read_back(values)
        problems = self._problems_of(ensemble)
        for index in which:
            count = solve(problems[index], replace(settings, on_progress=None))
            if not (count.exact and count.count == 0):
                return False
        return True

    def _read_back(self, values: Values) -> tuple[Ensemble, bytes]:
        """Return the model as it is read from the file that will be written, and that file."""
        if self._is_live and self._options.output is None:
            return self._domain.pulled_back(load(self._writer.live(values))), b""
        data = self._writer.data(values)
        name = os.fspath(self._options.output or "the repaired model")
        ensemble = parse_model(data, name)
        hashed = hashlib.sha256(data).hexdigest()
        ensemble = replace(
            ensemble, path=None if self._options.output is None else name, sha256=hashed
        )
        return self._domain.pulled_back(ensemble), data

    def _described(
        self, found: Found, questions: Sequence[Repaired], ensemble: Ensemble
    ) -> RepairResult:
        change = np.abs(found.values - self._search.before)
        moved = change[change > 0]
        gaps = sufficient_gaps(self._problems[0].query, self._ensemble)
        first, *others = questions
        return RepairResult(
            before=first.before,
            after=first.after,
            also=tuple(others),
            method=found.method,
            factor=found.factor,
            margin_gap=None if gaps is None else float(next(iter(gaps.values()))),
            n_leaves=len(change),
            n_moved=len(moved),
            largest_move=float(change.max(initial=0.0)),
            mean_move=float(moved.mean()) if len(moved) else 0.0,
            moves=moves(self._ensemble, ensemble, self._rows),
            notes=(*found.notes, *self._notes(questions)),
            peak_memory_bytes=peak_memory_bytes(),
            versions=versions(),
        )

    def _notes(self, questions: Sequence[Repaired]) -> list[str]:
        notes = []
        if any(not question.is_proved for question in questions):
            notes.append("the limit is not proved, so nothing was written; give more time")
        if self._problems[0].query.change.names_class and self._options.probability_gap is not None:
            notes.append(
                "the probability was limited through a gap in margin that is enough everywhere, "
                "so the repaired model may move less than it has to"
            )
        return notes
