"""Where bounds are all that is known, no room makes an estimate of them."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from report.samples import Page, audit_of, count_of
from rich.console import Console, RenderableType
from strategies import random_ensemble

import xcount
from xcount.answers.result import CountResult, Verdict
from xcount.counters import counter
from xcount.counters.engine import Outcomes
from xcount.counters.sampling.estimator import Estimator, KnownPart
from xcount.counters.settings import Settings
from xcount.counters.tally import Bounds, MaskCount, Profile, Progress, StopReason, Tally
from xcount.measures.shares import measure
from xcount.measures.weighting import Weighing
from xcount.model.examples import figure_1
from xcount.problem.problem import Problem
from xcount.question.cell import CellRange
from xcount.question.grid import Grid
from xcount.question.query import Query
from xcount.question.share import Limit
from xcount.report import html_comparison, html_report, markdown_report
from xcount.report.batch_text import audit_tables, comparison_tables
from xcount.report.spreadsheet import csv_comparison, csv_report
from xcount.report.text import count_tables, measured_text
from xcount.runs.audit import AuditResult
from xcount.runs.compare import CompareResult
from xcount.runs.compared import Compared
from xcount.support.interval import Interval


def interrupt(progress: Progress) -> None:
    """End the count."""
    raise KeyboardInterrupt


def bounded(name: str, low: int, high: int, **more: Any) -> CountResult:
    """Return a count, of a million regions, of which bounds alone are known."""
    found = count_of(name, "0.5", 0, **more)
    return replace(found, count=None, low=low, high=high, stop_reason=StopReason.TIMEOUT)


def shown(*tables: RenderableType) -> str:
    """Return tables as a wide terminal shows them."""
    console = Console(file=io.StringIO(), width=200)
    for table in tables:
        console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


# ---- counters ----


@pytest.mark.parametrize(
    "method",
    ["exact", "auto", "brute", "sample", "xcount", "add-baseline", "xcount-exact-union"],
)
def test_no_time_is_no_estimate(method: str) -> None:
    """A counter that is stopped at once has a count only where its bounds meet."""
    for seed in range(5):
        ensemble = random_ensemble(97_000 + seed, categorical=False)
        question: dict[str, Any] = {"sensitive": 0, "gap": "0.3", "method": method}
        result = xcount.count(ensemble, timeout=0, **question)
        assert result.confidence == 1
        assert result.count == (result.low if result.exact else None)
        assert (result.share is None) == (result.count is None)


def test_bounds_that_meet_are_a_count() -> None:
    """And no others."""
    assert Tally.of_bounds(3, 3, "exact").count == 3
    assert Tally.of_bounds(3, 4, "exact", StopReason.TIMEOUT).count is None


def test_an_interrupt_before_the_counter_began_is_no_estimate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is known then."""

    def stopped(problem: Problem, settings: Settings) -> Tally:
        raise KeyboardInterrupt

    monkeypatch.setattr("xcount.answers.count.counter", lambda method, problem: stopped)
    result = xcount.count(figure_1(), sensitive="f0", gap=80)
    assert (result.count, result.low, result.high) == (None, 0, 9)


class FixedDraws:
    """Draws whose every sample has the same outcomes: a share of hits, a share left open."""

    levels = 1
    seconds_per_sample = 1e-6
    n_trees = 1.0

    def __init__(self, hits: int, open_: int) -> None:
        self._hits, self._open = hits, open_

    def draw(
        self,
        seed: int,
        stream: int,
        first: int,
        n: int,
        n_threads: int,
        seconds: float,
        on_pause: Callable[[], None],
    ) -> Outcomes:
        """Return n batches of 256 samples."""
        low = np.zeros(256 * n, dtype=np.int64)
        high = low.copy()
        low[: self._hits * n], high[: (self._hits + self._open) * n] = 1, 1
        outcomes = [np.bincount(low, minlength=2), low]
        if self._open:
            outcomes += [np.bincount(high, minlength=2), high]
        return tuple(outcomes)


@pytest.mark.parametrize(
    ("hits", "open_", "certain", "count"),
    [(64, 0, 0, 250), (64, 0, 100, 350), (0, 0, 0, None), (0, 0, 100, 100), (64, 64, 0, None)],
)
def test_the_mean_of_the_samples_is_an_estimate(
    hits: int, open_: int, certain: int, count: int | None
) -> None:
    """Of a stopped run: but zero is none, nor is a mean that open samples could change much."""
    known_part = KnownPart(certain, 1000, Bounds(0, 2000), 2000)
    settings = Settings(epsilon=1e-3, jobs=1, on_progress=interrupt)
    estimator = Estimator(FixedDraws(hits, open_), known_part, settings)
    tally = estimator.run("sample", {})
    assert tally.stop_reason is StopReason.INTERRUPTED
    assert tally.details["samples"] > 0
    assert tally.count == count
    assert tally.low < (count or tally.low + 1) <= tally.high or count == certain
    assert tally.confidence == 0.9


def test_a_run_without_a_sample_has_no_estimate() -> None:
    """Whatever its bounds."""
    known_part = KnownPart(0, 1000, Bounds(0, 1000), 1000)
    estimator = Estimator(FixedDraws(64, 0), known_part, Settings(jobs=1))
    pilot = estimator.pilot()
    late = Estimator(FixedDraws(64, 0), known_part, Settings(jobs=1, timeout_seconds=0))
    assert late.run("sample", {}, pilot).count is None


def test_part_of_a_union_is_no_estimate_of_the_whole() -> None:
    """The paper's algorithm, stopped between two pairs of masks, knows bounds alone."""
    ensemble = figure_1()
    problem = Problem(ensemble, Grid.of(ensemble), Query.of(ensemble, "f0", 1))
    tally = counter("xcount")(problem, Settings(on_progress=interrupt))
    assert tally.stop_reason is StopReason.INTERRUPTED
    assert tally.low < tally.high
    assert tally.count is None


# ---- results ----


def test_json_says_null() -> None:
    """Count and share are null, and read back as None; the rest is as ever."""
    result = bounded("age", 310_000, 10**6)
    data = json.loads(result.to_json())
    assert (data["count"], data["share"]) == (None, None)
    assert (data["low"], data["share_low"], data["exact"]) == (310_000, 0.31, False)
    assert CountResult.from_dict(data) == result


def test_verdicts_need_no_estimate() -> None:
    """Bounds decide them."""
    results = [bounded("age", 310_000, 10**6, max_share=share) for share in (0.3, 0.4)]
    assert [r.verdict for r in results] == [Verdict.FAIL, Verdict.UNDECIDED]


def test_a_measure_that_was_stopped_has_no_share() -> None:
    """Nor one of which nothing was found out."""
    model = figure_1()
    problem = Problem(model, Grid.of(model), Query.of(model, "f0", 80))
    weighing = Weighing.of(model, "volume", bounds="f0=0:10,f1=0:10")
    found = measure(problem, weighing, Settings(on_progress=interrupt))["volume"]
    assert (found.share, found.low, found.high) == (None, 0, 1)
    assert measured_text(found) == "unknown: interrupted"
    known = replace(found, interval=Interval(None, 0.25, 1.0, 0.9))
    assert measured_text(known) == "between 25.0 % and 100 %, with 90% confidence"


# ---- ranks ----


def test_ranks_follow_what_is_known() -> None:
    """By the estimate, or the low bound where there is none; then by the high bound, and names."""
    results = [
        bounded("nothing known", 0, 10**6),
        bounded("at least a bit", 100_000, 900_000),
        count_of("estimated", "0.5", 200_000, low=150_000, high=250_000),
        bounded("at most a bit", 0, 1000),
        bounded("same bounds", 100_000, 900_000),
        count_of("zero", "0.5", 0),
    ]
    order = ["estimated", "at least a bit", "same bounds", "nothing known", "at most a bit", "zero"]
    for listed in (results, results[::-1]):
        audit = AuditResult.from_dict(audit_of(listed).to_dict())
        assert [ranked.label for ranked in audit.ranking] == order
        assert [r.sensitive[0] for r in audit.panel(audit.panels[0])] == order
    second = audit.ranking[1]
    assert second.score == Interval(None, 0.1, 0.9)


def test_means_know_what_their_shares_know() -> None:
    """One unknown share, and there is no mean of estimates."""
    results = [
        count_of("a", "0.5", 500_000),
        replace(bounded("a", 0, 10**6), distance=2),
    ]
    (ranked,) = audit_of(results).ranking
    assert ranked.score == Interval(None, 0.25, 0.75)


def comparison(*results: CountResult) -> CompareResult:
    """Return a comparison of models by one question."""
    row = Compared(("age",), 1, results[0].change, results)
    return CompareResult(
        names=tuple(f"model {i}" for i in range(len(results))),
        models=tuple(r.model for r in results),
        n_regions=10**6,
        n_planned=len(results),
        rows=(row,),
    )


def test_a_ratio_of_bounds_has_bounds_alone() -> None:
    """Its verdict follows from them; quartiles are of ratios that are known."""
    base, other = count_of("age", "0.5", 200_000), bounded("age", 100_000, 300_000)
    found = comparison(base, other)
    ratio = found.rows[0].ratio(1)
    assert ratio is not None
    assert (ratio.value, ratio.low, ratio.high) == (None, 0.5, 1.5)
    assert found.rows[0].verdict(1, Limit.of(2)) is Verdict.PASS
    assert found.rows[0].verdict(1, Limit.of(1)) is Verdict.UNDECIDED
    assert [(s.n_ratios, s.quartiles) for s in found.ranking if s.index] == [(0, None)]
    assert CompareResult.from_dict(json.loads(found.to_json())) == found
    may_be_zero = comparison(bounded("age", 0, 300_000), base).rows[0].ratio(1)
    assert may_be_zero is not None
    assert (may_be_zero.value, may_be_zero.high) == (None, math.inf)


def test_a_model_of_which_nothing_is_known_is_not_the_least_sensitive() -> None:
    """High bounds stand for what has no estimate where the smallest comes first."""
    found = comparison(bounded("age", 0, 10**6), count_of("age", "0.5", 900_000))
    assert [summary.index for summary in found.ranking] == [1, 0]
    assert "On no question is a model certainly more sensitive than model 0" in html_comparison(
        found
    )
    clear = comparison(bounded("age", 0, 1000), count_of("age", "0.5", 900_000))
    assert "model 1 is more sensitive to age than model 0" in html_comparison(clear)


# ---- reports ----

BOUNDS = bounded("age", 310_000, 10**6)


def test_tables_of_the_terminal_show_bounds() -> None:
    """Never their middle."""
    card = shown(*count_tables(BOUNDS))
    assert "between 310,000 and 1,000,000, guaranteed" in card
    assert "between 31.0 % and 100 %" in card
    ranking = shown(*audit_tables(audit_of([BOUNDS])))
    assert "31.0 to 100 %" in ranking
    assert "its lower end decides the rank" in ranking
    compared = shown(*comparison_tables(comparison(count_of("age", "0.5", 200_000), BOUNDS)))
    assert compared.count("31.0 to 100 %") == 2
    assert "1.55 to 5" in compared
    for text in (card, ranking, compared):
        assert "65.5" not in text
        assert "655" not in text
        assert "None" not in text


def test_pages_show_bounds() -> None:
    """In words and in tables, for an audit and for a comparison."""
    audit = audit_of([BOUNDS, count_of("sex", "0.5", 1000)])
    page = Page(html_report(audit))
    assert "between 31.0 % and 100 %" in page.text
    assert "31.0 to 100 %" in page.text
    assert "the lower bound decides the rank" in page.text
    both = Page(html_comparison(comparison(count_of("age", "0.5", 200_000), BOUNDS)))
    assert "310,000 to 1,000,000" in both.text
    assert "1.55 to 5" in both.text
    markdown = markdown_report(audit)
    assert "| between 31.0 % and 100 % | guaranteed |" in markdown
    for text in (page.text, both.text, markdown):
        assert "65.5" not in text
        assert "655" not in text
        assert "None" not in text
    assert "the lower bound decides the rank" not in html_report(audit_of([count_of("a", "1", 5)]))


def test_a_bar_of_bounds_is_an_interval() -> None:
    """Full up to the low bound, pale from there to the high one; its count is nowhere."""
    page = Page(html_report(audit_of([BOUNDS])))
    row = next(a for _, a in page.tags if a.get("data-sensitive") == "age")
    assert "data-count" not in row
    assert (row["data-low"], row["data-high"]) == ("310000", "1000000")
    bars = {a["class"]: a for _, a in page.tags if a.get("class") in ("fill", "fill open")}
    assert bars["fill"]["width"] == "31.000%"
    assert (bars["fill open"]["x"], bars["fill open"]["width"]) == ("31.000%", "69.000%")


def test_a_line_has_no_point_where_nothing_is_estimated() -> None:
    """The chart of gaps draws the interval there, and no line to its middle."""
    results = [count_of("age", gap, 10_000) for gap in ("0.1", "0.2")]
    results.append(replace(BOUNDS, change=count_of("age", "0.4", 0).change))
    page = Page(html_report(audit_of(results)))
    chart = html_report(audit_of(results)).partition('id="gaps"')[2].partition("</figure>")[0]
    drawn = chart.partition('data-sensitive="age"')[2].partition('class="cursor"')[0]
    assert drawn.count('class="stroke"') == 1
    assert drawn.count('class="mark circle"') == 2
    assert drawn.count('class="whisker"') == 3
    assert page.open_tags == []


def cells(*bounds: tuple[int, int]) -> Profile:
    """Return a profile whose cells have 1000 combinations each."""
    return Profile(
        tuple(
            MaskCount((i,), (CellRange("age", float(i), float(i + 1)),), low, high, 1000)
            for i, (low, high) in enumerate(bounds)
        )
    )


def test_rows_that_know_nothing_are_left_out() -> None:
    """Of a profile: in the terminal and on the page; the page says how many."""
    profile = cells((0, 1000), (123, 456), (0, 1000), (7, 7))
    result = replace(BOUNDS, profile=profile)
    text = shown(*count_tables(result))
    assert "2 rows left out: nothing is known so far" in text
    assert "123 to 456" in text
    assert "0 <= age < 1" not in text
    page = html_report(audit_of([result]))
    shape = page.partition('class="feature"')[2].partition("</details>")[0]
    assert "2 cells left out: nothing is known so far" in shape
    assert "highest where 1 &lt;= age &lt; 2" in shape
    assert "0 &lt;= age &lt; 1: nothing is known" in shape
    assert "0 &lt;= age &lt; 1" not in shape.partition("</svg>")[2]
    assert shape.count('class="unsure"') == 1
    assert shape.count('class="layer l3"') == 3  # two bars, and the key of the gap
    nothing = replace(BOUNDS, profile=cells((0, 1000), (0, 1000)))
    assert 'class="feature"' not in html_report(audit_of([nothing]))


def test_spreadsheets_leave_it_blank() -> None:
    """Count, share and ratio; bounds are there."""
    (row,) = csv.DictReader(io.StringIO(csv_report(audit_of([BOUNDS]))))
    assert (row["count"], row["share"], row["low"]) == ("", "", "310000")
    text = csv_comparison(comparison(count_of("age", "0.5", 200_000), BOUNDS))
    _, second = csv.DictReader(io.StringIO(text))
    assert (second["ratio"], second["ratio_low"], second["ratio_high"]) == ("", "1.55", "5.0")


def test_plots_draw_intervals() -> None:
    """A full bar up to the low bound, a pale one from there to the high one."""
    pytest.importorskip("matplotlib")
    figure = audit_of([BOUNDS]).plot()
    full, pale = (
        patch.get_path().get_extents(patch.get_patch_transform())
        for patch in figure.axes[0].patches
    )
    assert (full.width, pale.x0, pale.width) == (31.0, 31.0, 69.0)
