"""The section that ranks the features: bars, a tab for each question, the leading one first."""

from __future__ import annotations

from collections.abc import Sequence

from xcount.answers.result import CountResult
from xcount.measures.measured import REGIONS, Measured
from xcount.report.lead import bound_text, share_shown
from xcount.report.markup import Child, Markup, element, name
from xcount.report.page.axis import nice_ceiling
from xcount.report.page.charts import bar
from xcount.report.page.shell import BADGES, tabs
from xcount.report.page.tables import Cell, Row, number_cell, row, table, text_cell
from xcount.report.page.view import View
from xcount.report.sentences import label_of, panel_label
from xcount.report.words.numbers import (
    NONE,
    OF_MEASURE,
    axis_words,
    confidence_words,
    distance_text,
    estimate_words,
    integer,
    limit_percent,
    short_interval,
    short_share,
    sure_words,
    table_share,
)
from xcount.report.words.shares import of_measured, of_whom
from xcount.runs.audit import Panel
from xcount.runs.ranked import Ranked
from xcount.support.interval import Interval
from xcount.support.numerals import digits

TOP_BARS = 15
"""So many bars a panel; groups that come first are there in any case."""
_LEAST_OTHERS = 5
_MOST_DIGITS = 30


def ranking(view: View) -> Markup:
    """Return the ranking, and the whole of it as a table where the bars are not all."""
    audit, asked = view.audit, view.panels
    whom = of_whom(view.share(audit.results[0]))
    bodies = [_panel(view, panel) for panel in asked]
    is_cut = len(audit.ranking) > TOP_BARS or len(asked) > 1
    return element(
        "section",
        element("h2", "What the model is sensitive to"),
        element(
            "p",
            f"The share {whom} for which changing only this feature can change the "
            f"{audit.results[0].change.what_changes}.{_about_intervals(view)}",
        ),
        tabs([panel_label(*panel) for panel in asked], bodies),
        _whole_ranking(view) if is_cut else None,
        _unused(audit.unused_features),
        id="ranking",
    )


def _about_intervals(view: View) -> str:
    """Return how bars show what is not exact, where there is any."""
    shares = [view.share(result).interval for result in view.audit.results]
    said = ""
    if any(not share.is_settled for share in shares):
        said = " Whiskers are intervals."
    if any(share.value is None for share in shares):
        said += (
            " If only bounds are known, the bar is solid up to the lower and pale up to the upper "
            "bound; the lower bound decides the rank."
        )
    return said


def _panel(view: View, panel: Panel) -> Markup:
    distance, change = panel
    found = view.in_order(view.audit.panel(panel))
    first = [r for r in found if view.comes_first(r.sensitive)]
    others = [r for r in found if not view.comes_first(r.sensitive)]
    cut = others[: max(TOP_BARS - len(first), _LEAST_OTHERS)]
    shown = [view.share(r).interval for r in (*first, *cut)]
    axis = nice_ceiling(max(float(share.high) for share in shown))
    note = _panel_note(view, [*first, *cut], axis, len(others) - len(cut))
    return element(
        "section",
        element("h3", f"{change.sentence}, {distance_text(distance)}"),
        element("h4", "Named or protected") if first and cut else None,
        _bars(view, first, axis),
        element("h4", "Other features") if first and cut else None,
        _bars(view, cut, axis),
        element("p", note, class_="note") if note else None,
    )


def _bars(view: View, results: Sequence[CountResult], axis: float) -> Markup | None:
    if not results:
        return None
    return element("ol", (_bar_row(view, r, axis) for r in results), class_="bars")


def _panel_note(view: View, results: Sequence[CountResult], axis: float, left_out: int) -> str:
    said = [f"The axis ends at {axis_words(axis)}."] if axis < 1 else []
    if left_out:
        said.append(f"{integer(left_out)} smaller ones are in the table below.")
    unsure = [s for r in results if not (s := view.share(r).interval).is_settled]
    if unsure:
        lowest = min(share.sureness for share in unsure)
        sure = (
            "are guaranteed"
            if lowest == 1
            else f"hold with {confidence_words(lowest)} confidence each"
        )
        said.append(f"Intervals {sure}.")
    if any(r.max_share is not None and float(r.max_share) <= axis for r in results):
        said.append("The dashed line is the limit.")
    return " ".join(said)


def exact_numbers(result: CountResult, measured: Measured) -> str:
    """Return what a pointer over a bar shows: all that is known, in full."""
    share = measured.interval
    said = [f"{label_of(result)}: {estimate_words(share)} {of_whom(measured)}, {sure_words(share)}"]
    if measured.name == REGIONS:
        counted = _whole(result.low)
        if result.low != result.high:
            counted = f"{counted} to {_whole(result.high)}"
        said.append(f"{counted} of {_whole(result.n_regions)} regions")
    if result.verdict is not None and result.max_share is not None:
        limit = limit_percent(result.max_share)
        judged = f"{bound_text(result)} {of_measured(share_shown(result, result.judge))}"
        said.append(f"{result.verdict}: {judged}, at most {limit} allowed")
    return "; ".join(said)


def _whole(number: int) -> str:
    """Return a number in all its digits, unless they fill a line."""
    return f"{number:,}" if number < 10**_MOST_DIGITS else integer(number)


def _bar_row(view: View, result: CountResult, axis: float) -> Markup:
    label, measured = label_of(result), view.share(result)
    share = measured.interval
    kind, symbol, word = BADGES[result.verdict]
    is_judged = result.max_share is not None and result.judge == measured.name
    limit = float(result.max_share) if is_judged and result.max_share is not None else None
    mark = element("span", symbol, title=word, class_=f"mini {kind}") if kind != "none" else None
    has_detail = share.value is not None and not share.is_settled
    return element(
        "li",
        element("span", view.link(result.sensitive), class_="name"),
        bar(share, exact_numbers(result, measured), axis, kind, limit),
        element(
            "span",
            element("b", table_share(share)),
            mark,
            element("small", short_interval(share)) if has_detail else None,
            class_="value",
        ),
        data_sensitive=label,
        data_verdict=None if result.verdict is None else str(result.verdict),
        data_count=None if result.count is None else digits(result.count),
        data_low=digits(result.low),
        data_high=digits(result.high),
        data_gap=result.change.text,
        data_distance="any" if result.distance is None else str(result.distance),
    )


def _whole_ranking(view: View) -> Markup:
    """Return all groups with all their shares; what is proved to be zero as a list."""
    audit, asked = view.audit, view.panels
    zero = [r for r in view.ranking if all(c.high == 0 for c in r.results)]
    rest = [r for r in view.ranking if any(c.high > 0 for c in r.results)]
    head = ["Features", *(panel_label(*panel) for panel in asked)]
    rows = [_rank_row(view, ranked) for ranked in rest]
    caption = f"All features, by their shares {OF_MEASURE[view.measure]} in the first question"
    proved: Child = None
    if zero:
        parts: list[Child] = []
        for index, ranked in enumerate(zero):
            parts += [", " if index else None, name(ranked.label)]
        proved = element("p", element("b", "Proved to be 0 everywhere: "), parts, class_="names")
    return element(
        "details",
        element("summary", f"All {integer(len(audit.ranking))} as a table"),
        table(head, rows, caption) if rows else None,
        proved,
        id="all",
        class_="rest",
    )


def _rank_row(view: View, ranked: Ranked) -> Row:
    shares = {(r.distance, r.change): view.share(r).interval for r in ranked.results}
    return row(
        text_cell(view.link(ranked.sensitive)),
        *(_share_cell(shares.get(panel)) for panel in view.panels),
        data_sensitive=ranked.label,
    )


def _share_cell(share: Interval | None) -> Cell:
    if share is None:
        return number_cell(NONE)
    return number_cell(short_share(share), share.least, sure_words(share))


def _unused(names: Sequence[str]) -> Markup | None:
    if not names:
        return None
    are, it = ("feature is", "it") if len(names) == 1 else ("features are", "them")
    listed: list[Child] = []
    for index, text in enumerate(names):
        listed += [", " if index else None, name(text)]
    return element(
        "details",
        element("summary", f"{len(names)} {are} tested by no tree: changing {it} has no effect"),
        element("p", listed, class_="names"),
    )
