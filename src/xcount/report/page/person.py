"""The page about one person: the answer, a bar for every cell, the person's values."""

from __future__ import annotations

from xcount.answers.person import PersonCell, PersonResult
from xcount.report.markup import Child, Markup, element, joined, name
from xcount.report.page.charts import bar
from xcount.report.page.shell import answer_card, page
from xcount.report.page.tables import fact_list, number_cell, row, table, text_cell
from xcount.report.person_words import (
    bar_interval,
    bar_title,
    confirmed_text,
    got,
    note,
    others_text,
    person_answer,
    person_question,
)
from xcount.report.text import model_text
from xcount.report.words.numbers import NONE


def html_person(result: PersonResult) -> str:
    """Return the page.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> people = {"f0": [1, 5], "f1": [0, 2.5]}
        >>> found = xcount.person(figure_1(), data=people, row=0, sensitive="f0", cutoff=0)
        >>> "The nearest change" in html_person(found)
        True
    """
    body = joined(
        element(
            "header",
            element("p", "XCount: one person", class_="kicker"),
            element("h1", person_question(result)),
        ),
        element("main", _answer(result), _cells(result), _person(result), _record(result)),
        element("footer", element("p", f"Made by XCount {result.versions.get('xcount', '')}.")),
    )
    return page(person_question(result), body)


def _answer(result: PersonResult) -> Markup:
    return answer_card(
        None,
        person_answer(result),
        element("p", f"Now: {got(result.now)}.", class_="answer"),
        element(
            "ul",
            element("li", others_text(result)),
            element("li", confirmed_text(result)),
            class_="findings",
        ),
    )


def _cells(result: PersonResult) -> Markup:
    rows = [
        row(
            text_cell(name(cell.text)),
            text_cell(cell.decision or NONE),
            number_cell(NONE if cell.probability is None else f"{cell.probability:.3f}"),
            number_cell(f"{cell.margin:.4g}", cell.margin),
            number_cell(f"{cell.distance:,}", cell.distance),
            text_cell(note(cell)),
        )
        for cell in result.cells
    ]
    head = ("With", "Decision", "Probability", "Margin", "Distance", "Change")
    return element(
        "section",
        element("h2", "With every other value"),
        element("p", f"Bars: {bar_title(result)}. All other features stay.", class_="note"),
        element("ol", (_bar(result, cell) for cell in result.cells), class_="bars"),
        table(head, rows, "The same as numbers"),
    )


def _bar(result: PersonResult, cell: PersonCell) -> Markup:
    said = note(cell)
    return element(
        "li",
        element("span", name(cell.text), class_="name"),
        bar(bar_interval(result, cell), f"{cell.text}: {got(cell)}", 1.0),
        element(
            "span",
            element("b", got(cell)),
            element("small", said) if said else None,
            class_="value",
        ),
    )


def _person(result: PersonResult) -> Markup:
    facts: list[tuple[str, Child]] = [
        (feature, result.labels.get(feature, "missing" if value is None else f"{value:g}"))
        for feature, value in result.inputs.items()
    ]
    return element("section", element("h2", f"Row {result.row}"), fact_list(facts))


def _record(result: PersonResult) -> Markup:
    facts: list[tuple[str, Child]] = [
        ("Model", f"{result.model.format}, {model_text(result.model)}"),
        ("SHA-256", result.model.sha256 or "a live model"),
        *([("Domain", result.domain.text)] if result.domain else []),
        ("Versions", ", ".join(f"{what} {v}" for what, v in result.versions.items())),
    ]
    return element("section", element("h2", "Record"), fact_list(facts))
