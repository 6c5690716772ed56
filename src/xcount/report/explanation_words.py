"""Explanations in words: direction and size of the change, places, and rates of groups."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from xcount.answers.explain.spectrum import MAX_CELLS
from xcount.answers.explanation import (
    CellShare,
    Curve,
    Effect,
    Explanation,
    GroupRates,
    Place,
)
from xcount.answers.result import CountResult
from xcount.report.words.numbers import (
    NONE,
    OF_MEASURE,
    estimate_words,
    interval_words,
    number_bounds,
    share_and_interval,
    share_words,
)
from xcount.support.interval import Interval, Number

FOUR_FIFTHS = 0.8
"""US agencies examine adverse impact ratios below this one (29 CFR 1607.4 D)."""

ASSUMED = "assumed; --favourable names it"
"""Said of a favourable decision that nobody named."""
NEAREST_TO_PEOPLE = ("rows", "population", "marginals", "volume", "regions")
"""The measures, those that are nearest to real people first."""

_WHOSE = {"regions": "of all regions", "volume": "of the volume", "rows": "of the rows"}
"""Whom a measure weighs; people unless said."""
_NOUN = {"regions": "regions", "volume": "volume", "rows": "rows"}

MOST_HIGHEST = 3
"""Rows of where the output is highest; how many more nearly tie is said."""
_NEARLY = 0.95
"""Shares from this part of another one on are nearly equal to it."""
_NUMBER = r"[-+0-9.einf]+"

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


def brief_share(share: Interval) -> str:
    """Return a share without its interval; ``at most`` where none was seen."""
    if share.value == 0 and not share.is_settled:
        return share_and_interval(share)
    return estimate_words(share)


def whose(measure: str) -> str:
    """Return of whom or what the shares of a measure are: ``of the rows``."""
    return _WHOSE.get(measure, "of the people")


def place_numbers(place: Place, written: Callable[[Interval], str]) -> str:
    """Return the size of a place, its sensitive share, and its part of everything sensitive.

    Example:
        >>> of = [Interval.exactly(share) for share in (0.01, 0.83, 0.61)]
        >>> place_numbers(Place("rows", "age < 29", (), 0.012, *of, True, 1.0), brief_share)
        '1.20 % of the rows; 83.0 % of these are sensitive, 61.0 % of all sensitive rows'
    """
    these = "this is" if place.measure == "volume" else "these are"
    return (
        f"{share_words(place.size)} {whose(place.measure)}; {written(place.within)} of {these} "
        f"sensitive, {written(place.part)} of all sensitive {_NOUN.get(place.measure, 'people')}"
    )


def effect_sentence(result: CountResult, measure: str) -> str:
    """Return direction and size in one sentence; empty where they are not known."""
    found = of_measure(explanation_of(result).effects, measure)
    if not found:
        return ""
    effect = found[0]
    what = "decision" if result.change.size is None else unit_text(effect.unit)
    up, down = map(brief_share, (effect.up, effect.down))
    whom = OF_MEASURE[effect.measure]
    said = f"The {what} could go up for {up} and down for {down} {whom}"
    size = _typical(effect)
    return f"{said}; {size}." if size else f"{said}."


def unit_text(unit: str) -> str:
    """Return what changes, as people call it."""
    return "probability" if unit == "probability" else "score"


def _typical(effect: Effect) -> str:
    """Return the median and the ninth decile of the size, or its mean."""
    levels = {round(q.level, 3): q.size.least for q in effect.quantiles}
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
    return f"the {thing} moves by {size_text(effect.mean.least, effect.unit)} on average{where}"


def size_text(size: Number, unit: str) -> str:
    """Return the size of a change in a sentence: of a probability, in points."""
    if unit_text(unit) != "probability":
        return f"{size:.3g}"
    points = f"{100 * size:.3g}"
    return f"{points} percentage point{'' if points == '1' else 's'}"


def ratio_sentence(rates: GroupRates) -> str:
    """Return the adverse impact ratio in words."""
    ratio = rates.ratio
    if ratio.value is None:
        return "Nobody gets the favourable decision."
    if ratio.high == 0:
        return "The group with the lowest rate never gets the favourable decision."
    said = f"The lowest rate is {ratio.value:.3g} times the highest{number_bounds(ratio)}"
    if ratio.high < FOUR_FIFTHS:
        return f"{said}, below four fifths, a common warning line."
    if ratio.low >= FOUR_FIFTHS:
        return f"{said}, above four fifths, a common warning line."
    return f"{said}; four fifths, a common warning line, lies in between."


@dataclass(frozen=True, slots=True)
class Highest:
    """A cell, or neighbours with nearly equal shares, in words."""

    label: str
    cells: tuple[CellShare, ...]

    @property
    def share(self) -> float:
        """The largest share of its cells, to sort by."""
        return max(float(cell.share.least) for cell in self.cells)

    def text_in(self, effect: Effect) -> str:
        """Return the shares of its cells under a measure; of several, from what to what."""
        keys = {_key(cell) for cell in self.cells}
        found = [cell for cell in effect.cells if _key(cell) in keys]
        if not found:
            return NONE
        low, high = min(c.share.low for c in found), max(c.share.high for c in found)
        whole = Interval(found[0].share.value, low, high)
        if len(found) == 1 or low == high:
            return share_and_interval(whole)
        return f"{interval_words(whole)} each"


def highest(effect: Effect, sensitive: Sequence[str]) -> tuple[list[Highest], str]:
    """Return where the output is highest most often, and how many more cells nearly tie.

    Args:
        effect: direction and size under a measure.
        sensitive: the features that change; cells of a single one may be neighbours.
    """
    left = [cell for cell in effect.cells if cell.share.high > 0]
    found: list[Highest] = []
    while left and len(found) < MOST_HIGHEST:
        run = _neighbours(left, sensitive)
        found.append(Highest(_range_label(run, sensitive), tuple(run)))
        left = [cell for cell in left if cell not in run]
    if not found:
        return [], ""
    least = _NEARLY * min(float(cell.share.least) for cell in found[-1].cells)
    n = sum(cell.share.least >= least for cell in left)
    if not n:
        return found, ""
    may_be_more = n == len(left) and len(effect.cells) >= MAX_CELLS
    many = f"{'at least ' if may_be_more else ''}{n} more"
    return found, f"{many} nearly as high"


def _neighbours(cells: Sequence[CellShare], sensitive: Sequence[str]) -> list[CellShare]:
    """Return the first cell and the neighbours of it whose shares are nearly equal, in order."""
    first = cells[0]
    if len(sensitive) != 1 or _ends(first, sensitive[0]) is None:
        return [first]
    alike = {
        cell.cells[0]: cell
        for cell in cells
        if cell.class_label == first.class_label
        and cell.share.least >= _NEARLY * float(first.share.least)
        and _ends(cell, sensitive[0]) is not None
    }
    start = end = first.cells[0]
    while start - 1 in alike:
        start -= 1
    while end + 1 in alike:
        end += 1
    return [alike[number] for number in range(start, end + 1)]


def _ends(cell: CellShare, name: str) -> tuple[str, str] | None:
    """Return what stands before and after the name of a range of numbers; None of other cells."""
    range_of = rf"((?:{_NUMBER} <=? )?){re.escape(name)}((?: <=? {_NUMBER})?)"
    found = re.fullmatch(range_of, cell.text)
    return None if found is None else (found[1], found[2])


def _range_label(run: Sequence[CellShare], sensitive: Sequence[str]) -> str:
    if len(run) == 1:
        return run[0].label
    first, last = _ends(run[0], sensitive[0]), _ends(run[-1], sensitive[0])
    assert first is not None
    assert last is not None
    text = f"{first[0]}{sensitive[0]}{last[1]}"
    whole = text if text != sensitive[0] else f"any {text}"
    return whole if run[0].class_label is None else f"{run[0].class_label} where {whole}"


def _key(cell: CellShare) -> tuple[tuple[int, ...], str | None]:
    return cell.cells, cell.class_label


IF_ALL_MEANS = (
    "“If all were” places everyone in each group in turn, with all else unchanged: that is the "
    "effect of the feature itself. The rest of a difference comes from other differences between "
    "the groups."
)


def if_all_sentence(rates: GroupRates) -> str:
    """Return the same ratio if only the feature differed; empty where that is no other."""
    ratio = rates.ratio_if_all
    if ratio is None or ratio.value is None or not rates.differs:
        return ""
    return (
        "These are the rates as observed. If everyone were placed in each group in turn, with all "
        f"else unchanged, the lowest rate would be {ratio.value:.3g} times the "
        f"highest{number_bounds(ratio)}: that is the effect of the feature itself; the rest comes "
        "from other differences between the groups."
    )


def favourable_text(rates: GroupRates) -> str:
    """Return the favourable decision, and that it is an assumption if nobody named it."""
    return f"{rates.favourable} ({ASSUMED})" if rates.is_assumed else rates.favourable
