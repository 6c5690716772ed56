"""What the lines of a journal of counts say: what a run planned, and what has come of it.

A run line lists the keys of the counts that were planned. What a run has is the latest result of
each of its keys; results of earlier runs with other questions are none of its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xcount.answers.result import CountResult, readable
from xcount.answers.witness.witness import Witness
from xcount.errors import JournalError
from xcount.runs.journal import Record, read_journal
from xcount.support.record_check import misfit
from xcount.support.records import RECORDS

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
        if not records:
            raise JournalError(f"{path}: the journal is empty; nothing was saved in it yet")
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


def line_fault(line: Record) -> str | None:
    """Return why a line cannot be one that a run wrote; None for a good one, or of another kind."""
    if line["kind"] == "run":
        return _run_fault(line)
    return _result_line_fault(line) if line["kind"] == "result" else None


def _run_fault(run: Record) -> str | None:
    """Check what a run's result is made from, but for its counts; and what was planned."""
    command = run.get("command")
    if not isinstance(command, str):
        return "is a run line without a command"
    if command not in ("audit", "compare") or command not in RECORDS:
        return None  # another command's, which whoever reads this journal does not read
    whole = {"planned": 0, "results": [], "rows": [], **run, "kind": command}
    fault = misfit(whole, RECORDS[command])
    if fault is not None:
        return f"is a run line in which {fault}"
    marks = run.get("fingerprints") if command == "compare" else [run.get("fingerprint")]
    if not (_is_texts(marks) and _is_texts(run.get("keys", []))):
        return "is a run line with keys or fingerprints that are no text"
    if command == "compare" and not len(run["names"]) == len(run["models"]) == len(marks or ()):
        return "is a run line with other numbers of models and of their names"
    return None


def _result_line_fault(line: Record) -> str | None:
    for name in ("key", "model"):
        if not isinstance(line.get(name), str):
            return f"is a result line without a {name}"
    limits = line.get("limits", {})
    if not isinstance(limits, dict) or not all(
        limit is None or isinstance(limit, int | float) for limit in limits.values()
    ):
        return "is a result line whose limits are no numbers"
    explained = line.get("explained")
    if explained is not None and not (
        isinstance(explained, dict) and {"favourable", "with_people"} <= explained.keys()
    ):
        return "is a result line that does not say what its explanation serves"
    result = line.get("result")
    known = readable(result) if isinstance(result, Mapping) else result
    fault = misfit(known, CountResult, "result")
    return f"is a result line in which {fault}" if fault else _contents_fault(line["result"])


def _contents_fault(result: Mapping[str, Any]) -> str | None:
    """Read the result and write it again: what is said twice in it may contradict itself."""
    try:
        CountResult.from_dict(result).to_dict()
        for witness in result["details"].get("witnesses", ()):
            Witness.from_dict(witness)
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        return f"has no whole result ({type(error).__name__}: {error})"
    return None


def _is_texts(listed: object) -> bool:
    return isinstance(listed, list) and all(isinstance(text, str) for text in listed)
