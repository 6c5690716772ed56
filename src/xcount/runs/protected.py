"""Legally protected features, recognised by the words in their names."""

from __future__ import annotations

import re

PROTECTED = frozenset(
    {
        *("sex", "gender", "orientation", "pregnancy", "pregnant", "marital"),
        *("race", "racial", "ethnic", "ethnicity", "native", "nationality", "citizenship"),
        *("age", "disability", "disabled", "religion", "religious"),
    }
)
"""Words in the names of features that anti-discrimination laws protect."""

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def is_protected(feature: str) -> bool:
    """Return whether a feature's name has a word for a legally protected attribute.

    Example:
        >>> [is_protected(name) for name in ("SEX", "marital_status", "applicantAge", "mileage")]
        [True, True, True, False]
    """
    return any(word.lower() in PROTECTED for word in _WORDS.findall(feature))
