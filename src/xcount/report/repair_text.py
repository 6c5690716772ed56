"""A repair in words, and as tables for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcount.answers.result import CountResult
from xcount.repairs.effect import Moves, Quality
from xcount.repairs.result import Repaired, RepairResult, Tested
from xcount.report.card import Card
from xcount.report.text import answer_text, measured_text, question_text, share_interval
from xcount.report.words.numbers import seconds_text

if TYPE_CHECKING:
    from rich.console import RenderableType

METHODS = {
    "program": "the smallest change of leaf values that keeps the limit",
    "shrink": "all differences multiplied by {factor:.3g}",
    "unchanged": "nothing: the limit was met already",
}
"""What was done, in words."""
QUALITIES = {"log_loss": "log-loss", "auc": "AUC", "accuracy": "accuracy", "rmse": "RMSE"}
"""The names of the measures of quality."""


def repair_tables(result: RepairResult) -> list[RenderableType]:
    """Return a card for each question, one for the model, and one for the test if there is one."""
    cards: list[RenderableType] = [question_card(question) for question in result.questions]
    cards.append(_model_card(result))
    if result.test is not None:
        cards.append(_test_card(result.test))
    return cards


def question_card(question: Repaired) -> Card:
    """Return one question before and after."""
    card = Card(question_text(question.before))
    if question.before.domain:
        card.add_row("Domain", question.before.domain.text)
    for label, count in (("Before", question.before), ("After", question.after)):
        first, *others = share_lines(count)
        card.add_row(label, (first, "bold"))
        for line in others:
            card.add_row("", line)
    card.add_row("Proved", ("yes", "bold green") if question.is_proved else ("no", "bold red"))
    return card


def _model_card(result: RepairResult) -> Card:
    card = Card("What changed")
    for what, text in change_facts(result):
        card.add_row(what, text)
    for note in result.notes:
        card.add_row("Note", note)
    card.add_row("Run", seconds_text(result.seconds))
    return card


def share_lines(count: CountResult) -> list[str]:
    """Return the count, and the shares of the regions and rows, in words."""
    lines = [answer_text(count), f"of the regions: {share_interval(count)}"]
    if (rows := count.measures.get("rows")) is not None:
        lines.append(f"of the rows: {measured_text(rows, count.sensitive)}")
    return lines


def change_facts(result: RepairResult) -> list[tuple[str, str]]:
    """Return what changed: leaves, predictions and decisions."""
    facts = [("Method", METHODS[result.method].format(factor=result.factor))]
    if result.method != "unchanged":
        facts.append(("Leaves", leaves_text(result)))
    if result.moves is not None:
        facts.append(("Predictions", moves_text(result.moves)))
        if (decisions := decisions_text(result.moves)) is not None:
            facts.append(("Decisions", decisions))
    return facts


def repair_title(result: RepairResult) -> str:
    """Return the title of a repair: the sensitive features and the limit."""
    return f"Repair of {' + '.join(result.before.sensitive)}, {result.before.change.label}"


def repair_headline(result: RepairResult) -> str:
    """Return the outcome in one sentence, without its full stop."""
    if result.proved:
        return "The limit is proved: no region is sensitive any more"
    return "The limit is not proved"


def leaves_text(result: RepairResult) -> str:
    """Return how many leaves moved, and by how much."""
    return (
        f"{result.n_moved:,} of {result.n_leaves:,} have another value: by {result.mean_move:.3g} "
        f"on average, by {result.largest_move:.3g} at most"
    )


def moves_text(moves: Moves) -> str:
    """Return how far predictions moved."""
    return (
        f"the margin of {moves.n_rows:,} rows moves by {moves.root_mean_square:.3g} (root mean "
        f"square), by {moves.largest:.3g} at most"
    )


def decisions_text(moves: Moves) -> str | None:
    """Return how many decisions change, and which way; None without decisions."""
    if moves.raised is None:
        return None
    if moves.lowered is None:
        return f"{moves.raised:,} of {moves.n_rows:,} rows get another class"
    return (
        f"of {moves.n_rows:,} rows, {moves.raised:,} rise above the cut-off and "
        f"{moves.lowered:,} fall below it"
    )


def _test_card(test: Tested) -> Card:
    card = Card(f"On {test.n_rows:,} labelled rows")
    for label, quality, base in quality_rows(test):
        card.add_row(label, quality_text(quality, base))
    if test.retraining is not None:
        card.add_row("Retraining", test.retraining)
    return card


def quality_rows(test: Tested) -> list[tuple[str, Quality, Quality | None]]:
    """Return the models that were tested, each with the one to compare it with."""
    rows: list[tuple[str, Quality | None, Quality | None]] = [
        ("Before", test.before, None),
        ("Repaired", test.after, test.before),
        ("Shrunk", test.shrunk, test.before),
        ("Retrained", test.retrained, None),
        ("Retrained without", test.dropped, test.retrained),
    ]
    return [(label, own, base) for label, own, base in rows if own is not None]


def quality_text(quality: Quality, base: Quality | None) -> str:
    """Return the measures of quality, with their differences from another model's."""
    parts = []
    for name, words in QUALITIES.items():
        value = getattr(quality, name)
        if value is None:
            continue
        other = None if base is None else getattr(base, name)
        difference = "" if other is None else f" ({value - other:+.4f})"
        parts.append(f"{words} {value:.4f}{difference}")
    return ", ".join(parts)
