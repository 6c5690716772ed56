"""The lines of a journal of counts: the plan of a run, and its finished counts.

A run line lists the keys of the planned counts. The results of a run are the latest ones of its
keys; results of earlier runs with other questions do not belong to it. If a line is damaged, they
are only those of the run itself: the damaged line may have replaced an earlier result.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from xcount.answers.result import CountResult
from xcount.errors import JournalError, JournalWarning
from xcount.runs.journal import DamagedLine, LineError, Record, damage, read_journal
from xcount.support.record_check import misfit
from xcount.support.records import RECORDS, Json
from xcount.verified.packing import packed, unpacked

FORMAT = 1
"""Version of the layout of audits, comparisons and their journals."""
RunNotes = Annotated[
    tuple[str, ...],
    Json(
        "Of a journal: which shard it is, which shards are missing, and which lines are damaged "
        "and were not used.",
        is_optional=True,
    ),
]
_OF_ONE_RUN = ("created", "versions")


@dataclass(frozen=True, slots=True)
class RunLine:
    """The first line of a run: its command, its models and its planned counts."""

    header: Record

    @property
    def command(self) -> str:
        """The command that wrote it."""
        return str(self.header["command"])

    @property
    def models(self) -> list[str]:
        """The fingerprints of its models."""
        several: list[str] | None = self.header.get("fingerprints")
        return [str(self.header.get("fingerprint"))] if several is None else several

    @property
    def shard(self) -> str | None:
        """The part of the run that it is about, as ``3/20``; None for a whole run."""
        about = self.header.get("shard")
        return None if about is None else f"{about['number']}/{about['of']}"

    def asks_like(self, header: Record) -> bool:
        """Return whether another run asks exactly the same questions."""
        return _asked(self.header) == _asked({"kind": "run", **header})

    def to_dict(self) -> Record:
        """Return the line as JSON."""
        return {"kind": "run", **self.header}


@dataclass(frozen=True, slots=True)
class CountLine:
    """A finished count.

    Attributes:
        key: what the count depends on, hashed.
        model: the fingerprint of its model.
        limits: the limits of the count.
        explained: the request for its explanation; None without one.
        result: the count itself.
    """

    key: str
    model: str
    limits: Mapping[str, float | None]
    explained: Mapping[str, Any] | None
    result: CountResult

    def to_dict(self) -> Record:
        """Return the line as JSON."""
        return {
            "kind": "result",
            "key": self.key,
            "model": self.model,
            "limits": self.limits,
            "explained": self.explained,
            **({} if self.result.question is None else {"question": packed(self.result.question)}),
            "result": self.result.to_dict(),
        }


Line = RunLine | CountLine | DamagedLine | None


@dataclass(frozen=True, slots=True)
class KeptRun:
    """The last run of a journal.

    Attributes:
        header: the content of its run line.
        counts: the counts that may belong to it, in order.
        notes: which lines of the journal were not used.
    """

    header: Record
    counts: tuple[CountLine, ...]
    notes: tuple[str, ...]

    def results(self) -> list[CountResult | None]:
        """Return the latest result of each planned count; None if there is none."""
        latest = {line.key: line.result for line in self.counts}
        return [latest.get(key) for key in self.header["keys"]]


def read_lines(path: str | os.PathLike[str]) -> tuple[Line, ...]:
    """Read a journal of counts, without locking or repairing it."""
    return read_journal(path, line_of)


def last_run(lines: Sequence[Line], path: str | os.PathLike[str], command: str) -> KeptRun:
    """Return the last run of a command from the lines of the journal at a path.

    Raises:
        JournalError: there is none, or damage may hide a later one.
    """
    notes = damage(lines, path)
    if any(isinstance(line, DamagedLine) and line.may_hide_run for line in _since_last_run(lines)):
        raise JournalError(
            f"{notes[0]}, and may have been the start of the last run; "
            "repeat that run with --resume, then report it"
        )
    runs = [line for line in lines if isinstance(line, RunLine) and line.command == command]
    if not runs:
        if not lines:
            raise JournalError(f"{path}: the journal is empty; nothing was saved in it yet")
        what = {"audit": "an audit", "compare": "a comparison"}[command]
        raise JournalError(
            f"{path} is not the journal of {what}: it has no {what.split()[-1]}'s run line"
        )
    warn_of_damage(notes)
    return KeptRun(runs[-1].header, counts_of_last_run(lines), notes)


def warn_of_damage(notes: Sequence[str]) -> None:
    """Warn of lines that are not used."""
    for note in notes:
        warnings.warn(note, JournalWarning, stacklevel=4)


def counts_of_last_run(lines: Sequence[Line]) -> tuple[CountLine, ...]:
    """Return the counts that may belong to the last run: those of all runs, if no line is damaged.

    Otherwise, they are those after the last run line: a damaged line may have replaced an earlier
    count by one with another limit.
    """
    is_damaged = any(isinstance(line, DamagedLine) for line in lines)
    usable = _since_last_run(lines) if is_damaged else lines
    return tuple(line for line in usable if isinstance(line, CountLine))


def _since_last_run(lines: Sequence[Line]) -> Sequence[Line]:
    """Return the lines from the last run line on; all if there is none."""
    starts = [number for number, line in enumerate(lines) if isinstance(line, RunLine)]
    return lines[starts[-1] :] if starts else lines


def is_last_run(header: Record, lines: Sequence[Line]) -> bool:
    """Return whether the last run of a journal asked exactly what the header asks."""
    first, *others = _since_last_run(lines) or (None,)
    is_sure = not any(isinstance(line, DamagedLine) for line in others)
    return is_sure and isinstance(first, RunLine) and first.asks_like(header)


def _asked(run: Record) -> Mapping[str, Any]:
    return {name: value for name, value in run.items() if name not in _OF_ONE_RUN}


# ---- reading a line ----


def line_of(record: Record) -> Line:
    """Return the object of a journal's line; None for a line of another kind.

    Raises:
        LineError: no run of this version wrote it.
    """
    if record["kind"] == "run":
        return _run_line(record)
    return _count_line(record) if record["kind"] == "result" else None


def _run_line(run: Record) -> RunLine:
    """Check the fields of a run line: the plan, and those of the run's result except its counts."""
    command = run.get("command")
    if not isinstance(command, str):
        raise LineError("is a run line without a command")
    if command not in ("audit", "compare") or command not in RECORDS:
        return RunLine(run)  # another command's, which the caller does not read
    if run.get("format") != FORMAT:
        raise LineError(
            f"has format {run.get('format')}, and this version of xcount reads format {FORMAT}"
        )
    whole = {"results": [], "rows": [], **run, "kind": command}
    fault = misfit(whole, RECORDS[command])
    if fault is not None:
        raise LineError(f"is a run line in which {fault}")
    marks = run.get("fingerprints") if command == "compare" else [run.get("fingerprint")]
    if not (_is_texts(marks) and _is_texts(run.get("keys"))):
        raise LineError("is a run line with keys or fingerprints that are no text")
    if command == "compare" and not len(run["names"]) == len(run["models"]) == len(marks or ()):
        raise LineError("is a run line with other numbers of models and of their names")
    if "shard" in run and not _is_shard(run["shard"]):
        raise LineError("is a run line with a shard that is not number K of N, its plan and keys")
    return RunLine(run)


def _is_shard(about: object) -> bool:
    if not isinstance(about, dict) or not isinstance(about.get("plan"), str):
        return False
    number, of = about.get("number"), about.get("of")
    if type(number) is not int or type(of) is not int:
        return False
    return 1 <= number <= of and _is_texts(about.get("keys"))


def _count_line(line: Record) -> CountLine:
    for name in ("key", "model"):
        if not isinstance(line.get(name), str):
            raise LineError(f"is a result line without a {name}")
    limits = line.get("limits")
    if not isinstance(limits, dict) or not all(
        limit is None or isinstance(limit, int | float) for limit in limits.values()
    ):
        raise LineError("is a result line whose limits are no numbers")
    explained = line.get("explained")
    if explained is not None and not (
        isinstance(explained, dict) and {"favourable", "with_people"} <= explained.keys()
    ):
        raise LineError("is a result line that does not say what its explanation serves")
    result = _result(line.get("result"))
    if "question" in line:
        try:
            result = replace(result, question=unpacked(line["question"]))
        except ValueError:
            raise LineError("is a result line whose question cannot be unpacked") from None
    return CountLine(line["key"], line["model"], limits, explained, result)


def _result(data: Any) -> CountResult:
    fault = misfit(data, CountResult, "result")
    if fault is not None:
        raise LineError(f"is a result line in which {fault}")
    try:
        result = CountResult.from_dict(data)
        result.to_dict()  # redundant fields may contradict each other
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise LineError(f"has no whole result ({type(error).__name__}: {error})") from error
    return result


def _is_texts(listed: object) -> bool:
    return isinstance(listed, list) and all(isinstance(text, str) for text in listed)
