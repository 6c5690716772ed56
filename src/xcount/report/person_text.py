"""One person for the terminal: a card, and a table with a bar for every cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcount.answers.person import PersonCell, PersonResult
from xcount.report.card import Card
from xcount.report.person_words import (
    bar_title,
    confirmed_text,
    input_words,
    length,
    note,
    others_text,
    person_answer,
    person_question,
)
from xcount.report.terminal import escaped
from xcount.report.text import model_text
from xcount.report.words.numbers import NONE, seconds_text

if TYPE_CHECKING:
    from rich.console import RenderableType

MAX_ROWS = 40
_WIDTH = 20


def person_tables(result: PersonResult) -> list[RenderableType]:
    """Return what a person gets and could get."""
    card = Card(person_question(result))
    card.add_row("Model", model_text(result.model))
    if result.domain:
        card.add_row("Domain", result.domain.text)
    card.add_row("Person", input_words(result))
    card.add_row("Answer", (person_answer(result), "bold"))
    card.add_row("Others", others_text(result))
    card.add_row("Checked", confirmed_text(result))
    card.add_row("Run", seconds_text(result.seconds))
    return [card, _cells_table(result)]


def _cells_table(result: PersonResult) -> RenderableType:
    from rich.table import Table

    table = Table(caption_justify="left")
    for head in ("With", "Decision", "Probability", "Margin", bar_title(result), ""):
        right = head in ("Probability", "Margin")
        table.add_column(escaped(head), justify="right" if right else "left")
    shown = _shown(result)
    for cell in shown:
        filled = round(_WIDTH * length(result, cell))
        table.add_row(
            escaped(cell.text),
            escaped(cell.decision or NONE),
            NONE if cell.probability is None else f"{cell.probability:.3f}",
            f"{cell.margin:.4g}",
            "█" * filled + "░" * (_WIDTH - filled),
            note(cell),
            style="bold" if cell.is_now else "",
        )
    if len(shown) < len(result.cells):
        table.caption = f"{len(result.cells) - len(shown):,} more; --html and --json list all"
    return table


def _shown(result: PersonResult) -> list[PersonCell]:
    """Return the cells that there is room for: the nearest ones, in their order."""
    near = sorted(result.cells, key=lambda cell: cell.distance)[:MAX_ROWS]
    kept = {id(cell) for cell in near}
    return [cell for cell in result.cells if id(cell) in kept or cell == result.nearest]
