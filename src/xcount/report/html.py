"""The report as one self-contained HTML page: no script, no network, no font to load."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from xcount.answers.result import CountResult, Verdict
from xcount.report import sections
from xcount.report.charts import Bar, bar, nice_ceiling
from xcount.report.markup import Child, Markup, element, joined, name, trusted
from xcount.report.numbers import (
    distance_text,
    how_sure,
    integer,
    share_text,
    short_integer,
    short_interval,
    short_share,
    time_text,
)
from xcount.report.sentences import (
    GLOSSARY,
    certificate,
    finding,
    headline,
    judgement,
    label_of,
    panel_label,
)
from xcount.runs.audit import AuditResult, Panel, Ranked
from xcount.support.numerals import digits

TOP_BARS = 15
MAX_FINDINGS = 8

BADGES = {
    Verdict.PASS: ("pass", "✓", "PASS"),
    Verdict.FAIL: ("fail", "✗", "FAIL"),
    Verdict.UNDECIDED: ("undecided", "?", "UNDECIDED"),
    None: ("none", "i", "REPORT"),
}


def html_report(audit: AuditResult) -> str:
    """Return the page.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> page = html_report(xcount.audit(figure_1(), gaps=80))
        >>> page.startswith("<!doctype html>"), "22.2 %" in page
        (True, True)
    """
    title = f"Sensitivity audit: {_model_name(audit)}"
    body = joined(
        _header(audit),
        element("main", _verdict(audit), _numbers(audit), _blocks(audit)),
        _footer(audit),
    )
    return page(title, body, len(audit.panels))


def page(title: str, body: Markup, n_tabs: int = 0) -> str:
    """Return a page with our style around a body."""
    style = files("xcount.report").joinpath("page.css").read_text("utf-8")
    rules = "".join(
        f".tabs>input:nth-of-type({k}):checked~section:nth-of-type({k}){{display:block}}"
        f".tabs>input:nth-of-type({k}):checked~.tablist label:nth-of-type({k}){{"
        "background:var(--accent);color:var(--on-accent);border-color:var(--accent)}"
        f".tabs>input:nth-of-type({k}):focus-visible~.tablist label:nth-of-type({k}){{"
        "outline:3px solid var(--focus);outline-offset:2px}"
        for k in range(1, n_tabs + 1)
    )
    head = joined(
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element(
            "meta",
            http_equiv="Content-Security-Policy",
            content="default-src 'none'; style-src 'unsafe-inline'; img-src data:",
        ),
        element("title", title),
        element("link", rel="icon", href="data:,"),
        element("style", trusted(style + rules)),
    )
    return "<!doctype html>\n" + element(
        "html", element("head", head), element("body", body), lang="en"
    )


def _blocks(audit: AuditResult) -> list[Child]:
    if not audit.results:
        return [element("p", "No count was finished.")]
    return [
        _ranking(audit),
        sections.share_against_gap(audit),
        sections.profiles(audit),
        sections.measures(audit),
        sections.witnesses(audit),
        sections.all_counts(audit),
        _certificate(audit),
        _glossary(),
    ]


def _model_name(audit: AuditResult) -> str:
    path = audit.model.path
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2] if path else "a model"


def _header(audit: AuditResult) -> Markup:
    of_class = f", class {audit.output_label}" if audit.output_label is not None else ""
    return element(
        "header",
        element("p", "XCount sensitivity audit", class_="kicker"),
        element("h1", name(_model_name(audit)), of_class),
        element(
            "p", element("time", time_text(audit.created), datetime=audit.created), class_="date"
        ),
    )


def _verdict(audit: AuditResult) -> Markup:
    kind, symbol, word = BADGES[audit.verdict]
    badge = element(
        "p",
        element("span", symbol, class_="symbol", aria_hidden="true"),
        element("strong", word, id="verdict"),
        class_="badge",
    )
    return element(
        "section",
        badge,
        element("h2", headline(audit)),
        element("ul", _findings(audit), class_="findings"),
        class_=f"verdict {kind}",
        aria_label="Verdict",
    )


def _findings(audit: AuditResult) -> list[Markup]:
    """Return what stands under the verdict: the failures, or the most sensitive features."""
    judged = [r for r in audit.results if r.verdict in (Verdict.FAIL, Verdict.UNDECIDED)]
    judged.sort(key=lambda r: (str(r.verdict), r.order))
    if judged:
        items = [
            element(
                "li",
                element("strong", name(label_of(r))),
                f" ({panel_label(r.distance, r.change)}): {judgement(r)}",
            )
            for r in judged[:MAX_FINDINGS]
        ]
        if len(judged) > MAX_FINDINGS:
            items.append(element("li", f"and {len(judged) - MAX_FINDINGS} more, below"))
        return items
    return [
        element("li", element("strong", name(ranked.label)), ": ", finding(_typical(ranked)))
        for ranked in audit.ranking[:3]
    ]


def _typical(ranked: Ranked) -> CountResult:
    """Return the result with the largest gap that still has a sensitive region, as far as known."""
    positive = [result for result in ranked.results if result.count or result.low > 0]
    return positive[-1] if positive else ranked.results[0]


def _numbers(audit: AuditResult) -> Markup:
    exact = sum(result.exact for result in audit.results)
    regions = audit.results[0].n_regions if audit.results else 0
    cards = (
        (integer(len(audit.ranking)), "features or groups audited"),
        (f"{exact} of {len(audit.results)}", "counts exact"),
        (integer(audit.model.n_trees), f"trees, depth up to {audit.model.max_depth}"),
        (integer(audit.model.n_guards), "guards"),
        (short_integer(regions), "regions"),
    )
    return element(
        "dl",
        (element("div", element("dt", what), element("dd", number)) for number, what in cards),
        class_="cards",
    )


def _ranking(audit: AuditResult) -> Markup:
    panels = audit.panels
    return element(
        "section",
        element("h2", "What the model is sensitive to"),
        element(
            "p",
            "Share of all regions in which changing only this feature can change the "
            f"{audit.results[0].change.what_changes}. "
            f"Whiskers show the interval where a count is not exact.{_about_bounds(audit)}",
        ),
        tabs([panel_label(*panel) for panel in panels], [_panel(audit, panel) for panel in panels]),
        sections.whole_ranking(audit) if len(audit.ranking) > TOP_BARS or len(panels) > 1 else None,
        _unused(audit),
        id="ranking",
    )


def _about_bounds(audit: AuditResult) -> str:
    """Return what stands for counts without an estimate, where there are any."""
    if all(result.count is not None for result in audit.results):
        return ""
    return (
        " Where there is no estimate, only bounds, the bar is full up to the low one and pale up "
        "to the high one, and the low one decides the rank."
    )


def tabs(labels: Sequence[str], bodies: Sequence[Markup]) -> Markup:
    """Return sections of which one is shown at a time, without a script."""
    inputs, marks = [], []
    for index, label in enumerate(labels):
        key = f"panel-{index}"
        inputs.append(
            element(
                "input", type="radio", name="panel", id=key, checked=index == 0, aria_label=label
            )
        )
        marks.append(element("label", label, for_=key))
    tablist = element("div", marks, class_="tablist") if len(labels) > 1 else None
    return element("div", inputs, tablist, bodies, class_="tabs")


def _panel(audit: AuditResult, panel: Panel) -> Markup:
    results = audit.panel(panel)
    axis = nice_ceiling(max(r.share_high for r in results[:TOP_BARS]))
    rows = [_bar_row(result, axis) for result in results[:TOP_BARS]]
    distance, change = panel
    return element(
        "section",
        element("h3", f"{change.sentence}, {distance_text(distance)}"),
        element("ol", rows, class_="bars"),
        element("p", _panel_note(results, axis), class_="note"),
    )


def _panel_note(results: Sequence[CountResult], axis: float) -> str:
    said = [f"The axis ends at {axis * 100:g} %."]
    if len(results) > TOP_BARS:
        said.append(f"These are the {TOP_BARS} largest of {len(results)}.")
    if any(not result.exact for result in results[:TOP_BARS]):
        lowest = min(result.confidence for result in results[:TOP_BARS])
        sure = (
            "are guaranteed (exact bounds)"
            if lowest == 1
            else f"hold with at least {lowest:.0%} confidence each"
        )
        said.append(f"Intervals {sure}.")
    if any(r.max_share is not None and float(r.max_share) <= axis for r in results[:TOP_BARS]):
        said.append("The dashed line is the limit.")
    return " ".join(said)


def _bar_row(result: CountResult, axis: float) -> Markup:
    label, share = label_of(result), share_text(result)
    kind, symbol, word = BADGES[result.verdict]
    text = f"{label}: {share} of the regions, {how_sure(result)}"
    limit = None if result.max_share is None else float(result.max_share)
    if limit is not None:
        text += f"; {word}: {judgement(result)}"
    drawn = bar(Bar(result.share, result.share_low, result.share_high, limit, kind, text), axis)
    mark = element("span", symbol, title=word, class_=f"mini {kind}") if kind != "none" else None
    has_detail = not result.exact and result.count is not None
    detail = element("small", short_interval(result)) if has_detail else None
    return element(
        "li",
        element("span", name(label), class_="name"),
        drawn,
        element("span", element("b", short_share(result)), mark, detail, class_="value"),
        data_sensitive=label,
        data_count=None if result.count is None else digits(result.count),
        data_low=digits(result.low),
        data_high=digits(result.high),
        data_gap=result.change.text,
        data_distance="any" if result.distance is None else str(result.distance),
    )


def _unused(audit: AuditResult) -> Markup | None:
    names = audit.unused_features
    if not names:
        return None
    are, it = ("feature is", "it") if len(names) == 1 else ("features are", "them")
    return element(
        "details",
        element("summary", f"{len(names)} {are} tested by no tree: changing {it} has no effect"),
        element("p", _listed(names), class_="names"),
    )


def _listed(names: Sequence[str]) -> list[Child]:
    parts: list[Child] = []
    for index, text in enumerate(names):
        parts += [", " if index else None, name(text)]
    return parts


def _certificate(audit: AuditResult) -> Markup:
    return element(
        "section",
        element("h2", "Certificate"),
        (element("p", paragraph) for paragraph in certificate(audit)),
        element("h3", "For the record"),
        sections.record(audit),
        id="certificate",
        class_="certificate",
    )


def _glossary() -> Markup:
    entries = (joined(element("dt", word), element("dd", text)) for word, text in GLOSSARY)
    return element("section", element("h2", "Glossary"), element("dl", entries), id="glossary")


def _footer(audit: AuditResult) -> Markup:
    version = audit.versions.get("xcount", "")
    return element(
        "footer", element("p", f"Made by XCount {version}. All numbers in full: --json or --csv.")
    )
