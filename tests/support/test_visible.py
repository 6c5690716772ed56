"""Text from elsewhere on a terminal: nothing in it moves the cursor or turns the text around."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import Command
from model_files import FIGURE_1, write_model

from xcount.support.visible import visible

NAME = "a\x1b]0;owned\x07\r\x9b2J\u202eb\nc"
SHOWN = r"a\x1b]0;owned\x07\r\x9b2J\u202eb\nc"
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
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
