"""The paper's example run: every step is printed, and the diagrams are drawn."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "paper_example_run.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    """Import the example."""
    spec = importlib.util.spec_from_file_location("paper_example_run", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_step_is_printed(example: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """Splits, four masks, three pairs, pruned trees, sums, BDDs, and the count of enumeration."""
    assert example.main([]) == 0
    text = capsys.readouterr().out
    assert "f2: 0.005, 0.009, 0.073" in text
    assert [f"m{i} = " in text for i in range(5)] == [True] * 4 + [False]
    assert text.count("pruned by") == 3 * 3 * 2
    assert text.count("DiffSum after tree") == 3 * 3
    assert text.count("BDD of |DiffSum| > G") == 3
    assert "C = 20 of 24 regions" in text
    assert "Enumeration of all regions finds 20." in text


def test_diagrams_are_drawn(
    example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One Graphviz text per diagram, and a picture of each where Graphviz is installed."""
    folder = tmp_path / "diagrams"
    assert example.main(["--output", str(folder)]) == 0
    capsys.readouterr()
    texts = sorted(folder.glob("*.dot"))
    assert len(texts) == 3 * (6 + 3 + 1)
    bdd = (folder / "m0_m1_bdd.dot").read_text()
    assert bdd.startswith("digraph {")
    assert "f8 < -0.004" in bdd
    assert 'label="1"' in bdd
    if shutil.which("dot"):
        pictures = [path.read_bytes()[:4] for path in folder.glob("*.png")]
        assert pictures == [b"\x89PNG"] * len(texts)
