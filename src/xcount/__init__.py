"""Counts how much of a tree ensemble's input space is sensitive to chosen features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xcount._version import __version__

if TYPE_CHECKING:
    from xcount.audit import AuditResult, audit
    from xcount.counting import count
    from xcount.ensemble import Ensemble
    from xcount.errors import XCountError
    from xcount.grid import Grid
    from xcount.loaders import load
    from xcount.query import Query
    from xcount.result import CountResult

__all__ = [
    "AuditResult",
    "CountResult",
    "Ensemble",
    "Grid",
    "Query",
    "XCountError",
    "__version__",
    "audit",
    "count",
    "load",
]

_HOMES = {
    "AuditResult": "xcount.audit",
    "CountResult": "xcount.result",
    "Ensemble": "xcount.ensemble",
    "Grid": "xcount.grid",
    "Query": "xcount.query",
    "XCountError": "xcount.errors",
    "audit": "xcount.audit",
    "count": "xcount.counting",
    "load": "xcount.loaders",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: start-up time counts."""
    if name not in _HOMES:
        raise AttributeError(f"module 'xcount' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
