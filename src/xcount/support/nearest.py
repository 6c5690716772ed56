"""Suggest the closest known name for a typo."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, names: Iterable[str], cutoff: float = 0.5) -> str | None:
    """Return the name most similar to a word, ignoring case; None if none is similar.

    Example:
        >>> nearest("femal", ["Female", "Male"])
        'Female'
    """
    import difflib  # only for messages

    lowered = {name.lower(): name for name in names}
    close = difflib.get_close_matches(word.lower(), list(lowered), n=1, cutoff=cutoff)
    return lowered[close[0]] if close else None
