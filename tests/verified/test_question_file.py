"""Question files: counted from their text alone, they have the answer of the definition."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
import question_oracle
import test_only_starts
from domains import random_world
from strategies import random_classifier
from test_changes import QUESTIONS, random_words

from xcount.errors import QueryError
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.examples import ensemble_of, figure_1
from xcount.problem.problem import Problem
from xcount.question.domain import Domain
from xcount.question.grid import Grid
from xcount.question.query import Query
from xcount.verified.question_file import question_text

pytestmark = pytest.mark.filterwarnings(
    "ignore:the cut-off .* is a margin:xcount.errors.QueryWarning"
)


def class_question(seed: int) -> tuple[Ensemble, dict[str, Any], dict[str, Any]]:
    """Return a flip between several classes."""
    numbers = (seed * 1000 + i for i in range(1000))
    ensemble = next(m for m in map(random_classifier, numbers) if m.n_outputs > 1)
    return ensemble, random_words(seed, ensemble), {"flip": True}


def votes_question(seed: int) -> tuple[Ensemble, dict[str, Any], dict[str, Any]]:
    """Return a gap in the probability of a forest, which is its margin."""
    ensemble, words, change = QUESTIONS["probability"](seed)
    return replace(ensemble, probability="margin"), words, change


WRITTEN = {
    "gap": QUESTIONS["gap"],
    "flip": QUESTIONS["flip"],
    "sure flip": QUESTIONS["sure flip"],
    "classes": class_question,
    "votes": votes_question,
}


def problem_of(ensemble: Ensemble, **words: Any) -> Problem:
    """Return a question about all regions, without missing cells."""
    return Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, **words))


@pytest.mark.parametrize("block", range(3))
@pytest.mark.parametrize("kind", WRITTEN)
def test_the_text_has_the_answer_of_the_definition(kind: str, block: int) -> None:
    """Ties, bases, averages, categories, missing cells, huge and tiny leaves, any distance."""
    for seed in range(block * 20, (block + 1) * 20):
        ensemble, words, change = WRITTEN[kind](seed)
        has_missing = seed % 2 == 1
        expected = oracle.changing_regions(ensemble, **words, missing=has_missing, **change)
        grid = Grid.of(ensemble, missing="cell" if has_missing else "none")
        text = question_text(Problem(ensemble, grid, Query.of(ensemble, **words, **change)))
        assert (seed, question_oracle.sensitive_regions(text)) == (seed, expected)


@pytest.mark.parametrize("kind", WRITTEN)
def test_cells_that_may_only_be_left_are_closed(kind: str) -> None:
    """Missing values, and categories that the model does not know."""
    for seed in range(20):
        ensemble, words, change = WRITTEN[kind](seed + 500)
        closed = test_only_starts.closed_categories(ensemble, seed)
        problem = test_only_starts.problem_of(ensemble, words, change, closed)
        expected = test_only_starts.truth_of(ensemble, words, change, closed)
        found = question_oracle.sensitive_regions(question_text(problem))
        assert (seed, found) == (seed, expected)


def domain_problem(seed: int, n_rules: int) -> tuple[Problem, tuple[int, int]] | None:
    """Return a question in a random domain, and its count and number of regions; None if empty."""
    world = random_world(seed, n_rules)
    rng = np.random.default_rng([seed, 5])
    n = int(rng.integers(1, min(2, len(world.features)) + 1))
    names = [str(name) for name in rng.choice(world.features, n, replace=False)]
    distance = [1, 2, 3, None][int(rng.integers(4))]
    gap = [Fraction(0), Fraction(1, 2), Fraction(3, 10), Fraction(1), None][int(rng.integers(5))]
    change = {"flip": True, "cutoff": 0} if gap is None else {"gap": gap}
    domain = Domain.of(**world.words)
    ensemble = domain.pulled_back(world.ensemble)
    query = Query.of(ensemble, names, distance=distance, **change)
    try:
        grid = Grid.of(ensemble, missing="cell" if world.missing else "none", domain=domain)
        return Problem(ensemble, grid, query), world.count(names, distance, gap)
    except QueryError:  # no region is left, or the sensitive features cannot change
        return None


@pytest.mark.parametrize("n_rules", [0, 1, 2])
def test_domains_are_written(n_rules: int) -> None:
    """One-hot groups, conditions and rules, at distances that count the guards left out."""
    found = [asked for seed in range(60) if (asked := domain_problem(seed, n_rules)) is not None]
    assert len(found) > 20
    for problem, expected in found:
        sensitive = question_oracle.sensitive_regions(question_text(problem))
        assert (sum(sensitive.values()), len(sensitive)) == expected


def test_the_text_is_that_of_the_format_page() -> None:
    """The page's example is what the program writes, but for its comments."""
    page = Path(__file__).parents[2] / "docs" / "question-format.md"
    example = page.read_text(encoding="utf-8").partition("```text\n")[2].partition("```")[0]
    text = question_text(problem_of(figure_1(), sensitive="f0", gap=80, distance=1))
    assert _uncommented(text) == _uncommented(example)
    assert question_oracle.count(example) == 2


def _uncommented(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_comments_say_what_cells_are() -> None:
    """Names of any kind stay on their line, in ASCII."""
    ages = ensemble_of((0, 30.0, 0.0, 1.0), (1, 0.5, 0.0, 2.0), (2, 0.5, 0.0, 4.0))
    names = ("âge\n# end", "race_White", "race_Black")
    model = replace(ages, features=tuple(map(Feature, names)))
    domain = Domain.of(one_hot="race=race_White,race_Black,+none")
    grouped = domain.pulled_back(model)
    problem = Problem(grouped, Grid.of(grouped, domain=domain), Query.of(grouped, 0, gap=0))
    text = question_text(problem)
    assert text.isascii()
    lines = [line.partition(" {")[2] for line in text.splitlines() if line.startswith("# feature")]
    age, race = (json.loads("{" + line) for line in lines)
    assert age == {"name": "âge\n# end", "numbers": [[[None, 30.0]], [[30.0, None]]]}
    assert race == {"name": "race", "columns": [["race_White"], ["race_Black"], [None]]}


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_a_gap_in_a_sigmoid_or_softmax_is_refused(n_outputs: int) -> None:
    """It is no question about integers."""
    model = figure_1()
    kind = "sigmoid" if n_outputs == 1 else "softmax"
    model = replace(model, probability=kind, base=(0.0,) * n_outputs)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match=f"a gap in the {kind} of the margin is no question"):
        question_text(problem_of(model, sensitive="f0", probability_gap=0.1, class_=0))


def test_a_sure_flip_between_classes_is_refused() -> None:
    """Its probability depends on all margins."""
    model = replace(figure_1(), probability="softmax", base=(0.0, 0.0), task="multiclass")
    with pytest.raises(QueryError, match="flip between classes with --from-probability"):
        question_text(problem_of(model, sensitive="f0", flip=True, from_probability=0.5))
