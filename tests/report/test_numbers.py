"""Numbers as people read them."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from report.samples import count_of
from xcount.report.numbers import integer, percent, scientific, seconds_text, share_text, time_text
from xcount.report.shares import Share


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
    assert share_text(every) == "about 100 %"
    assert share_text(count_of("a", "1", 0, low=0, high=5)) == "about 0 %"
    assert share_text(count_of("a", "1", 0)) == "0 %"


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
        share = Share.of(count_of("a", "1", **words))
        assert share is not None
        return share.among

    assert said(count=81_700) == "in 8.17 % of all regions"
    estimate = said(count=81_700, low=52_700, high=119_000)
    assert estimate == "in about 8.17 % (5.27 to 11.9 %) of all regions"
    rare = said(count=10, low=9, high=11)
    assert rare.startswith("in about 1 in 100,000 (1 in 111,000 to 1 in 90,900)")
