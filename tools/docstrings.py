"""An extension of Griffe, which reads docstrings for the documentation site.

Our docstrings say ``Example:`` where Griffe looks for ``Examples:``, and name other objects as
Sphinx does (``:func:`~xcount.count```), which Markdown does not know.
"""

from __future__ import annotations

import re
from typing import Any

import griffe


class ReadableDocstrings(griffe.Extension):
    """Puts our docstrings into the form that Griffe and Markdown read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of an object."""
        if obj.docstring is not None:
            obj.docstring.value = readable(obj.docstring.value)


def readable(text: str) -> str:
    """Return a docstring in the form that Griffe and Markdown read.

    Example:
        >>> readable("See :func:`~xcount.count`.")
        'See `count`.'
    """
    text = re.sub(r"^Example:$", "Examples:", text, flags=re.MULTILINE)
    text = re.sub(r":\w+:`~(?:[\w.]*\.)?(\w+)`", r"`\1`", text)
    return re.sub(r":\w+:(`[^`]+`)", r"\1", text)
