"""Populations: what they are fitted to, what they keep, and what they refuse."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest

from xcount.errors import QueryError, QueryWarning
from xcount.measures.fitting import LEAST_ROWS, fit_population
from xcount.measures.population import Population
from xcount.model.ensemble import Ensemble, Feature, Tree
from xcount.question.domain import Domain
from xcount.question.grid import Grid


def stump(feature: int, threshold: float) -> Tree:
    """A tree with one test."""
    return Tree(
        feature=np.array([feature, -1, -1]),
        threshold=np.array([threshold, np.nan, np.nan]),
        left=np.array([1, -1, -1]),
        right=np.array([2, -1, -1]),
        missing_left=np.zeros(3, dtype=bool),
        zero_side=np.zeros(3, dtype=np.int8),
        value=np.array([0.0, 1.0, 2.0]),
    )


def grid_of(*guards: tuple[float, ...]) -> Grid:
    """A grid with these guards of f0, f1, ..."""
    trees = tuple(stump(f, guard) for f, own in enumerate(guards) for guard in own)
    features = tuple(Feature(f"f{i}") for i in range(len(guards)))
    return Grid.of(Ensemble(features, trees))


def dependent_rows(n: int, seed: int = 0) -> np.ndarray:
    """Rows whose columns are 0 or 1, and nearly always the same."""
    generator = np.random.default_rng(seed)
    first = generator.integers(0, 2, n)
    others = np.where(generator.random((n, 2)) < 0.95, first[:, None], 1 - first[:, None])
    return np.column_stack([first, others]).astype(float)


GRID = grid_of((0.5,), (0.5,), (0.5,))


def test_a_population_keeps_what_columns_have_to_do_with_each_other() -> None:
    """The marginals of such columns say a quarter; rows and population say nearly a half."""
    population = fit_population(GRID, dependent_rows(4000), source="rows.csv")
    assert population.n_components > 1
    assert population.source == "rows.csv"
    realism = population.realism
    assert realism.log_likelihood > realism.marginals_log_likelihood + 0.5
    assert realism.n_rows == 3200
    assert realism.n_held_out == 800
    assert len(realism.checks) == 3  # all pairs of three columns
    for check in realism.checks:
        assert abs(check.population - check.rows) < 0.05
        assert abs(check.marginals - 0.25) < 0.05
        assert check.rows > 0.4
    together = sum(
        c.weight * c.cell_weights[0][1] * c.cell_weights[1][1] for c in population.on(GRID)
    )
    assert abs(together - 0.475) < 0.03


def test_independent_columns_need_one_component() -> None:
    """And then a population is the product of the marginals."""
    rows = np.random.default_rng(1).integers(0, 2, (3000, 3)).astype(float)
    population = fit_population(GRID, rows)
    assert population.n_components == 1
    (only,) = population.on(GRID)
    for feature in range(3):
        assert only.cell_weights[feature][1] == pytest.approx(rows[:, feature].mean(), abs=0.02)


def test_the_same_seed_gives_the_same_population_on_any_number_of_threads() -> None:
    """To the last bit."""
    rows = dependent_rows(500)
    one, two = (fit_population(GRID, rows, seed=3, n_threads=n) for n in (1, 2))
    assert one.to_dict() == two.to_dict()


def test_a_saved_population_is_the_same(tmp_path: Path) -> None:
    """All of it is in the file, and the file can be read by people."""
    population = fit_population(GRID, dependent_rows(500), source="rows.csv")
    population.save(tmp_path / "people.json")
    again = Population.load(tmp_path / "people.json")
    assert again.to_dict() == population.to_dict()
    assert json.loads((tmp_path / "people.json").read_text())["columns"][0]["guards"] == [0.5]


def test_a_coarser_grid_adds_cells_up_and_a_finer_one_is_refused() -> None:
    """A population says nothing about what happens inside its cells."""
    rows = np.random.default_rng(2).random((1000, 1)) * 4
    population = fit_population(grid_of((1.0, 2.0, 3.0)), rows)
    (component,) = population.on(grid_of((2.0,)))
    assert component.cell_weights[0] == pytest.approx(
        [(rows < 2).mean(), (rows >= 2).mean()], abs=0.02
    )
    with pytest.raises(QueryError, match=r"without the guard 2.5 of 'f0'"):
        population.on(grid_of((2.5,)))
    with pytest.raises(QueryError, match="no column 'f1'"):
        population.on(GRID)


def test_categories_of_one_cell_are_not_told_apart_later() -> None:
    """The weight of two categories together says nothing about either."""

    def grid(where: tuple[str, ...] = (), *sets: frozenset[int]) -> Grid:
        trees = [
            dataclasses.replace(stump(0, math.nan), left_categories={0: each}) for each in sets
        ]
        ensemble = Ensemble((Feature("job", (0, 1, 2), ("cook", "judge", "smith")),), tuple(trees))
        return Grid.of(ensemble, domain=Domain.of(where=where))

    cook = frozenset({0})
    rows = np.random.default_rng(3).integers(0, 3, (600, 1)).astype(float)
    population = fit_population(grid((), cook), rows)
    assert len(population.on(grid((), cook))[0].cell_weights[0]) == 2
    with pytest.raises(QueryError, match="does not tell the categories 1 and 2 of 'job' apart"):
        population.on(grid((), cook, frozenset({1})))
    with pytest.raises(QueryError, match="does not tell the categories 1 and 2 of 'job' apart"):
        population.on(grid(("job != judge",), cook))
    within = fit_population(grid(("job != judge",), cook), rows)
    (component,) = within.on(grid(("job != judge",), cook))
    cooks, smiths = (rows == 0).sum(), (rows == 2).sum()
    assert component.cell_weights[0][0] == pytest.approx(cooks / (cooks + smiths), abs=0.03)


def test_unknown_values_say_nothing() -> None:
    """A column that is missing at random does not change what the others are."""
    rows = dependent_rows(4000)
    holes = rows.copy()
    holes[np.random.default_rng(5).random(rows.shape) < 0.2] = np.nan
    with pytest.warns(QueryWarning, match=r"values of 'f0', 'f1', 'f2' are missing in .* rows"):
        population = fit_population(GRID, holes)
    together = sum(
        c.weight * c.cell_weights[0][1] * c.cell_weights[1][1] for c in population.on(GRID)
    )
    assert abs(together - 0.475) < 0.05


def test_a_column_without_any_value_is_refused() -> None:
    """Nothing can be said about it; a cell for missing values holds them."""
    rows = dependent_rows(100)
    rows[:, 1] = np.nan
    with pytest.raises(QueryError, match=r"no row of holes.csv has a value of 'f1' in any cell"):
        fit_population(GRID, rows, source="holes.csv")


def test_too_few_rows_are_refused() -> None:
    """With a clear word, and the number."""
    with pytest.raises(QueryError, match=rf"at least {LEAST_ROWS} rows .* few.csv has 5"):
        fit_population(GRID, dependent_rows(5), source="few.csv")


def test_few_rows_support_one_component() -> None:
    """Then a population is the product of the marginals, and it says so."""
    rows = dependent_rows(60)
    with pytest.warns(QueryWarning, match=r"48 rows of few.csv .* product of the marginals"):
        population = fit_population(GRID, rows, source="few.csv")
    assert population.n_components == 1
    assert fit_population(GRID, np.concatenate([rows] * 10)).n_components > 1


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"format": "other"}, "its format is 'other'"),
        ({"weights": [0.5, 0.1]}, "not those of a mixture"),
        ({"columns": [{"name": "f0"}]}, "probabilities"),
        ({"columns": [{"name": "f0", "missing": False, "probabilities": [[2.0]]}]}, "table"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, change: dict[str, object], what: str) -> None:
    """A file is data, and may be wrong."""
    path = tmp_path / "people.json"
    data = fit_population(GRID, dependent_rows(100)).to_dict()
    path.write_text(json.dumps(data | {"weights": [1.0]} | change))
    with pytest.raises(QueryError, match=what):
        Population.load(path)
    with pytest.raises(QueryError, match="No such file"):
        Population.load(tmp_path / "nowhere.json")
