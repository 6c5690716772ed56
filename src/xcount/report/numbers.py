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
_SMALL = Fraction(1, 1000)
"""Smaller shares are said as odds, "1 in 117,000": nobody reads a percentage of many zeros."""
_WORDS = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"))
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
    """Return an integer in little room: a power of ten from a million on."""
    return integer(value) if abs(value) < 10**6 else scientific(Fraction(value))


def integer(value: int) -> str:
    """Return an integer in groups of three, or in powers of ten beyond 15 digits.

    Example:
        >>> integer(1234567), integer(2**100)
        ('1,234,567', '1.27 × 10³⁰')
    """
    if abs(value) < 10**_PLAIN_DIGITS:
        return f"{value:,}"
    return scientific(Fraction(value))


def rounded(value: Fraction) -> str:
    """Return a number from 1 on with three digits, large ones in words.

    Example:
        >>> [rounded(Fraction(n)) for n in (45, 116_822, 3_400_000, 10**15)]
        ['45', '117,000', '3.4 million', '1.00 × 10¹⁵']
    """
    step = Fraction(10) ** max(0, _exponent(value) - 2)
    whole = round(value / step) * int(step)
    if whole >= 10**_PLAIN_DIGITS:
        return scientific(Fraction(whole))
    for size, word in _WORDS:
        if whole >= size:
            return f"{whole / size:.3g} {word}"
    return integer(whole)


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


def percent(count: int, n_regions: int) -> str:
    """Return a part of a whole as a share."""
    return share_words(Fraction(count, n_regions))


def share_words(share: Fraction | float) -> str:
    """Return a share in per cent with three digits, or as odds where it is small; never as zero.

    Example:
        >>> share_words(Fraction(2, 9)), share_words(0), share_words(1), share_words(8.56e-6)
        ('22.2 %', '0 %', '100 %', '1 in 117,000')

    A float is the decimal that it prints as, so that it is rounded as its fraction is:

        >>> share_words(Fraction(357, 2000)), share_words(357 / 2000)
        ('17.9 %', '17.9 %')
    """
    exact = Fraction(str(share)) if isinstance(share, float) else Fraction(share)
    text = _percentage(exact)
    return text if text.startswith("1 in ") else f"{text} %"


def about(share: str) -> str:
    """Return a share in a sentence: odds are rounded, and say so."""
    return f"about {share}" if share.startswith("1 in ") else share


def in_a_table(share: str) -> str:
    """Return a share in little room: odds without ``about``."""
    return share.removeprefix("about ") if " in " in share else share


def _percentage(share: Fraction) -> str:
    if share in (0, 1):
        return str(int(share * 100))
    if share > Fraction(999, 1000):
        return "> 99.9"
    if share < _SMALL:
        return f"1 in {rounded(1 / share)}"
    return f"{float(share * 100):.{-_exponent(share)}f}"


def limit_percent(limit: Limit) -> str:
    """Return the limit of a share in per cent.

    Example:
        >>> limit_percent(Limit.share("2/9")), limit_percent(Limit.share(0.05))
        ('22.2222 %', '5 %')
    """
    if 0 < limit.value < Fraction(1, 10**5):
        return share_words(limit.value)
    return f"{float(limit.value * 100):.6g} %"


def share_text(result: CountResult, measure: str = REGIONS) -> str:
    """Return a share of a result, or where it lies if nobody has an estimate of it."""
    known = _known(result, measure)
    return estimate_words(*shares_of(known), known.exact)


def how_sure(result: CountResult, measure: str = REGIONS) -> str:
    """Return ``exact``, or the interval of a share and its confidence."""
    known = _known(result, measure)
    return sure_words(*shares_of(known), known.exact, known.confidence)


def short_interval(result: CountResult, measure: str = REGIONS) -> str:
    """Return the interval in little room, e.g. ``16.2 to 20.2 %``; empty for an exact share."""
    known = _known(result, measure)
    return "" if known.exact else interval_words(*shares_of(known)[1:])


def short_share(result: CountResult, measure: str = REGIONS) -> str:
    """Return the share, or its interval, in little room."""
    if _known(result, measure).estimate is None:
        return short_interval(result, measure)
    return in_a_table(share_text(result, measure))


def _known(result: CountResult, measure: str) -> Judged:
    return result.share_under(measure) or Judged.unknown()


def shares_of(known: Judged) -> tuple[Fraction | None, Fraction, Fraction]:
    """Return a share and its bounds as exact fractions; None where there is no estimate."""
    low, high = (Fraction(part, known.whole) for part in known.parts)
    return None if known.estimate is None else Fraction(known.estimate, known.whole), low, high


def estimate_words(value: Fraction | None, low: Fraction, high: Fraction, exact: bool) -> str:
    """Return a share, or where it lies; none and all are only said for certain when they are.

    Example:
        >>> estimate_words(None, Fraction(31, 100), Fraction(1), False)
        'between 31.0 % and 100 %'
        >>> estimate_words(Fraction(0), Fraction(0), Fraction(1, 9), False)
        'about 0 %'
    """
    if value is None:
        return bounds_text(low, high)
    text = share_words(value)
    return f"about {text}" if value in (0, 1) and not exact else about(text)


def sure_words(
    value: Fraction | None, low: Fraction, high: Fraction, exact: bool, confidence: float
) -> str:
    """Return ``exact``, or the interval of a share and its confidence.

    Without an estimate the interval is the share's text already.
    """
    if exact:
        return "exact"
    sure = "guaranteed" if confidence == 1.0 else f"{confidence:.0%} confidence"
    return sure if value is None else f"{interval_words(low, high)}, {sure}"


def bounds_text(low: Fraction, high: Fraction) -> str:
    """Return between which bounds a share lies.

    Example:
        >>> bounds_text(Fraction(31, 100), Fraction(1)), bounds_text(Fraction(0), Fraction(3, 100))
        ('between 31.0 % and 100 %', 'at most 3.00 %')
    """
    if low == 0 and high < 1:
        return f"at most {share_words(high)}"
    return f"between {share_words(low)} and {share_words(high)}"


def interval_words(low: Fraction | float, high: Fraction | float) -> str:
    """Return an interval of shares in little room.

    Example:
        >>> interval_words(0.162, 0.202), interval_words(0, 1e-5), interval_words(1e-6, 0.01)
        ('16.2 to 20.2 %', '0 to 1 in 100,000', '1 in 1 million to 1.00 %')
    """
    first, last = share_words(low), share_words(high)
    if first == "0 %" or last.endswith("%"):
        first = first.removesuffix(" %")
    return f"{first} to {last}"


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
