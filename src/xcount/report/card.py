"""A card: a title and rows of a label and a text, for a terminal or as plain lines.

Plain cards need nothing but Python: a count that is piped somewhere starts in half of the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcount.support.visible import visible

if TYPE_CHECKING:
    from rich.table import Table

PLAIN_WIDTH = 100
"""Files and pipes have no width of their own; that of old terminals folds long numbers."""

Span = str | tuple[str, str]
"""A piece of text, or one with its style."""


class Card:
    """Rows of a label and a text."""

    def __init__(self, title: str) -> None:
        self.title = visible(title)
        self._rows: list[tuple[str, tuple[Span, ...]]] = []

    def add_row(self, label: str, *spans: Span) -> None:
        """Add a row; what names hold is shown as it is."""
        self._rows.append((visible(label), spans))

    def __rich__(self) -> Table:
        """Return the card as a table with colours."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        card = Table(
            title=Text(self.title),
            title_justify="left",
            title_style="bold",
            box=box.ROUNDED,
            show_header=False,
        )
        card.add_column(style="cyan", no_wrap=True)
        card.add_column()
        for label, spans in self._rows:
            texts = (visible(s) if isinstance(s, str) else (visible(s[0]), s[1]) for s in spans)
            card.add_row(Text(label), Text.assemble(*texts))
        return card

    def plain(self) -> str:
        """Return the card as lines of text."""
        labels = max((len(label) for label, _ in self._rows), default=0)
        room = PLAIN_WIDTH - labels - len("│  │  │") - 1
        wrapped = [(label, _lines(_text(spans), room)) for label, spans in self._rows]
        width = max((len(line) for _, lines in wrapped for line in lines), default=0)
        ends = ("─" * (labels + 2), "─" * (width + 2))
        rows = [
            f"│ {label if number == 0 else '':<{labels}} │ {line:<{width}} │"
            for label, lines in wrapped
            for number, line in enumerate(lines)
        ]
        title = _lines(self.title, labels + width + len("│  │  │"))
        return "\n".join([*title, "╭{}┬{}╮".format(*ends), *rows, "╰{}┴{}╯".format(*ends), ""])


def _text(spans: tuple[Span, ...]) -> str:
    return visible("".join(span if isinstance(span, str) else span[0] for span in spans))


def _lines(text: str, width: int) -> list[str]:
    room = max(20, width)
    if len(text) <= room:
        return [text]
    import textwrap  # most lines fit

    return textwrap.wrap(text, room, break_on_hyphens=False)
