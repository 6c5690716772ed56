"""Numbers as people read them: shares, counts of any size, intervals.

The rule of shares, for the terminal, pages, Markdown and plots:

- From 1 in 1,000 on (:data:`_SMALL`), per cent with three digits, halves rounded up: ``14.7 %``,
  ``0.250 %``. Smaller ones are odds, to three digits: ``1 in 4,000``. Neither is rounded to none
  or to all. :func:`share_words` alone writes them; :func:`axis_words` leaves out the zeros at
  their end, and :func:`limit_percent` writes a limit to six digits, as somebody gave it.
- An exact share stands as it is. An estimate has ``about`` before it, be it per cent or odds
  (:func:`estimate_words`), or its interval right behind it, as in tables: ``3.2 % (3.1 to 3.3 %)``.
"""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction

from xcount.answers.result import CountResult
from xcount.measures.measured import REGIONS
from xcount.question.share import Limit
from xcount.support.interval import Interval, Number

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


def share_words(share: Number) -> str:
    """Return a share in per cent with three digits, or as odds where it is small; never as zero.

    Example:
        >>> share_words(Fraction(2, 9)), share_words(0), share_words(1), share_words(8.56e-6)
        ('22.2 %', '0 %', '100 %', '1 in 117,000')

    A float is the decimal that it prints as, so that it is rounded as its fraction is:

        >>> share_words(Fraction(357, 2000)), share_words(357 / 2000)
        ('17.9 %', '17.9 %')
    """
    exact = _as_fraction(share)
    if 0 < exact < _SMALL:
        return f"1 in {rounded(1 / exact)}"
    return f"{_percentage(exact)} %"


def axis_words(share: Number) -> str:
    """Return a round share beside an axis, without zeros at its end.

    Example:
        >>> axis_words(0.2), axis_words(0.0125), axis_words(0.0005), axis_words(0.001)
        ('20 %', '1.25 %', '1 in 2,000', '0.1 %')
    """
    text = share_words(share)
    number = text.removesuffix(" %")
    if number == text or "." not in number:
        return text
    return f"{number.rstrip('0').rstrip('.')} %"


def confidence_words(confidence: float) -> str:
    """Return a confidence, never rounded up.

    Example:
        >>> confidence_words(0.95), confidence_words(0.999), confidence_words(1 - 0.1 / 3)
        ('95%', '99.9%', '96%')
    """
    risk = Fraction(f"{1 - confidence:.9g}")
    decimals = 2 if risk >= Fraction(1, 100) or risk <= 0 else -_exponent(risk)
    kept = 1 - Fraction(math.ceil(risk * 10**decimals), 10**decimals)
    return f"{float(kept * 100):.{decimals - 2}f}%"


def _as_fraction(share: Number) -> Fraction:
    """Return a share exactly; of a float, the decimal of twelve digits that it stands for."""
    if not isinstance(share, float):
        return Fraction(share)
    found = Fraction(f"{share:.12g}")
    return Fraction(share) if found in (0, 1) else found


def _percentage(share: Fraction) -> str:
    if share in (0, 1):
        return str(int(share * 100))
    if share > Fraction(999, 1000):
        return "> 99.9"
    decimals = -_exponent(share)
    if _half_up(share * 100 * 10**decimals) == 1000:  # 9.996 % is 10.0 %, not 10.00 %
        decimals -= 1
    return f"{Decimal(_half_up(share * 100 * 10**decimals)).scaleb(-decimals):f}"


def _half_up(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2))


def limit_percent(limit: Limit) -> str:
    """Return the limit of a share in per cent.

    Example:
        >>> limit_percent(Limit.share("2/9")), limit_percent(Limit.share(0.05))
        ('22.2222 %', '5 %')
        >>> limit_percent(Limit.share("1/4000")), limit_percent(Limit.share("0.0123%"))
        ('1 in 4,000', '1 in 8,130.08')
    """
    if 0 < limit.value < _SMALL:
        odds = 1 / limit.value
        return share_words(limit.value) if odds >= 10**6 else f"1 in {_six_digits(odds)}"
    return f"{float(limit.value * 100):.6g} %"


def _six_digits(value: Fraction) -> str:
    whole, _, rest = f"{float(value):.6g}".partition(".")
    return f"{int(whole):,}{rest and f'.{rest}'}"


# ---- intervals ----


def estimate_words(share: Interval) -> str:
    """Return a share, or where it lies; an estimate says that it is one.

    Example:
        >>> share = Fraction(1, 4000)
        >>> estimate_words(Interval.exactly(share)), estimate_words(Interval(share, 0, share))
        ('1 in 4,000', 'about 1 in 4,000')
        >>> estimate_words(Interval(None, Fraction(31, 100), 1))
        'between 31.0 % and 100 %'
        >>> estimate_words(Interval(0, 0, Fraction(1, 9)))
        'about 0 %'
    """
    if share.value is None:
        return bounds_words(share)
    return share_words(share.value) if share.is_settled else f"about {share_words(share.value)}"


def sure_words(share: Interval) -> str:
    """Return ``exact``, or the interval of a share and its confidence.

    Without an estimate the interval is the share's text already.
    """
    if share.is_settled:
        return "exact" if share.exact else "exact but for rounding"
    sure = confidence_of(share)
    return sure if share.value is None else f"{interval_words(share)}, {sure}"


def confidence_of(interval: Interval) -> str:
    """Return how sure the bounds are: ``guaranteed``, or ``95% confidence``."""
    if not interval.is_sampled:
        return "guaranteed"
    return f"{confidence_words(interval.sureness)} confidence"


def bounds_words(share: Interval) -> str:
    """Return the bounds of a share.

    Example:
        >>> bounds_words(Interval(None, Fraction(31, 100), 1))
        'between 31.0 % and 100 %'
        >>> bounds_words(Interval(None, 0, Fraction(3, 100)))
        'at most 3.00 %'
    """
    if share.low == 0 and share.high < 1:
        return f"at most {share_words(share.high)}"
    return f"between {share_words(share.low)} and {share_words(share.high)}"


def interval_words(share: Interval) -> str:
    """Return the bounds of a share in little room.

    Example:
        >>> interval_words(Interval(None, 0.162, 0.202)), interval_words(Interval(None, 0, 1e-5))
        ('16.2 to 20.2 %', '0 to 1 in 100,000')
        >>> interval_words(Interval(None, 1e-6, 0.01))
        '1 in 1 million to 1.00 %'
    """
    first, last = share_words(share.low), share_words(share.high)
    if first == "0 %" or last.endswith("%"):
        first = first.removesuffix(" %")
    return f"{first} to {last}"


def short_interval(share: Interval) -> str:
    """Return the bounds of a share in little room; nothing for an exact share."""
    return "" if share.is_settled else interval_words(share)


def short_share(share: Interval) -> str:
    """Return a share, or its bounds if it has no estimate, in little room."""
    return interval_words(share) if share.value is None else estimate_words(share)


def table_share(share: Interval) -> str:
    """Return a share in little room, without ``about``: its interval stands beside it."""
    return short_share(share).removeprefix("about ")


def share_and_interval(share: Interval) -> str:
    """Return a share with its interval, if it has one; ``at most`` if none was seen.

    Example:
        >>> share_and_interval(Interval.exactly(0.25)), share_and_interval(Interval(0.25, 0.2, 0.3))
        ('25.0 %', '25.0 % (20.0 to 30.0 %)')
        >>> share_and_interval(Interval(0.0, 0.0, 0.001))
        'at most 0.100 %'
    """
    if share.value is None:
        return interval_words(share)
    if share.is_settled:
        return share_words(share.value)
    if share.value == 0:
        return f"at most {share_words(share.high)}"
    return f"{share_words(share.value)} ({interval_words(share)})"


def number_and_interval(number: Interval) -> str:
    """Return a number of three digits, and its bounds if it is not exact.

    Example:
        >>> number_and_interval(Interval.exactly(0.5)), number_and_interval(Interval(2, 1, 3))
        ('0.5', '2 (1 to 3)')
    """
    if number.value is None:
        return NONE
    return f"{number.value:.3g}{number_bounds(number)}"


def number_bounds(number: Interval) -> str:
    """Return the bounds of a number that is not exact, in brackets."""
    if number.is_settled:
        return ""
    return f" ({number.low:.3g} to {number.high:.3g})"


# ---- counts, times, distances ----


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
