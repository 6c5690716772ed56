"""The documentation site builds without a warning, and needs nothing from a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tools import pictures
from tools.browser import CHROMIUM, NARROW, WIDE, Browser
from xcount.cli.app import COMMANDS, application

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s#]+)")
LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"([^\"]+)\"|<link\b[^>]*href=\"([^\"]+)\""
)


FOUND = """
new Promise(resolve => {
    const query = document.querySelector('[data-md-component=search-query]')
    let looks = 0
    const look = () => {
        const first = document.querySelector('.md-search-result__item a')
        if (first || ++looks == 500) return resolve(first ? first.href : 'nothing found')
        query.dispatchEvent(new Event('keyup'))  // what was typed before the page listened
        setTimeout(look, 50)
    }
    look()
})
"""
"""The first result of the search, as soon as there is one."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the built site."""
    for package in ("mkdocs", "material"):
        pytest.importorskip(package, reason=f"{package} is not installed (extra 'docs')")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}  # an announcement of the theme's makers
    run = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "WARNING" not in run.stderr
    return folder


def test_every_document_is_a_page(site: Path) -> None:
    """Also those from outside ``docs/``."""
    pages = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    pages |= {Path(f"{name}.md") for name in ("changelog", "contributing", "releasing")}
    pages |= {Path("benchmarks.md")}
    for page in pages:
        assert "</h1>" in (site / page.with_suffix(".html")).read_text()


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    """Scripts, styles, fonts and pictures are files of the site, and all are there."""
    for page in site.rglob("*.html"):
        for found in LOADED.finditer(page.read_text()):
            target = (found[1] or found[2]).partition("?")[0].partition("#")[0]
            assert "//" not in target, (page.name, target)
            if not target.startswith("/"):  # the page of error 404 may stand anywhere
                assert (page.parent / target).exists(), (page.name, target)
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//", style.read_text()), style.name


def test_the_command_line_page_has_every_option(site: Path) -> None:
    """It is made from the commands; a bar in an option does not end its row of the table."""
    html = (site / "command-line.html").read_text()
    with click.Context(application) as context:
        for name in COMMANDS:
            command = application.get_command(context, name)
            assert command is not None
            section = html.partition(f'id="xcount-{name}"')[2].partition("<h2")[0]
            for parameter in command.params:
                if isinstance(parameter, click.Option):
                    assert f"<code>{parameter.opts[0]}" in section, (name, parameter.opts)
            assert "\\|" not in section


def test_the_python_page_has_every_public_function(site: Path) -> None:
    """With its signature."""
    html = (site / "python.html").read_text()
    for name in ("load", "inspect", "count", "audit", "compare", "witnesses"):
        assert re.search(rf"<h2[^>]*>[^<]*(<[^>]*>)*xcount\.{name}", html), name


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "RELEASING.md", "benchmarks/README.md"]
)
def test_links_work_in_the_repository(page: str) -> None:
    """Of pages that are read there."""
    path = ROOT / page
    for target in LINK.findall(path.read_text()):
        assert (path.parent / target).exists(), target


def test_links_of_the_documents_work_in_the_repository() -> None:
    """The site leads them elsewhere only where their target is elsewhere on the site."""
    for path in (ROOT / "docs").rglob("*.md"):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(), flags=re.DOTALL)
        for target in LINK.findall(text):
            assert (path.parent / target).exists(), (path.name, target)


def test_the_drawings_are_what_their_script_draws() -> None:
    """``python -m tools.pictures`` makes them again."""
    for name, svg in pictures.drawings().items():
        assert (ROOT / "docs" / "pictures" / f"{name}.svg").read_text() == svg


@pytest.fixture
def browser(site: Path, tmp_path: Path) -> Iterator[Browser]:
    """Return a browser, which must have no complaint in the end: no error, no network."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed (Debian: apt install chromium)")
    with Browser(tmp_path) as opened:
        yield opened
        opened.evaluate("0")
        assert opened.complaints == []


def test_the_search_works_from_a_folder(site: Path, browser: Browser) -> None:
    """Without a server and without a network, as a person would do it."""
    browser.open(site / "howto" / "xgboost.html", WIDE)
    browser.evaluate("document.querySelector('[data-md-component=search-query]').focus()")
    browser.call("Input.insertText", text="betting")
    found = browser.call("Runtime.evaluate", expression=FOUND, awaitPromise=True)
    assert "approximate.html" in found["result"]["value"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_drawings_take_the_colours_of_the_page(site: Path, browser: Browser, scheme: str) -> None:
    """Ink on paper: light on dark, or dark on light."""
    browser.open(site / "algorithm.html", WIDE, scheme)
    ink = browser.evaluate("getComputedStyle(document.querySelector('svg.xc text.bold')).fill")
    brightness = sum(map(int, re.findall(r"\d+", ink)[:3])) / 3
    assert (brightness > 128) == (scheme == "dark")


@pytest.mark.parametrize("page", ["index", "tutorial", "algorithm", "json", "command-line"])
def test_pages_fit_on_a_phone(site: Path, browser: Browser, page: str) -> None:
    """Tables, code and drawings slide within themselves; the page does not."""
    browser.open(site / f"{page}.html", NARROW)
    assert browser.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
