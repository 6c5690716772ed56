"""What the lines of a journal of counts say: what a run planned, and what has come of it.

A run line lists the keys of the counts that were planned. What a run has is the latest result of
each of its keys; results of earlier runs with other questions are none of its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xcount.errors import JournalError
from xcount.journal import Record, read_journal
from xcount.result import CountResult

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
    records = read_journal(path)
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


def result_of(record: Record) -> CountResult:
    """Return the result in a journal's line."""
    try:
        return CountResult.from_dict(record["result"])
    except (KeyError, TypeError, ValueError) as error:
        raise JournalError(f"a journal line holds no whole result: {error!r}") from error
