"""Full disks, folders that cannot be written, clocks that go back: one line, and nothing lost."""

from __future__ import annotations

import datetime
import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Command

import xcount
from xcount import AuditResult, XCountError
from xcount.model.examples import figure_1
from xcount.runs.journal import read_journal
from xcount.support.files import write_atomically

GAPS = ("--gap", "1,10,20,40,80")


def run_with_little_room(n_bytes: int, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a command that can make no file larger than so many bytes: a disk that fills up."""

    def fill_up() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))

    command = [sys.executable, "-m", "xcount", *map(str, words)]
    return subprocess.run(command, check=False, capture_output=True, text=True, preexec_fn=fill_up)


def test_an_audit_whose_journal_fills_the_disk_loses_nothing(
    xcount_command: Command, figure_1_file: str, tmp_path: Path
) -> None:
    """One line says so; the lines before are whole; with room, --resume counts the rest."""
    path = tmp_path / "j.jsonl"
    words = ("audit", figure_1_file, *GAPS, "--journal", path)
    done = run_with_little_room(20_000, *words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "all earlier results are safe in it" in done.stderr
    before = path.read_bytes()
    n_safe = len(read_journal(path))
    assert 1 < n_safe < 11
    assert before.endswith(b"\n")
    assert xcount_command(*words, "--resume").status == 0
    assert path.read_bytes().startswith(before)
    assert len(AuditResult.from_journal(path).results) == 10


@pytest.mark.parametrize("option", ["html", "csv", "markdown", "plot"])
def test_a_report_that_fills_the_disk_leaves_the_old_one(
    figure_1_file: str, tmp_path: Path, option: str
) -> None:
    """One line names the file; what was there stays, and no part of the new one."""
    if option == "plot":
        pytest.importorskip("matplotlib", reason="plots need the extra plots")
    folder = tmp_path / "reports"
    folder.mkdir()
    target = folder / ("r.svg" if option == "plot" else "r.txt")
    target.write_text("old")
    # Python writes compiled modules, too; those that do not fit are left out.
    done = run_with_little_room(300, "audit", figure_1_file, *GAPS, f"--{option}", target)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"cannot write {target}" in done.stderr
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [(target.name, "old")]


def test_a_formula_that_fills_the_disk_leaves_the_old_one(
    figure_1_file: str, tmp_path: Path
) -> None:
    """The file is named, not standard output."""
    target = tmp_path / "old.cnf"
    target.write_text("old")
    question = ("--sensitive", "age", "--gap", "80")
    done = run_with_little_room(300, "encode", figure_1_file, *question, "--output", target)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"cannot write {target}" in done.stderr
    assert target.read_text() == "old"
    assert not list(tmp_path.glob(".old.cnf*"))


@pytest.mark.parametrize("option", ["count", "audit", "inspect"])
def test_a_population_that_fills_the_disk_leaves_the_old_one(
    figure_1_file: str, tmp_path: Path, option: str
) -> None:
    """The file is named, not standard output; nothing half written stays."""
    target = tmp_path / "people.json"
    rows = "".join(f"{age},{age % 2}\n" for age in range(40))
    (tmp_path / "people.csv").write_text("age,sex\n" + rows)
    people = ("--data", tmp_path / "people.csv", "--population", target)
    question = ("--gap", "80", "--measure", "population", *people)
    words = {
        "count": ("count", figure_1_file, "--sensitive", "age", *question),
        "audit": ("audit", figure_1_file, *question),
        "inspect": ("inspect", figure_1_file, *people),
    }
    done = run_with_little_room(300, *words[option])
    assert (done.returncode, done.stdout) == (2, "")
    assert f"xcount: cannot write {target}: File too large" in done.stderr.splitlines()[-1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure 1.json", "people.csv"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT])
@pytest.mark.parametrize("step", ["open", "write", "fsync", "replace"])
def test_a_write_that_fails_at_any_step_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, step: str
) -> None:
    """A full disk, a read-only one, no permission: the message names file and reason."""
    target = tmp_path / "r.html"
    write_atomically(target, "old")

    def fail(*arguments: object, **options: object) -> int:
        raise OSError(number, os.strerror(number))

    class Full:
        """A file whose disk is full."""

        def __init__(self, descriptor: int, mode: str) -> None:
            os.close(descriptor)

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *arguments: object) -> None: ...

        write = fail

    with monkeypatch.context() as patched:
        if step == "write":
            patched.setattr(os, "fdopen", Full)
        else:
            patched.setattr(os, step, fail)
        with pytest.raises(XCountError, match=rf"cannot write .*r\.html: {os.strerror(number)}"):
            write_atomically(target, "new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("r.html", "old")]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_refused_before_anything_is_counted(
    xcount_command: Command, figure_1_file: str, tmp_path: Path
) -> None:
    """Reports and journals alike; nothing is printed but the line."""
    folder = tmp_path / "fixed"
    folder.mkdir(mode=0o555)
    for option in ("--html", "--journal"):
        run = xcount_command("audit", figure_1_file, *GAPS, option, folder / "file")
        assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
        assert str(folder / "file") in run.err


def test_an_interrupt_while_writing_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C is passed on, the half-written file is not."""

    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "r.html", "new")
    assert list(tmp_path.iterdir()) == []


def clock_at(year: int) -> Callable[[datetime.tzinfo], datetime.datetime]:
    """Return a clock that shows this year."""
    return lambda zone: datetime.datetime(year, 1, 1, tzinfo=zone)


def test_a_journal_does_not_mind_a_clock_that_goes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of lines counts, not their dates: the later run wins, and resuming goes on."""
    path = tmp_path / "j.jsonl"

    class Clock(datetime.datetime):
        """The wall clock; monotonic clocks, which limits use, cannot be set."""

        now = staticmethod(clock_at(2031))  # type: ignore[assignment]

    monkeypatch.setattr(datetime, "datetime", Clock)
    first = xcount.audit(figure_1(), gaps=80, journal=path)
    monkeypatch.setattr(Clock, "now", staticmethod(clock_at(2001)))
    again = xcount.audit(figure_1(), gaps=[40, 80], journal=path, resume=True)
    assert (first.created[:4], again.created[:4]) == ("2031", "2001")
    kept = AuditResult.from_journal(path)
    assert kept.created == again.created
    assert len(kept.results) == 4
    assert sum(record["kind"] == "result" for record in read_journal(path)) == 4
    assert all(result.seconds >= 0 for result in again.results)
