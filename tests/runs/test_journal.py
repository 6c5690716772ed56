"""The journal: nothing lost, nothing twice, one writer."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from effort import n_examples
from journals import records_of, sealed_lines, write_records

import xcount
from xcount.errors import JournalError, JournalWarning
from xcount.model.examples import figure_1
from xcount.runs.journal import DamagedLine, Journal, read_journal
from xcount.support.numerals import to_json

RUN = {"kind": "run", "command": "audit"}


def test_records_come_back_in_order(tmp_path: Path) -> None:
    """What was appended is what is read."""
    path = tmp_path / "j.jsonl"
    with Journal(path) as journal:
        for number in range(3):
            journal.append({"kind": "result", "key": str(number)})
    assert [record["key"] for record in read_journal(path)] == ["0", "1", "2"]


def test_several_records_are_several_lines(tmp_path: Path) -> None:
    """Records that are appended together are no different from others; none at all is nothing."""
    path = tmp_path / "j.jsonl"
    with Journal(path) as journal:
        journal.append(RUN, {"kind": "result"})
        journal.append()
        journal.append(RUN)
    assert read_journal(path) == (RUN, {"kind": "result"}, RUN)


def test_a_line_is_in_the_file_as_soon_as_append_returns(tmp_path: Path) -> None:
    """Another reader sees every appended line at once."""
    path = tmp_path / "j.jsonl"
    with Journal(path) as journal:
        journal.append(RUN)
        assert path.read_bytes() == sealed_lines([RUN])


def test_integers_of_any_size_survive(tmp_path: Path) -> None:
    """A count with more digits than Python converts by default is written and read."""
    path = tmp_path / "j.jsonl"
    with Journal(path) as journal:
        journal.append({"kind": "result", "count": 7**10_000})
    assert read_journal(path)[0]["count"] == 7**10_000
    assert sys.get_int_max_str_digits() == 4300


def test_a_torn_last_line_is_cut_off_wherever_it_tore(tmp_path: Path) -> None:
    """Every prefix of an append leaves a journal that reads, repairs and goes on."""
    path = tmp_path / "j.jsonl"
    first = sealed_lines([RUN])
    both = sealed_lines([RUN, {"kind": "result", "key": "b"}])
    for length in range(len(first) + 1, len(both)):
        path.write_bytes(both[:length])
        complete = length == len(both) - 1  # only the end of the line is missing
        assert len(read_journal(path)) == 1 + complete
        with Journal(path, resume=True) as journal:
            assert len(journal.lines) == 1 + complete
            journal.append({"kind": "result", "key": "c"})
        keys = [record.get("key") for record in read_journal(path)]
        assert keys == ([None, "b", "c"] if complete else [None, "c"])


def test_the_first_line_may_be_torn(tmp_path: Path) -> None:
    """A crash in the very first append leaves a journal that starts anew."""
    path = tmp_path / "j.jsonl"
    path.write_bytes(b'{"kind": "r')
    with Journal(path) as journal:
        journal.append(RUN)
    assert read_journal(path) == (RUN,)


def test_blocks_of_zeros_after_a_power_failure_are_cut_off(tmp_path: Path) -> None:
    """A file system may leave zeros where an append was to be."""
    path = tmp_path / "j.jsonl"
    path.write_bytes(sealed_lines([RUN]) + b"\0" * 100)
    with Journal(path, resume=True) as journal:
        assert len(journal.lines) == 1
    assert path.read_bytes() == sealed_lines([RUN])


RECORDS = [RUN, *({"kind": "result", "key": key} for key in "abc")]


@pytest.mark.parametrize(
    "line", [b"not json", b"[1]", b'{"kind": "run"}', b'{"no": 1}', b"[" * 100_000, b"\xff\xfe"]
)
def test_foreign_lines_are_not_used_and_stay(tmp_path: Path, line: bytes) -> None:
    """Without a checksum that matches, a line is damage; those around it are used."""
    path = tmp_path / "j.jsonl"
    whole = sealed_lines(RECORDS)
    for content in (whole + line + b"\n", line + b"\n" + sealed_lines(RECORDS)):
        path.write_bytes(content)
        with Journal(path, resume=True) as journal:
            used = [each for each in journal.lines if not isinstance(each, DamagedLine)]
            assert used == RECORDS
            assert len(journal.lines) == len(used) + 1
            journal.append({"kind": "result", "key": "new"})
        assert path.read_bytes().startswith(content)
        assert read_journal(path)[-1] == {"kind": "result", "key": "new"}


@pytest.mark.parametrize(
    ("order", "damaged"),
    [
        ((0, 2, 3), [2]),
        ((1, 2, 3), [1]),
        ((0, 3), [2]),
        ((0, 2, 1, 3), [2, 3, 4]),
        ((0, 1, 1, 2, 3), [3]),
        ((0, 1, 2, 3, 0, 1, 2, 3), [5]),
        ((0, 1, 2), []),
    ],
)
def test_removed_moved_and_repeated_lines_show(
    tmp_path: Path, order: Sequence[int], damaged: list[int]
) -> None:
    """A line that does not follow the one in front of it is not used; a cut end is a stop."""
    path = tmp_path / "j.jsonl"
    lines = sealed_lines(RECORDS).splitlines(keepends=True)
    path.write_bytes(b"".join(lines[number] for number in order))
    found = read_journal(path)
    assert [each.number for each in found if isinstance(each, DamagedLine)] == damaged
    for number, each in zip(order, found, strict=True):
        assert isinstance(each, DamagedLine) or each == RECORDS[number]


def test_no_flipped_bit_is_content(tmp_path: Path) -> None:
    """Whatever bit of a journal flips: each line has the content that was written, or is damage."""
    path = tmp_path / "j.jsonl"
    whole = sealed_lines(RECORDS)
    written = [to_json(record) for record in RECORDS]
    for place in range(len(whole)):
        for bit in range(8):
            changed = bytearray(whole)
            changed[place] ^= 1 << bit
            path.write_bytes(changed)
            found = [each for each in read_journal(path) if not isinstance(each, DamagedLine)]
            assert len(found) < len(RECORDS)
            assert {to_json(each) for each in found} <= set(written)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hello", "is not a journal"),
        (b"[" * 100_000, "is not a journal"),
        (b"hello\nworld\n", "is not a journal"),
        (b"a,b\n1,2\n", "is a table, not a journal"),
        (b'{"learner": {}}\n', "is a model file, not a journal"),
        (b'{"kind": "audit", "format": 1}\n', "is a result, not a journal"),
    ],
)
def test_what_never_was_a_journal_is_left_alone(
    tmp_path: Path, content: bytes, message: str
) -> None:
    """Nothing is appended to a model, a table or a result, and the line says what it is."""
    path = tmp_path / "j.jsonl"
    path.write_bytes(content)
    with pytest.raises(JournalError, match=message):
        Journal(path, resume=True)
    assert path.read_bytes() == content


def test_an_existing_journal_needs_resume(tmp_path: Path) -> None:
    """Nobody appends to old results by accident."""
    path = tmp_path / "j.jsonl"
    with Journal(path) as journal:
        journal.append(RUN)
    with pytest.raises(JournalError, match="--resume"):
        Journal(path)


def test_two_writers_are_refused(tmp_path: Path) -> None:
    """The second writer gets an error; after the first one ends, it may write."""
    path = tmp_path / "j.jsonl"
    with Journal(path), pytest.raises(JournalError, match="in use by another run"):
        Journal(path)
    Journal(path).close()


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    """A killed writer leaves no lock behind."""
    path = tmp_path / "j.jsonl"
    code = (
        "import sys, os, signal; from xcount.runs.journal import Journal;"
        "Journal(sys.argv[1]).append({'kind': 'run'}); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert done.returncode == -9
    with Journal(path, resume=True) as journal:
        assert len(journal.lines) == 1


def test_a_full_disk_is_one_error_and_loses_nothing(tmp_path: Path) -> None:
    """A write that does not fit leaves all earlier lines whole."""
    path = tmp_path / "j.jsonl"
    code = (
        "import resource, sys; from xcount.runs.journal import Journal\n"
        "from xcount.errors import *\n"
        "j = Journal(sys.argv[1])\n"
        "j.append({'kind': 'result', 'key': 'a'})\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))\n"
        "try:\n"
        "    j.append({'kind': 'result', 'key': 'b' * 200})\n"
        "except JournalError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True
    )
    assert "cannot write" in done.stdout
    assert "earlier results are safe" in done.stdout
    assert path.read_bytes() == sealed_lines([{"kind": "result", "key": "a"}])


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A missing folder and a folder in place of a file are errors that name the path."""
    with pytest.raises(JournalError, match=r"absent/j\.jsonl"):
        Journal(tmp_path / "absent" / "j.jsonl")
    with pytest.raises(JournalError, match="is a directory, expected a journal"):
        Journal(tmp_path)
    with pytest.raises(JournalError, match="cannot read"):
        read_journal(tmp_path / "none.jsonl")


def test_a_read_only_place_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder or file system that cannot be written is an error that names the path."""
    for code, words in (
        (errno.EACCES, "Permission denied"),
        (errno.EROFS, "Read-only file system"),
    ):

        def refuse(*arguments: object, code: int = code) -> int:
            raise OSError(code, os.strerror(code))

        with monkeypatch.context() as patched:
            patched.setattr(os, "open", refuse)
            with pytest.raises(JournalError, match=f"j.jsonl for writing: {words}"):
                Journal(tmp_path / "j.jsonl")


def test_a_half_written_line_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fills up in the middle of a line leaves whole lines, and room means going on."""
    path = tmp_path / "j.jsonl"
    write = os.write

    def fill_up(descriptor: int, data: bytes) -> int:
        if len(data) < 20:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[: len(data) // 2])

    with Journal(path) as journal:
        journal.append(RUN)
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", fill_up)
            with pytest.raises(JournalError, match=r"No space left on device; all earlier results"):
                journal.append({"kind": "result", "key": "b" * 100})
        assert read_journal(path) == (RUN,)
        journal.append({"kind": "result", "key": "c"})
    assert [record.get("key") for record in read_journal(path)] == [None, "c"]


def changed_line(path: Path, number: int, change: Callable[[dict[str, Any]], object]) -> None:
    """Change one line of a journal, counted from 1, and all checksums with it."""
    records = records_of(path)
    change(records[number - 1])
    write_records(path, records)


def places(record: dict[str, Any], inside: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return where the fields of a record are, as paths."""
    found = []
    for name, value in record.items():
        found.append((*inside, name))
        if isinstance(value, dict) and name in ("result", "model"):
            found += places(value, (*inside, name))
    return found


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the journals of an audit and a comparison, each a run line and result lines."""
    folder = tmp_path_factory.mktemp("journals")
    xcount.audit(figure_1(), gaps=80, max_share=0.5, journal=folder / "audit")
    xcount.compare([figure_1(), figure_1()], gaps=80, max_ratio=1, journal=folder / "compare")
    return {name: (folder / name).read_bytes() for name in ("audit", "compare")}


@pytest.mark.parametrize("command", ["audit", "compare"])
@pytest.mark.parametrize("number", [1, 2])
def test_damaged_lines_are_named(
    tmp_path: Path, xcount_command: Command, journals: dict[str, bytes], command: str, number: int
) -> None:
    """Whatever field is gone or is something else: a page, or an error that names the line."""
    path = tmp_path / "j.jsonl"
    whole = journals[command]
    n_named = 0
    values: list[object] = ["absent", None, [], [[]], {}, "text", -1, True]
    for place in places(json.loads(whole.splitlines()[number - 1])):
        for value in values:
            path.write_bytes(whole)
            changed_line(path, number, lambda record, p=place, v=value: _set(record, p, v))  # type: ignore[misc]  # bound at once
            run = xcount_command("report", path, "--json")
            assert "internal error" not in run.err, (place, value)
            if run.status == 2 and place != ("kind",):
                n_named += f"line {number} of {path}" in run.err or "run line" in run.err
    assert n_named > 50


def _set(record: dict[str, Any], place: Sequence[str], value: object) -> None:
    for name in place[:-1]:
        record = record[name]
    record[place[-1]] = value
    if value == "absent":
        del record[place[-1]]


@pytest.mark.parametrize(
    "line",
    [
        '{"kind": "run", "command": "audit"}',
        '{"kind": "run", "command": "compare"}',
        '{"kind": "run", "command": []}',
        '{"kind": "run"}',
        '{"kind": "result"}',
        '{"kind": "result", "key": "k", "model": "m", "result": {}}',
        '{"kind": "result", "key": [], "model": "m", "result": {}}',
    ],
)
def test_foreign_lines_are_named(
    tmp_path: Path,
    xcount_command: Command,
    figure_1_file: str,
    journals: dict[str, bytes],
    line: str,
) -> None:
    """The report and --resume say which line is none of a run's, although its checksum matches."""
    path = tmp_path / "j.jsonl"
    path.write_bytes(journals["audit"])
    write_records(path, [*records_of(path), json.loads(line)])
    resume = ("audit", figure_1_file, "--gap", "80", "--journal", path, "--resume")
    for arguments in (("report", path), resume):
        run = xcount_command(*arguments)
        assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
        assert f"line 4 of {path} " in run.err


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full", "/dev/null"])
def test_a_device_is_no_journal(device: str) -> None:
    """It may never end, and keeps nothing."""
    with pytest.raises(JournalError, match="not a regular file"):
        Journal(device)
    with pytest.raises(JournalError, match="not a regular file"):
        read_journal(device)


def test_a_line_nested_too_deeply_is_named(tmp_path: Path, xcount_command: Command) -> None:
    """Even if its checksum matches: one line, no RecursionError."""
    path = tmp_path / "j.jsonl"
    for depth in (900, 5_000, 100_000):
        start = b'{"kind": "run", "command": "audit", "after": null, "x": '
        start += b"[" * depth + b"]" * depth
        check = hashlib.sha256(start).hexdigest().encode()
        path.write_bytes(start + b', "check": "' + check + b'"}\n')
        run = xcount_command("report", path)
        assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
        assert f"line 1 of {path} " in run.err


# ---- damaged journals of audits and comparisons ----

LIMITED = ("--gap", "80", "--distance", "1", "--max-share", "10%", "--jobs", "1")


def test_an_edited_count_is_counted_again(
    tmp_path: Path, xcount_command: Command, figure_1_file: str
) -> None:
    """A journal changed by hand does not turn FAIL into PASS; the report lacks that count."""
    path = tmp_path / "j.jsonl"
    words = ("audit", figure_1_file, *LIMITED, "--journal", path)
    assert xcount_command(*words).status == 1
    text = path.read_text()
    path.write_text(
        text.replace('"count": 2, "low": 2, "high": 2', '"count": 0, "low": 0, "high": 0')
    )
    assert path.read_text() != text
    seen = xcount_command("report", path, "--json")
    assert f"xcount: note: {path}: line 2 does not match its checksum; it is not used\n" == seen.err
    data = json.loads(seen.out)
    assert (seen.status, data["verdict"], len(data["results"])) == (3, "UNDECIDED", 1)
    assert data["notes"] == [f"{path}: line 2 does not match its checksum; it is not used"]
    resumed = xcount_command(*words, "--resume", "--json")
    assert (resumed.status, resumed.err) == (1, seen.err)
    assert json.loads(resumed.out)["notes"] == data["notes"]
    again = xcount_command("report", path, "--json")
    assert (again.status, again.err) == (1, seen.err)
    assert len(json.loads(again.out)["results"]) == 2


def test_a_newer_limit_is_not_lost_with_its_line(
    tmp_path: Path, xcount_command: Command, figure_1_file: str
) -> None:
    """If the line with the newer verdict is damaged, the older one is not shown in its place."""
    path = tmp_path / "j.jsonl"
    kept = ("--jobs", "1", "--journal", path, "--resume")
    words = ("audit", figure_1_file, "--gap", "80", "--distance", "1", *kept, "--max-share")
    assert xcount_command(*words, "50%").status == 0
    assert xcount_command(*words, "10%").status == 1
    lines = path.read_bytes().splitlines(keepends=True)
    assert b'"verdict": "FAIL"' in lines[4]
    path.write_bytes(b"".join([*lines[:4], lines[4].replace(b"FAIL", b"PASS"), *lines[5:]]))
    assert xcount_command("report", path).status == 3
    path.write_bytes(b"".join([*lines[:3], lines[3].replace(b"audit", b"autid"), *lines[4:]]))
    refused = xcount_command("report", path)
    assert (refused.status, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "may have been the start of the last run; repeat that run with --resume" in refused.err
    assert xcount_command(*words, "10%").status == 1
    assert xcount_command("report", path).status == 1
    size = path.stat().st_size
    assert xcount_command(*words, "10%").status == 1
    assert path.stat().st_size == size


@pytest.mark.parametrize("command", ["audit", "compare"])
def test_flips_change_no_answer(tmp_path: Path, journals: dict[str, bytes], command: str) -> None:
    """Of 250 flipped bits, none is taken as content: resumed answers stay, damage is said."""
    whole = journals[command]
    path = tmp_path / "j.jsonl"
    for number in range(n_examples(250)):
        place = (number * 7919 + number // 8) % (len(whole) - 1)  # the end of the file is a tear
        changed = bytearray(whole)
        changed[place] ^= 1 << number % 8
        path.write_bytes(changed)
        with pytest.warns(JournalWarning, match="not used"):
            again = _asked(command, journal=path, resume=True)
        assert _answers(again) == _answers(_asked(command))
        assert again.notes


def _asked(command: str, **more: Any) -> Any:
    if command == "audit":
        return xcount.audit(figure_1(), gaps=80, max_share=0.5, explain=False, **more)
    return xcount.compare([figure_1(), figure_1()], gaps=80, max_ratio=1, explain=False, **more)


def _answers(result: Any) -> list[tuple[object, ...]]:
    return [(r.sensitive, r.count, r.low, r.high, r.verdict) for r in result.results]
