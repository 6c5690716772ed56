"""Many counts in one run: on all cores, with progress, resumable from a journal.

Counts run in threads (the native counters release Python's lock). While there are more counts than
cores, each has one core; the last ones share all of them. Answers do not depend on that. Questions
that differ only in their change are counted one after the other: if a visit of all regions answers
one of them, it answers the later ones, too.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from types import FrameType
from typing import TYPE_CHECKING, Any

from xcount.answers.explanation import ExplanationRequest
from xcount.answers.options import SecureScheduler
from xcount.answers.result import CountResult, Verdict
from xcount.counters.settings import Companions
from xcount.counters.tally import Progress, StopReason
from xcount.errors import BudgetError, JournalError, QueryWarning
from xcount.runs.journal import Journal, Record, damage
from xcount.runs.journal_lines import (
    CountLine,
    Line,
    RunLine,
    counts_of_last_run,
    is_last_run,
    line_of,
    warn_of_damage,
)
from xcount.runs.task import Question, Task, families

if TYPE_CHECKING:
    from distributed import Client
    from distributed.deploy import Cluster as DaskCluster

_REPORT_SECONDS = 0.2
_SAME_SIGNAL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """Progress of a run: the counts done, their total, and the labels of those running."""

    done: int
    total: int
    fraction: float
    running: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """The outcome of a run: a result per task.

    Attributes:
        results: one per task; None if the task was interrupted before its start, or its method
            refused it as too large.
        notes: which lines of the journal were not used.
    """

    results: tuple[CountResult | None, ...]
    notes: tuple[str, ...] = ()

    @property
    def finished(self) -> tuple[CountResult, ...]:
        return tuple(result for result in self.results if result is not None)


def run_batch(
    tasks: Sequence[Task],
    *,
    jobs: int = 0,
    journal: Journal | None = None,
    header: Record | None = None,
    cluster: str | SecureScheduler | Client | DaskCluster | None = None,
    verify: bool = False,
    on_progress: Callable[[BatchProgress], None] | None = None,
) -> BatchOutcome:
    """Count all tasks that the journal does not answer yet.

    Ctrl-C ends the running counts with the bounds they have; the others are left out. A count that
    its method refuses is left out, too, with a warning that names it.

    Raises:
        BudgetError: every count was refused.
        VerificationError: the verified counter found another number.

    Args:
        tasks: what to count.
        jobs: cores to use; 0 for all.
        journal: where finished counts are kept and looked up.
        header: the run line; written before the first new result, and if the journal's last run
            asked something else or has another limit.
        cluster: a Dask scheduler's address, or a Dask client, whose workers do the counts.
        verify: whether the verified counter counts exact counts again.
        on_progress: called from the calling thread.
    """
    kept = {} if journal is None else _kept(tasks, journal.lines)
    notes = () if journal is None else damage(journal.lines, journal.path)
    results = {index: found.result for index, found in kept.items() if found.is_whole}
    tasks = [_continued(task, kept.get(index)) for index, task in enumerate(tasks)]
    todo = [index for index in range(len(tasks)) if index not in results]
    stop = threading.Event()
    with _interrupts_set(stop):
        if journal is not None and header is not None:
            is_told = not todo and is_last_run(header, journal.lines)
            told = {line.key for line in counts_of_last_run(journal.lines)}
            anew = [i for i in results if kept[i].is_changed or tasks[i].key not in told]
            if anew or not is_told:
                # A report of a damaged journal shows only the counts after the last run line.
                again = [*results] if notes else anew
                lines = [_line(tasks[index], results[index]) for index in again]
                lines += [] if notes else _judged_anew(tasks, journal.lines, results)
                journal.append(RunLine(header).to_dict(), *lines)
        run = _Run(tasks, todo, results, jobs, journal, on_progress, stop)
        if todo and cluster is None:
            run.run()
        elif todo:
            run.run_on(cluster)
        if verify:
            run.verify()
    if run.refused:
        _name_refused(tasks, run.refused, has_results=bool(results))
    return BatchOutcome(tuple(results.get(index) for index in range(len(tasks))), notes)


def _name_refused(
    tasks: Sequence[Task], refused: Mapping[int, BudgetError], has_results: bool
) -> None:
    """Warn of counts that their method refused; raise if there are no others."""
    first = min(refused)
    if not has_results:
        raise refused[first]
    names = " and ".join([tasks[first].label, *([f"{len(refused) - 1} more"] * (len(refused) > 1))])
    warnings.warn(
        f"{len(refused)} of {len(tasks)} counts refused and left out ({names}): {refused[first]}",
        QueryWarning,
        stacklevel=2,
    )


def run_kept(
    tasks: Sequence[Task],
    header: Record,
    *,
    journal: str | os.PathLike[str] | None = None,
    resume: bool = False,
    jobs: int = 0,
    cluster: str | SecureScheduler | Client | DaskCluster | None = None,
    verify: bool = False,
    on_progress: Callable[[BatchProgress], None] | None = None,
) -> BatchOutcome:
    """Count all tasks; keep finished counts in a journal, if one is named.

    A journal about other models than the header names is refused.
    """
    if resume and journal is None:
        raise JournalError("--resume continues a journal; name it with --journal")
    opened = contextlib.nullcontext() if journal is None else _journal_of(journal, resume, header)
    with opened as book:
        return run_batch(
            tasks,
            jobs=jobs,
            journal=book,
            header=header,
            cluster=cluster,
            verify=verify,
            on_progress=on_progress,
        )


def _journal_of(path: str | os.PathLike[str], resume: bool, header: Record) -> Journal:
    journal = Journal(path, resume=resume, read=line_of)
    warn_of_damage(damage(journal.lines, journal.path))
    runs = [line for line in journal.lines if isinstance(line, RunLine)]
    now = RunLine(header)
    differences = [text for run in runs if (text := _difference(run, now)) is not None]
    if differences:
        journal.close()
        raise JournalError(f"{path} {differences[0]}; name another file")
    return journal


def _difference(run: RunLine, now: RunLine) -> str | None:
    """Return why a journal's run does not match the new one; None if it does."""
    if run.command != now.command:
        return f"is the journal of another command ({run.command})"
    if run.models != now.models:
        other = "another model" if len(now.models) == 1 else "other models"
        return f"is about {other} (sha256 {', '.join(run.models)}, not {', '.join(now.models)})"
    if run.shard != now.shard:
        return f"is the journal of {_part(run)}, not of {_part(now)}"
    return None


def _part(run: RunLine) -> str:
    return "a run without --shard" if run.shard is None else f"shard {run.shard}"


@contextlib.contextmanager
def _interrupts_set(stop: threading.Event) -> Iterator[None]:
    """Let Ctrl-C set a flag, so that no interrupt splits a write; a second Ctrl-C raises.

    A second signal that follows at once counts as the same one: timeout(1) signals a process and
    then its group. This applies only if signals would raise KeyboardInterrupt, and only in the main
    thread, since no other can have handlers.
    """
    first = 0.0

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if stop.is_set() and time.monotonic() - first > _SAME_SIGNAL_SECONDS:
            raise KeyboardInterrupt
        first = first or time.monotonic()
        stop.set()

    raising = [
        number
        for number in (signal.SIGINT, signal.SIGTERM)
        if threading.current_thread() is threading.main_thread()
        and signal.getsignal(number) is signal.default_int_handler
    ]
    for number in raising:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number in raising:
            signal.signal(number, signal.default_int_handler)


class _Run:
    """One run of the tasks ``todo``; adds to ``results`` as they finish."""

    def __init__(
        self,
        tasks: Sequence[Task],
        todo: Sequence[int],
        results: dict[int, CountResult],
        jobs: int,
        journal: Journal | None,
        on_progress: Callable[[BatchProgress], None] | None,
        stop: threading.Event,
    ) -> None:
        self._tasks, self._results, self._journal = tasks, results, journal
        chains = families(tasks[index].family for index in todo)
        self._chains = deque(deque(todo[number] for number in chain) for chain in chains)
        self._companions: dict[int, Companions] = {}
        for chain in self._chains:
            together = Companions([tasks[index].question.query for index in chain])
            self._companions |= dict.fromkeys(chain if len(chain) > 1 else (), together)
        self._jobs = jobs
        self._n_cores = jobs if jobs > 0 else os.cpu_count() or 1
        self._on_progress = on_progress
        self._stop = stop
        self._fractions: dict[int, float] = {}
        self._running: dict[Future[CountResult], tuple[int, deque[int]]] = {}
        self.refused: dict[int, BudgetError] = {}

    def run(self) -> None:
        n_workers = min(self._n_cores, len(self._chains))
        with ThreadPoolExecutor(n_workers, thread_name_prefix="xcount") as pool:
            try:
                self._loop(pool, n_workers)
            except KeyboardInterrupt:
                if self._stop.is_set():
                    raise
                self._stop.set()
                self._loop(pool, n_workers)
            except BaseException:
                self._stop.set()
                raise

    def run_on(self, cluster: Any) -> None:
        """Let a cluster's workers count; counts still running when the run ends are left out."""
        from xcount.cluster.client import Cluster

        todo = {index: self._tasks[index] for chain in self._chains for index in chain}
        with Cluster(cluster) as found:
            for results in found.counts(todo, self._stop, self._jobs):
                self._keep(results)
                self._report()

    def verify(self) -> None:
        """Let the verified counter count the exact counts again; keep those that it confirms."""
        from xcount.runs.verify import verify_counts

        def report(done: int, total: int, labels: Sequence[str]) -> None:
            if self._on_progress is not None:
                running = tuple(f"verifying {label}" for label in labels)
                self._on_progress(BatchProgress(done, total, done / max(1, total), running))

        verify_counts(
            self._tasks,
            dict(self._results),
            jobs=self._jobs,
            stop=self._stop,
            keep=lambda index, result: self._keep({index: result}),
            on_progress=report,
        )

    def _loop(self, pool: ThreadPoolExecutor, n_workers: int) -> None:
        while self._has_work():
            while self._chains and len(self._running) < n_workers:
                self._start(pool, n_workers)
            done, _ = wait(self._running, timeout=_REPORT_SECONDS, return_when=FIRST_COMPLETED)
            errors = [error for future in done if (error := self._finish(future)) is not None]
            if errors:
                raise errors[0]
            self._report()

    def _has_work(self) -> bool:
        if self._stop.is_set():
            self._chains.clear()
        return bool(self._chains or self._running)

    def _start(self, pool: ThreadPoolExecutor, n_workers: int) -> None:
        n_sharing = min(n_workers, len(self._running) + len(self._chains))
        chain = self._chains.popleft()
        index = chain.popleft()
        self._fractions[index] = 0.0
        task, threads = self._tasks[index], max(1, self._n_cores // n_sharing)
        future = pool.submit(
            task.run,
            threads,
            lambda progress: self._note(index, progress),
            self._companions.get(index),
        )
        self._running[future] = index, chain

    def _note(self, index: int, progress: Progress) -> None:
        """Note a count's progress (in the count's thread), and stop it when the run should end.

        Counters answer a KeyboardInterrupt with the bounds they have.
        """
        self._fractions[index] = progress.fraction
        if self._stop.is_set():
            raise KeyboardInterrupt

    def _finish(self, future: Future[CountResult]) -> BaseException | None:
        """Keep the outcome of a count; return the exception that ends the run, if any."""
        index, chain = self._running.pop(future)
        if chain:
            self._chains.appendleft(chain)
        self._companions.pop(index, None)
        del self._fractions[index]
        error = future.exception()
        if error is None:
            self._keep({index: future.result()})
        elif isinstance(error, BudgetError):
            self._keep({index: error})
        elif not (isinstance(error, KeyboardInterrupt) and self._stop.is_set()):
            return error
        return None

    def _keep(self, answers: Mapping[int, CountResult | BudgetError]) -> None:
        results = {i: answer for i, answer in answers.items() if isinstance(answer, CountResult)}
        self.refused |= {i: error for i, error in answers.items() if isinstance(error, BudgetError)}
        self._results.update(results)
        if self._journal is not None:
            lines = [_line(self._tasks[index], result) for index, result in results.items()]
            self._journal.append(*lines)

    def _report(self) -> None:
        if self._on_progress is None:
            return
        done, total = len(self._results) + len(self.refused), len(self._tasks)
        fractions = dict(self._fractions)
        running = tuple(self._tasks[index].label for index in fractions)
        fraction = (done + sum(fractions.values())) / total
        self._on_progress(BatchProgress(done, total, min(1.0, fraction), running))


def _line(task: Task, result: CountResult) -> Record:
    asked = task.question
    explained = _explained(asked.explain)
    return CountLine(task.key, task.scope[0], asked.limits(), explained, result).to_dict()


def _explained(asked: ExplanationRequest | None) -> Record | None:
    """Return the inputs of an explanation besides the count."""
    if asked is None:
        return None
    return {"favourable": asked.favourable, "with_people": asked.with_people}


def _serves(had: Record | None, asked: ExplanationRequest) -> bool:
    """Return whether the explanation in a journal's line covers the present request."""
    if had is None:
        return False
    return had["favourable"] == asked.favourable and (had["with_people"] or not asked.with_people)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A count found in a journal, adapted to the present request.

    Attributes:
        result: the count, judged by the present limit and measure, with no more examples than
            requested.
        is_changed: whether it differs from the journal's line.
        is_whole: whether it has all requested examples and the requested explanation, too.
    """

    result: CountResult
    is_changed: bool
    is_whole: bool

    @classmethod
    def of(cls, line: CountLine, question: Question) -> _Kept:
        found = line.result
        n, examples = question.n_witnesses, found.witnesses
        asked, explanation = question.settings, found.explanation
        if explanation is not None:
            is_wanted = question.explain is not None and _serves(line.explained, question.explain)
            judged = explanation.judged_by(asked.max_share, asked.judge)
            explanation = judged if is_wanted else None
        now = replace(
            found,
            max_share=asked.max_share,
            judge=asked.judge,
            witnesses=examples[:n] if n and examples is not None else None,
            explanation=explanation,
        )
        is_explained = question.explain is None or explanation is not None
        # No example could be drawn, there are enough, or there is nothing to draw from.
        is_whole = examples == () or len(examples or ()) >= n or found.high == 0
        return cls(now, now != found, is_whole and is_explained)


def _kept(tasks: Sequence[Task], lines: Sequence[Line]) -> dict[int, _Kept]:
    """Return the counts found in the journal, by the index of their task."""
    latest = {line.key: line for line in lines if isinstance(line, CountLine)}
    found = {}
    for index, task in enumerate(tasks):
        line = latest.get(task.key)
        if line is not None:
            kept = _Kept.of(line, task.question)
            if _is_done(kept.result, line, task.question):
                found[index] = kept
    return found


def _judged_anew(
    tasks: Sequence[Task], lines: Sequence[Line], results: Mapping[int, CountResult]
) -> list[Record]:
    """Return the lines of counts that are not done, judged by the present limits.

    If the run is killed before it has counted them again, a report must not show old verdicts.
    """
    latest = {line.key: line for line in lines if isinstance(line, CountLine)}
    found = []
    for index, task in enumerate(tasks):
        line = latest.get(task.key)
        if line is not None and index not in results:
            kept = _Kept.of(line, task.question)
            if kept.is_changed:
                found.append(replace(line, result=kept.result).to_dict())
    return found


def _continued(task: Task, kept: _Kept | None) -> Task:
    """Return the task with its count from the journal: only examples and explanation are left."""
    if kept is None or kept.is_whole:
        return task
    return replace(task, question=replace(task.question, known=kept.result))


def _is_done(result: CountResult, line: CountLine, question: Question) -> bool:
    """Return whether a rerun could not do better: the count was complete, or had the same limits.

    A count that stopped because its verdict was decided is done only if the present verdict is
    decided, too; so is one that gave most of its time to another measure than the one judged now.
    """
    measures = (measured.stop_reason for measured in result.measures.values())
    reasons = {*result.stop_reasons, *measures} - {StopReason.COMPLETE}
    if not reasons:
        return True
    if StopReason.DECIDED in reasons or line.result.judge != question.settings.judge:
        return result.verdict in (Verdict.PASS, Verdict.FAIL)
    if StopReason.INTERRUPTED in reasons:
        return False
    return all(_at_most(asked, line.limits.get(name)) for name, asked in question.limits().items())


def _at_most(asked: float | None, had: float | None) -> bool:
    return had is None or (asked is not None and asked <= had)
