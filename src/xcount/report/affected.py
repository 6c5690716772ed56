"""Who is affected, in a few sentences for each group that was judged or named."""

from __future__ import annotations

from xcount.answers.explanation import GroupRate, GroupRates, RatioInterval
from xcount.answers.result import CountResult
from xcount.report.explanation_words import (
    brief_share,
    effect_sentence,
    explanation_of,
    of_measure,
    place_numbers,
    said_of,
)
from xcount.report.lead import first_groups, in_order, measure_of, panels, share_shown
from xcount.report.numbers import estimate_words
from xcount.report.sentences import label_of, panel_label
from xcount.runs.audit import AuditResult
from xcount.support.dataclass import dataclass

MAX_PLACES = 2


@dataclass(frozen=True, slots=True)
class Affected:
    """What is known of a group: its name, its question and share, and sentences about it."""

    label: str
    share: str
    sentences: tuple[str, ...]


def affected(audit: AuditResult) -> list[Affected]:
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
            found.append(_affected(next(asked, own[0]), measure))
    return found


def _affected(result: CountResult, measure: str) -> Affected:
    share = share_shown(result, measure)
    interval = f" ({share.interval})" if share.interval and share.value is not None else ""
    asked = panel_label(result.distance, result.change)
    said = [effect_sentence(result, measure)]
    said += [_rates_sentence(r, measure) for r in of_measure(explanation_of(result).rates, measure)]
    for place in of_measure(explanation_of(result).places, measure)[:MAX_PLACES]:
        said.append(f"Where: {place.text}: {place_numbers(place, brief_share)}.")
    return Affected(
        label_of(result),
        f"{share.short}{interval} {share.of_whom} ({asked})",
        tuple(sentence for sentence in said if sentence),
    )


def _rates_sentence(rates: GroupRates, measure: str) -> str:
    """Return the groups with the lowest and the highest rate, and their ratio."""
    if not rates.cells:
        return ""
    ordered = sorted(rates.cells, key=lambda group: group.rate)
    whom = said_of(rates, measure)
    return (
        f"The favourable decision is {rates.favourable}; lowest rate {_rate(ordered[0])}, "
        f"highest {_rate(ordered[-1])}{whom and f' {whom}'}{_ratio(rates.ratio)}."
    )


def _rate(group: GroupRate) -> str:
    share = estimate_words(group.rate, group.low, group.high, group.low == group.high)
    return f"{share} ({group.text})"


def _ratio(ratio: RatioInterval) -> str:
    if ratio.value is None:
        return ""
    bounds = "" if ratio.low == ratio.high else f" ({ratio.low:.3g} to {ratio.high:.3g})"
    return f"; lowest over highest {ratio.value:.3g}{bounds}"
