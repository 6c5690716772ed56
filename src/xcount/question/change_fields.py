"""All kinds of change in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from xcount.question.change import DIRECTIONS, Change
from xcount.question.flip import Flip, Sureness
from xcount.question.gap import Gap, ProbabilityGap
from xcount.question.probability import Link, link_named
from xcount.support.records import Spread


def change_from(data: Mapping[str, Any]) -> Change:
    """Read the change that :meth:`Change.to_dict` wrote."""
    direction = data.get("direction", "any")
    if data.get("flip"):
        text = data.get("cutoff_text")
        cutoff = None if text is None else Fraction(text)
        return Flip(cutoff, data.get("tie_is_above", False), direction, _sureness_from(data))
    output = data.get("class", 0)
    if "probability_gap" in data:
        gap = Fraction(data["probability_gap_text"])
        return ProbabilityGap(gap, output, direction, _link_from(data))
    return Gap(Fraction(data.get("gap_text", str(data["gap"]))), output, direction)


def _sureness_from(data: Mapping[str, Any]) -> Sureness | None:
    if "from_probability" not in data:
        return None
    return Sureness(Fraction(data["from_probability_text"]), _link_from(data))


def _link_from(data: Mapping[str, Any]) -> Link:
    return link_named(data["link"], Fraction(data.get("slope", 1.0)))


_PROBABILITY = {"minimum": 0, "maximum": 1}
_CLASS: dict[str, Any] = {
    "class": {
        "type": "integer",
        "description": "The output in question; 0 if there is only one. Absent with `--flip`.",
        "minimum": 0,
    }
}
_GAP_FIELDS: dict[str, Any] = {
    "gap": {
        "type": "number",
        "description": "The gap, as a float. Only with `--gap`.",
        "minimum": 0,
    },
    **_CLASS,
}
_PROBABILITY_FIELDS: dict[str, Any] = {
    "probability_gap": {
        "type": "number",
        "description": "Only with `--probability-gap`: the gap, as a float.",
        **_PROBABILITY,
    },
    "probability_gap_text": {
        "type": "string",
        "description": "Only with `--probability-gap`: the gap as typed, which is compared "
        "exactly.",
    },
    **_CLASS,
}
_FLIP_FIELDS: dict[str, Any] = {
    "flip": {"const": True, "description": "Only with `--flip`."},
    "cutoff": {
        "type": ["number", "null"],
        "description": "Only with `--flip`: the margin at which the decision changes; null if one "
        "of several classes wins.",
    },
    "cutoff_text": {
        "type": ["string", "null"],
        "description": "Only with `--flip`: the cut-off as typed.",
    },
}
_OPTIONAL_FIELDS: dict[str, Any] = {
    "from_probability": {
        "type": "number",
        "description": "Only with `--from-probability`: the least probability of a decision whose "
        "flip counts.",
        **_PROBABILITY,
    },
    "from_probability_text": {
        "type": "string",
        "description": "Only with `--from-probability`: the same as typed.",
    },
    "link": {
        "enum": ["margin", "sigmoid", "softmax"],
        "description": "Only if probabilities matter: how the margin becomes a probability "
        "(`margin`: it is one).",
    },
    "slope": {
        "type": "number",
        "description": "Only if it is not 1: the factor by which a sigmoid multiplies the margin.",
    },
    "tie_is_above": {
        "const": True,
        "description": "Only with `--flip`, and only if a margin equal to the cut-off counts as "
        "above it.",
    },
}
CHANGE_FIELDS = Spread(
    {
        "gap_text": {
            "type": "string",
            "description": "The gap as typed, which is compared exactly; `probability P` with "
            "`--probability-gap`, `flip` or `flip at T` with `--flip`.",
        },
        **_GAP_FIELDS,
        **_PROBABILITY_FIELDS,
        **_FLIP_FIELDS,
        "direction": {
            "enum": list(DIRECTIONS),
            "description": "Whether only changes that raise (`up`) or lower (`down`) the margin, "
            "the probability or the decision count.",
        },
        **_OPTIONAL_FIELDS,
    },
    write=lambda change: change.to_dict(),
    read=change_from,
    required=("gap_text",),
    either=(tuple(_GAP_FIELDS), tuple(_PROBABILITY_FIELDS), tuple(_FLIP_FIELDS)),
)
"""The JSON schema of a change: the fields of all kinds of change, side by side."""
