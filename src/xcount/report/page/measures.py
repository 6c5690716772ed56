"""The measures side by side: the same questions with other weights, of one model or of several."""

from __future__ import annotations

from collections.abc import Sequence

from xcount.answers.result import CountResult
from xcount.measures.measured import REGIONS, Measured
from xcount.report.culprit import question_text, ratio_text
from xcount.report.markup import Child, Markup, element, name
from xcount.report.page.tables import Cell, Row, number_cell, row, table, text_cell
from xcount.report.page.view import View
from xcount.report.sentences import label_of, panel_label
from xcount.report.words.numbers import NONE, plural, short_interval, sure_words, table_share
from xcount.report.words.shares import has_rows, rows_words, share_of_changeable
from xcount.runs.compare import CompareResult
from xcount.runs.compared import Compared

MAX_ROWS = 400
MAX_OPEN_ROWS = 12


def measures(view: View) -> Markup | None:
    """Return an audit's shares under other measures, where they were measured."""
    found = [r for r in view.audit.results if r.measures]
    if not found:
        return None
    names = list(dict.fromkeys(measure for r in found for measure in r.measures))
    rows = [
        row(
            text_cell(view.link(r.sensitive)),
            text_cell(panel_label(r.distance, r.change)),
            *(measured_cell(r.measured(measure)) for measure in (REGIONS, *names)),
            data_sensitive=label_of(r),
            data_verdict=None if r.verdict is None else str(r.verdict),
        )
        for r in view.in_order(found)[:MAX_ROWS]
    ]
    return _section(("Features", "Question"), names, rows, len(rows))


def compared_measures(comparison: CompareResult) -> Markup | None:
    """Return the shares of all models under other measures, and their ratios to the first one's."""
    found = [each for each in comparison.rows if each.measures]
    if not found:
        return None
    names = list(dict.fromkeys(measure for each in found for measure in each.measures))
    shown = found[: max(1, MAX_ROWS // comparison.n_models)]
    rows = [
        _compared_row(comparison, each, index, result, (REGIONS, *names))
        for each in shown
        for index, result in enumerate(each.results)
        if result is not None
    ]
    return _section(("Features", "Question", "Model"), names, rows, len(shown))


def _compared_row(
    comparison: CompareResult,
    each: Compared,
    index: int,
    result: CountResult,
    names: Sequence[str],
) -> Row:
    return row(
        text_cell(name(each.label)),
        text_cell(question_text(each)),
        text_cell(name(comparison.names[index])),
        *(measured_cell(result.measured(m), _ratio(each, index, m)) for m in names),
        data_sensitive=each.label,
    )


def _ratio(each: Compared, index: int, measure: str) -> str:
    ratio = each.ratio(index, measure) if index else None
    return "" if ratio is None else f"ratio {ratio_text(ratio)}"


def _section(
    first: Sequence[str], names: Sequence[str], rows: Sequence[Row], n_questions: int
) -> Markup:
    head = (*first, *(f"By {measure}" for measure in (REGIONS, *names)))
    body = table(head, rows, "Shares by measure")
    if len(rows) > MAX_OPEN_ROWS:
        summary = element("summary", f"{plural(n_questions, 'question')} by each measure")
        body = element("details", summary, body, class_="rest")
    return element(
        "section",
        element("h2", "Measures side by side"),
        element("p", "The same questions, weighted by regions, volume or people."),
        body,
        id="measures",
    )


def measured_cell(measured: Measured | None, more: str = "") -> Cell:
    """Return a share with its interval, if it has one, its rows, and what else there is to say."""
    if measured is None:
        return number_cell(NONE)
    share, details = measured.interval, list[Child]()
    if share.value is not None and not share.is_settled:
        details.append(element("small", short_interval(share)))
    if has_rows(measured):
        details.append(element("small", rows_words(measured)))
    elif (changeable := share_of_changeable(measured)) is not None:
        details.append(element("small", changeable))
    if more:
        details.append(element("small", more))
    return number_cell([table_share(share), details], share.least, sure_words(share))
