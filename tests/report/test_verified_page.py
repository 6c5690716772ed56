"""The report proves itself: its verified counts are counted again in the browser."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import xcount
from tools.browser import CHROMIUM, NARROW, WIDE, Browser
from xcount.model.examples import figure_1
from xcount.problem.problem import Problem
from xcount.question.grid import Grid
from xcount.question.query import Query
from xcount.report.page import verified
from xcount.runs.audit import AuditResult
from xcount.verified.counter import JAVASCRIPT
from xcount.verified.packing import packed
from xcount.verified.question_file import question_text

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(CHROMIUM is None, reason="no browser is installed"),
    pytest.mark.skipif(not JAVASCRIPT.exists(), reason="the JavaScript of the counter is missing"),
]
PATIENCE_SECONDS = 60


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Return one browser for all tests."""
    with Browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


def audit() -> AuditResult:
    """Return an audit whose counts carry their questions, as if they had been verified."""
    model = figure_1()
    found = xcount.audit(model, gaps=[60, 80], explain=False)
    results = []
    for result in found.results:
        query = Query.of(model, result.sensitive, gap=result.change.order, distance=None)
        text = question_text(Problem(model, Grid.of(model), query))
        results.append(replace(result, verified=True, question=text))
    return replace(found, results=tuple(results))


def written(path: Path, html: str) -> Path:
    """Write a page to a file."""
    path.write_text(html, encoding="utf-8")
    return path


def said(browser: Browser) -> tuple[str, str]:
    """Press the first button, wait, and return what is said beside it: its kind and its text."""
    browser.click("#verified td button")
    output = "document.querySelector('#verified output')"
    until = time.monotonic() + PATIENCE_SECONDS
    while not browser.evaluate(f"{output}.className") and time.monotonic() < until:
        browser.settle()
    return browser.evaluate(f"{output}.className"), browser.evaluate(f"{output}.textContent")


def test_a_count_is_counted_again(browser: Browser, tmp_path: Path) -> None:
    """Offline, in a worker, under the page's policy; the tick is green."""
    found = audit()
    browser.complaints.clear()
    browser.open(written(tmp_path / "report.html", found.to_html()), WIDE)
    kind, text = said(browser)
    count = found.results[0].count
    assert (kind, text.partition(",")[0]) == ("pass", f"✓ {count} again")
    assert browser.evaluate("document.querySelectorAll('#verified td button').length") == 4
    assert browser.complaints == []


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_a_changed_question_is_a_red_difference(
    browser: Browser, tmp_path: Path, size: tuple[int, int]
) -> None:
    """A flipped byte, another threshold, another number in the report."""
    found = audit()
    html, question = found.to_html(), found.results[0].question
    assert question is not None
    data = packed(question)
    assert data in html
    flipped = data[:50] + ("A" if data[50] != "A" else "B") + data[51:]
    other = packed(question.replace("change gap 60", "change gap 0"))
    broken = packed(question.replace("distance any", "distance few"))
    button = 'data-question="question-0" data-count="5"'
    for change, expected in (
        (html.replace(data, flipped, 1), "is damaged"),
        (html.replace(data, other, 1), "✗ counted 9, the report says 5"),
        (html.replace(data, broken, 1), "✗ damaged question: line"),
        (html.replace(button, button.replace("5", "6"), 1), "✗ counted 5, the report says 6"),
    ):
        assert change != html
        browser.open(written(tmp_path / "report.html", change), size)
        kind, text = said(browser)
        assert (kind, expected in text) == ("fail", True), text


def test_without_what_it_needs_the_page_says_what_to_do(browser: Browser, tmp_path: Path) -> None:
    """A browser without workers names them, and another way."""
    path = written(tmp_path / "report.html", audit().to_html())
    added = browser.call("Page.addScriptToEvaluateOnNewDocument", source="delete window.Worker")
    try:
        browser.open(path, WIDE)
        text = browser.evaluate("document.querySelector('#verified output').textContent")
        assert text == (
            "this browser lacks workers; open the page in another one, or use xcount verify"
        )
        assert browser.evaluate("document.querySelector('#verified td button').hidden")
    finally:
        browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=added["identifier"])


def test_large_questions_are_left_out_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would make the page too large is left out, and the record says how to count it."""
    found = audit()
    assert "too large for this page" not in found.to_html()
    text = found.results[1].question
    assert text is not None
    noise = "".join(f"# {i * 7919 % 104729} {i * i % 99991}\n" for i in range(40_000))
    large = replace(found.results[1], question=text + noise)
    some = replace(found, results=(found.results[0], large, *found.results[2:]))
    monkeypatch.setattr(verified, "MOST_BYTES", 200_000)
    monkeypatch.setattr("xcount.report.page.audit.MOST_BYTES", 200_000)
    html = some.to_html()
    assert len(html.encode()) < 200_000
    (left_out,) = re.findall(r"1 question too large for this page[^<]*", html)
    assert large.sensitive[0] in left_out
    assert html.count("Count it again here") == 3
    assert "xcount verify FILE counts it again" in html


def test_counts_of_any_size_and_number_are_listed() -> None:
    """A count beyond every float, and more counts than rows."""
    found = audit()
    first, n = found.results[0], 10**5000
    huge = replace(first, count=n, low=n, high=n, n_regions=10 * n)
    many = (huge, *(replace(first, sensitive=(f"f{i}",)) for i in range(500)))
    html = replace(found, results=many, n_planned=len(many)).to_html()
    assert f'data-count="1{"0" * 5000}"' in html
    assert "101 more: see --json or --csv." in html
    assert len(html.encode()) < verified.MOST_BYTES


def test_a_page_without_verified_counts_carries_no_counter() -> None:
    """Nor may it start workers."""
    html = xcount.audit(figure_1(), gaps=80, explain=False).to_html()
    assert "verified-counter" not in html
    assert "worker-src" not in html
