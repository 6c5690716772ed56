"""The words of a report: verdict, certificate, glossary; plain enough for a regulator's file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from xcount.answers.result import CountResult
from xcount.counters.tally import StopReason
from xcount.measures.measured import REGIONS
from xcount.question.change import Change, shown_decimal
from xcount.question.flip import Flip
from xcount.report.lead import bound_text, share_shown
from xcount.report.words.numbers import (
    OF_MEASURE,
    distance_text,
    integer,
    limit_percent,
    short_share,
)
from xcount.report.words.shares import (
    cut_short_words,
    of_measured,
    realism_words,
    why_rows_undecided,
)
from xcount.runs.audit import AuditResult
from xcount.runs.compared import ModelSummary
from xcount.support.interval import Interval

MARGIN_OF_TASK = {
    "binary": "the model's raw score (its margin, which becomes a probability in a last step)",
    "multiclass": "the raw score (the margin)",
    "regression": "the model's predicted value (its margin)",
}

OWN_GRID = (
    "Regions are those of the model's own grid; a grid that xcount compare shares with other "
    "models has more of them, and other shares."
)
SHARED_GRID = (
    "Regions are those of the shared grid, cut at the guards of all models. On a model's own grid "
    "(xcount count, xcount audit) a share of regions differs: guards of the other models cut some "
    "of its regions into more parts than others, and each part counts as one."
)
"""Which regions a share is of; other measures are the same on both grids, at any distance."""
_MARGIN = (
    (
        "Margin, or score",
        "The number the trees add up to, before it becomes a decision. For a boosted binary "
        "classifier it is the log-odds: a change of 0.5 multiplies the odds by 1.65. For a forest "
        "that votes it is the probability.",
    ),
)
_CELLS = (
    ("Guard", "A feature with a threshold that some tree tests, for example age < 28.5."),
    (
        "Cell",
        "A piece of one feature's range between neighbouring guards; for a categorical feature, "
        "categories that no tree tells apart. The model cannot tell two values in one cell apart.",
    ),
    (
        "Region",
        "One cell for every feature: a box of inputs that all get the same answer. The regions "
        "together are the whole input space.",
    ),
)
_DECISION = (
    (
        "Decision",
        "The model's final answer: on which side of the cut-off the margin lies or, with several "
        "classes, which one has the largest margin.",
    ),
)
_DISTANCE = (
    "Distance",
    "How far the sensitive features may move: the number of guards crossed, added up over the "
    "features. For a categorical feature, any other category is one step away. "
    "“Any change” sets no limit.",
)
_SHARES = {
    "regions": "Sensitive regions divided by all regions. Each region has the same weight, whether "
    "many people fall into it or none.",
    "volume": "The part of the input space, between the bounds of each feature, that lies in "
    "sensitive regions.",
    "marginals": "The probability of a sensitive region when each feature is drawn from its own "
    "column of the data, independently of the others.",
    "population": "The probability of a sensitive region in a population like the data: a mixture "
    "fitted to it, in which features depend on each other as they do there.",
    "rows": "Rows of the data that lie in sensitive regions, divided by all rows in any region.",
}
_CONFIDENCE = (
    "Interval and confidence",
    "If a number is not exact, the truth lies between the two bounds with at least the "
    "stated probability, no matter when the run was stopped.",
)
_PROFILE = (
    (
        "Profile",
        "Where along a feature the sensitive regions lie: for each of its cells, the share of "
        "combinations of all other features that is sensitive there.",
    ),
)
NOT_SAID = {
    "regions": "a share of regions is not a share of people. It weights all regions equally, even "
    "those that no real person falls into.",
    "volume": "a share of volume is not a share of people. It weights all inputs between the "
    "bounds equally, even those that no real person has.",
    "marginals": "features are drawn independently of each other, so some weight lies on "
    "combinations that no real person has.",
    "population": "the population is a model fitted to the data, and its shares are only as good "
    "as that fit. They say nothing about people who are not like the data.",
    "rows": "the rows are the cases of one table. Their share says nothing about people who are "
    "not like them.",
}

_LIMIT_WORDS = {
    StopReason.TIMEOUT: "the time limit",
    StopReason.MEMORY: "the memory limit",
    StopReason.STEPS: "the step limit",
    StopReason.INTERRUPTED: "an interruption",
}

_EXACTLY = {
    REGIONS: "every region was accounted for, not sampled",
    "rows": "every row was checked",
}
_IS = ("is", "are")
_WEIGHED = "all of the weight was summed, not sampled"
_PAST = ("was", "were")


def label_of(result: CountResult) -> str:
    """Return the sensitive features of a result as one label."""
    return " + ".join(result.sensitive)


def panel_label(distance: int | None, change: Change) -> str:
    """Return a panel's short name."""
    return f"{change.label}, {distance_text(distance)}"


def glossary(results: Sequence[CountResult]) -> tuple[tuple[str, str], ...]:
    """Return the words of a report and what they mean, those of its own questions."""
    changes = {result.change for result in results}
    measures = {REGIONS, *(name for result in results for name in result.measures)}
    effects = " or the ".join(sorted({change.what_changes for change in changes}))
    sensitive = (
        "A region from which changing only the sensitive features, by at most the distance, can "
        f"change the {effects}."
    )
    about = (
        *_gap_entry(changes),
        *(_DECISION if any(change.size is None for change in changes) else ()),
    )
    shares = tuple((f"Share {OF_MEASURE[m]}", _SHARES[m]) for m in _SHARES if m in measures)
    has_profile = any(result.profile is not None for result in results)
    return (
        *_MARGIN,
        *_CELLS,
        ("Sensitive region", sensitive),
        *about,
        _DISTANCE,
        *shares,
        _CONFIDENCE,
        *(_PROFILE if has_profile else ()),
    )


def _gap_entry(changes: Iterable[Change]) -> list[tuple[str, str]]:
    moves = {_is_about_probability(change) for change in changes if change.size is not None}
    if not moves:
        return []
    what = " or the ".join("probability" if is_one else "margin" for is_one in sorted(moves))
    return [("Gap", f"A change of the {what} counts only if it is larger than the gap.")]


def _is_about_probability(change: Change) -> bool:
    return change.what_changes.startswith("probability")


def gaps_sentence(origin: str, results: Sequence[CountResult]) -> str:
    """Return where the gaps of a run come from; of flips, which have none, what counts instead."""
    flip = what_counts(results)
    return f"Gaps: {origin}." if flip is None else f"No gap: {flip}."


def what_counts(results: Sequence[CountResult]) -> str | None:
    """Return which changes count in a run about flips; None for a run about gaps."""
    flips = {change for result in results if isinstance(change := result.change, Flip)}
    cutoffs = {(flip.cutoff, flip.tie_is_above) for flip in flips}
    if not cutoffs:
        return None
    if len(cutoffs) > 1:
        return "a change counts if it changes the model's own decision"
    cutoff, tie_is_above = cutoffs.pop()
    if cutoff is None:
        return "a change counts if another class wins"
    side = "above" if tie_is_above else "below"
    return f"a change counts if the margin crosses {shown_decimal(cutoff)} (ties count as {side})"


def judgement(result: CountResult) -> str:
    """Return why a result passes or not."""
    if result.max_share is None:
        return ""
    of_what = ""
    if result.judge != REGIONS:
        of_what = f" {of_measured(share_shown(result, result.judge))}"
    why = why_rows_undecided(result)
    because = "" if why is None else f": {why}"
    return f"{bound_text(result)}{of_what}, allowed {limit_percent(result.max_share)}{because}"


def mean_share_text(summary: ModelSummary) -> str:
    """Return the mean share of a model, or between what it lies."""
    return short_share(summary.mean_share)


def certificate(audit: AuditResult) -> tuple[str, ...]:
    """Return the certificate, a paragraph each: how sure what decides is, then all else.

    Without results, it says that they are missing, and no more.
    """
    if not audit.results:
        return tuple(_what_stopped(audit))
    return (
        _what_was_asked(audit),
        *_sureness(audit),
        *_what_is_verified(audit.results),
        *_what_stopped(audit),
        *_how_realistic(audit),
        _what_it_is_not(audit.judge),
    )


def _what_was_asked(audit: AuditResult) -> str:
    regions = audit.results[0].n_regions
    margin = MARGIN_OF_TASK.get(audit.task, "the sum of the model's trees (its margin)")
    if audit.margin == "probability":
        margin = "the model's predicted probability (its margin)"
    elif all(_is_about_probability(result.change) for result in audit.results):
        margin = "the model's predicted probability"
    of_class = f" of class {audit.output_label}" if audit.output_label is not None else ""
    change = f"{margin}{of_class} by more than the stated gap"
    if any(result.change.size is None for result in audit.results):
        change = "the model's decision"
    space = "the inputs of the domain" if audit.domain else "the space of all possible inputs"
    weighed = ""
    if audit.judge != REGIONS:
        weighed = f", and what share {OF_MEASURE[audit.judge]} lies in them"
    return (
        f"The thresholds of the model's trees divide {space} into "
        f"{integer(regions)} regions, the model's own grid (xcount compare shares a finer one "
        f"between models, with other shares); within a region every input gets the same answer. "
        f"A region is called sensitive to a feature, or to a group of features, if changing only "
        f"those features, by no more than the stated distance, can change {change}. "
        f"This report states how many regions are sensitive{weighed}."
    )


def _what_is_verified(results: Sequence[CountResult]) -> list[str]:
    """Say how many counts the verified counter confirms, if any."""
    n_exact, n_verified = sum(r.exact for r in results), sum(bool(r.verified) for r in results)
    if not n_verified:
        return []
    which = (
        "The exact count was" if n_exact == 1 else f"{n_verified} of {n_exact} exact counts were"
    )
    return [
        f"{which} counted again by the verified counter, with the same result. That counter shares "
        "no code with the first one, and its correctness is proved in Coq: whatever number it "
        "returns is the number of sensitive regions of the question it was given."
    ]


def _how_realistic(audit: AuditResult) -> list[str]:
    """Say how well a population fits the data, where there is one."""
    words = realism_words(audit.results)
    return [] if words is None else [f"How realistic the population is: {words}."]


def _sureness(audit: AuditResult) -> list[str]:
    """Return how sure the judged shares are, then the other numbers, then all at once.

    Intervals that fail with probability d each hold together with probability at least 1 - the sum
    of all d, however they depend on each other.
    """
    judge, *others = _measures_of(audit)
    judged = " ".join([*_what_decides(audit, others), *_how_sure(audit.results, judge, audit)])
    said = [judged] if judged else []
    beside = [_how_sure(audit.results, measure, audit) for measure in others]
    if any(beside):
        end = "decide nothing here" if audit.verdict is not None else "do not rank features here"
        said.append(" ".join([f"The other numbers {end}.", *(s for own in beside for s in own)]))
    return [*said, *_all_at_once(audit), *_explained(audit.results)]


def _measures_of(audit: AuditResult) -> list[str]:
    """Return the measures of an audit, the judging one first, then regions."""
    found = dict.fromkeys(name for result in audit.results for name in result.measures)
    return list(dict.fromkeys((audit.judge, REGIONS, *found)))


def n_exact_words(audit: AuditResult) -> str:
    """Return how many numbers are exact, the judged ones first."""
    said = []
    for measure in _measures_of(audit):
        known = _known(audit.results, measure)
        number = sum(share.is_settled for share in known)
        said.append(f"{number} of {len(known)} {_noun(measure, audit, len(known) == 1)}")
    return "; ".join(said)


def at_least(probability: Fraction | float) -> str:
    """Return a probability in per cent, never rounded up.

    Example:
        >>> at_least(0.9), at_least(0.6967), at_least(0.99999)
        ('90%', '69.6%', '99.9%')
    """
    exact = Fraction(str(probability)) if isinstance(probability, float) else probability
    return f"{math.floor(exact * 1000) / 10:g}%"


def _what_decides(audit: AuditResult, others: Sequence[str]) -> list[str]:
    """Say which share decides, or ranks, where there are several."""
    if not others:
        return []
    is_judged = audit.verdict is not None
    if not is_judged and audit.judge == REGIONS:
        return []
    what = "Limits apply to the share" if is_judged else "Features are ranked by the share"
    rest = "people" if audit.judge == REGIONS else "the regions"
    if audit.judge == REGIONS and not {"rows", "population"} & set(others):
        rest = "any other measure"
    not_by = "not to the share" if is_judged else "not by the share"
    return [f"{what} {OF_MEASURE[audit.judge]}, {not_by} of {rest}."]


def _known(results: Iterable[CountResult], measure: str) -> list[Interval]:
    found = (result.share_under(measure) for result in results)
    return [share for share in found if share is not None]


def _how_sure(results: Sequence[CountResult], measure: str, audit: AuditResult) -> list[str]:
    """Return what is known of the numbers of one measure: exact, bounded, or sampled."""
    known = _known(results, measure)
    noun, one = (_noun(measure, audit, is_one) for is_one in (False, True))
    sampled = [share for share in known if share.is_sampled]
    n_exact = sum(share.is_settled for share in known)
    n_bounded = len(known) - n_exact - len(sampled)
    said = []
    if n_exact:
        how = _EXACTLY.get(measure, _WEIGHED)
        sure = "exact" if measure in _EXACTLY else "exact but for rounding"
        said.append(f"{_some_of(n_exact, len(known), one, noun)} {sure}: {how}.")
        said += [_arithmetic(results)] if measure == audit.judge else []
    if n_bounded:
        said.append(
            f"{_some_of(n_bounded, len(known), one, noun)} bounded: the true "
            f"{'count' if measure == REGIONS else 'share'} is guaranteed to lie between the two "
            "bounds."
        )
    if sampled:
        seeds = ", ".join(str(seed) for seed in sorted({r.seed for r in results}))
        said.append(f"{_some_of(len(sampled), len(known), one, noun)} {_sampled(sampled, seeds)}")
    return said


def _sampled(sampled: Sequence[Interval], seeds: str) -> str:
    worst = min(share.sureness for share in sampled)
    together = ""
    if len(sampled) > 1:
        all_of_them = _together(sampled)
        together = (
            f" All of them hold at once with probability at least {at_least(all_of_them)}."
            if all_of_them > 0
            else " The confidence applies to each interval separately, not to all at once."
        )
    return (
        f"partly or wholly estimated from random samples (seed {seeds}). The interval stated for "
        f"each contains the truth with probability at least {at_least(worst)}, no matter when "
        f"the run was stopped.{together}"
    )


def _together(shares: Iterable[Interval]) -> Fraction:
    """Return with what probability all intervals hold, at least; 0 where nothing is known."""
    return max(Fraction(0), 1 - sum((1 - Fraction(str(s.sureness)) for s in shares), Fraction(0)))


def _all_at_once(audit: AuditResult) -> list[str]:
    """Say how sure all numbers together are, where those of several measures are sampled."""
    sampled = {
        measure: [s for s in _known(audit.results, measure) if s.is_sampled]
        for measure in _measures_of(audit)
    }
    names = [measure for measure, shares in sampled.items() if shares]
    if len(names) < 2:
        return []
    whole = _together(share for shares in sampled.values() for share in shares)
    of_all = " and ".join(OF_MEASURE[measure] for measure in names)
    if whole <= 0:
        return [f"No joint confidence is claimed for the intervals {of_all}: they are too many."]
    return [f"All intervals {of_all} hold at once with probability at least {at_least(whole)}."]


def _explained(results: Sequence[CountResult]) -> list[str]:
    """Say that the intervals of explanations are apart, where there are sampled ones."""
    found = [result.explanation for result in results if result.explanation is not None]
    parts = [
        confidence
        for each in found
        for confidence in (
            *(effect.confidence for effect in each.effects),
            *(curve.confidence for curve in each.curves),
            *(place.confidence for place in each.places),
            *(rates.confidence for rates in each.rates),
        )
    ]
    if all(confidence == 1.0 for confidence in parts):
        return []
    return [
        "These probabilities do not cover the intervals of directions, sizes, curves, places and "
        "group rates: each part states its own confidence."
    ]


def _noun(measure: str, audit: AuditResult, is_one: bool) -> str:
    if measure != REGIONS:
        return f"{'share' if is_one else 'shares'} {OF_MEASURE[measure]}"
    counts = "count" if is_one else "counts"
    return counts if _measures_of(audit) == [REGIONS] else f"{counts} of regions"


def _some_of(number: int, total: int, one: str, several: str, verbs: Sequence[str] = _IS) -> str:
    """Return ``All 3 counts are``, ``1 of the 3 counts is``."""
    if number == total:
        if total == 1:
            return f"The {one} {verbs[0]}"
        return f"{'Both' if total == 2 else f'All {total}'} {several} {verbs[1]}"
    return f"{number} of the {total} {several} {verbs[number != 1]}"


def _arithmetic(results: Sequence[CountResult]) -> str:
    rounded = sorted({r.precision for r in results if r.precision is not None})
    if not rounded:
        return "Leaf values are taken as the model stores them and compared in integer arithmetic."
    places = ", ".join(str(precision) for precision in rounded)
    return (
        f"Leaf values were rounded to {places} decimals, as requested, then compared as integers."
    )


def cut_short_sentence(results: Sequence[CountResult]) -> list[str]:
    """Say how many answers another machine, or more time, might change."""
    cut = [result for result in results if result.cut_short]
    if not cut:
        return []
    kinds = {what for result in cut for what in result.cut_short}
    how_many = _some_of(len(cut), len(results), "count", "counts", ("depends", "depend"))
    return [
        f"{how_many} on the speed of the machine: {cut_short_words(kinds)}. The bounds are "
        "valid all the same; with more time (--timeout), the count may come out exact."
    ]


def _what_stopped(audit: AuditResult) -> list[str]:
    said = cut_short_sentence(audit.results)
    kind = "" if _measures_of(audit) == [REGIONS] else " of regions"
    counts = (len(audit.results), f"count{kind}", f"counts{kind}", _PAST)
    for reason, words in _LIMIT_WORDS.items():
        number = sum(result.stop_reason is reason for result in audit.results)
        if number:
            said.append(
                f"{_some_of(number, *counts)} cut short by {words}, before the "
                "requested accuracy was reached. The bounds are still valid."
            )
    decided = sum(result.stop_reason is StopReason.DECIDED for result in audit.results)
    if decided:
        said.append(
            f"{_some_of(decided, *counts)} stopped as soon as the verdict was "
            "certain: the interval is wider than requested, but lies on one side of the limit."
        )
    unfinished = audit.n_planned - len(audit.results)
    if unfinished > 0:
        said.append(
            f"The audit is unfinished: {unfinished} of {audit.n_planned} planned counts are not "
            "in this report, and nothing is claimed about them."
        )
    return [*said, *map(sentence, audit.notes)]


def sentence(note: str) -> str:
    """Return a note as a sentence."""
    return f"{note[:1].upper()}{note[1:]}."


def _what_it_is_not(judge: str) -> str:
    return (
        f"What this does not say: {NOT_SAID[judge]} It shows what the model can do, not how often "
        "it does so, and it does not judge whether a difference is justified."
    )
