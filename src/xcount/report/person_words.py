"""One person in words: the question, the answer, and a row of words for each cell."""

from __future__ import annotations

from xcount.answers.person import PersonCell, PersonResult
from xcount.question.change import shown_decimal
from xcount.question.flip import Flip
from xcount.question.gap import ProbabilityGap, points_text
from xcount.report.words.numbers import plural, share_words
from xcount.support.interval import Interval


def person_question(result: PersonResult) -> str:
    """Return the question in words."""
    names = ", ".join(result.sensitive)
    return f"What would row {result.row} get if only {names} were different?"


def change_words(result: PersonResult) -> str:
    """Return what counts as a change: ``flips the decision``."""
    change = result.change
    way = {"any": "", "up": " up", "down": " down"}[change.direction]
    if isinstance(change, Flip):
        return f"flips the decision{way}"
    if isinstance(change, ProbabilityGap):
        return f"moves the probability{way} by more than {points_text(change.gap)}"
    return f"moves the margin{way} by more than {shown_decimal(change.order)}"


def person_answer(result: PersonResult) -> str:
    """Return the nearest change in a sentence, or that there is none."""
    found = result.nearest
    if found is None:
        return f"No allowed change {change_words(result)}."
    return f"The nearest change that {change_words(result)}: {found.text}, which gets {got(found)}."


def got(cell: PersonCell) -> str:
    """Return what somebody gets in a cell: decision, probability, margin."""
    parts = [] if cell.decision is None else [cell.decision]
    parts += [] if cell.probability is None else [f"probability {cell.probability:.3f}"]
    return ", ".join([*parts, f"margin {cell.margin:.4g}"])


def others_text(result: PersonResult) -> str:
    """Return how many people are like that."""
    same = plural(result.n_same, "row")
    verb = "has" if result.n_same == 1 else "have"
    said = f"{same} of the table, this one included, {verb} the same other values for the model"
    if result.n_sensitive is None:
        return f"{said}; for how many rows of all some change counts is not known: time ran out"
    share = share_words(result.n_sensitive / result.n_rows)
    return (
        f"{said}; some change {change_words(result)} for {result.n_sensitive:,} of "
        f"{result.n_rows:,} rows ({share})"
    )


def confirmed_text(result: PersonResult) -> str:
    """Return whether the library makes the same decisions."""
    words = {
        True: "the library itself predicts the same in every line",
        False: "the library decides otherwise in some lines: it rounds, and they are near a tie",
        None: "the library was not asked: it is not installed, or does not read this file",
    }
    return words[result.confirmed]


def note(cell: PersonCell) -> str:
    """Return what is to be said of a cell: that it is the person's own, or counts."""
    if cell.is_now:
        return "now"
    if not cell.is_allowed:
        return "not allowed"
    return "counts" if cell.counts else ""


def length(result: PersonResult, cell: PersonCell) -> float:
    """Return how long the bar of a cell is, from 0 to 1: its probability, or its margin's place."""
    if cell.probability is not None:
        return cell.probability
    margins = [each.margin for each in result.cells]
    low, high = min(0.0, *margins), max(0.0, *margins)
    return (cell.margin - low) / (high - low) if high > low else 0.0


def bar_title(result: PersonResult) -> str:
    """Return what the bars show."""
    if result.now.probability is not None:
        return "probability, from 0 to 1"
    margins = [each.margin for each in result.cells]
    return f"margin, from {min(0.0, *margins):.3g} to {max(0.0, *margins):.3g}"


def bar_interval(result: PersonResult, cell: PersonCell) -> Interval:
    """Return the bar of a cell as an exact number from 0 to 1."""
    size = length(result, cell)
    return Interval(size, size, size)


def input_words(result: PersonResult) -> str:
    """Return the person's values in words."""
    return ", ".join(
        f"{name} = {result.labels.get(name, 'missing' if value is None else f'{value:g}')}"
        for name, value in result.inputs.items()
    )
