"""The largest change in words: a sentence, a card, and the pair that attains it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcount.answers.worst import WorstResult
from xcount.report.card import Card
from xcount.report.text import STOPPED, bytes_text, model_text
from xcount.report.witness_text import same_inputs, summary
from xcount.report.words.numbers import seconds_text

if TYPE_CHECKING:
    from rich.console import RenderableType

_VERBS = {"any": "move", "up": "rise", "down": "fall"}
_WHAT = {"margin": "the margin", "probability": "the predicted probability"}


def worst_question(result: WorstResult) -> str:
    """Return the question in words."""
    steps = "" if result.distance is None else f", by at most {_cells(result.distance)}"
    of_class = "" if result.class_label is None else f" of {result.class_label}"
    names = ", ".join(result.sensitive)
    many = "changes" if len(result.sensitive) == 1 else "change"
    return (
        f"How far can {_WHAT[result.of]}{of_class} {_VERBS[result.direction]} if only {names} "
        f"{many}{steps}?"
    )


def _cells(distance: int) -> str:
    return "1 cell" if distance == 1 else f"{distance} cells"


def worst_answer(result: WorstResult) -> str:
    """Return the answer in words: a number, or two bounds."""
    if result.exact:
        return f"{result.largest:.6g} (exact)"
    return f"at least {result.low:.6g} and at most {result.high:.6g}"


def worst_tables(result: WorstResult) -> list[RenderableType]:
    """Return the largest change as a card."""
    card = Card(worst_question(result))
    card.add_row("Model", model_text(result.model))
    if result.domain:
        card.add_row("Domain", result.domain.text)
    card.add_row("Largest change", (worst_answer(result), "bold"))
    if result.pair is not None:
        for label, text in summary(result.pair).items():
            card.add_row(label, text)
        if same := same_inputs(result.pair):
            card.add_row("The same", same)
    else:
        card.add_row("Pair", "none: no change of these features changes the output")
    stopped, seconds = STOPPED[result.stop_reason], seconds_text(result.seconds)
    card.add_row("Run", f"{stopped}, {seconds}, {bytes_text(result.peak_memory_bytes)}")
    return [card]
