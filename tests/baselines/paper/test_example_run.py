"""The paper's example run: every step is printed, and the diagrams are drawn."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import xcount
from xcount.model.examples import appendix_model

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
    masks = ["m3 = (1, 1, 1)", "m2 = (0, 1, 1)", "m1 = (0, 0, 1)", "m0 = (0, 0, 0)"]
    places = [text.index(mask) for mask in masks]
    assert places == sorted(places, reverse=True), "the paper lists m0 first"
    assert "{m3, m2}  (1, 1, 1) (0, 1, 1)  the paper's 0 and 1" in text
    assert text.count("pruned by") == 3 * 3 * 2
    assert text.count("DiffSum after tree") == 3 * 3
    assert text.count("BDD of |DiffSum| > G") == 3
    assert "C = 32 of 32 regions" in text
    assert "Enumeration of all regions finds 32." in text


def test_diagrams_are_drawn(
    example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One Graphviz text per diagram, and a picture of each where Graphviz is installed."""
    folder = tmp_path / "diagrams"
    assert example.main(["--output", str(folder)]) == 0
    capsys.readouterr()
    texts = sorted(folder.glob("*.dot"))
    assert len(texts) == 3 + 3 * (2 * 6 + 3 + 1)
    tree = (folder / "tree0.dot").read_text()
    assert all(label in tree for label in ("f2 < 0.00511", "f8 < -0.00286", "26.056"))
    bdd = (folder / "m3_m2_bdd.dot").read_text()
    assert bdd.startswith("digraph {")
    assert "f8 < " in bdd
    assert 'label="1"' in bdd
    if shutil.which("dot"):
        pictures = [path.read_bytes()[:4] for path in folder.glob("*.png")]
        assert pictures == [b"\x89PNG"] * len(texts)


def test_the_example_is_what_the_recipe_grows() -> None:
    """The paper's recipe on the diabetes data gives the guards of the appendix, and these trees."""
    xgboost = pytest.importorskip("xgboost")
    datasets = pytest.importorskip("sklearn.datasets")
    from sklearn.model_selection import train_test_split

    rows, target = datasets.load_diabetes(return_X_y=True)
    rows, _, target, _ = train_test_split(rows, target, test_size=0.2, random_state=42)
    recipe = {"tree_method": "exact", "base_score": 0.5, "eta": 0.1, "max_depth": 2}
    grown = xcount.load(xgboost.train(recipe, xgboost.DMatrix(rows, target), 3))
    kept = appendix_model()
    assert [f"{t:.3f}" for t in xcount.Grid.of(kept).axes[2].thresholds] == [
        "0.005", "0.009", "0.073",
    ]  # fmt: skip
    for one, other in zip(grown.trees, kept.trees, strict=True):
        np.testing.assert_array_equal(np.sort(one.feature), np.sort(other.feature))
        np.testing.assert_allclose(np.sort(one.threshold), np.sort(other.threshold), rtol=1e-6)
        np.testing.assert_allclose(np.sort(one.value), np.sort(other.value), rtol=1e-6)
