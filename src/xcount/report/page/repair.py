"""The page of a repair: the questions before and after, what changed, what it costs."""

from __future__ import annotations

from xcount.answers.result import CountResult, Verdict
from xcount.repairs.result import Repaired, RepairResult, Tested
from xcount.report.explanation_words import explanation_of, unit_text
from xcount.report.markup import Child, Markup, element, joined
from xcount.report.page.charts import Line, curve_chart, legend
from xcount.report.page.shell import answer_card, page
from xcount.report.page.tables import fact_list, number_cell, row, table, text_cell
from xcount.report.repair_text import (
    QUALITIES,
    change_facts,
    quality_rows,
    repair_headline,
    repair_title,
    share_lines,
)
from xcount.report.text import model_text, question_text
from xcount.support.interval import Interval


def html_repair(result: RepairResult) -> str:
    """Return the page.

    Example:
        >>> import numpy, xcount
        >>> from xcount.model.examples import figure_1
        >>> rows = numpy.zeros((1, 2))
        >>> result = xcount.repair(figure_1(), sensitive="f0", gap=80, data=rows, explain=True)
        >>> "The limit is proved" in html_repair(result)
        True
    """
    body = joined(
        element(
            "header",
            element("p", "XCount: a repaired model", class_="kicker"),
            element("h1", repair_title(result)),
        ),
        element(
            "main",
            _answer(result),
            [_question(each) for each in result.questions],
            _section("What changed", [fact_list(change_facts(result))]),
            _quality(result.test),
            _section("Record", [_record(result)]),
        ),
        element("footer", element("p", f"Made by XCount {result.versions.get('xcount', '')}.")),
    )
    return page(repair_title(result), body)


def _section(title: str, body: list[Child]) -> Markup:
    return element("section", element("h2", title), body)


def _answer(result: RepairResult) -> Markup:
    return answer_card(
        Verdict.PASS if result.proved else Verdict.UNDECIDED,
        repair_headline(result),
        element("p", question_text(result.before), class_="answer"),
        element("ul", [element("li", note) for note in result.notes], class_="findings"),
    )


def _question(question: Repaired) -> Markup:
    rows = [
        row(text_cell(label), text_cell(joined(*_lines(share_lines(count)))))
        for label, count in (("Before", question.before), ("After", question.after))
    ]
    counts = table(("", "Sensitive"), rows, "Sensitive regions and rows", can_sort=False)
    return _section(question_text(question.before), [counts, *_curves(question)])


def _lines(texts: list[str]) -> list[Child]:
    return [element("div", text) for text in texts]


def _curves(question: Repaired) -> list[Child]:
    """Return the shares of the regions against the gap, before and after."""
    lines = [
        Line(label, curve)
        for label, count in (("before", question.before), ("after", question.after))
        for curve in _curves_of(count)
    ]
    if not lines:
        return []
    unit = unit_text(explanation_of(question.before).curves[0].unit)
    title = f"Share of the regions that changes by more than a gap in {unit}"
    chart, _ = curve_chart(lines, title, f"gap in {unit}")
    key = legend([line.label for line in lines])
    return [element("figure", element("figcaption", title), chart, key)]


def _curves_of(count: CountResult) -> list[tuple[tuple[float, Interval], ...]]:
    if count.explanation is None:
        return []
    curves = [each for each in count.explanation.curves if each.measure == "regions"]
    return [tuple((p.gap, p.share) for p in curve.points) for curve in curves if curve.points]


def _quality(test: Tested | None) -> Markup | None:
    if test is None:
        return None
    found = quality_rows(test)
    used = [name for name in QUALITIES if getattr(found[0][1], name) is not None]
    rows = [
        row(text_cell(label), *(number_cell(f"{getattr(own, name):.4f}") for name in used))
        for label, own, _ in found
        if all(getattr(own, name) is not None for name in used)
    ]
    head = ("Model", *(QUALITIES[name] for name in used))
    shown: list[Child] = [table(head, rows, f"On {test.n_rows:,} labelled rows", can_sort=False)]
    if test.retraining is not None:
        shown.append(element("p", f"Retraining: {test.retraining}"))
    return _section("How well the models predict", shown)


def _record(result: RepairResult) -> Markup:
    count = result.before
    facts: list[tuple[str, Child]] = [("Model", f"{count.model.format}, {model_text(count.model)}")]
    for label, model in (("the model", count.model), ("the repaired model", result.after.model)):
        facts.append((f"SHA-256 of {label}", model.sha256 or "a live model"))
    facts += [("Domain", count.domain.text)] if count.domain else []
    facts += [("Written to", result.output)] if result.output else []
    facts.append(("Versions", ", ".join(f"{what} {v}" for what, v in result.versions.items())))
    return fact_list(facts)
