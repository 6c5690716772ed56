"""The share of a population: against enumeration with the same weights, exact and sampled."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Command
from measure_problems import expected_share, population_on, random_population, random_problem
from rich.console import Console

import xcount
from xcount.counters.decisions import RegionDecider
from xcount.counters.settings import Settings
from xcount.errors import QueryError, QueryWarning
from xcount.measures import exact_shares
from xcount.measures.fitting import fit_population
from xcount.measures.population import Population
from xcount.measures.shares import measure, with_population
from xcount.measures.weighting import Weighing
from xcount.model.examples import adult_model_path, figure_1
from xcount.model.inputs import Inputs
from xcount.model.tables import read_table
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query
from xcount.report.batch_text import audit_tables, comparison_tables
from xcount.report.text import count_tables

PEOPLE = Path(__file__).parent.parent.parent / "examples" / "adult-extract.csv.gz"


@pytest.mark.parametrize("seed", range(60))
def test_a_population_is_weighed_exactly(seed: int) -> None:
    """Gaps and flips, missing cells, categories, one or several sensitive features."""
    problem, regions, _ = random_problem(seed)
    population = random_population(problem, seed)
    weighing = Weighing(("population",), population=population)
    found = measure(problem, weighing, Settings())["population"]
    assert found.interval.is_settled
    assert found.share == pytest.approx(expected_share(population, problem, regions), abs=1e-9)
    assert found.details["n_components"] == 3


def rational_population(problem: Problem, seed: int) -> Population:
    """Return two components whose probabilities are eighths: sums of their products are floats."""
    rng = np.random.default_rng([seed, 9])
    weights = np.array([0.25, 0.75])
    return population_on(problem, weights, lambda n: rng.multinomial(8, np.ones(n) / n, 2).T / 8)


@pytest.mark.parametrize("way", ["visited", "solved"])
@pytest.mark.parametrize("seed", range(20))
def test_rational_weights_are_weighed_to_the_last_digit(
    seed: int, way: str, request: pytest.FixtureRequest
) -> None:
    """By both exact ways, against enumeration in fractions."""
    if way == "solved":
        request.getfixturevalue("no_corner_sums")
    problem, regions, _ = random_problem(seed)
    population = rational_population(problem, seed)
    tables = [column.probabilities for column in population.columns]
    total = Fraction(0)
    for region, is_sensitive in regions.items():
        for k, weight in enumerate(population.weights):
            part = Fraction(float(weight))
            for table, cell in zip(tables, region, strict=True):
                part *= Fraction(float(table[cell, k]))
            total += part if is_sensitive else 0
    weighing = Weighing(("population",), population=population)
    found = measure(problem, weighing, Settings())["population"]
    assert found.exact or (way == "solved" and found.interval.is_settled)
    assert found.share is not None
    assert Fraction(found.share) == total


@pytest.mark.slow
def test_a_large_model_is_weighed_as_a_million_draws_say() -> None:
    """People drawn from the mixture, and decided one by one."""
    model = xcount.load(adult_model_path())
    rows = read_table(PEOPLE, model).rows
    grid = Grid.of(model)
    population = fit_population(grid, rows, source="people")
    problem = Problem(model, grid, Query.of(model, "sex", "0.5", distance="any"))
    found = measure(problem, Weighing(("population",), population=population))["population"]
    assert found.interval.is_settled
    assert found.share is not None
    rng, parts = np.random.default_rng(0), population.on(grid)
    counts = rng.multinomial(1_000_000, [part.weight for part in parts])
    drawn = np.concatenate(
        [
            np.stack([rng.choice(len(p), n, p=p) for p in part.cell_weights], axis=1)
            for n, part in zip(counts, parts, strict=True)
        ]
    )
    share = RegionDecider(problem).decide_regions(drawn).mean()
    spread = math.sqrt(share * (1 - share) / len(drawn))
    assert abs(share - found.share) < 4 * spread


@pytest.mark.usefixtures("no_corner_sums")
def test_what_is_not_counted_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an interval that holds with the confidence that it says."""
    monkeypatch.setattr(exact_shares, "MAX_TERMS", -1)
    inside = n = 0
    for seed in range(40):
        problem, regions, _ = random_problem(seed)
        population = random_population(problem, seed)
        share = expected_share(population, problem, regions)
        if not 0.05 < share < 0.999:
            continue  # rarer ones take too many samples for a test
        weighing = Weighing(("population",), population=population)
        settings = Settings(seed=seed, epsilon=0.2, jobs=1)
        found = measure(problem, weighing, settings)["population"]
        assert not found.exact
        n += 1
        inside += found.low - 1e-9 <= share <= found.high + 1e-9
    assert n > 10
    assert inside >= n - 4  # at 90 % each; intervals are wider than that


def test_the_population_is_fitted_kept_and_used_again(
    tmp_path: Path, xcount_command: Command, figure_1_file: str
) -> None:
    """As a user would: fit once, ask twice."""
    data, people = tmp_path / "rows.csv", tmp_path / "people.json"
    rng = np.random.default_rng(0)
    rows = rng.random((200, 2)) * 6
    data.write_text("age,sex\n" + "".join(f"{a},{b}\n" for a, b in rows))
    asked = ["count", figure_1_file, "--sensitive", "age", "--gap", "80", "--json"]
    weighed = [*asked, "--measure", "population", "--population", str(people)]
    first = json.loads(xcount_command(*weighed, "--data", str(data)).out)
    again = json.loads(xcount_command(*weighed).out)
    one, two = (r["details"]["measures"]["population"] for r in (first, again))
    assert one == two
    assert one["high"] - one["low"] < 1e-9
    assert one["realism"]["n_rows"] == 160
    assert one["source"].endswith("rows.csv")
    sensitive = (rows[:, 0] < 4) & (rows[:, 1] < 2)  # figure 1, at a gap of 80
    assert one["share"] == pytest.approx(sensitive.mean(), abs=0.1)


def test_a_population_needs_data_or_a_file(tmp_path: Path) -> None:
    """And says so."""
    with pytest.raises(QueryError, match="needs data; give --data FILE, or --population FILE"):
        xcount.count(figure_1(), sensitive="f0", gap=80, measures="population")
    with pytest.raises(QueryError, match="No such file"):
        xcount.count(
            figure_1(), sensitive="f0", gap=80, measures="population", population=tmp_path / "none"
        )


def test_a_fit_stops_at_the_limit() -> None:
    """With fewer components, and an answer."""
    problem, _, weighing = random_problem(1)
    assert weighing.inputs is not None
    rows = Inputs.of(np.concatenate([weighing.inputs.matrix()] * 10))
    asked = Weighing(("population",), rows, "rows", weighing.bounds)
    ready = with_population(asked, problem.grid, Settings(timeout_seconds=0.0))
    assert ready.population is not None
    assert ready.population.n_components == 1
    assert math.isfinite(ready.population.realism.log_likelihood)


def test_a_population_of_another_table_is_told(tmp_path: Path) -> None:
    """In a warning, in the result, and in every form of it; not where the table is the same."""
    rows = np.random.default_rng(0).uniform(0, 6, (600, 2)).round(2)
    for name, some in (("old.csv", rows[:400]), ("new.csv", rows)):
        np.savetxt(tmp_path / name, some, delimiter=",", header="f0,f1", comments="")
    kept = tmp_path / "kept.json"
    asked: dict[str, Any] = {"judge": "population", "population": kept, "explain": False}
    model, said = figure_1(), "fitted to another table (old.csv, 400 rows) than the one given"
    first = xcount.audit(model, gaps=80, data=tmp_path / "old.csv", **asked)
    again = xcount.audit(model, gaps=80, data=tmp_path / "old.csv", **asked)
    alone = xcount.audit(model, gaps=80, **asked)
    for fine in (first, again, alone):
        assert "another table" not in fine.to_json()
    with pytest.warns(QueryWarning, match=r"given \(new.csv, 600 rows\); fit it again"):
        found = xcount.audit(model, gaps=80, data=tmp_path / "new.csv", **asked)
    assert said in found.results[0].measures["population"].details["fitted_to_other_data"]
    with pytest.warns(QueryWarning, match="another table"):
        compared = xcount.compare([model, model], gaps=80, data=tmp_path / "new.csv", **asked)
    with pytest.warns(QueryWarning, match="another table"):
        one = xcount.count(model, sensitive=0, gap=80, data=tmp_path / "new.csv", **asked)
    with pytest.warns(QueryWarning, match=r"given \(.*600 rows\)"):
        xcount.count(model, sensitive=0, gap=80, data=rows, **asked)
    forms = [
        *(found.to_html(), found.to_markdown(), found.to_json()),
        *(compared.to_html(), compared.to_json(), one.to_json()),
        *map(printed, (count_tables(one), audit_tables(found), comparison_tables(compared))),
    ]
    for form in forms:
        assert said in " ".join(re.sub("[│\\s]+", " ", form.replace("\\", "")).split())


def printed(tables: Sequence[object]) -> str:
    """Return tables as a terminal shows them."""
    console = Console(width=300, record=True, file=io.StringIO())
    console.print(*tables)
    return console.export_text()
