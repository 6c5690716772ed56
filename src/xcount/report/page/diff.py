"""The page of a diff: the answer, which way and how much, where, and inputs to try."""

from __future__ import annotations

from xcount.answers.diff_result import DiffResult
from xcount.answers.explanation import Curve
from xcount.report.diff_words import (
    diff_headline,
    diff_question,
    input_texts,
    outputs_text,
    swap_text,
    swap_title,
)
from xcount.report.explanation_words import explanation_of, unit_text
from xcount.report.group_words import diff_sheets
from xcount.report.markup import Child, Markup, element, joined, name
from xcount.report.page.charts import Line, curve_chart
from xcount.report.page.explained import explained
from xcount.report.page.groups import groups_section
from xcount.report.page.shell import answer_card, page
from xcount.report.page.tables import fact_list, number_cell, row, table, text_cell
from xcount.report.text import answer_text, count_text, measured_text, model_text
from xcount.report.words.numbers import OF_MEASURE, share_and_interval
from xcount.support.interval import Interval


def html_diff(result: DiffResult) -> str:
    """Return the page.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> "agree in every region" in html_diff(xcount.diff(figure_1(), figure_1(), gap=1))
        True
    """
    title = f"Differences between {' and '.join(result.names)}"
    body = joined(
        element(
            "header",
            element("p", "XCount: two models compared", class_="kicker"),
            element("h1", name(result.names[0]), " · ", name(result.names[1])),
        ),
        element("main", _answer(result), _sections(result)),
        element("footer", element("p", f"Made by XCount {result.versions.get('xcount', '')}.")),
    )
    return page(title, body)


def _answer(result: DiffResult) -> Markup:
    shares = [
        element("li", f"By {measure}: {measured_text(measured)}")
        for measure, measured in result.measures.items()
    ]
    return answer_card(
        result.verdict,
        diff_headline(result),
        element("p", diff_question(result), class_="answer"),
        element(
            "ul",
            element("li", f"{answer_text(result)} of {count_text(result.n_regions)} regions"),
            shares,
            class_="findings",
        ),
    )


def _sections(result: DiffResult) -> list[Child]:
    return [
        _section("Which way", _swaps(result)),
        groups_section(diff_sheets(result)),
        _section("How much", _curves(result)),
        _section("Where and how", explained(result, result.judge, "h3")),
        _section("Inputs on which they disagree", _inputs(result)),
        _section("Record", [_record(result)]),
    ]


def _section(title: str, body: list[Child]) -> Markup | None:
    return element("section", element("h2", title), body) if body else None


def _swaps(result: DiffResult) -> list[Child]:
    rows = [
        row(text_cell(swap_title(swap, result.names)), text_cell(swap_text(swap)))
        for swap in result.swaps
    ]
    caption = f"Changes from {result.names[0]} to {result.names[1]}"
    return [table(("Change", "How many"), rows, caption, can_sort=False)] if rows else []


def _curves(result: DiffResult) -> list[Child]:
    """Return the share that differs against the gap, a line for each measure."""
    curves = [curve for curve in explanation_of(result).curves if len(curve.points) > 1]
    if not curves:
        return []
    title = f"Share that differs by more than a gap in {unit_text(curves[0].unit)}"
    lines = [Line(curve.measure, _points(curve)) for curve in curves]
    chart, _ = curve_chart(lines, title, f"gap in {unit_text(curves[0].unit)}")
    rows = [
        row(number_cell(f"{point.gap:g}", point.gap), number_cell(share_and_interval(point.share)))
        for point in curves[0].points
    ]
    head = ("Gap", f"Share {OF_MEASURE[curves[0].measure]}")
    return [
        element("figure", element("figcaption", title), chart),
        table(head, rows, "The same as numbers", can_sort=False),
    ]


def _points(curve: Curve) -> tuple[tuple[float, Interval], ...]:
    return tuple((point.gap, point.share) for point in curve.points)


def _inputs(result: DiffResult) -> list[Child]:
    found: list[Child] = []
    for number, witness in enumerate(result.witnesses or (), start=1):
        rows = [row(text_cell(feature), text_cell(v)) for feature, v in input_texts(witness)]
        rows += [
            row(text_cell(element("strong", model)), text_cell(outputs_text(witness, side)))
            for side, model in enumerate(result.names)
        ]
        is_sure = witness.library_margins is not None
        said = ", confirmed by both libraries" if is_sure else ", not confirmed by the libraries"
        found.append(table(("", "Value"), rows, f"Input {number}{said}", can_sort=False))
    return found


def _record(result: DiffResult) -> Markup:
    facts: list[tuple[str, Child]] = []
    for model_name, model in zip(result.names, result.models, strict=True):
        facts.append((model_name, f"{model.format}, {model_text(model)}"))
        facts.append((f"SHA-256 of {model_name}", model.sha256 or "a live model"))
    facts += [("Domain", result.domain.text)] if result.domain else []
    facts += [
        ("Method", f"{result.method}, {result.stop_reason}, seed {result.seed}"),
        ("Accuracy", f"epsilon {result.epsilon:g}, delta {result.delta:g}"),
        ("Versions", ", ".join(f"{what} {v}" for what, v in result.versions.items())),
    ]
    facts += [("Note", note) for note in result.notes]
    return fact_list(facts)
