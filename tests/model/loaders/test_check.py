"""load(check=rows): the library's predictions decide."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xcount
from xcount.errors import ModelFormatError, QueryError, UnsupportedModelError
from xcount.model.examples import figure_1
from xcount.model.loaders.check import check

xgb = pytest.importorskip("xgboost")

RNG = np.random.default_rng(3)
ROWS = RNG.normal(size=(100, 3))
LABELS = ROWS[:, 0] + np.abs(ROWS[:, 1])


@pytest.fixture(scope="module")
def booster() -> Any:
    """Train a small regression model."""
    return xgb.train({"max_depth": 3, "nthread": 1}, xgb.DMatrix(ROWS, LABELS), 10)


def test_a_right_model_passes(booster: Any, tmp_path: Path) -> None:
    """Live, JSON, UBJSON and gzip'd files are all checked against XGBoost."""
    assert xcount.load(booster, check=ROWS).n_trees == 10
    for name in ("model.json", "model.ubj"):
        booster.save_model(tmp_path / name)
        assert xcount.load(tmp_path / name, check=ROWS).n_trees == 10


@pytest.mark.parametrize("what", ["leaf", "threshold", "base"])
def test_a_wrong_ensemble_is_refused(booster: Any, what: str) -> None:
    """One leaf, one threshold, or the base score off by a little is enough."""
    ensemble = xcount.load(booster)
    tree = ensemble.trees[4]
    if what == "leaf":
        nudge = np.where(tree.feature < 0, 1e-3, 0.0)
        tree = replace(tree, value=tree.value + nudge)
    elif what == "threshold":
        tree = replace(tree, threshold=tree.threshold + 1.0)
    else:
        ensemble = replace(ensemble, base=(ensemble.base[0] + 1e-3,))
    wrong = replace(ensemble, trees=(*ensemble.trees[:4], tree, *ensemble.trees[5:]))
    with pytest.raises(ModelFormatError, match="output 0: the library predicts"):
        check(wrong, booster, ROWS)


def test_a_frame_of_numbers_can_be_checked(booster: Any) -> None:
    """Anything that numpy reads as a table will do; one row is a table too."""
    pd = pytest.importorskip("pandas")
    assert xcount.load(booster, check=pd.DataFrame(ROWS)).n_trees == 10
    assert xcount.load(booster, check=ROWS[0]).n_trees == 10


def test_rows_that_do_not_fit_are_refused(booster: Any) -> None:
    """Wrong width, words, and what the library itself does not take."""
    with pytest.raises(QueryError, match="must have 3 columns, not 2"):
        xcount.load(booster, check=ROWS[:, :2])
    with pytest.raises(QueryError, match="table of numbers"):
        xcount.load(booster, check=[["a", "b", "c"]])
    with pytest.raises(QueryError, match="xgboost cannot predict the rows"):
        xcount.load(booster, check=[[np.inf, 0, 0]])


def test_what_no_library_predicts_cannot_be_checked(booster: Any, tmp_path: Path) -> None:
    """An ensemble made by hand, or a dump, has no library behind it."""
    with pytest.raises(UnsupportedModelError, match="nothing can be checked"):
        xcount.load(figure_1(), check=[[0, 0]])
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(booster.get_dump(dump_format="json")))
    with pytest.raises(UnsupportedModelError, match="nothing can be checked"):
        xcount.load(path, check=ROWS)
