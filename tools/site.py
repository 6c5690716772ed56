"""MkDocs hooks: what the site has beyond the Markdown files in ``docs/``.

- Files from outside ``docs/`` (the changelog, the pictures of the experiments) become part of the
  site. Links to them are written as they work in the repository, and rewritten for the site.
- Drawings in ``docs/pictures`` are embedded in the page, so that they take on its colours.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "RELEASING.md": "releasing.md",
    "benchmarks/README.md": "benchmarks.md",
}
"""Pages from outside ``docs/``: their path in the repository, and on the site."""

PICTURES = "benchmarks/results"
"""Pictures from outside ``docs/``; their path on the site is the same."""

_LINK = re.compile(r"(\]\()(?![a-z]+:|#|/)([^)\s#]+)")
_CODE = re.compile(r"(^(?P<fence>`{3,}).*?^(?P=fence)$|`[^`\n]*`)", re.DOTALL | re.MULTILINE)
_DRAWING = re.compile(r'<img alt="([^"]*)" src="([^"]*pictures/[^"]*\.svg)"\s*/?>')


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files from outside ``docs/``."""
    sources = {ROOT / source: place for source, place in PAGES.items()}
    sources |= {path: f"{PICTURES}/{path.name}" for path in sorted((ROOT / PICTURES).glob("*.svg"))}
    for path, place in sources.items():
        files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links for the site."""
    return linked(markdown, page.file.src_uri)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Embed drawings in the page."""

    def drawing(match: re.Match[str]) -> str:
        place = posixpath.join(posixpath.dirname(page.file.src_uri), match[2])
        svg = (ROOT / "docs" / posixpath.normpath(place)).read_text()
        return svg.replace("<svg ", f'<svg role="img" aria-label="{match[1]}" ', 1)

    # In a table's code, a view of the repository needs \\| where Python-Markdown wants |.
    html = re.sub(r"<code>[^<]*</code>", lambda code: code[0].replace("\\|", "|"), html)
    return _DRAWING.sub(drawing, html)


def on_post_build(config: MkDocsConfig, **_: Any) -> None:
    """Leave out the site map: the site has no address."""
    for name in ("sitemap.xml", "sitemap.xml.gz"):
        (Path(config.site_dir) / name).unlink(missing_ok=True)


def linked(markdown: str, uri: str) -> str:
    """Return a page with its links rewritten for the site.

    Args:
        markdown: the page, with links that work in the repository.
        uri: its path on the site.
    """
    homes = {place: source for source, place in PAGES.items()}
    here = posixpath.dirname(homes.get(uri, f"docs/{uri}"))

    def link(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here, match[2]))
        place = PAGES.get(target)
        if target.startswith("docs/"):
            place = target.removeprefix("docs/")
        elif target.startswith(f"{PICTURES}/"):
            place = target
        if place is None:
            return match[0]  # not part of the site: MkDocs says so
        return match[1] + posixpath.relpath(place, posixpath.dirname(uri) or ".")

    parts = _CODE.split(markdown)
    # split() yields text, the code, its fence (or None), text, ...
    return "".join(
        _LINK.sub(link, part) if index % 3 == 0 else part if index % 3 == 1 else ""
        for index, part in enumerate(parts)
    )
