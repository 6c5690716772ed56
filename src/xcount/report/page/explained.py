"""What goes with a count that explains itself: which way and how much, where, and for whom."""

from __future__ import annotations

from collections.abc import Sequence

from xcount.answers.explanation import Effect, GroupRates, Place
from xcount.answers.result import CountResult
from xcount.report.explanation_words import explanation_of, of_measure, ratio_sentence, unit_text
from xcount.report.markup import Child, Markup, element
from xcount.report.numbers import interval_words, share_words
from xcount.report.page.charts import Bar, bar, both_ways
from xcount.report.page.tables import number_cell, table

_TOP_CELLS = 5


def explained(result: CountResult, measure: str) -> list[Child]:
    """Return the parts of an explanation, those that there are, under one measure."""
    found = explanation_of(result)
    return [
        [_effect(effect) for effect in of_measure(found.effects, measure)[:1]],
        [_rates(rates) for rates in of_measure(found.rates, measure)[:1]],
        _places(of_measure(found.places, measure)),
    ]


def _effect(effect: Effect) -> list[Child]:
    up, down = effect.up, effect.down
    ends = [(e.share, e.low, e.high) for e in (down, up)]
    texts = [
        f"{way}: {share_words(e.share)}{_between(e.low, e.high)}"
        for way, e in (("down", down), ("up", up))
    ]
    return [
        element("h4", "Which way, and how much"),
        both_ways(ends, texts),
        element(
            "div",
            _sizes(effect),
            _highest(effect),
            class_="columns",
        ),
        element("p", _sure(effect), class_="note"),
    ]


def _sizes(effect: Effect) -> Markup | None:
    """Return the quantiles and the mean of the size of the change."""
    sizes = [(_level(q.level), q.value, q.low, q.high) for q in effect.quantiles]
    if effect.mean is not None:
        sizes.append(("On average", effect.mean.value, effect.mean.low, effect.mean.high))
    rows = [
        element("tr", element("td", what), number_cell(f"{value:.3g}{_numbers(low, high)}"))
        for what, value, low, high in sizes
    ]
    if not rows:
        return None
    among = "of all" if effect.among == "all" else "of those that change"
    title = f"Size of the change of the {unit_text(effect.unit)}, {among}"
    return table(("", unit_text(effect.unit)), rows, title, can_sort=False)


def _level(level: float) -> str:
    """Return who moves by at most a quantile."""
    who = {0.5: "Half", 1.0: "All"}.get(level, f"{level * 100:g} %")
    return f"{who} move by at most"


def _highest(effect: Effect) -> Markup | None:
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
    title = f"Where the {unit_text(effect.unit)} is highest, all else equal"
    return table(("With", "highest for"), rows, title, can_sort=False)


def _between(low: float, high: float) -> str:
    return "" if low == high else f" ({interval_words(low, high)})"


def _numbers(low: float, high: float) -> str:
    return "" if low == high else f" ({low:.3g} to {high:.3g})"


def _sure(entry: Effect | GroupRates | Place) -> str:
    if entry.exact:
        return "These numbers are exact."
    if entry.confidence == 1:
        return "Intervals are guaranteed."
    return f"Intervals hold together with {entry.confidence:.0%} confidence."


def _rates(rates: GroupRates) -> list[Child]:
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


def _places(places: Sequence[Place]) -> list[Child]:
    if not places:
        return []
    rows = [
        element(
            "tr",
            element("td", place.text),
            (
                number_cell(f"{share_words(s.share)}{_between(s.low, s.high)}", s.share)
                for s in (place.part, place.weight, place.within)
            ),
        )
        for place in places
    ]
    head = ("Where", "Part of all that is sensitive", "Sensitive there, of all", "Of the place")
    return [
        element("h4", "Where it happens"),
        table(head, rows, "Places that hold most of it"),
        element("p", _sure(places[0]), class_="note"),
    ]
