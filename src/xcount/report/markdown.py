"""A block for a model card, in Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass

from xcount.answers.explanation import GroupRate, GroupRates
from xcount.answers.result import CountResult
from xcount.measures.measured import REGIONS, Measured
from xcount.report.explanation_words import (
    brief_share,
    effect_sentence,
    explanation_of,
    favourable_text,
    of_measure,
    place_numbers,
    said_of,
)
from xcount.report.group_words import audit_sheets
from xcount.report.lead import (
    first_groups,
    headline,
    in_order,
    measure_of,
    opening,
    panels,
    share_shown,
)
from xcount.report.sentences import certificate, gaps_sentence, label_of, panel_label
from xcount.report.words.numbers import (
    distance_text,
    estimate_words,
    integer,
    number_and_interval,
    plural,
    short_interval,
    short_share,
    sure_words,
)
from xcount.report.words.shares import file_name, has_rows, of_whom, rows_words, share_of_changeable
from xcount.runs.audit import AuditResult
from xcount.support.interval import Interval
from xcount.support.visible import visible

TOP_ROWS = 20
MAX_PLACES = 2

_SPECIAL = re.compile(r"([\\`*_\[\]#|~$])")


def markdown_report(audit: AuditResult) -> str:
    """Return the audit as a section of a model card."""
    word = "" if audit.verdict is None else f"**{audit.verdict}**: "
    lines = [
        "## Sensitivity",
        "",
        f"{word}{escaped(headline(audit))}.",
        "",
        *(line for sentence in opening(audit) for line in (escaped(sentence), "")),
        f"| Features | Gap | Distance | {' | '.join(_heads(audit))} | Verdict |",
        f"|---|---:|---|{'---:|---|' * len(_measures(audit))}---|",
        *(_row(result, _measures(audit)) for result in _top(audit)),
        "",
    ]
    shown = len(_top(audit))
    if shown < len(audit.results):
        lines += [
            f"{shown} of {len(audit.results)} counts: named and judged first, then the largest.",
            "",
        ]
    lines += _affected(audit)
    lines += _groups_of_rows(audit)
    for paragraph in certificate(audit):
        lines += [escaped(paragraph), ""]
    lines += [f"- {fact}" for fact in _record(audit)]
    return "\n".join(lines) + "\n"


def _affected(audit: AuditResult) -> list[str]:
    """Return a short list for each group that was judged or named, where they are explained."""
    lines: list[str] = []
    for group in _groups(audit):
        lines.append(f"- **{escaped(group.label)}**: {escaped(group.share)}")
        lines += [f"  - {escaped(sentence)}" for sentence in group.sentences]
    return ["### Who is affected", "", *lines, ""] if lines else []


def _groups_of_rows(audit: AuditResult) -> list[str]:
    """Return a table for each way to group the rows of the data."""
    sheets = audit_sheets(in_order(audit, audit.results, measure_of(audit)))
    lines: list[str] = []
    for sheet in sheets:
        lines += [f"### {escaped(sheet.title)}", ""]
        lines += [f"| {' | '.join(map(escaped, cells))} |" for cells in (sheet.head, *sheet.rows)]
        lines.insert(len(lines) - len(sheet.rows), f"|---|{'---:|' * (len(sheet.head) - 1)}")
        lines.append("")
    return [*lines, escaped(sheets[-1].note), ""] if sheets else []


def escaped(text: str) -> str:
    """Return text that Markdown shows as it is, on one line, control characters as escapes."""
    flat = " ".join(visible(text).split())
    safe = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", safe)


def _top(audit: AuditResult) -> list[CountResult]:
    """Return the results of the table: what was judged or named always, then the largest."""
    first = first_groups(audit)
    ordered = in_order(audit, audit.results, measure_of(audit))
    kept = [r for r in ordered if r.verdict is not None or r.sensitive in first]
    others = [r for r in ordered if r.verdict is None and r.sensitive not in first]
    return [*kept, *others[: max(0, TOP_ROWS - len(kept))]]


def _measures(audit: AuditResult) -> list[str]:
    """Return the measures of the table, the judged one first."""
    found = dict.fromkeys(name for r in audit.results for name in (REGIONS, *r.measures))
    return list(dict.fromkeys((audit.judge, *found)))


def _heads(audit: AuditResult) -> list[str]:
    """Return two columns' heads for each measure."""
    whose = ["Share of regions" if m == REGIONS else f"By {m}" for m in _measures(audit)]
    return [head for name in whose for head in (name, "How sure")]


def _share(measured: Measured | None) -> tuple[str, str]:
    """Return a share and how sure it is; rows with their numbers."""
    share = Interval.unknown_share() if measured is None else measured.interval
    note = None
    if measured is not None:
        note = rows_words(measured) if has_rows(measured) else share_of_changeable(measured)
    said = "" if note is None else f" ({escaped(note)})"
    return f"{estimate_words(share)}{said}", sure_words(share)


def _row(result: CountResult, measures: list[str]) -> str:
    shares = [cell for measure in measures for cell in _share(result.measured(measure))]
    if result.verified:
        shares[2 * measures.index(REGIONS) + 1] += ", verified"
    cells = (
        escaped(label_of(result)),
        result.change.brief,
        distance_text(result.distance),
        *shares,
        "" if result.verdict is None else str(result.verdict),
    )
    return f"| {' | '.join(cells)} |"


def _record(audit: AuditResult) -> list[str]:
    model = audit.model
    facts = [
        f"Model: {escaped(file_name(model.path or 'a live model'))}, {escaped(model.format)}, "
        f"{model.n_trees} trees",
    ]
    if model.sha256:
        facts.append(f"SHA-256: `{model.sha256}`")
    if audit.results:
        first = audit.results[0]
        facts.append(f"Regions: {integer(first.n_regions)}; seed {first.seed}")
    for given in audit.inputs:
        rows = "" if given.n_rows is None else f", {plural(given.n_rows, 'row')}"
        what = escaped(file_name(given.path)) if given.path else "in memory"
        sha = f", SHA-256 `{given.sha256}`" if given.sha256 else ""
        facts.append(f"{given.role.capitalize()}: {what}{rows}{sha}")
    if audit.domain:
        facts.append(f"Domain: {escaped(audit.domain.text)}")
    facts.append(escaped(gaps_sentence(audit.gap_origin, audit.results).removesuffix(".")))
    facts.append(
        "Versions: " + ", ".join(f"{escaped(k)} {escaped(v)}" for k, v in audit.versions.items())
    )
    return facts


@dataclass(frozen=True, slots=True)
class _Affected:
    """What is known of a group: its name, its question and share, and sentences about it."""

    label: str
    share: str
    sentences: tuple[str, ...]


def _groups(audit: AuditResult) -> list[_Affected]:
    """Return the groups that were judged or named and are explained, in the order of reports."""
    first, measure = first_groups(audit), measure_of(audit)
    ordered = in_order(audit, audit.results, measure)
    kept = [r for r in ordered if r.verdict is not None or r.sensitive in first]
    found = []
    for sensitive in dict.fromkeys(result.sensitive for result in kept):
        own = [r for r in kept if r.sensitive == sensitive and r.explanation is not None]
        if own:
            answers = {(result.distance, result.change): result for result in own}
            asked = (answers[panel] for panel in panels(audit) if panel in answers)
            found.append(_group(next(asked, own[0]), measure))
    return found


def _group(result: CountResult, measure: str) -> _Affected:
    measured = share_shown(result, measure)
    share, interval = measured.interval, ""
    if share.value is not None and not share.is_settled:
        interval = f" ({short_interval(share)})"
    asked = panel_label(result.distance, result.change)
    said = [effect_sentence(result, measure)]
    said += [_rates_sentence(r, measure) for r in of_measure(explanation_of(result).rates, measure)]
    for place in of_measure(explanation_of(result).places, measure)[:MAX_PLACES]:
        said.append(f"Where: {place.text}: {place_numbers(place, brief_share)}.")
    return _Affected(
        label_of(result),
        f"{short_share(share)}{interval} {of_whom(measured)} ({asked})",
        tuple(sentence for sentence in said if sentence),
    )


def _rates_sentence(rates: GroupRates, measure: str) -> str:
    """Return the groups with the lowest and the highest rate, and their ratio."""
    if not rates.cells:
        return ""
    ordered = sorted(rates.cells, key=lambda group: group.rate.least)
    whom = said_of(rates, measure)
    return (
        f"The favourable decision is {favourable_text(rates)}; lowest rate {_rate(ordered[0])}, "
        f"highest {_rate(ordered[-1])}{whom and f' {whom}'}{_ratio(rates.ratio)}."
    )


def _rate(group: GroupRate) -> str:
    return f"{estimate_words(group.rate)} ({group.text})"


def _ratio(ratio: Interval) -> str:
    return "" if ratio.value is None else f"; lowest over highest {number_and_interval(ratio)}"
