"""Text in a table for the terminal: names as they are, verdicts in their colours."""

from __future__ import annotations

from xcount.answers.result import Verdict
from xcount.support.visible import visible

_COLOURS = {Verdict.PASS: "green", Verdict.FAIL: "red", Verdict.UNDECIDED: "yellow"}


def escaped(text: str) -> str:
    """Return text that the terminal shows as it is, whatever it holds."""
    from rich.markup import escape

    return escape(visible(text))


def style_of(verdict: Verdict) -> str:
    """Return how a verdict is shown."""
    return f"bold {_COLOURS[verdict]}"


def coloured(verdict: Verdict) -> str:
    """Return a verdict in its colour, as rich's markup."""
    return f"[{style_of(verdict)}]{verdict}[/]"
