"""Every command on docs/cheat-sheet.md works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.interpreters import Python, Shell, furnish

PAGE = (Path(__file__).parent.parent / "docs" / "cheat-sheet.md").read_text()
ROW = re.compile(r"^\| (?P<task>[^|]+) \| `(?P<code>[^`]+)` \|$", re.MULTILINE)
CODES = [row["code"] for row in ROW.finditer(PAGE)]
COMMANDS = [code for code in CODES if code.startswith("xcount ")]
EXPRESSIONS = [code for code in CODES if not code.startswith("xcount ")]

# Rows use files that earlier rows wrote.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cheat sheet")]


def test_every_row_is_tested() -> None:
    """A row in another form would be skipped without a word."""
    headers = ("|---", "| task |")
    lines = [line for line in PAGE.splitlines() if line.startswith("|")]
    assert len([line for line in lines if not line.startswith(headers)]) == len(CODES)


def test_the_commands_work(tmp_path: Path) -> None:
    """In one folder, from the first row to the last; a verdict may be FAIL."""
    furnish(tmp_path, ["model.json", "old.json", "new.json", "examples"])
    with Shell(tmp_path) as shell:
        assert (
            shell.run("gunzip -c examples/adult-extract.csv.gz | head -n 201 > people.csv")[0] == 0
        )
        assert shell.run("xcount demo --save-one-hot one-hot.json")[0] == 0
        for command in COMMANDS:
            status, printed = shell.run(command)
            verdicts = (1,) if "--max-" in command else ()
            out_of_time = (3,) if "--timeout" in command else ()  # on a busy machine
            assert status in (0, *verdicts, *out_of_time), f"{command}\n{printed}"
            assert "Traceback" not in printed
            assert "Warning" not in printed


def test_the_python_rows_work(tmp_path: Path) -> None:
    """In one interpreter, from the first row to the last."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    furnish(tmp_path, ["model.json", "new.json"])
    with Python(tmp_path) as python:
        assert python.run("import xcount, xcount.testing; model = 'model.json'", tmp_path)[0] == 0
        for code in EXPRESSIONS:
            status, printed = python.run(code, tmp_path)
            assert status == 0, f"{code}\n{printed}"
            assert "Warning" not in printed
