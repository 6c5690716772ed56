"""Which columns are proposed as one-hot groups, against tables that pandas encoded."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import xcount
from xcount.answers.template import domain_template, proposed_groups
from xcount.errors import QueryWarning
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.examples import ensemble_of
from xcount.question.grid import Grid

pd = pytest.importorskip("pandas", reason="pandas is not installed")

MARITAL = ["Married-civ-spouse", "Married-AF-spouse", "Never-married", "Divorced", "Widowed"]
JOBS, TITLES = ["admin", "sales"], ["Dr", "Prof", "none"]


def stumps(names: Sequence[str]) -> Ensemble:
    """Return a model that tests whether each column is 1."""
    model = ensemble_of(*((i, 0.5, 0.0, 1.0) for i in range(len(names))))
    return replace(model, features=tuple(map(Feature, names)))


def encoded(**options: Any) -> Any:
    """Return a table of people whose columns are one-hot."""
    random = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "marital_status": random.choice(MARITAL, 300),
            "job": random.choice(JOBS, 300),
            "job_title": random.choice(TITLES, 300),
        }
    )
    return pd.get_dummies(people, dtype=int, **options)


def groups_of(text: str) -> dict[str, list[str]]:
    """Return the groups of a template."""
    return dict(tomllib.loads(text).get("one-hot", {}))


def test_rows_tell_groups_whose_names_overlap() -> None:
    """Categories with separators, and one feature's name inside another's."""
    table = encoded()
    text = domain_template(stumps(table.columns), table)
    wanted = {
        feature: [name for name in table.columns if name.startswith(f"{feature}_")]
        for feature in ("marital_status", "job_title")
    }
    wanted["job"] = ["job_admin", "job_sales"]
    assert {name: set(own) for name, own in groups_of(text).items()} == {
        name: set(own) for name, own in wanted.items()
    }
    assert text.count("# Confirmed: exactly one is 1 in each of the 300 rows.") == 3


def test_what_needs_none_is_not_confirmed() -> None:
    """Of features whose first category has no column, no row confirms a group."""
    table = encoded(drop_first=True)
    text = domain_template(stumps(table.columns), table)
    assert "Confirmed" not in text
    n_without = int((table.filter(like="marital_status").sum(axis=1) == 0).sum())
    assert f"# Not confirmed: none is 1 in {n_without} of 300 rows, first in row " in text
    assert groups_of(text)["marital_status"][-1] == "+none"
    assert len(groups_of(text)["marital_status"]) == len(MARITAL)


def test_rows_that_contradict_are_shown() -> None:
    """Which rows, and what they hold; the group is not proposed."""
    table = encoded().filter(like="marital_status")
    table.iloc[4] = 0
    table.iloc[[7, 9]] = 1
    text = domain_template(stumps(table.columns), table)
    assert groups_of(text) == {}
    shown = next(line for line in text.splitlines() if "Not one-hot" in line)
    assert "2 of 300 rows contradict: row 7 (counted from 0): " in shown
    assert '"marital_status_Widowed" is 1; row 9' in shown


def test_hyphens_and_spaces_belong_to_categories() -> None:
    """Without rows, names such as race_Asian-Pac-Islander are of the group race."""
    names = ["race_Asian-Pac", "race_Asian-Other", "race_White", "f=a_b_c", "f=a_b_d", "f=x"]
    groups = proposed_groups(Grid.of(stumps(names)))
    assert groups == {"race": tuple(names[:3]), "f": tuple(names[3:])}


def test_a_single_column_of_a_group_is_noted() -> None:
    """In every command: an input of which no column is 1 is hardly meant."""
    names = ["race_White", "race_Black", "age"]
    model = stumps(names)
    said = "'race_White' looks like one of 2 one-hot columns of 'race': .* give --one-hot"
    with pytest.warns(QueryWarning, match=said):
        assert xcount.count(model, sensitive="race_White", gap=0).count == 8
    with pytest.warns(QueryWarning, match=said):
        xcount.audit(model, gaps=0)
    with pytest.warns(QueryWarning, match=said):
        xcount.compare([model, model], sensitive=["race_White", "age"], gaps=0)
    with pytest.warns(QueryWarning, match=said):
        xcount.witnesses(model, sensitive="race_White", gap=0)
    xcount.count(model, sensitive="age", gap=0)
    xcount.count(model, sensitive="race", gap=0, one_hot="race=race_White,race_Black")
