"""A running command: its progress line on standard error, and how signals stop it.

On a terminal it is a bar, once the run takes a while; elsewhere, a line every ten seconds.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from xcount.counters.tally import Progress
    from xcount.runs.batch import BatchProgress

QUIET_SECONDS = 1.0
"""Runs shorter than this show nothing."""

PLAIN_SECONDS = 10.0
"""Without a bar, a line says this often how far the run is."""

_REDRAW_SECONDS = 0.1


@contextmanager
def stoppable() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM raise KeyboardInterrupt: counts answer it with the bounds so far.

    Batch systems and timeout(1) end a run with SIGTERM. A signal that was ignored before (nohup)
    stays ignored. After the run there is a result to print, and little left to stop: a process that
    runs only this command ignores the first signal then, and ends at the second.
    """
    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    is_guest = previous[signal.SIGINT] is signal.default_int_handler
    ours = [n for n, handler in previous.items() if handler in (signal.SIG_DFL, _finish_first)]
    for number in ours:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, previous[number] if is_guest else _finish_first)


def _finish_first(number: int, frame: FrameType | None) -> None:
    """Let the process print its result; the next signal ends it."""
    signal.signal(number, signal.SIG_DFL)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Defer Ctrl-C and SIGTERM for a moment: rich does not cope with interrupts."""
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    ours = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in ours:
        signal.signal(number, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)
        for late in came:
            signal.raise_signal(late)


class ProgressLine:
    """Shows the progress of a run; a context manager that leaves the terminal clean.

    Args:
        kind: ``plain`` for lines, ``none`` for nothing, ``auto`` for a bar on a terminal and lines
            elsewhere.
        stream: where to show it; standard error if None.
    """

    def __init__(self, kind: str = "auto", stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._has_bar = kind == "auto" and self._stream.isatty()
        self._is_shown = kind != "none"
        self._started = time.monotonic()
        self._next_draw = self._started + (QUIET_SECONDS if self._has_bar else PLAIN_SECONDS)
        self._bar: Bar | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            with suppress(OSError), _undisturbed():
                self._bar.stop()

    def show_count(self, progress: Progress) -> None:
        """Show the progress of a count, and its bounds so far."""

        def text() -> str:
            from xcount.report.progress_text import count_progress_text

            return count_progress_text(progress)

        self._show(progress.fraction, text)

    def show_search(self, progress: Progress) -> None:
        """Show what a search does, and its progress if known."""
        fraction = progress.fraction if progress.fraction < 1 else None
        self._show(fraction, lambda: progress.message)

    def show_batch(self, progress: BatchProgress) -> None:
        """Show the progress of a run of many counts, and which are running."""
        from xcount.report.progress_text import batch_progress_text

        self._show(progress.fraction, lambda: batch_progress_text(progress))

    def _show(self, fraction: float | None, text: Callable[[], str]) -> None:
        """Draw the bar or write a line, unless it is too early; a bar without a fraction pulses."""
        now = time.monotonic()
        if not self._is_shown or now < self._next_draw:
            return
        if not self._has_bar:
            self._next_draw = now + PLAIN_SECONDS
            part = "" if fraction is None else f"{min(1.0, max(0.0, fraction)):4.0%}  "
            with suppress(OSError):  # nobody reads it: that must not end the run
                self._stream.write(f"{now - self._started:6.0f} s  {part}{text()}\n")
                self._stream.flush()
            return
        self._next_draw = now + _REDRAW_SECONDS
        if self._bar is None:
            self._bar = _bar(self._stream)
        task = self._bar.tasks[0]
        task.total = None if fraction is None else 1.0
        task.completed = 0.0 if fraction is None else min(1.0, max(0.0, fraction))
        task.description = text()
        with suppress(OSError), _undisturbed():  # a closed terminal must not end the run
            self._bar.start()
            self._bar.refresh()


def _bar(stream: TextIO) -> Bar:
    """Return a bar that disappears when it is stopped.

    The thread that reports progress draws it: there is no thread left to stop at the end.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    bar = Progress(
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        TextColumn("{task.description}", markup=False),
        console=Console(file=stream),
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
    )
    bar.add_task("")
    return bar
