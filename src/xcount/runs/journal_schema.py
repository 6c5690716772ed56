"""What the lines of a journal of counts say: what a run planned, and what has come of it.

A run line lists the keys of the counts that were planned. What a run has is the latest result of
each of its keys; results of earlier runs with other questions are none of its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xcount.answers.result import CountResult
from xcount.errors import JournalError
from xcount.runs.journal import Record, read_journal

_OF_ONE_RUN = ("created", "versions")


@dataclass(frozen=True, slots=True)
class KeptRun:
    """The last run of a journal.

    Attributes:
        header: what its run line says.
        keys: of the counts that were planned; None in a journal from before they were kept.
        lines: all result lines of the journal, in order.
    """

    header: Record
    keys: Sequence[str] | None
    lines: tuple[Record, ...]

    def results(self) -> list[CountResult | None]:
        """Return what has come of each planned count; None where there is no result."""
        latest = {line["key"]: line for line in self.lines}
        found = [latest.get(key) for key in self.keys or ()]
        return [None if line is None else result_of(line) for line in found]


def last_run(path: str | os.PathLike[str], command: str) -> KeptRun:
    """Read the last run of a command from a journal."""
    records = read_journal(path, line_fault)
    runs = [r for r in records if r["kind"] == "run" and r.get("command") == command]
    if not runs:
        what = {"audit": "an audit", "compare": "a comparison"}[command]
        raise JournalError(
            f"{path} is not the journal of {what}: it has no {what.split()[-1]}'s run line"
        )
    lines = tuple(record for record in records if record["kind"] == "result")
    return KeptRun(runs[-1], runs[-1].get("keys"), lines)


def is_last_run(header: Record, records: Sequence[Record]) -> bool:
    """Tell whether the last run of a journal asked just what the header asks."""
    runs = [record for record in records if record["kind"] == "run"]
    return bool(runs) and _asked(runs[-1]) == _asked({"kind": "run", **header})


def _asked(run: Record) -> Mapping[str, Any]:
    return {name: value for name, value in run.items() if name not in _OF_ONE_RUN}


def result_of(line: Record) -> CountResult:
    """Return the result in a journal's line."""
    return CountResult.from_dict(line["result"])


# ---- what a line must have ----

_Fields = Mapping[str, type | tuple[type, ...]]

_NUMBER = (int, float)
_TEXT_OR_NONE = (str, type(None))
_NUMBER_OR_NONE = (int, float, type(None))

_ANY_RUN: _Fields = {
    "created": str,
    "gap_origin": str,
    "task": str,
    "versions": dict,
    "planned": int,
    "keys": list,
}
_RUNS: Mapping[str, _Fields] = {
    "audit": {
        **_ANY_RUN,
        "fingerprint": str,
        "model": dict,
        "margin": str,
        "class_label": _TEXT_OR_NONE,
        "unused_features": list,
    },
    "compare": {
        **_ANY_RUN,
        "fingerprints": list,
        "names": list,
        "models": list,
        "n_regions": int,
        "max_ratio": _NUMBER_OR_NONE,
    },
}
_MODEL: _Fields = {
    "path": _TEXT_OR_NONE,
    "sha256": _TEXT_OR_NONE,
    "format": str,
    "n_trees": int,
    "max_depth": int,
    "n_features": int,
    "n_guards": int,
}
_RESULT: _Fields = {
    **dict.fromkeys(("count", "low", "high", "n_regions", "seed", "peak_memory_bytes"), int),
    **dict.fromkeys(("confidence", "epsilon", "delta", "seconds"), _NUMBER),
    **dict.fromkeys(("method", "stop_reason", "gap_text"), str),
    **dict.fromkeys(("distance", "precision"), (int, str)),
    "sensitive": list,
    "max_share": _NUMBER_OR_NONE,
    "model": dict,
    "versions": dict,
    "details": dict,
}


def line_fault(record: Record) -> str | None:
    """Return why a line cannot be one that a run wrote; None for a good one, or of another kind."""
    if record["kind"] == "run":
        return _run_fault(record)
    return _result_line_fault(record) if record["kind"] == "result" else None


def _run_fault(run: Record) -> str | None:
    command = run.get("command")
    if not isinstance(command, str):
        return "is a run line without a command"
    if command not in _RUNS:
        return None
    fault = _misfit({"planned": 0, "keys": [], **run}, _RUNS[command], "run line")
    if fault is not None:
        return fault
    models = [run["model"]] if command == "audit" else run["models"]
    faults = [_misfit(model, _MODEL, "run line's model") for model in models]
    lists = ("keys", "names", "fingerprints", "unused_features")
    if not all(_is_texts(run.get(name, [])) for name in lists):
        faults.append("has a run line with a list of what is no text")
    if command == "compare" and not 0 < len(run["names"]) == len(models) == len(
        run["fingerprints"]
    ):
        faults.append("has a run line with other numbers of models and of their names")
    return next((fault for fault in faults if fault is not None), None)


def _result_line_fault(line: Record) -> str | None:
    fault = _misfit(line, {"key": str, "model": str, "result": dict}, "result line")
    limits = line.get("limits", {})
    if not isinstance(limits, dict) or not all(
        isinstance(limit, _NUMBER_OR_NONE) for limit in limits.values()
    ):
        return "is a result line whose limits are no numbers"
    return fault or _result_fault(line["result"])


def _result_fault(result: Record) -> str | None:
    fault = _misfit(result, _RESULT, "result") or _misfit(result["model"], _MODEL, "result's model")
    if fault is not None:
        return fault
    steps_ok = isinstance(result["distance"], int) or result["distance"] == "any"
    if not (_is_texts(result["sensitive"]) and result["n_regions"] > 0 and steps_ok):
        return "has a result about no features, no regions, or no distance"
    try:
        found = CountResult.from_dict(result)
        found.to_dict()
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        return f"has no whole result ({type(error).__name__}: {error})"
    return None


def _misfit(data: object, fields: _Fields, what: str) -> str | None:
    """Return what is missing or of another type."""
    if not isinstance(data, Mapping):
        return f"has a {what} that is no object"
    for name, kind in fields.items():
        if name not in data:
            return f"has a {what} without {name!r}"
        if not isinstance(data[name], kind):
            return f"has a {what} with another {name!r} than expected"
    return None


def _is_texts(listed: object) -> bool:
    return isinstance(listed, list) and all(isinstance(text, str) for text in listed)
