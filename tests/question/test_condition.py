"""Conditions as people write them, and the values that fulfil them."""

from __future__ import annotations

import math

import pytest

from xcount.errors import QueryError
from xcount.model.ensemble import Feature
from xcount.question.condition import parse_conditions
from xcount.question.values import ValueSet

AGE = Feature("age")
SEX = Feature("sex", (0, 1), ("Female", "Male"))
HASHED = Feature("race", (0, 1), ("#4208935421", "(other)"), hashes=(4208935421,), other=1)
INF = math.inf


def after(number: float) -> float:
    """Return the next float."""
    return math.nextafter(number, INF)


def values(text: str, feature: Feature = AGE, dtype: str = "float64") -> ValueSet:
    """Return the values that fulfil all conditions of a text."""
    found = ValueSet.everything(feature)
    for condition in parse_conditions(text):
        assert condition.name == feature.name
        found &= condition.test.values(feature, dtype)
    return found


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("age >= 25", [(25.0, INF)]),
        ("25 <= age", [(25.0, INF)]),
        ("age>25", [(after(25.0), INF)]),
        ("age < 65", [(-INF, 65.0)]),
        ("age <= 65", [(-INF, after(65.0))]),
        ("25 <= age < 65", [(25.0, 65.0)]),
        ("65 > age >= 25", [(25.0, 65.0)]),
        ("age == 3", [(3.0, after(3.0))]),
        ("age != 3", [(-INF, 3.0), (after(3.0), INF)]),
        ("age in {3, 1}", [(1.0, after(1.0)), (3.0, after(3.0))]),
        ("age not in {3}", [(-INF, 3.0), (after(3.0), INF)]),
        ("age > -1e3 and age < 2.5", [(after(-1000.0), 2.5)]),
        ("65 < age < 25", []),
        ("`age` >= '25'", [(25.0, INF)]),
    ],
)
def test_a_condition_on_numbers_is_a_list_of_intervals(
    text: str, pieces: list[tuple[float, float]]
) -> None:
    """Bounds are half-open; a missing value fulfils none of these."""
    assert values(text) == ValueSet(tuple(pieces))


def test_bounds_are_rounded_as_inputs_are() -> None:
    """A float32 model compares float32(0.1): so does a condition."""
    pieces = values("age <= 0.1", dtype="float32").pieces
    assert 0.1 < pieces[0][1] < 0.1000001
    assert values("age == 0.1", dtype="float32").pieces[0][0] == pytest.approx(0.1, abs=1e-8)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("sex == Male", {1}),
        ("sex != Male", {0}),
        ("sex == 1", {1}),
        ("sex in {Male, Female}", {0, 1}),
        ('sex in {"Male"}', {1}),
        ("sex not in {0}", {1}),
    ],
)
def test_categories_are_named_by_label_or_code(text: str, codes: set[int]) -> None:
    """A missing value fulfils none of these either."""
    assert values(text, SEX) == ValueSet(codes=frozenset(codes))


def test_missing_values_are_asked_about_by_name() -> None:
    """``is missing`` is fulfilled by nothing else."""
    assert values("age is missing") == ValueSet(has_missing=True)
    assert values("age is not missing") == ValueSet(((-INF, INF),))


@pytest.mark.parametrize(
    ("text", "feature", "message"),
    [
        ("age", AGE, "cannot read the condition"),
        ("age >=", AGE, "cannot read the condition"),
        ("age in {}", AGE, "cannot read the condition"),
        ("1 < age > 3", AGE, "cannot read the condition"),
        ("age == 1 == 2", AGE, "cannot read the condition"),
        ("age => 3", AGE, "write >= for at least"),
        ("age = 3", AGE, "write == for equal"),
        ("age > 3 or age < 1", AGE, "there is no 'or'"),
        ("age > 3 & age < 9", AGE, "join conditions with 'and'"),
        ("sex in (Male, Female)", SEX, "'in' in braces"),
        ("sex in {}", SEX, "at least one value"),
        ("age is absent", AGE, "only 'is missing' and 'is not missing' are possible"),
        ("'age is 3", AGE, "only 'is missing' and 'is not missing' are possible"),
        ("'age in", AGE, "a quote is not closed"),
        ("age >= old", AGE, "'old' is not a number"),
        ("age >= nan", AGE, "'nan' is not a number"),
        ("sex >= Male", SEX, "are not ordered"),
        ("sex == Other", SEX, "no category 'Other'; it has Female, Male"),
        (
            "race in {White}",
            HASHED,
            "does not contain the names of its categories.*save_model.*pool=pool",
        ),
        ("sex == femal", SEX, "no category 'femal'; did you mean 'Female'"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, feature: Feature, message: str) -> None:
    """With what was found, and what would do."""
    with pytest.raises(QueryError, match=message):
        values(text, feature)


def test_the_complement_has_all_other_values() -> None:
    """Both together are everything, and share nothing."""
    some = values("age in {1, 2}")
    others = some.complement(AGE)
    assert not some & others
    assert others.has_missing
    assert others.pieces == ((-INF, 1.0), (after(1.0), 2.0), (after(2.0), INF))
    assert others.complement(AGE) == some
