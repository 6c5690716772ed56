"""Intervals: what is exact, what is counted, and means."""

from __future__ import annotations

from fractions import Fraction

from xcount.support.interval import Interval, interval_fields, mean_of


def test_a_number_is_exact_where_its_bounds_meet_for_certain() -> None:
    """Equal bounds prove a number unless they hold with less than certainty."""
    assert Interval.exactly(3).exact
    assert Interval(0.5, 0.5, 0.5).exact
    assert not Interval(0.5, 0.5, 0.5, 0.9).exact
    assert not Interval(0.5, 0.4, 0.6, 1.0).exact


def test_counted_numbers_are_told_from_rounded_ones() -> None:
    """Ints and fractions are exact; a float is rounded."""
    assert Interval.exactly(Fraction(2, 9)).is_counted
    assert not Interval(Fraction(2, 9), 0, 0.5).is_counted


def test_bounds_stand_in_for_a_missing_estimate() -> None:
    """The low and the high bound take the place of an estimate that nobody has."""
    assert (Interval(None, 1, 2).least, Interval(None, 1, 2).most) == (1, 2)
    assert (Interval(1.5, 1, 2).least, Interval(1.5, 1, 2).most) == (1.5, 1.5)


def test_a_mean_needs_every_estimate() -> None:
    """Without one of the estimates, only the means of the bounds are known."""
    known, unknown = Interval.exactly(0.5), Interval.unknown_share()
    assert mean_of([known]).value == 0.5
    assert mean_of([known, unknown]) == Interval(None, 0.25, 0.75)
    assert mean_of([]) == unknown


def test_fields_are_read_as_they_were_written() -> None:
    """An interval stands under the names of its record."""
    fields = interval_fields("rate", "The rate.", {"minimum": 0})
    written = fields.write(Interval(Fraction(1, 4), 0.2, 0.3))
    assert written == {"rate": 0.25, "low": 0.2, "high": 0.3}
    assert fields.read({"text": "men", **written}) == Interval(0.25, 0.2, 0.3)
