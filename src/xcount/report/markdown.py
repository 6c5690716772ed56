"""A block for a model card, in Markdown."""

from __future__ import annotations

import re

from xcount.answers.measured import REGIONS
from xcount.answers.result import CountResult
from xcount.report.affected import affected
from xcount.report.lead import first_groups, headline, in_order, measure_of, opening
from xcount.report.numbers import distance_text, how_sure, integer, plural, share_text
from xcount.report.sentences import certificate, label_of
from xcount.report.shares import file_name
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
        *(line for sentence in opening(audit) for line in (escaped(sentence), "")),
        f"| Features | Gap | Distance | {' | '.join(_heads(audit))} | Verdict |",
        f"|---|---:|---|{'---:|---|' * len(_measures(audit))}---|",
        *(_row(result, _measures(audit)) for result in _top(audit)),
        "",
    ]
    shown = len(_top(audit))
    if shown < len(audit.results):
        lines += [
            f"{shown} of {len(audit.results)} counts: named and judged ones, then the largest.",
            "",
        ]
    lines += _affected(audit)
    for paragraph in certificate(audit):
        lines += [escaped(paragraph), ""]
    lines += [f"- {fact}" for fact in _record(audit)]
    return "\n".join(lines) + "\n"


def _affected(audit: AuditResult) -> list[str]:
    """Return a short list for each group that was judged or named, where they are explained."""
    lines: list[str] = []
    for group in affected(audit):
        lines.append(f"- **{escaped(group.label)}**: {escaped(group.share)}")
        lines += [f"  - {escaped(sentence)}" for sentence in group.sentences]
    return ["### Who is affected", "", *lines, ""] if lines else []


def escaped(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    flat = " ".join(text.split())
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


def _row(result: CountResult, measures: list[str]) -> str:
    shares = [f(result, measure) for measure in measures for f in (share_text, how_sure)]
    cells = (
        escaped(label_of(result)),
        result.change.text,
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
    facts.append(f"Gaps: {escaped(audit.gap_origin)}")
    facts.append(
        "Versions: " + ", ".join(f"{escaped(k)} {escaped(v)}" for k, v in audit.versions.items())
    )
    return facts
