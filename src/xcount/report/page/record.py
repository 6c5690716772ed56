"""The end of a page: every count, the measures side by side, the certificate and the record."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from xcount.answers.measured import REGIONS
from xcount.answers.result import CountResult
from xcount.report.markup import Child, Markup, element, joined, name
from xcount.report.numbers import (
    NONE,
    OF_MEASURE,
    distance_text,
    integer,
    plural,
    seconds_text,
    share_text,
)
from xcount.report.page.ranking import verdict_cells
from xcount.report.page.tables import fact_list, number_cell, table
from xcount.report.page.view import View
from xcount.report.sentences import certificate, glossary, label_of, panel_label
from xcount.report.shares import Share, file_name
from xcount.runs.audit import AuditResult
from xcount.runs.inputs import Input

MAX_COUNT_ROWS = 400


def measures(view: View) -> Markup | None:
    """Return the shares under other measures side by side, where they were measured."""
    found = [r for r in view.audit.results if r.measures]
    if not found:
        return None
    names = list(dict.fromkeys(measure for r in found for measure in r.measures))
    rows = [
        element(
            "tr",
            element("td", view.link(r.sensitive)),
            element("td", panel_label(r.distance, r.change)),
            (_measured(Share.of(r, measure)) for measure in ("regions", *names)),
            data_sensitive=label_of(r),
            data_verdict=None if r.verdict is None else str(r.verdict),
        )
        for r in view.in_order(found)[:MAX_COUNT_ROWS]
    ]
    return element(
        "section",
        element("h2", "Measures side by side"),
        element("p", "The same questions, with other weights: of regions, of volume, of people."),
        table(("Features", "Question", "regions", *names), rows, "Shares by measure"),
        id="measures",
    )


def _measured(share: Share | None) -> Markup:
    if share is None:
        return number_cell(NONE)
    detail = (
        element("small", share.interval) if share.interval and share.value is not None else None
    )
    return number_cell([share.short, detail], share.least, share.how_sure)


def all_counts(view: View) -> Markup:
    """Return every count with its bounds."""
    ordered = view.in_order(view.audit.results)
    rows = [_count_row(view, result) for result in ordered[:MAX_COUNT_ROWS]]
    head = ["Features", "Gap", "Distance", "Count", "Low", "High", "Share", "How sure", "Limit"]
    head += ["Verdict", "Method", "Stopped", "Time"]
    more = len(ordered) - len(rows)
    note = element("p", f"{more} more: see --json or --csv.", class_="note") if more else None
    return element(
        "section",
        element("h2", "Every count"),
        element(
            "details",
            element("summary", f"Show {plural(len(rows), 'count')} with bounds"),
            table(head, rows, _caption(view.audit)),
            note,
            class_="rest",
        ),
        id="counts",
    )


def _caption(audit: AuditResult) -> str:
    """Say whose counts these are, and what the limits beside them are about."""
    caption = "Counts of regions with their bounds"
    if audit.judge == REGIONS or audit.verdict is None:
        return caption
    return f"{caption}; limits and verdicts are about shares {OF_MEASURE[audit.judge]}"


def _count_row(view: View, result: CountResult) -> Markup:
    share = Share.of(result)
    assert share is not None
    size = result.change.size
    return element(
        "tr",
        element("td", view.link(result.sensitive)),
        number_cell(result.change.text, size),
        number_cell("any" if result.distance is None else str(result.distance)),
        number_cell(NONE if result.count is None else integer(result.count), share.least),
        number_cell(integer(result.low), share.low),
        number_cell(integer(result.high), share.high),
        number_cell(share_text(result), share.least),
        element("td", share.how_sure),
        verdict_cells(result),
        element("td", result.method),
        element("td", str(result.stop_reason)),
        number_cell(seconds_text(result.seconds), Fraction(result.seconds)),
        data_sensitive=label_of(result),
        data_verdict=None if result.verdict is None else str(result.verdict),
    )


def certificate_section(audit: AuditResult) -> Markup:
    """Return the certificate in words, and the record."""
    return element(
        "section",
        element("h2", "Certificate"),
        (element("p", paragraph) for paragraph in certificate(audit)),
        element("h3", "For the record"),
        record(audit),
        id="certificate",
        class_="certificate",
    )


def glossary_section(audit: AuditResult) -> Markup:
    """Return the words of the page and what they mean."""
    entries = (joined(element("dt", word), element("dd", text)) for word, text in glossary(audit))
    return element("section", element("h2", "Glossary"), element("dl", entries), id="glossary")


def record(audit: AuditResult) -> Markup:
    """Return what is needed to repeat the audit; of paths, the names of the files alone."""
    model, results = audit.model, audit.results
    facts: list[tuple[str, Child]] = [
        ("Model file", name(file_name(model.path)) if model.path else "a live model"),
        ("SHA-256", element("code", model.sha256 or "none (not read from a file)")),
        ("Format", model.format),
        ("Trees", f"{integer(model.n_trees)}, depth up to {model.max_depth}"),
        ("Features", integer(model.n_features)),
        ("Guards", integer(model.n_guards)),
        ("Regions", _whole(results[0].n_regions)),
        *((_role(each), input_text(each)) for each in audit.inputs),
        ("Domain", audit.domain.text if audit.domain else "all inputs"),
        ("Judged by", ", ".join(dict.fromkeys(r.judge for r in results))),
        ("Gaps", _gaps(audit)),
        ("Distances", ", ".join(dict.fromkeys(distance_text(r.distance) for r in results))),
        ("Leaf values", ", ".join(dict.fromkeys(_precision(r) for r in results))),
        ("Accuracy asked", ", ".join(dict.fromkeys(_accuracy(r) for r in results))),
        ("Seed", ", ".join(dict.fromkeys(str(r.seed) for r in results))),
        ("Methods", ", ".join(sorted({r.method for r in results}))),
        ("Exact", f"{sum(r.exact for r in results)} of {plural(len(results), 'count')}"),
        ("Computing time", seconds_text(sum(r.seconds for r in results))),
        ("Versions", ", ".join(f"{k} {v}" for k, v in audit.versions.items())),
        ("Begun", audit.created),
    ]
    return fact_list(facts)


def _gaps(audit: AuditResult) -> str:
    changes = ", ".join(_sorted_changes(audit.results))
    if any(result.change.size is None for result in audit.results):
        return f"{changes}; {audit.gap_origin.removeprefix('none; ')}"
    return f"{changes} ({audit.gap_origin})"


def _role(given: Input) -> str:
    return given.role.capitalize()


def input_text(given: Input) -> list[Child]:
    """Return a table or population that was given: its file, its rows and its hash."""
    rows = "" if given.n_rows is None else f", {plural(given.n_rows, 'row')}"
    if given.path is None:
        return [f"in memory{rows}"]
    return [name(file_name(given.path)), f"{rows}, SHA-256 ", element("code", given.sha256)]


def _whole(number: int) -> str:
    """Return a number in all its digits, unless they fill a line."""
    return f"{number:,}" if number < 10**30 else integer(number)


def _sorted_changes(results: Sequence[CountResult]) -> list[str]:
    changes = sorted({r.change for r in results}, key=lambda change: change.order)
    return [change.text for change in changes]


def _precision(result: CountResult) -> str:
    return "as stored" if result.precision is None else f"rounded to {result.precision} decimals"


def _accuracy(result: CountResult) -> str:
    return f"epsilon {result.epsilon:g}, delta {result.delta:g}"
