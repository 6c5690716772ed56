"""Text of a model in a table for the terminal: neither rich's markup nor control characters."""

from __future__ import annotations

from xcount.support.visible import visible


def escaped(text: str) -> str:
    """Return text that the terminal shows as it is, whatever it holds."""
    from rich.markup import escape

    return escape(visible(text))
