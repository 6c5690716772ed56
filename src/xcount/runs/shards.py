"""Shards: one run's counts shared out among processes that know nothing of each other.

Every shard plans the whole run, and counts its part of it. Questions take turns: question ``i`` of
the plan is counted by shard ``i mod of`` (counted from 0); questions that one visit of all regions
can answer together count as one. So every process can tell which counts are its own, and a result
does not depend on who counts it. A shard's journal is the journal of a smaller run, whose run line
also has the plan of the whole (``shard``). Merging puts the journals' counts into that plan.
"""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xcount.answers.result import CountResult
from xcount.counters.tally import StopReason
from xcount.errors import JournalError, JournalWarning, QueryError
from xcount.runs.journal import Record
from xcount.runs.journal_lines import (
    CountLine,
    KeptRun,
    RunLine,
    last_run,
    read_lines,
    warn_of_damage,
)
from xcount.runs.task import Question, Task, families
from xcount.support.numerals import to_json

MOST_SHARDS = 100_000
_MOST_LISTED = 20


@dataclass(frozen=True, slots=True, order=True)
class Shard:
    """A part of a run: shard ``number`` of ``of``, counted from 1.

    Example:
        >>> Shard.parse("3/20")
        Shard(number=3, of=20)
    """

    number: int
    of: int

    @classmethod
    def parse(cls, text: object) -> Shard:
        """Read ``"3/20"``."""
        found = re.fullmatch(r"\s*([0-9]{1,6})\s*/\s*([0-9]{1,6})\s*", str(text), re.ASCII)
        shard = None if found is None else cls(int(found[1]), int(found[2]))
        if shard is None or not 1 <= shard.number <= shard.of <= MOST_SHARDS:
            raise QueryError(
                f"--shard (shard) is {text!r}; expected K/N with K from 1 to N, such as 3/20: the "
                f"third of 20 shards (at most {MOST_SHARDS:,})"
            )
        return shard

    @property
    def name(self) -> str:
        """How people write it."""
        return f"{self.number}/{self.of}"

    def cut(
        self, tasks: Sequence[Task], header: Record, n_models: int = 1
    ) -> tuple[list[Task], dict[str, Any]]:
        """Return the tasks of this shard, and the run line about them.

        Args:
            tasks: those of the whole run, ``n_models`` for each question.
            header: its run line.
            n_models: how many models are asked each question.
        """
        parts = families(task.family for task in tasks[::n_models])
        own = {question for part in parts[self.number - 1 :: self.of] for question in part}
        mine = [task for i, task in enumerate(tasks) if i // n_models in own]
        whole = {
            "number": self.number,
            "of": self.of,
            "keys": header["keys"],
            "plan": _plan(tasks),
        }
        keys = [task.key for task in mine]
        return mine, {**header, "keys": keys, "planned": len(keys), "shard": whole}


def _plan(tasks: Iterable[Task]) -> str:
    """Return a hash of all that is asked of a run's counts, besides the counts themselves."""

    def asked(question: Question) -> list[object]:
        settings, explain = question.settings, question.explain
        wanted = None if explain is None else [explain.favourable, explain.with_people]
        return [str(settings.max_share), settings.judge, question.n_witnesses, wanted]

    text = to_json({"asked": [asked(task.question) for task in tasks]})
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def shard_of(header: Record) -> Shard | None:
    """Return which shard a run line is about; None for a whole run."""
    about = header.get("shard")
    return None if about is None else Shard(about["number"], about["of"])


def shard_notes(header: Record) -> tuple[str, ...]:
    """Return what a reader has to know about a shard's results; nothing for a whole run."""
    shard = shard_of(header)
    if shard is None:
        return ()
    n_all = len(header["shard"]["keys"])
    return (
        f"shard {shard.name}: {header['planned']} of the {n_all} counts of the run; "
        "xcount merge joins the journals of all shards",
    )


def merged_run(paths: Sequence[str | os.PathLike[str]], command: str | None = None) -> KeptRun:
    """Return the run whose shards wrote these journals.

    Shards that are missing or unfinished are named in its notes.

    Args:
        paths: the journals, in any order.
        command: the command whose run is wanted; any unless given.

    Raises:
        JournalError: they are not shards of one run of that command.
    """
    if isinstance(paths, str | os.PathLike) or not paths:
        raise JournalError("name the journals of the shards, such as s1.jsonl s2.jsonl")
    journals = [found for path in paths if (found := _Journal.read(path)) is not None]
    if not journals:
        raise JournalError("nothing was saved in these journals yet")
    first = min(journals, key=lambda each: str(each.header["created"]))
    for other in journals:
        if text := _difference(other.header, first.header):
            raise JournalError(f"{other.path} {text}, unlike {first.path}; merge shards of one run")
    if command not in (None, first.header["command"]):
        raise JournalError(
            f"{first.path} is not the journal of {command}, but of {first.header['command']}"
        )
    counts = _latest(journals)
    keys = first.header["shard"]["keys"]
    header = {name: value for name, value in first.header.items() if name != "shard"}
    header |= {"keys": keys, "planned": len(keys)}
    new = [*_missing(journals, counts), *_versions(journals)]
    warn_of_damage(new)
    notes = [*(note for each in journals for note in each.kept.notes), *new]
    return KeptRun(header, tuple(counts.values()), tuple(dict.fromkeys(notes)))


@dataclass(frozen=True, slots=True)
class _Journal:
    """The journal of a shard.

    Attributes:
        path: its file, as given.
        kept: its last run.
    """

    path: str
    kept: KeptRun

    @property
    def header(self) -> Record:
        return self.kept.header

    @property
    def shard(self) -> Shard:
        return Shard(self.header["shard"]["number"], self.header["shard"]["of"])

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> _Journal | None:
        """Read a shard's journal; return None if nothing was saved in it yet."""
        lines = read_lines(path)
        name = os.fspath(path)
        if not lines:
            warnings.warn(
                f"{name} is empty: that shard saved nothing", JournalWarning, stacklevel=4
            )
            return None
        commands = {line.command for line in lines if isinstance(line, RunLine)}
        kept = last_run(lines, path, "compare" if "compare" in commands else "audit")
        if shard_of(kept.header) is None:
            raise JournalError(
                f"{name} is not the journal of a shard: it was written without --shard; "
                "xcount report renders it"
            )
        return cls(name, kept)


def _difference(other: Record, first: Record) -> str:
    """Return why two shards are not of one run; nothing if they are."""
    one, two = RunLine(other), RunLine(first)
    tables = ", ".join(f"{role}: sha256 {mark}" for role, mark, _ in _tables(other)) or "none"
    reasons = {
        f"is the journal of another command ({one.command}, not {two.command})": (
            one.command != two.command
        ),
        f"is about another model (sha256 {', '.join(one.models)}, not {', '.join(two.models)})": (
            one.models != two.models
        ),
        f"is one of {other['shard']['of']} shards, not of {first['shard']['of']}": (
            other["shard"]["of"] != first["shard"]["of"]
        ),
        f"was counted with other data ({tables})": _tables(other) != _tables(first),
        "asks other questions, or has another domain, accuracy or seed": (
            other["shard"]["keys"] != first["shard"]["keys"]
        ),
        "has other limits or names, or asks for other examples or explanations": (
            _aims(other) != _aims(first)
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _tables(header: Record) -> list[tuple[str, str | None, int | None]]:
    """Return the data of a run; its path may differ from machine to machine."""
    return [(each["role"], each["sha256"], each["n_rows"]) for each in header.get("inputs", ())]


def _aims(header: Record) -> list[object]:
    own = ("names", "max_ratio", "max_ratio_exact", "named", "judged")
    return [header["shard"]["plan"], *(header.get(name) for name in own)]


def _latest(journals: Sequence[_Journal]) -> dict[str, CountLine]:
    """Return one count for each key: of several, the latest complete one, else the latest.

    Raises:
        JournalError: two complete counts contradict each other.
    """
    found: dict[str, CountLine] = {}
    sources: dict[str, _Journal] = {}
    for journal in journals:
        for key, line in {line.key: line for line in journal.kept.counts}.items():
            had = found.get(key)
            if had is not None and _contradict(had.result, line.result):
                raise JournalError(
                    f"{journal.path} and {sources[key].path} contradict each other: "
                    f"{line.result.count} and {had.result.count} regions are sensitive to "
                    f"{' + '.join(line.result.sensitive)}; one of them is damaged or was written "
                    "by another version"
                )
            if had is None or _is_complete(line.result) or not _is_complete(had.result):
                found[key], sources[key] = line, journal
    return found


def _is_complete(result: CountResult) -> bool:
    return set(result.stop_reasons) == {StopReason.COMPLETE}


def _contradict(one: CountResult, two: CountResult) -> bool:
    """Return whether the bounds of two counts exclude each other; estimates may err."""
    return one.exact and two.exact and one.count != two.count


def _missing(journals: Sequence[_Journal], counts: Mapping[str, CountLine]) -> list[str]:
    """Return a note about shards that are missing, and one about unfinished ones."""
    of = journals[0].shard.of
    there = {each.shard.number: each for each in journals}
    lost = [number for number in range(1, of + 1) if number not in there]
    left = {
        each.shard.number: n
        for each in there.values()
        if (n := sum(not _is_ended(counts.get(key)) for key in each.header["keys"]))
    }
    notes = []
    if lost:
        names = _listed([f"{number}/{of}" for number in lost])
        notes.append(f"missing: shard {names}; run it, and merge again")
    if left:
        names = _listed([f"{number}/{of} ({n} counts left)" for number, n in left.items()])
        notes.append(f"unfinished: shard {names}; run it again with --resume, and merge again")
    return notes


def _is_ended(line: CountLine | None) -> bool:
    """Return whether a count was not interrupted; one that a limit stopped would stop again."""
    return line is not None and StopReason.INTERRUPTED not in line.result.stop_reasons


def _versions(journals: Sequence[_Journal]) -> list[str]:
    """Return a note if the shards were not all counted by the same versions."""
    told = {
        ", ".join(f"{name} {version}" for name, version in each.header["versions"].items())
        for each in journals
    }
    return [f"counted by different versions: {'; '.join(sorted(told))}"] if len(told) > 1 else []


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return ", ".join(names[:_MOST_LISTED]) + more
