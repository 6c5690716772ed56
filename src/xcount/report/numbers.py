"""Numbers as people read them: shares, counts of any size, intervals."""

from __future__ import annotations

import datetime
from fractions import Fraction

from xcount.answers.measured import REGIONS, Judged
from xcount.answers.result import CountResult
from xcount.question.share import Limit

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_PLAIN_DIGITS = 15
_TIMES = "\u00d7"
THIN_SPACE = "\u202f"
NONE = "\u2013"
"""Stands where there is nothing to say."""

OF_MEASURE = {
    REGIONS: "of the regions",
    "volume": "of the volume",
    "marginals": "by marginals",
    "rows": "of the rows",
    "population": "of the population",
}
"""What a share is a share of."""


def plural(number: int, what: str) -> str:
    """Return a number of things.

    Example:
        >>> plural(1, "count"), plural(2, "count")
        ('1 count', '2 counts')
    """
    return f"{integer(number)} {what}{'' if number == 1 else 's'}"


def short_integer(value: int) -> str:
    """Return an integer in little room: a power of ten from a milliard on."""
    return integer(value) if abs(value) < 10**9 else scientific(Fraction(value))


def integer(value: int) -> str:
    """Return an integer in groups of three, or in powers of ten beyond 15 digits.

    Example:
        >>> integer(1234567).replace(THIN_SPACE, " "), integer(2**100)
        ('1 234 567', '1.27 × 10³⁰')
    """
    if abs(value) < 10**_PLAIN_DIGITS:
        return f"{value:,}".replace(",", THIN_SPACE)
    return scientific(Fraction(value))


def scientific(value: Fraction, digits: int = 3) -> str:
    """Return a positive number as ``1.27 × 10³⁰``, however large or small."""
    if value == 0:
        return "0"
    exponent = _exponent(value)
    mantissa = round(value / Fraction(10) ** (exponent - digits + 1))
    if mantissa == 10**digits:
        exponent, mantissa = exponent + 1, mantissa // 10
    text = str(mantissa)
    return f"{text[0]}.{text[1:]} {_TIMES} 10{str(exponent).translate(_SUPERSCRIPTS)}"


def _exponent(value: Fraction) -> int:
    """Return the e with ``10**e <= value < 10**(e+1)``."""
    bits = value.numerator.bit_length() - value.denominator.bit_length()
    exponent = int(bits * 0.30102999566) - 1
    while Fraction(10) ** (exponent + 1) <= value:
        exponent += 1
    while Fraction(10) ** exponent > value:
        exponent -= 1
    return exponent


def percent(count: int | Fraction, n_regions: int) -> str:
    """Return a share in per cent with three digits; tiny ones as a power of ten, never as zero.

    Example:
        >>> percent(2, 9), percent(0, 9), percent(9, 9), percent(1, 10**9)
        ('22.2 %', '0 %', '100 %', '1.00 × 10⁻⁷ %')
    """
    return f"{_percentage(count, n_regions)} %"


def _percentage(count: int | Fraction, n_regions: int) -> str:
    share = Fraction(count, n_regions) * 100
    if share in (0, 100):
        return str(int(share))
    if share > Fraction(999, 10):
        return "> 99.9"
    if _is_tiny(count, n_regions):
        return scientific(share)
    return f"{float(share):.{2 - _exponent(share)}f}"


def _is_tiny(count: int | Fraction, n_regions: int) -> bool:
    """Tell whether a share is said as a power of ten: below a thousandth of a per cent."""
    return count > 0 and count * 10**5 < n_regions


def limit_percent(limit: Limit) -> str:
    """Return the limit of a share in per cent.

    Example:
        >>> limit_percent(Limit.share("2/9")), limit_percent(Limit.share(0.05))
        ('22.2222 %', '5 %')
    """
    return f"{float(limit.value * 100):.6g} %"


def share_text(result: CountResult, measure: str = REGIONS) -> str:
    """Return the share of a result, or where it lies if nobody has an estimate of it.

    None and all are only said for certain when they are.
    """
    known = _known(result, measure)
    if known.estimate is None:
        return bounds_text(*known.parts, known.whole)
    text = percent(known.estimate, known.whole)
    is_extreme = known.estimate in (0, known.whole)
    return f"about {text}" if is_extreme and not known.exact else text


def _known(result: CountResult, measure: str) -> Judged:
    return result.share_under(measure) or Judged.unknown()


def bounds_text(low: int | Fraction, high: int | Fraction, n_regions: int) -> str:
    """Return between which shares a count lies.

    Example:
        >>> bounds_text(31, 100, 100), bounds_text(0, 3, 100)
        ('between 31.0 % and 100 %', 'at most 3.00 %')
    """
    if low == 0 and high < n_regions:
        return f"at most {percent(high, n_regions)}"
    return f"between {percent(low, n_regions)} and {percent(high, n_regions)}"


def how_sure(result: CountResult, measure: str = REGIONS) -> str:
    """Return ``exact``, or the interval of the share and its confidence.

    Without an estimate the interval is the share's text already.
    """
    known = _known(result, measure)
    if known.exact:
        return "exact"
    sure = "guaranteed" if known.confidence == 1.0 else f"{known.confidence:.0%} confidence"
    if known.estimate is None:
        return sure
    low, high = (percent(part, known.whole) for part in known.parts)
    return f"{low} to {high}, {sure}"


def short_interval(result: CountResult, measure: str = REGIONS) -> str:
    """Return the interval in little room, e.g. ``16.2 to 20.2 %``; empty for an exact count."""
    known = _known(result, measure)
    if known.exact:
        return ""
    low, high = (_percentage(part, known.whole) for part in known.parts)
    if any(_is_tiny(part, known.whole) for part in known.parts):
        return f"{low} % to {high} %"
    return f"{low} to {high} %"


def short_share(result: CountResult, measure: str = REGIONS) -> str:
    """Return the share, or its interval, in little room."""
    if _known(result, measure).estimate is None:
        return short_interval(result, measure)
    return share_text(result, measure)


def count_or_bounds(result: CountResult) -> str:
    """Return the count in groups of three, or between what it lies."""
    if result.count is None:
        return f"{integer(result.low)} to {integer(result.high)}"
    return integer(result.count)


def time_text(created: str) -> str:
    """Return an ISO time as people write it, e.g. ``15 November 2026, 20:32 UTC``."""
    try:
        moment = datetime.datetime.fromisoformat(created).astimezone(datetime.UTC)
    except ValueError:
        return created
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}, {moment:%H:%M} UTC"


def one_in(result: CountResult) -> str:
    """Return the share as odds, e.g. ``about 1 in 45 regions``; empty without an estimate."""
    if result.count is None:
        return ""
    if result.count == 0:
        return "no region"
    odds = Fraction(result.n_regions, result.count)
    if odds < 2:
        return "all regions" if odds == 1 else "more than every second region"
    return f"about 1 in {integer(round(odds))} regions"


def seconds_text(seconds: float) -> str:
    """Return a duration: ``0.12 s``, ``14 s``, ``3 min 20 s``."""
    if seconds < 9.95:
        return f"{seconds:.2g} s" if seconds >= 0.01 else "< 0.01 s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def distance_text(distance: int | None) -> str:
    """Return a distance in words."""
    if distance is None:
        return "any change"
    return "1 step" if distance == 1 else f"up to {distance} steps"
