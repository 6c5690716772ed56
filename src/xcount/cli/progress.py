"""A count while it runs: a line of progress on standard error, and how it is stopped.

Progress goes only to a terminal, and only when the run takes a while.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from xcount.counters.tally import Progress

QUIET_SECONDS = 1.0
"""Runs shorter than this show nothing."""

_REDRAW_SECONDS = 0.1
_BAR_WIDTH = 20


@contextmanager
def stoppable() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM raise KeyboardInterrupt: counts answer it with the bounds so far.

    Batch systems and timeout(1) end a run with SIGTERM. Who ignores Ctrl-C (nohup) goes on to.
    Afterwards there is something to print and little left to stop: a process of our own prints it,
    unless it is told once more.
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
    """Leave the process to print what it has; the next signal ends it."""
    signal.signal(number, signal.SIG_DFL)


class ProgressLine:
    """Shows how far a count is; a context that leaves the terminal clean behind it."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._next_draw = time.monotonic() + QUIET_SECONDS
        self._drawn = False
        self._enabled = self._stream.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def show(self, progress: Progress) -> None:
        """Redraw the line, unless it is too early."""
        now = time.monotonic()
        if not self._enabled or now < self._next_draw:
            return
        self._next_draw = now + _REDRAW_SECONDS
        self._drawn = True
        self._stream.write(f"\r\x1b[K{progress_text(progress)}")
        self._stream.flush()


def progress_text(progress: Progress) -> str:
    """Return a snapshot in one line, e.g. ``[####      ]  42 %  17 .. 20  masks counted``."""
    from xcount.report.text import count_text

    fraction = min(1.0, max(0.0, progress.fraction))
    bar = "#" * int(fraction * _BAR_WIDTH)
    interval = f"{count_text(progress.low)} .. {count_text(progress.high)}"
    line = f"[{bar:<{_BAR_WIDTH}}] {fraction:4.0%}  {interval}  {progress.message}"
    return line.rstrip()
