"""Gaps, groups and limits in the user's words; keys of tasks."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from strategies import random_ensemble

from xcount.answers.inspection import leaf_scale
from xcount.counters.settings import Settings
from xcount.errors import QueryError
from xcount.measures.weighting import Weighing
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.examples import ensemble_of, figure_1
from xcount.problem.problem import Problem
from xcount.question.flip import Flip
from xcount.question.gap import Gap, ProbabilityGap
from xcount.question.grid import Grid
from xcount.question.probability import Votes
from xcount.question.query import Query
from xcount.question.share import Limit
from xcount.runs.plan import choose_changes, choose_gaps, choose_groups, choose_max_shares
from xcount.runs.task import Question, Task, fingerprint


def odds(ensemble: Ensemble) -> Ensemble:
    """Return the model as a boosted binary classifier."""
    return replace(ensemble, task="binary", probability="sigmoid")


def test_probability_gaps_are_gaps_of_the_models_own_probability() -> None:
    """Ascending, each once; as the model makes probabilities, and said to be given so."""
    chosen = choose_changes(odds(figure_1()), probability_gaps=["0.2", "0.1", 0.2])
    assert chosen.values == (ProbabilityGap(Fraction(1, 10)), ProbabilityGap(Fraction(1, 5)))
    assert "predicted probability" in chosen.origin
    votes = replace(figure_1(), task="binary", probability="margin")
    (change,) = choose_changes(votes, probability_gaps="0.1", direction="up").values
    assert change == ProbabilityGap(Fraction(1, 10), 0, "up", Votes())


def test_probability_gaps_need_probabilities() -> None:
    """A regressor has none, a dump does not tell, and 10 is none."""
    regressor = replace(figure_1(), task="regression", probability="none")
    for ensemble, words, gap in (
        (regressor, "regression model predicts no probability", 0.1),
        (figure_1(), "does not say how to compute a probability", 0.1),
        (odds(figure_1()), "between 0 and 1", 10),
        (odds(figure_1()), "no gap given", []),
    ):
        with pytest.raises(QueryError, match=words):
            choose_changes(ensemble, probability_gaps=gap)
    for more in ({"gaps": 1}, {"flip": True}):
        with pytest.raises(QueryError, match="not both"):
            choose_changes(odds(figure_1()), probability_gaps=0.1, **more)


def test_the_ladder_follows_the_leaves() -> None:
    """Leaves ten times as large have gaps ten times as large."""
    small = ensemble_of((0, 1.0, 0.0, 0.2), (1, 1.0, -0.1, 0.1))
    large = ensemble_of((0, 1.0, 0.0, 2.0), (1, 1.0, -1.0, 1.0))
    gaps = choose_gaps(small, 0).values
    assert choose_gaps(large, 0).values == tuple(10 * gap for gap in gaps)
    assert gaps == (Fraction(1, 50), Fraction(1, 20), Fraction(1, 10))
    assert gaps[0] < leaf_scale(small, 0)
    assert leaf_scale(small, 0) == pytest.approx(math.sqrt(0.01 + 0.01))


def test_gaps_are_sorted_and_said_once() -> None:
    """Two spellings of one number are one gap."""
    assert choose_gaps(figure_1(), 0, gaps="2, 0.5,2.0").values == (Fraction(1, 2), Fraction(2))


def test_leaves_that_suggest_no_gap_are_an_error() -> None:
    """Equal leaves have no scale."""
    with pytest.raises(QueryError, match="give one"):
        choose_gaps(ensemble_of((0, 1.0, 3.0, 3.0)), 0)


def test_without_groups_every_used_feature_is_audited() -> None:
    """A feature that no tree tests is left out."""
    ensemble = ensemble_of((0, 1.0, 0.0, 1.0), (2, 1.0, 0.0, 1.0), n_features=4)
    assert choose_groups(ensemble, Grid.of(ensemble), None) == ((0,), (2,))


def test_what_a_limit_names_is_audited_though_no_tree_tests_it() -> None:
    """Groups as well as features, each once; named groups alone are what they are."""
    ensemble = ensemble_of((0, 1.0, 0.0, 1.0), (2, 1.0, 0.0, 1.0), n_features=4)
    grid = Grid.of(ensemble)
    assert choose_groups(ensemble, grid, None, [(3,), (0,)]) == ((0,), (2,), (3,))
    assert choose_groups(ensemble, grid, None, [(0, 3)]) == ((0,), (2,), (0, 3))
    assert choose_groups(ensemble, grid, "f2", [(3,)]) == ((2,),)
    constant = ensemble_of((0, 1.0, 0.0, 1.0), n_features=2)
    constant = replace(constant, trees=())
    assert choose_groups(constant, Grid.of(constant), None, [(1,)]) == ((1,),)


def test_a_limit_of_a_removed_column_says_so() -> None:
    """A typing error gets a suggestion; a column that is gone, the way to drop its limit."""
    ensemble = replace(figure_1(), features=(Feature("age"), Feature("Gender")))
    with pytest.raises(QueryError, match=r"did you mean 'Gender'\?.* removed .* drop its limit"):
        choose_max_shares(ensemble, ((0,),), "10%,Gendr=1%")
    with pytest.raises(QueryError, match=r"named twice in Gender, Gender$"):
        choose_max_shares(ensemble, ((0,),), "Gender+Gender=1%")


def test_groups_in_all_spellings() -> None:
    """A group is a name, an index, names with commas, or a list; equal groups are one."""
    ensemble = figure_1()
    groups = choose_groups(ensemble, Grid.of(ensemble), ["f0", 1, "f1,f0", ["f0", "f1"]])
    assert groups == ((0,), (1,), (0, 1))
    by_numpy: Any = np.int64(1)
    assert choose_groups(ensemble, Grid.of(ensemble), by_numpy) == ((1,),)


def test_max_shares_for_all_and_per_feature() -> None:
    """A number is for all; names override it; the features of a group are joined by +."""
    ensemble = figure_1()
    groups = ((0,), (1,), (0, 1))
    cases: list[tuple[Any, tuple[float | None, ...]]] = [
        (0.5, (0.5, 0.5, 0.5)),
        ("f0=0.01,f1=0", (0.01, 0.0, None)),
        ("0.2,f0+f1=0.01", (0.2, 0.2, 0.01)),
        ("1.1%,f0=5 %", (0.05, 0.011, 0.011)),
        ({"f1": 0.3}, (None, 0.3, None)),
        ({0: 0.1, (0, 1): 0.2}, (0.1, None, 0.2)),
        (None, (None, None, None)),
    ]
    for given, expected in cases:
        found = choose_max_shares(ensemble, groups, given)
        assert tuple(None if limit is None else float(limit) for limit in found) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f1=0.1", "not audited: name it in --sensitive, too, or drop its share"),
        ("f0=2", "between 0 and 1"),
        ("f0=x", "not a share"),
        ("f9=0", "range"),
        ("f0=0.1,f0=0.2", "names 'f0' twice"),
        ("f0=0.1, f0 =0.1", "names 'f0' twice"),
        ("f0=10%,0=50%", "names '0' twice"),
        ("0.1,0.2", "two shares for all features"),
    ],
)
def test_wrong_max_shares_are_named(text: str, message: str) -> None:
    """The error says what is wrong."""
    with pytest.raises(QueryError, match=message):
        choose_max_shares(figure_1(), ((0,),), text)


def test_a_name_with_an_equals_sign_can_have_a_limit() -> None:
    """The last equals sign parts the name from the share."""
    ensemble = replace(figure_1(), features=(Feature("a=b"), Feature("c")))
    assert choose_max_shares(ensemble, ((0,),), "a=b=0.5") == (Limit(Fraction(1, 2)),)


def test_keys_differ_when_the_question_does() -> None:
    """Each part of a question is part of its key; limits, verdicts and examples are not."""
    ensemble = random_ensemble(1)
    query, settings = Query((0,), Gap(Fraction(1))), Settings()
    base = Problem(ensemble, Grid.of(ensemble), query)
    with_missing = Problem(ensemble, Grid.of(ensemble, missing="cell"), query)
    asked = Question(query, settings)
    task = Task(base, asked, (fingerprint(ensemble),))
    other_questions = [
        replace(asked, query=replace(query, change=Gap(Fraction(2)))),
        replace(asked, query=replace(query, change=Gap(Fraction(1), 1))),
        replace(asked, query=replace(query, change=Flip(Fraction(1)))),
        replace(asked, query=replace(query, distance=1)),
        replace(asked, query=replace(query, precision=3)),
        replace(asked, settings=replace(settings, seed=1)),
        replace(asked, settings=replace(settings, epsilon=0.2)),
        replace(asked, method="brute"),
        replace(asked, weighing=Weighing(("volume",))),
    ]
    others = [replace(task, question=question) for question in other_questions]
    others += [replace(task, base=with_missing), replace(task, scope=("other",))]
    assert len({task.key, *(other.key for other in others)}) == len(others) + 1
    same = [
        replace(asked, settings=replace(settings, timeout_seconds=1.0)),
        replace(asked, settings=replace(settings, max_share=Limit(Fraction(1, 10)))),
        replace(asked, n_witnesses=1),
    ]
    assert {replace(task, question=question).key for question in same} == {task.key}


def test_a_live_model_is_known_by_its_trees() -> None:
    """Equal trees have one fingerprint; any change of a tree changes it."""

    def made(leaf: float) -> Ensemble:
        return ensemble_of((0, 1.0, leaf, 1.0))

    assert fingerprint(made(0.5)) == fingerprint(made(0.5))
    assert fingerprint(made(0.5)) != fingerprint(made(0.25))
    assert fingerprint(replace(made(0.5), sha256="ab")) == "ab"


@pytest.mark.parametrize("share", ["nan%", "nan", "1e4000000%", "1e4000000", "inf", "1/0", "x"])
def test_what_is_no_share_is_refused_at_once(share: str) -> None:
    """Numbers without a value, without an end, or of millions of digits."""
    with pytest.raises(QueryError, match=r"is not a share|does not lie between 0 and 1"):
        choose_max_shares(figure_1(), [(0,)], share)
    with pytest.raises(ValueError, match=r"is not a share|does not lie between 0 and 1"):
        Limit.share(share)


def test_shares_are_read_alike_everywhere() -> None:
    """Of one count and of an audit: decimals, per cent, fractions."""
    for text, share in (("1/3", 1 / 3), ("1.1%", 0.011), ("0.25", 0.25), ("1e-3", 0.001), ("0", 0)):
        [limit] = choose_max_shares(figure_1(), [(0,)], f"f0={text}")
        assert limit == Limit.share(text)
        assert float(Limit.share(text)) == share
