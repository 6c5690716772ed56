"""The notebook of examples/ runs from the first cell to the last, and shows what it says."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import pytest

import xcount
from tools.notebook import executed, kinds_of

EXAMPLES = Path(__file__).parent.parent / "examples"
NOTEBOOK = EXAMPLES / "adult.ipynb"


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results show themselves as cards, tables and pictures; the report is written."""
    for library in ("nbclient", "ipykernel", "xgboost", "pandas", "matplotlib"):
        pytest.importorskip(library, reason=f"the notebook needs {library}")
    shutil.copy(EXAMPLES / "adult-extract.csv.gz", tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(xcount.__file__).parents[1]))
    with warnings.catch_warnings():  # those of Jupyter's own libraries are not ours
        warnings.simplefilter("ignore")
        cells = executed(NOTEBOOK, tmp_path)
    shown = [kind for cell in cells for kind in kinds_of(cell)]
    assert shown.count("text/html") >= 7
    assert "image/png" in shown
    assert "stderr" not in shown
    assert (tmp_path / "adult-report.html").read_text().startswith("<!doctype html>")
    printed = "".join(output.get("text", "") for output in cells[-1].outputs)
    assert printed.startswith("FAIL: the share is ")


def test_the_notebook_is_kept_without_outputs() -> None:
    """So that a change of it is a change of what it says."""
    document = json.loads(NOTEBOOK.read_text())
    code = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert len(code) > 5
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
