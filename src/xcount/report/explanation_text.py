"""Who is affected and how much, as tables for the terminal."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from xcount.answers.explanation import (
    Curve,
    Effect,
    Explanation,
    GroupRate,
    GroupRates,
    Place,
)
from xcount.answers.result import CountResult
from xcount.question.change import Change
from xcount.report.explanation_words import (
    ASSUMED,
    IF_ALL_MEANS,
    NEAREST_TO_PEOPLE,
    brief_share,
    highest,
    place_numbers,
)
from xcount.report.terminal import escaped
from xcount.report.words.numbers import (
    NONE,
    axis_words,
    confidence_words,
    number_and_interval,
    share_and_interval,
)
from xcount.support.interval import Interval

if TYPE_CHECKING:
    from rich.console import RenderableType

Entry = TypeVar("Entry", Place, GroupRates)

MAX_POINTS = 12
"""Points of a curve in the terminal; ``--json`` has all."""
MAX_PLACES = 5
"""Places of an audit in the terminal."""
MAX_ROWS = 40
_FAR = 0.99
_HEADS = ("Can rise", "Can fall", "Mean change", "99 % change by at most")


def explanation_tables(result: CountResult) -> list[RenderableType]:
    """Return all of an explanation, measures side by side."""
    explanation = result.explanation
    if explanation is None:
        return []
    tables: list[RenderableType] = []
    if explanation.effects:
        tables.append(_effects_table(explanation.effects, result.change, result.sensitive))
    if explanation.curves:
        tables.append(_curves_table(explanation.curves, result.change))
    tables += _footnotes(explanation)
    if explanation.places:
        tables += _place_lines(explanation.places)
    if explanation.rates:
        tables.append(_rates_table(explanation.rates))
    return tables


def compared_effects_table(
    names: Sequence[str], rows: Sequence[tuple[str, Sequence[CountResult | None]]]
) -> list[RenderableType]:
    """Return direction and size of the answers of several models, side by side.

    Args:
        names: of the models.
        rows: the label of each question, and the results of all models.
    """
    from rich.table import Table

    found = [
        (label, [None if r is None else _judged_effect(r) for r in results])
        for label, results in rows
    ]
    found = [row for row in found if any(effect is not None for effect in row[1])]
    if not found:
        return []
    table = Table(
        title="Direction and size of the change", title_justify="left", title_style="bold"
    )
    table.add_column("Question")
    table.add_column("")
    for name in names:
        table.add_column(escaped(name), justify="right")
    for label, effects in found[:MAX_ROWS]:
        cells = [("", "", "", "") if e is None else _brief(e) for e in effects]
        for number, head in enumerate(_HEADS):
            shown = escaped(label) if number == 0 else ""
            table.add_row(shown, head, *(each[number] for each in cells))
    return [table]


def _judged_effect(result: CountResult) -> Effect | None:
    effects = () if result.explanation is None else result.explanation.effects
    return next((effect for effect in effects if effect.measure == result.judge), None)


def _brief(effect: Effect) -> tuple[str, str, str, str]:
    mean = NONE if effect.mean is None else f"{effect.mean.least:.3g}"
    far = [f"{q.size.least:.3g}" for q in effect.quantiles if q.level == _FAR]
    return brief_share(effect.up), brief_share(effect.down), mean, far[0] if far else NONE


def _effects_table(
    effects: Sequence[Effect], change: Change, sensitive: Sequence[str]
) -> RenderableType:
    from rich.table import Table

    unit = effects[0].unit
    table = Table(
        title="Direction and size of the change", title_justify="left", title_style="bold"
    )
    table.add_column("")
    for effect in effects:
        table.add_column(escaped(effect.measure), justify="right")
    for side, label in _SIDES[change.size is None].items():
        text = label.format(unit=unit.capitalize(), gap=_gap_text(change))
        table.add_row(text, *(share_and_interval(getattr(effect, side)) for effect in effects))
    whose = " of those that flip" if change.size is None else ""
    table.add_row(f"Mean change{whose}", *(_number(effect.mean) for effect in effects))
    for number, quantile in enumerate(_quantiles(effects)):
        label = {0.5: "Half", 1.0: "Largest change"}.get(quantile, axis_words(quantile))
        label += "" if quantile == 1.0 else " change by at most"
        table.add_row(label, *(_quantile(effect, number) for effect in effects))
    found, more = highest(effects[-1], sensitive)
    for each in found:
        shares = [each.text_in(effect) for effect in effects]
        table.add_row(f"{_TOP[_has_classes(effects)]} {escaped(each.label)}", *shares)
    if more:
        table.add_row(f"  {more}", *("" for _ in effects))
    return table


_TOP = {False: "Highest where", True: "Decided:"}
_SIDES = {
    False: {
        "up": "{unit} can rise by more than {gap}",
        "down": "{unit} can fall by more than {gap}",
    },
    True: {"up": "Decision can flip up", "down": "Decision can flip down"},
}


def _gap_text(change: Change) -> str:
    return f"{change.size:g}" if change.size is not None else "0"


def _quantiles(effects: Sequence[Effect]) -> tuple[float, ...]:
    return next((tuple(q.level for q in e.quantiles) for e in effects if e.quantiles), ())


def _number(number: Interval | None) -> str:
    return NONE if number is None else number_and_interval(number)


def _quantile(effect: Effect, number: int) -> str:
    if not effect.quantiles:
        return NONE
    quantile = effect.quantiles[number]
    if quantile.level == 1.0 and not quantile.size.exact:
        return f"at least {quantile.size.least:.3g}"
    return number_and_interval(quantile.size)


def _has_classes(effects: Sequence[Effect]) -> bool:
    """Tell whether cells are listed with the classes that are decided there."""
    return any(cell.class_label is not None for effect in effects for cell in effect.cells)


def _curves_table(curves: Sequence[Curve], change: Change) -> RenderableType:
    from rich.table import Table

    unit = curves[0].unit
    table = Table(
        title=f"Share whose {unit} changes by more than a gap",
        title_justify="left",
        title_style="bold",
        caption_justify="left",
    )
    table.add_column("Gap", justify="right")
    for curve in curves:
        table.add_column(escaped(curve.measure), justify="right")
    for number in shown_points(curves, change):
        points = [curve.points[number] for curve in curves]
        shares = [share_and_interval(point.share) for point in points]
        table.add_row(f"{points[0].gap:g}", *shares)
    return table


def shown_points(curves: Sequence[Curve], change: Change) -> list[int]:
    """Return the numbers of the points to show: evenly spread, that of the gap asked about too."""
    points = curves[0].points
    live = [i for i, p in enumerate(points) if any(c.points[i].share.least > 0 for c in curves)]
    last = min(len(points) - 1, max(live, default=0) + 1)
    step = max(1, -(-last // (MAX_POINTS - 2)))
    asked = [i for i, p in enumerate(points) if p.gap == (change.size or 0.0)]
    return sorted({*range(0, last, step), last, *asked})


def _footnotes(explanation: Explanation) -> list[RenderableType]:
    lines = [escaped(f"{note[:1].upper()}{note[1:]}.") for note in explanation.notes]
    sampled = {e.measure: e.n_samples for e in explanation.effects if e.n_samples is not None}
    if sampled:
        confidence = min(effect.confidence for effect in explanation.effects)
        numbers = ", ".join(f"{n:,} of {name}" for name, n in sampled.items())
        lines.append(
            f"From random samples ({escaped(numbers)}): all intervals in these tables hold "
            f"at once with {confidence_words(confidence)} confidence."
        )
    for curve in explanation.curves:
        if curve.least_gap is not None:
            lines.append(
                f"The limit certainly holds for gaps of {curve.least_gap.value_text} or more "
                f"({escaped(curve.measure)})."
            )
    return [*lines]


def _place_lines(places: Sequence[Place]) -> list[str]:
    """Return two lines for each place: where it is, and its three numbers."""
    lines = ["[bold]Where it happens[/bold]"]
    for measure, own in itertools.groupby(places, key=lambda place: place.measure):
        lines.append(f"By {escaped(measure)}:")
        for place in own:
            lines.append(f"  {escaped(place.text)}")
            lines.append(f"    {place_numbers(place, share_and_interval)}")
    caption = _confidence(places)
    return lines if caption is None else [*lines, caption]


def _rates_table(rates: Sequence[GroupRates]) -> RenderableType:
    from rich.table import Table

    table = Table(
        title=f"How often the decision is {escaped(rates[0].favourable)}{_assumed(rates[0])}",
        title_justify="left",
        title_style="bold",
        caption_justify="left",
    )
    table.add_column("Group")
    for own in rates:
        table.add_column(escaped(own.measure), justify="right")
    differs = any(own.differs for own in rates)
    groups = {group.text: None for own in rates for group in own.cells}
    for text in groups:
        found = [next((g for g in own.cells if g.text == text), None) for own in rates]
        table.add_row(escaped(text), *(_rate(group) for group in found))
        if differs:
            table.add_row("  if all were", *(_if_all(group) for group in found))
    table.add_row("Lowest over highest", *(_number(own.ratio) for own in rates), style="bold")
    if differs:
        table.add_row("  if all were", *(_number(own.ratio_if_all) for own in rates), style="bold")
    said = [IF_ALL_MEANS if differs else None, _confidence(rates)]
    table.caption = " ".join(each for each in said if each is not None) or None
    return table


def _rate(group: GroupRate | None) -> str:
    return NONE if group is None else share_and_interval(group.rate)


def _if_all(group: GroupRate | None) -> str:
    return NONE if group is None or group.if_all is None else share_and_interval(group.if_all)


def _confidence(entries: Sequence[Place] | Sequence[GroupRates]) -> str | None:
    sampled = [entry for entry in entries if not entry.exact]
    if not sampled:
        return None
    confidence = confidence_words(min(entry.confidence for entry in sampled))
    return (
        f"From random samples: the intervals of one measure hold at once with {confidence} "
        "confidence."
    )


def people_of_audit(results: Sequence[CountResult]) -> list[RenderableType]:
    """Return the main place of the first results, and the rates of all groups, in a few lines."""
    tables: list[RenderableType] = []
    lines = [line for result in results for line in _main_place(result)][:MAX_PLACES]
    if lines:
        tables += ["[bold]Where it happens[/bold]", *lines]
    rates = {r.sensitive: _most_real(r.explanation.rates) for r in results if r.explanation}
    known = {names: own for names, own in rates.items() if own is not None}
    return [*tables, _ratios_table(known)] if known else tables


def _main_place(result: CountResult) -> list[str]:
    """Return a line about the place that holds most, by the most real measure; or none."""
    place = _most_real(result.explanation.places) if result.explanation else None
    if place is None:
        return []
    asked = escaped(f"{' + '.join(result.sensitive)}, {result.change.label}: {place.text}")
    return [f"  {asked}: {place_numbers(place, brief_share)}"]


def _ratios_table(rates: Mapping[tuple[str, ...], GroupRates]) -> RenderableType:
    from rich.table import Table

    first = next(iter(rates.values()))
    decision = f"{escaped(first.favourable)}{_assumed(first)}"
    title = f"How often the decision is {decision}, by {first.measure}"
    table = Table(title=title, title_justify="left", title_style="bold", caption_justify="left")
    for head in ("Groups by", "Lowest", "Highest", "Lowest over highest"):
        table.add_column(head, justify="right" if head == "Lowest over highest" else "left")
    for names, own in rates.items():
        groups = sorted(own.cells, key=lambda group: group.rate.least)
        ends = (f"{_rate(group)}, {group.text}" for group in (groups[0], groups[-1]))
        table.add_row(escaped(" + ".join(names)), *map(escaped, ends), _number(own.ratio))
        if own.differs and own.ratio_if_all is not None:
            groups.sort(key=lambda group: group.if_all.least if group.if_all else 0.0)
            ends = (f"{_if_all(group)}, {group.text}" for group in (groups[0], groups[-1]))
            table.add_row("  if all were", *map(escaped, ends), _number(own.ratio_if_all))
            table.caption = IF_ALL_MEANS
    return table


def _assumed(rates: GroupRates) -> str:
    """Say that a decision is the favourable one by assumption, if nobody named it."""
    return f" (the favourable one: {ASSUMED})" if rates.is_assumed else ""


def _most_real(entries: Sequence[Entry]) -> Entry | None:
    """Return the first entry of the measure that is nearest to people; None without any."""
    return min(entries, key=lambda entry: NEAREST_TO_PEOPLE.index(entry.measure), default=None)
