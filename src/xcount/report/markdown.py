"""A block for a model card, in Markdown."""

from __future__ import annotations

import re

from xcount.answers.result import CountResult
from xcount.report.lead import headline
from xcount.report.numbers import distance_text, how_sure, integer, share_text
from xcount.report.sentences import certificate, label_of
from xcount.runs.audit import AuditResult

TOP_ROWS = 20

_SPECIAL = re.compile(r"([\\`*_\[\]#|~$])")


def markdown_report(audit: AuditResult) -> str:
    """Return the audit as a section of a model card."""
    word = "" if audit.verdict is None else f"**{audit.verdict}**: "
    lines = [
        "## Sensitivity",
        "",
        f"{word}{escaped(headline(audit))}.",
        "",
        "| Features | Gap | Distance | Share of regions | How sure | Verdict |",
        "|---|---:|---|---:|---|---|",
        *(_row(result) for result in _top(audit)),
        "",
    ]
    more = len(audit.results) - TOP_ROWS
    if more > 0:
        lines += [f"The {TOP_ROWS} largest of {len(audit.results)} counts.", ""]
    for paragraph in certificate(audit):
        lines += [escaped(paragraph), ""]
    lines += [f"- {fact}" for fact in _record(audit)]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    flat = " ".join(text.split())
    safe = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", safe)


def _top(audit: AuditResult) -> list[CountResult]:
    return sorted(audit.results, key=lambda result: result.order)[:TOP_ROWS]


def _row(result: CountResult) -> str:
    cells = (
        escaped(label_of(result)),
        result.change.text,
        distance_text(result.distance),
        share_text(result),
        how_sure(result),
        "" if result.verdict is None else str(result.verdict),
    )
    return f"| {' | '.join(cells)} |"


def _record(audit: AuditResult) -> list[str]:
    model = audit.model
    facts = [
        f"Model: {escaped(model.path or 'a live model')}, {escaped(model.format)}, "
        f"{model.n_trees} trees",
    ]
    if model.sha256:
        facts.append(f"SHA-256: `{model.sha256}`")
    if audit.results:
        first = audit.results[0]
        facts.append(f"Regions: {integer(first.n_regions)}; seed {first.seed}")
    if audit.domain:
        facts.append(f"Domain: {escaped(audit.domain.text)}")
    facts.append(f"Gaps: {escaped(audit.gap_origin)}")
    facts.append(
        "Versions: " + ", ".join(f"{escaped(k)} {escaped(v)}" for k, v in audit.versions.items())
    )
    return facts
