"""Figures in one style, the same bytes for the same drawing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

INK, MUTED = "#1f2430", "#6b7280"
COLOURS = ("#0b6e99", "#d1495b", "#edae49", "#3a7d44", "#7a5195", "#8c6d46", "#4d4d4d")
MARKERS = "osD^vPX"
LINES = ("-", "--", ":")
UNDATED = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
STYLE = Path(__file__).with_name("plots.mplstyle")


@contextmanager
def figure(
    path: Path, n_rows: int = 1, n_columns: int = 1, size: tuple[float, float] = (7, 4.2)
) -> Iterator[Any]:
    """Give axes to draw on, and save them; the same drawing gives the same bytes.

    An SVG for pages goes with a PDF of the same name, for print.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(mpl.rc_params_from_file(STYLE, use_default_template=False)):
        drawing = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(drawing)
        yield drawing.subplots(n_rows, n_columns)
        path.parent.mkdir(parents=True, exist_ok=True)
        for made in (path, path.with_suffix(".pdf")) if path.suffix == ".svg" else (path,):
            drawing.savefig(made, metadata=UNDATED.get(made.suffix), dpi=160)


def legend_beside(axes: Any) -> None:
    """Put the legend to the right of the axes, where it hides no data."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)


def line_style(number: int) -> dict[str, Any]:
    """Return what tells a line from the others; more of them than colours differ in dashes."""
    turn, colour = divmod(number, len(COLOURS))
    return {"color": COLOURS[colour], "linestyle": LINES[turn % len(LINES)]}
