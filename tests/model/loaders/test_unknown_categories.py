"""Categories that a model did not learn from: rows may have them, no value becomes one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Command

import xcount
from xcount.errors import QueryError

catboost = pytest.importorskip("catboost", reason="catboost is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")

JOBS, SEXES = ["clerk", "cook", "nurse", "smith"], ["Female", "Male"]


def people() -> Any:
    """Return a table of people with two categorical columns."""
    random = np.random.default_rng(0)
    table = pd.DataFrame({"sex": random.choice(SEXES, 400), "job": random.choice(JOBS, 400)})
    table["age"] = random.integers(18, 70, 400)
    return table


def trained(table: Any, **options: Any) -> tuple[Any, Any]:
    """Return a model of CatBoost and its pool."""
    random = np.random.default_rng(1)
    score = (table.sex == "Male") + (table.job == "nurse") + table.age / 40
    paid = (score + random.normal(size=len(table)) > 2.4).astype(int)
    pool = catboost.Pool(table, paid, cat_features=["sex", "job"])
    model = catboost.CatBoostClassifier(
        iterations=20,
        depth=3,
        max_ctr_complexity=1,
        random_seed=0,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
        **options,
    )
    return model.fit(pool), pool


def share_that_flips(model: Any, table: Any, feature: str, values: list[str]) -> float:
    """Ask the library about every row with every other value."""
    before = model.predict(table)
    flips = [model.predict(table.assign(**{feature: value})) != before for value in values]
    return float(np.any(flips, axis=0).mean())


@pytest.mark.parametrize("one_hot_max_size", [2, 4, 10])
def test_rows_change_to_categories_that_exist(tmp_path: Path, one_hot_max_size: int) -> None:
    """The library agrees on known categories; with ``unknown`` also on one that nobody has."""
    table = people()
    model, pool = trained(table, one_hot_max_size=one_hot_max_size)
    path = tmp_path / "model.json"
    model.save_model(path, format="json", pool=pool)
    for feature, values in (("job", JOBS), ("sex", SEXES)):
        for unknown in (False, True):
            result = xcount.count(
                path, sensitive=feature, flip=True, measures="rows", data=table, unknown=unknown
            )
            asked = [*values, "astronaut"] if unknown else values
            wanted = share_that_flips(model, table, feature, asked)
            assert result.measures["rows"].share == pytest.approx(wanted)


def test_the_unknown_is_a_place_to_start_from(tmp_path: Path) -> None:
    """A row with a new category is counted like any other."""
    table = people()
    model, pool = trained(table)
    path = tmp_path / "model.json"
    model.save_model(path, format="json", pool=pool)
    strangers = table.assign(job="astronaut")
    result = xcount.count(path, sensitive="job", flip=True, measures="rows", data=strangers)
    wanted = share_that_flips(model, strangers, "job", JOBS)
    assert wanted > 0
    assert result.measures["rows"].share == pytest.approx(wanted)


def test_every_way_to_allow_it(tmp_path: Path, xcount_command: Command) -> None:
    """An option of every command that asks, a word in a domain's file, an argument in Python."""
    table = people()
    model, pool = trained(table)
    path, domain = tmp_path / "model.json", tmp_path / "domain.toml"
    model.save_model(path, format="json", pool=pool)
    domain.write_text("unknown = true\n")
    asked = ("--sensitive", "job", "--flip", "--json")
    plain = json.loads(xcount_command("count", path, *asked).out)
    assert "domain" not in plain
    for words in (("--unknown",), ("--domain", domain)):
        found = json.loads(xcount_command("count", path, *asked, *words).out)
        assert found["count"] > plain["count"]
        assert found["n_regions"] == plain["n_regions"]
        assert found["domain"]["unknown"] is True
        audited = json.loads(xcount_command("audit", path, *asked, *words).out)
        assert audited["results"][0]["count"] == found["count"]
        compared = json.loads(xcount_command("compare", path, path, *asked, *words).out)
        assert compared["rows"][0]["results"][1]["count"] == found["count"]
    many = ("-n", "100", "--sensitive", "job", "--flip")
    assert "(other)," in xcount_command("witness", path, *many, "--unknown", "--csv").out
    with pytest.raises(QueryError, match="unknown of a domain is true or false"):
        xcount.count(path, sensitive="job", flip=True, domain={"unknown": "yes"})


def test_a_pipeline_knows_its_categories() -> None:
    """An encoder that ignores unknown categories makes no place of them."""
    sklearn = pytest.importorskip("sklearn.pipeline", reason="scikit-learn is not installed")
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.tree import DecisionTreeClassifier

    table = people()
    paid = (table.job.isin(["nurse", "cook"])) & (table.age > 40)
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer((encoder, ["sex", "job"]), remainder="passthrough")
    model = sklearn.make_pipeline(columns, DecisionTreeClassifier(max_depth=4, random_state=0))
    model.fit(table, paid)
    for unknown in (False, True):
        result = xcount.count(
            model, sensitive="job", flip=True, measures="rows", data=table, unknown=unknown
        )
        asked = [*JOBS, "astronaut"] if unknown else JOBS
        wanted = share_that_flips(model, table, "job", asked)
        assert result.measures["rows"].share == pytest.approx(wanted)
