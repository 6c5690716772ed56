"""Counts how much of a tree ensemble's input space is sensitive to chosen features."""

from __future__ import annotations

from xcount._version import __version__

TYPE_CHECKING = False  # typing's own name for it would cost the import of typing
if TYPE_CHECKING:
    from typing import Any

    from xcount.answers.count import count
    from xcount.answers.diff import diff
    from xcount.answers.diff_result import DiffResult
    from xcount.answers.inspection import Inspection, inspect
    from xcount.answers.monotone import MonotoneResult, monotone
    from xcount.answers.person import PersonResult, person
    from xcount.answers.result import CountResult
    from xcount.answers.verify import verify
    from xcount.answers.witness.witness import Witness, Witnesses
    from xcount.answers.witness.witnesses import witnesses
    from xcount.answers.worst import WorstResult, worst
    from xcount.errors import XCountError
    from xcount.measures.population import Population
    from xcount.model.ensemble import Ensemble
    from xcount.model.loaders import load
    from xcount.question.domain import Domain
    from xcount.question.grid import Grid
    from xcount.question.query import Query
    from xcount.repairs.repair import repair
    from xcount.repairs.result import RepairResult
    from xcount.runs.audit import AuditResult, audit
    from xcount.runs.compare import CompareResult, compare

__all__ = [
    "AuditResult",
    "CompareResult",
    "CountResult",
    "DiffResult",
    "Domain",
    "Ensemble",
    "Grid",
    "Inspection",
    "MonotoneResult",
    "PersonResult",
    "Population",
    "Query",
    "RepairResult",
    "Witness",
    "Witnesses",
    "WorstResult",
    "XCountError",
    "__version__",
    "audit",
    "compare",
    "count",
    "diff",
    "inspect",
    "load",
    "monotone",
    "person",
    "repair",
    "verify",
    "witnesses",
    "worst",
]

_HOMES = {
    "AuditResult": "xcount.runs.audit",
    "CompareResult": "xcount.runs.compare",
    "CountResult": "xcount.answers.result",
    "DiffResult": "xcount.answers.diff_result",
    "Domain": "xcount.question.domain",
    "Ensemble": "xcount.model.ensemble",
    "Grid": "xcount.question.grid",
    "Inspection": "xcount.answers.inspection",
    "MonotoneResult": "xcount.answers.monotone",
    "PersonResult": "xcount.answers.person",
    "Population": "xcount.measures.population",
    "Query": "xcount.question.query",
    "RepairResult": "xcount.repairs.result",
    "Witness": "xcount.answers.witness.witness",
    "Witnesses": "xcount.answers.witness.witness",
    "WorstResult": "xcount.answers.worst",
    "XCountError": "xcount.errors",
    "audit": "xcount.runs.audit",
    "compare": "xcount.runs.compare",
    "count": "xcount.answers.count",
    "diff": "xcount.answers.diff",
    "inspect": "xcount.answers.inspection",
    "load": "xcount.model.loaders",
    "monotone": "xcount.answers.monotone",
    "person": "xcount.answers.person",
    "repair": "xcount.repairs.repair",
    "verify": "xcount.answers.verify",
    "witnesses": "xcount.answers.witness.witnesses",
    "worst": "xcount.answers.worst",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: start-up time counts."""
    if name not in _HOMES:
        raise AttributeError(f"module 'xcount' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """Return the public names, imported or not: what an editor completes."""
    return sorted({*globals(), *__all__})
