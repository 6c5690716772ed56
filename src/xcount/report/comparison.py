"""A comparison as one self-contained HTML page."""

from __future__ import annotations

from xcount.answers.result import CountResult, Verdict
from xcount.question.change import Change
from xcount.report.charts import Bar, Box, bar, box_chart, nice_ceiling
from xcount.report.markup import Child, Markup, element, joined, name
from xcount.report.numbers import (
    NONE,
    count_or_bounds,
    distance_text,
    how_sure,
    integer,
    plural,
    seconds_text,
    share_text,
    short_interval,
    short_share,
    time_text,
)
from xcount.report.page import BADGES, page, tabs
from xcount.report.sentences import mean_share_text, panel_label
from xcount.report.tables import fact_list, number_cell, table
from xcount.runs.compare import CompareResult
from xcount.runs.compared import Compared
from xcount.support.numerals import digits

TOP_ROWS = 15


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
            element("h1", name(" · ".join(comparison.names))),
            element(
                "p",
                element("time", time_text(comparison.created), datetime=comparison.created),
                class_="date",
            ),
        ),
        element("main", _verdict(comparison), _blocks(comparison)),
        element("footer", element("p", f"Made by XCount {comparison.versions.get('xcount', '')}.")),
    )
    return page(title, body, len(comparison.panels))


def headline(comparison: CompareResult) -> str:
    """Return the outcome in one line."""
    limit = float(comparison.max_ratio or 0)
    if comparison.verdict is Verdict.PASS:
        return f"No count is more than {limit:g} times the baseline's"
    if comparison.verdict is Verdict.FAIL:
        return f"Some counts are more than {limit:g} times the baseline's"
    if comparison.verdict is not None and not comparison.is_whole:
        return (
            f"Not decided: {comparison.n_results} of {comparison.n_planned} counts are there, and "
            f"none shows more than {limit:g} times the baseline's"
        )
    if comparison.verdict is Verdict.UNDECIDED:
        return f"Not decided: some ratios may be above or below {limit:g}"
    best, *others = comparison.ranking
    is_open = any(summary.mean_share is None for summary in comparison.ranking)
    overlaps = any(best.mean_share_high > other.mean_share_low for other in others)
    known = ", as far as the bounds tell" if is_open and overlaps else ""
    return f"Least sensitive{known}: {best.name}"


def ratio_text(row: Compared, index: int) -> str:
    """Return C_i / C_0 with its bounds."""
    ratio = row.ratio(index)
    if ratio is None:
        return NONE
    if ratio.low == ratio.high:
        return f"{ratio.low:.3g}"
    high = "∞" if ratio.high is None else f"{ratio.high:.3g}"
    interval = f"{ratio.low:.3g} to {high}"
    return interval if ratio.value is None else f"{ratio.value:.3g} ({interval})"


def _verdict(comparison: CompareResult) -> Markup:
    kind, symbol, word = BADGES[comparison.verdict]
    findings = []
    for summary in comparison.ranking:
        said = f": mean share {mean_share_text(summary)}"
        if summary.index and summary.quartiles is not None:
            low, middle, high = summary.quartiles
            said += (
                f"; C/C₀ has the median {middle:.3g} (quartiles {low:.3g} and {high:.3g}) "
                f"over {plural(summary.n_ratios, 'question')}"
            )
        elif not summary.index:
            said += " (the baseline)"
        findings.append(element("li", element("strong", name(summary.name)), said))
    return element(
        "section",
        element(
            "p",
            element("span", symbol, class_="symbol", aria_hidden="true"),
            element("strong", word, id="verdict"),
            class_="badge",
        ),
        element("h2", headline(comparison)),
        element("ol", findings, class_="findings"),
        class_=f"verdict {kind}",
        aria_label="Outcome",
    )


def _blocks(comparison: CompareResult) -> list[Child]:
    return [
        _relative(comparison),
        _questions(comparison),
        _table(comparison),
        _record(comparison),
    ]


def _relative(comparison: CompareResult) -> Markup | None:
    boxes = []
    for index in range(1, comparison.n_models):
        ratios = comparison.known_ratios(index)
        if ratios:
            boxes.append(Box(comparison.names[index], tuple(ratios)))
    if not boxes:
        return None
    first = comparison.names[0]
    title = f"Relative sensitivity C/C₀ to {first}"
    return element(
        "section",
        element("h2", "Relative sensitivity"),
        element(
            "p",
            "Each dot is one question: the model's count of sensitive regions divided by that of ",
            name(first),
            " on the same grid. Left of 1 is less sensitive. The box spans the quartiles, its "
            "line is the median. Questions that the baseline answers with zero are left out, and "
            "those without an estimate of both counts.",
        ),
        element("figure", element("figcaption", title), box_chart(boxes, title)),
        id="relative",
    )


def _questions(comparison: CompareResult) -> Markup | None:
    if not comparison.rows:
        return element("p", "No count was finished.")
    bodies = [_panel(comparison, *panel) for panel in comparison.panels]
    return element(
        "section",
        element("h2", "Feature by feature"),
        tabs([panel_label(*panel) for panel in comparison.panels], bodies),
        id="features",
    )


def _panel(comparison: CompareResult, distance: int | None, change: Change) -> Markup:
    rows = [row for row in comparison.rows if (row.distance, row.change) == (distance, change)]
    rows.sort(key=lambda row: min(r.order for r in row.results if r is not None))
    shown = rows[:TOP_ROWS]
    highest = max((r.share_high for row in shown for r in row.results if r is not None), default=0)
    axis = nice_ceiling(highest)
    note = f"The axis ends at {axis * 100:g} %."
    if len(rows) > TOP_ROWS:
        note += f" These are the {TOP_ROWS} largest of {len(rows)}."
    return element(
        "section",
        element("h3", f"{change.sentence}, {distance_text(distance)}"),
        (_group(comparison, row, axis) for row in shown),
        element("p", note, class_="note"),
    )


def _group(comparison: CompareResult, row: Compared, axis: float) -> Markup:
    bars = [
        _bar_row(comparison.names[index], result, axis, index, ratio_text(row, index))
        for index, result in enumerate(row.results)
        if result is not None
    ]
    return element(
        "div", element("h4", name(row.label)), element("ol", bars, class_="bars"), class_="group"
    )


def _bar_row(model: str, result: CountResult, axis: float, index: int, ratio: str) -> Markup:
    text = f"{model}: {share_text(result)} of the regions, {how_sure(result)}"
    shape = Bar(result.share, result.share_low, result.share_high, None, "none", text)
    has_detail = not result.exact and result.count is not None
    detail = element("small", short_interval(result)) if has_detail else None
    relative = element("small", f"C/C₀ {ratio}") if index else None
    return element(
        "li",
        element("span", name(model), class_="name"),
        bar(shape, axis),
        element("span", element("b", short_share(result)), detail, relative, class_="value"),
        data_model=model,
        data_count=None if result.count is None else digits(result.count),
        data_low=digits(result.low),
        data_high=digits(result.high),
    )


def _table(comparison: CompareResult) -> Markup:
    head = ["Features", "Gap", "Distance"]
    for index, model in enumerate(comparison.names):
        head += [f"C, {model}", f"share, {model}"]
        head += [f"C/C₀, {model}"] if index else []
    rows = []
    for row in comparison.rows:
        cells: list[Child] = [element("td", name(row.label)), number_cell(row.change.text)]
        cells.append(number_cell("any" if row.distance is None else str(row.distance)))
        for index, result in enumerate(row.results):
            cells.append(number_cell(NONE if result is None else count_or_bounds(result)))
            cells.append(number_cell(NONE if result is None else share_text(result)))
            cells += [number_cell(ratio_text(row, index))] if index else []
        rows.append(element("tr", cells))
    return element(
        "details",
        element("summary", f"Show {plural(len(rows), 'question')} as a table"),
        table(head, rows, "Counts, shares and ratios to the baseline"),
        id="all",
    )


def _shared_grid(comparison: CompareResult) -> str:
    guards = f", {integer(comparison.n_guards)} guards" if comparison.n_guards else ""
    return f"{integer(comparison.n_regions)} regions{guards}"


def _record(comparison: CompareResult) -> Markup:
    results = [r for row in comparison.rows for r in row.results if r is not None]
    exact = sum(result.exact for result in results)
    facts: list[tuple[str, Child]] = []
    for model, label in zip(comparison.models, comparison.names, strict=True):
        text = element("code", model.sha256 or "not read from a file")
        facts.append((label, [f"{model.n_trees} trees, {model.format}, SHA-256 ", text]))
    facts += [
        *([("Domain", comparison.domain.text)] if comparison.domain else []),
        ("Shared grid", _shared_grid(comparison)),
        ("Gaps", comparison.gap_origin),
        ("Counts", f"{exact} of {len(results)} exact"),
        ("Computing time", seconds_text(sum(result.seconds for result in results))),
        ("Versions", ", ".join(f"{k} {v}" for k, v in comparison.versions.items())),
    ]
    return element(
        "section",
        element("h2", "Certificate"),
        element(
            "p",
            "All models were counted on one grid that holds the thresholds of every one of them, "
            "so that a region means the same for all. A share of regions is not a share of people.",
        ),
        fact_list(facts),
        id="certificate",
        class_="certificate",
    )
