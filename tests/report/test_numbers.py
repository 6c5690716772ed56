"""Numbers as people read them."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import xcount.report
from report.samples import count_of
from xcount.answers.explanation import Effect, Explanation, Place
from xcount.question.share import Limit
from xcount.report.explanation_words import effect_sentence
from xcount.report.lead import share_shown
from xcount.report.page.explained import explained
from xcount.report.words.numbers import (
    axis_words,
    confidence_words,
    estimate_words,
    integer,
    limit_percent,
    percent,
    scientific,
    seconds_text,
    share_and_interval,
    share_words,
    time_text,
)
from xcount.report.words.shares import among_whom
from xcount.support.interval import Interval


@given(st.integers(1, 10**30), st.integers(1, 10**30))
def test_percentages_are_close_and_never_lie_about_the_ends(a: int, b: int) -> None:
    """Three digits are right; 0 % and 100 % are only said when they are meant."""
    count, total = min(a, b), max(a, b)
    text = percent(count, total)
    assert (text == "100 %") == (count == total)
    assert text != "0 %"
    if text.startswith(">"):
        assert Fraction(count, total) > Fraction(999, 1000)
        return
    shown = _odds(text) if text.startswith("1 in ") else Fraction(text.removesuffix(" %")) / 100
    assert abs(shown / Fraction(count, total) - 1) < Fraction(1, 100)


def _odds(text: str) -> Fraction:
    """Read ``1 in 3.4 million``."""
    mantissa, _, power = text.removeprefix("1 in ").partition(" \u00d7 10")
    number, _, word = mantissa.partition(" ")
    exponent = int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or 0)
    exponent += {"": 0, "million": 6, "billion": 9, "trillion": 12}[word]
    return 1 / (Fraction(number.replace(",", "")) * Fraction(10) ** exponent)


@given(st.integers(0, 10**40))
def test_integers_are_whole_or_three_digits(value: int) -> None:
    """Up to 15 digits an integer is shown whole."""
    text = integer(value)
    if value < 10**15:
        assert int(text.replace(",", "")) == value
    else:
        assert text == scientific(Fraction(value))


def test_an_estimate_of_all_or_none_is_about() -> None:
    """Only an exact count says 100 % or 0 % without more ado."""
    every = count_of("a", "1", 10**6, low=900_000, high=10**6)
    assert estimate_words(every.judged) == "about 100 %"
    assert estimate_words(count_of("a", "1", 0, low=0, high=5).judged) == "about 0 %"
    assert estimate_words(count_of("a", "1", 0).judged) == "0 %"


def test_times_and_durations() -> None:
    """As people write them."""
    assert time_text("2026-03-01T12:30:00+00:00") == "1 March 2026, 12:30 UTC"
    assert time_text("") == ""
    assert [seconds_text(s) for s in (0.001, 0.25, 59.9, 60, 3700)] == [
        "< 0.01 s",
        "0.25 s",
        "1 min 0 s",
        "1 min 0 s",
        "1 h 1 min",
    ]


def test_an_estimate_in_a_sentence_says_so_and_between_what_it_lies() -> None:
    """An exact share is said without more ado, small ones as odds, bounds as bounds."""

    def said(**words: int) -> str:
        return among_whom(share_shown(count_of("a", "1", **words), "regions"))

    assert said(count=81_700) == "in 8.17 % of all regions"
    estimate = said(count=81_700, low=52_700, high=119_000)
    assert estimate == "in about 8.17 % (5.27 to 11.9 %) of all regions"
    rare = said(count=10, low=9, high=11)
    assert rare.startswith("in about 1 in 100,000 (1 in 111,000 to 1 in 90,900)")


@pytest.mark.parametrize("n", [879, 1071, 9, 11, 13, 2997])
def test_a_share_is_rounded_one_way_whoever_writes_it(n: int) -> None:
    """As a fraction, a float, or a product of floats; in the terminal and on the page."""
    exact, known = Fraction(n, 6000), Interval(n / 6000, n / 6000, n / 6000)
    text = share_words(exact)
    place = Place("regions", "a < 1", (), n / 6000, known, known, known, True, 1.0)
    result = replace(count_of("a", "1", 500), explanation=Explanation(places=(place,)))
    said = {
        percent(n, 6000),
        share_words(n / 6000),
        share_words(n / 6000 * 0.3 / 0.3),
        share_and_interval(known),
        estimate_words(Interval.exactly(exact)),
    }
    assert said == {text}
    assert f">{text}<" in str(explained(result, "regions")[0])


def test_halves_are_rounded_up() -> None:
    """14.65 % is 14.7 %, though the float nearest to it is less."""
    assert share_words(879 / 6000) == share_words(Fraction(879, 6000)) == "14.7 %"
    assert share_words(0.09996) == "10.0 %"
    assert share_words(1 - 1e-15) == "> 99.9 %"


def test_small_shares_have_one_form() -> None:
    """Odds below 1 in 1,000, of shares, limits and axes alike."""
    small, large = Fraction(1, 4000), Fraction(1, 400)
    assert share_words(small) == limit_percent(Limit(small)) == axis_words(small) == "1 in 4,000"
    assert share_words(large) == "0.250 %"
    assert limit_percent(Limit(large)) == axis_words(large) == "0.25 %"


def test_estimates_and_only_they_say_about() -> None:
    """Whether they are per cent or odds; an interval beside them says the same."""
    for share, text in ((Fraction(1, 4000), "1 in 4,000"), (Fraction(1, 4), "25.0 %")):
        exact, sampled = Interval.exactly(share), Interval(share, share / 2, share * 2)
        assert estimate_words(exact) == text
        assert estimate_words(sampled) == f"about {text}"
        assert share_and_interval(exact) == text
        assert share_and_interval(sampled).startswith(f"{text} (")


def test_the_sentence_of_an_effect_says_about_where_it_is_sampled() -> None:
    """Of the two directions, each by itself."""
    up, down = Interval(0.25, 0.2, 0.3), Interval(0.00025, 0.00025, 0.00025)
    effect = Effect("regions", "margin", "all", up, down, None, (), (), False, 0.95, 100)
    result = replace(count_of("a", "1", 500), explanation=Explanation(effects=(effect,)))
    assert "up for about 25.0 % and down for 1 in 4,000" in effect_sentence(result, "regions")


def test_a_confidence_is_never_rounded_up() -> None:
    """99.9 % is not 100 %."""
    assert [confidence_words(c) for c in (0.5, 0.95, 0.999, 0.9666, 1.0)] == [
        "50%",
        "95%",
        "99.9%",
        "96%",
        "100%",
    ]


def test_nobody_else_writes_per_cent() -> None:
    """One module formats shares; what remains is a bar of progress and a certificate's words."""
    own = re.compile(r"\* 100:|100 \* [a-z_.]+:|:\.\d%\}|:\.\dg\} ?%")
    room = Path(xcount.report.__file__).parent
    found = {
        str(path.relative_to(room))
        for path in room.rglob("*.py")
        if own.search(path.read_text(encoding="utf-8"))
    }
    assert found <= {
        "words/numbers.py",
        "sentences.py",
        "notebook/live.py",
        "explanation_words.py",  # percentage points
    }
