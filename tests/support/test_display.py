"""Results show themselves: a line, a card, a table, a picture; each of every kind."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xcount
from xcount.answers.explanation import Explanation
from xcount.counters.tally import Progress
from xcount.errors import MissingExtraError
from xcount.measures.fitting import fit_population
from xcount.model.ensemble import Ensemble, Feature
from xcount.model.examples import ensemble_of, figure_1
from xcount.question.grid import Grid
from xcount.report.bars import SHARE, Bar, Bars
from xcount.report.notebook.live import bar_html, progress_bar
from xcount.support.interval import Interval

HOSTILE = '<script>alert(1)</script>"\x1b[31m\u202e$x$'
"""A name that would run, colour the terminal, turn the text around, or be a formula."""


def hostile_model() -> Ensemble:
    """Return figure 1 with hostile names."""
    model = figure_1()
    return replace(model, features=(Feature(HOSTILE), model.features[1]))


def results(model: Ensemble) -> dict[str, Any]:
    """Return a result of every kind, and some that know little."""
    count = xcount.count(model, sensitive=0, gap=80, max_share="1/3")
    audit = xcount.audit(model, gaps=[60, 80], max_share="1%")
    compared = xcount.compare([model, model], gaps=80)
    return {
        "count": count,
        "count with a profile": xcount.count(model, sensitive=0, gap=80, profile=True),
        "count with measures": (
            measured := xcount.count(
                model,
                sensitive=0,
                gap=80,
                measures="volume",
                bounds=dict.fromkeys(model.feature_names, (0, 9)),
            )
        ),
        "explained count": (explained := xcount.count(model, sensitive=0, gap=80, explain=True)),
        "explanation": explained.explanation,
        "empty explanation": Explanation(),
        "profile": xcount.count(model, sensitive=0, gap=80, profile=True).profile,
        "bounds": replace(count, count=None, low=1, high=4),
        "estimate": replace(count, low=1, high=4, confidence=0.9),
        "nothing": replace(count, count=0, low=0, high=0),
        "audit": audit,
        "unfinished audit": replace(audit, results=()),
        "comparison": compared,
        "unfinished comparison": replace(compared, rows=()),
        "witnesses": xcount.witnesses(model, sensitive=0, gap=80, n=2),
        "no witnesses": xcount.witnesses(model, sensitive=0, gap=1000),
        "witness": xcount.witnesses(model, sensitive=0, gap=80, n=1)[0],
        "flip": xcount.witnesses(model, sensitive=0, flip=True, cutoff=0, n=1),
        "inspection": xcount.inspect(model),
        "population": (
            people := fit_population(Grid.of(model), np.array([[1.0, 1.0], [5.0, 2.5]] * 50))
        ),
        "portrait": people.portrait,
        "ranked": audit.ranking[0],
        "compared": compared.rows[0],
        "measured": measured.measures["volume"],
        "ensemble": model,
        "stump": ensemble_of((0, 1.0, 0.0, 0.0)),
    }


KINDS = tuple(results(figure_1()))


@pytest.fixture(scope="module", params=["usual names", "hostile names"])
def shown(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return results of a model with usual and with hostile names."""
    return results(figure_1() if request.param == "usual names" else hostile_model())


@pytest.fixture(scope="module")
def hostile() -> dict[str, Any]:
    """Return results of a model with hostile names."""
    return results(hostile_model())


class Elements(HTMLParser):
    """The tags of a page, and whether they are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the tag."""
        self.tags.append(tag)
        self.open.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        """Close it."""
        assert self.open.pop() == tag


@pytest.mark.parametrize("kind", KINDS)
def test_a_line_each(shown: dict[str, Any], kind: str) -> None:
    """One line that names the type and holds nothing that a terminal would obey."""
    line = repr(shown[kind])
    assert line.startswith(f"{type(shown[kind]).__name__}(")
    assert line.isprintable()
    assert len(line) < 400


@pytest.mark.parametrize("kind", KINDS)
def test_a_card_each(shown: dict[str, Any], kind: str) -> None:
    """Whole elements, no script, the model's names as text."""
    card = shown[kind]._repr_html_()
    page = Elements()
    page.feed(card)
    assert page.open == []
    assert set(page.tags) <= {"div", "span", "svg", "rect", "line", "title", "bdi"}
    assert "\x1b" not in card


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_each(shown: dict[str, Any], kind: str) -> None:
    """As many rows as there are counts, inputs, features or nodes."""
    pytest.importorskip("pandas")
    rows = {
        **dict.fromkeys(("unfinished audit", "unfinished comparison", "no witnesses"), 0),
        **{"audit": 4, "comparison": 4, "witnesses": 4, "witness": 2, "flip": 2},
        **{"inspection": 2, "ensemble": 10, "stump": 3, "empty explanation": 0},
        **{"population": 1, "portrait": 2, "ranked": 2, "compared": 2},
        **{"explanation": 28, "profile": 4},  # 2 ways, 22 gaps, 3 groups, 1 place; 3 + 1 masks
    }
    assert len(shown[kind].to_dataframe()) == rows.get(kind, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_each(kind: str, hostile: dict[str, Any], tmp_path: Path) -> None:
    """A figure that notebooks show as a picture, and a file if asked for."""
    pytest.importorskip("matplotlib")
    figure = hostile[kind].plot(tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").read_bytes().startswith(b"<?xml")
    if kind == "count":
        assert figure._repr_png_().startswith(b"\x89PNG")


def test_pictures_and_tables_show_what_is_judged() -> None:
    """The bars of an audit and the ratios of a comparison are those of the judged measure."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    rows = {"f0": [3.5, 3.5, 3.5, 5.0], "f1": [1.0, 1.0, 9.0, 9.0]}
    asked: dict[str, Any] = {"sensitive": "f0", "gaps": 80, "judge": "rows", "data": rows}
    audit = xcount.audit(figure_1(), **asked)
    (axes,) = audit.plot().axes
    assert axes.get_xlabel() == "share of the rows (%)"
    assert [bar.get_extents().width > 0 for bar in axes.patches] == [True]
    assert axes.dataLim.x1 == 50.0
    compared = xcount.compare([figure_1(), figure_1()], **asked)
    assert compared.plot().axes[0].get_ylabel() == "shares by rows relative to model 1"
    assert list(compared.to_dataframe()["rows_ratio"]) == [1.0, 1.0]


def test_protected_features_come_first_and_are_never_cut() -> None:
    """In a card, which has room for eight, and in a picture, which has room for fifteen."""
    pytest.importorskip("matplotlib")
    model = ensemble_of(*((feature, 1.0, 0.0, 20.0 - feature) for feature in range(17)))
    names = [*(f"other{index}" for index in range(16)), "sex"]
    model = replace(model, features=tuple(map(Feature, names)))
    audit = xcount.audit(model, gaps=[0.5, 3.5])
    assert audit.ranking[-1].label == "sex"
    card = audit._repr_html_()
    assert card.index("<bdi>sex</bdi>") < card.index("<bdi>other0</bdi>")
    assert "If only sex were different" in card
    drawn = [label.get_text() for label in audit.plot().axes[0].get_yticklabels()]
    assert drawn[:2] == ["sex", "other0"]
    assert len(drawn) == 15


def test_no_small_share_fills_its_card() -> None:
    """The scale is the whole, or a round part of it with room to spare, and the caption says so."""

    def drawn(share: float, limit: float | None = None) -> Bars:
        return Bars("", SHARE, (Bar("a", Interval.exactly(share), ""),), limit)

    assert drawn(0.0672).span == (0.0, 1.0)
    assert drawn(0.0).span == (0.0, 1.0)
    assert drawn(0.02).span == pytest.approx((0.0, 0.05))
    assert drawn(0.0001).span == pytest.approx((0.0, 0.0002))
    assert drawn(0.0001, 0.03).span == pytest.approx((0.0, 0.05))
    assert drawn(0.0001, 0.5).span == (0.0, 1.0)


def test_the_card_of_a_count_leads_with_people() -> None:
    """Where data was given and no limit judges regions; a limit leads with what it is about."""
    rows = {"f0": [3.5, 3.5, 3.5, 5.0], "f1": [1.0, 1.0, 9.0, 9.0]}
    asked: dict[str, Any] = {"sensitive": "f0", "gap": 80, "data": rows}
    card = xcount.count(figure_1(), **asked)._repr_html_()
    assert "For how many rows does" in card
    assert "2 of the 4 cases in the table (50.0 %)" in card
    assert card.index("<bdi>rows</bdi>") < card.index("<bdi>regions</bdi>")
    assert "bars from 0 to 100 %" in card
    judged = xcount.count(figure_1(), **asked, max_share="5%")._repr_html_()
    assert "In how many regions does" in judged
    assert judged.index("<bdi>regions</bdi>") < judged.index("<bdi>rows</bdi>")


def test_a_number_of_many_digits_is_rounded_for_people_alone() -> None:
    """A cut-off that a calibration computed, a gap that a program did: six digits, JSON has all."""
    whole = "0.470230990618041133632942774056573398411273956298828125"
    model = ensemble_of((0, 1.0, -1.0, 1.0))
    audit = xcount.audit(model, sensitive="f0", flip=True, cutoff=Fraction(whole))
    (result,) = audit.results
    page = re.sub("<[^>]+>", "", audit.to_html())  # attributes are the script's
    said = [repr(result), result._repr_html_(), repr(audit), audit._repr_html_(), page]
    assert all(whole[:9] not in text for text in said)
    assert "flip at 0.470231" in repr(result)
    assert whole[:9] not in audit.to_markdown()
    data = result.to_dict()
    assert (data["cutoff_text"], data["gap_text"]) == (whole, f"flip at {whole}")
    gap = xcount.count(model, sensitive="f0", gap=Fraction(whole))
    assert repr(gap).startswith("CountResult(f0, gap 0.470231, any change: ")
    assert gap.to_dict()["gap_text"] == whole


def test_all_that_has_a_dictionary_has_json() -> None:
    """The same object as text."""
    made = results(figure_1())
    for kind in ("count", "audit", "comparison", "witnesses", "witness", "inspection"):
        assert json.loads(made[kind].to_json()) == made[kind].to_dict()


def test_what_a_line_says() -> None:
    """The question, the count, the share, how sure, the verdict."""
    found = results(figure_1())
    assert repr(found["count"]) == (
        "CountResult(f0, gap 80, any change: 2 of 9 regions = 22.2 %, exact, PASS)"
    )
    assert repr(found["estimate"]) == (
        "CountResult(f0, gap 80, any change: 1 to 4 of 9 regions, about 22.2 %, 90% confidence, "
        "UNDECIDED)"
    )
    assert repr(found["ensemble"]) == "Ensemble(ensemble, unknown, 2 trees, 2 features)"
    assert repr(found["portrait"]) == "Portrait(2 columns, 2 components)"
    assert repr(found["ranked"]) == "Ranked(1, f0: mean share 38.9 % over 2 questions)"
    assert (
        repr(found["compared"]) == "Compared(f0, gap 80, any change: 22.2 %, 22.2 % of the regions)"
    )
    assert repr(found["measured"]) == "Measured(volume: 9.88 %, exact but for rounding)"
    assert repr(found["no witnesses"]) == "Witnesses(none: no region is sensitive)"


def test_questions_and_domains_have_lines_too() -> None:
    """Also what a notebook does not draw."""
    model = figure_1()
    assert repr(xcount.Grid.of(model)) == "Grid(2 features, 4 guards, 9 regions)"
    assert repr(xcount.Domain.of(where="f0 < 4")) == "Domain(f0 < 4)"
    assert repr(xcount.Domain()) == "Domain(everything)"
    assert "\n" not in repr(xcount.Query.of(model, "f0", 80))


def test_witnesses_are_a_tuple() -> None:
    """Whoever used them as one still can."""
    found = xcount.witnesses(figure_1(), sensitive="f0", gap=80, n=2)
    assert isinstance(found, tuple)
    assert found == tuple(found)
    assert found.to_dict()["witnesses"] == [witness.to_dict() for witness in found]


def test_huge_counts_keep_their_digits() -> None:
    """A table has the integer itself, a line its size."""
    pytest.importorskip("pandas")
    huge = replace(
        xcount.count(figure_1(), sensitive="f0", gap=80), count=7**4000, low=7**4000, high=7**4000
    )
    huge = replace(huge, n_regions=7**5000)
    assert huge.to_dataframe().loc[0, "count"] == 7**4000
    assert "2.467e+3380 of" in repr(huge)
    assert "e+3380" in huge._repr_html_()


def test_without_pandas_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a bare ImportError."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'xcount\[tables\]'"):
        figure_1().to_dataframe()


def test_start_up_stays_lean() -> None:
    """A result and its line need neither pandas nor matplotlib nor IPython."""
    code = (
        "import sys, xcount; from xcount.model.examples import figure_1\n"
        "repr(xcount.count(figure_1(), sensitive='f0', gap=80))\n"
        "print([m for m in ('pandas', 'matplotlib', 'IPython') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


class Display:
    """Stands for IPython: keeps what a cell would show."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def display(self, content: Any, *, display_id: bool) -> Display:
        """Show something that can be updated."""
        assert display_id
        self.shown.append(content.data)
        return self

    def update(self, content: Any) -> None:
        """Put something else in its place."""
        self.shown.append(content.data)


def test_a_bar_while_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in the first second, then a bar; in the end nothing is left."""
    display = pytest.importorskip("IPython.display")
    screen, now = Display(), [0.0]
    monkeypatch.setattr(display, "display", screen.display)
    monkeypatch.setattr("xcount.report.notebook.live.time.monotonic", lambda: now[0])
    with progress_bar() as show:
        show(Progress(0.1, 0, 9, "early"))
        assert screen.shown == []
        now[0] = 2.0
        show(Progress(0.5, 1, 7, "<b>"))
        show(Progress(0.6, 1, 7, "too soon after the last one"))
        now[0] = 3.0
        show(Progress(0.7, 2, 7, "later"))
    assert [text.count("<progress") for text in screen.shown] == [1, 1, 0]
    assert "1 .. 7  &lt;b&gt;" in screen.shown[0]


def test_bars_stay_on_their_scale() -> None:
    """Whatever a counter says."""
    assert 'value="1"' in bar_html(7.0, "")
    assert 'value="0"' in bar_html(-1.0, "")


def test_only_a_kernel_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script shows nothing; a listener of one's own is left alone."""
    pytest.importorskip("IPython")
    from contextlib import nullcontext

    opened: list[str] = []
    heard: list[Progress] = []

    class Shell:
        kernel = object()

    def bar() -> Any:
        opened.append("bar")
        return nullcontext(heard.append)

    monkeypatch.setattr("xcount.report.notebook.live.progress_bar", bar)
    xcount.count(figure_1(), sensitive="f0", gap=80)
    monkeypatch.setattr("IPython.get_ipython", Shell)
    xcount.count(figure_1(), sensitive="f0", gap=80, on_progress=lambda _: None)
    assert opened == []
    xcount.count(figure_1(), sensitive="f0", gap=80, method="sample")
    assert opened == ["bar"]
    assert heard
