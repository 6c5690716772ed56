"""A bar in a notebook while a run goes on, which goes away at its end. It needs no widgets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from xcount.report.markup import Markup, element
from xcount.report.progress_text import progress_text

QUIET_SECONDS = 1.0
"""Runs shorter than this show nothing."""

_REDRAW_SECONDS = 0.25


@contextmanager
def progress_bar() -> Iterator[Callable[[Any], None]]:
    """Give a function that shows progress below the running cell; at the end the bar is gone."""
    bar = _Bar()
    try:
        yield bar.show
    finally:
        bar.close()


class _Bar:
    def __init__(self) -> None:
        self._next_draw = time.monotonic() + QUIET_SECONDS
        self._handle: Any = None

    def show(self, progress: Any) -> None:
        now = time.monotonic()
        if now < self._next_draw:
            return
        self._next_draw = now + _REDRAW_SECONDS
        self._draw(bar_html(progress.fraction, progress_text(progress)))

    def close(self) -> None:
        if self._handle is not None:
            self._draw(Markup(""))

    def _draw(self, content: Markup) -> None:
        from IPython import display  # without types

        shown: Any = display.HTML(content)  # type: ignore[no-untyped-call]
        if self._handle is None:
            self._handle = display.display(shown, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(shown)


def bar_html(fraction: float, text: str) -> Markup:
    """Return a bar with what is known so far beside it.

    Example:
        >>> bar_html(0.5, "1 of 2 counts").count("<progress")
        1
    """
    done = min(1.0, max(0.0, fraction))
    bar = element("progress", f"{done:.0%}", value=done, max=1, style="vertical-align:middle")
    return element("div", bar, f" {text}", style="font-variant-numeric:tabular-nums")
