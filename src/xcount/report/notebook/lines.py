"""Each result in one line: what a prompt shows."""

from __future__ import annotations

import os
from functools import singledispatch
from typing import Any

from xcount.answers.explanation import Explanation
from xcount.answers.inspection import Inspection
from xcount.answers.person import PersonResult
from xcount.answers.result import CountResult, ModelInfo
from xcount.answers.witness.witness import Witness, Witnesses
from xcount.answers.worst import WorstResult
from xcount.counters.tally import Profile
from xcount.measures.measured import REGIONS, Measured
from xcount.measures.population import Population, Portrait
from xcount.repairs.result import RepairResult
from xcount.report.lead import share_shown
from xcount.report.person_words import got, person_answer
from xcount.report.sentences import label_of, panel_label
from xcount.report.text import count_text
from xcount.report.witness_text import summary
from xcount.report.words.numbers import (
    OF_MEASURE,
    confidence_of,
    estimate_words,
    sure_words,
    table_share,
)
from xcount.report.words.shares import has_rows, of_measured, rows_words
from xcount.report.worst_text import worst_answer
from xcount.runs.audit import AuditResult
from xcount.runs.compare import CompareResult
from xcount.runs.compared import Compared
from xcount.runs.ranked import Ranked
from xcount.support.interval import Interval
from xcount.support.visible import visible

_MOST = 3


def line_of(result: object) -> str:
    """Return a result in one line, whatever its names hold.

    Example:
        >>> import xcount
        >>> from xcount.model.examples import figure_1
        >>> xcount.count(figure_1(), sensitive="f0", gap=80)
        CountResult(f0, gap 80, any change: 2 of 9 regions = 22.2 %, exact)
    """
    return f"{type(result).__name__}({visible(_inside(result))})"


@singledispatch
def _inside(result: Any) -> str:
    raise TypeError(f"{type(result).__name__} has no line")


@_inside.register
def _(result: CountResult) -> str:
    what = f"{label_of(result)}, {panel_label(result.distance, result.change)}"
    n_regions, share = f"{count_text(result.n_regions)} regions", _share(result, REGIONS)
    if result.exact:
        found = f"{count_text(result.low)} of {n_regions} = {estimate_words(share)}, exact"
    else:
        bounds = f"{count_text(result.low)} to {count_text(result.high)} of {n_regions}"
        found = f"{bounds}, {estimate_words(share)}, {confidence_of(share)}"
    judged = ""
    shown = result.judge
    if shown == REGIONS and "rows" in result.measures:
        shown = "rows"
    if shown != REGIONS:
        measured = share_shown(result, shown)
        judged = f", {estimate_words(measured.interval)} {of_measured(measured)}"
    return f"{what}: {found}{judged}{_verdict(result)}"


@_inside.register
def _(result: AuditResult) -> str:
    counts = f"{_several(len(result.results), 'count')} of {_several(len(result.ranking), 'group')}"
    if not result.is_whole:
        counts = f"{len(result.results)} of {result.n_planned} counts"
    first = result.ranking[0] if result.ranking else None
    most = "" if first is None else f", most sensitive {first.label}"
    return f"{_model(result.model)}: {counts}{most}{_verdict(result)}"


@_inside.register
def _(result: CompareResult) -> str:
    names = ", ".join(result.names[:_MOST]) + (", ..." if len(result.names) > _MOST else "")
    least = f", least sensitive {result.ranking[0].name}" if result.rows else ""
    return f"{names}: {_several(len(result.rows), 'question')}{least}{_verdict(result)}"


@_inside.register
def _(result: Witness) -> str:
    row = summary(result)
    return f"{row['Change']}: margin {row['Margin']}"


@_inside.register
def _(result: Witnesses) -> str:
    if not result:
        return f"none: {result.why_none}"
    return f"{_several(len(result), 'pair')}, the first: {_inside(result[0])}"


@_inside.register
def _(result: WorstResult) -> str:
    return f"{', '.join(result.sensitive)}, {result.of}: {worst_answer(result)}"


@_inside.register
def _(result: RepairResult) -> str:
    names, proved = " + ".join(result.before.sensitive), "proved" if result.proved else "not proved"
    return f"{names}, {result.before.change.label}: {proved}, {result.method}"


@_inside.register
def _(result: PersonResult) -> str:
    return f"row {result.row}: {got(result.now)}; {person_answer(result)}"


@_inside.register
def _(result: Inspection) -> str:
    model = result.model
    return (
        f"{_model(model)}: {result.task}, {model.n_trees:,} trees, {model.n_features:,} features, "
        f"{count_text(result.n_regions)} regions"
    )


@_inside.register
def _(result: Explanation) -> str:
    parts = {
        "direction and size": result.effects,
        "share against the gap": result.curves,
        "places": result.places,
        "rates of groups": result.rates,
    }
    known = [what for what, entries in parts.items() if entries]
    measures = dict.fromkeys(
        [
            *(effect.measure for effect in result.effects),
            *(curve.measure for curve in result.curves),
            *(place.measure for place in result.places),
            *(rates.measure for rates in result.rates),
        ]
    )
    return f"{', '.join(known)}; by {', '.join(measures)}" if known else "nothing is known"


@_inside.register
def _(result: Profile) -> str:
    return f"{_several(len(result.masks), 'mask')}, {_several(len(result.pairs), 'pair')}"


@_inside.register
def _(result: Population) -> str:
    size = f"{_several(len(result.columns), 'column')}, "
    fitted = f", fitted to {result.source}" if result.source else ""
    return f"{size}{_several(result.n_components, 'component')}{fitted}"


@_inside.register
def _(result: Portrait) -> str:
    size = f"{_several(result.n_columns, 'column')}, "
    fitted = f", fitted to {result.source}" if result.source else ""
    return f"{size}{_several(result.n_components, 'component')}{fitted}"


@_inside.register
def _(result: Ranked) -> str:
    mean = table_share(result.score)
    over = "" if len(result.results) == 1 else f" over {len(result.results)} questions"
    return f"{result.rank}, {result.label}: mean share {mean}{over}"


@_inside.register
def _(result: Compared) -> str:
    known = [each for each in result.results if each is not None]
    judge = known[0].judge if known else REGIONS
    shares = ", ".join(
        "not counted" if r is None else estimate_words(_share(r, judge)) for r in result.results
    )
    asked = f"{result.label}, {panel_label(result.distance, result.change)}"
    whole = of_measured(share_shown(known[0], judge)) if known else OF_MEASURE[judge]
    return f"{asked}: {shares} {whole}"


@_inside.register
def _(result: Measured) -> str:
    rows = f", {rows_words(result)}" if has_rows(result) else ""
    return f"{result.name}: {table_share(result.interval)}, {sure_words(result.interval)}{rows}"


def _share(result: CountResult, measure: str) -> Interval:
    return result.share_under(measure) or Interval.unknown_share()


def _several(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _model(model: ModelInfo) -> str:
    return os.path.basename(model.path) if model.path else f"a live model, {model.format}"


def _verdict(result: CountResult | AuditResult | CompareResult) -> str:
    return "" if result.verdict is None else f", {result.verdict}"
