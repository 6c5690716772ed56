"""How far a run is, in words: for the line of a terminal, and the bar of a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcount.counters.tally import Progress
from xcount.report.text import count_text
from xcount.support.visible import visible

if TYPE_CHECKING:
    from xcount.runs.batch import BatchProgress

_MAX_NAMES = 40


def count_progress_text(progress: Progress) -> str:
    """Return what is known so far, e.g. ``17 .. 20  masks counted``."""
    interval = f"{count_text(progress.low)} .. {count_text(progress.high)}"
    return f"{interval}  {progress.message}".rstrip()


def batch_progress_text(progress: BatchProgress) -> str:
    """Return how many counts are done and which go on, e.g. ``17 of 40 counts: age, sex``."""
    running = visible(", ".join(dict.fromkeys(progress.running)))
    if len(running) > _MAX_NAMES:
        running = running[: _MAX_NAMES - 1] + "…"
    return f"{progress.done} of {progress.total} counts: {running}"


def progress_text(progress: Progress | BatchProgress) -> str:
    """Return how far a count or a run of many is."""
    if isinstance(progress, Progress):
        return count_progress_text(progress)
    return batch_progress_text(progress)
