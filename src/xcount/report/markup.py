"""HTML built from elements, so that nothing gets onto the page unescaped.

Every child that is not :class:`Markup` is text and is escaped; only :func:`element` and
:func:`trusted` make markup.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

from xcount.support.visible import visible

_VOID = frozenset({"br", "hr", "input", "link", "meta"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | int | None | Iterable["Child"]


def trusted(text: str) -> Markup:
    """Mark text of our own (a style sheet, an entity) as HTML."""
    return Markup(text)


def escape(text: str) -> Markup:
    """Return text that a browser shows as it is, control characters as escapes."""
    return Markup(html.escape(visible(text, keep="\n\t"), quote=True))


def joined(*children: Child) -> Markup:
    """Return the children one after another."""
    return Markup("".join(_rendered(child) for child in children))


def element(tag: str, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """Return an element.

    Attribute names lose a trailing underscore, and other underscores become hyphens.

    Example:
        >>> element("td", "a < b", class_="name")
        '<td class="name">a &lt; b</td>'
    """
    parts = [tag]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        name = key.rstrip("_").replace("_", "-")
        parts.append(name if value is True else f'{name}="{escape(_text(value))}"')
    opening = f"<{' '.join(parts)}>"
    if tag in _VOID:
        return Markup(opening)
    return Markup(f"{opening}{joined(*children)}</{tag}>")


def name(text: str) -> Markup:
    """Return a feature's name: isolated, so that its writing direction stays its own."""
    return element("bdi", text if text.strip() else f"“{text}”")


def _rendered(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str | int):
        return escape(str(child))
    return "".join(_rendered(part) for part in child)


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:g}"
