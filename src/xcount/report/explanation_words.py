"""What explains a count, in sentences: which way and how much, and who gets what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from xcount.answers.explanation import (
    Curve,
    Effect,
    Explanation,
    GroupRates,
    Place,
    ShareInterval,
)
from xcount.answers.result import CountResult
from xcount.report.numbers import OF_MEASURE, estimate_words, share_and_interval, share_words

FOUR_FIFTHS = 0.8
"""Below this adverse impact ratio, US agencies take a look (29 CFR 1607.4 D)."""

NEAREST_TO_PEOPLE = ("rows", "population", "marginals", "volume", "regions")
"""The measures, those that are nearest to real people first."""

_WHOSE = {"regions": "of all regions", "volume": "of the volume", "rows": "of the rows"}
"""Whom a measure weighs; people unless said."""

Entry = TypeVar("Entry", Effect, Curve, Place, GroupRates)


def of_measure(entries: Sequence[Entry], measure: str) -> list[Entry]:
    """Return the entries of an explanation under a measure.

    Where it has none, they are those of the measure nearest to people: say so (:func:`said_of`).
    """
    for wanted in (measure, *NEAREST_TO_PEOPLE):
        found = [entry for entry in entries if entry.measure == wanted]
        if found:
            return found
    return []


def said_of(entry: Effect | Curve | Place | GroupRates, measure: str) -> str:
    """Return whom an entry is about, where that is not whom the rest speaks of; else nothing."""
    return "" if entry.measure == measure else OF_MEASURE[entry.measure]


def explanation_of(result: CountResult) -> Explanation:
    """Return what explains a result; nothing where it was not asked for."""
    return result.explanation or Explanation()


def brief_share(share: ShareInterval) -> str:
    """Return a share without its interval; ``at most`` where none was seen."""
    if share.share == 0 and not share.is_exact:
        return share_and_interval(share.share, share.low, share.high)
    return estimate_words(share.share, share.low, share.high, share.is_exact)


def whose(measure: str) -> str:
    """Return of whom or what the shares of a measure are: ``of the rows``."""
    return _WHOSE.get(measure, "of the people")


def place_numbers(place: Place, written: Callable[[ShareInterval], str]) -> str:
    """Return how large a place is, how much of it is sensitive, and how much of all of that it has.

    Example:
        >>> of = [ShareInterval(share, share, share) for share in (0.01, 0.83, 0.61)]
        >>> place_numbers(Place("rows", "age < 29", (), 0.012, *of, True, 1.0), brief_share)
        '1.20 % of the rows, 83.0 % of them sensitive, 61.0 % of all that is sensitive'
    """
    them = "it" if place.measure == "volume" else "them"
    return (
        f"{share_words(place.size)} {whose(place.measure)}, {written(place.within)} of {them} "
        f"sensitive, {written(place.part)} of all that is sensitive"
    )


def effect_sentence(result: CountResult, measure: str) -> str:
    """Return direction and size in one sentence; empty where they are not known."""
    found = of_measure(explanation_of(result).effects, measure)
    if not found:
        return ""
    effect = found[0]
    what = "decision" if result.change.size is None else unit_text(effect.unit)
    up, down = map(brief_share, (effect.up, effect.down))
    whom = said_of(effect, measure)
    said = f"The {what} could go up for {up} and down for {down}{whom and f' {whom}'}"
    size = _typical(effect)
    return f"{said}; {size}." if size else f"{said}."


def unit_text(unit: str) -> str:
    """Return what changes, as people call it."""
    return "probability" if unit == "probability" else "score"


def _typical(effect: Effect) -> str:
    """Return the median and the ninth decile of the size, or its mean."""
    levels = {round(q.level, 3): q.value for q in effect.quantiles}
    where = "" if effect.among == "all" else " of those that change"
    thing = unit_text(effect.unit)
    if 0.5 in levels and 0.9 in levels:
        return (
            f"the {thing} moves by at most {size_text(levels[0.5], effect.unit)} for "
            f"half{where or ' of all'}, and by more than {size_text(levels[0.9], effect.unit)} for "
            "one in ten"
        )
    if effect.mean is None:
        return ""
    return f"the {thing} moves by {size_text(effect.mean.value, effect.unit)} on average{where}"


def size_text(size: float, unit: str) -> str:
    """Return the size of a change in a sentence: of a probability, in points."""
    if unit_text(unit) != "probability":
        return f"{size:.3g}"
    points = f"{100 * size:.3g}"
    return f"{points} percentage point{'' if points == '1' else 's'}"


def ratio_sentence(rates: GroupRates) -> str:
    """Return the adverse impact ratio in words."""
    ratio = rates.ratio
    if ratio.value is None:
        return "Nobody gets it."
    bounds = "" if ratio.low == ratio.high else f" ({ratio.low:.3g} to {ratio.high:.3g})"
    if ratio.high == 0:
        return "The group with the lowest rate never gets it."
    said = f"The lowest rate is {ratio.value:.3g} times the highest{bounds}"
    if ratio.high < FOUR_FIFTHS:
        return f"{said}, below four fifths, a common warning line."
    if ratio.low >= FOUR_FIFTHS:
        return f"{said}, above four fifths, a common warning line."
    return f"{said}; four fifths, a common warning line, lies in between."
