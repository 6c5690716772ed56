"""What a report says first: may the model ship, whom does it touch, and how.

One question leads, and everything else follows it: it is the headline, the first tab of the page,
and the first line in the terminal and in Markdown. It is the worst judged one; without a limit, the
broadest one that was asked (the farthest distance, the smallest gap) about the features that come
first: those the user named, and legally protected attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from xcount.answers.result import CountResult, Verdict
from xcount.measures.measured import REGIONS, Measured
from xcount.question.gap import PREDICTED
from xcount.report.words.numbers import (
    OF_MEASURE,
    estimate_words,
    limit_percent,
    plural,
    share_words,
)
from xcount.report.words.shares import OF_PEOPLE, among_whom, of_whom, why_rows_undecided
from xcount.runs.audit import AuditResult, Panel
from xcount.runs.protected import is_protected
from xcount.runs.ranked import Ranked
from xcount.support.visible import visible

_LISTED = 4
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Lead:
    """The result that leads, and its share under the measure that the page speaks of."""

    result: CountResult
    share: Measured

    @property
    def panel(self) -> Panel:
        """The question: how far, and what changes."""
        return (self.result.distance, self.result.change)


def first_groups(audit: AuditResult) -> frozenset[tuple[str, ...]]:
    """Return the groups that come first and are never left out: named by the user, or protected."""
    named = frozenset(audit.named)
    return frozenset(
        group
        for group in {result.sensitive for result in audit.results}
        if " + ".join(group) in named or any(map(is_protected, group))
    )


def measure_of(audit: AuditResult) -> str:
    """Return the measure that the page speaks of: the judged one, or one of people, or regions."""
    judged = [r.judge for r in audit.results if r.verdict is not None or r.judge != REGIONS]
    if judged:
        return judged[0]
    for measure in OF_PEOPLE:
        shares = [result.measured(measure) for result in audit.results]
        if shares and all(share is not None and share.is_known for share in shares):
            return measure
    return REGIONS


def measure_shown(result: CountResult) -> str:
    """Return the measure that one result leads with: the judged one, or one of people, or regions.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> rows = {"f0": [3.5, 5.0], "f1": [1.0, 9.0]}
        >>> measure_shown(xcount.count(figure_1(), sensitive="f0", gap=80, data=rows))
        'rows'
    """
    if result.verdict is not None or result.judge != REGIONS:
        return result.judge
    known = (result.measured(measure) for measure in OF_PEOPLE)
    return next((share.name for share in known if share is not None and share.is_known), REGIONS)


def share_shown(result: CountResult, measure: str) -> Measured:
    """Return a result's share under a measure, or its share of regions where it has no other."""
    found = result.measured(measure) or result.measured(REGIONS)
    assert found is not None
    return found


def lead(audit: AuditResult) -> Lead | None:
    """Return the result that leads; None without any."""
    measure = measure_of(audit)
    pool = [
        found
        for verdict in (Verdict.FAIL, Verdict.UNDECIDED)
        if (found := [r for r in audit.results if r.verdict is verdict])
    ]
    candidates = pool[0] if pool else _broadest(audit)
    if not candidates:
        return None
    result = _by_share(audit, candidates, measure)[0]
    return Lead(result, share_shown(result, measure))


def _broadest(audit: AuditResult) -> list[CountResult]:
    """Return the results of the farthest distance and the smallest gap that were asked."""
    reach = [float("inf") if d is None else d for d, _ in audit.panels]
    if not reach:
        return []
    panel = audit.panels[reach.index(max(reach))]
    return [r for r in audit.results if (r.distance, r.change) == panel]


def panels(audit: AuditResult) -> list[Panel]:
    """Return the questions that were asked, the leading one first."""
    leading = lead(audit)
    rest = [panel for panel in audit.panels if leading is None or panel != leading.panel]
    return [*([] if leading is None else [leading.panel]), *rest]


def in_order(audit: AuditResult, results: Iterable[CountResult], measure: str) -> list[CountResult]:
    """Return results: the leading one, those that come first, then by share, the largest first."""
    leading = lead(audit)
    ordered = _by_share(audit, results, measure)
    return sorted(ordered, key=lambda result: leading is None or result is not leading.result)


def _by_share(
    audit: AuditResult, results: Iterable[CountResult], measure: str
) -> list[CountResult]:
    """Return results, those that come first first, then by share, the largest first."""
    first = first_groups(audit)

    def place(result: CountResult) -> tuple[object, ...]:
        share = share_shown(result, measure).interval
        return (result.sensitive not in first, -share.least, -share.high, result.sensitive)

    return sorted(results, key=place)


def ranking_shown(audit: AuditResult) -> tuple[Ranked, ...]:
    """Return the groups by their answers to the leading question, the one that leads first.

    So the headline is the first rank. A group's answer to the leading question is the first of its
    results.
    """
    asked = panels(audit)
    groups = {ranked.sensitive: ranked for ranked in audit.ranking}
    answers = in_order(
        audit, (answer_to(asked, ranked) for ranked in audit.ranking), measure_of(audit)
    )
    ranking = []
    for rank, answer in enumerate(answers, start=1):
        ranked = groups[answer.sensitive]
        results = sorted(ranked.results, key=lambda r: asked.index((r.distance, r.change)))
        ranking.append(replace(ranked, rank=rank, results=tuple(results)))
    return tuple(ranking)


def answer_to(asked: Sequence[Panel], ranked: Ranked) -> CountResult:
    """Return a group's answer to the first of the questions that it has one to."""
    answers = {(result.distance, result.change): result for result in ranked.results}
    return next((answers[panel] for panel in asked if panel in answers), ranked.results[0])


def headline(audit: AuditResult) -> str:
    """Return the verdict in one line; without a limit, the answer itself."""
    missing = audit.n_planned - len(audit.results)
    if audit.verdict in (Verdict.PASS, Verdict.FAIL):
        return _judged_headline(audit, audit.verdict)
    if audit.verdict is Verdict.UNDECIDED:
        return f"Not decided: {_why_undecided(audit)}"
    leading = lead(audit)
    unfinished = f"Unfinished, {len(audit.results)} of {audit.n_planned} counts"
    if leading is None:
        return unfinished
    said = answer(audit, leading.result, leading.share)
    return f"{unfinished}: {said[0].lower()}{said[1:]}" if missing > 0 else said


def opening(audit: AuditResult) -> tuple[str, ...]:
    """Return what follows a verdict, a paragraph for each measure: see :func:`paragraphs`."""
    return tuple(paragraphs(audit).values())


def paragraphs(audit: AuditResult) -> dict[str, str]:
    """Return what follows a verdict, by measure: the judged share, then people if that is not they.

    No paragraph speaks of two measures, and that about people says that the limit is about another.
    """
    leading = lead(audit)
    if leading is None or audit.verdict is None:
        return {}
    result, judged = leading.result, leading.share
    said = {judged.name: f"{answer(audit, result, judged)}."}
    known = (result.measured(measure) for measure in OF_PEOPLE)
    people = [share for share in known if share is not None and share.is_known]
    if judged.name not in OF_PEOPLE and people:
        found = answer(audit, result, people[0])
        said[people[0].name] = (
            f"The limit applies to {_JUDGED_WHAT[judged.name]}, not to people. For people: "
            f"{found[0].lower()}{found[1:]}."
        )
    return said


_JUDGED_WHAT = {
    REGIONS: "regions",
    "volume": "volume",
    "marginals": "cases assembled from columns",
}


def _judged_headline(audit: AuditResult, verdict: Verdict) -> str:
    judged = [r for r in audit.results if r.verdict is not None]
    limits = {r.max_share for r in judged if r.max_share is not None}
    of_what = "of all regions" if audit.judge == REGIONS else OF_MEASURE[audit.judge]
    limit = f" of {limit_percent(limits.pop())} {of_what}" if len(limits) == 1 else ""
    groups = dict.fromkeys(r.sensitive for r in judged)
    measure = judged[0].judge
    found = in_order(audit, (r for r in judged if r.verdict is verdict), measure)
    worst = {r.sensitive: r for r in reversed(found)}
    shown = [worst[names] for names in dict.fromkeys(r.sensitive for r in found)]
    if len(shown) == 1 and (verdict is Verdict.FAIL or len(groups) == 1):
        return _one_judged(shown[0], verdict)
    if verdict is Verdict.PASS:
        of_all = f"All {len(groups)}" if len(groups) > 2 else "Both"
        within = f"within {_limits(limit, of_what)}"
        return f"{of_all} {_kind(groups)}s stay {within}"
    listed = [f"{_group_name(r.sensitive)} ({bound_text(r)})" for r in shown[:_LISTED]]
    more = len(shown) - len(listed)
    names = joined_names([*listed, f"{more} more"] if more else listed)
    above = _limits(limit, of_what)
    return f"{len(shown)} of {plural(len(groups), _kind(groups))} are above {above}: {names}"


def _limits(limit: str, of_what: str) -> str:
    """Return the limit, or that there are several, and whose shares they bound."""
    return f"the limit{limit}" if limit else f"their limits (shares {of_what})"


def _group_name(names: Sequence[str]) -> str:
    """Return a group's name in a list of groups."""
    return " + ".join(short_names([name]) for name in names)


def _kind(groups: Iterable[tuple[str, ...]]) -> str:
    return "feature" if all(len(names) == 1 for names in groups) else "group"


def _one_judged(result: CountResult, verdict: Verdict) -> str:
    assert result.max_share is not None
    share = share_shown(result, result.judge)
    where = "above" if verdict is Verdict.FAIL else "within"
    limit = limit_percent(result.max_share)
    names, are = short_names(result.sensitive), "is" if len(result.sensitive) == 1 else "are"
    return (
        f"{names} {are} {where} the limit: {bound_text(result)} {of_whom(share)}, "
        f"at most {limit} allowed"
    )


def bound_text(result: CountResult) -> str:
    """Return the judged share as far as it decides: the bound that lies on one side."""
    share = share_shown(result, result.judge).interval
    if share.is_settled:
        return estimate_words(share)
    if result.verdict is Verdict.FAIL:
        return f"at least {share_words(share.low)}"
    if result.verdict is Verdict.PASS:
        return f"at most {share_words(share.high)}"
    return f"between {share_words(share.low)} and {share_words(share.high)}"


def _why_undecided(audit: AuditResult) -> str:
    limits = {r.max_share for r in audit.results if r.max_share is not None}
    of_what = "of all regions" if audit.judge == REGIONS else OF_MEASURE[audit.judge]
    limit = f" of {limit_percent(limits.pop())} {of_what}" if len(limits) == 1 else ""
    undecided = [result for result in audit.results if result.verdict is Verdict.UNDECIDED]
    by_rows = [why for result in undecided if (why := why_rows_undecided(result)) is not None]
    reasons = []
    if len(undecided) == len(by_rows) == 1:
        reasons.append(by_rows[0])
    elif by_rows:
        n_rows = undecided[0].judged.left_out
        reasons.append(
            f"{plural(n_rows, 'row')} could not be placed, and some shares are above the limit"
            f"{limit} only if those are sensitive"
        )
    elif undecided:
        reasons.append(f"some intervals contain the limit{limit}")
    n_missing = audit.n_planned - len(audit.results)
    if n_missing > 0:
        are = "is" if n_missing == 1 else "are"
        reasons.append(f"{n_missing} of {audit.n_planned} counts {are} missing")
    return ", and ".join(reasons)


def answer(audit: AuditResult, result: CountResult, share: Measured) -> str:
    """Return a result as a sentence for people who know nothing of regions."""
    two = result.profile is not None and len(result.profile.masks) == 2
    names = short_names(result.sensitive)
    if result.distance is None or two or _reaches_all(audit, result):
        condition = f"If only {names} were different"
    else:
        steps = "one step" if result.distance == 1 else f"at most {result.distance} steps"
        condition = f"If only {names} changed by {steps}"
    modal = "would" if two else "could"
    label = audit.output_label
    of_class = "" if label is None else f" of class {short_names([label])}"
    outcome = result.change.outcome(modal, score_of(audit), of_class)
    return f"{condition}, {outcome} {among_whom(share, result.sensitive)}"


def _reaches_all(audit: AuditResult, result: CountResult) -> bool:
    """Tell whether the distance is no restriction: every value is one step from every other."""
    names = result.sensitive
    return set(names) <= set(audit.one_step_features) and (result.distance or 0) >= len(names)


def score_of(audit: AuditResult) -> str:
    """Return what the trees add up to, as people call it."""
    if audit.margin == "probability":
        return PREDICTED
    return "the model's prediction" if audit.task == "regression" else "the model's score"


def short_names(names: Sequence[str]) -> str:
    """Return the names of a group in a sentence; long ones are cut."""
    shown = [_shortened(visible(name)) for name in names]
    return joined_names([name if name.strip() else f"“{name}”" for name in shown])


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def joined_names(words: Sequence[str]) -> str:
    """Return ``a, b and c``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
