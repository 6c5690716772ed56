"""Files of reports: whole or absent, and where they were asked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from xcount.errors import XCountError
from xcount.support.files import check_writable, write_atomically


def test_files_are_whole_or_absent(tmp_path: Path) -> None:
    """A write that fails leaves the old file, and no debris."""
    target = tmp_path / "r.html"
    write_atomically(target, "old")
    with pytest.raises(XCountError, match="cannot write"):
        write_atomically(tmp_path / "absent" / "r.html", "new")
    with pytest.raises(XCountError, match="cannot write"):
        write_atomically(tmp_path, "new")
    write_atomically(target, "new")
    assert target.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


def test_half_a_character_in_a_name_is_no_obstacle(tmp_path: Path) -> None:
    """JSON can hold what no file in UTF-8 can."""
    write_atomically(tmp_path / "r.html", "f\ud800")
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == "f\\ud800"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """What it leads to is written, be it there already or not."""
    folder = tmp_path / "real"
    folder.mkdir()
    link = tmp_path / "r.html"
    link.symlink_to(folder / "report.html")
    for text in ("old", "new"):
        check_writable(link)
        write_atomically(link, text)
        assert link.is_symlink()
        assert (folder / "report.html").read_text() == text
    link.unlink()
    link.symlink_to(tmp_path / "absent" / "report.html")
    with pytest.raises(XCountError, match="there is no folder"):
        check_writable(link)


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    """Neither a named pipe nor a device is replaced by a file, nor behind a link."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        for path in (pipe, link):
            check_writable(path)
            write_atomically(path, "new")
            assert os.read(reader, 100) == b"new"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert len(list(tmp_path.iterdir())) == 2
