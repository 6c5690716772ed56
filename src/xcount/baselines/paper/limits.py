"""Limits of a run on decision diagrams: memory allowed, and the reason it stopped."""

from __future__ import annotations

from xcount import _core
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason


def diagram_bytes(settings: Settings) -> int | None:
    """Return the memory diagrams may use on top of what the process holds; None: no limit."""
    return None if settings.memory_bytes is None else settings.free_bytes()


def reason_of(error: BaseException) -> StopReason:
    """Return the stop reason of a run that raised this exception."""
    if isinstance(error, KeyboardInterrupt):
        return StopReason.INTERRUPTED
    if isinstance(error, _core.DiagramLimit):
        return StopReason.TIMEOUT if error.args[0] == "time" else StopReason.MEMORY
    return StopReason.MEMORY
