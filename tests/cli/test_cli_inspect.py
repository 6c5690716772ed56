"""``xcount inspect``: what a model is made of."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from conftest import Command
from model_files import write_model
from strategies import random_ensemble

from xcount.answers.inspection import inspect
from xcount.model.examples import adult_model_path, ensemble_of, figure_1
from xcount.question.grid import Grid


def test_an_inspection_is_a_card_and_a_table(xcount_command: Command, figure_1_file: str) -> None:
    """Trees, depth, cells, regions, leaves, and gaps to ask about."""
    run = xcount_command("inspect", figure_1_file)
    assert (run.status, run.err) == (0, "")
    for words in ("xgboost-json", "2 of depth up to 2, 6 leaves", "age", "sex", "-45 to 40"):
        assert words in run.out


def test_json_has_the_same_numbers(xcount_command: Command, figure_1_file: str) -> None:
    """One object, one entry per feature."""
    data = json.loads(xcount_command("inspect", figure_1_file, "--json").out)
    assert (data["n_regions"], data["n_leaves"], data["task"]) == (9, 6, "regression")
    assert (data["model"]["n_trees"], data["model"]["n_guards"]) == (2, 4)
    assert [feature["name"] for feature in data["features"]] == ["age", "sex"]
    assert [feature["n_cells"] for feature in data["features"]] == [3, 3]
    assert data["leaves"] == {"low": -45.0, "high": 40.0, "median_size": 37.5, "max_change": 150.0}
    assert data["gaps"] == [10.0, 20.0, 50.0, 100.0]


def test_missing_cells_are_shown_when_asked_for(
    xcount_command: Command, figure_1_file: str
) -> None:
    """XGBoost takes missing values in every feature."""
    run = xcount_command("inspect", figure_1_file, "--missing", "cell", "--json")
    assert json.loads(run.out)["n_regions"] == 16


def test_long_lists_of_features_are_cut(xcount_command: Command, tmp_path: Path) -> None:
    """Features that no tree tests are left out, and so is what is beyond a screenful."""
    names = [f"x{i}" for i in range(60)]
    model = write_model(tmp_path / "m.json", [(f, 0.0, 1.0, 0.0) for f in range(50)], names)
    cut = xcount_command("inspect", model).out
    assert "x39 " in cut
    assert "x40 " not in cut
    assert "20 more; --all lists them" in cut
    full = xcount_command("inspect", model, "--all").out
    assert all(f"{name} " in full for name in names)


OF_REGIONS = [
    ["--where", "age > 30"],
    ["--rule", "age > 30 -> sex > 0"],
    ["--one-hot", "x=age,sex"],
    ["--missing", "cell"],
    ["--domain", "absent.toml"],
]


@pytest.mark.parametrize(
    "words", [*OF_REGIONS, ["--population", "kept.json"], ["--all"], ["--json"]], ids=" ".join
)
def test_a_template_is_not_asked_for_something_else(
    xcount_command: Command, figure_1_file: str, words: list[str]
) -> None:
    """What would be passed over is refused by its name."""
    run = xcount_command("inspect", figure_1_file, "--domain-template", "-", *words)
    assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
    assert f"{words[0]} has no meaning beside --domain-template" in run.err


def test_a_population_alone_has_no_regions_to_choose(
    xcount_command: Command, figure_1_file: str, tmp_path: Path
) -> None:
    """All of it is shown, or nothing; how it is shown can be chosen."""
    data, kept = tmp_path / "people.csv", tmp_path / "kept.json"
    data.write_text("age,sex\n" + "".join(f"{30 + i % 20},{i % 2}\n" for i in range(400)))
    xcount_command("inspect", figure_1_file, "--data", data, "--population", kept)
    assert xcount_command("inspect", kept, "--all", "--json").status == 0
    for words in OF_REGIONS:
        run = xcount_command("inspect", kept, *words)
        assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
        assert f"{words[0]} has no meaning for a saved population" in run.err


@pytest.mark.parametrize("seed", range(60))
def test_no_change_is_larger_than_the_bound(seed: int) -> None:
    """Changing one feature alone never moves the margin by more than its ``max_change``."""
    ensemble = random_ensemble(seed, max_features=3, scale="ties")
    grid, inspection = Grid.of(ensemble), inspect(ensemble)
    shape = grid.cell_counts
    regions = itertools.product(*(range(n) for n in shape))
    margins = ensemble.predict(np.array([grid.point(region) for region in regions]))
    table = margins.reshape(shape)
    for feature in inspection.features:
        assert np.ptp(table, axis=feature.index).max() <= feature.max_change + 1e-12
        assert (feature.max_change == 0) >= (feature.n_trees == 0)
    assert np.ptp(table) <= inspection.leaves.max_change + 1e-12


def test_the_bound_is_met_where_one_tree_decides() -> None:
    """A stump's feature changes the margin by just its range."""
    inspection = inspect(ensemble_of((0, 0.0, 1.5, -1.0), n_features=2))
    assert [feature.max_change for feature in inspection.features] == [2.5, 0.0]


def test_a_constant_model_has_no_gap_to_ask_about() -> None:
    """Nothing ever changes."""
    inspection = inspect(ensemble_of(3.0, n_features=1))
    assert (inspection.gaps, inspection.n_regions) == ((), 1)
    assert inspect(ensemble_of(n_features=1)).leaves.max_change == 0


def test_suggested_gaps_are_round_and_not_trivial() -> None:
    """1, 2 or 5 times a power of ten, below what some feature can change."""
    for scale in (1e-300, 1e-9, 0.37, 1.0, 2.5e7, 1e300):
        gaps = inspect(ensemble_of((0, 0.0, scale, 0.0))).gaps
        assert all(0 < gap < scale for gap in gaps)
        assert {f"{gap:e}"[:8] for gap in gaps} <= {"1.000000", "2.000000", "5.000000"}


def test_averages_are_divided() -> None:
    """The leaves of a forest count as what they add to the average."""
    from dataclasses import replace

    halved = inspect(replace(figure_1(), divisor=2))
    assert halved.leaves.max_change == 75.0
    assert halved.features[0].max_change == 75.0


def test_the_shipped_model_keeps_its_names(xcount_command: Command) -> None:
    """Feature names come from the data; sex, race and age are among them."""
    data = json.loads(xcount_command("inspect", adult_model_path(), "--json").out)
    kinds = {feature["name"]: feature["kind"] for feature in data["features"]}
    assert (kinds["age"], kinds["sex"], kinds["race"]) == ("numeric", "categorical", "categorical")
    assert data["task"] == "binary"


@pytest.mark.parametrize(
    "command",
    [["inspect"], ["inspect", "--json"], ["audit"], ["witness", "--sensitive", "0", "--gap", "1"]],
    ids=" ".join,
)
def test_leaves_whose_differences_are_no_floats_are_named(
    xcount_command: Command, tmp_path: Path, command: list[str]
) -> None:
    """One line, and no warning; a count needs no floats and answers."""
    model = tmp_path / "m.txt"
    model.write_text(
        "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nmax_feature_idx=0\n"
        "objective=regression\nfeature_names=a\nfeature_infos=[0:1]\ntree_sizes=1\n\n"
        "Tree=0\nnum_leaves=2\nnum_cat=0\nsplit_feature=0\nthreshold=0.5\ndecision_type=2\n"
        "left_child=-1\nright_child=-2\nleaf_value=1.7e308 -1.7e308\nis_linear=0\n\n"
        "end of trees\n"
    )
    name, *options = command
    run = xcount_command(name, model, *options)
    assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
    assert "more than the largest float" in run.err
    counted = xcount_command("count", model, "--sensitive", "a", "--gap", "1e308", "--json")
    assert json.loads(counted.out)["count"] == 2
