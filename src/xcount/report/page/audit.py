"""The report of an audit as one self-contained HTML page: a sequence of sections.

It is whole without its script and on paper; the script adds search, sorting, a slider and exact
numbers under the pointer, and asks no network for anything.
"""

from __future__ import annotations

from xcount.answers.result import CountResult, Verdict
from xcount.report.explanation_words import ASSUMED, effect_sentence, explanation_of, of_measure
from xcount.report.group_words import audit_sheets
from xcount.report.lead import bound_text, headline, paragraphs, share_shown
from xcount.report.markup import Child, Markup, element, joined, name
from xcount.report.page.features import features
from xcount.report.page.gaps import share_against_gap
from xcount.report.page.groups import groups_section
from xcount.report.page.measures import measures
from xcount.report.page.ranking import ranking
from xcount.report.page.record import all_counts, certificate_section, glossary_section
from xcount.report.page.shell import answer_card, page, toolbar, unbroken_units
from xcount.report.page.verified import MOST_BYTES, Carried, verified_section
from xcount.report.page.view import View
from xcount.report.sentences import panel_label
from xcount.report.words.numbers import OF_MEASURE, estimate_words, limit_percent, time_text
from xcount.report.words.shares import file_name, of_measured, of_whom
from xcount.runs.audit import AuditResult

MAX_FINDINGS = 8
_TOP_FEATURES = 3


def html_report(audit: AuditResult) -> str:
    """Return the page.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> page = html_report(xcount.audit(figure_1(), gaps=80))
        >>> page.startswith("<!doctype html>"), "22.2 %" in page
        (True, True)
    """
    plain = _page(audit, None)
    carried = Carried.of(audit.results, MOST_BYTES - len(plain.encode()))
    return plain if carried is None else _page(audit, carried)


def _page(audit: AuditResult, carried: Carried | None) -> str:
    view = View.of(audit)
    body = joined(
        _header(audit),
        element("main", _answer(view), _sections(view, carried)),
        _footer(audit),
        None if carried is None else carried.data(),
    )
    title = f"Sensitivity audit: {_model_name(audit)}"
    return page(title, body, len(audit.panels), can_count=carried is not None)


def _sections(view: View, carried: Carried | None) -> list[Child]:
    audit = view.audit
    if not audit.results:
        return [element("p", "No count was finished.")]
    return [
        toolbar(audit.verdict is not None),
        ranking(view),
        share_against_gap(view),
        features(view),
        measures(view),
        groups_section(audit_sheets(view.in_order(audit.results))),
        None if carried is None else verified_section(view, carried),
        all_counts(view),
        certificate_section(audit),
        glossary_section(audit.results),
    ]


def _model_name(audit: AuditResult) -> str:
    return file_name(audit.model.path) if audit.model.path else "a model"


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


def _answer(view: View) -> Markup:
    audit = view.audit
    said = _said(view)
    return answer_card(
        audit.verdict,
        headline(audit),
        (element("p", unbroken_units(sentence), class_="answer") for sentence in said),
        _key_figures(view),
        _findings(view),
    )


def _said(view: View) -> list[str]:
    """Return the paragraphs below the headline: direction and size stand with their own measure."""
    said = paragraphs(view.audit)
    if view.lead is None:
        return [*said.values()]
    result = view.lead.result
    known = {effect.measure for effect in explanation_of(result).effects}
    for measure in known & set(said):
        said[measure] = f"{said[measure]} {effect_sentence(result, measure)}"
    sized = "" if known & set(said) else effect_sentence(result, view.lead.share.name)
    return [*said.values(), *([sized] if sized else [])]


def _key_figures(view: View) -> Markup | None:
    """Return the few numbers of the leading result that people remember."""
    if view.lead is None:
        return None
    result, share = view.lead.result, view.lead.share
    cards = [(estimate_words(share.interval), of_whom(share))]
    for effect in of_measure(explanation_of(result).effects, share.name)[:1]:
        up, down = (_unbroken(estimate_words(share)) for share in (effect.up, effect.down))
        arrows = f"{_unbroken('↑ ')}{up} {_unbroken('↓ ')}{down}"
        cards.append((arrows, f"could go up or down, {OF_MEASURE[effect.measure]}"))
    for rates in of_measure(explanation_of(result).rates, share.name)[:1]:
        if rates.ratio.value is not None:
            whose = "as observed, " if rates.differs else ""
            assumed = f", if {rates.favourable} is favourable ({ASSUMED})" * rates.is_assumed
            what = f"lowest favourable rate over highest, {whose}by {rates.measure}{assumed}"
            cards.append((f"{rates.ratio.value:.3g}", what))
        if_all = rates.ratio_if_all
        if rates.differs and if_all is not None and if_all.value is not None:
            cards.append((f"{if_all.value:.3g}", "the same ratio if only this feature differed"))
    if len(cards) == 1:
        return None
    return element(
        "dl",
        (element("div", element("dt", what), element("dd", number)) for number, what in cards),
        class_="cards",
    )


def _unbroken(text: str) -> str:
    """Return text that stays on one line."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def _findings(view: View) -> Markup | None:
    """Return what else is above its limit or undecided; without a limit, the next features."""
    audit, lead = view.audit, view.lead
    if lead is None:
        return None
    judged = [
        r
        for verdict in (Verdict.FAIL, Verdict.UNDECIDED)
        for r in view.in_order(r for r in audit.results if r.verdict is verdict)
    ]
    if judged:
        first = [r for r in judged if view.comes_first(r.sensitive)]
        shown = judged[: max(MAX_FINDINGS, len(first))]
        items = [_judged_finding(view, r) for r in shown] if len(judged) > 1 else []
        more = len(judged) - len(shown)
        items += [element("li", f"and {more} more, below")] if more else []
    else:
        same = [r for r in audit.results if (r.distance, r.change) == lead.panel]
        others = [r for r in view.in_order(same) if r is not lead.result]
        n_first = sum(view.comes_first(r.sensitive) for r in others)
        items = [_finding(view, r) for r in others[: max(_TOP_FEATURES, n_first)]]
    return element("ul", items, class_="findings") if items else None


def _judged_finding(view: View, result: CountResult) -> Markup:
    assert result.max_share is not None
    return element(
        "li",
        element("strong", view.link(result.sensitive)),
        f" ({panel_label(result.distance, result.change)}): {bound_text(result)} "
        f"{of_measured(share_shown(result, result.judge))}, at most "
        f"{limit_percent(result.max_share)} allowed",
    )


def _finding(view: View, result: CountResult) -> Markup:
    share = view.share(result)
    return element(
        "li",
        element("strong", view.link(result.sensitive)),
        f": {estimate_words(share.interval)} {of_measured(share)}",
    )


def _footer(audit: AuditResult) -> Markup:
    version = audit.versions.get("xcount", "")
    return element(
        "footer",
        element("p", f"Made by XCount {version}. Use --json or --csv for all numbers in full."),
    )
