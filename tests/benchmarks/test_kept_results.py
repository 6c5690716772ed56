"""The kept results: their checksums, the revisions that made them, and the archive of them."""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks.harness.datasets import PROJECT
from benchmarks.harness.records import RESULTS
from experiments import archive


def test_the_kept_results_have_their_checksums() -> None:
    """``python -m experiments.page`` writes them; a result that was changed since is noticed."""
    listed = (RESULTS / archive.SUMS).read_text()
    found = archive.sums_of(archive.files_of(RESULTS))
    assert set(listed.splitlines()) ^ set(found.splitlines()) == set()


def git(*words: str) -> subprocess.CompletedProcess[str]:
    """Ask git about this project."""
    command = ["git", "-C", str(PROJECT), *words]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_kept_results_name_revisions_of_the_history() -> None:
    """From clean trees; whoever doubts a number can go back to what made it."""
    about = git("rev-parse", "--show-toplevel", "--is-shallow-repository").stdout.splitlines()
    if about != [str(PROJECT), "false"]:
        pytest.skip("no history of this project to look at")
    named = set()
    for content in archive.files_of(RESULTS).values():
        text = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
        named |= set(re.findall(rb'"revision": "([^"]*)"', text))
    assert named
    for revision in sorted(revision.decode() for revision in named):
        assert git("merge-base", "--is-ancestor", revision, "HEAD").returncode == 0, revision


def test_an_archive_tells_what_was_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same results give the same bytes; a file that was changed or is missing is named."""
    results, path = tmp_path / "results", tmp_path / "results.tar.gz"
    results.mkdir()
    (results / "a.md").write_text("a")
    (results / "b.md").write_text("b")
    for _ in range(2):
        assert archive.main(["--results", str(results), "--output", str(path)]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert archive.main(["--check", str(path)]) == 0
    sums = archive.sums_of(archive.files_of(results))
    path.write_bytes(archive.packed({"a.md": b"other", "c.md": b"new"}, sums))
    assert archive.main(["--check", str(path)]) == 1
    text = capsys.readouterr().out
    for words in ("a.md was changed", "b.md is missing", "c.md is not listed"):
        assert words in text
    path.write_text("no archive")
    assert archive.main(["--check", str(path)]) == 2
