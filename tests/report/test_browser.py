"""The report in a real browser: numbers, clicks, keys, narrow and wide, light, dark and print."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import xcount
from report.samples import HOSTILE, hostile, huge, ordinary
from tools.browser import CHROMIUM, NARROW, PDFTOTEXT, WIDE, Browser
from xcount.model.examples import (
    adult_held_out_path,
    adult_one_hot_paths,
    ensemble_of,
    figure_1,
)
from xcount.report import html_report

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is not installed (Debian: apt install chromium)"
)

CONTRAST = """
(() => {
  const numbers = c => c.match(/[\\d.]+/g).map(Number);
  const light = c => { const [r, g, b] = numbers(c).map(v => v / 255)
      .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = e => { for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      const n = numbers(c); if (n.length < 4 || n[3] > 0) return c; }
    return 'rgb(255, 255, 255)'; };
  const worst = [];
  for (const e of document.querySelectorAll('body *')) {
    const text = [...e.childNodes].some(n => n.nodeType == 3 && n.data.trim());
    if (!text || !e.checkVisibility() || e.tagName == 'title') continue;
    const style = getComputedStyle(e);
    const svg = e.namespaceURI.endsWith('svg');
    const a = light(svg ? style.fill : style.color), b = light(ground(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) worst.push([e.tagName, e.className.baseVal ?? e.className, ratio]);
  }
  return worst;
})()
"""

HOVER_ALL = """
for (const e of document.querySelectorAll('[data-tip], [data-sensitive]'))
  for (const kind of ['pointerover', 'pointermove'])
    e.dispatchEvent(new PointerEvent(kind, {bubbles: true}));
"""

OVERLAPS = """
[...document.querySelectorAll('main *')].filter(e => e.checkVisibility()
  && !e.closest('.scroll, svg') && e.getBoundingClientRect().right > innerWidth + 1)
  .map(e => e.tagName + '.' + e.className)
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Return one browser for all tests of this file."""
    with Browser(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.fixture(autouse=True)
def no_complaints(browser: Browser) -> Iterator[None]:
    """No test leaves a console message, an error or a request to a network behind."""
    browser.complaints.clear()
    yield
    browser.evaluate("0")
    assert browser.complaints == []


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """Return the page of an ordinary audit with a limit."""
    path = tmp_path / "report.html"
    path.write_text(html_report(ordinary(0.14)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of an audit that people judge: rows, witnesses, explanations."""
    model, domain = adult_one_hot_paths()
    audit = xcount.audit(
        model,
        sensitive=["sex", "race"],
        flip=True,
        distances="any",
        domain=domain,
        data=adult_held_out_path(),
        judge="rows",
        max_share={"sex": "1%", "race": "20%"},
        n_witnesses=2,
    )
    path = tmp_path_factory.mktemp("people") / "people.html"
    path.write_text(audit.to_html(), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a comparison in which one question got worse, in the second panel."""
    flatter = ensemble_of((0, 4.0, (1, 3.0, 15.0, -15.0), 17.5))
    path = tmp_path_factory.mktemp("compared") / "comparison.html"
    compared = xcount.compare([flatter, figure_1()], gaps=[1, 30], distances=1)
    path.write_text(compared.to_html(), encoding="utf-8")
    return path


def visible(browser: Browser, selector: str) -> Any:
    """Return the texts of the visible elements that match."""
    return browser.evaluate(
        f"[...document.querySelectorAll({json.dumps(selector)})]"
        ".filter(e => e.checkVisibility()).map(e => e.textContent)"
    )


def test_the_numbers_are_those_of_the_json(browser: Browser, tmp_path: Path) -> None:
    """Every count that the page shows is in the JSON of the same audit, and the other way round."""
    audit = xcount.audit(figure_1(), gaps=[10, 80], distances=[1, "any"], max_share=0.5)
    path = tmp_path / "report.html"
    path.write_text(audit.to_html(), encoding="utf-8")
    data = json.loads(audit.to_json())
    browser.open(path, WIDE)
    shown = browser.evaluate(
        "[...document.querySelectorAll('#ranking .bars li')].map(e => [e.dataset.sensitive,"
        " e.dataset.gap, e.dataset.distance, e.dataset.count,"
        " e.querySelector('b').textContent])"
    )
    expected = [
        [
            *(r["sensitive"][0], r["gap_text"], str(r["distance"]), str(r["count"])),
            xcount.report.words.numbers.percent(r["count"], r["n_regions"]),
        ]
        for r in data["results"]
    ]
    assert sorted(shown) == sorted(expected)
    assert visible(browser, "#verdict") == [data["verdict"]]
    assert data["model"]["format"] in visible(browser, "#certificate")[0]


def test_bars_are_as_long_as_their_shares(browser: Browser, page: Path) -> None:
    """A bar's length over its rail's is the share over the end of the axis."""
    browser.open(page, WIDE)
    rows = browser.evaluate(
        "[...document.querySelectorAll('#ranking section:first-of-type .bars li')].map(e =>"
        " [+e.dataset.count, e.querySelector('.fill').getBoundingClientRect().width /"
        " e.querySelector('.rail').getBoundingClientRect().width])"
    )
    assert len(rows) == 4
    for count, length in rows:
        assert length == pytest.approx(count / 1e6 / 0.5, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_pages_fit_and_can_be_read(
    browser: Browser, page: Path, people: Path, compared: Path, size: tuple[int, int], scheme: str
) -> None:
    """Nothing sticks out sideways; text has the contrast of WCAG AA; dark is dark."""
    for path in (page, people, compared):
        browser.open(path, size, scheme)
        browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert browser.evaluate(OVERLAPS) == []
        assert browser.evaluate(CONTRAST) == []
        paper = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(int(n) for n in paper[4:-1].split(",")) < 384) is (scheme == "dark")


def test_tabs_follow_the_mouse(browser: Browser, page: Path) -> None:
    """A click on a tab shows its panel, and only that one."""
    browser.open(page, NARROW)
    assert len(visible(browser, ".tabs > section")) == 1
    browser.click(".tablist label:nth-of-type(5)")
    headings = visible(browser, ".tabs > section > h3")
    assert headings == ["Margin changes by more than 0.5, any change"]


def test_tabs_follow_the_keyboard(browser: Browser, page: Path) -> None:
    """Tab reaches the tabs, an arrow moves to the next panel, and the focus can be seen."""
    browser.open(page, WIDE)
    browser.evaluate("document.querySelector('#with-verdict').focus()")
    browser.press("Tab", 9)
    assert browser.evaluate("document.activeElement.id") == "panel-0"
    browser.press("ArrowRight", 39)
    assert visible(browser, ".tabs > section > h3") == ["Margin changes by more than 0.5, 1 step"]
    outline = (
        "getComputedStyle(document.querySelector('.tablist label:nth-of-type(2)')).outlineStyle"
    )
    assert browser.evaluate(outline) == "solid"


def test_details_open_by_mouse_and_keyboard(browser: Browser, page: Path) -> None:
    """The whole ranking, the profiles and every count are one click or key away."""
    browser.open(page, WIDE)
    assert visible(browser, "#all table") == []
    browser.click("#all > summary")
    assert len(visible(browser, "#all tbody tr")) == 3
    assert "zip code" in visible(browser, "#all .names")[0]
    browser.evaluate("document.querySelector('#counts summary').focus()")
    browser.press("Enter", 13)
    assert len(visible(browser, "#counts tbody tr")) == 24
    browser.click(".feature:nth-of-type(2) > summary")
    assert len(visible(browser, ".feature .chart")) == 2


def test_print_shows_every_panel(browser: Browser, page: Path) -> None:
    """On paper nobody can click."""
    browser.open(page, WIDE)
    browser.media("print", "light")
    assert len(visible(browser, ".tabs > section > h3")) == 6
    assert visible(browser, ".tablist") == []


@pytest.mark.skipif(
    PDFTOTEXT is None, reason="pdftotext is not installed (Debian: apt install poppler-utils)"
)
def test_printed_pages_are_well_filled(browser: Browser, page: Path) -> None:
    """No sheet is blank, and no heading stands alone at the foot of one."""
    browser.open(page, WIDE)
    browser.media("print", "light")
    pages = browser.printed_pages()
    assert len(pages) > 3
    assert all(len(text) > 200 for text in pages)  # no blank page, least of all the last
    for text in pages:  # no heading at the foot of a page
        assert not text.splitlines()[-1].startswith(("Certificate", "Glossary", "Every count"))
    assert sum("FAIL" in text for text in pages) > 0


CUT_OFF = """
[...document.querySelectorAll('.scroll')].filter(e => e.checkVisibility()
  && e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.slice(0, 80))
"""

BROKEN_WORDS = """
[...document.querySelectorAll('thead th, .pair th')].filter(e => e.checkVisibility()).flatMap(e => {
  const texts = document.createTreeWalker(e, NodeFilter.SHOW_TEXT), broken = [];
  for (let node; (node = texts.nextNode());)
    for (const match of node.data.matchAll(/[A-Za-z]+/g)) {
      const range = document.createRange();
      range.setStart(node, match.index);
      range.setEnd(node, match.index + match[0].length);
      if (range.getClientRects().length > 1) broken.push(match[0]);
    }
  return broken;
})
"""


def test_a_phone_shows_whole_tables(browser: Browser, page: Path, people: Path) -> None:
    """No table is cut off: rows of several columns become lists with a heading for each value."""
    for path in (people, page):
        browser.open(path, NARROW)
        browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert browser.evaluate(CUT_OFF) == []
        assert browser.evaluate(BROKEN_WORDS) == []
        head = "getComputedStyle(document.querySelector('#counts td.n'), '::before').content"
        assert browser.evaluate(head) == '"Sensitive regions"'
    browser.open(page, WIDE)
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.evaluate(CUT_OFF) == []
    assert browser.evaluate(head) in ("none", "normal")


def test_paper_breaks_no_word_of_a_heading(browser: Browser, page: Path, people: Path) -> None:
    """On a sheet of 7.5 inches, no heading is broken within a word, and no table sticks out."""
    for path in (people, page):
        browser.open(path, (720, 1000))
        browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        browser.media("print", "light")
        assert browser.evaluate(BROKEN_WORDS) == []
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
        marks = "getComputedStyle(document.querySelector('.feature > summary'), '::before').content"
        assert browser.evaluate(marks) == "none"


def test_a_page_speaks_of_the_people_who_are_judged(browser: Browser, people: Path) -> None:
    """Headline, bars, classes of the examples and certificate: all are about the same rows."""
    browser.open(people, WIDE)
    assert visible(browser, "#verdict") == ["FAIL"]
    headline = visible(browser, "#answer h2")[0].replace("\N{NO-BREAK SPACE}", " ")
    assert headline.startswith("sex is above the limit: 1.81 % of the 1,159 cases in adult-held")
    assert visible(browser, "#ranking .bars b") == ["1.81 %", "4.14 %"]  # sex, which fails; race
    assert [text[:4] for text in visible(browser, ".feature[open] > summary")] == ["sex1"]
    assert set(visible(browser, ".pair td:nth-of-type(2)")) == {"0", "1"}
    assert len(visible(browser, ".pair mark")) == 2
    assert "The same in both: age" in visible(browser, ".pair .same")[0]
    assert "the rows are the cases of one table" in visible(browser, "#certificate")[0]
    terms = visible(browser, "#glossary dt")
    assert {"Share of the regions", "Share of the rows"} <= set(terms)
    assert visible(browser, "#gaps .bars b") == ["1.81 %", "4.14 %"]


def test_hostile_names_do_nothing(browser: Browser, tmp_path: Path) -> None:
    """No script runs but ours, no element appears, nothing is asked of the network."""
    path = tmp_path / "hostile.html"
    path.write_text(html_report(hostile()), encoding="utf-8")
    browser.open(path, NARROW)
    assert browser.evaluate("document.querySelectorAll('img, i, u').length") == 0
    assert browser.evaluate("document.scripts.length") == 1
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert "<script>alert(1)</script>" in visible(browser, ".bars .name")
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    browser.evaluate("document.querySelectorAll('th button').forEach(b => b.click())")
    for name in HOSTILE:
        browser.type("#find", name)
    browser.evaluate(HOVER_ALL)
    assert browser.evaluate("document.querySelectorAll('img, i, u').length") == 0
    assert browser.evaluate("document.scripts.length") == 1


def test_nothing_but_our_script_may_run(browser: Browser, page: Path, tmp_path: Path) -> None:
    """Were a name to become an element after all, the policy would stop it."""
    broken = tmp_path / "broken.html"
    spoilt = "<script>window.bad = 1</script><p onclick='window.bad = 2' style='color: red'>x</p>"
    text = page.read_text(encoding="utf-8").replace("<main>", f"<main>{spoilt}", 1)
    broken.write_text(text, encoding="utf-8")
    browser.open(broken, WIDE)
    browser.evaluate("document.querySelector('main > p').click()")
    assert browser.evaluate("window.bad") is None
    red = "getComputedStyle(document.querySelector('main > p')).color == 'rgb(255, 0, 0)'"
    assert not browser.evaluate(red)
    assert len(browser.complaints) == 3
    assert all("Content Security Policy" in complaint for complaint in browser.complaints)
    browser.complaints.clear()


def test_a_search_filters_everything(browser: Browser, page: Path) -> None:
    """Bars, tables and features show what has the words; an empty search shows all."""
    browser.open(page, WIDE)
    browser.type("#find", "SEX")
    assert visible(browser, "#ranking .bars .name") == ["sex"]
    assert visible(browser, "#features h3") == ["sex"]
    assert visible(browser, "#all tbody td:first-child") == ["sex"]
    assert set(visible(browser, "#counts tbody td:first-child")) == {"sex"}
    assert visible(browser, "#found") == ["1 found"]
    browser.type("#find", "")
    assert len(visible(browser, "#ranking .bars .name")) == 4
    browser.evaluate(
        "(s => { s.value = 'UNDECIDED'; s.dispatchEvent(new Event('change')); })"
        "(document.querySelector('#with-verdict'))"
    )
    assert visible(browser, "#ranking .bars .name") == ["income"]


def test_tables_sort(browser: Browser, page: Path) -> None:
    """By number or by text; a second click turns the order round, and it is announced."""
    browser.open(page, WIDE)
    browser.click("#counts summary")
    shares = "#counts tbody td:nth-child(4)"
    browser.click("#counts th:nth-child(4) button")
    falling = [float(text.split()[0]) for text in visible(browser, shares)]
    assert falling == sorted(falling, reverse=True)
    state = "document.querySelector('#counts th:nth-child(4)').getAttribute('aria-sort')"
    assert browser.evaluate(state) == "descending"
    browser.click("#counts th:nth-child(4) button")
    rising = [float(text.split()[0]) for text in visible(browser, shares)]
    assert rising == sorted(rising)
    browser.click("#counts th:nth-child(1) button")
    names = visible(browser, "#counts tbody td:nth-child(1)")
    assert names == sorted(names)


def test_exact_numbers_under_the_pointer(browser: Browser, page: Path) -> None:
    """A bar says its count, its regions and its verdict; a point of a curve its gap."""
    browser.open(page, WIDE)
    browser.hover("#ranking .bars li .bar")
    assert visible(browser, ".tip") == [
        "age: 30.0 % of all regions, exact; 300,000 of 1,000,000 regions; "
        "FAIL: 30.0 % of the regions, at most 14 % allowed"
    ]
    browser.hover("#gaps .series .mark")
    assert visible(browser, ".tip") == ["age, gap 0.2: 30.0 %, exact"]
    browser.hover("h1")
    assert visible(browser, ".tip") == []


def test_the_slider_moves_over_the_curve(browser: Browser, page: Path) -> None:
    """Cursor, gap and bars follow it, by keyboard and by a press on the chart."""
    browser.open(page, WIDE)
    shown = "#gaps figure:first-of-type .bars b"
    assert visible(browser, shown) == ["30.0 %", "10.0 %", "about 15.0 %", "0 %"]
    browser.evaluate("document.querySelector('#gaps input').focus()")
    browser.press("ArrowRight", 39)
    assert visible(browser, "#gaps .at")[0] == "0.5"
    assert visible(browser, shown) == ["20.0 %", "6.67 %", "about 10.0 %", "0 %"]
    place = "document.querySelector('#gaps .cursor').getAttribute('x1')"
    before = browser.evaluate(place)
    browser.hover("#gaps .series .mark", press=True)
    assert visible(browser, "#gaps .at")[0] == "0.2"
    assert browser.evaluate(place) != before


def test_links_open_what_they_lead_to(browser: Browser, page: Path) -> None:
    """A name in the ranking leads to all that is known of the feature."""
    browser.open(page, WIDE)
    assert len(visible(browser, ".feature[open]")) == 1
    browser.click("#ranking .bars li:nth-of-type(2) a")
    assert browser.evaluate("document.querySelectorAll('.feature[open]').length") == 2
    assert browser.evaluate("location.hash") == "#feature-1"


def test_without_a_script_everything_is_there(browser: Browser, page: Path) -> None:
    """Nothing that needs a script is shown, and all numbers are."""
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(page, NARROW)
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
        assert visible(browser, ".tools, .tip, input[type=range], th button") == []
        assert visible(browser, "#gaps .at")[0] == "0.2"
        assert len(visible(browser, ".tabs > section")) == 1
        assert browser.evaluate("document.querySelectorAll('svg title').length") > 40
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_ten_thousand_features_open(browser: Browser, tmp_path: Path) -> None:
    """The page opens, and the last feature is one click away."""
    path = tmp_path / "huge.html"
    path.write_text(html_report(huge(10_000)), encoding="utf-8")
    browser.open(path, WIDE)
    assert len(visible(browser, "#ranking .bars li")) == 15
    browser.click("#all > summary")
    assert len(visible(browser, "#all tbody tr")) == 999  # the first one is proved to be 0, too
    assert "feature_9999" in visible(browser, "#all .names")[0]


def test_a_comparison_opens(browser: Browser, compared: Path) -> None:
    """The comparison's page switches panels, and shows whole tables on a phone, too."""
    browser.open(compared, NARROW)
    browser.click(".tablist label:nth-of-type(2)")
    headings = visible(browser, ".tabs > section > h3")
    assert headings == ["Margin changes by more than 30, 1 step"]
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.evaluate(CUT_OFF) == []
    assert "Gap" in visible(browser, "#glossary dt")


def test_a_comparison_explains_itself(browser: Browser, tmp_path: Path) -> None:
    """Each question unfolds: the curves of all models in one chart, then each model by itself."""
    halved = ensemble_of((0, 4.0, (1, 3.0, 15.0, -15.0), 17.5))
    path = tmp_path / "comparison.html"
    compared = xcount.compare([figure_1(), halved], gaps=[1, 30], explain=True)
    path.write_text(compared.to_html(), encoding="utf-8")
    browser.open(path, WIDE)
    assert visible(browser, ".explained .chart") == []
    browser.click(".explained > summary")
    assert visible(browser, ".explained .legend li") == list(compared.names)
    assert visible(browser, ".explained > h4") == list(compared.names)
    assert "Direction and size of the change" in visible(browser, ".explained > h5")


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_slider_stands_below_its_place(
    browser: Browser, people: Path, size: tuple[int, int]
) -> None:
    """Its thumb is where the cursor crosses the curves, at every gap."""
    browser.open(people, size)
    apart = (
        "(() => { const s = document.querySelector('#gaps input'), r = s.getBoundingClientRect();"
        " const part = (s.value - s.min) / (s.max - s.min), thumb = 16;"
        " const x = document.querySelector('#gaps .cursor').getBoundingClientRect().x;"
        " return Math.abs(r.x + thumb / 2 + part * (r.width - thumb) - x); })()"
    )
    browser.evaluate("document.querySelector('#gaps input').focus()")
    for _ in range(4):
        assert browser.evaluate(apart) < 2
        browser.press("ArrowRight", 39)
    assert visible(browser, "#gaps .at")[0] != "0"


def test_a_comparison_says_its_numbers_under_the_pointer(browser: Browser, compared: Path) -> None:
    """A bar says its share and its ratio, a dot of the distribution its question."""
    browser.open(compared, WIDE)
    browser.hover(".group li[data-model='model 2'] .bar")
    assert visible(browser, ".tip")[0].startswith("model 2: ")
    assert "C/C₀ " in visible(browser, ".tip")[0]
    browser.hover("#relative .dot")
    assert "(gap " in visible(browser, ".tip")[0]


def test_what_got_worse_leads_to_its_bars(browser: Browser, compared: Path) -> None:
    """Also where they are in a panel that is not shown; the culprit's are the first."""
    browser.open(compared, WIDE)
    culprit = visible(browser, "#worse tbody tr")[0]
    assert "gap 30" in culprit
    browser.click("#worse tbody tr:first-child a")
    headings = visible(browser, ".tabs > section > h3")
    assert headings == ["Margin changes by more than 30, 1 step"]
    assert culprit.startswith(visible(browser, ".tabs .group bdi")[0])
