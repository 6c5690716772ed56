"""The end of a page: every count, the certificate and the record."""

from __future__ import annotations

from collections.abc import Sequence

from xcount.answers.result import CountResult
from xcount.measures.measured import REGIONS
from xcount.report.lead import share_shown
from xcount.report.markup import Child, Markup, element, joined, name
from xcount.report.page.measures import measured_cell
from xcount.report.page.shell import unbroken_units
from xcount.report.page.tables import Cell, Row, fact_list, number_cell, row, table, text_cell
from xcount.report.page.view import View
from xcount.report.sentences import (
    certificate,
    glossary,
    label_of,
    n_exact_words,
    panel_label,
    what_counts,
)
from xcount.report.words.numbers import (
    NONE,
    OF_MEASURE,
    count_or_bounds,
    distance_text,
    integer,
    limit_percent,
    plural,
    seconds_text,
    sure_words,
    table_share,
)
from xcount.report.words.shares import cut_short_words, file_name, share_of_changeable
from xcount.runs.audit import AuditResult
from xcount.runs.inputs import Input
from xcount.support.interval import Interval

MAX_COUNT_ROWS = 400


def all_counts(view: View) -> Markup:
    """Return every count with its bounds."""
    ordered = view.in_order(view.audit.results)
    judge, is_judged = view.audit.judge, view.audit.verdict is not None
    rows = [_count_row(view, result, is_judged) for result in ordered[:MAX_COUNT_ROWS]]
    head = ["Features", "Question", "Sensitive regions", "Share of regions"]
    head += [f"Share {OF_MEASURE[judge]}"] if judge != REGIONS else []
    head += ["Verdict"] if is_judged else []
    head += ["Method"]
    more = len(ordered) - len(rows)
    note = element("p", f"{more} more: see --json or --csv.", class_="note") if more else None
    return element(
        "section",
        element("h2", "Every count"),
        element(
            "details",
            element("summary", f"{plural(len(rows), 'count')} with bounds"),
            table(head, rows, "Every count with its bounds"),
            note,
            class_="rest",
        ),
        id="counts",
    )


def _count_row(view: View, result: CountResult, is_judged: bool) -> Row:
    measured, judge = share_shown(result, REGIONS), view.audit.judge
    share = measured.interval
    among = share_of_changeable(measured)
    sure = sure_words(share) if among is None else f"{sure_words(share)}; {among}"
    stopped = f"{result.stop_reason}, {seconds_text(result.seconds)}"
    cut = cut_short_words(result.cut_short)
    stopped += "" if cut is None else f"; {cut}"
    return row(
        text_cell(view.link(result.sensitive)),
        Cell(panel_label(result.distance, result.change), result.change.size),
        _with_details(count_or_bounds(result), _count_details(result), share),
        _with_details(table_share(share), sure, share),
        *([measured_cell(result.measured(judge))] if judge != REGIONS else []),
        *([_verdict(result)] if is_judged else []),
        text_cell([result.method, element("small", stopped)]),
        data_sensitive=label_of(result),
        data_verdict=None if result.verdict is None else str(result.verdict),
    )


def _with_details(text: str, details: str, share: Interval) -> Cell:
    return number_cell([text, element("small", details) if details else None], share.least)


def _count_details(result: CountResult) -> str:
    if result.exact:
        return "verified" if result.verified else ""
    return _bounds(result)


def _bounds(result: CountResult) -> str:
    return f"{integer(result.low)} to {integer(result.high)}" if result.count is not None else ""


def _verdict(result: CountResult) -> Cell:
    if result.verdict is None or result.max_share is None:
        return text_cell(NONE)
    allowed = element("small", unbroken_units(f"at most {limit_percent(result.max_share)}"))
    return text_cell([str(result.verdict), allowed])


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


def glossary_section(results: Sequence[CountResult]) -> Markup:
    """Return the words of the page and what they mean."""
    words = glossary(results)
    entries = (joined(element("dt", word), element("dd", text)) for word, text in words)
    return element("section", element("h2", "Glossary"), element("dl", entries), id="glossary")


def record(audit: AuditResult) -> Markup:
    """Return what is needed to repeat the audit; paths are shortened to file names."""
    model, results = audit.model, audit.results
    facts: list[tuple[str, Child]] = [
        ("Model file", name(file_name(model.path)) if model.path else "a live model"),
        ("SHA-256", element("code", model.sha256 or "none (not read from a file)")),
        ("Format", model.format),
        ("Trees", f"{integer(model.n_trees)}, depth up to {model.max_depth}"),
        ("Features", integer(model.n_features)),
        ("Guards", integer(model.n_guards)),
        ("Regions", whole_number(results[0].n_regions)),
        *((_role(each), input_text(each)) for each in audit.inputs),
        ("Domain", audit.domain.text if audit.domain else "all inputs"),
        ("Measure", ", ".join(dict.fromkeys(r.judge for r in results))),
        ("Gaps", _gaps(audit)),
        ("Distances", ", ".join(dict.fromkeys(distance_text(r.distance) for r in results))),
        ("Leaf values", ", ".join(dict.fromkeys(_precision(r) for r in results))),
        ("Requested accuracy", ", ".join(dict.fromkeys(_accuracy(r) for r in results))),
        ("Seed", ", ".join(dict.fromkeys(str(r.seed) for r in results))),
        ("Methods", ", ".join(sorted({r.method for r in results}))),
        ("Exact", n_exact_words(audit)),
        *verified_facts(results),
        ("Computing time", seconds_text(sum(r.seconds for r in results))),
        ("Versions", ", ".join(f"{k} {v}" for k, v in audit.versions.items())),
        ("Started", audit.created),
    ]
    return fact_list(facts)


def verified_facts(results: Sequence[CountResult]) -> list[tuple[str, Child]]:
    """Return how many counts are verified, and how to repeat that without this page."""
    n_verified = sum(bool(result.verified) for result in results)
    if not n_verified:
        return []
    how = "xcount count --question FILE writes each question, xcount verify FILE counts it again"
    return [("Verified", f"{plural(n_verified, 'count')}; {how}")]


def _gaps(audit: AuditResult) -> str:
    changes = ", ".join(_sorted_changes(audit.results))
    flip = what_counts(audit.results)
    return f"{changes} ({audit.gap_origin})" if flip is None else f"{changes}; {flip}"


def _role(given: Input) -> str:
    return given.role.capitalize()


def input_text(given: Input) -> list[Child]:
    """Return a table or population that was given: its file, its rows and its hash."""
    rows = "" if given.n_rows is None else f", {plural(given.n_rows, 'row')}"
    if given.path is None:
        return [f"in memory{rows}"]
    return [name(file_name(given.path)), f"{rows}, SHA-256 ", element("code", given.sha256)]


def whole_number(number: int) -> str:
    """Return a number in all its digits, unless they fill a line."""
    return f"{number:,}" if number < 10**30 else integer(number)


def _sorted_changes(results: Sequence[CountResult]) -> list[str]:
    changes = sorted({r.change for r in results}, key=lambda change: change.order)
    return [change.brief for change in changes]


def _precision(result: CountResult) -> str:
    return "as stored" if result.precision is None else f"rounded to {result.precision} decimals"


def _accuracy(result: CountResult) -> str:
    return f"epsilon {result.epsilon:g}, delta {result.delta:g}"
