"""What docs/audit.md shows runs."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import Command

from xcount.examples import adult_model_path
from xcount.plan import probability_gap

TEXT = (Path(__file__).parent.parent / "docs" / "audit.md").read_text()


@pytest.fixture(autouse=True)
def beside_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a directory with the models that the document speaks of."""
    for name in ("model.json", "old.json", "new.json"):
        shutil.copy(adult_model_path(), tmp_path / name)
    monkeypatch.chdir(tmp_path)


def test_its_commands_work_one_after_another(xcount_command: Command) -> None:
    """With an answer or a verdict, never with an error."""
    lines = re.findall(r"^\$ (xcount .*)$", TEXT, flags=re.MULTILINE)
    assert len(lines) == 6
    for line in lines:
        run = xcount_command(*shlex.split(line)[1:])
        assert run.status in (0, 1), (line, run.err)
    assert Path("report.html").exists()


def test_its_test_passes() -> None:
    """The pytest example is a test that holds."""
    names: dict[str, Any] = {}
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    exec(compile(block, "docs/audit.md", "exec"), names)
    names["test_the_model_hardly_depends_on_sex"]()


def test_its_number_is_right() -> None:
    """The worked conversion of a probability gap."""
    assert f"{float(probability_gap(0.1, 0.3))}" in TEXT
