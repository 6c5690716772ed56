"""A diff in words: the question, the answer in a sentence, which way, and the inputs."""

from __future__ import annotations

import math

from xcount.answers.diff_result import DiffResult, Swap
from xcount.answers.witness.witness import Witness
from xcount.question.change import Change, shown_decimal
from xcount.question.flip import Flip
from xcount.question.gap import ProbabilityGap, points_text
from xcount.report.text import ASKED_OF, count_text
from xcount.report.words.numbers import OF_MEASURE, share_words

_ABOVE = {"up": "above", "down": "below"}


def diff_question(result: DiffResult) -> str:
    """Return the question in words."""
    first, second = result.names
    return f"{ASKED_OF[result.judge]} do {first} and {second} {_disagree(result)}?"


def _disagree(result: DiffResult) -> str:
    """Return what follows the names of the two models: ``decide differently``."""
    change, (first, second) = result.change, result.names
    rounded = "" if result.precision is None else f" (leaves at {result.precision} decimals)"
    if isinstance(change, Flip):
        sure = "" if change.sureness is None else f", {first} with {change.sure_text},"
        way = {"any": "", "up": f", {second} above", "down": f", {second} below"}
        return f"decide differently{sure}{way[change.direction]}{rounded}"
    what = "probability" if isinstance(change, ProbabilityGap) else "margin"
    of_class = f" of class {result.class_label}" if result.class_label else ""
    size = size_text(change)
    if change.direction != "any":
        side = _ABOVE[change.direction]
        return f"differ in {what}{of_class} by more than {size}, {second} {side}{rounded}"
    return f"differ in {what}{of_class} by more than {size}{rounded}"


def size_text(change: Change) -> str:
    """Return the gap in words."""
    if isinstance(change, ProbabilityGap):
        return points_text(change.gap)
    return shown_decimal(change.order)


def diff_headline(result: DiffResult) -> str:
    """Return the answer in one sentence."""
    both = " and ".join(result.names)
    if result.exact and result.count == 0:
        return f"{both} agree in every region: no input makes them {_disagree(result)}"
    share = result.judged
    whom = OF_MEASURE[result.judge]
    if share.value is None:
        found = f"between {share_words(share.low)} and {share_words(share.high)}"
    else:
        found = f"{'' if share.is_settled else 'about '}{share_words(share.value)}"
    return f"{both} {_disagree(result)} in {found} {whom}"


def swap_title(swap: Swap, names: tuple[str, str]) -> str:
    """Return which way a disagreement goes."""
    if swap.before is not None:
        return f"From {swap.before} to {swap.after}"
    return f"{names[1]} is {'higher' if swap.direction == 'up' else 'lower'}"


def swap_text(swap: Swap) -> str:
    """Return how many regions and rows go one way."""
    if swap.exact:
        found = f"{count_text(swap.low)} regions (exact)"
    else:
        about = "" if swap.count is None else f"about {count_text(swap.count)}, "
        found = f"{about}between {count_text(swap.low)} and {count_text(swap.high)} regions"
    return found if swap.n_rows is None else f"{found}; {swap.n_rows:,} rows"


def input_texts(witness: Witness) -> list[tuple[str, str]]:
    """Return the name and the value of each feature; numbers with all digits they need."""
    return [
        (name, witness.labels.get(name, "missing" if math.isnan(value) else _number(value)))
        for name, value in zip(witness.features, witness.point, strict=True)
    ]


def _number(value: float) -> str:
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)


def outputs_text(witness: Witness, side: int) -> str:
    """Return what one of the models makes of the input: decision, probability, margin."""
    is_first = side == 0
    decision = witness.decision if is_first else witness.other_decision
    probability = witness.probability if is_first else witness.other_probability
    margin = witness.margin if is_first else witness.other_margin
    parts = [] if decision is None else [decision]
    parts += [] if probability is None else [f"probability {probability:.6g}"]
    return ", ".join([*parts, f"margin {margin:.6g}"])
