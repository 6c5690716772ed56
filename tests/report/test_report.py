"""Reports: the right numbers, nothing unescaped, small when there is much."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xcount
from report.samples import HOSTILE, Page, audit_of, count_of, hostile, huge, measured, ordinary
from xcount.answers.explanation import (
    Curve,
    CurvePoint,
    Effect,
    Explanation,
    GroupRate,
    GroupRates,
    Place,
    Quantile,
)
from xcount.answers.result import CountResult, Verdict
from xcount.answers.witness.witness import Contribution, Crossing, Witness
from xcount.model.examples import (
    adult_held_out_path,
    adult_model_path,
    adult_one_hot_paths,
    ensemble_of,
    figure_1,
)
from xcount.question.cell import CellRange
from xcount.report import html_report, markdown_report
from xcount.report.culprit import ratio_text
from xcount.report.lead import headline, opening
from xcount.report.markup import element, escape
from xcount.report.sentences import certificate, glossary
from xcount.report.spreadsheet import csv_report
from xcount.report.words.numbers import estimate_words, share_words
from xcount.support.interval import Interval
from xcount.support.visible import visible


@pytest.mark.parametrize("audit", [ordinary(), ordinary(0.1), hostile(), audit_of([])])
def test_pages_are_well_formed_and_need_nobody(audit: Any) -> None:
    """Tags match, ids are unique, one script that is ours, nothing from the network."""
    text = html_report(audit)
    page = Page(text)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert not {tag for tag, _ in page.tags} & {"img", "iframe", "object", "form", "base"}
    assert [attributes for tag, attributes in page.tags if tag == "script"] == [{}]
    assert not re.search(r"https?:|url\(|@import|javascript:[^a]", text.partition("</style>")[0])
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        if tag == "svg" and attributes.get("role") == "img":
            assert attributes.get("aria-label")
        if tag == "link":
            assert attributes["href"] == "data:,"


def test_hostile_names_are_text() -> None:
    """A name that wants to be markup is shown, letter by letter, and does nothing."""
    text = html_report(hostile())
    assert text == visible(text, keep="\n\t")
    page = Page(text)
    for name in HOSTILE:
        assert visible(name) in page.text
    assert "<b>credit<b>.json" in page.text
    assert "models/" not in page.text
    assert "<i>x</i>" in page.text


def test_hostile_names_in_markdown_are_text() -> None:
    """No row breaks, no tag, no link, no code, nothing that a terminal obeys."""
    text = markdown_report(hostile())
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + min(20, 2 * len(HOSTILE))
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {7}
    assert "<" not in text
    assert text == visible(text, keep="\n")
    assert r"\\u202eesrever" in text
    assert not re.search(r"(?<!\\)[\[`]", text.partition("- SHA-256")[0])


def test_hostile_names_in_csv_are_text() -> None:
    """A spreadsheet neither runs a formula nor splits a line."""
    text = csv_report(hostile())
    assert text == visible(text, keep="\n")
    rows = list(csv.DictReader(text.splitlines(keepends=True)))
    assert len(rows) == 2 * len(HOSTILE)
    assert {row["sensitive"] for row in rows} == {
        f"'{visible(name)}" if name[0] in "=+-@" else visible(name) for name in HOSTILE
    }


def test_every_bar_has_its_count() -> None:
    """The page's rows carry the counts of the audit, panel by panel."""
    audit = ordinary()
    page = Page(html_report(audit))
    rows = {
        (a["data-sensitive"], a["data-gap"], a["data-distance"], a["data-count"])
        for _, a in page.tags
        if "data-count" in a
    }
    assert rows == {
        (r.sensitive[0], r.gap, "any" if r.distance is None else str(r.distance), str(r.count))
        for r in audit.results
    }


@pytest.mark.parametrize(
    ("audit", "word"),
    [
        (ordinary(), "NO LIMIT SET"),
        (ordinary(0.5), "PASS"),
        (ordinary(0.1), "FAIL"),
        (ordinary(0.16), "FAIL"),
        (audit_of([count_of("a", "1", 50, low=40, high=60, max_share=5e-5)]), "UNDECIDED"),
    ],
)
def test_the_verdict_is_on_top(audit: Any, word: str) -> None:
    """The first words after the title are the verdict."""
    text = Page(html_report(audit)).text
    assert text.index(word) < text.index("What the model is sensitive to")


def test_a_failure_says_what_is_above_what() -> None:
    """The share, or its lower bound, and the limit."""
    text = Page(html_report(ordinary(0.14))).text
    assert "age is above the limit: 30.0 % of all regions, at most 14 % allowed" in text
    assert "age (gap 0.2, 1 step): 30.0 % of the regions, at most 14 % allowed" in text
    between = "income (gap 0.2, 1 step): between 13.5 % and 16.5 % of the regions, at most 14 %"
    assert between in text
    low = Page(html_report(ordinary(0.11))).text
    assert "income (gap 0.2, 1 step): at least 13.5 % of the regions, at most 11 % allowed" in low
    assert "2 of 4 features are above the limit of 11 % of all regions: age (30.0 %) and" in low


def test_an_unfinished_audit_says_so() -> None:
    """Nothing is claimed about counts that were not made."""
    audit = ordinary()
    partial = replace(audit, results=audit.results[:5])
    assert "5 of 24" in headline(partial)
    assert any("19 of 24 planned counts" in paragraph for paragraph in certificate(partial))
    judged = replace(ordinary(0.9), results=ordinary(0.9).results[:5])
    assert judged.verdict is Verdict.UNDECIDED


def test_an_audit_without_results_says_nothing_of_them() -> None:
    """Neither how many regions there are, nor what was to change."""
    begun = replace(ordinary(), results=(), is_judged=True)
    (said,) = certificate(begun)
    assert said.startswith("The audit is unfinished: 24 of 24 planned counts are not")
    for text in (markdown_report(begun), Page(html_report(begun)).text):
        assert "24 of 24 counts are missing" in text
        assert not re.search("regions;|probability|a share of", text)


def test_no_paragraph_speaks_of_two_measures() -> None:
    """Judged by regions, the people of a table come after, and are said to be another measure."""
    model, domain = adult_one_hot_paths()
    asked: dict[str, Any] = {"sensitive": "sex", "flip": True, "distances": "any"}
    audit = xcount.audit(
        model, **asked, domain=domain, data=adult_held_out_path(), max_share="0.1%"
    )
    assert audit.judge == "regions"
    by_regions, by_rows = opening(audit)
    assert "of all regions" in by_regions
    assert "cases in" not in by_regions
    assert by_rows.startswith(
        "The limit applies to regions, not to people. For people: if only sex"
    )
    assert "cases in adult-held" in by_rows
    assert "of all regions" not in by_rows
    page = html_report(audit).replace("\N{NO-BREAK SPACE}", " ")
    first, second = re.findall(r'<p class="answer">(.*?)</p>', page)[:2]
    assert first.startswith(by_regions)
    assert re.search(r"could go up for [^;]* of the regions", first)
    assert "of the rows" not in first
    assert second.startswith(by_rows)
    assert re.search(r"could go up for [^;]* of the rows", second)
    assert "of the regions" not in second


def test_several_limits_say_of_what() -> None:
    """Shares in a list of features are those of the measure that is named with the limits."""
    high, low = count_of("a", "1", 500_000, max_share=0.1), count_of("b", "1", 50_000, max_share=0)
    said = headline(audit_of([high, low]))
    assert said.startswith("2 of 2 features are above their limits (shares of all regions): a (")


def test_ten_thousand_features_stay_small() -> None:
    """All features are on the page, those proved to be zero as a list; the page stays small."""
    text = html_report(huge(10_000))
    assert len(text) < 3_000_000
    page = Page(text)
    assert "feature_9999" in page.text
    assert "feature_9990" in page.text
    assert "All 10,000" in page.text
    assert sum(tag == "svg" for tag, _ in page.tags) < 200


def test_counts_of_any_size_are_shown() -> None:
    """A count with thousands of digits is a power of ten; a tiny share is not zero."""
    audit = audit_of([count_of("a", "1", 3 * 10**5000, n_regions=10**6000)])
    text = Page(html_report(audit)).text
    assert "10⁶⁰⁰⁰" in text
    assert "1 in 3.33 \u00d7 10⁹⁹⁹" in text
    assert "1e" not in markdown_report(audit)
    assert str(3) in csv_report(audit)


WITNESS = Witness(
    features=("age", "<b>", "job", "income"),
    point=(29.0, 0.0, 4.0, math.nan),
    other=(31.0, 1.0, 4.0, math.nan),
    margin=-0.5,
    other_margin=2.25,
    change=2.75,
    distance=2,
    crossed=(
        Crossing(
            "age", CellRange("age", high=30.5), CellRange("age", low=30.5, high=42.0), (30.5,)
        ),
        Crossing(
            "<b>",
            CellRange("<b>", categories=(0,), labels=("<red>",)),
            CellRange("<b>", categories=(1,), labels=("blue",)),
        ),
    ),
    trees=(Contribution(3, 0, 2.75),),
    decision="no",
    other_decision="yes",
    labels={"<b>": "<red>", "job": "clerk"},
    other_labels={"<b>": "blue", "job": "clerk"},
)


def test_measures_and_witnesses_are_shown_where_they_are() -> None:
    """Results that bring other measures or example pairs get their sections."""
    plain = count_of("age", "1", 5000)
    rich = replace(
        plain,
        measures={
            "rows": measured("rows", 0.25),
            "volume": measured("volume", 0.5, 0.4, 0.6),
        },
        witnesses=(WITNESS,),
    )
    text = Page(html_report(audit_of([rich]))).text
    assert "Measures side by side" in text
    assert "25.0 %" in text
    assert "50.0 %40.0 to 60.0 %" in text
    without = Page(html_report(audit_of([plain]))).text
    assert "Measures side by side" not in without
    assert "Example 1" not in without


def test_a_witness_is_two_rows_with_the_changed_cells_marked() -> None:
    """What changes stands first, then what the model says; categories have their names."""
    result = replace(count_of("age", "1", 5000), witnesses=(WITNESS,))
    text = html_report(audit_of([result]))
    table = text.partition('class="pair"')[2].partition("</table>")[0]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in table.split("<tr>")[1:]]
    plain = [[re.sub("<[^>]+>", "", cell) for cell in row] for row in rows]
    assert plain == [
        ["", "age", "&lt;b&gt;", "Decision", "Score"],
        ["As it is", "29", "&lt;red&gt;", "no", "-0.5"],
        ["Changed", "31", "blue", "yes", "2.25"],
    ]
    assert "The same in both: job clerk, income missing" in Page(text).text
    assert re.findall("<mark>(.*?)</mark>", table) == ["31", "blue"]
    assert "Example 1; thresholds crossed: age: 30.5" in table
    near = replace(WITNESS, row=7, moved=("age",))
    beside = replace(result, witnesses=(near,))
    assert "Example 1: row 7 of the data (from 0) with another age" in html_report(
        audit_of([beside])
    )


def test_examples_show_the_probability_and_the_decision() -> None:
    """Log-odds are for those who ask: they are under the pointer, where there is a probability."""
    model, domain = adult_one_hot_paths()
    asked: dict[str, Any] = {"sensitive": "sex", "flip": True, "distances": "any"}
    audit = xcount.audit(model, **asked, domain=domain, n_witnesses=1)
    witness = (audit.results[0].witnesses or ())[0]
    assert witness.probability is not None
    assert witness.probability == pytest.approx(1 / (1 + math.exp(-witness.margin)))
    assert witness.other_probability == pytest.approx(1 / (1 + math.exp(-witness.other_margin)))
    page = html_report(audit)
    table = page.partition('class="pair"')[2].partition("</table>")[0]
    heads = re.findall(r"<th scope=\"col\"><bdi>(.*?)</bdi>", table)
    assert heads[-2:] == ["Decision", "Probability"]
    assert f"{100 * witness.probability:.1f} %" in table.replace("\N{NO-BREAK SPACE}", " ")
    assert f'title="score {witness.margin:.4g}"' in table


def test_a_glossary_has_the_words_of_its_questions() -> None:
    """An audit of flips has no gap; one of gaps has no decision."""
    flips = xcount.audit(ensemble_of((0, 1.0, -1.0, 1.0)), flip=True, cutoff=0)
    words = dict(glossary(flips.results))
    assert "Decision" in words
    assert "Gap" not in words
    assert words["Sensitive region"].endswith("can change the decision.")
    gaps = dict(glossary(ordinary().results))
    assert "Gap" in gaps
    assert "Decision" not in gaps
    assert gaps["Sensitive region"].endswith("can change the margin by more than the gap.")
    page = html_report(flips).partition('id="glossary"')[2]
    assert "gap" not in page.partition("<footer>")[0]


def test_gaps_in_probability_are_called_so() -> None:
    """The certificate and the glossary speak of what was asked about, not always of the margin."""
    asked: dict[str, Any] = {"sensitive": "sex", "probability_gaps": "0.1", "where": "age < 30"}
    audit = xcount.audit(adult_model_path(), explain=False, timeout=1, **asked)
    assert "predicted probability by more than the stated gap" in certificate(audit)[0]
    assert "the inputs of the domain" in certificate(audit)[0]
    assert dict(glossary(audit.results))["Gap"].startswith("A change of the probability counts")


def test_judged_by_rows_the_page_says_which_numbers_are_whose() -> None:
    """A limit on rows stands beside counts of regions; one share is rounded in one way."""
    rows = {"f0": [0.0, 1.0, 1.0], "f1": [0.0, 0.0, 3.0]}
    asked: dict[str, Any] = {"data": rows, "measures": "rows", "judge": "rows"}
    model = ensemble_of((0, 0.5, (1, 0.5, -1.0, 1.0), 0.0))
    page = html_report(xcount.audit(model, gaps="0.5", max_share="2%", **asked))
    heads = re.findall(r"<th[^>]*><bdi>(.*?)</bdi>", page.partition('id="counts"')[2])
    assert heads[2:6] == ["Sensitive regions", "Share of regions", "Share of the rows", "Verdict"]
    compared = xcount.compare([model, model], gaps="0.5", max_ratio=1, **asked)
    page = compared.to_html()
    assert "ratios of the shares of the rows are guaranteed: none was sampled" in page
    assert "no count was sampled" not in page
    assert share_words(357 / 2000) == share_words(Fraction(357, 2000)) == "17.9 %"


def test_a_cell_of_one_category_is_an_equation() -> None:
    """Nobody reads "sex in {Male}"."""
    cell = CellRange("sex", categories=(1,), labels=("Male",))
    assert cell.description == "sex = Male"
    assert replace(cell, categories=(1, 2), labels=("A", "B")).description == "sex in {A, B}"


def test_one_is_no_plural() -> None:
    """Of counts, cells, features and questions."""
    one = Page(html_report(audit_of([count_of("age", "1", 5000)]))).text
    assert "1 count with bounds" in one
    assert "24 counts with bounds" in Page(html_report(ordinary())).text
    same = xcount.compare([figure_1(), figure_1()], gaps=80, sensitive="f0")
    assert "1 question as a table" in Page(same.to_html()).text


def test_a_profile_names_thresholds() -> None:
    """Where along a feature: its cells, its thresholds, and the steepest steps."""
    ensemble = ensemble_of((0, 1.0, 0.0, (0, 3.0, 5.0, (1, 2.0, 0.0, 9.0))))
    text = Page(html_report(xcount.audit(ensemble, gaps=[1, 4]))).text
    assert "Where along the feature" in text
    assert "1 <= f0 < 3" in text
    assert "f0 crosses 3" in text


def test_reports_are_reproducible() -> None:
    """The same audit is the same page, byte for byte."""
    assert html_report(ordinary()) == html_report(ordinary())


@given(st.text())
def test_no_text_breaks_out(text: str) -> None:
    """Whatever a name holds, it stays one text node and one attribute."""
    page = Page(element("div", element("p", text, title=text), id="x"))
    assert [tag for tag, _ in page.tags] == ["div", "p"]
    assert escape(text).count("<") == 0


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_plots_are_files(tmp_path: Path, ending: str) -> None:
    """The ranking as a picture, names that look like formulas included."""
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    path = tmp_path / f"plot.{ending}"
    audit = audit_of([count_of(name, "1", 1000) for name in ("$x^2$", "_a_", "\\frac{1}{2}")])
    audit.plot(path)
    assert path.read_bytes().startswith(starts[ending])


def test_a_profile_can_be_plotted(tmp_path: Path) -> None:
    """The profile of one count as a picture."""
    result = xcount.count(figure_1(), sensitive="f0", gap=80, profile=True)
    result.plot(tmp_path / "p.svg")
    assert (tmp_path / "p.svg").read_bytes().startswith(b"<?xml")


def test_a_comparison_can_be_plotted_and_shown(tmp_path: Path) -> None:
    """Relative sensitivities as boxes, and a page with every ratio."""
    halved = ensemble_of((0, 4.0, (1, 3.0, 15.0, -15.0), 17.5))
    comparison = xcount.compare([figure_1(), halved, halved], gaps=[1, 30, 80])
    comparison.plot(tmp_path / "c.png")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    page = Page(comparison.to_html())
    counts = [str(a["data-count"]) for _, a in page.tags if "data-count" in a]
    assert sorted(counts) == sorted(
        str(r.count) for row in comparison.rows for r in row.results if r is not None
    )


def test_a_comparison_shows_all_measures_side_by_side() -> None:
    """Share and interval of each model, and the ratio to the first one, as the terminal does."""
    rows = np.array([[1.0, 1.0], [3.5, 2.5], [5.0, 1.0]])
    comparison = xcount.compare(
        [figure_1(), ensemble_of((0, 4.0, (1, 3.0, 15.0, -15.0), 17.5))],
        gaps=30,
        data=rows,
        measures="rows,marginals",
        judge="rows",
    )
    page = comparison.to_html()
    section = page.partition('id="measures"')[2].partition("</section>")[0]
    text = Page(section.partition(">")[2]).text
    assert "By regionsBy rowsBy marginals" in text
    for row in comparison.rows:
        for index, result in enumerate(row.results):
            assert result is not None
            for measure in ("regions", "rows", "marginals"):
                assert (
                    estimate_words(result.share_under(measure) or Interval.unknown_share()) in text
                )
                ratio = row.ratio(index, measure)
                assert not index or ratio is None or f"ratio {ratio_text(ratio)}" in text
    alone = xcount.compare([figure_1(), figure_1()], gaps=80).to_html()
    assert "Measures side by side" not in alone


def test_the_table_of_the_curves_has_no_empty_cell() -> None:
    """Between the gaps that a feature was counted at, what monotonicity proves."""
    results = [
        with_curve("age", {0: 0.5, 0.1: 0.25, 0.3: 0.125, 0.7: 0.0}),
        with_curve("sex", {0: 0.4, 0.2: 0.2, 0.3: 0.05}),
        with_curve("race", {0: 0.3, 0.25: 0.3, 0.3: 0.1}),
    ]
    page = html_report(audit_of(results))
    figure = page.partition("Share by gap")[2].partition("</table>")[0]
    cells = re.findall(r"<t[hd][^>]*>(?:<bdi[^>]*>)?([^<]*)", figure)
    columns = [cell for cell in cells if cell.startswith("gap ")]
    assert "gap 0" in columns
    assert "gap 0.3" in columns
    table = {
        cells[i]: dict(zip(columns, cells[i + 1 :], strict=False))
        for i, cell in enumerate(cells)
        if cell in ("age", "sex", "race")
    }
    assert table["age"]["gap 0.3"] == "12.5 %"
    assert table["age"]["gap 0.2"] == "12.5 to 25.0 %"
    assert table["sex"]["gap 0.1"] == "20.0 to 40.0 %"
    assert table["sex"]["gap 0.7"] == "0 to 5.00 %"
    assert table["race"]["gap 0.1"] == "30.0 %"
    assert "\N{EN DASH}" not in figure
    assert "not known at this gap" not in page


def test_markdown_says_who_is_affected() -> None:
    """Share, direction, size, rates of groups and two places, of what was judged or named."""
    one, few = Interval(0.25, 0.25, 0.25), Interval(0.1, 0.05, 0.2)
    sizes = tuple(
        Quantile(level, Interval(size, size, size)) for level, size in ((0.5, 0.02), (0.9, 0.08))
    )
    groups = tuple(
        GroupRate(((cell,),), f"sex = {cell}", 0.5, Interval(rate, rate, rate))
        for cell, rate in enumerate((0.5, 0.2))
    )
    found = Explanation(
        effects=(
            Effect("regions", "probability", "all", one, few, None, sizes, (), False, 0.9, 9),
        ),
        places=tuple(
            Place("regions", f"age < {k}", (), 0.3, one, few, one, True, 1.0) for k in "123"
        ),
        rates=(GroupRates("regions", "1", groups, Interval(0.4, 0.4, 0.4), True, 1.0),),
    )
    results = [
        replace(count_of("sex", "0.1", 250_000), explanation=found),
        replace(count_of("x1", "0.1", 300_000), explanation=found),
        replace(count_of("x2", "0.1", 1_000, max_share=0.5), explanation=found),
        count_of("age", "0.1", 1_000),
    ]
    text = markdown_report(audit_of(results))
    section = text.partition("### Who is affected")[2].partition("\n\nThe thresholds")[0]
    assert re.findall(r"\*\*(.*?)\*\*", section) == ["sex", "x2"]
    assert "- **sex**: 25.0 % of all regions (gap 0.1, 1 step)" in section
    assert "up for 25.0 % and down for about 10.0 %" in section
    assert "at most 2 percentage points for half" in section
    assert "more than 8 percentage points for one in ten" in section
    assert "lowest rate 20.0 % (sex = 1), highest 50.0 % (sex = 0)" in section
    assert "lowest over highest 0.4." in section
    assert (
        "Where: age &lt; 1: 30.0 % of all regions; about 10.0 % of these are sensitive" in section
    )
    assert "age &lt; 2" in section
    assert "age &lt; 3" not in section
    assert "Who is affected" not in markdown_report(ordinary())


def with_curve(name: str, shares: dict[float, float]) -> CountResult:
    """Return a result whose explanation has these shares by gap."""
    points = tuple(CurvePoint(g, f"{g:g}", Interval(s, s, s)) for g, s in shares.items())
    curve = Curve("regions", "probability", "any", points, True, 1.0)
    return replace(count_of(name, "0.1", 1000), explanation=Explanation(curves=(curve,)))


def test_why_nothing_is_decided_is_said() -> None:
    """Intervals across the limit, missing counts, or both."""
    passing = count_of("age", "1", 10, max_share=0.5)
    wide = count_of("sex", "1", 500_000, low=0, high=10**6, max_share=0.5)
    assert headline(audit_of([passing], n_planned=2)) == "Not decided: 1 of 2 counts is missing"
    across = "Not decided: some intervals contain the limit of 50 % of all regions"
    assert headline(audit_of([wide])) == across
    assert headline(audit_of([wide], n_planned=3)) == f"{across}, and 2 of 3 counts are missing"
