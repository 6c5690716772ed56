"""A canvas that collects shapes and returns an SVG picture.

Colours are variables: the documentation site sets them to those of its page; elsewhere they follow
the reader's system.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

STYLE = """
svg.xc:root { --xc-ink: #24292f; --xc-faint: #8a949e; --xc-paper: #ffffff; --xc-a: #b2dfdb;
  --xc-b: #ffe0b2; --xc-hot: #e65100; --xc-cool: #00796b; background: #ffffff }
@media (prefers-color-scheme: dark) {
  svg.xc:root { --xc-ink: #e3e6ea; --xc-paper: #22252d; --xc-a: #1f4f4a; --xc-b: #5d4321;
    --xc-hot: #ffb74d; --xc-cool: #4db6ac; background: #22252d } }
.xc text { font: 15px system-ui, sans-serif; fill: var(--xc-ink); text-anchor: middle }
.xc .left { text-anchor: start }
.xc .right { text-anchor: end }
.xc .small { font-size: 13px }
.xc .bold { font-weight: 600 }
.xc .faint { fill: var(--xc-faint) }
.xc .hot { fill: var(--xc-hot) }
.xc .cool { fill: var(--xc-cool) }
.xc rect { fill: var(--xc-paper); stroke: var(--xc-faint) }
.xc rect.a { fill: var(--xc-a) }
.xc rect.b { fill: var(--xc-b); stroke: var(--xc-hot); stroke-width: 2 }
.xc path { fill: none; stroke: var(--xc-faint); stroke-width: 1.5 }
.xc path.band { fill: var(--xc-a); stroke: var(--xc-cool) }
.xc path.dashed { stroke-dasharray: 6 5 }
.xc path.hot { stroke: var(--xc-hot); stroke-width: 2.5; fill: none }
"""


@dataclass
class Canvas:
    """Shapes of an SVG picture."""

    width: int
    height: int
    parts: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, words: str, kind: str = "") -> None:
        """Write text centred at x (or, if the kind is left, starting at x)."""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(words)}</text>')

    def rect(self, x: float, y: float, width: float, height: float, kind: str = "") -> None:
        """Draw a box."""
        place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
        self.parts.append(f'<rect {place} rx="3" class="{kind}"/>')

    def path(self, data: str, kind: str = "") -> None:
        """Draw a line."""
        self.parts.append(f'<path d="{data}" class="{kind}"/>')

    def svg(self) -> str:
        """Return the file."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="xc" '
            f'viewBox="0 0 {self.width} {self.height}">\n<style>{STYLE}</style>\n'
            + "\n".join(self.parts)
            + "\n</svg>\n"
        )
