"""The counts that the paper's authors publish for their own test models, end to end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from published import PUBLISHED, published_model

import xcount

QUESTION: dict[str, Any] = {"sensitive": 2, "gap": 2, "distance": 1, "precision": 3}


@pytest.mark.parametrize("method", ["brute", "exact", "auto"])
@pytest.mark.parametrize("n_trees", PUBLISHED)
def test_the_published_count_comes_out(n_trees: int, method: str, tmp_path: Path) -> None:
    """From the live model, its file and its dump."""
    booster = published_model(n_trees)
    path, dump = tmp_path / "model.json", tmp_path / "dump.json"
    booster.save_model(path)
    booster.dump_model(dump, dump_format="json")
    for model in (booster, path, dump):
        result = xcount.count(model, method=method, **QUESTION)
        assert result.exact
        assert (result.n_regions, result.count) == PUBLISHED[n_trees]


@pytest.mark.parametrize("n_trees", PUBLISHED)
def test_rounding_leaves_does_not_matter_here(n_trees: int) -> None:
    """The leaves as stored give the same counts: erratum 8 leaves them unchanged."""
    result = xcount.count(published_model(n_trees), **{**QUESTION, "precision": "exact"})
    assert (result.exact, result.count) == (True, PUBLISHED[n_trees][1])
