"""Places and group rates, as tables for the terminal."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xcount.answers.explanation import (
    Explanation,
    GroupRate,
    GroupRates,
    Place,
    RateInterval,
    ShareInterval,
)
from xcount.report.explanation_text import share_cell
from xcount.report.numbers import NONE
from xcount.report.terminal import escaped

if TYPE_CHECKING:
    from rich.console import RenderableType

_OF = {"regions": "of all regions", "volume": "of the volume", "rows": "of the rows"}


def people_tables(explanation: Explanation) -> list[RenderableType]:
    """Return the places and the group rates of an explanation."""
    tables: list[RenderableType] = []
    if explanation.places:
        tables += _place_lines(explanation.places)
    if explanation.rates:
        tables.append(_rates_table(explanation.rates))
    return tables


def _place_lines(places: Sequence[Place]) -> list[str]:
    """Return two lines for each place: where it is, and what it holds."""
    lines = ["[bold]Where it is[/bold]"]
    for measure, own in itertools.groupby(places, key=lambda place: place.measure):
        lines.append(f"By {escaped(measure)}:")
        for place in own:
            lines.append(f"  {escaped(place.text)}")
            lines.append(
                f"    {share_cell(place.weight)} {_OF.get(measure, 'of the people')}, "
                f"{share_cell(place.part)} of all that is sensitive; "
                f"{share_cell(place.within)} of the box is"
            )
    caption = _confidence(places)
    return lines if caption is None else [*lines, caption]


def _rates_table(rates: Sequence[GroupRates]) -> RenderableType:
    from rich.table import Table

    table = Table(
        title=f"How often the decision is {escaped(rates[0].favourable)}",
        title_justify="left",
        title_style="bold",
        caption_justify="left",
    )
    table.add_column("Group")
    for own in rates:
        table.add_column(escaped(own.measure), justify="right")
    groups = {group.text: None for own in rates for group in own.cells}
    for text in groups:
        found = [next((g for g in own.cells if g.text == text), None) for own in rates]
        table.add_row(escaped(text), *(_rate(group) for group in found))
        if any(group is not None and _differs(group) for group in found):
            table.add_row("  if all were", *(_if_all(group) for group in found))
    table.add_row("Lowest over highest", *(_ratio(own) for own in rates), style="bold")
    table.caption = _confidence(rates)
    return table


def _rate(group: GroupRate | None) -> str:
    if group is None:
        return NONE
    return share_cell(ShareInterval(group.rate, group.low, group.high))


def _differs(group: GroupRate) -> bool:
    return group.if_all is not None and group.if_all != RateInterval(
        group.rate, group.low, group.high
    )


def _if_all(group: GroupRate | None) -> str:
    if group is None or group.if_all is None:
        return NONE
    return share_cell(ShareInterval(group.if_all.rate, group.if_all.low, group.if_all.high))


def _ratio(rates: GroupRates) -> str:
    ratio = rates.ratio
    if ratio.value is None:
        return NONE
    if ratio.low == ratio.high:
        return f"{ratio.value:.3g}"
    return f"{ratio.value:.3g} ({ratio.low:.3g} to {ratio.high:.3g})"


def _confidence(entries: Sequence[Place] | Sequence[GroupRates]) -> str | None:
    sampled = [entry for entry in entries if not entry.exact]
    if not sampled:
        return None
    confidence = min(entry.confidence for entry in sampled)
    return (
        f"From random samples: the intervals of one measure hold together with {confidence:.0%} "
        "confidence."
    )
