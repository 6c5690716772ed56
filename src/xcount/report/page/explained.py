"""What goes with a count that explains itself: which way and how much, where, and for whom."""

from __future__ import annotations

from collections.abc import Sequence

from xcount.answers.explanation import Effect, GroupRates, Place
from xcount.answers.result import CountResult
from xcount.report.explanation_words import (
    explanation_of,
    favourable_text,
    highest,
    if_all_sentence,
    of_measure,
    ratio_sentence,
    said_of,
    unit_text,
    whose,
)
from xcount.report.markup import Child, Markup, element
from xcount.report.page.charts import bar, both_ways
from xcount.report.page.tables import number_cell, row, table, text_cell
from xcount.report.words.numbers import (
    axis_words,
    confidence_words,
    estimate_words,
    number_and_interval,
    share_and_interval,
    share_words,
)
from xcount.support.interval import Interval


def explained(result: CountResult, measure: str, heading: str = "h4") -> list[Child]:
    """Return the parts of an explanation, those that there are, under one measure.

    Args:
        result: what is explained.
        measure: whom the page speaks of; a part about others says so.
        heading: the element of the parts' headings.
    """
    found = explanation_of(result)
    effects, rates, places = (
        of_measure(found.effects, measure)[:1],
        of_measure(found.rates, measure)[:1],
        of_measure(found.places, measure),
    )
    parts: list[tuple[str, list[Child], Effect | GroupRates | Place]] = [
        *(
            ("Direction and size of the change", _effect(each, result.sensitive), each)
            for each in effects
        ),
        *(("Who gets the favourable decision", _rates(each, result), each) for each in rates),
        *(("Where it happens", _places(places), each) for each in places[:1]),
    ]
    return [
        [element(heading, title), body, element("p", _sure(entry, measure), class_="note")]
        for title, body, entry in parts
    ]


def _effect(effect: Effect, sensitive: Sequence[str]) -> list[Child]:
    up, down = effect.up, effect.down
    texts = [f"down: {share_and_interval(down)}", f"up: {share_and_interval(up)}"]
    return [
        both_ways((down, up), texts),
        element(
            "div",
            _sizes(effect),
            _highest(effect, sensitive),
            class_="columns",
        ),
    ]


def _sizes(effect: Effect) -> Markup | None:
    """Return the quantiles and the mean of the size of the change."""
    sizes = [(_level(quantile.level), quantile.size) for quantile in effect.quantiles]
    if effect.mean is not None:
        sizes.append(("On average", effect.mean))
    rows = [row(text_cell(what), number_cell(number_and_interval(size))) for what, size in sizes]
    if not rows:
        return None
    among = "of all" if effect.among == "all" else "of those that change"
    title = f"Size of the change of the {unit_text(effect.unit)}, {among}"
    return table(("", unit_text(effect.unit)), rows, title, can_sort=False)


def _level(level: float) -> str:
    """Return who moves by at most a quantile."""
    who = {0.5: "Half", 1.0: "All"}.get(level, axis_words(level))
    return f"{who} move by at most"


def _highest(effect: Effect, sensitive: Sequence[str]) -> Markup | None:
    found, more = highest(effect, sensitive)
    rows = [
        row(text_cell(each.label), number_cell(each.text_in(effect), each.share)) for each in found
    ]
    if not rows:
        return None
    rows += [row(text_cell(more), number_cell(""))] if more else []
    if effect.cells[0].class_label is not None:
        title = "Classes that are decided for some values but not for all, all else equal"
        return table(("With", "decided for"), rows, title, can_sort=False)
    title = f"Where the {unit_text(effect.unit)} is highest, all else equal"
    return table(("With", "highest for"), rows, title, can_sort=False)


def _sure(entry: Effect | GroupRates | Place, measure: str) -> str:
    """Return how sure the numbers of a part are, and whose they are if not the page's."""
    whom = said_of(entry, measure)
    whose = f"; they are shares {whom}" if whom else ""
    if entry.exact:
        return f"These numbers are exact{whose}."
    if entry.confidence == 1:
        return f"Intervals are guaranteed{whose}."
    return f"Intervals hold at once with {confidence_words(entry.confidence)} confidence{whose}."


def _rates(rates: GroupRates, result: CountResult) -> list[Child]:
    rows = []
    named = {cell.text: _group_name(cell.text, result.sensitive) for cell in rates.cells}
    cells = list(rates.cells)
    if any(name != text for text, name in named.items()):  # categories have no order of their own
        cells.sort(key=lambda cell: -cell.rate.least)
    for cell in cells:
        text = f"{cell.text}: {share_and_interval(cell.rate)}"
        share = f"{share_words(cell.weight)} of all"
        rows.append(_rate_row(element("bdi", named[cell.text]), cell.rate, text, share))
        if rates.differs and cell.if_all is not None:
            text = f"if all were: {share_and_interval(cell.if_all)}"
            rows.append(_rate_row("if all were", cell.if_all, text, None))
    return [
        element(
            "p", f"The favourable decision is {favourable_text(rates)}. {ratio_sentence(rates)}"
        ),
        element("p", said) if (said := if_all_sentence(rates)) else None,
        element("ol", rows, class_="bars"),
    ]


def _rate_row(title: Child, rate: Interval, text: str, detail: str | None) -> Markup:
    """Return a group's bar; that of ``if all were`` has no detail, and stands back."""
    return element(
        "li",
        element("span", title, class_="name"),
        bar(rate, text, 1.0),
        element(
            "span",
            element("b", estimate_words(rate)),
            None if detail is None else element("small", detail),
            class_="value",
        ),
        class_="if-all" if detail is None else None,
    )


def _group_name(text: str, sensitive: Sequence[str]) -> str:
    """Return a group of one feature's values without the feature's name, which stands above."""
    if len(sensitive) > 1:
        return text
    if text.startswith(f"{sensitive[0]} not in {{"):
        return "all others"
    return text.removeprefix(f"{sensitive[0]} = ")


def _places(places: Sequence[Place]) -> list[Child]:
    rows = [
        row(
            text_cell(place.text),
            number_cell(share_words(place.size), place.size),
            *(
                number_cell(share_and_interval(share), share.least)
                for share in (place.within, place.part)
            ),
        )
        for place in places
    ]
    size = f"Size, {whose(places[0].measure)}"
    head = ("Where", size, "Sensitive there", "Part of all sensitive")
    return [table(head, rows, "Places with the most sensitive cases")]
