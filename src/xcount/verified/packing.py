"""Question files in a journal or a page: compressed, as text."""

from __future__ import annotations

import base64
import zlib

MOST_BYTES = 2**30
"""The largest text that is unpacked."""


def packed(text: str) -> str:
    """Return a text compressed (zlib) and in base64.

    Example:
        >>> unpacked(packed("xcount-question 1"))
        'xcount-question 1'
    """
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def unpacked(data: object) -> str:
    """Return the text that was packed.

    Raises:
        ValueError: it was not packed like that.
    """
    if not isinstance(data, str):
        raise ValueError("no text")
    try:
        inflate = zlib.decompressobj()
        content = inflate.decompress(base64.b64decode(data, validate=True), MOST_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not inflate.eof:
        raise ValueError("the text is cut off")
    return content.decode()
