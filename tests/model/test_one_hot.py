"""Groups of columns as one feature: the same margins at the same inputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from domains import random_world

from xcount.errors import QueryError, TableError
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.examples import ensemble_of
from xcount.model.inputs import Inputs
from xcount.model.one_hot import OneHotGroup, category_labels, pulled_back
from xcount.model.tables import read_table
from xcount.question.domain import Domain
from xcount.question.query import resolve_feature

NAMES = ("age", "race_White", "race_Black", "sex")
GROUP = OneHotGroup("race", (1, 2))


def people() -> Ensemble:
    """Return a model of an age, two columns of one group, and a column that no tree tests."""
    stumps = ensemble_of(
        (0, 30.0, 0.0, 1.0), (1, 0.5, 0.0, 2.0), (2, 0.5, 0.0, 4.0), (3, 0.5, 0.0, 0.0)
    )
    return replace(stumps, features=tuple(map(Feature, NAMES)))


@pytest.mark.parametrize("seed", range(60))
def test_a_group_predicts_what_its_columns_predict(seed: int) -> None:
    """At every input there is: there and back again."""
    world = random_world(seed)
    ensemble = Domain.of(one_hot=world.groups).pulled_back(world.ensemble)
    points = np.array(list(world.regions().values())).reshape(-1, world.ensemble.n_features)
    if ensemble.encoding is None or not len(points):
        return
    rows = ensemble.encoding.features_of(Inputs.of(points)).matrix()
    assert np.array_equal(ensemble.predict(rows), world.ensemble.predict(points))
    assert np.array_equal(ensemble.columns_of(rows), points, equal_nan=True)


def test_labels_are_what_tells_the_columns_apart() -> None:
    """Whole words: the first letters of a category belong to it."""
    assert category_labels(["race_White", "race_Black"]) == ("White", "Black")
    assert category_labels(["purpose=A40", "purpose=A41"]) == ("A40", "A41")
    assert category_labels(["is_new", "old"]) == ("is_new", "old")
    assert category_labels(["single"]) == ("single",)


def test_a_group_stands_where_its_first_column_was() -> None:
    """Columns keep their names and numbers; those of a group are named by the group."""
    ensemble = pulled_back(people(), [GROUP])
    assert ensemble.feature_names == ("age", "race", "sex")
    assert ensemble.features[1].labels == ("White", "Black")
    assert resolve_feature(ensemble, "race") == 1
    assert resolve_feature(ensemble, "sex") == resolve_feature(ensemble, 3) == 2
    assert resolve_feature(ensemble, "f3") == 2
    for word in ("race_White", "f1", 2):
        with pytest.raises(QueryError, match="a column of the one-hot group 'race'"):
            resolve_feature(ensemble, word)
    with pytest.raises(QueryError, match="did you mean 'race'"):
        resolve_feature(ensemble, "rase")


def test_rows_have_the_columns_of_the_model() -> None:
    """A row that breaks a group is refused, with how many there are and what to do."""
    table = {"age": [20, 40], "race_White": [1, 0], "race_Black": [0, 1], "sex": [0, 0]}
    ensemble = pulled_back(people(), [GROUP])
    assert read_table(table, ensemble).rows.tolist() == [[20, 0, 0], [40, 1, 0]]
    table["race_Black"] = [0, 0]
    with pytest.raises(TableError, match=r"1 of 2 rows .*'race'.*first in row 1 .*\+none"):
        read_table(table, ensemble)
    with_none = pulled_back(people(), [replace(GROUP, allows_none=True)])
    assert read_table(table, with_none).rows[:, 1].tolist() == [0, 2]
    table["race_Black"] = [1, 1]
    with pytest.raises(TableError, match="not exactly one of its columns is 1"):
        read_table(table, with_none)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([GROUP, OneHotGroup("other", (2, 3))], "'race_Black' is in the groups 'race' and"),
        ([OneHotGroup("race", (1, 1))], "'race_White' is in the group 'race' twice"),
        ([OneHotGroup("race", (1,))], "has one column"),
        ([replace(GROUP, name="age")], "two features called 'age'"),
    ],
)
def test_groups_that_make_no_sense_are_refused(groups: list[OneHotGroup], message: str) -> None:
    """Columns twice, names twice, a group of one."""
    with pytest.raises(QueryError, match=message):
        pulled_back(people(), groups)


def test_a_column_with_other_categories_is_no_one_hot_column() -> None:
    """Their names say what they are; those of a column of 0 and 1 do no harm."""
    names = ("low", "middle", "high")
    several = replace(people(), features=(Feature("age", (0, 1, 2), names), *people().features[1:]))
    with pytest.raises(QueryError, match=r"'age' is no one-hot column.* low, middle, high"):
        pulled_back(several, [OneHotGroup("race", (0, 1))])
    yes_or_no = Feature("race_White", (0, 1), ("False", "True"))
    model = replace(people(), features=(people().features[0], yes_or_no, *people().features[2:]))
    assert pulled_back(model, [GROUP]).features[1].labels == ("White", "Black")
