"""No output goes over a file that the same command reads: one line, before any work."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from conftest import Command

QUESTION = ("--sensitive", "age", "--gap", "80")
PEOPLE = ("--data", "people.csv", "--population", "kept.json", "--judge", "population")


@pytest.fixture(autouse=True)
def folder(figure_1_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with a file of each kind, and links to the model."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(figure_1_file, "m.json")
    shutil.copy(figure_1_file, "new.json")
    Path("soft.json").symlink_to("m.json")
    os.link("m.json", "hard.json")
    Path("d.toml").write_text('where = ["age < 50"]\n')
    rows = "".join(f"{30 + i % 20},{i % 2}\n" for i in range(400))
    Path("people.csv").write_text("age,sex\n" + rows)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("audit", "m.json", *QUESTION, "--csv", "m.json"), "m.json"),
        (("audit", "m.json", *QUESTION, "--html", "./m.json"), "./m.json"),
        (("audit", "m.json", *QUESTION, "--html", "soft.json"), "soft.json"),
        (("audit", "soft.json", *QUESTION, "--html", "m.json"), "m.json"),
        (("audit", "m.json", *QUESTION, "--markdown", "hard.json"), "hard.json"),
        (("audit", "m.json", *QUESTION, "--journal", "m.json"), "m.json"),
        (("audit", "m.json", *QUESTION, *PEOPLE, "--csv", "people.csv"), "people.csv"),
        (("audit", "m.json", *QUESTION, *PEOPLE, "--html", "kept.json"), "kept.json"),
        (("audit", "m.json", *QUESTION, "--domain", "d.toml", "--csv", "d.toml"), "d.toml"),
        (("compare", "m.json", "new.json", *QUESTION, "--csv", "new.json"), "new.json"),
        (("encode", "m.json", *QUESTION, "--output", "m.json"), "m.json"),
        (("inspect", "m.json", "--domain-template", "m.json"), "m.json"),
    ],
)
def test_inputs_are_not_written_over(
    xcount_command: Command, folder: Path, words: tuple[str, ...], named: str
) -> None:
    """By any spelling or link; a population that is yet to be kept counts as well."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    run = xcount_command(*words)
    assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
    assert f"xcount: {named} is an input of this command; write to another file" in run.err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_what_is_read_and_written_by_design_still_is(xcount_command: Command) -> None:
    """Populations are kept and journals continued; devices are no files that could be lost."""
    words = ("audit", "m.json", *QUESTION, *PEOPLE, "--journal", "j.jsonl", "--html", "r.html")
    assert xcount_command(*words).status == 0
    assert Path("kept.json").is_file()
    assert xcount_command(*words, "--resume").status == 0
    devices = ("--domain", os.devnull, "--html", os.devnull, "--csv", "-")
    assert xcount_command("audit", "m.json", *QUESTION, *devices).status == 0
