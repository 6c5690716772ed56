"""Text from elsewhere (names in a model file, paths) that may go to a terminal.

Control characters move the cursor, set the title or hide what follows; controls of the writing
direction show text in another order than it has. They are shown as escapes instead.
"""

from __future__ import annotations

import re

_CONTROLS = (
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # writing direction
    "\u2028\u2029"  # ends of lines and paragraphs
    "\ud800-\udfff]"  # halves of characters, which no file can hold
)


def visible(text: str, keep: str = "") -> str:
    r"""Return text without control characters, but for those to keep.

    Example:
        >>> print(visible("a\x1b[2Jb\n"))
        a\x1b[2Jb\n
    """
    if text.isprintable():  # most is, and the pattern takes long to compile
        return text

    def shown(match: re.Match[str]) -> str:
        character = match[0]
        return character if character in keep else repr(character)[1:-1]

    return re.sub(_CONTROLS, shown, text)
