"""Questions in the user's words: what is understood, and what is refused with which advice."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import xcount
from xcount.errors import QueryError, QueryWarning
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.examples import ensemble_of
from xcount.question.change import decimal_text
from xcount.question.flip import Flip
from xcount.question.gap import Gap
from xcount.question.query import Query, parse_gap, resolve_features
from xcount.testing import assert_share

PERSON = Ensemble(
    tuple(Feature(name) for name in ("age", "hours, paid", "sex", "f0", "7")), (), (0.0,)
)
CLASSES = Ensemble((Feature("a"),), (), (0.0,) * 3, class_labels=("cat", "dog", "2"))


@pytest.mark.parametrize(
    ("sensitive", "expected"),
    [
        ("age", (0,)),
        ("sex,age", (0, 2)),
        (" sex , age ", (0, 2)),
        ("hours, paid", (1,)),
        (["hours, paid", "sex"], (1, 2)),
        ("f2", (2,)),
        ("2", (2,)),
        (2, (2,)),
        (np.int64(2), (2,)),
        ([2, "age"], (0, 2)),
        ("f0", (3,)),  # a feature of that name wins over the index
        ("7", (4,)),
        ("f4", (4,)),
    ],
)
def test_features_have_names_and_numbers(sensitive: str, expected: tuple[int, ...]) -> None:
    """By name, as fN, by index; a list with commas; a name that has a comma itself."""
    assert resolve_features(PERSON, sensitive) == expected


@pytest.mark.parametrize(
    ("sensitive", "message"),
    [
        ("agee", "unknown feature 'agee'; did you mean 'age'?"),
        ("SEX", "unknown feature 'SEX'; did you mean 'sex'?"),
        ("zzzzzz", "unknown feature 'zzzzzz'; the model has 'age', 'hours, paid', 'sex'"),
        ("f9", "feature index 9 is out of range: the model has 5"),
        ("-1", "unknown feature '-1'"),
        (-1, "unknown feature '-1'"),
        ("", "no sensitive feature given"),
        ([], "no sensitive feature given"),
        ("age,0", "named twice"),
        ("age,age", "named twice"),
    ],
)
def test_unknown_features_are_refused_with_advice(sensitive: str, message: str) -> None:
    """The nearest name, or the first few."""
    with pytest.raises(QueryError) as caught:
        resolve_features(PERSON, sensitive)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("gap", "expected"),
    [
        ("0.05", Fraction(1, 20)),
        (0.05, Fraction(1, 20)),  # the decimal that is meant, not the float's expansion
        ("2", Fraction(2)),
        (" 1e-3 ", Fraction(1, 1000)),
        (0, Fraction(0)),
        ("0E-999", Fraction(0)),
        (Fraction(1, 3), Fraction(1, 3)),
    ],
)
def test_a_gap_is_the_decimal_that_its_text_says(gap: object, expected: Fraction) -> None:
    """Exactly, without a float in between."""
    assert parse_gap(gap) == expected


@pytest.mark.parametrize(
    ("gap", "message"),
    [
        ("-1", "must not be negative"),
        (-0.5, "must not be negative"),
        ("nan", "finite"),
        (float("nan"), "finite"),
        ("inf", "finite"),
        ("two", "must be a number such as 0.5 or 1/2, not 'two'"),
        ("", "must be a number such as 0.5 or 1/2"),
        (None, "must be a number such as 0.5 or 1/2"),
        ("1e309", "outside the range"),
        ("1e999999999", "outside the range"),
        ("1e-999999999", "outside the range"),
    ],
)
def test_a_gap_is_a_number_from_0_on(gap: object, message: str) -> None:
    """Huge exponents are refused before they fill the memory."""
    with pytest.raises(QueryError, match=message):
        parse_gap(gap)


@pytest.mark.parametrize(("distance", "expected"), [(1, 1), ("3", 3), ("any", None), (None, None)])
def test_distances(distance: object, expected: int | None) -> None:
    """A whole number, or any."""
    assert Query.of(PERSON, "age", 1, distance=distance).distance == expected


@pytest.mark.parametrize("distance", [0, -1, "0", 1.5, "many", "", "²", True])
def test_a_distance_is_at_least_1(distance: object) -> None:
    """A pair at distance 0 is not a pair."""
    with pytest.raises(QueryError, match="the distance must be a whole number >= 1 or 'any'"):
        Query.of(PERSON, "age", 1, distance=distance)


@pytest.mark.parametrize("precision", [-1, 31, "3.5", "fine", "", float("nan")])
def test_precisions_that_make_no_sense(precision: object) -> None:
    """A number of decimals, or exact."""
    with pytest.raises(QueryError, match="the precision must be 'exact' or a number of decimals"):
        Query.of(PERSON, "age", 1, precision=precision)


@pytest.mark.parametrize(("output", "expected"), [(1, 1), ("1", 1), ("dog", 1), ("2", 2), (0, 0)])
def test_classes_have_labels_and_numbers(output: object, expected: int) -> None:
    """A label wins over a number."""
    assert Query.of(CLASSES, "a", 1, class_=output).change == Gap(Fraction(1), expected)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (None, r"the model has 3 classes \(cat, dog, 2\); say which one with --class"),
        (3, "unknown class '3'; the classes are cat, dog, 2"),
        (-1, "unknown class '-1'"),
        ("bird", "unknown class 'bird'; the classes are cat, dog, 2"),
    ],
)
def test_a_class_must_be_one_of_the_models(output: object, message: str) -> None:
    """With several classes the question has to name one."""
    with pytest.raises(QueryError, match=message):
        Query.of(CLASSES, "a", 1, class_=output)


def test_what_is_no_class_is_not_called_one() -> None:
    """Targets of a regression are outputs; without names, numbers are what is listed."""
    targets = replace(CLASSES, task="multitarget", class_labels=None)
    with pytest.raises(QueryError, match="the model has 3 outputs; say which one"):
        Query.of(targets, "a", 1)
    with pytest.raises(QueryError, match=r"unknown class 'x'; the outputs are 0\.\.2"):
        Query.of(targets, "a", 1, class_="x")
    many = replace(CLASSES, base=(0.0,) * 30, class_labels=tuple(f"c{i}" for i in range(30)))
    with pytest.raises(QueryError, match=r"c18, c19, \.\.\.$"):
        Query.of(many, "a", 1, class_="x")


@pytest.mark.parametrize("cutoff", ["0", "1", "-0.5", "1.5"])
def test_a_cutoff_that_is_no_probability_needs_no_note(cutoff: str) -> None:
    """Warnings are errors here."""
    log_odds = replace(PERSON, probability="sigmoid")
    assert Query.of(log_odds, "age", None, flip=True, cutoff=cutoff).change == Flip(
        Fraction(cutoff)
    )
    votes = replace(PERSON, probability="margin")
    Query.of(votes, "age", None, flip=True, cutoff="0.5")


@pytest.mark.parametrize(
    ("cutoff", "slope", "said"),
    [
        ("0.5", 1.0, "a probability of 0.62; a probability of 0.5 is the cut-off 0$"),
        ("0.3", 1.0, "a probability of 0.57; a probability of 0.3 is the cut-off -0.8473$"),
        ("0.5", 2.0, "a probability of 0.73; a probability of 0.5 is the cut-off 0$"),
    ],
)
def test_a_cutoff_in_log_odds_that_looks_like_a_probability_is_noted(
    cutoff: str, slope: float, said: str
) -> None:
    """It is taken as it is, and what it means is said."""
    log_odds = replace(PERSON, probability="sigmoid", slope=slope)
    with pytest.warns(QueryWarning, match=said):
        query = Query.of(log_odds, "age", None, flip=True, cutoff=cutoff)
    assert query.change == Flip(Fraction(cutoff))


def test_the_only_output_needs_no_name() -> None:
    """Binary and regression models have one sum."""
    assert Query.of(PERSON, "age", 1).change == Gap(Fraction(1), 0)


@pytest.mark.parametrize("decides_at", [0.0, 0.5])
def test_a_flip_is_where_the_model_decides(decides_at: float) -> None:
    """Its own cut-off, unless another one is given; of several classes none."""
    model = replace(PERSON, decides_at=decides_at)
    assert Query.of(model, "age", flip=True).change == Flip(Fraction(decides_at))
    assert Query.of(model, "age", flip=True, cutoff="0.25").change == Flip(Fraction(1, 4))
    assert Query.of(replace(CLASSES, decides_at=0.5), "a", flip=True).change == Flip(None)


def test_a_file_that_does_not_tell_needs_a_cutoff() -> None:
    """Without its base score, a dump's margins are shifted by an unknown number."""
    model = replace(PERSON, decides_at=None)
    with pytest.raises(QueryError, match="does not say where the model decides"):
        Query.of(model, "age", flip=True)
    assert Query.of(model, "age", flip=True, cutoff=1).change == Flip(Fraction(1))


def test_a_query_error_is_a_value_error() -> None:
    """Callers who expect Python's own exception get it."""
    with pytest.raises(ValueError, match="unknown feature"):
        Query.of(PERSON, "agee", 1)


@pytest.mark.parametrize("text", ["0", "2", "0.05", "80", "0.001", "12.5", "100"])
def test_decimals_are_written_as_they_were_read(text: str) -> None:
    """Text -> fraction -> the same text."""
    assert decimal_text(parse_gap(text)) == text


def test_a_gap_without_a_finite_decimal_is_written_as_a_fraction_or_a_float() -> None:
    """1/3 has no finite decimal; what is written is still readable as a number."""
    assert float(Fraction(decimal_text(Fraction(1, 3)))) == 1 / 3


def test_any_other_value_counts_unless_a_distance_is_given() -> None:
    """Codes have an order for the model, yet the default asks about every other code."""
    model = ensemble_of((0, 1.0, 0.0, 0.6), (0, 2.0, 0.0, 0.6), n_features=1)
    assert Query.of(model, 0, 1).distance is None
    assert xcount.count(model, sensitive=0, gap=1).count == 2
    assert xcount.count(model, sensitive=0, gap=1, distance=1).count == 0
    assert [r.count for r in xcount.audit(model, gaps=1).results] == [2]
    assert [r.distance for r in xcount.audit(model, gaps=1, distances="1,any").results] == [1, None]
    (row,) = xcount.compare([model, model], gaps=1).rows
    assert [result and result.count for result in row.results] == [2, 2]
    assert len(xcount.witnesses(model, sensitive=0, gap=1, n=1)) == 1
    with pytest.raises(AssertionError, match="FAIL"):
        assert_share(model, sensitive=0, gap=1, max_share=0)


def test_an_index_that_looks_like_a_column_is_refused() -> None:
    """On columns F1 to F3, f1 is neither F1 nor the column of index 1; both can be written."""
    stumps = ensemble_of(*((f, 1.0, 0.0, 1.0) for f in range(3)))
    columns = tuple(Feature(name) for name in ("F1", "F2", "F3"))
    model = replace(stumps, features=columns)
    for word, meant in (("f1", "'F2'"), ("f3", "'F3'")):
        with pytest.raises(QueryError, match=f"'{word}' is not the name of a column: .*{meant}"):
            xcount.count(model, sensitive=word, gap=0)
    for words in ({"where": "f1 < 1"}, {"measures": "volume", "bounds": {"f2": (0, 1)}}):
        with pytest.raises(QueryError, match="is not the name of a column"):
            xcount.count(model, sensitive="F3", gap=0, **words)
    assert [resolve_features(model, word) for word in ("F1", "f0", "1", 1)] == [
        (0,),
        (0,),
        (1,),
        (1,),
    ]
    named = replace(stumps, features=tuple(Feature(name) for name in ("f1", "f2", "F1")))
    assert [resolve_features(named, word) for word in ("f1", "F1")] == [(0,), (2,)]


@pytest.mark.parametrize("gap", ["5%", " 5 % "])
def test_a_gap_in_percent_is_refused(gap: str) -> None:
    """0.05 of log-odds is hardly ever meant."""
    model = ensemble_of((0, 1.0, 0.0, 1.0))
    with pytest.raises(QueryError, match="--probability-gap"):
        xcount.count(model, sensitive=0, gap=gap)
    with pytest.raises(QueryError, match="--probability-gap"):
        xcount.audit(model, gaps=gap)
