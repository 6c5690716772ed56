"""The words of a report: verdict, certificate, glossary; plain enough for a regulator's file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xcount.answers.measured import REGIONS
from xcount.answers.result import CountResult
from xcount.counters.tally import StopReason
from xcount.question.change import Change
from xcount.report.lead import bound_text
from xcount.report.numbers import (
    OF_MEASURE,
    distance_text,
    estimate_words,
    integer,
    interval_words,
    limit_percent,
    plural,
)
from xcount.report.shares import realism_words
from xcount.runs.audit import AuditResult
from xcount.runs.compared import ModelSummary

MARGIN_OF_TASK = {
    "binary": "the model's raw score (its margin, which becomes a probability in a last step)",
    "multiclass": "the raw score (the margin)",
    "regression": "the model's predicted value (its margin)",
}

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
        "categories that no tree tells apart. The model cannot tell two values of a cell apart.",
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
        "What the model says in the end: on which side of the cut-off the margin lies, or which of "
        "several classes has the largest one.",
    ),
)
_DISTANCE = (
    "Distance",
    "How far the sensitive features may move: the number of guards crossed, added up over the "
    "features. For a categorical feature, any other category is one step away. "
    "“Any change” sets no limit.",
)
_SHARES = {
    "regions": "Sensitive regions divided by all regions. Each region weighs the same, whether "
    "many people fall into it or nobody does.",
    "volume": "The part of the input space, between the bounds of each feature, that lies in "
    "sensitive regions.",
    "marginals": "The probability of a sensitive region when each feature is drawn from its own "
    "column of the data, independently of the others.",
    "population": "The probability of a sensitive region in a population like the data: a mixture "
    "fitted to it, in which features depend on each other as they do there.",
    "rows": "Rows of the data that lie in sensitive regions, divided by all rows that lie in any.",
}
_CONFIDENCE = (
    "Interval and confidence",
    "Where a number is not exact, the truth lies between the two bounds with at least the "
    "stated probability, whenever the run was stopped.",
)
_PROFILE = (
    (
        "Profile",
        "Where along a feature the sensitive regions lie: for each of its cells, the share of "
        "combinations of all other features that is sensitive there.",
    ),
)
NOT_SAID = {
    "regions": "a share of regions is not a share of people. It weighs all regions alike, even "
    "those that no real person falls into.",
    "volume": "a share of volume is not a share of people. It weighs all inputs between the bounds "
    "alike, even those that no real person has.",
    "marginals": "features are drawn independently of each other, so some weight lies on "
    "combinations that no real person has.",
    "population": "the population is a model fitted to the data, and its shares are as good as "
    "that fit. They say nothing about people who are not like the data.",
    "rows": "the rows are the cases of one table. Their share says nothing about people who are "
    "not like them.",
}

_LIMIT_WORDS = {
    StopReason.TIMEOUT: "the time limit",
    StopReason.MEMORY: "the memory limit",
    StopReason.STEPS: "the limit of steps",
    StopReason.INTERRUPTED: "an interruption",
}


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


def judgement(result: CountResult) -> str:
    """Return why a result passes or not."""
    if result.max_share is None:
        return ""
    of_what = "" if result.judge == REGIONS else f" {OF_MEASURE[result.judge]}"
    return f"{bound_text(result)}{of_what}, allowed {limit_percent(result.max_share)}"


def mean_share_text(summary: ModelSummary) -> str:
    """Return the mean share of a model, or between what it lies."""
    ends = (summary.mean_share_low, summary.mean_share_high)
    if summary.mean_share is None:
        return interval_words(*ends)
    return estimate_words(summary.mean_share, *ends, ends[0] == ends[1])


def certificate(audit: AuditResult) -> tuple[str, ...]:
    """Return the certificate, a paragraph each."""
    results = audit.results
    return (
        _what_was_asked(audit),
        *_how_sure(results),
        *_what_is_judged(audit),
        *_what_stopped(audit),
        *_how_realistic(audit),
        _what_it_is_not(audit.judge),
    )


def _what_was_asked(audit: AuditResult) -> str:
    regions = audit.results[0].n_regions if audit.results else 0
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
        f"{integer(regions)} regions; within a region every input gets one and the same answer. "
        f"A region is called sensitive to a feature, or to a group of features, when changing only "
        f"those features, by no more than the stated distance, can change {change}. "
        f"This report states how many regions are sensitive{weighed}."
    )


def _what_is_judged(audit: AuditResult) -> list[str]:
    """Say so where another share than that of the regions decides; of samples, how sure it is."""
    if audit.judge == REGIONS:
        return []
    is_judged = audit.verdict is not None
    what = "Limits apply to the share" if is_judged else "Features are ranked by the share"
    sampled = [r for r in audit.results if r.judged.confidence < 1.0]
    said = f"{what} {OF_MEASURE[audit.judge]}, not to that of the regions."
    if not is_judged:
        said = said.replace("not to that", "not by that")
    if sampled:
        worst = min(r.judged.confidence for r in sampled)
        said += (
            f" {plural(len(sampled), 'such share')} of {len(audit.results)} "
            f"{'is' if len(sampled) == 1 else 'are'} estimated from random samples; the interval "
            f"stated for each contains the truth with probability at least {worst:.0%}."
        )
    return [said]


def _how_realistic(audit: AuditResult) -> list[str]:
    """Say how well a population fits the data, where there is one."""
    words = realism_words(audit.results)
    return [] if words is None else [f"How realistic the population is: {words}."]


def _how_sure(results: Sequence[CountResult]) -> list[str]:
    exact = sum(result.exact for result in results)
    bounded = [r for r in results if not r.exact and r.confidence == 1.0]
    sampled = [r for r in results if r.confidence < 1.0]
    said = []
    if exact:
        said.append(
            f"{_counts(exact, len(results))} exact: every region was accounted for, none was "
            f"sampled. {_arithmetic(results)}"
        )
    if bounded:
        said.append(
            f"{_counts(len(bounded), len(results))} bounded: the true count is guaranteed to lie "
            f"between the two bounds."
        )
    if sampled:
        said.append(_sampled(sampled, len(results)))
    return said


def _sampled(sampled: Sequence[CountResult], total: int) -> str:
    worst = min(result.confidence for result in sampled)
    risk = sum(1 - result.confidence for result in sampled)
    together = (
        f" All of them hold at once with probability at least {max(0.0, 1 - risk):.0%}."
        if len(sampled) > 1 and risk < 1
        else " The confidence is that of each interval by itself, not of all at once."
        if len(sampled) > 1
        else ""
    )
    seeds = ", ".join(str(seed) for seed in sorted({result.seed for result in sampled}))
    return (
        f"{_counts(len(sampled), total)} partly or wholly estimated from random samples of "
        f"regions (seed {seeds}). The interval stated for each contains the truth with "
        f"probability at least {worst:.0%}, whenever the run was stopped.{together}"
    )


_PAST = ("was", "were")


def _counts(number: int, total: int, one: str = "is", several: str = "are") -> str:
    if number == total:
        return f"The count {one}" if total == 1 else f"All {total} counts {several}"
    return f"{number} of the {total} counts {one if number == 1 else several}"


def _arithmetic(results: Sequence[CountResult]) -> str:
    rounded = sorted({r.precision for r in results if r.precision is not None})
    if not rounded:
        return "Leaf values are taken as the model stores them and compared in integer arithmetic."
    places = ", ".join(str(precision) for precision in rounded)
    return f"Leaf values were rounded to {places} decimals, as asked, then compared as integers."


def _what_stopped(audit: AuditResult) -> list[str]:
    said = []
    for reason, words in _LIMIT_WORDS.items():
        number = sum(result.stop_reason is reason for result in audit.results)
        if number:
            said.append(
                f"{_counts(number, len(audit.results), *_PAST)} cut short by {words}, before the "
                "accuracy asked for was reached. The bounds are still valid."
            )
    decided = sum(result.stop_reason is StopReason.DECIDED for result in audit.results)
    if decided:
        said.append(
            f"{_counts(decided, len(audit.results), *_PAST)} stopped as soon as the verdict was "
            "certain: the interval is wider than asked for, but lies on one side of the limit."
        )
    unfinished = audit.n_planned - len(audit.results)
    if unfinished > 0:
        said.append(
            f"The audit is unfinished: {unfinished} of {audit.n_planned} planned counts are not "
            "in this report, and nothing is claimed about them."
        )
    return said


def _what_it_is_not(judge: str) -> str:
    return (
        f"What this does not say: {NOT_SAID[judge]} It shows what the model can do, not how often "
        "it does so, and it does not judge whether a difference is justified."
    )
