"""Text from elsewhere: nothing in it moves a cursor, turns the text around or hides some of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import Command
from model_files import FIGURE_1, write_model

from xcount.support.visible import visible

NAME = "a\x1b]0;owned\x07\r\x9b2J\u202eb\nc"
SHOWN = r"a\x1b]0;owned\x07\r\x9b2J\u202eb\nc"
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
QUESTION = ("--sensitive", "0", "--gap", "80")


def test_controls_become_escapes() -> None:
    """All but those to keep; every other letter stays."""
    assert visible(NAME) == SHOWN
    assert visible("a\n\tb\x1b", keep="\n\t") == "a\n\tb\\x1b"
    assert visible("âge [年]  x") == "âge [年]  x"


@pytest.mark.parametrize(
    "words",
    [
        ("inspect", "MODEL"),
        ("count", "MODEL", *QUESTION, "--profile"),
        ("witness", "MODEL", *QUESTION, "-n", "1"),
        ("witness", "MODEL", *QUESTION, "-n", "1", "--csv"),
        ("audit", "MODEL", "--gap", "80"),
        ("audit", "MODEL", "--gap", "80", "--csv", "-"),
        ("audit", "MODEL", "--gap", "80", "--markdown", "-"),
        ("compare", "MODEL", "MODEL", "--gap", "80"),
        ("compare", "MODEL", "MODEL", "--gap", "80", "--csv", "-"),
        ("encode", "MODEL", *QUESTION),
        ("count", "MODEL", "--sensitive", "nobody", "--gap", "1"),
        ("count", "MODEL\x1b[2J", *QUESTION),
    ],
    ids=" ".join,
)
def test_commands_print_no_control_character_of_a_name(
    xcount_command: Command, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Tables, text, errors: only line ends are left, and none of them is the name's."""
    model = write_model(tmp_path / "m.json", FIGURE_1, [NAME, "b"])
    run = xcount_command(*(word.replace("MODEL", model) for word in words))
    assert not CONTROLS.search(run.out + run.err)
    assert "\\x1b" in run.out + run.err
    assert run.err.count("\n") <= 1


@pytest.mark.parametrize("command", ["audit", "compare", "template", "encode"])
def test_files_hold_no_control_character_of_a_name(
    xcount_command: Command, tmp_path: Path, command: str
) -> None:
    """Pages, tables, model cards, domains and formulas, written to files."""
    model = write_model(tmp_path / "m.json", FIGURE_1, [NAME, "\x00\u2066b"])
    files = [tmp_path / "r.html", tmp_path / "r.csv", tmp_path / "r.md"]
    html, csv, markdown = files
    words: dict[str, tuple[object, ...]] = {
        "audit": (model, "--gap", "80", "--html", html, "--csv", csv, "--markdown", markdown),
        "compare": (model, model, "--gap", "80", "--html", html, "--csv", csv),
        "template": (model, "--domain-template", csv),
        "encode": (model, *QUESTION, "--output", csv),
    }
    run = xcount_command("inspect" if command == "template" else command, *words[command])
    assert (run.status, run.err) == (0, "")
    texts = [path.read_text(encoding="utf-8") for path in files if path.exists()]
    assert texts
    for text in texts:
        assert not CONTROLS.search(text)
    assert "x1b" in texts[0] or "u001b" in texts[0] or command == "template"
