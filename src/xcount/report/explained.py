"""What goes with a count that explains itself: which way and how much, where, and for whom."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xcount.answers.result import CountResult
from xcount.report.charts import Bar, bar, both_ways
from xcount.report.markup import Child, Markup, element
from xcount.report.numbers import about, interval_words, share_words
from xcount.report.tables import number_cell, table

FOUR_FIFTHS = 0.8
"""Below this adverse impact ratio, US agencies take a look (29 CFR 1607.4 D)."""
_TOP_CELLS = 5


def explained(result: CountResult, measure: str) -> list[Child]:
    """Return the parts of an explanation, those that there are, under one measure."""
    effect, places, rates = (
        of_measure(result, what, measure) for what in ("effects", "places", "rates")
    )
    return [
        [_effect(found, result) for found in effect[:1]],
        [_rates(found) for found in rates[:1]],
        _places(places),
    ]


def of_measure(result: CountResult, what: str, measure: str) -> list[Any]:
    """Return the entries of an explanation under a measure, or of regions where it has none."""
    entries: Iterable[Any] = getattr(getattr(result, "explanation", None), what, ())
    listed = list(entries)
    for wanted in (measure, "regions"):
        found = [entry for entry in listed if entry.measure == wanted]
        if found:
            return found
    return []


def effect_sentence(result: CountResult, measure: str) -> str:
    """Return direction and size in one sentence; empty where they are not known."""
    found = of_measure(result, "effects", measure)
    if not found:
        return ""
    effect = found[0]
    what = "decision" if result.change.size is None else _thing(effect.unit)
    up, down = (about(share_words(end.share)) for end in (effect.up, effect.down))
    said = f"The {what} could go up for {up} and down for {down}"
    size = _typical(effect)
    return f"{said}; {size}." if size else f"{said}."


def _thing(unit: str) -> str:
    return "probability" if unit == "probability" else "score"


def _typical(effect: Any) -> str:
    """Return the median and the ninth decile of the size, or its mean."""
    levels = {round(q.level, 3): q.value for q in effect.quantiles}
    where = "" if effect.among == "all" else " where it changes"
    thing = _thing(effect.unit)
    if 0.5 in levels and 0.9 in levels:
        return (
            f"the {thing} moves by at most {levels[0.5]:.3g} for half of them{where}, and by more "
            f"than {levels[0.9]:.3g} for one in ten"
        )
    return f"the {thing} moves by {effect.mean.value:.3g} on average{where}" if effect.mean else ""


def _effect(effect: Any, result: CountResult) -> list[Child]:
    up, down = effect.up, effect.down
    ends = [(e.share, e.low, e.high) for e in (down, up)]
    texts = [
        f"{way}: {share_words(e.share)}{_between(e.low, e.high)}"
        for way, e in (("down", down), ("up", up))
    ]
    sizes = [(f"{q.level:.0%} at most", q.value, q.low, q.high) for q in effect.quantiles]
    if effect.mean is not None:
        sizes.append(("mean", effect.mean.value, effect.mean.low, effect.mean.high))
    rows = [
        element("tr", element("td", what), number_cell(f"{value:.3g}{_numbers(low, high)}"))
        for what, value, low, high in sizes
    ]
    among = "of all" if effect.among == "all" else "of those that change"
    return [
        element("h4", "Which way, and how much"),
        both_ways(ends, texts),
        element(
            "div",
            table(
                ("Size of the change", _thing(effect.unit)), rows, f"Sizes, {among}", can_sort=False
            )
            if rows
            else None,
            _highest(effect),
            class_="columns",
        ),
        element("p", _sure(effect), class_="note"),
    ]


def _highest(effect: Any) -> Markup | None:
    rows = [
        element(
            "tr",
            element("td", cell.text),
            number_cell(f"{share_words(cell.share)}{_between(cell.low, cell.high)}", cell.share),
        )
        for cell in effect.cells[:_TOP_CELLS]
    ]
    if not rows:
        return None
    title = f"Where the {_thing(effect.unit)} is highest, all else equal"
    return table(("With", "highest for"), rows, title, can_sort=False)


def _between(low: float, high: float) -> str:
    return "" if low == high else f" ({interval_words(low, high)})"


def _numbers(low: float, high: float) -> str:
    return "" if low == high else f" ({low:.3g} to {high:.3g})"


def _sure(entry: Any) -> str:
    if entry.exact:
        return "These numbers are exact."
    if entry.confidence == 1:
        return "Intervals are guaranteed."
    return f"Intervals hold together with {entry.confidence:.0%} confidence."


def _rates(rates: Any) -> list[Child]:
    rows = []
    for cell in rates.cells:
        text = f"{cell.text}: {share_words(cell.rate)}{_between(cell.low, cell.high)}"
        rows.append(
            element(
                "li",
                element("span", element("bdi", cell.text), class_="name"),
                bar(Bar(cell.rate, cell.low, cell.high, None, "none", text), 1.0),
                element(
                    "span",
                    element("b", share_words(cell.rate)),
                    element("small", f"{share_words(cell.weight)} of all"),
                    class_="value",
                ),
            )
        )
    return [
        element("h4", "Who gets the favourable decision"),
        element("p", f"The favourable decision is {rates.favourable}. {ratio_sentence(rates)}"),
        element("ol", rows, class_="bars"),
        element("p", _sure(rates), class_="note"),
    ]


def ratio_sentence(rates: Any) -> str:
    """Return the adverse impact ratio in words."""
    ratio = rates.ratio
    if ratio.value is None:
        return "Nobody gets it."
    bounds = "" if ratio.low == ratio.high else f" ({ratio.low:.3g} to {ratio.high:.3g})"
    said = f"The lowest rate is {ratio.value:.3g} times the highest{bounds}"
    if ratio.high < FOUR_FIFTHS:
        return f"{said}, below the four-fifths that are a common warning line."
    if ratio.low >= FOUR_FIFTHS:
        return f"{said}, above the four-fifths that are a common warning line."
    return f"{said}; the four-fifths that are a common warning line lie in between."


def _places(places: list[Any]) -> list[Child]:
    if not places:
        return []
    rows = [
        element(
            "tr",
            element("td", place.text),
            (
                number_cell(f"{share_words(s.share)}{_between(s.low, s.high)}", s.share)
                for s in (place.part, place.within, place.weight)
            ),
        )
        for place in places
    ]
    head = ("Where", "Part of all that is sensitive", "Sensitive there", "Of everything")
    return [
        element("h4", "Where it happens"),
        table(head, rows, "Places that hold most of it"),
        element("p", _sure(places[0]), class_="note"),
    ]
