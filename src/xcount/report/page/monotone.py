"""The page about orders: the verdict, which features keep which, and pairs that break one."""

from __future__ import annotations

from xcount.answers.monotone import FeatureOrder, MonotoneResult
from xcount.report.markup import Child, Markup, element, joined
from xcount.report.monotone_text import (
    ALL_ORDERS,
    allowed_words,
    monotone_question,
    order_words,
)
from xcount.report.page.shell import answer_card, page
from xcount.report.page.tables import fact_list, row, table, text_cell
from xcount.report.text import model_text
from xcount.report.witness_text import values
from xcount.report.words.numbers import seconds_text


def html_monotone(result: MonotoneResult) -> str:
    """Return the page.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> "Is the model monotone?" in html_monotone(xcount.monotone(figure_1(), decreasing="f1"))
        True
    """
    title = "Is the model monotone?"
    body = joined(
        element("header", element("p", "XCount", class_="kicker"), element("h1", title)),
        element("main", _answer(result), _orders(result), _pairs(result), _record(result)),
        element("footer", element("p", f"Made by XCount {result.versions.get('xcount', '')}.")),
    )
    return page(title, body)


def _answer(result: MonotoneResult) -> Markup:
    n_proved = sum(each.holds is True for each in result.results)
    headline = f"{n_proved} of {len(result.results)} orders are proved"
    return answer_card(
        result.verdict,
        headline,
        element("p", monotone_question(result), class_="answer"),
        element(
            "ul",
            element("li", f"Allowed: {allowed_words(result)}."),
            element("li", "Proved means that no input, seen or unseen, breaks the order."),
            class_="findings",
        ),
    )


def _orders(result: MonotoneResult) -> Markup:
    rows = [
        row(
            text_cell(each.feature),
            text_cell(each.direction),
            text_cell(order_words(each)),
            text_cell(str(each.verdict)),
        )
        for each in result.results
    ]
    head = ("Feature", "The output should be", "Answer", "Verdict")
    return element("section", element("h2", "Orders"), table(head, rows, ""), _kept(result))


def _kept(result: MonotoneResult) -> Markup | None:
    """Return which order each feature keeps, if all were asked about."""
    if result.holds is None:
        return None
    rows = [
        row(text_cell(feature), text_cell(ALL_ORDERS.get(order, order)))
        for feature, order in result.holds.items()
    ]
    return table(("Feature", "Order it keeps"), rows, "Every feature")


def _pairs(result: MonotoneResult) -> Markup | None:
    pairs = [pair for each in result.results for pair in _pairs_of(each)]
    if not pairs:
        return None
    return element("section", element("h2", "Inputs that break an order"), *pairs)


def _pairs_of(found: FeatureOrder) -> list[Child]:
    """Return a table for each pair: the input as it is, and with a higher value."""
    tables: list[Child] = []
    for number, witness in enumerate(found.witnesses or (), start=1):
        rows = [
            row(text_cell(feature), text_cell(before), text_cell(after))
            for feature, before, after in values(witness)
        ]
        margins = (f"{witness.margin:.6g}", f"{witness.other_margin:.6g}")
        rows.append(row(text_cell(element("strong", "margin")), *map(text_cell, margins)))
        caption = f"{found.feature} {found.direction}, pair {number}"
        tables.append(table(("", "As it is", "Raised"), rows, caption, can_sort=False))
    return tables


def _record(result: MonotoneResult) -> Markup:
    facts: list[tuple[str, Child]] = [
        ("Model", f"{result.model.format}, {model_text(result.model)}"),
        ("SHA-256", result.model.sha256 or "a live model"),
        *([("Domain", result.domain.text)] if result.domain else []),
        ("Run", seconds_text(result.seconds)),
        ("Versions", ", ".join(f"{what} {version}" for what, version in result.versions.items())),
    ]
    return element("section", element("h2", "Record"), fact_list(facts))
