"""A population in words: what sets its components apart, and how realistic it is."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from conftest import Command

import xcount
from xcount.errors import QueryError
from xcount.measures.fitting import fit_population
from xcount.measures.population import Population, is_saved_population
from xcount.measures.portrait import component_portraits, divergence
from xcount.model.ensemble import Feature
from xcount.model.examples import ensemble_of, figure_1
from xcount.question.grid import Axis, Grid

GUARDS = [20.0, 30.0, 40.0]
AGE = Axis(Feature("age"), np.array(GUARDS))
JOB = Axis(Feature("job", (0, 1, 2), ("cook", "judge", "smith")), np.empty(0), ((0,), (1, 2)))


def test_a_component_is_known_by_what_others_have_not() -> None:
    """The condition of each column that tells most, with both shares; the heaviest one first."""
    ages = np.array([[0.7, 0.1], [0.2, 0.1], [0.05, 0.1], [0.05, 0.7]])
    jobs = np.array([[0.5, 1.0], [0.5, 0.0]])
    old, young = component_portraits(np.array([0.25, 0.75]), [AGE, JOB], [ages, jobs])
    assert (old.weight, young.weight) == (0.75, 0.25)
    assert [trait.text for trait in young.traits] == ["age < 30", "job in {judge, smith}"]
    assert [trait.share for trait in young.traits] == pytest.approx([0.9, 0.5])
    of_all = [0.25 * 0.9 + 0.75 * 0.2, 0.125]
    assert [trait.of_all for trait in young.traits] == pytest.approx(of_all)
    assert [trait.text for trait in old.traits] == ["job = cook", "age >= 20"]


def test_a_component_that_is_like_everybody_has_no_trait() -> None:
    """One component is the whole population."""
    (only,) = component_portraits(np.ones(1), [AGE], [np.full((4, 1), 0.25)])
    assert only.traits == ()


@pytest.mark.parametrize("seed", range(30))
def test_no_other_range_tells_more(seed: int) -> None:
    """Against all ranges of cells, and all missing values."""
    rng = np.random.default_rng(seed)
    axis = Axis(Feature("age", can_be_missing=True), np.array(GUARDS), missing_cell=4)
    weights, table = rng.dirichlet(np.ones(3)), rng.dirichlet(np.full(5, 0.4), 3).T
    of_all = table @ weights
    runs = [slice(a, b) for a, b in itertools.combinations(range(5), 2) if b - a < 4]
    order = np.argsort(-weights, kind="stable")
    for k, found in zip(order, component_portraits(weights, [axis], [table]), strict=True):
        told = [divergence(table[r, k].sum(), of_all[r].sum()) for r in [*runs, slice(4, 5)]]
        best = float(max(told))
        if best < 0.05:
            assert found.traits == ()
        else:
            (trait,) = found.traits
            assert divergence(trait.share, trait.of_all) == pytest.approx(best)


def test_many_cells_are_thinned_to_ranges_of_equal_weight() -> None:
    """A range is found among a thousand cells, nearly where it is."""
    axis = Axis(Feature("age"), np.arange(1.0, 1000.0))
    table = np.full((1000, 2), 1 / 1000)
    table[:, 0] = 0
    table[300:500, 0] = 1 / 200
    _, narrow = sorted(
        component_portraits(np.array([0.2, 0.8]), [axis], [table]), key=lambda c: -c.weight
    )
    assert narrow.traits[0].share > 0.9
    assert narrow.traits[0].of_all < 0.4


def test_the_divergence_is_that_of_two_coins() -> None:
    """And nothing where the share is the smaller one."""
    expected = 0.9 * math.log(0.9 / 0.2) + 0.1 * math.log(0.1 / 0.8)
    assert divergence(0.9, 0.2) == pytest.approx(expected)
    assert divergence(0.1, 0.2) == 0
    assert divergence(1.0, 0.5) == pytest.approx(math.log(2))


def rows_file(folder: Path, n: int = 400) -> Path:
    """Three kinds of people."""
    rng = np.random.default_rng(0)
    is_old = rng.random(n) < 0.3
    first, second = rng.choice([[1.0, 1.0], [3.5, 2.5]], n).T
    first[is_old], second[is_old] = 5.0, 3.5
    path = folder / "rows.csv"
    lines = (f"{a},{b}\n" for a, b in zip(first, second, strict=True))
    path.write_text("age,sex\n" + "".join(lines))
    return path


def test_a_saved_population_can_be_looked_at(
    tmp_path: Path,
    xcount_command: Command,
    figure_1_file: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With its model or alone: the data, the components in words, the fit, the checks."""
    monkeypatch.chdir(tmp_path)
    data, kept = rows_file(Path()), "kept.json"
    fitted = xcount_command(
        "inspect", figure_1_file, "--population", kept, "--data", str(data), "--json"
    )
    alone = json.loads(xcount_command("inspect", kept, "--json").out)
    assert json.loads(fitted.out)["population"] == alone
    assert alone["data_sha256"] == hashlib.sha256(data.read_bytes()).hexdigest()
    assert (alone["n_data_rows"], alone["n_columns"]) == (400, 2)
    assert len(alone["components"]) == alone["n_components"] > 1
    texts = {trait["text"] for part in alone["components"] for trait in part["traits"]}
    assert texts >= {"age >= 4", "3 <= age < 4", "age < 3"}
    realism = alone["realism"]
    assert realism["log_likelihood"] > realism["marginals_log_likelihood"]
    run = xcount_command("inspect", kept)
    assert (run.status, run.err) == (0, "")
    for words in ("rows.csv: 320 rows, and 80 held out", "age >= 4", "If independent"):
        assert words in run.out
    beside = xcount_command("inspect", figure_1_file, "--population", kept).out
    assert "Suggested gaps" in beside
    assert run.out.partition("Components")[2] in beside


def test_python_sees_the_same(tmp_path: Path, figure_1_file: str) -> None:
    """By the function, and by the population itself."""
    kept = tmp_path / "kept.json"
    found = xcount.inspect(figure_1_file, data=rows_file(tmp_path), population=kept)
    again = xcount.inspect(figure_1_file, population=Population.load(kept))
    assert found.population == again.population == Population.load(kept).portrait
    assert found.population_share is None


def test_the_share_of_a_domain_is_shown(tmp_path: Path, figure_1_file: str) -> None:
    """Conditions and rules: as many as of the rows, nearly."""
    inspection = xcount.inspect(
        figure_1_file, data=rows_file(tmp_path), where="age < 4", rule="age >= 3 -> sex < 2"
    )
    rows = np.loadtxt(tmp_path / "rows.csv", delimiter=",", skiprows=1)
    share = ((rows[:, 0] < 4) & ((rows[:, 0] < 3) | (rows[:, 1] < 2))).mean()
    assert 0.2 < share < 0.5
    assert inspection.population_share == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("seed", range(10))
def test_the_share_of_a_domain_is_that_of_enumeration(seed: int) -> None:
    """Region by region, within rules."""
    rng = np.random.default_rng(seed)
    model = ensemble_of((0, 1.0, (1, 1.0, 0.0, 1.0), (1, 2.0, 0.0, 1.0)), (2, 1.0, 0.0, 1.0))
    population = fit_population(Grid.of(model), rng.random((200, 3)) * 3)
    domain = xcount.Domain.of(rule=("f0 < 1 -> f1 < 2", "f2 < 1 -> f0 >= 1"))
    grid = Grid.of(model, domain=domain)
    total = 0.0
    for region in itertools.product(*map(range, grid.cell_counts)):
        if grid.exists(np.array([region]))[0]:
            for part in population.on(Grid.of(model)):
                chances = [cells[i] for cells, i in zip(part.cell_weights, region, strict=True)]
                total += part.weight * math.prod(chances)
    assert population.share_of(grid) == pytest.approx(total, abs=1e-12)


def test_a_population_of_another_model_is_refused(tmp_path: Path) -> None:
    """With the guard that it lacks."""
    rows = np.random.default_rng(0).random((100, 2)) * 6
    population = fit_population(Grid.of(figure_1()), rows)
    with pytest.raises(QueryError, match=r"without the guard 2.5 of 'f1'"):
        xcount.inspect(ensemble_of((0, 3.0, 0.0, (1, 2.5, 0.0, 1.0))), population=population)


def test_other_files_are_no_populations(tmp_path: Path, figure_1_file: str) -> None:
    """Nor is what is not there; and a model stays one."""
    assert not is_saved_population(figure_1_file)
    assert not is_saved_population(tmp_path / "nowhere.json")
    assert not is_saved_population("a\0b")
