"""Results as bars with their bounds: for the card of a notebook, and for plots of matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

from xcount.answers.explanation import Explanation
from xcount.answers.inspection import FeatureInfo, Inspection, inspect
from xcount.answers.person import PersonResult
from xcount.answers.result import CountResult, Verdict
from xcount.answers.witness.witness import Witness, Witnesses
from xcount.answers.worst import WorstResult
from xcount.counters.tally import MaskCount, Profile
from xcount.measures.measured import REGIONS, Measured
from xcount.measures.population import Population, Portrait
from xcount.measures.portrait import Check, ComponentPortrait
from xcount.model.ensemble import Ensemble
from xcount.repairs.result import RepairResult
from xcount.report.explanation_words import NEAREST_TO_PEOPLE, of_measure
from xcount.report.lead import first_groups, in_order, measure_of, measure_shown, panels
from xcount.report.page.axis import nice_ceiling
from xcount.report.person_words import got, person_question
from xcount.report.sentences import label_of, panel_label
from xcount.report.witness_text import summary
from xcount.report.words.numbers import (
    NONE,
    OF_MEASURE,
    limit_percent,
    share_words,
    short_share,
)
from xcount.runs.audit import AuditResult
from xcount.runs.compare import CompareResult
from xcount.runs.compared import Compared
from xcount.runs.ranked import Ranked
from xcount.support.interval import Interval

TOP = 8
"""Bars of a card; a plot has more room, and :data:`TOP_OF_A_PLOT`."""
TOP_OF_A_PLOT = 40
_SMALL = 0.05
"""Shares up to this are drawn on a part of the scale, which its caption states."""
_ROOM = 1.5


@dataclass(frozen=True, slots=True)
class Bar:
    """A number with its bounds, and its text; it starts at ``start``, where a change begins."""

    label: str
    span: Interval
    text: str
    verdict: Verdict | None = None
    start: float = 0.0


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars on one scale, and what the scale means."""

    title: str
    unit: str
    bars: tuple[Bar, ...]
    limit: float | None = None
    limit_text: str = ""
    n_more: int = 0

    @property
    def span(self) -> tuple[float, float]:
        """The ends of the scale: zero is always on it, and all of a share, unless all are small.

        Small shares end at a round one, with room to spare: a full bar would look like everybody.
        """
        ends = [0.0, *(float(x) for b in self.bars for x in (b.span.low, b.span.high, b.start))]
        low, high = min(ends), max(ends)
        if self.unit == SHARE:
            most = max(high, min(self.limit or 0.0, 1.0))
            is_small = 0 < most <= _SMALL
            return 0.0, nice_ceiling(_ROOM * most) if is_small else 1.0
        return (low, high) if low < high else (0.0, 1.0)


SHARE = "share"


@singledispatch
def bars_of(result: Any, top: int = TOP) -> Bars:
    """Return what a result draws."""
    raise TypeError(f"there is no picture of a {type(result).__name__}")


@bars_of.register
def _(result: CountResult, top: int = TOP) -> Bars:
    names = list(dict.fromkeys((measure_shown(result), REGIONS, *result.measures)))
    limit = result.max_share
    return Bars(
        f"{label_of(result)}: {panel_label(result.distance, result.change)}",
        SHARE,
        tuple(_share_bar(name, result, name) for name in names),
        None if limit is None else float(limit),
        "" if limit is None else f"limit {limit_percent(limit)}",
    )


def _share_bar(label: str, result: CountResult, measure: str) -> Bar:
    """Return the bar of a share under a measure; the judged one has the verdict's colour."""
    share = result.share_under(measure) or Interval.unknown_share()
    verdict = result.verdict if measure == result.judge else None
    return Bar(label, share, short_share(share), verdict)


@bars_of.register
def _(result: WorstResult, top: int = TOP) -> Bars:
    return Bars("Nothing changes", SHARE, ()) if result.pair is None else bars_of(result.pair, top)


@bars_of.register
def _(result: RepairResult, top: int = TOP) -> Bars:
    bars = [
        _share_bar(label, count, REGIONS)
        for question in result.questions
        for label, count in (("before", question.before), ("after", question.after))
    ]
    return Bars("Sensitive regions before and after", SHARE, tuple(bars))


@bars_of.register
def _(result: PersonResult, top: int = TOP) -> Bars:
    unit = "margin" if result.now.probability is None else SHARE
    bars = [
        Bar(cell.text, Interval(size, size, size), got(cell))
        for cell in result.cells
        for size in [cell.margin if cell.probability is None else cell.probability]
    ]
    return Bars(person_question(result), unit, tuple(bars[:top]), n_more=max(0, len(bars) - top))


@bars_of.register
def _(result: AuditResult, top: int = TOP) -> Bars:
    if not result.panels:
        return Bars("No count is finished", SHARE, ())
    panel, measure = panels(result)[0], measure_of(result)
    found = in_order(result, result.panel(panel), measure)
    n_first = sum(r.sensitive in first_groups(result) for r in found)
    bars = tuple(_share_bar(label_of(r), r, measure) for r in found[: max(top, n_first)])
    by = "" if measure == REGIONS else f", by {measure}"
    return Bars(f"{panel_label(*panel)}{by}", SHARE, bars, n_more=len(found) - len(bars))


@bars_of.register
def _(result: CompareResult, top: int = TOP) -> Bars:
    means = sorted(result.ranking, key=lambda summary: summary.index)
    bars = tuple(
        Bar(each.name, each.mean_share, _mean_text(each.mean_share)) for each in means[:top]
    )
    return Bars("mean share of all questions", SHARE, bars, n_more=len(means) - len(bars))


@bars_of.register
def _(result: Ranked, top: int = TOP) -> Bars:
    judge = result.results[0].judge
    bars = tuple(
        _share_bar(panel_label(r.distance, r.change), r, judge) for r in result.results[:top]
    )
    title = f"{result.label}: shares {OF_MEASURE[judge]}"
    return Bars(title, SHARE, bars, n_more=len(result.results) - len(bars))


@bars_of.register
def _(result: Compared, top: int = TOP) -> Bars:
    known = [(number, r) for number, r in enumerate(result.results, 1) if r is not None]
    judge = known[0][1].judge if known else REGIONS
    bars = tuple(_share_bar(f"model {number}", r, judge) for number, r in known[:top])
    title = f"{result.label}: {panel_label(result.distance, result.change)}, {OF_MEASURE[judge]}"
    return Bars(title, SHARE, bars, n_more=len(known) - len(bars))


@bars_of.register
def _(result: Measured, top: int = TOP) -> Bars:
    text = NONE if result.share is None else share_words(result.share)
    bar = Bar(result.name, result.interval, text)
    return Bars(f"share {OF_MEASURE[result.name]}", SHARE, (bar,))


@bars_of.register
def _(result: Portrait, top: int = TOP) -> Bars:
    bars = tuple(
        Bar(traits_text(c), Interval.exactly(c.weight), share_words(c.weight))
        for c in result.components[:top]
    )
    title = "its kinds of cases, by weight"
    return Bars(title, SHARE, bars, n_more=len(result.components) - len(bars))


def traits_text(component: ComponentPortrait) -> str:
    """Return what sets a component apart."""
    return "; ".join(trait.text for trait in component.traits) or "like the whole population"


def _mean_text(share: Interval) -> str:
    return "bounds only" if share.value is None else share_words(share.value)


@bars_of.register
def _(result: Explanation, top: int = TOP) -> Bars:
    """Return the share against the gap, of the measure that is nearest to people."""
    for curve in of_measure(result.curves, NEAREST_TO_PEOPLE[0])[:1]:
        step = max(1, -(-len(curve.points) // top))
        points = curve.points[::step]
        bars = tuple(Bar(f"> {p.gap:g}", p.share, share_words(p.share.least)) for p in points)
        title = f"share {OF_MEASURE[curve.measure]} whose {curve.unit} changes by more than a gap"
        return Bars(title, SHARE, bars)
    return Bars("no share against the gap is known", SHARE, ())


@bars_of.register
def _(result: Profile, top: int = TOP) -> Bars:
    known = [mask for mask in result.masks if not mask.is_open]
    bars = tuple(_mask_bar(mask) for mask in known[:top])
    title = "sensitive combinations of the other features"
    return Bars(title, SHARE, bars, n_more=len(result.masks) - len(bars))


def _mask_bar(mask: MaskCount) -> Bar:
    low, high = mask.low / mask.n_combinations, mask.high / mask.n_combinations
    text = share_words(low) if mask.exact else f"{share_words(low)} to {share_words(high)}"
    return Bar(mask.description, Interval(low if mask.exact else None, low, high), text)


@bars_of.register
def _(result: Witnesses, top: int = TOP) -> Bars:
    bars = tuple(_witness_bar(witness) for witness in result[:top])
    title, unit = _before_and_after(result[:1])
    return Bars(title, unit, bars, n_more=len(result) - len(bars))


@bars_of.register
def _(result: Witness, top: int = TOP) -> Bars:
    return Bars(*_before_and_after([result]), (_witness_bar(result),))


def _before_and_after(found: Sequence[Witness]) -> tuple[str, str]:
    """Return what bars of witnesses show: probabilities, where the model has any."""
    if all(witness.probability is not None for witness in found):
        return "probability before and after", SHARE
    return "margin before and after", "margin"


def _witness_bar(witness: Witness) -> Bar:
    row = summary(witness)
    if witness.probability is not None and witness.other_probability is not None:
        before, after = witness.probability, witness.other_probability
        text = f"{share_words(before)} -> {share_words(after)}"
        return Bar(row["Change"], Interval.exactly(after), text, start=before)
    after = witness.other_margin
    return Bar(row["Change"], Interval.exactly(after), row["Margin"], start=witness.margin)


@bars_of.register
def _(result: Population, top: int = TOP) -> Bars:
    """Return how often two things hold together in it, beside how often they do in rows."""
    checks = result.realism.checks
    bars = tuple(Bar(c.text, Interval.exactly(c.population), _check_text(c)) for c in checks[:top])
    title = "how often both conditions hold in the population"
    return Bars(title, SHARE, bars, n_more=len(checks) - len(bars))


def _check_text(check: Check) -> str:
    rows, alone = share_words(check.rows), share_words(check.marginals)
    return f"{share_words(check.population)} (rows {rows}, if independent {alone})"


@bars_of.register
def _(result: Inspection, top: int = TOP) -> Bars:
    used = sorted(
        (feature for feature in result.features if feature.n_trees),
        key=lambda feature: (-feature.max_change, feature.index),
    )
    title = "largest change of the margin if only one feature changes"
    return Bars(title, "margin", _feature_bars(used[:top]), n_more=max(0, len(used) - top))


def _feature_bars(features: Sequence[FeatureInfo]) -> tuple[Bar, ...]:
    return tuple(
        Bar(f.name, Interval.exactly(f.max_change), f"{f.max_change:.3g}") for f in features
    )


@bars_of.register
def _(result: Ensemble, top: int = TOP) -> Bars:
    return bars_of(inspect(result), top)
