"""The domain: its words, its cells, and what is said where it makes no sense."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from domains import random_world
from strategies import random_ensemble

import xcount
from xcount.answers.witness.points import friendly_point
from xcount.errors import QueryError
from xcount.measures.weighting import Weighing, volume_weights
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.examples import adult_model_path, ensemble_of
from xcount.question.domain import Domain
from xcount.question.grid import Grid

TOML = """
where = ["25 <= age < 65"]

[one-hot]
race = ["race_White", "race_Black", "+none"]
"""


def people() -> Ensemble:
    """Return a model of an age with guards at 30, 40 and 50, and a group of two columns."""
    ages = [(0, age, 0.0, 1.0) for age in (30.0, 40.0, 50.0)]
    stumps = ensemble_of(*ages, (1, 0.5, 0.0, 2.0), (2, 0.5, 0.0, 4.0))
    return replace(stumps, features=tuple(map(Feature, ("age", "race_White", "race_Black"))))


def grid_of(*where: str) -> Grid:
    """Return the grid of the people within conditions."""
    return Grid.of(people(), domain=Domain.of(where=where))


def test_a_domain_has_the_same_words_everywhere(tmp_path: Path) -> None:
    """In a file, a mapping, arguments and JSON."""
    path = tmp_path / "domain.toml"
    path.write_text(TOML)
    domain = Domain.of(path)
    assert domain == Domain.of(one_hot="race=race_White,race_Black,+none", where=["25 <= age < 65"])
    assert Domain.of(domain.to_dict()) == domain
    assert Domain.of(json.loads(json.dumps(domain.to_dict()))) == domain
    more = Domain.of(path, where="age != 40")
    assert more.where == ("25 <= age < 65", "age != 40")
    assert not Domain.of()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("where = 3", "where of a domain is a list of texts"),
        ("where = [3]", "where of a domain is a list of texts"),
        (
            "[one-hot]\nrace = 3",
            "domain.toml: the one-hot group 'race' of a domain is a list of texts",
        ),
        ("# words\nwher = []", "domain.toml, line 2: .* no 'wher'; did you mean 'where'"),
        ("where = [", "not valid TOML"),
        ("where = " + "[" * 100_000, "not valid TOML: nested too deeply"),
    ],
)
def test_a_file_that_is_no_domain_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """With the word that is wrong."""
    path = tmp_path / "domain.toml"
    path.write_text(text)
    with pytest.raises(QueryError, match=message):
        Domain.of(path)
    with pytest.raises(QueryError, match="cannot read the domain"):
        Domain.of(tmp_path / "absent.toml")


def test_a_file_may_begin_with_a_mark_of_its_encoding(tmp_path: Path) -> None:
    """As some editors write it."""
    path = tmp_path / "domain.toml"
    path.write_text('where = ["age >= 25"]', encoding="utf-8-sig")
    assert Domain.of(path).where == ("age >= 25",)


@pytest.mark.parametrize(
    ("domain", "message"), [(["age > 2"], "not list"), (3, "not int"), ({1: 2}, "no '1'")]
)
def test_what_is_no_domain_is_refused(domain: Any, message: str) -> None:
    """A list of conditions is where=; a number is no file."""
    with pytest.raises(QueryError, match=message):
        Domain.of(domain)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"where": "agee > 3"}, "did you mean 'age'"),
        (
            {"where": ["age > 50", "age < 40"]},
            "no value of 'age' fulfils 'age > 50' and 'age < 40'",
        ),
        (
            {"where": "35 <= age < 39"},
            "'age' cannot change: '35 <= age < 39' leaves only one of its cells",
        ),
        ({"where": "age is missing"}, "--missing cell"),
        (
            {"rule": ["race_White == 1 -> age < 30", "race_White != 1 -> age < 30"]},
            "'age' cannot change: the rules leave only one of its cells",
        ),
        ({"rule": "race_White == 1 -> agee < 30"}, "rule 'race_White == 1 -> agee < 30': unknown"),
        ({"where": "agee < 30"}, "where 'agee < 30': unknown feature 'agee'; did you mean 'age'"),
        (
            {"where": "race == White"},
            r"one-hot, say so with --one-hot \(one_hot\) 'race=race_White,race_Black'",
        ),
        ({"one_hot": ["a=f1,f2", "b=f1,f0"]}, "'race_White' is in the groups 'a' and 'b'"),
        ({"one_hot": "a=f1,f1"}, "'race_White' is in the group 'a' twice"),
        (
            {"one_hot": {"race": "race_White, race_Black"}, "where": "race == Whit"},
            "no category 'Whit'; did you mean 'White'",
        ),
        (
            {"one_hot": {"race": "race_White, race_Black"}, "where": "race == race_White"},
            "no category 'race_White'; did you mean 'White'",
        ),
        ({"one_hot": "race=race_White,race_Blue"}, "one-hot group 'race': unknown feature"),
        ({"one_hot": "race"}, "a one-hot group is NAME=COLUMN"),
        ({"one_hot": ["a=f1,f2", "a=f1,f2"]}, "'a' is given twice"),
    ],
)
def test_what_makes_no_sense_is_said(asked: dict[str, Any], message: str) -> None:
    """Before anything is counted."""
    with pytest.raises(QueryError, match=message):
        xcount.count(people(), sensitive="age", gap=1, **asked)


def test_what_is_always_missing_cannot_change() -> None:
    """The cell of missing values alone is one cell like any other."""
    model = xcount.load(adult_model_path())
    with pytest.raises(
        QueryError, match="'age' cannot change: 'age is missing' leaves only one of its cells"
    ):
        xcount.count(model, sensitive="age", gap=1, missing="cell", where="age is missing")


@pytest.mark.filterwarnings("ignore:'race_White' looks like one of")
def test_one_sensitive_feature_may_be_fixed_if_another_can_change() -> None:
    """Then the question is about the other one."""
    asked: dict[str, Any] = {"gap": 1, "distance": "any", "where": "35 <= age < 39"}
    both = xcount.count(people(), sensitive=["age", "race_White"], **asked)
    other = xcount.count(people(), sensitive="race_White", **asked)
    assert (both.count, both.n_regions) == (other.count, other.n_regions)
    assert other.count


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '# words\nwhere = ["age < 60",\n  "agee > 3"]',
            "line 3: where 'agee > 3': unknown feature",
        ),
        ('\n\nrule = ["age < 3 -> ag > 1"]', "line 3: rule 'age < 3 -> ag > 1': unknown feature"),
        ('where = ["age = 3"]', "line 1: cannot read the condition 'age = 3'; write == for equal"),
        (
            '[one-hot]\n\nrace = ["race_White", "race_Blue"]',
            "line 3: one-hot group 'race': unknown",
        ),
        ('where = ["age == \\"x\\""]', "line 1: where .*'x' is not a number"),
    ],
)
def test_a_mistake_in_a_file_has_its_line(tmp_path: Path, text: str, message: str) -> None:
    """Found when the domain meets the model."""
    path = tmp_path / "domain.toml"
    path.write_text(text)
    with pytest.raises(QueryError, match=rf"domain.toml, {message}"):
        xcount.count(people(), sensitive="age", gap=1, domain=path)


def test_a_bound_that_is_no_guard_cuts_the_cell() -> None:
    """What is left of a cell is the cell; guards outside are gone."""
    axis = grid_of("25 <= age < 45").axes[0]
    words = [axis.describe(cell) for cell in range(axis.n_cells)]
    assert words == ["25 <= age < 30", "30 <= age < 40", "40 <= age < 45"]
    assert axis.cells_of(np.array([24.0, 25.0, 30.0, 44.9, 45.0])).tolist() == [-1, 0, 1, 2, -1]


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("age > 45", ["45 < age < 50", "50 <= age"]),
        ("age <= 30", ["age < 30", "30 <= age <= 30"]),
        ("age in {20, 45}", ["age = 20", "age = 45"]),
        ("age >= 1234567.5", ["1234567.5 <= age"]),
    ],
)
def test_ends_are_shown_as_they_were_written(where: str, words: list[str]) -> None:
    """Not as the next number that a computer knows."""
    axis = grid_of(where).axes[0]
    shown = [axis.describe(cell) for cell in range(axis.n_cells)]
    assert shown == [word.replace("30 <= age <= 30", "age = 30") for word in words]


def test_distances_count_the_guards_in_between() -> None:
    """Also those of cells that are left out."""
    axis = grid_of("age in {20, 45, 60}").axes[0]
    assert [axis.distance(0, 1), axis.distance(1, 2), axis.distance(0, 2)] == [2, 1, 3]
    assert axis.guards_between(0, 1) == (30.0, 40.0)
    assert axis.n_guards == 3
    assert not axis.is_regular


def test_a_volume_sees_the_cut() -> None:
    """Lengths within the domain; single numbers weigh the same."""
    weighing = Weighing.of(people(), "volume", bounds="age=0:100,f1=0:1,f2=0:1")
    cut = volume_weights(grid_of("25 <= age < 45"), weighing)[0][0]
    assert cut.tolist() == pytest.approx([0.25, 0.5, 0.25])
    singles = volume_weights(grid_of("age in {20, 45, 46}"), weighing)[0][0]
    assert singles.tolist() == pytest.approx([1 / 3, 2 / 3])
    elsewhere = replace(weighing, bounds=((50.0, 60.0), None, None))
    with pytest.raises(QueryError, match="nothing of the domain"):
        volume_weights(grid_of("age in {20, 45}"), elsewhere)


@pytest.mark.parametrize("seed", range(40))
def test_points_of_cells_lie_in_them(seed: int) -> None:
    """Plain ones and those that people like to read; cells in words hold them, too."""
    world = random_world(seed)
    if not world.regions():
        return
    domain = Domain.of(**world.words)
    ensemble = domain.pulled_back(world.ensemble)
    grid = Grid.of(ensemble, missing="cell" if world.missing else "none", domain=domain)
    rng = np.random.default_rng(seed)
    for _ in range(5):
        cells = [int(rng.integers(axis.n_cells)) for axis in grid.axes]
        for point in (grid.point(cells), friendly_point(grid, cells)):
            assert grid.cells_of(point)[0].tolist() == cells
        for axis, cell, x in zip(grid.axes, cells, grid.point(cells), strict=True):
            shown = axis.cell_range(cell)
            assert shown.low is None or shown.low <= x
            assert shown.high is None or x <= shown.high


@pytest.mark.parametrize("seed", range(20))
def test_a_domain_that_excludes_nothing_changes_nothing(seed: int) -> None:
    """The same cells, the same count."""
    ensemble = random_ensemble(seed)
    names = ensemble.feature_names
    whole = [
        f"{n} >= -1e9" for n, f in zip(names, ensemble.features, strict=True) if not f.categories
    ]
    asked: dict[str, Any] = {"sensitive": "f0", "gap": 0.5, "distance": 2}
    plain, within = xcount.count(ensemble, **asked), xcount.count(ensemble, where=whole, **asked)
    assert (plain.count, plain.n_regions) == (within.count, within.n_regions)
    assert plain.domain is None
    assert "domain" not in plain.to_dict()


def test_a_rule_that_excludes_nothing_changes_nothing() -> None:
    """It always holds, or follows from a condition; one that always applies is a condition."""
    n_asked = 0
    for seed in range(30):
        ensemble = random_ensemble(seed, categorical=False)
        guards = [axis.thresholds.tolist() for axis in Grid.of(ensemble).axes]
        if len(guards) < 2 or not all(guards[:2]):
            continue
        first, second = f"f0 >= {guards[0][0]!r}", f"f1 >= {guards[1][0]!r}"
        asked: dict[str, Any] = {"sensitive": "f0", "gap": 0.1, "distance": 2}

        def counts(asked: Any = asked, ensemble: Any = ensemble, **domain: Any) -> Any:
            found = xcount.count(ensemble, **asked, **domain)
            return found.count, found.n_regions

        assert counts() == counts(rule=f"{second} -> {second}")
        assert counts(where=second) == counts(where=second, rule=f"{first} -> {second}")
        below = f"f0 < {guards[0][0]!r}"
        assert counts(where=second) == counts(rule=[f"{first} -> {second}", f"{below} -> {second}"])
        n_asked += 1
    assert n_asked > 5


def test_a_one_hot_group_of_a_category_counts_like_the_category() -> None:
    """The same model with a native category and with columns."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        world = random_world(seed)
        if not world.groups:
            continue
        domain = Domain.of(one_hot=world.groups)
        native = replace(domain.pulled_back(world.ensemble), encoding=None)
        asked: dict[str, Any] = {
            "sensitive": str(rng.choice(world.features)),
            "gap": 0.5,
            "distance": "any",
        }
        counted = xcount.count(world.ensemble, domain=domain, **asked)
        expected = xcount.count(native, **asked)
        assert (counted.count, counted.n_regions) == (expected.count, expected.n_regions)
