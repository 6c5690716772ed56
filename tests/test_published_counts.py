"""The counts that the paper's authors publish for their own test models, end to end."""

from __future__ import annotations

from pathlib import Path

import pytest

import xcount

pytest.importorskip("xgboost")
pytest.importorskip("sklearn")

PUBLISHED = {1: (37, 48), 2: (564, 640), 3: (4768, 5670), 4: (11175, 13608), 5: (23241, 27216)}
"""Number of rounds -> (sensitive regions, regions)."""


@pytest.mark.parametrize("n_rounds", PUBLISHED)
def test_the_published_count_comes_out(n_rounds: int, tmp_path: Path) -> None:
    """The diabetes models: S = {feature 2}, d = 1, G = 2, leaves rounded to 3 decimals."""
    import xgboost
    from sklearn.datasets import load_diabetes
    from sklearn.model_selection import train_test_split

    rows, labels = load_diabetes(return_X_y=True)
    rows, _, labels, _ = train_test_split(rows, labels, test_size=0.2, random_state=42)
    parameters = {
        "objective": "reg:squarederror",
        "tree_method": "hist",
        "max_depth": 3,
        "eta": 0.1,
        "nthread": 1,
    }
    booster = xgboost.train(parameters, xgboost.DMatrix(rows, labels), n_rounds)
    path = tmp_path / "model.json"
    booster.save_model(path)
    dump = tmp_path / "dump.json"
    booster.dump_model(dump, dump_format="json")
    for model in (booster, path, dump):
        result = xcount.count(model, sensitive=2, gap=2, precision=3, method="brute", distance=1)
        assert result.exact
        assert result.count == PUBLISHED[n_rounds][0]
    result = xcount.count(path, sensitive=2, gap=2, precision=3, method="brute", distance=1)
    assert result.n_regions == PUBLISHED[n_rounds][1]
