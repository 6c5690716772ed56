"""A witness as people compare two cases: two rows, one column a feature, changed cells marked."""

from __future__ import annotations

from xcount.answers.witness.witness import Witness
from xcount.report.markup import Child, Markup, element, name
from xcount.report.page.tables import table
from xcount.report.witness_text import summary, values


def witness_pair(witness: Witness, number: int) -> Markup:
    """Return the two inputs: what changes first, then what the model says, then the rest."""
    inputs = values(witness)
    changed = [entry for entry in inputs if entry[1] != entry[2]]
    same = [entry for entry in inputs if entry[1] == entry[2]]
    outcomes = _outcomes(witness)
    head: list[Child] = [
        "",
        *(name(feature) for feature, _, _ in changed),
        *(what for what, _, _ in outcomes),
        *(name(feature) for feature, _, _ in same),
    ]
    rows = []
    for side, title in ((1, "As it is"), (2, "Changed")):
        rows.append(
            element(
                "tr",
                element("th", title, scope="row"),
                (_changed(entry[side], side) for entry in changed),
                (element("td", entry[side], class_="n outcome") for entry in outcomes),
                (element("td", entry[side], class_="n") for entry in same),
            )
        )
    return element(
        "div",
        table(head, rows, f"Example {number}{_whence(witness)}{_crossed(witness)}", can_sort=False),
        class_="pair",
    )


def _changed(text: str, side: int) -> Markup:
    """Return a changed cell: the new value is marked as an insertion is, for every reader."""
    return element("td", element("mark" if side == 2 else "span", text), class_="n changed")


def _outcomes(witness: Witness) -> list[tuple[str, str, str]]:
    """Return what the model makes of both sides: decision, probability, score."""
    found = []
    if witness.decision is not None:
        found.append(("Decision", witness.decision, str(witness.other_decision)))
    if witness.probability is not None:
        found.append(
            ("Probability", f"{witness.probability:.3g}", f"{witness.other_probability:.3g}")
        )
    of_class = "" if witness.class_label is None else f" of {witness.class_label}"
    found.append((f"Score{of_class}", f"{witness.margin:.4g}", f"{witness.other_margin:.4g}"))
    return found


def _crossed(witness: Witness) -> str:
    """Return the thresholds between the two, where there are any."""
    if not any(crossing.guards for crossing in witness.crossed):
        return ""
    return f"; thresholds crossed: {summary(witness)['Guards crossed']}"


def _whence(witness: Witness) -> str:
    """Return how far from data it is, where that is known."""
    if witness.row is None:
        return ""
    moved = len(witness.moved or ())
    if not moved:
        return f": row {witness.row} of the data, as it is"
    return f": row {witness.row} of the data with {moved} other value{'s' if moved > 1 else ''}"
