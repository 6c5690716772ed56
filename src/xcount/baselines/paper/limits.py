"""Limits of a run on decision diagrams: what may be used, and what ended it."""

from __future__ import annotations

from xcount import _core
from xcount.counters.settings import Settings
from xcount.counters.tally import StopReason


def diagram_bytes(settings: Settings) -> int | None:
    """Return what diagrams may occupy beside what the process holds already; None: no limit."""
    return None if settings.memory_bytes is None else settings.free_bytes()


def reason_of(error: BaseException) -> StopReason:
    """Return why a run ended that ended with this exception."""
    if isinstance(error, KeyboardInterrupt):
        return StopReason.INTERRUPTED
    if isinstance(error, _core.DiagramLimit):
        return StopReason.TIMEOUT if error.args[0] == "time" else StopReason.MEMORY
    return StopReason.MEMORY
