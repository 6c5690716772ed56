"""A compact card of each result for a notebook: what was asked, what came out, a small chart.

Cards take the notebook's own colours, light or dark: text and lines are ``currentColor``, and the
few colours beside it are readable on both. Styles are inline, so that a card brings nothing into
the page it is shown in; names from a model are escaped as everywhere (see
:mod:`xcount.report.markup`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import singledispatch
from typing import Any

from xcount.answers.explanation import Explanation
from xcount.answers.inspection import Inspection, inspect
from xcount.answers.person import PersonResult
from xcount.answers.result import CountResult, ModelInfo, Verdict
from xcount.answers.witness.witness import Witness, Witnesses
from xcount.answers.worst import WorstResult
from xcount.counters.tally import Profile
from xcount.measures.measured import Measured
from xcount.measures.population import Population, Portrait
from xcount.model.ensemble import Ensemble
from xcount.repairs.result import RepairResult
from xcount.report.bars import SHARE, Bar, Bars, bars_of
from xcount.report.culprit import comparison_headline
from xcount.report.explanation_words import (
    NEAREST_TO_PEOPLE,
    favourable_text,
    if_all_sentence,
    of_measure,
    ratio_sentence,
)
from xcount.report.group_words import impact_text
from xcount.report.lead import headline, measure_shown, opening, share_shown
from xcount.report.markup import Markup, element, joined, name
from xcount.report.notebook.lines import line_of
from xcount.report.person_words import got, others_text, person_answer, person_question
from xcount.report.repair_text import change_facts, repair_headline, repair_title
from xcount.report.text import answer_text, count_text, question_text
from xcount.report.witness_text import same_inputs, summary
from xcount.report.words.numbers import (
    OF_MEASURE,
    axis_words,
    estimate_words,
    seconds_text,
    share_words,
)
from xcount.report.words.shares import among_whom, cut_short_words, of_measured
from xcount.report.worst_text import worst_answer, worst_question
from xcount.runs.audit import AuditResult
from xcount.runs.compare import CompareResult
from xcount.runs.compared import Compared
from xcount.runs.ranked import Ranked
from xcount.support.visible import visible

_COLOURS = {
    Verdict.PASS: "#3a8a5b",
    Verdict.FAIL: "#c4483f",
    Verdict.UNDECIDED: "#b07c1c",
    None: "#4f83c4",
}
_CARD = (
    "max-width:44rem;margin:.3rem 0;padding:.6rem .9rem;border:1px solid rgba(128,128,128,.4);"
    "border-radius:8px;font-family:system-ui,sans-serif;font-size:.9rem;line-height:1.45"
)
_SOFT = "opacity:.75"
_GRID = (
    "display:grid;grid-template-columns:minmax(4rem,max-content) minmax(6rem,1fr) max-content;"
    "gap:.15rem .7rem;align-items:center;margin:.4rem 0;font-variant-numeric:tabular-nums"
)
_NAME = "max-width:14rem;overflow:hidden;text-overflow:ellipsis;white-space:nowrap"
_SHOWN_PAIRS = 3
_HEIGHT = 12


@singledispatch
def card_of(result: Any) -> Markup:
    """Return a result as a piece of HTML."""
    raise TypeError(f"there is no card of a {type(result).__name__}")


@card_of.register
def _(result: CountResult) -> Markup:
    measure = measure_shown(result)
    return _card(
        question_text(result, measure),
        _share_line(result, measure),
        bars_of(result),
        [
            f"sensitive regions: {answer_text(result)}; all: {count_text(result.n_regions)}",
            *([f"within {result.domain.text}"] if result.domain else []),
            *_places(result),
            *_group_facts([result]),
            f"{_model_text(result.model)}; {result.method}, {seconds_text(result.seconds)}",
            *(words for words in [cut_short_words(result.cut_short)] if words is not None),
        ],
        result.verdict,
    )


def _share_line(result: CountResult, measure: str) -> str:
    """Return the share that leads; of rows, their numbers, too."""
    measured = share_shown(result, measure)
    if measured.name != "rows":
        return f"{estimate_words(measured.interval)} {of_measured(measured)}"
    said = among_whom(measured, result.sensitive).removeprefix("for ")
    return f"{said[0].upper()}{said[1:]}"


def _places(result: CountResult) -> list[str]:
    """Say where most of what is sensitive lies, if the result explains itself."""
    found = () if result.explanation is None else result.explanation.places
    place = next((place for place in found if place.measure == measure_shown(result)), None)
    if place is None:
        return []
    return [f"{share_words(place.part.least)} of all that is sensitive is where {place.text}"]


@card_of.register
def _(result: AuditResult) -> Markup:
    facts = [_model_text(result.model)]
    if len(result.panels) > 1:
        facts.insert(0, f"one of {len(result.panels)} questions (gaps and distances)")
    return _card(
        f"Audit: {len(result.results):,} counts, features or groups: {len(result.ranking):,}",
        headline(result),
        bars_of(result),
        [*opening(result), *_group_facts(result.results), *facts],
        result.verdict,
    )


def _group_facts(results: Iterable[CountResult]) -> list[str]:
    """Say how far the rates of groups lie apart; they are the same for all questions."""
    groups = next((result.groups for result in results if result.groups is not None), None)
    return [] if groups is None else [impact_text(groups, table) for table in groups.tables]


@card_of.register
def _(result: CompareResult) -> Markup:
    questions = f"{len(result.rows)} question{'' if len(result.rows) == 1 else 's'}"
    title = f"{len(result.names)} models, {questions}, {count_text(result.n_regions)} regions"
    said = comparison_headline(result) if result.rows else "No counts yet"
    return _card(title, said, bars_of(result), _least(result), result.verdict)


def _least(result: CompareResult) -> list[str]:
    """Say which model is the least sensitive, where one is."""
    if not result.rows or len(result.ranking) < 2:
        return []
    first, other = result.ranking[:2]
    if first.mean_share.value is not None and first.mean_share.value == other.mean_share.value:
        return ["the least sensitive models are equal"]
    return [f"the least sensitive: {first.name}"]


@card_of.register
def _(result: Witnesses) -> Markup:
    if not result:
        return _card("Witnesses", f"There are none: {result.why_none}", None, [])
    pairs = "1 pair of inputs" if len(result) == 1 else f"{len(result)} pairs of inputs"
    facts = [f"#{i}: {same_inputs(w)}" for i, w in enumerate(result[:_SHOWN_PAIRS], start=1)]
    return _card("Witnesses: only the sensitive features differ", pairs, bars_of(result), facts)


@card_of.register
def _(result: Witness) -> Markup:
    row = summary(result)
    facts = [f"{label.lower()}: {text}" for label, text in row.items() if label != "Change"]
    title = "Witness: only the sensitive features differ"
    return _card(title, row["Change"], bars_of(result), [*facts, same_inputs(result)])


@card_of.register
def _(result: Explanation) -> Markup:
    nearest = NEAREST_TO_PEOPLE[0]
    said = "Nothing is known"
    for effect in of_measure(result.effects, nearest)[:1]:
        up, down = (share_words(end.least) for end in (effect.up, effect.down))
        said = f"up for {up} and down for {down} {OF_MEASURE[effect.measure]}"
    facts = [
        f"{share_words(place.part.least)} of all that is sensitive is where {place.text}"
        for place in of_measure(result.places, nearest)[:1]
    ]
    facts += [
        f"favourable decisions ({favourable_text(rates)}): {ratio_sentence(rates)} "
        f"{if_all_sentence(rates)}".rstrip()
        for rates in of_measure(result.rates, nearest)[:1]
    ]
    title = "Explanation: which way, how much, where and for whom"
    return _card(title, said, bars_of(result), [*facts, *result.notes])


@card_of.register
def _(result: Profile) -> Markup:
    known = [mask for mask in result.masks if not mask.is_open]
    most = max(known, key=lambda mask: (mask.low, mask.high), default=None)
    said = "Nothing is known" if most is None else f"most sensitive where {most.description}"
    return _card("Profile: the count by cell", said, bars_of(result), [])


@card_of.register
def _(result: WorstResult) -> Markup:
    bars, facts = None, [_model_text(result.model)]
    if result.pair is not None:
        bars = bars_of(result.pair)
        facts = [summary(result.pair)["Change"], same_inputs(result.pair), *facts]
    return _card(worst_question(result), worst_answer(result), bars, facts)


@card_of.register
def _(result: RepairResult) -> Markup:
    facts = [f"{what}: {text}" for what, text in change_facts(result)]
    verdict = Verdict.PASS if result.proved else Verdict.UNDECIDED
    said = repair_headline(result)
    return _card(repair_title(result), said, bars_of(result), [*facts, *result.notes], verdict)


@card_of.register
def _(result: PersonResult) -> Markup:
    facts = [f"now: {got(result.now)}", others_text(result), _model_text(result.model)]
    return _card(person_question(result), person_answer(result), bars_of(result), facts)


@card_of.register
def _(result: Inspection) -> Markup:
    gaps = ", ".join(f"{gap:g}" for gap in result.gaps)
    return _card(
        _model_text(result.model),
        f"{result.task} model, {count_text(result.n_regions)} regions",
        bars_of(result),
        [f"{result.model.n_guards:,} guards", *([f"gaps to ask about: {gaps}"] if gaps else [])],
    )


@card_of.register
def _(result: Ensemble) -> Markup:
    return card_of(inspect(result))


@card_of.register
def _(result: Population) -> Markup:
    realism = result.realism
    kinds = (
        "1 kind of cases" if result.n_components == 1 else f"{result.n_components} kinds of cases"
    )
    said = f"A mixture of {kinds}, fitted to {realism.n_rows:,} rows"
    facts = [f"from {result.source}"] if result.source else []
    facts.append(
        f"log-likelihood of a row that was held out: {realism.log_likelihood:.3f}; "
        f"if columns were independent: {realism.marginals_log_likelihood:.3f}"
    )
    return _card("Population: a mixture of products", said, bars_of(result), facts)


@card_of.register(Ranked)
@card_of.register(Compared)
@card_of.register(Measured)
@card_of.register(Portrait)
def _(result: Ranked | Compared | Measured | Portrait) -> Markup:
    said = line_of(result).partition("(")[2].removesuffix(")")
    return _card(_OF_A_PART[type(result)], said, bars_of(result), [])


_OF_A_PART = {
    Ranked: "A place in the ranking of an audit",
    Compared: "One question of a comparison",
    Measured: "Share of a count under a measure",
    Portrait: "Population: a mixture of products",
}


def _model_text(model: ModelInfo) -> str:
    trees = "1 tree" if model.n_trees == 1 else f"{model.n_trees:,} trees"
    where = os.path.basename(model.path) if model.path else "live model"
    return f"{where} ({model.format}, {trees}, {model.n_features:,} features)"


def _card(
    title: str,
    answer: str,
    bars: Bars | None,
    facts: Iterable[str],
    verdict: Verdict | None = None,
) -> Markup:
    badge = None
    if verdict is not None:
        style = f"background:{_COLOURS[verdict]};color:#fff;border-radius:4px;padding:.1rem .45rem;"
        badge = element("span", str(verdict), style=f"{style}font-size:.8rem;margin-left:.6rem")
    return element(
        "div",
        element("div", visible(title), style=_SOFT),
        element("div", visible(answer), badge, style="font-size:1.15rem;font-weight:600"),
        None if bars is None or not bars.bars else _chart(bars),
        [element("div", visible(fact), style=f"{_SOFT};font-size:.85rem") for fact in facts],
        class_="xcount-card",
        style=_CARD,
    )


def _chart(bars: Bars) -> Markup:
    low, high = bars.span
    ends = f"0 to {high:.3g}" if low >= 0 else f"{low:.3g} to {high:.3g}"
    if bars.unit == SHARE:
        ends = f"0 to {axis_words(high)}"
    more = f", {bars.n_more:,} more" if bars.n_more else ""
    limit = f"; {bars.limit_text}" if bars.limit_text else ""
    caption = f"{bars.title}; bars from {ends}{limit}{more}"
    return element(
        "div",
        element("div", joined(_row(bar, bars) for bar in bars.bars), style=_GRID),
        element("div", visible(caption), style=f"{_SOFT};font-size:.8rem"),
    )


def _row(bar: Bar, bars: Bars) -> Markup:
    label = visible(bar.label)
    return joined(
        element("span", name(label), style=_NAME, title=label),
        _svg(bar, bars),
        element("span", visible(bar.text)),
    )


def _svg(bar: Bar, bars: Bars) -> Markup:
    """Return a bar on its rail: what is certain in full colour, what is open in a pale one."""
    low, high = bars.span

    def x(value: float) -> float:
        return 100 * (min(high, max(low, value)) - low) / (high - low)

    def box(first: float, last: float, opacity: float) -> Markup:
        left, right = sorted((x(first), x(last)))
        width = max(right - left, 0.6 if last != first else 0.0)
        shape = {"x": min(left, 100 - width), "y": 2, "width": width, "height": _HEIGHT - 4}
        return element("rect", fill=_COLOURS[bar.verdict], fill_opacity=opacity, **shape)

    rail = element(
        "rect", x=0, y=2, width=100, height=_HEIGHT - 4, fill="currentColor", fill_opacity=0.1
    )
    end, first, last = (float(each) for each in (bar.span.least, bar.span.low, bar.span.high))
    parts = [rail, box(bar.start, end, 1), box(min(first, end), last, 0.45)]
    if bars.limit is not None and low <= bars.limit <= high:
        at = x(bars.limit)
        parts.append(element("line", x1=at, x2=at, y1=0, y2=_HEIGHT, stroke="currentColor"))
    if bar.start:
        at = x(bar.start)
        parts.append(
            element("rect", x=at - 0.4, y=0, width=0.8, height=_HEIGHT, fill="currentColor")
        )
    return element(
        "svg",
        element("title", visible(f"{bar.label}: {bar.text}")),
        parts,
        viewBox=f"0 0 100 {_HEIGHT}",
        preserveAspectRatio="none",
        width="100%",
        height=_HEIGHT,
        role="img",
    )
