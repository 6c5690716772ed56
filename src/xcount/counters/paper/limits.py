"""Limits of a run on decision diagrams: what may be used, and what ended it."""

from __future__ import annotations

import resource
import sys

from xcount import _core
from xcount.counters.base import Settings
from xcount.result import StopReason

_LEAST_BYTES = 16 * 2**20


def diagram_bytes(settings: Settings) -> int | None:
    """Return what diagrams may occupy beside what the process holds already; None: no limit."""
    if settings.memory_bytes is None:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return max(_LEAST_BYTES, settings.memory_bytes - held)


def reason_of(error: BaseException) -> StopReason:
    """Return why a run ended that ended with this exception."""
    if isinstance(error, KeyboardInterrupt):
        return StopReason.INTERRUPTED
    if isinstance(error, _core.DiagramLimit):
        return StopReason.TIMEOUT if error.args[0] == "time" else StopReason.MEMORY
    return StopReason.MEMORY
