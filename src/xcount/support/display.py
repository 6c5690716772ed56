"""Display of results: a card in a notebook, a line at a prompt, a table, a plot."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class DisplayMixin:
    """Base class of results that can be displayed; :mod:`xcount.report` renders them."""

    __slots__ = ()

    def __repr__(self) -> str:
        from xcount.report.notebook.lines import line_of

        return line_of(self)

    def _repr_html_(self) -> str:
        from xcount.report.notebook.cards import card_of

        return card_of(self)

    def to_dataframe(self) -> Any:
        """Return the result as a table: a pandas DataFrame (pandas must be installed)."""
        from xcount.report.notebook.frames import frame_of

        return frame_of(self)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw the result and return the figure of matplotlib; needs the extra ``plots``.

        With a path, the figure is saved there as well: a .png, .svg or .pdf file.
        """
        from xcount.report.plots import plot_of

        return plot_of(self, path)
