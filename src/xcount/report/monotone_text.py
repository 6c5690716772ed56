"""Which features keep which order, in words and as a card."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcount.answers.monotone import FeatureOrder, MonotoneResult
from xcount.answers.witness.witness import Witness
from xcount.report.card import Card
from xcount.report.terminal import style_of
from xcount.report.text import count_text
from xcount.report.words.numbers import seconds_text, share_words
from xcount.report.words.shares import rows_share, rows_words

if TYPE_CHECKING:
    from rich.console import RenderableType

ALL_ORDERS = {"both": "no change", "none": "neither"}
"""What is said of a feature that keeps both orders, or none."""


def monotone_question(result: MonotoneResult) -> str:
    """Return the question in words."""
    by_more = f" by more than {result.gap:g}" if result.gap else ""
    return f"Does the output ever move the wrong way{by_more} if only one feature rises?"


def order_words(found: FeatureOrder) -> str:
    """Return whether an order is proved, or how much of the regions and rows breaks it."""
    regions = "proved" if found.holds else _broken(found)
    if found.rows is None:
        return regions
    rows = f"{rows_share(found.rows.interval)}: {rows_words(found.rows, [found.feature])}"
    return f"{regions}; by rows {rows}"


def _broken(found: FeatureOrder) -> str:
    """Return how much of the regions breaks an order."""
    shares = share_words(found.share_low)
    if not found.exact:
        shares = f"between {shares} and {share_words(found.share_high)}"
    count = count_text(found.low) if found.exact else f"{found.low:.3g} to {found.high:.3g}"
    return f"broken in {count} of {count_text(found.n_regions)} regions ({shares})"


def step_words(witness: Witness) -> str:
    """Return a pair of inputs that breaks an order, in a line."""
    steps = ", ".join(
        f"{name} {a:g} -> {b:g}"
        for name, a, b in zip(witness.features, witness.point, witness.other, strict=True)
        if a != b
    )
    return f"{steps}: margin {witness.margin:.6g} -> {witness.other_margin:.6g}"


def allowed_words(result: MonotoneResult) -> str:
    """Return what the verdict allows."""
    return f"at most {share_words(result.max_share)} of the regions may break an order"


def monotone_tables(result: MonotoneResult) -> list[RenderableType]:
    """Return as a card which features keep which order, and pairs of inputs that break one."""
    card = Card(monotone_question(result))
    card.add_row("Model", result.model.path or "live model")
    if result.domain:
        card.add_row("Domain", result.domain.text)
    for each in result.results:
        card.add_row(
            f"{each.feature} {each.direction}", (order_words(each), "bold" if each.low else "")
        )
        for witness in each.witnesses or ():
            card.add_row("", f"e.g. {step_words(witness)}")
    for feature, order in (result.holds or {}).items():
        card.add_row(feature, ALL_ORDERS.get(order, order))
    if result.verdict is not None:
        verdict = (str(result.verdict), style_of(result.verdict))
        card.add_row("Verdict", verdict, f" ({allowed_words(result)})")
    card.add_row("Run", seconds_text(result.seconds))
    return [card]
