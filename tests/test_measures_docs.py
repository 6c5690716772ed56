"""What docs/measures-flips-witnesses.md shows runs."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from conftest import Command

import xcount
from xcount.examples import adult_model_path

TEXT = (Path(__file__).parent.parent / "docs" / "measures-flips-witnesses.md").read_text()
LINES = re.findall(r"^\$ (xcount .*)$", TEXT, flags=re.MULTILINE)


@pytest.fixture(autouse=True)
def beside_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a directory with a model and a table, as CSV and Parquet."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    shutil.copy(adult_model_path(), tmp_path / "model.json")
    model = xcount.load(adult_model_path())
    grid = xcount.Grid.of(model)
    rows = [
        grid.point([int(share * (axis.n_cells - 1)) for axis in grid.axes])
        for share in (0, 0.3, 0.5, 1)
    ]
    frame = pandas.DataFrame(rows, columns=list(model.feature_names))
    frame.to_csv(tmp_path / "people.csv", index=False)
    frame.to_parquet(tmp_path / "people.parquet")
    monkeypatch.chdir(tmp_path)


def test_there_are_commands() -> None:
    """The search for commands finds them."""
    assert len(LINES) == 7


@pytest.mark.parametrize("line", LINES)
def test_its_commands_work(xcount_command: Command, line: str) -> None:
    """With an answer or a verdict, never with an error."""
    run = xcount_command(*shlex.split(line)[1:])
    assert run.status in (0, 1), run.err
    assert run.out
