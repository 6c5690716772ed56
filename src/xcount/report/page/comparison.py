"""A comparison as one self-contained HTML page: the culprit first, then question by question."""

from __future__ import annotations

from collections.abc import Sequence

from xcount.answers.result import CountResult
from xcount.measures.measured import REGIONS, Measured
from xcount.question.change import Change
from xcount.report.culprit import (
    Worsening,
    comparison_headline,
    question_text,
    ratio_text,
    sure_of_ratio,
    worsenings,
)
from xcount.report.explanation_words import explanation_of, unit_text
from xcount.report.group_words import comparison_sheets
from xcount.report.lead import share_shown
from xcount.report.markup import Child, Markup, element, joined, name
from xcount.report.page.axis import nice_ceiling
from xcount.report.page.charts import (
    Box,
    Line,
    bar,
    box_chart,
    curve_chart,
    legend,
)
from xcount.report.page.explained import explained
from xcount.report.page.groups import groups_section
from xcount.report.page.measures import compared_measures
from xcount.report.page.record import glossary_section, input_text, verified_facts
from xcount.report.page.shell import answer_card, page, tabs, toolbar
from xcount.report.page.tables import Cell, Row, fact_list, number_cell, row, table, text_cell
from xcount.report.sentences import (
    NOT_SAID,
    SHARED_GRID,
    cut_short_sentence,
    mean_share_text,
    panel_label,
    what_counts,
)
from xcount.report.words.numbers import (
    NONE,
    OF_MEASURE,
    axis_words,
    confidence_words,
    count_or_bounds,
    distance_text,
    estimate_words,
    integer,
    plural,
    seconds_text,
    short_interval,
    short_share,
    sure_words,
    table_share,
    time_text,
)
from xcount.report.words.shares import (
    file_name,
    has_rows,
    of_whom,
    realism_words,
    rows_words,
    share_of_changeable,
)
from xcount.runs.compare import CompareResult
from xcount.runs.compared import Compared, together
from xcount.runs.protected import is_protected
from xcount.support.interval import Interval
from xcount.support.numerals import digits

TOP_ROWS = 15
_TOP_WORSE = 8


def html_comparison(comparison: CompareResult) -> str:
    """Return the page.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> "C/C₀" in html_comparison(xcount.compare([figure_1(), figure_1()], gaps=80))
        True
    """
    title = f"Sensitivity comparison: {', '.join(comparison.names)}"
    body = joined(
        element(
            "header",
            element("p", "XCount sensitivity comparison", class_="kicker"),
            element("h1", _models(comparison)),
            element(
                "p",
                element("time", time_text(comparison.created), datetime=comparison.created),
                class_="date",
            ),
        ),
        element("main", _answer(comparison), _sections(comparison)),
        element("footer", element("p", f"Made by XCount {comparison.versions.get('xcount', '')}.")),
    )
    return page(title, body, len(comparison.panels))


def _models(comparison: CompareResult) -> list[Child]:
    parts: list[Child] = []
    for index, model in enumerate(comparison.names):
        parts += [" · " if index else None, name(model)]
    return parts


def _answer(comparison: CompareResult) -> Markup:
    findings = []
    for summary in comparison.ranking:
        said = f": mean share {mean_share_text(summary)} {OF_MEASURE[comparison.judge]}"
        if summary.index and summary.quartiles is not None:
            low, middle, high = summary.quartiles
            said += (
                f"; median {_ratio_word(comparison)} {middle:.3g} (quartiles {low:.3g} and "
                f"{high:.3g}) of {plural(summary.n_ratios, 'question')}"
            )
        elif not summary.index:
            said += " (the baseline)"
        findings.append(element("li", element("strong", name(summary.name)), said))
    return answer_card(
        comparison.verdict,
        comparison_headline(comparison),
        element("p", "The models, least sensitive first:", class_="answer"),
        element("ol", findings, class_="findings"),
    )


def _sections(comparison: CompareResult) -> list[Child]:
    if not comparison.rows:
        return [element("p", "No count was finished.")]
    return [
        toolbar(has_verdicts=False),
        _worse(comparison),
        _relative(comparison),
        _questions(comparison),
        compared_measures(comparison),
        groups_section(comparison_sheets(comparison)),
        _table(comparison),
        _record(comparison),
        glossary_section(comparison.results),
    ]


def _worse(comparison: CompareResult) -> Markup | None:
    """Return what got worse, the worst first."""
    found = worsenings(comparison)
    if not found:
        return None
    shown = found[: max(_TOP_WORSE, sum(map(_is_protected, found)))]
    rows = [_worse_row(comparison, each) for each in shown]
    what = _ratio_word(comparison)
    head = ("Features", "Question", "Model", "Baseline", "Now", _capitalised(what), "How sure")
    more = len(found) - len(shown)
    return element(
        "section",
        element("h2", "What got worse"),
        element(
            "p",
            f"Questions on which a model certainly has a larger share {of_whom(found[0].other)} "
            "than the baseline: the intervals do not overlap.",
        ),
        table(head, rows, "Protected features first, then the largest increases"),
        element("p", f"{more} more are in the table below.", class_="note") if more else None,
        id="worse",
    )


def _is_protected(each: Worsening) -> bool:
    return any(map(is_protected, each.row.sensitive))


def _worse_row(comparison: CompareResult, each: Worsening) -> Row:
    factor = None if each.ratio is None else each.ratio.value
    return row(
        text_cell(element("a", name(each.row.label), href=f"#{_key(comparison, each.row)}")),
        text_cell(question_text(each.row)),
        text_cell(name(comparison.names[each.index])),
        *(_measured_cell(measured.interval) for measured in (each.base, each.other)),
        number_cell(ratio_text(each.ratio) if each.ratio else "was 0", factor),
        text_cell(sure_of_ratio(each.ratio) if each.ratio else sure_words(each.other.interval)),
        data_sensitive=each.row.label,
    )


def _measured_cell(share: Interval) -> Cell:
    return number_cell(estimate_words(share), share.least, sure_words(share))


def _relative(comparison: CompareResult) -> Markup | None:
    boxes, what = [], _ratio_word(comparison)
    for index in range(1, comparison.n_models):
        found = [
            (ratio.value, f"{row.label} ({question_text(row)}): {what} {ratio_text(ratio)}")
            for row in comparison.rows
            if (ratio := row.ratio(index, comparison.judge)) is not None and ratio.value is not None
        ]
        if found:
            values, texts = zip(*found, strict=True)
            boxes.append(Box(comparison.names[index], values, texts))
    if not boxes:
        return None
    first = comparison.names[0]
    title = f"Relative sensitivity ({what}) to {first}"
    return element(
        "section",
        element("h2", "Relative sensitivity"),
        element(
            "p",
            "Each dot is one question: the model's share divided by that of ",
            name(first),
            " on the same grid. Left of 1 is less sensitive. The box spans the quartiles, its "
            "line is the median. Questions are left out if the baseline's share is zero, or if one "
            "of the two has no estimate.",
        ),
        element("figure", element("figcaption", title), box_chart(boxes, title)),
        id="relative",
    )


def _questions(comparison: CompareResult) -> Markup:
    bodies = [_panel(comparison, *panel) for panel in comparison.panels]
    return element(
        "section",
        element("h2", "Feature by feature"),
        element(
            "p",
            "Each feature has its own axis, so that small shares can be compared, too; the end of "
            "the axis is given beside the name. The baseline is grey.",
        ),
        tabs([panel_label(*panel) for panel in comparison.panels], bodies),
        id="features",
    )


def _panel(comparison: CompareResult, distance: int | None, change: Change) -> Markup:
    rows = [row for row in comparison.rows if (row.distance, row.change) == (distance, change)]
    worst = {id(each.row): place for place, each in reversed([*enumerate(worsenings(comparison))])}
    rows.sort(
        key=lambda row: (
            not any(map(is_protected, row.sensitive)),
            worst.get(id(row), len(worst)),
            _largest(row),
        )
    )
    n_first = sum(any(map(is_protected, row.sensitive)) for row in rows)
    shown = rows[: max(TOP_ROWS, n_first)]
    left_out = len(rows) - len(shown)
    note = f"{plural(left_out, 'feature')} more: see the table below." if left_out else ""
    return element(
        "section",
        element("h3", f"{change.sentence}, {distance_text(distance)}"),
        (_group(comparison, row) for row in shown),
        element("p", note, class_="note") if note else None,
    )


def _ratio_word(comparison: CompareResult) -> str:
    return "C/C₀" if comparison.judge == REGIONS else "ratio"


def _capitalised(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _largest(row: Compared) -> tuple[float, float, tuple[str, ...]]:
    return min(r.order for r in row.results if r is not None)


def _group(comparison: CompareResult, row: Compared) -> Markup:
    """Return a feature's bars on an axis that fits the largest of them."""
    shares = {
        index: share_shown(result, comparison.judge)
        for index, result in enumerate(row.results)
        if result is not None
    }
    axis = nice_ceiling(max(float(share.interval.high) for share in shares.values()))
    bars = [_bar_row(comparison, row, index, share, axis) for index, share in shares.items()]
    end = f"axis to {axis_words(axis)}"
    return element(
        "div",
        element("h4", name(row.label), element("small", end)),
        element("ol", bars, class_="bars"),
        _explanations(comparison, row),
        class_="group",
        id=_key(comparison, row),
        data_sensitive=row.label,
    )


def _key(comparison: CompareResult, row: Compared) -> str:
    """Return where the page shows a question."""
    return f"question-{next(k for k, each in enumerate(comparison.rows) if each is row)}"


def _explanations(comparison: CompareResult, row: Compared) -> Markup | None:
    """Return what explains the answers of the models, one after the other; None without any."""
    found = [
        (model, result)
        for model, result in zip(comparison.names, row.results, strict=True)
        if result is not None and result.explanation is not None
    ]
    if not found:
        return None
    parts = [
        [element("h4", name(model)), explained(result, comparison.judge, "h5")]
        for model, result in found
    ]
    return element(
        "details",
        element("summary", "Direction, size, places and groups"),
        _curves(found, comparison.judge),
        parts,
        class_="explained",
    )


def _curves(found: Sequence[tuple[str, CountResult]], judge: str) -> Markup | None:
    """Return the share of each model against the gap, in one chart."""
    curves = [
        (model, curve)
        for model, result in found
        for curve in explanation_of(result).curves
        if curve.measure == judge and len(curve.points) > 1
    ]
    if not curves:
        return None
    lines = [Line(model, tuple((p.gap, p.share) for p in curve.points)) for model, curve in curves]
    title = f"Share {OF_MEASURE[judge]} that changes by more than a gap"
    chart, _ = curve_chart(lines, title, f"gap in {unit_text(curves[0][1].unit)}")
    models = [model for model, _ in curves]
    return element("figure", element("figcaption", title), chart, legend(models))


def _bar_row(
    comparison: CompareResult, row: Compared, index: int, measured: Measured, axis: float
) -> Markup:
    model, result = comparison.names[index], row.results[index]
    assert result is not None
    share = measured.interval
    ratio, what = row.ratio(index, measured.name), _ratio_word(comparison)
    text = f"{model}: {estimate_words(share)} {of_whom(measured)}, {sure_words(share)}"
    if index and ratio is not None:
        text += f"; {what} {ratio_text(ratio)}, {sure_of_ratio(ratio)}"
    detail = None if share.value is None else short_interval(share)
    small = [element("small", detail)] if detail else []
    small += [element("small", f"{what} {ratio_text(ratio)}")] if index else []
    return element(
        "li",
        element("span", name(model), class_="name"),
        bar(share, text, axis, "none" if index else "base"),
        element("span", element("b", table_share(share)), small, class_="value"),
        data_model=model,
        data_count=None if result.count is None else digits(result.count),
        data_low=digits(result.low),
        data_high=digits(result.high),
    )


def _table(comparison: CompareResult) -> Markup:
    """Return every question: judged shares and their ratios, and the counts of regions."""
    judge, what = comparison.judge, _capitalised(_ratio_word(comparison))
    head = ["Features", "Question"]
    for index, model in enumerate(comparison.names):
        head += [f"Share {OF_MEASURE[judge]}, {model}"]
        head += [f"{what}, {model}"] if index else []
    head += [f"Sensitive regions, {model}" for model in comparison.names]
    rows = [_table_row(comparison, each) for each in comparison.rows]
    return element(
        "details",
        element("summary", f"{plural(len(rows), 'question')} as a table"),
        table(head, rows, "Shares, their ratios to the baseline, and counts of regions"),
        id="all",
        class_="rest",
    )


def _table_row(comparison: CompareResult, each: Compared) -> Row:
    cells = [text_cell(name(each.label)), Cell(question_text(each), each.change.size)]
    for index, result in enumerate(each.results):
        cells.append(_share_cell(result, comparison.judge))
        if index:
            ratio = each.ratio(index, comparison.judge)
            value = None if ratio is None else ratio.value
            cells.append(number_cell(ratio_text(ratio), value, sure_of_ratio(ratio) or None))
    cells += [_count_cell(result) for result in each.results]
    return row(*cells, data_sensitive=each.label)


def _share_cell(result: CountResult | None, measure: str) -> Cell:
    measured = None if result is None else result.measured(measure)
    if measured is None:
        return number_cell(NONE)
    share = measured.interval
    note = rows_words(measured) if has_rows(measured) else share_of_changeable(measured)
    small = None if note is None else element("small", note)
    return number_cell([short_share(share), small], share.least, sure_words(share))


def _count_cell(result: CountResult | None) -> Cell:
    if result is None:
        return number_cell(NONE)
    share = share_shown(result, REGIONS).interval
    about = "" if result.exact or result.count is None else "about "
    return number_cell(f"{about}{count_or_bounds(result)}", share.least, sure_words(share))


def _gaps(comparison: CompareResult) -> str:
    flip = what_counts(comparison.results)
    return comparison.gap_origin if flip is None else f"none: {flip}"


def _shared_grid(comparison: CompareResult) -> str:
    guards = f", {integer(comparison.n_guards)} guards" if comparison.n_guards else ""
    return f"{integer(comparison.n_regions)} regions{guards}"


def _record(comparison: CompareResult) -> Markup:
    results = comparison.results
    exact = sum(result.exact for result in results)
    facts: list[tuple[str, Child]] = []
    for model, label in zip(comparison.models, comparison.names, strict=True):
        text = element("code", model.sha256 or "not read from a file")
        what = f"{file_name(model.path)}, " if model.path else ""
        facts.append((label, [f"{what}{model.n_trees} trees, {model.format}, SHA-256 ", text]))
    facts += [
        *((given.role.capitalize(), input_text(given)) for given in comparison.inputs),
        *(("How realistic", words) for words in [realism_words(results)] if words is not None),
        ("Domain", comparison.domain.text if comparison.domain else "all inputs"),
        ("Shared grid", _shared_grid(comparison)),
        ("Measure", comparison.judge),
        ("Gaps", _gaps(comparison)),
        ("Counts", f"{exact} of {len(results)} exact"),
        *(("Time limit", sentence) for sentence in cut_short_sentence(results)),
        *verified_facts(results),
        *(("Note", note) for note in comparison.notes),
        ("Computing time", seconds_text(sum(result.seconds for result in results))),
        ("Versions", ", ".join(f"{k} {v}" for k, v in comparison.versions.items())),
        ("Started", comparison.created),
    ]
    return element(
        "section",
        element("h2", "Certificate"),
        element(
            "p",
            "All models were counted on one grid with the thresholds of all of them, "
            f"so that a region means the same for each. {SHARED_GRID} What this does not say: "
            f"{NOT_SAID[comparison.judge]}",
        ),
        element("p", _how_sure(comparison)),
        element("h3", "For the record"),
        fact_list(facts),
        id="certificate",
        class_="certificate",
    )


def _how_sure(comparison: CompareResult) -> str:
    """Return how sure the ratios are: each by itself, and all together."""
    ratios = [
        ratio
        for row in comparison.rows
        for index in range(1, comparison.n_models)
        if (ratio := row.ratio(index, comparison.judge)) is not None
    ]
    least = min((ratio.sureness for ratio in ratios), default=1.0)
    if least == 1:
        if comparison.judge == REGIONS:
            return "The bounds of all ratios are guaranteed: no count was sampled."
        shares = f"the shares {OF_MEASURE[comparison.judge]}"
        return f"The bounds of all ratios of {shares} are guaranteed: none was sampled."
    all_of_them = together(result.confidence for result in comparison.results)
    joint = f" All counts hold at once with probability at least {confidence_words(all_of_them)}."
    return (
        "A ratio is as certain as both of its counts at once: two intervals that each hold with "
        "probability 1 - delta hold at once with at least 1 - 2 delta. Here that is "
        f"{confidence_words(least)} or more for each ratio.{joint if all_of_them > 0 else ''}"
    )
