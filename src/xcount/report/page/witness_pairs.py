"""A witness as people compare two cases: two rows, the changed cells marked, the rest below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xcount.answers.result import CountResult
from xcount.answers.witness.witness import Witness
from xcount.report.lead import joined_names
from xcount.report.markup import Child, Markup, element, name
from xcount.report.page.tables import Cell, row, table
from xcount.report.witness_text import decisions, summary, values
from xcount.report.words.numbers import share_words

_MOST_BESIDE = 4
_MOST_IN_A_LINE = 30
_MOST_NAMED = 3


def witness_pair(witness: Witness, number: int, result: CountResult) -> Markup:
    """Return the two inputs: what changes, what the model says, and what stays the same."""
    inputs = values(witness)
    changed = [entry for entry in inputs if entry[1] != entry[2]]
    outcomes = _outcomes(witness, result)
    head = ["", *(entry[0] for entry in changed), *(each.title for each in outcomes)]
    rows = [
        row(
            Cell(title, is_heading=True),
            *(_changed(entry[side], side) for entry in changed),
            *(
                Cell(each.sides[side - 1], tip=each.tips[side - 1], kind="n outcome")
                for each in outcomes
            ),
        )
        for side, title in ((1, "As it is"), (2, "Changed"))
    ]
    title = f"Example {number}{_whence(witness)}{_crossed(witness)}"
    return element(
        "div",
        table(head, rows, title, can_sort=False, beside_on_a_phone=_MOST_BESIDE),
        _the_same([(label, a) for label, a, b in inputs if a == b]),
        class_="pair",
    )


def _changed(text: str, side: int) -> Cell:
    """Return a changed cell: the new value is marked as an insertion is, for every reader."""
    return Cell(element("mark" if side == 2 else "span", text), kind="n changed")


def _outcomes(witness: Witness, result: CountResult) -> list[Outcome]:
    """Return what the model makes of both sides: decision and probability, else the score."""
    found = []
    of_class = "" if witness.class_label is None else f" of {witness.class_label}"
    scores = (f"{witness.margin:.4g}", f"{witness.other_margin:.4g}")
    if witness.decision is not None:
        found.append(Outcome("Decision", decisions(witness, result)))
    if witness.probability is None or witness.other_probability is None:
        return [*found, Outcome(f"Score{of_class}", scores)]
    shown = tuple(map(share_words, (witness.probability, witness.other_probability)))
    tips = tuple(f"score {score}" for score in scores)
    return [*found, Outcome(f"Probability{of_class}", shown, tips)]


class Outcome(NamedTuple):
    """What the model makes of both sides, and what a pointer over it says."""

    title: str
    sides: tuple[str, ...]
    tips: tuple[str | None, ...] = (None, None)


def _the_same(entries: Sequence[tuple[str, str]]) -> Markup | None:
    """Return what both have in common: a line, or a fold where it is long."""
    if not entries:
        return None
    listed: list[Child] = []
    for index, (label, value) in enumerate(entries):
        listed += [", " if index else None, name(label), " ", element("b", value)]
    if len(entries) <= _MOST_IN_A_LINE:
        return element("p", "The same in both: ", listed, class_="same")
    summed = element("summary", f"{len(entries)} other features are the same in both")
    return element("details", summed, element("p", listed), class_="same")


def _crossed(witness: Witness) -> str:
    """Return the thresholds between the two, where there are any."""
    if not any(crossing.guards for crossing in witness.crossed):
        return ""
    return f"; thresholds crossed: {summary(witness)['Guards crossed']}"


def _whence(witness: Witness) -> str:
    """Return how far from data it is, where that is known."""
    if witness.row is None:
        return ""
    moved = witness.moved or ()
    if not moved:
        return f": row {witness.row} of the data (from 0), as it is"
    if len(moved) > _MOST_NAMED:
        return f": row {witness.row} of the data (from 0) with {len(moved)} other values"
    return f": row {witness.row} of the data (from 0) with another {joined_names(moved)}"
