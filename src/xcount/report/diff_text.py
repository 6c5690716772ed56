"""A diff as tables for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcount.answers.diff_result import DiffResult
from xcount.answers.witness.witness import Witness
from xcount.report.card import Card
from xcount.report.diff_words import (
    diff_question,
    input_texts,
    outputs_text,
    swap_text,
    swap_title,
)
from xcount.report.group_text import group_tables
from xcount.report.group_words import diff_sheets
from xcount.report.terminal import escaped
from xcount.report.text import add_answer, count_text, model_text

if TYPE_CHECKING:
    from rich.console import RenderableType


def diff_tables(result: DiffResult) -> list[RenderableType]:
    """Return a diff as a card, what explains it, and inputs on which the models disagree."""
    card = Card(diff_question(result))
    for name, model in zip(result.names, result.models, strict=True):
        card.add_row(name, model_text(model))
    if result.domain:
        card.add_row("Domain", result.domain.text)
    card.add_row("Regions", f"{count_text(result.n_regions)} (the joint grid)")
    swaps = [(swap_title(swap, result.names), swap_text(swap)) for swap in result.swaps]
    add_answer(card, result, "Disagree", swaps)
    for note in result.notes:
        card.add_row("Note", note)
    tables: list[RenderableType] = [card]
    if result.explanation is not None:
        from xcount.report.explanation_text import explanation_tables

        tables.extend(explanation_tables(result))
    tables += group_tables(diff_sheets(result))
    if result.witnesses:
        tables += ["[bold]Inputs on which they disagree[/bold]"]
        for number, witness in enumerate(result.witnesses, start=1):
            tables += map(escaped, _lines(witness, number, result))
    return tables


def _lines(witness: Witness, number: int, result: DiffResult) -> list[str]:
    """Return an input and both models' outputs as lines."""
    inputs = ", ".join(f"{name} = {value}" for name, value in input_texts(witness))
    row = "" if witness.row is None or witness.moved else f" (row {witness.row} of the data)"
    lines = [f"{number}. {inputs}{row}"]
    lines += [f"   {name}: {outputs_text(witness, k)}" for k, name in enumerate(result.names)]
    if witness.library_margins is not None:
        both = " and ".join(f"{margin:.6g}" for margin in witness.library_margins)
        lines.append(f"   confirmed: the libraries themselves predict margins of {both}")
    return lines
