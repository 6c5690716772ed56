"""Make untrusted text (names in a model file, paths) safe to show: on terminals, pages, in files.

Control characters move a terminal's cursor, set its title or hide text; bidirectional controls
change the order in which text is shown. They are written as escapes instead.
"""

from __future__ import annotations

import re

_CONTROLS = (
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # writing direction
    "\u2028\u2029"  # ends of lines and paragraphs
    "\ud800-\udfff"  # surrogates, which no file can hold
    "\ufdd0-\ufdef\ufffe\uffff]"  # no characters
)


def visible(text: str, keep: str = "") -> str:
    r"""Return text with control characters escaped, except those to keep.

    Example:
        >>> print(visible("a\x1b[2Jb\n"))
        a\x1b[2Jb\n
    """
    if text.isprintable():  # most text is, and the pattern is slow to compile
        return text

    def shown(match: re.Match[str]) -> str:
        character = match[0]
        return character if character in keep else repr(character)[1:-1]

    return re.sub(_CONTROLS, shown, text)
