"""Audits and comparisons as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xcount.answers.result import CountResult, Verdict
from xcount.measures.measured import REGIONS
from xcount.question.domain import Domain
from xcount.report.culprit import comparison_headline, ratio_text
from xcount.report.explanation_text import compared_effects_table, people_of_audit
from xcount.report.group_text import group_tables
from xcount.report.group_words import audit_sheets, comparison_sheets
from xcount.report.lead import (
    first_groups,
    headline,
    in_order,
    measure_of,
    opening,
    ranking_shown,
    share_shown,
)
from xcount.report.sentences import (
    OWN_GRID,
    SHARED_GRID,
    cut_short_sentence,
    gaps_sentence,
    label_of,
    mean_share_text,
    sentence,
)
from xcount.report.terminal import coloured, escaped
from xcount.report.words.numbers import (
    NONE,
    OF_MEASURE,
    seconds_text,
    share_and_interval,
    short_integer,
    short_interval,
    table_share,
)
from xcount.report.words.shares import has_rows, realism_words, rows_words, share_of_changeable
from xcount.runs.audit import AuditResult
from xcount.runs.compare import CompareResult
from xcount.runs.ranked import Ranked

if TYPE_CHECKING:
    from rich.console import RenderableType

MAX_ROWS = 40


def audit_tables(audit: AuditResult, title: str | None = None) -> list[RenderableType]:
    """Return the ranking as a table, and the verdict below it."""
    from rich.table import Table

    title = title or f"Sensitivity of {audit.model.path or 'the model'}"
    table = Table(title=escaped(title), title_justify="left", title_style="bold")
    table.caption_justify = "left"
    judged = audit.verdict is not None
    measure = measure_of(audit)  # the others have a table of their own, side by side
    of_regions = measure == REGIONS
    of_rows = any(has_rows(result.measured(measure)) for result in audit.results)
    table.add_column("Rank", justify="right")
    table.add_column("Sensitive to", overflow="fold")  # cut names would look alike
    table.add_column("Gap", justify="right")
    table.add_column("Distance", justify="right")
    table.add_column(_share_head(measure), justify="right")
    table.add_column("Interval", no_wrap=True)
    if of_regions:
        table.add_column("Regions", justify="right")
    if of_rows:
        table.add_column("Rows", overflow="fold")
    table.add_column("Time", justify="right", min_width=7)  # folding does not hang on it
    if judged:
        table.add_column("Verdict", min_width=len(Verdict.UNDECIDED))
    rows = [(ranked, result) for ranked in ranking_shown(audit) for result in ranked.results]
    shown = _chosen(audit, rows)
    for ranked, result in shown:
        is_first = result is ranked.results[0]
        share = share_shown(result, measure)
        table.add_row(
            str(ranked.rank) if is_first else "",
            escaped(ranked.label) if is_first else "",
            escaped(result.change.brief),
            "any" if result.distance is None else str(result.distance),
            NONE if share.interval.value is None else table_share(share.interval),
            short_interval(share.interval) or "exact",
            *([_count(result)] if of_regions else []),
            *([escaped(rows_words(share)) if has_rows(share) else NONE] if of_rows else []),
            seconds_text(result.seconds),
            *([_verdict(result)] if judged else []),
        )
    if len(rows) > len(shown):
        table.caption = f"{len(rows) - len(shown):,} more; --html, --csv and --json list all"
    return [
        *_answer(audit),
        table,
        *_changeable([result for _, result in shown], measure),
        *_measures_table(audit),
        *_population(audit),
        *people_of_audit(sorted(audit.results, key=lambda result: result.order)),
        *group_tables(audit_sheets(in_order(audit, audit.results, measure))),
        *_conclusion(audit),
    ]


def _chosen(
    audit: AuditResult, rows: Sequence[tuple[Ranked, CountResult]]
) -> list[tuple[Ranked, CountResult]]:
    """Return the rows that there is room for; groups that come first are never left out."""
    first = first_groups(audit)
    room = max(0, MAX_ROWS - sum(ranked.sensitive in first for ranked, _ in rows))
    others = [id(result) for ranked, result in rows if ranked.sensitive not in first][:room]
    kept = set(others)
    return [row for row in rows if row[0].sensitive in first or id(row[1]) in kept]


def _count(result: CountResult) -> str:
    return NONE if result.count is None else short_integer(result.count)


def _answer(audit: AuditResult) -> list[RenderableType]:
    """Return what is said first, as in every report: the verdict, and the answer for people."""
    word = "" if audit.verdict is None else f"{coloured(audit.verdict)}: "
    lines: list[RenderableType] = [f"{word}[bold]{escaped(headline(audit))}[/]"]
    return [*lines, *(escaped(sentence) for sentence in opening(audit)), ""]


def _population(audit: AuditResult) -> list[RenderableType]:
    """Return how realistic the population is, where there is one."""
    return [*_population_of(audit.results)]


def _population_of(results: Sequence[CountResult]) -> list[str]:
    words = realism_words(results)
    return [] if words is None else [f"Population: {escaped(words)}."]


def _share_head(judge: str) -> str:
    return "Share" if judge == REGIONS else f"By {judge}"


def _measures_table(audit: AuditResult) -> list[RenderableType]:
    """Return the shares by other measures side by side, where there are any."""
    from rich.table import Table

    rows = [
        (ranked, result) for ranked in audit.ranking for result in ranked.results if result.measures
    ]
    names = list(dict.fromkeys(name for _, r in rows for name in r.measures))
    if not names:
        return []
    table = Table(title="Measures side by side", title_justify="left", title_style="bold")
    for head in ("Sensitive to", "Gap", "Distance", "regions", *names):
        is_name = head == "Sensitive to"
        table.add_column(escaped(head), justify="left" if is_name else "right", overflow="fold")
    for result in sorted((row[1] for row in _chosen(audit, rows)), key=lambda r: r.order):
        table.add_row(
            escaped(" + ".join(result.sensitive)),
            escaped(result.change.brief),
            "any" if result.distance is None else str(result.distance),
            *(_share(result, name) for name in (REGIONS, *names)),
        )
    return [table]


def _share(result: CountResult, measure: str) -> str:
    """Return a share with its interval; a dash if nothing is known of it."""
    found = result.measured(measure)
    if found is None or not found.is_known:
        return NONE
    note = rows_words(found) if has_rows(found) else share_of_changeable(found)
    said = "" if note is None else f": {note}"
    return escaped(f"{share_and_interval(found.interval)}{said}")


def _changeable(results: Sequence[CountResult], measure: str) -> list[RenderableType]:
    """Return the shares among those that can change, if not all can."""
    lines = []
    for result in results:
        among = share_of_changeable(share_shown(result, measure), result.sensitive)
        if among is not None:
            lines.append(escaped(f"  {label_of(result)}, {result.change.label}: {among}"))
    return ["Among those that can change", *lines] if lines else []


def _verdict(result: CountResult) -> str:
    return "" if result.verdict is None else coloured(result.verdict)


def _conclusion(audit: AuditResult) -> list[RenderableType]:
    about_gaps = gaps_sentence(audit.gap_origin, audit.results)
    lines: list[RenderableType] = [escaped(about_gaps), *_domain(audit.domain), OWN_GRID]
    if any(result.judged.value is None for result in audit.results):
        lines.append("If only an interval is known, its lower end decides the rank.")
    lines += cut_short_sentence(audit.results)
    if len(audit.results) < audit.n_planned:
        lines.append(f"Stopped after {len(audit.results)} of {audit.n_planned} counts.")
    return [*lines, *_notes(audit.notes)]


def _notes(notes: Sequence[str]) -> list[str]:
    return [escaped(sentence(note)) for note in notes]


def _domain(domain: Domain | None) -> list[str]:
    return [] if domain is None else [f"Domain: {escaped(domain.text)}."]


def comparison_tables(comparison: CompareResult) -> list[RenderableType]:
    """Return the models by rank, and their shares and ratios question by question."""
    judge = comparison.judge
    others = dict.fromkeys(name for row in comparison.rows for name in (REGIONS, *row.measures))
    tables = [_shares_table(comparison, name) for name in (judge, *others) if name != judge]
    about_gaps = gaps_sentence(comparison.gap_origin, comparison.results)
    lines = [escaped(about_gaps), *_domain(comparison.domain), SHARED_GRID]
    lines += _population_of(comparison.results)
    lines += cut_short_sentence(comparison.results)
    if not comparison.is_whole:
        lines.append(f"Stopped after {comparison.n_results} of {comparison.n_planned} counts.")
    lines += _notes(comparison.notes)
    word = "" if comparison.verdict is None else f"{coloured(comparison.verdict)}: "
    answer = f"{word}[bold]{escaped(comparison_headline(comparison))}[/]"
    answers = [(f"{row.label}, {row.change.label}", row.results) for row in comparison.rows]
    tables += compared_effects_table(comparison.names, answers)
    shares = _shares_table(comparison, judge)
    tables += group_tables(comparison_sheets(comparison))
    return [answer, "", _models_table(comparison), shares, *tables, *lines]


def _shares_table(comparison: CompareResult, measure: str) -> RenderableType:
    """Return the shares of all models under one measure, and their ratios."""
    from rich.table import Table

    about = "Shares" if measure == REGIONS else f"Shares {OF_MEASURE[measure]},"
    table = Table(title=f"{about} on the shared grid", title_justify="left", title_style="bold")
    table.caption_justify = "left"
    table.add_column("Sensitive to", overflow="fold")
    table.add_column("Gap", justify="right")
    table.add_column("Distance", justify="right")
    for index, name in enumerate(comparison.names):
        table.add_column(escaped(name), justify="right")
        if index:
            table.add_column("C/C0" if measure == REGIONS else "Ratio", justify="right")
    for row in comparison.rows[:MAX_ROWS]:
        cells: list[str] = []
        for index, result in enumerate(row.results):
            cells.append("" if result is None else _share(result, measure))
            cells += [ratio_text(row.ratio(index, measure), "inf")] if index else []
        distance = "any" if row.distance is None else str(row.distance)
        table.add_row(escaped(row.label), escaped(row.change.brief), distance, *cells)
    if len(comparison.rows) > MAX_ROWS:
        table.caption = (
            f"{len(comparison.rows) - MAX_ROWS:,} more; --html, --csv and --json list all"
        )
    return table


def _models_table(comparison: CompareResult) -> RenderableType:
    from rich.table import Table

    table = Table(title="Models, least sensitive first", title_justify="left", title_style="bold")
    table.add_column("Rank", justify="right")
    table.add_column("Model")
    is_count = comparison.judge == REGIONS
    of_what = "" if is_count else f" {OF_MEASURE[comparison.judge]}"
    table.add_column(f"Mean share{of_what}", justify="right")
    table.add_column("Median C/C0" if is_count else "Median ratio", justify="right")
    table.add_column("Questions", justify="right")
    for summary in comparison.ranking:
        median = "" if summary.quartiles is None else f"{summary.quartiles[1]:.3g}"
        table.add_row(
            str(summary.rank),
            escaped(summary.name),
            mean_share_text(summary),
            median if summary.index else "1 (baseline)",
            str(summary.n_ratios),
        )
    return table
