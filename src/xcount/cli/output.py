"""Output to the terminal: one JSON object, text, or tables."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from xcount.support.visible import visible

if TYPE_CHECKING:
    from rich.console import RenderableType


INTERRUPTED = 130
"""The exit status of a command that was interrupted without a result."""


def print_error(message: str) -> None:
    """Print one line on standard error, whatever the message holds.

    If it cannot be written, that is ignored: the exit status and the answer still count.
    """
    line = " ".join(part.strip() for part in message.splitlines() if part.strip())
    with suppress(OSError):
        sys.stderr.write(f"xcount: {visible(line)}\n")
        sys.stderr.flush()


def print_json(data: Mapping[str, Any]) -> None:
    """Print one JSON object on one line."""
    _write(json.dumps(data, allow_nan=False) + "\n")


def print_text(text: str) -> None:
    """Print lines of text, e.g. CSV, with control characters in names escaped."""
    _write(visible(text, keep="\n\t"))


def print_tables(*tables: RenderableType) -> None:
    """Print tables, coloured if the terminal supports it."""
    from xcount.report.card import PLAIN_WIDTH, Card

    cards = [table for table in tables if isinstance(table, Card)]
    if len(cards) == len(tables) and not _is_terminal() and _shows_boxes():
        _write("".join(card.plain() for card in cards))
        return
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=max(console.width, PLAIN_WIDTH))
    with console.capture() as capture:
        for table in tables:
            # The terminal wraps lines of text, such as commands to copy.
            console.print(table, soft_wrap=isinstance(table, str))
    _write(capture.get())


_BLOCK = 4096
"""Characters that a pipe accepts either completely or not at all."""


def _write(text: str) -> None:
    """Write a text to standard output, all of it.

    An unbuffered stream (PYTHONUNBUFFERED) drops the rest of a text if a signal interrupts a write.
    """
    for start in range(0, len(text), _BLOCK // 4):
        sys.stdout.write(text[start : start + _BLOCK // 4])


def _shows_boxes() -> bool:
    """Return whether box-drawing characters can be encoded; if not, rich uses ASCII."""
    return (sys.stdout.encoding or "utf-8").lower().startswith("utf")


def _is_terminal() -> bool:
    """Return whether colours may be shown, without importing rich to find out."""
    asked = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
    return sys.stdout.isatty() or any(name in os.environ for name in asked)
