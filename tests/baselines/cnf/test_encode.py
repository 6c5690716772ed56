"""The formula of a question has the sensitive regions as its projected models."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Iterator

import numpy as np
import pytest
from oracle import known
from propagation import clauses_of, has_model, propagate
from published import published_model
from strategies import random_ensemble

from xcount import load
from xcount.baselines.cnf.decisions import JumpDiagram
from xcount.baselines.cnf.encode import MAX_PAIRS, encode, encode_mask
from xcount.baselines.cnf.formula import Formula
from xcount.counters import counter
from xcount.counters.settings import Settings
from xcount.model.ensemble import Feature, Tree
from xcount.model.examples import figure_1
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query


def problems(seeds: range) -> Iterator[Problem]:
    """Yield random problems, of every width of leaves."""
    for seed in seeds:
        ensemble = random_ensemble(seed)
        rng = np.random.default_rng([seed, 6])
        chosen = rng.choice(ensemble.n_features, min(2, ensemble.n_features), replace=False)
        query = Query.of(
            ensemble,
            [int(f) for f in chosen[: 1 + seed % 2]],
            ["0", "0.3", "1", "0.1", "2"][seed % 5],
            distance=[1, 2, 3, "any"][int(rng.integers(4))],
            precision=["exact", 1, 3][int(rng.integers(3))],
        )
        missing = ("none", "cell")[int(rng.integers(2))]
        yield Problem(ensemble, Grid.of(ensemble, missing=missing), query)  # type: ignore[arg-type]


def expected_count(problem: Problem) -> int:
    """Count by enumeration."""
    return known(counter("brute")(problem, Settings(jobs=1)).count)


def cells_as_literals(problem: Problem, features: list[int], first: int) -> list[list[int]]:
    """Return every choice of cells as literals of bits numbered from ``first``."""
    choices = []
    for feature in features:
        n_bits = problem.grid.axes[feature].n_cells - 1
        rows = [
            [(first + i) if cell <= i else -(first + i) for i in range(n_bits)]
            for cell in range(n_bits + 1)
        ]
        choices.append(rows)
        first += n_bits
    return [list(itertools.chain(*row)) for row in itertools.product(*choices)]


def projected_models(problem: Problem, formula: Formula) -> int:
    """Count regions b for which some values of the other variables meet all clauses."""
    clauses = clauses_of(formula)
    features = list(range(len(problem.grid.axes)))
    return sum(has_model(clauses, region) for region in cells_as_literals(problem, features, 1))


@pytest.fixture(params=["diagrams", "adders"])
def comparison(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Compare sums by diagrams where they are small, and by adders always."""
    if request.param == "adders":
        monkeypatch.setattr(JumpDiagram, "literal", lambda diagram: None)
    return str(request.param)


by_pairs_and_counterparts = pytest.mark.parametrize(
    "max_pairs",
    [pytest.param(MAX_PAIRS, id="pairs of masks"), pytest.param(-1, id="counterparts")],
)


@pytest.mark.usefixtures("comparison")
@by_pairs_and_counterparts
def test_propagation_counts_the_sensitive_regions(max_pairs: int) -> None:
    """Without any model counter: try all regions and all counterparts."""
    tried = 0
    for problem in problems(range(60)):
        formula = encode(problem, max_pairs=max_pairs)
        if problem.n_regions * problem.n_masks * formula.n_clauses > 100_000:
            continue
        assert projected_models(problem, formula) == expected_count(problem)
        tried += 1
    assert tried > 15


def test_points_that_are_no_regions_are_no_models() -> None:
    """Bits that are not monotone contradict the formula."""
    ensemble = figure_1()
    problem = Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, "f0", 80, distance=1))
    formula = encode(problem)
    assert formula.show == [1, 2, 3, 4]
    assert propagate(clauses_of(formula), [1, -2]) is None
    assert propagate(clauses_of(formula), [3, -4]) is None


def test_comments_name_the_guards() -> None:
    """A reader of the file learns what each shown variable means."""
    ensemble = figure_1()
    problem = Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, "f0", "80", distance=1))
    stream = io.StringIO()
    encode(problem).write(stream)
    text = stream.getvalue()
    assert "c variable 1: f0 < 3.0\n" in text
    assert "c variable 4: f1 < 3.0\n" in text
    assert re.search(r"^c p show 1 2 3 4 0$", text, re.MULTILINE)
    assert "gap 80" in text


def test_comments_name_the_guards_of_a_counterpart() -> None:
    """The second copy of the sensitive features is marked."""
    ensemble = figure_1()
    problem = Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, "f0", "80", distance=1))
    assert "variable 5: f0' < 3.0" in encode(problem, max_pairs=0).comments


def test_pairs_make_the_smaller_formula() -> None:
    """Naming the pairs of masks takes a fifth of the clauses of the published model, or less."""
    ensemble = load(published_model(5))
    problem = Problem(
        ensemble, Grid.of(ensemble), Query.of(ensemble, 2, 2, precision=3, distance=1)
    )
    by_pairs = encode(problem).n_clauses
    assert by_pairs < encode(problem, max_pairs=0).n_clauses / 5


def test_names_cannot_break_the_file() -> None:
    """A feature name with a line break stays within its comment."""
    tree = figure_1().trees[0]
    ensemble = figure_1().__class__((Feature("a\np cnf 9 9"), Feature("b")), (tree,))
    problem = Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, 0, 1, distance=1))
    stream = io.StringIO()
    encode(problem).write(stream)
    assert [line for line in stream.getvalue().splitlines() if line.startswith("p ")] == [
        f"p cnf {encode(problem).n_variables} {encode(problem).n_clauses}"
    ]


def zero_as_missing_tree() -> Tree:
    """Return a stump on f0 < 0.5 that sends zero to the right, with another on f0 < -1 below."""
    return Tree(
        feature=np.array([0, 0, -1, -1, -1], dtype=np.int32),
        threshold=np.array([0.5, -1.0, np.nan, np.nan, np.nan]),
        left=np.array([1, 2, -1, -1, -1], dtype=np.int32),
        right=np.array([4, 3, -1, -1, -1], dtype=np.int32),
        missing_left=np.zeros(5, dtype=np.bool_),
        zero_side=np.array([1, 0, 0, 0, 0], dtype=np.int8),
        value=np.array([0.0, 0.0, 1.0, 2.0, 4.0]),
    )


@by_pairs_and_counterparts
@pytest.mark.parametrize("distance", [1, 2, "any"])
def test_zero_ranges_are_sets_of_cells(distance: object, max_pairs: int) -> None:
    """A test that treats zero like a missing value is no threshold, and is encoded all the same."""
    ensemble = figure_1().__class__((Feature("f0"),), (zero_as_missing_tree(),))
    query = Query.of(ensemble, 0, 1, distance=distance)
    problem = Problem(ensemble, Grid.of(ensemble), query)
    formula = encode(problem, max_pairs=max_pairs)
    assert projected_models(problem, formula) == expected_count(problem) > 0


@pytest.mark.usefixtures("comparison")
def test_mask_formulas_add_up() -> None:
    """The formulas of single masks count every region once."""
    tried = 0
    for problem in problems(range(60, 100)):
        others = [f for f in range(len(problem.grid.axes)) if f not in problem.query.sensitive]
        if problem.n_regions > 60:
            continue
        total = 0
        for mask in range(problem.n_masks):
            clauses = clauses_of(encode_mask(problem, mask, problem.masks.neighbours(mask)))
            for region in cells_as_literals(problem, others, 1):
                # Which neighbour, and which way, is open: one of the last clause's must do.
                total += any(
                    propagate(clauses, [*region, jump]) is not None for jump in clauses[-1]
                )
        assert total == expected_count(problem)
        tried += 1
    assert tried > 10
