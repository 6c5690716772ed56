"""Random questions with data or a population to weigh them by, and the share by definition."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import oracle
from numpy.typing import NDArray
from strategies import random_classifier, random_ensemble

from xcount.measures.mixture import Mixture
from xcount.measures.population import Column, Population
from xcount.measures.portrait import Realism
from xcount.measures.shares import measure_of
from xcount.measures.weighting import Weighing
from xcount.model.ensemble import Ensemble
from xcount.model.inputs import Inputs
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query

N_ROWS = 40


def random_rows(ensemble: Ensemble, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return rows that a model may get: categories it knows, some values missing."""
    columns = []
    for feature in ensemble.features:
        if feature.categories is not None:
            columns.append(rng.integers(0, len(feature.categories), N_ROWS).astype(float))
        else:
            values = rng.normal(0, 3, N_ROWS)
            is_missing = feature.can_be_missing and rng.random(N_ROWS) < 0.2
            columns.append(np.where(is_missing, np.nan, values))
    return np.stack(columns, axis=1)


def random_problem(seed: int) -> tuple[Problem, dict[tuple[int, ...], bool], Weighing]:
    """Return a question about a gap or a flip, its sensitive regions, and data."""
    rng = np.random.default_rng([seed, 3])
    flip, missing = seed % 3 == 0, seed % 2 == 1
    ensemble = random_classifier(seed) if flip else random_ensemble(seed, max_features=3)
    size = int(rng.integers(1, ensemble.n_features + 1))
    sensitive = sorted(rng.choice(ensemble.n_features, size, replace=False).tolist())
    distance = [1, 2, None][int(rng.integers(3))]
    gap = None if flip else Fraction(1, 2)
    query = Query.of(ensemble, sensitive, gap, distance=distance, flip=flip)
    find = oracle.flipping_regions if flip else oracle.sensitive_regions
    regions = find(ensemble, sensitive, gap or Fraction(0), distance, None, missing)
    problem = Problem(ensemble, Grid.of(ensemble, missing="cell" if missing else "none"), query)
    rows = random_rows(ensemble, rng)
    names = ("volume", "marginals", "rows")
    return problem, regions, Weighing(names, Inputs.of(rows), "rows", (None,) * ensemble.n_features)


def population_on(
    problem: Problem, weights: NDArray[np.float64], table: Callable[[int], NDArray[np.float64]]
) -> Population:
    """Return a population on the cells of a problem; a table is made for each number of cells."""
    columns = [
        Column(
            axis.feature.name,
            tuple(axis.thresholds.tolist()),
            axis.classes if axis.feature.is_categorical else None,
            axis.missing_cell is not None,
            table(axis.n_cells),
        )
        for axis in problem.grid.axes
    ]
    return Population(weights, tuple(columns), Realism(1, 1, 0.0, 0.0), "drawn")


def random_population(problem: Problem, seed: int) -> Population:
    """Return three components with tables drawn at random on the cells of a problem."""
    rng = np.random.default_rng([seed, 8])
    weights = rng.dirichlet(np.ones(3))
    return population_on(problem, weights, lambda n: rng.dirichlet(np.ones(n), 3).T)


def expected_share(
    population: Population, problem: Problem, regions: dict[tuple[int, ...], bool]
) -> float:
    """Return the weight of the sensitive regions, region by region."""
    columns = {column.name: column.probabilities for column in population.columns}
    tables = [columns[axis.feature.name] for axis in problem.grid.axes]
    total = 0.0
    for region, is_sensitive in regions.items():
        if is_sensitive:
            cells = [table[cell] for table, cell in zip(tables, region, strict=True)]
            total += float((population.weights * np.prod(cells, axis=0)).sum())
    return total


def mixture_of(name: str, problem: Problem, weighing: Weighing) -> Mixture:
    """Return a measure that is a mixture of products."""
    found = measure_of(name, problem.grid, weighing)
    assert isinstance(found, Mixture)
    return found
