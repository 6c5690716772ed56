"""Counts how much of a tree ensemble's input space is sensitive to chosen features."""

from __future__ import annotations

import sys

from xcount._version import __version__

TYPE_CHECKING = False  # typing's own name for it would cost the import of typing
if TYPE_CHECKING:
    from typing import Any

    from xcount.audit import AuditResult, audit
    from xcount.compare import CompareResult, compare
    from xcount.counting import count
    from xcount.ensemble import Ensemble
    from xcount.errors import XCountError
    from xcount.grid import Grid
    from xcount.inspection import Inspection, inspect
    from xcount.loaders import load
    from xcount.query import Query
    from xcount.result import CountResult
    from xcount.witnesses import Witness, witnesses

__all__ = [
    "AuditResult",
    "CompareResult",
    "CountResult",
    "Ensemble",
    "Grid",
    "Inspection",
    "Query",
    "Witness",
    "XCountError",
    "__version__",
    "audit",
    "compare",
    "count",
    "inspect",
    "load",
    "witnesses",
]

_HOMES = {
    "AuditResult": "xcount.audit",
    "CompareResult": "xcount.compare",
    "CountResult": "xcount.result",
    "Ensemble": "xcount.ensemble",
    "Grid": "xcount.grid",
    "Inspection": "xcount.inspection",
    "Query": "xcount.query",
    "Witness": "xcount.witnesses",
    "XCountError": "xcount.errors",
    "audit": "xcount.audit",
    "compare": "xcount.compare",
    "count": "xcount.counting",
    "inspect": "xcount.inspection",
    "load": "xcount.loaders",
    "witnesses": "xcount.witnesses",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: start-up time counts."""
    if name not in _HOMES:
        raise AttributeError(f"module 'xcount' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


class _Package(type(sys)):  # type: ignore[misc]  # the type of modules, without importing types
    """The package, whose functions win over the modules of the same name (``audit``)."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _HOMES or not isinstance(value, type(sys)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
