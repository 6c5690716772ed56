"""The exact counts of a run, counted again by the verified counter: the cheapest first."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from xcount.answers.result import CountResult
from xcount.answers.verify import Attempt, counted_again, warn_not_verified
from xcount.problem.problem import Problem
from xcount.runs.task import Task

_REPORT_SECONDS = 0.2


def verify_counts(
    tasks: Sequence[Task],
    results: Mapping[int, CountResult],
    *,
    jobs: int,
    stop: threading.Event,
    keep: Callable[[int, CountResult], None],
    on_progress: Callable[[int, int, Sequence[str]], None],
) -> None:
    """Count all exact counts again that are not verified yet; warn of those that cannot be.

    Each has the time and memory that its count had. Once ``stop`` is set, no other one starts, and
    those that run end.

    Args:
        tasks: the questions.
        results: their counts, by index.
        jobs: how many run at a time; 0 for all cores.
        stop: set by Ctrl-C.
        keep: called with every verified count.
        on_progress: called with the number done, the total, and the labels of those running.

    Raises:
        VerificationError: two counters differ; the other counts are not verified then.
    """
    todo = [index for index, result in results.items() if not result.verified]
    todo.sort(key=lambda index: results[index].seconds)
    why_not: list[str] = []
    running: dict[Future[Attempt], int] = {}
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1, thread_name_prefix="xcount") as pool:
        try:
            for index in todo:
                future = pool.submit(_attempt, tasks[index], results[index], stop)
                running[future] = index
            while running:
                done, _ = wait(running, timeout=_REPORT_SECONDS, return_when=FIRST_COMPLETED)
                for future in done:
                    index, attempt = running.pop(future), future.result()
                    if attempt.why_not is None:
                        keep(index, attempt.result)
                    else:
                        why_not.append(attempt.why_not)
                labels = [tasks[i].label for future, i in running.items() if future.running()]
                on_progress(len(todo) - len(running), len(todo), labels)
        except BaseException:
            stop.set()
            raise
    warn_not_verified(why_not, len(results))


def _attempt(task: Task, result: CountResult, stop: threading.Event) -> Attempt:
    """Count one question again, unless the run should end."""

    def check_stop(_: float) -> None:
        if stop.is_set():
            raise KeyboardInterrupt

    asked = task.question
    problem = Problem(task.base.ensemble, task.base.grid, asked.query)
    try:
        check_stop(0.0)
        return counted_again(
            problem,
            result,
            seconds=asked.settings.timeout_seconds,
            memory_bytes=asked.settings.memory_bytes,
            on_wait=check_stop,
        )
    except KeyboardInterrupt:
        return Attempt(result, "it was interrupted")
